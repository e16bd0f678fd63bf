"""Two runs as the compare screen needs them, of any kind, and which two are compared.

Those that were kept, the one on the screen, and what was opened beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from simcore.analysis import two_runs
from simcore.analysis.compare import AccountChange, Alike
from simcore.units import whole_percent
from tui.frame import cells
from tui.session import KeptRun, Run, Session
from tui.timeline.spans import Kind, SpanLane


class Row(NamedTuple):
    """One line of what differs most. measure: of what a_ns and b_ns are. pair: index of where it is.

    at_ns: when it begins in A, None for a sum.
    """

    words: str
    measure: str
    a_ns: int
    b_ns: int
    pair: int
    at_ns: int | None


class Compared(Protocol):
    """Run B against run A. Pairs of lanes are numbered by how much their busy share differs."""

    @property
    def steps(self) -> tuple[int, int]:
        """Both step times, ns."""

    @property
    def sides(self) -> tuple[str, str]:
        """What A and B are, in words."""

    @property
    def pairs(self) -> int:
        """How many pairs of lanes there are."""

    @property
    def alone(self) -> tuple[Sequence[str], Sequence[str]]:
        """The lanes of A and those of B that are in no pair, as `where` has them, in their order."""

    def where(self, pair: int) -> str:
        """`stage 3`, `rank 17`."""

    def lanes(self, pair: int) -> tuple[SpanLane, SpanLane]:
        """The lanes of a pair in A and in B."""

    def busy_ns(self, pair: int) -> tuple[int, int]:
        """What they compute."""

    def alike(self, pair: int) -> Sequence[Alike]:
        """What both lanes have, by its start in A."""

    def known_alike(self, pair: int) -> Sequence[Alike]:
        """The same if it was found already, else nothing: what drawing may ask for."""

    def told(self, pair: int, side: int, time_ns: int) -> str:
        """What lane A (0) or B (1) of a pair does at a time of its step."""

    def find(self, is_cancelled: Callable[[], bool]) -> object:
        """What takes long, in a worker: `why`, `matched`, `rows`, `unchanged`, `notices`, `known_alike`."""

    @property
    def why(self) -> str:
        """What explains B - A and what causes it, a sentence without its full stop."""

    @property
    def accounts(self) -> Sequence[AccountChange]:
        """The accounts that are there, by the names of the screen."""

    @property
    def accounts_title(self) -> str:
        """Of which ranks."""

    @property
    def legend(self) -> Sequence[Kind]:
        """Each kind of cell that occurs in A or B."""

    @property
    def matched(self) -> str:
        """What of the two was matched."""

    @property
    def rows(self) -> Sequence[Row]:
        """What differs most, the largest first."""

    @property
    def unchanged(self) -> Sequence[str]:
        """What is the same in both."""

    @property
    def is_other_model(self) -> bool:
        """Whether one of them is not the model of its file, and not as the other: then less is no gain."""

    @property
    def notices(self) -> Sequence[str]:
        """What it costs, or what has to be known before the figures are believed."""


def by_difference(busy: Sequence[tuple[int, int]], steps: tuple[int, int]) -> list[int]:
    """The order of pairs: those whose busy share changes by most percent first, equal ones as they are."""

    def changed(number: int) -> int:
        a, b = map(whole_percent, busy[number], steps)
        return -abs(b - a)

    return sorted(range(len(busy)), key=changed)


def joined_legend(legends: Sequence[Sequence[Kind]]) -> list[Kind]:
    """The kinds of both runs, each once, in the first run's words; what is blank comes last."""
    found: dict[tuple[str, str], Kind] = {}
    for kinds in legends:
        for kind in kinds:
            found.setdefault((kind.fill, kind.role), kind)
    return sorted(found.values(), key=lambda kind: kind.fill == "idle")


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
