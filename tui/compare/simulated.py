"""Two simulated runs as the compare screen needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from simcore.analysis.accounts import ACCOUNTS
from simcore.analysis.compare import AccountChange, Alike, Comparison
from simcore.analysis.compare.words import (
    cost_words,
    matched_words,
    op_words,
    short_cost_words,
    side_words,
)
from simcore.analysis.span_words import PHASE_WORDS, op_facts
from tui.compare.source import DifferenceRow, by_difference, joined_legend, paired_streams
from tui.frame import cells
from tui.session import Run
from tui.timeline.lanes import Kind, Lane, LaneSource, SpanLane

# Beyond so many ops the lists of all lanes are not made ahead, only those of the lane at the cursor.
_MOST_OPS_AHEAD = 500_000
_NAME = 28
_COMPUTE = {f"compute {phase}": words for phase, words in PHASE_WORDS.items()}


class SimulatedCompared:
    """Op by op: `Comparison` has all figures."""

    accounts_title = "Accounts, mean of all ranks"

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self._sources = LaneSource(comparison.a), LaneSource(comparison.b)
        self._alike: dict[int, list[Alike]] = {}

    @property
    def steps(self) -> tuple[int, int]:
        return self.comparison.a.step_time_ns, self.comparison.b.step_time_ns

    @property
    def runs(self) -> tuple[Run, Run]:
        return self.comparison.a, self.comparison.b

    @property
    def sides(self) -> tuple[str, str]:
        return side_words(self.comparison, 0), side_words(self.comparison, 1)

    @cached_property
    def _order(self) -> list[int]:
        busy = [self._busy_ns(number) for number in range(len(self.comparison.pairs))]
        return by_difference(busy, self.steps)

    @property
    def pairs(self) -> int:
        return len(self.comparison.pairs)

    @cached_property
    def alone(self) -> tuple[Sequence[str], Sequence[str]]:
        def titles(source: LaneSource, paired: set[int]) -> list[str]:
            lanes = [source.lane(number) for number in source.numbers]
            return [" ".join(lane.title.split()) for lane in lanes if lane.number not in paired]

        a, b = self._sources
        pairs = self.comparison.pairs
        return (
            titles(a, {a.lane(pair.a).number for pair in pairs}),
            titles(b, {b.lane(pair.b).number for pair in pairs}),
        )

    def _busy_ns(self, number: int) -> tuple[int, int]:
        pair = self.comparison.pairs[number]
        return self.comparison.a.accounts[pair.a].busy_ns, self.comparison.b.accounts[pair.b].busy_ns

    def busy_ns(self, pair: int) -> tuple[int, int]:
        return self._busy_ns(self._order[pair])

    def where(self, pair: int) -> str:
        # Of the lane that stands for fewer ranks: a slow rank of B is one of a whole stage of A.
        return " ".join(min(self.lanes(pair), key=lambda lane: lane.ranks).title.split())

    def lanes(self, pair: int) -> tuple[Lane, Lane]:
        lane_pair = self.comparison.pairs[self._order[pair]]
        return self._sources[0].lane(lane_pair.a), self._sources[1].lane(lane_pair.b)

    def streams(self, pair: int) -> Sequence[tuple[SpanLane, SpanLane]]:
        return paired_streams(self._sources, self.lanes(pair))

    def alike(self, pair: int) -> Sequence[Alike]:
        if pair not in self._alike:
            computed = self.comparison.computed_ops(self.comparison.pairs[self._order[pair]])
            self._alike[pair] = sorted(computed)
        return self._alike[pair]

    def known_alike(self, pair: int) -> Sequence[Alike]:
        return self._alike.get(pair, ())

    def find(self, is_cancelled: Callable[[], bool]) -> object:
        for side in (self.comparison.a, self.comparison.b):
            side.compute_critical_path(is_cancelled)
        outcome = self.comparison.why, self.comparison.movers
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
        results = (self.comparison.a, self.comparison.b)[side]
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
            for account in self.comparison.accounts
            if account.a_ns or account.b_ns
        ]

    @cached_property
    def legend(self) -> Sequence[Kind]:
        return joined_legend([source.legend for source in self._sources])

    @property
    def matched(self) -> str:
        return matched_words(self.comparison)

    @cached_property
    def rows(self) -> Sequence[DifferenceRow]:
        places = [self.comparison.pairs[number].first for number in self._order]
        return [
            DifferenceRow(
                op_words(self.comparison, mover), mover.measure, mover.a_ns, mover.b_ns,
                places.index(mover.place), mover.a_start_ns,
            )
            for mover in self.comparison.movers
        ]  # fmt: skip

    @property
    def unchanged(self) -> Sequence[str]:
        return self.comparison.unchanged

    @property
    def is_other_model(self) -> bool:
        return self.comparison.a.other_model != self.comparison.b.other_model

    @property
    def notices(self) -> Sequence[str]:
        cost = [cost_words(self.comparison)] if self.comparison.cost is not None else []
        return [*self.comparison.notices, *cost]

    @property
    def cost(self) -> str:
        return short_cost_words(self.comparison)
