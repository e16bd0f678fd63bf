"""Profiler traces: what PyTorch's Kineto and Nsight Systems recorded, as measured runs.

It knows events and their words. Import from here: `OpeningOptions`, `open_profile`, `read_profile`.
"""

from simcore.kineto.opening import open_profile, read_profile
from simcore.parameters import OpeningOptions

__all__ = ["OpeningOptions", "open_profile", "read_profile"]
