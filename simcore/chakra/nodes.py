"""The nodes of a rank by ascending id, which waits for which, and the kind of each.

A file's columns are sorted once; both ways of running a set start from this.
"""

from __future__ import annotations

from array import array
from heapq import heappop, heappush

from simcore.chakra.attributes import INTEGERS, Attributes, Value, parse
from simcore.chakra.wire import Columns, TextTable
from simcore.records import NamedTuple, Struct, replace

INVALID, METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLL = range(8)
TYPE_WORDS = ("INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL")
COLLECTIVES = {0: "ALLREDUCE", 2: "ALLGATHER", 6: "ALLTOALL", 7: "REDUCESCATTER"}
BROADCAST = 5
COLLECTIVE_WORDS = (
    "ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER",
    "REDUCE_SCATTER_BLOCK", "BARRIER",
)  # fmt: skip


class Problem(NamedTuple):
    """An error in a rank's nodes. node: its id. at: the byte of the file."""

    code: str
    node: int
    at: int
    message: str


class Nodes(Struct):
    """The nodes of a rank as columns by ascending id; nodes are referred to by index."""

    columns: Columns
    id: array[int]
    row: array[int]
    """Index into the file's columns."""
    data: list[tuple[int, ...]]
    """The nodes that a node waits for by data dependencies."""
    ctrl: list[tuple[int, ...]]
    """The nodes that a node waits for by control dependencies."""
    children: array[int]
    """The nodes that wait for a node, those of all nodes one after another."""
    children_to: array[int]
    """Where the children of a node end."""
    problems: list[Problem]
    """Duplicate ids, and dependencies on missing nodes."""

    def __len__(self) -> int:
        return len(self.id)

    def children_of(self, index: int) -> array[int]:
        """Returns the indices of the nodes that wait for a node, ascending."""
        return self.children[self.children_to[index - 1] if index else 0 : self.children_to[index]]


def topological_order(nodes: Nodes) -> list[int]:
    """Returns the indices in an order in which each follows what it waits for, the lowest free id first.

    Nodes in a circle are left out.
    """
    waits = [len({*data, *ctrl}) for data, ctrl in zip(nodes.data, nodes.ctrl, strict=True)]
    if all(not count or max((*data, *ctrl)) < index for index, (count, data, ctrl)
           in enumerate(zip(waits, nodes.data, nodes.ctrl, strict=True))):  # fmt: skip
        return list(range(len(waits)))
    free = [index for index, count in enumerate(waits) if not count]
    in_order = []
    to, children = nodes.children_to, nodes.children
    while free:
        node = heappop(free)
        in_order.append(node)
        for child in children[to[node - 1] if node else 0 : to[node]]:
            waits[child] -= 1
            if not waits[child]:
                heappush(free, child)
    return in_order


def sort_nodes(columns: Columns) -> Nodes:
    """Returns the nodes of a file by id; several with one id have the last one's content and the dependencies
    of all.
    """
    ids = columns.id
    count = len(ids)
    problems: list[Problem] = []
    rows: list[int]
    if all(ids[at] < ids[at + 1] for at in range(count - 1)):
        rows = list(range(count))
    else:
        rows = sorted(range(count), key=ids.__getitem__)
    index_of: dict[int, int] = {}
    parts: list[list[int]] = []
    kept_rows: list[int] = []
    for row in rows:
        index = index_of.get(ids[row])
        if index is None:
            index_of[ids[row]] = len(kept_rows)
            kept_rows.append(row)
            parts.append([row])
        else:
            message = f"node {ids[row]} is in the file twice (first at byte {columns.at[kept_rows[index]]})"
            problems.append(Problem("node-twice", ids[row], columns.at[row], message))
            kept_rows[index] = row
            parts[index].append(row)
    data: list[tuple[int, ...]] = []
    ctrl: list[tuple[int, ...]] = []
    waits: list[list[int]] = []
    for rows_of in parts:
        waits_of: list[tuple[int, ...]] = []
        for flat, to, word in (
            (columns.data, columns.data_to, "data"),
            (columns.ctrl, columns.ctrl_to, "ctrl"),
        ):
            indices: list[int] = []
            for row in rows_of:
                for parent in flat[to[row - 1] if row else 0 : to[row]]:
                    node = index_of.get(parent)
                    if node is None:
                        message = (
                            f"node {ids[row]} waits for node {parent} ({word}_deps), which is not in the file"
                        )
                        problems.append(Problem("node-missing", ids[row], columns.at[row], message))
                    else:
                        indices.append(node)
            waits_of.append(tuple(indices))
        data.append(waits_of[0])
        ctrl.append(waits_of[1])
        waits.append([*waits_of[0], *waits_of[1]])
    counts = [0] * len(kept_rows)
    for parents in waits:
        unique = set(parents)
        for parent in unique:
            counts[parent] += 1
    to = array("i", counts)
    total = 0
    for node, child_count in enumerate(counts):
        counts[node] = total
        total += child_count
        to[node] = total
    children = array("i", bytes(4 * total))
    for node, parents in enumerate(waits):
        for parent in set(parents):
            children[counts[parent]] = node
            counts[parent] += 1
    return Nodes(
        columns,
        array("Q", (ids[row] for row in kept_rows)),
        array("i", kept_rows),
        data,
        ctrl,
        children,
        to,
        problems,
    )


def sort_nodes_once(columns: Columns, by_shape: dict[int, Nodes]) -> Nodes:
    """Returns `sort_nodes`, computed once for files of one shape, which `by_shape` caches."""
    same = by_shape.get(columns.shape)
    if same is None or same.problems:
        same = sort_nodes(columns)
        if columns.shape >= 0:
            by_shape[columns.shape] = same
    return same if same.columns is columns else replace(same, columns=columns)


class Kinds:
    """The attributes of nodes, each set parsed once."""

    def __init__(self, table: TextTable) -> None:
        self._table = table
        self._blobs: list[tuple[bytes, ...]] = []
        self._names: list[str] = []
        self._parsed: dict[int, Attributes] = {}

    def attributes(self, set_id: int) -> Attributes:
        """Returns a set of attributes of the table, by name."""
        attributes = self._parsed.get(set_id)
        if attributes is None:
            if set_id >= len(self._blobs):
                self._blobs = list(self._table.attributes)
            attributes = self._parsed[set_id] = parse(self._blobs[set_id])
        return attributes

    def name(self, name_id: int) -> str:
        """Returns a name of the table."""
        if name_id >= len(self._names):
            self._names = [raw.decode("utf-8", "replace") for raw in self._table.names]
        return self._names[name_id]


def integer(value: Value | None) -> int | None:
    """Returns an attribute of any integer kind, or bool, as an int; None for another kind or none."""
    return int(value.value) if value is not None and value.kind in INTEGERS else None
