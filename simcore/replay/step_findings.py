"""What is found in the steps of a run: which rank is late and how often, what the job would gain were it as
its peers, and why steps take longer than they need, where one part explains most of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from simcore.diagnostics import Cancelled
from simcore.measured.iterations import cut_iteration
from simcore.measured.selecting import select_columns, select_ops
from simcore.records import Struct, replace
from simcore.replay.parameters import Scales
from simcore.replay.replayed_run import ReplayedRun
from simcore.replay.slowdown import GC, MOST_OPS, AsPeers, Slowdown, make_costs
from simcore.replay.stragglers import on_time_scales

if TYPE_CHECKING:
    from collections.abc import Callable

    from simcore.measured import MeasuredRun
    from simcore.measured.columns import RankTrace
    from simcore.replay.step_table import StepTable

# A part explains a slowdown if most of it goes with that part alone; a smaller slowdown needs no reason.
MOST, LEAST = 0.5, 1.02

PartName: TypeAlias = Literal["rank", "stage", "gc", "sequence", "kind"]


class Cause(Struct, frozen=True):
    """The part that explains most of a slowdown."""

    part: PartName
    which: tuple[int | str, ...]
    """The ranks, the stage or the kind."""
    share: float
    """The part of the slowdown that it explains, 1 for all."""


class StepFindings(Struct, frozen=True):
    """What is found in the steps of a run; None for what is not known, or not so."""

    as_peers: AsPeers | None
    """The run were its slow rank as its peers."""
    slowdown: Slowdown | None
    cause: Cause | None


def find_in_steps(
    run: ReplayedRun, table: StepTable, cancelled: Callable[[], bool], progress: Callable[[int, int], None]
) -> StepFindings:
    """Returns what is found in a run of all steps as measured. progress: takes how many of how many steps
    are replayed. Raises `Cancelled`.
    """
    costs = make_costs(run.measured)
    slowdown = None if costs is None else costs.slowdown()
    slow, as_peers = table.slow_rank, None
    if slow is not None:
        as_peers = (
            _replay_on_time(run, table, slow.rank, cancelled, progress)
            if costs is None
            else costs.as_peers(slow.rank, progress)
        )
    return StepFindings(as_peers, slowdown, None if slowdown is None else find_cause(slowdown))


def find_cause(slowdown: Slowdown) -> Cause | None:
    """Returns the part that explains most of a slowdown; None for a small one, and where no part does."""
    excess = slowdown.total - 1
    if slowdown.total < LEAST:
        return None
    gc_share = (slowdown.by_kind.get(GC, 1.0) - 1) / excess
    uneven_share = (slowdown.uneven - 1) / excess
    shares = slowdown.part_shares
    stage, *others = sorted(shares, key=lambda stage: -shares[stage])
    # Of what all stages have, each has a part of most of it.
    is_alone = bool(others) and shares[others[0]] <= MOST
    if gc_share > MOST:
        return Cause("gc", (GC,), gc_share)
    if uneven_share > MOST:
        return Cause("sequence", (), uneven_share)
    # A slow rank is of a stage, whose share has its part: the smaller of two parts that explain as much.
    if slowdown.m_w > MOST and slowdown.m_w >= MOST * shares[stage]:
        return Cause("rank", slowdown.worst_ranks, slowdown.m_w)
    if shares[stage] > MOST and is_alone:
        return Cause("stage", (stage,), shares[stage])
    kind = max(slowdown.by_kind, key=lambda kind: slowdown.by_kind[kind])
    kind_share = (slowdown.by_kind[kind] - 1) / excess
    return Cause("kind", (kind,), kind_share) if kind_share > MOST else None


def _replay_on_time(
    run: ReplayedRun,
    table: StepTable,
    rank: int,
    cancelled: Callable[[], bool],
    progress: Callable[[int, int], None],
) -> AsPeers | None:
    """Returns the run with a rank that computes, and whose host takes, as long as the median of its peers;
    None where that is not known of any step.
    """
    measured = run.measured
    if measured.ops > MOST_OPS or not measured.concurrent:
        return None
    index = next((at for at, trace in enumerate(measured.ranks) if trace.rank == rank), None)
    if index is None or not run.peers[index]:
        return None
    steps, before, after = [], [], []
    for row, step_number in enumerate(table.steps):
        if cancelled():
            raise Cancelled
        progress(row, len(table))
        of_step = _step_run(measured, step_number)
        if of_step is None:
            continue
        replayed = type(run)(of_step, Scales())
        changed = replayed.with_scales(on_time_scales(replayed, rank)[0])
        gain = replayed.step_time_ns - changed.step_time_ns
        steps.append(step_number)
        before.append(table.ns[row])
        after.append(table.ns[row] - gain)
    return AsPeers(rank, tuple(steps), tuple(before), tuple(after)) if steps else None


def _step_run(run: MeasuredRun, step_number: int) -> MeasuredRun | None:
    """Returns a step of a run of all of them; None where a rank has nothing in it."""
    if run.recorded is None:
        parts = [cut_iteration(rank, step_number) for rank in run.ranks]
        begin = min(part.first_ns for part in parts)
        return replace(run, ranks=tuple(part.shift(-begin) for part in parts), rank_steps=())
    rows = []
    for rank in run.ranks:
        rows.append([op for op, step in enumerate(rank.step or ()) if step == step_number])
        if not rows[-1]:
            return None
    begin = min(rank.ops.start[some[0]] for rank, some in zip(run.ranks, rows, strict=True))
    ranks = [_part_of(rank, some, begin) for rank, some in zip(run.ranks, rows, strict=True)]
    return replace(run, ranks=tuple(ranks), rank_steps=())


def _part_of(rank: RankTrace, rows: list[int], begin: int) -> RankTrace:
    """Returns some operations of a rank in the order of start, on an axis that begins at a time, ns."""
    window = begin, max(rank.ops.end[op] for op in rows)
    device = None if rank.device is None else select_columns(rank.device, rows, window)
    part = replace(rank, ops=select_ops(rank.ops, rows), device=device, window=window, step=None, ahead_ns=0)
    return part.shift(-begin)
