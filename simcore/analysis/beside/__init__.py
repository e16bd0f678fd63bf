"""A measured run beside a simulated one, or beside another measured one: in the same words, on one axis.

Two simulated runs have more in common, op by op: see `simcore.analysis.compare`. Import from here:
`Beside` and what it consists of.
"""

from simcore.analysis.beside.pairs import Beside, KindChange, LanePair, MatchedPass, StagePair, account_of

__all__ = [
    "Beside",
    "KindChange",
    "LanePair",
    "MatchedPass",
    "StagePair",
    "account_of",
]
