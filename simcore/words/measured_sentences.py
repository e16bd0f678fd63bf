"""What a measured step goes to, in sentences, and how a replay differs from what was measured."""

from __future__ import annotations

from simcore.kernel_names import short_name
from simcore.measured.columns import PASSES
from simcore.measured.vocabulary import KERNEL, POINT_TO_POINT, said_op
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.replay.idle import (
    CALL,
    QUEUED,
    Held,
    call_words,
    gap_words,
    held_ups,
    no_call_words,
)
from simcore.replay.late import Late, RankWaiting
from simcore.replay.parameters import Scales
from simcore.replay.stragglers import (
    LEAST,
    SLOW,
    SlowRank,
    balanced_beside_slow_ranks,
    compute_by_stage,
    differs_most,
    even_factors,
    idle_at_first,
    longer_ranks,
    on_time,
    slow_ranks,
    stragglers,
)
from simcore.replay.timed import Timed
from simcore.replay.waits import late_waits_itself, wait_stretches, waited_in_the_end
from simcore.sources.measured import ACCOUNTS, BUBBLE, WAIT
from simcore.trace.run import mean_busy_ns, sum_ns
from simcore.units import change_percent, duration, duration_range, largest, listed, percent, plural

_WAITS = 2
# A wait is named beside the longest one of its kind from this share of it on.
_OF_LONGEST = 0.1
# The rank at the end of chains of waits is named where it has so many times the waits of the next one, and so
# many times those that are for it without a rank in between.
_FAR_AHEAD, _CHAINED = 2, 1.2
# Empty slots are said where they are what is not computed as closely as this.
_SLOTS_WITHIN = 0.1
# What lies outside of the ranks' own steps is said from a twentieth of their time on.
_WORTH_OUTSIDE = 20
# A gain is named from this share of the step on: what a percentage with one decimal shows.
_LEAST_GAIN = 0.0005
_PLAIN = {
    "exposed copy": "copies of memory beside nothing else",
    "wait": "waiting for the last member of a collective",
    "wait of messages": "waiting for the last member of a collective, or the other end of a send or receive",
    "bubble": "the pipeline bubble: waiting for what another stage has not sent yet",
    "idle": "idle: host gaps, and the time before the first and after the last operation",
    "host": "the host's own operations",
}


def insight_lines(results: Timed) -> list[str]:
    """One sentence a line, causes first, then what the time goes to; no more than a dozen."""
    if not results.step_time_ns:
        return []
    # Who is late comes before who waits for it: a screen may have room for the first lines alone, and who
    # waits for whom directly names ranks that wait themselves.
    together = results.graph.together
    stretches = wait_stretches(results) if together else []
    causes = [*_slow_ranks(results), *_stragglers(results), *_in_the_end(results, stretches)]
    slots = _slots(results)
    causes += [*_idle(results), *slots, *_slow_stage(results)]
    # Where the empty slots are said the bubble is, too.
    largest = [] if slots and _largest_account(results) == BUBBLE else [_largest(results)]
    return [*causes, *largest, *(_waits(results, stretches) if together else [])]


def _largest_account(results: Timed) -> int:
    """The largest account besides compute."""
    totals = sum_ns(results, results.tracks)
    rest = [number for number, name in enumerate(ACCOUNTS) if not name.startswith("compute ")]
    return max(rest, key=lambda number: totals[number])


