"""Accounts of execution traces that have run: every nanosecond of every rank in exactly one.

Where several nodes of a rank run at once, GPU compute counts first, then communication that is under way,
then CPU nodes, then waiting: in a collective until its last member has come (`wait`), for a message until it
is sent (`bubble`). A collective that the export of a simulated step says runs beside compute (`wltui_beside`)
counts behind all that holds the rank: blocking collectives and receives. By wltui's rules nobody waits for a
send but nodes that name it as parent: it counts where nothing else does. While it waits for its channel, the
send before it counts. A send without children whose time an export states (`wltui_ns`) does not count: a
simulated rank ends with what its compute waits for.
`idle` is the time in which nothing of the rank has begun and not ended, what the export of a measured run
says is idle, and what follows its end.
Compute is forward unless the node's name says backward or optimizer (`grad`, `bwd`, `backward`; `optim`,
`adam`), or is a gradient as STAGE names its nodes: `mb0.transformer.1.mha.dwqkv@1_COMP`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from simcore.chakra.nodes import COLL, COMP, RECV, SEND, integer
from simcore.executing.executed import Executed
from simcore.names import GROUP_KINDS
from simcore.run.accounts import Accounts, account_names

COMPUTE = ("forward", "backward", "optimizer")
NAMES = account_names(
    COMPUTE, GROUP_KINDS, ("wait", "bubble", "host", "idle"),
    {f"compute {name}": name for name in COMPUTE}
    | {"exposed expert": "exposed ep"},
)  # fmt: skip
ACCOUNTS, FIRST_EXPOSED, WAIT = NAMES.all, NAMES.first_exposed, NAMES.first_other
BUBBLE, HOST, IDLE = WAIT + 1, WAIT + 2, WAIT + 3
PP, COMM = ACCOUNTS.index("exposed pp"), ACCOUNTS.index("exposed comm")
# What exported traces say of a group's kind, as accounts have it.
_OF_KIND = {"tp": "tp", "dp": "dp", "ep": "expert", "dp_ep": "expert dp", "pp": "pp"}
# What exported traces of measured runs say of CPU nodes: a host gap, a copy of memory.
_OF_CPU = {"idle": IDLE, "copy": COMM}
# Which of several counts: the least.
_FIRST = dict.fromkeys(range(FIRST_EXPOSED), 0) | {HOST: 2, WAIT: 3, BUBBLE: 4, IDLE: 9}
_COPIES, _BESIDE, _BESIDE_WAITING, _SENDS, _QUEUED, _LEVELS = 4, 5, 6, 7, 8, 10
NONE = -1
# A gradient by STAGE's names, d before what it is the gradient of: `in_emb.dw@0_COMP`, of its older ones
# `stack_1_mha_d_k@1_COMP`.
_OF_STAGE = re.compile(r"(?:^|[._])d(?:_\w+|[wxyqkv]\w*|attn|norm|res)\d*@\d+_")


def account_of(executed: Executed, rank: int, place: int) -> int:
    """The account that a node's own time goes to."""
    nodes = executed.nodes[rank]
    row = nodes.row[place]
    return _account(executed, nodes.columns.type[row], nodes.columns.name[row], nodes.columns.attributes[row])


def _account(executed: Executed, kind: int, name: int, number: int) -> int:
    known: dict[tuple[int, int, int], int] = executed.__dict__.setdefault("_accounts", {})
    account = known.get((kind, name, number))
    if account is None:
        account = known[kind, name, number] = _find(executed, kind, name, number)
    return account


def _find(executed: Executed, kind: int, name: int, number: int) -> int:
    attributes = executed.kinds.attributes(number)
    if kind in (SEND, RECV):
        return PP
    if kind == COLL or kind != COMP:
        word = attributes.get("wltui_kind")
        text = word.value if word is not None and word.kind == "string" else "comm"
        kind_of = _OF_KIND.get(text, text if text in GROUP_KINDS else "comm")
        return ACCOUNTS.index(f"exposed {kind_of}")
    said = _stated_phase(executed, number)
    if integer(attributes.get("is_cpu_op")):
        return _OF_CPU.get(said or "", HOST)
    return phase_of(executed.kinds.name(name) if said is None else said)


def phase_of_node(executed: Executed, rank: int, place: int) -> int:
    """The account of the compute that a node is a part of, communication too: by its phase, else its name."""
    nodes = executed.nodes[rank]
    row = nodes.row[place]
    said = _stated_phase(executed, nodes.columns.attributes[row])
    return phase_of(executed.kinds.name(nodes.columns.name[row]) if said is None else said)


