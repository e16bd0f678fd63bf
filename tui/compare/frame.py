"""The compare screen as a frame: both runs in words, their lanes in pairs, accounts and what differs most.

Where the lanes of a pair differ is marked column by column by a letter, and tinted in colour.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from simcore.comparison import AccountChange
from simcore.trace.figures import is_other_work, microbatch_ns, per_work
from simcore.trace.lane_spans import COMPUTING, clock
from simcore.units import column_unit, difference, duration, plural, signed, whole_percent
from tui.change_words import flags_in
from tui.compare.model import A_ALONE, B_ALONE, BOTH, MOVERS, PAIRS, CompareModel
from tui.compare.source import Compared
from tui.frame import Glyphs, Line, end_cut, row_of, rule, shortened, shorter_sentences, width_of, wrapped
from tui.panels import beside, box
from tui.timeline.drawing import drawn_lane, kinds_of
from tui.timeline.lanes import SpanLane, busy_words
from tui.timeline.margins import legend, ticks

# A notice may take two lines of a panel with so many rows.
_NOTICE_LINES, _TALL_PANEL = 2, 8
# Cells of what differs, at least.
_LEAST_NAME = 12
_AND_MORE, _STAGE = re.compile(r"^(rank \d+) and (\d+) more\b"), re.compile(r"^stage (\d+)")
_GAINS = ("forward", "backward", "input grad", "weight grad", "optimizer", "recompute")


def panels(
    model: CompareModel, width: int, height: int, glyphs: Glyphs, is_found: bool, wide: bool
) -> list[Line]:
    """Both beside each other where they fit, else that with the focus. is_found: what takes long is there."""
    if not wide:
        return _one(model, width, height, glyphs, is_found)
    left = width * 42 // 100
    rows = height - 2
    there, hidden = _accounts(model, left - 2, rows, 1)
    if hidden:
        there.insert(-1, [(f" {hidden} more that change less", "dim")])
    accounts = box(model.compared.accounts_title, "A   B   B - A", there, left, height, glyphs)
    table = _movers(model, width - left - 2, rows, is_found)
    focused = model.panel == MOVERS
    title = f"What differs most{_place(model, is_found)}"
    return beside(accounts, box(title, "Enter goes there", table, width - left, height, glyphs, focused))


def _one(model: CompareModel, width: int, height: int, glyphs: Glyphs, is_found: bool) -> list[Line]:
    if model.panel == MOVERS:
        table = _movers(model, width, height - 1, is_found)
        title = f"What differs most{_place(model, is_found)}, Enter goes there, Tab: accounts"
        return [rule(title, width, glyphs), *table]
    accounts, hidden = _accounts(model, width, height - 1, 0)
    more = f" ({hidden} more change less)" if hidden else ""
    return [rule(f"{model.compared.accounts_title}{more}, Tab: what differs", width, glyphs), *accounts]


def _place(model: CompareModel, is_found: bool) -> str:
    """`, 3 of 20`: which of the rows the cursor is on."""
    count = len(model.compared.rows) if is_found and model.panel == MOVERS else 0
    return f", {model.mover + 1} of {count}" if count else ""


def _accounts(model: CompareModel, width: int, rows: int, told: int) -> tuple[list[Line], int]:
    """The accounts that are there, those that change most where not all fit, the step below; how many
    are left out. told: rows that are kept free to say so.
    """
    steps = model.compared.steps
    unit_ns, unit = column_unit(max(steps))
    there = list(model.compared.accounts)
    hidden = 0
    if len(there) > rows - 1:
        kept = sorted(there, key=lambda change: -abs(change.ns))[: max(rows - 1 - told, 0)]
        hidden = len(there) - len(kept)
        there = [change for change in there if change in kept]
    most = max([abs(change.ns) for change in there] + [1])
    bar = max(width - 49, 0)
    lines: list[Line] = []
    for change in [*there, AccountChange("step", *steps)]:
        name = f"{change.name}, {unit}" if change.name == "step" else change.name
        figures = f" {name:<17}{change.a_ns / unit_ns:>9.3f}{change.b_ns / unit_ns:>9.3f}"
        diff = f"{change.ns / unit_ns:>+10.3f} " if change.ns else f"{'=':>10} "
        role = "worse" if change.ns > 0 and change.name not in _GAINS else "better" if change.ns < 0 else ""
        length = round(bar * abs(change.ns) / most) if change.name != "step" else 0
        lines.append([(figures, ""), (diff, role), (("+" if change.ns > 0 else "-") * length, role)])
    return lines, hidden


def _movers(model: CompareModel, width: int, rows: int, is_found: bool) -> list[Line]:
    if not is_found:
        return [[(" comparing op by op", "dim")]]
    compared = model.compared
    same = wrapped(f"unchanged: {', '.join(compared.unchanged)}", width - 1) if compared.unchanged else []
    same += wrapped(compared.pieces_words, width - 1) if compared.pieces_words else []
    told = [line for notice in compared.notices for line in _notice_lines(notice, width - 1, rows)]
    notices = [*((notice, "dim") for notice in same), *((notice, "warn") for notice in told)]
    room = max(rows - len(notices), 1)
    first = max(0, min(model.mover - room + 1, len(compared.rows) - room))
    # Figures have the cells that they need, and what they are of has the others.
    told_of = [
        (row.measure, duration(row.a_ns), duration(row.b_ns), signed(row.b_ns - row.a_ns))
        for row in compared.rows
    ]
    sizes = [max(map(len, column)) for column in zip(*told_of, strict=True)]
    size = max(width - sum(sizes) - 6, _LEAST_NAME)
    lines: list[Line] = []
    for index, row in list(enumerate(compared.rows))[first : first + room]:
        at = model.panel == MOVERS and index == model.mover
        measure, *figures = told_of[index]
        text = f"{'>' if at else ' '}{_short_name(row.words, size):<{size}} {measure:<{sizes[0]}}"
        text += "".join(f" {figure:>{cells}}" for figure, cells in zip(figures, sizes[1:], strict=True))
        lines.append([(text, "accent" if at else "")])
    if not compared.rows:
        lines.append([(" nothing differs", "dim")])
    return lines + [shortened([(f" {notice}", role)], width) for notice, role in notices]


def _short_name(words: str, room: int) -> str:
    """What differs in `room` cells: shorter words for the same first, then of several ranks without whose it
    is; what still is too long is cut at its end.
    """
    short = words.replace("micro-batch", "mb")
    forms = [words, short]
    forms.append(_STAGE.sub(r"s\1", short))
    if _AND_MORE.match(short):
        forms += [_AND_MORE.sub(r"\1 +\2", short), short.partition(", ")[2]]
    return next((form for form in forms if len(form) <= room), end_cut(forms[-1], room))


def _notice_lines(notice: str, width: int, rows: int) -> list[str]:
    """A notice on two lines where these are enough and the panel is tall, else on one that is cut."""
    lines = wrapped(notice, width)
    return lines if len(lines) <= _NOTICE_LINES and rows >= _TALL_PANEL else [notice]


# Where only A computes, only B, or both something else: the mark, its role, and the tint of the lane.
ONLY_A, ONLY_B, MOVED, SAME = "A", "B", "~", " "
ROLES = {ONLY_A: "only-a", ONLY_B: "only-b", MOVED: "moved", SAME: ""}


def marks(model: CompareModel, pair: int, lanes: tuple[SpanLane, SpanLane]) -> str:
    """A mark for each column. `~`: both compute, but of another kind, or what A does there moved."""
    kinds = []
    for side, lane in enumerate(lanes):
        edges = model.shifted(side).edges(model.columns)
        kinds.append(kinds_of(lane.content.column_sums(edges), model.columns))
    moved = [alike for alike in model.compared.known_alike(pair) if model.has_moved(alike)]
    starts = [alike.a_start_ns for alike in moved]
    edges = model.shifted(0).edges(model.columns)
    letters = []
    for column, (of_a, of_b) in enumerate(zip(*kinds, strict=True)):
        computes = of_a in COMPUTING, of_b in COMPUTING
        if computes == (True, True):
            middle = (edges[column] + edges[column + 1]) // 2
            index = bisect_right(starts, middle) - 1
            has_moved = index >= 0 and moved[index].a_end_ns > middle
            letters.append(MOVED if of_a != of_b or has_moved else SAME)
        elif computes == (False, False):
            letters.append(SAME)
        else:
            letters.append(ONLY_A if computes[0] else ONLY_B)
    return "".join(letters)


def marked(letters: str) -> Line:
    """The marks as a line of their own."""
    line: Line = []
    for mark in letters:
        role = ROLES[mark]
        if line and line[-1][1] == role:
            line[-1] = (line[-1][0] + mark, role)
        else:
            line.append((mark, role))
    return line


def tinted(line: Line, letters: str, mark: str) -> Line:
    """A lane's cells with a tint behind those whose column has the mark."""
    tint = f"{ROLES[mark]}-tint"
    cells: Line = []
    column = 0
    for text, role in line:
        for char in text:
            own = f"{role} on {tint}" if letters[column] == mark and " " not in role else role
            column += 1
            if cells and cells[-1][1] == own:
                cells[-1] = (cells[-1][0] + char, own)
            else:
                cells.append((char, own))
    return cells


