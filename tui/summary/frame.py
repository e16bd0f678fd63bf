"""The summary as a frame: panels in boxes on a large screen, under headings on a small one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tui.boxes import beside, box
from tui.frame import Glyphs, Line, rule
from tui.panel_cursor import WHAT_IF
from tui.summary import panels
from tui.summary.model import MAP, NOTES, PANELS, STAGES, WORST, SummaryModel

if TYPE_CHECKING:
    from tui.measured.summary_model import MeasuredSummaryModel

_WIDE, _TALL = 100, 26
_TOP, _BOTTOM = 7, 6

# Fill and role of each part of a bar, and what it is.
Legend = tuple[tuple[str, str, str], ...]
# Lines of a panel for its width, its rows, and whether it has the focus.
Lines = Callable[[int, int, bool], list[Line]]


class Parts(NamedTuple):
    """What a summary has of its own, simulated or measured.

    step: the lines of the step time for a width and a number of rows. bars: where the time goes. table: what
    stands beside them; table_heading: its title where it has no frame, table_aside what its frame says
    besides.
    """

    step_title: str
    step: Callable[[int, int], list[Line]]
    words: Sequence[str]
    bars_title: str
    bars: Lines
    legend: Legend
    table_title: str
    table_aside: str
    table_heading: str
    table: Lines


def draw(
    model: SummaryModel | MeasuredSummaryModel,
    parts: Parts,
    width: int,
    height: int,
    glyphs: Glyphs,
    progress: str,
) -> list[Line]:
    """The lines of the screen, at most `height` of them. progress: of the what-if table."""
    if width >= _WIDE and height >= _TALL:
        return _boxes(model, parts, width, height, glyphs, progress)
    return _headings(model, parts, width, height, glyphs, progress)


def _boxes(
    model: SummaryModel | MeasuredSummaryModel,
    parts: Parts,
    width: int,
    height: int,
    glyphs: Glyphs,
    progress: str,
) -> list[Line]:
    model.set_panels(PANELS)
    middle = height - _TOP - _BOTTOM
    left = width * 60 // 100
    right = width - left
    worst = min(len(model.results.worst), 6) + 2
    figure = max(40, width // 3)

    def framed(panel: str, title: str, aside: str, lines: list[Line], size: tuple[int, int]) -> list[Line]:
        return box(title, aside, lines, *size, glyphs, model.panel == panel)

    words = panels.word_lines(parts.words, width - figure - 2, _TOP - 2)
    top = beside(
        box(parts.step_title, "", parts.step(figure - 2, _TOP - 2), figure, _TOP, glyphs),
        box("In words", "", words, width - figure, _TOP, glyphs),
    )
    bars = parts.bars(left - 2, middle - 3, model.panel == STAGES)
    bars += [[] for _ in range(middle - 3 - len(bars))]
    bars.append(legend(left - 2, glyphs, parts.legend))
    where = framed(STAGES, parts.bars_title, "% of step", bars, (left, middle))
    table = parts.table(right - 2, middle - worst - 2, model.panel == MAP)
    places = panels.worst_lines(model, right - 2, worst - 2, model.panel == WORST)
    column = [
        *framed(MAP, parts.table_title, parts.table_aside, table, (right, middle - worst)),
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


def _headings(
    model: SummaryModel | MeasuredSummaryModel,
    parts: Parts,
    width: int,
    height: int,
    glyphs: Glyphs,
    progress: str,
) -> list[Line]:
    """A small screen: the same order, no frames; the table takes the place of the bars."""
    model.set_panels((STAGES if model.panel != MAP else MAP, WORST, WHAT_IF))
    found = model.results.diagnostics
    worst = panels.worst_lines(model, width, max(height // 5, 1), model.panel == WORST)
    words = panels.word_lines(parts.words, width, max(min(4, height - 14), 1))
    notes = panels.note_lines(found, 0, width, 1, False)
    changes = panels.help_lines(model, width, 2, progress)
    room = max(height - len(words) - len(worst) - len(notes) - len(changes) - 5, 3)
    if model.panel == MAP:
        title, body = parts.table_heading, parts.table(width, room, True)[:room]
    else:
        title = f"{parts.bars_title}, % of step"
        body = parts.bars(width, room, model.panel == STAGES)[:room]
    body += [[] for _ in range(room - len(body))]
    lines = [*words, rule(title, width, glyphs), *body, legend(width, glyphs, parts.legend)]
    count = len(model.results.worst)
    more = f" ({len(worst)} of {count})" if len(worst) < count else ""
    lines += [rule(f"Worst{more}", width, glyphs), *worst]
    lines += [rule(f"What would help most{model.base_words}, t tries it", width, glyphs), *changes]
    lines += [rule(f"Notes ({len(found)}), ! all", width, glyphs), *notes]
    return lines[:height]


def legend(width: int, glyphs: Glyphs, parts: Legend) -> Line:
    """What the parts of a bar are: fill, role and words of each."""
    short = width < _WIDE
    named = [(fill, role, words.split()[0] if short else words) for fill, role, words in parts]
    # Two cells between the parts where there is room for them.
    gap = "  " if sum(len(words) + 4 for _, _, words in named) <= width + 1 else " "
    line: Line = []
    for fill, role, words in named:
        line += [(gap if line else " ", ""), (glyphs.fills[fill], role), (f" {words}", "")]
    return line