def _largest(results: Timed) -> str:
    """What the ranks' time goes to: compute as a whole, and the largest account besides."""
    accounts, unit = results.accounts, results.measured.unit
    outside = _outside_steps(results)
    whose = f"{unit}s'" if len(accounts) > 1 else f"{unit}'s"
    totals = sum_ns(results, results.tracks)
    whole = sum(totals)
    rest = [number for number, name in enumerate(ACCOUNTS) if not name.startswith("compute ")]
    compute = whole - sum(totals[number] for number in rest)
    number = _largest_account(results)
    if compute and not totals[number]:
        return f"All of the {whose} time, {percent(compute, whole)} %, is compute."
    name = ACCOUNTS[number]
    if name == "wait" and any(meeting.is_message for meeting in results.ties.matches.meetings):
        name = "wait of messages"
    words = _PLAIN.get(name) or f"{name.partition(' ')[2]} communication"
    as_much = largest({rank: account.total_ns[number] for rank, account in enumerate(accounts)})
    most = max(range(len(accounts)), key=lambda rank: accounts[rank].total_ns[number])
    share = f"{percent(totals[number], whole)} %"
    if totals[number] < compute:
        begin = f"Compute is {percent(compute, whole)} % of the {whose} time."
        if share == f"{percent(0, whole)} %":
            return begin
        begin += f" The largest other part, {share}, is"
    elif 2 * totals[number] > whole:
        begin = f"Most of the {whose} time, {share}, is"
    else:
        begin = f"The largest part of the {whose} time, {share}, is"
    if len(accounts) > 1 and as_much:
        ns, first = accounts[most].total_ns[number], idle_at_first(results, most)
        whose_most = RankSet.of({results.measured.ranks[rank].number for rank in as_much}).words()
        several = len(as_much) > 1
        whole_ns = sum(accounts[rank].total_ns[number] for rank in as_much)
        how = "all of it" if whole_ns == totals[number] else "the most"
        if several and len(as_much) == len(accounts):
            words += f"; all {unit}s have about as much, up to {duration(ns)}"
        elif several:
            words += f"; {unit}s {whose_most} have {how}, up to {duration(ns)}"
        else:
            words += f"; {unit} {whose_most} has {how}, {duration(ns)}"
        if not several and name == "idle" and first * 10 >= ns:
            words += f", {duration(first)} of it before its first operation"
            before = outside[most][0]
            if 10 * before >= first:
                is_busy = results.measured.ranks[most].ahead_ns
                when = "while it is at the step before" if is_busy else "before its step begins"
                words += f", {duration(before)} of that {when}"
    outside_ns = sum(map(sum, outside)) if name == "idle" else 0
    if outside_ns * _WORTH_OUTSIDE >= whole:
        words += f"; {percent(outside_ns, whole)} % of the time lies outside of the {whose} own steps"
    if name.startswith("exposed ") and results.ties.matches.unmatched:
        words += "; how much of it is waiting is not known"
    return f"{begin} {words}."


def _outside_steps(results: Timed) -> list[tuple[int, int]]:
    """Of each rank what lies before its own step and behind it while others are in theirs, ns: nobody knows
    what it did then. Nothing where no step of a profiler is shown, and of a replay, whose ranks begin as
    their operations let them.
    """
    ranks, recorded = results.measured.ranks, results.measured.recorded
    is_step = recorded is not None and recorded.step is not None
    if not is_step or results.scales is not None or results.measured.replayed or not results.graph.together:
        return [(0, 0)] * len(ranks)
    return [(rank.first_ns, results.step_time_ns - rank.last_ns) if rank.window else (0, 0) for rank in ranks]


def _waits(results: Timed, stretches: list[list[Late]]) -> list[str]:
    """The longest waits by operation, stage that waits and stage waited for: receives, then collectives. Of
    who is waited for and waits itself for most of that time whom that is for.
    """
    stages = {rank.number: rank.stage for rank in results.measured.ranks}
    pairs: dict[tuple[str, int | None, int | None], list[RankWaiting]] = {}
    for wait in results.waiting:
        pairs.setdefault((wait.name, stages[wait.early], stages[wait.late]), []).append(wait)

    def longest(waits: list[RankWaiting]) -> tuple[int, int, int]:
        return max((wait.ns, wait.early, wait.late) for wait in waits)

    most = sorted(pairs.items(), key=lambda pair: (-longest(pair[1])[0], pair[0][0], longest(pair[1])))
    lines = []
    receives = [pair for pair in most if pair[0][0] in POINT_TO_POINT]
    collectives = [pair for pair in most if pair[0][0] not in POINT_TO_POINT]
    for (name, early, late), waits in (*receives[:_WAITS], *collectives[:_WAITS]):
        ns = longest(waits)[0]
        if ns < results.step_time_ns * LEAST:
            continue
        # Who waits shortly for somebody else there hides who holds all of them up.
        waits = [wait for wait in waits if wait.ns >= ns * _OF_LONGEST]
        for_whom = RankSet.of({wait.late for wait in waits}).words()
        who = RankSet.of({wait.early for wait in waits}).words()
        other = "each other" if who == for_whom else f"{_ranks(for_whom).lower()}{_of_stage(late)}"
        itself = _late_itself(results, stretches, waits) if stretches and who != for_whom else ""
        lines.append(
            f"{_ranks(who)}{_of_stage(early)} wait{'' if _many(who) else 's'} for {other} in "
            f"{said_op(name, 40)}, up to {duration(ns)} in all{itself}."
        )
    return lines


