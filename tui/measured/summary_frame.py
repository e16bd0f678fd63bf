"""The summary of a measured run as a frame: the panels of a simulated one, with what a trace has for them."""

from __future__ import annotations

from simcore.replay.accounts import ACCOUNTS
from simcore.report.measured_insights import insight_lines
from simcore.report.measured_words import order_lines, order_title
from simcore.units import change_percent, duration, percent, plural, signed, whole_percent
from tui.frame import Glyphs, Line, cells, fitted, rule
from tui.measured.beside import beside_lines
from tui.measured.summary_model import WAITS, MeasuredSummaryModel
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
    compute = results.mean_busy_ns
    share = f" = {whole_percent(compute, step)} % of it" if step else ""
    more: list[Line] = [[(f"  compute alone {duration(compute)}{share}", "")]]
    if results.run.replayed:
        measured = results.measured.step_time_ns
        share = change_percent(measured, step)
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
    results = model.results
    step = results.step_time_ns
    columns = [name for name, ns in results.parts_ns(results.all_ranks).items() if ns]
    wide = width >= 70
    size = 6 if wide else 5
    name = min(max(len("rank"), *(len(row.label) for row in found)), 12)
    left = name + 9
    bar = max(width - left - size * len(columns) - 1, 4)
    head = f"  {'rank':>{name}} {'stage':>5}"
    ruler = panels.scale(step, bar)
    lines: list[Line] = [
        [(head.ljust(left) + ruler + "".join(f"{column[:4]:>{size}}" for column in columns), "dim")]
    ]
    at, _ = model.cursor(STAGES)
    for index, row in enumerate(found):
        here = focused and index == at
        label = f"{'>' if here else ' '} {row.label[:name]:>{name}} {row.stage:>5} "
        line: Line = [(fitted([(label, "")], left)[0][0], "accent" if here else "")]
        parts = ((ns, *drawing) for ns, drawing in zip(results.sum_ns(row.ranks), _BAR, strict=True))
        whole = step * len(row.ranks)
        line += panels.bar_line(parts, whole, bar, glyphs)
        ns_of, share = results.parts_ns(row.ranks), percent if wide else whole_percent
        figures = "".join(f"{share(ns_of[column], whole):>{size}}" for column in columns)
        lines.append([*line, (figures, "accent" if here else "")])
    return lines


def _drawing(account: str) -> tuple[str, str]:
    """Fill and role of an account in a bar."""
    kind, _, of = account.partition(" ")
    if kind == "exposed":
        return kind, _ROLES.get(of, of)
    drawn = _DRAWN.get(of, kind)
    return drawn, drawn


_BAR = tuple(map(_drawing, ACCOUNTS))


def _beside_title(model: MeasuredSummaryModel) -> tuple[str, str]:
    if model.beside == WAITS:
        return "Who waits for whom", "o replay"
    if model.results.scales is None:
        return "A replay of it, rank ends", "o waits"
    return "Replayed - measured, rank ends", "o waits"
