"""Flight recorder dumps of PyTorch: the last collectives of each rank of a job, and the verdict.

Import from here: `FlightRecord`, `open_dumps`, `read_dump`; the verdict is
`simcore.flight.verdict`, which only a run or a check needs.
"""

from simcore.flight.opening import open_dumps, read_dump
from simcore.flight.record import FlightRecord

__all__ = ["FlightRecord", "open_dumps", "read_dump"]
