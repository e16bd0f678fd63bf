"""Ranks that make others wait: who arrives last at collectives, what they did before, who computes longer."""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING

from simcore.records import NamedTuple
from simcore.replay.idle import CALL, HostGap, cause_of
from simcore.replay.parameters import Scales, rounded
from simcore.sources.measured import FIRST_EXPOSED, IDLE
from simcore.sources.rendezvous import NONE
from simcore.sources.segments import GAP
from simcore.units import largest_keys

if TYPE_CHECKING:
    from simcore.replay.replayed_run import ReplayedRun


# Fewer collectives than this say no more than chance. A rank that is last no more often than its peers is no
# straggler, unless its own work and gaps before them are this share of what it costs, and worth a sentence.
_LEAST = 3
_LEAST_LAST_SHARE = 0.5
_LEAST_OWN_SHARE = 0.5
# A call is named if it is so much of how late a rank arrives.
_OF_LEAD = 1 / 3
# An arrival within this of the next one is not late: a launch takes as long.
_NOISE_NS = 5_000


class Straggler(NamedTuple):
    """A rank that makes others wait in collectives."""

    rank: int
    """Its id."""
    last: int
    """At how many of its collectives it arrives last."""
    of: int
    """How many collectives it has."""
    least_ns: int
    """The least time by which it arrives after the next one."""
    most_ns: int
    """The most time by which it arrives after the next one."""
    compute_ns: int
    """How much longer in all it computes before them than the median of its peers among the members."""
    host_ns: int
    """How much longer in all its gaps before them are than that median."""
    start_ns: int
    """The part of `host_ns` before its first operation."""
    operations: tuple[str, ...]
    """Those in which it computes longest beyond its peers; several of the same length."""
    call_ns: int
    """How long its host is in one call in the gaps before them."""
    gap: HostGap | None
    """The longest of those gaps, None where no call is that much of it."""


def find_stragglers(results: ReplayedRun) -> list[Straggler]:
    """Returns the ranks that arrive last at half of their collectives or more, or whose own work delays the
    others by a part of the step worth a sentence; the most often late first; of devices alone.
    """
    if not results.measured.of_devices or not results.graph.together:
        return []
    graph, ends, rendezvous = results.graph, results.ends, results.rendezvous
    last: dict[int, list[tuple[int, int]]] = {}
    took_part: dict[int, int] = {}
    for meeting, arrivals in enumerate(graph.arrivals):
        # A stage that arrives last at what it receives or sends is no straggler: its partner does other work.
        if (
            len(arrivals) < 2
            or graph.meetings[meeting] == NONE
            or rendezvous.matches.meetings[meeting].is_message
        ):
            continue
        times = sorted((ends[node], rank) for rank, node in arrivals)
        for _, rank in times:
            took_part[rank] = took_part.get(rank, 0) + 1
        ahead = times[-1][0] - times[-2][0]
        if ahead > _NOISE_NS:
            last.setdefault(times[-1][1], []).append((meeting, ahead))
    late_ranks = []
    spent = _SpentBefore(results)
    for rank, some in last.items():
        leads = [ns for _, ns in some]
        often = len(some) >= max(_LEAST, took_part[rank] * _LEAST_LAST_SHARE)
        if not often and sum(leads) < results.step_time_ns * LEAST:
            continue
        late_meetings = {meeting for meeting, _ in some}
        longer, operations = _compare_before(results, spent, rank, late_meetings)
        if not often and longer[0] + longer[1] < sum(leads) * _LEAST_OWN_SHARE:
            continue
        call_ns, gap = _find_blocking_call(results, rank, late_meetings)
        if longer[1] <= 0 or call_ns < sum(leads) * _OF_LEAD:
            call_ns, gap = 0, None
        late_ranks.append(
            Straggler(
                rendezvous.run.ranks[rank].rank,
                len(some),
                took_part[rank],
                min(leads),
                max(leads),
                *longer,
                operations,
                call_ns,
                gap,
            )
        )
    return sorted(late_ranks, key=lambda straggler: (-straggler.last, straggler.rank))


