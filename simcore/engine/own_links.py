"""Groups whose links are theirs alone: what their collectives take is known before the run.

Such are groups inside a server whose rank class sends nothing else there. Their collectives need no queue of
flows: of 14,900 transmissions of 1,024 ranks on balanced paths 14,400 are of this kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from simcore.engine.event_queue import Times
from simcore.folding import Folding
from simcore.networks.model import ClassTransmission, KnownPaths
from simcore.program import Program
from simcore.program.ops import COMPUTE, KIND_OF_STREAM, OFFLOAD, TO_NEXT, TransferCost


class OwnLinks:
    """The groups of a run whose links are theirs alone. durations: by rank class, with what their collectives
    take, in the column of the first class of each.
    """

    def __init__(
        self,
        program: Program,
        folding: Folding,
        durations: Sequence[Sequence[int]],
        traffic_of: Callable[[int, int], Any],
        transport: KnownPaths,
    ) -> None:
        """traffic_of: what an op moves, of (rank class, op)."""
        self._transport = transport
        # By group its transmissions with the ops of its first class; transfers are of none.
        ops_of: dict[int | None, list[tuple[ClassTransmission, list[int]]]] = {}
        steps = [cost.step if isinstance(cost, TransferCost) else 0 for cost in program.costs]
        for class_id, rank_class in enumerate(folding.classes):
            ops = program.stages[rank_class.stage].ops
            equal_ops: dict[tuple[int, int, Any], list[int]] = {}
            for op, stream in enumerate(ops.stream):
                if stream not in (COMPUTE, OFFLOAD):
                    equal_ops.setdefault((stream, ops.cost[op], traffic_of(class_id, op)), []).append(op)
            for (stream, cost, payload), of_class in equal_ops.items():
                if stream >= TO_NEXT:
                    receivers = (rank_class.links[steps[cost]].neighbour,)
                    what = ClassTransmission(payload, (class_id,), receivers, stream)
                    ops_of.setdefault(None, []).append((what, of_class))
                    continue
                group = rank_class.groups[KIND_OF_STREAM[stream]]
                members = tuple(sorted(folding.group_classes[group].members))
                if members[0] == class_id:
                    what = ClassTransmission(payload, members, members, stream)
                    ops_of.setdefault(group, []).append((what, of_class))
        links = {
            group: {link for what, _ in of_group for link in transport.links_of(what)}
            for group, of_group in ops_of.items()
        }
        users = Counter(link for of_group in links.values() for link in of_group)
        self._own = {
            group: of_group
            for group, of_group in ops_of.items()
            if group is not None and all(users[link] == 1 for link in links[group])
        }
        columns = list(durations)
        for of_group in self._own.values():
            class_id = of_group[0][0].senders[0]
            column = columns[class_id] = list(columns[class_id])
            for what, of_class in of_group:
                alone_ns = transport.alone_ns(what)
                for op in of_class:
                    column[op] = alone_ns
        self.durations = columns

    @property
    def groups(self) -> frozenset[int]:
        """These groups."""
        return frozenset(group for group in self._own if group is not None)

    def carry(self, times: Times) -> None:
        """Puts the collectives of these groups on their links, at the times of a run."""
        for of_group in self._own.values():
            for what, of_class in of_group:
                start = times.start[what.senders[0]]
                self._transport.carry_alone(what, [start[op] for op in of_class])
