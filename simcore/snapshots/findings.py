"""What a check says of memory snapshots, as diagnostics: a request that could not be met is an error."""

from __future__ import annotations

from simcore.diagnostics import Diagnostic, printable
from simcore.snapshots.call_sites import site_text
from simcore.snapshots.history import History
from simcore.snapshots.record import SnapshotRecord
from simcore.units import byte_size

_MOST = 20


def find_failures(record: SnapshotRecord) -> list[Diagnostic]:
    """Returns the requests that could not be met; empty where all were."""
    results: list[Diagnostic] = []
    for device in record.devices:
        history = History(device)
        for one in history.failures:
            site = site_text(device.stacks[one.stack])
            where = f" in {printable(site, 60)}" if site else ""
            message = (
                f"{device.name} could not get {byte_size(one.size)}{where}: "
                f"{byte_size(one.free)} were free on the device, "
                f"{byte_size(one.allocated)} of {byte_size(one.reserved)} reserved were allocated"
            )
            results.append(Diagnostic("error", "out-of-memory", message, device.path))
    more = len(results) - _MOST
    if more > 0:
        message = f"and {more} more requests that could not be met"
        results[_MOST:] = [Diagnostic("error", "out-of-memory", message, record.path)]
    return results
