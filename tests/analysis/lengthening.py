"""The engine once more, with single spans of a finished run longer than they were."""

from __future__ import annotations

from simcore.engine import Engine
from simcore.program.ops import KIND_OF_STREAM
from simcore.simulation import Simulation
from simcore.sources.simulated_graph import SimulatedGraph


def frozen_durations(simulation: Simulation) -> list[list[int]]:
    """Per class, what each op took in the run, ns."""
    times = simulation.timeline.times
    return [
        [over - begin for begin, over in zip(start, end, strict=True)]
        for start, end in zip(times.start, times.end, strict=True)
    ]


def lengthened(simulation: Simulation, number: int, op: int, ns: int) -> int:
    """The step time if an op of a class, on all its members if it is a collective, takes `ns` more.

    All other spans last as long as they did; nothing shares ports any more.
    """
    timeline = simulation.timeline
    durations = frozen_durations(simulation)
    stream = timeline.columns(number)[0].stream[op]
    members = [(number, op)]
    if stream in KIND_OF_STREAM:
        members = SimulatedGraph(timeline).members(number, op)
    for member, its_op in members:
        durations[member][its_op] += ns
    return max(Engine(timeline.program, timeline.folding, durations).run().finish)
