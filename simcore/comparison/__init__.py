"""Two runs, or two ranks, beside each other: what differs, and why.

Import from here: `Comparison` and the values that it consists of.
"""

from simcore.comparison.changes import AccountChange, AccountPart, Alike, Leading, leading_parts
from simcore.comparison.comparison import Comparison
from simcore.comparison.movers import Matched, Mover
from simcore.comparison.ops import OpChanges
from simcore.comparison.pairs import LanePair, has_rows

__all__ = [
    "AccountChange",
    "AccountPart",
    "Alike",
    "Comparison",
    "LanePair",
    "Leading",
    "Matched",
    "Mover",
    "OpChanges",
    "has_rows",
    "leading_parts",
]
