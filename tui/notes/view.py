"""All diagnostics, with their place in the file."""

from __future__ import annotations

import os
import textwrap
from typing import ClassVar

from textual.binding import BindingType

from simcore.units import plural
from tui.frame import Line, cells, rule
from tui.screen_view import ScreenView, binding

_ROLES = {"error": "worse", "warning": "warn", "note": "dim"}
_INDENT = 30


class NotesView(ScreenView):
    """What was assumed, ignored, or does not fit."""

    hints = (("jk", "scroll"), ("2", "timeline"))
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("j,down", "scroll(1)", "down", "notes.down"),
        binding("k,up", "scroll(-1)", "up", "notes.up"),
        binding("pagedown", "scroll(20)", "page down", "notes.page-down"),
        binding("pageup", "scroll(-20)", "page up", "notes.page-up"),
        binding("escape", "app.open('timeline')", "back to the timeline", "notes.leave"),
    ]
    top = 0

    def draw(self, width: int, height: int) -> list[Line]:
        run = self.session.current
        found = run.diagnostics
        lines = [rule(f"{plural(len(found), 'note')} on the file and the run", width, self.glyphs)]
        for one in found:
            place = f"line {one.line}" if one.line is not None else "run"
            if one.line is not None and one.column is not None:
                place += f", column {one.column}"
            # Of a run of many files a note says which one it is about.
            of_file = "" if one.file in ("", run.path) else f"{cells(os.path.basename(one.file), 80)}: "
            words = textwrap.wrap(
                f"{of_file}{cells(one.message, 2000)}  [{one.code}]", max(width - _INDENT - 1, 20)
            )
            first: Line = [(f" {one.severity:<8}", _ROLES[one.severity]), (f"{place:<{_INDENT - 9}}", "")]
            lines.append([*first, (words[0], "")])
            lines += [[(" " * _INDENT + more, "")] for more in words[1:]]
        self.top = max(0, min(self.top, len(lines) - height))
        return lines[self.top :]

    def action_scroll(self, by: int) -> None:
        self.top += by
        self.redraw()
