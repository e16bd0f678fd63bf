"""`'`: the marks, to jump to and to remove, how far they are apart, and what is done in between."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from tui.frame import Glyphs, Line
from tui.panel import Panel
from tui.timeline.margins import stretch_figures
from tui.timeline.model import TimelineModel

# Of many marks the stretches to the nearest ones: the chosen one stays in view.
_MOST_STRETCHES = 6
_ENDING = "a letter or Enter goes there, Delete removes, Esc closes this"


class MarksPanel(Panel):
    """Covers the screen with the marks; gives the letter of the one to go to."""

    CSS = "MarksPanel { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("apostrophe", "dismiss(None)", "back"),
        Binding("enter", "go", "go there"),
        Binding("delete,backspace", "remove", "remove the mark"),
    ]

    def __init__(self, model: TimelineModel, glyphs: Glyphs) -> None:
        super().__init__("Marks", self._make, glyphs, _ENDING)
        self._model, self._marks = model, model.marks
        self._chosen = 0
        self._choose(len(self._marks.all) - 1)

    def _choose(self, index: int) -> None:
        self._chosen = max(0, min(index, len(self._marks.all) - 1))
        self._lines.keep = self._chosen
        self._lines.more = lambda hidden: f"{hidden} more"

    def _make(self, width: int) -> list[Line]:
        """A line a mark, the newest last; then from the chosen one to the cursor and to the others."""
        axis, cursor, marks = self._model.source.axis, self._model.cursor_ns, self._marks.all
        if not marks:
            return [[("  no marks: m sets one at the cursor", "")]]
        lines: list[Line] = []
        for index, mark in enumerate(marks):
            sign = ">" if index == self._chosen else " "
            away = axis.length(abs(mark.time_ns - cursor))
            side = f"{away} before" if mark.time_ns < cursor else f"{away} after"
            if mark.time_ns == cursor:
                side = "at"
            words = f"{axis.clock(mark.time_ns)}   {mark.title:<20} {side} the cursor"
            lines.append([(f"{sign} {mark.letter}  ", "key"), (words, "accent" if sign == ">" else "")])
        chosen = marks[self._chosen]
        others = [(mark.letter, mark.time_ns) for mark in marks if mark is not chosen]
        others.sort(key=lambda mark: abs(mark[1] - chosen.time_ns))
        lines += [[], [(f"  From {chosen.letter}, on {self._model.whose}:", "")]]
        for name, time_ns in [("cursor", cursor), *others[:_MOST_STRETCHES]]:
            first, last = sorted((chosen.time_ns, time_ns))
            start: Line = [(f"  {chosen.letter} .. {name:<6} {axis.length(last - first):>10}  ", "bright")]
            lines.append(start + stretch_figures(self._model, first, last, start, width))
        return lines

    def on_key(self, event: events.Key) -> None:
        """A mark's letter goes there: before `j`, `k` and the others move."""
        if event.character and self._marks.of(event.character):
            event.stop()
            event.prevent_default()
            self.dismiss(event.character)

    def action_scroll(self, by: int) -> None:
        self._choose(self._chosen + by)
        self._lines.redraw()

    def action_go(self) -> None:
        marks = self._marks.all
        self.dismiss(marks[self._chosen].letter if marks else None)

    def action_remove(self) -> None:
        marks = self._marks.all
        if marks:
            self._marks.remove(marks[self._chosen].letter)
            self.action_scroll(0)
