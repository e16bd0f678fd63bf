"""`R`: the history of runs, to show one, to name, remove and compare them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.worker import get_current_worker

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from simcore.records import NamedTuple
from simcore.shell_words import quote_word
from simcore.trace.figures import KnownStep, compare_by_work, is_other_work
from simcore.units import duration, plural
from tui.chrome import run_difference
from tui.frame import Glyphs, Line, cells, fitted, width_of, wrapped
from tui.panel import TO_SCREENS, Panel
from tui.prompt import Prompt
from tui.session import HistoryRun, Run, Session
from tui.state.session_content import MOST_NAME

HOW_TO_KEEP = "r on screen 5 keeps the run that is shown; t tries a change"
MARK_FIRST = "mark another run with Space first: it is compared with this one"
OPENED_STAYS = "the run as opened stays: the others are compared with it"
_NAME = 22
_STEP = 12
_DIFFERENCE = 28
_EACH = 13
_TOKENS = 9
# On narrower screens throughput stands in a line with the flags; the flags have one where they are long.
_WIDE = 100
# The most rows that a run's flags have.
_FLAG_ROWS = 3
# With two runs their difference says which one is faster.
_LEAST_RUNS = 3


def heading(width: int, with_each: bool = False, with_tokens: bool = False) -> Line:
    """Returns the heading of the columns. with_each, with_tokens: whether a run has micro-batches, tokens."""
    line = f"     run  {'name':<{_NAME}} {'step':>{_STEP}}  {'vs run 1':<{_DIFFERENCE - 1}}"
    if width >= _WIDE:
        line += f"{'a micro-batch':>{_EACH}}  " if with_each else ""
        line += f"{'tokens/s':>{_TOKENS}}  " if with_tokens else ""
        line += "parameters"
    return [(line, "dim")]


def run_lines(
    session: Session, cursor_index: int, marked_runs: list[HistoryRun], width: int
) -> list[list[Line]]:
    """Returns the lines of each run. cursor_index: the run with the cursor. marked_runs: those to compare, A
    first.
    """
    is_wide = width >= _WIDE
    heads: list[tuple[Line, str, str]] = []
    first = session.history[0]
    current_run = session.find_in_history(session.current)
    extreme_of = _extremes(session.history)
    with_each, with_tokens = has_columns(session.history)
    run_numbers = {run: run_number for run_number, run in enumerate(session.numbered_runs, 1)}
    for index, run in enumerate(session.history):
        sign = ">" if index == cursor_index else " "
        letter = "AB"[marked_runs.index(run)] if run in marked_runs else " "
        current_sign = "*" if run is current_run else " "
        step = "" if run in run_numbers else session.title_of(run)
        extreme = extreme_of.get(index, "as opened" if run is first else "")
        default_name = _model_text(run) or ", ".join(filter(None, (step, extreme)))
        name = cells(run.name or default_name, _NAME)
        role = "accent" if index == cursor_index else ""
        head: Line = [(f"{sign} {letter}", "key"), (f"{current_sign}{run_numbers.get(run, ''):>3}  ", role)]
        head += [
            (f"{name:<{_NAME}} ", role or "bright" if run.name else role or "dim"),
            *_step_cells(run, first),
        ]
        flags = _flags(run, session.read is not None and bool(session.opened.setup.others))
        each, tokens = _throughput(run)
        if is_wide:
            columns = f"{each:>{_EACH}}  " if with_each else ""
            head.append((columns + (f"{tokens:>{_TOKENS}}  " if with_tokens else ""), ""))
            heads.append((head, "", flags))
        else:
            facts = ["unequal micro-batches" if run.unequal else f"{each} a micro-batch"] if each else []
            facts += [f"{tokens} tokens/s"] if tokens else []
            heads.append((head, f"{', '.join(facts)}  " if facts else "", flags))
    if is_wide and all(width_of(head) + len(cells(flags, 400)) <= width for head, _, flags in heads):
        return [[[*head, (cells(flags, 400), "dim")]] for head, _, flags in heads]
    return [[head, *_facts_and_flags(facts, flags, width)] for head, facts, flags in heads]


def has_columns(history: Sequence[HistoryRun]) -> tuple[bool, bool]:
    """Returns whether some run has micro-batches, and tokens, for their columns."""
    return any(run.each_ns for run in history), any(run.tokens_per_s for run in history)


def _throughput(run: HistoryRun) -> tuple[str, str]:
    """Returns the time of a micro-batch and the tokens a second in words, "" where they are not known."""
    tokens = ""
    if run.tokens_per_s:
        # Imported here: other runs have no tokens.
        from simcore.analysis.model_figures import format_tokens

        tokens = format_tokens(run.tokens_per_s)
    return duration(run.each_ns) if run.each_ns else "unequal" if run.unequal else "", tokens


def _flags(run: HistoryRun, of_several: bool) -> str:
    """Returns the command-line flags of the run. of_several: whether it is one of a directory's runs."""
    flags = run.parameters.as_flags()
    if of_several and run.label is not None:
        flags = ["--run", run.label, *flags]
    return " ".join(map(quote_word, flags)) or "(as in the file)"


