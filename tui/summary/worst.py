"""The findings of a run that are worth a look, a line each: the panel `Worst on a rank`."""

from __future__ import annotations

import re

from tui.frame import Line, cells, rows_around
from tui.panels import NO_TIME
from tui.summary.model import WORST, SummaryModel

# Findings that are dropped first where there is no room for all: to end last is not a cause, and a busy port
# delays nobody by itself.
_LEAST_URGENT = ("end", "idle", "link")


def worst_lines(model: SummaryModel, width: int, rows: int, focused: bool) -> list[Line]:
    """Returns the findings worth a look, those around the cursor; without a cursor those that have a cause
    first.
    """
    row, _ = model.cursor(WORST)
    lines: list[Line] = []
    findings = model.results.figures.worst_findings
    visible = list(rows_around(row, len(findings), rows))
    if not focused and rows < len(findings):
        visible = sorted(
            sorted(range(len(findings)), key=lambda at: findings[at].what in _LEAST_URGENT)[:rows]
        )
    for index in visible:
        finding, at = findings[index], focused and index == row
        words = _finding_text(finding.words, max(width - 10, 10))
        mark = ">" if at else " "
        lines.append(
            [(f"{mark}{finding.what:<8}", "accent" if at else "dim"), (words, "accent" if at else "")]
        )
    return lines or [[(f" {NO_TIME}", "dim")]]


# What is dropped first where a finding has no room for all of its words.
_SHORTENINGS = (
    # The groups that cross a dimension, before its bandwidth.
    (r"( on dim \d+ \()[^;)]*; ", r"\1"),
    # The words have the sum of all stretches, which a single start would seem to contradict.
    (r"^(.* at a stretch.*), from (the start|\S+ \S+)$", r"\1"),
    (r"( at a stretch) from \S+ \S+ on", r"\1"), (r" \([0-9.]+ %\)( at a stretch)", r"\1"),
    (r"^(.*) at a stretch", r"longest \1"), (r" (with|of) communication", ""), (r"\bequal (stages )", r"\1"),
    (r", last to end", ""), (r" \(\S+ Gi?B/s\)", ""), (r" from \S+ \S+ on", ""),
    (r", (most|almost all|all) with \w+((, \w+)* and \w+)?", ""),
    (r"^(longest .*), from (the start|\S+ \S+)$", r"\1"), (r"(: [^ ,]+), [^:]*$", r"\1"),
    (r" \([0-9.]+ %\)", ""), (r"(: \w+ \d+) in ", r"\1, "),
    (r" \(\w+\)$", ""), (r"^longest ", "max "),
)  # fmt: skip


def _finding_text(words: str, room: int) -> str:
    """Returns what fits of a finding: who it is comes before its share, and this before how it is
    distributed.
    """
    for pattern, replacement in _SHORTENINGS:
        if len(words) <= room:
            break
        words = re.sub(pattern, replacement, words, count=1)
    return cells(words, room)
