"""The screens: a new one is a package of its own and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from simcore.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.binding import BindingType

    from tui.frame_view import ScreenView
    from tui.session import Run


class ScreenEntry(NamedTuple):
    """A screen and its key."""

    key: str
    """The key that opens the screen."""
    title: str
    short: str
    """Its title on a narrow terminal."""
    class_path: str
    """`module:class` of its view."""


SCREENS: dict[str, ScreenEntry] = {
    "summary": ScreenEntry("1", "Summary", "Summary", "tui.summary.view:SummaryView"),
    "timeline": ScreenEntry("2", "Timeline", "Timeline", "tui.timeline.view:TimelineView"),
    "layers": ScreenEntry("3", "Layers", "Layers", "tui.layers.view:LayersView"),
    "why": ScreenEntry("4", "Why", "Why", "tui.why.view:WhyView"),
    "parameters": ScreenEntry("5", "Parameters", "Params", "tui.parameters.view:ParametersView"),
    "compare": ScreenEntry("6", "Compare", "Compare", "tui.compare.view:CompareView"),
    "sweep": ScreenEntry("7", "Sweep", "Sweep", "tui.sweep.view:SweepView"),
    "steps": ScreenEntry("8", "Steps", "Steps", "tui.steps.view:StepsView"),
    "links": ScreenEntry("9", "Links", "Links", "tui.links.view:LinksView"),
    "notes": ScreenEntry("!", "Notes", "Notes", "tui.notes.view:NotesView"),
}


def screens_of(run: Run) -> Mapping[str, ScreenEntry]:
    """Returns the screens of a run: that of steps is of recordings of several, that of links of networks
    which have some.
    """
    network, recording = run.network, run.recording
    hidden = set()
    if recording is None or not recording.has_several_steps:
        hidden.add("steps")
    if network.links is None and network.flow_report is None:
        hidden.add("links")
    return {name: entry for name, entry in SCREENS.items() if name not in hidden}


def load(name: str) -> type[ScreenView]:
    """Returns the view of a screen, imported when it is first opened."""
    module, _, view = SCREENS[name].class_path.partition(":")
    view_class: type[ScreenView] = getattr(import_module(module), view)
    return view_class


def all_bindings() -> dict[str, Sequence[BindingType]]:
    """Returns the bindings of each screen, by its view."""
    views = map(load, SCREENS)
    return {view.__name__: view.BINDINGS for view in views}
