"""What went wrong: a rank that others wait for, a port that is slow."""

from __future__ import annotations

from simcore.analysis.alike import ClassWaiting, LongestWait, longest_by_kind, longest_wait, ranks_of
from simcore.collectives import collectives_of
from simcore.diagnostics import printable
from simcore.ranks import RankSet
from simcore.trace.account_walk import track_accounts
from simcore.trace.accounts import Accounts
from simcore.units import duration, listed, number, percent, plural
from simcore.words.sentences.model import Facts, Sentence, place_words, set_words
from simcore.workload.model import GroupKind


def straggler(facts: Facts) -> Sentence | None:
    """Who makes whom wait in collectives, the longest wait, and what it costs the step."""
    waits = facts.results.waiting
    if not waits or not facts.worth(waits[0].ns):
        return None
    longest = longest_wait(facts.classes, waits)
    is_slow = any(
        int(text.partition("=")[0]) in longest.late for text in facts.simulation.parameters.slow_rank
    )
    mean_wait = facts.mean_ns["wait"]
    text = f"{_who_waits(facts, longest)}{_growth(facts, longest) if is_slow else ''}."
    return Sentence(
        "straggler", text, longest.ns, cause="straggler" if is_slow else "waiting", lost_ns=mean_wait,
        fault=is_slow,
    )  # fmt: skip


def _who_waits(facts: Facts, longest: LongestWait) -> str:
    early, late = longest.early, longest.late
    who = set_words(late)
    kind, wait = longest.kind, facts.figure(longest.ns)
    if len(late) > 1:
        whom = set_words(early).lower()
        return f"{who} make {whom} wait {wait}{_each(len(early))} in {collectives_of(kind)}"
    place = place_words(facts, late.first)
    words = f"makes {_peers(facts, kind, len(early))} wait {wait}{_each(len(early))}"
    return f"{who}{f' ({place})' if place else ''} {words}{_others_wait(facts, longest)}"


def _peers(facts: Facts, kind: GroupKind, count: int) -> str:
    """`its 7 tp peers`, `4 of its 7 tp peers`."""
    peers, of_kind = facts.simulation.layout.group_size(kind) - 1, "" if kind == "all" else f"{kind} "
    if count == peers:
        return f"its {plural(peers, f'{of_kind}peer')}"
    return f"{count} of its {peers} {of_kind}peers"


def _others_wait(facts: Facts, longest: LongestWait) -> str:
    """`, its 3 ep peers 11.161 ms`: who else waits for the one late rank alone, by kind of collective, as
    far as it is worth saying; and who waits for it and those that wait for it, `through them`.
    """
    both = RankSet.joined([*longest.late.blocks, *longest.early.blocks])
    through = {
        kind: wait
        for kind, wait in longest_by_kind(facts.classes, facts.results.waiting).items()
        if kind != longest.kind and wait.late == both and facts.worth(wait.ns)
    }
    by_kind: dict[GroupKind, list[ClassWaiting]] = {}
    for wait in facts.results.waiting:
        is_for_it = ranks_of(facts.classes, wait.all_late) == longest.late
        if is_for_it and wait.kind != longest.kind and wait.kind not in through and facts.worth(wait.ns):
            by_kind.setdefault(wait.kind, []).append(wait)
    words = []
    for kind, waits in by_kind.items():
        count = sum(len(facts.classes[wait.early].ranks) for wait in waits)
        least, most = duration(waits[-1].ns), duration(waits[0].ns)
        words.append(f"{_peers(facts, kind, count)} {most if least == most else f'{least} to {most}'}")
    for other in through.values():
        is_all = len(other.early) + len(both) == facts.simulation.layout.world
        whom = "all other ranks" if is_all else set_words(other.early).lower()
        words.append(f"through them {whom} {duration(other.ns)}")
    return f", {listed(words)}" if words else ""


def _each(count: int) -> str:
    return " each" if count > 1 else ""


def _growth(facts: Facts, longest: LongestWait) -> str:
    """What a slow rank costs the step, from the run without; and who absorbs the rest."""
    other = facts.results.variants.run(slow_rank=())
    if other is None:
        return ""
    slow = len(facts.simulation.parameters.slow_rank)
    against = f"against the run without the slow {'rank' if slow == 1 else 'ranks'}"
    growth = facts.step_ns - other.step_time_ns
    if growth <= 0:
        return f"; the step is no longer for it, {against}"
    only = "only " if 2 * growth < longest.ns else ""
    text = f"; the step grows by {only}{duration(growth)} ({percent(growth, other.step_time_ns)} %) {against}"
    early = facts.simulation.timeline.folding.class_of(longest.early.first)
    before = track_accounts(other.trace, other.timeline.folding.class_of(longest.early.first))
    absorbed = _standing(before) - _standing(facts.accounts[early])
    if only and 2 * absorbed >= longest.ns - growth:
        where = f" of stage {facts.classes[early].stage}" if facts.simulation.layout.pp > 1 else ""
        text += f", the {'bubble' if where else 'idle time'}{where} absorbs the rest"
    return text


def _standing(accounts: Accounts) -> int:
    return accounts.bubble_ns + accounts.idle_ns


def slow_link(facts: Facts) -> Sentence | None:
    """What slow ports cost the step, from the run without."""
    links = facts.simulation.parameters.slow_link
    other = facts.step_with(slow_link=()) if links else None
    if other is None:
        return None
    growth = facts.step_ns - other
    dimension, _, rest = links[0].partition(":")
    rank, _, factor = rest.partition("=")
    if len(links) == 1:
        what = f"The port of rank {rank} on dimension {dimension} has {number(float(factor))} x its bandwidth"
    else:
        names = ", ".join(printable(link, 20) for link in links[:4])
        what = f"{len(links)} ports are slow ({names}{', ...' if len(links) > 4 else ''})"
    if growth > 0:
        text = f"{what}: the step is {duration(growth)} ({percent(growth, other)} %) longer than without."
    else:
        text = f"{what}, which costs the step nothing."
    return Sentence("slow-link", text, growth, "slow link", growth, fault=facts.worth(growth, 0.01))
