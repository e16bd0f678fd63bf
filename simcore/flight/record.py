"""What the dumps of a job hold: for each rank its entries as columns, and the state of its groups."""

from __future__ import annotations

from array import array
from functools import cached_property
from math import prod
from typing import Literal

from simcore.diagnostics import Diagnostic
from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct, field

# The states of an entry; UNKNOWN: the dump states none of them.
SCHEDULED, STARTED, COMPLETED, UNKNOWN = range(4)
STATE_WORDS = ("scheduled", "started", "completed", "state unknown")
# A number or time that a dump does not state.
UNSTATED = -1

Sizes = tuple[tuple[int, ...], ...]


class Group(NamedTuple):
    """A process group: ranks name it differently, so that its description and its ranks tell it."""

    description: str
    """Raw text of the file."""
    ranks: tuple[int, ...]
    """In the order of the group, in which `send 0->3` counts."""
    ordinal: int = 0
    """Which one it is of several with that description and those ranks."""


class GroupStatus(NamedTuple):
    """The last numbers of a group on a rank, -1 where they are not known.

    Where a group also sends and receives, the numbers may be those of either.
    """

    enqueued: int = UNSTATED
    started: int = UNSTATED
    completed: int = UNSTATED


class Names(Struct):
    """The tables of all dumps, each text once."""

    operations: list[str] = field(default_factory=list)
    """`nccl:all_reduce`, `nccl:send 0->3`; raw text of the file."""
    sizes: list[Sizes] = field(default_factory=list)
    """The dimensions of each tensor."""
    dtypes: list[str] = field(default_factory=list)
    """With commas where tensors differ."""
    stacks: list[str] = field(default_factory=list)
    """A frame a line, the innermost first: name, file and line number with tabs between them."""


def _longs() -> array[int]:
    return array("q")


def _ints() -> array[int]:
    return array("I")


class Entries(Struct):
    """The entries of a rank in the order of the dump, the oldest first, as columns of equal length."""

    group: array[int] = field(default_factory=_ints)
    """Index into `FlightRecord.groups`."""
    collective: array[int] = field(default_factory=_longs)
    """The number of the collective in its group; of a message that of the collective before it."""
    message: array[int] = field(default_factory=_longs)
    """The number of a send or receive among those of its rank and group."""
    created: array[int] = field(default_factory=_longs)
    """ns since 1970 by the clock of the rank, as are the two below."""
    started: array[int] = field(default_factory=_longs)
    completed: array[int] = field(default_factory=_longs)
    duration_ms: array[float] = field(default_factory=lambda: array("d"))
    """Negative where it is not known."""
    timeout_ms: array[int] = field(default_factory=_longs)
    state: bytes = b""
    """SCHEDULED, STARTED, COMPLETED or UNKNOWN."""
    is_message: bytes = b""
    """1 for a send or a receive."""
    retired: bytes = b""
    """1 where the watchdog has seen it end."""
    operation: array[int] = field(default_factory=_ints)
    """Index into `Names.operations`."""
    input_size: array[int] = field(default_factory=_ints)
    """Index into `Names.sizes`."""
    output_size: array[int] = field(default_factory=_ints)
    input_dtype: array[int] = field(default_factory=_ints)
    """Index into `Names.dtypes`."""
    output_dtype: array[int] = field(default_factory=_ints)
    stack: array[int] = field(default_factory=_ints)
    """Index into `Names.stacks`."""

    def __len__(self) -> int:
        return len(self.state)


class RankDump(Struct, dict=True):
    """The dump of a rank."""

    rank: int
    path: str
    entries: Entries
    statuses: dict[int, GroupStatus]
    """By index into `FlightRecord.groups`, of the groups that the rank is in."""
    version: str = ""

    def is_over(self, row: int) -> bool:
        """Returns whether an entry has ended."""
        return bool(self.over[row])

    @cached_property
    def over(self) -> bytes:
        """1 for each entry that has ended: gloo says so by `retired` alone."""
        entries = self.entries
        of_state = entries.state.translate(_ENDED)
        if b"\1" not in entries.retired:
            return of_state
        # The whole column is one number: a rank has thousands of entries.
        ended = int.from_bytes(of_state, "little") | int.from_bytes(
            entries.retired.translate(_IS_SET), "little"
        )
        return ended.to_bytes(len(of_state), "little")

    @cached_property
    def rows_of_groups(self) -> dict[int, array[int]]:
        """The entries of each group, in their order."""
        rows: dict[int, list[int]] = {group: [] for group in dict.fromkeys(self.entries.group)}
        for row, group in enumerate(self.entries.group):
            rows[group].append(row)
        return {group: array("I", of_group) for group, of_group in rows.items()}


_ENDED = bytes(state == COMPLETED for state in range(256))
_IS_SET = bytes(value > 0 for value in range(256))


class FlightRecord(Struct, frozen=True, dict=True):
    """The dumps of a job, or of some of its ranks."""

    path: str
    """As the user stated it."""
    dumps: tuple[RankDump, ...]
    """By rank."""
    groups: tuple[Group, ...]
    names: Names
    diagnostics: tuple[Diagnostic, ...]

    @property
    def format(self) -> str:
        """The format as reports name it."""
        return "flight-recorder"

    @property
    def source(self) -> Literal["hung"]:
        """The kind of run that these files make."""
        return "hung"

    @property
    def noun(self) -> str:
        """The noun for it in messages."""
        return "a set of flight recorder dumps"

    @property
    def entry_count(self) -> int:
        """The number of entries of all ranks."""
        return sum(len(dump.entries) for dump in self.dumps)

    @cached_property
    def by_rank(self) -> dict[int, RankDump]:
        """The dump of each rank that has one."""
        return {dump.rank: dump for dump in self.dumps}

    @cached_property
    def missing(self) -> RankSet:
        """Ranks of groups that have no dump."""
        return RankSet.of({rank for group in self.groups for rank in group.ranks} - self.by_rank.keys())

    @cached_property
    def world(self) -> int:
        """One more than the highest rank that has a dump or is in a group."""
        return 1 + max((*self.by_rank, *(rank for group in self.groups for rank in group.ranks)), default=-1)

    @cached_property
    def first_ns(self) -> int:
        """When the first entry was created, ns since 1970; 0 without one."""
        return min((min(dump.entries.created) for dump in self.dumps if len(dump.entries)), default=0)


def count_elements(sizes: Sizes) -> int:
    """Returns the elements of all tensors."""
    return sum(map(prod, sizes))


def size_text(sizes: Sizes) -> str:
    """Returns `4096x1x5120`, with commas between tensors, of many the first three."""
    texts = ["x".join(map(str, dims)) or "scalar" for dims in sizes[:3]]
    return ", ".join(texts) + (f" and {len(sizes) - 3} more" if len(sizes) > 3 else "")
