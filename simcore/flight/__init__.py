"""Flight recorder dumps of PyTorch: the last collectives of each rank of a job, and the verdict.

Import from here: `FlightRecord`, `open_dumps`, `read_dump`, `find_dumps`; the verdict is
`simcore.flight.verdict`, which only a run or a check needs.
"""

from simcore.flight.opening import begins_with_pickles, find_dumps, open_dumps, read_dump
from simcore.flight.record import FlightRecord

__all__ = ["FlightRecord", "begins_with_pickles", "find_dumps", "open_dumps", "read_dump"]