def reversed_at(line: Line, column: int) -> Line:
    """A lane's cells with that of the cursor reversed."""
    cells: Line = []
    for text, role in line:
        if 0 <= column < len(text):
            plain = role.removesuffix(" reversed")
            turned = plain if role != plain else f"{role} reversed"
            cells += [(text[:column], role), (text[column], turned), (text[column + 1 :], role)]
        else:
            cells.append((text, role))
        column -= len(text)
    return [(text, role) for text, role in cells if text]


_WIDE, _TALL = 100, 28
_LOWER, _LEAST_LOWER = 11, 4
# What is left to the lanes and the lines around them before the panels get rows for more accounts.
_UPPER = 21
# The frame of what differs, and notices below it.
_AROUND_ROWS = 6
# More lines of a lane than one.
_TALLER = 2
# Lines of what differs most between two ranks, of a tall screen.
_WHY_LINES = 5
# Characters of a reason that say something: `Why: bubble` alone does not.
_LEAST_WHY = 20
_ANY = 1000
_MARKS = ((ONLY_A, "A busy"), (ONLY_B, "B busy"), (MOVED, "moved"))
# Where the words of the legend have no room: all that is drawn is named before any of it in full.
_SHORT_WORDS = {
    "forward": "fwd", "backward": "bwd", "optimizer": "opt", "communication": "comm", "exposed": "comm",
    "recompute": "again",
}  # fmt: skip
_SHORT_MARKS = ((ONLY_A, ""), (ONLY_B, "only"), (MOVED, "moved"))


