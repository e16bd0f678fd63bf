"""The summary as a frame: panels in boxes on a large screen, under headings on a small one."""

from __future__ import annotations

from simcore.analysis.sentences import told
from tui.boxes import beside, box
from tui.frame import Glyphs, Line, rule
from tui.summary import panels
from tui.summary.model import HELP, MAP, NOTES, STAGES, WORST, SummaryModel

_WIDE, _TALL = 100, 26
_TOP, _BOTTOM = 7, 6
# Fill and role of each part of a bar, and what it is.
_LEGEND = (
    ("fwd", "fwd", "forward"), ("bwd", "bwd", "backward"), ("opt", "opt", "optimizer"),
    ("exposed", "tp", "exposed comm."), ("wait", "wait", "wait"), ("bubble", "bubble", "bubble"),
    ("idle", "", "idle"),
)  # fmt: skip


def draw(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """The lines of the screen, at most `height` of them. progress: of the what-if table."""
    if width >= _WIDE and height >= _TALL:
        return _boxes(model, width, height, glyphs, progress)
    return _headings(model, width, height, glyphs, progress)


def _boxes(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    model.set_panels((STAGES, MAP, WORST, HELP, NOTES))
    run = model.results
    middle = height - _TOP - _BOTTOM
    left = width * 60 // 100
    right = width - left
    worst = min(len(run.worst), 6) + 2
    figure = max(40, width // 3)

    def is_at(panel: str) -> bool:
        return model.panel == panel

    step = box("Step time", "", panels.step_lines(model, glyphs, _TOP - 2), figure, _TOP, glyphs)
    words = panels.word_lines(told(run.sentences), width - figure - 2, _TOP - 2)
    top = beside(step, box("In words", "", words, width - figure, _TOP, glyphs))
    stages = panels.stage_lines(model, left - 2, middle - 3, glyphs, is_at(STAGES))
    stages += [[] for _ in range(middle - 3 - len(stages))]
    stages.append(legend(left - 2, glyphs))
    ranks = panels.map_lines(model, right - 2, middle - worst - 2, glyphs, is_at(MAP))
    places = panels.worst_lines(model, right - 2, is_at(WORST))
    column = [
        *box("Ranks", f"{model.measure}, o other", ranks, right, middle - worst, glyphs, is_at(MAP)),
        *box("Worst", "Enter goes there", places, right, worst, glyphs, is_at(WORST)),
    ]
    where = box("Where each stage's time goes", "% of step", stages, left, middle, glyphs, is_at(STAGES))
    rows = _BOTTOM - 2
    changes = panels.help_lines(model, left - 2, rows, progress)
    notes = panels.note_lines(run.diagnostics, model.cursor(NOTES)[0], right - 2, rows, is_at(NOTES))
    below = beside(
        box("What would help most", "t tries it, 4 all", changes, left, _BOTTOM, glyphs, is_at(HELP)),
        box(f"Notes ({len(run.diagnostics)})", "! all", notes, right, _BOTTOM, glyphs, is_at(NOTES)),
    )
    return [*top, *beside(where, column), *below]


def _headings(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """A small screen: the same order, no frames; the map takes the place of the stages."""
    model.set_panels((STAGES if model.panel != MAP else MAP, WORST, HELP))
    run = model.results
    worst = panels.worst_lines(model, width, model.panel == WORST)
    worst = worst[: max(min(len(worst), height // 4), 1)]
    words = panels.word_lines(told(run.sentences), width, max(min(4, height - 14), 1))
    notes = panels.note_lines(run.diagnostics, 0, width, 1, False)
    changes = panels.help_lines(model, width, 2, progress)
    room = max(height - len(words) - len(worst) - len(notes) - len(changes) - 5, 3)
    if model.panel == MAP:
        title = f"Ranks: {model.measure}, % of step"
        body = panels.map_lines(model, width, room, glyphs, True)[:room]
    else:
        title = "Where each stage's time goes, % of step"
        body = panels.stage_lines(model, width, room, glyphs, model.panel == STAGES)[:room]
    body += [[] for _ in range(room - len(body))]
    lines = [*words, rule(title, width, glyphs), *body, legend(width, glyphs)]
    lines += [rule("Worst", width, glyphs), *worst]
    lines += [rule("What would help most, t tries it", width, glyphs), *changes]
    lines += [rule(f"Notes ({len(run.diagnostics)}), ! all", width, glyphs), *notes]
    return lines[:height]


def legend(width: int, glyphs: Glyphs, parts: tuple[tuple[str, str, str], ...] = _LEGEND) -> Line:
    """What the parts of a bar are: fill, role and words of each."""
    short = width < _WIDE
    named = [(fill, role, words.split()[0] if short else words) for fill, role, words in parts]
    # Two cells between the parts where there is room for them.
    gap = "  " if sum(len(words) + 4 for _, _, words in named) <= width + 1 else " "
    line: Line = []
    for fill, role, words in named:
        line += [(gap if line else " ", ""), (glyphs.fills[fill], role), (f" {words}", "")]
    return line