def _late_itself(results: Timed, stretches: list[list[Late]], waits: list[RankWaiting]) -> str:
    """`; 861.8 ms of it rank 7 itself waits for rank 1 (stage 0) in ep_allreduce`, of the longest wait for
    somebody who waits for most of it: who comes last there is not to blame. "" where nobody does.
    """
    ranks = results.measured.ranks
    index = {rank.number: at for at, rank in enumerate(ranks)}
    # Of each wait for whom the late rank waits itself, in what it waits most: ns by rank.
    name, own_ns = "", 0
    whom: set[int] = set()
    late: set[int] = set()
    for wait in sorted(waits, key=lambda wait: (-wait.ns, wait.early, wait.late)):
        itself = late_waits_itself(results, stretches, index[wait.early], index[wait.late], wait.name)
        by_name: dict[str, dict[int, int]] = {}
        for (rank, own_name), ns in itself.items():
            by_name.setdefault(own_name, {})[rank] = ns
        most = max(by_name, key=lambda own_name: (sum(by_name[own_name].values()), own_name), default="")
        of_ranks = by_name.get(name or most, {})
        if 2 * sum(of_ranks.values()) < wait.ns:
            continue
        if not name:
            name, own_ns = most, sum(of_ranks.values())
        late.add(wait.late)
        whom |= {rank for rank, ns in of_ranks.items() if ns >= max(of_ranks.values()) * _OF_LONGEST}
    if not name:
        return ""
    numbers = RankSet.of({ranks[rank].number for rank in whom}).words()
    (stage, *others) = {ranks[rank].stage for rank in whom}
    who = RankSet.of(late).words()
    verb = "themselves wait" if _many(who) else "itself waits"
    in_what = f" in {said_op(name, 40)}" if name != waits[0].name else ""
    for_whom = f"{_ranks(numbers).lower()}{'' if others else _of_stage(stage)}"
    return f"; {duration(own_ns)} of it {_ranks(who).lower()} {verb} for {for_whom}{in_what}"


def _many(ranks: str) -> bool:
    return not ranks.isdigit()


def _ranks(text: str) -> str:
    return f"{'Ranks' if _many(text) else 'Rank'} {text}"


def _of_stage(stage: int | None) -> str:
    return "" if stage is None else f" (stage {stage})"


def _slow_ranks(results: Timed) -> list[str]:
    """Ranks that compute much longer than the median of the other ranks of their stage: of the first that are
    slow what the step would take if they were not; of others, which may have more work, in what they differ.
    """
    unit, lines = results.measured.unit, []
    slow = slow_ranks(results)
    # Who costs the step something stands before who may have more work.
    for slow_rank in sorted(longer_ranks(results), key=lambda rank: (rank not in slow, -rank.ns)):
        is_slow = slow_rank in slow
        how = "is slow: it computes" if is_slow else "computes longer:"
        words = f"{unit.capitalize()} {slow_rank.rank} {how} {duration(slow_rank.ns)}, "
        if len(slow_rank.peers) > 1:
            whose = f"the other {unit}s{_of_stage(slow_rank.stage)}"
            if slow_rank.stage is None and len(slow_rank.peers) + 1 < len(results.measured.ranks):
                whose = f"{unit}s {RankSet.of(slow_rank.peers).words()} at its place in other pipelines"
            words += f"the median of {whose} {duration(slow_rank.peers_ns)}"
        else:
            words += f"{unit} {slow_rank.peers[0]}{_of_stage(slow_rank.stage)} {duration(slow_rank.peers_ns)}"
        if not is_slow:
            lines.append(f"{words}; {_differs_most(results, slow_rank)}.")
            continue
        change = _step_with(results, slow_rank.scales) if slow.index(slow_rank) < _WAITS else ""
        peers = slow_rank.peers_words.replace("rank", unit)
        shorter = _shorter(results, slow_rank)
        words += shorter
        factor = ", with one factor on all of it" if shorter else ""
        lines.append(f"{words}; as fast as {peers}{factor}, {change}." if change else f"{words}.")
    return lines


