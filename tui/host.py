"""The app as its screens ask it, and what works behind them: what is said, shown and open."""

from __future__ import annotations

from collections.abc import Mapping

from tui.frame_view import ScreenView
from tui.session import Run, Session
from tui.terminal.display import CellApp


class Host(CellApp):
    """session: the runs. screen_name: the screen that is open. said: the last row, until the next key.
    came_from: the screen that a place in the timeline was opened from, until another one is opened.
    """

    session: Session
    ascii_only: bool
    screen_name: str
    status_text: str
    came_from: str

    @property
    def current_view(self) -> ScreenView:
        """The view of the screen that is open."""
        raise NotImplementedError

    @property
    def views(self) -> Mapping[str, ScreenView]:
        """The screens that have been opened, by name."""
        raise NotImplementedError

    def say(self, message: str) -> None:
        """A line at the bottom until the next key."""
        raise NotImplementedError

    async def action_open(self, name: str) -> None:
        """Show a screen; it is made when it is first opened and found later as it was left."""
        raise NotImplementedError

    async def go_to(self, track_id: int, start_ns: int, end_ns: int, stream: str | None = None) -> None:
        """Show a place in the timeline: a rank class or a stream of it, from start_ns to end_ns."""
        raise NotImplementedError

    def redraw_current(self) -> None:
        """Something that the open screen shows has changed."""
        raise NotImplementedError

    def redraw_sweep(self) -> None:
        """Points of the sweep have come."""
        raise NotImplementedError

    def redraw_chrome(self) -> None:
        """The rows around the screen say something else."""
        raise NotImplementedError

    def redraw_hints(self) -> None:
        """The keys of the open screen are others than before."""
        raise NotImplementedError

    def changed(self) -> None:
        """The run that is shown, or what is known of the next one, has changed."""
        raise NotImplementedError

    def show_everywhere(self, run: Run) -> None:
        """Another run on all screens."""
        raise NotImplementedError

    def compare_again(self) -> None:
        """The runs that screen 6 compares may be others than before."""
        raise NotImplementedError
