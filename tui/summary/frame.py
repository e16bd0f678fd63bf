"""The summary as a frame: panels in boxes on a large screen, under headings on a small one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tui.frame import Glyphs, Line, cells, rule
from tui.panel_cursor import WHAT_IF, beside, box
from tui.summary import panels
from tui.summary.model import MAP, NOTES, PANELS, STAGES, WORST, SummaryModel

if TYPE_CHECKING:
    from simcore.replay import MeasuredResults

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

    words = panels.word_lines(model.results.words, width - figure - 2, _TOP - 2)
    step = panels.step_lines(model.results, glyphs, figure - 2, _TOP - 2)
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
    places = panels.worst_lines(model, right - 2, worst - 2, model.panel == WORST)
    column = [
        *framed(MAP, table.title, table.aside, tabled, (right, middle - worst)),
        *framed(WORST, "Worst", "Enter goes there", places, (right, worst)),
    ]
    rows = _BOTTOM - 2
    found = model.results.diagnostics
    notes = panels.note_lines(found, model.row(NOTES), right - 2, rows, model.panel == NOTES)
    changes = panels.help_lines(model, left - 2, rows, progress)
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
    worst = panels.worst_lines(model, width, max(height // 5, 1), model.panel == WORST)
    words = panels.word_lines(model.results.words, width, max(min(4, height - 14), 1))
    notes = panels.note_lines(found, 0, width, 1, False)
    changes = panels.help_lines(model, width, 2, progress)
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
        *panels.note_lines(notes, model.row(NOTES), width, rows, True),
    ]
    room = height - len(below)
    if len(lines) > room:
        lines = [*lines[: room - 1], [(" ... 3 has all operations", "dim")]]
    return [*lines, *([[]] * (room - len(lines))), *below]
