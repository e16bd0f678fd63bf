"""How busy streams and dimensions are, as tables of text."""

from __future__ import annotations

from simcore.analysis import Results
from simcore.analysis.worst import worst_link
from simcore.program.ops import RANK_STREAMS
from simcore.report.table import Column, table
from simcore.units import byte_size, column_unit, in_unit, percent


def usage_parts(results: Results) -> list[str]:
    """The tables of streams and of dimensions; the first where something communicates."""
    return [part for part in (_streams(results), _dimensions(results)) if part]


def mean_streams(results: Results) -> dict[str, tuple[int, int, int, int]]:
    """By stream: (busy, overlapped, exposed) as the mean of all ranks, and the most busy rank's, ns."""
    classes = results.simulation.timeline.classes
    world = sum(len(one.ranks) for one in classes)
    sums: dict[str, list[int]] = {}
    for one, streams in zip(classes, results.streams, strict=True):
        for use in streams:
            of_stream = sums.setdefault(use.stream, [0, 0, 0, 0])
            for index, ns in enumerate((use.busy_ns, use.overlapped_ns, use.exposed_ns)):
                of_stream[index] += ns * len(one.ranks)
            of_stream[3] = max(of_stream[3], use.busy_ns)
    return {
        name: (
            round(sums[name][0] / world),
            round(sums[name][1] / world),
            round(sums[name][2] / world),
            sums[name][3],
        )
        for name in RANK_STREAMS
        if name in sums
    }


def _streams(results: Results) -> str:
    found = mean_streams(results)
    if len(found) == 1:
        return ""
    step = results.step_time_ns
    unit_ns, unit = column_unit(max(most for *_, most in found.values()))

    columns = [Column("stream", left=True), Column(f"busy {unit}"), Column("% of step"), Column("most %")]
    columns += [Column("beside compute"), Column("exposed")]
    rows = []
    for name, (busy, overlapped, exposed, most) in found.items():
        row = [name, in_unit(busy, unit_ns), percent(busy, step), percent(most, step)]
        beside = [in_unit(ns, unit_ns) for ns in (overlapped, exposed)]
        rows.append([*row, *(("", "") if name == "compute" else beside)])
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
