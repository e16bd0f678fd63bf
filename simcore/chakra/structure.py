"""What of a set of execution traces does not hold together: by wltui's rules it is not run then."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.chakra.nodes import Nodes, topological
from simcore.chakra.opening import ExecutionSet
from simcore.diagnostics import Diagnostic
from simcore.records import NamedTuple

_OF_A_FILE = 8
_LISTED = 8


class NodeOrder(NamedTuple):
    """The nodes of each rank by id, the order of each in which nodes are behind what they wait for, and
    errors.
    """

    nodes: list[Nodes]
    orders: list[list[int]]
    errors: list[Diagnostic]


def structure_of(traces: ExecutionSet) -> NodeOrder:
    """The nodes of a set, and an error for what is cut, damaged, missing, twice or in a circle."""
    errors = traces.damage()
    if len(traces.missing):
        message = f"rank {traces.missing.text()}: there is no such file"
        errors.append(Diagnostic("error", "ranks-missing", message, traces.path))
    nodes = traces.ordered()
    orders: list[list[int]] = []
    by_shape: dict[int, list[int]] = {}
    for file, file_nodes in zip(traces.files, nodes, strict=True):
        errors += [
            Diagnostic("error", problem.code, f"byte {problem.at}: {problem.message}", file.path)
            for problem in file_nodes.problems[:_OF_A_FILE]
        ]
        if not len(file_nodes):
            errors.append(Diagnostic("error", "no-nodes", "found no node, expected at least one", file.path))
        shape = file_nodes.columns.shape
        same = by_shape.get(shape)
        if same is None:
            same = topological(file_nodes)
            if shape >= 0 and not file_nodes.problems:
                by_shape[shape] = same
        orders.append(same)
        circle = _circle(file_nodes, orders[-1])
        if circle:
            names = ", ".join(str(file_nodes.id[place]) for place in circle[:_LISTED])
            names += f" and {len(circle) - _LISTED} more" if len(circle) > _LISTED else ""
            at = file_nodes.columns.at[file_nodes.row[circle[0]]]
            verb = "waits for itself" if len(circle) == 1 else "wait for each other in a circle"
            noun = "node" if len(circle) == 1 else "nodes"
            errors.append(Diagnostic("error", "node-cycle", f"byte {at}: {noun} {names} {verb}", file.path))
    return NodeOrder(nodes, orders, errors)


def _circle(nodes: Nodes, there: Sequence[int]) -> list[int]:
    """The places of a circle of nodes that wait for each other, [] where all are `there`, in some order."""
    if len(there) == len(nodes):
        return []
    left = set(range(len(nodes))).difference(there)
    place = min(left)
    seen: dict[int, int] = {}
    walk: list[int] = []
    while place not in seen:
        seen[place] = len(walk)
        walk.append(place)
        place = next(parent for parent in (*nodes.data[place], *nodes.ctrl[place]) if parent in left)
    return walk[seen[place] :]
