"""The compare screen as a frame: both runs in words, their lanes in pairs, accounts and what differs most.

Where the lanes of a pair differ they are tinted column by column, or underlined without colours; a pair that
is alike is one lane.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from simcore.comparison import AccountChange
from simcore.trace.figures import compare_by_work, is_other_work, judge, judge_times, microbatch_ns
from simcore.trace.lane_spans import format_position
from simcore.units import column_unit, difference, duration, plural, signed_duration, whole_percent
from tui.change_words import flags_in
from tui.compare.marks import ONLY_A, ONLY_B, OTHER, SAME
from tui.compare.model import A_ALONE, B_ALONE, BOTH, DIFFERENCES, PAIRS, CompareModel
from tui.compare.source import ComparedLanes
from tui.frame import Glyphs, Line, end_cut, row_of, rule, shortened, shorter_sentences, width_of, wrapped
from tui.panels import box, join_panels
from tui.timeline.drawing import draw_lane
from tui.timeline.lanes import SpanLane, format_share
from tui.timeline.margins import legend, ticks
from tui.timeline.match_cells import UNDERLINED

# A notice may take two lines of a panel with at least this many rows.
_NOTICE_LINES, _TALL_PANEL = 2, 8
# The least cells of the names of what differs.
_LEAST_NAME = 12
_AND_MORE, _STAGE = re.compile(r"^(rank \d+) and (\d+) more\b"), re.compile(r"^stage (\d+)")


def draw_panels(
    model: CompareModel, width: int, height: int, glyphs: Glyphs, is_found: bool, wide: bool
) -> list[Line]:
    """Returns both panels side by side where they fit, else the one with the focus. is_found: whether the
    slow results are there.
    """
    if not wide:
        return _one_panel(model, width, height, glyphs, is_found)
    left = width * 42 // 100
    rows = height - 2
    account_lines, hidden = _account_lines(model, left - 2, rows, 1)
    if hidden:
        account_lines.insert(-1, [(f" {hidden} more that change less", "dim")])
    accounts = box(model.compared.accounts_title, "A   B   B - A", account_lines, left, height, glyphs)
    table = _difference_lines(model, width - left - 2, rows, is_found)
    focused = model.panel == DIFFERENCES
    title = f"What differs most{_position_text(model, is_found)}"
    return join_panels(accounts, box(title, "B - A", table, width - left, height, glyphs, focused))


def _one_panel(model: CompareModel, width: int, height: int, glyphs: Glyphs, is_found: bool) -> list[Line]:
    if model.panel == DIFFERENCES:
        table = _difference_lines(model, width, height - 1, is_found)
        return [rule(f"What differs most{_position_text(model, is_found)}", width, glyphs, "B - A"), *table]
    accounts, hidden = _account_lines(model, width, height - 1, 0)
    more = f" ({hidden} more change less)" if hidden else ""
    return [rule(f"{model.compared.accounts_title}{more}", width, glyphs), *accounts]


def _position_text(model: CompareModel, is_found: bool) -> str:
    """Returns `, 3 of 20`: which of the rows the cursor is on."""
    count = len(model.compared.rows) if is_found and model.panel == DIFFERENCES else 0
    return f", {model.difference_index + 1} of {count}" if count else ""


def _account_lines(model: CompareModel, width: int, rows: int, reserved_rows: int) -> tuple[list[Line], int]:
    """Returns the nonzero accounts, those that change most where not all fit, the step below; and how many
    are left out. reserved_rows: rows that are kept free to say so.
    """
    steps = model.compared.steps
    unit_ns, unit = column_unit(max(steps))
    changes = list(model.compared.accounts)
    hidden = 0
    if len(changes) > rows - 1:
        largest = sorted(changes, key=lambda change: -abs(change.ns))[: max(rows - 1 - reserved_rows, 0)]
        hidden = len(changes) - len(largest)
        changes = [change for change in changes if change in largest]
    most = max([abs(change.ns) for change in changes] + [1])
    bar = max(width - 49, 0)
    share = model.compared.same_work_share
    lines: list[Line] = []
    for change in [*changes, AccountChange("step", *steps)]:
        name = f"{change.name}, {unit}" if change.name == "step" else change.name
        figures = f" {name:<17}{change.a_ns / unit_ns:>9.3f}{change.b_ns / unit_ns:>9.3f}"
        diff = f"{change.ns / unit_ns:>+10.3f} " if change.ns else f"{'=':>10} "
        role = "" if share is None else judge_times(change.a_ns, change.b_ns * share, steps[0])
        length = round(bar * abs(change.ns) / most) if change.name != "step" else 0
        lines.append([(figures, ""), (diff, role), (("+" if change.ns > 0 else "-") * length, role)])
    return lines, hidden


def _difference_lines(model: CompareModel, width: int, rows: int, is_found: bool) -> list[Line]:
    if not is_found:
        return [[(" comparing op by op", "dim")]]
    compared = model.compared
    unchanged_lines = (
        wrapped(f"unchanged: {', '.join(compared.unchanged)}", width - 1) if compared.unchanged else []
    )
    unchanged_lines += wrapped(compared.splits_text, width - 1) if compared.splits_text else []
    notice_lines = [line for notice in compared.notices for line in _notice_lines(notice, width - 1, rows)]
    notices = [
        *((notice, "dim") for notice in unchanged_lines),
        *((notice, "warn") for notice in notice_lines),
    ]
    room = max(rows - len(notices), 1)
    first = max(0, min(model.difference_index - room + 1, len(compared.rows) - room))
    # Figures have the cells that they need, and names have the rest.
    row_cells = [
        (row.measure, duration(row.a_ns), duration(row.b_ns), signed_duration(row.b_ns - row.a_ns))
        for row in compared.rows
    ]
    sizes = [max(map(len, column)) for column in zip(*row_cells, strict=True)]
    size = max(width - sum(sizes) - 6, _LEAST_NAME)
    lines: list[Line] = []
    for index, row in list(enumerate(compared.rows))[first : first + room]:
        is_at_cursor = model.panel == DIFFERENCES and index == model.difference_index
        measure, *figures = row_cells[index]
        text = f"{'>' if is_at_cursor else ' '}{_short_name(row.words, size):<{size}} {measure:<{sizes[0]}}"
        text += "".join(f" {figure:>{cells}}" for figure, cells in zip(figures, sizes[1:], strict=True))
        lines.append([(text, "accent" if is_at_cursor else "")])
    if not compared.rows:
        lines.append([(" nothing differs", "dim")])
    return lines + [shortened([(f" {notice}", role)], width) for notice, role in notices]


def _short_name(words: str, room: int) -> str:
    """Returns what differs in `room` cells: shorter synonyms first, then, of several ranks, without the
    owner; what is still too long is truncated at its end.
    """
    short = words.replace("micro-batch", "mb")
    forms = [words, short]
    forms.append(_STAGE.sub(r"s\1", short))
    if _AND_MORE.match(short):
        forms += [_AND_MORE.sub(r"\1 +\2", short), short.partition(", ")[2]]
    return next((form for form in forms if len(form) <= room), end_cut(forms[-1], room))


def _notice_lines(notice: str, width: int, rows: int) -> list[str]:
    """Returns a notice on two lines where these are enough and the panel is tall, else on one that is
    truncated.
    """
    lines = wrapped(notice, width)
    return lines if len(lines) <= _NOTICE_LINES and rows >= _TALL_PANEL else [notice]


# The role of each mark.
ROLES = {ONLY_A: "only-a", ONLY_B: "only-b", OTHER: "moved", SAME: ""}
# Of the marks, those that a lane of A, and of B, shows.
_MARKS_OF = ((ONLY_A, OTHER), (ONLY_B, OTHER))


def tint_columns(line: Line, marks: str, of: Sequence[str], colour: bool) -> Line:
    """Returns a lane's cells with a sign behind those whose column has one of the marks `of`: a tint, without
    colours a line below.
    """
    cells: Line = []
    column = 0
    for text, role in line:
        for char in text:
            mark = marks[column]
            sign = f" on {ROLES[mark]}-tint" if colour else UNDERLINED
            cell_role = role + sign if mark in of and " " not in role else role
            column += 1
            if cells and cells[-1][1] == cell_role:
                cells[-1] = (cells[-1][0] + char, cell_role)
            else:
                cells.append((char, cell_role))
    return cells


def reverse_cell(line: Line, column: int) -> Line:
    """Returns a lane's cells with that of the cursor reversed."""
    cells: Line = []
    for text, role in line:
        if 0 <= column < len(text):
            plain = role.removesuffix(" reversed")
            inverse = plain if role != plain else f"{role} reversed"
            cells += [(text[:column], role), (text[column], inverse), (text[column + 1 :], role)]
        else:
            cells.append((text, role))
        column -= len(text)
    return [(text, role) for text, role in cells if text]


