"""Rank traces of several iterations: their steps, each of them alone, and who is late.

Planted: an iteration begins with its optimizer step; sub-operations keep the index of the operation in the
whole file. Both failed here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.measured import MeasuredRun
from simcore.measured.iterations import cut_iteration
from simcore.parameters import OpeningOptions, Parameters, RunInput
from simcore.runs import open_run
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import open_input

from .traces import STAMP, read, step, write_set


def iterations(backwards: list[int], stage: int = 0) -> str:
    """A rank whose backward takes so many ms in each iteration, of 30 ms."""
    return "".join(
        step(0, 1000 + 30 * at, stage).replace("duration=4.00", f"duration={ms}.00")
        for at, ms in enumerate(backwards)
    )


def opened(path: Path, **options: str) -> RecordedRun:
    run = open_run(RunInput(open_input(str(path), OpeningOptions(**options)), Parameters()))
    assert isinstance(run, RecordedRun)
    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two ranks of one stage, of which rank 1 is slow from the second iteration on."""
    texts = {0: iterations([2, 2, 2, 2]), 1: iterations([2, 4, 4, 4]).replace("rank:0:", "rank:1:")}
    write_set(tmp_path, texts, world=2, pp=1)
    return tmp_path


def test_an_iteration_ends_with_its_optimizer_step(folder: Path) -> None:
    steps = opened(folder).step_table
    assert steps is not None
    assert [*steps.steps] == [0, 1, 2, 3]
    assert [*steps.ns] == [10_000_000] * 4
    backward = [[*ns] for ns in (steps.by_kind[0][1], steps.by_kind[1][1])]
    assert backward == [[2_000_000] * 4, [2_000_000, *[4_000_000] * 3]]


def test_the_rank_that_is_late_in_most_iterations_is_named_with_what_it_costs(folder: Path) -> None:
    run = opened(folder)
    steps, findings = run.step_table, run.step_findings
    assert steps is not None
    assert findings is not None
    assert steps.slow_rank == (1, 3, 2_000_000)
    assert findings.as_peers is not None
    assert findings.as_peers.steps == (0, 1, 2, 3)
    # In the first iteration both are alike.
    assert findings.as_peers.before_ns[0] == findings.as_peers.after_ns[0]


@pytest.mark.parametrize("late_ms", [2, 1_000_000])
def test_an_iteration_of_the_table_is_as_long_as_alone(tmp_path: Path, late_ms: int) -> None:
    """Rank 1 begins 2 ms behind rank 0, or was profiled much later."""
    later = "".join(step(1, 1000 + 30 * at + late_ms) for at in range(4))
    write_set(tmp_path, {0: iterations([2, 2, 2, 2]), 1: later}, world=2, pp=1)
    table = opened(tmp_path).step_table
    assert table is not None
    for number, ns in zip(table.steps, table.ns, strict=True):
        one = opened(tmp_path, step=str(number))
        assert (one.step_time_ns, one.measured.concurrent) == (ns, late_ms == 2)
    assert set(table.ns) == {12_000_000 if late_ms == 2 else 10_000_000}


@pytest.mark.parametrize("options", [{"step": "1"}, {"run": "#1"}, {"run": f"{STAMP}#1"}])
def test_one_iteration_opens_alone_and_knows_the_others(folder: Path, options: dict[str, str]) -> None:
    run = opened(folder, **options)
    assert run.measured.shown_step == 1
    assert run.step_time_ns == 10_000_000
    assert [len(rank.ops) for rank in run.measured.ranks] == [4, 4]
    assert run.setup.label == f"{STAMP}#1"
    assert [label.partition("#")[2] for label in run.setup.others] == ["all", "0", "2", "3"]
    assert run.has_several_steps


def test_an_iteration_has_its_own_sub_operations() -> None:
    run = read(iterations([2, 3]))
    (rank,) = run.ranks
    cut = cut_iteration(rank, 1)
    assert [*cut.subs.parent] == [0]
    assert cut.subs.start[0] == rank.subs.start[1]


def test_a_file_alone_opens_by_iterations_too(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text(iterations([2, 3, 2]))
    run = opened(path, step="2")
    assert (run.measured.shown_step, run.setup.label) == (2, "#2")


@pytest.mark.parametrize("wanted", ["4", "x"])
def test_an_iteration_that_is_not_there_is_refused(folder: Path, wanted: str) -> None:
    with pytest.raises(UsageError, match="0 to 3"):
        opened(folder, step=wanted)


def test_a_run_of_one_iteration_has_none_and_refuses_a_step(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in range(2)}, world=2, pp=1)
    run = open_input(str(tmp_path), OpeningOptions())
    assert isinstance(run, MeasuredRun)
    assert (run.rank_steps, run.label) == ((), STAMP)
    with pytest.raises(UsageError, match="one iteration"):
        opened(tmp_path, step="1")
