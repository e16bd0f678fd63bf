"""Two runs as the compare screen needs them, of any kind: pairs of lanes and what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from simcore.compare import AccountChange, Alike
from simcore.records import NamedTuple
from simcore.trace.run import Run
from simcore.units import whole_percent
from tui.timeline.lanes import Kind, LaneSource, SpanLane


class DifferenceRow(NamedTuple):
    """One line of what differs most. measure: of what a_ns and b_ns are. pair: index of where it is.

    at_ns: when it begins in A, None for a sum.
    """

    words: str
    measure: str
    a_ns: int
    b_ns: int
    pair: int
    at_ns: int | None


class Compared:
    """Run B against run A. Pairs of lanes are numbered by how much their busy share differs.

    runs: A and B, which may be one. accounts_title: of which ranks the accounts are.
    """

    accounts_title = ""
    # Whether A and B are of one run: then their steps are one.
    of_one_step = False

    def __init__(self, a: Run, b: Run) -> None:
        self.runs = a, b
        self._sources = LaneSource(a), LaneSource(b)
        self._alike: dict[int, list[Alike]] = {}

    @property
    def steps(self) -> tuple[int, int]:
        """Both step times, ns."""
        a, b = self.runs
        return a.step_time_ns, b.step_time_ns

    @property
    def sides(self) -> tuple[str, str]:
        """What A and B are, in words."""
        raise NotImplementedError

    # -- pairs of lanes --------------------------------------------------------------

    @property
    def _pairs(self) -> Sequence[Any]:
        """The pairs in the order that they were found in; each has `a` and `b`."""
        raise NotImplementedError

    @property
    def pairs(self) -> int:
        """How many pairs of lanes there are."""
        return len(self._pairs)

    @cached_property
    def _order(self) -> list[int]:
        """The pairs whose busy share changes by most percent first, equal ones as they are."""
        changed = []
        for lane_pair in self._pairs:
            a, b = map(whole_percent, self._busy_ns(lane_pair), self.steps)
            changed.append(-abs(b - a))
        return sorted(range(self.pairs), key=changed.__getitem__)

    def _pair(self, pair: int) -> Any:
        return self._pairs[self._order[pair]]

    @property
    def alone(self) -> tuple[Sequence[str], Sequence[str]]:
        """The lanes of A and those of B that are in no pair, as `where` has them, in their order."""
        raise NotImplementedError

    def where(self, pair: int) -> str:
        """`stage 3`, `rank 17`."""
        raise NotImplementedError

    def lanes(self, pair: int) -> tuple[SpanLane, SpanLane]:
        """The lanes of a pair in A and in B."""
        raise NotImplementedError

    def streams(self, pair: int) -> Sequence[tuple[SpanLane, SpanLane]]:
        """The lanes of the streams that both lanes of a pair have by the same name, in the order of A."""
        lanes = self.lanes(pair)
        of_a, of_b = (source.streams(lane.number) for source, lane in zip(self._sources, lanes, strict=True))
        by_name = {span_lane.key.stream: span_lane for span_lane in of_b}
        return [
            (span_lane, by_name[span_lane.key.stream])
            for span_lane in of_a
            if span_lane.key.stream in by_name
        ]

    def _busy_ns(self, lane_pair: Any) -> tuple[int, int]:
        raise NotImplementedError

    def busy_ns(self, pair: int) -> tuple[int, int]:
        """What they compute."""
        return self._busy_ns(self._pair(pair))

    def _found_alike(self, lane_pair: Any) -> Iterable[Alike]:
        raise NotImplementedError

    def alike(self, pair: int) -> Sequence[Alike]:
        """What both lanes have, by its start in A."""
        if pair not in self._alike:
            self._alike[pair] = sorted(self._found_alike(self._pair(pair)))
        return self._alike[pair]

    def known_alike(self, pair: int) -> Sequence[Alike]:
        """The same if it was found already, else nothing: what drawing may ask for."""
        return self._alike.get(pair, ())

    def told(self, pair: int, side: int, time_ns: int) -> str:
        """What lane A (0) or B (1) of a pair does at a time of its step."""
        raise NotImplementedError

    @cached_property
    def legend(self) -> Sequence[Kind]:
        """Each kind of cell that occurs in A or B, in the first one's words; what is blank comes last."""
        joined: dict[tuple[str, str], Kind] = {}
        for source in self._sources:
            for kind in source.legend:
                joined.setdefault((kind.fill, kind.role), kind)
        return sorted(joined.values(), key=lambda kind: kind.fill == "idle")

    # -- what differs ----------------------------------------------------------------

    def find(self, is_cancelled: Callable[[], bool]) -> object:
        """What takes long, in a worker: `why`, `matched`, `rows`, `unchanged`, `notices`, `known_alike`."""
        raise NotImplementedError

    @property
    def why(self) -> str:
        """What explains B - A and what causes it, a sentence without its full stop."""
        raise NotImplementedError

    @property
    def accounts(self) -> Sequence[AccountChange]:
        """The accounts that are there, by the names of the screen."""
        raise NotImplementedError

    @property
    def matched(self) -> str:
        """What of the two was matched."""
        raise NotImplementedError

    @property
    def rows(self) -> Sequence[DifferenceRow]:
        """What differs most, the largest first."""
        raise NotImplementedError

    @property
    def unchanged(self) -> Sequence[str]:
        """What is the same in both."""
        raise NotImplementedError

    @property
    def pieces_words(self) -> str:
        """Why what one of the two sends in more pieces takes longer there; "" where nothing does."""
        return ""

    @property
    def is_other_model(self) -> bool:
        """Whether one of them is not the model of its file, and not as the other: then less is no gain."""
        a, b = self.runs
        return a.model.other_model != b.model.other_model

    @property
    def notices(self) -> Sequence[str]:
        """What it costs, or what has to be known before the figures are believed."""
        raise NotImplementedError

    @property
    def cost(self) -> str:
        """What B keeps in memory at most, beside A, in few words; "" where it is not known, or alike."""
        return ""
