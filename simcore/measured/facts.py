"""Facts of one span of a measured run, to be printed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from simcore.measured.columns import ANNOTATED, CALLS, MEASURED, NOT_LAUNCHED, HostColumns, RankTrace
from simcore.measured.lanes import host_item, host_thread, timed_ops
from simcore.measured.vocabulary import buffer_bytes, category_of_group
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.units import byte_size, plural


class SpanFacts(Struct, frozen=True):
    """An operation or sub-operation. Texts are raw text of the file, None where it has none."""

    name: str
    category: str
    collective: str | None
    """Of a sub-operation."""
    parent: str | None
    """The operation that a sub-operation lies in."""
    state: str | None
    batch: int
    start_ns: int
    end_ns: int
    timing: int
    """How its times are known, see `columns`."""
    shape: str | None
    dtype: str | None
    bytes: int | None
    """Of the buffer of `shape` and `dtype`."""
    description: str | None
    subs: int
    """The number of sub-operations inside."""
    subs_ns: int
    """Their sum, asynchronous ones included."""
    line: int
    """Of the file."""
    path: str


def span_facts(rank: RankTrace, item: int) -> SpanFacts:
    """Returns the facts of `item` of a lane of this rank: an operation, behind those a sub-operation, or for
    a device what its host did.
    """
    ops, subs = rank.ops, rank.subs
    row = host_item(rank, item)
    if row is not None and rank.device is not None and rank.device.host is not None:
        lane = rank.device.host.lane.columns
        return SpanFacts(lane.name[row], "host", None, None, None, -1, lane.start[row], lane.end[row],
                         MEASURED, None, None, None, None, 0, 0, lane.line[row], rank.path)  # fmt: skip
    if item >= len(ops):
        index = item - len(ops)
        parent = subs.parent[index]
        return SpanFacts(
            subs.name[index], category_of_group(subs.group[index]), subs.collective[index], ops.name[parent],
            ops.state[parent], ops.batch[parent], subs.start[index], subs.end[index], subs.timing[index],
            subs.shape[index], subs.dtype[index], buffer_bytes(subs.shape[index], subs.dtype[index]),
            None, 0, 0, ops.line[parent], rank.path,
        )  # fmt: skip
    inside = range(bisect_left(subs.parent, item), bisect_right(subs.parent, item))
    inside_ns = sum(subs.end[index] - subs.start[index] for index in inside if subs.timing[index] == MEASURED)
    return SpanFacts(
        ops.name[item], ops.category(item), None, None, ops.state[item],
        ops.batch[item], ops.start[item], ops.end[item], ops.timing[item], ops.shape[item], ops.dtype[item],
        buffer_bytes(ops.shape[item], ops.dtype[item]), ops.description[item], len(inside), inside_ns,
        ops.line[item], rank.path,
    )  # fmt: skip


def neighbours(rank: RankTrace, item: int) -> tuple[str | None, str | None]:
    """Returns (operation before, operation after) a gap of a lane, by name; None at the ends of the step."""
    after, name = -1 - item, rank.ops.name
    order = [index for _, _, index, _ in sorted(timed_ops(rank))]
    index = order.index(after) if after < len(rank.ops) else len(order)
    return (name[order[index - 1]] if index else None), (name[after] if index < len(order) else None)


def device_facts(rank: RankTrace, item: int) -> list[tuple[str, str]]:
    """Returns (what, words) of the operation `item` of a rank, with raw text of the file; none for traces
    without a device.
    """
    device = rank.device
    if device is None or not 0 <= item < len(rank.ops):
        return []
    facts = [(stream_word(rank), stream_name(rank, device.stream[item]))]
    if device.operation[item] is not None:
        facts.append(("launched in", device.operation[item] or ""))
    if device.layer[item] is not None:
        facts.append(("layer", device.layer[item] or ""))
    if device.grid[item] is not None:
        facts.append(("grid", device.grid[item] or ""))
    if device.block[item] is not None:
        facts.append(("block", device.block[item] or ""))
    if device.occupancy[item] >= 0:
        facts.append(("occupancy", f"{device.occupancy[item]} %"))
    if device.bytes[item] >= 0:
        facts.append(("bytes", byte_size(device.bytes[item])))
    if device.correlation[item] >= 0:
        facts.append(("correlation", str(device.correlation[item])))
    info = device.collectives.get(item)
    if info is not None:
        facts.append(("collective", info.operation))
        if info.group is not None:
            facts.append(("group", info.group))
        if info.ranks is not None:
            facts.append(("ranks", RankSet.of(info.ranks).text()))
        if info.stated_sequence is not None:
            facts.append(("sequence", str(info.stated_sequence)))
    return facts


def no_bandwidth(rank: RankTrace, item: int) -> str | None:
    """Returns why a collective of a profiler trace has no bandwidth, in few words; None where the trace
    states all that it takes, and for anything that is no collective.
    """
    info = None if rank.device is None else rank.device.collectives.get(item)
    if info is None:
        return None
    if info.is_uneven:
        return "uneven splits"
    if rank.ops.shape[item] is None:
        inside = info.elements_in >= 0
        return "number of ranks not in the trace" if inside else "size not in the trace"
    if buffer_bytes(rank.ops.shape[item], rank.ops.dtype[item]) is None:
        return "type not in the trace" if info.dtype is None else "type not known"
    return None


def host_facts(rank: RankTrace, item: int) -> list[tuple[str, str]]:
    """Returns (what, words) of what the host did, `item` of a lane; none for anything else."""
    row = host_item(rank, item)
    if row is None or rank.device is None or rank.device.host is None:
        return []
    host = rank.device.host
    thread = host.lane.columns.thread[row]
    if thread == ANNOTATED:
        return [("host", "annotation")]
    if thread <= CALLS:
        return [("call of host thread", host_thread(host, thread))]
    return [
        ("host thread", host.threads[thread]),
        ("launches", plural(len(launched_in(host, row)), "operation")),
    ]


def launched_in(host: HostColumns, row: int) -> list[int]:
    """Returns the operations of the device that an operation of the host launched in this step, in order."""
    lane = host.lane.columns
    start, end, thread = lane.start[row], lane.end[row], lane.thread[row]
    return [
        op for op, (time, by) in enumerate(zip(host.launch, host.launcher, strict=True))
        if by == thread != NOT_LAUNCHED and start <= time <= end
    ]  # fmt: skip


def launch_of(rank: RankTrace, item: int) -> tuple[int, int, int | None] | None:
    """Returns (when, by which thread, in which operation of the host) an operation of a device was launched;
    the last is None outside of all. None where the trace does not state it.
    """
    device = rank.device
    if device is None or device.host is None or not 0 <= item < len(rank.ops):
        return None
    host = device.host
    time, by = host.launch[item], host.launcher[item]
    if by == NOT_LAUNCHED:
        return None
    # The outermost operations of a thread do not overlap: only the last to begin can contain it.
    lane = host.lane.columns
    around = max(
        (launch for launch, thread in enumerate(lane.thread) if thread == by and lane.start[launch] <= time),
        default=None,
    )
    return time, by, around if around is not None and lane.end[around] >= time else None


def stream_word(rank: RankTrace) -> str:
    """Returns the noun for its streams: threads for a host without a device."""
    device = rank.device
    return "thread" if device is not None and not device.on_device else "stream"


def stream_name(rank: RankTrace, stream: int) -> str:
    """Returns the name of a stream, its number where it has none."""
    return str(stream) if rank.device is None else rank.device.streams.get(stream, str(stream))
