"""What memory snapshots hold: for each device its segments and blocks, and what its allocator did."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Literal

from simcore.diagnostics import Diagnostic
from simcore.records import NamedTuple, Struct, field

# The actions of an allocator: `ACTIONS` in columns.py.
ALLOC, FREE_REQUESTED, FREE_COMPLETED = range(3)
SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP, SNAPSHOT, OOM = range(3, 9)
# The states of a block.
ALLOCATED, PENDING, INACTIVE = range(3)


def _longs() -> array[int]:
    return array("q")


class Segment(NamedTuple):
    """Memory that the allocator holds of a device when the snapshot is taken."""

    address: int
    size: int
    """Bytes."""
    stream: int
    is_expandable: bool
    is_large: bool


class Blocks(Struct):
    """The blocks of the segments, as columns of equal length."""

    address: array[int] = field(default_factory=_longs)
    size: array[int] = field(default_factory=_longs)
    """Bytes, as the allocator rounds them."""
    requested: array[int] = field(default_factory=_longs)
    """Bytes that were asked for."""
    state: bytearray = field(default_factory=bytearray)
    """ALLOCATED, PENDING (released, and in use by a stream) or INACTIVE."""
    stack: array[int] = field(default_factory=lambda: array("I"))
    """Index into `DeviceRecord.stacks`."""

    def __len__(self) -> int:
        return len(self.state)


class Events(Struct):
    """What the allocator did, in its order, as columns of equal length."""

    action: bytes = b""
    """ALLOC, FREE_REQUESTED, ...; above OOM for one that is not known."""
    address: array[int] = field(default_factory=_longs)
    """Of an OOM the bytes that were free on the device."""
    size: array[int] = field(default_factory=_longs)
    """Bytes that were asked for."""
    stream: array[int] = field(default_factory=_longs)
    time_us: array[int] = field(default_factory=_longs)
    """us since 1970; -1 where it is not stated."""
    stack: array[int] = field(default_factory=lambda: array("I"))
    """Index into `DeviceRecord.stacks`."""

    def __len__(self) -> int:
        return len(self.action)


class Annotation(NamedTuple):
    """A mark that the program set."""

    time_us: int
    name: str
    """Raw text of the file."""
    stage: str
    """`START`, `END`, or what else the program wrote."""


class DeviceRecord(Struct, frozen=True, dict=True):
    """A device of a snapshot."""

    id: int
    """What tells it from the others: its rank, else its number."""
    rank: int | None
    """The rank whose snapshot it is in; None of a single file."""
    device: int
    """Its number in the process."""
    path: str
    """Of the file."""
    segments: tuple[Segment, ...]
    blocks: Blocks
    events: Events
    annotations: tuple[Annotation, ...]
    stacks: Sequence[str]
    """A frame a line, the innermost first: name, file and line number with tabs between them."""

    @property
    def name(self) -> str:
        """What it is called."""
        if self.rank is None:
            return f"device {self.device}"
        return f"rank {self.rank}" if self.id == self.rank else f"rank {self.rank} device {self.device}"

    @property
    def reserved(self) -> int:
        """The bytes that its segments have."""
        return sum(segment.size for segment in self.segments)


class SnapshotRecord(Struct, frozen=True, dict=True):
    """The snapshots of a job, or of one process."""

    path: str
    """As the user stated it."""
    devices: tuple[DeviceRecord, ...]
    """Those that have a segment or an event, by rank and number."""
    files: int
    """How many snapshots there are."""
    settings: tuple[tuple[str, str], ...]
    """(name, value) of the allocator's settings, of the first file."""
    diagnostics: tuple[Diagnostic, ...]

    @property
    def format(self) -> str:
        """The format as reports name it."""
        return "memory-snapshot"

    @property
    def source(self) -> Literal["snapshot"]:
        """The kind of run that these files make."""
        return "snapshot"

    @property
    def noun(self) -> str:
        """The noun for it in messages."""
        return "a set of memory snapshots"

    @property
    def event_count(self) -> int:
        """The number of events of all devices."""
        return sum(len(device.events) for device in self.devices)
