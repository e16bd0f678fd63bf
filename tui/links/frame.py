"""The picture of screen 9: tiers as rows, ports as cells; and the load of one port over time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from simcore.trace.ports import Ports, Send
from simcore.units import byte_size, duration, plural
from tui.frame import Glyphs, Line, cells, fitted, rule, shortened, width_of
from tui.links.table import heat_glyph, purpose_text

LOAD, FULL, NOW = "load", "full", "now"
MEASURES = (LOAD, FULL, NOW)
# Cells in front of the ports: the mark, the name of the tier, the count.
_NAME, _COUNT = 12, 6


@dataclass(slots=True)
class PortCursor:
    """Where the cursor of the picture is: a port, a time, and what its cells are of."""

    ports: Ports
    index: int = 0
    """The port."""
    time_ns: int = 0
    measure: str = LOAD
    _measured: tuple[tuple[str, int], list[float], float] | None = None

    def __post_init__(self) -> None:
        if self.ports.by_heat:
            shared_index = self.ports.hottest_shared
            self.index = self.ports.by_heat[0] if shared_index is None else shared_index
            self.time_ns = self.ports.busiest_ns(self.index)
        elif self.ports.tiers:
            self.index = self.ports.tiers[0].ports[0]

    @property
    def tier(self) -> int:
        """The tier of the port."""
        return self.ports.all[self.index].tier

    @property
    def position(self) -> int:
        """The position of the port in its tier."""
        return self.ports.tiers[self.tier].ports.index(self.index)

    def move(self, tiers: int, steps: int) -> None:
        """Moves to another tier, at about the same position, or along the tier."""
        if not self.ports.all:
            return
        here = self.ports.tiers[self.tier].ports
        tier = min(max(self.tier + tiers, 0), len(self.ports.tiers) - 1)
        there = self.ports.tiers[tier].ports
        here_at = self.position
        at = here_at * len(there) // len(here) if tier != self.tier else here_at + steps
        self.index = there[min(max(at, 0), len(there) - 1)]

    def next_measure(self) -> None:
        """Shows the next measure; without times there is no `now`."""
        measures = MEASURES if self.ports.has_times else MEASURES[:2]
        self.measure = measures[(measures.index(self.measure) + 1) % len(measures)]

    def go_to_change(self, direction: int) -> bool:
        """Goes to the time of the next change of the flows on the port, or of the one before; returns whether
        there is one.
        """
        changes = self.ports.changes(self.index)
        ahead = [time for time in changes if (time - self.time_ns) * direction > 0]
        if not ahead:
            return False
        self.time_ns = min(ahead) if direction > 0 else max(ahead)
        return True

    def shift_time(self, by_ns: int) -> None:
        """Moves the time, within the step."""
        self.time_ns = min(max(self.time_ns + by_ns, 0), max(self.ports.step_ns - 1, 0))

    def values(self) -> list[float]:
        """Returns what each port's cell is of: a share of that of the fullest port."""
        values, most = self._values()
        return [value / most for value in values] if most else values

    @property
    def most(self) -> float:
        """What the fullest port has of the measure."""
        return self._values()[1]

    def _values(self) -> tuple[list[float], float]:
        """Returns the measure of each port, and the largest; most keys move the cursor alone."""
        key = self.measure, self.time_ns if self.measure == NOW else 0
        if self._measured is None or self._measured[0] != key:
            values = self._measure_ports()
            self._measured = key, values, max(values, default=0.0)
        return self._measured[1:]

    def _measure_ports(self) -> list[float]:
        ports = self.ports
        if self.measure == NOW:
            return [
                float(ports.count_at(index, self.time_ns)) if port.sends else 0.0
                for index, port in enumerate(ports.all)
            ]
        if self.measure == FULL:
            return [float(port.held_ns) for port in ports.all]
        return [ports.mean_load(index) for index in range(len(ports.all))]


def measure_words(cursor: PortCursor) -> str:
    """Returns what the cells are of, with the figure of the highest cell."""
    ports, full, most = cursor.ports, "the highest", cursor.most
    if cursor.measure == NOW:
        return f"flows at {duration(cursor.time_ns)}, {full}: {round(most)}"
    if cursor.measure == FULL:
        if ports.sends_noun == "message":
            return f"how long messages wait, {full}: {duration(round(most))}"
        share = most / ports.step_ns if ports.step_ns else 0.0
        return f"full, holding flows back, {full}: {100 * share:.1f} % of the step"
    return f"load over the step, {full}: {100 * most:.1f} %"


