"""A measured run as a graph of who waits for whom: where its time goes, and what it would be with other
durations.

Import from here: `MeasuredResults`.
"""

from simcore.replay.results import MeasuredResults

__all__ = ["MeasuredResults"]
