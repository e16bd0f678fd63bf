"""Keys that go by passes of micro-batches and by the longest waits, and what the details say of both."""

from __future__ import annotations

import pytest

from simcore.sources.simulated import BUBBLE, WAIT
from simcore.trace.lane_spans import microbatch_words, ordinal
from tests.strategies import Cell, Row, make_workload
from tests.tui.made_runs import line_text, lonely, reveal, run, seed, seed_workload, small
from tui.timeline.jumps import (
    NO_EARLIER_PASS,
    NO_LATER_PASS,
    NO_PASSES,
    NOTHING_WAITS,
    NOTHING_WAITS_ANYWHERE,
    go_to_longest_wait,
    step_pass,
)
from tui.timeline.margins import cursor_lines, make_details
from tui.timeline.model import TimelineModel


def said(model: TimelineModel, wide: bool = True) -> list[str]:
    """The lines at the cursor."""
    return [line_text(line) for line in cursor_lines(model, 120 if wide else 80, wide)]


def test_micro_batches_are_counted_from_0_and_said_from_1() -> None:
    assert microbatch_words(2, 16) == "micro-batch 2 (3rd of 16)"
    assert [ordinal(n) for n in (1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 101, 111, 113)] == [
        "1st", "2nd", "3rd", "4th", "10th", "11th", "12th", "13th", "21st", "22nd", "101st", "111th", "113th",
    ]  # fmt: skip


def test_every_pass_of_a_lane_is_visited_both_ways() -> None:
    model = TimelineModel(seed())
    model.lane = 5
    model.move_to(0)
    visited = []
    for one in seed().passes(5):
        step_pass(model, 1)
        visited.append(model.cursor_ns)
        assert model.notice.startswith(f"{one.direction} of micro-batch {one.microbatch} (")
    assert visited == [one.start_ns for one in seed().passes(5)]
    step_pass(model, 1)
    assert model.notice == NO_LATER_PASS
    for start in visited[-2::-1]:
        step_pass(model, -1)
        assert model.cursor_ns == start
    step_pass(model, -1)
    assert model.notice == NO_EARLIER_PASS


def test_a_pass_that_is_out_of_view_is_shown_and_back_leads_away() -> None:
    model = TimelineModel(seed())
    model.fit(13 * 10**9, 14 * 10**9)
    before = model.window
    model.cursor_ns = before.first_ns
    for _ in range(6):
        step_pass(model, 1)
    assert model.window != before
    assert model.window.first_ns <= model.cursor_ns < model.window.last_ns


def test_a_span_says_its_pass_and_how_long_it_takes() -> None:
    model = TimelineModel(seed())
    model.lane = 5
    model.move_to(1_600_000_000)
    assert said(model)[2] == (
        "forward of micro-batch 3 (4th of 16) takes 191.5 ms here: 1.533 472 677 s .. 1.724 957 299 s"
    )
    assert said(model, wide=False)[1].endswith("   pass 191.5 ms")


def test_a_bubble_says_for_whom() -> None:
    model = TimelineModel(seed())
    model.move_to(4 * 10**9)
    assert said(model)[2] == "for rank 64 = stage 1, dp 0, tp 0"
    assert said(model, wide=False)[1].endswith("   4.096 s   for rank 64")
    reveal(model.arrangement, 37)
    assert said(model)[2] == "for rank 101 = stage 1, dp 4, tp 5"
    assert said(model, wide=False)[1].endswith("   4.096 s   for rank 101")


def test_a_wait_says_which_rank_of_its_group_comes_last() -> None:
    results = run(seed_workload(), slow_rank=("37=1.3",))
    model = TimelineModel(results)
    reveal(model.arrangement, 36)
    accounts = results.accounts[model.current.track_id]
    waits = [wait.span for wait in results.lanes.waits(model.current.track_id)]
    longest = next(one for one in waits if accounts.account[one] == WAIT)
    model.move_to(accounts.edge[longest])
    assert "for rank 37 = stage 0, dp 4, tp 5: the last of 8 to come" in said(model)


