"""What went wrong: a rank that others wait for, a port that is slow."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.analysis.equal_ranks import (
    ClassWaiting,
    LongestWait,
    find_longest_by_kind,
    find_longest_wait,
    ranks_of,
)
from simcore.collectives import collectives_of
from simcore.diagnostics import printable
from simcore.ranks import RankSet
from simcore.records import NamedTuple
from simcore.trace.account_walk import track_accounts
from simcore.trace.accounts import Accounts
from simcore.units import duration, format_number, join_names, percent, plural
from simcore.words.sentences.model import RunSums, Weighed, Who
from simcore.workload.model import GroupKind


class Peers(NamedTuple):
    """So many of the `of` peers that a rank has in its group of a kind, and what they wait for it, ns."""

    kind: GroupKind
    waiting: int
    of: int
    least_ns: int
    most_ns: int

    @property
    def words(self) -> str:
        """`its 7 tp peers`, `4 of its 7 tp peers`."""
        of_kind = "" if self.kind == "all" else f"{self.kind} "
        if self.waiting == self.of:
            return f"its {plural(self.of, f'{of_kind}peer')}"
        return f"{self.waiting} of its {self.of} {of_kind}peers"

    @property
    def with_wait(self) -> str:
        """`its 3 ep peers 11.161 ms`."""
        least, most = duration(self.least_ns), duration(self.most_ns)
        return f"{self.words} {most if least == most else f'{least} to {most}'}"


class Through(NamedTuple):
    """Ranks that wait for those that wait for a late one, None where they are all others, and how long."""

    whom: RankSet | None
    ns: int


class Growth(NamedTuple):
    """What slow ranks, so many, cost the step: what it is without, and how much longer with them.

    absorbs: whether those who wait have as much less bubble and idle time as explains the rest of the wait.
    stage: theirs, None of one stage alone.
    """

    ns: int
    without_ns: int
    slow: int
    absorbs: bool
    stage: int | None


class Straggler(Weighed, frozen=True):
    """Who makes whom wait in collectives, ns: the longest wait, and what it costs the step.

    place: where the one late rank lies, by dimension of the layout. peers: those that wait longest for it;
    others: who else waits for it alone, by kind of collective, as far as it is worth saying, and `through`
    them. growth: of slow ranks, from the run without, None where it is not known.
    """

    rule = "straggler"

    late: RankSet
    early: RankSet
    position: tuple[tuple[str, int], ...]
    peers: Peers
    others: tuple[Peers, ...]
    through: tuple[Through, ...]
    growth: Growth | None

    @property
    def text(self) -> str:
        return f"{self._waits_text()}{self._growth_text(self.growth) if self.growth is not None else ''}."

    def _waits_text(self) -> str:
        who, each = Who(self.late).words, " each" if len(self.early) > 1 else ""
        wait = f"wait {self.figure(self.ns)}{each}"
        if len(self.late) > 1:
            return f"{who} make {Who(self.early).inside} {wait} in {collectives_of(self.peers.kind)}"
        position = ", ".join(f"{name} {coordinate}" for name, coordinate in self.position)
        words = [peers.with_wait for peers in self.others]
        for whom, ns in self.through:
            them = "all other ranks" if whom is None else Who(whom).inside
            words.append(f"through them {them} {duration(ns)}")
        others = f", {join_names(words)}" if words else ""
        return f"{who}{f' ({position})' if position else ''} makes {self.peers.words} {wait}{others}"

    def _growth_text(self, growth: Growth) -> str:
        against = f"against the run without the slow {'rank' if growth.slow == 1 else 'ranks'}"
        if growth.ns <= 0:
            return f"; the step is no longer for it, {against}"
        only = "only " if 2 * growth.ns < self.ns else ""
        grown = f"{duration(growth.ns)} ({percent(growth.ns, growth.without_ns)} %)"
        text = f"; the step grows by {only}{grown} {against}"
        if only and growth.absorbs:
            what = "idle time" if growth.stage is None else f"bubble of stage {growth.stage}"
            text += f", the {what} absorbs the rest"
        return text


def find_straggler(run: RunSums) -> Iterator[Straggler]:
    """Speaks where the longest wait is worth saying."""
    waits = run.results.class_waits
    if not waits or not run.is_worth_saying(waits[0].ns):
        return
    longest = find_longest_wait(run.classes, waits)
    is_slow = any(int(text.partition("=")[0]) in longest.late for text in run.simulation.parameters.slow_rank)
    is_one, of = len(longest.late) == 1, run.simulation.layout.group_size(longest.kind) - 1
    others, through = _others_wait(run, longest) if is_one else ((), ())
    yield Straggler(
        step_ns=run.step_ns, ns=longest.ns, cause="straggler" if is_slow else "waiting",
        lost_ns=run.mean_ns["wait"], fault=is_slow, late=longest.late, early=longest.early,
        position=_find_position(run, longest.late.first) if is_one else (),
        peers=Peers(longest.kind, len(longest.early), of, longest.ns, longest.ns),
        others=others, through=through, growth=_growth(run, longest) if is_slow else None,
    )  # fmt: skip


def _find_position(run: RunSums, rank: int) -> tuple[tuple[str, int], ...]:
    """Where a rank lies, dimensions of one left out."""
    layout = run.simulation.layout
    tp, dp, stage = layout.position(rank)
    parts = (("stage", stage, layout.pp), ("dp", dp, layout.dp), ("tp", tp, layout.tp))
    return tuple((name, coordinate) for name, coordinate, size in parts if size > 1)


def _others_wait(run: RunSums, longest: LongestWait) -> tuple[tuple[Peers, ...], tuple[Through, ...]]:
    """Who else waits for the one late rank alone, by kind of collective, as far as it is worth saying; and
    who waits for it and those that wait for it.
    """
    both = RankSet.merge_blocks([*longest.late.blocks, *longest.early.blocks])
    through = {
        kind: wait
        for kind, wait in find_longest_by_kind(run.classes, run.results.class_waits).items()
        if kind != longest.kind and wait.late == both and run.is_worth_saying(wait.ns)
    }
    by_kind: dict[GroupKind, list[ClassWaiting]] = {}
    for wait in run.results.class_waits:
        is_for_it = ranks_of(run.classes, wait.all_late) == longest.late
        if (
            is_for_it
            and wait.kind != longest.kind
            and wait.kind not in through
            and run.is_worth_saying(wait.ns)
        ):
            by_kind.setdefault(wait.kind, []).append(wait)
    layout = run.simulation.layout
    others = tuple(
        Peers(
            kind, sum(len(run.classes[wait.early].ranks) for wait in waits), layout.group_size(kind) - 1,
            waits[-1].ns, waits[0].ns,
        )
        for kind, waits in by_kind.items()
    )  # fmt: skip
    are_all = {kind: len(other.early) + len(both) == layout.world for kind, other in through.items()}
    return others, tuple(
        Through(None if are_all[kind] else other.early, other.ns) for kind, other in through.items()
    )


def _growth(run: RunSums, longest: LongestWait) -> Growth | None:
    """What a slow rank costs the step, from the run without; None where that is not known."""
    other = run.results.variants.run(slow_rank=())
    if other is None:
        return None
    growth = run.step_ns - other.step_time_ns
    early = run.simulation.timeline.folding.class_of(longest.early.first)
    before = track_accounts(other.trace, other.timeline.folding.class_of(longest.early.first))
    absorbed = _standing(before) - _standing(run.accounts[early])
    stage = run.classes[early].stage if run.simulation.layout.pp > 1 else None
    slow = len(run.simulation.parameters.slow_rank)
    return Growth(growth, other.step_time_ns, slow, 2 * absorbed >= longest.ns - growth, stage)


def _standing(accounts: Accounts) -> int:
    return accounts.bubble_ns + accounts.idle_ns


class SlowLink(Weighed, frozen=True):
    """What slow ports, as `--slow-link` has them, cost the step, ns; what it is without."""

    rule = "slow-link"

    links: tuple[str, ...]
    without_ns: int

    @property
    def text(self) -> str:
        links = self.links
        dimension, _, rest = links[0].partition(":")
        rank, _, factor = rest.partition("=")
        what = (
            f"The port of rank {rank} on dimension {dimension} has {format_number(float(factor))} x its "
            "bandwidth"
        )
        if len(links) > 1:
            names = ", ".join(printable(link, 20) for link in links[:4])
            what = f"{len(links)} ports are slow ({names}{', ...' if len(links) > 4 else ''})"
        if self.ns <= 0:
            return f"{what}, which costs the step nothing."
        longer = f"{duration(self.ns)} ({percent(self.ns, self.without_ns)} %)"
        return f"{what}: the step is {longer} longer than without."


def find_slow_link(run: RunSums) -> Iterator[SlowLink]:
    """Speaks of slow ports where the run without them is known."""
    links = run.simulation.parameters.slow_link
    other = run.step_with(slow_link=()) if links else None
    if other is not None:
        growth = run.step_ns - other
        yield SlowLink(
            step_ns=run.step_ns, ns=growth, cause="slow link", lost_ns=growth,
            fault=run.is_worth_saying(growth, 0.01), links=tuple(links), without_ns=other,
        )  # fmt: skip
