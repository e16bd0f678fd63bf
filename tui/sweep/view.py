"""Screen 7's widget: a table of points beside their plot, and what leads from a point to its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.binding import BindingType

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.sweeping.evaluating import candidate_of
from simcore.sweeping.front import Rule
from simcore.sweeping.point import Point
from simcore.sweeping.results_file import write_all
from simcore.sweeping.space import Candidate
from simcore.units import byte_size, plural
from tui.exporting import FileQuestion
from tui.frame import Line, cells, end_cut, rule, width_of, wrapped
from tui.frame_view import binding
from tui.prompt import Prompt
from tui.session import KeptRun, Run, Session
from tui.sweep.asking import FORM, command_words, is_model, prepared, suggested, why_not
from tui.sweep.found import ShownSweep
from tui.sweep.frame import (
    PlotAxis,
    beside,
    plane_lines,
    planes,
    rows_below,
    said_lines,
    table_width,
    without,
)
from tui.sweep.opening import differs
from tui.sweep.points import PointTable, details
from tui.sweep.saved import SavedSweep
from tui.table_view import TableView, table_bindings

if TYPE_CHECKING:
    from tui.frame_view import ScreenState

_NO_POINT = "there is no point here: Enter begins a sweep"
_RESULTS = "results.jsonl"


class SweepView(TableView):
    """The points of the sweep: those that fit, the fastest first; and how they lie to each other."""

    table: PointTable

    BINDINGS: ClassVar[list[BindingType]] = [
        *table_bindings("sweep", "find a point: zb-h1, tp=4", "only points like zb-h1, front, tp*pp <= 16"),
        binding("i", "plane", "another plane: time or tokens/s over memory, GPUs or cost", "sweep.shown"),
        binding("U", "everything", "also points alike, too large, or not run", "sweep.show-hidden"),
        binding("enter", "go", "the timeline of this point; without a sweep: begin one", "sweep.go"),
        binding("t", "try", "make this point the run on the screen, and keep it", "sweep.try"),
        binding("m", "mark", "mark this point, to compare it with another (6)", "sweep.mark"),
        binding("equals_sign", "type", "type another sweep of what is open", "sweep.type"),
        binding("S", "save", "save the points as a file that wltui opens again", "sweep.save"),
        binding("escape", "leave", "stop the sweep; remove the filter; back to the timeline", "sweep.leave"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.table = PointTable(self._found or ShownSweep("", Rule()))
        self.plane = 0
        self._marked: list[Point] = []
        # The point that is to be B, and its parameters, while the runs are found.
        self._comparing: Point | None = None
        self._asked = Parameters()
        self._of = 0
        self._typed = ""
        self._saved: SavedSweep | None = None
        self._path = _RESULTS
        self.hints = self._hints()

    @property
    def _found(self) -> ShownSweep | None:
        return self._app.sweeping.found

    @property
    def _table_width(self) -> int:
        return table_width(self.size.width)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Only keys that do something here and now."""
        shown_sweep = self._found
        if shown_sweep is None:
            return (("Enter", "sweep"), ("2", "timeline")) if not why_not(self.session.current) else ()
        hints = (
            [("Esc", "stop")] if shown_sweep.goes_on else [("Esc", "no filter")] if self.table.typed else []
        )
        if not self.table.lines:
            return (*hints, ("U", "all points"), ("=", "another sweep"))
        hints += [("Enter", "timeline"), ("t", "try"), ("m", "mark"), ("6", "compare"), ("y", "command")]
        hints += [("i", "plane"), ("o", "sort"), ("\\", "filter"), ("n N", "match") if self._sought else
                  ("/", "find")]  # fmt: skip
        return (*hints, ("U", "all points"), ("S", "save"), ("=", "another sweep"))

    # -- the picture -----------------------------------------------------------------

    def frame(self, width: int, height: int) -> list[Line]:
        shown_sweep = self._found
        if shown_sweep is None:
            return self._without(width)
        self._take_points(shown_sweep)
        runs = shown_sweep.outcome.front.points
        there = planes(runs) if runs else []
        self.plane %= max(len(there), 1)
        plane = there[self.plane] if there else None
        split = table_width(width)
        if split == width:
            return self._narrow(shown_sweep, plane, width, height)
        detail = self._detail(split)
        left = [*self._table_lines(split, max(height - 3 - len(detail), 1)), *detail]
        plot_rows = max(height * 11 // 20, 8)
        right = plane_lines(
            shown_sweep, plane, self._here_point, self._marked, (width - split - 1, plot_rows), self.glyphs
        )
        right += said_lines(shown_sweep, width - split - 1, height - len(right), self.glyphs)
        return beside(left, right, width, split, self.glyphs)

    def _narrow(
        self, shown_sweep: ShownSweep, plane: tuple[PlotAxis, PlotAxis] | None, width: int, height: int
    ) -> list[Line]:
        plot_rows, word_rows = rows_below(height)
        detail = self._detail(width, short=True)[: 1 if plot_rows else 0]
        lines = self._table_lines(width, max(height - 3 - len(detail) - plot_rows - word_rows, 1))
        lines += detail
        lines += plane_lines(
            shown_sweep, plane, self._here_point, self._marked, (width, plot_rows), self.glyphs
        )
        return lines + said_lines(shown_sweep, width, word_rows, self.glyphs)

    def _without(self, width: int) -> list[Line]:
        run = self.session.current
        refused = why_not(run)
        if refused:
            return without([refused], "wltui sweep --help", width, self.glyphs)
        what = "every layout that fits its GPUs and its batch" if is_model(run) else (
            "the combinations of some values, like those of microbatches and schedule"
        )  # fmt: skip
        how = [
            "A sweep simulates many runs, each with other parameters, shows them here while they come in, "
            f"and says which are worth running. Of what is open here Enter sweeps {what}: the words for it "
            "are offered, and can be changed."
        ]
        return without(how, command_words(run, suggested(run)), width, self.glyphs)

    def _take_points(self, shown_sweep: ShownSweep) -> None:
        """What has come into the table; the cursor stays on its point, or at the top while it is there."""
        if self.table.found is not shown_sweep:
            new = PointTable(shown_sweep)
            self.table, self._of = new, 0
            self._marked, self.line = [], 0
        if self._of == len(shown_sweep.points) and self._of:
            return
        at_top = self.line == 0
        here = self._here() if self.line < len(self.table.lines) else None
        self._of = len(shown_sweep.points)
        self.table.refresh()
        if self._saved is not None and shown_sweep.points:
            saved, self._saved = self._saved, None
            self._restored(saved)
        elif at_top:
            self.line = 0
        else:
            self._go_back(here)

    @property
    def _here_point(self) -> Point | None:
        lines = self.table.lines
        return self.table.point(min(self.line, len(lines) - 1)) if lines else None

    def _detail(self, width: int, short: bool = False) -> list[Line]:
        """What the point at the cursor is, in full; its figures alone where there is room for one line."""
        point = self._here_point
        if point is None:
            words = self.table.no_match(self.table.typed)
            return [rule(words, width, self.glyphs)]
        names = [name for name in point.layout if name not in ("world", "gpus")]
        first, *rest = details(point, names)
        marks = "".join(
            f" {letter}" for letter, mark in zip("AB", self._marked, strict=False) if mark is point
        )
        title = f"Point {point.number}{f', marked{marks}' if marks else ''}"
        if not rest:
            return [rule(f"{title}: {first}", width, self.glyphs)]
        lines: list[Line] = [rule(f"{title}: {rest[-1]}", width, self.glyphs)]
        if not short and width_of([(f"{title}: {rest[-1]}", "")]) > width - 4:
            lines = [rule(title, width, self.glyphs)]
            lines += [[(f"  {line}", "")] for line in wrapped(rest[-1], width - 4)]
        # All of the layout: the table has what varies and fits.
        line = ""
        for word in first.split(", "):
            if len(line) + len(word) + 4 > width and line:
                lines.append([(f"  {line}", "dim")])
                line = ""
            line += f"{', ' if line else ''}{word}"
        return [*lines, [(f"  {end_cut(line, width - 2)}", "dim")]]

    def _title(self, columns: Any, width: int) -> Line:
        line = super()._title(columns, width)
        shown_sweep = self._found
        if shown_sweep is None or not shown_sweep.title:
            return line
        title: Line = [(f" {cells(shown_sweep.title, 30)}:", "bright"), *line]
        return title if width_of(title) <= width else line

    def show(self, results: Run) -> None:
        self.redraw()
        self.show_hints(self._hints())

    # -- a point and its run ---------------------------------------------------------

    def _chosen(self) -> tuple[Point, Candidate] | None:
        """The point at the cursor that can be run; None, which is said, for others."""
        point = self._here_point
        return None if point is None else self._runnable(point)

    def _runnable(self, point: Point) -> tuple[Point, Candidate] | None:
        if not point.is_run and point.reason == "cannot be":
            self._app.say(f"point {point.number} was not run: {cells(point.skipped or '', 300)}")
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
        if self._found is None:
            self.action_type()
            return
        chosen = self._chosen()
        if chosen is None:
            return
        point, candidate = chosen
        self._show(point, candidate, lambda: self._opened(point))

    def _show(self, point: Point, candidate: Candidate, then: Callable[[], None]) -> None:
        self._app.say(f"opening point {point.number}")
        self._app.runs.show(self._kept(candidate), then)

    def _kept(self, candidate: Candidate) -> KeptRun:
        """The run of a point: that of the history, where it has it."""
        wanted = KeptRun(candidate.parameters, label=self.session.opened.setup.label)
        return self.session.kept_like(wanted) or wanted

    def _opened(self, point: Point) -> None:
        words = differs(point, self.session.current)
        self._app.say(words or f"point {point.number}; 7 has the sweep again")
        self._app.call_later(self._app.action_open, "timeline")

    def action_try(self) -> None:
        chosen = self._chosen()
        if chosen is None:
            if self._here_point is None:
                self._app.say(_NO_POINT)
            return
        self._app.runs.try_run(self.session.opened.setup.under(chosen[1].parameters))

    def action_mark(self) -> None:
        point = self._here_point
        if point is None:
            self._app.say(_NO_POINT)
            return
        if any(mark is point for mark in self._marked):
            self._marked = [mark for mark in self._marked if mark is not point]
        else:
            # A third mark takes the place of the second.
            self._marked = [*self._marked[:1], point]
        names = " and ".join(
            f"{letter} is point {mark.number}" for letter, mark in zip("AB", self._marked, strict=False)
        )
        self._app.say(f"{names}: 6 compares" if names else "no point is marked")
        self.redraw()

    def leads_to(self, name: str) -> bool:
        """6 with two points compares them: the marked ones, or one and that at the cursor, or the fastest."""
        here, shown_sweep = self._here_point, self._found
        if name != "compare" or here is None or shown_sweep is None:
            return False
        point, other = [*self._marked, here, here][:2]
        if not self._marked and shown_sweep.fastest is not None:
            point, other = shown_sweep.fastest, here
        if point is other:
            return False
        if self._comparing is other and self.session.current.parameters == self._asked:
            # Both runs are there: now screen 6 opens with them.
            self._comparing = None
            return False
        first, second = self._runnable(point), self._runnable(other)
        if first is None or second is None:
            return True
        self._app.say(f"A is point {point.number}, B is point {other.number}")
        self._comparing, self._asked = other, second[1].parameters
        self._app.runs.compare(self._kept(second[1]), self._kept(first[1]))
        return True

    @property
    def command(self) -> str | None:
        """The command line of the point at the cursor."""
        point, shown_sweep = self._here_point, self._found
        if point is None or shown_sweep is None:
            return None
        try:
            return candidate_of(point).command(shown_sweep.opened)
        except UsageError:
            return None

    # -- keys of its own -------------------------------------------------------------

    def action_plane(self) -> None:
        shown_sweep = self._found
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
        here = self._here()
        self.table.show_everything()
        self._go_back(here)
        hidden = sum(not (point.is_run and point.fits) for point in self.table.found.points)
        shown = "are shown" if self.table.everything else "are hidden"
        self._app.say(f"{plural(hidden, 'point')} that {'does' if hidden == 1 else 'do'} not fit or "
                      f"{'was' if hidden == 1 else 'were'} not run {shown}")  # fmt: skip
        self.changed()

    def action_type(self) -> None:
        """Ask for the words of a sweep of what is open."""
        refused = why_not(self.session.current)
        if refused:
            self._app.say(refused)
            return
        typed = self._typed or suggested(self.session.current)
        self._app.push_screen(Prompt("sweep", typed, form=FORM), self._typed_words)

    def _typed_words(self, typed: str | None) -> None:
        if not typed or not typed.strip():
            return
        self._typed = typed.strip()
        run = self.session.current
        title = cells(run.path.rpartition("/")[2], 40)
        self._app.sweeping.begin(title, lambda: prepared(run, typed))
        self.show(run)

    def action_save(self) -> None:
        shown_sweep = self._found
        if shown_sweep is None or not shown_sweep.points:
            self._app.say(_NO_POINT)
            return
        FileQuestion(self._app, self._write, self._app.say).ask("save the points as", self._path)

    def _write(self, path: str, force: bool) -> str:
        points = sorted(self.table.found.points, key=lambda point: point.number)
        size = write_all(path, points, force)
        self._path = path
        words = f"{plural(len(points), 'point')}, {byte_size(size)}"
        return f"saved: {cells(path, 100)}, {words}; wltui {cells(path, 60)} opens them"

    async def action_leave(self) -> None:
        if self._app.sweeping.stop():
            output = self._found.output if self._found is not None else ""
            self._app.say(f"stopped; {cells(output, 60)} has the points, --resume goes on" if output else
                          "stopped: what has come stays, S saves it")  # fmt: skip
        elif self.table.typed:
            here = self._here()
            self.table.filter("")
            self._go_back(here)
            self.changed()
        else:
            await self._app.action_open("timeline")

    # -- the session -----------------------------------------------------------------

    def saved(self) -> ScreenState | None:
        # Asked for when the app has ended, too: then the table alone is there.
        if not self.table.found.points:
            return None
        table, here = self.table, self._here_point
        return SavedSweep(
            table.key, table.descending, table.typed, table.everything, self.plane,
            None if here is None else here.number,
        )  # fmt: skip

    def restore(self, state: ScreenState, places: bool) -> None:
        self._saved = cast("SavedSweep", state)
        if self._found is not None and self._found.points:
            saved, self._saved = self._saved, None
            self._restored(saved)

    def _restored(self, saved: SavedSweep) -> None:
        table = self.table
        table.everything = saved.everything
        known = {key for key, _ in table.sorted_by.values()}
        table.typed = saved.typed
        table.sort(saved.key if saved.key in known else "", saved.descending)
        self.plane = saved.plane
        self.line = 0 if saved.point is None else table.line_of(saved.point)
