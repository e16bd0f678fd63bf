"""Screen 8's widget: a table of steps next to their heat, and the keys from a step to its run."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from simcore.replay.slowdown import MOST_OPS
from simcore.replay.step_findings import StepFindings
from simcore.replay.step_table import LATE, MEASURES, StepTable
from simcore.shell_words import join_words
from simcore.trace.run import as_read
from simcore.words.step_words import describe_cause, describe_gain, describe_recurrence, describe_spread
from tui.frame import Line, fitted, rule, wrapped
from tui.frame_view import binding
from tui.session import HistoryRun, Run, Session
from tui.steps.frame import (
    GAP,
    HeatScale,
    find_scale,
    heat_cells,
    heat_title,
    heat_width,
    sparkline,
    word_lines,
)
from tui.steps.saved import SavedSteps
from tui.steps.table import StepListing
from tui.table_view import TableView, table_bindings

if TYPE_CHECKING:
    from simcore.runs.measured import RecordedRun
    from tui.background import IsCancelled, Progress
    from tui.frame_view import ScreenState

# More cells of step x rank, and calls in them, are counted behind the picture.
_MOST_AT_ONCE = 20_000
NO_STEPS = "One step is recorded here: this screen lists the steps of files that have several."
SIMULATED = (
    "This screen lists the steps of a measured run: profiler traces, rank traces, Chrome traces or a log."
)
COUNTING, PENDING = "adding up all steps", "reading and replaying all steps"
# Rows of sentences on a low screen, and on a high one.
_FEW_ROWS, _ROWS, _HIGH = 4, 7, 30
# Rows that what comes later has, where sentences take one row and where they take two.
_WIDE_ROWS, _NARROW_ROWS, _NARROW = 3, 4, 110


class StepsView(TableView):
    """The steps of a measured run: their times, who is late, and what each rank did."""

    table: StepListing

    BINDINGS: ClassVar[list[BindingType]] = [
        *table_bindings("steps", "find a step by its number", "only steps like rank 7, backward"),
        binding("i", "measure", "another measure of the heat: late by, compute, waits", "steps.shown"),
        binding("b", "slowest", "the slowest step", "steps.slowest"),
        binding("enter", "go", "open this step in the timeline", "steps.go"),
        binding("m", "mark", "mark this step, to compare another one with it (6)", "steps.mark"),
        binding("escape", "leave", "remove the filter; again: back to the timeline", "steps.leave"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.measure = MEASURES.index(LATE)
        self._subject: object = None
        self._marked_step: int | None = None
        # The steps that are to be A and B while they are read.
        self._comparing: tuple[int, int] | None = None
        self._scales: dict[str, HeatScale] = {}
        # What an earlier session had, until the table is there.
        self._saved: SavedSteps | None = None
        self._take_table()
        self.hints = self._hints()

    # -- the table -----------------------------------------------------------------------

    @property
    def _recording(self) -> RecordedRun | None:
        return cast("RecordedRun | None", as_read(self.session.current).recording)

    @property
    def _job(self) -> object:
        """What all steps of a job have in common: other steps of it have the same table, until a running job
        writes more of them.
        """
        setup, recording = self.session.opened.setup, self._recording
        rank_steps = () if recording is None else recording.measured.rank_steps
        count = sum(len(one.columns) for one in rank_steps)
        return setup.path, (setup.label or "").rpartition("#")[0], count

    @property
    def has_table(self) -> bool:
        """Whether the steps are known."""
        return self._subject == self._job

    def _take_table(self) -> None:
        """Makes the table of a run of few steps at once; that of others is made behind the picture."""
        recording = self._recording
        if recording is None or self.has_table:
            return
        columns = [one.columns for one in recording.measured.rank_steps]
        calls = (calls for steps in columns for calls in steps.calls.values())
        if sum(map(len, columns)) + sum(len(some.row) for some in calls) <= _MOST_AT_ONCE:
            self._show_table(recording.step_table)
        elif self.is_mounted:
            steps = self._app.step_tables.request(
                recording.measured.rank_steps, lambda _, __: _make_table(recording)
            )
            if steps is not None:
                self._show_table(steps)

    def _show_table(self, steps: StepTable | None) -> None:
        if steps is None:
            return
        before = self.table if self._subject is not None else None
        here = self._current_mark() if before is not None else self._shown_step()
        self._subject, self._scales = self._job, {}
        recording = self._recording
        recorded = None if recording is None else recording.measured.recorded
        figures = {} if recorded is None else {one.step_number: one.figures for one in recorded.steps}
        self.table = StepListing(steps, figures)
        if before is not None:
            # More steps of the same job.
            self.table.filter(before.typed)
            self.table.sort(before.key, before.descending)
        self.line = self.table.line_of(here) if here is not None else steps.slowest_row
        self._apply_saved()

    def _shown_step(self) -> int | None:
        """Returns the number of the step on the screens."""
        recording = self._recording
        return None if recording is None else recording.measured.shown_step

    def show(self, results: Run) -> None:
        self._take_table()
        self.changed()

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Returns only the keys that do something here and now."""
        if not self.has_table:
            return (("2", "timeline"),)
        with_what = "the marked one" if self._marked_step is not None else "the median one"
        hints = [("Enter", "open step"), ("6", f"beside {with_what}")]
        if len(self.table.steps.ranks) > 1:
            hints.append(("i", "measure"))
        hints += [("b", "slowest"), ("o", "sort"), ("m", "mark")]
        hints.append(("Esc", "no filter") if self.table.typed else ("\\", "filter"))
        hints.append(("n N", "match") if self._sought else ("/", "find"))
        return tuple(hints)

    # -- the session ---------------------------------------------------------------------

    def saved(self) -> ScreenState | None:
        if not self.has_table:
            return self._saved
        table, here = self.table, self._current_mark()
        return SavedSteps(
            self._measure, table.key, table.descending, table.typed, here if isinstance(here, int) else None
        )

    def restore(self, state: ScreenState, keeps_positions: bool) -> None:
        self._saved = cast("SavedSteps", state)
        if self.has_table:
            self._apply_saved()

    def _apply_saved(self) -> None:
        saved, self._saved = self._saved, None
        if saved is None:
            return
        self.measure = MEASURES.index(saved.measure)
        self.table.filter(saved.typed)
        keys = {key for key, _ in self.table.sorted_by.values()}
        self.table.sort(saved.key if saved.key in keys else "", saved.descending)
        if saved.step is not None:
            self.line = self.table.line_of(saved.step)

    # -- the picture ---------------------------------------------------------------------

    @property
    def _heat_width(self) -> int:
        return heat_width(self.size.width, len(self.table.steps.ranks))

    @property
    def _table_width(self) -> int:
        heat = self._heat_width
        room = self.size.width - (heat + GAP if heat else 0)
        return min(room, self.table.width_for(room)) if heat else room

    @property
    def _measure(self) -> str:
        return MEASURES[self.measure]

    def _scale(self) -> HeatScale:
        if self._measure not in self._scales:
            self._scales[self._measure] = find_scale(self.table.steps, self._measure)
        return self._scales[self._measure]

    def frame(self, width: int, height: int) -> list[Line]:
        had_table = self.has_table
        self._take_table()
        if not self.has_table:
            return self._lines_without(width)
        if not had_table and self.is_attached:
            self.app.call_later(lambda: self.show_hints(self._hints()))
        steps = self.table.steps
        at = self.table.lines[self.line] if self.table.lines else None
        lines: list[Line] = [rule(describe_spread(steps), width, self.glyphs)]
        lines.append([(" ", ""), *sparkline(steps, width - 2, at, self.glyphs)])
        lines += self._word_lines(width, _ROWS if height > _HIGH else _FEW_ROWS)
        return lines + self._table_lines(width, max(height - 3 - len(lines), 1))

    def _lines_without(self, width: int) -> list[Line]:
        recording = self._recording
        if recording is None:
            words = SIMULATED
        elif any(len(one.columns) > 1 for one in recording.measured.rank_steps):
            words = COUNTING
        else:
            words = NO_STEPS
        return [
            rule("Steps", width, self.glyphs),
            *([(f" {line}", "")] for line in wrapped(words, width - 2)),
        ]

    def _word_lines(self, width: int, rows: int) -> list[Line]:
        """Returns what is found in the steps; what takes all operations comes from behind the picture, and
        has its rows before, so that nothing moves.
        """
        sentences: list[str] = [describe_recurrence(self.table.steps)]
        findings = self._look_for_findings()
        if isinstance(findings, StepFindings):
            sentences += [describe_gain(findings), describe_cause(findings)]
        lines = word_lines([words for words in sentences if words], width, rows)
        if findings is not None:
            if findings == PENDING and len(lines) < rows:
                background = self._app.step_findings
                words = f"replaying {background.finished} of {background.total} steps"
                lines.append([(f" {words if background.total else PENDING}", "dim")])
            lines += [
                [] for _ in range(min(rows, _NARROW_ROWS if width < _NARROW else _WIDE_ROWS) - len(lines))
            ]
        return lines

    def _look_for_findings(self) -> StepFindings | str | None:
        """Returns what is found in all operations of all steps: PENDING until it is known, None where it is
        not looked for.
        """
        recording, steps = self._recording, self.table.steps
        if recording is None or len(steps.ranks) < 2 or not self.is_mounted:
            return None
        if sum(one.ops for one in recording.measured.rank_steps) > MOST_OPS:
            return None
        session, label = self.session, self._label("all")

        def find(progress: Progress, cancelled: IsCancelled) -> StepFindings | str:
            try:
                run = recording
                if not recording.has_all_steps:
                    if session.read is None or label is None:
                        return ""
                    run = cast("RecordedRun", session.read(label))
                return run.find_in_steps(cancelled, progress) or ""
            except (InputError, UsageError):
                # All steps together do not fit into memory: what is known of each stays.
                return ""

        findings: StepFindings | str | None = self._app.step_findings.request(steps, find)
        return PENDING if findings is None else findings

    def _table_lines(self, width: int, rows: int) -> list[Line]:
        lines = super()._table_lines(self._table_width, rows)
        heat = self._heat_width
        if not self.table.lines:
            return [*lines[:3], [(f" {self.table.no_match(self.table.typed)}", "dim")], *lines[4:]]
        if not heat:
            return lines
        room = self.size.width - self._table_width - GAP
        axis, full = heat_title(self.table.steps, self._scale(), heat, room, self.glyphs)
        columns = self.table.steps.measure(self._measure)
        title = f"{self._measure}, by rank"
        title = title if len(title) <= room else self._measure
        heat_lines: list[Line] = [[(title, "bright")], [(axis, "dim")], [(full, "dim")]]
        count = len(self.table.lines)
        in_view = self.table.lines[self.top : min(self.top + rows, count)]
        heat_lines += [heat_cells(columns, at, heat, self._scale(), self.glyphs) for at in in_view]
        heat_lines += [[] for _ in range(len(lines) - len(heat_lines))]
        return [
            [*fitted(line, self._table_width + GAP), *more]
            for line, more in zip(lines, heat_lines, strict=True)
        ]

    # -- keys ----------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Returns whether a key does something: without a table only the one that leaves."""
        is_of_table = any(
            one.action.partition("(")[0] == action for one in self.BINDINGS if isinstance(one, Binding)
        )
        return self.has_table or not is_of_table or action == "leave"

    def action_measure(self) -> None:
        """Shows another measure in the heat."""
        self.measure = (self.measure + 1) % len(MEASURES)
        self.redraw()

    def action_slowest(self) -> None:
        """Moves the cursor to the slowest step."""
        if self.has_table:
            steps = self.table.steps
            self.line = self.table.line_of(steps.steps[steps.slowest_row])
            self.redraw()

    def action_mark(self) -> None:
        """Marks the step under the cursor, or removes its mark."""
        step = self._current_step()
        if step is None:
            return
        self._marked_step = None if self._marked_step == step else step
        words = f"step {step} is A: 6 on another step compares them"
        self._app.say("no step is marked" if self._marked_step is None else words)
        self.changed()

    def _current_step(self) -> int | None:
        mark: Hashable | None = self._current_mark() if self.has_table else None
        return mark if isinstance(mark, int) else None

    def _label(self, step: int | str) -> str | None:
        """Returns the label by which a step of the job is opened; None where it cannot be."""
        label = self.session.opened.setup.label or ""
        return f"{label.rpartition('#')[0]}#{step}" if "#" in label else None

    def _step_run(self, step: int) -> HistoryRun | None:
        label = self._label(step)
        if label is None:
            self._app.say("these files open as a whole: no step of theirs can be opened alone")
            return None
        new_run = HistoryRun(Parameters(), label=label)
        return self.session.find_same_run(new_run) or new_run

    async def action_go(self) -> None:
        """Opens the step under the cursor in the timeline."""
        step = self._current_step()
        run = None if step is None else self._step_run(step)
        if run is None or self._is_running():
            return
        self._app.say(f"opening step {step}")
        self._app.runs.show(run, lambda: self._open_timeline(step or 0))

    def _is_running(self) -> bool:
        if self.session.running:
            self._app.say("a run is in progress: wait for it, or stop it (5, Esc)")
        return self.session.running

    def _open_timeline(self, step: int) -> None:
        self._app.say(f"step {step}; 8 has all steps again")
        self._app.call_later(self._app.action_open, "timeline")

    def leads_to(self, name: str) -> bool:
        """Returns whether it compares the step under the cursor, as 6 does, with the marked one, else with
        the median one, else the slowest one with that.
        """
        step = self._current_step()
        if name != "compare" or step is None:
            return False
        steps = self.table.steps
        other = self._marked_step if self._marked_step is not None else steps.steps[steps.median_row]
        if step == other:
            step = steps.steps[steps.slowest_row]
        if step == other or self._label(step) is None:
            return False
        if self._comparing == (other, step) and self._shown_step() == step:
            # Both are there: now screen 6 opens with them.
            self._comparing = None
            return False
        first, second = self._step_run(other), self._step_run(step)
        if first is None or second is None or self._is_running():
            return True
        which = "the marked" if self._marked_step is not None else "the median"
        self._app.say(f"A is step {other}, {which} one, B is step {step}")
        self._comparing = other, step
        self._app.runs.compare(second, first)
        return True

    @property
    def command(self) -> str | None:
        """The command line of the step at the cursor."""
        step = self._current_step()
        if step is None or self._label(step) is None:
            return None
        return join_words(["wltui", self.session.current.path, "--step", str(step)])

    async def action_leave(self) -> None:
        """Removes the filter, else goes back to the timeline."""
        if self.has_table and self.table.typed:
            self.table.filter("")
            self.changed()
        else:
            await self._app.action_open("timeline")


def _make_table(recording: RecordedRun) -> StepTable | None:
    table = recording.step_table
    if table is not None:
        # What the first picture takes.
        _ = table.rows, table.find_difference(0)
    return table
