"""What a measured span waited for and holds back, and the path: on traces whose answers are known by hand."""

from __future__ import annotations

import itertools
from functools import cache

import pytest

from simcore.render.report.pages import run_json
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.trace.run import find_longest_of_part, merged_segments_of, sum_path
from tests.measured.test_critical_path import beside
from tests.measured.test_partners import without
from tests.measured.test_replay_by_hand import MS, SLOW_RANK, op, run_of
from tests.measured.traces import Sub
from tests.says import said
from tests.tui.made_runs import line_text
from tui.timeline import jumps
from tui.timeline.lanes import LaneKey
from tui.timeline.margins import cursor_lines, make_details
from tui.timeline.model import TimelineModel

# The second of two stages waits for what the first one sends.
TWO_STAGES = (
    op(0, "forward_step", 0, 10, stage=0)
    + op(0, "send_forward", 10, 12, "pp", stage=0)
    + op(1, "recv_forward", 0, 12, "pp", stage=1)
    + op(1, "forward_step", 12, 30, stage=1)
)


@cache
def slow() -> RecordedRun:
    return RecordedRun(run_of(SLOW_RANK, 2))


def model_at(results: RecordedRun, number: int, ns: int) -> TimelineModel:
    model = TimelineModel(results)
    model.resize(80, 20)
    model.go_to(LaneKey((), number))
    model.cursor_ns = ns
    return model


def place(model: TimelineModel) -> tuple[int, int]:
    """(rank, ms) of the cursor."""
    return model.current.track_id, model.cursor_ns // MS


def test_a_collective_that_waited_leads_to_the_operation_of_the_last_rank() -> None:
    model = model_at(slow(), 0, 20 * MS)
    jumps.follow(model, -1)
    assert place(model) == (1, 0)
    assert model.notice == "waited for forward_step, rank 1, 30.000 ms: rank 1 came last (and 1 more)"
    jumps.follow(model, 1)
    assert place(model) == (0, 10)
    assert model.notice == "holds back dp_allreduce, rank 0, 25.000 ms: rank 1 came last (and 1 more)"


def test_a_receive_leads_to_its_send_and_the_send_to_its_receive() -> None:
    model = model_at(RecordedRun(run_of(TWO_STAGES, 2, pp=2)), 1, 5 * MS)
    jumps.follow(model, -1)
    assert place(model) == (0, 10)
    said([model.notice], "send_forward, rank 0", "stage 0, 2.000 ms", "data", "rank 0")
    jumps.follow(model, 1)
    assert place(model) == (1, 0)
    said([model.notice], "recv_forward, rank 1", "stage 1, 12.000 ms", "data", "rank 0")


def test_what_begins_the_step_waited_for_nothing_and_what_ends_it_holds_nothing_back() -> None:
    model = model_at(slow(), 1, 5 * MS)
    jumps.follow(model, -1)
    assert model.notice == jumps.NOTHING_HELD
    model = model_at(slow(), 0, 38 * MS)
    jumps.follow(model, 1)
    assert model.notice == jumps.HOLDS_NOTHING


@pytest.mark.parametrize("trace", ["slow rank", "compute beside a collective"])
def test_the_critical_path_is_walked_leg_by_leg_over_the_ranks_as_the_report_has_it(trace: str) -> None:
    results = slow() if trace == "slow rank" else beside()
    model = model_at(results, merged_segments_of(results)[0].track_id, 0)
    places = [(model.current.track_id, model.cursor_ns)]
    for _ in merged_segments_of(results)[1:]:
        jumps.step_critical(model, 1)
        places.append((model.current.track_id, model.cursor_ns))
    assert places == [(leg.track_id, leg.start_ns) for leg in merged_segments_of(results)]
    jumps.step_critical(model, 1)
    assert model.notice == jumps.PATH_ENDS
    segments = run_json(results)["critical_path"]
    # A leg may have several segments: it begins with one of them, and is over before the next leg's first.
    begins = [(one["rank"], one["start_ns"]) for one in segments]
    assert set(places) <= set(begins)
    assert [segments[index]["end_ns"] for index in range(len(segments) - 1)] == [ns for _, ns in begins[1:]]
    walked = {ns: rank for rank, ns in places}
    assert [rank for rank, _ in begins] == [walked[max(at for at in walked if at <= ns)] for _, ns in begins]