_WIDE, _TALL = 100, 28
_LOWER, _LEAST_LOWER = 11, 4
# Rows that the lanes and the lines around them keep before the panels get rows for more accounts.
_UPPER = 21
# The frame of what differs, and notices below it.
_AROUND_ROWS = 6
# The most additional lines of a lane.
_TALLER = 2
# Stands for A and B where one lane is of both.
_BOTH_EQUAL = "="
# Lines of what differs most between two ranks, on a tall screen.
_WHY_LINES = 5
# The least characters of an informative reason: `Why: bubble` alone says nothing.
_LEAST_WHY = 20
_UNLIMITED = 1000
_MARKS = ((ONLY_A, " A busy "), (ONLY_B, " B busy "), (OTHER, " differs "))
# Where the full legend has no room: all that is drawn is named before any of it in full.
_SHORT_WORDS = {
    "forward": "fwd", "backward": "bwd", "optimizer": "opt", "communication": "comm", "exposed": "comm",
    "recompute": "again",
}  # fmt: skip
_SHORT_MARKS = ((ONLY_A, " A "), (ONLY_B, " B "), (OTHER, " differs "))
_THEY_DIFFER = " they differ "


def draw(
    model: CompareModel, names: tuple[str, str], width: int, height: int, glyphs: Glyphs, colour: bool,
    is_found: bool,
) -> list[Line]:  # fmt: skip
    """Returns the lines of the screen. names: of the two runs. is_found: whether the slow results are there;
    until then there is nothing about single ops.
    """
    lines = _head_lines(model, names, width, height, is_found)
    wide = width >= _WIDE
    rows = _LEAST_LOWER
    if height >= _TALL:
        # The accounts, the step below them, and the frame.
        rows = max(_LOWER, min(len(model.compared.accounts) + 3, height - _UPPER))
    left = 23 if wide else 13
    cursor_lines = _cursor_lines(model, max(width - left - 1, 1), wide)
    around = len(lines) + len(cursor_lines) + 4
    room = height - around - rows
    model.resize(max(width - left - 1, 1), max(room, 1))
    if is_found and height >= _TALL:
        # Rows that the lanes leave free go to what differs.
        spare = room - sum(map(model.height, range(min(model.compared.pairs, room))))
        rows += max(min(spare, len(model.compared.rows) + _AROUND_ROWS - rows), 0)
    lower = draw_panels(model, width, rows, glyphs, is_found, wide and height >= _TALL)[:rows]
    room = height - around - len(lower)
    model.resize(max(width - left - 1, 1), max(room, 1))
    lines += _ruler(model, left, glyphs)
    pairs = model.visible_pairs()
    high = _lane_height(model, room)
    pair_lines = [line for pair in pairs for line in _pair_lines(model, pair, left, glyphs, colour, high)]
    pair_lines = pair_lines[: max(room, 1)]
    lines += [*pair_lines, *([[]] * max(room - len(pair_lines), 0))]
    pairs_below = model.compared.pairs - model.top - len(pairs)
    parts = [f"{pairs_below} more {'pair' if pairs_below == 1 else 'pairs'} below"] if pairs_below else []
    parts += [] if model.visible_sides == BOTH else [f"{model.visible_sides} shown"]
    parts.append("ends aligned" if model.aligns_ends else "starts aligned")
    parts += _alone_texts(model, width - len(", ".join(parts)) - 6)
    title, cost = ", ".join(parts), model.compared.cost if is_found and not (wide and height >= _TALL) else ""
    # A large screen has it among the notices, next to the accounts.
    title += f"; {cost}" if cost and len(title) + len(cost) + 6 <= width else ""
    lines.append(rule(title, width, glyphs))
    bottom = [_legend_line(model, glyphs, width, colour), *cursor_lines]
    return [*lines, *lower, *bottom][:height]


