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
    measured: the place of what it shows of a measured run, where that is something else; None
    where it shows nothing of one.
    """

    key: str
    title: str
    short: str
    place: str
    measured: str | None = ""


SCREENS: dict[str, Entry] = {
    "summary": Entry("1", "Summary", "Summary", "tui.summary.view:SummaryView"),
    "timeline": Entry("2", "Timeline", "Timeline", "tui.timeline.view:TimelineView"),
    "layers": Entry("3", "Layers", "Layers", "tui.layers.view:LayersView"),
    "why": Entry("4", "Why", "Why", "tui.why.view:WhyView"),
    "parameters": Entry(
        "5",
        "Parameters",
        "Params",
        "tui.parameters.view:ParametersView",
    ),
    "compare": Entry("6", "Compare", "Compare", "tui.compare.view:CompareView"),
    "notes": Entry("!", "Notes", "Notes", "tui.notes.view:NotesView"),
}


def screens_of(measured: bool) -> list[str]:
    """The names of the screens of a measured or a simulated run; the first one is where it opens."""
    return [name for name, entry in SCREENS.items() if not measured or entry.measured is not None]


def load(name: str, measured: bool = False) -> type[ScreenView]:
    """The view of a screen, imported when it is first opened."""
    entry = SCREENS[name]
    module, _, view = (entry.measured if measured and entry.measured else entry.place).partition(":")
    found: type[ScreenView] = getattr(import_module(module), view)
    return found


def all_bindings() -> dict[str, Sequence[BindingType]]:
    """The bindings of each screen, by its view: those of measured runs too."""
    views = [load(name, measured) for measured in (False, True) for name in screens_of(measured)]
    return {view.__name__: view.BINDINGS for view in views}
