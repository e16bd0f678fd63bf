"""Gradients: how the step time responds to a factor on some durations, with the order of the run frozen.

The step is the longest path of the graph, so over a factor f on some durations it is convex and piecewise
linear. At f = 1 it has a left and a right slope: the least and the most of these durations that a critical
path has; they differ where several paths are critical. The left slope holds down to the factor at which
another path becomes the longest.

Nodes that depend on one another alone are one chain here: the cost of a pass is that of the rendezvous and
messages.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from operator import add, ne, or_
from typing import TypeVar

from simcore.records import NamedTuple, Struct
from simcore.trace.graph import START, Graph
from simcore.trace.repeats import Pattern, PatternTimes

Time = TypeVar("Time", int, float)
# The step at a factor is a float: two steps that differ by less than this share are equal.
_EQUAL = 1e-12
_MOST_SEGMENTS = 64
# Decimals of a factor; beyond them floats depend on the order of sums.
_DECIMALS = 9


class Slopes(NamedTuple):
    """How the step time responds to a factor f on some durations, at f = 1."""

    left_ns: int
    """ns per unit of the factor, for less time."""
    right_ns: int
    """ns per unit of the factor, for more time."""
    until: float
    """The factor below 1 down to which `left_ns` holds; 0 where it holds until the durations take no time."""


class Gradient(Struct, frozen=True):
    """The slopes of the step time over one scale."""

    scale: str
    """`compute`, `comm`, `comm tp`, `layer mlp_row`, `ranks 0-63`, of traces `op forward_step`, `host gaps`;
    raw text of the file may be in it.
    """
    left_ns: int
    """As in `Slopes`."""
    right_ns: int
    """As in `Slopes`."""
    until: float
    """As in `Slopes`."""


def _sum_by_kind(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Returns ns by kind, without kinds of 0 ns."""
    sums: dict[int, int] = {}
    for kind, ns in pairs:
        if ns:
            sums[kind] = sums.get(kind, 0) + ns
    return sums


def _ends(first: Iterable[int], second: Iterable[int], totals: Iterable[Time]) -> list[Time]:
    """Returns when chains end that begin when both that they wait for have ended; entry 0 is 0."""
    end: list[Time] = [0]
    append = end.append
    for chain, other, total in zip(first, second, totals, strict=True):
        before, other_end = end[chain], end[other]
        append((before if before > other_end else other_end) + total)
    return end


def _find_breaks(graph: Graph, begin: int, end: int) -> list[int]:
    """Returns the indices begin..end-1 of the nodes that do not depend on the one before them alone."""
    waits = map(or_, map(ne, graph.first[begin:end], range(begin, end)), graph.second[begin:end])
    return list(compress(range(begin, end), waits))


def _drop_implied(first: list[int], second: list[int]) -> None:
    """Removes waits that another wait implies: for a chain that the other one waits for itself, and so never
    ends after it.
    """
    for index, (before, other) in enumerate(zip(first, second, strict=True)):
        if not other:
            continue
        if not before or before == other or before in (first[other - 1], second[other - 1]):
            first[index], second[index] = other, 0
        elif other in (first[before - 1], second[before - 1]):
            second[index] = 0


class _Runs(NamedTuple):
    """Chains that are always passed one behind the other, as one: numbered from 1, each behind those that it
    waits for.
    """

    of: list[int]
    """By chain, from 1, its run; entry 0 is 0."""
    first: list[int]
    """As in `Chains`, of runs."""
    second: list[int]
    """As in `Chains`, of runs."""


def _join_runs(first: Sequence[int], second: Sequence[int], last: Iterable[int]) -> _Runs:
    """Returns the runs of chains. last: those with which tracks are over; runs end with them."""
    use_count = [0] * (len(first) + 1)
    for before, other in zip(first, second, strict=True):
        use_count[before] += 1
        use_count[other] += before != other
    for chain in last:
        use_count[chain] += 1
    runs = _Runs([0], [], [])
    run_of, run_first, run_second = runs
    for before, other in zip(first, second, strict=True):
        only = before or other
        if only and not (before and other) and use_count[only] == 1:
            run_of.append(run_of[only])
        else:
            run_first.append(run_of[before])
            run_second.append(run_of[other])
            run_of.append(len(run_first))
    return runs