def _alone_texts(model: CompareModel, room: int) -> list[str]:
    """Returns how many lanes of A and of B are in no pair, and which, where `room` cells are enough."""
    lanes_alone = [("AB"[side], names) for side, names in enumerate(model.compared.alone) if names]
    full_texts = [
        f"{plural(len(names), 'lane')} of {side} alone: {names[0]}"
        + (f" to {names[-1]}" if len(names) > 1 else "")
        for side, names in lanes_alone
    ]
    if len(", ".join(full_texts)) <= room:
        return full_texts
    return [f"{plural(len(names), 'lane')} of {side} alone" for side, names in lanes_alone]


def _head_lines(
    model: CompareModel, names: tuple[str, str], width: int, height: int, is_found: bool
) -> list[Line]:
    compared = model.compared
    lines: list[Line] = []
    longest = max(map(len, names))
    a, b = compared.runs
    microbatch_times = microbatch_ns(a.shape), microbatch_ns(b.shape)
    # The mean of unequal micro-batches says little.
    has_mean = width >= _WIDE and a.shape.has_equal_microbatches and b.shape.has_equal_microbatches
    microbatch_texts = [f"{duration(ns)}/mb" if ns and has_mean else "" for ns in microbatch_times]
    # With one micro-batch the step time says it.
    size = (
        max(map(len, microbatch_texts)) + 2
        if all(microbatch_texts) and microbatch_times != compared.steps
        else 0
    )
    sides = flags_in(compared.sides, width - (longest + 2 if longest else 0) - size - 15)
    for side, (name, step, words) in enumerate(zip(names, compared.steps, sides, strict=True)):
        role = ROLES["AB"[side]]
        name_text = f"{name:<{longest}}  " if longest else ""
        lines.append(
            [
                (f" {'AB'[side]}  ", role),
                (name_text, ""),
                (f"{duration(step):<10}", "bright"),
                (f" {microbatch_texts[side] if size else '':<{size}}", ""),
                (words, ""),
            ]
        )
    if not compared.of_one_step:
        lines.append(_step_line(compared, width, is_found))
    if is_found and compared.is_other_model and compared.notices:
        # Before the figures of two models are compared.
        lines.insert(0, [(f" {compared.notices[0]}", "warn")])
    if not is_found:
        words = "comparing by name" if compared.of_one_step else "comparing the critical paths"
    else:
        words = compared.why if compared.of_one_step else f"Why: {compared.why}."
    most = 2 if not compared.of_one_step else _WHY_LINES if height >= _TALL else 3
    return [shortened(line, width) for line in [*lines, *_why_lines(words, width, most)]]


