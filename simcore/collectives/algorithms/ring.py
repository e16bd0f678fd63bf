"""Ring: packets walk from neighbour to neighbour (ASTRA-sim 2.0, analytical backend)."""

from __future__ import annotations

from simcore.collectives.algorithm import Algorithm, Messages, Reductions, Steps
from simcore.collectives.algorithm_scope import AlgorithmScope


def ring_steps(scope: AlgorithmScope, collective: str, size: int) -> Steps:
    """Returns the chain of the ring on N members with S bytes: messages of floor(S / N), of S in an
    all-gather.

    Reduce-scatter and all-gather take N-1 steps, an all-reduce both after each other. The
    all-to-all passes every packet on until it is there: N(N-1)/2 steps.
    """
    members = scope.members
    steps = members - 1
    if collective == "ALLREDUCE":
        steps *= 2
    elif collective == "ALLTOALL":
        steps = members * (members - 1) // 2
    packet = size if collective == "ALLGATHER" else size // members
    messages = [Messages(times, route, packet) for route, times in scope.slowest_walk(steps)]
    reduces = collective in ("ALLREDUCE", "REDUCESCATTER")
    return Steps(messages, [Reductions(members - 1, packet)] if reduces else [])


ALGORITHM = Algorithm(ring_steps)
