"""The parts of B - A: the difference of two critical paths by account, and what each path consists of.

The path of a pipeline runs passes of micro-batches in addition to those that a rank runs itself: fill and
drain. Where these change, and not the passes of ranks, the part is named after them, whatever the passes
consist of; in the JSON it has the account that ranks have meanwhile, the bubble.
"""

from __future__ import annotations

from collections.abc import Mapping

from simcore.analysis.accounts import IDLE_OP
from simcore.comparison.changes import BUSY, AccountChange, AccountPart
from simcore.comparison.matching import ClassPair
from simcore.program.ops import COMPUTE, STREAMS, TO_NEXT, Ops
from simcore.records import NamedTuple, Struct, field
from simcore.runs.simulated import SimulatedRun
from simcore.sources.simulated import ACCOUNTS, FIRST_EXPOSED
from simcore.trace.critical_path import sum_by_part
from simcore.units import signed_duration
from simcore.workload.model import base_name

WAIT_ACCOUNT, BUBBLE_ACCOUNT, IDLE_ACCOUNT = ACCOUNTS[-3:]
# Compute is one account here, whatever its phase.
PART_ACCOUNTS = (BUSY, *ACCOUNTS[FIRST_EXPOSED:])
# The name of the part of a path that runs while ranks have these accounts.
_ON_PATHS = {BUBBLE_ACCOUNT: "fill and drain", WAIT_ACCOUNT: "compute of slower ranks"}


class PathPart(AccountPart):
    """A part of the difference of two critical paths.

    A path runs passes while ranks have bubbles: such a part is not named after the account of ranks, which
    has another figure in their tables.
    """

    __slots__ = ()

    @property
    def words(self) -> str:
        """The part in words: `fill and drain -4.080 s`."""
        return f"{_ON_PATHS.get(self.account, self.account)} {signed_duration(self.ns)}"


class OwnCompute(PathPart):
    """The compute of a path without fill and drain, which is compute of micro-batches, too.

    It counts what a rank runs itself, and no sum by kind of a path has that figure.
    """

    __slots__ = ()

    @property
    def words(self) -> str:
        """The part in words: `own compute -6.135 ms`."""
        return f"own {self.account} {signed_duration(self.ns)}"


class _Cell(NamedTuple):
    """The key of equal work in passes: rows of one name without digits, in one phase."""

    account: str
    name: str
    phase: int


class _CellWork(Struct):
    """The ops of a cell, and their total duration, ns."""

    ops: int = 0
    ns: int = 0

    def add(self, ns: int) -> None:
        self.ops += 1
        self.ns += ns

    @property
    def each_ns(self) -> float:
        """The mean duration of an op, ns; 0 without ops."""
        return self.ns / self.ops if self.ops else 0.0


_NOTHING = _CellWork()


class _Path(Struct):
    """The sums over a critical path."""

    ns: dict[str, int] = field(default_factory=dict)
    """ns by account."""
    passes: dict[_Cell, _CellWork] = field(default_factory=dict)
    """The work of micro-batches by cell."""
    computed: dict[int, int] = field(default_factory=dict)
    """Compute by rank class, ns."""


def find_difference_parts(a: SimulatedRun, b: SimulatedRun, pairs: list[ClassPair]) -> list[AccountPart]:
    """Returns B - A by account, the largest part first; the parts sum to it to the nanosecond.

    pairs: the classes with ranks in common. Compute has a part only where some rank computes more or less;
    otherwise what the two paths differ by in compute is fill and drain (`bubble`) or, without a pipeline,
    that one of them goes through a slower rank, which the others wait for (`wait`).
    """
    sides = _sum_path(a), _sum_path(b)
    has_pipeline = is_pipeline(a) or is_pipeline(b)
    ns_of = dict.fromkeys(PART_ACCOUNTS, 0)
    for sign, side in zip((-1, 1), sides, strict=True):
        for account, ns in side.ns.items():
            ns_of[account] += sign * ns
    fill_ns = _find_fill_and_drain(a, b, _find_longest_pair(pairs, sides), sides) if has_pipeline else {}
    if compute_is_equal(a, b, pairs):
        fill_ns[BUSY] = ns_of[BUSY]
    for account, ns in fill_ns.items():
        ns_of[account] -= ns
        ns_of[BUBBLE_ACCOUNT if has_pipeline else WAIT_ACCOUNT] += ns
    # `Why` names both where neither is twice as much as the other.
    compute_part = OwnCompute if 2 * abs(ns_of[BUBBLE_ACCOUNT]) >= abs(ns_of[BUSY]) else PathPart
    parts = (
        (compute_part if account == BUSY else PathPart)(account, ns) for account, ns in ns_of.items() if ns
    )
    return sorted(parts, key=lambda part: -abs(part.ns))


