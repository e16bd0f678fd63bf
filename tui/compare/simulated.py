"""Two simulated runs as the compare screen needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from simcore.analysis.span_words import op_facts
from simcore.compare import AccountChange, Alike, Comparison, LanePair
from simcore.compare.op_words import cost_words, op_words, pieces_words, short_cost_words
from simcore.compare.words import paired_words
from simcore.sources.simulated import ACCOUNTS
from simcore.trace.lanes import PHASE_WORDS
from tui.compare.source import Compared, DifferenceRow
from tui.frame import cells
from tui.timeline.lanes import Lane, LaneSource

# Beyond so many ops the lists of all lanes are not made ahead, only those of the lane at the cursor.
_MOST_OPS_AHEAD = 500_000
_NAME = 28
_COMPUTE = {f"compute {phase}": words for phase, words in PHASE_WORDS.items()}


class SimulatedCompared(Compared):
    """Op by op: `Comparison` has all figures."""

    accounts_title = "Accounts, mean of all ranks"

    def __init__(self, comparison: Comparison) -> None:
        super().__init__(comparison.a, comparison.b)
        assert comparison.ops is not None  # else it is no pair of this kind
        self.comparison, self.ops = comparison, comparison.ops

    @property
    def sides(self) -> tuple[str, str]:
        return self.comparison.sides

    @property
    def _pairs(self) -> Sequence[LanePair]:
        return self.comparison.pairs

    @cached_property
    def alone(self) -> tuple[Sequence[str], Sequence[str]]:
        def titles(source: LaneSource, paired: set[int]) -> list[str]:
            lanes = [source.lane(number) for number in source.numbers]
            return [" ".join(lane.title.split()) for lane in lanes if lane.number not in paired]

        a, b = self._sources
        pairs = self.ops.pairs
        return (
            titles(a, {a.lane(pair.a).number for pair in pairs}),
            titles(b, {b.lane(pair.b).number for pair in pairs}),
        )

    def _busy_ns(self, lane_pair: LanePair) -> tuple[int, int]:
        a, b = self.comparison.a, self.comparison.b
        return a.accounts[lane_pair.a.number].busy_ns, b.accounts[lane_pair.b.number].busy_ns

    def where(self, pair: int) -> str:
        # Of the lane that stands for fewer ranks: a slow rank of B is one of a whole stage of A.
        return " ".join(min(self.lanes(pair), key=lambda lane: lane.ranks).title.split())

    def lanes(self, pair: int) -> tuple[Lane, Lane]:
        lane_pair = self._pair(pair)
        return self._sources[0].lane(lane_pair.a.number), self._sources[1].lane(lane_pair.b.number)

    def _found_alike(self, lane_pair: LanePair) -> Iterable[Alike]:
        return self.comparison.alike(lane_pair)

    def find(self, is_cancelled: Callable[[], bool]) -> object:
        for side in (self.comparison.a, self.comparison.b):
            side.compute_critical_path(is_cancelled)
        outcome = self.comparison.why, self.ops.movers
        left = _MOST_OPS_AHEAD
        for pair in range(self.pairs):
            left -= len(self.lanes(pair)[0].spans.start)
            if left < 0 or is_cancelled():
                break
            self.alike(pair)
        return outcome

    def told(self, pair: int, side: int, time_ns: int) -> str:
        lane = self.lanes(pair)[side]
        index = lane.at(time_ns)
        results = (self.ops.a, self.ops.b)[side]
        accounts = results.accounts[lane.number]
        if index is None or not 0 <= time_ns < results.step_time_ns:
            return "nothing: the step is over" if time_ns > 0 else "nothing yet"
        account = ACCOUNTS[accounts.account[index]]
        account = _COMPUTE.get(account, account)
        facts = op_facts(results.simulation, lane.number, accounts.op[index])
        if facts is None:
            return account
        name = cells(facts.name, _NAME) if facts.name else facts.kind
        batch = f", micro-batch {facts.microbatch}" if facts.microbatch >= 0 else ""
        waits = "for " if account in ("wait", "bubble") or account.startswith("exposed") else ""
        return f"{account} {waits}{name}{batch}"

    @property
    def why(self) -> str:
        return self.comparison.why

    @property
    def accounts(self) -> Sequence[AccountChange]:
        return [
            account._replace(name=_COMPUTE.get(account.name, account.name))
            for account in self.ops.accounts
            if account.a_ns or account.b_ns
        ]

    @property
    def matched(self) -> str:
        return paired_words(self.comparison)

    @cached_property
    def rows(self) -> Sequence[DifferenceRow]:
        places = [self.ops.pairs[number].first for number in self._order]
        return [
            DifferenceRow(
                op_words(self.ops, mover), mover.measure, mover.a_ns, mover.b_ns,
                places.index(mover.place), mover.a_start_ns,
            )
            for mover in self.ops.movers
        ]  # fmt: skip

    @property
    def unchanged(self) -> Sequence[str]:
        return self.comparison.unchanged

    @property
    def pieces_words(self) -> str:
        return pieces_words(self.ops)

    @property
    def notices(self) -> Sequence[str]:
        cost = [cost_words(self.ops)] if self.ops.cost is not None else []
        return [*self.comparison.notices, *cost]

    @property
    def cost(self) -> str:
        return short_cost_words(self.ops)
