"""Ranks that hold others up: who comes last to collectives, what they did before, and who computes longer."""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING

from simcore.records import NamedTuple
from simcore.replay.idle import CALL, HostGap, cause_of
from simcore.replay.parameters import Scales, rounded
from simcore.sources.measured import FIRST_EXPOSED, IDLE
from simcore.sources.pieces import GAP
from simcore.sources.ties import NONE
from simcore.units import largest

if TYPE_CHECKING:
    from simcore.replay.timed import Timed


# Of fewer collectives chance tells as much; and a rank that comes last as often as its peers is no straggler:
# unless its own work and gaps before them are so much of what it costs, and that is worth a sentence.
_LEAST = 3
_SHARE = 0.5
_OWN = 0.5
# A call that is named is so much of how late a rank comes.
_OF_LEAD = 1 / 3
# An arrival within this of the next one is no lateness: a launch takes as long.
_NOISE_NS = 5_000


class Straggler(NamedTuple):
    """A rank by its number. last, of: to how many of its collectives it comes last; least_ns, most_ns: after
    the next one. compute_ns, host_ns: how much longer it computes, and has gaps, before them than the middle
    one of its peers among the members, in all; start_ns: of the gaps what is before its first operation;
    operations: in which it computes longer most, of the same length where there are several. call_ns: how
    long its host is in one call in the gaps before them; gap: the longest of these, None where no call is
    that much of it.
    """

    rank: int
    last: int
    of: int
    least_ns: int
    most_ns: int
    compute_ns: int
    host_ns: int
    start_ns: int
    operations: tuple[str, ...]
    call_ns: int
    gap: HostGap | None


