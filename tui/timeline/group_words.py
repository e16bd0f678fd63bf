"""What is said of several lanes together, and which kinds of cell a legend explains."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from simcore.units import percent
from tui.frame import Line
from tui.timeline.spans import Kind

_FILLS = (
    ("fwd", "forward"), ("bwd", "backward"), ("wg", "weight grad"), ("recompute", "recompute"),
    ("opt", "optimizer"), ("kernel", "kernel"),
)  # fmt: skip
_COMMUNICATION = ("tp", "dp", "dp_ep", "ep", "pp", "cp", "all", "embedding", "position", "comm")
_THIN = (("copy", "copy"), ("host", "host"), ("wait", "wait"), ("bubble", "bubble"))


def legend_of(names: Collection[str], communication: str, idle: str = "idle") -> tuple[Kind, ...]:
    """The kinds of cell among KINDS that `names` has, in one order.

    communication, idle: what these are called.
    """
    kinds = [
        Kind("fwd" if name == "recompute" else name, name, words) for name, words in _FILLS if name in names
    ]
    parts = tuple((name, name) for name in _COMMUNICATION if name in names)
    if parts:
        kinds.append(Kind("exposed", parts[0][0], communication, parts))
    kinds += [Kind(name, name, words) for name, words in _THIN if name in names]
    return (*kinds, Kind("idle", "", idle)) if "idle" in names else tuple(kinds)


def told_group(
    title: Line, ranks: Sequence[int], found: Mapping[str, Sequence[int]], length: int
) -> list[Line]:
    """Which of several lanes have the extremes, behind `title`; then each figure from least to most.

    ranks: the first of each lane. found: figure -> ns of each lane, the compute first.
    """
    line: Line = []
    for words, values in found.items():
        if max(values):
            least, most = percent(min(values), length), percent(max(values), length)
            line += [
                (f"{words} ", "dim"),
                (least if least == most else f"{least}..{most}", "bright"),
                (" % ", ""),
            ]
    busy = next(iter(found.values()))
    if min(busy) == max(busy):
        return [title, line]
    least_busy, most_busy = (ranks[busy.index(pick(busy))] for pick in (min, max))
    extremes = f"   least compute: rank {least_busy}, most: rank {most_busy}"
    return [[*title, (extremes, "")], line]
