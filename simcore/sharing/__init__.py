"""The sharing room: transmissions on ports that others use too, at max-min fair rates.

Knows bytes, ports and time; nothing of ops or ranks. Import from here all that `__all__` names.
"""

from simcore.sharing.port_network import (
    Flow,
    PortNetwork,
    Transmission,
    alone_ns,
    collective_transmission,
    port_capacity,
    transfer_transmission,
)

__all__ = [
    "Flow",
    "PortNetwork",
    "Transmission",
    "alone_ns",
    "collective_transmission",
    "port_capacity",
    "transfer_transmission",
]
