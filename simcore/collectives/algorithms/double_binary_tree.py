"""Double binary tree: up one tree and down again (ASTRA-sim 2.0, analytical backend)."""

from __future__ import annotations

from simcore.collectives.algorithm import Algorithm, Messages, PortLoad, Reductions, Steps
from simcore.collectives.algorithm_scope import AlgorithmScope


def tree_steps(scope: AlgorithmScope, collective: str, size: int) -> Steps:
    """Returns the chain of one tree of N = 2^k members with S bytes, until its leaves have finished.

    There are k edges up and k down. Every edge carries all S bytes, as an all-reduce, whatever the
    collective is. A leaf pays the endpoint delay and sends up; an inner member waits for two children, each
    costing endpoint delay and reduction, and sends up; what comes down costs an inner member a reduction
    more.
    """
    up = _edges(scope, size)
    return Steps([*up, *up[::-1]], [Reductions(2 * len(up) - 1, size)])


def first_tree_steps(scope: AlgorithmScope, collective: str, size: int) -> Steps:
    """Returns the same until the first member has finished: the root, when it has sent down."""
    up = _edges(scope, size)
    return Steps(up, [Reductions(len(up), size)])


def tree_loads(scope: AlgorithmScope, collective: str, size: int) -> list[PortLoad]:
    """Returns what an inner member's port carries each way: one message up and two down, or the reverse."""
    messages = 1 if scope.members == 2 else 3
    return [PortLoad(scope.dimension, messages * size, 1)]


def level_ns(scope: AlgorithmScope, size: int) -> list[int]:
    """Returns the ns of a message on the edges from each height of the tree to the one above, leaves
    first.
    """
    return [scope.message_ns(edge.route, size) for edge in _edges(scope, size)]


def _edges(scope: AlgorithmScope, size: int) -> list[Messages]:
    """Returns the edges of a walk from a leaf to the root: the tree is in order, they are 1, 2, 4 ...
    apart.
    """
    levels = scope.members.bit_length() - 1
    return [Messages(1, scope.farthest_apart(1 << height), size) for height in range(levels)]


ALGORITHM = Algorithm(
    tree_steps,
    first_steps=first_tree_steps,
    port_loads=tree_loads,
    power_of_two=True,
    has_alltoall=False,
    is_tree=True,
)
