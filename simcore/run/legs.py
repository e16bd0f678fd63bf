"""How a critical path becomes legs, whatever run it is of: neighbouring segments of one key are one leg.

Compute of which nothing is known (1 ns, 1 us) is what files write where nothing is modelled: it is no leg,
but a part of what its rank does next.
"""

from __future__ import annotations

from collections.abc import Iterable

from simcore.records import NamedTuple

# (rank, what it does, micro-batch or -1)
Key = tuple[int, str, int]


class Stretch(NamedTuple):
    """Segments first..last-1 of the path, of one key. is_placeholder: whether nothing of it is known."""

    first: int
    last: int
    key: Key
    is_placeholder: bool


def stretches(segments: Iterable[tuple[Key, bool]]) -> list[Stretch]:
    """The legs of a path, in its order. segments: (key, whether it is a placeholder) of each segment."""
    runs: list[Stretch] = []
    for index, (key, placeholder) in enumerate(segments):
        before = runs[-1] if runs else None
        if before is not None and (before.key, before.is_placeholder) == (key, placeholder):
            runs[-1] = before._replace(last=index + 1)
        else:
            runs.append(Stretch(index, index + 1, key, placeholder))
    return _joined(runs)


def _joined(parts: list[Stretch]) -> list[Stretch]:
    """Placeholders as a part of what their rank does next, the last ones of what it did before."""
    joined: list[Stretch] = []
    for stretch in parts:
        before = joined[-1] if joined else None
        if before is not None and before.key[0] == stretch.key[0]:
            if before.is_placeholder:
                # Behind that there may now be more of what came before the placeholder.
                joined.pop()
                stretch = Stretch(before.first, stretch.last, stretch.key, stretch.is_placeholder)
                before = joined[-1] if joined else None
            if before is not None and not stretch.is_placeholder and before.key == stretch.key:
                stretch = joined.pop()._replace(last=stretch.last)
        joined.append(stretch)
    if len(joined) > 1 and joined[-1].is_placeholder and joined[-2].key[0] == joined[-1].key[0]:
        last = joined.pop()
        joined[-1] = joined[-1]._replace(last=last.last)
    return joined
