"""How long a measured step would be with one duration changed at a time, as replays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import Cancelled, UsageError
from simcore.measured.vocabulary import COMPUTE, COPY
from simcore.parameters import Parameters
from simcore.ranks import RankSet
from simcore.records import replace
from simcore.replay.parameters import Replay, Scales, kind_words, parameters_of
from simcore.replay.product_use import MeasuredStep
from simcore.replay.stragglers import (
    LEAST,
    compute_by_stage,
    even_factors,
    find_balance_gain,
    find_slow_ranks,
    find_stragglers,
    on_time_scales,
)
from simcore.sources.measured import EXPOSED
from simcore.trace.changes import Change, ChangeOutcome, Trials
from simcore.trace.findings import WhatIf
from simcore.trace.knobs import BETTER, Knob, Search, sort_by_gain
from simcore.units import change_percent, duration

if TYPE_CHECKING:
    from simcore.replay.replayed_run import ReplayedRun

_MOST_RANKS = 16
_MOST_KERNELS = 12
_NO_PARTNER = "who it is with is not in this run: how much of it is waiting is not known"
# What is assumed of a rank that arrives last at collectives.
_LATE = " on time, as its peers"
# What is assumed of a slow rank, and what that and balancing mean.
AS_FAST = " as fast as "
_PEER = "assumed: the recorded order, and one factor on all compute of the rank"
_PEERS = f"{_PEER}, to the median of its stage"
_BALANCED = "balanced stages: each computes as long as the mean of all, some longer than now"
_ON_TIME = "assumed: the recorded order; compute and host gaps, a factor each, to the others' median"


def what_if(
    results: ReplayedRun,
    progress: Callable[[int, int], None] = lambda count, total: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[WhatIf]:
    """Returns what can be changed in a run and how much it matters, on top of the scales that it has: first
    the changes that are made or not, then 10 % less time on one thing; the greatest gain first.

    All are replays, to be compared with `results.base`. Only `balanced stages` moves work; all others reduce
    it or leave it.

    progress(count, total): called before each change and at the end. Raises `UsageError` for an order without
    times, `Cancelled` when `cancelled()` becomes true.
    """
    if not results.timed:
        raise UsageError(
            "--what-if: found an order of operations without times, expected a trace with durations"
        )
    replay = results.base
    base = replay.scales or Scales()
    rows = []
    search = Search(0, progress, cancelled)

    def step_ns(scales: Scales) -> int:
        if cancelled():
            raise Cancelled
        return results.with_scales(base.times(scales)).step_time_ns

    def scales_of(change: Change) -> Scales:
        return Replay(results.measured, Parameters(**change.fields)).scales or Scales()

    step = results.parameters.part(MeasuredStep)
    knobs = list(_knobs(results, step_ns, lambda scales: parameters_of(base.times(scales), step)))
    changes = list(_changes(results))
    search.total = len(knobs) + len(changes)
    for knob in knobs:
        search.begin_next()
        rows.append(knob.sensitivity(replay.step_time_ns))
    trials = Trials(replay.step_time_ns, lambda change: ChangeOutcome(step_ns(scales_of(change))), search)
    for change in trials.keep_possible(changes):
        row, parameters = trials.make_row(change), parameters_of(base.times(scales_of(change)), step)
        # It is a change that somebody can make if it gains.
        rows.append(
            replace(row, parameters=parameters, flags=row.flags if trials.is_worthwhile(change) else "")
        )
    search.end()
    ranked = sort_by_gain(row for row in rows if row is not None)
    return sorted(ranked, key=lambda row: row.list)


def _knobs(
    results: ReplayedRun, step_ns: Callable[[Scales], int], to_parameters: Callable[[Scales], Parameters]
) -> Iterator[Knob]:
    """Yields what takes time in a run.

    step_ns, to_parameters: the step and the parameters with further scales on top of those of the run.
    """

    def knob(name: str, field: str, *of: Any, has_worse: bool = False, still: str = "") -> Knob:
        # of: the key of the factor in a field that has many.
        def scales(factor: float) -> Scales:
            value: Any = dict.fromkeys(of, factor) if of else factor
            return Scales(**{field: value})

        return Knob(
            name, lambda factor: step_ns(scales(factor)), to_parameters(scales(BETTER)), has_worse, still
        )

    def alone(kinds: Collection[str]) -> str:
        # Communication without a partner takes its measured time, whatever its scale.
        return _NO_PARTNER if kinds else ""

    run, replay, kinds = results.measured, results.base, results.partners.kinds
    yield knob("all compute", "compute")
    yield knob("all communication", "comm", still=alone(kinds))
    yield knob("host gaps", "gaps")
    names: dict[str, str] = {}
    for rank in run.ranks:
        for op, name in enumerate(rank.ops.name):
            if name not in names:
                names[name] = rank.ops.category(op)
    for name, category in _longest_operations(results, names).items():
        if category in (*COMPUTE, "host"):
            yield knob(name, "ops", name)
    for kind in EXPOSED:
        if any(account.ns(f"exposed {kind}") for account in replay.accounts):
            still = "" if kind == COPY else alone(kinds & {kind})
            yield knob(kind_words(kind), "kinds", kind, still=still)
    stages = compute_by_stage(replay)
    if len(stages) > 1:
        for stage in stages:
            yield knob(f"compute of stage {stage}", "stages", stage)
    compute = {rank: ns for ranks in stages.values() for rank, ns in ranks.items()}
    # With a single rank this equals all compute, which is tried above.
    slowest = sorted(compute, key=lambda rank: (-compute[rank], rank))[: _MOST_RANKS * (len(compute) > 1)]
    for slow in sorted(slowest):
        yield knob(f"compute of rank {slow}", "ranks", slow, has_worse=True)


def _change(scales: Scales, words: str, moves: str = "", meaning: str = "") -> Change:
    return Change(parameters_of(scales).explicit_values(), words, moves=moves, meaning=meaning)


def _changes(results: ReplayedRun) -> Iterator[Change]:
    """Yields the changes that are made or not, on top of the scales of a run; each is a family of its own."""
    replay = results.base
    stages = compute_by_stage(replay)
    if len(stages) > 1:
        yield _balanced(replay, Scales(stages=even_factors(stages)))
    for slow_rank in find_slow_ranks(results):
        what = f"its compute {duration(slow_rank.ns)} -> {duration(slow_rank.peers_ns)}"
        name = f"rank {slow_rank.rank}{AS_FAST}{slow_rank.peers_words} ({what})"
        meaning = _PEERS if len(slow_rank.peers) > 1 else _PEER
        yield _change(slow_rank.scales, name, meaning=meaning)
    peers = dict(zip((rank.rank for rank in results.measured.ranks), results.peers, strict=True))
    for late in find_stragglers(results):
        if peers[late.rank]:
            yield _change(on_time_scales(results, late.rank)[0], f"rank {late.rank}{_LATE}", meaning=_ON_TIME)


def _balanced(replay: ReplayedRun, even: Scales) -> Change:
    """Returns the change to balanced stages, and how much of its gain is work taken off slow ranks."""
    moves, meaning = "work moved between them", _BALANCED
    gain = find_balance_gain(replay)
    if gain is not None:
        left = change_percent(gain.before_ns, gain.after_ns)
        brings = left if left.startswith("-") else "nothing"
        once = f"once {gain.once}, it brings {brings}"
        meaning = f"balanced stages: takes work off slow ranks too; {once}"
        slow = find_slow_ranks(replay)
        is_taken = all(even.stages[rank.stage] < 1 for rank in slow)
        if is_taken and gain.before_ns - gain.after_ns < replay.step_time_ns * LEAST:
            moves = f"takes work off slow {RankSet.of(rank.rank for rank in slow).of_world(0)}"
            meaning = f"balanced stages: {once}"
    return _change(even, "balanced stages", moves, meaning)


def _longest_operations(results: ReplayedRun, names: dict[str, str]) -> dict[str, str]:
    """Returns the operations that are tried; of a device, which has a thousand kernels, those that take most
    time.
    """
    if not results.measured.of_devices:
        return names
    time_ns: dict[str, int] = {}
    for rank in results.measured.ranks:
        for name, start, end in zip(rank.ops.name, rank.ops.start, rank.ops.end, strict=True):
            time_ns[name] = time_ns.get(name, 0) + end - start
    compute = [name for name, category in names.items() if category in COMPUTE]
    most = sorted(compute, key=lambda name: (-time_ns[name], name))[:_MOST_KERNELS]
    return {name: names[name] for name in most}


def balanced(results: ReplayedRun) -> Scales:
    """Returns the scales of a run times those that make all stages compute equally long.

    Raises `UsageError` where there is a single stage.
    """
    stages = compute_by_stage(results)
    if len(stages) < 2:
        raise UsageError("one stage alone cannot be balanced: found ranks of a single stage")
    return (results.scales or Scales()).times(Scales(stages=even_factors(stages)))