@pytest.mark.parametrize("by", ["kind", "op", "stage", "rank"])
@pytest.mark.parametrize("scales", [None, Scales(compute=2.0, gaps=0.0)])
def test_the_sums_and_the_legs_of_the_path_are_the_step(by: str, scales: Scales | None) -> None:
    results = slow() if scales is None else slow().with_scales(scales)
    assert sum(ns for _, ns in sum_path(results, by)) == results.step_time_ns
    edges = [leg.start_ns for leg in merged_segments_of(results)] + [results.step_time_ns]
    assert [leg.end_ns for leg in merged_segments_of(results)] == edges[1:]
    assert edges[0] == 0
    # Each has a longest segment, which is a part of it; the screen goes there.
    for part, ns in sum_path(results, by):
        found = find_longest_of_part(results, by, part)
        assert found is not None
        _, start, end, _ = found
        assert (start, end) in itertools.pairwise(results.critical_path.edge)
        assert 0 < end - start <= ns


def test_the_worst_places_are_the_slow_rank_and_who_waits_for_it() -> None:
    found = {
        place.what: (place.track_id, place.start_ns // MS, place.end_ns // MS)
        for place in slow().figures.worst_findings
    }
    assert found == {
        "end": (0, 36, 40), "wait": (0, 10, 30), "op": (1, 0, 30), "exposed": (0, 30, 35),
        "idle": (0, 35, 36),
    }  # fmt: skip


def test_the_details_of_a_wait_say_how_long_for_whom_and_what_that_rank_was_at() -> None:
    model = model_at(slow(), 0, 20 * MS)
    for wide in (True, False):
        said = [line_text(line) for line in cursor_lines(model, 120, wide)]
        assert said[0].startswith("dp_allreduce (dp)")
        assert sum("waits 20.000 ms for rank 1" in line for line in said) == 1
    text = [line_text(line).strip() for line in make_details(model)(120)]
    assert (
        "waits           20.000 ms for rank 1 of stage 0 in dp_allreduce: it comes last, behind forward_step"
    ) in text
    assert "[ waited for    forward_step, rank 1, 30.000 ms: rank 1 came last" in text


def test_what_is_alike_among_the_causes_is_summed_and_none_is_left_out() -> None:
    # Rank 1 comes 2 ms later to each of the five collectives inside the step.
    def step(rank: int) -> str:
        subs = tuple(
            Sub(f"{1010 + 10 * turn:.2f}", f"{5 - 2 * rank:.2f}", source="_allreduce") for turn in range(5)
        )
        return op(rank, "forward_step", 0, 60, subs=subs)

    results = RecordedRun(run_of(step(0) + step(1), 2, tp=2))
    words = results.lanes.words
    causes = [text for label, text in words.detail_rows(0, None, 0, None) if label == "[ waited for"]
    assert causes == ["forward_step, rank 1, 5 times, 35.000 ms: rank 1 came last"]
    assert len(words.find_steps(0, None, 0, None, -1)) == 5


def test_the_details_of_a_receive_say_that_its_sender_is_missing() -> None:
    model = model_at(without(2), 0, 200 * MS)
    for wide in (True, False):
        assert any(
            "its sender, rank 2, is missing" in line_text(line) for line in cursor_lines(model, 120, wide)
        )
    text = [line_text(line).strip() for line in make_details(model)(120)]
    said(text, "partner", "rank 2", "missing", "not known")
    # Its neighbour has a sender.
    model = model_at(without(2), 1, 200 * MS)
    assert not any("partner" in line_text(line) for line in make_details(model)(120))
