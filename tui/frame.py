"""A frame: lines of (text, role) pairs, one cell a character; a screen before its colours."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

from simcore.diagnostics import printable_within
from simcore.kernel_names import display_name
from simcore.records import Struct
from simcore.units import keep_units_unbroken

# A part of a line: text and the role of its style (see tui.frame_view).
StyledText = tuple[str, str]
Line = list[StyledText]


class Glyphs(Struct, frozen=True):
    """One set of drawing characters."""

    fills: dict[str, str]
    """By category of the drawing code."""
    busy: str
    partly: str
    vertical: str
    horizontal: str
    cross: str
    tee: str
    cursor: str
    heat: str
    view_left: str
    view: str
    view_right: str
    corners: str


BLOCKS = Glyphs(
    fills={
        "fwd": "▄", "bwd": "█", "wg": "▆", "opt": "▇", "exposed": "▌", "host": "▎", "wait": "─",
        "bubble": "▁", "idle": " ", "kernel": "▅", "copy": "▍",
    },
    busy="▌", partly="▂", vertical="│", horizontal="─", cross="┼", tee="┬", cursor="┃", heat=" ▁▂▃▄▅▆▇█",
    view_left="╺", view="━", view_right="╸",
    corners="╭╮╰╯",
)  # fmt: skip
ASCII = Glyphs(
    fills={
        "fwd": "f", "bwd": "b", "wg": "w", "opt": "o", "exposed": "x", "host": "h", "wait": "-",
        "bubble": ".", "idle": " ", "kernel": "k", "copy": "c",
    },
    busy="#", partly="+", vertical="|", horizontal="-", cross="+", tee="+", cursor="V", heat=" 12345678",
    view_left="[", view="=", view_right="]",
    corners="++++",
)  # fmt: skip


# Cells by their height in eighths, and the height from which on one is a kind of work, and no trace or
# bubble.
_HEIGHTS = " ▁▂▃▄▅▆▇█"
_LEAST_GROWN = 4

# Past the scripts that end here (Latin, Greek, Cyrillic) terminals differ in the width of a character, and
# some scripts run from right to left.
_LAST_PLAIN = 0x52F


def cells(text: str, limit: int = 200) -> str:
    """Returns text of a file as at most `limit` characters of one cell each: escaped, others as `?`."""
    return in_cells(printable_within(text, limit))


def in_cells(safe: str) -> str:
    """Returns printable text with `?` for each character that does not fill one cell."""
    return safe if safe.isascii() else "".join(char if _is_one_cell(char) else "?" for char in safe)


def name_cut(name: str, limit: int) -> str:
    """Returns an operation's name as it is shown, in at most `limit` cells."""
    return middle_cut(display_name(name), limit)


def middle_cut(text: str, limit: int) -> str:
    """Returns text of a file as `cells` does, truncated in its middle where it is too long: its end matters
    as much.
    """
    safe = cells(text, 4 * max(limit, 200))
    if len(safe) <= limit:
        return safe
    end = max(limit - 3, 0) // 2
    return f"{safe[: max(limit - 3 - end, 0)]}...{safe[len(safe) - end :]}"[:limit]


# Fewer letters of a name say nothing.
_LEAST_HEAD = 3


def cut_distinct(names: Iterable[str], limit: int) -> dict[str, str]:
    """Returns names of operations as `name_cut` does; those that would become equal begin where
    they differ.
    """
    text_by_name = {name: name_cut(name, limit) for name in dict.fromkeys(names)}
    names_by_text: dict[str, list[str]] = {}
    for name, text in text_by_name.items():
        names_by_text.setdefault(text, []).append(name)
    for equal_names in names_by_text.values():
        if len(equal_names) > 1:
            text_by_name |= _cut_from_difference(equal_names, limit)
    return text_by_name


def _cut_from_difference(names: list[str], limit: int) -> dict[str, str]:
    """Returns several names in at most `limit` cells: as much of their beginnings as there is room for, then
    from their first difference on, back to where its word begins.
    """
    texts = {name: cells(display_name(name), 4 * max(limit, 200)) for name in names}
    # The least and the greatest differ first where any two do.
    first, last = min(texts.values()), max(texts.values())
    pairs = enumerate(zip(first, last, strict=False))
    start = next((at for at, (letter, other) in pairs if letter != other), min(len(first), len(last)))
    word = max((first.rfind(separator, 0, start) for separator in "._:/ "), default=-1) + 1
    start = word if start - word <= limit // 4 else start
    rest = max(len(text) - start for text in texts.values())
    head = min(limit - 3 - rest, start)
    head = head if head >= _LEAST_HEAD else 0
    cut_texts = {name: f"{text[:head]}...{text[start:]}" for name, text in texts.items()}
    return {name: end_cut(text, limit) for name, text in cut_texts.items()}


def end_cut(text: str, limit: int) -> str:
    """Returns text of one cell each as at most `limit` characters, truncated with dots at its end."""
    return text if len(text) <= limit else f"{text[: max(limit - 3, 0)]}..."[: max(limit, 0)]


def _is_one_cell(char: str) -> bool:
    return ord(char) <= _LAST_PLAIN and unicodedata.category(char)[0] in "LNPSZ"


