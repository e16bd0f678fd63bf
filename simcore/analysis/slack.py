"""Slack, how much longer a span may take before the step grows, and slopes, how the step answers to scales.

Of slack, durations and order of the run are frozen, a collective is lengthened for all its members: the
latest end of each node of the graph, less its end.

A class stands for many ranks. Its slack is that of a span on one of them, and on all of them alike: no
chain of dependencies meets the same op of two ranks of a class, since they run at the same time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

from simcore.program.ops import COMPUTE, STREAMS, TO_NEXT
from simcore.run.gradients import Chains, Gradient
from simcore.run.graph import never
from simcore.run.simulated import SimulatedGraph
from simcore.simulation import Simulation
from simcore.units import differences, shifted
from simcore.workload.model import base_name


def slack_columns(built: SimulatedGraph, cancelled: Callable[[], bool] = never) -> list[array[int]]:
    """Per rank class, ns by which each op may take longer. Raises `Cancelled`.

    Raises ValueError for a run in queues (`Program.queued`): what they serve first depends on times.
    """
    timeline = built.timeline
    if timeline.program.queued:
        raise ValueError("no slack where collectives queue by priority")
    latest = built.graph.latest(built.durations(), timeline.step_time_ns, cancelled)
    return [
        differences(array("q", [*map(latest.__getitem__, built.nodes(number))]), end)
        for number, end in enumerate(timeline.times.end)
    ]


# Time that no scale is on: a state change.
_NO_KIND = 0


def gradients(
    simulation: Simulation, built: SimulatedGraph, cancelled: Callable[[], bool] = never
) -> list[Gradient]:
    """The gradient of each scale: the order of the run is frozen, as under slack.

    simulation: with equal ranks folded; built: its graph. Scales on ranks are on the compute of all ranks
    of a class, since equal ones tie. Raises `Cancelled`.
    """
    timeline, names = simulation.timeline, simulation.workload.name
    layers: dict[str, int] = {}
    layer_of_row = [*[layers.setdefault(base_name(name), len(layers)) for name in names], len(layers)]
    # A kind of duration is a class, a stream and a layer.
    width = len(layers) + 1
    kinds_of_stage: dict[int, array[int]] = {}
    # Wide: classes times streams times names may be billions.
    kind_of = array("q", (_NO_KIND,))
    per_class = len(STREAMS) * width
    for number in range(len(timeline.classes)):
        ops = timeline.stage_program(number).ops
        if id(ops) not in kinds_of_stage:
            columns = zip(ops.stream, ops.row, strict=True)
            kinds = [1 + stream * width + layer_of_row[row] for stream, row in columns]
            kinds_of_stage[id(ops)] = array("q", kinds)
        kind_of.extend(shifted(kinds_of_stage[id(ops)], number * per_class))
    durations = built.durations()
    kind_of.extend([_NO_KIND] * (len(durations) - len(kind_of)))
    last = [built.last(number) for number in range(len(timeline.classes))]
    chains = Chains(built.graph, durations, kind_of, last)
    # By (family, scale): its kinds of duration. Families stand in this order.
    scales: dict[tuple[int, str], list[int]] = {}
    rows = list(layers)
    for kind in sorted(chains.kinds):
        if kind == _NO_KIND:
            continue
        number, rest = divmod(kind - 1, per_class)
        stream, layer = divmod(rest, width)
        if stream == COMPUTE:
            ranks = timeline.ranks_of(number)
            named = [(0, "compute"), (4, f"rank{'s' if len(ranks) > 1 else ''} {ranks.text()}")]
        else:
            named = [(1, "comm"), (2, f"comm {'pp' if stream >= TO_NEXT else STREAMS[stream]}")]
        if layer < len(rows):
            named.append((3, f"layer {rows[layer]}"))
        for scale in named:
            scales.setdefault(scale, []).append(kind)
    # Within a family in the order of classes, streams and rows.
    by_family = sorted(scales.items(), key=lambda item: item[0][0])
    return [Gradient(name, *chains.slopes(kinds, cancelled)) for (_, name), kinds in by_family]
