"""The columns of labels that nodes of execution traces are counted under."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Hashable, Mapping

from simcore.chakra.nodes import COLL, COLLECTIVE_WORDS, COMP, RECV, SEND, TYPE_WORDS, integer
from simcore.executing.execution_result import ExecutionResult, group_name
from simcore.trace.spans import NONE, Column

# A number and the sign before it that stands for one.
_DIGIT_RUN = re.compile(r"#?[0-9]+")


def columns_of(executed: ExecutionResult) -> Mapping[str, Callable[[], Column]]:
    """Returns the columns of an executed set: `name`, a pattern; `pattern`, with the kind of node; `group` of
    collectives, with bytes; `stream`, as the lowest rank of a class has it.
    """

    def pattern(rank: int, index: int) -> tuple[str, str]:
        return pattern_of(node_name(executed, rank, index)), node_kind(executed, rank, index)

    def group(rank: int, index: int) -> tuple[str, int] | None:
        if executed.meetings[rank][index] == NONE:
            return None
        attributes = executed.attributes(rank, index)
        return group_name(attributes), integer(attributes.get("comm_size")) or 0

    return {
        "name": lambda: _column(executed, lambda rank, index: pattern(rank, index)[0]),
        "pattern": lambda: _column(executed, pattern),
        "group": lambda: _column(executed, group),
        "stream": lambda: _column(executed, lambda rank, index: node_stream(executed, rank, index)),
    }


def _column(executed: ExecutionResult, label_of: Callable[[int, int], Hashable]) -> Column:
    """Returns the label of each node that has run; `label_of` returns None for nodes that are not counted."""
    number_of: dict[Hashable, int] = {}
    # The label is the same for all nodes with one type, name and attributes: millions of nodes have hundreds.
    cache: dict[tuple[int, int, int, bool], int] = {}
    of = []
    for rank in executed.units.first:
        nodes, start, end = executed.nodes[rank], executed.start[rank], executed.end[rank]
        columns, meetings, label_ids = nodes.columns, executed.meetings[rank], array("i", (NONE,)) * len(end)
        for index, row in enumerate(nodes.row):
            if start[index] < 0 or end[index] < 0:
                continue
            key = columns.type[row], columns.name[row], columns.attributes[row], meetings[index] < 0
            if key not in cache:
                label = label_of(rank, index)
                cache[key] = NONE if label is None else number_of.setdefault(label, len(number_of))
            label_ids[index] = cache[key]
        of.append(label_ids)
    return Column([*number_of], of)


def node_stream(executed: ExecutionResult, rank: int, index: int) -> str:
    """Returns the lane of a node: compute, cpu, memory, messages, or that of its group."""
    nodes = executed.nodes[rank]
    kind = nodes.columns.type[nodes.row[index]]
    if kind == COMP or kind in (0, 1):
        is_cpu = executed.attributes(rank, index).get("is_cpu_op")
        return "cpu" if is_cpu is not None and is_cpu.value else "compute"
    if kind == COLL:
        return group_word(executed, rank, index)
    return "messages" if kind in (SEND, RECV) else "memory"


def group_word(executed: ExecutionResult, rank: int, index: int) -> str:
    """Returns the group of a collective node in words: `all ranks`, `group 3`, `alone`."""
    group = executed.group_of(rank, index)
    if group is None:
        return "alone"
    return f"group {group[0]}" if group[0] else "all ranks"


def node_name(executed: ExecutionResult, rank: int, index: int) -> str:
    """Returns the name of a node, raw text of the file; its kind and id where it has none."""
    nodes = executed.nodes[rank]
    name = executed.kinds.name(nodes.columns.name[nodes.row[index]])
    return name or f"{node_kind(executed, rank, index)} {nodes.id[index]}"


def node_kind(executed: ExecutionResult, rank: int, index: int) -> str:
    """Returns the kind of a node in a word: `ALL_REDUCE`, `COMP`, `COMM_SEND`."""
    nodes = executed.nodes[rank]
    kind = nodes.columns.type[nodes.row[index]]
    if kind == COLL:
        comm_type = integer(executed.attributes(rank, index).get("comm_type"))
        if comm_type is not None and 0 <= comm_type < len(COLLECTIVE_WORDS):
            return COLLECTIVE_WORDS[comm_type]
    return TYPE_WORDS[min(kind, 7)]


def pattern_of(name: str) -> str:
    """Returns a name with `#` for each number in it: `layer.12.fwd` and `layer.13.fwd` are one pattern."""
    return _DIGIT_RUN.sub("#", name)
