"""Halving-doubling: partners at distances 1, 2, 4 ... (ASTRA-sim 2.0, analytical backend)."""

from __future__ import annotations

from simcore.collectives.algorithm import Algorithm, Messages, Reductions, Steps
from simcore.collectives.algorithm_scope import AlgorithmScope


def halving_doubling_steps(scope: AlgorithmScope, collective: str, size: int) -> Steps:
    """Returns the chain of halving-doubling on N = 2^k members with S bytes.

    Reduce-scatter: k rounds, the j-th with floor(S / 2^j) bytes at distance 2^(j-1).
    All-gather: k rounds, from S bytes at distance N/2 doubling to distance 1. All-reduce:
    the rounds of a reduce-scatter, and back. There are k-1 reductions, the j-th of
    floor(S / 2^(j+1)) bytes.
    """
    members = scope.members
    rounds = members.bit_length() - 1
    if collective == "ALLGATHER":
        return Steps([_round(scope, members >> (j + 1), size << j) for j in range(rounds)], [])
    messages = [_round(scope, 1 << (j - 1), size >> j) for j in range(1, rounds + 1)]
    reductions = [Reductions(1, size >> j) for j in range(2, rounds + 1)]
    if collective == "ALLREDUCE":
        messages += messages[::-1]
    return Steps(messages, reductions)


def _round(scope: AlgorithmScope, distance: int, size: int) -> Messages:
    return Messages(1, scope.farthest_partners(distance), size)


ALGORITHM = Algorithm(halving_doubling_steps, power_of_two=True, has_alltoall=False)
