"""What communication costs: by kind, at the end of the step, all of it, and at the ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from simcore.analysis.alike import alike
from simcore.collectives import NAMES, cell_name, collectives_of
from simcore.diagnostics import printable
from simcore.program.ops import PHASES, WG, CollectiveCost
from simcore.records import Struct
from simcore.simulation import Simulation, optimizer_first
from simcore.sources.simulated import ACCOUNTS, EXPOSED_KINDS
from simcore.trace.account_walk import accounts_of, track_accounts
from simcore.trace.changes import Change
from simcore.trace.run import means
from simcore.units import byte_size, change_percent, duration, how_much, largest, listed_with, percent, plural
from simcore.words.sentences.model import (
    Facts,
    Sentence,
    last_backward_ns,
    late_reductions,
    most_rows,
    rank_words,
    stage_words,
)
from simcore.workload.model import base_name
from simcore.workload.traffic import backward_unsent, parameters_sent

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
# What communication costs is more than what ranks wait for it from so many times that on.
_MUCH_MORE = 1.25
# What is hidden says what is saved where it is as much to within this share.
_EXPLAINS = 0.1
# Of ranks that have less than this share of what others have late the usual figure is said too.
_NEARLY = 0.9
_GATHERS = cell_name("ALLGATHER")


def network(facts: Facts) -> Sentence | None:
    """All communication that compute waits for, where it has several parts worth saying."""
    parts = _parts(facts)
    if not _several(facts, parts) or not facts.simulation.parameters.comm_scale:
        return None
    by_size = sorted(parts.items(), key=lambda item: -item[1])
    # What is late is of its kind, too: the rest is the other part of that.
    late = [
        kind for kind in EXPOSED_KINDS if any(sum(of_class.get(kind, {}).values()) for of_class in facts.late)
    ]
    called = {kind: _of_kind(kind) for kind in EXPOSED_KINDS}
    called |= {kind: f"other {called[kind]}" for kind in late}
    called[_LATE] = _LATE if "all" in late else f"{' and '.join(late)} {_LATE}"
    shares = [(percent(ns, facts.step_ns), called.get(what, what)) for what, ns in by_size]
    text = ", ".join(f"{share} % {what}" for share, what in shares if float(share))
    of_class = [accounts.all_exposed_ns for accounts in facts.accounts]
    text = f"{_waits(facts, facts.exposed_ns, of_class, 'communication')}: {text}."
    return Sentence("network", text, facts.exposed_ns, "network", facts.network_ns)


def _waits(facts: Facts, ns: int, of_class: Sequence[int], what: str) -> str:
    """`Compute waits 1.200 s (8.1 %) for tp collectives on the mean rank`; `The mean rank waits ...` where
    there is no compute that could.
    """
    whose, waits = facts.whose(of_class), f"waits {facts.figure(ns)} for {what}"
    if facts.computes:
        return f"Compute {waits} {whose}"
    return f"{whose.removeprefix('on ').capitalize()} {waits}"


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
    sentences: list[Sentence] = []
    if not facts.simulation.parameters.comm_scale:
        # What is left of free collectives is what a process takes to begin them.
        return sentences
    parts = _parts(facts)
    for kind in EXPOSED_KINDS:
        if not facts.worth(parts[kind]):
            continue
        what = "transfers between stages" if kind == "pp" else collectives_of(kind)
        # What comes after the last backward has a sentence of its own.
        other = "other " if parts[kind] < facts.mean_ns[f"exposed {kind}"] else ""
        account = ACCOUNTS.index(f"exposed {kind}")
        late = [sum(kinds.get(kind, {}).values()) for kinds in facts.late]
        of_class = [
            accounts.total_ns[account] - less for accounts, less in zip(facts.accounts, late, strict=True)
        ]
        text, cost_ns = _transfers(facts, parts[kind], of_class) if kind == "pp" else ("", 0)
        text = text or _waits(facts, parts[kind], of_class, f"{other}{what}")
        text += f"{_most_for(facts, kind, parts[kind], of_class)}."
        lost_ns = max(cost_ns, _lost(facts, kind))
        sentences.append(Sentence("exposed", text, parts[kind], "network", lost_ns))
    return sentences


def _transfers(facts: Facts, ns: int, of_class: Sequence[int]) -> tuple[str, int]:
    """What transfers between stages cost the step by a run in which they are free, in words and ns, where
    that is much more than ranks wait for them: stages wait for each other longer, too; else ("", 0).
    """
    scales = facts.simulation.parameters.time_scale
    free = facts.results.variants.run(time_scale=(*scales, "stream pp=0"))
    cost_ns = 0 if free is None else facts.step_ns - free.step_time_ns
    if free is None or cost_ns < _MUCH_MORE * ns:
        return "", 0
    waits = _waits(facts, ns, of_class, "them")
    text = f"Transfers between stages cost {facts.figure(cost_ns)}: {waits[0].lower()}{waits[1:]}"
    then = means(free.trace.categories, zip(accounts_of(free.trace), free.trace.ranks, strict=True))
    stood_ns = sum(facts.mean_ns[name] - then[name] for name in ("bubble", "idle"))
    rest = ", the rest is bubble and idle time" if _explains(stood_ns, cost_ns - ns) else ""
    return text + rest, cost_ns


def _of_kind(kind: str) -> str:
    """A kind of communication behind its share: `tp`, `collectives of all ranks`."""
    return collectives_of(kind) if kind == "all" else kind


def _most_for(facts: Facts, kind: str, mean_ns: int, of_class: Sequence[int]) -> str:
    """`, most for mlp_row (forward and input gradient all-reduce, 1.200 s)`: the layers that are waited for
    longest, by the rows that are most of it where it is one layer. Without what is late.

    mean_ns: the wait of the mean rank, as the sentence says it. of_class: that of each class.
    """
    number = max(range(len(of_class)), key=lambda n: (of_class[n], -n))
    name_of: Callable[[str], str] = base_name
    waits = _by_row(facts, number, kind, name_of)
    if len(waits) == 1:
        of_rows = _by_row(facts, number, kind, str)
        if most_rows({name: wait.ns for name, wait in of_rows.items()}):
            waits, name_of = of_rows, str
    longest = largest({name: wait.ns for name, wait in waits.items()})
    if not longest:
        return ""
    who = ""
    # Where ranks differ by a twentieth at most, who waits most is nobody's fault.
    if 20 * (max(of_class) - min(of_class)) > max(of_class):
        as_long = alike(of_class, of_class[number])
        most = [waits[name] for name in longest]
        same = [
            row
            for row in as_long
            if [_by_row(facts, row, kind, name_of).get(name) for name in longest] == most
        ]
        who = f" on {rank_words(facts, same).lower()}"
    how = how_much(sum(waits[name].ns for name in longest), of_class[number])
    if how != "most":
        how = how_much(facts.mean(_of_names(facts, kind, name_of, longest)), facts.mean(of_class))
    return f", {how} for {_most_words(facts, waits, longest, who, '' if who else duration(mean_ns))}"


def _of_names(facts: Facts, kind: str, name_of: Callable[[str], str], names: list[str]) -> list[int]:
    """What each class waits for rows of these names."""
    first = facts.simulation.timeline.first_alike
    known = {number: _by_row(facts, number, kind, name_of) for number in set(first)}
    return [sum(wait.ns for name, wait in known[number].items() if name in names) for number in first]


def _most_words(facts: Facts, waits: dict[str, _RowWait], longest: list[str], who: str, said: str) -> str:
    """`mlp_row (forward all-reduce, 1.200 s)`. said: the figure that the sentence has already."""
    names, figures = [printable(name, 32) for name in longest], [duration(waits[name].ns) for name in longest]
    # Who blames a row has to know that no trainer has it.
    sent = parameters_sent(facts.simulation.workload) if "layernorm" in longest else ""
    if len(longest) > 1:
        words = f"; layernorm sends 2 B of each parameter, Megatron {sent}" if sent else ""
        return listed_with(names, figures, who) + words
    wait = waits[longest[0]]
    what = " and ".join(wait.collectives)
    # In the cell of an input gradient: of that it was asked how it is of all parameters.
    words = f"{what} of 2 B of each parameter" if sent else f"{' and '.join(wait.phases)} {what}"
    words += "" if figures[0] == said else f", {figures[0]}{who}"
    return f"{names[0]} ({words}{f'; Megatron sends {sent}' if sent else ''})"


class _RowWait(Struct):
    """What a class waits for the rows of a name, ns; in which phases, in words, and for which collectives."""

    ns: int
    phases: list[str]
    collectives: list[str]


def _by_row(facts: Facts, number: int, kind: str, name_of: Callable[[str], str]) -> dict[str, _RowWait]:
    """What a class waits for a kind of communication that is not late, by what `name_of` makes of the name of
    the row.
    """
    simulation = facts.simulation
    program, names = simulation.program, simulation.workload.name
    accounts, late = facts.accounts[number], facts.late[number].get(kind, {})
    account = ACCOUNTS.index(f"exposed {kind}")
    waits: dict[str, _RowWait] = {}
    for segment, segment_account in enumerate(accounts.account):
        if segment_account != account:
            continue
        of, op = simulation.trace.span_of(number, accounts.op[segment])
        ops = simulation.timeline.stage_program(of).ops
        if ops.row[op] < 0 or op in late:
            continue
        cost = program.costs[ops.cost[op]]
        collective = cell_name(cost.collective if isinstance(cost, CollectiveCost) else None)
        wait = waits.setdefault(name_of(names[ops.row[op]]), _RowWait(0, [], []))
        wait.ns += accounts.edge[segment + 1] - accounts.edge[segment]
        phase = _PHASE_WORDS[PHASES[ops.phase[op]]]
        # What is gathered at the end of a step is what the optimizer has made of the gradients.
        if ops.phase[op] == WG and collective == _GATHERS and ops.row[op] in program.structure.prologue:
            phase = "parameter"
        if phase not in wait.phases:
            wait.phases.append(phase)
        if collective not in wait.collectives:
            wait.collectives.append(collective)
    return waits


def late_gradients(facts: Facts) -> Sentence | None:
    """The gradient reductions at the end that nothing hides, and what the flag that would hide it gives.

    Silent on what an overlap gives where compute is not modelled: it would lie beside other communication.
    """
    sums = [sum(sum(ops.values()) for ops in kinds.values()) for kinds in facts.late]
    if not facts.worth(facts.mean(sums), 0.005):
        return None
    simulation = facts.simulation
    # Of ranks that have as good as most those that end last: it is theirs that the step waits for.
    finish = simulation.timeline.times.finish
    most = max(_with_most(sums), key=lambda number: (finish[number], sums[number], -number))
    ops, start, end = simulation.timeline.columns(most)
    last = last_backward_ns(simulation, most, facts.accounts[most])
    # All that it takes then: the accounts give what runs beside another one to one of the two.
    reductions = [
        (end[op] - max(start[op], last), kind, op) for kind, late in facts.late[most].items() for op in late
    ]
    ns, kind, op = max(reductions, key=lambda reduction: (reduction[0], -reduction[2]))
    row = ops.row[op]
    collective = NAMES[str(simulation.workload.wg.collective[row])]
    name = printable(base_name(simulation.workload.name[row]), 32)
    cost = simulation.program.costs[ops.cost[op]]
    assert isinstance(cost, CollectiveCost)
    what = f"{'all ranks' if kind == 'all' else kind}, {byte_size(cost.bytes)}"
    # Where a part of it lies beside the backward, it does not come after it: it ends there.
    # What waits for its turn there takes longer than it lasts.
    comes = all(duration(ns) == duration(end[op] - start[op]) for ns, _, op in reductions)
    if len(reductions) == 1:
        # With --overlap-grad-reduce the others have been sent: it read as if nothing was.
        in_pieces = simulation.parameters.overlap_grad_reduce
        is_last = in_pieces and cost.bytes < simulation.workload.wg.bytes[row]
        whose = "The last piece of the gradient" if is_last else "The gradient"
        text = f"{whose} {collective} of {name} ({what}) {'comes' if comes else 'ends'}"
    else:
        # Its first part may lie beside the backward.
        lasting = end[op] - start[op]
        after, whole = duration(ns), duration(lasting)
        time = after if after == whole else f"{after} of {whole}"
        equal = sum(other == ns for other, _, _ in reductions) - 1
        longest = f"the {collective} of {name} longest ({what}, {time})"
        if equal:
            longest = f"longest of them the {collective} of {name} and {equal} more ({what}, {time} each)"
        text = f"{len(reductions)} gradient collectives, {longest}, {'come' if comes else 'end'}"
    text += " after the last backward"
    if not simulation.program.has_pipeline_schedule and optimizer_first(simulation.workload):
        # No trainer does: who sees it in the path would take it for a fault.
        text += " and, as SimAI runs the rows, after the optimizer"
    text += f": nothing hides {_on_whom(facts, sums, most)}"
    can_hide = row in simulation.program.structure.prologue and simulation.workload.has_compute
    changes = _hiding(simulation) if can_hide else {}
    other = facts.step_with(**changes) if changes else None
    saved_ns = 0
    # What makes the step longer is no advice.
    if other is not None and other < facts.step_ns:
        saved_ns = facts.step_ns - other
        flags = Change(changes).flags
        assumed = "in pieces and assumed as fast beside compute as alone"
        text += f"; with {flags}, {assumed}, the step would be {facts.change(other)}"
        text += _why_no_more(facts, sums, saved_ns, changes)
    lost_ns = _lost(facts, _LATE)
    return Sentence("late-gradients", f"{text}.", max(sums), "late gradients", lost_ns, saved_ns=saved_ns)


def _with_most(sums: Sequence[int]) -> list[int]:
    """The classes that have as good as most late."""
    return largest(dict(enumerate(sums)))


def _why_no_more(facts: Facts, sums: Sequence[int], saved_ns: int, changes: dict[str, Any]) -> str:
    """`, since 4.553 ms would still come after the last backward`: why a flag saves less than is late on the
    ranks that end the step; "" where it saves most of it, and where that is not why.
    """
    simulation = facts.simulation
    finish = simulation.timeline.times.finish
    number = max(range(len(sums)), key=lambda number: (finish[number], sums[number], -number))
    other = _late_with(facts, number, **changes) if saved_ns < _MOST_GAIN * sums[number] else None
    if other is None or other.ns < (1 - _MOST_GAIN) * sums[number]:
        return ""
    hidden_ns = sums[number] - other.ns
    later_ns = other.last_backward_ns - last_backward_ns(simulation, number, facts.accounts[number])
    after = f"{duration(other.ns)} would still come after the last backward"
    if duration(sums[number]) != duration(max(sums)):
        who = stage_words(facts, [number])
        after += f" of {who[0].lower()}{who[1:]}"
    if _explains(hidden_ns, saved_ns):
        return f", since {after}"
    # Rows of a model count what NCCL takes of compute.
    slower_ns = other.compute_ns - sum(facts.accounts[number].compute_ns().values())
    if slower_ns > 0 and _explains(hidden_ns - slower_ns, saved_ns):
        return f", since {after}, and compute beside them takes {duration(slower_ns)} longer"
    # Reductions that share ports with what compute waits for hold it up.
    if later_ns > 0 and _explains(hidden_ns - later_ns, saved_ns):
        return f"; {after}, which would end {duration(later_ns)} later"
    return ""


def _explains(ns: int, saved_ns: int) -> bool:
    return abs(ns - saved_ns) <= _EXPLAINS * saved_ns


def _hiding(simulation: Simulation) -> dict[str, Any]:
    """The parameters with which the same step hides gradient reductions; none where they do already, or no
    schedule can. Layer-loop has no overlap.
    """
    if simulation.program.pipelined:
        return {} if simulation.parameters.overlap_grad_reduce else {"overlap_grad_reduce": True}
    return {"schedule": "1f1b", "overlap_grad_reduce": True} if simulation.can_be_scheduled else {}


class _Late(Struct, frozen=True):
    """What of the gradient reductions ranks have after their last backward, and when that ends.

    compute_ns: of such a rank in the step.
    """

    ns: int
    last_backward_ns: int
    compute_ns: int


def _late_with(facts: Facts, number: int, **changes: Any) -> _Late | None:
    """What the ranks of a class have late in the run with these parameters; None where that would take long
    to know.
    """
    other = facts.results.variants.run(**changes)
    if other is None:
        return None
    again = other.timeline.folding.class_of(facts.classes[number].ranks.first)
    accounts = track_accounts(other.trace, again)
    reductions = late_reductions(other, again, accounts)
    ns = sum(sum(ops.values()) for ops in reductions.values())
    return _Late(ns, last_backward_ns(other, again, accounts), sum(accounts.compute_ns().values()))


def _on_whom(facts: Facts, sums: Sequence[int], most: int) -> str:
    """`900.4 ms (5.7 %) on ranks 5, 13, behind a slow link, and 228.3 ms on the others`: what those that have
    as good as most, `most` among them, and the others have where that is much less; `up to` it where it is
    nearly as much.
    """
    words, same = [duration(ns) for ns in sums], _with_most(sums)
    figure = facts.figure(max(sums))
    if len({words[number] for number in same}) > 1:
        figure = f"up to {figure}"
    ranks = [len(rank_class.ranks) for rank_class in facts.classes]
    rest: dict[str, int] = {}
    for number, (word, count) in enumerate(zip(words, ranks, strict=True)):
        if number not in same:
            rest[word] = rest.get(word, 0) + count
    if not rest:
        return figure
    # The rank in the middle has the usual figure.
    by_size = sorted(range(len(sums)), key=lambda number: sums[number])
    up_to = accumulate(ranks[number] for number in by_size)
    middle = next(number for number, count in zip(by_size, up_to, strict=True) if 2 * count >= sum(ranks))
    if sums[middle] > _NEARLY * max(sums):
        return f"up to {facts.figure(max(sums))}"
    who = stage_words(facts, same)
    links = facts.simulation.parameters.slow_link
    without = _late_with(facts, most, slow_link=()) if links else None
    slow = ", behind a slow link," if without is not None and without.ns <= _NEARLY * sums[most] else ""
    usual = "less on the others"
    if len(rest) == 1:
        usual = f"{next(iter(rest))} on the others"
    elif 2 * rest.get(words[middle], 0) > sum(ranks):
        usual = f"{words[middle]} on most"
    return f"{figure} on {who[0].lower()}{who[1:]}{slow} and {usual}"


def free_communication(facts: Facts) -> Sentence | None:
    """What the step would be if all communication were free: whether the network is the cause."""
    other = facts.without_network_ns
    if other is None or not facts.simulation.workload.has_compute:
        return None
    text = f"With all communication free the step would be {facts.change(other)}"
    # More than any rank waits for communication: the rest is what they wait for each other meanwhile.
    if facts.network_ns > _MUCH_MORE * max(account.all_exposed_ns for account in facts.accounts):
        text += ", as ranks wait less for each other, too"
    text += "."
    if not facts.worth(facts.network_ns, _CAUSE):
        # What is not sent cannot be seen to cost time.
        workload = facts.simulation.workload
        unsent = backward_unsent(workload)
        text = f"The network is not the cause: without it the step is {facts.change(other)}"
        if unsent:
            # Two rows of a small screen: what speaks against a verdict is not cut off. What it is worth comes
            # before whose it is, which a note has too.
            rows, sent_ns = f"{plural(len(unsent), 'row')} of the file", facts.results.backward_sent_ns
            names = list(dict.fromkeys(printable(base_name(workload.name[row]), 32) for row in unsent))
            named = ", ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} others"
            it, send = ("it", "sends") if len(unsent) == 1 else ("they", "send")
            worth = ""
            if sent_ns is not None:
                worth = f" (if {it} did: {duration(sent_ns)}, {change_percent(facts.step_ns, sent_ns)})"
            text += f", but {rows}{'' if worth else f' ({named})'} {send} nothing backward{worth}"
        text += "."
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
    kinds = largest({kind: load.busy_ns for kind, load in use.by_kind.items()})
    how = how_much(sum(use.by_kind[kind].busy_ns for kind in kinds), use.busy_ns)
    named = [_of_kind(kind) for kind in kinds]
    whose = listed_with(named, [byte_size(use.by_kind[kind].bytes) for kind in kinds])
    share = percent(use.busy_ns, facts.step_ns)
    every = facts.results.class_uses
    loads = [{key: load for key, load in class_use.items() if key[0] == use.index} for class_use in every]
    as_busy = [number for number, load in enumerate(loads) if load == loads[use.rank_class]]
    who = rank_words(facts, as_busy).lower()
    text = (
        f"The ports of dimension {use.index} ({dimension.text()}) are busy {share} % of the step on {who}, "
        f"{how} with {whose}"
    )
    if use.busy_ns > facts.step_ns:
        text += ": more than they can carry, which only --network shared takes into account"
    return Sentence("busy-port", f"{text}.", use.busy_ns)
