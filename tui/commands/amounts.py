"""Sizes, durations and lists of ranks as they are written on the command line."""

from __future__ import annotations

import re

from simcore.diagnostics import UsageError, printable
from simcore.ranks import RankSet

_UNITS = {
    "": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_MOST_BYTES = 2**63 - 1
_MOST_RANKS = 10**6
_RANKS = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?(?:\+([0-9]{1,7})\*([0-9]{1,7}))?")


def parse_size(option: str, text: str) -> int:
    """`64MiB`, `1.5GB` or `4096` as bytes. Raises UsageError."""
    found = re.fullmatch(r"([0-9]{1,19})(?:\.([0-9]{1,12}))? ?([A-Za-z]*)", text)
    if found is not None and found[3] in _UNITS:
        fraction = found[2] or ""
        parts: int = 10 ** len(fraction)
        size, rest = divmod(int(found[1] + fraction) * _UNITS[found[3]], parts)
        if not rest and 1 <= size <= _MOST_BYTES:
            return size
    raise UsageError(
        f"{option} {printable(text, 60)}: a whole number of bytes from 1 to 2^63 - 1 is expected, "
        "for example 64MiB, 1.5GB or 4096"
    )


def parse_sizes(option: str, text: str) -> list[int]:
    """`1KiB..1GiB` as sizes that double from the first on; one size as itself. Raises UsageError."""
    first_text, dots, last_text = text.partition("..")
    size = parse_size(option, first_text)
    if not dots:
        return [size]
    last = parse_size(option, last_text)
    if last < size:
        raise UsageError(f"{option} {printable(text, 60)}: the second size is less than the first")
    sizes = []
    while size <= last:
        sizes.append(size)
        size *= 2
    return sizes


def parse_ranks(option: str, text: str) -> RankSet:
    """`0-7,64` as ranks, blocks as reports print them (`0-7+64*16`) too. Raises UsageError."""
    ranks: set[int] = set()
    for item in text.split(","):
        found = _RANKS.fullmatch(item)
        if found is None:
            raise UsageError(
                f"{option} {printable(text, 60)}: ranks are expected, for example 0-7,64 "
                f"(found `{printable(item, 40)}`)"
            )
        first, last = int(found[1]), int(found[2] or found[1])
        stride, repeats = int(found[3] or 0), int(found[4] or 1)
        if last < first or last + stride * (repeats - 1) >= _MOST_RANKS:
            raise UsageError(
                f"{option} {printable(text, 60)}: `{printable(item, 40)}` is not ascending "
                f"from 0 to {_MOST_RANKS - 1}"
            )
        for step in range(repeats):
            ranks.update(range(first + step * stride, last + step * stride + 1))
            if len(ranks) == _MOST_RANKS:
                break
    return RankSet.of(ranks)


_TIMES = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def parse_duration(option: str, text: str) -> int:
    """`13.75s` or `850 ms` as ns. Raises UsageError."""
    found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?([a-z]+)", text)
    if found is not None and found[2] in _TIMES:
        ns = round(float(found[1]) * _TIMES[found[2]])
        if 1 <= ns < 2**62:
            return ns
    raise UsageError(f"{option} {printable(text, 60)}: a duration is expected, for example 13.75s or 850ms")
