"""The critical path of execution traces in legs and in sums."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simcore.chakra.nodes import COMP, RECV, SEND, integer
from simcore.executing.accounts import ACCOUNTS, phase_of_node
from simcore.executing.ran import NodeSegment, RanTraces, pattern_of
from simcore.run.findings import Leg
from simcore.run.legs import Key, stretches

# A micro-batch in the name of a node: STAGE's `mb0.transformer.1.mha.q@1_COMP`, wltui's `mlp_norm fwd mb0`.
_MICROBATCH = re.compile(r"(?:^|[ .])mb(\d{1,9})(?:$|[ .])")
# What SimAI's files write for compute that is not modelled, ns; others write no duration, which is 0 or 1.
_OF_SIMAI = 1000


def legs(results: RanTraces) -> list[Leg]:
    """The legs of the critical path, in the order of time: they cover 0..step time.

    what: `forward`, `backward`, `optimizer` or `pp` of a micro-batch where the names of nodes tell one, as on
    simulated runs; else the name of the nodes with `#` for each number, raw text of the file.
    """
    path = results.critical_path
    found: list[Leg] = []
    for stretch in stretches(
        (key := _key(results, part), _is_placeholder(results, part, key)) for part in path
    ):
        rank, what, microbatch = stretch.key
        first, last = path[stretch.first], path[stretch.last - 1]
        found.append(
            Leg(
                stretch.first,
                stretch.last,
                first.start,
                last.end,
                rank,
                rank,
                None,
                what,
                microbatch,
                first.reason,
            )
        )
    return found


def _key(results: RanTraces, part: NodeSegment) -> Key:
    name = results.name_of(part.rank, part.place)
    told = _MICROBATCH.search(name)
    kind = results.type_of(part.rank, part.place)
    if told is None:
        return part.rank, pattern_of(name), -1
    if kind in (SEND, RECV):
        return part.rank, "pp", int(told[1])
    if part.kind == "host":
        return part.rank, part.kind, int(told[1])
    phase = phase_of_node(results.executed, part.rank, part.place)
    return part.rank, ACCOUNTS[phase].removeprefix("compute "), int(told[1])


def _is_placeholder(results: RanTraces, part: NodeSegment, key: Key) -> bool:
    """Whether a segment is compute outside of micro-batches of which the traces know nothing."""
    executed, rank, place = results.executed, part.rank, part.place
    if key[2] >= 0 or results.type_of(rank, place) != COMP:
        return False
    ns = executed.end[rank][place] - executed.start[rank][place]
    return ns <= 1 or (ns == _OF_SIMAI and integer(executed.attributes(rank, place).get("wltui_ns")) == ns)


def path_parts(results: RanTraces, by: str) -> Iterator[tuple[str, int]]:
    """(part, ns) of each segment of the critical path, in the order of time.

    by: `kind` (as accounts say it), `op` (nodes by name, `#` for each number), `group` or `rank`.
    """
    for node_segment in results.critical_path:
        if by == "kind":
            part = node_segment.kind
        elif by == "rank":
            part = f"rank {node_segment.rank}"
        elif by == "group":
            part = results.stream_of(node_segment.rank, node_segment.place)
        else:
            part = pattern_of(results.name_of(node_segment.rank, node_segment.place))
        yield part, node_segment.end - node_segment.start
