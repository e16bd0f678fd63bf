"""What communication tells of its ranks' clocks: how much they can differ, and how much they seem to."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median_low

from simcore.records import Struct, field

# Real runs on one clock have nothing that is over more than 0.03 ms before what it needs begins.
_SLACK_NS = 100_000
# Two ranks on one clock leave many collectives 0.00 to 0.02 ms apart (median), a single one up to 6.74 ms.
_MANY = 8
_APART_NS, _FEW_APART_NS, _ALONE_APART_NS = 200_000, 500_000, 10_000_000
_SPREAD_NS = 100_000
_ANY = 1 << 70


class Tie(Struct):
    """Communication between the ranks of two clocks; all ns, and by how much the second clock is ahead.

    least, most: what is possible. ends: (collective, difference of the ends) of collectives; there, back: of
    messages from the first to the second and back.
    """

    least: int = -_ANY
    most: int = _ANY
    ends: list[tuple[int, int]] = field(default_factory=list)
    there: list[int] = field(default_factory=list)
    back: list[int] = field(default_factory=list)

    @property
    def matched(self) -> tuple[int, int]:
        """How many collectives, how many messages."""
        return len({number for number, _ in self.ends}), len(self.there) + len(self.back)

    def offset(self) -> int:
        """What it seems to be. Members leave a collective together; a message takes its time both ways."""
        if self.ends:
            return median_low(ns for _, ns in self.ends)
        if self.there and self.back:
            return (median_low(self.there) + median_low(self.back)) // 2
        return median_low(self.there or self.back)

    def is_one_clock(self) -> bool:
        """Whether the clocks need not differ."""
        return self.least <= _SLACK_NS and self.most >= -_SLACK_NS and not self._leaves_apart()

    def _leaves_apart(self) -> bool:
        """Whether one leaves every collective by the same time later: no host is that regular."""
        collectives = self.matched[0]
        if not collectives:
            return False
        middle = self.offset()
        if collectives == 1:
            return abs(middle) > _ALONE_APART_NS
        spread = max(_SPREAD_NS, abs(middle) // 10)
        near = sum(abs(ns - middle) <= spread for _, ns in self.ends)
        least = _APART_NS if collectives >= _MANY else _FEW_APART_NS
        return abs(middle) > least and near * 4 >= len(self.ends) * 3

    def flipped(self) -> Tie:
        """The same, seen from the second clock."""
        ends = [(number, -ns) for number, ns in self.ends]
        return Tie(-self.most, -self.least, ends, [-ns for ns in self.back], [-ns for ns in self.there])

    def joined(self, other: Tie) -> Tie:
        """Both, of clocks that are one."""
        return Tie(max(self.least, other.least), min(self.most, other.most), self.ends + other.ends,
                   self.there + other.there, self.back + other.back)  # fmt: skip


def fewest_clocks(
    count: int, ties: Mapping[tuple[int, int], Tie]
) -> tuple[list[tuple[int, ...]], list[dict[int, Tie]]]:
    """(the ranks of each clock, ascending; by clock its ties to others) of `count` ranks.

    ties: by (rank, rank), the lower one first. Those that seem to differ least are brought together first.
    """
    root = list(range(count))
    near: list[dict[int, Tie]] = [{} for _ in root]
    for (one, other), tie in ties.items():
        near[one][other], near[other][one] = tie, tie.flipped()

    def find(rank: int) -> int:
        while root[rank] != rank:
            rank = root[rank]
        return rank

    for pair in sorted(ties, key=lambda pair: (abs(ties[pair].offset()), pair)):
        first, second = sorted(map(find, pair))
        if first == second or not near[first][second].is_one_clock():
            continue
        root[second] = first
        del near[first][second]
        for third, tie in near[second].items():
            if third == first:
                continue
            del near[third][second]
            tie = near[first][third].joined(tie) if third in near[first] else tie
            near[first][third], near[third][first] = tie, tie.flipped()
        near[second] = {}
    members: dict[int, list[int]] = {}
    for rank in range(count):
        members.setdefault(find(rank), []).append(rank)
    number_of = {one: number for number, one in enumerate(members)}
    between = [{number_of[other]: tie for other, tie in near[one].items()} for one in members]
    return [tuple(ranks) for ranks in members.values()], between
