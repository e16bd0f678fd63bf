"""A widget that shows a frame and sends the terminal only the lines that changed."""

from __future__ import annotations

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.frame import ASCII, BLOCKS, Glyphs, Line, fitted
from tui.style import styles


class FrameView(Widget, can_focus=False):
    """Base of all views: a subclass gives `frame`, keys call `redraw` when something changed.

    A refresh of the whole widget would send every cell again; Textual keeps no cells to
    compare with. So the frame is compared line by line, and equal lines are left alone.
    """

    DEFAULT_CSS = """
    FrameView { width: 1fr; height: 1fr; }
    """

    def __init__(self, *, ascii_only: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs: Glyphs = ASCII if ascii_only else BLOCKS
        self._lines: list[Line] = []
        self._styles = styles(None)

    @property
    def colour(self) -> bool:
        """Whether the terminal shows colours; without, glyphs alone tell kinds apart."""
        return not self.app.no_color and self.app.console.color_system is not None

    def frame(self, width: int, height: int) -> list[Line]:
        """The lines to show, at most `height` of them. Nothing else than `frame` draws."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self._styles = styles(self.app.console.color_system)
        self.redraw()

    def on_resize(self) -> None:
        self._lines = []
        self.redraw()

    def redraw(self) -> None:
        """Draw the frame anew and refresh the lines that differ."""
        width, height = self.size
        if not width or not height or not self.display:
            # What is hidden is drawn when it is shown; the terminal has lost its cells by then.
            self._lines = []
            return
        lines = [fitted(line, width) for line in self.frame(width, height)[:height]]
        lines += [fitted([], width)] * (height - len(lines))
        if len(lines) != len(self._lines):
            self._lines = lines
            self.refresh()
            return
        changed = [y for y, line in enumerate(lines) if line != self._lines[y]]
        self._lines = lines
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        if y >= len(self._lines):
            return Strip.blank(self.size.width, self._styles[""])
        # Every segment has a style: Textual's filters fail on one without.
        return Strip([Segment(text, self._styles[role]) for text, role in self._lines[y]], self.size.width)
