"""What the allocators of devices did: the `[memory]` events of a trace with `profile_memory`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import msgspec

from simcore.kineto.events import Event, MemoryArgs
from simcore.kineto.host import Threads, find_surroundings
from simcore.kineto.values import MOST_US
from simcore.measured.columns import MemoryColumns

NAME = "[memory]"
# PyTorch's number of the type of CUDA devices; 0 is the host.
_CUDA = 1
# A device has less, and addresses of more than 63 bits are none of it.
_MOST = 2**63 - 1
_decode = msgspec.json.Decoder(MemoryArgs).decode


class Allocations:
    """The events of all devices, in the order of the file; what is no number is left out."""

    def __init__(self) -> None:
        self._rows: dict[int, list[tuple[float, int, int, int, int, object]]] = {}

    def take(self, event: Event) -> None:
        """Takes an event named `NAME`."""
        try:
            args = _decode(event.args)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        figures = (args.bytes, args.address, args.allocated, args.reserved, args.device)
        if args.device_type != _CUDA or event.ts is None or not -MOST_US < event.ts < MOST_US:
            return
        if any(type(figure) is not int or not -_MOST <= figure <= _MOST for figure in figures):
            return
        if min(args.allocated, args.reserved, args.device) < 0:
            return
        row = (event.ts, args.bytes, args.address, args.allocated, args.reserved, (event.pid, event.tid))
        self._rows.setdefault(args.device, []).append(row)

    def columns_of(
        self, device: int, threads: Sequence[Threads], all_ns: Callable[[list[float]], list[int]]
    ) -> MemoryColumns:
        """Returns the columns of a device. threads: what the host did. all_ns: returns times in us as
        ns.
        """
        rows = sorted(self._rows.get(device, ()), key=lambda row: row[0])
        if not rows:
            return MemoryColumns()
        inside = find_surroundings(threads, [row[0] for row in rows], [row[5] for row in rows])
        return MemoryColumns(
            array("q", all_ns([row[0] for row in rows])),
            array("q", [row[1] for row in rows]),
            array("q", [row[2] for row in rows]),
            array("q", [row[3] for row in rows]),
            array("q", [row[4] for row in rows]),
            [operation for operation, *_ in inside],
        )
