"""Keys and places on the screens of a hung job: where they lead, and what they say at an end."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from simcore.ranks import RankSet
from simcore.runs.hung import HungRun
from simcore.trace.lane_spans import KINDS
from tests.hangs.incidents import INCIDENTS, Fault, dumps_of, write_dumps
from tests.hangs.test_screens import incident, run_of, texts
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import press
from tui.app import WltuiApp
from tui.chrome import heading
from tui.frame import ASCII, text_of
from tui.layers.view import table_of
from tui.session import Session
from tui.summary.model import HANG_GROUPS, SummaryModel
from tui.summary.view import SummaryView
from tui.timeline import jumps
from tui.timeline.filtering import Filter
from tui.timeline.lanes import LaneKey, LaneSource
from tui.timeline.match_cells import MatchLanes
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.search import Search
from tui.timeline.view import TimelineView
from tui.why.frame import WAITS, WhyModel, draw
from tui.why.view import WhyView


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


# -- screen 4 --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INCIDENTS)
@pytest.mark.parametrize("size", [(160, 50), (120, 36), (80, 24), (40, 12)])
def test_screen_4_has_a_row_for_each_two_ranks(name: str, size: tuple[int, int]) -> None:
    run = incident(name)
    model, verdict = WhyModel(run), run.verdict
    pairs = {(wait.rank, wait.for_rank) for wait in (*verdict.waits, *verdict.messages)}
    assert {(wait.rank, wait.for_rank) for wait in model.waits} == pairs
    lines = [text_of([line]) for line in draw(model, *size, ASCII, "")]
    assert len(lines) == size[1]
    if not pairs:
        assert run.figures.words[0].split()[0] in lines[1]
        return
    rows = [tuple(map(int, line[1:].split()[:2])) for line in lines[2:] if line.strip()]
    assert rows == [(wait.rank, wait.for_rank) for wait in model.waits[: len(rows)]]
    is_direct = [wait.for_rank in verdict.culprits for wait in model.waits]
    assert is_direct == sorted(is_direct, reverse=True)


@pytest.mark.parametrize("name", INCIDENTS)
def test_enter_on_a_wait_goes_to_the_entry_that_waits(name: str) -> None:
    run = incident(name)
    model = WhyModel(run)
    for at, wait in enumerate(model.waits):
        model.set_cursor(WAITS, at)
        place = model.target()
        assert place is not None
        spans = run.lanes.spans(place.track_id, place.stream)
        index = [*zip(spans.start, spans.end, strict=True)].index((place.start_ns, place.end_ns))
        assert run.record.dumps[place.track_id].rank == wait.rank
        assert KINDS[spans.category[index]] == "wait"
        summary = run.lanes.words.summarize(place.track_id, place.stream, index, RankSet.of((wait.rank,)))
        assert summary[0].startswith(f"{wait.operation} no. {wait.sequence} in {wait.group.group}")


async def test_keys_of_the_critical_path_say_that_a_hung_job_has_none(make_app: MakeApp) -> None:
    make_app()
    app = WltuiApp(Session(incident("sleeps")), first="why")
    async with app.run_test(size=(120, 36)) as pilot:
        view = app.current_view
        assert isinstance(view, WhyView)
        assert all("panel" not in hint for hint in view.hints)
        await press(pilot, "i", "o", "tab", "G")
        assert (view.model.panel, view.model.row(WAITS)) == (WAITS, len(view.model.waits) - 1)
        await press(pilot, "enter")
        assert isinstance(app.current_view, TimelineView)


# -- search and filter -----------------------------------------------------------------------


@pytest.mark.parametrize("text", ["TENSOR", "all_reduce", "open", "pp", "rank 4 TENSOR"])
def test_search_counts_and_marks_all_entries_of_a_folded_lane(text: str) -> None:
    source = LaneSource(incident("sleeps"))
    query = parse_query(text)
    counts = []
    for unfolded in ([], [0, 4]):
        search = Search(source, query, unfolded)
        while not search.advance(1):
            pass
        counts.append(search.count)
        assert not search.searches_folded
    matches = MatchLanes(search)
    filtering = Filter()
    filtering.set(query)
    total = 0
    for track_id in source.track_ids:
        lane = source.lane(track_id)
        entries = sorted(
            (part.spans.start[index], part.spans.end[index])
            for part in source.streams(track_id)
            for index, flag in enumerate(search.flags(part))
            if flag
        )
        assert matches.count(lane) == len(entries)
        columns = [*range(0, source.length + 1, source.length // 60)]
        is_marked = [any(start < right and left < end for start, end in entries)
                     for left, right in pairwise(columns)]  # fmt: skip
        assert list(map(bool, matches.match_columns(lane, columns))) == is_marked
        left = filtering.filter_lane(lane, source).spans
        assert [*zip(left.start, left.end, strict=True)] == entries
        total += len(entries)
    assert counts == [total, total]
    assert total > 0
