"""The why screen as a frame, and what its cursor is on.

Sums of the critical path and what-if side by side over the path's segments, or one of them alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simcore.kernel_names import display_name
from simcore.trace.findings import MergedSegment, TrackInterval
from simcore.trace.lane_spans import format_position
from simcore.trace.run import find_interval, find_longest_of_part, merged_segments_of, sum_path
from simcore.units import duration, percent
from tui.change_words import (
    LESS_TIME,
    UNKNOWN,
    change_share,
    describe_change,
    memory_cells,
    memory_text,
    name_and_share,
)
from tui.frame import Glyphs, Line, cells, cut_distinct, name_cut, rows_around, rule, share_bar
from tui.panels import (
    NO_TIME,
    WHAT_IF,
    PanelCursor,
    box,
    join_panels,
    lists_and_meaning,
    meaning_rows,
    two_lists,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simcore.cluster import Dimension
    from simcore.trace.figures import HangWait
    from simcore.trace.findings import WhatIf


SUMS, SEGMENTS = "sums", "legs"
# Of a hung job, which has no critical path: who waits for whom; of snapshots what failed.
WAITS = "waits"
PANELS = (SUMS, WHAT_IF, SEGMENTS)

# Cells for the name of a segment, with a gap behind it: where micro-batches are spelled out, where the times
# have all digits, and on a narrow screen; and the most where names are longer.
_CELLS, _LONG_CELLS, _LEAST_CELLS = (30, 25, 16), (33, 28, 20), 12
# Cells of the sums; their share of the width, and that on a screen of less than 120 columns.
_SUM_CELLS = 56
_SUMS_PERCENT, _FEW_SUMS_PERCENT = 36, 34
# The longest text behind the name, in each of the three.
_BATCHES = (" of micro-batch ", " mb ", " mb ")


@dataclass(slots=True, kw_only=True)
class WhyModel(PanelCursor):
    """The critical path of a run, summed and segment by segment."""

    panels: tuple[str, ...] = field(default=PANELS)
    panel: str = field(default=SUMS)
    grouping: str = field(default="kind")
    """What the sums are by."""
    by_length: bool = field(default=False)
    """Whether the segments are listed the longest first."""
    _sums: dict[str, list[tuple[str, int]]] = field(default_factory=dict, init=False)
    _ordered_segments: list[MergedSegment] | None = field(default=None, init=False)
    _name_cells: tuple[int, int, int] | None = field(default=None, init=False)
    _waits: Sequence[HangWait] | None = field(default=None, init=False)
    # By room the names of operations as they are truncated there.
    _names: dict[int, dict[str, str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if not self.results.figures.has_step:
            self.panels, self.panel = (WAITS,), WAITS

    @property
    def waits(self) -> Sequence[HangWait]:
        """Who waits for whom, of flight recorder dumps; else empty."""
        if self._waits is None:
            tables = self.results.figures.hang
            self._waits = () if tables is None else tables.find_waits()
        return self._waits

    def begin(self) -> None:
        self._waits = None
        self._sums, self._name_cells, self._ordered_segments, self._names = {}, None, None, {}
        if self.grouping not in self.results.figures.path_groupings:
            self.grouping = self.results.figures.path_groupings[0]

    @property
    def merged_segments(self) -> list[MergedSegment]:
        """The path, one line for what a rank does of a micro-batch or in an operation."""
        return merged_segments_of(self.results)

    @property
    def ordered_segments(self) -> list[MergedSegment]:
        """The segments in the order in which they are listed."""
        if self._ordered_segments is None:
            by_length = (
                sorted(self.merged_segments, key=lambda segment: (-segment.ns, segment.start_ns))
                if self.by_length
                else None
            )
            self._ordered_segments = self.merged_segments if by_length is None else by_length
        return self._ordered_segments

    def toggle_order(self) -> None:
        """Lists the segments the longest first, with the cursor on the longest, or in the order of time, with
        the cursor on its segment.
        """
        current = self.ordered_segments[self.row(SEGMENTS)] if self.ordered_segments else None
        self.by_length, self._ordered_segments = not self.by_length, None
        if current is not None:
            self.set_cursor(SEGMENTS, 0 if self.by_length else self.ordered_segments.index(current))

    @property
    def name_cells(self) -> tuple[int, int, int]:
        """Cells for the name of a segment, on a wide, a medium and a narrow screen."""
        if self._name_cells is None:
            longest = [
                1
                + max(
                    (
                        len(display_name(segment.what)) + _batch_cells(segment, of)
                        for segment in self.merged_segments
                    ),
                    default=0,
                )
                for of in _BATCHES
            ]
            first, second, third = (
                max(cells, _LEAST_CELLS) if cells <= few else more
                for cells, few, more in zip(longest, _CELLS, _LONG_CELLS, strict=True)
            )
            self._name_cells = first, second, third
        return self._name_cells

    def segment_names(self, size: int) -> dict[str, str]:
        """Returns the name of each segment, in at most `size` cells."""
        if size not in self._names:
            self._names[size] = cut_distinct((segment.what for segment in self.merged_segments), size)
        return self._names[size]

    def sums(self, grouping: str | None = None) -> list[tuple[str, int]]:
        """Returns (part, ns) of the critical path by a grouping, by default the chosen one, the longest
        first.
        """
        grouping = grouping or self.grouping
        if grouping not in self._sums:
            self._sums[grouping] = sum_path(self.results, grouping)
        return self._sums[grouping]

    @property
    def other_groupings(self) -> list[str]:
        """The groupings behind the chosen one, in turn."""
        names = list(self.results.figures.path_groupings)
        at = names.index(self.grouping)
        return names[at + 1 :] + names[:at]

    def next_grouping(self) -> None:
        """Sums by the next grouping."""
        names = self.results.figures.path_groupings
        self.grouping = names[(names.index(self.grouping) + 1) % len(names)]
        self.set_cursor(SUMS, 0)

    def panel_size(self, panel: str) -> tuple[int, int]:
        if panel == WHAT_IF:
            return len(self.knobs or ()), 1
        if panel == WAITS:
            return len(self.waits), 1
        return len(self.merged_segments if panel == SEGMENTS else self.sums()), 1

    def target(self) -> TrackInterval | None:
        """Returns the interval that Enter leads to, in the lane that shows it; None where it leads
        nowhere.
        """
        if self.panel == WAITS:
            wait = self.waits[self.row(WAITS)] if self.waits else None
            return wait and TrackInterval(wait.track_id, wait.start_ns, wait.end_ns, wait.group.stream)
        if self.panel == SEGMENTS and self.merged_segments:
            return find_interval(self.results, self.ordered_segments[self.row(SEGMENTS)])
        sums = self.sums() if self.panel == SUMS else []
        if not sums:
            return None
        return find_longest_of_part(self.results, self.grouping, sums[self.row(SUMS)][0])


def _batch_cells(segment: MergedSegment, words: str) -> int:
    return len(words) + len(str(segment.microbatch)) if segment.microbatch >= 0 else 0


_WIDE, _ROOMY, _TALL = 100, 116, 24
# From this many cells on the segments have the words "of micro-batch".
_SPELLED = 106
# Into how many parts the step is divided by the digits of where a segment begins: the timeline has the rest.
_DIGITS = 10_000
# With more rows the last one of the what-if table says what a change does or replaces.
_WITH_MEANING = 5
# The least rows of other sums below the chosen ones: a heading and the two longest.
_LEAST_SUMS = 3
# Rows for changes while they are computed; the least rows of a panel below another.
_CHANGES, _LEAST_PANEL = 20, 4
_TITLES = {SUMS: "Critical path by {}", WHAT_IF: "What if", SEGMENTS: "Segments of the path"}
_UNITS = {SUMS: "% of step", WHAT_IF: "% of step", SEGMENTS: "time"}
_NAMES = {SUMS: "sums of the path", WHAT_IF: "what if", SEGMENTS: "segments of the path"}


def shows_all(width: int, height: int) -> bool:
    """Returns whether there is room for all panels, not only for the one with the focus."""
    return width >= _WIDE and height >= _TALL


def draw(model: WhyModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """Returns the lines of the screen. progress: how far the what-if table is, while it is not there."""
    if not shows_all(width, height):
        return _stacked_panels(model, width, height, glyphs, progress)
    left = width * (_SUMS_PERCENT if width >= _ROOMY else _FEW_SUMS_PERCENT) // 100
    right = width - left
    upper = _upper_rows(model, height, right - 4)

    def framed(panel: str, lines: list[Line], size: int, rows: int) -> list[Line]:
        title = _title(model, panel, size - 2, rows - 2)
        return box(title, _UNITS[panel], lines, size, rows, glyphs, model.panel == panel)

    sums = framed(SUMS, _sum_tables(model, left - 2, upper - 2, glyphs), left, upper)
    knobs = framed(WHAT_IF, what_if_lines(model, right - 2, upper - 2, progress), right, upper)
    lower = height - upper
    segment_box = framed(SEGMENTS, segment_lines(model, width - 2, lower - 2), width, lower)
    return [*join_panels(sums, knobs), *segment_box]


def _upper_rows(model: WhyModel, height: int, width: int) -> int:
    """Returns the rows of the sums and the what-if table: they get what the segments leave free, and vice
    versa.

    width: cells of what a change does.
    """
    most = height * 45 // 100
    changes = _CHANGES if model.knobs is None else len(model.knobs)
    # The heading between the lists, and what a change does.
    changes += 1 + max(meaning_rows(model.knobs, width), 1)
    needed, segment_rows = max(len(model.sums()), changes) + 3, len(model.merged_segments) + 3
    return max(
        min(needed, max(most, height - segment_rows)),
        min(8, height),
        height - segment_rows if segment_rows < height else 0,
    )


def _stacked_panels(model: WhyModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """Returns the panel with the focus, below it others where there is room for them; the rest is a
    Tab away.
    """
    order = model.panels[model.panels.index(model.panel) :] + model.panels[: model.panels.index(model.panel)]
    lines: list[Line] = []
    visible_panels: list[str] = []
    rows_left = height - 1
    for panel in order:
        needed = model.panel_size(panel)[0] + (4 if panel == WHAT_IF else 2)
        if rows_left < (_LEAST_PANEL if visible_panels else 0):
            break
        rows = min(rows_left, needed if panel != WHAT_IF or model.knobs else max(needed, _LEAST_PANEL))
        lines.append(rule(_title(model, panel, width, rows - 1), width, glyphs, _UNITS[panel]))
        lines += _panel(model, panel, width, rows - 1, glyphs, progress)
        visible_panels.append(panel)
        rows_left -= rows
    lines += [[] for _ in range(rows_left)]
    others = ", ".join(_NAMES[panel] for panel in model.panels if panel not in visible_panels)
    return [*lines, rule(f"Tab: {others}" if others else "", width, glyphs)]


def _panel(model: WhyModel, panel: str, width: int, rows: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """Returns the lines of a panel, exactly `rows` of them."""
    if panel == SUMS:
        lines = sum_lines(model, width, rows, glyphs)
    elif panel == WHAT_IF:
        lines = what_if_lines(model, width, rows, progress)
    else:
        lines = segment_lines(model, width, rows)
    return [*lines[:rows], *([[]] * (rows - len(lines)))]


def _title(model: WhyModel, panel: str, width: int, rows: int) -> str:
    """Returns the title of a panel of `rows` lines, the heading among them; with which rows of how many, if
    not all.
    """
    title = _TITLES[panel].format(model.grouping)
    if panel == WHAT_IF:
        # Of two fixes the file does not say which is right.
        title += model.base_words + (", a fix first (ask its author)" if model.fixes > 1 else "")
    if panel == SEGMENTS and model.by_length:
        title += ", longest first"
    count, _ = model.panel_size(panel)
    if panel == WHAT_IF:
        visible = [index for index in _change_rows(model, width, rows)[0] if index is not None]
    else:
        visible = list(rows_around(model.row(panel), count, rows - 1))
    title += "" if len(visible) in (0, count) else f", {visible[0] + 1}-{visible[-1] + 1} of {count}"
    parts = max((segment.last for segment in model.merged_segments), default=0) if panel == SEGMENTS else 0
    # The report merges no segments: the title has both counts.
    return f"{title}, joined from {parts}" if parts > count else title


def _row_line(words: str, is_at_cursor: bool) -> Line:
    return [(f"{'>' if is_at_cursor else ' '}{words}", "accent" if is_at_cursor else "")]


def _sum_tables(model: WhyModel, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """Returns the chosen sums, and below them as many of the others as the rows have room for."""
    others, rows_left = [], rows - len(model.sums()) - 1
    for grouping in model.other_groupings:
        count = len(model.sums(grouping))
        # One stage or one rank is all of the path.
        if count > 1 and rows_left > _LEAST_SUMS:
            others.append(grouping)
            rows_left -= count + 2
    # One width of names, so that the figures of all tables are aligned.
    names = max(len(_part_names(model, grouping, width)[1]) for grouping in (model.grouping, *others))
    lines = sum_lines(model, width, rows, glyphs, least=names)
    for grouping in others:
        lines += [[], *sum_lines(model, width, rows - len(lines) - 1, glyphs, grouping, names)]
    return lines


def _part_names(model: WhyModel, grouping: str, width: int) -> tuple[dict[str, str], str]:
    """Returns the names of the parts of a sum where a line has `width` cells, and blanks as long as the
    longest name and a gap.
    """
    whole = [what for what, _ in model.sums(grouping)]
    longest = max((len(name_cut(what, _SUM_CELLS)) for what in whole), default=0) + 1
    most = max(width - 20, 8)
    # `backward` is compute without the word: truncated it would say less.
    short = {what: what.removeprefix("compute ") if longest > most else what for what in whole}
    longest = max((len(name_cut(what, _SUM_CELLS)) for what in short.values()), default=0) + 1
    size = min(longest, most)
    names = cut_distinct(short.values(), size - 1)
    return {what: names[short[what]] for what in whole}, " " * size


def sum_lines(
    model: WhyModel, width: int, rows: int, glyphs: Glyphs, grouping: str | None = None, least: int = 0
) -> list[Line]:
    """Returns a line for each part of the path: its time, its share and a bar.

    grouping: another than the chosen one, which the cursor is not in. least: the least cells of names.
    """
    sums, step = model.sums(grouping), model.results.step_time_ns
    if not sums:
        return [[(f" {NO_TIME}", "dim")]]
    row = model.row(SUMS) if grouping is None else 0
    focused = model.panel == SUMS and grouping is None
    names, blanks = _part_names(model, grouping or model.grouping, width)
    size = max(len(blanks), least)
    bar = max(width - size - 20, 0)
    visible = rows_around(row, len(sums), rows - 1)
    head = grouping or model.grouping
    if grouping is not None and len(visible) < len(sums):
        # The panel's title counts only the chosen sums.
        head = cells(f"{head}, {len(visible)} of {len(sums)}", size - 1)
    lines: list[Line] = [[(f" {head:<{size}}{'time':>10}{'% path':>7}", "dim")]]
    for index in visible:
        what, ns = sums[index]
        words = f"{names[what]:<{size}}{duration(ns):>10}{percent(ns, step):>7} "
        filled = share_bar(ns, sums[0][1], bar, glyphs)
        lines.append([*_row_line(words, focused and index == row), (filled, "bwd")])
    return lines


def what_if_lines(model: WhyModel, width: int, rows: int, progress: str) -> list[Line]:
    """Returns a line a change: the step with it; then what matters: the step with 10 % less of it,
    or none.
    """
    changes = model.knobs
    if changes is None:
        return [[(f" {progress}", "dim")]]
    if not changes:
        return [[(" nothing to change", "dim")]]
    step = model.base_ns
    row, focused = model.row(WHAT_IF), model.panel == WHAT_IF
    size = max(width - 42, 14)
    # A change has no figures of what it takes: where its name needs the room, it has theirs.
    longest = max(
        (len(describe_change(change, model.dims)) for change in changes if change.free_ns is None), default=0
    )
    memory_size = memory_cells(changes, width)
    change_cells = size if longest + memory_size < size else max(width - 21, 14)
    visible, words = _change_rows(model, width, rows)
    memory_head = "memory" if memory_size else ""
    head_cells = change_cells - memory_size
    head: Line = [
        (f" {'change':<{head_cells}}{memory_head:>{memory_size}}{'step':>10}{'of step':>10}", "dim")
    ]
    title = cells(f"{LESS_TIME} on", size - 1)
    effect_head: Line = [(f" {title:<{size}}{'step':>10}{'of step':>10}{'if free':>10}{'of step':>9}", "dim")]
    first = visible[0] if visible else None
    # Where the list of what matters comes first, its heading does too.
    lines = [] if first is None else [head if changes[first].list == "change" else effect_head]
    for index in visible:
        if index is None:
            lines.append(effect_head)
            continue
        knob = changes[index]
        wide = change_cells if knob.free_ns is None else size
        of_memory = memory_size if knob.free_ns is None else 0
        lines.append(what_if_line(knob, model.dims, step, wide, focused and index == row, of_memory))
    return lines + [[(f" {line}", "dim")] for line in words]


def _change_rows(model: WhyModel, width: int, rows: int) -> tuple[list[int | None], list[str]]:
    """Returns the rows of the what-if table in a panel of `rows` lines, as `two_lists` returns them, and what
    stands below them: what a change does or replaces.
    """
    knobs, row = model.knobs or (), model.row(WHAT_IF)
    if rows <= _WITH_MEANING or not knobs:
        return two_lists(knobs, row, rows - 1), []
    return lists_and_meaning(
        knobs, row, model.panel == WHAT_IF, rows - 1, width - 2, model.results.figures.changes_summary
    )


def what_if_line(
    knob: WhatIf, dims: Sequence[Dimension], step: int, size: int, at: bool, memory_size: int = 0
) -> Line:
    """Returns a knob and the step times with it. size: cells of its name and of the memory that it needs,
    `memory_size` of them.
    """
    name, share, role = name_and_share(step, knob, dims, size - memory_size - 1)
    words = f"{'>' if at else ' '}{name}{memory_text(knob, memory_size)}"
    if knob.unknown:
        return [(words, "accent" if at else ""), (f"{UNKNOWN:>20}{UNKNOWN:>20}", "dim")]
    now = f"{duration(knob.gain_ns):>10}"
    line: Line = [(words, "accent" if at else ""), (f"{now} ", ""), (share, role)]
    if knob.free_ns is None:
        return [*line, (" anomaly: slower" if knob.anomaly else "", "warn")]
    line += [(f"{duration(knob.free_ns):>10}", ""), change_share(step, knob.free_ns)]
    return [*line, (" !" if knob.anomaly else "", "warn")]


def segment_lines(model: WhyModel, width: int, rows: int) -> list[Line]:
    """Returns a line a segment: when, how long, who, what, and why not earlier."""
    if not len(model.merged_segments):
        return [[(f" {NO_TIME}", "dim")]]
    row, focused = model.row(SEGMENTS), model.panel == SEGMENTS
    wide, is_spelled = width >= _WIDE - 2, width >= _SPELLED
    size = model.name_cells[0 if is_spelled else 1 if wide else 2]
    step_ns = model.results.step_time_ns
    digits_ns = step_ns // _DIGITS
    start_cells = len(format_position(step_ns, digits_ns)) + (2 if wide else 0)
    head = f" {'from':<{start_cells}}{'takes':>11}"
    head += (
        f"  {'stage':>5} {'rank':>7}  {'what':<{size}}"
        if wide
        else f" {'st':>3} {'rank':>6} {'what':<{size}}"
    )
    head += "not earlier, because"
    visible = rows_around(row, len(model.merged_segments), rows - 1)
    names = model.segment_names(size - 1)
    lines = [
        _row_line(
            f"{format_position(model.ordered_segments[index].start_ns, digits_ns):<{start_cells}}"
            + _segment_line(model.ordered_segments[index], names, wide, is_spelled, size),
            focused and index == row,
        )
        for index in visible
    ]
    return [[(head[:width], "dim")], *lines]


def _segment_line(
    segment: MergedSegment, names: Mapping[str, str], wide: bool, spelled: bool, size: int
) -> str:
    """Returns the line of a segment behind its start. names: what segments are, truncated to fit."""
    of = "of micro-batch" if spelled else "mb"
    of_batch = f" {of} {segment.microbatch}" if segment.microbatch >= 0 else ""
    what = name_cut(segment.what, size - 1 - len(of_batch)) + of_batch if of_batch else names[segment.what]
    takes, reason = duration(segment.ns), cells(segment.reason, 200)
    stage = "" if segment.stage is None else str(segment.stage)
    if wide:
        return f"{takes:>11}  {stage:>5} {segment.rank:>7}  {what:<{size}}{reason}"
    return f"{takes:>11} {stage:>3} {segment.rank:>6} {what:<{size}}{reason}"