def is_pipeline(results: SimulatedRun) -> bool:
    """Returns whether stages of the run wait for each other."""
    simulation = results.simulation
    return simulation.layout.pp > 1 and simulation.program.has_pipeline_schedule


def compute_is_equal(a: SimulatedRun, b: SimulatedRun, pairs: list[ClassPair]) -> bool:
    """Returns whether each rank computes as long in B as in A.

    Ranks of equal positions are compared or, where the degrees differ, all ranks of both.
    """
    here, there = a.simulation.layout, b.simulation.layout
    if (here.tp, here.dp, here.pp) == (there.tp, there.dp, there.pp):
        return all(a.accounts[pair.a].busy_ns == b.accounts[pair.b].busy_ns for pair in pairs)
    return len({account.busy_ns for side in (a, b) for account in side.accounts}) == 1


def _sum_path(results: SimulatedRun) -> _Path:
    """Returns the sums over the critical path: by account, and over its passes.

    The passes are ops of micro-batches that compute, or that compute waits for.
    """
    path, timeline = results.critical_path, results.simulation.timeline
    names = [*map(base_name, results.simulation.workload.name), ""]
    sums = _Path()
    # The class whose compute the path went through last: a collective that follows is on the path of any of
    # its members.
    compute_class = path.track[0] if len(path) else 0
    for index, (class_id, op) in enumerate(zip(path.track, path.span, strict=True)):
        ns = path.edge[index + 1] - path.edge[index]
        if op == IDLE_OP:
            sums.ns[IDLE_ACCOUNT] = sums.ns.get(IDLE_ACCOUNT, 0) + ns
            continue
        ops = timeline.stage_program(class_id).ops
        account = _account_of_stream(ops.stream[op])
        hidden = 0
        if account == BUSY:
            compute_class = class_id
            sums.computed[class_id] = sums.computed.get(class_id, 0) + ns
        elif ops.stream[op] < TO_NEXT and not ops.blocking[op]:
            hidden = _computed_ns(results, compute_class, path.edge[index], path.edge[index + 1])
            sums.ns[BUSY] = sums.ns.get(BUSY, 0) + hidden
        sums.ns[account] = sums.ns.get(account, 0) + ns - hidden
        if _is_of_pass(ops, op):
            cell = _Cell(account, names[ops.row[op]], ops.phase[op])
            sums.passes.setdefault(cell, _CellWork()).add(ns)
    return sums


def _find_fill_and_drain(
    a: SimulatedRun, b: SimulatedRun, pair: ClassPair, sides: tuple[_Path, _Path]
) -> dict[str, int]:
    """Returns how many ns by account the path of B runs more than that of A in passes that a rank does not
    run itself.

    pair: the ranks whose passes are subtracted. Only passes that one of the two has more are counted, at
    their duration there: where passes that both have take longer, the pipeline is not the cause.
    """
    own_passes = _find_own_passes(a, pair.a), _find_own_passes(b, pair.b)
    ns_of: dict[str, float] = {}
    # Sorted, so that swapping A and B only changes the sign of the sums of floats.
    for cell in sorted({*sides[0].passes, *sides[1].passes}):
        works = [
            (path.passes.get(cell, _NOTHING), own_work.get(cell, _NOTHING))
            for path, own_work in zip(sides, own_passes, strict=True)
        ]
        if any(own_work.ops and not own_work.ns for _, own_work in works):
            # Ops without time are on no path, however often they run.
            continue
        extra_ops = [on_path.ops - own_work.ops for on_path, own_work in works]
        common_ops = _common_count(*extra_ops)
        a_ns, b_ns = (
            (row_more - common_ops) * (on_path.each_ns or own_work.each_ns)
            for row_more, (on_path, own_work) in zip(extra_ops, works, strict=True)
        )
        ns_of[cell.account] = ns_of.get(cell.account, 0.0) + b_ns - a_ns
    return {account: round(ns) for account, ns in ns_of.items()}


