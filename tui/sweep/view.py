"""Screen 7's widget: a table of points next to their plot, and the keys from a point to its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.binding import BindingType

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.sweeping.evaluating import candidate_of
from simcore.sweeping.pareto_front import Rule
from simcore.sweeping.point import Point
from simcore.sweeping.results_file import write_all
from simcore.sweeping.space import Candidate
from simcore.units import byte_size, plural
from tui.exporting import FileQuestion
from tui.frame import Line, cells, end_cut, rule, width_of, wrapped
from tui.frame_view import binding
from tui.prompt import Prompt
from tui.session import HistoryRun, Run, Session
from tui.sweep.asking import FORM, command_words, has_layouts, prepare_sweep, refusal_text, suggest_words
from tui.sweep.frame import (
    PlotAxis,
    intro_lines,
    join_columns,
    plane_lines,
    planes,
    rows_below,
    sentence_lines,
    table_width,
)
from tui.sweep.opening import difference_text
from tui.sweep.points import PointTable, point_lines
from tui.sweep.saved import SavedSweep
from tui.sweep.sweep_result import SweepResult
from tui.table_view import TableView, table_bindings

if TYPE_CHECKING:
    from tui.frame_view import ScreenState

_NO_POINT = "there is no point here: Enter begins a sweep"
_RESULTS = "results.jsonl"


class SweepView(TableView):
    """The points of the sweep: those that fit, the fastest first; and their plot."""

    table: PointTable

    BINDINGS: ClassVar[list[BindingType]] = [
        *table_bindings("sweep", "find a point: zb-h1, tp=4", "only points like zb-h1, front, tp*pp <= 16"),
        binding("i", "plane", "another plane: time or tokens/s over memory, GPUs or cost", "sweep.shown"),
        binding("U", "everything", "also equal points, too large, or not run", "sweep.show-hidden"),
        binding("enter", "go", "the timeline of this point; without a sweep: begin one", "sweep.go"),
        binding("t", "try", "make this point the run on the screen, and keep it", "sweep.try"),
        binding("m", "mark", "mark this point, to compare it with another (6)", "sweep.mark"),
        binding("equals_sign", "type", "type another sweep of what is open", "sweep.type"),
        binding("S", "save", "save the points as a file that wltui opens again", "sweep.save"),
        binding("escape", "leave", "stop the sweep; remove the filter; back to the timeline", "sweep.leave"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.table = PointTable(self._result or SweepResult("", Rule()))
        self.plane = 0
        self._marked_points: list[Point] = []
        # The point that is to be B, and its parameters, while the runs are simulated.
        self._comparing: Point | None = None
        self._compared_parameters = Parameters()
        self._point_count = 0
        self._typed = ""
        self._saved: SavedSweep | None = None
        self._path = _RESULTS
        self.hints = self._hints()

    @property
    def _result(self) -> SweepResult | None:
        return self._app.sweeping.result

    @property
    def _table_width(self) -> int:
        return table_width(self.size.width)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Returns only the keys that do something here and now."""
        shown_sweep = self._result
        if shown_sweep is None:
            return (("Enter", "sweep"), ("2", "timeline")) if not refusal_text(self.session.current) else ()
        hints = (
            [("Esc", "stop")]
            if shown_sweep.is_running
            else [("Esc", "no filter")]
            if self.table.typed
            else []
        )
        if not self.table.lines:
            return (*hints, ("U", "all points"), ("=", "another sweep"))
        hints += [("Enter", "timeline"), ("t", "try"), ("m", "mark"), ("6", "compare"), ("y", "command")]
        hints += [("i", "plane"), ("o", "sort"), ("\\", "filter"), ("n N", "match") if self._sought else
                  ("/", "find")]  # fmt: skip
        return (*hints, ("U", "all points"), ("S", "save"), ("=", "another sweep"))

    # -- the picture -----------------------------------------------------------------

    def frame(self, width: int, height: int) -> list[Line]:
        shown_sweep = self._result
        if shown_sweep is None:
            return self._intro_lines(width)
        self._take_points(shown_sweep)
        runs = shown_sweep.outcome.front.points
        available_planes = planes(runs) if runs else []
        self.plane %= max(len(available_planes), 1)
        plane = available_planes[self.plane] if available_planes else None
        split = table_width(width)
        if split == width:
            return self._narrow_lines(shown_sweep, plane, width, height)
        detail = self._detail_lines(split)
        left = [*self._table_lines(split, max(height - 3 - len(detail), 1)), *detail]
        plot_rows = max(height * 11 // 20, 8)
        right = plane_lines(
            shown_sweep,
            plane,
            self._cursor_point,
            self._marked_points,
            (width - split - 1, plot_rows),
            self.glyphs,
        )
        right += sentence_lines(shown_sweep, width - split - 1, height - len(right), self.glyphs)
        return join_columns(left, right, width, split, self.glyphs)

    def _narrow_lines(
        self, shown_sweep: SweepResult, plane: tuple[PlotAxis, PlotAxis] | None, width: int, height: int
    ) -> list[Line]:
        plot_rows, word_rows = rows_below(height)
        detail = self._detail_lines(width, short=True)
        # On a low screen the rows that no point needs.
        spare = max(height - 3 - len(self.table.lines), 0)
        if plot_rows:
            detail = detail[:1]
        else:
            detail = detail[:spare]
            word_rows = spare - len(detail)
        lines = self._table_lines(width, max(height - 3 - len(detail) - plot_rows - word_rows, 1))
        lines += detail
        lines += plane_lines(
            shown_sweep, plane, self._cursor_point, self._marked_points, (width, plot_rows), self.glyphs
        )
        return lines + sentence_lines(shown_sweep, width, word_rows, self.glyphs)

    def _intro_lines(self, width: int) -> list[Line]:
        run = self.session.current
        refused = refusal_text(run)
        if refused:
            return intro_lines([refused], "wltui sweep --help", width, self.glyphs)
        what = "every layout that fits its GPUs and its batch" if has_layouts(run) else (
            "the combinations of some values, like those of microbatches and schedule"
        )  # fmt: skip
        sentences = [
            "A sweep simulates many runs, each with other parameters, shows them here while they come in, "
            f"and says which are worth running. Of what is open here Enter sweeps {what}: the words for it "
            "are offered, and can be changed."
        ]
        return intro_lines(sentences, command_words(run, suggest_words(run)), width, self.glyphs)

    def _take_points(self, shown_sweep: SweepResult) -> None:
        """Adds new points to the table; the cursor stays on its point, or at the top while it is there."""
        if self.table.result is not shown_sweep:
            new = PointTable(shown_sweep)
            self.table, self._point_count = new, 0
            self._marked_points, self.line = [], 0
        if self._point_count == len(shown_sweep.points) and self._point_count:
            return
        at_top = self.line == 0
        here = self._current_mark() if self.line < len(self.table.lines) else None
        self._point_count = len(shown_sweep.points)
        was_empty = not self.table.lines
        self.table.refresh()
        if was_empty and self.table.lines and self.is_attached:
            # A point has keys of its own.
            self.app.call_later(lambda: self.show_hints(self._hints()))
        if self._saved is not None and shown_sweep.points:
            saved, self._saved = self._saved, None
            self._apply_saved(saved)
        elif at_top:
            self.line = 0
        else:
            self._go_back(here)

    @property
    def _cursor_point(self) -> Point | None:
        lines = self.table.lines
        return self.table.point(min(self.line, len(lines) - 1)) if lines else None

    def _detail_lines(self, width: int, short: bool = False) -> list[Line]:
        """Returns the point at the cursor in full; its figures alone where there is room for one line."""
        point = self._cursor_point
        if point is None:
            words = self.table.no_match(self.table.typed)
            return [rule(words, width, self.glyphs)]
        names = [name for name in point.layout if name not in ("world", "gpus")]
        first, *other_lines = point_lines(point, names)
        marks = "".join(
            f" {letter}" for letter, mark in zip("AB", self._marked_points, strict=False) if mark is point
        )
        title = f"Point {point.index}{f', marked{marks}' if marks else ''}"
        if not other_lines:
            return [rule(f"{title}: {first}", width, self.glyphs)]
        lines: list[Line] = [rule(f"{title}: {other_lines[-1]}", width, self.glyphs)]
        if not short and width_of([(f"{title}: {other_lines[-1]}", "")]) > width - 4:
            lines = [rule(title, width, self.glyphs)]
            lines += [[(f"  {line}", "")] for line in wrapped(other_lines[-1], width - 4)]
        # The complete layout: the table has what varies and fits.
        line = ""
        for word in first.split(", "):
            if len(line) + len(word) + 4 > width and line:
                lines.append([(f"  {line}", "dim")])
                line = ""
            line += f"{', ' if line else ''}{word}"
        return [*lines, [(f"  {end_cut(line, width - 2)}", "dim")]]

    def _title(self, columns: Any, width: int) -> Line:
        line = super()._title(columns, width)
        shown_sweep = self._result
        if shown_sweep is None or not shown_sweep.title:
            return line
        title: Line = [(f" {cells(shown_sweep.title, 30)}:", "bright"), *line]
        return title if width_of(title) <= width else line

    def show(self, results: Run) -> None:
        self.redraw()
        self.show_hints(self._hints())

    # -- a point and its run ---------------------------------------------------------

    def _selected_candidate(self) -> tuple[Point, Candidate] | None:
        """Returns the point at the cursor if it can be run; None, with a message, for others."""
        point = self._cursor_point
        return None if point is None else self._runnable(point)

    def _runnable(self, point: Point) -> tuple[Point, Candidate] | None:
        if not point.is_run and point.reason == "cannot be":
            self._app.say(f"point {point.index} was not run: {cells(point.skipped or '', 300)}")
            return None
        if self.session.running:
            self._app.say("a run is in progress: wait for it, or stop it (5, Esc)")
            return None
        try:
            return point, candidate_of(point)
        except UsageError as error:
            self._app.say(str(error))
            return None

    async def action_go(self) -> None:
        if self._result is None:
            self.action_type()
            return
        selected = self._selected_candidate()
        if selected is None:
            return
        point, candidate = selected
        self._show(point, candidate, lambda: self._open_timeline(point))

    def _show(self, point: Point, candidate: Candidate, then: Callable[[], None]) -> None:
        self._app.say(f"opening point {point.index}")
        self._app.runs.show(self._candidate_run(candidate), then)

    def _candidate_run(self, candidate: Candidate) -> HistoryRun:
        """Returns the run of a point: that of the history, if it is there."""
        new_run = HistoryRun(candidate.parameters, label=self.session.opened.setup.label)
        return self.session.find_same_run(new_run) or new_run

    def _open_timeline(self, point: Point) -> None:
        words = difference_text(point, self.session.current)
        self._app.say(words or f"point {point.index}; 7 has the sweep again")
        self._app.call_later(self._app.action_open, "timeline")

    def action_try(self) -> None:
        selected = self._selected_candidate()
        if selected is None:
            if self._cursor_point is None:
                self._app.say(_NO_POINT)
            return
        self._app.runs.try_run(self.session.opened.setup.with_parameters(selected[1].parameters))

    def action_mark(self) -> None:
        point = self._cursor_point
        if point is None:
            self._app.say(_NO_POINT)
            return
        if any(mark is point for mark in self._marked_points):
            self._marked_points = [mark for mark in self._marked_points if mark is not point]
        else:
            # A third mark replaces the second.
            self._marked_points = [*self._marked_points[:1], point]
        names = " and ".join(
            f"{letter} is point {mark.index}" for letter, mark in zip("AB", self._marked_points, strict=False)
        )
        self._app.say(f"{names}: 6 compares" if names else "no point is marked")
        self.redraw()

    def leads_to(self, name: str) -> bool:
        """Returns whether it compares two points, as 6 does: the marked ones, or one and that at the cursor,
        or the fastest.
        """
        cursor_point, shown_sweep = self._cursor_point, self._result
        if name != "compare" or cursor_point is None or shown_sweep is None:
            return False
        point, other = [*self._marked_points, cursor_point, cursor_point][:2]
        if not self._marked_points and shown_sweep.fastest is not None:
            point, other = shown_sweep.fastest, cursor_point
        if point is other:
            return False
        if self._comparing is other and self.session.current.parameters == self._compared_parameters:
            # Both runs are there: now screen 6 opens with them.
            self._comparing = None
            return False
        first, second = self._runnable(point), self._runnable(other)
        if first is None or second is None:
            return True
        self._app.say(f"A is point {point.index}, B is point {other.index}")
        self._comparing, self._compared_parameters = other, second[1].parameters
        self._app.runs.compare(self._candidate_run(second[1]), self._candidate_run(first[1]))
        return True

    @property
    def command(self) -> str | None:
        """The command line of the point at the cursor."""
        point, shown_sweep = self._cursor_point, self._result
        if point is None or shown_sweep is None:
            return None
        try:
            return candidate_of(point).command(shown_sweep.opened)
        except UsageError:
            return None

    # -- keys of its own -------------------------------------------------------------

    def action_plane(self) -> None:
        shown_sweep = self._result
        count = (
            len(planes(shown_sweep.outcome.front.points))
            if shown_sweep and shown_sweep.outcome.front.points
            else 0
        )
        if count < 2:
            self._app.say("these points differ in nothing else that could be drawn")
            return
        self.plane += 1
        self.redraw()

    def action_everything(self) -> None:
        here = self._current_mark()
        self.table.show_everything()
        self._go_back(here)
        hidden = sum(not (point.is_run and point.fits) for point in self.table.result.points)
        state_text = "are shown" if self.table.everything else "are hidden"
        self._app.say(f"{plural(hidden, 'point')} that {'does' if hidden == 1 else 'do'} not fit or "
                      f"{'was' if hidden == 1 else 'were'} not run {state_text}")  # fmt: skip
        self.changed()

    def action_type(self) -> None:
        """Asks for the words of a sweep of what is open."""
        refused = refusal_text(self.session.current)
        if refused:
            self._app.say(refused)
            return
        typed = self._typed or suggest_words(self.session.current)
        self._app.push_screen(Prompt("sweep", typed, form=FORM), self._typed_words)

    def _typed_words(self, typed: str | None) -> None:
        if not typed or not typed.strip():
            return
        self._typed = typed.strip()
        run = self.session.current
        title = cells(run.path.rpartition("/")[2], 40)
        self._app.sweeping.begin(title, lambda: prepare_sweep(run, typed))
        self.show(run)

    def action_save(self) -> None:
        shown_sweep = self._result
        if shown_sweep is None or not shown_sweep.points:
            self._app.say(_NO_POINT)
            return
        FileQuestion(self._app, self._write, self._app.say).ask("save the points as", self._path)

    def _write(self, path: str, force: bool) -> str:
        points = sorted(self.table.result.points, key=lambda point: point.index)
        size = write_all(path, points, force, self.table.result.outcome)
        self._path = path
        words = f"{plural(len(points), 'point')}, {byte_size(size)}"
        return f"saved: {cells(path, 100)}, {words}; wltui {cells(path, 60)} opens them"

    async def action_leave(self) -> None:
        if self._app.sweeping.stop():
            output = self._result.output if self._result is not None else ""
            self._app.say(f"stopped; {cells(output, 60)} has the points, --resume goes on" if output else
                          "stopped: what has come stays, S saves it")  # fmt: skip
        elif self.table.typed:
            here = self._current_mark()
            self.table.filter("")
            self._go_back(here)
            self.changed()
        else:
            await self._app.action_open("timeline")

    # -- the session -----------------------------------------------------------------

    def saved(self) -> ScreenState | None:
        # This is also called when the app has ended: then only the table is there.
        if not self.table.result.points:
            return None
        table, here = self.table, self._cursor_point
        return SavedSweep(
            table.key, table.descending, table.typed, table.everything, self.plane,
            None if here is None else here.index,
        )  # fmt: skip

    def restore(self, state: ScreenState, keeps_positions: bool) -> None:
        self._saved = cast("SavedSweep", state)
        if self._result is not None and self._result.points:
            saved, self._saved = self._saved, None
            self._apply_saved(saved)

    def _apply_saved(self, saved: SavedSweep) -> None:
        table = self.table
        table.everything = saved.everything
        keys = {key for key, _ in table.sorted_by.values()}
        table.typed = saved.typed
        table.sort(saved.key if saved.key in keys else "", saved.descending)
        self.plane = saved.plane
        self.line = 0 if saved.point is None else table.line_of(saved.point)
