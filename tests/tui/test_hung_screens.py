"""Keys and places on the screens of a hung job: where they lead, and what they say at an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.runs.hung import HungRun
from tests.hangs.incidents import Fault, dumps_of, write_dumps
from tests.hangs.test_screens import incident, run_of, texts
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import press
from tui.app import WltuiApp
from tui.chrome import heading
from tui.frame import text_of
from tui.layers.view import table_of
from tui.session import Session
from tui.summary.model import HANG_GROUPS, SummaryModel
from tui.summary.view import SummaryView
from tui.timeline import jumps
from tui.timeline.lanes import LaneKey
from tui.timeline.model import TimelineModel


def walk(run: HungRun, rank: int, time_ns: int = 0) -> TimelineModel:
    """Returns a timeline with its cursor at a time of a rank."""
    model, track_id = TimelineModel(run), run.lanes.own_track_id(rank)
    assert track_id is not None
    model.go_to(LaneKey((), track_id))
    model.move_to(time_ns)
    return model


# -- the end of the chain --------------------------------------------------------------------


def test_dumps_do_not_hold_why_a_culprit_has_not_come() -> None:
    model = walk(incident("sleeps"), 5, 10**15)
    jumps.follow(model, -1)
    assert "rank 5" in model.notice
    assert model.notice != jumps.NOTHING_HELD


def test_before_its_first_open_entry_a_rank_says_when_it_has_one(tmp_path: Path) -> None:
    dumps = dumps_of(Fault(stops={5: 9}))
    for dump in dumps.values():
        dump["entries"] = [entry for entry in dump["entries"] if entry["state"] != "completed"]
    run = run_of(write_dumps(tmp_path, dumps))
    begins = [(run.lanes.spans(track, None).start, dump.rank) for track, dump in enumerate(run.record.dumps)]
    start, rank = max((start, rank) for start, rank in begins if len(start) > 1)
    model = walk(run, rank)
    jumps.follow(model, -1)
    assert model.source.axis.clock(start[1]) in model.notice


def test_step_to_who_waits_does_not_send_one_to_details_of_another_rank() -> None:
    model = walk(incident("sleeps"), 5, 10**15)
    jumps.follow(model, 1)
    assert "more" in model.notice
    assert "Enter" not in model.notice


# -- places ----------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [False, True])
def test_enter_on_a_collective_shows_it_from_its_begin_to_its_end(each: bool) -> None:
    run = incident("sleeps")
    table = table_of(run).apart(each)
    for line in range(len(table.lines)):
        place = table.find_selection(line)
        assert place is not None
        spans = run.lanes.spans(place.track_id, place.stream)
        assert (place.start_ns, place.end_ns) in [*zip(spans.start, spans.end, strict=True)]


def test_hung_job_has_no_step_in_its_heading() -> None:
    rows = heading(Session(incident("sleeps")), "summary", 120)
    assert not any("step" in text_of([row]) for row in rows)


# -- the table of groups ---------------------------------------------------------------------


def test_table_of_groups_says_how_many_rows_are_below() -> None:
    model = SummaryModel(incident("sleeps"))
    count = len(model.hang_rows)
    (title,) = (line for line in texts(model, 80, 16) if "below" in line)
    left = int(title.split(" more ")[0].split()[-1])
    visible = 0
    for row in range(count):
        model.set_cursor(HANG_GROUPS, row)
        shown = texts(model, 80, 16)
        assert any(line.startswith(" >") for line in shown)
        visible += row < count - left
        if row == count - 1:
            assert not any("below" in line for line in shown)
    assert 0 < left < count


async def test_page_and_end_keys_move_in_the_table_of_groups(make_app: MakeApp) -> None:
    make_app()
    app = WltuiApp(Session(incident("sleeps")), first="summary")
    async with app.run_test(size=(120, 36)) as pilot:
        view = app.current_view
        assert isinstance(view, SummaryView)
        last = len(view.model.hang_rows) - 1
        for key, row in (("pagedown", min(10, last)), ("pageup", 0), ("G", last), ("g", 0)):
            await press(pilot, key)
            assert view.model.row(HANG_GROUPS) == row
