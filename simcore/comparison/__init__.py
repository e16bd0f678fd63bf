"""The comparison of two runs, or of two ranks: what differs, and why.

Import from here: `Comparison` and the values that it consists of.
"""

from simcore.comparison.changes import (
    AccountChange,
    AccountPart,
    MainCause,
    SpanPair,
    SpanPairs,
    find_main_cause,
)
from simcore.comparison.comparison import Comparison
from simcore.comparison.op_changes import OpChange, OpMatches
from simcore.comparison.ops import OpChanges
from simcore.comparison.pairs import LanePair, has_rows

__all__ = [
    "AccountChange",
    "AccountPart",
    "Comparison",
    "LanePair",
    "MainCause",
    "OpChange",
    "OpChanges",
    "OpMatches",
    "SpanPair",
    "SpanPairs",
    "find_main_cause",
    "has_rows",
]
