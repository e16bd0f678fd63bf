"""The panels of the summary, each as lines of the inner size of its frame."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic
from simcore.units import change_percent, duration, plural, signed, whole_percent
from tui.change_words import UNKNOWN, change_words, gain_share
from tui.frame import Glyphs, Line, cells, rows_around
from tui.panel_cursor import WHAT_IF
from tui.summary.model import WORST, SummaryModel

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.cluster import Dimension
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
