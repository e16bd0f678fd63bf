"""The app's pictures as differences: whatever keys come, the terminal shows what Textual would paint."""

from __future__ import annotations

import asyncio
import functools
import random
from itertools import pairwise
from typing import Any

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual._context import visible_screen_stack
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip

from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages
from tests.tui.screen_reading import press, resize, run_over
from tests.tui.terminal_cells import Cell, differences, seen_cells
from tui.app import WltuiApp
from tui.session import Session
from tui.terminal.display import CellApp, CellGrid, Display, grid_changes

KEYS = (
    *"wsadADhjklgGfuv0.,123456!?nxmtcyeporz[]C", "space", "enter", "escape", "pagedown", "pageup",
    "left", "right", "up", "down", "home", "end", "ctrl+r", "tab", "backspace", "delete", "7", "é", "中",
    "minus",
    "ctrl+l",
)  # fmt: skip
STYLES = [Style(), Style(bold=True, color="red"), Style(reverse=True), Style(bgcolor="color(52)")]
SIZES = [(120, 36), (80, 24), (120, 36), (33, 9), (10, 3), (1, 1), (200, 50)]


class Line:
    """A driver without a terminal: pyte reads what is sent, when it is ready."""

    seconds_to_answer: Any = 0.0

    def __init__(self) -> None:
        self.screen = pyte.Screen(120, 36)
        self._stream = pyte.Stream(self.screen)
        self._stream.feed("\x1b[?7l")
        self.is_written = True
        self.when_ready: Any = None
        self.sent: list[str] = []

    def write_picture(self, sequences: str) -> None:
        self.sent.append(sequences)
        self._stream.feed(sequences)

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)


@functools.lru_cache(2000)
def row_cells(text: str, width: int) -> list[Cell]:
    """The cells of a row that is painted alone: most rows of a picture are those of the one before."""
    screen = pyte.Screen(width, 1)
    pyte.Stream(screen).feed("\x1b[?7l" + text)
    return seen_cells(screen)[0]


class Watched(WltuiApp):
    """An app under a pilot that sends its pictures to a line: seed 002 on four stages, which is
    searched sooner.
    """

    def __init__(self, **keywords: Any) -> None:
        super().__init__(Session(four_stages()), first="timeline", **keywords)
        self.line = Line()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        if isinstance(renderable, (LayoutUpdate, ChopsUpdate)) and not self._batch_count:
            self._pictures.show(renderable, self.line)  # type: ignore[arg-type]

    def painted(self) -> list[list[Cell]]:
        """The cells as Textual paints them, all of them anew."""
        visible_screen_stack.set(self._background_screens)
        strips = self.screen._compositor.render_strips()
        return [row_cells(strip.render(self.console), self.size.width) for strip in strips]


async def random_session(app: Watched, choose: random.Random, steps: int) -> None:
    """Press keys and change the size, and compare after each."""
    async with app.run_test(size=(120, 36)) as pilot:
        await check(pilot, app, "start")
        for number in range(steps):
            if choose.random() < 0.12:
                columns, rows = choose.choice(SIZES)
                app.line.resize(columns, rows)
                await resize(pilot, columns, rows)
                await check(pilot, app, f"step {number}, {columns}x{rows}")
            else:
                key = choose.choice(KEYS)
                await press(pilot, key)
                await check(pilot, app, f"step {number}, {key}")


async def check(pilot: Pilot[None], app: Watched, words: str) -> None:
    for _ in range(50):
        await pilot.pause()
        if not app.screen._dirty_widgets and app.line.screen.columns == app.size.width:
            break
    found = differences(seen_cells(app.line.screen), app.painted())
    if found:
        # What is found in the background may come between the picture and the look at it.
        await run_over(pilot)
        found = differences(seen_cells(app.line.screen), app.painted())
    assert found == [], f"after {words}: {len(found)} cells, {found[:5]}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(6))
async def test_after_any_keys_and_sizes_the_terminal_shows_what_textual_paints(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    make_app()  # takes the settings of who runs the tests away
    if number == 4:
        monkeypatch.setenv("NO_COLOR", "1")
    if number == 5:
        monkeypatch.setenv("TERM", "xterm")
    await random_session(Watched(ascii_only=number == 3), random.Random(number), 60)


@st.composite
def chops_updates(draw: st.DrawFn) -> ChopsUpdate:
    """Lines cut at any places, some pieces absent, and spans to refresh that need not end at cuts."""
    width, height = draw(st.integers(2, 20)), draw(st.integers(1, 3))
    chops: list[dict[int, Strip | None]] = []
    ends, spans = [], []
    for y in range(height):
        cuts = sorted({0, width, *draw(st.lists(st.integers(1, width), max_size=3))})
        line: dict[int, Strip | None] = {}
        for left, right in pairwise(cuts):
            cell = st.builds(Segment, st.sampled_from("abc▄"), st.sampled_from(STYLES), st.none())
            line[left] = Strip([draw(cell) for _ in range(left, right)]) if draw(st.integers(0, 3)) else None
        chops.append(line)
        ends.append(cuts[1:])
        first = draw(st.integers(0, width - 1))
        spans.append((y, first, draw(st.integers(first + 1, width))))
    return ChopsUpdate(chops, spans, ends)


@given(chops_updates())
@settings(max_examples=300, deadline=None)
def test_an_update_of_parts_is_read_as_textual_would_paint_it(update: ChopsUpdate) -> None:
    app = CellApp()
    line = Line()
    display = Display(app)
    display._apply_update(update)
    cells = display._target
    line.resize(*cells.size)
    line.write_picture(grid_changes(CellGrid(*cells.size), cells))
    screen = pyte.Screen(*cells.size)
    pyte.Stream(screen).feed("\x1b[?7l" + update.render_segments(app.console))
    assert differences(seen_cells(line.screen), seen_cells(screen)) == []


class Late(Line):
    """A terminal whose answer is given up between two looks at the time."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = [0.001]

    @property
    def seconds_to_answer(self) -> float:
        return self.seconds.pop() if self.seconds else 0.0


async def test_a_picture_is_sent_once_its_answer_is_given_up() -> None:
    """Seen to fail with a wait whose length is looked up after it was found to be needed."""
    display = Display(CellApp())
    late = Late()
    async with display._app.run_test(size=(20, 3)):
        display.show(LayoutUpdate([[Strip([Segment("x" * 20)])]] * 3, Region(0, 0, 20, 3)), late)  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        assert [row.rstrip() for row in late.screen.display[:3]] == ["x" * 20] * 3