class _Part(NamedTuple):
    """Some of the chains as runs; what waits for a chain outside begins with the step."""

    run_of: dict[int, int]
    """Number of a chain in `Chains` -> index of its run."""
    first: list[int]
    """As in `_Runs`."""
    second: list[int]
    """As in `_Runs`."""
    total: list[int]
    """ns of a run."""
    last: list[int]
    """The runs with which tracks are over."""
    works: list[tuple[int, int]]
    """(index of the run, index in `Chains.works`) of each repeat."""

    def step_at(
        self, factor: float, chosen_ns: Sequence[int], at_factor: Sequence[tuple[float, int]]
    ) -> tuple[float, int]:
        """Returns (the step with the chosen durations times `factor`, how much of them its path has).

        at_factor: for each of `Chains.works` how much longer it takes, and how much of the chosen durations
        its path has; empty where none has any.
        """
        less = factor - 1
        totals: list[float] = [*self.total]
        for index in compress(range(len(chosen_ns)), chosen_ns):
            totals[index] += less * chosen_ns[index]
        slopes = chosen_ns
        if at_factor:
            slopes = [*chosen_ns]
            for index, work in self.works:
                more, slope = at_factor[work]
                totals[index] += more
                slopes[index] += slope
        end = _ends(self.first, self.second, totals)
        chain = max(self.last, key=end.__getitem__)
        step, slope = end[chain], 0
        while chain:
            slope += slopes[chain - 1]
            first, second = self.first[chain - 1], self.second[chain - 1]
            chain = first if end[first] > end[second] else second
        return step, slope


