"""The memory of runs that are gone, given back to the system."""

from __future__ import annotations

import gc
from contextlib import suppress

from simcore.workload.memory import resident_bytes

# By so much the process may have grown since memory was last given back: that takes 40 ms.
MOST_GROWN_BYTES = 16_000_000
# What it had then; 0 before.
_bytes_after = 0


def free_memory() -> None:
    """Collects what is gone, and gives free pages back to the system where the C library can.

    A run refers to itself, and columns do not count for the collector: it would leave 250 MB of 1,024 ranks
    beside the next run. Columns of 20 kB leave holes between others: without the second step 85 of 134 MB of
    the heap stayed with the process.
    """
    global _bytes_after
    gc.collect()
    # Imported here: it takes 8 ms, and few sessions show a large run.
    import ctypes

    # Another C library than that of GNU has no such function.
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    _bytes_after = resident_bytes()


def free_grown_memory() -> None:
    """Gives memory back where the process has grown much since it last did, as by runs that a thread has
    simulated and that no screen shows: each thread has a heap of its own, and 520 MB of them were free.
    """
    if resident_bytes() - _bytes_after > MOST_GROWN_BYTES:
        free_memory()
