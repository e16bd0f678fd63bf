"""The rows around the screens: the step time is never off the screen, help and quit neither."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from simcore.parameters import Parameters
from simcore.render.report.pages import run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.figures import remove_each
from simcore.workload import open_workload
from tests.flows.test_ports import shared_run
from tests.program.test_op_table_step import PP, RING
from tests.tui.made_runs import line_text, lonely, run, seed, seed_workload, small
from tests.workload.test_op_table import read
from tui.chrome import difference, footer, heading, tab_at
from tui.frame import ASCII, text_of, width_of
from tui.screens import SCREENS as ALL_SCREENS
from tui.session import Session
from tui.summary.panels import step_lines

PATHS = ["long", "escapes", "wide", "short"]
WIDTHS = st.integers(20, 400)
# The screens of a run of one step on a network without links.
SCREENS = {name: entry for name, entry in ALL_SCREENS.items() if name not in ("steps", "links")}
RUNS: list[Callable[[], SimulatedRun]] = [seed, small, lonely, lambda: lonely(0)]


def session_of(opened: SimulatedRun, now: SimulatedRun | None = None) -> Session:
    """A session with a run, and another one after a change."""
    session = Session(opened)
    if now is not None:
        session.current = now
    return session


@settings(max_examples=60)
@given(st.sampled_from(RUNS), st.sampled_from(RUNS), WIDTHS, st.sampled_from(list(SCREENS)))
def test_the_heading_is_two_lines_of_the_screens_width(
    opened: Callable[[], SimulatedRun], now: Callable[[], SimulatedRun], width: int, screen: str
) -> None:
    lines = heading(session_of(opened(), now()), screen, width)
    assert [width_of(line) for line in lines] == [width, width]


@cache
def named(path: str, **parameters: object) -> SimulatedRun:
    """Seed 002 under another name."""
    return run(replace(seed_workload(), path=path), **parameters)


@given(st.integers(24, 400))
def test_the_step_time_is_on_the_screen_at_every_width(width: int) -> None:
    assert "step 14.774 s" in text_of(heading(session_of(seed()), "timeline", width))


@pytest.mark.parametrize("width", range(62, 100))
@pytest.mark.parametrize("changed", [{}, {"compute_scale": 2.0}, {"schedule": "gpipe"}])
def test_the_step_time_is_three_cells_behind_the_facts(width: int, changed: dict[str, object]) -> None:
    row = text_of(heading(session_of(seed(), seed(**changed)), "timeline", width)[:1])
    assert row.partition("step ")[0].endswith("   ")


@pytest.mark.parametrize("width", [80, 99, 100, 120])
@pytest.mark.parametrize("path", ["x" * 300, "\x1b" * 100, "漢" * 60, "a.txt"], ids=PATHS)
def test_the_step_time_before_and_after_is_on_the_screen_whatever_the_file_is_called(
    width: int, path: str
) -> None:
    opened = named(path)
    now = named(path, compute_scale=2.0)
    text = text_of(heading(session_of(opened, now), "parameters", width))
    assert "step 28.7" in text
    # Right of eight tabs in a hundred columns, or of what was changed in eighty, there is room for the share
    # alone.
    assert ("+94.6 %" if width <= 100 else "+13.973 s (+94.6 %)") in text
    assert ("! Notes" if width == 100 else "8 notes") in text


@pytest.mark.slow
def test_the_report_and_the_screen_say_a_schedule_alike() -> None:
    """An op table of a pipeline hands on activations, under layer-loop: it has no micro-batches to count."""
    table = SimulatedRun(simulate(read(PP), Parameters(dim=RING)))
    for results, words, short in (
        (seed(), "1f1b, 16 micro-batches", "1f1b 16 mb"),
        (run(seed_workload(), microbatches=1), "1f1b, 1 micro-batch", "1f1b 1 mb"),
        (
            seed(schedule="interleaved", virtual_stages=4),
            "interleaved, 16 micro-batches, 4 virtual stages",
            "interleaved x4 16 mb",
        ),
        (table, "layer-loop", "layer-loop"),
    ):
        session = session_of(results)
        assert f"\n  schedule   {words}\n" in run_page(results)
        in_short = " ".join(session.facts(False)[1:])
        assert (remove_each(session.facts(True)[1]), in_short) == (words, short)
        lines = text_of(step_lines(results, ASCII, 40, 9))
        count = words.partition(", ")[2].partition(", ")[0]
        assert ("micro-batch" in lines) == bool(count)
        # Of one alone the step is its time; of several it is over their number.
        assert f"  {count}: " in lines or f"  step / {count} = " in lines or not count


@pytest.mark.parametrize("path", ["x" * 300, "\x1b" * 100, "漢" * 60], ids=PATHS[:3])
def test_a_long_file_name_leaves_room_for_ranks_and_schedule(path: str) -> None:
    opened = named(path)
    for width, ranks, words in (
        (120, "1024 ranks = tp 8 x dp 8 x pp 16", "1f1b, 16 micro-batches"),
        (80, "1024: tp 8 dp 8 pp 16", "1f1b   16 mb"),
    ):
        text = text_of(heading(session_of(opened), "timeline", width))
        assert words in text
        assert ranks in text


@pytest.mark.parametrize("width", [70, 80, 100, 120, 200])
def test_what_a_change_made_of_the_schedule_stands_first(width: int) -> None:
    now = seed(schedule="interleaved", virtual_stages=4)
    row = line_text(heading(session_of(seed(), now), "summary", width)[0])
    name, schedule = row.replace(" wltui  ", " ").split("   ")[:2]
    assert name.startswith(" 002_gp")
    assert schedule.startswith("interleaved, 16 micro-batches" if width >= 100 else "interleaved x4")
    # As opened the layout is first.
    assert "tp 8" in line_text(heading(session_of(seed()), "summary", width)[0]).split("   ")[1]


def test_ep_stands_behind_the_layout_whose_factor_it_is_not() -> None:
    moe = SimulatedRun(simulate(open_workload("fixtures/001_moe_128npu_with_mistakes.txt"), Parameters()))
    assert "   128: tp 8 dp 4 pp 4 (ep 4) " in text_of(heading(session_of(moe), "summary", 80))
    assert "(ep" not in text_of(heading(session_of(seed()), "summary", 80))


def test_of_a_short_name_the_layout_has_room_beside_the_change() -> None:
    opened = named("c.txt")
    now = named("c.txt", schedule="interleaved", virtual_stages=4)
    row = line_text(heading(session_of(opened, now), "summary", 80)[0])
    assert " c.txt   interleaved x4   tp 8 dp 8 pp 16       step 9.723 s  -34.2 %   7 notes" in row
    wide = line_text(heading(session_of(opened, now), "summary", 120)[0])
    assert "draft after run 1" in wide


@pytest.mark.parametrize(
    ("width", "layout"),
    [(80, "tp8 dp8 pp16"), (100, "1024: tp 8 dp 8 pp 16"), (120, "1024 ranks = tp 8 x dp 8 x pp 16")],
)
def test_the_layout_stays_beside_what_a_change_made_of_the_schedule(width: int, layout: str) -> None:
    opened = named("002_ec526f178b8c47e2.txt")
    now = named("002_ec526f178b8c47e2.txt", schedule="interleaved", virtual_stages=8)
    row = line_text(heading(session_of(opened, now), "summary", width)[0])
    assert f"   {layout}" in row
    assert "interleaved" in row
    assert row.lstrip(" wltui").startswith("002_ec")


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_to_which_run_a_difference_is_is_said_where_there_is_a_third_one(width: int) -> None:
    session = Session(seed())
    for number, count in enumerate((2, 4), 2):
        session.show(seed(schedule="interleaved", virtual_stages=count))
        assert session.keep() == number
        rows = text_of(heading(session, "summary", width))
        assert (" vs run 1" in rows or "compared with run 1" in rows) == (number == 3)
        assert ("compared with run 1" in rows) == (number == 3 and width == 100)
        assert "-34.2 %" in rows or number == 2
        assert "interleaved x" in rows or width >= 100
    # The run as opened differs from nothing; another draft may be held against any of three.
    session.show(session.opened)
    assert not re.search(" (to|vs) run", text_of(heading(session, "summary", width)))
    session.show(seed(schedule="gpipe"))
    assert re.search(" (with|vs) run 1", text_of(heading(session, "summary", width)))


def test_the_name_has_the_room_that_no_fact_takes() -> None:
    opened, now = (
        run(replace(seed_workload(), path="x" * 90), **changed)
        for changed in ({}, {"schedule": "interleaved", "virtual_stages": 4})
    )
    for width, cells in ((100, 14), (104, 18)):
        row = line_text(heading(session_of(opened, now), "summary", width)[0])
        said = "interleaved, 16 micro-batches, 4 virtual stages   1024: tp 8 dp 8 pp 16"
        assert row == f" wltui  {'x' * cells}...   {said} "


def test_what_is_open_is_said_in_the_first_row() -> None:
    first, second = (line_text(line) for line in heading(session_of(seed()), "layers", 120))
    assert first.rstrip() == (
        " wltui  002_gpt_1024npu.txt   1024 ranks = tp 8 x dp 8 x pp 16   "
        "1f1b, 16 micro-batches, step / 16 = 923.4 ms"
    )
    screens = "  1 Summary  2 Timeline [3 Layers] 4 Why  5 Params  6 Compare  7 Sweep  ! Notes "
    assert second.startswith(screens)
    assert second.endswith("step 14.774 s   run 1 of 1   8 notes ")


def test_eighty_columns_have_the_same_in_short() -> None:
    first, second = (line_text(line) for line in heading(session_of(seed()), "notes", 80))
    assert " ".join(first.split()) == ("002_gpt_10... 1024: tp 8 dp 8 pp 16 1f1b 16 mb step 14.774 s 8 notes")
    assert len(first) == 80
    screens = "  1 Summary  2 Timeline  3 Layers  4 Why  5 Params  6 Compare  7 Sweep [! Notes]"
    assert second.rstrip() == screens


@settings(max_examples=100)
@given(
    st.integers(80, 160), st.sampled_from(list(SCREENS)), st.sampled_from([None, *RUNS]),
    st.booleans(), st.sampled_from(["", "refused"]),
)  # fmt: skip
def test_no_tab_is_cut_and_no_step_time_lost_from_80_columns_on(
    width: int, screen: str, now: Callable[[], SimulatedRun] | None, running: bool, error: str
) -> None:
    session = session_of(seed(), now and now())
    session.running, session.error = running, error
    first, second = (line_text(line) for line in heading(session, screen, width))
    for entry in SCREENS.values():
        titles = [f"{mark[0]}{entry.key} {title}{mark[1]}"
                  for title in (entry.title, entry.short) for mark in ("  ", "[]")]  # fmt: skip
        assert any(title in f"{second} " for title in titles), (entry.title, second)
    assert f"step {session.step}" in first + second
    if error or running:
        assert ("change not run" if error else "simulating") in first + second


@pytest.mark.parametrize("width", [36, 40, 60, 70])
@pytest.mark.parametrize("screen", SCREENS)
def test_on_a_small_terminal_every_screen_has_its_key_and_the_open_one_its_title(
    screen: str, width: int
) -> None:
    session = session_of(seed())
    row = line_text(heading(session, screen, width)[1])
    entry = SCREENS[screen]
    assert f"[{entry.key} {entry.short}]" in row
    words = row.replace("[", " ").replace("]", " ").split()
    assert set(words) <= {one.key for one in SCREENS.values()} | {one.short for one in SCREENS.values()}
    assert {one.key for one in SCREENS.values()} <= set(words)
    # A click on a key or a title opens its screen.
    for name, one in SCREENS.items():
        column = row.index(f"[{one.key} ") + 1 if name == screen else row.index(f" {one.key} ") + 1
        assert tab_at(session, screen, column, width) == name


def test_while_a_run_is_simulated_the_step_time_keeps_its_place() -> None:
    session = session_of(seed(), seed(compute_scale=2.0))
    before = line_text(heading(session, "summary", 120)[1])
    assert before.endswith("  step 28.747 s  +13.973 s (+94.6 %)   8 notes ")
    session.running = True
    after = line_text(heading(session, "summary", 120)[1])
    assert after.endswith(" step 28.747 s  +94.6 %  simulating   8 notes ")


@pytest.mark.parametrize("width", range(100, 132))
def test_the_step_time_keeps_its_row_whatever_stands_behind_it(width: int) -> None:
    slower, alone = session_of(seed(), seed(compute_scale=2.0)), session_of(seed())
    for session in (alone, slower):
        for screen in SCREENS:
            _, second = (line_text(line) for line in heading(session, screen, width))
            assert " step " in second
            assert all(f"{one.key} " in second for one in SCREENS.values())
    # What has no room is said in fewer words: the difference, the run, the notes.
    second = line_text(heading(slower, "why", width)[1])
    assert ("+94.6 %" if width < 119 else "+13.973 s (+94.6 %)") in second


@pytest.mark.parametrize("screen", list(SCREENS))
@pytest.mark.parametrize("width", [80, 120])
def test_the_open_screen_is_marked_and_no_other(screen: str, width: int) -> None:
    text = text_of(heading(session_of(seed()), screen, width))
    assert text.count("[") == 1
    assert f"[{SCREENS[screen].key} " in text


@pytest.mark.parametrize(("count", "words"), [(0, "0 notes "), (1, "1 note "), (2, "2 notes ")])
def test_one_note_is_not_notes(count: int, words: str) -> None:
    simulation = seed().simulation
    opened = SimulatedRun(replace(simulation, diagnostics=simulation.diagnostics[:count]))
    # Without those of every run.
    opened.__dict__["_read_notes"] = opened.simulation.diagnostics
    for width in (80, 120):
        rows = [line_text(line) for line in heading(session_of(opened), "timeline", width)]
        assert any(row.endswith("   " + words) for row in rows)


@pytest.mark.parametrize(
    ("was", "now", "words", "role"),
    [
        (1000, 1000, "no change", "dim"),
        (0, 0, "no change", "dim"),
        (2_000_000_000, 1_000_000_000, "-1.000 s (-50.0 %)", "better"),
        (1_000_000, 2_500_000, "+1.500 ms (+150.0 %)", "worse"),
        (0, 5, "+5 ns", "worse"),
        (5, 0, "-5 ns (-100.0 %)", "better"),
        (10**9, 10**9 + 1, "+1 ns (0.0 %)", "neither"),
    ],
)
def test_a_difference_has_its_sign_and_its_share(was: int, now: int, words: str, role: str) -> None:
    line = difference(was, now)
    assert line_text(line) == words
    assert {one for _, one in line} == {role}


HINTS = st.lists(st.tuples(st.text("abc ", max_size=12), st.text("xyz ", max_size=20)), max_size=10)


@given(HINTS.map(tuple), st.integers(18, 400))
def test_the_last_row_always_has_help_and_quit_and_no_half_hint(
    hints: tuple[tuple[str, str], ...], width: int
) -> None:
    line = footer(hints, width)
    text = line_text(line)
    assert len(text) == width
    assert text.endswith(" ? keys  q quit ")
    shown = "".join(f" {keys} {words} " for keys, words in hints)
    assert shown.startswith(text[: -len(" ? keys  q quit ")].rstrip(" "))


def test_a_wide_enough_last_row_has_every_hint() -> None:
    text = line_text(footer((("w s", "zoom"), ("f", "fit")), 60))
    assert text.startswith(" w s zoom  f fit ")


@pytest.mark.parametrize("width", [100, 105, 112, 120, 140, 200])
def test_the_step_of_another_model_stays_behind_the_screens(width: int) -> None:
    session = session_of(seed(), seed(tp=4))
    first, second = (line_text(line) for line in heading(session, "summary", width))
    assert second.startswith((" [1 Summary]", "[1 Summary]"))
    assert "step " in second
    assert "step " not in first.replace("step / 16 = ", "")
    assert ("other model" in first) != ("other model" in second)
    plain = text_of(heading(session_of(seed(), seed(compute_scale=2.0)), "summary", width))
    assert "other model" not in plain


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 120])
def test_what_takes_another_time_stands_in_the_row_on_top(width: int) -> None:
    """After a trial of `layer grad_param_comm` the row on top named no change."""
    trials = [
        ({"time_scale": ("stream dp=0.9",)}, "stream dp x0.9 in time", "stream dp x0.9"),
        ({"time_scale": ("layer grad_gather=0.9",)}, "layer grad_gather x0.9 in time", "grad_gather x0.9"),
        (
            {"layer_scale": ("mlp_row:fwd=0.5", "mlp_row:ig=0.5")},
            "layer mlp_row:fwd x0.5 in time and 1 more",
            "other times",
        ),
        ({"slow_rank": ("5=1.3",), "comm_scale": 0.0}, "communication x0 in time and 1 more", "other times"),
    ]
    for fields, words, short in trials:
        first, _ = heading(session_of(seed(), seed(**fields)), "why", width)
        assert f"   {words if width > 80 else short}   " in line_text(first)
    assert " x0" not in line_text(heading(session_of(seed()), "why", width)[0])
    # A bandwidth is no flag of its own: `run 2 of 2` stood there alone.
    faster, *_ = [one for one in seed().what_if() if one.name == "dimension 1 bandwidth"]
    assert faster.parameters is not None
    trial = session_of(seed(), seed().with_parameters(faster.parameters))
    assert "   dim 1 55.6 GB/s   " in line_text(heading(trial, "why", width)[0])


@pytest.mark.parametrize("width", [80, 120])
def test_the_heading_says_which_links_and_paths_of_flows_were_changed(width: int) -> None:
    session = Session(shared_run())
    assert "flows, " not in text_of(heading(session, "links", width))
    for changes in ({"link_rate": ("asw-psw=2",)}, {"ecmp": "balanced"}):
        session.current = shared_run(**changes)
        (name,), (value,) = (
            changes,
            (" ".join(one) if isinstance(one, tuple) else one for one in changes.values()),
        )
        assert f"flows, {name.replace('_', '-')} {value}" in text_of(heading(session, "links", width))
