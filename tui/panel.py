"""Modal screens that are there until they are answered, and a panel of scrolled lines; Esc closes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, ScreenResultType

from tui.frame import Glyphs, Line, page_of, rule
from tui.frame_view import FrameView
from tui.screens import SCREENS

if TYPE_CHECKING:
    from tui.host import Host


class Modal(ModalScreen[ScreenResultType]):
    """A screen over another that gives one answer and closes."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Answers with `result`. A second Enter or Esc before the first is handled is ignored.

        Textual would remove the screen below for it, and end with an error where there is none.
        """
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)


class ScrolledLines(FrameView):
    """A title and as many lines as there are.

    make: lines for a width. keep: a line that stays in view. more: the text of the last row for this many
    lines below it.
    """

    DEFAULT_CSS = "ScrolledLines { width: 1fr; height: 1fr; }"

    def __init__(self, title: str, ending: str, make: Callable[[int], list[Line]], glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._title, self._ending, self._make = title, ending, make
        self.top = 0
        self.keep: int | None = None
        self.more: Callable[[int], str] = lambda hidden: f"{hidden} more: j"

    def frame(self, width: int, height: int) -> list[Line]:
        lines = [rule(self._title, width, self.glyphs), *self._make(width)]
        lines.append(rule(self._ending, width, self.glyphs))
        if self.keep is not None:
            # The last row may hold how many lines are below; the title stands above the first line.
            self.top = min(max(self.top, self.keep + 3 - height), self.keep + (self.keep > 0))
        self.top, visible = page_of(
            lines, self.top, height, lambda below: rule(self.more(below), width, self.glyphs)
        )
        return visible


# Lines that a page down or up leaves on the screen: the last one, and the two rules.
_KEPT_LINES = 3
# The keys of the screens work in a panel, too: it is closed.
TO_SCREENS = [
    Binding(
        "exclamation_mark" if screen_entry.key == "!" else screen_entry.key,
        f"to_screen('{name}')",
        screen_entry.title.lower(),
    )
    for name, screen_entry in SCREENS.items()
]


class Panel(Modal[Any]):
    """Covers the screen with lines; Esc, Enter or `q` go back, the keys of the screens to those."""

    CSS = "Panel { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        *TO_SCREENS,
        Binding("escape,enter,q", "dismiss(None)", "back"),
        Binding("j,down", "scroll(1)", "down"),
        Binding("k,up", "scroll(-1)", "up"),
        Binding("space", "page_or_back", "a page down, from the last one back"),
        Binding("pagedown", "page(1)", "a page down"),
        Binding("pageup", "page(-1)", "a page up"),
        Binding("g,home", "scroll(-1000000)", "to the top"),
        Binding("G,end", "scroll(1000000)", "to the end"),
    ]

    def __init__(
        self,
        title: str,
        make: Callable[[int], list[Line]],
        glyphs: Glyphs,
        ending: str = "Esc closes this",
    ) -> None:
        super().__init__()
        self._lines = ScrolledLines(title, ending, make, glyphs)

    def compose(self) -> ComposeResult:
        yield self._lines

    def action_to_screen(self, name: str) -> None:
        self.dismiss(None)
        # After the panel is closed: a prompt that a screen opens with is on top.
        self.app.call_later(cast("Host", self.app).action_open, name)

    def action_scroll(self, by: int) -> None:
        self._lines.top += by
        self._lines.redraw()

    def action_page(self, direction: int) -> None:
        self.action_scroll(direction * max(self._lines.size.height - _KEPT_LINES, 1))

    def action_page_or_back(self) -> None:
        """Scrolls a page down; at the end it goes back, so that a second Space closes a short panel."""
        before = self._lines.top
        self.action_page(1)
        # The frame knows where the last page begins.
        self._lines.redraw_now()
        if self._lines.top == before:
            self.dismiss(None)


class TryPanel(Panel):
    """Lines about a change, and the key that makes it; the result is True where that was pressed."""

    CSS = "TryPanel { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("t", "dismiss(True)", "try it")]
