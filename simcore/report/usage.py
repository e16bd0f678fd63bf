"""How busy streams and dimensions are, as tables of text."""

from __future__ import annotations

from simcore.analysis import Results
from simcore.analysis.worst import worst_link
from simcore.report.table import Column, table
from simcore.units import byte_size, column_unit, in_unit, percent


def usage_parts(results: Results) -> list[str]:
    """The tables of streams and of dimensions; the first where something communicates."""
    return [part for part in (_streams(results), _dimensions(results)) if part]


def _streams(results: Results) -> str:
    found = results.mean_streams
    if len(found) == 1:
        return ""
    step = results.step_time_ns
    unit_ns, unit = column_unit(max(most for _, most in found))

    columns = [Column("stream", left=True), Column(f"busy {unit}"), Column("% of step"), Column("most %")]
    columns += [Column("beside compute"), Column("exposed")]
    rows = []
    for use, most in found:
        row = [use.stream, in_unit(use.busy_ns, unit_ns), percent(use.busy_ns, step), percent(most, step)]
        beside = [in_unit(ns, unit_ns) for ns in (use.overlapped_ns, use.exposed_ns)]
        rows.append([*row, *(("", "") if use.stream == "compute" else beside)])
    return "\n".join(["How busy each stream is, the mean of all ranks", *table(columns, rows), ""])


def _dimensions(results: Results) -> str:
    found = results.dimensions
    if not any(use.bytes for use in found):
        return ""
    simulation = results.simulation
    step = results.step_time_ns
    unit_ns, unit = column_unit(max(use.busy_ns for use in found))
    columns = [Column("dimension", left=True), Column("bytes"), Column("mean"), Column(f"busy {unit}")]
    columns += [Column("% of step"), Column("most by", left=True)]
    rows = []
    for use in found:
        busy = f"{use.busy_ns / unit_ns:.3f}" if unit_ns > 1 else str(use.busy_ns)
        most = max(use.by_kind, key=lambda kind: use.by_kind[kind].bytes, default=None)
        share = "" if most is None else f"{percent(use.by_kind[most].bytes, use.bytes)} % {most}"
        dimension = simulation.cluster.dims[use.index]
        name = f"{use.index} {dimension.kind} {dimension.size}"
        row = [name, byte_size(use.bytes), byte_size(use.mean_bytes), busy, percent(use.busy_ns, step), share]
        rows.append(row)
    title = "What a rank sends over each dimension, and how long its port is busy: the rank that sends most"
    # The rank that sends most need not be the one whose port is slowed.
    place = worst_link(results)
    worst = [] if place is None else [f"  worst link  {place.words}"]
    return "\n".join([title, *table(columns, rows), *worst, ""])
