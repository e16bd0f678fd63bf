"""The model behind a file: which config of AICB makes the rows of a workload, if any does.

Import from here: `recover`, `RecoveredModel`, `Difference`.
"""

from simcore.recovery.difference import Difference
from simcore.recovery.recovered_model import RecoveredModel, recover

__all__ = ["Difference", "RecoveredModel", "recover"]
