"""Who waits for whom: members of a collective that are early, and the one that is late."""

from __future__ import annotations

from simcore.analysis.accounts import WAIT, Accounts
from simcore.program.ops import KIND_OF_STREAM
from simcore.records import Struct
from simcore.timeline import Timeline
from simcore.workload.model import GroupKind


class Waiting(Struct, frozen=True):
    """Class `early` waits `ns` in a step, on each of its ranks, for class `late`.

    In collectives of their groups of kind `kind`; late is the member class that waits least, the first
    of those that wait equally little, which are `all_late`.
    """

    early: int
    late: int
    kind: GroupKind
    ns: int
    all_late: tuple[int, ...]


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
        least = min(waited.get((group, member), 0) for member in group_class.members)
        late = tuple(one for one in group_class.members if waited.get((group, one), 0) == least)
        if number not in late:
            found.append(Waiting(number, late[0], group_class.kind, ns, late))
    return sorted(found, key=lambda one: (-one.ns, one.early))
