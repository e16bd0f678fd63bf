"""The measured room: what the ranks of a real step did, from their traces, on one time axis.

Knows the traces' words and clocks, nothing of simulation. `simcore.replay` runs them again.
Import from here: `MeasuredRun`, `has_rank_traces`, `open_directory`, `read_run`.
"""

from simcore.measured.opening import has_rank_traces, open_directory, read_run
from simcore.measured.run import MeasuredRun

__all__ = ["MeasuredRun", "has_rank_traces", "open_directory", "read_run"]
