"""Repeats: stretches of a graph that are equal to an earlier one, with other node numbers.

The ops of a micro-batch that wait for each other are the same nodes each time. Such a stretch depends only on
its entry, the node at which its track was when it began; and all of its nodes are over before its exit is:
what follows waits for the exit, and everything else in the stretch that is waited for is over by then. So a
pass takes the stretch at once, and computes it once for all equal stretches with equal durations.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence

from simcore.records import NamedTuple


class Pattern:
    """The nodes of equal stretches, numbered from 1 on; 0 is the entry.

    first, second: the nodes that a node waits for; 0 as `second` is none. duration: the index of the node's
    duration among those of the stretch, -1 of a join. out: the exit.
    """

    __slots__ = ("duration", "first", "out", "second")

    def __init__(
        self, first: Sequence[int], second: Sequence[int], duration: Sequence[int], out: int
    ) -> None:
        self.first = list(first)
        self.second = list(second)
        self.duration = list(duration)
        self.out = out

    def __len__(self) -> int:
        return len(self.first)

    @property
    def is_closed(self) -> bool:
        """Whether all nodes are over before the exit is."""
        over = bytearray(len(self) + 1)
        pending = [self.out]
        while pending:
            node = pending.pop()
            if node and not over[node]:
                over[node] = 1
                pending += (self.first[node - 1], self.second[node - 1])
        return sum(over) == len(self)

    def node_durations(self, durations: Sequence[int]) -> list[int]:
        """Returns what each node takes, ns. durations: of the stretch."""
        return [0 if index < 0 else durations[index] for index in self.duration]

    def ends(self, durations: Sequence[int]) -> array[int]:
        """Returns when each node ends, ns from the end of the entry."""
        end = [0]
        for first, second, ns in zip(self.first, self.second, self.node_durations(durations), strict=True):
            end.append(max(end[first], end[second]) + ns)
        return array("q", end[1:])

    def longest_to_exit(self, durations: Sequence[int]) -> array[int]:
        """Returns by node, the entry first, the longest path from its end to that of the exit, ns."""
        longest = [-1] * (len(self) + 1)
        longest[self.out] = 0
        node_ns = self.node_durations(durations)
        for node in range(len(self), 0, -1):
            ns = longest[node] + node_ns[node - 1]
            first, second = self.first[node - 1], self.second[node - 1]
            longest[first] = max(longest[first], ns)
            if second:
                longest[second] = max(longest[second], ns)
        return array("q", longest)


class Repeat(NamedTuple):
    """A stretch of a graph."""

    before: int
    """The node in front of its first one."""
    entry: int
    """The node of the graph on which it depends."""
    duration: int
    """The index of its first duration."""
    durations: int
    """How many durations it has."""
    pattern: Pattern
    """Its nodes."""

    @property
    def exit(self) -> int:
        return self.before + self.pattern.out

    @property
    def last(self) -> int:
        """Its last node in the graph."""
        return self.before + len(self.pattern)

    def own(self, column: array[int]) -> array[int]:
        """Returns its part of a column by duration."""
        return column[self.duration : self.duration + self.durations]


class PathNodes(NamedTuple):
    """The nodes of a repeat that the critical path goes through, in the order of time."""

    first: int
    """The first node, from 1."""
    duration_ids: array[int]
    """The index of each node's duration in the stretch."""
    begin: array[int]
    """When each node begins, ns from the end of the entry."""
    why: array[int]
    """How each node waits for the one before it, a constant of `simcore.trace.graph`; -1 for the first."""


class PatternTimes:
    """A pattern with durations of some kinds, and how its exit responds to a factor on some kinds."""

    def __init__(self, pattern: Pattern, durations: Sequence[int], kinds: Sequence[int]) -> None:
        """kinds: the kind of each duration."""
        self._pattern = pattern
        self._durations = pattern.node_durations(durations)
        # Joins take nothing, whatever their kind.
        self._kinds = [kinds[index] for index in pattern.duration]
        self._ends = [0, *pattern.ends(durations)]
        self.total = self._ends[pattern.out]
        self._critical_nodes = self._find_critical_nodes()
        self.kinds = {kind for kind, ns in zip(self._kinds, self._durations, strict=True) if ns}

    def chosen_ns(self, kinds: Collection[int]) -> list[int]:
        """Returns by node ns of these kinds; empty where it has none of them."""
        if self.kinds.isdisjoint(kinds):
            return []
        return [ns if kind in kinds else 0 for kind, ns in zip(self._kinds, self._durations, strict=True)]

    def _find_critical_nodes(self) -> list[tuple[int, list[int]]]:
        """Returns the nodes of all longest paths to the exit, in order, each with those right before it
        there.

        0 is the entry.
        """
        ends, pattern = self._ends, self._pattern
        before: dict[int, list[int]] = {}
        pending = [pattern.out]
        while pending:
            node = pending.pop()
            if node and node not in before:
                begin = ends[node] - self._durations[node - 1]
                first, second = pattern.first[node - 1], pattern.second[node - 1]
                before[node] = [first] if ends[first] == begin else []
                if second and ends[second] == begin:
                    before[node].append(second)
                pending += before[node]
        return sorted(before.items())

    def slopes_at_one(self, chosen_ns: Sequence[int]) -> tuple[int, int]:
        """Returns (the least, the most) of the chosen durations on a longest path to the exit, ns."""
        if not chosen_ns:
            return 0, 0
        least, most = {0: 0}, {0: 0}
        for node, before in self._critical_nodes:
            own = chosen_ns[node - 1]
            if len(before) == 1:
                (only,) = before
                least[node], most[node] = own + least[only], own + most[only]
            else:
                least[node] = own + min([least[earlier] for earlier in before])
                most[node] = own + max([most[earlier] for earlier in before])
        return least[self._pattern.out], most[self._pattern.out]

    def longest_at(self, factor: float, chosen_ns: Sequence[int]) -> tuple[float, int]:
        """Returns (the longest path to the exit with the chosen durations times `factor`, how much of them it
        has).
        """
        if not chosen_ns:
            return self.total, 0
        less = factor - 1
        pattern = self._pattern
        end: list[float] = [0]
        columns = zip(pattern.first, pattern.second, self._durations, chosen_ns, strict=True)
        for first, second, ns, node_chosen_ns in columns:
            end.append(max(end[first], end[second]) + (ns + less * node_chosen_ns if node_chosen_ns else ns))
        node, slope = pattern.out, 0
        while node:
            slope += chosen_ns[node - 1]
            first, second = pattern.first[node - 1], pattern.second[node - 1]
            node = first if not second or end[first] > end[second] else second
        return end[pattern.out], slope