def draw(
    model: CompareModel, names: tuple[str, str], width: int, height: int, glyphs: Glyphs, colour: bool,
    is_found: bool,
) -> list[Line]:  # fmt: skip
    """The lines of the screen. names: of the two runs. is_found: whether what takes long is found; until then
    nothing is said of single ops.
    """
    lines = _head(model, names, width, height, is_found)
    wide = width >= _WIDE
    rows = _LEAST_LOWER
    if height >= _TALL:
        # The accounts, the step below them, and the frame.
        rows = max(_LOWER, min(len(model.compared.accounts) + 3, height - _UPPER))
    told = _told(model, wide)
    left = 23 if wide else 13
    around = len(lines) + len(told) + 4
    room = height - around - rows
    model.resize(max(width - left - 1, 1), max(room, 1))
    if is_found and height >= _TALL:
        # What the lanes leave free goes to what differs.
        spare = room - sum(map(model.height, range(min(model.compared.pairs, room))))
        rows += max(min(spare, len(model.compared.rows) + _AROUND_ROWS - rows), 0)
    lower = panels(model, width, rows, glyphs, is_found, wide and height >= _TALL)[:rows]
    room = height - around - len(lower)
    model.resize(max(width - left - 1, 1), max(room, 1))
    lines += _ruler(model, left, glyphs)
    pairs = model.in_view()
    high = _high(model, room)
    drawn = [line for pair in pairs for line in _pair(model, pair, left, glyphs, colour, high)]
    drawn = drawn[: max(room, 1)]
    lines += [*drawn, *([[]] * max(room - len(drawn), 0))]
    below = model.compared.pairs - model.top - len(pairs)
    parts = [f"{below} more {'pair' if below == 1 else 'pairs'} below"] if below else []
    parts += [] if model.shown == BOTH else [f"{model.shown} shown"]
    parts.append("ends aligned" if model.ends else "starts aligned")
    parts += _alone(model, width - len(", ".join(parts)) - 6)
    title, cost = ", ".join(parts), model.compared.cost if is_found and not (wide and height >= _TALL) else ""
    # A large screen has it among the notices, beside the accounts.
    title += f"; {cost}" if cost and len(title) + len(cost) + 6 <= width else ""
    lines.append(rule(title, width, glyphs))
    bottom = [_legend(model, glyphs, width, colour), *told]
    return [*lines, *lower, *bottom][:height]


