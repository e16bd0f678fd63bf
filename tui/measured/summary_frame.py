"""The summary of a measured run as a frame: the panels of a simulated one, with what a trace has for them."""

from __future__ import annotations

from simcore.measured.replay.accounts import ACCOUNTS, BUBBLE, FIRST_EXPOSED, HOST, IDLE, WAIT
from simcore.report.measured_insights import insight_lines
from simcore.report.measured_replay_text import signed
from simcore.report.measured_words import order_lines
from simcore.units import duration, percent, plural
from tui.boxes import beside, box
from tui.frame import Glyphs, Line, cells, fitted, rule
from tui.measured.summary_model import WAITS, MeasuredSummaryModel, Row
from tui.summary import panels
from tui.summary.cursor import HELP, MAP, NOTES, STAGES, WORST
from tui.summary.frame import legend

_WIDE, _TALL = 100, 26
_TOP, _BOTTOM = 7, 6
_LEGEND = (
    ("fwd", "fwd", "forward"), ("bwd", "bwd", "backward"), ("opt", "opt", "opt."),
    ("exposed", "tp", "exposed comm."), ("wait", "wait", "wait"), ("bubble", "bubble", "bubble"),
    ("host", "host", "host"), ("idle", "", "idle"),
)  # fmt: skip
_DRAWN = {"forward": "fwd", "backward": "bwd", "optimizer": "opt"}
_ROLES = {"expert": "ep", "expert dp": "dp_ep"}
# Columns of per cents: their headings and the accounts that each adds up.
_COLUMNS = (
    ("compute", "comp", range(FIRST_EXPOSED)), ("exposed", "expo", range(FIRST_EXPOSED, WAIT)),
    ("wait", "wait", (WAIT,)), ("bubble", "bubb", (BUBBLE,)), ("host", "host", (HOST,)),
    ("idle", "idle", (IDLE,)),
)  # fmt: skip


