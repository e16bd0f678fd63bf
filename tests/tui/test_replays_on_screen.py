"""What the screens say of a replay and of the measured run beside it: names, messages, the other run."""

from __future__ import annotations

import pytest

from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.render.report.comparison import comparison_page
from simcore.render.report.pages import run_page
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.words.measured_run import replay_words
from tests.analysis.test_beside import beside
from tests.measured.made_steps import Layout, run_apart
from tests.measured.test_replay_by_hand import SLOW_RANK, SLOW_STAGE, run_of
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import line_text
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text
from tests.tui.test_measured_screens import PLAN, app_on, four_ranks, made
from tui.compare.choice import Choice
from tui.compare.view import NO_OTHER, NO_TIMES, ONE_RUN
from tui.frame import BLOCKS, text_of
from tui.panels import HELPS_MOST, WHAT_IF
from tui.parameters.source import end_lines
from tui.runs.runs import NO_OTHER_YET
from tui.session import Session
from tui.summary.frame import draw as draw_summary
from tui.summary.model import SummaryModel
from tui.why.frame import WhyModel, draw, what_if_lines

MANY = Scales(
    2.0, 0.5, 0.0, 1.5, ops={"forward_step": 0.9, "x\x1b[2J": 3.0}, kinds={"dp": 0.123456},
    stages={0: 2.0, None: 3.0}, ranks={1: 0.5, 0: 1.0},
)  # fmt: skip


def slow_rank() -> MeasuredRun:
    return run_of(SLOW_RANK, 2)


def test_every_change_has_a_name_and_a_factor_of_1_is_none() -> None:
    """What changes most comes first: `stage 0 x1.08 ... and 3 more` hid that rank 7 takes half its time."""
    assert MANY.changes() == [
        "host gaps x0", "dp communication x0.1235", "x\\x1b[2J x3", "ranks without a stage x3", "compute x2",
        "communication x0.5", "stage 0 x2", "rank 1 x0.5", "host operations x1.5", "forward_step x0.9",
    ]  # fmt: skip
    assert Scales().changes() == []


@pytest.mark.parametrize(
    ("scales", "words"),
    [
        (Scales(), ""),
        (Scales(compute=2.0, ranks={7: 0.5}), "compute x2, rank 7 x0.5 in time"),
        (MANY, "host gaps x0 in time and 9 more"),
    ],
)
def test_as_many_changes_are_named_as_there_is_room_for(scales: Scales, words: str) -> None:
    assert replay_words(scales.changes(), 34) == words


def test_row_1_names_what_a_replay_changes() -> None:
    session = Session(RecordedRun(slow_rank()))
    ranks = "2 ranks = tp 1 x dp 2 x pp 1"

    def facts(scales: Scales) -> list[list[str]]:
        session.show(session.opened.with_scales(scales))
        return [session.facts(wide) for wide in (True, False)]

    assert [session.facts(wide) for wide in (True, False)] == [
        [ranks, "measured, 1 micro-batch"],
        ["2: dp 2", "measured"],
    ]
    assert facts(Scales()) == [["replayed, 1 micro-batch", ranks], ["replayed", "2: dp 2"]]
    assert facts(Scales(ranks={1: 0.5})) == [
        ["replayed: rank 1 x0.5 in time", "1 micro-batch", ranks],
        ["rank 1 x0.5 in time", "2: dp 2"],
    ]
    assert [one[0] for one in facts(Scales(gaps=0.25))] == [
        "replayed: host gaps x0.25 in time", "host gaps x0.25 in time"
    ]  # fmt: skip
    assert facts(Scales(ranks={1: 0.5}, compute=2.0))[1][0] == "compute x2, rank 1 x0.5"
    assert facts(Scales(rank_gaps={1: 0.25}))[1][0] == "host of rank 1 x0.25 in time"
    # Of a long name its two ends, of many changes their number.
    assert facts(Scales(ops={f"ampere_{'x' * 60}_nt": 0.5}))[1][0] == "ampere_xx...xxxxxx_nt x0.5 in time"
    assert [one[0] for one in facts(MANY)] == [
        "replayed: host gaps x0 in time and 9 more", "10 changes",
    ]  # fmt: skip


def test_reports_name_what_a_replay_changes() -> None:
    measured = RecordedRun(slow_rank())
    replay = measured.with_scales(Scales(compute=2.0, ranks={1: 0.5}))
    assert "  changed    compute x2, rank 1 x0.5 in time\n" in run_page(replay)
    assert "changed" not in run_page(measured)
    head = comparison_page(beside(measured, replay)).splitlines()[1]
    assert ": replayed (compute x2, rank 1 x0.5 in time)" in head


