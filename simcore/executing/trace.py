"""An executed set as a trace: a track is a class of ranks with equal times, a span a node.

Where several nodes of a rank run at once, GPU compute counts first, then communication in flight,
then CPU nodes, then waiting: in a collective until its last member has come (`wait`), for a message until it
is sent (`bubble`). A collective that overlaps compute according to the export of a simulated step
(`wltui_beside`) counts behind all that holds the rank: blocking collectives and receives. By wltui's rules
only the nodes that name a send as parent wait for it: it counts where nothing else does. While it waits for
its channel, the send before it counts. A send without children whose time an export states (`wltui_ns`) does
not count: a simulated rank ends with what its compute waits for.

`idle` is the time in which no node of the rank has begun and not ended, what the export of a measured run
states as idle, and what follows the rank's end.

Compute is forward unless the node's name means backward or optimizer (`grad`, `bwd`, `backward`; `optim`,
`adam`), or is a gradient as STAGE names its nodes: `mb0.transformer.1.mha.dwqkv@1_COMP`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping

from simcore.chakra.nodes import COLL, COMP, RECV, SEND, integer
from simcore.executing.execution_result import ExecutionResult
from simcore.executing.graph import ExecutionGraph
from simcore.names import GROUP_KINDS
from simcore.records import NamedTuple
from simcore.trace.accounts import account_names
from simcore.trace.spans import (
    COMMUNICATES,
    COMPUTES,
    COPIES,
    HOSTS,
    NEVER,
    NONE,
    OVERLAPS,
    SENDS,
    UNDER,
    Column,
    Spans,
    Trace,
    Waits,
)
from simcore.trace.trace_graph import TraceGraph, first_rows

COMPUTE = ("forward", "backward", "optimizer")
NAMES = account_names(
    COMPUTE, GROUP_KINDS, ("wait", "bubble", "host", "idle"),
    {f"compute {name}": name for name in COMPUTE}
    | {"exposed expert": "exposed ep"},
)  # fmt: skip
ACCOUNTS, FIRST_EXPOSED, WAIT = NAMES.all, NAMES.first_exposed, NAMES.first_other
BUBBLE, HOST, IDLE = WAIT + 1, WAIT + 2, WAIT + 3
PP, COMM = ACCOUNTS.index("exposed pp"), ACCOUNTS.index("exposed comm")
# The kinds of groups in exported traces, and their accounts.
_OF_KIND = {"tp": "tp", "dp": "dp", "ep": "expert", "dp_ep": "expert dp", "pp": "pp"}
# The words of exported traces of measured runs for CPU nodes: a host gap, a copy of memory.
_OF_CPU = {"idle": IDLE, "copy": COMM}
# A gradient by STAGE's names, d before the name of the tensor: `in_emb.dw@0_COMP`, in its older ones
# `stack_1_mha_d_k@1_COMP`.
_OF_STAGE = re.compile(r"(?:^|[._])d(?:_\w+|[wxyqkv]\w*|attn|norm|res)\d*@\d+_")


def account_of(executed: ExecutionResult, rank: int, index: int) -> int:
    """Returns the account of a node's own time."""
    nodes = executed.nodes[rank]
    row = nodes.row[index]
    return _cached_account(
        executed, nodes.columns.type[row], nodes.columns.name[row], nodes.columns.attributes[row]
    )


def _cached_account(executed: ExecutionResult, kind: int, name: int, attributes_id: int) -> int:
    cache = executed.known_accounts
    account = cache.get((kind, name, attributes_id))
    if account is None:
        account = cache[kind, name, attributes_id] = _find_account(executed, kind, name, attributes_id)
    return account


def _find_account(executed: ExecutionResult, kind: int, name: int, attributes_id: int) -> int:
    attributes = executed.kinds.attributes(attributes_id)
    if kind in (SEND, RECV):
        return PP
    if kind == COLL or kind != COMP:
        word = attributes.get("wltui_kind")
        text = word.value if word is not None and word.kind == "string" else "comm"
        kind_of = _OF_KIND.get(text, text if text in GROUP_KINDS else "comm")
        return ACCOUNTS.index(f"exposed {kind_of}")
    phase_name = _stated_phase(executed, attributes_id)
    if integer(attributes.get("is_cpu_op")):
        return _OF_CPU.get(phase_name or "", HOST)
    return phase_of(executed.kinds.name(name) if phase_name is None else phase_name)


def phase_of_node(executed: ExecutionResult, rank: int, index: int) -> int:
    """Returns the account of the compute phase of a node, even of communication: by its phase, else
    its name.
    """
    nodes = executed.nodes[rank]
    row = nodes.row[index]
    phase_name = _stated_phase(executed, nodes.columns.attributes[row])
    return phase_of(executed.kinds.name(nodes.columns.name[row]) if phase_name is None else phase_name)