def _step_line(compared: ComparedLanes, width: int, is_found: bool) -> Line:
    """Returns B - A, and what was matched."""
    a, b = compared.runs
    by_work = compare_by_work(a.shape, b.shape)
    steps = difference(*compared.steps)
    # More micro-batches in a step are more work, and no loss.
    steps = steps if by_work is None else f"{by_work.words}; step {steps}"
    steps += ", not the same work" if is_other_work(a.shape, b.shape) else ""
    matched_text = (
        _fit_clauses(f"; {compared.matching_text}", width - len(" B - A  " + steps)) if is_found else ""
    )
    role = "warn" if compared.same_work_share is None else judge(a.shape, b.shape)
    return [(" B - A  ", "dim"), (steps, role), (matched_text, "dim")]


def _why_lines(words: str, width: int, most: int) -> list[Line]:
    """Returns why B - A in `most` lines: complete sentences before half of one."""
    without, _, bracket = words.rpartition(" (")
    # The difference and its cause come before the details in brackets.
    forms = [words, *([f"{without}."] if bracket.endswith(").") else [])]
    # A reason less, then without the parts of the difference.
    reasons = words.removesuffix(".").split("; ")
    forms += [f"{'; '.join(reasons[:count])}." for count in range(len(reasons) - 1, 0, -1)]
    forms += [f"{reasons[0].rpartition(' (')[0]}."] if reasons[0].endswith(")") else []
    forms += shorter_sentences(words, _LEAST_WHY)
    text = next((form for form in forms if len(wrapped(form, width - 8)) <= most), words)
    why = [
        (f" {line}" if not index else f"      {line}") for index, line in enumerate(wrapped(text, width - 8))
    ]
    if len(why) > most:
        why[most - 1] += " ..."
    return [[(line, "")] for line in why[:most]]


