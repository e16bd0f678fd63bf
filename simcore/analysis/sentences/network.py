"""What communication costs: by kind, at the end of the step, all of it, and at the ports."""

from __future__ import annotations

from typing import Any

from simcore.analysis.accounts import ACCOUNTS, EXPOSED_KINDS, class_accounts, op_of
from simcore.analysis.alike import alike
from simcore.analysis.sentences.model import Facts, Sentence, late_reductions, rank_words
from simcore.collectives import NAMES, cell_name
from simcore.diagnostics import printable
from simcore.program.ops import PHASES, CollectiveCost
from simcore.run.findings import Change
from simcore.simulation import Simulation
from simcore.units import byte_size, duration, percent
from simcore.workload.model import base_name

_PHASE_WORDS = {
    "fwd": "forward",
    "ig": "input gradient",
    "wg": "weight gradient",
    "opt": "optimizer",
    "recompute": "recompute",
}
_LATE = "gradients after the last backward"
# The network is not the cause where the step would be shorter by less than this without it.
_CAUSE = 0.1
# Where a flag gains less than this share of what is late, what it leaves there is said.
_MOST_GAIN = 0.9


def network(facts: Facts) -> Sentence | None:
    """All communication that compute waits for, where it has several parts worth saying."""
    parts = _parts(facts)
    if not _several(facts, parts):
        return None
    by_size = sorted(parts.items(), key=lambda item: -item[1])
    # What is late is of its kind, too: the rest is the other part of that.
    late = [
        kind for kind in EXPOSED_KINDS if any(sum(of_class.get(kind, {}).values()) for of_class in facts.late)
    ]
    called = {**{kind: f"other {kind}" for kind in late}, _LATE: f"{' and '.join(late)} {_LATE}"}
    shares = [(percent(ns, facts.step_ns), called.get(what, what)) for what, ns in by_size]
    text = ", ".join(f"{share} % {what}" for share, what in shares if float(share))
    return Sentence(
        "network", f"Compute waits {facts.figure(facts.exposed_ns)} for communication on each rank: {text}.",
        facts.exposed_ns, "network", facts.network_ns,
    )  # fmt: skip


def _parts(facts: Facts) -> dict[str, int]:
    """What is exposed on each rank, the mean of all, ns: by kind, gradients at the end told apart."""
    late = {
        kind: facts.mean(sum(of_class.get(kind, {}).values()) for of_class in facts.late)
        for kind in EXPOSED_KINDS
    }
    parts = {kind: facts.mean_ns[f"exposed {kind}"] - late[kind] for kind in EXPOSED_KINDS}
    return {**parts, _LATE: sum(late.values())}


def _several(facts: Facts, parts: dict[str, int]) -> bool:
    return sum(facts.worth(ns) for ns in parts.values()) > 1


def _lost(facts: Facts, part: str) -> int:
    """What a part of all communication costs: all that the network does where it alone is worth saying."""
    parts = _parts(facts)
    alone = not _several(facts, parts) and parts[part] == max(parts.values())
    return facts.network_ns if alone else min(parts[part], facts.network_ns)


def exposed(facts: Facts) -> list[Sentence]:
    """Each kind of communication that compute waits for, and the row that it waits for most."""
    sentences = []
    parts = _parts(facts)
    for kind in EXPOSED_KINDS:
        if not facts.worth(parts[kind]):
            continue
        mean = facts.mean_ns[f"exposed {kind}"]
        index = ACCOUNTS.index(f"exposed {kind}")
        most = max(range(len(facts.classes)), key=lambda n: (facts.accounts[n].total_ns[index], -n))
        what = "transfers between stages" if kind == "pp" else f"{kind} collectives"
        text = f"Compute waits {facts.figure(mean)} for {what} on each rank{_most_for(facts, most, index)}."
        if parts[kind] < mean:
            # What comes after the last backward has a sentence of its own.
            text = f"Compute waits {facts.figure(parts[kind])} for other {what} on each rank."
            mean = parts[kind]
        sentences.append(Sentence("exposed", text, mean, "network", _lost(facts, kind)))
    return sentences


def _most_for(facts: Facts, number: int, account: int) -> str:
    """`, most for mlp_row (forward all-reduce, 1.200 s)`: the rows of one name and phase."""
    sums = _by_row(facts, number, account)
    if not sums:
        return ""
    key, ns = max(sums.items(), key=lambda item: item[1])
    name, phase, collective = key
    who = ""
    if not _alike(facts, account):
        sums_ns = [accounts.total_ns[account] for accounts in facts.accounts]
        as_long = alike(sums_ns, sums_ns[number])
        same = [row for row in as_long if _by_row(facts, row, account).get(key) == ns]
        who = f" on {rank_words(facts, same).lower()}"
    return f", most for {printable(name, 32)} ({_PHASE_WORDS[phase]} {collective}, {duration(ns)}{who})"


def _by_row(facts: Facts, number: int, account: int) -> dict[tuple[str, str, str], int]:
    """What a class waits in an account, ns, by name of the row, phase and collective."""
    simulation = facts.simulation
    program, names = simulation.program, simulation.workload.name
    accounts = facts.accounts[number]
    sums: dict[tuple[str, str, str], int] = {}
    for segment, segment_account in enumerate(accounts.account):
        if segment_account != account:
            continue
        of, op = op_of(simulation.timeline, number, accounts.op[segment])
        ops = simulation.timeline.stage_program(of).ops
        if ops.row[op] < 0:
            continue
        cost = program.costs[ops.cost[op]]
        collective = cell_name(cost.collective if isinstance(cost, CollectiveCost) else None)
        key = (base_name(names[ops.row[op]]), PHASES[ops.phase[op]], collective)
        sums[key] = sums.get(key, 0) + accounts.edge[segment + 1] - accounts.edge[segment]
    return sums


