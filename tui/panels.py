"""Panels: frames with a title around lines, with a cursor each, one of which has the focus."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simcore.units import duration
from tui.change_words import LESS_TIME
from tui.frame import Glyphs, Line, cells, end_cut, fitted, rows_around, shortened, title_cut
from tui.session import Run

if TYPE_CHECKING:
    from simcore.cluster import Dimension
    from simcore.parameters import RunInput
    from simcore.trace.findings import TrackInterval, WhatIf


# Rows that both lists of the what-if table need: one of each, and the heading between them.
BOTH_LISTS = 3
# More lines than any text has.
_ANY = 1000
# The heading.
MATTERS = f"how much each thing matters: {LESS_TIME} on it"
# The panel of the what-if table.
WHAT_IF = "what-if"


@dataclass(slots=True, kw_only=True)
class PanelCursor:
    """Panels over one run, with a cursor in each."""

    results: Run = field(kw_only=False)
    panels: tuple[str, ...]
    """Those that are drawn, in the order of Tab."""
    panel: str
    """The one with the focus."""
    cursors: dict[str, tuple[int, int]] = field(default_factory=dict)
    """(row, column) of the cursor in each."""
    knobs: Sequence[WhatIf] | None = None
    """The what-if table, the best first; None while it is not there yet."""
    cursor_by_run: dict[tuple[str | None, RunInput], tuple[int, int]] = field(default_factory=dict)
    """By run the cell that had the cursor in the what-if table when another run was shown."""

    def show(self, results: Run) -> None:
        """Shows another run; the cursor stays where it is, if that position exists. In the what-if table,
        whose rows change, it returns to the tried row of a previous run, and begins at the first row of a new
        one.
        """
        self.cursor_by_run[self.results.setup.label, self.results.setup] = self.cursor(WHAT_IF)
        self.cursors[WHAT_IF] = self.cursor_by_run.get((results.setup.label, results.setup), (0, 0))
        self.results, self.knobs = results, None
        self.begin()
        for panel in self.panels:
            if panel != WHAT_IF:
                self.set_cursor(panel, *self.cursor(panel))

    def begin(self) -> None:
        """Prepares what a model needs for a run."""

    def set_what_if(self, knobs: Sequence[WhatIf] | None) -> None:
        """Sets the what-if table of the run, once it is there."""
        self.knobs = knobs
        if knobs is not None:
            self.set_cursor(WHAT_IF, *self.cursor(WHAT_IF))

    def set_panels(self, panels: tuple[str, ...]) -> None:
        """Sets the panels that the screen has room for."""
        self.panels = panels
        if self.panel not in panels:
            self.panel = panels[0]

    def next_panel(self, by: int) -> None:
        """Moves the focus to the next panel, or to the one before."""
        # One that takes the place of the first, as the ranks of a small screen that of the bars, is among
        # the panels once it is drawn; two keys may come before that.
        index = self.panels.index(self.panel) if self.panel in self.panels else 0
        self.panel = self.panels[(index + by) % len(self.panels)]

    def cursor(self, panel: str) -> tuple[int, int]:
        """Returns (row, column) of the cursor in a panel."""
        return self.cursors.get(panel, (0, 0))

    def row(self, panel: str) -> int:
        """Returns the row of the cursor in a panel."""
        return self.cursor(panel)[0]

    def move(self, rows: int, columns: int = 0) -> None:
        """Moves the cursor of the panel that has the focus."""
        row, column = self.cursor(self.panel)
        self.set_cursor(self.panel, row + rows, column + columns)

    def set_cursor(self, panel: str, row: int, column: int = 0) -> None:
        """Sets the cursor of a panel, clamped to its extent."""
        rows, columns = self.panel_size(panel)
        self.cursors[panel] = (max(0, min(row, rows - 1)), max(0, min(column, columns - 1)))

    def selected_change(self) -> WhatIf | None:
        """Returns the change under the cursor, where the what-if table has the focus."""
        return self.knobs[self.row(WHAT_IF)] if self.panel == WHAT_IF and self.knobs else None

    def best(self) -> WhatIf | None:
        """Returns the change that gains most."""
        return self.knobs[0] if self.knobs else None

    @property
    def fixes(self) -> int:
        """How many of the changes fix the file: two where the file does not say which is right. The first one
        stands before the gains, the other behind them.
        """
        return sum(knob.fixes for knob in self.knobs or ())

    @property
    def advice_title(self) -> str:
        """The title of the changes. Rows that fix the file have another one: `What would help most` over a
        row that makes the step longer would be wrong.
        """
        if not self.fixes:
            return f"{HELPS_MOST}{self.base_words}"
        # Of two fixes the file does not say which is right.
        return f"Fix the file{' (ask its author)' if self.fixes > 1 else ''}, then what helps most"

    @property
    def base_ns(self) -> int:
        """The step time that the changes of the what-if table are compared with, ns."""
        return self.results.figures.what_if_base_ns

    @property
    def base_words(self) -> str:
        """The end of the title of the what-if table: the replay that it starts from, where that is not the
        run on the screen. Nothing is replayed for it before the table is there.
        """
        if not self.knobs or self.base_ns == self.results.step_time_ns:
            return ""
        return f", replayed from {duration(self.base_ns)}"

    @property
    def dims(self) -> Sequence[Dimension]:
        """The dimensions of the network that changes may be of; none where there are none."""
        return self.results.network.dims

    def panel_size(self, panel: str) -> tuple[int, int]:
        """Returns (rows, columns) of a panel."""
        raise NotImplementedError

    def target(self) -> TrackInterval | None:
        """Returns where Enter leads in the timeline; None where it leads elsewhere or nowhere."""
        raise NotImplementedError


HELPS_MOST = "What would help most"
NO_TIME = "nothing takes any time"
COMING = "still computing"


def two_lists(knobs: Sequence[WhatIf], row: int, rows: int) -> list[int | None]:
    """Returns which rows of the what-if table stand in `rows` lines around the cursor; None is the heading
    over what matters. The two lists never stand together without it: where there is no room for both, only
    the one with the cursor is there.
    """
    changes = sum(knob.list == "change" for knob in knobs)
    visible = rows_around(row, len(knobs), rows)
    if not visible.start <= changes < visible.stop or (rows < BOTH_LISTS and not changes):
        return list(visible)
    if rows < BOTH_LISTS:
        of_cursor = range(changes) if row < changes else range(changes, len(knobs))
        inside = rows_around(row - of_cursor.start, len(of_cursor), rows)
        return list(of_cursor[inside.start : inside.stop])
    return [
        line
        for index in rows_around(row, len(knobs), rows - 1)
        for line in ([None, index] if index == changes else [index])
    ]


def fixes_in_front(knobs: Sequence[WhatIf]) -> int:
    """Returns the rows in front of the gains that fix the file: one or none."""
    return int(bool(knobs) and knobs[0].fixes)


def with_most_a_microbatch(knobs: Sequence[WhatIf]) -> list[WhatIf]:
    """Returns the rows with those of more micro-batches behind the first of them where no other change gains
    as much for each: by step time they would be last, as they make the step longer. For a file that needs a
    fix they stay there: its number of micro-batches is what it contradicts itself about.
    """
    gains = {index: knob.gain_ns for index, knob in enumerate(knobs) if knob.flags}
    most = min(gains, key=lambda index: gains[index], default=None)
    if fixes_in_front(knobs) or most is None or knobs[most].same_work_ns is None or most <= 1:
        return list(knobs)
    rest = (knob for index, knob in enumerate(knobs) if index and index != most)
    return [knobs[0], knobs[most], *rest]


def lists_and_meaning(
    knobs: Sequence[WhatIf], row: int, focused: bool, rows: int, width: int, other: str = ""
) -> tuple[list[int | None], list[str]]:
    """Returns `two_lists` in `rows` lines, and for the last of these what the change under the cursor does,
    in lines of `width` cells; without the focus what the visible changes do: the first, and further ones
    where no row needs their lines. Where there is nothing to say, `other`, or more rows.
    """
    in_sight = [
        index for index in two_lists(knobs, row, rows - 1) if index is not None and knobs[index].flags
    ]
    first = fixes_in_front(knobs)
    described = [row] if focused and (row or not first) else in_sight
    meanings = [knobs[index].meaning for index in described if knobs[index].meaning]
    meaning = meanings[0] if meanings else other
    most = max(rows - BOTH_LISTS - first, 1)
    if len(meanings) > 1 and first:
        # The explanation of a fix applies to the row below it: neither is left out for a further row.
        meaning, most = "; ".join(meanings[:2]), max(rows - BOTH_LISTS + 1, most)
    if _lines_of(meaning.partition("; ")[0], width) > most:
        # Half of the rows is better than half a clause.
        most = max(rows // 2, 1)
    lines = _clauses(meaning, width, most) if meaning else []
    listed = two_lists(knobs, row, rows - len(lines))
    if lines and len(listed) + len(lines) < rows:
        # Where the other list has too few rows, this row gets more words: why it has another schedule, too.
        lines = _clauses(meaning, width, rows - len(listed))
    for further in meanings[1:]:
        if len(listed) + len(lines) + _lines_of(further, width) > rows or further in meanings[0]:
            break
        lines += _clauses(further, width, _ANY)
    return listed, lines


def meaning_rows(knobs: Sequence[WhatIf] | None, width: int) -> int:
    """Returns the lines of `width` cells that the longest explanation of a change needs."""
    meanings = {knob.meaning for knob in knobs or () if knob.meaning}
    return max((_lines_of(meaning, width) for meaning in meanings), default=0)


def _lines_of(meaning: str, width: int) -> int:
    """Returns the lines of `width` cells that all of it needs."""
    return len(_clauses(meaning, width, _ANY)) if meaning else 0


def _clauses(meaning: str, width: int, rows: int) -> list[str]:
    """Returns clauses with `; ` between them in at most `rows` lines: where there is no room for all, the
    last ones are dropped completely. Half a clause says something else; only the first is truncated, with
    dots.
    """
    clauses = meaning.replace(" %", "\u00a0%").split("; ")
    for count in range(len(clauses), 0, -1):
        lines = textwrap.wrap("; ".join(clauses[:count]), max(width, 20), break_on_hyphens=False)
        if len(lines) <= rows:
            break
    if len(lines) > rows:
        lines = [*lines[: rows - 1], end_cut(" ".join(lines[rows - 1 :]), width)]
    return [cells(line.replace("\u00a0", " "), width) for line in lines]


def box(
    title: str, aside: str, lines: list[Line], width: int, height: int, glyphs: Glyphs, focused: bool = False
) -> list[Line]:
    """Returns `lines` in a frame of `width` x `height` cells, its title on the left and `aside` on the right.

    The frame of the panel that has the focus has the accent, and its title a mark in front. A title that is
    too long is truncated with dots: the frame keeps its corners.
    """
    role = "accent" if focused else "dim"
    left_top, right_top, left_bottom, right_bottom = list(glyphs.corners)
    line = glyphs.horizontal
    mark = "> " if focused else ""
    title = f"{line} {mark}{title_cut(title, width - 5 - len(mark))} "[: max(width - 2, 0)]
    aside = f" {aside} {line}" if aside and len(title) + len(aside) + 5 <= width else ""
    middle = line * max(width - 2 - len(title) - len(aside), 0)
    top: Line = [
        (left_top, role),
        (title, role if focused else ""),
        (middle, role),
        (aside, "dim"),
        (right_top, role),
    ]
    boxed = [fitted(top, width)]
    for row in range(height - 2):
        inner = lines[row] if row < len(lines) else []
        boxed.append([(glyphs.vertical, role), *shortened(inner, width - 2), (glyphs.vertical, role)])
    boxed.append([(left_bottom + line * (width - 2) + right_bottom, role)])
    return boxed


def join_panels(*panels: list[Line]) -> list[Line]:
    """Returns panels of equal height next to each other."""
    return [[styled for part in parts for styled in part] for parts in zip(*panels, strict=True)]
