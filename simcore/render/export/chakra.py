"""A run as Chakra execution traces, one file for each rank, with the files that ASTRA-sim 2.x takes with
them.
"""

from __future__ import annotations

from collections.abc import Iterator

from simcore.diagnostics import Diagnostic, UsageError
from simcore.render.export.astra_files import PREFIX, companion_files
from simcore.render.export.format import Export, Progress, RankFile, Request
from simcore.render.export.nodes import TraceSet


def export(request: Request) -> Export:
    """Returns files for a folder: `wl.RANK.et`, `network.yml`, `system.json`, `memory.json`,
    `comm_group.json`.

    Raises `UsageError` for a run that cannot be written, and what making it raises.
    """
    if request.ranks is not None or request.every_rank:
        raise UsageError("--format chakra: a set has all ranks, so --ranks does not fit it")
    trace_set = _build_trace_set(request)
    exact = (
        "durations are whole microseconds in the files; the exact ones are in attributes that wltui reads "
        "and ASTRA-sim does not"
    )
    rounding_note = Diagnostic("note", "whole-microseconds", exact, request.opened.path)
    progress = Progress(trace_set.total)
    diagnostics = (*trace_set.run_diagnostics, rounding_note, *trace_set.export_diagnostics)
    return Export(
        (), f"{trace_set.what} as execution traces", diagnostics, progress, _files(trace_set, progress)
    )


def _build_trace_set(request: Request) -> TraceSet:
    recording, simulated = request.results.recording, request.results.shape.simulated
    # Imported here: recordings need nothing of programs, simulations nothing of recordings.
    if recording is not None:
        from simcore.render.export.recorded_nodes import recorded_set

        return recorded_set(request, recording)
    from simcore.render.export.simulated_nodes import simulated_set

    assert simulated is not None
    return simulated_set(request, simulated)


def _files(trace_set: TraceSet, progress: Progress) -> Iterator[RankFile]:
    for rank, nodes, count in trace_set.files:
        yield RankFile(f"{PREFIX}.{rank}.et", [nodes])
        progress.written_count += count
    yield from companion_files(trace_set.cluster, trace_set.groups)
