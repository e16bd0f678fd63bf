"""The panels of the summary, each as lines of the inner size of its frame."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from simcore.analysis.accounts import ACCOUNTS, FIRST_EXPOSED, WAIT
from simcore.analysis.rank_map import MapRow
from simcore.analysis.stages import StageAccounts, joined
from simcore.diagnostics import Diagnostic
from simcore.program.ops import FWD, IG, OPT, RECOMPUTE, WG
from simcore.ranks import RankSet
from simcore.units import duration, percent, plural, whole_percent
from tui.change_words import BETTER, UNKNOWN, change_share, change_words
from tui.frame import Glyphs, Line, cells, fitted, rows_around
from tui.panel_cursor import WHAT_IF
from tui.summary.digits import large
from tui.summary.model import MAP, STAGES, WORST, SummaryModel

if TYPE_CHECKING:
    from simcore.analysis.what_if import WhatIf
    from simcore.analysis.worst import Place
    from simcore.cluster import Dimension
    from simcore.replay.what_if import Knob
    from simcore.replay.worst import Place as MeasuredPlace
    from tui.measured.summary_model import MeasuredSummaryModel

_DRAWN = {"fwd": "fwd", "ig": "bwd", "wg": "bwd", "opt": "opt", "recompute": "fwd"}
# Parts of a stage's bar, in their order: fill and role of each account.
_BAR = tuple(
    (_DRAWN[words[1]], _DRAWN[words[1]])
    if words[0] == "compute"
    else ("exposed", words[1])
    if words[0] == "exposed"
    else (words[0], words[0])
    for words in (account.split() for account in ACCOUNTS)
)
# What forward work is done again stands beside the forward work.
_ORDER = (FWD, RECOMPUTE, IG, WG, OPT, *range(FIRST_EXPOSED, len(ACCOUNTS)))
_MAP_ROLE = {"exposed": "comm", "wait": "wait", "computing": "bwd"}


def step_lines(model: SummaryModel, glyphs: Glyphs, height: int) -> list[Line]:
    """The step time, large, and how much of it is compute."""
    results = model.results
    step = results.step_time_ns
    words = duration(step)
    figure = figure_lines(words, glyphs)
    compute = results.mean_busy_ns
    share = f" = {whole_percent(compute, step)} % of it" if step else ""
    more: list[Line] = [[(f"  compute alone {duration(compute)}{share}", "")]]
    program = results.simulation.program
    count = program.microbatches
    if program.has_pipeline_schedule and count:
        more.append([(f"  {plural(count, 'micro-batch')}: {duration(step // count)} for each", "")])
    return [*figure, *more][:height]


def figure_lines(words: str, glyphs: Glyphs) -> list[Line]:
    """A figure with its unit in three rows: large, in plain letters where there is ASCII alone."""
    if glyphs.corners[0] == "+":
        return [[], [(f"  {words}", "bright")], []]
    return [[(f"  {row}", "bright")] for row in large(words)]


def stage_lines(model: SummaryModel, width: int, rows: int, glyphs: Glyphs, focused: bool) -> list[Line]:
    """A line a stage, or a few stages: its time as a bar, and the parts in per cent of the step."""
    model.join(rows - 1)
    found = model.stage_rows()
    step = model.results.step_time_ns
    waits = any(stage.sum_ns[WAIT] for stage in model.results.stages)
    names = ["compute", "exposed", *(["wait"] if waits else []), "bubble", "idle"]
    wide = width >= 70
    heads = {"compute": "comp", "exposed": "expo", "wait": "wait", "bubble": "bubb", "idle": "idle"}
    size = 6 if wide else 5
    last = found[-1][-1]
    left = 8 + (len(_range(last.first_rank, last.last_rank)) + 1 if wide else 0)
    bar = max(width - left - size * len(names) - 1, 4)
    head = " stage ranks" if wide else " stage"
    ruler = scale(step, bar)
    lines: list[Line] = [
        [(head.ljust(left) + ruler + "".join(f"{heads[name]:>{size}}" for name in names), "dim")]
    ]
    row, _ = model.cursor(STAGES)
    for index, stages in enumerate(found):
        at = focused and index == row
        lines.append(_stage_line(stages, names, step, left, bar, size, wide, glyphs, at))
    return lines


def _stage_line(
    stages: list[StageAccounts],
    names: list[str],
    step: int,
    left: int,
    bar: int,
    size: int,
    wide: bool,
    glyphs: Glyphs,
    at: bool,
) -> Line:
    whole = joined(stages)
    name = f"{whole.stage}" if len(stages) == 1 else f"{whole.stage}-{stages[-1].stage}"
    label = f"{'>' if at else ' '}{name:>5} "
    if wide:
        label += _range(whole.first_rank, whole.last_rank)
    line: Line = [(fitted([(label, "")], left)[0][0], "accent" if at else "")]
    whole_ns = step * whole.ranks
    line += account_bar(whole.sum_ns, whole_ns, bar, glyphs)
    parts, share = whole.parts_ns(), percent if wide else whole_percent
    figures = "".join(f"{share(parts[name], whole_ns):>{size}}" for name in names)
    line.append((figures, "accent" if at else ""))
    return line


def account_bar(sums: Sequence[int], whole: int, width: int, glyphs: Glyphs) -> Line:
    """Accounts beside each other, ns each, on `width` cells that stand for `whole` ns."""
    return bar_line(((sums[account], *_BAR[account]) for account in _ORDER), whole, width, glyphs)


def bar_line(parts: Iterable[tuple[int, str, str]], whole: int, width: int, glyphs: Glyphs) -> Line:
    """(ns, fill, role) beside each other on `width` cells that stand for `whole` ns."""
    line: Line = []
    done = drawn = 0
    for ns, fill, role in parts:
        done += ns
        end = round(width * done / whole) if whole else 0
        line.append((glyphs.fills[fill] * (end - drawn), "" if role == "idle" else role))
        drawn = max(end, drawn)
    return [*line, (" " * (width - drawn), "")]


def _range(first: int, last: int) -> str:
    return f"{first}-{last}" if last > first else str(first)


def scale(step: int, width: int) -> str:
    """`0 s` on the left of the bars and the step time on their right."""
    right = duration(step)
    return f"0{right:>{width - 1}}" if width > len(right) + 2 else " " * width


def map_lines(model: SummaryModel, width: int, rows: int, glyphs: Glyphs, focused: bool) -> list[Line]:
    """A measure of every rank: a line for ranks that are alike, a column a stage."""
    found = model.results.rank_map
    stages = len(model.results.stages)
    left = min(max(8, *(len(_of_row(row)) + 2 for row in found[:50])), max(width - stages - 1, 8))
    gap = 2 if left + 2 * stages + 1 <= width else 1
    shown = min((width - left) // gap, stages)
    at_row, at_column = model.cursor(MAP)
    first_column = min(max(at_column - shown + 1, 0), max(stages - shown, 0))
    room = max(rows - 3, 1)
    values = [model.measured(row, stage) for row in found for stage in range(stages)]
    least, most = min(values, default=0), max(values, default=0)
    role = _MAP_ROLE.get(model.measure, "")
    lines: list[Line] = [
        [(fitted([(" ranks", "")], left)[0][0] + _ruler(first_column, shown, gap, width - left), "dim")]
    ]
    for index in rows_around(at_row, len(found), room):
        row = found[index]
        line: Line = [(fitted([(f" {_of_row(row)}", "")], left)[0][0], "")]
        for stage in range(first_column, first_column + shown):
            ns = model.measured(row, stage)
            glyph = _shade(ns, most, glyphs)
            here = focused and (index, stage) == (at_row, at_column)
            line += [(glyph, f"{role} reversed" if here else role), (" " * (gap - 1), "")]
        lines.append(line)
    lines += [[] for _ in range(rows - 2 - len(lines))]
    return [*lines, *_at_map(model, least, most, width, glyphs, focused)]


def _shade(ns: int, most: int, glyphs: Glyphs) -> str:
    """How high a cell of the map is: blank for nothing, full for the most there is."""
    return glyphs.heat[-(-ns * (len(glyphs.heat) - 1) // most)] if most else " "


def _ruler(first: int, shown: int, gap: int, width: int) -> str:
    """The numbers of the stages over the columns of a map: every fifth, as far as `width` has room."""
    marks = [" "] * (shown * gap + 3)
    for column in range(shown):
        stage = first + column
        if stage % 5 == 0 and column * gap + len(str(stage)) <= width:
            for place, char in enumerate(str(stage)):
                marks[column * gap + place] = char
        elif gap == 2 and marks[column * gap] == " ":
            marks[column * gap] = "."
    return "".join(marks).rstrip()


def _at_map(
    model: SummaryModel, least: int, most: int, width: int, glyphs: Glyphs, focused: bool
) -> list[Line]:
    """What the heights mean; over it the cell under the cursor, or the mean of all ranks."""
    step = model.results.step_time_ns
    ends = [
        f"{shade} {percent(ns, step)}" if (shade := _shade(ns, most, glyphs)) != " " else percent(ns, step)
        for ns in (least, most)
    ]
    legend = f" {model.measure}: {' to '.join(ends)} % of step"
    if least == most:
        legend = f" {model.measure}: {ends[0]} % of step, all alike"
    row, stage = model.cursor(MAP)
    found = model.results.rank_map
    if not focused or row >= len(found):
        return [[(f" mean of all ranks {percent(model.mean_ns, step)} %", "dim")], [(legend, "dim")]]
    ns = model.measured(found[row], stage)
    share = 100 * ns / step if step else 0.0
    words = f" stage {stage}, {_of_row(found[row])}: {duration(ns)}, {share:.1f} %"
    return [[(words[:width], "accent")], [(legend, "dim")]]


def _of_row(row: MapRow) -> str:
    """Whose row of the map it is: `dp 0-7 tp 0-7`."""
    if not row.is_grid:
        return f"{row.pairs} ranks each"
    return f"dp {_short(row.dp)} tp {_short(row.tp)}"


def _short(ranks: RankSet) -> str:
    text = ranks.text()
    return text if len(text) <= 6 else f"x{len(ranks)}"


def worst_lines(
    model: SummaryModel | MeasuredSummaryModel, width: int, rows: int, focused: bool
) -> list[Line]:
    """The places worth a look, those around the cursor."""
    row, _ = model.cursor(WORST)
    lines: list[Line] = []
    places: Sequence[Place | MeasuredPlace] = model.results.worst
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


def help_lines(
    model: SummaryModel | MeasuredSummaryModel, width: int, rows: int, progress: str
) -> list[Line]:
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


def help_line(knob: WhatIf | Knob, dims: Sequence[Dimension], step: int, size: int, at: bool) -> Line:
    """A change in words, the step time with it, and the difference."""
    words = change_words(knob, dims) + ("" if knob.free_ns is None else f", {BETTER}")
    name = f"{'>' if at else ' '}{cells(words, size - 1):<{size}}"
    if knob.unknown:
        return [(name, "accent" if at else ""), (f"{UNKNOWN:>20}", "dim")]
    share, role = change_share(step, knob.better10_ns)
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
