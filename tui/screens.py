"""The screens: a new one is a room of its own and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.binding import BindingType

    from tui.screen_view import ScreenView


class Entry(NamedTuple):
    """key: opens the screen. short: its title on a narrow terminal. place: module:class.
    measured: the place of what it shows of a measured run, where that is something else.
    """

    key: str
    title: str
    short: str
    place: str
    measured: str = ""


# The numbers are those of the finished explorer: 1, 4 and 6 are not there yet.
SCREENS: dict[str, Entry] = {
    "timeline": Entry("2", "Timeline", "Timeline", "tui.timeline.view:TimelineView"),
    "layers": Entry(
        "3", "Layers", "Layers", "tui.layers.view:LayersView", "tui.measured.view:OperationsView"
    ),
    "parameters": Entry(
        "5",
        "Parameters",
        "Params",
        "tui.parameters.view:ParametersView",
        "tui.measured.view:NoParametersView",
    ),
    "notes": Entry("!", "Notes", "Notes", "tui.notes.view:NotesView"),
}
FIRST = "timeline"


def load(name: str, measured: bool = False) -> type[ScreenView]:
    """The view of a screen, imported when it is first opened."""
    entry = SCREENS[name]
    module, _, view = (entry.measured if measured and entry.measured else entry.place).partition(":")
    found: type[ScreenView] = getattr(import_module(module), view)
    return found


def all_bindings() -> dict[str, Sequence[BindingType]]:
    """The bindings of each screen, by its view: those of measured runs too."""
    views = [load(name, measured) for name in SCREENS for measured in (False, True)]
    return {view.__name__: view.BINDINGS for view in views}
