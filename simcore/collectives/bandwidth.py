"""Bandwidths of a collective as nccl-tests prints them (nccl-tests, doc/PERFORMANCE.md)."""

from __future__ import annotations


def algorithm_bandwidth(size_bytes: int, ns: int) -> float:
    """algbw: bytes of the whole buffer a ns, GB/s; 0 for a collective that takes no time."""
    return size_bytes / ns if ns else 0.0


def bus_bandwidth(collective: str, members: int, size_bytes: int, ns: int) -> float:
    """busbw, GB/s: algbw times what each rank's link must carry of the buffer.

    (n-1)/n of it for all-gather, reduce-scatter and all-to-all, twice that for all-reduce, all
    of it for a transfer to a neighbour.
    """
    if collective == "SENDRECV":
        return algorithm_bandwidth(size_bytes, ns)
    times = 2 if collective == "ALLREDUCE" else 1
    return algorithm_bandwidth(size_bytes, ns) * times * (members - 1) / members
