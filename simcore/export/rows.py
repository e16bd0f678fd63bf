"""Rows for spans that overlap: in a thread of a trace they lie beside or inside each other, never across."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush


def disjoint_rows(spans: Iterable[tuple[int, int]]) -> list[int]:
    """The lowest free row for each of the spans (start, end), so that no row has two at a time.

    spans: ascending by start.
    """
    rows: list[int] = []
    free: list[int] = []
    taken: list[tuple[int, int]] = []
    for start, end in spans:
        while taken and taken[0][0] <= start:
            heappush(free, heappop(taken)[1])
        row = heappop(free) if free else len(taken)
        heappush(taken, (end, row))
        rows.append(row)
    return rows


def nested_rows(spans: Iterable[tuple[int, int]]) -> list[int]:
    """The first row for each of the spans (start, end) in which it lies beside or wholly inside others.

    spans: ascending by start, of equal starts the longest first.
    """
    rows: list[int] = []
    # Per row the ends of the spans that are open, the innermost last.
    opened: list[list[int]] = []
    for start, end in spans:
        row = 0
        for ends in opened:
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                break
            row += 1
        else:
            opened.append([])
        opened[row].append(end)
        rows.append(row)
    return rows
