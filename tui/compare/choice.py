"""Which two runs are compared: those that were kept, the one on the screen, and what was opened beside it."""

from __future__ import annotations

from typing import NamedTuple

from simcore.analysis import Results
from simcore.analysis.compare import Comparison
from simcore.replay import MeasuredResults
from tui.compare.source import Compared
from tui.frame import cells
from tui.measured.session import MeasuredSession
from tui.session import AnySession, KeptRun, Session

AnyResults = Results | MeasuredResults


class Candidate(NamedTuple):
    """A run that can be chosen. name: `run 2`, `draft`; "" for the only one of its file."""

    name: str
    results: AnyResults


class Choice:
    """A and B among the runs there are. against: a run of another file or directory, the first A."""

    def __init__(self, session: AnySession, against: AnyResults | None) -> None:
        self._session = session
        self._against = against
        # What was chosen; None: the first run that is another than B, and the run on the screen.
        self._a: AnyResults | None = None
        self._b: AnyResults | None = None

    def _candidates(self) -> list[Candidate]:
        """What was opened beside it, the runs that were kept and simulated, the one that was shown before."""
        found = [] if self._against is None else [Candidate("against", self._against)]
        session = self._session
        if isinstance(session, Session):
            history = enumerate(session.history, 1)
            found += [_kept(number, run, run.results) for number, run in history if run.results is not None]
            # What `x` shows may be a change that was not kept, as after `u`.
            if session.other is not None and all(not _same(session.other, one.results) for one in found):
                found.append(Candidate("before", session.other))
        elif isinstance(session, MeasuredSession):
            found.append(Candidate("opened", session.opened))
            if session.opened is not session.as_measured:
                found.append(Candidate("trace", session.as_measured))
            if session.other is not None and all(session.other is not one.results for one in found):
                found.append(Candidate("replay", session.other))
        return found

    def _current(self) -> Candidate:
        """The run on the screen."""
        session = self._session
        if isinstance(session, Session):
            for number, run in enumerate(session.history, 1):
                if run.parameters == session.current.simulation.parameters:
                    return _kept(number, run, session.current)
            return Candidate("draft", session.current)
        assert isinstance(session, MeasuredSession)
        names = {id(session.as_measured): "trace", id(session.opened): "opened"}
        return Candidate(names.get(id(session.current), "replay"), session.current)

    @property
    def pair(self) -> tuple[Candidate, Candidate] | None:
        """A and B; None where there is one run alone."""
        session = self._session
        if isinstance(session, Session) and session.beside is not None:
            # Chosen in the list of runs, to stand beside the one on the screen.
            self._a, self._b, session.beside = session.beside, None, None
        candidates, current = self._candidates(), self._current()
        b = next((one for one in candidates if one.results is self._b), current)
        others = [one for one in candidates if not _same(one.results, b.results)]
        if not others:
            return None
        return next((one for one in others if one.results is self._a), others[0]), b

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
        options: list[AnyResults | None] = [None, *others]
        here = [one is (pair[1].results if self._b is not None else None) for one in options]
        place = here.index(True) if True in here else 0
        self._b = options[(place + 1) % len(options)]
        return self.pair is not None


def _kept(number: int, run: KeptRun, results: Results) -> Candidate:
    """A run of the history, by the user's name where it has one."""
    return Candidate(cells(run.name, 20) if run.name else f"run {number}", results)


def _same(a: AnyResults, b: AnyResults) -> bool:
    if isinstance(a, Results) and isinstance(b, Results):
        one, other = a.simulation, b.simulation
        of_one_file = (one.workload.as_read or one.workload) is (other.workload.as_read or other.workload)
        return of_one_file and one.parameters == other.parameters
    return a is b


def compared(a: AnyResults, b: AnyResults) -> Compared:
    """Two runs as the screen needs them. Raises `UsageError` where nothing of them can be paired."""
    if isinstance(a, Results) and isinstance(b, Results):
        from tui.compare.simulated import SimulatedCompared

        return SimulatedCompared(Comparison(a, b))
    from simcore.analysis.beside import Beside
    from tui.compare.measured import MeasuredCompared

    return MeasuredCompared(Beside(a, b))
