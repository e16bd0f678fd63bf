"""An executed set of traces with other durations of some parts, in the same order.

`--time-scale WHAT=X` and each row of the what-if table use it. Nothing is scheduled anew: what
held a slot or a stream before, which message a receive takes and which wait has no known cause stay as they
were. Factors apply to the durations of the run one after the other, each rounding half to even.
"""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable
from functools import cached_property

from simcore.chakra.nodes import COMP, RECV
from simcore.diagnostics import UsageError, never_cancelled, printable
from simcore.executing.columns import pattern_of
from simcore.executing.execution_analysis import ExecutionAnalysis
from simcore.executing.execution_result import Execution, ExecutionResult
from simcore.executing.graph import COLLECTIVE, GAP, MESSAGE, OWN, ExecutionGraph
from simcore.program.overrides import time_scales
from simcore.records import replace
from simcore.trace.trace_graph import scale_durations

_MOST_LISTED = 12
ALL_COMPUTE, ALL_COMMUNICATION, ALL_CPU = "all compute", "all communication", "all cpu"


class TraceParts:
    """The parts of an executed set that a factor can be on.

    by_words: `all compute`, `stream group 3`, `nodes layer.#.fwd` -> the ids of their durations
    in the graph.
    """

    def __init__(self, ran: ExecutionAnalysis) -> None:
        self._ran = ran

    @cached_property
    def by_words(self) -> dict[str, list[int]]:
        built, ran = self._ran.graph, self._ran
        duration_ids: dict[str, list[int]] = {}
        first = ran.executed.units.first
        for duration_id, (kind, (unit, index)) in enumerate(zip(built.kinds, built.of, strict=True), 1):
            if kind == GAP:
                continue
            rank = first[unit]
            stream = ran.stream_of(rank, index)
            is_compute = kind == OWN and stream == "compute"
            whole = ALL_COMPUTE if is_compute else ALL_CPU if stream == "cpu" else ALL_COMMUNICATION
            duration_ids.setdefault(whole, []).append(duration_id)
            if kind in (COLLECTIVE, MESSAGE) or stream in ("messages", "memory"):
                duration_ids.setdefault(f"stream {stream}", []).append(duration_id)
            duration_ids.setdefault(f"nodes {pattern_of(ran.name_of(rank, index))}", []).append(duration_id)
        return duration_ids

    def ns(self, part: str) -> int:
        """Returns the sum of the durations of a part, ns."""
        durations = self._ran.graph.durations
        return sum(durations[duration_id - 1] for duration_id in self.by_words[part])


def run_at_scales(
    ran: ExecutionAnalysis, setup: Execution, cancelled: Callable[[], bool] = never_cancelled
) -> ExecutionResult:
    """Returns a run with the factors of `--time-scale` on its durations.

    Raises `UsageError` for a part that this run does not have, `Cancelled`.
    """
    parts = TraceParts(ran)
    built, flat = ran.graph, ran.trace_graph.durations
    for part, factor in time_scales(setup.parameters.time_scale):
        if part not in parts.by_words:
            raise UsageError(_format_unknown_part(part, list(parts.by_words)))
        flat = scale_durations(flat, parts.by_words[part], factor)
    other = copy.copy(built)
    other.durations = list(flat[1 : len(built.durations) + 1])
    other.ends = list(built.graph.ends(flat, cancelled))
    return _with_other_times(ran.executed, other, setup)


def _format_unknown_part(part: str, there: list[str]) -> str:
    kind = part.partition(" ")[0]
    candidates = [name for name in there if name.startswith(f"{kind} ")] or [
        name for name in there if not name.startswith("nodes ")
    ]
    left = len(candidates) - _MOST_LISTED
    listed = ", ".join(printable(name, 40) for name in candidates[:_MOST_LISTED])
    more = f" and {left} more" if left > 0 else ""
    return f"--time-scale: no {printable(part, 60)} in this run, only {listed}{more}"