def cell_words(cursor: PortCursor, width: int) -> str:
    """Returns how many ports a cell has, "" where it is one."""
    most = max((len(tier.ports) for tier in cursor.ports.tiers), default=0)
    a_cell = -(-most // max(width - _NAME - _COUNT - 1, 1))
    return f", up to {a_cell} a cell" if a_cell > 1 else ""


def hot_words(ports: Ports, width: int = 400) -> str:
    """Returns which port is hot and why, in a sentence, with what its flows are of as far as there is
    room.
    """
    if not ports.by_heat:
        return f"No port carried a {ports.sends_noun}."
    shared_index = ports.hottest_shared
    index = ports.by_heat[0] if shared_index is None else shared_index
    port = ports.all[index]
    if ports.sends_noun == "message":
        return (
            f"{port.name} is busy {100 * ports.share(index):.1f} % of the step; messages wait "
            f"{duration(port.held_ns)} for it in all."
        )
    if shared_index is None:
        alone_text = (
            "No two collectives meet on a port"
            if ports.classes
            else "No port is shared: every flow is alone on its links"
        )
        return f"{alone_text}. Busiest: {port.name}, {100 * ports.share(index):.1f} % of the step."
    purposes = [cells(f"{group} {layer}".strip(), 60) for group, layer, _ in ports.purposes(index)[:2]]
    name = f"{port.name}, that GPU's own," if port.is_own else port.name
    sentence = ""
    for count in range(len(purposes), -1, -1):
        of_text = f" of {' and '.join(purposes[:count])}" if count else ""
        sentence = (
            f"{name} is full {100 * ports.held_share(index):.1f} % of the step: "
            f"up to {port.most} {'collectives' if ports.classes else 'flows'}{of_text} share it."
        )
        if width_of([(sentence, "")]) <= width:
            break
    return sentence


def congestion_words(ports: Ports, width: int) -> str:
    """Returns where congestion control slows flows down, and that `t` tries what it would cost, as far as
    there is room; "" where it does not.
    """
    is_tried = any("congestion" in change.fields for change in ports.changes_of(ports.by_heat[0]))
    key_text = ": t tries it" if is_tried else ""
    text = ports.congestion + key_text
    return text if len(text) <= width else ports.congestion.partition(", first")[0] + key_text


def picture_lines(cursor: PortCursor, width: int, rows: int, glyphs: Glyphs, is_focused: bool) -> list[Line]:
    """Returns a row a tier, of `rows` at most those around the cursor's."""
    tiers, values = cursor.ports.tiers, cursor.values()
    first = min(max(cursor.tier - rows // 2, 0), max(len(tiers) - rows, 0))
    lines = []
    for tier in range(first, min(first + rows, len(tiers))):
        mark = (">" if is_focused else glyphs.vertical) if tier == cursor.tier else " "
        name = f"{mark}{tiers[tier].name:<{_NAME}} {len(tiers[tier].ports):>{_COUNT - 2}} "
        role = "accent" if tier == cursor.tier else ""
        lines.append([(name, role), *_tier_cells(cursor, tier, values, width - len(name), glyphs)])
    return lines


def _tier_cells(cursor: PortCursor, tier: int, values: list[float], room: int, glyphs: Glyphs) -> Line:
    """Returns the cells of a tier: a cell a port, with a blank between servers or switches where there is
    room; where not all fit, several ports a cell, which has the most of them.
    """
    members = cursor.ports.tiers[tier].ports
    blocks = [cursor.ports.all[index].block for index in members]
    seams = sum(one != other for one, other in pairwise(blocks))
    a_cell = -(-len(members) // max(room, 1))
    has_gaps = a_cell == 1 and len(members) + seams <= room
    line: Line = []
    for at in range(0, len(members), a_cell):
        part = members[at : at + a_cell]
        if has_gaps and at and blocks[at] != blocks[at - 1]:
            line.append((" ", ""))
        value = max(values[index] for index in part)
        glyph, role = _heat_cell(value, glyphs)
        is_here = cursor.index in part
        text = glyph if value or is_here else ("." if glyphs.heat.isascii() else "·")
        line.append((text, f"{role} reversed" if is_here else role))
    return line


def _heat_cell(share: float, glyphs: Glyphs) -> tuple[str, str]:
    """Returns the glyph of a share and its role."""
    glyph = heat_glyph(share, glyphs)
    level = glyphs.heat.index(glyph)
    return glyph, f"heat {level}" if level else "dim"


def time_line(cursor: PortCursor, width: int, glyphs: Glyphs) -> list[Line]:
    """Returns the load of the port over the step with the cursor's time; [] without times."""
    ports = cursor.ports
    if not ports.has_times:
        return []
    head = f" {ports.all[cursor.index].name:<{_NAME + _COUNT - 1}} "
    columns = max(width - len(head), 1)
    parts = ports.between(ports.load(cursor.index), 0, ports.step_ns, columns)
    at = time_column(cursor, columns)
    line: Line = [(head, "accent")]
    for column, part in enumerate(parts):
        glyph, role = _heat_cell(part, glyphs)
        line.append((glyph, f"{role} reversed" if column == at else role))
    # The mark is for terminals and readers that see no reversed cells.
    marks = (" " * len(head) + " " * at + ("^" if glyphs.heat.isascii() else "▴")).ljust(width)
    time = f"{duration(cursor.time_ns)} of {duration(ports.step_ns)}"
    count = plural(ports.count_at(cursor.index, cursor.time_ns), "flow")
    words = f"{time}: {count}"
    start = len(head) + at + 2
    start = start if start + len(words) <= width else max(len(head) + at - len(words) - 1, 0)
    text = marks[:start] + words + marks[start + len(words) :]
    return [fitted(line, width), [(text[:width], "dim")]]


def time_column(cursor: PortCursor, columns: int) -> int:
    """Returns the column of the cursor's time."""
    return min(cursor.time_ns * columns // max(cursor.ports.step_ns, 1), columns - 1)


def port_lines(cursor: PortCursor, width: int) -> list[Line]:
    """Returns what the port at the cursor carried, and for which groups and layers."""
    ports = cursor.ports
    port = ports.all[cursor.index]
    if not port.sends:
        idle_text = (
            "as the port of an equal rank, which is listed" if ports.classes else "nothing was sent over it"
        )
        return [[(f" {port.name}: {idle_text}", "")]]
    line: Line = [
        (f" {port.name}: {byte_size(port.bytes)} in {plural(port.sends, ports.sends_noun)}", "bright")
    ]
    purposes = ports.purposes(cursor.index)
    for group, layer, size in purposes:
        line += [(f"   {purpose_text(group, layer, 30)} ", group), (byte_size(size), "")]
        if width_of(line) > width:
            break
    if port.is_marked:
        line.insert(1, (", its queue is marked", "warn"))
    return [shortened(line, width)]


def send_text(send: Send) -> str:
    """Returns a flow on one line: from where to where, bytes, when, for what."""
    purpose = purpose_text(send.purpose.group, send.purpose.layer, 36) if send.purpose else ""
    ends = f"{send.source} > {send.target}"
    times = f"{duration(send.start_ns)} .. {duration(send.end_ns)}"
    return f"{ends:<19} {byte_size(send.bytes):>8}  {times:<24} {purpose}"


def send_lines(cursor: PortCursor, rows: int, width: int, glyphs: Glyphs) -> list[Line]:
    """Returns the flows on the port at the cursor's time, under a heading, in at most `rows` rows."""
    sends = cursor.ports.sends_at(cursor.index, cursor.time_ns)
    if rows < 3 or not cursor.ports.has_times:
        return []
    title = sends_title(cursor, len(sends))
    lines: list[Line] = [rule(title, width, glyphs)]
    lines += [[(f"  {cells(send_text(send), 200)}", "")] for send in sends[: rows - 1]]
    if len(sends) > rows - 1:
        lines[-1] = [(f"  and {len(sends) - rows + 2} more: Enter", "dim")]
    return lines


def sends_title(cursor: PortCursor, count: int) -> str:
    """Returns how many flows are on which port when."""
    name = cursor.ports.all[cursor.index].name
    return f"{plural(count, 'flow')} on {name} at {duration(cursor.time_ns)}"
