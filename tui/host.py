"""The app as its screens and its background tasks see it: messages, runs and screens."""

from __future__ import annotations

from collections.abc import Mapping

from tui.frame_view import ScreenView
from tui.session import Run, Session
from tui.terminal.display import CellApp


class Host(CellApp):
    """The interface of the app."""

    session: Session
    """The runs."""
    ascii_only: bool
    screen_name: str
    """The screen that is open."""
    status_text: str
    """The message in the last row, until the next key."""
    came_from: str
    """The screen from which an interval of the timeline was opened, until another screen is opened."""

    @property
    def current_view(self) -> ScreenView:
        """The view of the screen that is open."""
        raise NotImplementedError

    @property
    def views(self) -> Mapping[str, ScreenView]:
        """The screens that have been opened, by name."""
        raise NotImplementedError

    def say(self, message: str) -> None:
        """Shows a line at the bottom until the next key."""
        raise NotImplementedError

    async def action_open(self, name: str) -> None:
        """Shows a screen; it is made when it is first opened, and keeps its state."""
        raise NotImplementedError

    async def go_to(self, track_id: int, start_ns: int, end_ns: int, stream: str | None = None) -> None:
        """Shows an interval in the timeline: a track or a stream of it, from start_ns to end_ns."""
        raise NotImplementedError

    def redraw_current(self) -> None:
        """Redraws the open screen."""
        raise NotImplementedError

    def redraw_sweep(self) -> None:
        """Shows new points of the sweep."""
        raise NotImplementedError

    def redraw_chrome(self) -> None:
        """Redraws the rows around the screen."""
        raise NotImplementedError

    def redraw_hints(self) -> None:
        """Redraws the hints of the open screen."""
        raise NotImplementedError

    def changed(self) -> None:
        """Updates the screen when the shown run, or the state of the next one, has changed."""
        raise NotImplementedError

    def show_everywhere(self, run: Run) -> None:
        """Shows another run on all screens."""
        raise NotImplementedError

    def compare_again(self) -> None:
        """Updates screen 6 when the runs that it compares may have changed."""
        raise NotImplementedError