def _stated_phase(executed: Executed, number: int) -> str | None:
    phase = executed.kinds.attributes(number).get("wltui_phase")
    return str(phase.value) if phase is not None and phase.kind == "string" else None


def _is_exported(executed: Executed, number: int) -> bool:
    return integer(executed.kinds.attributes(number).get("wltui_ns")) is not None


def _is_beside(executed: Executed, number: int) -> bool:
    return bool(integer(executed.kinds.attributes(number).get("wltui_beside")) or 0)


def phase_of(text: str) -> int:
    """The account of compute by a name, or by wltui's phases."""
    low = text.lower()
    if low in ("ig", "wg", "recompute") or any(word in low for word in ("grad", "bwd", "backward")):
        return 1
    if _OF_STAGE.search(text):
        return 1
    return 2 if low == "opt" or "optim" in low or "adam" in low else 0


# A name that says forward: in words, or as STAGE names what is no gradient.
_FORWARD = re.compile(r"fwd|forward|@\d+_", re.IGNORECASE)


def says_phases(executed: Executed) -> bool:
    """Whether each compute node that was accounted as forward says so, by its attributes or by its name."""
    known: dict[tuple[int, int, int], int] = executed.__dict__.get("_accounts", {})
    return all(
        account or kind != COMP or _stated_phase(executed, number) is not None
        or _FORWARD.search(executed.kinds.name(name)) is not None
        for (kind, name, number), account in known.items()
    )  # fmt: skip


def rank_accounts(executed: Executed, rank: int) -> Accounts:
    """The accounts of one rank, of the places of its nodes, NONE where it is idle."""
    step = executed.step_time_ns
    intervals = _intervals(executed, rank)
    accounts = Accounts(NAMES)
    nodes = executed.nodes[rank]
    types, sets, rows = nodes.columns.type, nodes.columns.attributes, nodes.row
    sends = executed.before is not None
    events: list[tuple[int, int, int, int]] = []
    for start, end, account, place in intervals:
        if end > start:
            first = _FIRST.get(account, 1)
            if sends and types[rows[place]] == SEND:
                first = _QUEUED if account == BUBBLE else _SENDS
            elif account == COMM and types[rows[place]] == COMP:
                first = _COPIES
            elif types[rows[place]] == COLL and _is_beside(executed, sets[rows[place]]):
                first = _BESIDE_WAITING if account == WAIT else _BESIDE
            events.append((start, 1, first, place << 8 | account))
            events.append((end, 0, first, place << 8 | account))
    events.sort()
    # Of what runs on each level when it began.
    running: list[dict[int, int]] = [{} for _ in range(_LEVELS)]
    now = 0

    def until(time: int) -> None:
        nonlocal now
        if time <= now:
            return
        code = next((_counted(level) for level in running if level), None)
        account, place = (IDLE, NONE) if code is None else (code & 255, code >> 8)
        _add(accounts, now, time, account, place)
        now = time

    for time, is_start, first, code in events:
        until(min(time, step))
        if is_start:
            running[first][code] = time
        else:
            del running[first][code]
    until(step)
    accounts.edge.append(step)
    return accounts


def _counted(level: dict[int, int]) -> int:
    """Of several that run at once the one that began last: what began before it runs beside."""
    return next(iter(level)) if len(level) == 1 else min(level, key=lambda code: (-level[code], code))


def _add(accounts: Accounts, start: int, end: int, account: int, place: int) -> None:
    if len(accounts.account) and accounts.account[-1] == account and accounts.op[-1] == place:
        accounts.total_ns[account] += end - start
    else:
        accounts.book(start, end, account, place)


def _intervals(executed: Executed, rank: int) -> Sequence[tuple[int, int, int, int]]:
    """(start, end, account, place) of what a rank's nodes do; a node that waits first is two."""
    nodes = executed.nodes[rank]
    start, begin, ends = executed.start[rank], executed.begin[rank], executed.end[rank]
    types, names, sets, rows = nodes.columns.type, nodes.columns.name, nodes.columns.attributes, nodes.row
    intervals = []
    for place, end in enumerate(ends):
        first = start[place]
        if first < 0 or end < 0:
            continue
        row = rows[place]
        if (
            types[row] == SEND and executed.before is not None and _is_exported(executed, sets[row])
            and not len(nodes.children_of(place))
        ):  # fmt: skip
            continue
        account = _account(executed, types[row], names[row], sets[row])
        middle = begin[place]
        if middle > first:
            intervals.append((first, middle, BUBBLE if types[row] in (SEND, RECV) else WAIT, place))
        intervals.append((middle, end, account, place))
    return intervals
