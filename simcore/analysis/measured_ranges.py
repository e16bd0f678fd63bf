"""What a measured rank does in any stretch of the step, by category: exact sums, as `rank_times` counts."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from simcore.analysis.ranges import Longest, RangeSums, longest_in
from simcore.measured import MeasuredRun
from simcore.measured.lanes import rank_spans
from simcore.measured.replay import MeasuredResults
from simcore.measured.replay.accounts import ACCOUNTS
from simcore.measured.vocabulary import CATEGORIES


@dataclass
class AccountRanges:
    """Of a timed run, by account: what of an operation is waiting counts as that."""

    results: MeasuredResults
    _sums: dict[int, RangeSums] = field(default_factory=dict)

    def of_rank(self, index: int, first_ns: int, last_ns: int) -> list[int]:
        """ns by index into ACCOUNTS, of the rank at `index` of the run, from `first_ns` to `last_ns`."""
        if index not in self._sums:
            one = self.results.accounts[index]
            self._sums[index] = RangeSums(one.edge, one.account, len(ACCOUNTS))
        return self._sums[index].between(first_ns, last_ns)

    def of_all(self, first_ns: int, last_ns: int) -> list[int]:
        """ns by index into ACCOUNTS, of all ranks together."""
        ranks = range(len(self.results.accounts))
        return [sum(ns) for ns in zip(*(self.of_rank(one, first_ns, last_ns) for one in ranks), strict=True)]


@dataclass
class MeasuredRanges:
    """Of a measured run. Where operations overlap, the one that began first has the time."""

    run: MeasuredRun
    _sums: dict[int, tuple[array[int], bytearray, RangeSums]] = field(default_factory=dict)

    def of_rank(self, index: int, first_ns: int, last_ns: int) -> list[int]:
        """ns by index into CATEGORIES, of the rank at `index` of the run, from `first_ns` to `last_ns`."""
        return self._of(index)[2].between(first_ns, last_ns)

    def of_all(self, first_ns: int, last_ns: int) -> list[int]:
        """ns by index into CATEGORIES, of all ranks together."""
        totals = [0] * len(CATEGORIES)
        for index in range(len(self.run.ranks)):
            for category, ns in enumerate(self.of_rank(index, first_ns, last_ns)):
                totals[category] += ns
        return totals

    def longest(self, index: int, first_ns: int, last_ns: int) -> tuple[Longest, int]:
        """The pieces of a rank's time in a stretch, and the category of the longest one."""
        edge, category, _ = self._of(index)
        found = longest_in(edge, first_ns, last_ns)
        return found, category[found.index] if found.index >= 0 else 0

    def _of(self, index: int) -> tuple[array[int], bytearray, RangeSums]:
        if index not in self._sums:
            spans = rank_spans(self.run, self.run.ranks[index])
            edge, category = array("q", (0,)), bytearray()
            for end, kind in zip(spans.end, spans.category, strict=True):
                # An instant is drawn 1 ns wide; behind the end it has no time to take.
                end = min(end, self.run.length)
                if end > edge[-1]:
                    edge.append(end)
                    category.append(kind)
            self._sums[index] = edge, category, RangeSums(edge, category, len(CATEGORIES))
        return self._sums[index]
