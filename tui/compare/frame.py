"""The compare screen as a frame: both runs in words, their lanes in pairs, accounts and movers."""

from __future__ import annotations

from simcore.analysis.accounts import ACCOUNTS
from simcore.analysis.compare import Change
from simcore.analysis.compare.matching import ClassPair
from simcore.report.compare_text import difference_words, matched_words, op_words, side_words
from simcore.units import column_unit, duration
from tui.boxes import beside, box
from tui.compare.model import MOVERS, PAIRS, CompareModel
from tui.frame import Glyphs, Line, cells, fitted, rule, wrapped
from tui.timeline.axis import clock
from tui.timeline.drawing import draw_lane
from tui.timeline.ruler import ticks

_WIDE, _TALL = 100, 28
_LOWER = 12
# The account of a difference, as the screen names it: phases of compute by their words.
_NAMES = {
    "compute fwd": "forward", "compute ig": "input grad", "compute wg": "weight grad",
    "compute opt": "optimizer", "compute recompute": "recompute",
}  # fmt: skip


def draw(
    model: CompareModel, width: int, height: int, glyphs: Glyphs, colour: bool, movers: bool
) -> list[Line]:
    """The lines of the screen. movers: whether they are found; until then nothing is said of single ops."""
    lines = _head(model, width, movers)
    wide = width >= _WIDE
    if height >= _TALL:
        lower = _lower(model, width, glyphs, movers) if wide else _one_below(model, width, glyphs, movers)
    else:
        lower = _one_below(model, width, glyphs, movers)[: max(height // 3, 4)]
    left = 23 if wide else 13
    columns = max(width - left - 1, 1)
    room = height - len(lines) - 2 - len(lower) - 1
    model.resize(columns, max(room // 2, 1))
    lines += _ruler(model, left, glyphs)
    for index in range(model.top, min(model.top + model.rows, len(model.pairs))):
        lines += _pair(model, model.pairs[index], index, left, glyphs, colour)
    shown = min(model.rows, len(model.pairs) - model.top)
    below = len(model.pairs) - model.top - shown
    lines += [[] for _ in range(max(room - 2 * shown, 0))]
    words = f"{below} more pairs below" if below else "At the cursor"
    align = "ends aligned" if model.ends else "starts aligned"
    lines.append(rule(f"{words}, {clock(model.cursor_ns)}, {align}", width, glyphs))
    return [*lines, *lower][:height]


def _head(model: CompareModel, width: int, movers: bool) -> list[Line]:
    found = model.comparison
    lines: list[Line] = []
    for side, results in enumerate((found.a, found.b)):
        step = duration(results.step_time_ns)
        lines.append(
            [(f" {'AB'[side]}  ", "accent"), (f"{step:<10}", "bright"), (f" {side_words(found, side)}", "")]
        )
    matched = f"; {matched_words(found)}" if movers else ""
    role = "worse" if found.difference_ns > 0 else "better" if found.difference_ns else "dim"
    lines.append([(" B - A  ", "dim"), (difference_words(found), role), (matched, "dim")])
    why = [
        (f" {line}" if not number else f"      {line}")
        for number, line in enumerate(wrapped(f"Why: {found.why}.", width - 8))
    ]
    return [fitted(line, width) for line in [*lines, *([(line, "")] for line in why[:2])]]


def _ruler(model: CompareModel, left: int, glyphs: Glyphs) -> list[Line]:
    labels = marks = ""
    for column, label in ticks(model.window, model.columns):
        if column + len(label) <= model.columns and len(labels) <= column:
            labels = labels.ljust(column) + label + " "
        marks = marks.ljust(column, glyphs.horizontal) + glyphs.tee
    labels = labels[: model.columns].ljust(model.columns)
    marks = marks[: model.columns].ljust(model.columns, glyphs.horizontal)
    heading = "  lane pair   busy diff" if left > 20 else " pair   busy"
    at = model.cursor_column
    return [
        [(heading.ljust(left), "dim"), (glyphs.vertical, "dim"), (labels, "")],
        [(glyphs.horizontal * left + glyphs.cross + marks[:at], "dim"), (glyphs.cursor, "accent"),
         (marks[at + 1 :], "dim")],
    ]  # fmt: skip


def _pair(
    model: CompareModel, pair: ClassPair, index: int, left: int, glyphs: Glyphs, colour: bool
) -> list[Line]:
    """The two lanes of a pair, with how much of the step they compute and the difference."""
    at = model.panel == PAIRS and index == model.pair
    lines: list[Line] = []
    one, other = model.comparison.a.accounts[pair.a], model.comparison.b.accounts[pair.b]
    steps = model.comparison.a.step_time_ns, model.comparison.b.step_time_ns
    shares = [
        100 * found.busy_ns / step if step else 0.0 for found, step in zip((one, other), steps, strict=True)
    ]
    for side, lane in enumerate(model.lanes(pair)):
        mark = ">" if at and not side else " "
        title = f"{mark} {lane.short_title if left < 20 else lane.title}" if not side else "   " + lane.count
        busy = f"{'AB'[side]}{shares[side]:4.0f}%"
        diff = f"{shares[1] - shares[0]:+4.0f}" if side and round(shares[1]) != round(shares[0]) else "    "
        tail = busy + (diff if left > 20 else "")
        label = f"{title[: left - len(tail) - 1]:<{left - len(tail)}}{tail}"
        drawn = draw_lane(lane, model.shifted(side), model.columns, glyphs, colour)
        lines.append([(label, "accent" if at else ""), (glyphs.vertical, "dim"), *drawn])
    return lines


def _lower(model: CompareModel, width: int, glyphs: Glyphs, movers: bool) -> list[Line]:
    left = width * 42 // 100
    rows = _LOWER - 2
    accounts = box(
        "Accounts, mean of all ranks", "A   B   B - A", _accounts(model, left - 2, rows), left, _LOWER, glyphs
    )
    table = _movers(model, width - left - 2, rows, movers)
    focused = model.panel == MOVERS
    moved = box("Ops that differ most", "Enter goes there", table, width - left, _LOWER, glyphs, focused)
    return beside(accounts, moved)


def _one_below(model: CompareModel, width: int, glyphs: Glyphs, movers: bool) -> list[Line]:
    """A narrow screen: the accounts, or the movers where they have the focus."""
    if model.panel == MOVERS:
        return [
            rule("Ops that differ most, Tab: accounts", width, glyphs),
            *_movers(model, width, _LOWER - 1, movers),
        ]
    return [rule("Accounts, Tab: ops that differ most", width, glyphs), *_accounts(model, width, _LOWER - 1)]


def _accounts(model: CompareModel, width: int, rows: int) -> list[Line]:
    """The accounts that are there, those that change most first where not all fit; the step below."""
    found = model.comparison
    steps = (found.a.step_time_ns, found.b.step_time_ns)
    unit_ns, unit = column_unit(max(steps))
    there = [one for one in found.accounts if one.a_ns or one.b_ns]
    if len(there) > rows - 1:
        kept = sorted(there, key=lambda one: -abs(one.ns))[: rows - 1]
        there = [one for one in there if one in kept]
    most = max([abs(one.ns) for one in there] + [1])
    bar = max(width - 46, 0)
    lines: list[Line] = []
    for one in [*there, Change("step", *steps)]:
        name = _NAMES.get(one.name, one.name)
        name = f"{name}, {unit}" if one.name == "step" else name
        figures = f" {name:<14}{one.a_ns / unit_ns:>9.3f}{one.b_ns / unit_ns:>9.3f}"
        diff = f"{one.ns / unit_ns:>+10.3f} " if one.ns else f"{'=':>10} "
        role = "worse" if one.ns > 0 and one.name not in ACCOUNTS[:5] else "better" if one.ns < 0 else ""
        length = round(bar * abs(one.ns) / most) if one.name != "step" else 0
        lines.append([(figures, ""), (diff, role), (("+" if one.ns > 0 else "-") * length, role)])
    return lines


def _movers(model: CompareModel, width: int, rows: int, movers: bool) -> list[Line]:
    found = model.comparison
    if not movers:
        return [[(" comparing op by op", "dim")]]
    lines: list[Line] = []
    size = max(width - 41, 12)
    for index, one in enumerate(found.movers[: rows - 2]):
        at = model.panel == MOVERS and index == model.mover
        words = cells(op_words(found, one), size)
        change = one.b_ns - one.a_ns
        figures = f"{duration(one.a_ns):>10}{duration(one.b_ns):>10}{duration(change):>10}"
        text = f"{'>' if at else ' '}{words:<{size}} {one.measure:<8}{figures}"
        lines.append([(text, "accent" if at else "")])
    if not lines:
        lines.append([(" no op differs", "dim")])
    unchanged = f" unchanged: {', '.join(found.unchanged) or 'nothing'}"
    lines.append([(unchanged[:width], "dim")])
    if found.cost is not None:
        cost = found.cost
        words = f" cost: stage {cost.stage} keeps {cost.b} micro-batches in memory, in A {cost.a}"
        lines.append([(words[:width], "warn" if cost.b > cost.a else "dim")])
    return lines