def _model_text(run: HistoryRun) -> str:
    """Returns whether a model's simulated run fits and what share of the peak it reaches; "" for
    other runs.
    """
    figures = run.results.model.model_figures if run.results is not None else None
    if figures is None:
        return ""
    # Imported here: other runs have no model.
    from simcore.analysis.model_figures import format_share

    return f"fits, {format_share(figures)}" if figures.fits else f"does not fit, {format_share(figures, 0)}"


def _extremes(history: Sequence[HistoryRun]) -> dict[int, str]:
    """Returns which of a directory's runs are the fastest and the slowest, once the step times of all are
    known.
    """
    steps = [
        (run.step_ns, index)
        for index, run in enumerate(history)
        if run.label and run.parameters == Parameters()
    ]
    if len(steps) < _LEAST_RUNS or any(step is None for step, _ in steps):
        return {}
    return {min(steps)[1]: "fastest of them", max(steps)[1]: "slowest of them"}


def _facts_and_flags(facts: str, flags: str, width: int) -> list[Line]:
    """Returns the rows below a run's heading: its facts, and its flags in a few rows of complete words,
    because half a figure reads as another one. What two runs differ in stands at the end of their flags.
    """
    rows = textwrap.wrap(cells(flags, 400), max(width - 8, len(facts) + 26), initial_indent=" " * len(facts),
                         break_on_hyphens=False, max_lines=_FLAG_ROWS, placeholder=" ...")  # fmt: skip
    first, *further = rows
    return [
        [(" " * 8 + facts, ""), (first[len(facts) :], "dim")],
        *([(" " * 8 + row, "dim")] for row in further),
    ]


def _step_cells(run: HistoryRun, first: HistoryRun) -> Line:
    """Returns the step time and the difference to the first run's. Bright once it is simulated in this
    session.
    """
    if run.step_ns is None:
        words = "not run yet" if run.results is None else "not timed"
        return [(f"{words:>{_STEP}}  {'':{_DIFFERENCE - 1}}", "dim")]
    line: Line = [(f"{duration(run.step_ns):>{_STEP}}  ", "bright" if run.results is not None else "")]
    change_line: Line = []
    if run is not first and first.step_ns is not None:
        a, b = _known_step(first), _known_step(run)
        is_short = compare_by_work(a, b) is not None or is_other_work(a, b)
        change_line = run_difference(a, b, is_short)
    return [*line, *fitted(change_line, _DIFFERENCE - 2), (" ", "")]


def _known_step(run: HistoryRun) -> KnownStep:
    left_out = " ".join(run.parameters.without_lines)
    return KnownStep(run.step_ns or 0, run.work, left_out, run.other_model)


_KEYS = "Enter shows, n names, Space marks, c compares, Delete removes"


class ChosenRuns(NamedTuple):
    """The choice of the user: show `run`, or compare it (B) with `other` (A)."""

    run: HistoryRun
    other: HistoryRun | None = None


def _read(session: Session, run: HistoryRun) -> tuple[Run | None, str]:
    try:
        return session.root(run.label), ""
    except (InputError, UsageError) as error:
        return None, cells(str(error).replace("\n", "; "), 400)


