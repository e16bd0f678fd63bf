"""The table beside the accounts: who waits for whom, or how the replay differs from what was measured.

Of what stands in it figures are whole at any width: names give way, then columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from simcore.replay.difference import Difference
from simcore.units import duration, signed
from tui.frame import Line, middle_cut, rows_around
from tui.measured.summary_model import WAITS, MeasuredSummaryModel
from tui.summary.model import MAP

# Cells of a name that are worth a column of figures, and operations of a rank at most.
_NAME, _OPS = 13, 3
_UNCHANGED = "as measured"


def beside_lines(model: MeasuredSummaryModel, width: int, rows: int, focused: bool) -> list[Line]:
    """The table that is chosen, in so many cells and rows."""
    at, _ = model.cursor(MAP)
    shown = model.beside == WAITS
    head, texts = _waits(model, width) if shown else _differences(model.differences, width)
    if not texts:
        return [[(" nobody is seen to wait for anybody", "dim")]]
    lines: list[Line] = [[(head, "dim")]]
    for index in rows_around(at, len(texts), max(rows - 1, 1)):
        here = focused and index == at
        lines.append([(f"{'>' if here else ' '}{texts[index][1:]}", "accent" if here else "")])
    return lines


def _waits(model: MeasuredSummaryModel, width: int) -> tuple[str, list[str]]:
    found = model.results.waiting
    front = _columns(
        ("rank", "for", "waits"), [(str(one.early), str(one.late), duration(one.ns)) for one in found]
    )
    return _head(front, "in"), [
        f"{text}  {middle_cut(one.name, min(width - len(text) - 2, 40))}"
        for text, one in zip(front[1:], found, strict=True)
    ]


def _differences(found: Sequence[Difference], width: int) -> tuple[str, list[str]]:
    """When each rank ends and by how much that differs; in little room the difference alone. What explains
    it: as many operations as fit with their amounts, one at least.
    """
    rows = [
        (str(one.number), duration(one.replayed_ns), signed(one.replayed_ns - one.measured_ns))
        for one in found
    ]
    front = _columns(("rank", "ends", "difference"), rows)
    # What must stand there: an amount, and the name whole or so much of it that it is known again.
    least = max(
        (min(len(name), _NAME) + 1 + len(signed(ns)) for one in found for name, ns in one.ops[:1]),
        default=len(_UNCHANGED),
    )
    gap = "  "
    if width - len(front[0]) - len(gap) < least:
        front = _columns(("rank", "differs"), [(rank, change) for rank, _, change in rows])
        gap = " "
    return _head(front, "most by", gap), [
        f"{text}{gap}{_ops(one, width - len(text) - len(gap))}"
        for text, one in zip(front[1:], found, strict=True)
    ]


def _ops(one: Difference, room: int) -> str:
    """The operations that explain a difference, as many as there is room for."""
    words = ""
    for name, ns in one.ops[:_OPS]:
        amount = signed(ns)
        left = room - len(words) - (2 if words else 0)
        name = middle_cut(name, min(left - len(amount) - 1, 34) if not words else 34)
        if words and len(name) + 1 + len(amount) > left:
            break
        words += f"{', ' if words else ''}{name} {amount}"
    return words or _UNCHANGED


def _columns(names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of right-aligned columns, the first with their names, each as wide as it must be; over the first
    cell of the rows, which the cursor's mark has, stands a part of the first name.
    """
    table = [names, *((f" {first}", *others) for first, *others in rows)]
    sizes = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [" ".join(f"{text:>{size}}" for text, size in zip(row, sizes, strict=True)) for row in table]


def _head(front: list[str], last: str, gap: str = "  ") -> str:
    return f"{front[0]}{gap}{last}" if len(front) > 1 else ""