def _differs_most(results: Timed, rank: SlowRank) -> str:
    """`they differ most in gemm (400 ns in 2 calls, device 0 100 ns in 1)`: where a rank computes longer; how
    many calls where that is not the same.
    """
    name, own, peers = differs_most(results, rank)
    whose = f"{results.measured.unit} {rank.peers[0]}" if len(rank.peers) == 1 else "the others'"
    counted = own.calls != peers.calls
    mine = f"{duration(own.ns)} in {plural(own.calls, 'call')}" if counted else duration(own.ns)
    theirs = f"{duration(peers.ns)} in {peers.calls}" if counted else duration(peers.ns)
    return f"they differ most in {said_op(name, 40)} ({mine}, {whose} {theirs})"


def _shorter(results: Timed, slow_rank: SlowRank) -> str:
    """`, though its forward is shorter (11.380 ms, rank 0 22.980 ms)`: what a slow rank computes in less time
    than the median of its peers, as one factor on all of its compute makes that shorter still; "" of nothing.

    Compute of no known phase may be of any: a phase is shorter where it is so with all of that.
    """
    accounts = {
        rank.number: account for rank, account in zip(results.measured.ranks, results.accounts, strict=True)
    }
    mine = accounts[slow_rank.rank]
    unknown = mine.ns(f"compute {KERNEL}")
    for name in ACCOUNTS:
        if not name.startswith("compute ") or name == f"compute {KERNEL}":
            continue
        others = sorted(accounts[rank].ns(name) for rank in slow_rank.peers)
        own, middle = mine.ns(name), others[len(others) // 2]
        most = own + unknown
        if most < middle / SLOW and middle - most > results.step_time_ns * LEAST:
            whose = f"{results.measured.unit} {slow_rank.peers[0]}" if len(others) == 1 else "the others'"
            what = name.partition(" ")[2]
            return f", though its {what} is shorter ({duration(own)}, {whose} {duration(middle)})"
    return ""


def _in_the_end(results: Timed, stretches: list[list[Late]]) -> list[str]:
    """The rank that all others wait for at the end of a chain, where no other comes near it and less of it is
    seen in who waits for whom: in between stand ranks that wait themselves.
    """
    waited = sorted(waited_in_the_end(stretches).items(), key=lambda pair: (-pair[1], pair[0]))
    if len(waited) < 2 or waited[0][1] < _FAR_AHEAD * waited[1][1]:
        return []
    (rank, ns), whole = waited[0], sum(ns for _, ns in waited)
    number = results.measured.ranks[rank].number
    direct = sum(wait.ns for wait in results.waiting if wait.late == number)
    if ns < results.step_time_ns * LEAST or ns < _CHAINED * direct:
        return []
    unit, next_ns = results.measured.unit, waited[1][1]
    who = plural(len(results.measured.ranks), unit)
    # One column alone sums to less: a user could not find the figure.
    totals = sum_ns(results, results.tracks)
    names = " and ".join(ACCOUNTS[account] for account in (WAIT, BUBBLE) if totals[account])
    is_both = totals[WAIT] + totals[BUBBLE] == whole
    lost = f"of {names} that {who} have in sum" if is_both else f"that {who} wait in sum"
    return [
        f"{unit.capitalize()} {number} causes {duration(ns)} ({percent(ns, whole)} %) of the "
        f"{duration(whole)} {lost}, directly or through others that wait for it; no other {unit} causes "
        f"more than {duration(next_ns)}."
    ]


def _slots(results: Timed) -> list[str]:
    """How many slots of a pipeline are empty whatever its ranks do, where that is what is not computed: each
    stage runs each micro-batch once, and is busy or waits, or is done.
    """
    batches, stages = results.shape.microbatches, len(compute_by_stage(results))
    ranks = results.measured.ranks
    if not batches or stages < 2 or results.measured.degrees.pp not in (None, stages):
        return []
    if any(sum(PASSES[rank.ops.name[op]] == "forward" for op in rank.passes) != batches for rank in ranks):
        return []
    slots, empty = batches + stages - 1, stages - 1
    share = 1 - mean_busy_ns(results) / results.step_time_ns
    if abs(share - empty / slots) > _SLOTS_WITHIN * empty / slots:
        return []
    # What is empty by design shows in the accounts under two names.
    totals = sum_ns(results, results.tracks)
    whole, bubble, wait = sum(totals), totals[BUBBLE], totals[WAIT]
    return [
        f"With {plural(batches, 'micro-batch')} on {stages} equal stages every stage would have {empty} of "
        f"{slots} slots empty, {percent(empty, slots)} % of its time. Here the ranks compute for "
        f"{percent(mean_busy_ns(results), results.step_time_ns)} %; {percent(bubble, whole)} % are bubble, "
        f"{percent(wait, whole)} % waiting for the last member of a collective. More micro-batches in a step "
        "would leave fewer of them empty; a recorded step does not tell how much that brings."
    ]


def _stragglers(results: Timed) -> list[str]:
    """Ranks that come last to most collectives, and why, as far as the trace shows it."""
    lines = []
    for straggler in stragglers(results)[:_WAITS]:
        after = duration_range(straggler.least_ns, straggler.most_ns)
        times = f"{straggler.last} of {straggler.of} collectives"
        words = f"Rank {straggler.rank} comes last to {times}, {after} after the next-latest"
        why = []
        if straggler.compute_ns > 0 and straggler.operations:
            most = listed([short_name(name, 40) for name in straggler.operations])
            why.append(f"computes {duration(straggler.compute_ns)} longer, the most in {most}")
        if straggler.host_ns > 0:
            gaps = f"has {duration(straggler.host_ns)} more in host gaps"
            if 0 < straggler.start_ns <= straggler.host_ns:
                gaps += f" ({duration(straggler.start_ns)} of it before its first operation)"
            why.append(gaps)
        them = "that" if straggler.last == 1 else "them"
        words += f"; before {them} it {', and '.join(why)} than the median of the others" if why else ""
        if straggler.gap is not None:
            words += f"; for {duration(straggler.call_ns)} its host {call_words(straggler.gap)}"
        words += "."
        lines.append(words + _gain(results, *on_time(results, straggler)))
    return lines


def _idle(results: Timed) -> list[str]:
    """What keeps ranks from running anything for longest, as far as no sentence on a straggler says it."""
    said = {
        (rank, straggler.gap)
        for straggler in stragglers(results)[:_WAITS]
        for rank, trace in enumerate(results.measured.ranks)
        if straggler.gap is not None and trace.number == straggler.rank
    }
    lines = []
    for held in held_ups(results.gaps, results.step_time_ns):
        if all((rank, gap) in said for rank, gaps in held.gaps.items() for gap in gaps):
            continue
        lines.append(_held_words(results, held))
    return lines[:_WAITS]


def _held_words(results: Timed, held: Held) -> str:
    """`Rank 0 runs nothing for 20.010 ms (92.6 % of the step) before gemm_kernel_b: its host is in
    cudaLaunchKernel for 19.990 ms of it.`
    """
    ranks, unit = results.measured.ranks, results.measured.unit
    who = RankSet.of({ranks[rank].number for rank in held.gaps}).words()
    many, first, ns = len(held.gaps) > 1, held.first, held.most_ns
    counts = [len(gaps) for gaps in held.gaps.values()]
    words = f"{unit.capitalize()}{'s' if many else ''} {who} {'run' if many else 'runs'} nothing for "
    words += f"{'up to ' if many else ''}{duration(ns)} ({percent(ns, results.step_time_ns)} % of the step)"
    if not many and counts == [1]:
        (rank,) = held.gaps
        starts = ranks[rank].ops.start
        following = next((op for op, start in enumerate(starts) if start == first.end), None)
        before = "" if following is None else f" before {short_name(ranks[rank].ops.name[following], 40)}"
        return f"{words}{before}: {gap_words(first)}."
    words += f" in {'up to ' if len(set(counts)) > 1 else ''}{plural(max(counts), 'gap')}"
    words += f"{' each' if many else ''}: "
    if first.cause == CALL:
        covered = max(sum(gap.covered_ns for gap in gaps) for gaps in held.gaps.values())
        return f"{words}the host {call_words(first)} for {'up to ' if many else ''}{duration(covered)} of it."
    if first.cause == QUEUED:
        return f"{words}what comes next was queued already for most of each."
    if len({gap.thread for gap in held.of_all()}) == 1:
        return f"{words}{no_call_words(first)} of one."
    return f"{words}no single call of the host thread that launches next covers a third of one."


def _gain(results: Timed, scales: Scales, less_ns: int) -> str:
    """What the step would take with a late rank on time, as a replay says it; "" where that gains nothing.

    less_ns: what its compute and host gaps are less then.
    """
    step = _step_with(results, scales)
    peers = f"with the median of its peers' compute and host gaps ({duration(less_ns)} less)"
    return f" On time, {peers}, each by one factor, {step}." if step else ""


def _step_ns(results: Timed, scales: Scales) -> int:
    return results.with_scales((results.base.scales or Scales()).times(scales)).step_time_ns


def _step_with(results: Timed, scales: Scales) -> str:
    """`the step would take 2.925 s (-24.1 %)`, as a replay says it; "" where that is no gain."""
    before, after = results.base.step_time_ns, _step_ns(results, scales)
    if before - after < before * _LEAST_GAIN:
        return ""
    return f"the step would take {duration(after)} ({change_percent(before, after)}){_kept(results)}"


def _kept(results: Timed) -> str:
    """`, or less: 2 calls without a partner keep what they took (57.805 ms on rank 2)`: a replay shortens no
    wait for a rank that it does not know; "" where that is little.
    """
    count, rank, ns = results.partners.waiting() if results.partners is not None else (0, 0, 0)
    if ns < results.step_time_ns * LEAST:
        return ""
    keep = "keeps what it took" if count == 1 else "keep what they took"
    where = f"{duration(ns)} on {results.measured.unit} {rank}"
    return f", or less: {plural(count, 'call')} without a partner {keep} ({where})"


def _slow_stage(results: Timed) -> list[str]:
    """The stage whose ranks compute much longer than those of the other stages, by their fastest rank; silent
    where there are slow ranks and balancing gains nothing to speak of once they are as fast as their peers.
    """
    least = {stage: min(ranks.values()) for stage, ranks in compute_by_stage(results).items()}
    if len(least) < 2 or None in least:
        return []
    slow = max(least, key=lambda stage: least[stage])
    others = sorted(ns for stage, ns in least.items() if stage != slow)
    middle = others[len(others) // 2]
    if least[slow] <= middle * SLOW or least[slow] - middle <= results.step_time_ns * LEAST:
        return []
    rest = f"that of the other stage {duration(middle)}"
    if len(others) > 1:
        rest = f"those of the other stages {duration(middle)} (median)"
    words = f"Stage {slow} is slow: its fastest rank computes {duration(least[slow])}, {rest}"
    moved = "work moved until all stages compute alike"
    first = balanced_beside_slow_ranks(results)
    if first is not None:
        if first.before_ns - first.after_ns < results.base.step_time_ns * LEAST:
            return []
        change = change_percent(first.before_ns, first.after_ns)
        return [
            f"{words}; once {first.once}, {moved} would take the step from {duration(first.before_ns)} to "
            f"{duration(first.after_ns)} ({change})."
        ]
    before = results.base.step_time_ns
    after = _step_ns(results, Scales(stages=even_factors(compute_by_stage(results))))
    change = change_percent(before, after)
    if before - after >= before * LEAST:
        return [f"{words}; with {moved}, the step would take {duration(after)} ({change}){_kept(results)}."]
    why = (
        "; with 1 micro-batch one stage computes after the other, so"
        if results.shape.microbatches == 1
        else ";"
    )
    gain = f"next to nothing ({change})" if before - after >= before * _LEAST_GAIN else "nothing"
    return [f"{words}{why} {moved} would gain {gain}."]


class RankDifference(Struct, frozen=True):
    """Of one rank. number: its rank. measured_ns, replayed_ns: when its last operation ends. ops: (name, ns
    more than measured) of the operations that changed, the greatest change first; GAPS is one of them.
    """

    number: int
    measured_ns: int
    replayed_ns: int
    ops: tuple[tuple[str, int], ...]


GAPS = "host gaps"


def differences(results: Timed) -> list[RankDifference]:
    """Each rank's difference; the changes of its operations and gaps add up to it."""
    of_ranks = []
    for before, after in zip(results.measured.ranks, results.run.ranks, strict=True):
        changes: dict[str, int] = {}
        changed = after.last_ns - before.last_ns
        seen = set()
        for op, name in enumerate(before.ops.name):
            span = (before.ops.start[op], before.ops.end[op])
            if span in seen:
                # The second line of one physical operation.
                continue
            seen.add(span)
            ns = (after.ops.end[op] - after.ops.start[op]) - (span[1] - span[0])
            changes[name] = changes.get(name, 0) + ns
        changes[GAPS] = changed - sum(changes.values())
        ops = sorted(
            ((name, ns) for name, ns in changes.items() if ns), key=lambda pair: (-abs(pair[1]), pair[0])
        )
        of_ranks.append(RankDifference(before.number, before.last_ns, after.last_ns, tuple(ops)))
    return of_ranks