def _alone(model: CompareModel, room: int) -> list[str]:
    """How many lanes of A and of B are in no pair, and which, where `room` cells are enough to say it."""
    lanes_alone = [("AB"[side], names) for side, names in enumerate(model.compared.alone) if names]
    whole = [
        f"{plural(len(names), 'lane')} of {side} alone: {names[0]}"
        + (f" to {names[-1]}" if len(names) > 1 else "")
        for side, names in lanes_alone
    ]
    if len(", ".join(whole)) <= room:
        return whole
    return [f"{plural(len(names), 'lane')} of {side} alone" for side, names in lanes_alone]


def _head(model: CompareModel, names: tuple[str, str], width: int, height: int, is_found: bool) -> list[Line]:
    compared = model.compared
    lines: list[Line] = []
    longest = max(map(len, names))
    a, b = compared.runs
    took = microbatch_ns(a.shape), microbatch_ns(b.shape)
    # Of unequal ones a mean says little.
    has_mean = width >= _WIDE and a.shape.microbatches_alike and b.shape.microbatches_alike
    each = [f"{duration(ns)}/mb" if ns and has_mean else "" for ns in took]
    # Of one micro-batch alone the step time says it.
    size = max(map(len, each)) + 2 if all(each) and took != compared.steps else 0
    sides = flags_in(compared.sides, width - (longest + 2 if longest else 0) - size - 15)
    for side, (name, step, words) in enumerate(zip(names, compared.steps, sides, strict=True)):
        role = ROLES["AB"[side]]
        who = f"{name:<{longest}}  " if longest else ""
        lines.append(
            [
                (f" {'AB'[side]}  ", role),
                (who, ""),
                (f"{duration(step):<10}", "bright"),
                (f" {each[side] if size else '':<{size}}", ""),
                (words, ""),
            ]
        )
    if not compared.of_one_step:
        lines.append(_steps(compared, width, is_found))
    if is_found and compared.is_other_model and compared.notices:
        # Before the figures of two models are held against each other.
        lines.insert(0, [(f" {compared.notices[0]}", "warn")])
    if not is_found:
        words = "comparing by name" if compared.of_one_step else "comparing the critical paths"
    else:
        words = compared.why if compared.of_one_step else f"Why: {compared.why}."
    most = 2 if not compared.of_one_step else _WHY_LINES if height >= _TALL else 3
    return [shortened(line, width) for line in [*lines, *_why(words, width, most)]]


