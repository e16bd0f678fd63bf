"""All diagnostics, with their location in the file; each leads to its line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from simcore.units import plural
from tui.frame import Line, cells, rule, wrapped
from tui.frame_view import ScreenView, binding
from tui.notes.listing import ROLES, NoteList, SourceLines, describe_weights, note_lines
from tui.panel import Panel, TryPanel
from tui.prompt import LivePrompt
from tui.session import Run, Session, notes_of

if TYPE_CHECKING:
    from simcore.diagnostics import Diagnostic
    from simcore.executing.execution_result import Execution
    from simcore.parameters import RunInput
    from tui.runs.runs import RunsHost

# The least rows below the notes for lines of the file; the largest file that is read for them, bytes; and the
# most lines before and behind the marked one.
_LEAST_SOURCE, _MOST_BYTES, _MOST_AROUND = 7, 2_000_000, 30

NONE_MATCHES = "no note has these words"
WHAT_MADE_THE_ROWS = "what made the rows"
NO_LINE = "a note on the run, not on a line of the file"
NOT_TAKEN = "Files that are there and not taken"
NO_NOTE = "no note; the parameters in force stand on screen 5"


class NotesView(ScreenView):
    """What was assumed, ignored, or does not fit."""

    BINDINGS: ClassVar[list[BindingType]] = [
        binding("j,down", "move(1)", "next note", "notes.down"),
        binding("k,up", "move(-1)", "note above", "notes.up"),
        binding("pagedown", "move(10)", "ten notes down", "notes.page-down"),
        binding("pageup", "move(-10)", "ten notes up", "notes.page-up"),
        binding("g,home", "move(-10000000)", "first note", "notes.first"),
        binding("G,end", "move(10000000)", "last note", "notes.last"),
        binding("enter", "line", "the line of the file that it is about", "notes.line"),
        binding("backslash", "filter", "show only notes with these words", "notes.filter"),
        binding("escape", "leave", "remove the filter; again: back to the timeline", "notes.leave"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.notes = NoteList(session.current.path, notes_of(session))
        self._listed_diagnostics = session.current.diagnostics
        self.focus_at = self.top = 0
        self._is_behind_hidden = False
        self._prompt: LivePrompt | None = None
        self._previous_filter: tuple[int, str] = (0, "")
        self._cached_source: tuple[tuple[str, int, int], SourceLines] | None = None
        self.hints = self._hints()

    @property
    def _app(self) -> RunsHost:
        return cast("RunsHost", self.app)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Returns only the keys that do something here and now."""
        hints = []
        if len(self.notes):
            takes = self.notes[self.focus_at].code == "files-not-taken"
            hints = [("jk", "note"), ("Enter", "run with them" if takes else "its line")]
        hints.append(("Esc", "no filter") if self.notes.typed else ("\\", "filter"))
        if self._is_behind_hidden:
            hints.append(("G", WHAT_MADE_THE_ROWS))
        return (*hints, ("2", "timeline"))

    def show(self, results: Run) -> None:
        self._listed_diagnostics = results.diagnostics
        self.notes = NoteList(results.path, notes_of(self.session), self.notes.typed)
        self.action_move(0)

    def frame(self, width: int, height: int) -> list[Line]:
        if self._listed_diagnostics is not self.session.current.diagnostics:
            # The effect of an assumption was computed in the background.
            self.show(self.session.current)
        notes = self.notes
        whose, counts = " on the file and the run", describe_weights(notes.all)
        title = f"{plural(len(notes.all), 'note')}{whose}{counts}"
        if notes.typed:
            title = f"{len(notes)} of {plural(len(notes.all), 'note')}: {cells(notes.typed, 40)}"
        model_lines = self._model_lines(width)
        if not len(notes):
            none = f" {NONE_MATCHES if notes.typed else NO_NOTE}"
            return [rule(title, width, self.glyphs), [(none, "dim")], *model_lines]
        hidden = bool(model_lines) and not self._has_room(model_lines, width, height)
        model_lines = [] if hidden else model_lines
        if hidden != self._is_behind_hidden:
            # What made the rows is computed after the first drawing.
            self._is_behind_hidden = hidden
            self.call_later(lambda: self.show_hints(self._hints()))
        rows = max(height - 1 - len(model_lines), 1)
        self.top = notes.first_in_view(self.top, self.focus_at, rows, width)
        lines: list[Line] = []
        index = self.top
        while index < len(notes) and len(lines) < rows:
            is_at_cursor = index == self.focus_at
            first, *more = notes.lines(index, width)
            lines += [
                [(">" if is_at_cursor else " ", "accent"), *first],
                *([(" ", ""), *line] for line in more),
            ]
            index += 1
        # The last note may be truncated: it does not count as seen.
        below = len(notes) - index + (len(lines) > rows)
        if self.top or below:
            title += f"{f', {self.top} above' * bool(self.top)}{f', {below} below' * bool(below)}"
            title = title if len(title) + 4 <= width else title.replace(whose, "", 1)
        source = self._source(width, rows - len(lines))
        return [rule(title, width, self.glyphs), *lines[:rows], *model_lines, *source]

    def _has_room(self, behind: list[Line], width: int, height: int) -> bool:
        """Returns whether what made the rows stands below the notes: where all of them fit above it, or below
        the last one, where the cursor is on that.
        """
        rows, last = height - 1 - len(behind), len(self.notes) - 1
        return self.notes.fits(0, rows, width) or (
            self.focus_at == last and self.notes.fits(last, rows, width)
        )

    def _model_lines(self, width: int) -> list[Line]:
        """Returns what made the rows of the file, under the title that the summary has for it; empty until it
        is known. It is no note: a run does not use it.
        """
        if not self.is_mounted:
            return []
        model_behind = self._app.models_behind.recovered(self.session.current)
        if model_behind is None:
            return []
        lines = [[(f" {line}", "")] for line in wrapped(cells(model_behind.paragraph(), 2000), width - 2)]
        return [[], rule(cells(model_behind.title(), 200), width, self.glyphs), *lines]

    def _source(self, width: int, rows: int) -> list[Line]:
        """Returns the lines of the file around the one that the note at the cursor is about, in rows that no
        note needs.
        """
        diagnostic = self.notes[self.focus_at]
        if not self.is_mounted:
            return []
        path = diagnostic.file or self.session.current.path
        stamp = (
            self.session.stamps.get(path) if rows >= _LEAST_SOURCE and diagnostic.line is not None else None
        )
        if diagnostic.line is None or stamp is None or stamp.bytes > _MOST_BYTES:
            return []
        # The blank row, the heading, and the mark of a column.
        key = (path, diagnostic.line, min((rows - 4) // 2, _MOST_AROUND))
        if self._cached_source is None or self._cached_source[0] != key:
            self._cached_source = key, SourceLines(path, diagnostic.line, stamp, key[2])
        source = self._cached_source[1]
        if source.problem:
            return []
        title = f"{cells(os.path.basename(path), 60)}, {NoteList.location_text(diagnostic)}"
        return [[], rule(title, width, self.glyphs), *source.draw(diagnostic.column, width, self.glyphs)]

    def changed(self) -> None:
        """Shows the current state, and the keys that do something there."""
        self.redraw()
        self.show_hints(self._hints())

    def action_move(self, by: int) -> None:
        self.focus_at = max(0, min(self.focus_at + by, len(self.notes) - 1))
        self.changed()

    def action_line(self) -> None:
        """Shows the line of the file, its column marked."""
        if not len(self.notes):
            return
        diagnostic = self.notes[self.focus_at]
        path = diagnostic.file or self.session.current.path
        source, title = None, NO_LINE
        if diagnostic.line is not None:
            source = SourceLines(path, diagnostic.line, self.session.stamps.get(path))
            title = f"{cells(os.path.basename(path), 60)}, {NoteList.location_text(diagnostic)}"
        glyphs, role = self.glyphs, ROLES[diagnostic.weight]
        taking = self._setup_with_files(diagnostic)
        if taking is not None:
            title, ending = NOT_TAKEN, "t runs it with them, Esc closes"
            panel = TryPanel(
                title, lambda width: note_lines(diagnostic, None, width, glyphs, role), glyphs, ending
            )
            self._app.push_screen(panel, lambda yes: self._run_setup(taking) if yes else None)
            return
        self._app.push_screen(
            Panel(title, lambda width: note_lines(diagnostic, source, width, glyphs, role), glyphs)
        )

    def _setup_with_files(self, diagnostic: Diagnostic) -> RunInput | None:
        """Returns the run that uses the sibling files which a note says were not used; None for
        other notes.
        """
        if diagnostic.code != "files-not-taken":
            return None
        # Imported here: no other run has such files.
        from simcore.executing.sibling_files import with_sibling_files

        return with_sibling_files(cast("Execution", self.session.current.setup))

    def _run_setup(self, setup: RunInput) -> None:
        """Runs that setup and keeps the run."""
        self._app.runs.try_run(setup)

    def action_filter(self) -> None:
        """Filters by the words while they are typed; Esc leaves the list as it was."""
        self._previous_filter = self.focus_at, self.notes.typed
        self._prompt = LivePrompt("filter", self.notes.typed, self._filter_typed)
        self._app.push_screen(self._prompt, self._finish_filter)

    def _filter_typed(self, text: str) -> None:
        self._filter(text)
        if self._prompt is not None:
            self._prompt.show_answer(f"{len(self.notes)} of {plural(len(self.notes.all), 'note')}")

    def _filter(self, text: str) -> None:
        """Sets another filter; the cursor stays on its note if that is left."""
        here = self.notes[self.focus_at] if len(self.notes) else None
        self.notes.filter(text)
        self.focus_at = 0 if here is None else self.notes.index_of(here)
        self.changed()

    def _finish_filter(self, text: str | None) -> None:
        self._prompt = None
        if text is None:
            focus, typed = self._previous_filter
            self.notes.filter(typed)
            self.focus_at = focus
        self.changed()

    async def action_leave(self) -> None:
        """Clears the filter, else goes back to the timeline."""
        if self.notes.typed:
            self._filter("")
        else:
            await self._app.action_open("timeline")
