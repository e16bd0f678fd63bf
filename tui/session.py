"""What all screens share: what is open, the run as opened, the run now, and how to come back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from simcore.analysis import Results
from simcore.diagnostics import Diagnostic, printable
from simcore.parameters import Parameters, as_flags
from simcore.report.words import layout_words, schedule_words
from simcore.units import duration, plural
from simcore.workload import Workload
from tui.draft import Drafted


class Run(Protocol):
    """What every screen may ask of a run, simulated or measured."""

    @property
    def path(self) -> str:
        """What was opened, as the user gave it."""

    @property
    def step_time_ns(self) -> int:
        """The step time."""

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """What was assumed, ignored, or does not fit."""


class AnySession(Protocol):
    """What every screen may ask of a session, over a workload or over a measured run.

    measured: whether the screens are those of a measured run. running, error: of a changed run. against: the
    run of another file that was opened beside it.
    """

    against: Run | None

    @property
    def measured(self) -> bool: ...
    @property
    def running(self) -> bool: ...
    @property
    def error(self) -> str: ...
    @property
    def opened(self) -> Run: ...
    @property
    def current(self) -> Run: ...

    @property
    def step(self) -> str:
        """The step time in words."""

    def facts(self, wide: bool) -> list[str]:
        """What is open, besides its name, the most important first."""

    def command(self) -> str | None:
        """The command line that opens the run on the screen; None where there is none."""


def notes_of(session: AnySession) -> Sequence[Diagnostic]:
    """The diagnostics of the run on the screen, and of what was opened beside it."""
    own = session.current.diagnostics
    return own if session.against is None else (*own, *session.against.diagnostics)


# Timed ops of kept runs beside those on the screens: some 80 MB. Others are simulated again when shown.
MOST_KEPT_OPS = 2_000_000


@dataclass(slots=True, eq=False)
class KeptRun:
    """A run of the history. name: the user's, "" for none. step_ns: its step time, None where unknown.
    results: None while it is not simulated: one of an earlier session until it is shown, or a large one
    that gave way to others.
    """

    parameters: Parameters
    name: str = ""
    step_ns: int | None = None
    results: Results | None = None


@dataclass(slots=True)
class Session(Drafted[Parameters]):
    """Over a workload. workload: the open file. opened: the run that the program started with.
    current: the run on the screen.
    history: the runs that were kept, the opened one first. other: the run that was shown before.
    beside: what the compare screen is to take next to the run on the screen. against: see `AnySession`.
    """

    workload: Workload
    opened: Results
    current: Results = field(init=False)
    history: list[KeptRun] = field(init=False)
    other: Results | None = None
    beside: Results | None = None
    against: Run | None = None

    def __post_init__(self) -> None:
        self.current = self.opened
        self.draft = self.opened.simulation.parameters
        self.history = []
        self._add(self.opened)

    @property
    def measured(self) -> bool:
        return False

    @property
    def step(self) -> str:
        return duration(self.current.step_time_ns)

    def facts(self, wide: bool) -> list[str]:
        """Ranks, schedule and network."""
        simulation = self.current.simulation
        program, layout = simulation.program, simulation.layout
        if not wide:
            count = f" x{program.microbatches}" if program.has_pipeline_schedule else ""
            return [plural(layout.world, "rank"), f"{program.schedule}{count}"]
        ranks = layout_words(layout).replace(" = ", f" {'rank' if layout.world == 1 else 'ranks'} = ", 1)
        return [ranks, schedule_words(program), printable(simulation.parameters.network, 40)]

    @property
    def runs(self) -> list[Results]:
        """The kept runs that have been simulated."""
        return [run.results for run in self.history if run.results is not None]

    def kept(self, parameters: Parameters) -> KeptRun | None:
        """The run of the history with these parameters."""
        return next((run for run in self.history if run.parameters == parameters), None)

    def recall(self, run: KeptRun) -> None:
        """A run of an earlier session comes into the history; one that is there gets its name."""
        there = self.kept(run.parameters)
        if there is None:
            self.history.append(run)
        else:
            there.name = there.name or run.name

    def remove(self, run: KeptRun) -> bool:
        """Take a run out of the history; False for the one as opened, which stays."""
        if run is self.history[0]:
            return False
        self.history.remove(run)
        if run.results is not None and self.other is run.results:
            self.other = self.opened
        return True

    def _add(self, results: Results) -> None:
        parameters = results.simulation.parameters
        self.history.append(KeptRun(parameters, "", results.step_time_ns, results))

    def show(self, results: Results) -> None:
        """Another run on the screen. The one before is a key away, kept or not."""
        there = self.kept(results.simulation.parameters)
        if there is not None and there.results is None:
            there.results, there.step_ns = results, results.step_time_ns
        if results is not self.current:
            self.other = self.current
        self.current = results
        self._let_go()

    def _let_go(self) -> None:
        """Large runs that are on no screen, the oldest first, are simulated again when they are shown."""
        on_screen = (self.opened, self.current, self.other, self.beside)
        room = MOST_KEPT_OPS
        for run in reversed(self.history):
            if run.results is not None and not any(run.results is one for one in on_screen):
                room -= run.results.simulation.timeline.ops_simulated
                if room < 0:
                    run.results = None

    def keep(self) -> int | None:
        """Keep the run on the screen: its number, from 1; None if it is kept already."""
        if self.kept(self.current.simulation.parameters) is not None:
            return None
        self._add(self.current)
        return len(self.history)

    def run_words(self) -> str:
        """Which run is on the screen: `run 2 of 3`, or one that was not kept."""
        count = len(self.history)
        there = self.kept(self.current.simulation.parameters)
        if there is not None:
            return f"run {self.history.index(there) + 1} of {count}"
        return f"draft after run {count}"

    def command(self) -> str:
        """The command line that opens the run on the screen."""
        words = ["wltui", self.current.path, *as_flags(self.current.simulation.parameters)]
        return " ".join(map(shlex.quote, words))