def on_time_scales(results: ReplayedRun, late_rank: int) -> tuple[Scales, int]:
    """Returns the scales that give a late rank, its id, the median of its peers' compute and host gaps where
    it has more, and how many ns less that is; no scales where it has no peers.
    """
    index = next(index for index, rank in enumerate(results.measured.ranks) if rank.rank == late_rank)
    gaps, accounts = own_gaps_ns(results), results.base.accounts
    peers = results.peers[index]
    if not peers:
        return Scales(), 0
    middle = median_low(gaps[peer] for peer in peers)
    busy = median_low(accounts[peer].busy_ns for peer in peers)
    own = accounts[index].busy_ns
    scales = Scales(
        rank_gaps={late_rank: min(1.0, rounded(middle / gaps[index])) if gaps[index] else 1.0},
        ranks={late_rank: min(1.0, rounded(busy / own)) if own else 1.0},
    )
    return scales, max(gaps[index] - middle, 0) + max(own - busy, 0)


def own_gaps_ns(results: ReplayedRun) -> list[int]:
    """Returns the time of each rank's host between operations and before its step begins, ns."""
    return [
        sum(
            end - start
            for kind, start, end in zip(segments.kind, segments.start, segments.end, strict=True)
            if kind == GAP
        )
        for segments in results.rendezvous.segments
    ]


def _find_blocking_call(results: ReplayedRun, rank: int, meetings: set[int]) -> tuple[int, HostGap | None]:
    """Returns (how long the host of a rank is in the call that is longest in the gaps before these
    collectives, ns; the longest of those gaps); (0, None) where there is none.
    """
    launches = sorted(
        (results.rendezvous.segments[rank].start[segment], meeting)
        for meeting, members in enumerate(results.rendezvous.members)
        for who, segment, _ in members
        if who == rank
    )
    by_cause: dict[tuple[str, str | None, str | None], list[HostGap]] = {}
    before = 0
    for time, meeting in launches:
        if meeting in meetings:
            for gap in results.gaps[rank]:
                if gap.cause == CALL and before <= gap.start and gap.end <= time:
                    by_cause.setdefault(cause_of(gap), []).append(gap)
        before = time
    longest = max(by_cause.values(), key=lambda some: sum(gap.covered_ns for gap in some), default=[])
    if not longest:
        return 0, None
    return sum(gap.covered_ns for gap in longest), max(longest, key=lambda gap: gap.ns)


class _SpentBefore(dict[int, "dict[int, tuple[int, int, dict[str, int]]]"]):
    """What each rank spent before its collectives, computed at the first use."""

    def __init__(self, results: ReplayedRun) -> None:
        super().__init__()
        self.results = results

    def __missing__(self, rank: int) -> dict[int, tuple[int, int, dict[str, int]]]:
        self[rank] = spent = _find_spent_before(self.results, rank)
        return spent


def _compare_before(
    results: ReplayedRun, spent: _SpentBefore, rank: int, meetings: set[int]
) -> tuple[tuple[int, int, int], tuple[str, ...]]:
    """Returns ((compute, gaps, gaps before its first operation) that a rank takes longer before these
    collectives, ns; the operations).
    """
    rendezvous = results.rendezvous
    compute = host = 0
    by_name: dict[str, int] = {}
    start = 0
    peers = results.peers[rank]
    for meeting in meetings:
        mine = spent[rank][meeting]
        there = [who for who, _, _ in rendezvous.members[meeting] if who in peers]
        if not there:
            # Another stage has other work.
            continue
        others = [spent[who][meeting] for who in there]
        compute += mine[0] - median_low(other[0] for other in others)
        host += mine[1] - median_low(other[1] for other in others)
        if meeting == next(iter(spent[rank])):
            idle_ns = [idle_at_first(results, who) for who in there]
            start = idle_at_first(results, rank) - median_low(idle_ns)
        for name, ns in mine[2].items():
            by_name[name] = by_name.get(name, 0) + ns - median_low(other[2].get(name, 0) for other in others)
    longer = {name: ns for name, ns in by_name.items() if ns > _NOISE_NS}
    return (compute, host, start), tuple(largest_keys(longer))


def idle_at_first(results: ReplayedRun, rank: int) -> int:
    """Returns the time of a rank before its first operation, ns."""
    accounts = results.accounts[rank]
    segment = next(
        (at for at, account in enumerate(accounts.account) if account != IDLE), len(accounts.account)
    )
    return accounts.edge[segment] - accounts.edge[0]


