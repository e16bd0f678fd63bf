"""Panels: frames with a title around lines, side by side and one below the other."""

from __future__ import annotations

from tui.frame import Glyphs, Line, end_cut, fitted, shortened


def box(
    title: str, aside: str, lines: list[Line], width: int, height: int, glyphs: Glyphs, focused: bool = False
) -> list[Line]:
    """`lines` in a frame of `width` x `height` cells, its title on the left and `aside` on the right.

    The frame of the panel that has the focus has the accent, and its title a mark in front. A title that is
    too long is cut with dots: the frame keeps its corners.
    """
    role = "accent" if focused else "dim"
    left_top, right_top, left_bottom, right_bottom = list(glyphs.corners)
    line = glyphs.horizontal
    mark = "> " if focused else ""
    title = f"{line} {mark}{end_cut(title, width - 5 - len(mark))} "[: max(width - 2, 0)]
    aside = f" {aside} {line}" if aside and len(title) + len(aside) + 5 <= width else ""
    middle = line * max(width - 2 - len(title) - len(aside), 0)
    top: Line = [
        (left_top, role),
        (title, role if focused else ""),
        (middle, role),
        (aside, "dim"),
        (right_top, role),
    ]
    found = [fitted(top, width)]
    for row in range(height - 2):
        inner = lines[row] if row < len(lines) else []
        found.append([(glyphs.vertical, role), *shortened(inner, width - 2), (glyphs.vertical, role)])
    found.append([(left_bottom + line * (width - 2) + right_bottom, role)])
    return found


def beside(*panels: list[Line]) -> list[Line]:
    """Panels of equal height next to each other."""
    return [[piece for part in parts for piece in part] for parts in zip(*panels, strict=True)]
