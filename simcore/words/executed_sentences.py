"""A set of execution traces in words: which nodes, groups and links hold most of the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.diagnostics import printable
from simcore.executing.columns import pattern_of
from simcore.executing.executed import NO_PRICES
from simcore.executing.trace import ACCOUNTS, WAIT, says_phases
from simcore.kernel_names import short_name
from simcore.messages.network import link_words
from simcore.names import GROUP_KINDS
from simcore.ranks import RankSet
from simcore.trace.critical_path import path_parts
from simcore.trace.run import mean_ns
from simcore.units import (
    byte_size,
    duration,
    far_apart,
    how_much,
    largest,
    listed,
    listed_with,
    percent,
    plural,
    whole_percent,
)

if TYPE_CHECKING:
    from simcore.executing.executed import NO_PRICES
from simcore.executing.ran import RanTraces

_NAMES = 2
# Of groups of which nobody says what they are.
_UNKNOWN = "comm"
# What has no group of its own, in words; where another group has all ranks, what singles it out.
_EVERY, _MESSAGES = "all ranks", "messages"
_WHOSE = {
    _EVERY: "that of all ranks together",
    "alone": "what ranks do by themselves",
    _MESSAGES: "messages",
}
_UNNAMED = "that of collectives that name no group"
# A second's walk.
_MOST_NODES = 500_000


def sentences(results: RanTraces) -> list[str]:
    """The run in sentences, the main cause first."""
    step = results.step_time_ns
    if not step:
        # What has no price is the cause, in the words of its note.
        causes = [one.message for one in results.executed.diagnostics if one.code in NO_PRICES]
        return ["No node takes time: the step is 0 ns long.",
                *(f"{cause[0].upper()}{cause[1:]}." for cause in causes)]  # fmt: skip
    lines = [_accounts(results), _path(results), _groups(results)]
    lines += [_exposed(results), _late(results), _links(results)]
    return [line for line in lines if line]


def _accounts(results: RanTraces) -> str:
    """What the mean rank's time goes to, with the range over ranks where the mean is of none of them. Compute
    as a whole where nodes do not say of which phase they are.
    """
    ns_of, one_rank = mean_ns(results), [[one.ns(name) for name in ACCOUNTS] for one in results.accounts]
    names = {name: [name] for name in ns_of}
    if not says_phases(results.executed):
        of_phases = [name for name in ns_of if name.startswith("compute ")]
        names = {"compute": of_phases} | {name: [name] for name in ns_of if name not in of_phases}
    sums = {name: sum(ns_of[part] for part in of_name) for name, of_name in names.items()}
    parts, step = [], results.step_time_ns
    for name in sorted(sums, key=lambda name: -sums[name])[:3]:
        if not sums[name]:
            continue
        words = f"{name} {results.share(sums[name])}"
        columns = [ACCOUNTS.index(part) for part in names[name]]
        of_ranks = [sum(account[column] for column in columns) for account in one_rank]
        if far_apart(whole_percent(ns, step) for ns in of_ranks):
            words += f" (ranks {percent(min(of_ranks), step)} to {percent(max(of_ranks), step)} %)"
        parts.append(words)
    length = duration(step)
    if results.is_in_cycles:
        length += f", {plural(step, 'cycle')}"
    return f"Of the step ({length}) the mean rank spends {', '.join(parts)}."


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
    """The nodes that the path is longest, alike but for a number; those of one name by that name."""
    by_pattern: dict[str, int] = {}
    names: dict[str, set[str]] = {}
    for track, place, ns in results.critical_path:
        node = results.path_source.name(track, place)
        pattern = pattern_of(node)
        by_pattern[pattern] = by_pattern.get(pattern, 0) + ns
        names.setdefault(pattern, set()).add(node)
    sums = {
        next(iter(names[pattern])) if len(names[pattern]) == 1 else pattern: ns
        for pattern, ns in by_pattern.items()
    }
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
        as_much = "as much or less" if sorted(sums.values())[-_NAMES - 1] == most[-1][1] else "less"
        words += f", {each}{plural(others, 'other name')} {as_much}"
    return f"{words}."


def _groups(results: RanTraces) -> str:
    """The communication that the path is longest: of a kind of groups where all kinds are known, else of a
    group, as one kind has many.
    """
    sums: dict[str, int] = {}
    for part, ns in path_parts(results.critical_path, results.path_source, "kind"):
        sums[part] = sums.get(part, 0) + ns
    kinds = {name: ns for name, ns in sums.items() if name in GROUP_KINDS and ns}
    if len(kinds) > 1 and _UNKNOWN not in kinds:
        whose_kind = {
            "transfers between stages" if name == "pp" else f"{name} collectives": ns
            for name, ns in kinds.items()
        }
        return _most_is(results, whose_kind)
    sums = {}
    for part, ns in path_parts(results.critical_path, results.path_source, "group"):
        sums[part] = sums.get(part, 0) + ns
    groups = {name: ns for name, ns in sums.items() if name not in ("compute", "cpu") and ns}
    if not groups:
        return ""
    if len(groups) == 1 and sum(groups.values()) == results.step_time_ns and (
        _MESSAGES in groups or len(results.group_table) == 1
    ):  # fmt: skip
        # The path is nothing else, and there is no other group: what the path is has been said.
        return ""
    if len(groups) == 1 and len(results.group_table) == 1 and _MESSAGES not in groups:
        # There is no other group that it could be of.
        return f"Communication on the critical path takes {_figure(results, sum(groups.values()))}."
    messages_ns = groups.get(_MESSAGES, 0)
    others_ns = sum(groups.values()) - messages_ns
    if messages_ns >= max(groups.values()) and others_ns > messages_ns:
        # Many groups with less each are more than messages all the same.
        return _most_is(results, {"collectives": others_ns, _WHOSE[_MESSAGES]: messages_ns})
    whose_group = {_WHOSE.get(name) or f"that of {printable(name, 40)}": ns for name, ns in groups.items()}
    # Named groups may have all ranks, too.
    every = RankSet.of(results.ranks).text()
    if any(use.group != _EVERY and use.ranks == every for use in results.group_table):
        unnamed = {_WHOSE[_EVERY]: _UNNAMED}
        whose_group = {unnamed.get(whose, whose): ns for whose, ns in whose_group.items()}
    return _most_is(results, whose_group)


def _most_is(results: RanTraces, ns_of: dict[str, int]) -> str:
    """`Of the communication on the critical path most is that of group 1: 3.548 us, 3.0 % of the step.`"""
    most = largest(ns_of)
    how = how_much(sum(ns_of[whose] for whose in most), sum(ns_of.values()))
    begin = "Of the communication on the critical path most is"
    if how != "most":
        begin = f"{how.capitalize()} communication on the critical path is"
    figures = [_figure(results, ns_of[whose]) for whose in most]
    if len(most) == 1:
        return f"{begin} {most[0]}: {figures[0]}."
    return f"{begin} {listed_with(most, figures)}."


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
    if not caused:
        return f"{words}."
    ranks = largest(caused)
    if all(caused[rank] == waits for rank in ranks):
        return f"{words}, all for {listed([f'rank {rank}' for rank in ranks])}."
    if len(ranks) == 1:
        return f"{words}, longest for rank {ranks[0]}: {duration(caused[ranks[0]])}."
    names, figures = [f"rank {rank}" for rank in ranks], [duration(caused[rank]) for rank in ranks]
    return f"{words}, longest for {listed_with(names, figures)}."


def _waited_for(results: RanTraces) -> dict[int, int]:
    """Of each rank, ns that others wait for it in collectives that it is the last to come to; of several that
    come last, for each. {} where ranks that run alike are known as one, and of more nodes than are walked.
    """
    executed = results.executed
    if len(executed.units.first) < len(results.ranks) or results.held_ops > _MOST_NODES:
        return {}
    last: dict[int, tuple[int, list[int]]] = {}
    for rank in results.ranks:
        start = executed.start[rank]
        for place, number in enumerate(executed.meetings[rank]):
            if number < 0:
                continue
            begun, late = last.get(number, (-1, []))
            if start[place] > begun:
                last[number] = start[place], [rank]
            elif start[place] == begun:
                late.append(rank)
    ns_of: dict[int, int] = {}
    for rank in results.ranks:
        accounts = results.accounts[rank]
        for segment, account in enumerate(accounts.account):
            number = executed.meetings[rank][accounts.op[segment]] if account == WAIT else -1
            if number in last:
                for who in last[number][1]:
                    ns_of[who] = ns_of.get(who, 0) + accounts.edge[segment + 1] - accounts.edge[segment]
    return ns_of


def _links(results: RanTraces) -> str:
    links = results.executed.links
    if not links:
        return ""
    busiest = max(links, key=lambda link: (link.busy_ns, -link.source))
    as_busy = len(largest({number: link.busy_ns for number, link in enumerate(links)})) - 1
    alike = f", with {plural(as_busy, 'other')} as busy," if as_busy > 0 else ""
    queued = sum(link.queued_ns for link in links)
    several = len(results.executed.cluster.dims) > 1
    where = f" on dimension {busiest.dimension}" if several else ""
    words = (
        f"The busiest of {plural(len(links), 'link')}{alike} is that from "
        f"{link_words(busiest.source, busiest.target)}{where}: "
        f"{results.share(busiest.busy_ns)} of the step, {byte_size(busiest.bytes)}"
    )
    return words + (f"; messages queue {duration(queued)} in all." if queued else "; no message queues.")
