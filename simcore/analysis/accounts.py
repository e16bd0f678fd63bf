"""What the ops of a simulated run are, and the accounts of its stages together."""

from __future__ import annotations

from simcore.collectives import WITH_COPIES
from simcore.folding import RankClass
from simcore.program.ops import (
    CollectiveCost,
    TransferCost,
)
from simcore.records import Struct
from simcore.run.accounts import Accounts
from simcore.simulation import Simulation
from simcore.sources.simulated import ACCOUNTS
from simcore.timeline import Timeline

IDLE_OP = -1


def row_of(simulation: Simulation, number: int, op: int) -> int:
    """The row of the file that an op of class `number` is of, as its accounts write it.

    A transfer is of the SENDRECV that its sender has in the file; -1 where the pipeline sends.
    """
    of, op = simulation.trace.span_of(number, op)
    return simulation.timeline.stage_program(of).ops.row[op]


def op_kind(timeline: Timeline, number: int, op: int, with_group: bool = False) -> str:
    """`compute`, a collective's name, `transfer`, or `idle` for a state change.

    with_group: with the kind of its group before a collective's name.
    """
    if op == IDLE_OP:
        return "idle"
    cost = timeline.program.costs[timeline.stage_program(number).ops.cost[op]]
    if isinstance(cost, CollectiveCost):
        return f"{cost.group} {WITH_COPIES[cost.collective]}" if with_group else WITH_COPIES[cost.collective]
    return "transfer" if isinstance(cost, TransferCost) else "compute"


class StageAccounts(Struct, frozen=True):
    """One pipeline stage. ranks: how many it has. sum_ns: ns by account (index into ACCOUNTS), of all its
    ranks together.
    """

    stage: int
    ranks: int
    sum_ns: tuple[int, ...]


def stage_accounts(classes: tuple[RankClass, ...], accounts: list[Accounts]) -> list[StageAccounts]:
    """The stages of a run, ascending. accounts: of every rank class, by its number."""
    members: dict[int, list[tuple[int, Accounts]]] = {}
    for rank_class, class_accounts in zip(classes, accounts, strict=True):
        members.setdefault(rank_class.stage, []).append((len(rank_class.ranks), class_accounts))
    stages = []
    for stage, pairs in sorted(members.items()):
        sums = [0] * len(ACCOUNTS)
        for count, class_accounts in pairs:
            for account, ns in enumerate(class_accounts.total_ns):
                sums[account] += count * ns
        stages.append(StageAccounts(stage, sum(count for count, _ in pairs), tuple(sums)))
    return stages
