"""The sentences on faults: a rank that others wait for, a port that is slow."""

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
from simcore.words.sentences.sequences import find_late_replicas
from simcore.workload.model import GroupKind


class Peers(NamedTuple):
    """The peers of a rank in its group of one kind that wait for it."""

    kind: GroupKind
    """The kind of group."""
    waiting: int
    """How many of the peers wait."""
    of: int
    """How many peers the rank has in the group."""
    least_ns: int
    """The shortest of their waits."""
    most_ns: int
    """The longest of their waits."""

    @property
    def words(self) -> str:
        """The peers in words: `its 7 tp peers`, `4 of its 7 tp peers`."""
        of_kind = "" if self.kind == "all" else f"{self.kind} "
        if self.waiting == self.of:
            return f"its {plural(self.of, f'{of_kind}peer')}"
        return f"{self.waiting} of its {self.of} {of_kind}peers"

    @property
    def with_wait(self) -> str:
        """The peers and their waits in words: `its 3 ep peers 11.161 ms`."""
        least, most = duration(self.least_ns), duration(self.most_ns)
        return f"{self.words} {most if least == most else f'{least} to {most}'}"


class Through(NamedTuple):
    """The ranks that wait for those that wait for a late one, and how long."""

    whom: RankSet | None
    """The ranks; None: all others."""
    ns: int


class Growth(NamedTuple):
    """The cost of slow ranks for the step."""

    ns: int
    """How much longer the step is with them."""
    without_ns: int
    """The step time without them."""
    slow: int
    """How many slow ranks there are."""
    absorbs: bool
    """Whether the waiting ranks have so much less bubble and idle time that it explains the rest
    of the wait.
    """
    stage: int | None
    """Their stage; None where there is only one stage."""


class Straggler(Weighed, frozen=True):
    """The late ranks of the longest wait in collectives, those that wait for them, and the cost
    for the step.
    """

    rule = "straggler"

    late: RankSet
    """The ranks that come late."""
    early: RankSet
    """The ranks that wait longest for them."""
    position: tuple[tuple[str, int], ...]
    """The coordinates of the one late rank, by dimension of the layout."""
    peers: Peers
    """The peers that wait longest for it."""
    others: tuple[Peers, ...]
    """The peers of other kinds of group that wait for it alone, where that is worth saying."""
    through: tuple[Through, ...]
    """The ranks that wait for those that wait for it."""
    growth: Growth | None
    """The cost of slow ranks, from the run without them; None where it is not known."""

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
    """Yields a sentence where the longest wait is worth saying and not one for longer sequences."""
    waits = run.results.class_waits
    if not waits or not run.is_worth_saying(waits[0].ns):
        return
    longest = find_longest_wait(run.classes, waits)
    if find_late_replicas(run, longest) is not None:
        # The sentence on uneven sequences says why.
        return
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
    """Returns the coordinates of a rank, dimensions of size one left out."""
    layout = run.simulation.layout
    tp, dp, stage = layout.position(rank)
    parts = (("stage", stage, layout.pp), ("dp", dp, layout.dp), ("tp", tp, layout.tp))
    return tuple((name, coordinate) for name, coordinate, size in parts if size > 1)


def _others_wait(run: RunSums, longest: LongestWait) -> tuple[tuple[Peers, ...], tuple[Through, ...]]:
    """Returns the other peers that wait for the one late rank alone, and the ranks that wait through them.

    Peers are by kind of collective; waits that are not worth saying are left out.
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
    """Returns the cost of a slow rank for the step, from the run without it; None where it is not known."""
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
    """The cost of slow ports (`--slow-link`) for the step, ns, and the step without them."""

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
    """Yields a sentence on slow ports where the run without them is known."""
    links = run.simulation.parameters.slow_link
    other = run.step_with(slow_link=()) if links else None
    if other is not None:
        growth = run.step_ns - other
        yield SlowLink(
            step_ns=run.step_ns, ns=growth, cause="slow link", lost_ns=growth,
            fault=run.is_worth_saying(growth, 0.01), links=tuple(links), without_ns=other,
        )  # fmt: skip
