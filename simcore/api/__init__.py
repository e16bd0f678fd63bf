"""The Python interface: open an input, run it, read its figures, change, compare, sweep, export.

    import simcore as wl

    run = wl.load("workload.txt").run(schedule="1f1b")
    run.step_time_ns, run.critical_path.by("kind"), run.accounts()

Times are whole nanoseconds (`_ns`), sizes bytes, bandwidths GB/s. What cannot be read raises `InputError`,
what cannot be requested `UsageError`. docs/python.md describes all of it.
"""

from simcore.api.comparison import Comparison, compare
from simcore.api.inputs import Input, load
from simcore.api.run import CriticalPath, Run
from simcore.api.sweeping import Sweep, sweep
from simcore.api.table import Table
from simcore.diagnostics import InputError, UsageError

__all__ = [
    "Comparison", "CriticalPath", "Input", "InputError", "Run", "Sweep", "Table", "UsageError",
    "compare", "load", "sweep",
]  # fmt: skip
