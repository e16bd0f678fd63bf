"""A widget that shows a frame and sends the terminal only the lines that changed."""

from __future__ import annotations

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.frame import ASCII, BLOCKS, Glyphs, Line, as_ascii, fitted, shortened, width_of
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
        self._is_stale = False
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

    def on_resize(self) -> None:
        drawn = (width_of(self._lines[0]), len(self._lines)) if self._lines else self.size
        if drawn != self.size and self.size.area:
            self.redraw_all()

    def redraw_all(self) -> None:
        """Draw the frame anew and refresh every line, whatever was there."""
        self._lines = []
        self._is_stale = False
        self.refresh()

    def redraw(self) -> None:
        """Draw the frame anew and refresh the lines that differ, once for all keys that wait already."""
        if not self._lines or not self.display:
            # Nothing is on the terminal; the frame is made when Textual asks for its lines.
            self.redraw_all()
        elif not self._is_stale:
            self._is_stale = True
            # Behind the keys that the app has in its queue.
            self.app.call_later(self._redraw_stale)

    def _redraw_stale(self) -> None:
        if self._is_stale:
            self.redraw_now()

    def redraw_now(self) -> None:
        """As `redraw`, at once: for what must be in one picture with something else."""
        self._is_stale = False
        before, self._lines = self._lines, self._composed()
        width, height = self.size
        if len(before) != height:
            self.refresh()
            return
        changed = [y for y, line in enumerate(self._lines) if line != before[y]]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def _composed(self) -> list[Line]:
        width, height = self.size
        lines = self.frame(width, height)[:height]
        lines = [shortened(line, width) for line in (as_ascii(lines) if self.glyphs is ASCII else lines)]
        return lines + [fitted([], width)] * (height - len(lines))

    def render_line(self, y: int) -> Strip:
        if not self._lines and self.size.width and self.size.height:
            self._lines = self._composed()
        if y >= len(self._lines):
            return Strip.blank(self.size.width, self._styles[""])
        # Every segment has a style: Textual's filters fail on one without.
        return Strip([Segment(text, self._styles[role]) for text, role in self._lines[y]], self.size.width)
