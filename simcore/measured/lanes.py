"""The lanes of a measured rank as columns: all its operations, or those of one group kind."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from simcore.measured.columns import ANNOTATED, CALLS, FUSED, HostColumns, RankTrace
from simcore.measured.run import MeasuredRun
from simcore.measured.vocabulary import (
    CATEGORIES,
    COMPUTE,
    COPY,
    LAUNCH,
    category_of_group,
)
from simcore.records import Struct

# The other lanes of a rank are the trace's group kinds.
COMPUTE_LANE = "compute"
# Sub-operations whose group is not stated.
NO_GROUP = ""
# Lanes of a device: its copies, and each of its streams with all that runs there.
COPIES_LANE = "copies"
STREAM_LANE = "stream "
# Lanes of the host of a device: its annotations, and each thread that launched something.
HOST_LANE = "host "
ANNOTATIONS_LANE = f"{HOST_LANE}annotations"
# Below each thread the calls that it was in while the device ran nothing.
CALLS_LANE = f"{HOST_LANE}calls "
_GAP, _OUTSIDE = CATEGORIES.index("gap"), CATEGORIES.index("outside")
_ON_COMPUTE = (*COMPUTE, "host")


class LaneSpans(Struct, frozen=True):
    """Spans of a lane as columns, ascending by start, ns."""

    start: array[int]
    end: array[int]
    """An instant takes the 1 ns that it needs to be found."""
    item: array[int]
    """Index of an operation; from the number of operations on, of a sub-operation, or for a device of what
    its host did (`HostColumns`); -1 - i for the time before operation i (for their number: after the last).
    """
    category: bytearray
    """Index into CATEGORIES."""


def rank_spans(run: MeasuredRun, rank: RankTrace) -> LaneSpans:
    """Returns all operations of a rank except launches, and the gaps between them, 0 to the step's end."""
    spans: list[tuple[int, int, int, int]] = []
    reached = 0
    ended = 0
    for start, end, index, category in sorted(timed_ops(rank)):
        if start > reached:
            spans.append((reached, start, -1 - index, _GAP if ended else _OUTSIDE))
        spans.append((start, end, index, category))
        reached, ended = max(reached, end), ended + 1
    if run.length > reached:
        spans.append((reached, run.length, -1 - len(rank.ops), _OUTSIDE))
    return _columns(spans)


def rank_segments(run: MeasuredRun, rank: RankTrace) -> tuple[array[int], bytearray]:
    """Returns (edge, category): edge[i]..edge[i + 1] ns of the step is of category[i], an index into
    CATEGORIES.

    Where operations overlap, the one that began first has the time.
    """
    spans = rank_spans(run, rank)
    edge, category = array("q", (0,)), bytearray()
    for end, kind in zip(spans.end, spans.category, strict=True):
        # An instant is drawn 1 ns wide; after the end it has no time to take.
        end = min(end, run.length)
        if end > edge[-1]:
            edge.append(end)
            category.append(kind)
    return edge, category


def lane_spans(rank: RankTrace, kind: str) -> LaneSpans:
    """Returns one lane of a rank: COMPUTE_LANE, or what a group kind (or NO_GROUP) has, sub-operations
    too.
    """
    if kind == COMPUTE_LANE:
        return _columns(sorted(op for op in timed_ops(rank) if _on_compute(rank, op[2])))
    ops, subs = rank.ops, rank.subs
    if rank.device is not None and (kind == COPIES_LANE or kind.startswith(STREAM_LANE)):
        # Indices are compared: a million comparisons of texts take too long.
        if kind == COPIES_LANE:
            column: Sequence[int] = ops.stated_category
            wanted_value = CATEGORIES.index(COPY)
        else:
            column, wanted_value = rank.device.stream, int(kind.removeprefix(STREAM_LANE))
        kept_ops = [op for op, entry in enumerate(column) if entry == wanted_value]
        parts = (map(column_of.__getitem__, kept_ops) for column_of in (ops.start, ops.end))
        return _columns(
            sorted(zip(*parts, kept_ops, map(ops.stated_category.__getitem__, kept_ops), strict=True))
        )
    if rank.device is not None and rank.device.host is not None and kind.startswith(HOST_LANE):
        return _columns(sorted(_host_spans(rank, rank.device.host, kind)))
    spans = [
        (ops.start[index], ops.end[index], index, _category(rank, index))
        for index, group in enumerate(ops.group)
        if group == kind and ops.timing[index] != FUSED and not _on_compute(rank, index)
    ]
    wanted_group = kind or None
    category = CATEGORIES.index(category_of_group(wanted_group))
    spans += [
        (subs.start[index], subs.end[index], len(ops) + index, category)
        for index, group in enumerate(subs.group)
        if group == wanted_group
    ]
    return _columns(sorted(spans))


