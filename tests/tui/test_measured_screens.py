"""The screens of a measured run as text, and what its lanes and lines say."""

from __future__ import annotations

import re
from functools import cache
from io import BytesIO

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from simcore.diagnostics import InputError
from simcore.measured import MeasuredRun
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import open_input, read_input
from tests.analysis.test_beside import made_simulation, two_stage_trace
from tests.command_line.running import ROOT
from tests.measured.made_steps import Layout
from tests.measured.test_trace_lines import LAUNCH
from tests.measured.traces import Op, Sub, step
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import line_text, naive_cell
from tests.tui.screen_reading import frames_after
from tests.tui.test_text_frames import SIZES, frame_after
from tui.app import WltuiApp
from tui.frame import ASCII, BLOCKS, text_of
from tui.session import Session
from tui.timeline.frame import TimelineFrame
from tui.timeline.lanes import LaneSource
from tui.timeline.margins import cursor_lines
from tui.timeline.model import TimelineModel

SEED = "004_megatron_rank7_trace.txt"
PLAN = """\
stage:0:get_batch(batch_id=0, mg_state=warmup, duration=None)
stage:0:forward_step(batch_id=0, mg_state=warmup, duration=None)
stage:0:send_forward(batch_id=0, mg_state=warmup, duration=None, group_kind=pp)
stage:0:backward_step(batch_id=0, mg_state=cooldown, duration=None)
stage:1:recv_forward(batch_id=0, mg_state=help, duration=None, group_kind=pp)
stage:1:forward_step(batch_id=0, mg_state=steady, duration=None)
"""


@cache
def seed() -> MeasuredRun:
    """Seed 004. The path is a name alone: no test may depend on where it lies."""
    run = open_input(str(ROOT / "fixtures" / SEED))
    assert isinstance(run, MeasuredRun)
    ranks = tuple(replace(rank, path=SEED) for rank in run.ranks)
    return replace(run, path=SEED, ranks=ranks)


def made(text: str) -> MeasuredRun:
    run = read_input(BytesIO(text.encode()), name="trace.txt")
    assert isinstance(run, MeasuredRun)
    return run