def stragglers(results: Timed) -> list[Straggler]:
    """Ranks that come last to half of their collectives or more, or that hold up the others for a part of the
    step worth a sentence by what they do themselves; the most often first; of devices alone.
    """
    if not results.measured.of_devices or not results.graph.together:
        return []
    graph, ends, ties = results.graph, results.ends, results.ties
    last: dict[int, list[tuple[int, int]]] = {}
    took_part: dict[int, int] = {}
    for number, come in enumerate(graph.arrivals):
        # A stage that comes last to what it receives or sends is no straggler: its partner does other work.
        if len(come) < 2 or graph.meetings[number] == NONE or ties.matches.meetings[number].is_message:
            continue
        times = sorted((ends[node], rank) for rank, node in come)
        for _, rank in times:
            took_part[rank] = took_part.get(rank, 0) + 1
        ahead = times[-1][0] - times[-2][0]
        if ahead > _NOISE_NS:
            last.setdefault(times[-1][1], []).append((number, ahead))
    late_ranks = []
    spent = _SpentBefore(results)
    for rank, some in last.items():
        leads = [ns for _, ns in some]
        often = len(some) >= max(_LEAST, took_part[rank] * _SHARE)
        if not often and sum(leads) < results.step_time_ns * LEAST:
            continue
        numbers = {number for number, _ in some}
        longer, operations = _before(results, spent, rank, numbers)
        if not often and longer[0] + longer[1] < sum(leads) * _OWN:
            continue
        call_ns, gap = _held_up(results, rank, numbers)
        if longer[1] <= 0 or call_ns < sum(leads) * _OF_LEAD:
            call_ns, gap = 0, None
        late_ranks.append(
            Straggler(
                ties.run.ranks[rank].number,
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


def on_time(results: Timed, late: Straggler) -> tuple[Scales, int]:
    """What gives a late rank the median of its peers' compute and host gaps, where it has more; and how many
    ns that is less: nothing where it has no peers.
    """
    index = next(index for index, rank in enumerate(results.measured.ranks) if rank.number == late.rank)
    gaps, accounts = own_gaps_ns(results), results.base.accounts
    peers = results.peers[index]
    if not peers:
        return Scales(), 0
    middle = median_low(gaps[peer] for peer in peers)
    busy = median_low(accounts[peer].busy_ns for peer in peers)
    own = accounts[index].busy_ns
    scales = Scales(
        rank_gaps={late.rank: min(1.0, rounded(middle / gaps[index])) if gaps[index] else 1.0},
        ranks={late.rank: min(1.0, rounded(busy / own)) if own else 1.0},
    )
    return scales, max(gaps[index] - middle, 0) + max(own - busy, 0)


def own_gaps_ns(results: Timed) -> list[int]:
    """What each rank's host takes between operations, and before its step begins, ns."""
    return [
        sum(
            end - start
            for kind, start, end in zip(piece.kind, piece.start, piece.end, strict=True)
            if kind == GAP
        )
        for piece in results.ties.pieces
    ]


def _held_up(results: Timed, rank: int, numbers: set[int]) -> tuple[int, HostGap | None]:
    """(how long the host of a rank is in the call that keeps it longest in the gaps before these collectives,
    ns; the longest of those gaps); (0, None) where there is none.
    """
    launches = sorted(
        (results.ties.pieces[rank].start[piece], number)
        for number, members in enumerate(results.ties.members)
        for who, piece, _ in members
        if who == rank
    )
    found: dict[tuple[str, str | None, str | None], list[HostGap]] = {}
    before = 0
    for time, number in launches:
        if number in numbers:
            for gap in results.gaps[rank]:
                if gap.cause == CALL and before <= gap.start and gap.end <= time:
                    found.setdefault(cause_of(gap), []).append(gap)
        before = time
    longest = max(found.values(), key=lambda some: sum(gap.covered_ns for gap in some), default=[])
    if not longest:
        return 0, None
    return sum(gap.covered_ns for gap in longest), max(longest, key=lambda gap: gap.ns)


class _SpentBefore(dict[int, "dict[int, tuple[int, int, dict[str, int]]]"]):
    """What each rank spent before its collectives, found when it is first asked for."""

    def __init__(self, results: Timed) -> None:
        super().__init__()
        self.results = results

    def __missing__(self, rank: int) -> dict[int, tuple[int, int, dict[str, int]]]:
        self[rank] = spent = _spent_before(self.results, rank)
        return spent


def _before(
    results: Timed, spent: _SpentBefore, rank: int, numbers: set[int]
) -> tuple[tuple[int, int, int], tuple[str, ...]]:
    """((compute, gaps, those before its first operation) that a rank takes longer before these collectives,
    ns; the operations).
    """
    ties = results.ties
    compute = host = 0
    by_name: dict[str, int] = {}
    start = 0
    peers = results.peers[rank]
    for number in numbers:
        mine = spent[rank][number]
        there = [who for who, _, _ in ties.members[number] if who in peers]
        if not there:
            # Another stage has other work.
            continue
        others = [spent[who][number] for who in there]
        compute += mine[0] - median_low(other[0] for other in others)
        host += mine[1] - median_low(other[1] for other in others)
        if number == next(iter(spent[rank])):
            begun = [idle_at_first(results, who) for who in there]
            start = idle_at_first(results, rank) - median_low(begun)
        for name, ns in mine[2].items():
            by_name[name] = by_name.get(name, 0) + ns - median_low(other[2].get(name, 0) for other in others)
    longer = {name: ns for name, ns in by_name.items() if ns > _NOISE_NS}
    return (compute, host, start), tuple(largest(longer))


def idle_at_first(results: Timed, rank: int) -> int:
    """What a rank has before its first operation, ns."""
    accounts = results.accounts[rank]
    segment = next(
        (at for at, account in enumerate(accounts.account) if account != IDLE), len(accounts.account)
    )
    return accounts.edge[segment] - accounts.edge[0]


def _spent_before(results: Timed, rank: int) -> dict[int, tuple[int, int, dict[str, int]]]:
    """Collective -> (compute, gaps, compute by operation) of a rank since the collective before it, ns."""
    ties, accounts = results.ties, results.accounts[rank]
    pieces, names = ties.pieces[rank], results.measured.ranks[rank].ops.name
    before: dict[int, tuple[int, int, dict[str, int]]] = {}
    launches = {
        piece: number
        for number, members in enumerate(ties.members)
        for who, piece, _ in members
        if who == rank
    }
    ns: dict[int, list[tuple[int, int]]] = {}
    for segment, account in enumerate(accounts.account):
        ns.setdefault(accounts.op[segment], []).append(
            (account, accounts.edge[segment + 1] - accounts.edge[segment])
        )
    compute = host = 0
    by_name: dict[str, int] = {}
    for piece in range(len(pieces)):
        if piece in launches:
            before[launches[piece]] = (compute, host, by_name)
            compute = host = 0
            by_name = {}
        for account, spent in ns.get(piece, ()):
            if account < FIRST_EXPOSED:
                compute += spent
                name = names[pieces.op[piece]]
                by_name[name] = by_name.get(name, 0) + spent
            elif account == IDLE:
                host += spent
    return before


# A rank is slow, or a stage, if it computes so much longer than the others: below it is noise.
SLOW = 1.1
# Work is alike where so much of it is in operations of the same names, about as many of each; a rank is slow
# where half of those take longer. One kernel that takes longer alone has more to do.
_ALIKE_COUNTS, _ALIKE, _SLOWED = 0.1, 0.9, 0.5
# A factor nearer to 1 is what rounding to whole ns has left.
_NO_DIFFERENCE = 1e-6
# A share of the step below which nothing is worth a sentence.
LEAST = 0.01


class SlowRank(NamedTuple):
    """A rank by its number: ns that it computes, and the median of its peers: the others of its stage."""

    rank: int
    stage: int | None
    ns: int
    peers_ns: int
    peers: tuple[int, ...]

    @property
    def peers_words(self) -> str:
        """Who they are: `rank 6` where there is one alone, else `its peers`."""
        return f"rank {self.peers[0]}" if len(self.peers) == 1 else "its peers"

    @property
    def scales(self) -> Scales:
        """With which it computes as long as they do."""
        return Scales(ranks={self.rank: rounded(self.peers_ns / self.ns)})


def slow_ranks(results: Timed) -> list[SlowRank]:
    """Ranks that take longer for the same work as the others of their stage: most of the operations that both
    run, and all of them together as `longer_ranks` has it.
    """
    return [rank for rank in longer_ranks(results) if _is_slow(results, rank)]


class OwnWork(NamedTuple):
    """What a rank computes in operations of one name: how many calls, and ns."""

    calls: int
    ns: int


def differs_most(results: Timed, rank: SlowRank) -> tuple[str, OwnWork, OwnWork]:
    """(the operation in which a rank computes longest against its peers, its own work, the peers' median)."""
    work = _work_beside(results, rank)
    return max(
        ((name, *both) for name, both in work.items()), key=lambda one: (one[1].ns - one[2].ns, one[0])
    )


def _is_slow(results: Timed, rank: SlowRank) -> bool:
    """Whether it does about the same work as its peers, and most of that takes longer."""
    alike = slowed = 0
    own_ns = peers_ns = own_alike = 0
    for own, peers in _work_beside(results, rank).values():
        own_ns, peers_ns = own_ns + own.ns, peers_ns + peers.ns
        if abs(own.calls - peers.calls) <= _ALIKE_COUNTS * max(own.calls, peers.calls):
            own_alike, alike = own_alike + own.ns, alike + peers.ns
            slowed += peers.ns if own.ns > SLOW * peers.ns else 0
    same_work = own_alike >= _ALIKE * own_ns and alike >= _ALIKE * peers_ns
    return same_work and slowed >= _SLOWED * alike


def _work_beside(results: Timed, rank: SlowRank) -> dict[str, tuple[OwnWork, OwnWork]]:
    """Operation -> (what a rank computes in it, the median of its peers, the upper of two in the middle)."""
    index = {trace.number: at for at, trace in enumerate(results.measured.ranks)}
    mine = _work(results, index[rank.rank])
    others = [_work(results, index[peer]) for peer in rank.peers]
    names = dict.fromkeys((*mine, *(name for other in others for name in other)))
    none = OwnWork(0, 0)

    def middle(name: str) -> OwnWork:
        all_of_it = [other.get(name, none) for other in others]
        return OwnWork(*(sorted(column)[len(column) // 2] for column in zip(*all_of_it, strict=True)))

    return {name: (mine.get(name, none), middle(name)) for name in names}


def _work(results: Timed, rank: int) -> dict[str, OwnWork]:
    """What a rank (its index) computes, by operation."""
    accounts, pieces = results.accounts[rank], results.ties.pieces[rank]
    names = results.measured.ranks[rank].ops.name
    ns: dict[str, int] = {}
    ops: dict[str, set[int]] = {}
    for at, account in enumerate(accounts.account):
        if account < FIRST_EXPOSED:
            op = pieces.op[accounts.op[at]]
            ns[names[op]] = ns.get(names[op], 0) + accounts.edge[at + 1] - accounts.edge[at]
            ops.setdefault(names[op], set()).add(op)
    return {name: OwnWork(len(ops[name]), ns[name]) for name in ns}


def longer_ranks(results: Timed) -> list[SlowRank]:
    """Ranks that compute over a tenth longer than the median of the others of their stage, and over 1 % of
    the step; by stage, in the run's order. Of an even number of others the upper of the two in the middle.
    """
    slow = []
    ranks = results.measured.ranks
    for stage, compute in compute_by_stage(results).items():
        for index, rank in enumerate(ranks):
            peers = tuple(ranks[peer].number for peer in results.peers[index])
            if rank.stage != stage or not peers:
                continue
            ns, others = compute[rank.number], sorted(compute[peer] for peer in peers)
            middle = others[len(others) // 2]
            if ns > middle * SLOW and ns - middle > results.step_time_ns * LEAST:
                slow.append(SlowRank(rank.number, stage, ns, middle, peers))
    return slow


class BalancedBeside(NamedTuple):
    """What balancing the stages brings once slow ranks compute as long as their peers. once: what
    that is, as in `rank 7 is as fast as rank 6`. before_ns: the step then, after_ns: balanced
    beside that.
    """

    once: str
    before_ns: int
    after_ns: int


def balanced_beside_slow_ranks(results: Timed) -> BalancedBeside | None:
    """What is left to gain by moving work between stages when that work is not taken off slow ranks; None
    where no rank is slow. Two replays.
    """
    slow = slow_ranks(results)
    if not slow:
        return None
    scales = results.base.scales or Scales()
    for slow_rank in slow:
        scales = scales.times(slow_rank.scales)
    mended = results.with_scales(scales)
    factors = even_factors(compute_by_stage(mended))
    balanced = results.with_scales(scales.times(Scales(stages=factors)))
    once = f"rank {slow[0].rank} is as fast as {slow[0].peers_words}"
    if len(slow) > 1:
        once = f"the {len(slow)} slow ranks are as fast as their peers"
    return BalancedBeside(once, mended.step_time_ns, balanced.step_time_ns)


def compute_by_stage(results: Timed) -> dict[int | None, dict[int, int]]:
    """Stage -> rank number -> what it computes, ns."""
    by_stage: dict[int | None, dict[int, int]] = {}
    for rank, accounts in zip(results.measured.ranks, results.accounts, strict=True):
        by_stage.setdefault(rank.stage, {})[rank.number] = accounts.busy_ns
    return by_stage


def even_factors(stages: dict[int | None, dict[int, int]]) -> dict[int | None, float]:
    """Stage -> the factor with which its ranks compute as long as those of all stages do on average."""
    means = {stage: sum(ranks.values()) / len(ranks) for stage, ranks in stages.items()}
    mean = sum(means.values()) / len(means)
    factors = {stage: mean / own if own else 1.0 for stage, own in means.items()}
    return {stage: 1.0 if abs(factor - 1) < _NO_DIFFERENCE else factor for stage, factor in factors.items()}
