"""What the nodes of execution traces are counted under."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Mapping

from simcore.chakra.nodes import COLL, COLLECTIVE_WORDS, COMP, RECV, SEND, TYPE_WORDS, integer
from simcore.executing.executed import Executed, group_name
from simcore.trace.spans import NONE, Column


def columns_of(executed: Executed) -> Mapping[str, Callable[[], Column]]:
    """Returns the columns of a set that has run: `name`, a pattern; `pattern`, with the kind of node; `group`
    of collectives, with bytes; `stream`, as the lowest rank of a class has it.
    """

    def pattern(rank: int, place: int) -> tuple[str, str]:
        return pattern_of(node_name(executed, rank, place)), node_kind(executed, rank, place)

    def group(rank: int, place: int) -> tuple[str, int] | None:
        if executed.meetings[rank][place] == NONE:
            return None
        attributes = executed.attributes(rank, place)
        return group_name(attributes), integer(attributes.get("comm_size")) or 0

    return {
        "name": lambda: _column(executed, lambda rank, place: pattern(rank, place)[0]),
        "pattern": lambda: _column(executed, pattern),
        "group": lambda: _column(executed, group),
        "stream": lambda: _column(executed, lambda rank, place: node_stream(executed, rank, place)),
    }


def _column(executed: Executed, label_of: Callable[[int, int], Hashable]) -> Column:
    """What `label_of` says of each node that has run; None for those that are not counted."""
    number_of: dict[Hashable, int] = {}
    # What is said of a node is the same for all with its type, name and attributes: millions have hundreds.
    known: dict[tuple[int, int, int, bool], int] = {}
    of = []
    for rank in executed.units.first:
        nodes, start, end = executed.nodes[rank], executed.start[rank], executed.end[rank]
        columns, meetings, numbers = nodes.columns, executed.meetings[rank], array("i", (NONE,)) * len(end)
        for place, row in enumerate(nodes.row):
            if start[place] < 0 or end[place] < 0:
                continue
            alike = columns.type[row], columns.name[row], columns.attributes[row], meetings[place] < 0
            if alike not in known:
                label = label_of(rank, place)
                known[alike] = NONE if label is None else number_of.setdefault(label, len(number_of))
            numbers[place] = known[alike]
        of.append(numbers)
    return Column([*number_of], of)


def node_stream(executed: Executed, rank: int, place: int) -> str:
    """Returns the lane of a node: compute, cpu, memory, messages, or that of its group."""
    nodes = executed.nodes[rank]
    kind = nodes.columns.type[nodes.row[place]]
    if kind == COMP or kind in (0, 1):
        is_cpu = executed.attributes(rank, place).get("is_cpu_op")
        return "cpu" if is_cpu is not None and is_cpu.value else "compute"
    if kind == COLL:
        return group_word(executed, rank, place)
    return "messages" if kind in (SEND, RECV) else "memory"


def group_word(executed: Executed, rank: int, place: int) -> str:
    """Returns `all ranks`, `group 3`, `alone`: whose collective a node is."""
    group = executed.group_of(rank, place)
    if group is None:
        return "alone"
    return f"group {group[0]}" if group[0] else "all ranks"


def node_name(executed: Executed, rank: int, place: int) -> str:
    """Returns the name of a node, raw text of the file; its kind and id where it has none."""
    nodes = executed.nodes[rank]
    name = executed.kinds.name(nodes.columns.name[nodes.row[place]])
    return name or f"{node_kind(executed, rank, place)} {nodes.id[place]}"


def node_kind(executed: Executed, rank: int, place: int) -> str:
    """Returns what a node is in a word: `ALL_REDUCE`, `COMP`, `COMM_SEND`."""
    nodes = executed.nodes[rank]
    kind = nodes.columns.type[nodes.row[place]]
    if kind == COLL:
        number = integer(executed.attributes(rank, place).get("comm_type"))
        if number is not None and 0 <= number < len(COLLECTIVE_WORDS):
            return COLLECTIVE_WORDS[number]
    return TYPE_WORDS[min(kind, 7)]


def pattern_of(name: str) -> str:
    """A name with `#` for each number in it: `layer.12.fwd` and `layer.13.fwd` are one pattern."""
    if not any(character.isdigit() for character in name):
        return name
    pattern: list[str] = []
    for character in name:
        if character.isascii() and character.isdigit():
            if not pattern or pattern[-1] != "#":
                pattern.append("#")
        else:
            pattern.append(character)
    return "".join(pattern)
