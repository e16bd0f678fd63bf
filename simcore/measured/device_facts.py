"""What a profiler says of one operation of a device, as facts to print."""

from __future__ import annotations

from simcore.measured.columns import RankTrace
from simcore.ranks import RankSet
from simcore.units import byte_size


def device_facts(rank: RankTrace, item: int) -> list[tuple[str, str]]:
    """(what, words) of the operation `item` of a rank, raw text of the file in them; none of other traces."""
    device = rank.device
    if device is None or not 0 <= item < len(rank.ops):
        return []
    found = [(stream_word(rank), str(device.stream[item]))]
    if device.operation[item] is not None:
        found.append(("launched in", device.operation[item] or ""))
    if device.grid[item] is not None:
        found.append(("grid", device.grid[item] or ""))
    if device.block[item] is not None:
        found.append(("block", device.block[item] or ""))
    if device.occupancy[item] >= 0:
        found.append(("occupancy", f"{device.occupancy[item]} %"))
    if device.bytes[item] >= 0:
        found.append(("bytes", byte_size(device.bytes[item])))
    if device.correlation[item] >= 0:
        found.append(("correlation", str(device.correlation[item])))
    said = device.collectives.get(item)
    if said is not None:
        found.append(("collective", said.operation))
        if said.group is not None:
            found.append(("group", said.group))
        if said.ranks is not None:
            found.append(("ranks", RankSet.of(said.ranks).text()))
        if said.sequence is not None:
            found.append(("sequence", str(said.sequence)))
    return found


def stream_word(rank: RankTrace) -> str:
    """What its streams are: of a host without a device its threads."""
    device = rank.device
    return "thread" if device is not None and not device.on_device else "stream"
