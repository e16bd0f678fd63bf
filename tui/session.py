"""What all screens share: what is open, the run as opened, the run now, and the history."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic, printable
from simcore.parameters import TOPOLOGY_FIELDS, Parameters, RunInput, flag_of
from simcore.records import NamedTuple
from simcore.shell_words import join_words
from simcore.trace.contexts import StepWork
from simcore.trace.figures import microbatch_ns, remove_each
from simcore.trace.run import Run, as_read, estimate_bytes
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.cluster import Dimension

__all__ = ["HistoryRun", "Run", "Session", "notes_of"]

# The most bytes of kept runs besides those on the screens: three of seed 002, which is computed again in
# 0.3 s when it is shown.
MOST_KEPT_BYTES = 32 * 10**6
# The parameters of a run as its file has it.
AS_READ = Parameters()
# The most bytes of the run that was shown before, 170 ranks of seed 002 one by one: `x` computes a larger one
# again. Two runs of its 1,024 ranks are 500 MB.
MOST_OTHER_BYTES = 100 * 10**6
# The most drafts that can be undone.
MOST_UNDO = 1000


@dataclass(slots=True, eq=False)
class HistoryRun:
    """A run of the history."""

    parameters: Parameters
    name: str = ""
    """The user's name for it, "" for none."""
    step_ns: int | None = None
    """Its step time; None where unknown."""
    results: Run | None = None
    """None while it is not computed: for a run of an earlier session or another one of a directory until it
    is shown, or for a large one that was evicted.
    """
    label: str | None = None
    """Which run of its directory, as `Run.label`."""
    each_ns: int | None = None
    """The part of the step time that each of its micro-batches takes; None where unknown."""
    tokens_per_s: float | None = None
    """Those of a model's run; None where unknown."""
    unequal: bool = False
    """Whether its micro-batches differ in work."""
    work: StepWork | None = None
    """How much a replica does in a simulated step; None where unknown."""
    other_model: str = ""
    """As in `StepShape`, once it is computed."""
    turn: int = 0
    """When it was shown or computed last: greater than that of any run before."""

    def set_results(self, run: Run) -> None:
        """Takes the result of the run: its figures are known from now on, even if the result is evicted."""
        self.results = run
        self.step_ns = run.step_time_ns if run.timed else None
        # The work of what was measured need not equal that of what was simulated.
        self.work = None if run.shape.measured else run.shape.work
        self.other_model = run.shape.other_model
        self.unequal = run.timed and not run.shape.has_equal_microbatches
        # The mean of unequal micro-batches says little.
        self.each_ns = microbatch_ns(run.shape) if run.timed and not self.unequal else None
        figures = run.model.model_figures
        self.tokens_per_s = None if figures is None else figures.throughput.tokens_per_s

    @property
    def recorded_step(self) -> str:
        """The step of the file that it is, unchanged (`23`, `all`); "" for other runs."""
        # Of ten thousand steps: one object, whose fields need not be compared.
        is_as_read = self.parameters is AS_READ or self.parameters == AS_READ
        return (self.label or "").partition("#")[2] if is_as_read else ""

    def is_same_run(self, run: HistoryRun) -> bool:
        """Returns whether it is the run of this one's label and parameters."""
        return (self.label, self.parameters) == (run.label, run.parameters)


class _HistoryIndex(NamedTuple):
    """A history by what its runs are looked for by."""

    size: int
    """How many it had."""
    runs_of_label: dict[str | None, list[HistoryRun]]
    numbered_runs: list[HistoryRun]


class Stamp(NamedTuple):
    """The state of a file: what distinguishes it from another state."""

    written_ns: int
    """When it was written."""
    bytes: int
    """Its size."""
    inode: int
    """Which file it is."""


