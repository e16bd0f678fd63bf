"""The steps of a run x its ranks: compute, waits, who is late; by hand, and as each step alone has it.

Planted, one at a time: a send waits for a receive that begins after it has ended; idle time before a
communication counts though its members begin apart; a rank is one of its own peers. Each failed here.
"""

from __future__ import annotations

from array import array
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simcore.kineto.step_calls import align_steps
from simcore.measured.columns import CollectiveInfo, OpColumns
from simcore.measured.step_columns import RankSteps, StepColumns, join_steps, summarize_steps
from simcore.measured.vocabulary import CATEGORIES
from simcore.parameters import OpeningOptions, Parameters, RunInput
from simcore.replay.step_table import ABSENT, LATE, StepTable
from simcore.runs import open_run
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import open_input
from tests.kineto.made_jobs import Job, events
from tests.kineto.test_chrome import exported, named, results, span, trace
from tests.kineto.test_span_csv import told

Span = tuple[str, int, int, int]


def columns_of(rank: int, *spans: Span, members: tuple[int, ...] = (0, 1)) -> RankSteps:
    """The steps of a rank of these (category, start, end, step); `dp` is a collective of the members."""
    ordered = sorted(spans, key=lambda one: one[1])
    ops = OpColumns(
        name=[one[0] for one in ordered], start=array("q", [one[1] for one in ordered]),
        end=array("q", [one[2] for one in ordered]),
        stated_category=bytearray([CATEGORIES.index(one[0]) for one in ordered]),
    )  # fmt: skip
    calls = {
        op: CollectiveInfo("allreduce", "dp", members, len(members))
        for op, one in enumerate(ordered)
        if one[0] == "dp"
    }
    numbers = sorted({one[3] for one in ordered})
    by_step = {number: [one for one in ordered if one[3] == number] for number in numbers}
    windows = [
        (number, min(one[1] for one in some), max(one[2] for one in some)) for number, some in by_step.items()
    ]
    streams = [0] * len(ordered)
    return RankSteps(rank, 0, summarize_steps(ops, [one[3] for one in ordered], windows, calls, streams))


def table(*ranks: RankSteps, one_clock: bool = True) -> StepTable:
    peers = {one.rank: [other.rank for other in ranks if other is not one] for one in ranks}
    return StepTable(align_steps(ranks, "rank", None, one_clock), peers, one_clock)


def test_compute_is_what_runs_at_once_counted_once_and_hides_communication() -> None:
    """Forward to 10, backward from 5 to 20, a collective from 15 to 30, the host to 40."""
    (steps,) = (
        columns_of(0, ("forward", 0, 10, 3), ("backward", 5, 20, 3), ("dp", 15, 30, 3), ("host", 25, 40, 3)),
    )
    assert [spent[0] for spent in steps.columns.spent] == [10, 10, 0, 10, 10]
    assert (steps.columns.step[0], steps.columns.end[0] - steps.columns.start[0]) == (3, 40)


_PARTS = ("forward", "backward", "kernel", "copy", "host")


@given(
    st.lists(st.tuples(st.sampled_from(_PARTS), st.integers(0, 30), st.integers(0, 9), st.integers(0, 1))),
    st.tuples(st.integers(0, 30), st.integers(0, 30)),
)
# A copy that begins when its step is over.
@example([("copy", 20, 5, 0)], (10, 5))
def test_each_ns_of_a_step_counts_once_whatever_lies_outside(
    rows: list[tuple[str, int, int, int]], window: tuple[int, int]
) -> None:
    """Compute hides communication and copies, both hide the host."""
    rows = sorted(rows, key=lambda row: row[1])
    ops = OpColumns(
        name=[""] * len(rows), start=array("q", [start for _, start, *_ in rows]),
        end=array("q", [start + ns for _, start, ns, _ in rows]),
        stated_category=bytearray([CATEGORIES.index(part) for part, *_ in rows]),
    )  # fmt: skip
    first, last = window[0], sum(window)
    columns = summarize_steps(ops, [step for *_, step in rows], [(0, first, last)], {})
    counts = Counter[str]()
    for at in range(first, last):
        there = [part for part, start, ns, step in rows if step == 0 and start <= at < start + ns]
        computes = [part for part in there if part in _PARTS[:3]]
        counts[(computes or sorted(there) or [""])[0]] += 1
    compute = sum(counts[part] for part in _PARTS[:3])
    spent = [ns[0] for ns in columns.spent]
    assert (sum(spent[:3]), spent[3], spent[4]) == (compute, counts["copy"], counts["host"])


