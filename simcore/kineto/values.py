"""Values of an event's arguments, which may be anything: what does not fit is not there."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from simcore.workload.model import LARGEST

MOST_NUMBER = 1 << 62
# A time is the sum of three: of the file, of the event, and of its length.
MOST_US = LARGEST // 3000
_MOST_RANKS_LISTED = 1 << 20
_MOST_ELEMENTS = 1 << 60
# Whole numbers beyond are not told apart as floats.
_EXACT = 1 << 53
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_RANKS = re.compile(r"\[[\d,\s]*\]", re.ASCII)


def whole(value: Any) -> int | None:
    """A whole number, also one that is written as a text; None for all else."""
    if type(value) is int:
        return value if -MOST_NUMBER < value < MOST_NUMBER else None
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return None


def count_of(value: Any) -> int:
    """A whole number that is not negative; -1 for all else."""
    found = whole(value)
    return -1 if found is None or found < 0 else found


def percent_of(value: Any) -> int:
    """A whole number up to 100; -1 for all else."""
    found = -1 if value is None else count_of(value)
    return found if found <= 100 else -1


def stream_of(stated: Any, thread: Any) -> int:
    """The stream of a kernel, else the thread on which its event stands; -1 where neither is a number."""
    found = whole(stated)
    if found is None:
        found = whole(thread)
    return -1 if found is None else found


def text_of(value: Any) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def key_of(value: Any) -> Any:
    """A value by which events are found; None of one that is no number and no text."""
    return value if isinstance(value, (int, str)) else None


def ranks_of(value: Any) -> tuple[int, ...] | None:
    """A list of ranks, or its text; None where it was shortened."""
    if isinstance(value, str):
        if len(value) > _MOST_RANKS_LISTED or not _RANKS.fullmatch(value):
            return None
        value = re.findall(r"\d+", value)
    if not isinstance(value, list) or not value:
        return None
    found = [whole(one) for one in value]
    if any(one is None or one < 0 for one in found):
        return None
    return tuple(one for one in found if one is not None)


def elements_of(dims: Any) -> int:
    """Elements of the first of some shapes; -1 if not known."""
    while isinstance(dims, list) and dims and isinstance(dims[0], list):
        dims = dims[0]
    if not isinstance(dims, list) or not dims:
        return -1
    if not all(isinstance(dim, int) and 0 <= dim < 1 << 40 for dim in dims):
        return -1
    elements = math.prod(dims)
    return elements if elements < _MOST_ELEMENTS else -1


def triple_of(raw: bytes) -> str | None:
    """A grid or block as words; None of what is no list of up to three numbers."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list) or not 1 <= len(value) <= 3:
        return None
    if not all(isinstance(one, (int, float)) and abs(one) < _EXACT for one in value):
        return None
    return " x ".join(f"{one:g}" for one in value)


class Triples(dict[bytes, "str | None"]):
    """Grids and blocks as words, each made once."""

    def __missing__(self, raw: bytes) -> str | None:
        self[raw] = words = triple_of(raw) if raw else None
        return words


class Pool(dict[str, str]):
    """Equal names as one."""

    def __missing__(self, name: str) -> str:
        self[name] = name
        return name