def _with_other_times(executed: ExecutionResult, built: ExecutionGraph, setup: Execution) -> ExecutionResult:
    """Returns the run in which the nodes of its graph end as in `built`.

    What links carried is left out: no message was simulated anew.
    """
    units, ends = executed.units, built.ends
    starts, overs = [], []
    for unit, rank in enumerate(units.first):
        old_start, old_end = executed.start[rank], executed.end[rank]
        starts.append(
            array(
                "q",
                (
                    ends[node] if node >= 0 else was
                    for node, was in zip(built.ready_nodes[unit], old_start, strict=True)
                ),
            )
        )
        overs.append(
            array(
                "q",
                (
                    ends[node] if node >= 0 else was
                    for node, was in zip(built.end_nodes[unit], old_end, strict=True)
                ),
            )
        )
    met: dict[int, int] = {}
    for unit, rank in enumerate(units.first):
        for index, meeting in enumerate(executed.meetings[rank]):
            if meeting >= 0 and built.ready_nodes[unit][index] >= 0:
                met[meeting] = max(met.get(meeting, 0), starts[unit][index])
    begins = [_find_begins(executed, built, unit, starts, overs, met) for unit in range(len(units.first))]
    ranks = []
    for rank, end, exposed in executed.ranks:
        unit = units.of[rank]
        later = max(overs[unit], default=0) - max(executed.end[rank], default=0)
        longer = _compute_ns(executed, rank, starts[unit], overs[unit]) - _compute_ns(
            executed, rank, executed.start[rank], executed.end[rank]
        )
        ranks.append((rank, end + later, exposed + later - longer))
    return replace(
        executed,
        setup=setup,
        start=units.spread(starts),
        begin=units.spread(begins),
        end=units.spread(overs),
        ranks=ranks,
        links=None,
        link_heat=None,
        graph=built,
    )


def _find_begins(
    executed: ExecutionResult,
    built: ExecutionGraph,
    unit: int,
    starts: list[array[int]],
    overs: list[array[int]],
    met: dict[int, int],
) -> array[int]:
    """Returns when what each node of a class waited for had come."""
    rank = executed.units.first[unit]
    nodes = executed.nodes[rank]
    old_start, old_begin = executed.start[rank], executed.begin[rank]
    begins = array("q", old_begin)
    for index, start in enumerate(starts[unit]):
        if built.ready_nodes[unit][index] < 0:
            continue
        end, send = overs[unit][index], executed.sends[unit][index]
        meeting = executed.meetings[rank][index]
        if meeting >= 0:
            there = met[meeting] if executed.before is None else built.graph.start(
                built.end_nodes[unit][index], built.ends
            )  # fmt: skip
        elif send >= 0 and nodes.columns.type[nodes.row[index]] == RECV:
            there = _departure_ns(executed, send, starts, overs)
        else:
            there = start + old_begin[index] - old_start[index]
        begins[index] = min(max(start, there), max(end, start))
    return begins


def _departure_ns(
    executed: ExecutionResult, send: int, starts: list[array[int]], overs: list[array[int]]
) -> int:
    """Returns when a message departed: in ASTRA-sim as its send began, in wltui when the channel was free."""
    unit, index = send >> 32, send & 0xFFFFFFFF
    start = starts[unit][index]
    if executed.before is None:
        return start
    rank = executed.units.first[unit]
    waited = executed.begin[rank][index] - executed.start[rank][index]
    return min(start + waited, max(overs[unit][index], start))


def _compute_ns(executed: ExecutionResult, rank: int, start: array[int], end: array[int]) -> int:
    """Returns the ns of compute on the GPU."""
    nodes = executed.nodes[rank]
    types, sets, rows = nodes.columns.type, nodes.columns.attributes, nodes.row
    computed = 0
    for index, over in enumerate(end):
        row = rows[index]
        if types[row] == COMP and over >= 0 and start[index] >= 0:
            is_cpu = executed.kinds.attributes(sets[row]).get("is_cpu_op")
            if is_cpu is None or not is_cpu.value:
                computed += over - start[index]
    return computed
