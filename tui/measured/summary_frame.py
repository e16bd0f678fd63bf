"""The summary of a measured run as a frame: the panels of a simulated one, with what a trace has for them."""

from __future__ import annotations

from simcore.measured.replay.accounts import ACCOUNTS, BUBBLE, FIRST_EXPOSED, HOST, IDLE, WAIT
from simcore.report.measured_insights import insight_lines
from simcore.report.measured_words import order_lines, order_title
from simcore.units import duration, percent, plural, signed, whole_percent
from tui.frame import Glyphs, Line, cells, fitted, rule
from tui.measured.beside import beside_lines
from tui.measured.summary_model import WAITS, MeasuredSummaryModel, Row
from tui.summary import panels
from tui.summary.frame import Parts, draw
from tui.summary.model import NOTES, STAGES

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


def draw_measured(
    model: MeasuredSummaryModel, width: int, height: int, glyphs: Glyphs, progress: str
) -> list[Line]:
    """The lines of the screen, at most `height` of them. progress: of the what-if table."""
    if not model.results.measured.timed:
        return _order(model, width, height, glyphs)
    title, aside = _beside_title(model)
    parts = Parts(
        step_title="Replayed step" if model.results.run.replayed else "Measured step",
        step=lambda width, rows: step_lines(model, glyphs, width, rows),
        words=insight_lines(model.results),
        bars_title="Where each rank's time goes",
        bars=lambda width, rows, focused: bar_lines(model, width, rows, glyphs, focused),
        legend=_LEGEND,
        table_title=title,
        table_aside=aside,
        table_heading=title,
        table=lambda width, rows, focused: beside_lines(model, width, rows, focused),
    )
    return draw(model, parts, width, height, glyphs, progress)


def _order(model: MeasuredSummaryModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Of a plan there is an order and no time."""
    model.set_panels((NOTES,))
    notes = model.results.diagnostics
    rows = min(len(notes), max(height // 4, 1))
    title = f"{order_title(model.results.measured)}: there is no step time, and nothing waits"
    lines: list[Line] = [rule(title, width, glyphs)]
    lines += [[(f" {cells(line, 400)}", "")] for line in order_lines(model.results.measured, width - 2)]
    below = [
        rule(f"Notes ({len(notes)}), ! all", width, glyphs),
        *panels.note_lines(notes, model.row(NOTES), width, rows, True),
    ]
    room = height - len(below)
    if len(lines) > room:
        lines = [*lines[: room - 1], [(" ... 3 has all operations", "dim")]]
    return [*lines, *([[]] * (room - len(lines))), *below]


def step_lines(model: MeasuredSummaryModel, glyphs: Glyphs, width: int, height: int) -> list[Line]:
    """The step time, large; how much of it is compute; of a replay, what was measured, where it fits."""
    results = model.results
    step = results.step_time_ns
    accounts = results.accounts
    compute = sum(sum(one.total_ns[:FIRST_EXPOSED]) for one in accounts) // max(len(accounts), 1)
    share = f" = {whole_percent(compute, step)} % of it" if step else ""
    more: list[Line] = [[(f"  compute alone {duration(compute)}{share}", "")]]
    if results.run.replayed:
        measured = results.measured.step_time_ns
        share = f"{percent(step - measured, measured)} %" if measured else ""
        both = f"replayed {signed(step - measured)}{' = ' if share else ''}{share}"
        words = (f"measured {duration(measured)}, {both}", both, f"replayed {share}" if share else both)
        more.append([(f"  {next((one for one in words if len(one) <= width - 2), words[-1])}", "")])
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
            ns = sum(sums[number] for number in accounts)
            figures += f"{percent(ns, whole) if wide else whole_percent(ns, whole):>{size}}"
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
        return "A replay of it, rank ends", "o waits"
    return "Replayed - measured, rank ends", "o waits"