@pytest.mark.parametrize("one_clock", [True, False])
def test_a_rank_waits_for_the_last_member(one_clock: bool) -> None:
    """Rank 1 computes to 30 of 40: rank 0 waits 20 of its 30 in the collective."""
    ranks = (
        columns_of(0, ("forward", 0, 10, 0), ("dp", 10, 40, 0)),
        columns_of(1, ("forward", 0, 30, 0), ("dp", 30, 40, 0)),
    )
    steps = table(*ranks, one_clock=one_clock)
    assert [[*column] for column in steps.waits] == [[20], [0]]
    assert (steps.rows[0].last_rank, steps.rows[0].late_ns) == (1, 20)


def test_idle_time_before_a_communication_that_all_begin_at_once_is_waiting() -> None:
    """Both begin at 30, rank 0 since 10 without anything to do."""
    ranks = (
        columns_of(0, ("forward", 0, 10, 0), ("dp", 30, 40, 0)),
        columns_of(1, ("forward", 0, 30, 0), ("dp", 30, 40, 0)),
    )
    assert [[*column] for column in table(*ranks).waits] == [[20], [0]]


def test_idle_time_before_two_calls_that_begin_at_once_counts_once() -> None:
    """Rank 0 waits from 10 on for rank 1, and both begin two collectives at 30."""
    rest = (("dp", 30, 40, 0), ("dp", 30, 36, 0))
    ranks = columns_of(0, ("forward", 0, 10, 0), *rest), columns_of(1, ("forward", 0, 30, 0), *rest)
    assert [[*column] for column in table(*ranks).waits] == [[20], [0]]


def test_idle_time_of_all_members_is_no_waiting() -> None:
    """Their hosts launch the collective 20 after the last operation of rank 1."""
    ranks = (
        columns_of(0, ("forward", 0, 10, 0), ("dp", 50, 60, 0)),
        columns_of(1, ("forward", 0, 30, 0), ("dp", 50, 60, 0)),
    )
    assert [[*column] for column in table(*ranks).waits] == [[20], [0]]


def test_idle_time_of_a_rank_that_comes_late_is_no_waiting() -> None:
    """Rank 1 does nothing from 10 to 30, while rank 0 waits inside of the collective."""
    ranks = (
        columns_of(0, ("forward", 0, 10, 0), ("dp", 10, 40, 0)),
        columns_of(1, ("forward", 0, 10, 0), ("dp", 30, 40, 0)),
    )
    steps = table(*ranks)
    assert [[*column] for column in steps.waits] == [[20], [0]]
    assert steps.rows[0].last_rank == 1


def test_a_send_that_is_over_has_not_waited_for_its_receive(tmp_path: Path) -> None:
    """In each step rank 0 sends from 5 to 7, and rank 1 receives from 20 on; a send until 24 waits for 15."""
    events = [named(0, "PP rank 0"), named(1, "PP rank 1")]
    for step, over in ((0, 7), (1, 24)):
        at = 100 * step
        events += [
            span("forward", at, 5, 0, 0, step=step), span("forward-send", at + 5, over - 5, 0, 1, step=step),
            span("forward", at, 20, 1, 0, step=step), span("forward-recv", at + 20, 5, 1, 1, step=step),
            span("gather of its own: allgather", at + 50, 30, 0, 2, step=step, ranks=[0]),
        ]  # fmt: skip
    steps = results(trace(tmp_path, *events)).step_table
    assert steps is not None
    assert [[*column] for column in steps.waits] == [[2_000, 15_000], [0, 0]]


def test_ranks_that_communicate_with_none_are_compared_by_their_compute() -> None:
    ranks = [columns_of(rank, ("forward", 0, end, 0)) for rank, end in enumerate((10, 10, 30))]
    steps = table(*ranks)
    assert not steps.has_waits
    assert [column[0] for column in steps.late] == [0, 0, 20]


def test_a_rank_that_lacks_a_step_has_none() -> None:
    """Rank 1 lacks step 1; of its two steps the second is step 2."""
    ranks = (
        columns_of(0, *(("forward", 10 * step, 10 * step + 5, step) for step in range(3))),
        columns_of(1, ("forward", 0, 9, 0), ("forward", 20, 22, 2)),
    )
    steps = table(*ranks)
    assert [*steps.steps] == [0, 1, 2]
    assert [*steps.lengths[1]] == [9, ABSENT, 2]
    assert [*steps.ns] == [9, 5, 5]


def test_windows_of_a_rank_are_one_sequence_of_steps() -> None:
    parts = [columns_of(0, ("forward", at, at + 3, step), ("dp", at + 3, at + 5, step)).columns
             for step, at in ((4, 100), (1, 0))]  # fmt: skip
    joined = join_steps(parts)
    assert [*joined.step] == [1, 4]
    assert [*joined.start] == [0, 100]
    assert [[*calls.row] for calls in joined.calls.values()] == [[1, 0]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 40), min_size=2, max_size=6), min_size=1, max_size=5))