def test_an_opened_replay_has_the_measured_run_beside_it() -> None:
    measured = RecordedRun(slow_rank())
    session = Session(measured.with_scales(Scales(compute=2.0)))
    plain = session.other
    assert plain is not None
    assert (plain.scales, plain.step_time_ns) == (None, measured.step_time_ns)
    assert [run.results for run in session.history] == [session.opened, plain]
    pair = Choice(session).pair
    assert pair is not None
    assert [(one.name, one.results) for one in pair] == [("run 2", plain), ("run 1", session.opened)]


def test_a_measured_run_that_is_shown_again_has_its_replay_beside_it() -> None:
    session = Session(RecordedRun(slow_rank()))
    assert Choice(session).pair is None
    replay = session.opened.with_scales(Scales(compute=2.0))
    session.show(replay)
    session.show(session.opened)
    pair = Choice(session).pair
    assert pair is not None
    assert [(one.name, one.results) for one in pair] == [("run 1", session.opened), ("draft", replay)]


async def test_a_replay_is_kept_named_and_compared_like_any_run(make_app: MakeApp) -> None:
    app = app_on(make_app, slow_rank(), first="summary")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "x")
        assert app.status_text == NO_OTHER_YET
        await press(pilot, "6")
        assert ONE_RUN in " ".join(screen_text(app).split())
        await press(pilot, "i")
        assert app.status_text == NO_OTHER
        await press(pilot, "5", "greater_than_sign")
        await run_over(pilot)
        assert app.session.current.parameters == Parameters(compute_scale=2.0)
        await press(pilot, "r", "R")
        rows = [row.rstrip() for row in screen_rows(app)]
        assert rows[2].split()[:3] == ["1", "as", "opened"]
        assert rows[3].endswith("--compute-scale 2.0")
        await press(pilot, "space", "k", "c")
        await run_over(pilot)
        assert any("A  run 2" in row and "replayed (compute x2 in time)" in row for row in screen_rows(app))
        assert any("B  run 1" in row and "measured" in row for row in screen_rows(app))
        await press(pilot, "5", "u")
        await run_over(pilot)
        assert app.session.current.parameters == Parameters(compute_scale=2.0)


async def test_a_plan_has_nothing_to_compare(make_app: MakeApp) -> None:
    app = app_on(make_app, made(PLAN))
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "6")
        assert NO_TIMES in screen_text(app)
        await press(pilot, "R")
        assert "not timed" in screen_text(app)
        await press(pilot, "escape")
        await press(pilot, "1")
        said(screen_rows(app), "Planned order", "no times")
        assert "Measured" not in screen_text(app)


def test_of_many_ranks_those_whose_end_moves_most_are_shown_and_how_many_more() -> None:
    opened = RecordedRun(four_ranks())
    now = opened.with_scales(Scales(ranks={3: 2.0}))
    lines = text_of(end_lines(opened, now, 3)).split("\n")
    assert lines[0].split() == ["rank", "end,", "opened", "end,", "now", "difference"]
    assert lines[1].split()[0] == "3"
    assert lines[-1] == "  and 3 more ranks"
    assert "more" not in text_of(end_lines(opened, now, 5))


@pytest.mark.parametrize("apart", [True, False])
def test_the_what_if_tables_say_which_step_they_start_from(apart: bool) -> None:
    """Ranks that did not run together: the step is shown as measured, 96 ms, and changes start from 94 ms."""
    run = run_apart(SLOW_STAGE, Layout(1, 1, 2, 1)) if apart else run_of(SLOW_STAGE, 2, pp=2)
    results = RecordedRun(run)
    summary, why = SummaryModel(results), WhyModel(results)
    why.panel = WHAT_IF
    for model in (summary, why):
        # Nothing is replayed to draw a screen whose table is not there yet.
        assert model.base_words == ""
        model.knobs = results.what_if()
    for width, height in ((120, 36), (80, 24)):
        pages = (
            text_of(draw_summary(summary, width, height, BLOCKS, "")),
            text_of(draw(why, width, height, BLOCKS, "")),
        )
        for page, title in zip(pages, (HELPS_MOST, "What if"), strict=True):
            assert (f"{title}, replayed from 94.000 ms" in page) is apart
            assert title in page
    rows = [line_text(line) for line in what_if_lines(why, 100, 40, "")]
    said(rows, "balanced stages")
    # A tenth less compute gains, where against 96 ms it would gain more than it does.
    (compute,) = [row for row in rows if "all compute" in row]
    assert compute.split()[2:6] == (["85.000", "ms", "-9.6%"] if apart else ["87.000", "ms", "-9.4%"]) + [
        "4.000" if apart else "6.000"
    ]
