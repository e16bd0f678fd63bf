"""The collectives room: what a collective or a transfer costs on an idle network, in ns.

The `analytical` network model: closed forms per algorithm and dimension, and the chunks that
walk over them. Knows shapes of groups, nothing of who is in them or when they run. Import from
here all that `__all__` names.
"""

from simcore.collectives.phases import NAMES, WITH_COPIES, cell_name, collectives_of
from simcore.collectives.pricing import (
    CompletionTimes,
    algorithm_bandwidth,
    bus_bandwidth,
    collective_ns,
    completion_times,
    explain_collective,
    explain_transfer,
    transfer_ns,
)

__all__ = [
    "NAMES",
    "WITH_COPIES",
    "CompletionTimes",
    "algorithm_bandwidth",
    "bus_bandwidth",
    "cell_name",
    "collective_ns",
    "collectives_of",
    "completion_times",
    "explain_collective",
    "explain_transfer",
    "transfer_ns",
]
