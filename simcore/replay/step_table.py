"""The steps of a run as a table, step x rank: what each rank did, how long it waited, and how late it was.

A rank waits in a call of several ranks until the last of them has begun it. Files that cut the waiting off a
communication have all of its members begin at once: then a rank has waited since it last did anything. The
rank that waits less than its peers is the one that they wait for: it is late by the difference.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import add, mul, sub
from statistics import median_low

from simcore.measured.columns import TOLERANCE_NS
from simcore.measured.step_columns import COMM, KIND_WORDS, OTHER
from simcore.measured.step_meetings import AlignedSteps, StepMeeting
from simcore.records import NamedTuple

# Members of a call begin it at once if no more than this part of the longest time in which one of them did
# nothing before lies between the first and the last: a rank that is late after doing nothing holds up the
# others inside. What all of them did nothing before it, none has waited for the others.
_AT_ONCE = 20
# A rank that is late by less than this share of a step is not what makes the step long.
LATE_SHARE = 0.01
# Medians over more steps are those of so many of them: 384 columns of 10,000 steps would take 0.8 s.
_MOST_SORTED = 1_001
# A rank that is late by most in more of the steps than this is a slow rank.
_OFTEN = 0.5
# A rank without that step.
ABSENT = -1
_NEVER = -(1 << 62)

# What a step x rank picture can show of a rank.
COMPUTE, WAITS, LATE = "compute", "waits", "late by"
MEASURES = (COMPUTE, WAITS, LATE)


class StepRow(NamedTuple):
    """A step of the table."""

    step: int
    ns: int
    """From its first begin on any rank to the last end; without a common time, on the rank where it is
    longest.
    """
    last_rank: int | None
    """The rank that is late by most, None where none is."""
    late_ns: int
    """By how much."""


class SlowRank(NamedTuple):
    """The rank that is late by most in most of the steps."""

    rank: int
    steps: int
    """In how many it is so."""
    late_ns: int
    """By how much in the middle of these."""


class Difference(NamedTuple):
    """What differs most between a step and the others."""

    what: str
    rank: int
    ns: int
    """How much more the rank spends in it than in the middle of all steps."""


class StepTable:
    """The steps of a run. `steps` are their numbers, `ranks` the ids, `stages` those of the ranks."""

    def __init__(self, aligned: AlignedSteps, peers: Mapping[int, Sequence[int]], one_clock: bool):
        """peers: by rank the ids of those that do the same work. one_clock: whether all times were read on
        one.
        """
        rank_steps = aligned.rank_steps
        self.ranks = tuple(one.rank for one in rank_steps)
        self.stages = tuple(one.stage for one in rank_steps)
        first = rank_steps[0].columns.step
        same = all(one.columns.step == first for one in rank_steps)
        self.steps: Sequence[int] = (
            first if same else sorted({step_number for one in rank_steps for step_number in one.columns.step})
        )
        row_of = {step_number: row for row, step_number in enumerate(self.steps)}
        # By rank the row of each of its steps; None where it has all.
        rows = [
            None if same else [row_of[step_number] for step_number in one.columns.step] for one in rank_steps
        ]
        waits = _find_waits(aligned, one_clock)
        count = len(self.steps)

        def column(index: int, ns: Sequence[int]) -> Sequence[int]:
            own = rows[index]
            if own is None:
                return ns
            spread = array("q", (ABSENT,)) * count
            for row, value in zip(own, ns, strict=True):
                spread[row] = value
            return spread

        self.ns: Sequence[int]
        self.lengths: list[Sequence[int]] = []
        self.by_kind: list[list[Sequence[int]]] = []
        self.compute: list[Sequence[int]] = []
        self.waits: list[Sequence[int]] = []
        for index, one in enumerate(rank_steps):
            steps = one.columns
            spent = [*steps.spent]
            spent[COMM] = array("q", map(sub, spent[COMM], waits.inside[index]))
            self.lengths.append(column(index, array("q", map(sub, steps.end, steps.start))))
            self.by_kind.append([column(index, ns) for ns in spent])
            self.compute.append(column(index, array("q", map(sum, zip(*spent[: OTHER + 1], strict=True)))))
            self.waits.append(column(index, waits.total[index]))
        self.ns = self.lengths[0]
        if len(rank_steps) > 1:
            never = 2**63 - 1
            begins = [column(index, one.columns.start) for index, one in enumerate(rank_steps)]
            ends = [column(index, one.columns.end) for index, one in enumerate(rank_steps)]
            if not same:
                begins = [[never if ns == ABSENT else ns for ns in some] for some in begins]
            self.ns = array("q", map(sub, map(max, *ends), map(min, *begins)))
        index_of = {rank: index for index, rank in enumerate(self.ranks)}
        self._peers = [
            [index_of[peer] for peer in peers.get(rank, ()) if peer in index_of] for rank in self.ranks
        ]
        self.has_waits = waits.are_known

    def __len__(self) -> int:
        return len(self.steps)

    @cached_property
    def late(self) -> list[Sequence[int]]:
        """By rank and step how late it is: by how much it waits less than the median of its peers or, where
        no wait is known, computes longer.
        """
        columns, sign = (self.waits, -1) if self.has_waits else (self.compute, 1)
        late = [array("q", bytes(8 * len(self))) for _ in self.ranks]
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, peers in enumerate(self._peers):
            if peers:
                groups.setdefault(tuple(sorted((index, *peers))), []).append(index)
        for members, some in groups.items():
            by_step = zip(*(columns[member] for member in members), strict=True)
            for row, values in enumerate(by_step):
                there = sorted(value for value in values if value != ABSENT)
                if len(there) < 2 or there[0] == there[-1]:
                    continue
                # Of two in the middle of the others the one that makes the rank less late.
                middle = (len(there) - 2) // 2 if sign < 0 else (len(there) - 1) // 2
                for index in some:
                    own = columns[index][row]
                    # Without the rank itself.
                    other = there[middle + (own <= there[middle])]
                    by = sign * (own - other)
                    if by > 0 and own != ABSENT:
                        late[index][row] = by
        return list(late)

    @cached_property
    def rows(self) -> list[StepRow]:
        """The steps in their order."""
        rows = []
        for step_number, ns, late in zip(self.steps, self.ns, zip(*self.late, strict=True), strict=True):
            most = max(late)
            is_late = most >= LATE_SHARE * ns and most > 0
            rows.append(
                StepRow(step_number, ns, self.ranks[late.index(most)], most)
                if is_late
                else StepRow(step_number, ns, None, 0)
            )
        return rows

    @cached_property
    def recurrence(self) -> list[tuple[int, int]]:
        """(rank, in how many steps it is the one that is late by most), the most often first."""
        counts = Counter(rank for row in self.rows if (rank := row.last_rank) is not None)
        return sorted(counts.items(), key=lambda one: (-one[1], one[0]))

    @cached_property
    def slow_rank(self) -> SlowRank | None:
        """The rank that is late by most in most of the steps; None where none is."""
        rank, count = next(iter(self.recurrence), (-1, 0))
        if count <= _OFTEN * len(self):
            return None
        late_ns = median_low(row.late_ns for row in self.rows if row.last_rank == rank)
        return SlowRank(rank, count, late_ns)

    @cached_property
    def sorted_ns(self) -> list[int]:
        """The lengths of all steps, the shortest first."""
        return sorted(self.ns)

    @property
    def median_ns(self) -> int:
        """The length in the middle, the shorter of two."""
        return self.sorted_ns[(len(self) - 1) // 2]

    @property
    def p90_ns(self) -> int:
        """The length that nine of ten steps do not exceed."""
        return self.sorted_ns[-(-9 * len(self) // 10) - 1]

    @cached_property
    def median_row(self) -> int:
        """The first step of the median length, as an index."""
        return self.ns.index(self.median_ns)

    @cached_property
    def slowest_row(self) -> int:
        """The first step of the greatest length, as an index."""
        return self.ns.index(self.sorted_ns[-1])

    def measure(self, name: str) -> list[Sequence[int]]:
        """Returns by rank and step the ns of a measure, one of MEASURES."""
        return {COMPUTE: self.compute, WAITS: self.waits}.get(name) or self.late

    @cached_property
    def _middles(self) -> list[list[int]]:
        """By rank and kind the ns in the middle of the steps."""
        stride = -(-len(self) // _MOST_SORTED)
        return [[_median(ns[::stride]) for ns in kinds] for kinds in self.by_kind]

    def find_difference(self, row: int) -> Difference | None:
        """Returns what differs most in a step: of a longer one than the median what takes longer on some
        rank, of a shorter one what takes less; None where nothing does. Waiting is none of it, as it follows
        from the rest.
        """
        sign = -1 if self.ns[row] < self.median_ns else 1
        best: tuple[int, str, int] | None = None
        for index, (kinds, middles) in enumerate(zip(self.by_kind, self._middles, strict=True)):
            if self.lengths[index][row] == ABSENT:
                continue
            for kind, (ns, middle) in enumerate(zip(kinds, middles, strict=True)):
                by = sign * (ns[row] - middle)
                if by > 0 and (best is None or by > best[0]):
                    best = by, KIND_WORDS[kind], self.ranks[index]
        return None if best is None else Difference(best[1], best[2], sign * best[0])


def _median(some: Sequence[int]) -> int:
    there = sorted(value for value in some if value != ABSENT)
    return there[(len(there) - 1) // 2] if there else 0


# -- waits -----------------------------------------------------------------------------------------


class _Waits(NamedTuple):
    """By rank and step of the rank, ns."""

    inside: list[array[int]]
    """The part of its communication in which it waits."""
    total: list[array[int]]
    """That, and what it waits before communication that begins at once."""
    are_known: bool
    """Whether any call has several members."""


def _find_waits(aligned: AlignedSteps, one_clock: bool) -> _Waits:
    rank_steps = aligned.rank_steps
    inside = [array("q", bytes(8 * len(one.columns))) for one in rank_steps]
    before = [array("q", bytes(8 * len(one.columns))) for one in rank_steps]
    for meeting in aligned.meetings:
        _add_waits(meeting, aligned.apart, inside, before, one_clock)
    for index, one in enumerate(rank_steps):
        # What compute hides is no waiting.
        inside[index] = array("q", map(min, inside[index], one.columns.spent[COMM]))
    total = [array("q", map(sum, zip(*both, strict=True))) for both in zip(inside, before, strict=True)]
    return _Waits(inside, total, bool(aligned.meetings))


def _add_waits(
    meeting: StepMeeting,
    apart: frozenset[int],
    inside: list[array[int]],
    before: list[array[int]],
    one_clock: bool,
) -> None:
    """Adds what each member waits in the calls of a group. apart: the steps without a common time."""
    some = meeting.members
    lengths = [array("q", map(sub, calls.end, calls.start)) for _, calls in some]
    last = list(map(max, *(calls.start for _, calls in some)))
    at_once, least = [False] * len(last), [0] * len(last)
    if one_clock:
        first = list(map(min, *(calls.start for _, calls in some)))
        least = list(map(min, *(calls.idle for _, calls in some)))
        longest = map(max, *(calls.idle for _, calls in some))
        at_once = [
            _AT_ONCE * (end - begin) <= idle for begin, end, idle in zip(first, last, longest, strict=True)
        ]
    if apart or not one_clock:
        # Who has left before another comes has met nobody.
        first_end = map(min, *(calls.end for _, calls in some))
        last = [
            start if end >= start - TOLERANCE_NS and step_number not in apart else _NEVER
            for step_number, start, end in zip(meeting.steps, last, first_end, strict=True)
        ]
    for (index, calls), own in zip(some, lengths, strict=True):
        if index == meeting.sender:
            continue
        ns, idle_ns, rows = inside[index], before[index], calls.row
        # A send may end before its receive begins: it has not waited for that.
        waits: Iterable[int] = map(min, map(sub, last, calls.start), own)
        if _NEVER in last:
            waits = (wait if wait > 0 else 0 for wait in waits)
        if rows == array("q", range(len(ns))):
            # One call in each step: 640,000 of them take 0.1 s of 0.4.
            inside[index] = array("q", map(add, ns, waits))
            if one_clock:
                before[index] = array("q", map(add, idle_ns, map(mul, at_once, map(sub, calls.idle, least))))
            continue
        for row, wait, together, idle, of_all in zip(rows, waits, at_once, calls.idle, least, strict=True):
            ns[row] += wait
            if together:
                idle_ns[row] += idle - of_all