def _common_count(a: int, b: int) -> int:
    """Returns what two counts, which may be below 0, have in common."""
    if a > 0 < b:
        return min(a, b)
    return max(a, b) if a < 0 > b else 0


def _computed_ns(results: SimulatedRun, class_id: int, start_ns: int, end_ns: int) -> int:
    """Returns how long a class computes from start_ns to end_ns."""
    accounts = results.accounts[class_id]
    computed_ns = 0
    for index in range(accounts.at(start_ns), accounts.at(end_ns) + 1):
        if accounts.account[index] < FIRST_EXPOSED:
            computed_ns += max(0, min(accounts.edge[index + 1], end_ns) - max(accounts.edge[index], start_ns))
    return computed_ns


def _find_own_passes(results: SimulatedRun, class_id: int) -> dict[_Cell, _CellWork]:
    """Returns the work of micro-batches that a rank of a class runs, by cell."""
    ops, start, end = results.simulation.timeline.columns(class_id)
    names = [*map(base_name, results.simulation.workload.name), ""]
    own_passes: dict[_Cell, _CellWork] = {}
    for op in range(len(ops)):
        if _is_of_pass(ops, op):
            cell = _Cell(_account_of_stream(ops.stream[op]), names[ops.row[op]], ops.phase[op])
            own_passes.setdefault(cell, _CellWork()).add(end[op] - start[op])
    return own_passes


def _find_longest_pair(pairs: list[ClassPair], sides: tuple[_Path, _Path]) -> ClassPair:
    """Returns the ranks on which the two paths compute longest."""
    a, b = (side.computed for side in sides)
    return max(
        pairs,
        key=lambda pair: (a.get(pair.a, 0) + b.get(pair.b, 0), [-coordinate for coordinate in pair.first]),
    )


def _is_of_pass(ops: Ops, op: int) -> bool:
    """Returns whether an op is of a micro-batch and holds its pass up; transfers run between passes."""
    return ops.microbatch[op] >= 0 and ops.stream[op] < TO_NEXT and (
        ops.stream[op] == COMPUTE or ops.blocking[op] == 1
    )  # fmt: skip


def _account_of_stream(stream: int) -> str:
    """Returns the account of a segment of a path, by its op's stream: nothing hides what is on a path."""
    if stream == COMPUTE:
        return BUSY
    return f"exposed {STREAMS[stream] if stream < TO_NEXT else 'pp'}"


class PathChanges(NamedTuple):
    """The changes of both critical paths, ns, each list with the largest change first, then the
    longest part.
    """

    kind: list[AccountChange]
    """By kind of segment."""
    stage: list[AccountChange]
    """By stage; the name is its number."""
    layer: list[AccountChange]
    """By name of rows without digits, as `critical_by_layer`."""


def find_path_changes(a: SimulatedRun, b: SimulatedRun) -> PathChanges:
    """Returns the changes of two critical paths; each list sums to the step times of the two runs."""
    return PathChanges(
        _account_changes(*(sum_by_part(side.critical_path, side.path_source.kind) for side in (a, b))),
        _account_changes(*(_sum_by_stage(side) for side in (a, b))),
        _account_changes(a.critical_by_layer, b.critical_by_layer),
    )


def _sum_by_stage(results: SimulatedRun) -> dict[int, int]:
    return sum_by_part(results.critical_path, lambda track, span: results.path_source.stage(track))


def _account_changes(
    a: Mapping[str, int] | Mapping[int, int], b: Mapping[str, int] | Mapping[int, int]
) -> list[AccountChange]:
    sums = [{str(name): ns for name, ns in side.items()} for side in (a, b)]
    changes = [
        AccountChange(name, sums[0].get(name, 0), sums[1].get(name, 0)) for name in {**sums[0], **sums[1]}
    ]
    return sorted(changes, key=lambda change: (-abs(change.ns), -max(change.a_ns, change.b_ns), change.name))
