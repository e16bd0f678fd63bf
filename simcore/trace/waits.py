"""Where tracks wait, and for whom, by their accounts.

Who waits for whom is asked in two ways. By sums: in all collectives of a group its members wait for the one
that waits least; so it is asked where each collective has another last member by chance alone, as under
jitter. By the last member of each, it is asked where what happened was measured: `replay/late.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import compress, count

from simcore.records import NamedTuple
from simcore.trace.accounts import Accounts
from simcore.units import differences


class Stretch(NamedTuple):
    """A time of a track in one account, ns. code: what runs or is waited for."""

    track: int
    start: int
    end: int
    code: int

    @property
    def ns(self) -> int:
        """How long it is."""
        return self.end - self.start


class GroupWait(NamedTuple):
    """Track `early` waits `ns` in a step in collectives of a group for `late`, the member that waits least,
    the first of those that wait equally little, which are `all_late`.
    """

    early: int
    late: int
    group: int
    ns: int
    all_late: tuple[int, ...]


def waits_by_sums(
    accounts: Sequence[Accounts],
    group_of: Callable[[int, int], int],
    members_of: Callable[[int], Sequence[int]],
) -> list[GroupWait]:
    """Returns who waits for whom, the longest wait first; ties in the order of the tracks.

    group_of: of a track and what it waits for the group that meets there. members_of: the tracks of a group.
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
    """Returns the longest segments of some accounts, all of equal ones, by track and time. chosen: indices of
    accounts.
    """
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
    """(code, ns) of each segment of some accounts."""
    flags = accounts.account.translate(_make_flags(account_ids))
    lengths = differences(accounts.edge[1:], accounts.edge[:-1])
    return zip(compress(accounts.op, flags), compress(lengths, flags), strict=True)


def _make_flags(account_ids: Collection[int]) -> bytes:
    """A table for `translate`: 1 for these."""
    return bytes(account_id in account_ids for account_id in range(256))
