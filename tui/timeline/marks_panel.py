"""`'`: the marks, to jump to and to remove."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui.frame import Glyphs, Line, rule
from tui.frame_view import FrameView
from tui.modal import Modal
from tui.timeline.model import TimelineModel


class MarkLines(FrameView):
    """A line for each mark, the newest last. chosen: the one that Enter jumps to."""

    DEFAULT_CSS = "MarkLines { width: 1fr; height: 1fr; }"

    def __init__(self, model: TimelineModel, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.model = model
        self.chosen = max(len(model.marks.all) - 1, 0)

    def frame(self, width: int, height: int) -> list[Line]:
        axis, cursor = self.model.source.axis, self.model.cursor_ns
        lines: list[Line] = [rule("Marks", width, self.glyphs)]
        for place, mark in enumerate(self.model.marks.all):
            sign = ">" if place == self.chosen else " "
            away = axis.length(abs(mark.time_ns - cursor))
            side = "before" if mark.time_ns < cursor else "after"
            words = f"{axis.clock(mark.time_ns)}   {mark.title:<20} {away} {side} the cursor"
            lines.append([(f"{sign} {mark.letter}  ", "key"), (words, "accent" if sign == ">" else "")])
        if not self.model.marks.all:
            lines.append([("  no marks: m sets one at the cursor", "")])
        ending = "a letter or Enter goes there, Delete removes, Esc closes this"
        lines.append(rule(ending, width, self.glyphs))
        top = max(0, min(self.chosen + 3 - height, len(lines) - height))
        return lines[top : top + height]


class MarksPanel(Modal["str | None"]):
    """Covers the screen with the marks; gives the letter of the one to go to."""

    CSS = "MarksPanel { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,apostrophe", "dismiss(None)", "back"),
        Binding("down", "choose(1)", "next mark"),
        Binding("up", "choose(-1)", "mark before"),
        Binding("enter", "go", "go there"),
        Binding("delete,backspace", "remove", "remove the mark"),
    ]

    def __init__(self, model: TimelineModel, glyphs: Glyphs) -> None:
        super().__init__()
        self._marks = model.marks
        self._lines = MarkLines(model, glyphs)

    def compose(self) -> ComposeResult:
        yield self._lines

    def on_key(self, event: events.Key) -> None:
        """A mark's letter goes there."""
        if event.character and self._marks.of(event.character):
            event.stop()
            self.dismiss(event.character)

    def action_choose(self, by: int) -> None:
        self._lines.chosen = max(0, min(self._lines.chosen + by, len(self._marks.all) - 1))
        self._lines.redraw()

    def action_go(self) -> None:
        marks = self._marks.all
        self.dismiss(marks[self._lines.chosen].letter if marks else None)

    def action_remove(self) -> None:
        marks = self._marks.all
        if marks:
            self._marks.remove(marks[self._lines.chosen].letter)
            self.action_choose(0)
