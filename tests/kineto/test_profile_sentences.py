"""Sentences on profiler traces: when each rule speaks and when it is silent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from simcore.replay.what_if import what_if
from tests.kineto.made_ranks import Kernel, called, gemm, in_group, opened, write
from tests.kineto.test_partners import CASES

_ALL = in_group("all", range(4))


def _words(results: Any) -> str:
    return " ".join(results.figures.words)


# -- phases that are not known ----------------------------------------------------------


def _phases(forward: int, backward: int, unknown: int = 0, names: bool = True) -> list[Kernel]:
    """A rank that computes so long, us, and meets the others 20 ms into the step."""
    kernels = [
        gemm(0, forward, "fwd", "forward" if names else ""),
        gemm(forward, backward, "bwd", "backward" if names else ""),
    ]
    if unknown:
        kernels.append(gemm(forward + backward, unknown, "other"))
    begins = forward + backward + unknown
    return [*kernels, called("allreduce", begins, 20_000, 4, **_ALL)]


def test_a_phase_that_is_not_known_is_not_nothing() -> None:
    results = opened(CASES / "phases_unknown_on_one_rank")
    assert "Rank 1 is slow" in _words(results)
    assert not re.search("backward|optimizer|shorter", _words(results))


def test_a_shorter_phase_of_a_slow_rank_is_said_with_both_figures(tmp_path: Path) -> None:
    made = {rank: _phases(4000, 4000) for rank in range(4)} | {1: _phases(9000, 2000)}
    words = _words(opened(write(tmp_path, made)))
    assert "though its backward is shorter (2.000 ms, the others' 4.000 ms)" in words


@pytest.mark.parametrize("names", [(True, False), (False, True), (False, False)])
def test_no_phase_is_compared_where_those_of_one_side_are_not_known(
    names: tuple[bool, bool], tmp_path: Path
) -> None:
    made = {rank: _phases(4000, 4000, names=names[1]) for rank in range(4)}
    made[1] = _phases(9000, 2000, names=names[0])
    words = _words(opened(write(tmp_path, made)))
    assert "Rank 1 computes longer" in words or "Rank 1 is slow" in words
    assert "shorter" not in words


def test_no_phase_is_shorter_that_what_has_none_may_belong_to(tmp_path: Path) -> None:
    made = {rank: _phases(4000, 4000) for rank in range(4)} | {1: _phases(9000, 2000, 2000)}
    assert "shorter" not in _words(opened(write(tmp_path, made)))


# -- stages are no peers -----------------------------------------------------------------


def _stage(stage: int, takes: int, pipeline: tuple[int, int]) -> list[Kernel]:
    """A rank of a pipeline of two; all ranks meet at the end."""
    group = in_group("pp", pipeline)
    kernels = [gemm(0, 5)]
    if stage:
        kernels.append(called("recv", 10, 1100, 2, **group))
    begins = 1100 if stage else 10
    kernels.append(gemm(begins, takes))
    if not stage:
        kernels.append(called("send", 1060, 1100, 2, **group))
    return [*kernels, called("allreduce", 8000, 9000, 4, **_ALL)]


def test_stages_of_a_pipeline_are_not_compared_as_if_they_were_peers() -> None:
    for case in ("eager_send", "send_without_ends"):
        results = opened(CASES / case)
        assert not re.search("computes|is slow|than the median", _words(results))
        assert results.peers == [(), ()]
        assert not any("as its peers" in ask.name or "as fast as" in ask.name for ask in what_if(results))


@pytest.mark.parametrize("pipelines", [((0, 2), (1, 3)), ((0, 1), (2, 3))])
def test_a_rank_is_compared_with_those_at_its_place_in_other_pipelines(
    pipelines: tuple[tuple[int, int], tuple[int, int]], tmp_path: Path
) -> None:
    takes = {pipelines[0][0]: 1000, pipelines[0][1]: 4000, pipelines[1][0]: 1000, pipelines[1][1]: 6000}
    made = {
        rank: _stage(stage, takes[rank], pipeline)
        for pipeline in pipelines
        for stage, rank in enumerate(pipeline)
    }
    results = opened(write(tmp_path, made))
    slow, peer = pipelines[1][1], pipelines[0][1]
    assert f"Rank {slow} is slow: it computes 6.005 ms, rank {peer} 4.005 ms" in _words(results)
    assert _words(results).count("is slow") == 1
    assert "computes longer" not in _words(results)


def test_a_rank_whose_other_end_is_missing_has_no_peers(tmp_path: Path) -> None:
    group = in_group("pp", range(4))
    made = {
        0: [gemm(0, 1000), called("send", 1000, 1040, 4, Dst_Rank=1, **group), *_met()],
        2: [gemm(0, 5000), called("send", 5000, 5040, 4, Dst_Rank=3, **group), *_met()],
    }
    results = opened(write(tmp_path, made, world=4))
    assert not re.search("computes longer|is slow", _words(results))


def test_ranks_that_send_within_a_group_of_the_same_work_stay_peers(tmp_path: Path) -> None:
    group = in_group("tp", (0, 1))
    made = {
        rank: [gemm(0, takes), called(what, takes, 6040, 2, **group), *_met()]
        for rank, takes, what in ((0, 2000, "recv"), (1, 6000, "send"))
    }
    assert "Rank 1 is slow" in _words(opened(write(tmp_path, made)))


def _met() -> list[Kernel]:
    return [called("allreduce", 8000, 8100, 4, **_ALL)]


# -- figures that say nothing ----------------------------------------------------------------


def test_the_largest_other_part_is_said_where_it_reads_as_more_than_nothing(tmp_path: Path) -> None:
    busy = {0: [gemm(0, 100_000), gemm(100_002, 100_000)]}
    words = _words(opened(write(tmp_path / "busy", busy)))
    assert "Compute is 100.0 % of the rank's time." in words
    assert "largest other part" not in words
    idle = {0: [gemm(0, 100_000), gemm(101_000, 100_000)]}
    assert "The largest other part, 0.5 %, is idle" in _words(opened(write(tmp_path / "idle", idle)))


def test_waits_of_sends_are_said_to_be_of_both(tmp_path: Path) -> None:
    assert "the other end of a send or receive" in _words(opened(CASES / "send_without_ends"))
    assert "the other end" not in _words(opened(CASES / "phases_unknown_on_one_rank"))


@pytest.mark.parametrize(
    ("late_us", "after"), [((300, 300, 300), "300.0 us"), ((300, 400, 500), "300.0 us to 500.0 us")]
)
def test_how_late_a_rank_comes_is_one_figure_where_it_is_always_as_late(
    late_us: tuple[int, ...], after: str, tmp_path: Path
) -> None:
    made: dict[int, list[Kernel]] = {rank: [gemm(0, 100)] for rank in range(4)}
    for place, late in enumerate(late_us):
        begins = 2000 * place + 200
        for rank in range(4):
            arrives = begins + late * (rank == 2)
            made[rank] += [
                gemm(arrives - 50, 50),
                called("allreduce", arrives, begins + late + 40, 4, **_ALL),
            ]
    words = _words(opened(write(tmp_path, made)))
    assert f"Rank 2 comes last to 3 of 3 collectives, {after} after the next-latest" in words