def _stated_phase(executed: ExecutionResult, attributes_id: int) -> str | None:
    phase = executed.kinds.attributes(attributes_id).get("wltui_phase")
    return str(phase.value) if phase is not None and phase.kind == "string" else None


def _is_exported(executed: ExecutionResult, attributes_id: int) -> bool:
    return integer(executed.kinds.attributes(attributes_id).get("wltui_ns")) is not None


def _is_overlapping(executed: ExecutionResult, attributes_id: int) -> bool:
    return bool(integer(executed.kinds.attributes(attributes_id).get("wltui_beside")) or 0)


def phase_of(text: str) -> int:
    """Returns the account of compute by a name, or by wltui's phases."""
    low = text.lower()
    if low in ("ig", "wg", "recompute") or any(word in low for word in ("grad", "bwd", "backward")):
        return 1
    if _OF_STAGE.search(text):
        return 1
    return 2 if low == "opt" or "optim" in low or "adam" in low else 0


# A name that means forward: in words, or as STAGE names what is no gradient.
_FORWARD = re.compile(r"fwd|forward|@\d+_", re.IGNORECASE)


def states_phases(executed: ExecutionResult) -> bool:
    """Returns whether each compute node with the account forward states that, by an attribute or its name."""
    return all(
        account or kind != COMP or _stated_phase(executed, attributes_id) is not None
        or _FORWARD.search(executed.kinds.name(name)) is not None
        for (kind, name, attributes_id), account in executed.known_accounts.items()
    )  # fmt: skip


class _What(NamedTuple):
    """How nodes of one type, name and set of attributes count.

    account: that of a node's own time. level: one of `simcore.trace.spans`. is_stated: whether it counts only
    where other nodes wait for it.
    """

    account: int
    level: int
    is_stated: bool


def executed_trace(executed: ExecutionResult, columns: Mapping[str, Callable[[], Column]]) -> Trace:
    """Returns the trace of an executed set; its tracks are the classes of ranks in their order."""
    sizes = [0] * len(executed.units.first)
    for unit in executed.units.of:
        sizes[unit] += 1
    spans = [_make_spans(executed, rank) for rank in executed.units.first]
    waits = [Waits() for _ in sizes]
    return Trace(
        spans, waits, executed.step_time_ns, NAMES, sizes, PP, True, columns, executed.units.of
    )  # fmt: skip


def executed_graph(executed: ExecutionResult, built: ExecutionGraph) -> TraceGraph:
    """Returns the graph of a trace."""
    units, first = executed.units.first, first_rows(map(len, built.end_nodes))
    # For each class of ranks the node of each collective.
    indices = [
        {meeting: index for index, meeting in enumerate(executed.meetings[rank]) if meeting != NONE}
        for rank in units
    ]

    def member(unit: int, index: int, other: int) -> int:
        return indices[other].get(executed.meetings[units[unit]][index], index)

    return TraceGraph(
        built.graph,
        built.ends,
        executed.step_time_ns,
        built.last,
        ranks=units,
        nodes=built.end_nodes,
        row_of=array("i", (NONE, *(first[unit] + index for unit, index in built.of))),
        find_member_span=member,
        make_durations=lambda: built.graph.flatten([built.durations]),
    )


def _make_spans(executed: ExecutionResult, rank: int) -> Spans:
    """Returns the nodes of a rank as spans; those that have not run take no time."""
    nodes = executed.nodes[rank]
    types, names, sets = nodes.columns.type, nodes.columns.name, nodes.columns.attributes
    cache: dict[tuple[int, int, int], _What] = {}
    spans = Spans()
    columns = nodes.row, executed.start[rank], executed.begin[rank], executed.end[rank]
    for index, (row, start, begin, end) in enumerate(zip(*columns, strict=True)):
        key = types[row], names[row], sets[row]
        what = cache.get(key)
        if what is None:
            what = cache[key] = _classify(executed, *key)
        level = what.level
        if start < 0 or end < 0:
            start = begin = end = 0
            level = NEVER
        elif what.is_stated and not len(nodes.children_of(index)):
            level = NEVER
        spans.start.append(start)
        spans.ready.append(max(begin, start))
        spans.end.append(end)
        spans.category.append(what.account)
        spans.level.append(level)
    return spans


def _classify(executed: ExecutionResult, kind: int, name: int, attributes_id: int) -> _What:
    """Returns how all nodes of one type, name and set of attributes count."""
    account = _cached_account(executed, kind, name, attributes_id)
    if kind == SEND and executed.before is not None:
        return _What(account, SENDS, _is_exported(executed, attributes_id))
    level = COMPUTES if account < FIRST_EXPOSED else {HOST: HOSTS, IDLE: UNDER}.get(account, COMMUNICATES)
    if account == COMM and kind == COMP:
        level = COPIES
    elif kind == COLL and _is_overlapping(executed, attributes_id):
        level = OVERLAPS
    return _What(account, level, False)
