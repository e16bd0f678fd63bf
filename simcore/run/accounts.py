"""Accounts: every nanosecond of a rank in exactly one, whatever the run came from.

Which account a nanosecond is of, a builder of each kind of run says: `accounts.py` of `analysis`, `replay`
and `executing`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from operator import mul, sub
from typing import NamedTuple

from simcore.records import Struct, field
from simcore.run.track import ALIKE


class AccountNames(NamedTuple):
    """The accounts of one kind of run, in the order of a bar: compute by what it is for, exposed
    communication by kind, then what is neither. rare: what is said only where there is some of it. alike:
    where each stands in ALIKE.
    """

    all: tuple[str, ...]
    compute: tuple[str, ...]
    exposed: tuple[str, ...]
    rare: tuple[str, ...]
    alike: tuple[int, ...]

    @property
    def first_exposed(self) -> int:
        """The first account behind compute."""
        return len(self.compute)

    @property
    def first_other(self) -> int:
        """The first account behind exposed communication: `wait`."""
        return len(self.compute) + len(self.exposed)


def account_names(
    compute: Sequence[str], exposed: Sequence[str], others: Sequence[str], names: Mapping[str, str],
    rare: Sequence[str] = (),
) -> AccountNames:  # fmt: skip
    """others: from `wait` on. names: in ALIKE, of accounts that have another name there."""
    found = (*(f"compute {one}" for one in compute), *(f"exposed {one}" for one in exposed), *others)
    alike = tuple(ALIKE.index(names.get(one, one)) for one in found)
    return AccountNames(found, tuple(compute), tuple(exposed), tuple(rare), alike)


class Accounts(Struct):
    """The segments of one rank, or of a class of equal ones: they cover 0..step time, none empty.

    of: the accounts that there are. edge[i]..edge[i + 1] ns is segment i (edge has one entry more than there
    are segments); account[i]: index into `of.all`; op[i]: what runs or is waited for, as the builder numbers
    it. total_ns: by account.
    """

    of: AccountNames
    edge: array[int] = field(default_factory=lambda: array("q"))
    account: bytearray = field(default_factory=bytearray)
    op: array[int] = field(default_factory=lambda: array("i"))
    total_ns: list[int] = field(default_factory=list)
    _computed: array[int] | None = None

    def __post_init__(self) -> None:
        if not self.total_ns:
            self.total_ns = [0] * len(self.of.all)

    def book(self, begin: int, over: int, account: int, op: int) -> None:
        """Adds a segment behind the last."""
        self.edge.append(begin)
        self.account.append(account)
        self.op.append(op)
        self.total_ns[account] += over - begin

    def ns(self, account: str) -> int:
        """The time in an account."""
        return self.total_ns[self.of.all.index(account)]

    def compute_ns(self) -> dict[str, int]:
        """Compute by what it is for, ns."""
        return self._told(self.of.compute, 0)

    def exposed_ns(self) -> dict[str, int]:
        """Exposed communication by kind, ns."""
        return self._told(self.of.exposed, self.of.first_exposed)

    def _told(self, names: Sequence[str], first: int) -> dict[str, int]:
        times = zip(names, self.total_ns[first:], strict=False)
        return {name: ns for name, ns in times if ns or name not in self.of.rare}

    @property
    def busy_ns(self) -> int:
        """All compute, ns."""
        return sum(self.total_ns[: self.of.first_exposed])

    @property
    def all_exposed_ns(self) -> int:
        """Exposed communication of all kinds, ns."""
        return sum(self.total_ns[self.of.first_exposed : self.of.first_other])

    @property
    def wait_ns(self) -> int:
        return self.ns("wait")

    @property
    def bubble_ns(self) -> int:
        return self.ns("bubble")

    @property
    def idle_ns(self) -> int:
        return self.ns("idle")

    def at(self, time_ns: int) -> int:
        """The segment that holds `time_ns`, the last one for the end of the step."""
        return min(bisect_right(self.edge, time_ns) - 1, len(self.account) - 1)

    def computed(self) -> Callable[[int], int]:
        """How much the rank has computed until a moment, ns."""
        edge, account, first = self.edge, self.account, self.of.first_exposed
        if self._computed is None or len(self._computed) != len(edge):
            is_compute = bytes([1] * first + [0] * (256 - first))
            # A segment that is no compute counts 0 times.
            lengths: Iterable[int] = map(mul, map(sub, edge[1:], edge), account.translate(is_compute))
            self._computed = array("q", accumulate(lengths, initial=0))
        before = self._computed

        def until(time_ns: int) -> int:
            index = min(bisect_right(edge, time_ns) - 1, len(account) - 1)
            if index < 0 or account[index] >= first:
                return before[max(index, 0)]
            return before[index] + min(time_ns, edge[index + 1]) - edge[index]

        return until


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of spans, (start, end) ns, as disjoint ones."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif end > start:
            found.append((start, end))
    return found
