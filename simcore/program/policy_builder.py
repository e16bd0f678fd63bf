"""Builds the step of one rank in dialect astra-sim-1: states, collectives with priorities, waits."""

from __future__ import annotations

from array import array

from simcore.program.ops import FWD, IG, WG, Join, OpRun, Ops, Pause, StageProgram, Wait
from simcore.program.plan import Plan, RowBuilder
from simcore.workload import Cells

STATE_CHANGE_NS = 1
# How a collective is queued: as the system file says, newest first, oldest first, before all others.
BY_SYSTEM, NEWEST, OLDEST, FIRST = range(4)
_HIGHEST = 10**8


class PolicyBuilder:
    """Builds the step of one rank in the order in which its policy's loop calls.

    All collectives are asynchronous; `wait` blocks compute until one is visible: after its end, by as many
    ns as its row's last cell has.
    """

    def __init__(self, plan: Plan, newest_first: bool) -> None:
        self.workload = plan.workload
        self._ops = Ops()
        blocks = enumerate(plan.structure.blocks)
        self._row_ops = RowBuilder(plan, self._ops, {row: block for block, rows in blocks for row in rows})
        self._cells = dict(zip((FWD, IG, WG), (plan.workload.fwd, plan.workload.ig, plan.workload.wg),
                               strict=True))  # fmt: skip
        self._newest_first = newest_first
        self._priority = array("q")
        self._next_priority = 0
        self._runs: list[OpRun] = []
        self._waits: list[Wait] = []
        self._run_start = 0
        self._outstanding: dict[int, None] = {}
        self._pass_ends: list[int] = []
        self._computed: set[tuple[int, int]] = set()
        self._issued: set[tuple[int, int]] = set()

    @property
    def rows(self) -> range:
        """All rows of the file."""
        return range(len(self.workload))

    def compute(self, cell: int, row: int, phase: int | None = None) -> None:
        """Append a compute cell of a row: FWD, IG or WG. phase: what it counts as, if not that."""
        self._row_ops.compute(self._cells[cell], row, cell if phase is None else phase)
        self._computed.add((cell, row))
        self._priority.extend([0] * (len(self._ops) - len(self._priority)))

    def issue(self, cell: int, row: int, preference: int, phase: int | None = None) -> int | None:
        """Issue the collective of a cell. Returns its op, None where it makes none.

        A collective that the file states takes a priority even if no rank takes part in it.
        Priorities: the counter goes up for newest first and down for oldest first, and each
        collective takes the value before the change (ASTRA-sim 1.0).
        """
        cells = self._cells[cell]
        if cells.collective[row] is None:
            return None
        self._issued.add((cell, row))
        priority = self._take_priority(preference)
        before = len(self._ops)
        self._row_ops.collective(cells, row, cell if phase is None else phase, blocking=False)
        if len(self._ops) == before:
            return None
        self._priority.append(priority)
        self._outstanding[before] = None
        return before

    def _take_priority(self, preference: int) -> int:
        if preference == FIRST:
            return _HIGHEST
        priority = self._next_priority
        newest = self._newest_first if preference == BY_SYSTEM else preference == NEWEST
        self._next_priority += 1 if newest else -1
        return priority

    def wait(self, op: int | None) -> None:
        """Block compute until the collective `op` is visible."""
        if op is None:
            return
        self._outstanding.pop(op, None)
        self._wait(self._visible(op))

    def change_state(self) -> None:
        """Go on to the next state of the loop."""
        self._wait(Pause(STATE_CHANGE_NS))

    def end_pass(self) -> None:
        """Mark the end of a pass of the loop."""
        if self._waits or self._run_start < len(self._ops):
            self._close_run()
        self._pass_ends.append(len(self._runs))

    def left_out(self) -> tuple[int, int]:
        """Returns (compute cells, collectives) that the file states and that the policy never runs."""
        computes = collectives = 0
        for cell, cells in self._cells.items():
            for row in self.rows:
                computes += cells.compute_ns[row] > 0 and (cell, row) not in self._computed
                ran = (cell, row) in self._issued and cells.group[row] is not None
                collectives += _is_stated(cells, row) and not ran
        return computes, collectives

    def _visible(self, op: int) -> Join:
        return Join(op, self.workload.process_ns[self._ops.row[op]])

    def _wait(self, wait: Wait) -> None:
        if self._run_start < len(self._ops):
            self._close_run()
        self._waits.append(wait)

    def _close_run(self) -> None:
        self._runs.append(OpRun(self._run_start, len(self._ops), tuple(self._waits)))
        self._run_start = len(self._ops)
        self._waits = []

    def finish(self) -> StageProgram:
        """Returns the rank's program, closed by a join on all outstanding collectives."""
        if self._run_start < len(self._ops):
            self._close_run()
        self._waits += [self._visible(op) for op in self._outstanding]
        self._close_run()
        return StageProgram(self._ops, tuple(self._runs), 1, tuple(self._pass_ends), self._priority)


def _is_stated(cells: Cells, row: int) -> bool:
    return cells.collective[row] is not None and cells.bytes[row] > 0
