"""A collective over several dimensions: which phase runs on which of them, by which algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simcore.cluster import Cluster, Crossing, GroupShape
from simcore.collectives.algorithm import Steps
from simcore.collectives.algorithms import ALGORITHMS
from simcore.collectives.leg import Leg
from simcore.diagnostics import UsageError

NAMES = {
    "ALLREDUCE": "all-reduce",
    "ALLGATHER": "all-gather",
    "REDUCESCATTER": "reduce-scatter",
    "ALLTOALL": "all-to-all",
}
_DEFAULT = {"ring": "ring", "fully-connected": "direct", "switch": "halving-doubling"}


class Phase(NamedTuple):
    """One collective on one dimension, part of the whole.

    leg: the members there. collective: as in a workload. algorithm: its name. size: bytes that
    one rank puts in. steps: the chain of messages.
    """

    leg: Leg
    collective: str
    algorithm: str
    size: int
    steps: Steps

    def ns(self) -> int:
        """How long the phase takes alone."""
        return self.steps.ns(self.leg)


def phases(cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int) -> list[Phase]:
    """The phases of one collective in the order in which they run, as one chunk.

    collective: ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL. size_bytes: the whole buffer
    (the gathered result, the input of a reduce-scatter, one rank's buffer otherwise). Nothing
    to send (no bytes, a group of one) is no phase. Order and sizes: ASTRA-sim 2.0,
    `localBWAware`. Raises UsageError when an algorithm that was asked for does not fit, and
    ValueError for another collective.
    """
    if collective not in NAMES:
        raise ValueError(f"no collective {collective}")
    if not size_bytes or not shape.crossings:
        return []
    return [
        _phase(cluster, crossing, part, size)
        for part, crossing, size in _parts(shape.crossings, collective, _chunk(shape, collective, size_bytes))
    ]


def _chunk(shape: GroupShape, collective: str, size_bytes: int) -> int:
    """Bytes that one rank puts in: the shard of an all-gather, else at least a byte a member."""
    if collective == "ALLGATHER":
        return size_bytes // shape.members
    return max(size_bytes, shape.members)


def _parts(crossings: Sequence[Crossing], collective: str, size: int) -> list[tuple[str, Crossing, int]]:
    """(collective, dimension, bytes) of each phase.

    Only the last dimension sees an all-reduce, of what the reduce-scatters before it leave;
    all-gathers then go back down. All-to-all takes the full size on each dimension.
    """
    if collective == "ALLTOALL":
        return [(collective, crossing, size) for crossing in crossings]
    parts = []
    if collective in ("ALLREDUCE", "REDUCESCATTER"):
        upward = crossings if collective == "REDUCESCATTER" else crossings[:-1]
        for crossing in upward:
            parts.append(("REDUCESCATTER", crossing, size))
            size //= crossing.members
    if collective == "ALLREDUCE":
        parts.append((collective, crossings[-1], size))
    if collective in ("ALLREDUCE", "ALLGATHER"):
        downward = crossings if collective == "ALLGATHER" else crossings[:-1]
        for crossing in reversed(downward):
            parts.append(("ALLGATHER", crossing, size))
            size *= crossing.members
    return parts


def _phase(cluster: Cluster, crossing: Crossing, collective: str, size: int) -> Phase:
    leg = Leg(cluster, crossing)
    name = _algorithm(leg, collective)
    return Phase(leg, collective, name, size, ALGORITHMS[name].steps(leg, collective, size))


def _algorithm(leg: Leg, collective: str) -> str:
    """The name of the algorithm that runs `collective` on `leg`."""
    index, members = leg.crossing.dimension, leg.members
    is_power_of_two = members & (members - 1) == 0
    asked = leg.cluster.algorithms[index]
    if collective == "ALLTOALL" and (asked is None or not ALGORITHMS[asked].has_alltoall):
        return "direct"
    if asked is None:
        name = _DEFAULT[leg.dimension.kind]
        return "ring" if ALGORITHMS[name].power_of_two and not is_power_of_two else name
    if ALGORITHMS[asked].power_of_two and not is_power_of_two:
        others = " or ".join(name for name, other in ALGORITHMS.items() if not other.power_of_two)
        raise UsageError(
            f"--algorithm {index}={asked}: a group has {members} members on dimension {index}, "
            f"and {asked} needs a power of two; {others} fits"
        )
    return asked
