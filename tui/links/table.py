"""The table of screen 9: a line a port that carried anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

from simcore.trace.ports import Ports
from simcore.units import byte_size, column_unit, format_number, in_unit, plural
from tui.frame import Glyphs, cells, end_cut
from tui.listing import ListColumn, Listing, find_from

PORT, RATE, BYTES, LOAD, BUSY, FULL = "port", "Gb/s", "bytes", "load %", "busy %", "full %"
SENDS, MEAN, MOST, MARKS, PURPOSE, TIME = "flows", "mean", "most", "marks", "most of", "time"
# The least cells of a load over the step.
_LEAST_TIME = 16
# Columns in the order in which they are dropped.
_DROP_ORDER = (MARKS, BUSY, SENDS, RATE, TIME, LOAD, MEAN)


class PortTable(Listing):
    """The ports of a run: see `Listing`."""

    def __init__(self, ports: Ports, glyphs: Glyphs) -> None:
        self.ports, self.glyphs = ports, glyphs
        self.key, self.descending, self.typed = "", True, ""
        self.lines: list[int] = []
        self._time_cells = 0
        self._purposes: dict[int, str] = {}
        # Messages have a sum of ns that they waited in place of the shares of flows.
        self._queue_unit = column_unit(max((port.held_ns for port in ports.all), default=0))
        flows = ports.sends_noun == "flow"
        self._full_heading = FULL if flows else f"queued {self._queue_unit[1]}"
        sends = SENDS if flows else "messages"
        self._columns: list[tuple[str, ListColumn, Callable[[int], str], Callable[[int], float]]] = [
            (PORT, ListColumn(PORT, self._name_cells(), True), self._name, float),
            (RATE, ListColumn(RATE, 5, False), lambda index: format_number(ports.all[index].gbps),
             lambda index: ports.all[index].gbps),
            (BYTES, ListColumn(BYTES, 8, False), lambda index: byte_size(ports.all[index].bytes),
             lambda index: ports.all[index].bytes),
            (LOAD, ListColumn(LOAD, 6, False), lambda index: _percent(ports.mean_load(index)),
             ports.mean_load),
            (BUSY, ListColumn(BUSY, 6, False), lambda index: _percent(ports.share(index)), ports.share),
            (FULL, ListColumn(self._full_heading, max(len(self._full_heading), 6), False), self._full_text,
             lambda index: ports.all[index].held_ns),
            (SENDS, ListColumn(sends, max(len(sends), 6), False), lambda index: str(ports.all[index].sends),
             lambda index: ports.all[index].sends),
        ]  # fmt: skip
        if flows:
            self._columns += [
                (MEAN, ListColumn(MEAN, 5, False), lambda index: f"{ports.all[index].mean:.1f}",
                 lambda index: ports.all[index].mean),
                (MOST, ListColumn(MOST, 4, False), lambda index: str(ports.all[index].most),
                 lambda index: ports.all[index].most),
                (MARKS, ListColumn(MARKS, 5, False), self._marks_text,
                 lambda index: ports.all[index].is_marked),
            ]  # fmt: skip
        if ports.has_times:
            self._columns.append((PURPOSE, ListColumn(PURPOSE, 12, True), self._purpose_text, float))
            self._columns.append((TIME, ListColumn(TIME, _LEAST_TIME, True), self._time_text, float))
        self.filter("")

    def _name_cells(self) -> int:
        return max((len(port.name) for port in self.ports.all), default=4)

    def _name(self, index: int) -> str:
        return self.ports.all[index].name

    def _full_text(self, index: int) -> str:
        if self._full_heading == FULL:
            return _percent(self.ports.held_share(index))
        return in_unit(self.ports.all[index].held_ns, self._queue_unit[0])

    def _marks_text(self, index: int) -> str:
        return "yes" if self.ports.all[index].is_marked else ""

    def _purpose_text(self, index: int) -> str:
        if index not in self._purposes:
            purposes = self.ports.purposes(index)
            text = f"{purposes[0][0]} {purposes[0][1]}".strip() if purposes else ""
            more = len(purposes) - 1
            self._purposes[index] = cells(text, 60) + (f" +{more}" if more > 0 else "")
        return self._purposes[index]

    def _time_text(self, index: int) -> str:
        return load_text(self.ports, index, self._time_cells, self.glyphs)

    # -- the interface of a table --------------------------------------------------------

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        sortable = (one for one in self._columns if one[0] not in (PURPOSE, TIME))
        return {column.heading: (name, name != PORT) for name, column, _, _ in sortable}

    def columns_for(self, width: int) -> list[ListColumn]:
        """Returns the columns that fit; the load over the step has the cells that others leave."""
        columns = [(name, column) for name, column, _, _ in self._columns]
        for name in _DROP_ORDER:
            if _width(columns) <= width:
                break
            columns = [column for column in columns if column[0] != name]
        if columns and columns[-1][0] == TIME:
            spare = max(width - _width(columns), 0)
            purpose = min(spare // 3, 14)
            columns[-2] = (PURPOSE, columns[-2][1]._replace(size=columns[-2][1].size + purpose))
            self._time_cells = columns[-1][1].size + spare - purpose
            heading = columns[-1][1]._replace(
                size=self._time_cells,
                short="load over the step" if self._time_cells > 18 else "over the step",
            )
            columns[-1] = (TIME, heading)
        elif columns and columns[-1][0] == PURPOSE:
            spare = max(width - _width(columns), 0)
            columns[-1] = (PURPOSE, columns[-1][1]._replace(size=columns[-1][1].size + spare))
        return [column for _, column in columns]

    def texts(self, line: int) -> dict[str, str]:
        index = self.lines[line]
        return {column.heading: text(index) for _, column, text, _ in self._columns}

    def count_text(self) -> str:
        return self.ports.words

    def left(self) -> str:
        return f"{len(self.lines)} of {plural(len(self.ports.by_heat), 'port')}"

    def order(self) -> tuple[str, str]:
        return "the largest load first", "most load first"

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        if self._full_heading != FULL:
            return ""
        short_text = "full: holds flows back"
        return short_text if short else f"load: bytes of what it could carry; {short_text}"

    def sort(self, key: str, descending: bool) -> None:
        self.key, self.descending = key, descending
        self.filter(self.typed)

    def cannot_sort(self, heading: str) -> str:
        return "" if heading in self.sorted_by else "the figures sort"

    def filter(self, typed: str) -> None:
        self.typed = typed.strip()
        order = list(self.ports.by_heat)
        if self.key:
            value = next(value for name, _, _, value in self._columns if name == self.key)
            order.sort(key=value, reverse=self.descending)
        self.lines = [index for index in order if self._matches(index, typed)]

    def _matches(self, index: int, typed: str) -> bool:
        words = typed.lower().split()
        if not words:
            return True
        tier = self.ports.tiers[self.ports.all[index].tier].name
        purposes = " ".join(f"{group} {layer}" for group, layer, _ in self.ports.purposes(index))
        text = f"{self.ports.all[index].name} {tier} {purposes}".lower()
        return all(word in text for word in words)

    def find(self, typed: str, line: int, direction: int) -> int | None:
        if not typed.strip():
            return None
        targets = {index for index in self.lines if self._matches(index, typed)}
        return find_from(self.lines, targets, line, direction)

    def no_match(self, typed: str) -> str:
        return "no port has these words" if typed.strip() else f"no port carried a {self.ports.sends_noun}"

    def mark(self, line: int) -> Hashable:
        return self.ports.all[self.lines[line]].name


def load_text(ports: Ports, index: int, columns: int, glyphs: Glyphs) -> str:
    """Returns the load of a port over the step, a glyph a column."""
    if not ports.has_times or columns < 1:
        return ""
    parts = ports.between(ports.load(index), 0, ports.step_ns, columns)
    return "".join(heat_glyph(part, glyphs) for part in parts)


def heat_glyph(share: float, glyphs: Glyphs) -> str:
    """Returns the glyph of a share of the most; any share above 0 is seen."""
    levels = len(glyphs.heat) - 1
    return glyphs.heat[min(math.ceil(share * levels - 1e-9), levels)]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _width(columns: Sequence[tuple[str, ListColumn]]) -> int:
    return sum(column.size + 1 for _, column in columns) + 1


def purpose_text(group: str, layer: str, room: int) -> str:
    """Returns `dp_ep moe_grad_norm` in at most `room` cells."""
    return end_cut(cells(f"{group} {layer}".strip(), 200), room)
