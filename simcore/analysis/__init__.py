"""The analysis room: what a timeline means, in the field's words.

Import from here: `Results` (all figures of a run), `Accounts`, `ACCOUNTS`, `LayerRow`, `LayerGroup`.
"""

from simcore.analysis.layers import LayerGroup, LayerRow
from simcore.analysis.results import Results
from simcore.run.accounts import Accounts
from simcore.sources.simulated import ACCOUNTS

__all__ = ["ACCOUNTS", "Accounts", "LayerGroup", "LayerRow", "Results"]
