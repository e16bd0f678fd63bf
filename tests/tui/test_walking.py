"""`[` `]` and `c` `C`: along what a span waited for, what it holds back, and the critical path."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from simcore.trace.findings import Step
from simcore.trace.run import merged_segments_of
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import lonely, seed
from tests.tui.screen_reading import press, screen_text
from tui.timeline import jumps
from tui.timeline.lanes import ALL, LaneKey, SpanLane
from tui.timeline.model import TimelineModel
from tui.timeline.view import TimelineView


def here(model: TimelineModel) -> tuple[int, int]:
    """(start, end) of the span at the cursor."""
    index = model.span
    assert index is not None
    spans = model.current.spans
    return spans.start[index], spans.end[index]


@pytest.mark.parametrize("number", [0, 5, 15])
@pytest.mark.parametrize("share", [1, 3, 5, 7])
def test_what_a_span_waited_for_ends_when_it_starts(number: int, share: int) -> None:
    model = TimelineModel(seed())
    model.go_to(LaneKey((), number))
    model.jump_to(seed().step_time_ns * share // 8)
    for _ in range(40):
        start, _ = here(model)
        lane = model.current.key
        waiting = steps_from(model, model.current, model.span or 0, -1)
        jumps.follow(model, -1)
        if not waiting:
            assert model.notice == jumps.NOTHING_HELD
            break
        assert model.notice.startswith("waited for ")
        begin, end = here(model)
        # A bubble leads to the transfer that ends it; all else to what ended when it began.
        assert begin > start or (begin, model.current.key) != (start, lane)
        assert end >= start
    assert 0 <= model.cursor_ns < seed().step_time_ns


def test_the_way_back_leads_to_where_it_began() -> None:
    model = TimelineModel(seed())
    model.go_to(LaneKey((), 3, ALL, "compute"))
    model.jump_to(7_385_000_000)
    start, _ = here(model)
    jumps.follow(model, -1)
    assert here(model)[1] == start
    found = steps_from(model, model.current, model.span or 0, 1)
    assert any(step.track_id == 3 and step.start_ns == start for step in found)


def test_the_critical_path_is_walked_from_its_begin_to_its_end() -> None:
    model = TimelineModel(seed())
    model.jump_to(0)
    legs, segments = merged_segments_of(seed()), len(seed().critical_path)
    for number, leg in enumerate(legs[1:], start=2):
        jumps.step_critical(model, 1)
        assert (model.cursor_ns, model.current.track_id) == (leg.start_ns, leg.track_id)
        assert f"path segment {number} of {len(legs)} (joined from {segments}): " in model.notice
    assert legs[-1].reason in model.notice
    for leg in reversed(legs[:-1]):
        jumps.step_critical(model, -1)
        assert model.cursor_ns == leg.start_ns
    jumps.step_critical(model, -1)
    assert model.notice == jumps.PATH_BEGINS
    model.jump_to(seed().step_time_ns - 1)
    jumps.step_critical(model, 1)
    assert model.notice == jumps.PATH_ENDS


def test_a_collective_beside_compute_is_shown_in_its_own_lane() -> None:
    results = seed(overlap_grad_reduce=True)
    model = TimelineModel(results)
    streams = {step.stream for number in (0, 15) for step in _all_steps(model, number)}
    assert "dp" in streams


def _all_steps(model: TimelineModel, number: int) -> list[Step]:
    lane = model.source.lane(number)
    count = len(lane.spans.start)
    return [step for index in range(count - 40, count) for step in steps_from(model, lane, index, -1)]


def steps_from(model: TimelineModel, lane: SpanLane, index: int, direction: int) -> Sequence[Step]:
    return model.source.of.words.find_steps(lane.track_id, lane.stream, index, None, direction)


def test_a_step_of_one_op_waited_for_nothing() -> None:
    model = TimelineModel(lonely())
    for direction, words in ((-1, jumps.NOTHING_HELD), (1, jumps.HOLDS_NOTHING)):
        jumps.follow(model, direction)
        assert model.notice == words


async def test_the_keys_and_the_details_say_what_was_waited_for(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        view = app.current_view
        assert isinstance(view, TimelineView)
        await press(pilot, "b", "left_square_bracket")
        assert "waited for transfer, rank 64 of stage 1" in screen_text(app)
        assert view.model.current.track_id == 1
        await press(pilot, "right_square_bracket")
        assert "holds back" in screen_text(app)
        await press(pilot, "c", "C", "enter")
        assert "[ waited for" in screen_text(app)
        assert "] holds back" in screen_text(app)
