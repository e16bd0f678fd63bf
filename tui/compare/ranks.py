"""Two ranks of the run on the screen, as the compare screen needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from simcore.compare import AccountChange, Alike, Comparison, LanePair
from simcore.compare.words import names_of_sides, track_facts
from simcore.trace.run import common_ns
from simcore.trace.track import busy_ns
from simcore.workload.model import base_name
from tui.compare.measured import name_rows, told_at
from tui.compare.source import Compared, DifferenceRow
from tui.session import Run
from tui.timeline.lanes import SpanLane


class RanksCompared(Compared):
    """One pair of lanes, account by account and name by name: `TwoRanks` has all figures."""

    accounts_title = "Accounts of the two ranks"
    of_one_step = True

    def __init__(self, run: Run, a: int, b: int) -> None:
        """a, b: the ranks. Raises `UsageError` where there are none that can be compared."""
        super().__init__(run, run)
        self.ranks = Comparison(run, run, (a, b))

    @property
    def names(self) -> tuple[str, str]:
        """`rank 0`, `rank 7`."""
        return names_of_sides(self.ranks)

    @property
    def sides(self) -> tuple[str, str]:
        a, b = ((", ".join(track_facts(self.ranks, side)) or self.runs[0].figures.kind) for side in (0, 1))
        return a, b

    @property
    def _pairs(self) -> Sequence[LanePair]:
        return self.ranks.pairs

    alone = ((), ())

    def _busy_ns(self, lane_pair: LanePair) -> tuple[int, int]:
        run = self.runs[0]
        return busy_ns(common_ns(run, lane_pair.a)), busy_ns(common_ns(run, lane_pair.b))

    def where(self, pair: int) -> str:
        a, b = names_of_sides(self.ranks)
        return f"{a}, {b.removeprefix('rank ')}"

    def lanes(self, pair: int) -> tuple[SpanLane, SpanLane]:
        (a,), (b,) = self.ranks.tracks
        return self._sources[0].lane(a.number), self._sources[1].lane(b.number)

    def _found_alike(self, lane_pair: LanePair) -> Iterable[Alike]:
        return self.ranks.alike(lane_pair)

    def find(self, is_cancelled: Callable[[], bool]) -> object:
        self.alike(0)
        return self.rows

    def told(self, pair: int, side: int, time_ns: int) -> str:
        return told_at(self.runs[side], self.ranks.tracks[side][0], self.lanes(pair)[side], time_ns)

    @property
    def why(self) -> str:
        return self.ranks.why

    @property
    def accounts(self) -> Sequence[AccountChange]:
        return [change for change in self.ranks.whole.accounts if change.a_ns or change.b_ns]

    matched = ""

    @cached_property
    def rows(self) -> Sequence[DifferenceRow]:
        return name_rows(self.ranks.by_name, "", lambda change: 0, self._starts)

    @cached_property
    def _starts(self) -> dict[str, int]:
        """Where the longest span of each name begins in A, ns."""
        lane, run = self.lanes(0)[0], self.runs[0]
        spans = lane.spans
        starts: dict[str, int] = {}
        for index in lane.by_length:
            if spans.op[index] >= 0:
                name, _ = run.lanes.name(lane.number, spans.op[index])
                starts.setdefault(base_name(name), spans.start[index])
        return starts

    unchanged = ()

    @property
    def notices(self) -> Sequence[str]:
        return self.ranks.notices
