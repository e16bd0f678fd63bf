"""A measured run beside a simulated one, or beside another measured one: in the same words, on one axis.

Two simulated runs have more in common, op by op: see `simcore.analysis.compare`. Import from here:
`Beside`, `Side` and what they consist of.
"""

from simcore.analysis.beside.pairs import Beside, KindChange, LanePair, StagePair
from simcore.analysis.beside.passes import MatchedPass, TimedPass
from simcore.analysis.beside.side import Seat, Side
from simcore.analysis.beside.words import ALIKE, COMPUTE, account_of

__all__ = [
    "ALIKE",
    "COMPUTE",
    "Beside",
    "KindChange",
    "LanePair",
    "MatchedPass",
    "Seat",
    "Side",
    "StagePair",
    "TimedPass",
    "account_of",
]