def lane_kinds(run: MeasuredRun, rank: RankTrace) -> list[str]:
    """Returns the lanes below a rank's own: compute, its group kinds in the run's order; for a device copies
    and streams.
    """
    ops = rank.ops
    lanes: set[str] = {
        group for index, group in enumerate(ops.group) if group is not None and not _on_compute(rank, index)
    }
    lanes |= {group or NO_GROUP for group in rank.subs.group}
    kinds = [kind for kind in run.kinds if kind in lanes]
    if rank.device is not None:
        copies = [COPIES_LANE] if CATEGORIES.index(COPY) in ops.stated_category else []
        streams = [f"{STREAM_LANE}{stream}" for stream in sorted(set(rank.device.stream))]
        return [COMPUTE_LANE, *kinds, *copies, *streams, *_host_kinds(run, rank.device.host)]
    return [COMPUTE_LANE, *kinds, *([NO_GROUP] if NO_GROUP in lanes else [])]


def host_item(rank: RankTrace, item: int) -> int | None:
    """Returns the row of `LaneColumns` that an item of a lane stands for; None for others."""
    has_host = rank.device is not None and rank.device.host is not None
    return item - len(rank.ops) if has_host and item >= len(rank.ops) else None


def host_lane(host: HostColumns, thread: int) -> str:
    """Returns the lane of a thread (an index into `threads`), of its calls, or of the annotations."""
    if thread == ANNOTATED:
        return ANNOTATIONS_LANE
    return f"{CALLS_LANE if thread <= CALLS else HOST_LANE}{host_thread(host, thread)}"


def host_thread(host: HostColumns, thread: int) -> str:
    """Returns the words for a thread, or for the one that made these calls."""
    return host.threads[_thread_index(thread)]


def _host_kinds(run: MeasuredRun, host: HostColumns | None) -> list[str]:
    """Returns the lanes of the host; none in a replay, where the host would have other times."""
    if host is None or run.replayed:
        return []
    thread_ids = set(host.lane.columns.thread)
    threads = sorted(thread_ids, key=lambda thread: (_thread_index(thread), thread <= CALLS))
    return [host_lane(host, thread) for thread in threads]


def _thread_index(thread: int) -> int:
    return CALLS - thread if thread <= CALLS else thread


def _host_spans(rank: RankTrace, host: HostColumns, kind: str) -> list[tuple[int, int, int, int]]:
    """Returns what a lane of the host shows, clipped to the step."""
    first, last = rank.window or (rank.first_ns, rank.last_ns)
    count, category, lane = len(rank.ops), CATEGORIES.index("host"), host.lane.columns
    return [
        (max(start, first), min(end, last), count + index, category)
        for index, (start, end, thread) in enumerate(zip(lane.start, lane.end, lane.thread, strict=True))
        if host_lane(host, thread) == kind and start < last and end > first
    ]


def timed_ops(rank: RankTrace) -> list[tuple[int, int, int, int]]:
    """Returns (start, end, index, category) of the operations that take a rank's time, each once."""
    ops = rank.ops
    if rank.device is not None:
        return list(zip(ops.start, ops.end, range(len(ops)), ops.stated_category, strict=True))
    return [
        (ops.start[index], ops.end[index], index, _category(rank, index))
        for index, name in enumerate(ops.name)
        if name != LAUNCH and ops.timing[index] != FUSED
    ]


def _category(rank: RankTrace, index: int) -> int:
    return CATEGORIES.index(rank.ops.category(index))


def _on_compute(rank: RankTrace, index: int) -> bool:
    return CATEGORIES[_category(rank, index)] in _ON_COMPUTE


def _columns(spans: list[tuple[int, int, int, int]]) -> LaneSpans:
    return LaneSpans(
        array("q", [start for start, _, _, _ in spans]),
        array("q", [end if end > start else start + 1 for start, end, _, _ in spans]),
        array("q", [item for _, _, item, _ in spans]),
        bytearray([category for _, _, _, category in spans]),
    )
