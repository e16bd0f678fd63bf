"""The base of networks that simulate a collective alone, message by message, to price it."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.cluster import GroupShape, group_ranks
from simcore.networks.analytical import Analytical
from simcore.networks.model import GroupCollective
from simcore.records import field


class SimulatedAlone(Analytical):
    """A network in which a collective takes what it takes on idle links, simulated once."""

    _alone: dict[tuple[GroupShape, str, int], int] = field(default_factory=dict)

    def collective_ns(self, group_collective: GroupCollective, scale: float = 1.0) -> int:
        key = (group_collective.shape, group_collective.collective, group_collective.size)
        if key not in self._alone:
            ranks = group_ranks(self.cluster, group_collective.shape)
            self._alone[key] = (
                super().collective_ns(group_collective)
                if ranks is None or not group_collective.size
                else self.simulate_alone(ranks, group_collective)
            )
        return round(self._alone[key] * scale)

    def simulate_alone(self, ranks: Sequence[int], group_collective: GroupCollective) -> int:
        """Returns the ns of a collective of these ranks on idle links."""
        raise NotImplementedError