def _find_spent_before(results: ReplayedRun, rank: int) -> dict[int, tuple[int, int, dict[str, int]]]:
    """Returns collective -> (compute, gaps, compute by operation) of a rank since the collective before it,
    ns.
    """
    rendezvous, accounts = results.rendezvous, results.accounts[rank]
    segments, names = rendezvous.segments[rank], results.measured.ranks[rank].ops.name
    before: dict[int, tuple[int, int, dict[str, int]]] = {}
    launches = {
        rank_segment: meeting
        for meeting, members in enumerate(rendezvous.members)
        for who, rank_segment, _ in members
        if who == rank
    }
    ns: dict[int, list[tuple[int, int]]] = {}
    for segment, account in enumerate(accounts.account):
        ns.setdefault(accounts.op[segment], []).append(
            (account, accounts.edge[segment + 1] - accounts.edge[segment])
        )
    compute = host = 0
    by_name: dict[str, int] = {}
    for rank_segment in range(len(segments)):
        if rank_segment in launches:
            before[launches[rank_segment]] = (compute, host, by_name)
            compute = host = 0
            by_name = {}
        for account, spent in ns.get(rank_segment, ()):
            if account < FIRST_EXPOSED:
                compute += spent
                name = names[segments.op[rank_segment]]
                by_name[name] = by_name.get(name, 0) + spent
            elif account == IDLE:
                host += spent
    return before


# A rank or a stage is slow if it computes so much longer than the others; less than this is noise.
SLOW = 1.1
# Work is the same where so much of it is in operations of the same names, about as many of each; a rank is
# slow where half of those take longer. If one kernel alone takes longer, it has more to do.
_COUNT_TOLERANCE, _SAME_WORK_SHARE, _SLOWER_SHARE = 0.1, 0.9, 0.5
# A factor nearer to 1 comes from rounding to whole ns.
_NO_DIFFERENCE = 1e-6
# A share of the step below which nothing is worth a sentence.
LEAST = 0.01


class SlowRank(NamedTuple):
    """A rank that computes longer than its peers, the others of its stage. ns: its compute; peers_ns: their
    median.
    """

    rank: int
    stage: int | None
    ns: int
    peers_ns: int
    peers: tuple[int, ...]

    @property
    def peers_words(self) -> str:
        """Returns `rank 6` for a single peer, else `its peers`."""
        return f"rank {self.peers[0]}" if len(self.peers) == 1 else "its peers"

    @property
    def scales(self) -> Scales:
        """The scales with which it computes as long as its peers."""
        return Scales(ranks={self.rank: rounded(self.peers_ns / self.ns)})


def find_slow_ranks(results: ReplayedRun) -> list[SlowRank]:
    """Returns the ranks that take longer for the same work than the others of their stage: in most of the
    operations that both run, and in all together as `longer_ranks` has it.
    """
    return [rank for rank in longer_ranks(results) if _is_slow(results, rank)]


class OperationCompute(NamedTuple):
    """What a rank computes in operations of one name: number of calls, and ns."""

    calls: int
    ns: int


def differs_most(results: ReplayedRun, rank: SlowRank) -> tuple[str, OperationCompute, OperationCompute]:
    """Returns (the operation in which a rank computes longest beyond its peers, its work, their median)."""
    work = _compare_work(results, rank)
    return max(
        ((name, *both) for name, both in work.items()), key=lambda one: (one[1].ns - one[2].ns, one[0])
    )


def _is_slow(results: ReplayedRun, rank: SlowRank) -> bool:
    """Returns whether it does about the same work as its peers, and most of that takes longer."""
    peers_matched_ns = slower_ns = 0
    own_ns = peers_ns = own_matched_ns = 0
    for own, peers in _compare_work(results, rank).values():
        own_ns, peers_ns = own_ns + own.ns, peers_ns + peers.ns
        if abs(own.calls - peers.calls) <= _COUNT_TOLERANCE * max(own.calls, peers.calls):
            own_matched_ns, peers_matched_ns = own_matched_ns + own.ns, peers_matched_ns + peers.ns
            slower_ns += peers.ns if own.ns > SLOW * peers.ns else 0
    same_work = (
        own_matched_ns >= _SAME_WORK_SHARE * own_ns and peers_matched_ns >= _SAME_WORK_SHARE * peers_ns
    )
    return same_work and slower_ns >= _SLOWER_SHARE * peers_matched_ns