def _steps(compared: Compared, width: int, is_found: bool) -> Line:
    """B - A, and what was matched."""
    a, b = compared.runs
    by_work = per_work(a.shape, b.shape)
    steps = difference(*compared.steps)
    # More micro-batches in a step are more work, and no loss.
    steps = steps if by_work is None else f"{by_work.words}; step {steps}"
    steps += ", not the same work" if is_other_work(a.shape, b.shape) else ""
    matched = _in_clauses(f"; {compared.matched}", width - len(" B - A  " + steps)) if is_found else ""
    longer_ns = compared.steps[1] - compared.steps[0] if by_work is None else by_work.alike_ns - by_work.a_ns
    role = "worse" if longer_ns > 0 else "better" if longer_ns < 0 else "dim"
    if compared.is_other_model or is_other_work(a.shape, b.shape):
        role = "warn"
    return [(" B - A  ", "dim"), (steps, role), (matched, "dim")]


def _why(words: str, width: int, most: int) -> list[Line]:
    """Why B - A in `most` lines: whole sentences before half of one."""
    without, _, bracket = words.rpartition(" (")
    # What it is and its cause before more of it in brackets.
    forms = [words, *([f"{without}."] if bracket.endswith(").") else [])]
    forms += shorter_sentences(words, _LEAST_WHY)
    told = next((form for form in forms if len(wrapped(form, width - 8)) <= most), words)
    why = [
        (f" {line}" if not number else f"      {line}")
        for number, line in enumerate(wrapped(told, width - 8))
    ]
    if len(why) > most:
        why[most - 1] += " ..."
    return [[(line, "")] for line in why[:most]]


def _in_clauses(text: str, room: int) -> str:
    """As many clauses of a text as `room` cells take: a figure that is cut would be another one."""
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


