"""The selection of the spans that a format writes: those of operations for a run that has a recording."""

from __future__ import annotations

from simcore.render.export.format import Request
from simcore.render.export.spans import ExportedSpans


def select_spans(request: Request, folded: bool) -> ExportedSpans:
    """Returns the spans of the requested ranks. folded: by default one of equal ranks, else all.

    Raises `UsageError` for ranks that do not exist, and what making the run raises.
    """
    run = request.results
    # Imported here: recordings need nothing of programs, simulations nothing of recordings.
    if run.recording is not None:
        from simcore.render.export.recorded_spans import select_recorded_spans

        return select_recorded_spans(request, run.recording)
    if run.shape.simulated is not None:
        from simcore.render.export.simulated_spans import select_simulated_spans

        return select_simulated_spans(request, run.shape.simulated, folded)
    from simcore.render.export.hung_spans import select_hung_spans

    return select_hung_spans(request)
