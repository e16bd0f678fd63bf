"""Measured runs: what the ranks of a real step did, from their traces, on one time axis.

It knows the traces' words and clocks, and nothing of simulation; `simcore.replay` replays these runs. Import
from here: `MeasuredRun`, `has_rank_traces`, `open_directory`, `read_run`.
"""

from simcore.measured.opening import has_rank_traces, open_directory, read_run
from simcore.measured.run import MeasuredRun

__all__ = ["MeasuredRun", "has_rank_traces", "open_directory", "read_run"]
