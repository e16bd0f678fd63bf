"""Which spans of a measured run's lane a query means: by operation, group kind and micro-batch."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tui.timeline.flags import both, either, lasting, table
from tui.timeline.query import Query, Word
from tui.timeline.spans import DRAWN

if TYPE_CHECKING:
    from tui.timeline.measured_lanes import MeasuredLane

# What a word stands for -> what the lane's spans are drawn as.
_CATEGORIES = {
    "fwd": ("fwd",), "ig": ("bwd",), "wg": ("bwd",), "opt": ("opt",), "recompute": ("recompute",),
    "compute": ("fwd", "bwd", "opt", "recompute", "kernel"), "copy": ("copy",),
    "tp": ("tp",), "dp": ("dp",), "pp": ("pp",), "ep": ("ep",),
    "dp_ep": ("dp_ep",), "all": ("all",), "host": ("host",), "idle": ("idle",),
}  # fmt: skip
# What a word stands for -> a part of the operation's or collective's name in the trace's spelling.
_SPELLED = {
    "all-reduce": ("allreduce", "all_reduce"), "all-gather": ("allgather", "all_gather"),
    "reduce-scatter": ("reduce_scatter", "reducescatter"), "all-to-all": ("all_to_all", "alltoall"),
    "send": ("send_", "isend"), "receive": ("recv_", "irecv"), "wait": ("recv_",),
    "activation": ("send_forward", "recv_forward"), "gradient": ("send_backward", "recv_backward"),
}  # fmt: skip


def measured_matches(lane: MeasuredLane, query: Query) -> bytes:
    """For each span of the lane 1 if the query means it, else 0. Rank and stage are not looked at."""
    spans = lane.spans
    ops, subs = lane.rank.ops, lane.rank.subs
    found = [lasting(spans.start, spans.end, query)]
    found += [_word(lane, word) for word in query.words]
    if query.microbatch is not None:
        # Of a sub-operation it is the micro-batch of the operation that it lies in; of a gap, none.
        batch = [*ops.batch, *map(ops.batch.__getitem__, subs.parent)]
        wanted = query.microbatch
        found.append(bytes(item >= 0 and batch[item] == wanted for item in spans.op))
    return both(found)


def _word(lane: MeasuredLane, word: Word) -> bytes:
    categories = (DRAWN.index(name) for kind in word.kinds for name in _CATEGORIES.get(kind, ()))
    parts = [part for kind in word.kinds for part in _SPELLED.get(kind, ())]
    ops, subs = lane.rank.ops, lane.rank.subs
    # Names are few, and there are many of each.
    has: dict[str | None, bool] = {None: False}
    for name in {*ops.name, *subs.name, *subs.collective}:
        if name is not None:
            lower = name.lower()
            has[name] = word.is_in(name) or any(part in lower for part in parts)
    named = chain(
        map(has.__getitem__, ops.name),
        (has[name] or has[other] for name, other in zip(subs.name, subs.collective, strict=True)),
        # Gaps: an item below 0 counts from the end.
        bytes(len(ops) + 1),
    )
    by_name = bytes(map(bytes(named).__getitem__, lane.spans.op))
    return either(bytes(lane.spans.category.translate(table(categories))), by_name)