class Chains:
    """A graph with its chains as single nodes, and the time of each kind of duration in them.

    first, second: the chains that a chain waits for, 0 for none, each behind those that it waits for. total:
    ns of a chain. kinds: by kind of duration, ns by chain, without repeats. works: the repeats, equal ones
    once; a repeat is the last part of a chain.
    """

    def __init__(self, graph: Graph, durations: array[int], kind_of: array[int], last: Iterable[int]) -> None:
        """durations: of `Graph.flatten`. kind_of: the kind of each duration. last: the nodes with which the
        tracks are over.
        """
        count = len(graph)
        last = list(last)
        # A node depends on the one before it alone, or it breaks a chain; with a repeat a chain ends.
        breaks: list[int] = []
        inside = bytearray(count + 1)
        start = 0
        for repeat in graph.repeats:
            breaks += _find_breaks(graph, start, repeat.before)
            inside[repeat.before + 1 : repeat.last + 1] = b"\1" * len(repeat.pattern)
            start = repeat.last
        breaks += _find_breaks(graph, start, count)
        ends = {graph.first[at] for at in breaks}
        ends.update(graph.second[at] for at in breaks)
        ends.update(breaks, last, (count,))
        repeat_to = {repeat.last: repeat for repeat in graph.repeats}
        # What only one repeat depends on is in one chain with it.
        for repeat in graph.repeats:
            if repeat.entry != repeat.before:
                ends.update((repeat.before, repeat.entry))
        ends = {node for node in ends if not inside[node]}
        ends.update(repeat_to)
        ends.discard(START)
        tails = sorted(ends)
        chain_ids = {START: 0} | {tail: index for index, tail in enumerate(tails, 1)}
        # What waits for another node of a repeat begins after its exit all the same.
        inner = {repeat.exit: chain_ids[repeat.last] for repeat in graph.repeats}

        def chain_of(node: int) -> int:
            return inner.get(node, 0) if inside[node] else chain_ids[node]

        # Lists: each scale goes over all of them, and an array creates its ints anew each time.
        self.first: list[int] = []
        self.second: list[int] = []
        self.total: list[int] = []
        self.kinds: dict[int, dict[int, int]] = {}
        self._cached_sums: dict[tuple[bytes, bytes], dict[int, int]] = {}
        self.works: list[PatternTimes] = []
        # By chain with a repeat its index in `works`.
        self._work_of: dict[int, int] = {}
        known_works: dict[tuple[Pattern, bytes, bytes], int] = {}
        head = 0
        for chain, tail in enumerate(tails, 1):
            repeat_here, end, total = repeat_to.get(tail), tail, 0
            if repeat_here is not None:
                repeat_durations, kinds = repeat_here.own(durations), repeat_here.own(kind_of)
                key = repeat_here.pattern, repeat_durations.tobytes(), kinds.tobytes()
                work = known_works.setdefault(key, len(self.works))
                if work == len(self.works):
                    self.works.append(PatternTimes(repeat_here.pattern, repeat_durations, kinds))
                self._work_of[chain] = work
                end, total = repeat_here.before, self.works[work].total
            if repeat_here is not None and head == end:
                self.first.append(chain_of(repeat_here.entry))
                self.second.append(0)
            else:
                self.first.append(chain_of(graph.first[head]))
                self.second.append(chain_of(graph.second[head]))
            sums = self._sum_durations(graph.duration[head:end], durations, kind_of)
            self.total.append(total + sum(sums.values()))
            for kind, ns in sums.items():
                self.kinds.setdefault(kind, {})[chain] = ns
            head = tail
        for kind in {kind for one in self.works for kind in one.kinds}:
            self.kinds.setdefault(kind, {})
        self.last = [chain_of(node) for node in last]
        self._cached_sums.clear()
        _drop_implied(self.first, self.second)
        self._ends = _ends(self.first, self.second, self.total)
        self.step_ns = max(self._ends[chain] for chain in self.last)
        self._critical = self._critical_runs()
        self._through = self._longest_through()
        self._by_length = sorted(self._through)
        # By how many chains they have.
        self._parts: dict[int, _Part] = {}

    def _sum_durations(
        self, duration_ids: array[int], durations: array[int], kind_of: array[int]
    ) -> dict[int, int]:
        """Returns ns by kind of the durations with these indices."""
        # Joins take no time: mostly there is one, with which a chain begins.
        first_index = next(
            (index for index, duration_id in enumerate(duration_ids) if duration_id > 0), len(duration_ids)
        )
        duration_ids = duration_ids[first_index:]
        if not duration_ids:
            return {}
        first, after = duration_ids[0], duration_ids[-1] + 1
        if after - first != len(duration_ids):
            # Other durations lie between them.
            kinds = [
                (kind_of[duration_id], durations[duration_id])
                for duration_id in duration_ids
                if duration_id > 0
            ]
            return _sum_by_kind(kinds)
        # Micro-batches repeat each other: equal durations are summed once.
        key = (kind_of[first:after].tobytes(), durations[first:after].tobytes())
        sums = self._cached_sums.get(key)
        if sums is None:
            sums = self._cached_sums[key] = _sum_by_kind(
                zip(kind_of[first:after], durations[first:after], strict=True)
            )
        return sums

    def _longest_through(self) -> list[int]:
        """Returns by chain the longest path through it, ns; below 0 where no track ends behind it."""
        behind = [-1 - self.step_ns] * (len(self.total) + 1)
        for chain in self.last:
            behind[chain] = 0
        for chain in range(len(self.total), 0, -1):
            ns = behind[chain] + self.total[chain - 1]
            first, second = self.first[chain - 1], self.second[chain - 1]
            if ns > behind[first]:
                behind[first] = ns
            if ns > behind[second]:
                behind[second] = ns
        return list(map(add, self._ends[1:], behind[1:]))

    def _close_part(self, within_ns: int) -> _Part:
        """Returns the chains on paths that are at most `within_ns` shorter than the step."""
        least = self.step_ns - within_ns
        count = len(self._through) - bisect_left(self._by_length, least)
        if count in self._parts:
            return self._parts[count]
        close = [ns >= least for ns in self._through]
        chains = list(compress(range(1, len(close) + 1), close))
        part_ids = [0] * (len(close) + 1)
        for part_id, chain in enumerate(chains, 1):
            part_ids[chain] = part_id
        last = [part_ids[chain] for chain in self.last if part_ids[chain]]
        runs = _join_runs(
            [part_ids[chain] for chain in compress(self.first, close)],
            [part_ids[chain] for chain in compress(self.second, close)],
            last,
        )
        total = [0] * len(runs.first)
        run_of = {chain: run - 1 for chain, run in zip(chains, runs.of[1:], strict=True)}
        for chain, run in run_of.items():
            total[run] += self.total[chain - 1]
        part = self._parts[count] = _Part(
            run_of, runs.first, runs.second, total, [runs.of[part_id] for part_id in last],
            [(run_of[chain], work) for chain, work in self._work_of.items() if chain in run_of],
        )  # fmt: skip
        return part

    def _critical_runs(self) -> tuple[dict[int, int], list[list[int]], list[int]]:
        """Returns the run of each critical chain; by run those right before it on a critical path; and the
        runs with which the step is over.
        """
        ends = self._ends
        pending = [chain for chain in self.last if ends[chain] == self.step_ns and chain]
        over = set(pending)
        before: dict[int, list[int]] = {}
        while pending:
            chain = pending.pop()
            if chain not in before:
                begin = ends[chain] - self.total[chain - 1]
                waits = (self.first[chain - 1], self.second[chain - 1])
                # On a critical path only what begins with the step waits for START.
                before[chain] = [wait for wait in waits if wait and ends[wait] == begin]
                pending += before[chain]
        index_of = {0: 0} | {chain: index for index, chain in enumerate(sorted(before), 1)}
        waits_of = [[*(index_of[wait] for wait in before[chain]), 0, 0][:2] for chain in sorted(before)]
        last = [index_of[chain] for chain in over]
        runs = _join_runs([wait[0] for wait in waits_of], [wait[1] for wait in waits_of], last)
        run_of = {chain: runs.of[index_of[chain]] - 1 for chain in before}
        befores = [
            [run - 1 for run in {first, second} if run]
            for first, second in zip(runs.first, runs.second, strict=True)
        ]
        return run_of, befores, [runs.of[index] - 1 for index in last]

    def find_slopes(self, kinds: Collection[int]) -> Slopes:
        """Returns how the step responds to a factor on these kinds of durations."""
        chosen_ns: dict[int, int] = {}
        for kind in kinds:
            for chain, ns in self.kinds.get(kind, {}).items():
                chosen_ns[chain] = chosen_ns.get(chain, 0) + ns
        kind_set = set(kinds)
        of_works = [work.chosen_ns(kind_set) for work in self.works]
        if not any(of_works):
            of_works = []
        left, right = self._slopes_at_one(chosen_ns, of_works)
        return Slopes(left, right, self._least_factor(chosen_ns, of_works, left) if left else 0.0)

    def _slopes_at_one(
        self, chosen_ns: Mapping[int, int], of_works: Sequence[Sequence[int]]
    ) -> tuple[int, int]:
        least: list[int] = []
        most: list[int] = []
        run_of, befores, over = self._critical
        lows = [0] * len(befores)
        for chain, ns in chosen_ns.items():
            if chain in run_of:
                lows[run_of[chain]] += ns
        highs = [*lows]
        if of_works:
            at_one: dict[int, tuple[int, int]] = {}
            for chain, work in self._work_of.items():
                if chain in run_of:
                    if work not in at_one:
                        at_one[work] = self.works[work].slopes_at_one(of_works[work])
                    less, more = at_one[work]
                    lows[run_of[chain]] += less
                    highs[run_of[chain]] += more
        for low, high, before in zip(lows, highs, befores, strict=True):
            if len(before) == 1:
                (only,) = before
                least.append(low + least[only])
                most.append(high + most[only])
            else:
                least.append(low + min((least[earlier] for earlier in before), default=0))
                most.append(high + max((most[earlier] for earlier in before), default=0))
        return min((least[last] for last in over), default=0), max((most[last] for last in over), default=0)

    def _least_factor(
        self, chosen_ns: Mapping[int, int], of_works: Sequence[Sequence[int]], left: int
    ) -> float:
        """Returns the least factor at which the step is still on the line with which it leaves 1, downwards.

        The search starts at 0 and goes along the path that is longest there to where that meets the line. The
        step is never below that line, and no path gets longer: one that is shorter than the step by more than
        `left` is never the longest.
        """
        part = self._close_part(left)
        own = [0] * len(part.total)
        for chain, ns in chosen_ns.items():
            if chain in part.run_of:
                own[part.run_of[chain]] += ns

        def step_at(factor: float) -> tuple[float, int]:
            at = []
            for work, chosen_of_work in zip(self.works, of_works, strict=False):
                ns, slope = work.longest_at(factor, chosen_of_work)
                at.append((ns - work.total, slope))
            return part.step_at(factor, own, at)

        step, slope = step_at(0)
        if step == self.step_ns - left:
            return 0.0
        factor = 0.0
        for _ in range(_MOST_SEGMENTS):
            line = self.step_ns - left * (1 - factor)
            if step - line <= _EQUAL * self.step_ns or slope >= left:
                break
            factor += (step - line) / (left - slope)
            step, slope = step_at(factor)
        return min(round(factor, _DECIMALS), 1.0)