def draw(model: MeasuredSummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """The lines of the screen, at most `height` of them. progress: of the what-if table."""
    if not model.results.measured.timed:
        return _order(model, width, height, glyphs)
    if width >= _WIDE and height >= _TALL:
        return _boxes(model, width, height, glyphs, progress)
    return _headings(model, width, height, glyphs, progress)


def _order(model: MeasuredSummaryModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Of a plan there is an order and no time."""
    model.set_panels((NOTES,))
    notes = model.results.diagnostics
    rows = min(len(notes), max(height // 4, 1))
    lines: list[Line] = [rule("No times: there is no step time, and nothing waits", width, glyphs)]
    lines += [[(f" {cells(line, 400)}", "")] for line in order_lines(model.results.measured, width - 2)]
    below = [
        rule(f"Notes ({len(notes)}), ! all", width, glyphs),
        *panels.note_lines(notes, model.cursor(NOTES)[0], width, rows, True),
    ]
    room = height - len(below)
    if len(lines) > room:
        lines = [*lines[: room - 1], [(" ... 3 has all operations", "dim")]]
    return [*lines, *([[]] * (room - len(lines))), *below]


def _boxes(model: MeasuredSummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    model.set_panels((STAGES, MAP, WORST, HELP, NOTES))
    results = model.results
    middle = height - _TOP - _BOTTOM
    left = width * 60 // 100
    right = width - left
    worst = min(len(results.worst), 6) + 2
    figure = max(40, width // 3)

    def is_at(panel: str) -> bool:
        return model.panel == panel

    replayed = results.run.replayed
    step = box("Replayed step" if replayed else "Measured step", "", step_lines(model, glyphs, _TOP - 2),
               figure, _TOP, glyphs)  # fmt: skip
    words = panels.word_lines(insight_lines(results), width - figure - 2, _TOP - 2)
    top = beside(step, box("In words", "", words, width - figure, _TOP, glyphs))
    bars = bar_lines(model, left - 2, middle - 3, glyphs, is_at(STAGES))
    bars += [[] for _ in range(middle - 3 - len(bars))]
    bars.append(legend(left - 2, glyphs, _LEGEND))
    title, aside = _beside_title(model)
    column = [
        *box(title, aside, beside_lines(model, right - 2, middle - worst - 2, is_at(MAP)), right,
             middle - worst, glyphs, is_at(MAP)),
        *box("Worst", "Enter goes there", panels.worst_lines(model, right - 2, is_at(WORST)), right, worst,
             glyphs, is_at(WORST)),
    ]  # fmt: skip
    where = box("Where each rank's time goes", "% of step", bars, left, middle, glyphs, is_at(STAGES))
    rows = _BOTTOM - 2
    notes = panels.note_lines(results.diagnostics, model.cursor(NOTES)[0], right - 2, rows, is_at(NOTES))
    changes = panels.help_lines(model, left - 2, rows, progress)
    below = beside(
        box("What would help most", "t tries it, 4 all", changes, left, _BOTTOM, glyphs, is_at(HELP)),
        box(f"Notes ({len(results.diagnostics)})", "! all", notes, right, _BOTTOM, glyphs, is_at(NOTES)),
    )
    return [*top, *beside(where, column), *below]


def _headings(
    model: MeasuredSummaryModel, width: int, height: int, glyphs: Glyphs, progress: str
) -> list[Line]:
    """A small screen: the same order, no frames; who waits for whom takes the place of the bars."""
    model.set_panels((STAGES if model.panel != MAP else MAP, WORST, HELP))
    results = model.results
    worst = panels.worst_lines(model, width, model.panel == WORST)
    worst = worst[: max(min(len(worst), height // 5), 1)]
    words = panels.word_lines(insight_lines(results), width, max(min(4, height - 14), 1))
    notes = panels.note_lines(results.diagnostics, 0, width, 1, False)
    changes = panels.help_lines(model, width, 2, progress)
    room = max(height - len(words) - len(worst) - len(notes) - len(changes) - 5, 3)
    if model.panel == MAP:
        title = _beside_title(model)[0]
        body = beside_lines(model, width, room, True)[:room]
    else:
        title = "Where each rank's time goes, % of step"
        body = bar_lines(model, width, room, glyphs, model.panel == STAGES)[:room]
    body += [[] for _ in range(room - len(body))]
    lines = [*words, rule(title, width, glyphs), *body, legend(width, glyphs, _LEGEND)]
    lines += [rule("Worst", width, glyphs), *worst]
    lines += [rule("What would help most, t tries it", width, glyphs), *changes]
    lines += [rule(f"Notes ({len(results.diagnostics)}), ! all", width, glyphs), *notes]
    return lines[:height]


def step_lines(model: MeasuredSummaryModel, glyphs: Glyphs, height: int) -> list[Line]:
    """The step time, large; how much of it is compute; of a replay, what was measured."""
    results = model.results
    step = results.step_time_ns
    accounts = results.accounts
    compute = sum(sum(one.total_ns[:FIRST_EXPOSED]) for one in accounts) // max(len(accounts), 1)
    share = f" = {100 * compute / step:.0f} % of it" if step else ""
    more: list[Line] = [[(f"  compute alone {duration(compute)}{share}", "")]]
    if results.run.replayed:
        measured = results.measured.step_time_ns
        words = f"  measured {duration(measured)}, replayed {signed(step - measured)}"
        more.append([(words + (f" = {percent(step - measured, measured)} %" if measured else ""), "")])
    elif results.run.microbatches:
        count = results.run.microbatches
        more.append([(f"  {plural(count, 'micro-batch')}: {duration(step // count)} for each", "")])
    return [*panels.figure_lines(duration(step), glyphs), *more][:height]


def bar_lines(
    model: MeasuredSummaryModel, width: int, rows: int, glyphs: Glyphs, focused: bool
) -> list[Line]:
    """A line a rank, or a few: its time as a bar, and the parts in per cent of the step."""
    model.room = max(rows - 1, 1)
    found = model.rows
    step = model.results.step_time_ns
    totals = [sum(one.total_ns[number] for one in model.results.accounts) for number in range(len(ACCOUNTS))]
    columns = [column for column in _COLUMNS if any(totals[number] for number in column[2])]
    wide = width >= 70
    size = 6 if wide else 5
    name = min(max(len("rank"), *(len(row.label) for row in found)), 12)
    left = name + 9
    bar = max(width - left - size * len(columns) - 1, 4)
    head = f"  {'rank':>{name}} {'stage':>5}"
    ruler = panels.scale(step, bar)
    lines: list[Line] = [
        [(head.ljust(left) + ruler + "".join(f"{short:>{size}}" for _, short, _ in columns), "dim")]
    ]
    at, _ = model.cursor(STAGES)
    for index, row in enumerate(found):
        here = focused and index == at
        sums = _sums(model, row)
        whole = step * len(row.ranks)
        label = f"{'>' if here else ' '} {row.label[:name]:>{name}} {row.stage:>5} "
        line: Line = [(fitted([(label, "")], left)[0][0], "accent" if here else "")]
        line += _bar(sums, whole, bar, glyphs)
        figures = ""
        for _, _, accounts in columns:
            share = 100 * sum(sums[number] for number in accounts) / whole if whole else 0.0
            figures += f"{share:>{size}.{1 if wide else 0}f}"
        lines.append([*line, (figures, "accent" if here else "")])
    return lines


def _sums(model: MeasuredSummaryModel, row: Row) -> list[int]:
    """ns by account of the ranks of a row together."""
    accounts = [model.results.accounts[rank] for rank in row.ranks]
    return [sum(one.total_ns[number] for one in accounts) for number in range(len(ACCOUNTS))]


def _bar(sums: list[int], whole: int, width: int, glyphs: Glyphs) -> Line:
    line: Line = []
    done = drawn = 0
    for account, ns in zip(ACCOUNTS, sums, strict=True):
        done += ns
        end = round(width * done / whole) if whole else 0
        kind, _, of = account.partition(" ")
        drawing = _DRAWN.get(of, "exposed" if kind == "exposed" else kind)
        role = _ROLES.get(of, of) if kind == "exposed" else "" if drawing == "idle" else drawing
        line.append((glyphs.fills[drawing] * (end - drawn), role))
        drawn = max(end, drawn)
    return [*line, (" " * (width - drawn), "")]


def _beside_title(model: MeasuredSummaryModel) -> tuple[str, str]:
    if model.beside == WAITS:
        return "Who waits for whom", "o replay"
    if model.results.scales is None:
        return "A replay of it, when each rank ends", "o waits"
    return "Replayed - measured, when each rank ends", "o waits"


def beside_lines(model: MeasuredSummaryModel, width: int, rows: int, focused: bool) -> list[Line]:
    """Who waits for whom, or how the replay differs from what was measured, with what explains it."""
    at, _ = model.cursor(MAP)
    texts = _wait_texts(model) if model.beside == WAITS else _difference_texts(model)
    if not texts:
        return [[(" nobody is seen to wait for anybody", "dim")]]
    head = " rank for  waits       in" if model.beside == WAITS else " rank      ends difference  most by"
    first = min(max(at - rows + 2, 0), max(len(texts) - rows + 1, 0))
    lines: list[Line] = [[(head, "dim")]]
    for index, words in enumerate(texts[first : first + max(rows - 1, 1)], first):
        here = focused and index == at
        lines.append([(f"{'>' if here else ' '}{words}"[:width], "accent" if here else "")])
    return lines


def _wait_texts(model: MeasuredSummaryModel) -> list[str]:
    return [
        f"{one.early:>4}{one.late:>4}{duration(one.ns):>10}  {cells(one.name, 40)}"
        for one in model.results.waiting
    ]


def _difference_texts(model: MeasuredSummaryModel) -> list[str]:
    found = []
    for one in model.differences:
        ops = ", ".join(f"{cells(name, 34)} {signed(ns)}" for name, ns in one.ops[:3])
        change = signed(one.replayed_ns - one.measured_ns)
        found.append(f"{one.number:>4}{duration(one.replayed_ns):>10}{change:>11}  {ops or 'as measured'}")
    return found