def _compare_work(
    results: ReplayedRun, rank: SlowRank
) -> dict[str, tuple[OperationCompute, OperationCompute]]:
    """Returns operation -> (what a rank computes in it, the median of its peers, the upper of two)."""
    index = {trace.rank: at for at, trace in enumerate(results.measured.ranks)}
    mine = _sum_work(results, index[rank.rank])
    others = [_sum_work(results, index[peer]) for peer in rank.peers]
    names = dict.fromkeys((*mine, *(name for other in others for name in other)))
    none = OperationCompute(0, 0)

    def middle(name: str) -> OperationCompute:
        all_of_it = [other.get(name, none) for other in others]
        return OperationCompute(
            *(sorted(column)[len(column) // 2] for column in zip(*all_of_it, strict=True))
        )

    return {name: (mine.get(name, none), middle(name)) for name in names}


def _sum_work(results: ReplayedRun, rank: int) -> dict[str, OperationCompute]:
    """Returns what a rank (its index) computes, by operation."""
    accounts, segments = results.accounts[rank], results.rendezvous.segments[rank]
    names = results.measured.ranks[rank].ops.name
    ns: dict[str, int] = {}
    ops: dict[str, set[int]] = {}
    for at, account in enumerate(accounts.account):
        if account < FIRST_EXPOSED:
            op = segments.op[accounts.op[at]]
            ns[names[op]] = ns.get(names[op], 0) + accounts.edge[at + 1] - accounts.edge[at]
            ops.setdefault(names[op], set()).add(op)
    return {name: OperationCompute(len(ops[name]), ns[name]) for name in ns}


def longer_ranks(results: ReplayedRun) -> list[SlowRank]:
    """Returns the ranks that compute over a tenth longer than the median of the others of their stage, and
    over 1 % of the step; by stage, in the run's order. For an even number of others it is the upper median.
    """
    slow = []
    ranks = results.measured.ranks
    for stage, compute in compute_by_stage(results).items():
        for index, rank in enumerate(ranks):
            peers = tuple(ranks[peer].rank for peer in results.peers[index])
            if rank.stage != stage or not peers:
                continue
            ns, others = compute[rank.rank], sorted(compute[peer] for peer in peers)
            middle = others[len(others) // 2]
            if ns > middle * SLOW and ns - middle > results.step_time_ns * LEAST:
                slow.append(SlowRank(rank.rank, stage, ns, middle, peers))
    return slow


class BalanceGain(NamedTuple):
    """What balancing the stages gains once slow ranks compute as long as their peers."""

    once: str
    """That condition, in words: `rank 7 is as fast as rank 6`."""
    before_ns: int
    """The step under that condition."""
    after_ns: int
    """The step under it with balanced stages."""


def find_balance_gain(results: ReplayedRun) -> BalanceGain | None:
    """Returns what moving work between stages still gains when none is taken off slow ranks; None where no
    rank is slow. It takes two replays.
    """
    slow = find_slow_ranks(results)
    if not slow:
        return None
    scales = results.base.scales or Scales()
    for slow_rank in slow:
        scales = scales.times(slow_rank.scales)
    equalized = results.with_scales(scales)
    factors = even_factors(compute_by_stage(equalized))
    balanced = results.with_scales(scales.times(Scales(stages=factors)))
    once = f"rank {slow[0].rank} is as fast as {slow[0].peers_words}"
    if len(slow) > 1:
        once = f"the {len(slow)} slow ranks are as fast as their peers"
    return BalanceGain(once, equalized.step_time_ns, balanced.step_time_ns)


def compute_by_stage(results: ReplayedRun) -> dict[int | None, dict[int, int]]:
    """Returns stage -> rank id -> its compute, ns."""
    by_stage: dict[int | None, dict[int, int]] = {}
    for rank, accounts in zip(results.measured.ranks, results.accounts, strict=True):
        by_stage.setdefault(rank.stage, {})[rank.rank] = accounts.busy_ns
    return by_stage


def even_factors(stages: dict[int | None, dict[int, int]]) -> dict[int | None, float]:
    """Returns stage -> the factor with which its ranks compute as long as the average of all stages."""
    means = {stage: sum(ranks.values()) / len(ranks) for stage, ranks in stages.items()}
    mean = sum(means.values()) / len(means)
    factors = {stage: mean / own if own else 1.0 for stage, own in means.items()}
    return {stage: 1.0 if abs(factor - 1) < _NO_DIFFERENCE else factor for stage, factor in factors.items()}
