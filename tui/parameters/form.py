"""The form as lines: fields in their groups, what the one under the cursor means, and why it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simcore.cluster import Dimension
from tui.frame import Glyphs, Line, cells, rule, wrapped
from tui.parameters.fields import dimension_place


@dataclass(frozen=True, slots=True)
class FormRow:
    """A field as it is shown. was: the value when the file was opened, empty if it is that still.
    origin: where a value that was not changed comes from. form: how one types it, of a list."""

    group: str
    label: str
    value: str
    unit: str
    was: str
    origin: str
    form: str = ""


def form_lines(
    rows: Sequence[FormRow], at: int, refused: int, refusal: str, width: int, glyphs: Glyphs
) -> tuple[list[Line], tuple[int, int]]:
    """(a line a field under the titles of the groups, first and last line of the field at the cursor).

    refusal: why the value of the field `refused` (-1: of none) cannot be; it stands under it.
    """
    lines: list[Line] = []
    place = (0, 0)
    group = ""
    for index, row in enumerate(rows):
        if row.group != group:
            group = row.group
            lines.append(rule(group, width, glyphs))
        first = len(lines)
        lines.append(_row(row, index == at, index == refused, width))
        if index == refused:
            lines += [[("      ", ""), (words, "worse")] for words in wrapped(refusal, width - 8)]
        if index == at:
            place = (first, len(lines) - 1)
    return lines, place


def is_reason(line: Line) -> bool:
    """Whether a line of the form says why a value cannot be."""
    return bool(line) and line[-1][1] == "worse"


def _row(row: FormRow, at: bool, refused: bool, width: int) -> Line:
    mark = "!" if refused else "*" if row.was else " "
    role = "accent" if at else ""
    # Both whole where there is room; of two long lists each has half of it.
    room = max(width - 28, 20)
    was = cells(f"was {row.was}", min(room - 14, room - min(len(row.value), room // 2))) if row.was else ""
    value = cells(row.value, room - len(was))
    value = f"< {value} >" if at else f"  {value}"
    line: Line = [
        (f"{'>' if at else ' '}{mark} {row.label:<20}", role),
        (f"{value:<18} ", role or ("bright" if row.was else "")),
    ]
    if at and not was and row.form:
        # How one types it, as far as there is room; the help of the field has all of it.
        room = width - 24 - max(len(value), 18)
        form = next((one for one in (row.form, row.form.partition(",")[0]) if len(one) <= room), "")
        return [*line, (form, "dim")]
    # Words have no unit: their old value may begin where the unit would stand.
    if row.unit or not row.was:
        gap = " " if row.unit else ""
        line.append((f"{row.unit + gap:<{max(27 - max(len(value), 18), 0)}}", "dim"))
    return [*line, (was, "warn") if was else (row.origin, "dim")]


def help_lines(words: str, flags: str, width: int) -> list[Line]:
    """What the field means, and the flags of the draft."""
    return [[(f" {cells(words, width - 2)}", "")], [(f" {cells(flags, width - 2)}", "dim")]]


def cluster_title(dims: Sequence[Dimension], width: int) -> str:
    """The title of the cluster's group: what its dimensions are, and their sizes where there is room."""
    places = [f"dim {index} {dimension_place(index, dims)}".rstrip() for index in range(len(dims))]
    shapes = [f"{dim.kind} {dim.size}" for dim in dims]
    sized = ", ".join(f"{place}: {shape}" for place, shape in zip(places, shapes, strict=True))
    named = ", ".join(place for index, place in enumerate(places) if place != f"dim {index}")
    # A rule has two cells before its title, a space on both sides of it, and a cell behind.
    return next(
        (f"cluster: {words}" for words in (sized, named) if words and len(words) <= width - 14), "cluster"
    )
