"""A set of execution traces in words: which nodes, groups and links hold most of the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.diagnostics import printable
from simcore.executing.accounts import WAIT
from simcore.executing.ran import path_parts
from simcore.kernel_names import short_name
from simcore.messages.network import link_words
from simcore.names import GROUP_KINDS
from simcore.units import byte_size, duration, percent, plural

if TYPE_CHECKING:
    from simcore.executing.ran import RanTraces

_NAMES = 2
# Of groups of which nobody says what they are.
_UNKNOWN = "comm"
# What has no group of its own, in words.
_WHOSE = {
    "all ranks": "that of all ranks together",
    "alone": "what ranks do by themselves",
    "messages": "messages",
}
# A second's walk.
_MOST_NODES = 500_000


def sentences(results: RanTraces) -> list[str]:
    """The run in sentences, the main cause first."""
    step = results.step_time_ns
    if not step:
        return ["No node takes time: the step is 0 ns long."]
    lines = [_accounts(results), _path(results), _groups(results)]
    lines += [_exposed(results), _late(results), _links(results)]
    return [line for line in lines if line]


def _accounts(results: RanTraces) -> str:
    means = sorted(results.mean_ns.items(), key=lambda pair: -pair[1])
    parts = [f"{name} {results.share(ns)}" for name, ns in means[:3] if ns]
    step = duration(results.step_time_ns)
    if results.is_in_cycles:
        step += f", {plural(results.step_time_ns, 'cycle')}"
    return f"Of the step ({step}) the mean rank spends {', '.join(parts)}."


def _exposed(results: RanTraces) -> str:
    """What the exposed communication is that ASTRA-sim prints for the rank that ends last: all but GPU
    compute. Of a number that wraps there, or that other rules make, nothing.
    """
    rank, _, exposed = max(results.executed.ranks, key=lambda figures: (figures[1], -figures[0]))
    accounts = results.accounts[rank]
    parts = {
        "communication": sum(accounts.exposed_ns().values()),
        "waiting for members": accounts.wait_ns,
        "waiting for messages": accounts.bubble_ns,
        "CPU nodes": accounts.ns("host"),
        "idle": accounts.idle_ns,
    }
    if not results.is_in_cycles or not exposed or sum(parts.values()) != exposed:
        return ""
    some = sorted(((ns, name) for name, ns in parts.items() if ns), reverse=True)
    shares = ", ".join(f"{name} {percent(ns, exposed)} %" for ns, name in some)
    return (
        f"The {plural(exposed, 'cycle')} of exposed communication that ASTRA-sim prints for rank {rank}, the "
        f"last to end, are all but GPU compute: {shares}."
    )


def _path(results: RanTraces) -> str:
    sums: dict[str, int] = {}
    for part, ns in path_parts(results, "op"):
        sums[part] = sums.get(part, 0) + ns
    most = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))[:_NAMES]
    name, ns = most[0]
    if ns == results.step_time_ns:
        return f"The whole critical path is {short_name(name, 40)}."
    words = f"Of the critical path {short_name(name, 40)} takes {results.share(ns)}"
    words += "".join(f", {short_name(name, 40)} {results.share(ns)}" for name, ns in most[1:])
    # A layer's phases have names of their own: of many names the longest may not be of the longest layer.
    others = len(sums) - len(most)
    if others > 0:
        each = "each of " if others > 1 else ""
        words += f", {each}{plural(others, 'other name')} less"
    return f"{words}."


def _groups(results: RanTraces) -> str:
    """The communication that the path is longest: of a kind of groups where all kinds are known, else of a
    group, as one kind has many.
    """
    sums: dict[str, int] = {}
    for part, ns in path_parts(results, "kind"):
        sums[part] = sums.get(part, 0) + ns
    kinds = {name: ns for name, ns in sums.items() if name in GROUP_KINDS and ns}
    if len(kinds) > 1 and _UNKNOWN not in kinds:
        name, ns = max(kinds.items(), key=lambda pair: (pair[1], pair[0]))
        whose = "transfers between stages" if name == "pp" else f"{name} collectives"
        return f"Of the communication on the critical path most is {whose}: {_figure(results, ns)}."
    sums = {}
    for part, ns in path_parts(results, "group"):
        sums[part] = sums.get(part, 0) + ns
    groups = {name: ns for name, ns in sums.items() if name not in ("compute", "cpu") and ns}
    if not groups:
        return ""
    name, ns = max(groups.items(), key=lambda pair: (pair[1], pair[0]))
    whose = _WHOSE.get(name) or f"that of {printable(name, 40)}"
    if len(groups) == 1:
        return f"All communication on the critical path is {whose}: {_figure(results, ns)}."
    return f"Of the communication on the critical path most is {whose}: {_figure(results, ns)}."


def _figure(results: RanTraces, ns: int) -> str:
    return f"{duration(ns)}, {results.share(ns)} of the step"


def _late(results: RanTraces) -> str:
    """Who comes late to collectives, where waiting for members takes more than a hundredth of the ranks'
    time.
    """
    waits = sum(account.ns("wait") for account in results.accounts)
    if waits * 100 < results.step_time_ns * len(results.accounts):
        return ""
    words = f"All ranks together wait {duration(waits)} for the last members of their collectives"
    caused = _waited_for(results)
    if caused:
        ns, rank = max((ns, -rank) for rank, ns in caused.items())
        words += f", longest for rank {-rank}: {duration(ns)}"
    return f"{words}."


def _waited_for(results: RanTraces) -> dict[int, int]:
    """Of each rank, ns that others wait for it in collectives that it is the last to come to; the lowest of
    several that come last. {} where ranks that run alike are known as one, and of more nodes than are walked.
    """
    executed = results.executed
    if len(executed.units.first) < len(results.ranks) or results.held_ops > _MOST_NODES:
        return {}
    last: dict[int, tuple[int, int]] = {}
    for rank in results.ranks:
        start = executed.start[rank]
        for place, number in enumerate(executed.meetings[rank]):
            if number >= 0 and (start[place], -rank) > last.get(number, (-1, 0)):
                last[number] = start[place], -rank
    ns_of: dict[int, int] = {}
    for rank in results.ranks:
        accounts = results.accounts[rank]
        for segment, account in enumerate(accounts.account):
            number = executed.meetings[rank][accounts.op[segment]] if account == WAIT else -1
            if number in last:
                who = -last[number][1]
                ns_of[who] = ns_of.get(who, 0) + accounts.edge[segment + 1] - accounts.edge[segment]
    return ns_of


def _links(results: RanTraces) -> str:
    links = results.executed.links
    if not links:
        return ""
    busiest = max(links, key=lambda link: (link.busy_ns, -link.source))
    queued = sum(link.queued_ns for link in links)
    several = len(results.executed.cluster.dims) > 1
    where = f" on dimension {busiest.dimension}" if several else ""
    words = (
        f"The busiest of {plural(len(links), 'link')} is that from "
        f"{link_words(busiest.source, busiest.target)}{where}: "
        f"{results.share(busiest.busy_ns)} of the step, {byte_size(busiest.bytes)}"
    )
    return words + (f"; messages queue {duration(queued)} in all." if queued else "; no message queues.")
