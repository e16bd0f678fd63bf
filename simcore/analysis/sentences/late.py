"""Gradient reductions at the end of the step, which no backward is left to hide."""

from __future__ import annotations

from simcore.analysis.accounts import FIRST_EXPOSED, WAIT, Accounts
from simcore.program.ops import COMPUTE, WG, CollectiveCost
from simcore.simulation import Simulation

_GRADIENT_KINDS = ("dp", "dp_ep", "all")
_REDUCES = ("ALLREDUCE", "REDUCESCATTER")

# By kind and op: exposed ns of gradient reductions after the last backward.
Late = dict[str, dict[int, int]]


def late_reductions(simulation: Simulation, number: int, accounts: Accounts) -> Late:
    """What of the gradient reductions of class `number`, which has these accounts, is exposed after its
    last backward.
    """
    ops = simulation.timeline.stage_program(number).ops
    costs = simulation.program.costs
    structure = simulation.program.structure
    outside = {*structure.prologue, *structure.tail}
    last = len(accounts.account)
    # Rows of the end of the step compute a little too: they are no backward.
    while last and (accounts.account[last - 1] > WG or ops.row[accounts.op[last - 1]] in outside):
        last -= 1
    found: Late = {}
    for segment in range(last, len(accounts.account)):
        op = accounts.op[segment]
        if op < 0 or not FIRST_EXPOSED <= accounts.account[segment] < WAIT or ops.stream[op] == COMPUTE:
            continue
        cost = costs[ops.cost[op]]
        if not isinstance(cost, CollectiveCost) or ops.phase[op] != WG or cost.collective not in _REDUCES:
            continue
        if cost.group in _GRADIENT_KINDS:
            of_kind = found.setdefault(cost.group, {})
            of_kind[op] = of_kind.get(op, 0) + accounts.edge[segment + 1] - accounts.edge[segment]
    return found
