"""A collective over several dimensions: which phase runs where, by which algorithm, and what ports it loads.

Bytes by dimension, and port time.
"""

from __future__ import annotations

from typing import NamedTuple

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives.algorithm import Algorithm, PortLoad, Steps
from simcore.collectives.algorithms import algorithm_named
from simcore.collectives.exact import decimal_ratio
from simcore.collectives.reach import Reach
from simcore.diagnostics import UsageError
from simcore.names import COLLECTIVES

NAMES = {kind: name for name, kind in COLLECTIVES.items()}
# With copies of one rank to the host's memory and back, which no network carries.
WITH_COPIES = NAMES | {"OFFLOAD": "offload", "FETCH": "fetch"}
_SEND_RECV = "send-recv"
_DEFAULT = {"ring": "ring", "fully-connected": "direct", "switch": "halving-doubling"}


def cell_name(collective: str | None) -> str:
    """What the communication of a cell is called: a collective, else `send-recv`, to a neighbouring stage."""
    return WITH_COPIES.get(collective or "", _SEND_RECV)


class Phase(NamedTuple):
    """One collective on one leg, part of the whole.

    leg: the members there. collective: as in a workload. algorithm: its name. size: bytes that
    one rank puts in. steps: the chain of messages of the last rank when all start together.
    """

    leg: Reach
    collective: str
    algorithm: str
    size: int
    steps: Steps

    def ns(self) -> int:
        """How long the phase takes alone, until its last rank is done."""
        return self.steps.ns(self.leg)

    def first_ns(self) -> int:
        """How long it takes until its first rank is done."""
        first_steps = algorithm_named(self.algorithm).first_steps
        if first_steps is None:
            return self.ns()
        return first_steps(self.leg, self.collective, self.size).ns(self.leg)

    @property
    def is_tree(self) -> bool:
        """Whether ranks of it are done at different times."""
        return algorithm_named(self.algorithm).is_tree


