"""What all screens share: what is open, the run as opened, the run now, and how to come back."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic
from simcore.parameters import Parameters, RunInput
from simcore.records import NamedTuple
from simcore.trace.contexts import StepWork
from simcore.trace.figures import microbatch_ns, remove_each
from simcore.trace.run import Run, as_read, count_spans
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.cluster import Dimension

__all__ = ["HistoryRun", "Run", "Session", "notes_of"]

# Timed ops of kept runs beside those on the screens: some 80 MB. Others are found again when shown.
MOST_KEPT_OPS = 2_000_000


@dataclass(slots=True, eq=False)
class HistoryRun:
    """A run of the history. name: the user's, "" for none. step_ns: its step time, each_ns: what each of its
    micro-batches takes of it, tokens_per_s: of a model's run, work: how much a replica does in a simulated
    step; None where unknown. unequal: whether no micro-batch is as much work as another.
    results: None while it is not found: one of an earlier session or another one of a directory until it is
    shown, or a large one that gave way to others. label: which run of its directory, as `Run.label`.
    """

    parameters: Parameters
    name: str = ""
    step_ns: int | None = None
    results: Run | None = None
    label: str | None = None
    each_ns: int | None = None
    tokens_per_s: float | None = None
    unequal: bool = False
    work: StepWork | None = None

    def set_results(self, run: Run) -> None:
        """Take what was found: its figures are known from now on, also when the run gives way."""
        self.results = run
        self.step_ns = run.step_time_ns if run.timed else None
        # What was measured need not be as much work as what was simulated.
        self.work = None if run.shape.measured else run.shape.work
        self.unequal = run.timed and not run.shape.has_equal_microbatches
        # Of unequal ones a mean says little.
        self.each_ns = microbatch_ns(run.shape) if run.timed and not self.unequal else None
        figures = run.model.model_figures
        self.tokens_per_s = None if figures is None else figures.throughput.tokens_per_s

    def is_same_run(self, run: HistoryRun) -> bool:
        """Whether it is the run of this one's label and parameters."""
        return (self.label, self.parameters) == (run.label, run.parameters)


class Stamp(NamedTuple):
    """What tells one state of a file from another: when it was written (ns), its bytes, which file it is."""

    written_ns: int
    bytes: int
    inode: int


