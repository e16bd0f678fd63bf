"""Legs of execution traces: they cover the path, and are those of the simulated run that was written.

Planted: placeholders that are legs of their own; a micro-batch that is not read from names. Each failed here.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from simcore.chakra import find_set, open_set
from simcore.executing.execution_result import Execution
from simcore.names import ASTRA_SIM_2
from simcore.parameters import Parameters
from simcore.runs.executed import ExecutedRun, run_execution
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace import graph
from simcore.trace.reasons import Facts, reason_words
from simcore.trace.run import merged_segments_of
from simcore.workload import open_workload
from tests.executing.encoding import COLL, COMP, RECV, SEND, write_set
from tests.executing.test_round_trip import MOE, OLD, written


def opened(folder: Path, ranks: list[list[dict[str, Any]]], dialect: str | None = None) -> ExecutedRun:
    found = find_set(write_set(folder, ranks))
    assert found is not None
    return run_execution(Execution(open_set(found), Parameters(dim=("switch:4:10:0",), dialect=dialect)))


def node(number: int, name: str, micros: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "type": COMP, "micros": micros, "attributes": {}, **more}


def told(run: ExecutedRun) -> list[tuple[str, int, int, int]]:
    return [(leg.what, leg.microbatch, leg.rank, leg.ns) for leg in merged_segments_of(run)]


def assert_covers(run: ExecutedRun) -> None:
    legs = merged_segments_of(run)
    assert (legs[0].start_ns, legs[-1].end_ns) == (0, run.step_time_ns)
    assert (legs[0].first, legs[-1].last) == (0, len(run.critical_path))
    for one, two in pairwise(legs):
        assert (one.end_ns, one.last) == (two.start_ns, two.first)
        assert (one.rank, one.what, one.microbatch) != (two.rank, two.what, two.microbatch)


@pytest.mark.parametrize("path", [OLD, pytest.param(MOE, marks=pytest.mark.slow)])
def test_the_legs_of_what_is_written_are_those_of_the_run(path: str, tmp_path: Path) -> None:
    simulated = SimulatedRun(simulate(open_workload(path), Parameters()))
    read = written(path, Parameters(), tmp_path)
    assert_covers(read)
    of_batches = [
        [(leg.start_ns, leg.ns, leg.rank, leg.what, leg.microbatch) for leg in legs if leg.microbatch >= 0]
        for legs in (merged_segments_of(read), merged_segments_of(simulated))
    ]
    assert of_batches[0] == of_batches[1] != []
    if path == OLD:
        assert [(leg.start_ns, leg.ns) for leg in merged_segments_of(read)] == [
            (leg.start_ns, leg.ns) for leg in merged_segments_of(simulated)
        ]


def test_neighbours_of_one_name_are_a_leg_and_compute_of_nothing_is_part_of_the_next(tmp_path: Path) -> None:
    run = opened(tmp_path, [[
        node(1, "gemm_1", 5), node(2, "gemm_2", 6, data=[1]), node(3, "copy", 1, data=[2]),
        node(4, "relu", 0, data=[3], attributes={"wltui_ns": 1}), node(5, "gemm_3", 7, data=[4]),
        node(6, "end", 0, data=[5], attributes={"wltui_ns": 1}),
    ]])  # fmt: skip
    # A kernel of 1 us is one where nobody says that it stands for nothing.
    assert told(run) == [("gemm_#", -1, 0, 11_000), ("copy", -1, 0, 1000), ("gemm_#", -1, 0, 7002)]
    assert_covers(run)


def test_a_micro_batch_is_told_by_names_as_stage_gives_them(tmp_path: Path) -> None:
    reduce = {"id": 2, "name": "mb0.transformer.0.mha.o@0_X2COMM", "type": COLL, "data": [1],
              "attributes": {"comm_type": 0, "comm_size": 4000}}  # fmt: skip
    run = opened(tmp_path, [[
        node(1, "mb0.transformer.0.mha.q@0_COMP", 5), reduce,
        node(3, "mb0.transformer.0.mha.dwo@0_COMP", 7, data=[2]),
        node(4, "mb1.transformer.0.mha.q@0_COMP", 5, data=[3]), node(5, "in_emb.dw@0_COMP", 9, data=[4]),
    ]] * 4)  # fmt: skip
    ns = run.step_time_ns - 26_000
    assert told(run) == [
        ("forward", 0, 0, 5000 + ns), ("backward", 0, 0, 7000), ("forward", 1, 0, 5000),
        ("in_emb.dw@#_COMP", -1, 0, 9000),
    ]  # fmt: skip
    assert_covers(run)


def test_why_a_leg_begins_no_earlier_is_said_in_words_with_the_name_of_what_it_waits_for(
    tmp_path: Path,
) -> None:
    """Planted: `data`, `ctrl` and `slot`, as before."""
    ranks = 4 * [[
        node(1, "first", 5), node(2, "needs", 6, data=[1]), node(3, "ordered", 7) | {"ctrl": [2]},
        node(4, "last\x1b[1m", 8), node(5, "end", 9, data=[4]),
    ]]  # fmt: skip
    begins, first = (reason_words(Facts(None, is_needed=need != "", what=need)) for need in ("", "first"))
    for dialect, on in ((None, "its stream"), (ASTRA_SIM_2, "GPU compute")):
        alone = opened(tmp_path, ranks, dialect)
        assert [(leg.what, leg.reason) for leg in merged_segments_of(alone)] == [
            ("first", begins),
            ("needs", first),
            ("ordered", reason_words(Facts(None, is_named=True, what="needs"))),
            ("last\x1b[#m", reason_words(Facts(graph.BUSY, where=on, what="ordered"))),
            ("end", reason_words(Facts(None, is_needed=True, what="last\\x1b[1m"))),
        ]
    message = {"comm_size": 4000, "comm_src": 0, "comm_dst": 1, "comm_tag": 7}
    (tmp_path / "pair").mkdir()
    pair = opened(tmp_path / "pair", [
        [node(1, "first", 5), {"id": 2, "name": "s", "type": SEND, "data": [1], "attributes": message}],
        [{"id": 1, "name": "r", "type": RECV, "attributes": message}, node(2, "last", 9, data=[1])],
    ])  # fmt: skip
    assert [leg.reason for leg in merged_segments_of(pair)] == [
        begins, first, reason_words(Facts(graph.RECEIVED, rank=0, payload="the message"))
    ]  # fmt: skip


def test_behind_a_collective_a_rank_waits_for_its_data_whoever_of_its_members_ended_first(
    tmp_path: Path,
) -> None:
    """The path goes on on rank 3. Planted: the member that ended first asked in place of its own."""
    size = {"comm_size": 4000, "comm_type": 0}
    run = opened(tmp_path, [
        [
            node(1, "first", 5), {"id": 2, "name": "sum", "type": COLL, "data": [1], "attributes": size},
            node(3, "behind", 6 + rank, data=[2]),
        ]
        for rank in range(4)
    ])  # fmt: skip
    assert [(leg.what, leg.rank, leg.reason) for leg in merged_segments_of(run)][1:] == [
        (name, 3, reason_words(Facts(None, is_needed=True, what=needed)))
        for name, needed in (("sum", "first"), ("behind", "sum"))
    ]
