"""What-if: the step time if one thing were cheaper, or the schedule another one.

`what_if` gives all knobs of a run, those that gain most first; `Results.what_if` keeps them.
"""

from simcore.analysis.what_if.table import what_if

__all__ = ["what_if"]
