"""Where tracks wait, and for whom, by their accounts.

There are two ways to find who waits for whom. By sums: in all collectives of a group its members wait for the
one that waits least; this is used where chance decides which member of a collective is last, as under jitter.
By the last member of each collective: this is used where times were measured (`replay/late.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import compress, count

from simcore.records import NamedTuple
from simcore.trace.accounts import Accounts


class Stretch(NamedTuple):
    """A stretch of a track in one account."""

    track: int
    """The track."""
    start: int
    """When it begins, ns."""
    end: int
    """When it ends, ns."""
    code: int
    """The code of what runs or is waited for."""

    @property
    def ns(self) -> int:
        """How long it is, ns."""
        return self.end - self.start


class GroupWait(NamedTuple):
    """A track that waits in collectives of a group."""

    early: int
    """The track that waits."""
    late: int
    """The first of the members that wait least, for which it waits."""
    group: int
    """The group."""
    ns: int
    """How long it waits in a step, ns."""
    all_late: tuple[int, ...]
    """All members that wait least."""


def waits_by_sums(
    accounts: Sequence[Accounts],
    group_of: Callable[[int, int], int],
    members_of: Callable[[int], Sequence[int]],
) -> list[GroupWait]:
    """Returns who waits for whom, the longest wait first, equal ones in the order of the tracks.

    group_of: returns the group that meets in what a track waits for, from (track, code). members_of: returns
    the tracks of a group.
    """
    waited: dict[tuple[int, int], int] = {}
    for track, own in enumerate(accounts):
        for code, ns in _lengths(own, (own.of.first_other,)) if own.wait_ns else ():
            key = group_of(track, code), track
            waited[key] = waited.get(key, 0) + ns
    waits = []
    for (group, track), ns in waited.items():
        members = members_of(group)
        least = min(waited.get((group, member), 0) for member in members)
        late = tuple(member for member in members if waited.get((group, member), 0) == least)
        if track not in late:
            waits.append(GroupWait(track, late[0], group, ns, late))
    return sorted(waits, key=lambda wait: (-wait.ns, wait.early))


def find_longest(accounts: Sequence[Accounts], account_ids: Collection[int]) -> list[Stretch]:
    """Returns the longest segments of some accounts, all of equal ones, by track and time."""
    stretches: list[Stretch] = []
    for track, own in enumerate(accounts):
        flags = own.account.translate(_make_flags(account_ids))
        for segment in compress(count(), flags):
            start, end = own.edge[segment : segment + 2]
            if stretches and end - start > stretches[0].ns:
                stretches = []
            if not stretches or end - start == stretches[0].ns:
                stretches.append(Stretch(track, start, end, own.op[segment]))
    return stretches


def _lengths(accounts: Accounts, account_ids: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yields (code, ns) of each segment of some accounts."""
    flags = accounts.account.translate(_make_flags(account_ids))
    lengths = accounts.lengths
    return zip(compress(accounts.op, flags), compress(lengths, flags), strict=True)


def _make_flags(account_ids: Collection[int]) -> bytes:
    """Returns a table for `translate`: 1 for these accounts."""
    return bytes(account_id in account_ids for account_id in range(256))
