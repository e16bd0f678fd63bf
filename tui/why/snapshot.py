"""Screen 4 of memory snapshots: why memory is short: what failed, then what is reserved for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.units import duration
from tui.frame import Glyphs, Line, cells, filled, rule, wrapped

if TYPE_CHECKING:
    from tui.why.frame import WhyModel

_MOST_FRAMES = 12


def draw_failures(model: WhyModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Returns the lines of the screen: the requests that failed with their stacks, or the sentences."""
    tables = model.results.figures.snapshot
    assert tables is not None
    lines: list[Line] = [rule(f"Memory: {tables.headline}", width, glyphs)]
    for text in model.results.figures.words:
        lines += [[(f"  {line}", "")] for line in wrapped(text, max(width - 4, 20))]
    for device in tables.devices:
        for one in device.failures:
            title = f"{device.name} at {duration(one.time_ns)}: {one.size / 1e6:.1f} MB asked for"
            lines.append(rule(title, width, glyphs))
            figures = (
                f"  device free {one.free / 1e6:.1f}, allocated {one.allocated / 1e6:.1f}, reserved "
                f"{one.reserved / 1e6:.1f}, unused {one.unused / 1e6:.1f} MB"
            )
            lines.append([(figures, "warn" if one.unused >= one.size else "")])
            frames = one.frames[:_MOST_FRAMES]
            lines += [[(cells(f"  {name}  {file}:{line}", width), "dim")] for name, file, line in frames]
    # Screens 1 and 3 have what is held; here are only as many failures as there is room for.
    return filled(lines, width, height)