def test_the_longest_wait_comes_first_and_then_the_next() -> None:
    model = TimelineModel(seed())
    accounts = seed().accounts[5]
    model.lane = 5
    lengths = []
    for _ in range(5):
        go_to_longest_wait(model, everywhere=False)
        index = model.current.content.find_span(model.cursor_ns)
        assert index is not None
        lengths.append(accounts.edge[index + 1] - accounts.edge[index])
    assert lengths == sorted(lengths, reverse=True)
    bubbles = [wait.span for wait in seed().lanes.waits(5) if accounts.account[wait.span] == BUBBLE]
    assert lengths[0] == max(accounts.edge[one + 1] - accounts.edge[one] for one in bubbles)
    assert model.notice.startswith(f"5th longest of {len(bubbles)} waits ")
    assert " this lane, " in model.notice
    model.move_cursor(1)
    go_to_longest_wait(model, everywhere=False)
    assert model.notice.startswith("longest of ")


def test_the_longest_wait_of_all_lanes_is_the_first_stages_bubble_and_idle_ends_come_last() -> None:
    model = TimelineModel(seed())
    go_to_longest_wait(model, everywhere=True)
    assert model.current.title.split() == ["stage", "0"]
    assert said(model)[0].startswith("bubble")
    idle = [False]
    for _ in range(len(seed().lanes.all_waits()) - 1):
        go_to_longest_wait(model, everywhere=True)
        idle.append(said(model)[0].startswith("idle, the step of these ranks is over"))
    assert idle == sorted(idle)
    assert idle.count(True) == 15


def test_after_the_last_wait_the_longest_comes_again() -> None:
    model = TimelineModel(small())
    count = len(small().lanes.waits(0))
    for _ in range(count + 1):
        go_to_longest_wait(model, everywhere=False)
    assert model.notice.startswith(f"longest of {count} wait")


def test_from_a_stream_the_wait_is_on_the_lane_of_its_ranks() -> None:
    model = TimelineModel(seed())
    model.toggle_fold()
    model.move_lane(2)
    go_to_longest_wait(model, everywhere=False)
    assert (model.current.track_id, model.current.stream) == (0, None)


def test_where_nothing_waits_it_is_said() -> None:
    model = TimelineModel(lonely())
    go_to_longest_wait(model, everywhere=False)
    assert model.notice == NOTHING_WAITS
    go_to_longest_wait(model, everywhere=True)
    assert model.notice == NOTHING_WAITS_ANYWHERE
    model = TimelineModel(run(seed_workload(), schedule="layer-loop"))
    step_pass(model, 1)
    assert "of micro-batch" in model.notice or model.notice == NO_PASSES


def test_all_details_have_members_volume_bandwidths_and_the_line_of_the_file() -> None:
    model = TimelineModel(seed())
    model.toggle_fold()
    model.move_lane(2)
    model.step_span(1)
    lines = [line_text(line) for line in make_details(model)(120)]
    assert any(line.startswith("  members         tp group of 8 ranks: 0-7") for line in lines)
    volume = next(line for line in lines if line.startswith("  volume"))
    # An all-gather moves 7/8 of its buffer over each rank's link.
    assert "134.2 MB, algbw 508.37 GB/s, busbw 444.82 GB/s" in volume
    assert any(line.startswith("  row             ") and "line " in line for line in lines)
    assert any(line.startswith("  takes           ") for line in lines)
    assert max(map(len, lines)) <= 120
    narrow = [line_text(line) for line in make_details(model)(60)]
    assert max(map(len, narrow[1:])) <= 60


@pytest.mark.parametrize("kind", ["ALLREDUCE", "REDUCESCATTER"])
def test_the_longest_label_of_the_details_stands_apart_from_its_words(kind: str) -> None:
    rows = [Row("a", Cell(5000, kind, "tp", 8000))]
    model = TimelineModel(run(make_workload(rows, tp=2, pp=1, all_gpus=2), slow_rank=("1=1.5",)))
    model.move_to(6000)
    model.selection.fix(0, 7000)
    lines = [line_text(line) for line in make_details(model)(120)]
    label = {"ALLREDUCE": "all-reduce itself", "REDUCESCATTER": "reduce-scatter itself"}[kind]
    column = 2 + len(label) + 2
    itself = next(line for line in lines if line.startswith(f"  {label}"))
    assert itself[column - 2 : column] == "  "
    assert itself[column].isdigit()
    # All others stand in the same column, those of the range too.
    for words in ("runs", "takes", "range"):
        line = next(line for line in lines if line.startswith(f"  {words} "))
        assert line[:column].strip() == words
        assert line[column] != " "
