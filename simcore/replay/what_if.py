"""What would a measured step take if: one thing at a time replayed with other durations."""

from __future__ import annotations

from collections.abc import Callable

from simcore.diagnostics import Cancelled, UsageError
from simcore.measured.vocabulary import COMPUTE, category_of_op
from simcore.parameters import Parameters
from simcore.records import Struct, replace
from simcore.replay.accounts import EXPOSED
from simcore.replay.parameters import parameters_of
from simcore.replay.results import MeasuredResults
from simcore.replay.scales import Scales, rounded
from simcore.replay.slow_ranks import compute_by_stage, slow_ranks

# Time divided by this is what is 10 % faster; a slowed rank takes 10 % longer.
_BETTER, _WORSE = 0.9, 1.1
_MOST_RANKS = 16
_NO_PARTNER = "who it is with is not in this run: how much of it is waiting is not known"
# What a rank that is slow is asked.
AS_PEERS = " as fast as its peers"


class Knob(Struct, frozen=True):
    """One thing changed. free_ns: the step time when it takes no time, better10_ns: when it takes a tenth
    less; for a change that is made or not (`balanced stages`, `rank 7 as fast as its peers`) the step time
    with it, free_ns None. worse10_ns: with a tenth more, of single ranks; else None. scales: those of
    `better10_ns`. moves: whether it gives work to some that it takes from others, so that the step may be
    longer; all others only take work away, and no step is longer than that of `MeasuredResults.base`.
    unknown: why nobody knows these times, which are then those of the step as it is; "" where they are known.
    """

    name: str
    free_ns: int | None
    better10_ns: int
    scales: Scales
    worse10_ns: int | None = None
    moves: bool = False
    unknown: str = ""

    @property
    def knob(self) -> str:
        """The name as tables have it: a change that moves work says so."""
        return f"{self.name} (moves work)" if self.moves else self.name

    @property
    def parameters(self) -> Parameters:
        """Those that ask for its replay."""
        return parameters_of(self.scales)

    @property
    def anomaly(self) -> bool:
        """Never: nothing shares a replay's time with anything, so what is shorter makes nothing longer."""
        return False

    @property
    def best_ns(self) -> int:
        """The least step time that this can bring."""
        return self.better10_ns if self.free_ns is None else min(self.free_ns, self.better10_ns)


def answers(results: MeasuredResults, cancelled: Callable[[], bool] = lambda: False) -> list[Knob]:
    """The knobs of a run, each beside the scales that the run has, the greatest gain first: by `better10_ns`,
    then by `best_ns`, as the table of a simulated run. So a change that is made or not stands with all that
    it gains between others with a tenth of what they take. All are replays, as is `results.base`, which they
    are to be held against.

    Raises `UsageError` for an order without times, `Cancelled` when `cancelled()` becomes true.
    """
    run = results.measured
    if not run.timed:
        raise UsageError(
            "--what-if: found an order of operations without times, expected a trace with durations"
        )
    replay = results.base
    base = replay.scales or Scales()

    def step(scales: Scales) -> int:
        if cancelled():
            raise Cancelled
        return results.with_scales(base.times(scales)).step_time_ns

    def knob(
        name: str, free: Scales | None, better: Scales, worse: Scales | None = None, moves: bool = False
    ) -> Knob:
        return Knob(
            name,
            None if free is None else step(free),
            step(better),
            base.times(better),
            None if worse is None else step(worse),
            moves,
        )

    def communication(name: str, kind: str | None, free: Scales, better: Scales) -> Knob:
        """Of one kind, None for all. Without a partner it takes what was measured, whatever its scale."""
        found = knob(name, free, better)
        alone = results.partners.kinds if kind is None else results.partners.kinds & {kind}
        same = found.free_ns == found.better10_ns == replay.step_time_ns
        return replace(found, unknown=_NO_PARTNER) if same and alone else found

    knobs = [
        knob("all compute", Scales(compute=0), Scales(compute=_BETTER)),
        communication("all communication", None, Scales(comm=0), Scales(comm=_BETTER)),
        knob("host gaps", Scales(gaps=0), Scales(gaps=_BETTER)),
    ]
    names: dict[str, str] = {}
    for rank in run.ranks:
        for name, group in zip(rank.ops.name, rank.ops.group, strict=True):
            names.setdefault(name, category_of_op(name, group))
    for name, category in names.items():
        if category in (*COMPUTE, "host"):
            knobs.append(knob(name, Scales(ops={name: 0.0}), Scales(ops={name: _BETTER})))
    for kind in EXPOSED:
        if any(one.ns(f"exposed {kind}") for one in replay.accounts):
            free, better = Scales(kinds={kind: 0.0}), Scales(kinds={kind: _BETTER})
            knobs.append(communication(f"{kind} communication", kind, free, better))
    stages = compute_by_stage(replay)
    if len(stages) > 1:
        for stage in stages:
            free, better = Scales(stages={stage: 0.0}), Scales(stages={stage: _BETTER})
            knobs.append(knob(f"compute of stage {stage}", free, better))
        knobs.append(knob("balanced stages", None, Scales(stages=_even(stages)), moves=True))
    compute = {number: ns for ranks in stages.values() for number, ns in ranks.items()}
    slowest = sorted(compute, key=lambda number: (-compute[number], number))[:_MOST_RANKS]
    for number in sorted(slowest):
        free, better, worse = (Scales(ranks={number: factor}) for factor in (0.0, _BETTER, _WORSE))
        knobs.append(knob(f"compute of rank {number}", free, better, worse))
    for one in slow_ranks(results):
        as_peers = Scales(ranks={one.rank: rounded(one.peers_ns / one.ns)})
        knobs.append(knob(f"rank {one.rank}{AS_PEERS}", None, as_peers))
    return sorted(knobs, key=lambda knob: (knob.better10_ns, knob.best_ns, knob.name))


def balanced(results: MeasuredResults) -> Scales:
    """The scales of a run and, beside them, those that make all stages compute equally long.

    Raises `UsageError` where there is one stage alone.
    """
    stages = compute_by_stage(results)
    if len(stages) < 2:
        raise UsageError("one stage alone cannot be balanced: found ranks of a single stage")
    return (results.scales or Scales()).times(Scales(stages=_even(stages)))


def _even(stages: dict[int | None, dict[int, int]]) -> dict[int | None, float]:
    """Stage -> the factor with which its ranks compute as long as those of all stages do on average."""
    means = {stage: sum(ranks.values()) / len(ranks) for stage, ranks in stages.items()}
    mean = sum(means.values()) / len(means)
    return {stage: mean / own if own else 1.0 for stage, own in means.items()}
