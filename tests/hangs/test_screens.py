"""A hung job on the screens, as a page and as files for other programs."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters, RunInput
from simcore.render.export import Request, find_format
from simcore.render.report.pages import run_json, run_page
from simcore.runs.hung import HungRun, run_dumps
from simcore.sources.inputs import open_input
from simcore.trace.lane_spans import KINDS
from simcore.trace.spans import NONE
from tests.hangs.incidents import BEGIN_NS, INCIDENTS, WORLD, Fault, Op, dumps_of, write_dumps
from tui.frame import ASCII, BLOCKS, width_of
from tui.layers.collective_table import CollectiveTable
from tui.layers.view import table_of
from tui.summary.frame import draw
from tui.summary.model import HANG_GROUPS, NOTES, SummaryModel

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hangs"


def run_of(path: Path) -> HungRun:
    return run_dumps(RunInput(open_input(str(path)), Parameters()))


def incident(name: str) -> HungRun:
    return run_of(FIXTURES / name)


def texts(model: SummaryModel, width: int = 120, height: int = 36) -> list[str]:
    lines = draw(model, width, height, BLOCKS, "")
    assert len(lines) <= height
    assert all(width_of(line) <= width for line in lines)
    return ["".join(text for text, _ in line) for line in lines]


# -- screen 1 --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*INCIDENTS, "gloo"])
@pytest.mark.parametrize("size", [(160, 50), (120, 36), (80, 24), (40, 12)])
def test_first_screen_begins_with_the_verdict(name: str, size: tuple[int, int]) -> None:
    run = incident(name)
    tables = run.figures.hang
    assert tables is not None
    shown = texts(SummaryModel(run), *size)
    assert tables.headline[:20] in shown[0]
    assert draw(SummaryModel(run), *size, ASCII, "")
    first = run.figures.words[0].split()[0]
    assert any(line.strip().startswith(first) for line in shown[1:3])


def test_first_group_is_that_of_the_culprit_with_those_behind_in_front() -> None:
    tables = incident("sleeps").figures.hang
    assert tables is not None
    first = tables.groups[0]
    assert (first.members[0].rank, first.members[0].role) == (5, "culprit")
    enqueued = [member.enqueued or 0 for member in first.members[1:]]
    assert enqueued == sorted(enqueued)


def test_cursor_leads_to_the_last_entry_of_a_group() -> None:
    run = incident("sleeps")
    model = SummaryModel(run)
    assert (model.panel, set(model.panels) >= {NOTES}) == (HANG_GROUPS, True)
    texts(model)
    model.move(1)
    place, row = model.target(), model.hang_rows[1]
    assert place is not None
    assert place.track_id == row.members[0].track_id
    assert place.stream == row.group.stream
    assert place.end_ns == run.lanes.facts.length


def test_dump_without_groups_and_entries_is_an_empty_lane(tmp_path: Path) -> None:
    dumps = dumps_of(Fault(stops={5: 9}))
    dumps[5] |= {"pg_config": {}, "pg_status": {}, "entries": []}
    run = run_of(write_dumps(tmp_path, dumps))
    assert run.verdict.culprits == (5,)
    track_id = run.lanes.own_track_id(5)
    assert track_id is not None
    assert list(run.lanes.spans(track_id, None).op) == [NONE]
    assert texts(SummaryModel(run))


def test_rank_without_a_dump_has_no_place() -> None:
    model = SummaryModel(incident("died"))
    texts(model)
    assert model.hang_rows[0].members[0].rank == 7
    assert model.target() is None


# -- lanes -----------------------------------------------------------------------------------


def test_lanes_of_a_rank_are_its_groups_and_what_is_open_runs_to_the_edge() -> None:
    run = incident("sleeps")
    lanes, wait = run.lanes, KINDS.index("wait")
    for track_id, dump in enumerate(run.record.dumps):
        assert len(lanes.streams(track_id)) == len({*dump.entries.group})
        count = 0
        for stream in lanes.streams(track_id):
            spans = lanes.spans(track_id, stream)
            count += len(spans.start)
            for end, row, kind in zip(spans.end, spans.op, spans.category, strict=True):
                assert (kind == wait) == (not dump.over[row])
                assert (end == lanes.facts.length) or dump.over[row]
        assert count == len(dump.entries)


@pytest.mark.parametrize("name", INCIDENTS)
def test_lane_of_a_rank_covers_the_axis_without_a_gap(name: str) -> None:
    run = incident(name)
    for track_id in run.lanes.facts.track_ids:
        spans = run.lanes.spans(track_id, None)
        assert spans.start[0] == 0
        assert spans.end[-1] == run.lanes.facts.length
        assert list(spans.end[:-1]) == list(spans.start[1:])
        assert all(begin < end for begin, end in zip(spans.start, spans.end, strict=True))


def test_time_is_the_wall_clock_of_the_lowest_rank(tmp_path: Path) -> None:
    ahead = dict.fromkeys(range(4, 8), 30_000_000)
    run = run_of(write_dumps(tmp_path, dumps_of(Fault(), clocks=ahead)))
    assert run.timeline.begin_ns == BEGIN_NS
    plain = run_of(write_dumps(tmp_path / "plain", dumps_of(Fault())))
    assert run.timeline.length == plain.timeline.length
    assert run.lanes.facts.axis.clock(0).startswith("2025-09-23 06:55:05")


def test_going_along_what_waits_ends_at_the_culprit() -> None:
    run = incident("sleeps")
    words, lanes = run.lanes.words, run.lanes
    track_id = lanes.own_track_id(4)
    assert track_id is not None
    spans = lanes.spans(track_id, None)
    (step,) = words.find_steps(track_id, None, len(spans.start) - 1, None, -1)
    assert step.rank == 5
    culprit = lanes.own_track_id(5)
    assert culprit is not None
    back = words.find_steps(culprit, None, len(lanes.spans(culprit, None).start) - 2, None, 1)
    assert {one.rank for one in back} == {0, 1, 2, 3, 4, 6, 7}


def test_details_have_sizes_state_and_the_line_of_the_call() -> None:
    run = incident("other_collective")
    track_id = run.lanes.own_track_id(6)
    assert track_id is not None
    spans = run.lanes.spans(track_id, None)
    index = max(at for at, op in enumerate(spans.op) if op != NONE)
    rows = dict(run.lanes.words.detail_rows(track_id, None, index, None))
    assert rows["called at"].startswith("/job/train.py:50")
    assert rows["sizes"].startswith("16 Float")
    assert rows["state"] == "scheduled"


@pytest.mark.parametrize(("measure", "first"), [("progress", 5), ("open", 4)])
def test_orders_put_whoever_stopped_first_in_front(measure: str, first: int) -> None:
    run = run_of(FIXTURES / "sleeps")
    (order,) = (order for order in run.lanes.facts.orders if order.id == measure)
    sign = 1 if order.least_first else -1
    tracks = sorted(run.lanes.facts.track_ids, key=lambda track: sign * run.lanes.measure_ns(measure, track))
    assert run.record.dumps[tracks[0]].rank == first


def test_search_finds_open_collectives_by_kind_and_group() -> None:
    run = incident("sleeps")
    track_id = run.lanes.own_track_id(4)
    assert track_id is not None
    columns = run.lanes.search_columns(track_id, None)
    words = {word for kind in columns.kinds for word in kind}
    assert {"all-reduce", "all-gather", "wait", "receive"} <= words
    assert "send" not in words
    assert {"tp", "TENSOR_MODEL_PARALLEL_GROUP", "open"} <= {
        name for names in columns.names for name in names
    }


# -- screen 3 --------------------------------------------------------------------------------


def test_table_says_who_has_a_collective_in_which_state() -> None:
    table = table_of(incident("sleeps"))
    assert isinstance(table, CollectiveTable)
    first = table.texts(0)
    assert (first["no."], first["not come"], first["ranks by state"]) == ("6", "5", "scheduled 4")
    count = len(table.lines)
    table.filter("tp all_reduce")
    assert len(table.lines) == 1
    assert table.find("all_reduce", 0, 1) == 0
    table.filter("")
    table.sort("sequence", True)
    numbers = [int(table.texts(line)["no."]) for line in range(count)]
    assert numbers == sorted(numbers, reverse=True)
    everything = table.apart(True)
    assert len(everything.lines) > count
    place = table.find_selection(0)
    assert place is not None
    assert place.stream in table_run_streams(place.track_id)


def table_run_streams(track_id: int) -> set[str]:
    return {*incident("sleeps").lanes.streams(track_id)}


@pytest.mark.parametrize("name", INCIDENTS)
def test_table_has_each_open_message_and_who_has_not_come_to_it(name: str) -> None:
    run = incident(name)
    table = table_of(run)
    assert isinstance(table, CollectiveTable)
    messages = sorted(
        (dump.rank, dump.entries.message[row])
        for dump in run.record.dumps
        for row, over in enumerate(dump.over)
        if dump.entries.is_message[row] and not (over and not table.each)
    )
    rows = [one for one in table.rows if one.is_message]
    assert sorted((run.record.dumps[one.track_id].rank, one.sequence) for one in rows) == messages
    late = [(run.record.dumps[one.track_id].rank, int(one.states["not come"]))
            for one in rows if "not come" in one.states]  # fmt: skip
    assert sorted(late) == sorted((wait.rank, wait.for_rank) for wait in run.verdict.messages)
    assert len({table.mark(line) for line in range(len(table.lines))}) == len(table.lines)


@pytest.mark.parametrize("name", INCIDENTS)
def test_title_of_the_table_tells_what_has_not_ended_from_what_does_not_match(name: str) -> None:
    run = incident(name)
    table = table_of(run)
    assert isinstance(table, CollectiveTable)
    legends = [table.legend((), short) for short in (False, True)]
    assert [" match" in legend for legend in legends] == [not run.verdict.mismatches] * 2
    assert ("not match" in table.count_text()) == bool(run.verdict.mismatches)
    if not table.each:
        is_open = [one for one in table.rows if one.is_open]
        assert sum(map(int, re.findall(r"(\d+) (?:coll|mess)", table.count_text()))) == len(is_open)


def test_collectives_sort_by_how_many_have_not_come(tmp_path: Path) -> None:
    """Ranks 1, 3 and 5 begin nothing, all but rank 0 one of two: more, in fewer letters."""
    programs = {rank: [Op("default_pg", "all_reduce")] * 2 for rank in range(WORLD)}
    stops = {rank: int(rank % 2 == 0 or rank == 7) for rank in range(1, WORLD)}
    table = table_of(run_of(write_dumps(tmp_path, dumps_of(Fault(programs, stops)))))
    table.sort("not come", True)
    assert [table.texts(line)["not come"] for line in range(2)] == ["1-7", "1+2*3"]


def test_table_of_a_job_that_did_not_hang_has_the_rings() -> None:
    table = table_of(incident("nothing"))
    assert table.each
    assert len(table.lines) > 10


# -- pages and files -------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*INCIDENTS, "gloo"])
def test_report_begins_with_the_verdict_and_json_has_it(name: str) -> None:
    run = incident(name)
    tables = run.figures.hang
    assert tables is not None
    assert run_page(run).startswith(tables.headline)
    assert run_page(run, every_layer=True)
    values = json.loads(json.dumps(run_json(run)))
    assert values["hang"]["culprits"] == list(run.verdict.culprits)
    assert {"culprits", "stuck", "waits", "mismatches"} <= values["hang"].keys()
    for wait in values["hang"]["waits"]:
        assert wait.keys() == {"rank", "for", "group", "number", "collective", "since_ns"}
        assert wait["group"].keys() == {"desc", "ranks"}


def exported(run: HungRun, name: str) -> str:
    request = Request(run.record, Parameters(), run=run)
    return b"".join(find_format(name, "--format").build_export(request).chunks).decode()


def test_csv_has_a_line_for_each_entry_without_an_end_for_what_is_open() -> None:
    run = incident("sleeps")
    rows = list(csv.DictReader(exported(run, "csv").splitlines()))
    assert len(rows) == run.record.entry_count
    is_open = [row for row in rows if not row["end_ns"]]
    assert len(is_open) == sum(dump.over.count(0) for dump in run.record.dumps)
    assert {row["group"] for row in rows} == {group.description for group in run.record.groups}


def test_chrome_trace_begins_what_has_not_ended() -> None:
    run = incident("sleeps")
    events = json.loads(exported(run, "chrome"))["traceEvents"]
    assert sum(event["ph"] == "B" for event in events) == sum(d.over.count(0) for d in run.record.dumps)
    assert sum(event["ph"] in "BX" for event in events) == run.record.entry_count


def test_names_of_collectives_with_the_marks_of_a_format_are_in_one_place(tmp_path: Path) -> None:
    odd = 'a,b"c\n=d'
    programs = {rank: [Op("default_pg", odd)] for rank in range(WORLD)}
    run = run_of(write_dumps(tmp_path, dumps_of(Fault(programs))))
    rows = list(csv.DictReader(exported(run, "csv").splitlines()))
    assert {row["kind"] for row in rows} == {odd.replace("\n", "\\x0a")}
    assert {row["group"] for row in rows} == {"default_pg"}
    events = json.loads(exported(run, "chrome"))["traceEvents"]
    assert sum(event["ph"] in "BX" for event in events) == run.record.entry_count


def test_an_end_that_was_never_set_is_no_end_of_the_axis(tmp_path: Path) -> None:
    dumps = dumps_of(Fault({rank: [Op("default_pg", "all_reduce")] for rank in range(WORLD)}))
    for dump in dumps.values():
        dump["entries"][0]["time_discovered_completed_ns"] = 2**63 - 1
    assert run_of(write_dumps(tmp_path, dumps)).timeline.length < 10**9


def test_page_of_html_has_the_verdict_and_the_timeline() -> None:
    page = exported(incident("sleeps"), "html")
    assert "rank 5 is waited for" in page
    assert 'id="timeline"' in page
    assert "No. " not in page


def test_dumps_take_no_parameters() -> None:
    with pytest.raises(UsageError):
        run_dumps(RunInput(open_input(str(FIXTURES / "sleeps")), Parameters(tp=2)))
