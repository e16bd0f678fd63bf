"""Which two runs are compared: those that were kept, the one on the screen, and what was opened beside it."""

from __future__ import annotations

from typing import Any

from simcore.analysis import two_runs
from simcore.records import NamedTuple
from tui.compare.source import Compared
from tui.frame import cells
from tui.session import KeptRun, Run, Session


class Candidate(NamedTuple):
    """A run that can be chosen. name: `run 2`, `draft`; "" for the only one of its file."""

    name: str
    results: Run


class Choice:
    """A and B among the runs there are; a run of another file or directory is the first A."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # What was chosen; None: the first run that is another than B, and the run on the screen.
        self._a: Run | None = None
        self._b: Run | None = None

    def _candidates(self) -> list[Candidate]:
        """What was opened beside it, the runs that were kept and found, the one that was shown before."""
        session = self._session
        found = [] if session.against is None else [Candidate("against", session.against)]
        history = enumerate(session.history, 1)
        found += [_kept(number, run, run.results) for number, run in history if run.results is not None]
        # What was chosen stays, also where it gave way to others in the history.
        for chosen in (self._a, self._b):
            if chosen is not None and all(not _same(chosen, one.results) for one in found):
                found.append(Candidate("chosen", chosen))
        # What `x` shows may be a change that was not kept, as after `u`.
        if session.other is not None and all(not _same(session.other, one.results) for one in found):
            found.append(Candidate("before", session.other))
        return found

    def _current(self) -> Candidate:
        """The run on the screen."""
        session = self._session
        there = session.kept(session.current)
        if there is None:
            return Candidate("draft", session.current)
        return _kept(session.history.index(there) + 1, there, session.current)

    @property
    def pair(self) -> tuple[Candidate, Candidate] | None:
        """A and B; None where there is one run alone."""
        session = self._session
        if session.beside is not None:
            # Chosen in the list of runs, to stand beside the one on the screen.
            self._a, self._b, session.beside = session.beside, None, None
        candidates, current = self._candidates(), self._current()
        b = next((one for one in candidates if one.results is self._b), current)
        others = [one for one in candidates if not _same(one.results, b.results)]
        if not others:
            return None
        # Where none was chosen: what was opened beside it, else another run of the same files.
        source = b.results.source
        alike = [one for one in others if one.results is session.against or one.results.source is source]
        return next((one for one in others if one.results is self._a), (alike or others)[0]), b

    def next_a(self) -> bool:
        """Another run as A; False where there is no other."""
        pair = self.pair
        if pair is None:
            return False
        others = [one.results for one in self._candidates() if not _same(one.results, pair[1].results)]
        here = [one is pair[0].results for one in others].index(True)
        self._a = others[(here + 1) % len(others)]
        return len(others) > 1

    def next_b(self) -> bool:
        """Another run as B, at last the one on the screen again; False where there is no other."""
        pair = self.pair
        if pair is None:
            return False
        current = self._current().results
        others = [one.results for one in self._candidates() if not _same(one.results, current)]
        options: list[Run | None] = [None, *others]
        here = [one is (pair[1].results if self._b is not None else None) for one in options]
        place = here.index(True) if True in here else 0
        self._b = options[(place + 1) % len(options)]
        return self.pair is not None


def _kept(number: int, run: KeptRun, results: Run) -> Candidate:
    """A run of the history, by the user's name where it has one."""
    return Candidate(cells(run.name, 20) if run.name else f"run {number}", results)


def _same(a: Run, b: Run) -> bool:
    """Whether two runs are of one input with the same parameters."""
    return a is b or (a.source is b.source and a.parameters == b.parameters)


def compared(a: Run, b: Run) -> Compared:
    """Two runs as the screen needs them. Raises `UsageError` where nothing of them can be paired."""
    found: Any = two_runs.compared(a, b)
    if found.op_by_op:
        from tui.compare.simulated import SimulatedCompared

        return SimulatedCompared(found)
    from tui.compare.measured import MeasuredCompared

    return MeasuredCompared(found)
