"""Which spans of a lane a query means: a flag a span, a byte each, combined by the million in microseconds.

A word is looked up in the tables of `Searched`, which are short, and `translate` does the rest: 1 ns a span.
A million spans take 100 to 150 ms the first time, and 10 ms for every letter after that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import sub

from simcore.run.lanes import Searched, Spans
from tui.timeline.query import Query, Word


def matches(spans: Spans, searched: Searched, query: Query) -> bytes:
    """For each span 1 if the query means it, else 0. Rank and stage are not looked at."""
    found = [_meant(searched, word) for word in query.words]
    if query.microbatch is not None:
        found.append(_picked(searched.microbatch, {query.microbatch + 1}))
    return both([*found, lasting(spans.start, spans.end, query)])


def _meant(searched: Searched, word: Word) -> bytes:
    """1 for each span that a word means: by what it is, or by a name that it has."""
    wanted = frozenset(word.kinds)
    kinds = {code for code, kind in enumerate(searched.kinds) if not wanted.isdisjoint(kind)}
    names = {code for code, some in enumerate(searched.names) if any(map(word.is_in, some))}
    by_name = _picked(searched.name, names)
    return either(_picked(searched.kind, kinds), by_name) if wanted else by_name


def _picked(codes: Sequence[int], wanted: Collection[int]) -> bytes:
    """1 for each of the codes that is wanted."""
    if isinstance(codes, bytes):
        return codes.translate(table(code for code in wanted if code < 256))
    return bytes(map(wanted.__contains__, codes))


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