def stamp_of(path: str) -> Stamp | None:
    """Returns the state of a file now; None without one."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ino)


def stamps_of(path: str, diagnostics: Iterable[Diagnostic]) -> dict[str, Stamp | None]:
    """Returns the state of the file at `path` and of all files that the diagnostics are about."""
    return {
        file: stamp_of(file)
        for file in {path, *(diagnostic.file for diagnostic in diagnostics if diagnostic.file)}
    }


def _network_changes(before: Sequence[Dimension], now: Sequence[Dimension]) -> list[str]:
    """Returns `dim 1 55.6 GB/s`: the figures that differ, if the number of dimensions is equal; empty where
    none does.
    """
    if len(before) != len(now):
        return []
    changes = []
    for index, (old, new) in enumerate(zip(before, now, strict=True)):
        if new.bandwidth != old.bandwidth:
            changes.append(f"dim {index} {new.bandwidth:.3g} GB/s")
        if new.latency_ns != old.latency_ns:
            changes.append(f"dim {index} {new.latency_ns:.3g} ns")
    return changes[:1] if len(changes) < 2 else [f"{changes[0]} and {len(changes) - 1} more"]


def _flow_changes(before: Run, now: Run) -> list[str]:
    """Returns `flows, link-rate asw-psw=2`: what differs in links and paths under flows; empty where nothing
    does.
    """
    changes = []
    for name in TOPOLOGY_FIELDS:
        old, new = getattr(before.parameters, name), getattr(now.parameters, name)
        if old != new:
            added = [text for text in new if text not in old] if isinstance(new, tuple) else [new]
            values = printable(" ".join(str(value) for value in added if value is not None), 30)
            changes.append(f"{flag_of(name).option[2:]} {values or 'as before'}")
    return [f"flows, {changes[0]}{f' and {len(changes) - 1} more' * (len(changes) > 1)}"] if changes else []


def _has_fact(changed: str, fact: str) -> bool:
    """Returns whether a changed fact has this one, alone or in front."""
    return changed == fact or changed.startswith(f"{fact}, ")


@dataclass(slots=True)
class Session:
    """What is open."""

    opened: Run
    """The run that the program started with; of another run of the directory, that one as it was read."""
    read: Callable[[str], Run] | None = None
    """Opens another run of the directory by its label."""
    against: Run | None = None
    """The run of another file that was opened to compare with."""
    current: Run = field(init=False)
    """The run on the screen."""
    history: list[HistoryRun] = field(init=False)
    """The runs that were kept, the opened one first."""
    # The states of the files when they were read.
    stamps: dict[str, Stamp | None] = field(init=False)
    before: HistoryRun | None = field(default=None, init=False)
    """The run that was shown before, which a key shows again; computed again where it was too large to hold.
    """
    compared_run: Run | None = field(default=None, init=False)
    """The run that the compare screen is to take next to the run on the screen."""
    rank_a: int | None = field(default=None, init=False)
    """The rank that was chosen on the timeline as A."""
    ranks: tuple[int, int] | None = field(default=None, init=False)
    """A and B, of the run on the screen, which the compare screen is to show instead of two runs."""
    error: str = field(default="", init=False)
    """Why the draft has no run."""
    running: bool = field(default=False, init=False)
    """Whether the draft is being run."""
    following: str = field(default="", init=False)
    """What came of a file that is followed, in words; "" where none is."""
    _draft: RunInput = field(init=False)
    _undo: list[RunInput] = field(default_factory=list, init=False)
    _redo: list[RunInput] = field(default_factory=list, init=False)
    # Whether the next run on the screen reverts the current one.
    _takes_back: bool = field(default=False, init=False)
    _turn: int = field(default=0, init=False)
    # None where a run was removed, or has another label.
    _made_index: _HistoryIndex | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.current = self.opened
        self._draft = self.opened.setup
        self.history = []
        self.stamps = stamps_of(self.opened.path, self.opened.diagnostics)
        self._add_to_history(self.opened)
        plain = as_read(self.opened)
        if plain is not self.opened:
            # A replay was requested: the run as measured is a key away.
            self._add_to_history(plain)
            self._set_before(plain)
        if self.read is not None:
            self.history += [HistoryRun(AS_READ, label=label) for label in self.opened.setup.others]

    # -- the draft -------------------------------------------------------------------

    @property
    def draft(self) -> Parameters:
        """The parameters that are being edited, which need not have been run."""
        return self._draft.parameters

    def edit(self, draft: RunInput) -> None:
        """Takes a change as the draft; `undo` restores the one before."""
        # Without what was resolved of it: a model's rows may take a megabyte.
        self._undo.append(self._draft.with_parameters(self.draft))
        del self._undo[:-MOST_UNDO]
        self._redo.clear()
        self._takes_back = False
        self._draft = draft

    def undo(self) -> bool:
        """Restores the draft before the last edit; returns False if there is none."""
        if not self._undo:
            return False
        self._redo.append(self._draft)
        self._draft = self._undo.pop()
        self._takes_back = True
        return True

    def redo(self) -> bool:
        """Restores the draft that `undo` removed; returns False if there is none."""
        if not self._redo:
            return False
        self._undo.append(self._draft)
        self._takes_back = False
        self._draft = self._redo.pop()
        return True

    # -- words -----------------------------------------------------------------------

    @property
    def step(self) -> str:
        """The step time in words; with several steps that of all, and how many they are."""
        if not self.current.timed:
            return "not timed"
        words = duration(self.current.step_time_ns)
        return words if self.current.shape.steps == 1 else f"{words} in {self.current.shape.steps}"

    @property
    def doing(self) -> str:
        """The word for making another run."""
        return self.opened.setup.activity

    def facts(self, wide: bool) -> list[str]:
        """Returns the facts of what is open, besides its name: those that differ from the run as opened, then
        the most important.
        """
        changed = self.changed_facts(wide)
        facts = self.current.figures.headline(wide)
        return [*changed, *(fact for fact in facts if not any(_has_fact(one, fact) for one in changed))]

    def changed_facts(self, wide: bool) -> list[str]:
        """Returns the facts that differ from the run as opened, such as its schedule or replay, behind what
        came of a file that is followed.
        """
        return [*([self.following] if self.following else []), *self._changes_of_run(wide)]

    def _changes_of_run(self, wide: bool) -> list[str]:
        if self.current is self.opened:
            return []
        facts = self.current.figures.headline(wide)
        if self.current.model.model_figures is not None:
            # A model's figures differ with every change: layout and schedule say what was changed.
            from simcore.analysis.model_figures import figure_words

            figures = figure_words(self.current.model.model_figures)
            facts = [fact for fact in facts if fact not in figures]
        # So does the time of a micro-batch: the step time says that.
        before = {remove_each(fact) for fact in self.opened.figures.headline(wide)}
        changed = [fact for fact in facts if remove_each(fact) not in before]
        gpus = [self._gpu_of(run) for run in (self.opened, self.current)]
        if gpus[0] != gpus[1]:
            # Its network comes with it.
            return [f"{gpus[1]} in place of {gpus[0]}", *changed]
        if self.current.network.flow_report is not None:
            # Its dimensions price nothing: links and paths are what was changed.
            return [*changed, *_flow_changes(self.opened, self.current)]
        return [*changed, *_network_changes(self.opened.network.dims, self.current.network.dims)]

    @staticmethod
    def _gpu_of(run: Run) -> str:
        """Returns the GPU of a model's run, "" of other runs."""
        if run.model.model_figures is None:
            return ""
        # Imported here: a run of a model has loaded it.
        from simcore.model.resolving import DEFAULT_GPU

        return printable(run.parameters.gpu or DEFAULT_GPU, 20)

    def run_words(self, of: HistoryRun | None = None) -> str:
        """Returns which run it is, or the one on the screen: `run 2 of 3`, `step 23`, or one that was not
        kept.
        """
        numbered_runs = self.numbered_runs
        there = self.find_in_history(self.current) if of is None else self.find_same_run(of)
        if there is None:
            return f"draft after run {len(numbered_runs)}"
        title = self.title_of(there)
        return f"{title} of {len(numbered_runs)}" if title.startswith("run ") else title

    @property
    def numbered_runs(self) -> list[HistoryRun]:
        """The runs that have a number, from 1: the opened one, and those made here. Steps of the file have
        their own.
        """
        return self._index.numbered_runs

    def title_of(self, history_run: HistoryRun) -> str:
        """Returns `run 2`, or `step 23` of a step of the file."""
        if history_run is self.history[0] or not history_run.recorded_step:
            return f"run {self.numbered_runs.index(history_run) + 1}"
        return "all steps" if history_run.recorded_step == "all" else f"step {history_run.recorded_step}"

    def against_words(self) -> str:
        """Returns `run 1`: which run a difference is to, where there are at least three; else ""."""
        opened, current = self.find_in_history(self.opened), self.find_in_history(self.current)
        there = 1 if current is opened else (opened is not None) + (current is not None)
        return self.title_of(opened) if opened is not None and len(self.history) > there else ""

    def command(self) -> str:
        """Returns the command line that opens the run on the screen."""
        current = self.current
        return join_words(["wltui", *current.parameters.command_words(current.path, current.setup.label)])

    # -- the runs --------------------------------------------------------------------

    @property
    def other(self) -> Run | None:
        """The run that was shown before; None where there is none, and where it was too large to hold."""
        return None if self.before is None else self.before.results

    def _set_before(self, run: Run | None) -> None:
        self.before = None if run is None else HistoryRun(run.parameters, label=run.setup.label, results=run)

    @property
    def runs(self) -> list[Run]:
        """The kept runs that are computed."""
        return [run.results for run in self.history if run.results is not None]

    def find_in_history(self, run: Run) -> HistoryRun | None:
        """Returns the run of the history with the label and the parameters of this one."""
        return self.find_same_run(HistoryRun(run.parameters, label=run.setup.label))

    def find_same_run(self, target: HistoryRun) -> HistoryRun | None:
        """Returns the same run of the history, for a run that need not be computed."""
        some = self._index.runs_of_label.get(target.label, ())
        return next((kept_run for kept_run in some if kept_run.is_same_run(target)), None)

    @property
    def _index(self) -> _HistoryIndex:
        """The runs by what they are looked for by: a search of ten thousand steps would take 28 ms a key."""
        if self._made_index is None or len(self.history) != self._made_index.size:
            runs_of_label: dict[str | None, list[HistoryRun]] = {}
            for run in self.history:
                runs_of_label.setdefault(run.label, []).append(run)
            first = self.history[:1]
            numbered_runs = [*first, *(run for run in self.history[1:] if not run.recorded_step)]
            self._made_index = _HistoryIndex(len(self.history), runs_of_label, numbered_runs)
        return self._made_index

    def root(self, label: str | None) -> Run:
        """Returns the run of a label as it was read, from which others are made. Raises InputError."""
        if label == self.opened.setup.label:
            return self.opened
        there = self.find_same_run(HistoryRun(AS_READ, label=label))
        results = None if there is None else there.results
        if results is not None:
            return results
        # Only a directory has other labels.
        assert self.read is not None
        assert label is not None
        return self.read(label)

    def recall(self, run: HistoryRun) -> None:
        """Adds a run of an earlier session to the history; one that is there gets its name."""
        there = self.find_same_run(run)
        if there is None:
            self.history.append(run)
        else:
            there.name = there.name or run.name
            there.step_ns = run.step_ns if there.step_ns is None else there.step_ns
            there.work = there.work or run.work

    def remove(self, run: HistoryRun) -> bool:
        """Removes a run from the history; returns False for the one as opened, which stays."""
        if run is self.history[0]:
            return False
        self.history.remove(run)
        self._made_index = None
        if run.results is not None and self.other is run.results:
            self._set_before(self.opened)
        return True

    def _add_to_history(self, run: Run) -> None:
        history_run = HistoryRun(run.parameters, label=run.setup.label)
        history_run.set_results(run)
        self.history.append(history_run)
        self._take_turn(history_run)

    def _take_turn(self, history_run: HistoryRun) -> None:
        self._turn += 1
        history_run.turn = self._turn

    def show(self, run: Run) -> None:
        """Shows another run. The one before is a key away, kept or not, except for a change that was undone
        and not kept: then it is the run that was kept last.
        """
        there = self.find_in_history(run)
        if there is not None and there.results is None:
            there.set_results(run)
        if there is not None:
            self._take_turn(there)
        taken_back, self._takes_back = self._takes_back, False
        if run is not self.current and not (taken_back and self.find_in_history(self.current) is None):
            self._set_before(self.current)
        elif self.other is run:
            self._set_before(next((other for other in reversed(self.runs) if other is not run), None))
        if run.setup.label != self.opened.setup.label:
            # The change was one of another run.
            first = self.history[0]
            of_first = run.setup.label == first.label and first.results is not None
            self.opened = first.results if of_first and first.results is not None else as_read(run)
            self._undo.clear()
            self._redo.clear()
            self._draft = run.setup
        self.current = run
        self._drop_large_runs()

    def _drop_large_runs(self) -> None:
        """Evicts the run that was shown before if it is too large, then runs that are on no screen, the least
        recently used first, until the others have room; they are computed again when they are shown.
        """
        on_screens = (self.opened, self.current, self.compared_run)
        other = self.other
        if self.before is not None and other is not None and all(other is not run for run in on_screens):
            self.before.results = other if estimate_bytes(other) <= MOST_OTHER_BYTES else None
        on_screen = {id(run) for run in (self.opened, self.current, self.other, self.compared_run)}
        room = MOST_KEPT_BYTES
        for history_run in sorted(self.history, key=lambda history_run: -history_run.turn):
            run = history_run.results
            if run is not None and id(run) not in on_screen:
                size = estimate_bytes(run)
                if size > room:
                    history_run.results = None
                else:
                    room -= size

    def record_results(self, history_run: HistoryRun, run: Run) -> None:
        """Takes the result of a run of the history: its step time is known from now on."""
        history_run.set_results(run)
        self._take_turn(history_run)
        self._drop_large_runs()

    def reload(self, opened: Run, current: Run) -> None:
        """Takes what its file, or directory, is now in place of the run as opened.

        current: the run on the screen, made of that. Other runs of the history are computed again when they
        are shown; the draft stays.
        """
        before, label = self.opened.setup.label, opened.setup.label
        draft, is_draft = self.draft, self.draft != self.current.parameters
        self.history = [
            run
            for index, run in enumerate(self.history)
            if not index or label == before or run.label != label
        ]
        for run in self.history:
            run.label = label if run.label == before else run.label
            run.results, run.step_ns = None, None
        self._made_index = None
        labels = {run.label for run in self.history}
        self.history += [
            HistoryRun(AS_READ, label=other) for other in opened.setup.others if other not in labels
        ]
        for read in (opened, as_read(opened), current):
            there = self.find_in_history(read)
            if there is not None:
                there.set_results(read)
        self._set_before(None if current is opened else opened)
        self.opened, self.current, self.compared_run = opened, current, None
        self._draft = opened.setup.with_parameters(draft) if is_draft else current.setup
        self._undo.clear()
        self._redo.clear()
        self.stamps = stamps_of(opened.path, opened.diagnostics)

    def keep(self) -> int | None:
        """Keeps the run on the screen; returns its number, from 1; None if it is kept already."""
        if self.find_in_history(self.current) is not None:
            return None
        self._add_to_history(self.current)
        return len(self.numbered_runs)


def notes_of(session: Session) -> Sequence[Diagnostic]:
    """Returns the diagnostics of the run on the screen, and of the one that was opened to compare with."""
    own = session.current.diagnostics
    return own if session.against is None else (*own, *session.against.diagnostics)
