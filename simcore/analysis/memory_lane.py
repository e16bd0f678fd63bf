"""What a rank of a model holds in memory as its step goes on: it rises with each forward and falls with each
backward that ends.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from simcore.analysis.results import Results
from simcore.model.maker import ModelMaker
from simcore.model.memory import StageMemory, chunk_activations


class MemoryLane(NamedTuple):
    """Bytes held from each time, ns, to the next; the first time is 0. limit: bytes of a GPU."""

    stage: int
    time_ns: array[int]
    held: array[int]
    limit: int

    def most(self, edges: Sequence[int]) -> list[int]:
        """The most that is held in each stretch edges[i]..edges[i+1], ns."""
        found = []
        for first, last in pairwise(edges):
            low = bisect_right(self.time_ns, first) - 1
            high = bisect_right(self.time_ns, max(last - 1, first))
            found.append(max(self.held[low:high]))
        return found


def memory_lane(results: Results, number: int) -> MemoryLane | None:
    """The lane of class `number`; None unless the run is of a model in Megatron's dialect.

    Its maximum is the total of the stage: weights, gradients and optimizer states are there all the time,
    logits and what single ops need as long as any activations are.
    """
    figures, simulation = results.model_figures, results.simulation
    maker = simulation.workload.maker
    if figures is None or not isinstance(maker, ModelMaker):
        return None
    timeline = simulation.timeline
    stage = timeline.classes[number].stage
    memory: StageMemory = figures.memory[stage]
    each = chunk_activations(maker.made(simulation.parameters).training, stage)
    ops, start, end = timeline.columns(number)
    times, held = array("q", [0]), array("q", [memory.static])
    activations = count = 0
    for op, chunk, change in timeline.stage_program(number).held:
        count += change
        activations += change * each[chunk]
        # It is there when the first op of the forward begins, and gone when the last of the backward ends.
        time_ns = start[op] if change > 0 and op < len(ops) else end[op - 1] if op else 0
        times.append(max(time_ns, times[-1]))
        held.append(memory.static + (activations + memory.logits + memory.work if count else 0))
    return MemoryLane(stage, times, held, figures.limit)
