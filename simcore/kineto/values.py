"""Values of an event's arguments, which may be anything: what does not fit is treated as absent."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from simcore.workload.model import LARGEST

MOST_NUMBER = 1 << 62
# A time is the sum of three: of the file, of the event, and of its length.
MOST_US = LARGEST // 3000
_MOST_RANKS_LISTED = 1 << 20
_MOST_ELEMENTS, _MOST_DIMENSIONS = 1 << 60, 64
# What is shown of an event without a name.
NO_NAME = "(no name)"
# Greater whole numbers are not distinguished as floats.
_EXACT = 1 << 53
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_RANKS = re.compile(r"\[[\d,\s]*\]", re.ASCII)


def whole(value: Any) -> int | None:
    """Returns a whole number, also one that is written as a text; None for all else."""
    if type(value) is int:
        return value if -MOST_NUMBER < value < MOST_NUMBER else None
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return None


def count_of(value: Any) -> int:
    """Returns a whole number that is not negative; -1 for all else."""
    integer = whole(value)
    return -1 if integer is None or integer < 0 else integer


def percent_of(value: Any) -> int:
    """Returns a whole number up to 100; -1 for all else."""
    percent = -1 if value is None else count_of(value)
    return percent if percent <= 100 else -1


def stream_of(value: Any, thread: Any) -> int:
    """Returns the stream of a kernel, else the thread of its event; -1 where neither is a number."""
    stream = whole(value)
    if stream is None:
        stream = whole(thread)
    return -1 if stream is None else stream


def text_of(value: Any) -> str | None:
    """Returns a text that is not empty; None for all else."""
    return value if isinstance(value, str) and value else None


def key_of(value: Any) -> Any:
    """Returns a value by which events are found, a number also where it is written as a text; None for one
    that is no number and no text.
    """
    if type(value) is str:
        integer = whole(value)
        return value if integer is None else integer
    return value if isinstance(value, int) else None


def ranks_of(value: Any) -> tuple[int, ...] | None:
    """Returns a list of ranks, or its text, as a tuple; None where it was shortened."""
    if isinstance(value, str):
        return _ranks_in(value)
    if not isinstance(value, list) or not value:
        return None
    ranks = [whole(item) for item in value]
    if any(rank is None or rank < 0 for rank in ranks):
        return None
    return tuple(rank for rank in ranks if rank is not None)


# A job has few groups, and a list of ranks may be long.
@lru_cache(1 << 6)
def _ranks_in(text: str) -> tuple[int, ...] | None:
    if len(text) > _MOST_RANKS_LISTED or not _RANKS.fullmatch(text):
        return None
    return ranks_of(re.findall(r"\d+", text))


def elements_of(dims: Any) -> int:
    """Returns the elements of a shape, 1 for one without dimensions; -1 if it is none."""
    if not isinstance(dims, list) or len(dims) > _MOST_DIMENSIONS:
        return -1
    if not all(isinstance(dim, int) and 0 <= dim < 1 << 40 for dim in dims):
        return -1
    elements = math.prod(dims)
    return elements if elements < _MOST_ELEMENTS else -1


def elements_in_all(dims: Any, is_list: bool) -> int:
    """Returns the elements of a tensor by its shape, of a list of tensors their sum; -1 if not known."""
    if not is_list:
        return elements_of(dims)
    # An older profiler writes every list as an empty one.
    if not isinstance(dims, list) or not dims:
        return -1
    sizes = [elements_of(shape) for shape in dims]
    return min(sum(sizes), _MOST_ELEMENTS) if min(sizes) >= 0 else -1


def are_uneven(splits: Any) -> bool:
    """Returns whether the parts of a buffer, a list or its text, are stated and differ."""
    # Hardly any has splits.
    parts = None if splits in (None, "[]") else ranks_of(splits)
    return parts is not None and len(set(parts)) > 1


def triple_of(sizes: Sequence[Any]) -> str | None:
    """Returns a grid or block as words; None for what is no list of up to three numbers."""
    if not 1 <= len(sizes) <= 3:
        return None
    if not all(isinstance(size, (int, float)) and abs(size) < _EXACT for size in sizes):
        return None
    return " x ".join(f"{size:g}" for size in sizes)


class Triples(dict[Any, "str | None"]):
    """Grids and blocks as words, each made once."""

    def __missing__(self, sizes: Any) -> str | None:
        triple = None if sizes is None else triple_of(sizes)
        if triple is not None:
            self[sizes] = triple
        return triple

    def words_of(self, values: Sequence[Any]) -> list[str | None]:
        """Returns grids or blocks, as decoded, as words."""
        try:
            return [self[tuple(value)] if type(value) is list else None for value in values]
        except TypeError:
            # One has a list or an object inside.
            return [triple_of(value) if type(value) is list else None for value in values]


class Pool(dict[Any, str]):
    """Equal names as one object, NO_NAME for what is none."""

    def __missing__(self, name: Any) -> str:
        if type(name) is not str or not name:
            return NO_NAME
        self[name] = name
        return name