def as_ascii(lines: Iterable[Line]) -> list[Line]:
    """Returns lines in ASCII only, for a terminal without Unicode: `?` for every other character."""
    return [[(text.encode("ascii", "replace").decode(), role) for text, role in line] for line in lines]


def width_of(line: Line) -> int:
    """Returns the cells that a line fills."""
    return sum(len(text) for text, _ in line)


def fitted(line: Line, width: int) -> Line:
    """Returns `line` truncated or padded to exactly `width` cells, neighbours of equal role merged."""
    return _fit(line, width)[0]


def shortened(line: Line, width: int) -> Line:
    """Returns `line` as `fitted` does; where more than blanks is truncated it ends with dots: half a figure
    reads as another.
    """
    whole, is_cut = _fit(line, width)
    return [*fitted(whole, max(width - 3, 0)), ("..."[:width], "dim")] if is_cut else whole


def _fit(line: Line, width: int) -> tuple[Line, bool]:
    """Returns `line` in `width` cells, and whether more than blanks was truncated."""
    merged: Line = []
    left, is_cut = width, False
    for text, role in line:
        size = len(text)
        if size > left:
            is_cut = is_cut or not text[left:].isspace()
            text, size = text[:left], left
        if not size:
            continue
        left -= size
        if merged and merged[-1][1] == role:
            merged[-1] = (merged[-1][0] + text, role)
        else:
            merged.append((text, role))
    if left > 0:
        if merged and merged[-1][1] == "":
            merged[-1] = (merged[-1][0] + " " * left, "")
        else:
            merged.append((" " * left, ""))
    return merged, is_cut


def spread(left: Line, right: Line, width: int) -> Line:
    """Returns two parts at the two ends of a line; where both do not fit, the left one is truncated."""
    room = max(width - width_of(right) - 1, 0)
    return fitted([*shortened(left, room), (" ", ""), *right], width)


def wrapped(text: str, width: int) -> list[str]:
    """Returns text in lines of at most `width` cells; figures are not broken."""
    unbroken_text = keep_units_unbroken(text)
    return [
        part.replace("\u00a0", " ")
        for line in unbroken_text.split("\n")
        for part in textwrap.wrap(line, max(width, 20))
    ]


def shorter_sentences(text: str, least: int) -> Iterator[str]:
    """Yields the text up to a full stop or a colon, the longest first, of more than `least` characters: never
    half a clause, nor a bracket that stays open.
    """
    for end in range(len(text) - 2, least, -1):
        front = text[:end]
        if text[end : end + 2] in (". ", ": ") and front.count("(") == front.count(")"):
            yield f"{front}."


def rule(title: str, width: int, glyphs: Glyphs) -> Line:
    """Returns a horizontal line with a title near its left end."""
    return fitted(
        [
            (glyphs.horizontal * 2, "dim"),
            (f" {end_cut(title, width - 4)} " if title else "", ""),
            (glyphs.horizontal * width, "dim"),
        ],
        width,
    )


def scrolled(top: int, count: int, rows: int, cursor: int, also_visible: int | None = None) -> int:
    """Returns the first of `count` lines to show where there is room for `rows`: the previous one, moved as
    little as brings the cursor into view, and `also_visible` with it where there is room for both.
    """
    top = max(0, min(top, count - rows))
    for line in (cursor if also_visible is None else also_visible, cursor):
        top = min(max(top, line - rows + 1), line)
    return max(top, 0)


def page_of(lines: list[Line], top: int, rows: int, more: Callable[[int], Line]) -> tuple[int, list[Line]]:
    """Returns (first line, lines) from `top` on, as many as there are. more: the last row, given how many are
    below.
    """
    top = max(0, min(top, len(lines) - rows))
    below = len(lines) - top - rows
    return top, [*lines[top:][: rows - 1], more(below + 1)] if below > 0 else lines[top:]


def rows_around(row: int, count: int, rows: int) -> range:
    """Returns which of `count` rows are shown where there is room for `rows`: those around the cursor's."""
    first = min(max(row - rows // 2, 0), max(count - rows, 0))
    return range(first, min(first + rows, count))


def row_of(line: Line, row: int, rows: int) -> Line:
    """Returns the cells of a lane or bar in row `row` from below of `rows`: cells of work are scaled to all
    rows; traces and bubbles keep their height.
    """
    table = {}
    for eighths, glyph in enumerate(_HEIGHTS[1:], 1):
        height = eighths * rows - 8 * row if eighths >= _LEAST_GROWN else eighths - 8 * row
        table[ord(glyph)] = _HEIGHTS[max(0, min(height, 8))]
    # A half-high cell with a gap at its end.
    height = _LEAST_GROWN * rows - 8 * row
    table[ord("▖")] = "▉" if height >= 8 else "▖" if height > 0 else " "
    return [(text.translate(table), role) for text, role in line]


def largest(weights: Sequence[tuple[int, ...]], rows: int) -> list[int]:
    """Returns which rows are shown where there is room for `rows`: those of the largest weights, in their
    order.
    """
    by_weight = sorted(range(len(weights)), key=lambda index: weights[index], reverse=True)
    return sorted(by_weight[: max(rows, 0)])


def text_of(frame: Iterable[Line]) -> str:
    """Returns the characters of a frame, a line a row."""
    return "\n".join("".join(text for text, _ in line) for line in frame)