class RunsPanel(Panel, inherit_bindings=False):
    """Covers the screen with the runs that were kept."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *TO_SCREENS,
        Binding("escape,R,q", "dismiss(None)", "back"),
        Binding("j,down", "choose(1)", "next run"),
        Binding("k,up", "choose(-1)", "run before"),
        Binding("g,home", "choose(-1000000)", "the first"),
        Binding("G,end", "choose(1000000)", "the last"),
        Binding("enter", "show", "show it"),
        Binding("n", "name", "name it"),
        Binding("space,m", "mark", "mark it for comparing"),
        Binding("c", "compare", "compare the marked one with this one, or the two that are marked"),
        Binding("delete,backspace", "remove", "remove it"),
    ]

    def __init__(self, session: Session, glyphs: Glyphs) -> None:
        super().__init__("Runs", self._build_lines, glyphs, f"{_KEYS}, Esc closes")
        self._lines.more = self._more
        self._session = session
        self._marked_runs: list[HistoryRun] = []
        self._message = ""
        self._lines_per_run = 1
        self._unread = [
            run
            for run in session.history
            if run.results is None and run.step_ns is None
            if run.label is not None and run.parameters == Parameters()
        ]
        current_run = session.find_in_history(session.current)
        # A draft that is not kept stands behind the last run of the same files.
        same_files = [
            kept_run for kept_run in session.history if kept_run.label == session.current.setup.label
        ]
        self._cursor_index = session.history.index(current_run or (same_files or session.history)[-1])

    def on_mount(self) -> None:
        """Starts reading the step times of the directory's other runs."""
        self.run_worker(self._read_steps, thread=True, group="steps")

    def _read_steps(self) -> None:
        worker = get_current_worker()
        for run in list(self._unread):
            results, why = _read(self._session, run)
            if worker.is_cancelled or not self.app.is_running:
                return
            self.app.call_from_thread(self._run_was_read, run, results, why)

    def _run_was_read(self, run: HistoryRun, results: Run | None, why: str) -> None:
        """Takes a run that was read; None where it cannot be, and why."""
        self._unread.remove(run)
        if results is not None:
            self._session.record_results(run, results)
        if self.is_attached:
            self._redraw(why or self._message)

    @property
    def _run(self) -> HistoryRun:
        return self._session.history[self._cursor_index]

    def _build_lines(self, width: int) -> list[Line]:
        """Returns a line or two for each run, and the message of the last key."""
        runs = run_lines(self._session, self._cursor_index, self._marked_runs, width)
        # Behind the heading: the run with the cursor is in view whenever it is drawn.
        self._lines_per_run = len(runs[0])
        self._lines.keep = (self._cursor_index + 1) * self._lines_per_run
        columns = has_columns(self._session.history)
        lines = [heading(width, *columns), *(line for run in runs for line in run)]
        if len(runs) == 1 and not self._message:
            return [*lines, [], [(f"  {HOW_TO_KEEP}", "dim")]]
        count = len(self._unread)
        message = self._message or (f"reading {plural(count, 'run')} of the directory" if count else "")
        if not message:
            return lines
        role = "warn" if self._message else "dim"
        return [*lines, [], *([(f"  {line}", role)] for line in wrapped(message, width - 4))]

    def _more(self, hidden: int) -> str:
        """Returns the keys, also where there is more than the screen has room for."""
        # The last line is that of the keys.
        return f"{max(hidden - 1, 1) // self._lines_per_run} more: {_KEYS}"

    def _redraw(self, message: str = "") -> None:
        self._message = message
        self._lines.redraw()

    def action_choose(self, by: int) -> None:
        self._cursor_index = max(0, min(self._cursor_index + by, len(self._session.history) - 1))
        self._redraw()

    def action_show(self) -> None:
        self.dismiss(ChosenRuns(self._run))

    def action_name(self) -> None:
        run = self._run
        self.app.push_screen(Prompt(f"name of {self._session.title_of(run)}", run.name), self._set_name)

    def _set_name(self, name: str | None) -> None:
        if name is not None:
            self._run.name = name.strip()[:MOST_NAME]
        self._redraw()

    def action_mark(self) -> None:
        run = self._run
        if run in self._marked_runs:
            self._marked_runs.remove(run)
        else:
            # A third mark replaces the second.
            self._marked_runs = [*self._marked_runs[:1], run]
        self._redraw()

    def action_compare(self) -> None:
        kept_run, other = [*self._marked_runs, self._run, self._run][:2]
        if kept_run is other:
            self._redraw(MARK_FIRST)
        else:
            self.dismiss(ChosenRuns(other, kept_run))

    def action_remove(self) -> None:
        run = self._run
        if not self._session.remove(run):
            self._redraw(OPENED_STAYS)
            return
        self._marked_runs = [kept_run for kept_run in self._marked_runs if kept_run is not run]
        self.action_choose(0)
