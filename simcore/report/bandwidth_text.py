"""Bandwidths of the collectives of a profiler trace as a table of the report."""

from __future__ import annotations

from simcore.diagnostics import printable
from simcore.replay import MeasuredResults
from simcore.replay.bandwidths import bandwidths
from simcore.report.table import Column, table
from simcore.units import byte_size, duration

_MOST_ROWS = 20


def bandwidth_lines(results: MeasuredResults, every: bool = False) -> list[str]:
    """Collectives by operation, group and size with algbw and busbw; nothing where no bytes are known."""
    found = bandwidths(results)
    if not found:
        return []
    columns = [Column("collective", left=True), Column("group", left=True), Column("ranks"), Column("bytes")]
    columns += [
        Column("count"),
        Column("median"),
        Column("algbw"),
        Column("busbw"),
        Column("best"),
        Column("worst"),
    ]
    rows = [
        [
            printable(one.operation, 24) + ("*" if one.waits_included else ""),
            "-" if one.group is None else printable(one.group, 24),
            str(one.ranks), byte_size(one.bytes), str(one.times), duration(one.middle_ns),
            _rate(one.algbw(one.middle_ns)), _rate(one.busbw(one.middle_ns)), _rate(one.busbw(one.least_ns)),
            _rate(one.busbw(one.most_ns)),
        ]
        for one in (found if every else found[:_MOST_ROWS])
    ]  # fmt: skip
    lines = ["Bandwidths of collectives, GB/s, as nccl-tests have them; best, worst: busbw"]
    lines += table(columns, rows)
    left = len(found) - len(rows)
    if left > 0:
        lines.append(f"  and {left} more (--all-layers has all)")
    if any(one.waits_included for one in found):
        lines.append("  *: members are missing, so the time holds the waiting for them")
    return lines


def _rate(gbps: float) -> str:
    return f"{gbps:.2f}" if gbps < 100 else f"{gbps:.0f}"
