"""The workload room: reads a file into a `Workload` (header, rows, diagnostics).

Knows formats and their quirks, nothing of ranks, schedules or networks.
Import from here: `open_workload`, `Workload`, `Header`, `Cells`.
"""

from simcore.workload.model import Cells, Header, Workload
from simcore.workload.opening import open_workload

__all__ = ["Cells", "Header", "Workload", "open_workload"]
