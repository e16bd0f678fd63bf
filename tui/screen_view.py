"""What every screen is: a frame with keys of its own, over the session that all screens share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding

from tui.frame import ASCII, Line, as_ascii
from tui.frame_view import FrameView
from tui.session import Run, Session

if TYPE_CHECKING:
    from tui.state.stored import ScreenState


class ScreenView(FrameView, can_focus=True):
    """One screen. `hints`: what the last row says of its keys, most useful first.
    `mouse`: what the help says of the mouse."""

    hints: tuple[tuple[str, str], ...] = ()
    mouse: tuple[tuple[str, str], ...] = ()

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(ascii_only=ascii_only, id=id)
        self.session = session

    def takes(self, key: str) -> bool:
        """Whether a key does something of the screen's own."""
        return any(isinstance(one, Binding) and key in one.key.split(",") for one in self.BINDINGS)

    def show_hints(self, hints: tuple[tuple[str, str], ...]) -> None:
        """The last row says these of the keys, if it does not yet."""
        if hints != self.hints:
            self.hints = hints
            for footer in self.app.query("Footer").results(FrameView):
                footer.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines of the screen, at most `height` of them."""
        raise NotImplementedError

    def frame(self, width: int, height: int) -> list[Line]:
        lines = self.draw(width, height)
        return as_ascii(lines) if self.glyphs is ASCII else lines

    def saved(self) -> ScreenState | None:
        """What the session file keeps of this screen, None for nothing."""
        return None

    def restore(self, state: ScreenState, places: bool) -> None:
        """Show what was kept. places: whether places in time mean the same as then."""

    def show(self, results: Run) -> None:
        """Another run is there to be shown."""
        self.redraw()


def binding(keys: str, action: str, words: str, id: str) -> Binding:
    """A key of a screen: `id` names it in a keymap, `words` explain it in the help."""
    return Binding(keys, action, words, show=False, id=id)
