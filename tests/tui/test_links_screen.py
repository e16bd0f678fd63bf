"""Screen 9: the ports of a network, in pictures and by its keys."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.flows.test_ports import ROWS, ports_of, shared_run
from tests.strategies import make_workload
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import run, small
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text
from tests.tui.test_text_frames import frame_after
from tui.frame import ASCII, BLOCKS, text_of, width_of
from tui.links.frame import FULL, NOW, PortCursor, measure_words, picture_lines
from tui.links.view import LinksView
from tui.timeline.view import TimelineView

FRAMES = {
    "load": ("9",),
    "full": ("9", "i", "j", "l"),
    "flows at a time": ("9", "i", "i", "full_stop"),
    "the table": ("9", "tab", "j", "j", "l", "l", "o"),
    "flows on a port": ("9", "enter", "j"),
    "what if": ("9", "t", "j"),
    "filtered": ("9", "backslash", *"psw grads", "enter"),
    "timeline": ("2",),
}


@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=["120x36", "80x24"])
@pytest.mark.parametrize("name", FRAMES)
async def test_the_screen_of_links_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str, size: tuple[int, int]
) -> None:
    assert await frame_after(make_app(shared_run()), size, FRAMES[name]) == snapshot


async def test_in_ascii_it_is_drawn_as_before(make_app: MakeApp, snapshot: SnapshotAssertion) -> None:
    text = await frame_after(make_app(shared_run(), ascii_only=True), (80, 24), ("9",))
    assert text.isascii()
    assert text == snapshot


async def test_messages_have_the_same_screen(make_app: MakeApp, snapshot: SnapshotAssertion) -> None:
    messages = run(make_workload(ROWS, tp=1, ep=16, pp=1, all_gpus=16), network="links")
    assert await frame_after(make_app(messages), (80, 24), ("9",)) == snapshot


async def test_a_run_without_links_has_no_such_screen(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 36)) as pilot:
        before = app.screen_name
        assert "9 Links" not in screen_text(app)
        await press(pilot, "9")
        assert app.screen_name == before
        assert "--network flows" in screen_rows(app)[-1]


async def test_no_key_of_the_screen_ends_the_program_on_a_run_without_links(make_app: MakeApp) -> None:
    # As with `--screen links`, or a restored session.
    app = make_app(small(), first="links")
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, *"hjkl", "tab", *"hjklo", "tab", "enter", "escape", *"it,.+-[]gG", "escape")
        assert "this run has no links" in screen_text(app) or app.screen_name != "links"


async def test_the_picture_and_the_table_have_one_cursor(make_app: MakeApp) -> None:
    app = make_app(shared_run())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "9", "j", "l")
        view = app.current_view
        assert isinstance(view, LinksView)
        assert view.table.lines[view.line] == view.cursor.index
        await press(pilot, "tab", "j")
        assert view.table.lines[view.line] == view.cursor.index


async def test_enter_leads_from_a_flow_to_its_collective(make_app: MakeApp) -> None:
    app = make_app(shared_run())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "9", "enter", "enter")
        view = app.current_view
        assert isinstance(view, TimelineView)
        ports = ports_of(shared_run())
        index = ports.by_heat[0]
        purpose = ports.sends_at(index, ports.busiest_ns(index))[0].purpose
        assert purpose is not None
        assert purpose.start_ns <= view.model.cursor_ns <= purpose.end_ns


async def test_the_time_is_that_of_the_timelines_cursor(make_app: MakeApp) -> None:
    app = make_app(shared_run())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "2", "l", "l")
        timeline = app.current_view
        assert isinstance(timeline, TimelineView)
        await press(pilot, "9")
        view = app.current_view
        assert isinstance(view, LinksView)
        assert view.cursor.time_ns == timeline.model.cursor_ns
        # It stays where it is moved here, until the other one is moved.
        await press(pilot, "full_stop")
        time_ns = view.cursor.time_ns
        await press(pilot, "1", "9")
        assert view.cursor.time_ns == time_ns


async def test_t_tries_the_link_at_half_its_rate_as_another_run(make_app: MakeApp) -> None:
    app = make_app(shared_run())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "9", "t", "j", "enter")
        await run_over(pilot)
        ports = ports_of(shared_run())
        hottest = ports.hottest_shared
        assert hottest is not None
        low, high = sorted(ports.all[hottest].ends)
        assert app.session.current.setup.parameters.link_rate == (f"{low}-{high}=0.5",)
        assert app.session.current.step_time_ns > app.session.opened.step_time_ns
        view = app.current_view
        assert isinstance(view, LinksView)
        assert view.table.ports.all[view.cursor.index].gbps == ports.all[hottest].gbps / 2


@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII], ids=["blocks", "ascii"])
@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_every_tier_has_a_row_that_fits_and_the_fullest_port_the_highest_cell(
    width: int, glyphs: object
) -> None:
    cursor = PortCursor(ports_of(shared_run()))
    used = glyphs if glyphs is ASCII else BLOCKS
    lines = picture_lines(cursor, width, 12, used, True)  # type: ignore[arg-type]
    assert len(lines) == len(cursor.ports.tiers)
    assert all(width_of(line) <= width for line in lines)
    assert used.heat[-1] in text_of(lines)  # type: ignore[attr-defined]


def test_the_cells_are_of_what_the_rule_says() -> None:
    cursor = PortCursor(ports_of(shared_run()))
    ports, index = cursor.ports, cursor.index
    assert max(cursor.values()) == 1.0
    loads = [ports.mean_load(one) for one in ports.by_heat]
    assert f"{100 * max(loads):.1f} %" in measure_words(cursor)
    cursor.next_measure()
    assert cursor.measure == FULL
    longest_ns = max(port.held_ns for port in ports.all)
    assert cursor.values()[index] == ports.all[index].held_ns / longest_ns
    cursor.next_measure()
    assert cursor.measure == NOW
    assert measure_words(cursor).endswith(
        f": {max(ports.count_at(one, cursor.time_ns) for one in ports.by_heat)}"
    )


def test_a_change_of_time_is_the_next_one() -> None:
    cursor = PortCursor(ports_of(shared_run()))
    cursor.time_ns = 0
    changes = cursor.ports.changes(cursor.index)
    for time in changes[:5]:
        assert cursor.go_to_change(1)
        assert cursor.time_ns == time
    assert cursor.go_to_change(-1)
    assert cursor.time_ns == changes[3]