@cache
def four_ranks(apart: int = 1) -> MeasuredRun:
    """Four ranks of two stages, each `apart` ms after the one before."""
    return made("".join(step(rank, 1000 + rank * apart, stage=rank // 2) for rank in range(4)))


RUNS = {
    "one rank": seed,
    "four ranks": four_ranks,
    "not concurrent": lambda: four_ranks(5000),
    "plan": lambda: made(PLAN),
}
FRAMES = {
    "one rank": {
        "whole step": (),
        "unfolded, at a sub-operation": ("space", "j", "j", "full_stop", "full_stop"),
        "zoomed in on a sub-operation": ("space", "j", "j", "full_stop", "f", "s", "s"),
        "at a gap": ("dollar_sign", "comma"),
        "summary": ("1",),
        "summary, the replay beside": ("1", "i", "tab", "tab"),
        "why": ("4", "i", "tab", "tab", "j"),
        "operations": ("3",),
        "parameters": ("5", "h"),
    },
    "four ranks": {"unfolded": ("j", "space", "j", "w"), "summary": ("1",)},
    "not concurrent": {"whole step": (), "notes": ("exclamation_mark",)},
    "plan": {"summary": ("1",), "why": ("4",), "whole step": ("space", "j", "j"), "operations": ("3",)},
}


def app_on(make_app: MakeApp, run: MeasuredRun, **keywords: object) -> WltuiApp:
    """An app on a measured run, with the environment that `make_app` sets."""
    make_app()
    return WltuiApp(Session(RecordedRun(run)), **{"first": "timeline", **keywords})  # type: ignore[arg-type]


@pytest.mark.parametrize(("run", "name"), [(run, name) for run, names in FRAMES.items() for name in names])
async def test_the_screen_of_a_measured_run_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, run: str, name: str
) -> None:
    # The panel of the cursor is another one where the screen was small before.
    for sizes in [[size] for size in SIZES] if name == "summary, the replay beside" else [SIZES]:
        app = app_on(make_app, RUNS[run]())
        for size, text in (await frames_after(app, sizes, FRAMES[run][name])).items():
            assert text == snapshot(name=size)


async def test_a_measured_run_in_ascii_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion
) -> None:
    keys = FRAMES["one rank"]["unfolded, at a sub-operation"]
    text = await frame_after(app_on(make_app, seed(), ascii_only=True), (120, 36), keys)
    assert text.isascii()
    assert text == snapshot


async def test_a_measured_run_without_colour_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(make_app, seed())
    monkeypatch.setattr(app, "no_color", True)
    assert await frame_after(app, (120, 36), ("space",)) == snapshot


@pytest.mark.parametrize("run", RUNS)
def test_lanes_lie_in_the_step_and_cells_add_up(run: str) -> None:
    source = LaneSource(RecordedRun(RUNS[run]()))
    for number in range(source.track_count):
        for lane in (source.lane(number), *source.streams(number)):
            spans = lane.spans
            assert list(spans.start) == sorted(spans.start)
            assert all(start < end for start, end in zip(spans.start, spans.end, strict=True))
            edges = [source.length * column // 60 for column in range(61)]
            for column, found in enumerate(lane.content.shares.cells(edges)):
                assert found == naive_cell(lane, edges[column], edges[column + 1])  # type: ignore[arg-type]
            for index, start in enumerate(spans.start):
                assert lane.content.find_span(start) is not None
                assert spans.start[lane.content.find_span(start) or 0] == start or index


def said(run: MeasuredRun, lane: int, time_ns: int, *, wide: bool = True) -> list[str]:
    """The lines at a time of a lane of the first rank, unfolded."""
    model = TimelineModel(RecordedRun(run))
    model.toggle_fold()
    model.lane, model.cursor_ns = lane, time_ns
    return [line_text(line) for line in cursor_lines(model, 120, wide)]


def test_the_lines_at_the_cursor_say_what_the_file_says() -> None:
    assert said(seed(), 0, 100) == [
        "recv_forward (pp), micro-batch 0   rank 7, stage 3",
        "0.000 000 000 s .. 0.629 770 000 s   629.8 ms",
        "state help, 83.9 MB = [2048, 2, 5120] float32, line 1",
    ]
    assert said(seed(), 1, 642_000_000 + 2_000_000, wide=False) == [
        "forward_step, micro-batch 0   rank 7",
        "0.642 160 000 s .. 1.246 740 000 s   604.6 ms",
        "state steady, 23 sub-operations, 20.750 ms together, line 3",
    ]
    sub = seed().ranks[0].subs.start[3]
    assert said(seed(), 2, sub) == [
        "linear_fwd (allreduce, tp) in forward_step, micro-batch 0   rank 7, stage 3",
        "0.666 960 000 s .. 0.670 180 000 s   3.220 ms",
        "state steady, 83.9 MB = [4096, 5120] float32, line 3",
    ]
    gap, length = said(seed(), 0, 630_000_000)
    assert gap.startswith("host gap ")
    assert re.findall(r"\w+_\w+", gap) == ["recv_forward", "get_batch"]
    assert gap.endswith("   rank 7, stage 3")
    assert length == "0.629 770 000 s .. 0.632 220 000 s   2.450 ms"
    assert said(seed(), 5, 0) == ["nothing runs here   rank 7, stage 3"]


def test_what_has_no_length_says_why() -> None:
    zero = Op("dp_allreduce", "0", "0", group="dp", description="grads, all of them")
    run = made("\n".join([Op(timestamp="102.0", subs=(Sub("101.5", "Async"),)).line(), zero.line(), LAUNCH,
                          Op("backward_step", "106.0", "3.0").line()]))  # fmt: skip
    assert said(run, 2, 500_000)[1].startswith("0.000 500 000 s   an instant: ")
    when, what = said(run, 3, 1_000_000)[1:]
    assert when.startswith("0.001 000 000 s   no time ")
    assert what == "state steady, grads, all of them, line 2"
    assert said(run, 3, 3_000_000)[0] == "ddp_grad_comm (dp), micro-batch 0   rank 0, stage 0"


def test_ranks_before_their_start_and_after_their_end_say_so() -> None:
    model = TimelineModel(RecordedRun(four_ranks()))
    model.lane, model.cursor_ns = 5, 0
    line = line_text(cursor_lines(model, 120, True)[0])
    assert line.startswith("not running yet, ")
    assert line.endswith(" forward_step   rank 3, stage 1")
    model.lane, model.cursor_ns = 1, model.window.step_ns - 1
    line = line_text(cursor_lines(model, 120, True)[0])
    assert line.startswith("over, ")
    assert line.endswith(" optimizer_step   rank 0, stage 0")


HOSTILE = "\x1b[2J\u202e漢"


@pytest.mark.parametrize("width", [120, 80, 30])
def test_text_of_a_trace_is_safe_and_has_one_cell_a_character(width: int) -> None:
    op = Op("dp_allreduce", group=f"g{HOSTILE}", description=HOSTILE, state=HOSTILE, shape=HOSTILE,
            dtype=HOSTILE, subs=(Sub(name=HOSTILE, collective=HOSTILE, group=HOSTILE),))  # fmt: skip
    run = made(op.line())
    for glyphs in (BLOCKS, ASCII):
        model = TimelineModel(RecordedRun(run))
        model.toggle_fold()
        for lane in range(len(model.lanes)):
            model.lane = lane
            text = text_of(TimelineFrame(glyphs, colour=True).draw(model, width, 33))
            assert "\x1b" not in text
            assert "\u202e" not in text
            assert {len(line) for line in text.split("\n")} == {width}


@pytest.mark.parametrize("run", RUNS)
def test_every_key_of_the_timeline_works_on_a_measured_run(run: str) -> None:
    model = TimelineModel(RecordedRun(RUNS[run]()))
    drawing = TimelineFrame(BLOCKS, colour=False)
    for _ in range(3):
        for act in (
            lambda: model.zoom(1, 2), lambda: model.step_span(1), model.focus, model.toggle_fold,
            lambda: model.move_lane(1), lambda: model.pan(1, 8), lambda: model.move_cursor(-3), model.back,
            lambda: model.step_span(-1), lambda: model.zoom(2, 1), model.forward,
            lambda: model.move_to(model.window.step_ns), model.show_all,
        ):  # fmt: skip
            act()
            lines = drawing.draw(model, 120, 33)
            assert all(sum(len(text) for text, _ in line) == 120 for line in lines)


def test_a_trace_that_cannot_be_opened_is_no_session() -> None:
    with pytest.raises(InputError):
        made("rank:0:forward_step(")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("size", SIZES, ids=["120x36", "80x24"])
@pytest.mark.parametrize(
    "keys", [(), ("tab", "j"), ("w", "full_stop", "vertical_line")], ids=["lanes", "what differs", "aligned"]
)
async def test_a_trace_beside_a_simulated_run_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    make_app()
    session = Session(RecordedRun(two_stage_trace(45).run))
    session.against = made_simulation(Layout(1, 1, 2, 1))
    app = WltuiApp(session, first="compare")
    text = await frame_after(app, size, keys)
    assert "2 ranks paired" in text
    assert text == snapshot