def _alike(facts: Facts, account: int) -> bool:
    """Whether an account is about as large on all ranks."""
    sums = [accounts.total_ns[account] for accounts in facts.accounts]
    return max(sums) - min(sums) <= max(sums) // 20


def late_gradients(facts: Facts) -> Sentence | None:
    """The gradient reductions at the end that nothing hides, and what the flag that would hide it gives."""
    sums = [sum(sum(ops.values()) for ops in kinds.values()) for kinds in facts.late]
    if not facts.worth(facts.mean(sums), 0.005):
        return None
    simulation = facts.simulation
    most = max(range(len(sums)), key=lambda number: (sums[number], -number))
    reductions = [(ns, kind, op) for kind, ops in facts.late[most].items() for op, ns in ops.items()]
    ns, kind, op = max(reductions, key=lambda reduction: (reduction[0], -reduction[2]))
    ops, start, end = simulation.timeline.columns(most)
    row = ops.row[op]
    collective = NAMES[str(simulation.workload.wg.collective[row])]
    name = printable(base_name(simulation.workload.name[row]), 32)
    cost = simulation.program.costs[ops.cost[op]]
    assert isinstance(cost, CollectiveCost)
    what = f"{kind}, {byte_size(cost.bytes)}"
    # Where a part of it lies beside the backward, it does not come after it: it ends there.
    # What waits for its turn there takes longer than it lasts.
    comes = all(ns >= end[op] - start[op] for ns, _, op in reductions)
    if len(reductions) == 1:
        text = f"The gradient {collective} of {name} ({what}) {'comes' if comes else 'ends'}"
    else:
        # Its first part may lie beside the backward.
        lasting = end[op] - start[op]
        time = duration(ns) if ns >= lasting else f"{duration(ns)} of {duration(lasting)}"
        longest = f"the {collective} of {name} longest ({what}, {time})"
        text = f"{len(reductions)} gradient collectives, {longest}, {'come' if comes else 'end'}"
    text += f" after the last backward: nothing hides {facts.figure(sums[most])}"
    changes = _hiding(simulation) if row in simulation.program.structure.prologue else {}
    other = facts.step_with(**changes) if changes else None
    # What makes the step longer is no advice.
    if other is not None and other < facts.step_ns:
        flags = Change(changes).flags
        assumed = "assumed as fast beside compute as alone"
        text += f"; with {flags}, {assumed}, the step would be {facts.change(other)}"
        left = _still_late(facts, most, changes)
        # A share of what is late that the flag leaves there is why it gains no more.
        if facts.step_ns - other < _MOST_GAIN * sums[most] and left >= (1 - _MOST_GAIN) * sums[most]:
            text += f", since {duration(left)} would still come after the last backward"
    return Sentence("late-gradients", f"{text}.", sums[most], "late gradients", _lost(facts, _LATE))


def _hiding(simulation: Simulation) -> dict[str, Any]:
    """The parameters with which the same step hides gradient reductions; none where they do already, or no
    schedule can. Layer-loop has no overlap.
    """
    if simulation.program.pipelined:
        return {} if simulation.parameters.overlap_grad_reduce else {"overlap_grad_reduce": True}
    return {"schedule": "1f1b", "overlap_grad_reduce": True} if simulation.can_be_scheduled else {}


def _still_late(facts: Facts, number: int, changes: dict[str, Any]) -> int:
    """What of the gradient reductions the ranks of a class have after their last backward, were they begun
    beside it, ns.
    """
    other = facts.results.variants.run(**changes)
    if other is None:
        return 0
    again = other.timeline.folding.class_of(facts.classes[number].ranks.first)
    reductions = late_reductions(other, again, class_accounts(other.timeline, again))
    return sum(sum(ops.values()) for ops in reductions.values())


def free_communication(facts: Facts) -> Sentence | None:
    """What the step would be if all communication were free: whether the network is the cause."""
    other = facts.without_network_ns
    if other is None or not facts.simulation.workload.has_compute:
        return None
    text = f"With all communication free the step would be {facts.change(other)}."
    if not facts.worth(facts.network_ns, _CAUSE):
        text = f"The network is not the cause: without it the step is {facts.change(other)}."
    return Sentence("free-communication", text, other)


def busy_port(facts: Facts) -> Sentence | None:
    """A dimension whose ports are busy most of the step, or with more than they can carry."""
    uses = facts.results.dimensions
    if not uses:
        return None
    use = max(uses, key=lambda use: (use.busy_ns, -use.index))
    if not facts.worth(use.busy_ns, 0.5):
        return None
    dimension = facts.simulation.cluster.dims[use.index]
    kind = max(use.by_kind, key=lambda kind: use.by_kind[kind].busy_ns)
    share = percent(use.busy_ns, facts.step_ns)
    every = facts.results.class_uses
    loads = [{key: load for key, load in class_use.items() if key[0] == use.index} for class_use in every]
    as_busy = [number for number, load in enumerate(loads) if load == loads[use.rank_class]]
    who = rank_words(facts, as_busy).lower()
    text = (
        f"The ports of dimension {use.index} ({dimension.text()}) are busy {share} % of the step on {who}, "
        f"most with {kind} ({byte_size(use.by_kind[kind].bytes)})"
    )
    if use.busy_ns > facts.step_ns:
        text += ": more than they can carry, which only --network shared takes into account"
    return Sentence("busy-port", f"{text}.", use.busy_ns)