def _fit_clauses(text: str, room: int) -> str:
    """Returns as many clauses of a text as `room` cells take: a truncated figure would be another figure."""
    while len(text) > room and text:
        text = text.rpartition(", ")[0]
    return text


def _ruler(model: CompareModel, left: int, glyphs: Glyphs) -> list[Line]:
    labels = marks_ = ""
    for column, label in ticks(model.window, model.columns):
        if column + len(label) <= model.columns and len(labels) <= column:
            labels = labels.ljust(column) + label + " "
        marks_ = marks_.ljust(column, glyphs.horizontal) + glyphs.tee
    labels = labels[: model.columns].ljust(model.columns)
    marks_ = marks_[: model.columns].ljust(model.columns, glyphs.horizontal)
    heading = "  lane pair   busy diff" if left > 20 else " pair   busy"
    at = model.cursor_column
    return [
        [(heading.ljust(left), "dim"), (glyphs.vertical, "dim"), (labels, "")],
        [(glyphs.horizontal * left + glyphs.cross + marks_[:at], "dim"), (glyphs.cursor, "accent"),
         (marks_[at + 1 :], "dim")],
    ]  # fmt: skip


def _lane_height(model: CompareModel, room: int) -> int:
    """Returns the lines of a lane: taller lanes take what all pairs leave free."""
    pairs = range(model.compared.pairs) if len(model.visible_pairs()) == model.compared.pairs else ()
    lanes = sum(map(model.height, pairs))
    return 1 + min((room - lanes) // lanes, _TALLER) if lanes else 1


def _lane_rows(
    lane: SpanLane, model: CompareModel, side: int, label: Line, glyphs: Glyphs, colour: bool, high: int,
    is_at_cursor: bool, marks: str = "",
) -> list[Line]:  # fmt: skip
    """Returns a lane in `high` lines, its label before the last. is_at_cursor: whether the cursor is on its
    pair. marks: where it differs from the other one.
    """
    lane_cells = draw_lane(lane, model.side_window(side), model.columns, glyphs, colour, tall=high > 1)
    rows = [row_of(lane_cells.plain, above, high) for above in range(high - 1, 0, -1)]
    rows.append(row_of(lane_cells.line, 0, high) if high > 1 else lane_cells.line)
    if marks:
        rows = [tint_columns(row, marks, _MARKS_OF[side], colour) for row in rows]
    if is_at_cursor:
        rows = [reverse_cell(row, model.cursor_column) for row in rows]
    blank: Line = [(" " * width_of(label), "")]
    return [
        [*(label if index == len(rows) - 1 else blank), (glyphs.vertical, "dim"), *row]
        for index, row in enumerate(rows)
    ]


def _pair_lines(
    model: CompareModel, pair: int, left: int, glyphs: Glyphs, colour: bool, high: int
) -> list[Line]:
    """Returns the visible lanes of a pair, how much of the step they compute, and where they differ.

    Where they are alike that of A stands for both.
    """
    is_at_cursor = model.panel == PAIRS and pair == model.pair
    lanes = model.compared.lanes(pair)
    busy_ns, steps = model.compared.busy_ns(pair), model.compared.steps
    busy_change = whole_percent(busy_ns[1], steps[1]) - whole_percent(busy_ns[0], steps[0])
    is_folded = model.is_folded(pair)
    marks = model.difference_marks(pair) if model.visible_sides == BOTH and not is_folded else ""
    lines: list[Line] = []
    for side, lane in enumerate(lanes):
        if model.visible_sides == (B_ALONE, A_ALONE)[side] or (is_folded and lines):
            continue
        is_first = not lines
        mark = ">" if is_at_cursor and is_first else " "
        name = model.compared.pair_name(pair)
        name = name.replace("stage ", "").replace("rank ", "") if left < 20 else name
        # The count of a measured lane is the id of its stage, which needs the word.
        stage = "" if not lane.count.isdecimal() else "stage " if left > 20 else "s "
        title = f"{mark} {name}" if is_first else f"   {stage}{lane.count}"
        busy = f"{_BOTH_EQUAL if is_folded else 'AB'[side]}{format_share(busy_ns[side], steps[side]):>5}"
        diff = f"{busy_change:+4}" if side and busy_change else "    "
        tail = busy + (diff if left > 20 else "")
        room = left - len(tail) - 1
        if len(title) > room and is_first:
            title = f"{mark} {name.replace('rank ', '')}"
        if len(title) > room:
            # A truncated number would be another number.
            title = end_cut(f"{mark}{name}" if is_first else lane.count.rjust(room), room)
        label = f"{title:<{left - len(tail)}}{tail}"
        styled_label: Line = [(label, "accent" if is_at_cursor else "")]
        lines += _lane_rows(lane, model, side, styled_label, glyphs, colour, high, is_at_cursor, marks)
    if pair in model.unfolded:
        for streams in model.compared.streams(pair):
            lines += _stream_lines(model, pair, streams, left, glyphs, colour, high)
    return lines


def _stream_lines(
    model: CompareModel,
    pair: int,
    lanes: tuple[SpanLane, SpanLane],
    left: int,
    glyphs: Glyphs,
    colour: bool,
    high: int,
) -> list[Line]:
    """Returns one stream of a pair in both runs, below its name."""
    lines: list[Line] = []
    for side, lane in enumerate(lanes):
        if model.visible_sides == (B_ALONE, A_ALONE)[side]:
            continue
        title = (lane.title if left > 20 else lane.short_title) if not lines else ""
        tail = f"{'AB'[side]}{lane.busy:>5}" + ("    " if left > 20 else "")
        label = f"     {title}"[: left - len(tail) - 1].ljust(left - len(tail)) + tail
        at = model.panel == PAIRS and pair == model.pair
        lines += _lane_rows(lane, model, side, [(label, "dim")], glyphs, colour, high, at)
    return lines


def _legend_line(model: CompareModel, glyphs: Glyphs, width: int, colour: bool) -> Line:
    """Returns what the marks mean, then what the cells do: each kind of communication where there is room."""
    wide = width >= _WIDE
    line: Line = []
    if model.visible_sides == BOTH and not colour:
        line += [(" ", ""), (_THEY_DIFFER, UNDERLINED)]
    elif model.visible_sides == BOTH:
        for mark, meaning in _MARKS if wide else _SHORT_MARKS:
            line += [(" ", ""), (meaning, f"{ROLES[mark]} on {ROLES[mark]}-tint")]
    room = width - width_of(line)
    kinds = list(model.compared.legend)
    short = [kind._replace(words=_SHORT_WORDS.get(kind.words.split()[0], kind.words)) for kind in kinds]
    for entries, names_kinds in ((kinds, True), (kinds, False), (short, False)):
        # Blank cells need no words.
        visible = [entry for entry in entries if entry.fill != "idle"]
        full_width = width_of(legend(visible, glyphs, _UNLIMITED, colour, False, wide=names_kinds))
        if full_width < room and (wide or not names_kinds):
            break
    return [*line, *legend(entries, glyphs, room, colour, False, wide=names_kinds)]


def _cursor_lines(model: CompareModel, columns: int, wide: bool) -> list[Line]:
    """Returns what A and B do at the cursor: one line where there is room for both. columns: of the lanes."""
    position = format_position(model.cursor_ns, model.window.span_ns // columns)
    head = f" {position}, {model.compared.pair_name(model.pair)}"
    side_lines: list[Line] = []
    for side, alone in ((0, A_ALONE), (1, B_ALONE)):
        if model.visible_sides in (BOTH, alone):
            words = model.compared.describe_lane(model.pair, side, model.cursor_ns - model.start_offset(side))
            side_lines.append([(f"   {'AB'[side]} ", ROLES["AB"[side]]), (words, "")])
    if wide:
        return [[(head, "bright"), *(styled for line in side_lines for styled in line)]]
    head = f" {position}"
    return [
        [(head if not index else " " * len(head), "bright"), *line] for index, line in enumerate(side_lines)
    ]
