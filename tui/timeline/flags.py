"""Flags of spans: a byte each, 1 or 0, combined by the million in microseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import sub

from tui.timeline.query import Query


def both(flags: Sequence[bytes]) -> bytes:
    """1 where all of the flags are 1."""
    # As numbers: `&` of a million takes microseconds.
    found = int.from_bytes(flags[0], "little")
    for other in flags[1:]:
        found &= int.from_bytes(other, "little")
    return found.to_bytes(len(flags[0]), "little")


def either(one: bytes, other: bytes) -> bytes:
    """1 where one of the flags is."""
    together = int.from_bytes(one, "little") | int.from_bytes(other, "little")
    return together.to_bytes(len(one), "little")


def lasting(start: Sequence[int], end: Sequence[int], query: Query) -> bytes:
    """1 for each span that is as long as the query says."""
    found = [b"\1" * len(start)]
    if query.least_ns is not None:
        found.append(bytes(map(query.least_ns.__le__, map(sub, end, start))))
    if query.most_ns is not None:
        found.append(bytes(map(query.most_ns.__ge__, map(sub, end, start))))
    return both(found)


def table(values: Iterable[int]) -> bytes:
    """For `translate`: 1 for each of the values."""
    found = bytearray(256)
    for value in values:
        found[value] = 1
    return bytes(found)