def _high(model: CompareModel, room: int) -> int:
    """Lines of a lane: taller ones take what all pairs leave free."""
    pairs = range(model.compared.pairs) if len(model.in_view()) == model.compared.pairs else ()
    used = sum(map(model.height, pairs))
    # Of two lanes beside each other the marks have a third line.
    lanes = used * 2 // 3 if model.shown == BOTH else used
    return 1 + min((room - used) // lanes, _TALLER) if lanes else 1


def _lane_rows(
    lane: SpanLane, model: CompareModel, side: int, label: Line, glyphs: Glyphs, colour: bool, high: int,
    at: bool, mark: str = "", differ: str = "",
) -> list[Line]:  # fmt: skip
    """A lane in `high` lines, its label before the last. at: whether the cursor is on its pair. mark: what
    tints columns of `differ`.
    """
    drawn = drawn_lane(lane, model.shifted(side), model.columns, glyphs, colour, tall=high > 1)
    rows = [row_of(drawn.plain, above, high, drawn.crowded) for above in range(high - 1, 0, -1)]
    rows.append(row_of(drawn.line, 0, high, drawn.crowded) if high > 1 else drawn.line)
    if mark:
        rows = [tinted(row, differ, mark) for row in rows]
    if at:
        rows = [reversed_at(row, model.cursor_column) for row in rows]
    blank: Line = [(" " * width_of(label), "")]
    return [
        [*(label if index == len(rows) - 1 else blank), (glyphs.vertical, "dim"), *row]
        for index, row in enumerate(rows)
    ]


def _pair(model: CompareModel, pair: int, left: int, glyphs: Glyphs, colour: bool, high: int) -> list[Line]:
    """The lanes of a pair that are shown, how much of the step they compute, and where they differ."""
    at = model.panel == PAIRS and pair == model.pair
    lanes = model.compared.lanes(pair)
    busy_ns, steps = model.compared.busy_ns(pair), model.compared.steps
    more = whole_percent(busy_ns[1], steps[1]) - whole_percent(busy_ns[0], steps[0])
    differ = marks(model, pair, lanes) if model.shown == BOTH else ""
    lines: list[Line] = []
    for side, lane in enumerate(lanes):
        if model.shown == (B_ALONE, A_ALONE)[side]:
            continue
        first = not lines
        mark = ">" if at and first else " "
        name = model.compared.where(pair)
        name = name.replace("stage ", "").replace("rank ", "") if left < 20 else name
        # Of a measured lane it is the number of its stage; beside it stands what a lane is called.
        stage = "" if not lane.count.isdigit() else "stage " if left > 20 else "s "
        title = f"{mark} {name}" if first else f"   {stage}{lane.count}"
        busy = f"{'AB'[side]}{busy_words(busy_ns[side], steps[side]):>5}"
        diff = f"{more:+4}" if side and more else "    "
        tail = busy + (diff if left > 20 else "")
        room = left - len(tail) - 1
        if len(title) > room and first:
            title = f"{mark} {name.replace('rank ', '')}"
        if len(title) > room:
            # A number that is cut is another number.
            title = end_cut(f"{mark}{name}" if first else lane.count.rjust(room), room)
        label = f"{title:<{left - len(tail)}}{tail}"
        tint = "AB"[side] if differ and colour else ""
        named: Line = [(label, "accent" if at else "")]
        lines += _lane_rows(lane, model, side, named, glyphs, colour, high, at, tint, differ)
    if differ:
        lines.append([(" " * left, ""), (glyphs.vertical, "dim"), *marked(differ)])
    if pair in model.unfolded:
        for streams in model.compared.streams(pair):
            lines += _streams(model, pair, streams, left, glyphs, colour, high)
    return lines


def _streams(
    model: CompareModel,
    pair: int,
    lanes: tuple[SpanLane, SpanLane],
    left: int,
    glyphs: Glyphs,
    colour: bool,
    high: int,
) -> list[Line]:
    """One stream of a pair in both runs, below its name."""
    lines: list[Line] = []
    for side, lane in enumerate(lanes):
        if model.shown == (B_ALONE, A_ALONE)[side]:
            continue
        title = (lane.title if left > 20 else lane.short_title) if not lines else ""
        tail = f"{'AB'[side]}{lane.busy:>5}" + ("    " if left > 20 else "")
        label = f"     {title}"[: left - len(tail) - 1].ljust(left - len(tail)) + tail
        at = model.panel == PAIRS and pair == model.pair
        lines += _lane_rows(lane, model, side, [(label, "dim")], glyphs, colour, high, at)
    return [*lines, [(" " * left, ""), (glyphs.vertical, "dim")]] if model.shown == BOTH else lines


def _legend(model: CompareModel, glyphs: Glyphs, width: int, colour: bool) -> Line:
    """What the marks mean, then what the cells do: each kind of communication where there is room."""
    wide = width >= _WIDE
    line: Line = []
    for mark, meaning in (_MARKS if wide else _SHORT_MARKS) if model.shown == BOTH else ():
        line += [(f" {mark}", ROLES[mark]), (f" {meaning} " if meaning else "", "")]
    room = width - width_of(line)
    kinds = list(model.compared.legend)
    short = [kind._replace(words=_SHORT_WORDS.get(kind.words.split()[0], kind.words)) for kind in kinds]
    for entries, named in ((kinds, True), (kinds, False), (short, False)):
        # What is blank needs no words.
        drawn = [entry for entry in entries if entry.fill != "idle"]
        whole = width_of(legend(drawn, glyphs, _ANY, colour, False, False, wide=named))
        if whole < room and (wide or not named):
            break
    return [*line, *legend(entries, glyphs, room, colour, False, False, wide=named)]


def _told(model: CompareModel, wide: bool) -> list[Line]:
    """What A and B do at the cursor: one line where there is room for both."""
    head = f" {clock(model.cursor_ns)}, {model.compared.where(model.pair)}"
    said: list[Line] = []
    for side, shown in ((0, A_ALONE), (1, B_ALONE)):
        if model.shown in (BOTH, shown):
            words = model.compared.told(model.pair, side, model.cursor_ns - model.later(side))
            said.append([(f"   {'AB'[side]} ", ROLES["AB"[side]]), (words, "")])
    if wide:
        return [[(head, "bright"), *(piece for line in said for piece in line)]]
    head = f" {duration(model.cursor_ns)}"
    return [[(head if not number else " " * len(head), "bright"), *line] for number, line in enumerate(said)]
