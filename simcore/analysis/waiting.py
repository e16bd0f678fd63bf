"""Who waits for whom: members of a collective that are early, and the one that is late."""

from __future__ import annotations

from dataclasses import dataclass

from simcore.analysis.accounts import WAIT, Accounts
from simcore.program.ops import KIND_OF_STREAM
from simcore.timeline import Timeline
from simcore.workload.model import GroupKind


@dataclass(frozen=True, slots=True)
class Waiting:
    """Class `early` waits `ns` in a step, on each of its ranks, for class `late`.

    In collectives of their groups of kind `kind`; late is the member class that waits least.
    """

    early: int
    late: int
    kind: GroupKind
    ns: int


def who_waits(timeline: Timeline, accounts: list[Accounts]) -> list[Waiting]:
    """Who waits for whom, the longest wait first; ties in the order of the classes."""
    waited: dict[tuple[int, int], int] = {}
    for number, one in enumerate(accounts):
        if not one.wait_ns:
            continue
        ops, _, _ = timeline.columns(number)
        groups = timeline.classes[number].groups
        for segment, account in enumerate(one.account):
            if account == WAIT:
                group = groups[KIND_OF_STREAM[ops.stream[one.op[segment]]]]
                key = (group, number)
                waited[key] = waited.get(key, 0) + one.edge[segment + 1] - one.edge[segment]
    found = []
    for (group, number), ns in waited.items():
        group_class = timeline.folding.group_classes[group]
        late = min(group_class.members, key=lambda member: waited.get((group, member), 0))
        if late != number:
            found.append(Waiting(number, late, group_class.kind, ns))
    return sorted(found, key=lambda one: (-one.ns, one.early))