def chunk_bytes(cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int) -> tuple[int, int]:
    """(chunks, bytes of each that one rank puts in) of a collective of `size_bytes` in all.

    A chunk is floor(bytes / splits), at least a byte a member (all-gather: at least a byte of
    the shard), and there are as many of that size as the bytes need: a remainder makes one
    more (ASTRA-sim 2.0, Sys::generate_collective).
    """
    if collective == "ALLGATHER":
        size, least = size_bytes // shape.members, 1
        if not size:
            return 1, 0
    else:
        size, least = size_bytes, shape.members
    if cluster.splits == 1:
        return 1, max(size, least)
    chunk = max(size // cluster.splits, least)
    return -(-size // chunk), chunk


def rest_bytes(cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int) -> tuple[int, int, int]:
    """(chunks, bytes of each, bytes of the last) that one rank puts in, as ASTRA-sim 1.0 cuts them.

    A chunk is floor(bytes / splits), at least a byte; the last one is what the others leave.
    """
    size = max(1, size_bytes // shape.members if collective == "ALLGATHER" else size_bytes)
    chunk = max(1, size // cluster.splits)
    chunks = -(-size // chunk)
    return chunks, chunk, size - (chunks - 1) * chunk


def phases(cluster: Cluster, shape: GroupShape, collective: str, size: int) -> list[Phase]:
    """The phases of one chunk in the order in which they run.

    collective: ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL. size: bytes that one rank puts
    in (`chunk_bytes`). A group of one has no phase. Order and sizes: ASTRA-sim 2.0. Raises
    UsageError when an algorithm that was asked for does not fit, and ValueError for another
    collective.
    """
    if collective not in NAMES:
        raise ValueError(f"no collective {collective}")
    if not shape.crossings:
        return []
    asked = cluster.algorithms_for(collective)
    whole = _whole(asked)
    if whole is not None:
        name = _fitting(Reach(cluster, shape.crossings), collective, *whole)
        return [_phase(Reach(cluster, shape.crossings), collective, name, size)]
    legs = [Reach(cluster, (crossing,)) for crossing in shape.crossings]
    names = [_algorithm(leg, collective, asked[leg.dimension]) for leg in legs]
    found = []
    for part, index in _parts(cluster, collective, len(legs)):
        leg, name = legs[index], names[index]
        found.append(_phase(leg, part, name, size))
        # A tree runs an all-reduce whatever was asked for: what leaves it is as large as what entered.
        if part == "REDUCESCATTER" and not algorithm_named(name).is_tree:
            size //= leg.members
        elif part == "ALLGATHER" and not algorithm_named(name).is_tree:
            size *= leg.members
    return found


def _parts(cluster: Cluster, collective: str, legs: int) -> list[tuple[str, int]]:
    """(collective, leg) of each phase.

    An all-reduce is a reduce-scatter on each dimension but the last, which alone sees an all-reduce,
    of what they leave; all-gathers then go back down. Under `baseline` it is a whole all-reduce
    on each. Reduce-scatter goes up, all-gather comes down, and an all-to-all goes up with its
    full size.
    """
    if collective == "ALLGATHER":
        return [(collective, index) for index in reversed(range(legs))]
    if collective != "ALLREDUCE" or cluster.optimization == "baseline":
        return [(collective, index) for index in range(legs)]
    return [
        *[("REDUCESCATTER", index) for index in range(legs - 1)],
        (collective, legs - 1),
        *[("ALLGATHER", index) for index in reversed(range(legs - 1))],
    ]


def _phase(leg: Reach, collective: str, name: str, size: int) -> Phase:
    return Phase(leg, collective, name, size, algorithm_named(name).steps(leg, collective, size))


def _algorithm(leg: Reach, collective: str, asked: str | None) -> str:
    """The name of the algorithm that runs `collective` on the one dimension of `leg`."""
    if asked is not None:
        return _fitting(leg, collective, leg.dimension, asked)
    if collective == "ALLTOALL":
        return "direct"
    name = _DEFAULT[leg.cluster.dims[leg.dimension].kind]
    return "ring" if algorithm_named(name).power_of_two and not _is_power_of_two(leg.members) else name


def _whole(asked: tuple[str | None, ...]) -> tuple[int, str] | None:
    """(dimension, name) of the algorithm that takes the group whole, if one was asked for.

    Raises UsageError when another algorithm was asked for beside it.
    """
    wholes = [(index, name) for index, name in enumerate(asked) if name and algorithm_named(name).whole]
    if not wholes:
        return None
    first, whole = wholes[0]
    for index, name in enumerate(asked):
        if name not in (None, whole):
            raise UsageError(
                f"--algorithm {index}={name}: dimension {first} has {whole}, "
                "which runs on all dimensions at once; give one of the two"
            )
    return first, whole


def _fitting(leg: Reach, collective: str, index: int, asked: str) -> str:
    """The algorithm that was asked for on dimension `index`, or what stands in for it."""
    algorithm: Algorithm = algorithm_named(asked)
    one = "one-" if algorithm.whole else ""
    if collective == "ALLTOALL" and not algorithm.has_alltoall:
        return f"{one}direct"
    if algorithm.power_of_two and not _is_power_of_two(leg.members):
        where = "" if algorithm.whole else f" on dimension {index}"
        raise UsageError(
            f"--algorithm {index}={asked}: a group has {leg.members} members{where}, "
            f"and {asked} needs a power of two; {one}ring or {one}direct fits"
        )
    return asked


def _is_power_of_two(members: int) -> bool:
    return members & (members - 1) == 0


class DimensionLoad(NamedTuple):
    """`bytes` that the busiest member sends over a dimension, and how long its port is busy with them, ns."""

    bytes: int
    busy_ns: int


def phase_loads(phase: Phase) -> list[PortLoad]:
    """What the ports carry of a phase, one entry a dimension: all messages of its busiest member."""
    port_loads = algorithm_named(phase.algorithm).port_loads
    if port_loads is not None:
        return port_loads(phase.leg, phase.collective, phase.size)
    # The messages of the chain are all there are, on one dimension after another.
    return [PortLoad(index, size, 1) for index, size in chain_bytes(phase).items()]


def chain_bytes(phase: Phase) -> dict[int, int]:
    """Bytes by dimension of the chain of messages that the slowest rank of a phase waits for."""
    carried: dict[int, int] = {}
    for times, route, size in phase.steps.messages:
        carried[route.dimension] = carried.get(route.dimension, 0) + times * size
    return carried


def load_ns(cluster: Cluster, load: PortLoad) -> int:
    """floor(bytes / (bandwidth * links)): how long a port is busy with a load, ns."""
    numerator, denominator = decimal_ratio(cluster.dims[load.dimension].bandwidth)
    return load.size * denominator // (numerator * load.links)


def collective_loads(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int
) -> dict[int, DimensionLoad]:
    """What one collective puts on each dimension; takes and raises what `collective_ns` does.

    Every chunk and phase is floored for itself. On a tree the busiest member is an inner one.
    """
    found: dict[int, DimensionLoad] = {}
    if not size_bytes or not shape.crossings:
        return found
    if cluster.last_chunk_is_rest:
        chunks, size, rest = rest_bytes(cluster, shape, collective, size_bytes)
        parts = [(chunks - 1, size), (1, rest)]
    else:
        parts = [chunk_bytes(cluster, shape, collective, size_bytes)]
    for times, size in parts:
        if not times:
            continue
        for phase in phases(cluster, shape, collective, size):
            for load in phase_loads(phase):
                carried, busy_ns = found.get(load.dimension, (0, 0))
                found[load.dimension] = DimensionLoad(
                    carried + times * load.size, busy_ns + times * load_ns(cluster, load)
                )
    return found


def transfer_loads(cluster: Cluster, shape: TransferShape, size_bytes: int) -> dict[int, DimensionLoad]:
    """What one point-to-point transfer puts on each dimension in which its two ends differ.

    It moves at the least bandwidth among them, so that all its ports are busy equally long.
    """
    if not size_bytes or not shape:
        return {}
    slowest = min((index for index, _ in shape), key=lambda index: cluster.dims[index].bandwidth)
    busy_ns = load_ns(cluster, PortLoad(slowest, size_bytes, 1))
    return {index: DimensionLoad(size_bytes, busy_ns) for index, _ in shape}
