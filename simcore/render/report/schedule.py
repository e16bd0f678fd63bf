"""Schedules as pictures, several on one axis, with a lane for each stage.

A terminal has a letter or more for each action, SVG a box with its kind and micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from xml.sax.saxutils import escape

from simcore.render.report.schedule_picture import Box, Picture, StageLane
from simcore.render.report.section import Column, format_table

# SGR of a cell by kind: blue, green, cyan and yellow behind black letters; sixteen colours are enough.
_COLOURS = {"F": "30;44", "B": "30;42", "I": "30;46", "W": "30;43"}
_WAITING = "."
# Columns after the cells of a lane: `| 12.5 %  4.5` or, where that gains a column for the cells, `| 4.5`
# alone.
_BEHIND, _IN_FLIGHT_ALONE = 15, 7
_LEAST = 20
_MEANING = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}


def pictures_text(pictures: Sequence[Picture], width: int, colour: bool) -> str:
    """Returns the pictures below each other on one axis, then their figures; a single one with those of its
    stages.

    width: columns of the terminal. Kinds are letters, capitals in a stage's first chunk and small in the
    others; the number of a micro-batch follows the letter where a cell has room for it.
    """
    longest = max(picture.length for picture in pictures)
    names = max(len(str(len(picture.lanes) - 1)) for picture in pictures)
    shortest = _shortest(pictures)
    columns, columns_without_bubble = (
        max(width - names - 1 - behind, _LEAST) for behind in (_BEHIND, _IN_FLIGHT_ALONE)
    )
    with_bubble = not longest or int(columns * shortest / longest) == int(
        columns_without_bubble * shortest / longest
    )
    columns = columns if with_bubble else columns_without_bubble
    per_unit = _columns_a_unit(shortest, longest, columns)
    lines: list[str] = []
    for picture in pictures:
        lines += wrap(picture.words(), width, subsequent_indent="  ")
        heading = " bubble holds" if with_bubble else " holds"
        lines.append(f"{'':>{names}} {_ruler(longest, per_unit, columns):<{columns}} {heading}")
        for stage, lane in enumerate(picture.lanes):
            cells = _cells(lane, picture.length, per_unit, per_unit * shortest >= 1)
            cells_text = _colour_cells(cells, colour) + " " * max(columns - len(cells), 0)
            share = f"{100 * lane.bubble / picture.length:.1f}" if picture.length else "0"
            bubble = f"{share:>6} %" if with_bubble else ""
            lines.append(f"{stage:>{names}}|{cells_text}|{bubble}{_plain(lane.in_flight * picture.size):>6}")
        lines.append("")
    lines += wrap(_legend(pictures), width)
    lines += _figures(pictures)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _shortest(pictures: Sequence[Picture]) -> float:
    """Returns the units of the shortest action."""
    return min(
        (box.last - box.first for picture in pictures for lane in picture.lanes for box in lane.boxes),
        default=1.0,
    )


def _columns_a_unit(shortest: float, longest: float, columns: int) -> float:
    """Returns the columns of a unit of time, so that the longest picture fits.

    Where there is room the shortest action takes whole columns, so that equal actions look equal.
    """
    if not longest:
        return 1.0
    fitting = columns / longest
    of_shortest = int(fitting * shortest + 1e-9)
    return of_shortest / shortest if of_shortest else fitting


def _cells(lane: StageLane, length: float, per_unit: float, with_microbatches: bool) -> list[tuple[str, str]]:
    """Returns (kind, letter) of each column of a lane; kind "" where it waits.

    with_microbatches: whether micro-batches are written. Where equal actions take unequal columns they are
    not: whether a number fits would be chance.
    """
    count = round(length * per_unit)
    cells = [("", _WAITING)] * max(count, 1)
    # A column of several short actions shows the one that fills most of it.
    filled = [0.0] * len(cells)
    for box in lane.boxes:
        first, last = box.first * per_unit, box.last * per_unit
        begin, end = round(first), round(last)
        if end > begin:
            text = (_letters(box, end - begin) if with_microbatches else _letter(box)).ljust(end - begin)
            for column in range(begin, min(end, len(cells))):
                cells[column] = (box.kind, text[column - begin])
                filled[column] = 1.0
            continue
        column = min(int(first), len(cells) - 1)
        if last - first > filled[column]:
            cells[column] = (box.kind, _letter(box))
            filled[column] = last - first
    for end_of_step in lane.ends[:-1]:
        column = round(end_of_step * per_unit)
        if 0 < column < len(cells) and cells[column][0] == "":
            cells[column] = ("", "|")
    return cells


def _letter(box: Box) -> str:
    return box.kind if box.chunk == 0 else box.kind.lower()


def _letters(box: Box, columns: int) -> str:
    """Returns the text of an action: its letter, and its micro-batch where all digits fit."""
    letter, microbatch = _letter(box), str(box.microbatch)
    return letter + microbatch if len(microbatch) < columns else letter


def _colour_cells(cells: list[tuple[str, str]], colour: bool) -> str:
    if not colour:
        return "".join(text for _, text in cells)
    parts, last = [], ""
    for kind, text in cells:
        if kind != last:
            parts.append(f"\x1b[{_COLOURS[kind]}m" if kind else "\x1b[0m")
            last = kind
        parts.append(text)
    return "".join(parts) + ("\x1b[0m" if last else "")


def _ruler(longest: float, per_unit: float, columns: int) -> str:
    """Returns round times above the columns, each where its time starts."""
    step = next(
        size * 10**power for power in range(9) for size in (1, 2, 5) if size * 10**power * per_unit >= 6
    )
    line = ""
    for tick in range(int(longest / step) + 1):
        column = round(tick * step * per_unit)
        label = str(tick * step)
        if column + len(label) <= columns:
            line = line.ljust(column) + label
    return line


def _legend(pictures: Sequence[Picture]) -> str:
    boxes = [box for picture in pictures for lane in picture.lanes for box in lane.boxes]
    kinds = dict.fromkeys(kind for kind in "FBIW" if any(box.kind == kind for box in boxes))
    meanings = [f"{kind} {_MEANING[kind]}" for kind in kinds]
    if any(box.chunk for box in boxes):
        meanings.append("small letters: chunks behind a stage's first")
    return ", ".join([*meanings, f"{_WAITING} waiting"])


def _figures(pictures: Sequence[Picture]) -> Iterator[str]:
    """Yields a line for each picture: its length, its bubble, and what a stage holds."""
    steady = any(picture.steady is not None for picture in pictures)
    sizes = any(picture.size != 1.0 for picture in pictures)
    columns = [
        Column("schedule", left=True),
        *([Column("micro-batches"), Column("size")] if sizes else []),
        Column("length"),
        *([Column("further step")] if steady else []),
        Column("bubble"),
        Column("most held"),
        Column("chunks held"),
    ]
    rows = [
        [
            picture.words().partition(":")[0],
            *([str(picture.microbatches), _plain(picture.size)] if sizes else []),
            _plain(picture.length),
            *([_plain(picture.steady or picture.length)] if steady else []),
            f"{100 * picture.bubble:.1f} %",
            f"{_plain(picture.in_flight)}{' x 2 stages' if picture.copies == 2 else ''}",
            str(max(lane.chunks for lane in picture.lanes)),
        ]
        for picture in pictures
    ]
    yield ""
    yield from format_table(columns, rows)


def _plain(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


_FILLS = {"F": "#9ec5f4", "B": "#a5d8a0", "I": "#8fd6cf", "W": "#f2d487"}
# The colours of the chunks after a stage's first.
_DEEPER = {"F": "#5b93d6", "B": "#6bb564", "I": "#4db3a9", "W": "#dcae3c"}
_LANE, _GAP, _LEFT, _RIGHT, _HEAD = 18, 2, 34, 128, 24
# Pixels of the axis: a unit has room for a letter and two figures, unless that makes the axis too long.
_UNIT, _MOST_WIDTH = 22.0, 2400.0
# A box above the first number of pixels has its letter, above the second its micro-batch, too.
_LETTER, _BOTH = 7, 17


def pictures_svg(pictures: Sequence[Picture]) -> str:
    """Returns one image of all pictures below each other."""
    longest = max(picture.length for picture in pictures) or 1.0
    scale = min(_UNIT * max(picture.parts for picture in pictures), _MOST_WIDTH / longest)
    width = round(_LEFT + longest * scale + _RIGHT)
    body: list[str] = []
    top = 4.0
    for picture in pictures:
        body += _svg_picture(picture, top, scale, longest)
        top += _HEAD + len(picture.lanes) * (_LANE + _GAP) + 14
    body += _svg_legend(pictures, top)
    height = round(top + 26)
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" font-size="11">\n',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n',
            *body,
            "</svg>\n",
        ]
    )


def _svg_picture(picture: Picture, top: float, scale: float, longest: float) -> Iterator[str]:
    end = _LEFT + longest * scale
    yield _svg_text(_LEFT, top + 13, picture.words(), weight="bold")
    yield _svg_text(end + 8, top + 13, "bubble", fill="#555555")
    yield _svg_text(end + 66, top + 13, "holds", fill="#555555")
    for stage, lane in enumerate(picture.lanes):
        y = top + _HEAD - 4 + stage * (_LANE + _GAP)
        yield _svg_text(_LEFT - 6, y + 13, str(stage), anchor="end")
        yield _svg_rect(_LEFT, y, picture.length * scale, "#eeeeee", "")
        for box in lane.boxes:
            yield _svg_box(box, y, scale)
        for over in lane.ends[:-1]:
            x = _LEFT + over * scale
            yield f'<path d="M{x:.2f} {y - 1} v{_LANE + 2}" stroke="#c0392b" stroke-width="2"/>\n'
        share = 100 * lane.bubble / picture.length if picture.length else 0.0
        yield _svg_text(end + 8, y + 13, f"{share:.1f} %")
        yield _svg_text(end + 66, y + 13, _format_in_flight(picture, lane))


def _format_in_flight(picture: Picture, lane: StageLane) -> str:
    in_flight = f"{lane.in_flight * picture.size:.3f}".rstrip("0").rstrip(".")
    return in_flight + (" x 2 stages" if picture.copies == 2 else "")


def _svg_box(box: Box, y: float, scale: float) -> str:
    x, width = _LEFT + box.first * scale, (box.last - box.first) * scale
    fill = (_FILLS if box.chunk == 0 else _DEEPER)[box.kind]
    title = f"{_MEANING[box.kind]} of micro-batch {box.microbatch}, chunk {box.chunk}: "
    title += f"{box.first:g} to {box.last:g}"
    rect = _svg_rect(x, y, width, fill, title)
    letter = box.kind if box.chunk == 0 else box.kind.lower()
    label = f"{letter}{box.microbatch}" if width >= _BOTH else letter if width >= _LETTER else ""
    return rect + (_svg_text(x + width / 2, y + 13, label, anchor="middle") if label else "")


def _svg_rect(x: float, y: float, width: float, fill: str, title: str) -> str:
    inside = f"><title>{escape(title)}</title></rect>" if title else "/>"
    stroke = ' stroke="#ffffff" stroke-width="0.7"' if title else ""
    attributes = f'x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{_LANE}"'
    return f'<rect {attributes} fill="{fill}"{stroke}{inside}\n'


def _svg_text(
    x: float, y: float, text: str, anchor: str = "start", weight: str = "normal", fill: str = "#111111"
) -> str:
    style = f'text-anchor="{anchor}" fill="{fill}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>\n'


def _svg_legend(pictures: Sequence[Picture], top: float) -> Iterator[str]:
    boxes = [box for picture in pictures for lane in picture.lanes for box in lane.boxes]
    x = float(_LEFT)
    for kind in "FBIW":
        if any(box.kind == kind for box in boxes):
            yield _svg_rect(x, top, 18, _FILLS[kind], _MEANING[kind])
            words = f"{kind} {_MEANING[kind]}"
            yield _svg_text(x + 22, top + 13, words)
            x += 34 + 6.2 * len(words)
    if any(box.chunk for box in boxes):
        yield _svg_text(x, top + 13, "darker, small letters: chunks behind a stage's first")
