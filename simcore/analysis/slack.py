"""The slopes of simulated runs: how the step responds to scales."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from simcore.program.ops import COMPUTE, STREAMS, TO_NEXT
from simcore.simulation import Simulation
from simcore.trace.gradients import Gradient
from simcore.trace.slopes import NO_KIND, Scale
from simcore.trace.slopes import compute_gradients as slopes
from simcore.trace.trace_graph import TraceGraph
from simcore.units import add_to_column
from simcore.workload.model import base_name


def compute_gradients(simulation: Simulation, graph: TraceGraph) -> list[Gradient]:
    """Returns the gradient of each scale: the order of the run is frozen, as for slack.

    simulation: with equal ranks folded; graph: of that. Scales on ranks are on the compute of all ranks of a
    class, since equal ranks are critical together. Raises ValueError where there is no slack.
    """
    timeline, names = simulation.timeline, simulation.workload.name
    layers: dict[str, int] = {}
    layer_of_row = [*[layers.setdefault(base_name(name), len(layers)) for name in names], len(layers)]
    # A kind of duration is a class, a stream and a layer.
    width = len(layers) + 1
    kinds_of_stage: dict[int, array[int]] = {}
    # 64 bits: classes times streams times names may be billions.
    kind_of = array("q", (NO_KIND,))
    per_class = len(STREAMS) * width
    for class_id in range(len(timeline.classes)):
        ops = timeline.stage_program(class_id).ops
        if id(ops) not in kinds_of_stage:
            columns = zip(ops.stream, ops.row, strict=True)
            kinds = [1 + stream * width + layer_of_row[row] for stream, row in columns]
            kinds_of_stage[id(ops)] = array("q", kinds)
        kind_of.extend(add_to_column(kinds_of_stage[id(ops)], class_id * per_class))
    durations = graph.durations
    # State changes have no kind.
    kind_of.extend([NO_KIND] * (len(durations) - len(kind_of)))
    rows = list(layers)

    def scales_of(kind: int) -> Iterator[Scale]:
        class_id, layer_and_stream = divmod(kind - 1, per_class)
        stream, layer = divmod(layer_and_stream, width)
        if stream == COMPUTE:
            ranks = timeline.ranks_of(class_id)
            yield Scale(0, 0, "compute")
            yield Scale(4, 0, f"rank{'s' if len(ranks) > 1 else ''} {ranks.text()}")
        else:
            yield Scale(1, 0, "comm")
            yield Scale(2, 0, f"comm {'pp' if stream >= TO_NEXT else STREAMS[stream]}")
        if layer < len(rows):
            yield Scale(3, 0, f"layer {rows[layer]}")

    return slopes(graph, durations, kind_of, scales_of)
