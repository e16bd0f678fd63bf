"""How busy each stream is, and each dimension of the network with what crosses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.report.section import Field, PageAsked, field_lines, field_values, keys, more_line
from simcore.run.figures import StreamUse
from simcore.run.track import ranks_of
from simcore.units import byte_size, column_unit, in_unit, percent

if TYPE_CHECKING:
    from simcore.analysis.dimensions import DimensionUse
    from simcore.analysis.run import Run

# Execution traces have a stream for each group.
_STREAMS = 16
# Of a stream in a rank.
OF_A_RANK: list[Field[StreamUse]] = keys("busy_ns", "overlapped_ns", "exposed_ns")
# A stream as the mean of all ranks, and the busy ns of the rank that is busy longest on it.
_Mean = tuple[StreamUse, int]


def _streams(run: Run) -> list[Field[_Mean]]:
    step = run.step_time_ns
    unit_ns, unit = column_unit(max((most for _, most in run.figures.mean_streams), default=0))

    def figure(ns: int) -> str:
        return in_unit(ns, unit_ns, run.figures.resolution_ns)

    def beside(use: StreamUse, ns: int | None) -> str:
        return "" if use.kind == "compute" else "-" if ns is None else figure(ns)

    return [
        Field("stream", lambda pair: pair[0].stream, "stream", lambda pair: pair[0].stream, left=True),
        Field(f"busy {unit}", lambda pair: figure(pair[0].busy_ns), "busy_ns", lambda pair: pair[0].busy_ns),
        Field(
            "% of step", lambda pair: percent(pair[0].busy_ns, step),
            "share", lambda pair: pair[0].busy_ns / step if step else 0.0,
        ),
        Field("most %", lambda pair: percent(pair[1], step)),
        Field(
            "beside compute", lambda pair: beside(pair[0], pair[0].overlapped_ns),
            "overlapped_ns", lambda pair: pair[0].overlapped_ns,
        ),
        Field(
            "exposed", lambda pair: beside(pair[0], pair[0].exposed_ns),
            "exposed_ns", lambda pair: pair[0].exposed_ns,
        ),
        Field(key="most_busy_ns", value=lambda pair: pair[1]),
    ]  # fmt: skip


def _dimensions(run: Run) -> list[Field[DimensionUse]]:
    step = run.step_time_ns
    unit_ns, unit = column_unit(max((use.busy_ns for use in run.dimensions), default=0))

    def name(use: DimensionUse) -> str:
        return f"{use.index} {run.dims[use.index].kind} {run.dims[use.index].size}"

    def most(use: DimensionUse) -> str:
        kind = max(use.by_kind, key=lambda kind: use.by_kind[kind].bytes, default=None)
        return "" if kind is None else f"{percent(use.by_kind[kind].bytes, use.bytes)} % {kind}"

    return [
        Field("dimension", name, left=True),
        Field("bytes", lambda use: byte_size(use.bytes), "bytes"),
        Field("mean", lambda use: byte_size(use.mean_bytes), "mean_bytes"),
        Field(f"busy {unit}", lambda use: in_unit(use.busy_ns, unit_ns), "busy_ns"),
        Field(key="mean_busy_ns"),
        Field(
            "% of step", lambda use: percent(use.busy_ns, step),
            "share", lambda use: use.busy_ns / step if step else 0.0,
        ),
        Field(key="ranks", value=lambda use: ranks_of(run.tracks, use.rank_class).text()),
        Field(
            "most by", most,
            "by_kind", lambda use: {kind: load._asdict() for kind, load in use.by_kind.items()}, left=True,
        ),
    ]  # fmt: skip


def lines(run: Run, asked: PageAsked) -> list[str]:
    """A line a stream, where something communicates; a line a dimension, where something is sent over it, and
    the port that is busy longest.
    """
    streams, dimensions, page = run.figures.mean_streams, run.dimensions, []
    if len(streams) > 1:
        shown = streams if asked.every_layer else streams[:_STREAMS]
        page += ["How busy each stream is, the mean of all ranks", *field_lines(_streams(run), shown)]
        page += more_line(len(streams) - len(shown), "more streams", "--all-layers has all")
    if any(use.bytes for use in dimensions):
        title = "What a rank sends over each dimension, and how long its port is busy: "
        title += "the rank that sends most"
        page += [*([""] if page else []), title, *field_lines(_dimensions(run), dimensions)]
        # The rank that sends most need not be the one whose port is slowed.
        worst = run.figures.worst_link
        page += [] if worst is None else [f"  worst link  {worst.words}"]
    return page


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`streams`, `dimensions`, `worst_link`: the port that is busy longest, the factor on its bandwidth."""
    port, worst = run.busiest_port, None
    if port is not None:
        ranks = ranks_of(run.tracks, port.rank_class).text()
        worst = {"dimension": port.index, "ranks": ranks, "busy_ns": port.busy_ns, "factor": port.factor}
    return {
        "streams": field_values(_streams(run), run.figures.mean_streams),
        "dimensions": field_values(_dimensions(run), run.dimensions),
        "worst_link": worst,
    }