def stamp_of(path: str) -> Stamp | None:
    """The state of a file now; None without one."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ino)


def stamps_of(path: str, diagnostics: Iterable[Diagnostic]) -> dict[str, Stamp | None]:
    """The state of the file at `path` and of all that the diagnostics are about."""
    return {
        file: stamp_of(file)
        for file in {path, *(diagnostic.file for diagnostic in diagnostics if diagnostic.file)}
    }


def _network_changes(before: Sequence[Dimension], now: Sequence[Dimension]) -> list[str]:
    """`dim 1 55.6 GB/s`: of dimensions that are as many what is another figure; nothing where none is."""
    if len(before) != len(now):
        return []
    changes = []
    for index, (old, new) in enumerate(zip(before, now, strict=True)):
        if new.bandwidth != old.bandwidth:
            changes.append(f"dim {index} {new.bandwidth:.3g} GB/s")
        if new.latency_ns != old.latency_ns:
            changes.append(f"dim {index} {new.latency_ns:.3g} ns")
    return changes[:1] if len(changes) < 2 else [f"{changes[0]} and {len(changes) - 1} more"]


@dataclass(slots=True)
class Session:
    """opened: the run that the program started with; of another run of the directory, that one as it was
    read. current: the run on the screen. running, error: of its run.
    history: the runs that were kept, the opened one first. other: the run that was shown before.
    beside: what the compare screen is to take next to the run on the screen. against: the run of another
    file that was opened beside it. rank_a: chosen on the timeline to be compared; ranks: A and B, of the run
    on the screen, which the compare screen is to show instead of two runs. read: opens another run of the
    directory by its label.
    """

    opened: Run
    read: Callable[[str], Run] | None = None
    against: Run | None = None
    current: Run = field(init=False)
    history: list[HistoryRun] = field(init=False)
    # How the files were when they were read.
    stamps: dict[str, Stamp | None] = field(init=False)
    other: Run | None = field(default=None, init=False)
    compared_run: Run | None = field(default=None, init=False)
    rank_a: int | None = field(default=None, init=False)
    ranks: tuple[int, int] | None = field(default=None, init=False)
    error: str = field(default="", init=False)
    running: bool = field(default=False, init=False)
    _draft: RunInput = field(init=False)
    _undo: list[RunInput] = field(default_factory=list, init=False)
    _redo: list[RunInput] = field(default_factory=list, init=False)
    # Whether the next run on the screen takes back the one that is there.
    _takes_back: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.current = self.opened
        self._draft = self.opened.setup
        self.history = []
        self.stamps = stamps_of(self.opened.path, self.opened.diagnostics)
        self._add_to_history(self.opened)
        plain = as_read(self.opened)
        if plain is not self.opened:
            # A replay was asked for: what was measured is a key away.
            self._add_to_history(plain)
            self.other = plain
        if self.read is not None:
            self.history += [HistoryRun(Parameters(), label=label) for label in self.opened.setup.others]

    # -- the draft -------------------------------------------------------------------

    @property
    def draft(self) -> Parameters:
        """What is being edited: parameters that need not have been run."""
        return self._draft.parameters

    def edit(self, draft: RunInput) -> None:
        """Take a change as the draft; the one before can be had back."""
        self._undo.append(self._draft)
        self._redo.clear()
        self._takes_back = False
        self._draft = draft

    def undo(self) -> bool:
        """The draft before the last edit; False if there is none."""
        if not self._undo:
            return False
        self._redo.append(self._draft)
        self._draft = self._undo.pop()
        self._takes_back = True
        return True

    def redo(self) -> bool:
        """The draft that `undo` took away; False if there is none."""
        if not self._redo:
            return False
        self._undo.append(self._draft)
        self._takes_back = False
        self._draft = self._redo.pop()
        return True

    # -- words -----------------------------------------------------------------------

    @property
    def step(self) -> str:
        """The step time in words; of several steps that of all, and how many they are."""
        if not self.current.timed:
            return "not timed"
        words = duration(self.current.step_time_ns)
        return words if self.current.shape.steps == 1 else f"{words} in {self.current.shape.steps}"

    @property
    def doing(self) -> str:
        """What it is to make another run."""
        return self.opened.setup.activity

    def facts(self, wide: bool) -> list[str]:
        """What is open, besides its name: what differs from the run as opened, then the most important."""
        changed = self.changed_facts(wide)
        return [*changed, *(fact for fact in self.current.figures.headline(wide) if fact not in changed)]

    def changed_facts(self, wide: bool) -> list[str]:
        """Of the facts those that are not as in the run as opened, its schedule or replay, say."""
        if self.current is self.opened:
            return []
        facts = self.current.figures.headline(wide)
        if self.current.model.model_figures is not None:
            # A model's figures differ with every change: layout and schedule say what was changed.
            from simcore.analysis.model_figures import figure_words

            figures = figure_words(self.current.model.model_figures)
            facts = [fact for fact in facts if fact not in figures]
        # So does what a micro-batch takes: the step time says that.
        before = {remove_each(fact) for fact in self.opened.figures.headline(wide)}
        changed = [fact for fact in facts if remove_each(fact) not in before]
        return [*changed, *_network_changes(self.opened.network.dims, self.current.network.dims)]

    def run_words(self) -> str:
        """Which run is on the screen: `run 2 of 3`, or one that was not kept."""
        count = len(self.history)
        there = self.find_in_history(self.current)
        if there is not None:
            return f"run {self.history.index(there) + 1} of {count}"
        return f"draft after run {count}"

    def against_words(self) -> str:
        """`run 1`: which run a difference is to, where there is a third one that it could be; else ""."""
        opened = self.find_in_history(self.opened)
        third = [
            run for run in self.history if run is not opened and run is not self.find_in_history(self.current)
        ]
        return f"run {self.history.index(opened) + 1}" if opened is not None and third else ""

    def command(self) -> str:
        """The command line that opens the run on the screen."""
        current = self.current
        return shlex.join(["wltui", *current.parameters.command_words(current.path, current.setup.label)])

    # -- the runs --------------------------------------------------------------------

    @property
    def runs(self) -> list[Run]:
        """The kept runs that have been found."""
        return [run.results for run in self.history if run.results is not None]

    def find_in_history(self, run: Run) -> HistoryRun | None:
        """The run of the history with the label and the parameters of this one."""
        return self.find_same_run(HistoryRun(run.parameters, label=run.setup.label))

    def find_same_run(self, target: HistoryRun) -> HistoryRun | None:
        """The same, of a run that need not have been found."""
        return next((kept_run for kept_run in self.history if kept_run.is_same_run(target)), None)

    def root(self, label: str | None) -> Run:
        """The run of a label as it was read, from which others are made. Raises InputError."""
        if label == self.opened.setup.label:
            return self.opened
        there = self.find_same_run(HistoryRun(Parameters(), label=label))
        results = None if there is None else there.results
        if results is not None:
            return results
        # There are other labels in a directory alone.
        assert self.read is not None
        assert label is not None
        return self.read(label)

    def recall(self, run: HistoryRun) -> None:
        """A run of an earlier session comes into the history; one that is there gets its name."""
        there = self.find_same_run(run)
        if there is None:
            self.history.append(run)
        else:
            there.name = there.name or run.name
            there.step_ns = run.step_ns if there.step_ns is None else there.step_ns
            there.work = there.work or run.work

    def remove(self, run: HistoryRun) -> bool:
        """Take a run out of the history; False for the one as opened, which stays."""
        if run is self.history[0]:
            return False
        self.history.remove(run)
        if run.results is not None and self.other is run.results:
            self.other = self.opened
        return True

    def _add_to_history(self, run: Run) -> None:
        history_run = HistoryRun(run.parameters, label=run.setup.label)
        history_run.set_results(run)
        self.history.append(history_run)

    def show(self, run: Run) -> None:
        """Another run on the screen. The one before is a key away, kept or not; a change that was taken back
        and not kept is not: then it is the run that was kept last.
        """
        there = self.find_in_history(run)
        if there is not None and there.results is None:
            there.set_results(run)
        taken_back, self._takes_back = self._takes_back, False
        if run is not self.current and not (taken_back and self.find_in_history(self.current) is None):
            self.other = self.current
        elif self.other is run:
            self.other = next((other for other in reversed(self.runs) if other is not run), None)
        if run.setup.label != self.opened.setup.label:
            # What was changed was another run's.
            first = self.history[0]
            of_first = run.setup.label == first.label and first.results is not None
            self.opened = first.results if of_first and first.results is not None else as_read(run)
            self._undo.clear()
            self._redo.clear()
            self._draft = run.setup
        self.current = run
        self._drop_large_runs()

    def _drop_large_runs(self) -> None:
        """Large runs that are on no screen, the oldest first, are found again when they are shown."""
        on_screen = (self.opened, self.current, self.other, self.compared_run)
        room = MOST_KEPT_OPS
        for run in reversed(self.history):
            if run.results is not None and not any(run.results is displayed for displayed in on_screen):
                room -= count_spans(run.results)
                if room < 0:
                    run.results = None

    def record_results(self, history_run: HistoryRun, run: Run) -> None:
        """A run of the history was found: its step time is known from now on."""
        history_run.set_results(run)
        self._drop_large_runs()

    def keep(self) -> int | None:
        """Keep the run on the screen: its number, from 1; None if it is kept already."""
        if self.find_in_history(self.current) is not None:
            return None
        self._add_to_history(self.current)
        return len(self.history)


def notes_of(session: Session) -> Sequence[Diagnostic]:
    """The diagnostics of the run on the screen, and of what was opened beside it."""
    own = session.current.diagnostics
    return own if session.against is None else (*own, *session.against.diagnostics)
