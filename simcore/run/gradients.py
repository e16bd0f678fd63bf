"""Gradients: how the step time answers to a factor on some durations, with the order of the run frozen.

The step is the longest path of the graph, so over a factor f on some durations it is a convex line of
straight pieces. At f = 1 it has a left and a right slope: the least and the most of these durations that a
critical path has; where paths tie they differ. The left one holds down to the factor at which another path
becomes the longest.

Nodes that hang on each other alone are one chain here: a pass costs what the meetings and messages cost.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import compress
from operator import ne, or_, sub
from typing import NamedTuple, TypeVar

from simcore.diagnostics import Cancelled
from simcore.records import Struct
from simcore.run.graph import START, Graph, never

Time = TypeVar("Time", int, float)
# Times of a pass at a factor are floats: below this share of the step two of them are equal.
_EQUAL = 1e-12
_MOST_PIECES = 64
# Of a factor; behind them floats differ with the order of sums.
_PLACES = 9


class Slopes(NamedTuple):
    """What the step time does with a factor f on some durations, at f = 1.

    left_ns, right_ns: ns a unit of the factor, for less and for more. until: the factor below 1 down to which
    `left_ns` holds; 0 where it holds until they take nothing.
    """

    left_ns: int
    right_ns: int
    until: float


class Gradient(Struct, frozen=True):
    """The slopes of the step time over one scale.

    scale: `compute`, `comm`, `comm tp`, `layer mlp_row`, `ranks 0-63`, of traces `op forward_step`, `host
    gaps`; raw text of the file may be in it. The others: see `Slopes`.
    """

    scale: str
    left_ns: int
    right_ns: int
    until: float


def _summed(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """ns by kind; without what takes none."""
    found: dict[int, int] = {}
    for kind, ns in pairs:
        if ns:
            found[kind] = found.get(kind, 0) + ns
    return found


class Chains:
    """A graph with its chains as single nodes, and what each kind of duration takes of them.

    first, second: the chains that a chain waits for, 0 for none, each behind those that it waits for.
    total: ns of a chain. kinds: by kind of duration, ns by chain.
    """

    def __init__(self, graph: Graph, durations: array[int], kind_of: array[int], last: Iterable[int]) -> None:
        """durations: of `Graph.flat`. kind_of: of each duration the number of its kind. last: the nodes with
        which the tracks are over.
        """
        count = len(graph)
        last = list(last)
        # A node hangs on the one before it alone, or it breaks a chain.
        waits = map(or_, map(ne, graph.first, range(count)), graph.second)
        breaks = list(compress(range(count), waits))
        ends = {graph.first[at] for at in breaks}
        ends.update(graph.second[at] for at in breaks)
        ends.update(breaks, last, (count,))
        ends.discard(START)
        tails = sorted(ends)
        number = {START: 0} | {tail: place for place, tail in enumerate(tails, 1)}
        self.first, self.second, self.total = array("i"), array("i"), array("q")
        self.kinds: dict[int, dict[int, int]] = {}
        self._known: dict[tuple[bytes, bytes], dict[int, int]] = {}
        head = 0
        for chain, tail in enumerate(tails, 1):
            self.first.append(number[graph.first[head]])
            self.second.append(number[graph.second[head]])
            sums = self._sums(graph.duration[head:tail], durations, kind_of)
            self.total.append(sum(sums.values()))
            for kind, ns in sums.items():
                self.kinds.setdefault(kind, {})[chain] = ns
            head = tail
        self.last = [number[node] for node in last]
        self._known.clear()
        self._ends = self._ends_with(self.total)
        self.step_ns = max(self._ends[chain] for chain in self.last)
        self._critical = self._tight()

    def _sums(self, numbers: array[int], durations: array[int], kind_of: array[int]) -> dict[int, int]:
        """ns by kind of the durations with these numbers."""
        first, after = numbers[0], numbers[-1] + 1
        if first < 1 or after - first != len(numbers):
            # Joins take nothing, and are between.
            kinds = [(kind_of[one], durations[one]) for one in numbers if one > 0]
            return _summed(kinds)
        # Micro-batches repeat each other: one of many is summed.
        key = (kind_of[first:after].tobytes(), durations[first:after].tobytes())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _summed(zip(kind_of[first:after], durations[first:after], strict=True))
        return found

    def _ends_with(self, totals: Iterable[Time]) -> list[Time]:
        end: list[Time] = [0]
        append = end.append
        for first, second, total in zip(self.first, self.second, totals, strict=True):
            one, other = end[first], end[second]
            append((one if one > other else other) + total)
        return end

    def _tight(self) -> list[int]:
        """The chains of all critical paths, in order."""
        ends = self._ends
        asked = [chain for chain in self.last if ends[chain] == self.step_ns and chain]
        found = set(asked)
        while asked:
            chain = asked.pop()
            begin = ends[chain] - self.total[chain - 1]
            for before in (self.first[chain - 1], self.second[chain - 1]):
                if before and ends[before] == begin and before not in found:
                    found.add(before)
                    asked.append(before)
        return sorted(found)

    def slopes(self, kinds: Collection[int], cancelled: Callable[[], bool] = never) -> Slopes:
        """What a factor on these kinds of durations does. Raises `Cancelled`."""
        if cancelled():
            raise Cancelled
        chosen = [0] * len(self.total)
        for kind in kinds:
            for chain, ns in self.kinds.get(kind, {}).items():
                chosen[chain - 1] += ns
        left, right = self._slopes_at_one(chosen)
        return Slopes(left, right, self._until(chosen, left, cancelled) if left else 0.0)

    def _slopes_at_one(self, chosen: Sequence[int]) -> tuple[int, int]:
        ends = self._ends
        least: dict[int, int] = {}
        most: dict[int, int] = {}
        for chain in self._critical:
            begin = ends[chain] - self.total[chain - 1]
            # On a critical path START is waited for by what begins with the step alone.
            waits = self.first[chain - 1], self.second[chain - 1]
            before = [one for one in waits if one in least and ends[one] == begin]
            own = chosen[chain - 1]
            least[chain] = own + min((least[one] for one in before), default=0)
            most[chain] = own + max((most[one] for one in before), default=0)
        over = [chain for chain in self.last if chain in least and ends[chain] == self.step_ns]
        return (
            min((least[chain] for chain in over), default=0),
            max((most[chain] for chain in over), default=0),
        )

    def _until(self, chosen: Sequence[int], left: int, cancelled: Callable[[], bool]) -> float:
        """The least factor at which the step is still on the line that it leaves 1 with, downwards.

        From 0 on, each time by the piece that is the longest path there, to where that meets the line.
        """
        free = self._ends_with(map(sub, self.total, chosen))
        if max(free[chain] for chain in self.last) == self.step_ns - left:
            return 0.0
        factor = 0.0
        for _ in range(_MOST_PIECES):
            if cancelled():
                raise Cancelled
            step, slope = self._step_at(factor, chosen)
            line = self.step_ns - left * (1 - factor)
            if step - line <= _EQUAL * self.step_ns or slope >= left:
                break
            factor += (step - line) / (left - slope)
        return min(round(factor, _PLACES), 1.0)

    def _step_at(self, factor: float, chosen: Sequence[int]) -> tuple[float, int]:
        """(the step with the chosen durations times `factor`, how much of them its path has)."""
        less = factor - 1
        end = self._ends_with(
            total + less * some if some else total for total, some in zip(self.total, chosen, strict=True)
        )
        chain = max(self.last, key=end.__getitem__)
        step, slope = end[chain], 0
        while chain:
            slope += chosen[chain - 1]
            first, second = self.first[chain - 1], self.second[chain - 1]
            chain = first if end[first] > end[second] else second
        return step, slope
