"""A calibration as lines of the compare screen: the words and figures are those of `wltui calibrate`."""

from __future__ import annotations

import textwrap

from simcore.calibration import Calibration
from simcore.report.calibration import (
    fitted_lines,
    fitted_title,
    kind_lines,
    kinds_title,
    rank_lines,
    rest_lines,
    saved_lines,
    step_lines,
    warnings,
)
from tui.frame import Glyphs, Line, cells, rule

# Lines are indented by a cell, and end a cell before the edge.
_MARGIN = 2
# Of a command with the path of a workload.
_MOST = 5000


def calibration_lines(calibration: Calibration, saved: str | None, width: int, glyphs: Glyphs) -> list[Line]:
    """All lines, however many. saved: where its parameters are, None for nowhere."""
    room = max(width - _MARGIN, 20)

    def part(title: str, lines: list[str], role: str = "") -> list[Line]:
        return [rule(title, width, glyphs), *_lines(lines, role)]

    head, *kinds = kind_lines(calibration, room)
    doubts = [piece for words in warnings(calibration) for piece in _wrapped(words, room)]
    ranks, rest = rank_lines(calibration, room), rest_lines(calibration, room)
    steps = [piece for line in step_lines(calibration) for piece in _wrapped(line, room)]
    file = [piece for line in saved_lines(calibration, saved, "S") for piece in _wrapped(line, room)]
    found = [
        *_lines(steps, "bright"),
        *part(fitted_title(calibration), fitted_lines(calibration, room)),
        *part(kinds_title(calibration), [head], "dim"),
        *_lines(kinds, ""),
    ]
    if ranks or rest or doubts:
        found += [*part("Left out of the fit", ranks, "warn"), *_lines(doubts, "warn"), *_lines(rest, "")]
    return [*found, *(part("Parameters", file) if calibration.is_fitted else [])]


def _lines(lines: list[str], role: str) -> list[Line]:
    return [[(f" {cells(line, _MOST)}", role)] for line in lines]


def _wrapped(text: str, width: int) -> list[str]:
    """A line in as many as it takes, what follows further in; a share stays with its sign."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    held = text.replace(" %", "\u00a0%")
    lines = textwrap.wrap(held, width, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]
