"""What would a measured step take if: one thing at a time replayed with other durations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simcore.diagnostics import Cancelled, UsageError
from simcore.measured.vocabulary import COMPUTE, COPY
from simcore.ranks import RankSet
from simcore.records import NamedTuple
from simcore.replay.parameters import Scales, kind_words, parameters_of
from simcore.replay.stragglers import (
    LEAST,
    balanced_beside_slow_ranks,
    compute_by_stage,
    even_factors,
    on_time,
    slow_ranks,
    stragglers,
)
from simcore.sources.measured import EXPOSED
from simcore.trace.findings import WhatIf
from simcore.units import change_percent, duration

if TYPE_CHECKING:
    from simcore.replay.timed import Timed

# Time divided by this is what is 10 % faster; a slowed rank takes 10 % longer.
_BETTER, _WORSE = 0.9, 1.1
_MOST_RANKS = 16
_MOST_KERNELS = 12
_NO_PARTNER = "who it is with is not in this run: how much of it is waiting is not known"
# What a rank that comes last to collectives is asked: to be as its peers are.
_LATE = " on time, as its peers"
# What a rank that is slow is asked, and what that and balancing mean.
AS_FAST = " as fast as "
_PEER = "assumed: the recorded order, and one factor on all compute of the rank"
_PEERS = f"{_PEER}, to the median of its stage"
_BALANCED = "balanced stages: each computes as long as the mean of all, some longer than now"
_ON_TIME = "assumed: the recorded order; compute and host gaps, a factor each, to the others' median"


class _Ask(NamedTuple):
    """A change to be replayed. free: with what it is about at nothing, better: a tenth less, worse: a tenth
    more, each beside what the run has already; None where that is not asked. kind: the kind of communication
    that is changed, "" for all of it, None where it is another thing. meaning: as in `WhatIf`.
    """

    name: str
    free: Scales | None
    better: Scales
    worse: Scales | None = None
    moves: str = ""
    kind: str | None = None
    meaning: str = ""


def what_if(
    results: Timed,
    progress: Callable[[int, int], None] = lambda done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[WhatIf]:
    """What can be changed in a run and what matters in it, beside the scales that it has: first the changes
    that are made or not, then 10 % less time on one thing; the greatest gain first. All are replays, as is
    `results.base`, which they are to be held against; only `balanced stages` moves work, all others take work
    away or leave it.

    progress(done, total): called before each change and when all are done. Raises `UsageError` for an order
    without times, `Cancelled` when `cancelled()` becomes true.
    """
    if not results.timed:
        raise UsageError(
            "--what-if: found an order of operations without times, expected a trace with durations"
        )
    replay = results.base
    base = replay.scales or Scales()

    def step(scales: Scales) -> int:
        if cancelled():
            raise Cancelled
        return results.with_scales(base.times(scales)).step_time_ns

    knobs = []
    asks = _asks(results)
    for done, ask in enumerate(asks):
        progress(done, len(asks))
        free = None if ask.free is None else step(ask.free)
        better = step(ask.better)
        unknown = ""
        if ask.kind is not None and free == better == replay.step_time_ns:
            # Without a partner communication takes what was measured, whatever its scale.
            alone = results.partners.kinds if not ask.kind else results.partners.kinds & {ask.kind}
            unknown = _NO_PARTNER if alone else ""
        worse = None if ask.worse is None else step(ask.worse)
        asked = parameters_of(base.times(ask.better))
        # What is made or not is a change that somebody can make, where it gains.
        is_change = free is None and better < replay.step_time_ns
        flags = " ".join(parameters_of(ask.better).as_flags()) if is_change else ""
        knobs.append(
            WhatIf(
                ask.name,
                free,
                better,
                worse,
                moves=ask.moves,
                unknown=unknown,
                parameters=asked,
                flags=flags,
                meaning=ask.meaning,
            )
        )
    progress(len(asks), len(asks))
    return sorted(knobs, key=lambda knob: (knob.list, knob.better10_ns, knob.best_ns, knob.name))


def _asks(results: Timed) -> list[_Ask]:
    """The changes that there are in a run."""
    run, replay = results.measured, results.base
    asks = [
        _Ask("all compute", Scales(compute=0), Scales(compute=_BETTER)),
        _Ask("all communication", Scales(comm=0), Scales(comm=_BETTER), kind=""),
        _Ask("host gaps", Scales(gaps=0), Scales(gaps=_BETTER)),
    ]
    names: dict[str, str] = {}
    for rank in run.ranks:
        for op, name in enumerate(rank.ops.name):
            if name not in names:
                names[name] = rank.ops.category(op)
    for name, category in _most(results, names).items():
        if category in (*COMPUTE, "host"):
            asks.append(_Ask(name, Scales(ops={name: 0.0}), Scales(ops={name: _BETTER})))
    for kind in EXPOSED:
        if any(account.ns(f"exposed {kind}") for account in replay.accounts):
            free, better = Scales(kinds={kind: 0.0}), Scales(kinds={kind: _BETTER})
            asks.append(_Ask(kind_words(kind), free, better, kind=None if kind == COPY else kind))
    stages = compute_by_stage(replay)
    if len(stages) > 1:
        for stage in stages:
            free, better = Scales(stages={stage: 0.0}), Scales(stages={stage: _BETTER})
            asks.append(_Ask(f"compute of stage {stage}", free, better))
        even = Scales(stages=even_factors(stages))
        asks.append(_balanced(replay, even))
    compute = {rank: ns for ranks in stages.values() for rank, ns in ranks.items()}
    # That of one rank alone is all compute: it is asked once.
    slowest = sorted(compute, key=lambda rank: (-compute[rank], rank))[: _MOST_RANKS * (len(compute) > 1)]
    for slow in sorted(slowest):
        free, better, worse = (Scales(ranks={slow: factor}) for factor in (0.0, _BETTER, _WORSE))
        asks.append(_Ask(f"compute of rank {slow}", free, better, worse))
    for slow_rank in slow_ranks(results):
        what = f"its compute {duration(slow_rank.ns)} -> {duration(slow_rank.peers_ns)}"
        name = f"rank {slow_rank.rank}{AS_FAST}{slow_rank.peers_words} ({what})"
        asks.append(_Ask(name, None, slow_rank.scales, meaning=_PEERS if len(slow_rank.peers) > 1 else _PEER))
    peers = dict(zip((rank.number for rank in run.ranks), results.peers, strict=True))
    return asks + [
        _Ask(f"rank {late.rank}{_LATE}", None, on_time(results, late)[0], meaning=_ON_TIME)
        for late in stragglers(results)
        if peers[late.rank]
    ]


def _balanced(replay: Timed, even: Scales) -> _Ask:
    """Balanced stages, with the factors for them, and how much of their gain is work taken off slow ranks."""
    moves, meaning = "work moved between them", _BALANCED
    beside = balanced_beside_slow_ranks(replay)
    if beside is not None:
        left = change_percent(beside.before_ns, beside.after_ns)
        brings = left if left.startswith("-") else "nothing"
        once = f"once {beside.once}, it brings {brings}"
        meaning = f"balanced stages: takes work off slow ranks too; {once}"
        slow = slow_ranks(replay)
        is_taken = all(even.stages[rank.stage] < 1 for rank in slow)
        if is_taken and beside.before_ns - beside.after_ns < replay.step_time_ns * LEAST:
            moves = f"takes work off slow {RankSet.of(rank.rank for rank in slow).of_world(0)}"
            meaning = f"balanced stages: {once}"
    return _Ask("balanced stages", None, even, moves=moves, meaning=meaning)


def _most(results: Timed, names: dict[str, str]) -> dict[str, str]:
    """The operations that are asked: of a device, which has a thousand kernels, those that take most time."""
    if not results.measured.of_devices:
        return names
    taken: dict[str, int] = {}
    for rank in results.measured.ranks:
        for name, start, end in zip(rank.ops.name, rank.ops.start, rank.ops.end, strict=True):
            taken[name] = taken.get(name, 0) + end - start
    compute = [name for name, category in names.items() if category in COMPUTE]
    most = sorted(compute, key=lambda name: (-taken[name], name))[:_MOST_KERNELS]
    return {name: names[name] for name in most}


def balanced(results: Timed) -> Scales:
    """The scales of a run and, beside them, those that make all stages compute equally long.

    Raises `UsageError` where there is one stage alone.
    """
    stages = compute_by_stage(results)
    if len(stages) < 2:
        raise UsageError("one stage alone cannot be balanced: found ranks of a single stage")
    return (results.scales or Scales()).times(Scales(stages=even_factors(stages)))
