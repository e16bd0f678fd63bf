"""The ports of a network on the page: tiers as rows, ports as cells; and the hottest ports over time."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from simcore.render.page.blocks import element, escaped
from simcore.units import byte_size, duration, plural

if TYPE_CHECKING:
    from simcore.trace.ports import Ports
    from simcore.trace.run import Run

# Cells of a tier, of more ports several a cell; ports over time; their columns; units of the picture.
_MOST_CELLS, _MOST_ROWS, _COLUMNS = 256, 40, 120
_ROW, _NAME, _WIDTH = 16, 150, 1100


def ports_section(run: Run) -> str:
    """Returns the section of a run on a network with links; "" for any other."""
    ports = run.network.ports
    if ports is None or not ports.by_heat:
        return ""
    title = f"Links: {ports.words}"
    highest = max(ports.mean_load(index) for index in ports.by_heat)
    parts = [
        element("h2", title),
        element("p", f"Load of each port over the step; the darkest: {100 * highest:.1f} %", "sub"),
        _picture(ports, highest),
    ]
    if ports.has_times:
        shown_count = min(len(ports.by_heat), _MOST_ROWS)
        words = f"The {plural(shown_count, 'hottest port')} over {duration(ports.step_ns)}; the darkest: full"
        parts += [element("p", words, "sub"), _heat(ports, shown_count)]
    return f'<section id="links" class="links">{"".join(parts)}</section>'


def _picture(ports: Ports, highest: float) -> str:
    """Returns tiers as rows and ports as cells."""
    rows = []
    for tier, (name, members) in enumerate(ports.tiers):
        a_cell = -(-len(members) // _MOST_CELLS)
        groups = [members[at : at + a_cell] for at in range(0, len(members), a_cell)]
        width = min((_WIDTH - _NAME) / max(len(groups), 1), 24.0)
        top = tier * _ROW
        rows.append(_text(f"{name}, {len(members)}", 0, top))
        for column, group in enumerate(groups):
            hottest = max(group, key=ports.mean_load)
            share = ports.mean_load(hottest) / highest if highest else 0.0
            rows.append(_cell(_NAME + column * width, top, width, share, _port_text(ports, hottest)))
    return _svg(rows, len(ports.tiers) * _ROW, "Load of each port, tier by tier")


def _heat(ports: Ports, count: int) -> str:
    """Returns a row for each of the hottest ports, a cell for each stretch of the step."""
    rows = []
    width = (_WIDTH - _NAME) / _COLUMNS
    for row, index in enumerate(ports.by_heat[:count]):
        top = row * _ROW
        rows.append(_text(ports.all[index].name, 0, top))
        rows.append(_cell(_NAME, top, width * _COLUMNS, 0.0, _port_text(ports, index)))
        begin = 0
        parts = [
            round(min(part, 1.0), 1) for part in ports.between(ports.load(index), 0, ports.step_ns, _COLUMNS)
        ]
        for share, stretch in groupby(parts):
            length = sum(1 for _ in stretch)
            if share:
                rows.append(_cell(_NAME + begin * width, top, length * width, share, ""))
            begin += length
    return _svg(rows, count * _ROW, "Load of the hottest ports over the step")


def _port_text(ports: Ports, index: int) -> str:
    port = ports.all[index]
    if not port.sends:
        return f"{port.name}: nothing"
    purposes = ", ".join(
        f"{group} {layer} {byte_size(size)}" for group, layer, size in ports.purposes(index)[:4]
    )
    times = f"full {100 * ports.held_share(index):.1f} %, up to {port.most} at once"
    if ports.sends_noun == "message":
        times = f"queued {duration(port.held_ns)}"
    text = (
        f"{port.name}: {byte_size(port.bytes)} in {plural(port.sends, ports.sends_noun)}, load "
        f"{100 * ports.mean_load(index):.1f} %, {times}"
    )
    return f"{text}; {purposes}" if purposes else text


def _cell(left: float, top: int, width: float, share: float, title: str) -> str:
    shape = f'x="{left:.1f}" y="{top}" width="{max(width - 0.5, 0.5):.1f}" height="{_ROW - 2}"'
    words = f"<title>{escaped(title)}</title>" if title else ""
    return f'<rect class="port" {shape}/>{_shade(shape, share, words)}' if title else _shade(shape, share, "")


def _shade(shape: str, share: float, words: str) -> str:
    return f'<rect class="load" fill-opacity="{share:.2f}" {shape}>{words}</rect>'


def _text(text: str, left: int, top: int) -> str:
    return f'<text class="tick" x="{left}" y="{top + _ROW - 5}">{escaped(text)}</text>'


def _svg(rows: list[str], height: int, label: str) -> str:
    return (
        f'<svg class="plot ports" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escaped(label)}">'
        f"{''.join(rows)}</svg>"
    )
