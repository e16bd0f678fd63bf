"""A simulated run as a CSV of spans. A collective begins on a rank when that comes to it and its stream is
free, a receive when the rank comes to it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from simcore.program.ops import COMPUTE, PHASES, STREAMS, CollectiveCost, TransferCost
from simcore.simulation import Simulation
from simcore.workload.formats.span_csv import COLUMNS

Row = dict[str, object]
# What the format has no word for counts as what it is a part of.
_KINDS = {"fwd": "forward", "ig": "backward", "wg": "backward", "recompute": "backward", "opt": "optimizer"}
_COLLECTIVES = {
    "ALLREDUCE": "all-reduce", "ALLGATHER": "all-gather", "REDUCESCATTER": "reduce-scatter",
    "ALLTOALL": "all-to-all",
}  # fmt: skip
_001, _002 = "001_moe_128npu_with_mistakes.txt", "002_gpt_1024npu.txt"
_INTERLEAVED = {"schedule": "interleaved"}
# Runs of fixtures that a file of spans has whole: (fixture, parameters).
SIMULATED: list[tuple[str, dict[str, Any]]] = [
    (_001, {"world": 8, "tp": 2, "pp": 2, "ep": 1, "microbatches": 2}),
    (_001, {"world": 16, "tp": 2, "pp": 2, "ep": 2, "microbatches": 2, "schedule": "zb-h1"}),
    (_002, {"world": 8, "tp": 2, "pp": 2, "microbatches": 4, "virtual_stages": 2} | _INTERLEAVED),
    (_002, {"world": 8, "tp": 2, "pp": 2, "microbatches": 2, "overlap_grad_reduce": True}),
    (_002, {"world": 4, "tp": 2, "pp": 1, "microbatches": 1}),
    (_002, {"world": 8, "tp": 4, "pp": 2, "microbatches": 2, "slow_rank": ("3=1.5",)}),
]


def as_csv(simulation: Simulation) -> str:
    """The spans of all ranks, a line each."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(simulation))
    return out.getvalue()


def rows(simulation: Simulation) -> Iterator[Row]:
    """The rows of `as_csv`."""
    for number, rank_class in enumerate(simulation.timeline.classes):
        for rank in rank_class.ranks:
            yield from _own(simulation, number, rank)
            yield from _received(simulation, number, rank)


def _own(simulation: Simulation, number: int, rank: int) -> Iterator[Row]:
    timeline, layout = simulation.timeline, simulation.layout
    ops, begin, over = timeline.columns(number)
    comes = simulation.trace.spans[number].start
    names = simulation.workload.name
    free: dict[int, int] = {}
    for op in range(len(ops)):
        cost, row = timeline.program.costs[ops.cost[op]], ops.row[op]
        name = names[row] if row >= 0 else "activation"
        span: Row = {
            "rank": rank, "stream": STREAMS[ops.stream[op]], "name": name, "start_ns": begin[op],
            "end_ns": over[op], "kind": _KINDS[PHASES[ops.phase[op]]], "step": 0,
            "microbatch": max(ops.microbatch[op], 0),
        }  # fmt: skip
        if isinstance(cost, CollectiveCost):
            members = ",".join(map(str, layout.group_of(cost.group, rank)))
            starts = min(max(comes[op], free.get(ops.stream[op], 0)), begin[op])
            span |= {"kind": _COLLECTIVES[cost.collective], "start_ns": starts,
                     "group": f"{cost.group}:{members}"}  # fmt: skip
        elif isinstance(cost, TransferCost):
            stage = layout.position(rank)[2] + cost.step
            span |= {"kind": "send", "group": f"pp:{rank},{layout.neighbour(rank, stage)}"}
        else:
            assert ops.stream[op] == COMPUTE
        free[ops.stream[op]] = over[op]
        yield span


def _received(simulation: Simulation, number: int, rank: int) -> Iterator[Row]:
    timeline, layout = simulation.timeline, simulation.layout
    waits = simulation.trace.waits[number]
    came = {
        (of, span): start
        for of, span, start in zip(waits.of, waits.span, waits.start, strict=True)
        if of != number
    }
    for _, sender, op, source, _, _ in timeline.arrivals(number):
        sent, start, end = timeline.columns(sender)
        yield {
            "rank": rank, "stream": "receive", "name": "activation", "kind": "receive", "step": 0,
            "start_ns": min(came.get((sender, op), start[op]), end[op]), "end_ns": end[op],
            "group": f"pp:{rank},{layout.neighbour(rank, source)}", "microbatch": max(sent.microbatch[op], 0),
        }  # fmt: skip