def test_a_rank_is_late_by_the_median_of_the_others(waits: list[list[int]]) -> None:
    """waits: by step and rank; ragged ones are cut."""
    count = min(map(len, waits))
    ranks = [
        columns_of(
            rank,
            *(("dp", 100 * step + 50 - some[rank], 100 * step + 60, step) for step, some in enumerate(waits)),
            members=tuple(range(count)),
        )
        for rank in range(count)
    ]
    steps = table(*ranks)
    for step, some in enumerate(waits):
        least = min(some[:count])
        for rank in range(count):
            others = sorted(some[:rank] + some[rank + 1 : count])
            expected = max(others[(len(others) - 1) // 2] - some[rank], 0)
            assert steps.late[rank][step] == expected
            assert steps.waits[rank][step] == some[rank] - least


# -- of files ----------------------------------------------------------------------------------------


def job_file(folder: Path, **other: Any) -> str:
    return trace(folder, *events(Job(3, 2, 1, 4, 5, slow={(1, 0): 1.8}, **other)))


def test_each_step_alone_computes_what_the_table_says(tmp_path: Path) -> None:
    path = job_file(tmp_path)
    first = results(path)
    steps = first.step_table
    assert steps is not None
    whole = results(path, step="all").step_table
    assert whole is not None
    assert whole.rows == steps.rows
    for row, number in enumerate(steps.steps):
        one = results(path, step=str(number))
        assert one.step_table is not None
        assert one.step_table.rows == steps.rows
        assert one.step_time_ns == steps.ns[row]
        assert [accounts.busy_ns for accounts in one.accounts] == [column[row] for column in steps.compute]
        for index, accounts in enumerate(one.accounts):
            exposed = sum(accounts.exposed_ns().values())
            assert exposed + accounts.wait_ns == sum(
                (steps.by_kind[index][3][row], steps.waits[index][row])
            ) - _idle_before(steps, first, index, row)


def _idle_before(steps: StepTable, run: RecordedRun, index: int, row: int) -> int:
    """What a rank waits before communication that is cut: idle time in its accounts."""
    inside = run.measured.rank_steps[index].columns.spent[3][row] - steps.by_kind[index][3][row]
    return steps.waits[index][row] - inside


def test_the_slow_rank_is_last_in_all_steps(tmp_path: Path) -> None:
    steps = results(job_file(tmp_path)).step_table
    assert steps is not None
    # dp rank 1 of stage 0, of 3 dp ranks.
    assert steps.recurrence == [(1, 5)]
    assert [row.last_rank for row in steps.rows] == [1] * 5
    assert max(range(6), key=lambda index: steps.measure(LATE)[index][0]) == 1


def test_one_step_has_no_table(tmp_path: Path) -> None:
    run = results(trace(tmp_path, span("forward", 0, 5), named(0, "rank 0")))
    assert (run.has_several_steps, run.step_table) == (False, None)


def test_what_was_read_before_has_the_same_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.kineto.cache._LEAST_BYTES", 1)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = job_file(tmp_path)

    def read() -> tuple[RankSteps, ...]:
        run = open_run(RunInput(open_input(path, OpeningOptions()), Parameters()))
        assert isinstance(run, RecordedRun)
        return run.measured.rank_steps

    first, again = read(), read()
    assert first == again
    assert any((tmp_path / "state").rglob("*.columns"))
    assert all(isinstance(one.columns, StepColumns) and len(one.columns) == 5 for one in again)


@pytest.mark.parametrize(
    "job",
    [
        Job(2, 2, 1, 3, 4, slow={(1, 0): 1.7}),
        Job(3, 1, 1, 2, 3, uneven=1.0),
        Job(2, 3, 2, 3, 2, True, 5, comm_us=(60, 200)),
    ],
)
def test_all_steps_as_a_chrome_trace_are_the_same_steps(tmp_path: Path, job: Job) -> None:
    """Accounts of all steps and of one, waits and lengths; planted: operations without their step."""
    path = trace(tmp_path, *events(job))
    again_path = exported(path, tmp_path, "--step", "all", "--ranks", "all")
    first, again = results(path, step="all"), results(again_path, step="all")
    assert [told(one) for one in again.accounts] == [told(one) for one in first.accounts]
    steps, steps_again = first.step_table, again.step_table
    assert steps is not None
    assert steps_again is not None
    for name in ("steps", "ns", "lengths", "by_kind", "compute", "waits"):
        assert getattr(steps, name) == getattr(steps_again, name), name
    for lengths, kinds, waits in zip(steps.lengths, steps.by_kind, steps.waits, strict=True):
        for row, ns in enumerate(lengths):
            assert sum(spent[row] for spent in kinds) + waits[row] <= ns
    one, one_again = results(path, step="1"), results(again_path, step="1")
    assert one.step_time_ns == one_again.step_time_ns
    assert [told(accounts) for accounts in one_again.accounts] == [
        told(accounts) for accounts in one.accounts
    ]
