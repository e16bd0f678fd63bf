"""Finds the ranks of a set of execution traces that run equally, so that one of each class is run for all.

Ranks are equal whose nodes are equal but for the names of groups, partners and tags, whose groups cost the
same and have equal members, and whose messages go between equal ranks. Classes are split until that holds for
all (the coarsest stable partition). By wltui's rules nothing that happens at an instant depends on the number
of a rank, so equal ranks have equal times: a rank of a class waits for one member of each class of its group
instead of for all, and for the sender of its class.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence

from simcore.chakra.nodes import COLL, RECV, SEND, Kinds, Nodes, integer
from simcore.cluster import Cluster, GroupShape, group_shape, transfer_shape
from simcore.executing.execution_result import Units, group_name, message_key
from simcore.records import NamedTuple

NEVER = -1
_OWN = ("pg_name", "comm_src", "comm_dst", "comm_tag")


class _Content(NamedTuple):
    """What ranks with equal nodes have in common.

    slots: for each group of a rank, in the order in which its nodes name them, the attributes (an index into
    the rank's own) that name it. messages: (index of the node, attributes << 1 | whether it receives).
    """

    slots: tuple[int, ...]
    messages: tuple[tuple[int, int], ...]


def find_units(
    nodes: Sequence[Nodes],
    kinds: Kinds,
    cluster: Cluster,
    extra_keys: Mapping[int, Hashable],
    members: Callable[[str, Sequence[int]], tuple[int, ...]],
    start: Sequence[array[int]] | None = None,
) -> Units | None:
    """Returns the classes of ranks.

    members: returns the ranks of a group by its name and those that name it. extra_keys: by rank a further
    key in which ranks of one class must agree. start: when each node starts, where messages match in the
    order in which they begin.

    None where no two ranks are equal, and where the files do not fit together: such a set is run rank by
    rank, for its errors.
    """
    world = len(nodes)
    if world < 2 or all(node.columns.shape == NEVER for node in nodes):
        return None
    contents, content_of, own = _contents(nodes, kinds, extra_keys, start)
    if len(contents) == world:
        return None
    colour = [content_of[rank] for rank in range(world)]
    names = [
        [group_name(kinds.attributes(own[rank][index])) for index in contents[colour[rank]].slots]
        for rank in range(world)
    ]
    of_name: dict[str, dict[int, int]] = {}
    for rank, mine in enumerate(names):
        for slot, name in enumerate(mine):
            of_name.setdefault(name, {})[rank] = slot
    group_number = {name: ident for ident, name in enumerate(of_name)}
    shapes: dict[GroupShape | int, int] = {}
    shape_ids: list[int] = []
    slots: list[list[tuple[int, int]]] = []
    for name, there in of_name.items():
        ranks = members(name, sorted(there))
        if set(ranks) != set(there):
            return None
        shape = group_shape(cluster, sorted(ranks)) if len(ranks) > 1 else 1
        shape_ids.append(shapes.setdefault(shape, len(shapes)))
        slots.append(list(there.items()))
    groups_of = [[group_number[name] for name in mine] for mine in names]
    paired = _partners(kinds, cluster, contents, colour, own)
    if paired is None:
        return None
    static, partners = paired
    colour = _assign_ids(
        [(colour_before, there) for colour_before, there in zip(colour, static, strict=True)]
    )
    count = 0
    while True:
        group_colour = _assign_ids([
            (shape, tuple(sorted([(colour[rank], slot) for rank, slot in there])))
            for shape, there in zip(shape_ids, slots, strict=True)
        ])  # fmt: skip
        colours = len(set(colour))
        if colours == count:
            break
        count = colours
        colour = _assign_ids([
            (own, tuple([group_colour[ident] for ident in groups]), tuple([colour[who] for who in whom]))
            for own, groups, whom in zip(colour, groups_of, partners, strict=True)
        ])  # fmt: skip
    if count == world:
        return None
    first: dict[int, int] = {}
    for rank, ident in enumerate(colour):
        first.setdefault(ident, rank)
    for rank in first.values():
        group_colours = [group_colour[ident] for ident in groups_of[rank]]
        if len(set(group_colours)) < len(group_colours):
            return None  # two equal groups of a rank would become one
    unit = {of_colour: ident for ident, of_colour in enumerate(first)}
    return Units(
        tuple(first.values()), array("i", (unit[of_colour] for of_colour in colour)),
        dict(zip(of_name, group_colour, strict=True)),
    )  # fmt: skip


def _assign_ids(keys: Sequence[Hashable]) -> list[int]:
    ids: dict[Hashable, int] = {}
    return [ids.setdefault(key, len(ids)) for key in keys]


def _contents(
    nodes: Sequence[Nodes],
    kinds: Kinds,
    extra_keys: Mapping[int, Hashable],
    start: Sequence[array[int]] | None,
) -> tuple[list[_Content], list[int], list[tuple[int, ...]]]:
    """Returns (contents of each class of ranks with equal nodes, the class of each rank, its different
    attributes).
    """
    set_ids: dict[int, int] = {}
    known_sets: dict[tuple[tuple[str, object], ...], int] = {}
    classes: dict[Hashable, int] = {}
    contents: list[_Content] = []
    content_of: list[int] = []
    own: list[tuple[int, ...]] = []
    for rank, node in enumerate(nodes):
        index: dict[int, int] = {}
        sets = node.columns.attributes
        pattern = array("i", [index.setdefault(ident, len(index)) for ident in sets])
        mine = tuple(index)
        for ident in mine:
            if ident not in set_ids:
                values = kinds.attributes(ident)
                rest = tuple((name, repr(value)) for name, value in values.items() if name not in _OWN)
                set_ids[ident] = known_sets.setdefault(rest, len(known_sets))
        own.append(mine)
        key: Hashable
        if node.columns.shape == NEVER or node.problems:
            key = ("alone", rank)
        else:
            names: dict[str, int] = {}
            which = tuple([names.setdefault(group_name(kinds.attributes(ident)), len(names))
                           for ident in mine])  # fmt: skip
            key = (node.columns.shape, pattern.tobytes(), tuple([set_ids[ident] for ident in mine]), which,
                   extra_keys.get(rank))  # fmt: skip
        ident = classes.get(key, NEVER)
        if ident == NEVER:
            ident = classes[key] = len(contents)
            contents.append(_make_content(node, kinds, pattern, mine, None if start is None else start[rank]))
        content_of.append(ident)
    return contents, content_of, own


def _make_content(
    nodes: Nodes, kinds: Kinds, pattern: array[int], mine: tuple[int, ...], start: array[int] | None
) -> _Content:
    slots: dict[str, int] = {}
    messages = []
    types = nodes.columns.type
    for index, row in enumerate(nodes.row):
        kind = types[row]
        if kind == COLL:
            values = kinds.attributes(mine[pattern[row]])
            if integer(values.get("comm_type")) is not None:
                slots.setdefault(group_name(values), pattern[row])
        elif kind in (SEND, RECV):
            messages.append((index, pattern[row] << 1 | (kind == RECV)))
    if start is not None:
        messages.sort(key=lambda message: start[message[0]])
    return _Content(tuple(slots.values()), tuple(messages))


def _partners(
    kinds: Kinds,
    cluster: Cluster,
    contents: Sequence[_Content],
    content_of: Sequence[int],
    own: Sequence[tuple[int, ...]],
) -> tuple[list[Hashable], list[list[int]]] | None:
    """Returns (what is fixed of a rank's messages: their partners' order, indices and hops; for each rank its
    partners, each once). None for a message without another end.
    """
    waiting: dict[tuple[int, int, int, int], tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}
    keys: dict[tuple[int, int, bool], tuple[int, int, int, int] | None] = {}
    for rank, content_id in enumerate(content_of):
        mine = own[rank]
        for order, (_, code) in enumerate(contents[content_id].messages):
            query = (rank, mine[code >> 1], bool(code & 1))
            if query in keys:
                key = keys[query]
            else:
                key = keys[query] = message_key(rank, kinds.attributes(query[1]), query[2])
            if key is None or not 0 <= key[2] < len(content_of) or not 0 <= key[1] < len(content_of):
                return None
            lists = waiting.setdefault(key, ([], []))
            lists[code & 1].append((rank, order))
    ends: list[list[tuple[int, int]]] = [
        [(NEVER, NEVER)] * len(contents[content_id].messages) for content_id in content_of
    ]
    for sends, receives in waiting.values():
        if len(sends) != len(receives):
            return None
        for here, there in zip(sends, receives, strict=True):
            ends[here[0]][here[1]] = there
            ends[there[0]][there[1]] = here
    static: list[Hashable] = []
    partners: list[list[int]] = []
    for rank, mine_ends in enumerate(ends):
        whom: dict[int, int] = {}
        turns = [whom.setdefault(other, len(whom)) for other, _ in mine_ends]
        indices = [contents[content_of[other]].messages[order][0] for other, order in mine_ends]
        hops = tuple(transfer_shape(cluster, rank, other) for other in whom)
        static.append((tuple(turns), tuple(indices), hops))
        partners.append(list(whom))
    return static, partners
