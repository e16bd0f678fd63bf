"""The topology room: nodes and links of a network, where they come from, and the paths through them.

Import from here all that `__all__` names.
"""

from simcore.topology.generators import GENERATORS, generate_topology, is_generator
from simcore.topology.model import Link, Topology
from simcore.topology.packets import PacketRules
from simcore.topology.rates import Ends, missing_link, parse_link_rates, tier_ends, with_link_rates

__all__ = [
    "GENERATORS",
    "Ends",
    "Link",
    "PacketRules",
    "Topology",
    "generate_topology",
    "is_generator",
    "missing_link",
    "parse_link_rates",
    "tier_ends",
    "with_link_rates",
]
