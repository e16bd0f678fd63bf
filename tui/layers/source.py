"""The table of a run: the one place that tells a simulated from a measured run."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from simcore.analysis import Results
from tui.layers.table import Table
from tui.session import Run

if TYPE_CHECKING:
    from simcore.executing import TraceResults
    from simcore.replay import MeasuredResults


def table_of(run: Run) -> Table:
    """The rows of the file that was simulated, or the operations of a trace: equal ones together."""
    # Each kind of run loads what its own table needs: the prices of a simulation are no part of a trace.
    if isinstance(run, Results):
        from tui.layers.workload_table import WorkloadTable

        return WorkloadTable(run, each=False)
    if run.origin == "executed":
        from tui.layers.trace_table import TraceTable

        return TraceTable(cast("TraceResults", run))
    from simcore.replay.operations import Operations
    from tui.layers.op_table import OpTable

    return OpTable(Operations(cast("MeasuredResults", run)), each=False)
