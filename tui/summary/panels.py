"""The summary as a frame: panels in boxes on a large screen, under headings on a small one.

Each panel is lines of the inner size of its frame; the step time stands in large digits, the one figure
that is read from across the room.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from simcore.diagnostics import Diagnostic
from simcore.units import change_percent, duration, plural, signed, whole_percent
from tui.change_words import UNKNOWN, change_words, gain_share
from tui.frame import Glyphs, Line, cells, rows_around, rule
from tui.panels import WHAT_IF, beside, box
from tui.summary.model import MAP, NOTES, PANELS, STAGES, WORST, SummaryModel

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.cluster import Dimension
    from simcore.replay import MeasuredResults
    from simcore.run.findings import WhatIf


_DIGITS = {
    "0": ("█▀█", "█ █", "▀▀▀"), "1": ("▄█ ", " █ ", "▀▀▀"), "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", "▀▀█", "▀▀▀"), "4": ("█ █", "▀▀█", "  ▀"), "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"), "7": ("▀▀█", "  █", "  ▀"), "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"), ".": (" ", " ", "▀"), "-": ("   ", "▀▀▀", "   "),
}  # fmt: skip


def large(words: str) -> list[str]:
    """Three rows of cells for a figure with its unit: `14.774 s`. The unit stands in plain letters."""
    figure, _, unit = words.rpartition(" ")
    rows = [" ".join(_DIGITS[char][row] for char in figure) for row in range(3)]
    return [rows[0], rows[1], f"{rows[2]} {unit}"]


def step_lines(results: Run, glyphs: Glyphs, width: int, height: int) -> list[Line]:
    """The step time, large; how much of it is compute; of a replay, what was measured, where it fits."""
    step, compute = results.step_time_ns, results.mean_busy_ns
    share = f" = {whole_percent(compute, step)} % of it" if step else ""
    more: list[Line] = [[(f"  compute alone {duration(compute)}{share}", "")]]
    measured, count = results.measured_step_ns, results.microbatches
    if measured is not None:
        share = change_percent(measured, step)
        both = f"replayed {signed(step - measured)}{' = ' if share else ''}{share}"
        words = (f"measured {duration(measured)}, {both}", both, f"replayed {share}" if share else both)
        more.append([(f"  {next((one for one in words if len(one) <= width - 2), words[-1])}", "")])
    elif count:
        more.append([(f"  {plural(count, 'micro-batch')}: {duration(step // count)} for each", "")])
    return [*figure_lines(duration(step), glyphs), *more][:height]


def figure_lines(words: str, glyphs: Glyphs) -> list[Line]:
    """A figure with its unit in three rows: large, in plain letters where there is ASCII alone."""
    if glyphs.corners[0] == "+":
        return [[], [(f"  {words}", "bright")], []]
    return [[(f"  {row}", "bright")] for row in large(words)]


def worst_lines(model: SummaryModel, width: int, rows: int, focused: bool) -> list[Line]:
    """The places worth a look, those around the cursor."""
    row, _ = model.cursor(WORST)
    lines: list[Line] = []
    places = model.results.worst
    for index in rows_around(row, len(places), rows):
        place, at = places[index], focused and index == row
        words = cells(place.words, max(width - 10, 10))
        mark = ">" if at else " "
        lines.append([(f"{mark}{place.what:<8}", "accent" if at else "dim"), (words, "accent" if at else "")])
    return lines or [[(" nothing takes any time", "dim")]]


def note_lines(found: Sequence[Diagnostic], row: int, width: int, rows: int, focused: bool) -> list[Line]:
    """The first notes, and how many more there are."""
    lines: list[Line] = []
    for index in rows_around(row, len(found), rows):
        one, at = found[index], focused and index == row
        place = f"line {one.line}" if one.line is not None else "run"
        role = {"error": "worse", "warning": "warn"}.get(one.severity, "dim")
        lines.append(
            [(f"{'>' if at else ' '}{place:<9}", "accent" if at else role),
             (cells(one.message, max(width - 11, 10)), "accent" if at else "")]
        )  # fmt: skip
    return lines or [[(" none", "dim")]]


def help_lines(model: SummaryModel, width: int, rows: int, progress: str) -> list[Line]:
    """The changes that gain most, those around the cursor."""
    if not model.knobs:
        return [[(" nothing to change" if model.knobs is not None else f" {progress}", "dim")]]
    row, focused = model.row(WHAT_IF), model.panel == WHAT_IF
    step = model.base_ns
    size = max(width - 22, 14)
    shown = rows_around(row, len(model.knobs), rows)
    return [
        help_line(model.knobs[index], model.dims, step, size, focused and index == row) for index in shown
    ]


def help_line(knob: WhatIf, dims: Sequence[Dimension], step: int, size: int, at: bool) -> Line:
    """A change in words, the step time with it, and the difference."""
    words = change_words(knob, dims, with_time=True)
    name = f"{'>' if at else ' '}{cells(words, size - 1):<{size}}"
    if knob.unknown:
        return [(name, "accent" if at else ""), (f"{UNKNOWN:>20}", "dim")]
    share, role = gain_share(step, knob)
    return [(name, "accent" if at else ""), (f"{duration(knob.better10_ns):>10}", ""), (f" {share}", role)]


def word_lines(sentences: Sequence[str], width: int, rows: int) -> list[Line]:
    """Whole sentences, as many as there is room for."""
    lines: list[str] = []
    for sentence in sentences:
        more = textwrap.wrap(sentence, max(width - 2, 20), break_on_hyphens=False)
        if len(lines) + len(more) > rows:
            break
        lines += more
    return [[(f" {line}", "")] for line in lines]


_WIDE, _TALL = 100, 26
_TOP, _BOTTOM = 7, 6
_STEP_TITLES = {"simulated": "Step time", "measured": "Measured step", "replayed": "Replayed step",
                "executed": "Step time"}  # fmt: skip


def draw(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """The lines of the screen, at most `height` of them. progress: of the what-if table."""
    if not model.results.timed:
        return _order(model, width, height, glyphs)
    if width >= _WIDE and height >= _TALL:
        return _boxes(model, width, height, glyphs, progress)
    return _headings(model, width, height, glyphs, progress)


def _bars(model: SummaryModel, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    model.fit(rows - 1)
    return model.bars.lines(width, model.row(STAGES), glyphs, model.panel == STAGES)


def _boxes(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    model.set_panels(PANELS)
    middle = height - _TOP - _BOTTOM
    left = width * 60 // 100
    right = width - left
    worst = min(len(model.results.worst), 6) + 2
    figure = max(40, width // 3)

    def framed(panel: str, title: str, aside: str, lines: list[Line], size: tuple[int, int]) -> list[Line]:
        return box(title, aside, lines, *size, glyphs, model.panel == panel)

    words = word_lines(model.results.words, width - figure - 2, _TOP - 2)
    step = step_lines(model.results, glyphs, figure - 2, _TOP - 2)
    top = beside(
        box(_STEP_TITLES[model.results.origin], "", step, figure, _TOP, glyphs),
        box("In words", "", words, width - figure, _TOP, glyphs),
    )
    bars = _bars(model, left - 2, middle - 3, glyphs)
    bars += [[] for _ in range(middle - 3 - len(bars))]
    bars.append(model.bars.legend(left - 2, glyphs))
    where = framed(STAGES, model.bars.title, "% of step", bars, (left, middle))
    table = model.beside
    tabled = table.lines(right - 2, middle - worst - 2, model.cursor(MAP), glyphs, model.panel == MAP)
    places = worst_lines(model, right - 2, worst - 2, model.panel == WORST)
    column = [
        *framed(MAP, table.title, table.aside, tabled, (right, middle - worst)),
        *framed(WORST, "Worst", "Enter goes there", places, (right, worst)),
    ]
    rows = _BOTTOM - 2
    found = model.results.diagnostics
    notes = note_lines(found, model.row(NOTES), right - 2, rows, model.panel == NOTES)
    changes = help_lines(model, left - 2, rows, progress)
    below = beside(
        framed(
            WHAT_IF, f"What would help most{model.base_words}", "t tries it, 4 all", changes, (left, _BOTTOM)
        ),
        framed(NOTES, f"Notes ({len(found)})", "! all", notes, (right, _BOTTOM)),
    )
    return [*top, *beside(where, column), *below]


def _headings(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """A small screen: the same order, no frames; the table takes the place of the bars."""
    model.set_panels((STAGES if model.panel != MAP else MAP, WORST, WHAT_IF))
    found = model.results.diagnostics
    worst = worst_lines(model, width, max(height // 5, 1), model.panel == WORST)
    words = word_lines(model.results.words, width, max(min(4, height - 14), 1))
    notes = note_lines(found, 0, width, 1, False)
    changes = help_lines(model, width, 2, progress)
    room = max(height - len(words) - len(worst) - len(notes) - len(changes) - 5, 3)
    if model.panel == MAP:
        table = model.beside
        title, body = table.heading, table.lines(width, room, model.cursor(MAP), glyphs, True)[:room]
    else:
        title = f"{model.bars.title}, % of step"
        body = _bars(model, width, room, glyphs)[:room]
    body += [[] for _ in range(room - len(body))]
    lines = [*words, rule(title, width, glyphs), *body, model.bars.legend(width, glyphs)]
    count = len(model.results.worst)
    more = f" ({len(worst)} of {count})" if len(worst) < count else ""
    lines += [rule(f"Worst{more}", width, glyphs), *worst]
    lines += [rule(f"What would help most{model.base_words}, t tries it", width, glyphs), *changes]
    lines += [rule(f"Notes ({len(found)}), ! all", width, glyphs), *notes]
    return lines[:height]


def _order(model: SummaryModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Of a plan there is an order and no time."""
    # Imported here: no other run has use for it.
    from simcore.replay.run_words import order_title
    from simcore.report.operations import order_lines

    run = cast("MeasuredResults", model.results).measured
    model.set_panels((NOTES,))
    notes = model.results.diagnostics
    rows = min(len(notes), max(height // 4, 1))
    lines: list[Line] = [
        rule(f"{order_title(run)}: there is no step time, and nothing waits", width, glyphs),
        *([(f" {cells(line, 400)}", "")] for line in order_lines(run, width - 2)),
    ]
    below = [
        rule(f"Notes ({len(notes)}), ! all", width, glyphs),
        *note_lines(notes, model.row(NOTES), width, rows, True),
    ]
    room = height - len(below)
    if len(lines) > room:
        lines = [*lines[: room - 1], [(" ... 3 has all operations", "dim")]]
    return [*lines, *([[]] * (room - len(lines))), *below]
