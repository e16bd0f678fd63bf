"""A frame: lines of (text, role) pairs, one cell a character; a screen before its colours."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from simcore.diagnostics import printable_within
from simcore.kernel_names import display_name, distinct_names
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
    bar: str
    """A blank, parts of a cell, a full cell."""
    view_left: str
    view: str
    view_right: str
    corners: str


BLOCKS = Glyphs(
    fills={
        "fwd": "▄", "bwd": "█", "wg": "▆", "opt": "▇", "exposed": "▌", "host": "▎", "wait": "─",
        "bubble": "▁", "idle": " ", "kernel": "▅", "copy": "▍",
        "allocated": "█", "released": "▄", "reserved": "▁",
    },
    busy="▌", partly="▂", vertical="│", horizontal="─", cross="┼", tee="┬", cursor="┃", heat=" ▁▂▃▄▅▆▇█",
    bar=" ▏▎▍▌▋▊▉█", view_left="╺", view="━", view_right="╸",
    corners="╭╮╰╯",
)  # fmt: skip
ASCII = Glyphs(
    fills={
        "fwd": "f", "bwd": "b", "wg": "w", "opt": "o", "exposed": "x", "host": "h", "wait": "-",
        "bubble": ".", "idle": " ", "kernel": "k", "copy": "c",
        "allocated": "a", "released": "r", "reserved": ".",
    },
    busy="#", partly="+", vertical="|", horizontal="-", cross="+", tee="+", cursor="V", heat=" 12345678",
    bar=" =", view_left="[", view="=", view_right="]",
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


# A word with more letters is a name.
_LONG_WORD = 16
# Fewer letters of a name say nothing.
_LEAST_HEAD = 3
# A word of a name.
_WORD = re.compile(r"[^._:/\s()<>,\[\]-]+")
_DOTS = "..."
# (begin, end) of a part of a text.
_Span = tuple[int, int]
# Returns a part of each of several texts, by name.
_FindSpans = Callable[[Mapping[str, str]], Mapping[str, _Span]]


def cut_distinct(names: Iterable[str], limit: int) -> dict[str, str]:
    """Returns names of operations as they are shown, in at most `limit` cells: see `cut_apart`."""
    return cut_apart(distinct_names(names), limit)


def cut_apart(text_by_name: Mapping[str, str], limit: int) -> dict[str, str]:
    """Returns the texts of different names in at most `limit` cells, no two of them equal.

    A text that is too long keeps the last word in which it differs from another one, and where it would still
    equal one of them also the last word in which it differs from that. What has no room for this is numbered.
    """
    safe_by_name = {name: cells(text, 4 * max(limit, 200)) for name, text in text_by_name.items()}
    cut_by_name = {name: text for name, text in safe_by_name.items() if len(text) <= limit}
    long_by_name = {name: text for name, text in safe_by_name.items() if len(text) > limit}
    if len(safe_by_name) <= 1:
        return {name: middle_cut(text, limit) for name, text in safe_by_name.items()}
    spans_by_name: dict[str, list[_Span]] = {name: [] for name in long_by_name}

    def cut_names(equal_by_name: Mapping[str, str], find_spans: _FindSpans) -> None:
        for name, span in find_spans(equal_by_name).items():
            if name in long_by_name:
                known_spans = spans_by_name[name]
                options = [[*known_spans, span]]
                if find_spans is _last_differing_words or not known_spans:
                    # The word that tells it apart comes before the end of the name.
                    options.append([span])
                for spans in options:
                    text = _cut_around(safe_by_name[name], spans, limit)
                    if text:
                        spans_by_name[name], cut_by_name[name] = spans, text
                        break
                else:
                    cut_by_name.setdefault(name, _cut_from(safe_by_name[name], span[0], limit))

    cut_names(safe_by_name, _last_differing_words)
    # Several words may be needed to tell a name from all others.
    for find_spans in (*[_last_differing_words] * 3, _first_differences):
        for names in _equal_names(cut_by_name):
            cut_names({name: safe_by_name[name] for name in names}, find_spans)
    unique_by_name = _make_unique(cut_by_name, limit)
    return {name: unique_by_name[name] for name in safe_by_name}


def common_words(texts: Sequence[str]) -> str:
    """Returns the words that several texts begin with, up to where the next one begins; "" where nothing of
    one would be left.
    """
    prefix = texts[0][: _equal_items(texts)] if len(texts) > 1 else ""
    end = next((at for at in range(len(prefix), 0, -1) if not _WORD.fullmatch(prefix[at - 1])), 0)
    return "" if any(len(text) == end for text in texts) else prefix[:end]


def _equal_items(sequences: Sequence[str] | Sequence[list[str]]) -> int:
    """Returns how many items all sequences begin with."""
    # The least and the greatest differ first where any two do.
    least, most = min(sequences), max(sequences)
    pairs = enumerate(zip(least, most, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(least), len(most)))


def _equal_names(text_by_name: Mapping[str, str]) -> list[list[str]]:
    """Returns the names whose texts are equal, together."""
    names_by_text: dict[str, list[str]] = {}
    for name, text in text_by_name.items():
        names_by_text.setdefault(text, []).append(name)
    return [names for names in names_by_text.values() if len(names) > 1]


def _cut_from(text: str, start: int, limit: int) -> str:
    """Returns as much of a text from a start on as there is room for."""
    return end_cut(f"{_DOTS if start else ''}{text[start:]}", limit)


def _cut_around(text: str, spans: Iterable[_Span], limit: int) -> str:
    """Returns a text in `limit` cells with some parts of it whole: what follows the last, then the beginning
    have the cells that are left. "" where there is no room for the parts.
    """
    parts: list[list[int]] = []
    for start, end in sorted(spans):
        # Dots are no shorter than what they would replace.
        if parts and start - parts[-1][1] <= len(_DOTS):
            parts[-1][1] = max(end, parts[-1][1])
        else:
            parts.append([start, end])
    size = sum(end - start + len(_DOTS) for start, end in parts) + len(_DOTS)
    first, last = parts[0], parts[-1]
    if first[0] <= len(_DOTS):
        size, first[0] = size + first[0] - len(_DOTS), 0
    if len(text) - last[1] <= len(_DOTS):
        size, last[1] = size + len(text) - last[1] - len(_DOTS), len(text)
    spare = limit - size
    if spare < 0:
        return ""
    # What is between the parts comes back first: fewer parts read better.
    for at in range(len(parts) - 1, 0, -1):
        missing = parts[at][0] - parts[at - 1][1] - len(_DOTS)
        if missing <= spare:
            spare -= missing
            parts[at - 1][1] = parts.pop(at)[1]
    last = parts[-1]
    if last[1] < len(text):
        whole = len(text) - last[1] - len(_DOTS)
        more = min(whole, spare)
        last[1] = len(text) if more == whole else last[1] + more
        spare -= more
    head = ""
    if first[0] and spare + len(_DOTS) >= first[0]:
        first[0] = 0
    elif first[0]:
        head = f"{text[:spare] if spare >= _LEAST_HEAD else ''}{_DOTS}"
    tail = _DOTS if last[1] < len(text) else ""
    return f"{head}{_DOTS.join(text[start:end] for start, end in parts)}{tail}"


def _last_differing_words(text_by_name: Mapping[str, str]) -> dict[str, _Span]:
    """Returns where the last word is in which each text differs from some other one."""
    words_by_name = {name: list(_WORD.finditer(text)) for name, text in text_by_name.items()}
    backwards = [[word[0] for word in reversed(words)] for words in words_by_name.values()]
    equal = _equal_items(backwards)
    return {
        name: words[max(len(words) - 1 - equal, 0)].span() if words else (0, 0)
        for name, words in words_by_name.items()
    }


def _first_differences(text_by_name: Mapping[str, str]) -> dict[str, _Span]:
    """Returns where each text first differs from some other one: its letter there."""
    start = _equal_items(list(text_by_name.values()))
    return {name: (min(start, len(text)), min(start + 1, len(text))) for name, text in text_by_name.items()}


def _make_unique(text_by_name: Mapping[str, str], limit: int) -> dict[str, str]:
    """Returns texts of which equal ones but the first end in a number."""
    texts = set(text_by_name.values())
    unique_by_name = dict(text_by_name)
    for names in _equal_names(text_by_name):
        ending = 1
        for name in names[1:]:
            text = unique_by_name[name]
            while text in texts:
                ending += 1
                text = f"{unique_by_name[name][: max(limit - len(str(ending)) - 1, 0)]}#{ending}"
            texts.add(text)
            unique_by_name[name] = text
    return unique_by_name


def end_cut(text: str, limit: int) -> str:
    """Returns text of one cell each as at most `limit` characters, truncated with dots at its end."""
    return text if len(text) <= limit else f"{text[: max(limit - 3, 0)]}..."[: max(limit, 0)]


def title_cut(title: str, limit: int) -> str:
    """Returns a title in at most `limit` cells: without its last clauses where there is no room for all, and
    never with half a word, except of a long name.
    """
    if len(title) <= limit:
        return title
    least = limit // 2
    clause = max((end.start() for end in re.finditer("[,;] ", title[: limit + 1])), default=0)
    if clause >= max(least, 1):
        return title[:clause]
    word = title.rfind(" ", 0, max(limit - len(_DOTS), 0) + 1)
    is_name = len(title[word + 1 :].partition(" ")[0]) > _LONG_WORD
    return f"{title[:word]}{_DOTS}" if word >= max(least, 1) and not is_name else end_cut(title, limit)


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


def filled(lines: Sequence[Line], width: int, height: int) -> list[Line]:
    """Returns exactly `height` lines of exactly `width` cells, blank ones behind those that are there."""
    blank: list[Line] = [[]] * (height - len(lines))
    return [fitted(line, width) for line in [*lines, *blank][:height]]


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


def share_bar(part: float, whole: float, width: int, glyphs: Glyphs) -> str:
    """Returns a bar of at most `width` cells, all of them for the whole; any part above 0 is seen."""
    parts_of_cell = len(glyphs.bar) - 1
    filled = round(parts_of_cell * width * part / whole) if whole else 0
    full_cells, rest = divmod(max(filled, int(part > 0 and width > 0)), parts_of_cell)
    return glyphs.bar[-1] * full_cells + glyphs.bar[rest].strip()


def rule(title: str, width: int, glyphs: Glyphs, aside: str = "") -> Line:
    """Returns a horizontal line with a title near its left end and, where there is room, `aside` near its
    right end.
    """
    name = f" {title_cut(title, width - 4)} " if title else ""
    aside = f" {aside} " if aside and len(name) + len(aside) + 5 <= width else ""
    middle = glyphs.horizontal * max(width - 2 - len(name) - len(aside) - 2 * bool(aside), 0)
    end = glyphs.horizontal * 2 if aside else ""
    return fitted(
        [(glyphs.horizontal * 2, "dim"), (name, ""), (middle, "dim"), (aside, "dim"), (end, "dim")], width
    )


def count_title(noun: str, visible_count: int, count: int) -> str:
    """Returns `Notes, 2 of 8`, or `Notes` where all are there."""
    return noun if visible_count >= count else f"{noun}, {visible_count} of {count}"


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
