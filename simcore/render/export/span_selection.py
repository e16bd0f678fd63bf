"""Which spans a format writes of a run: of one that has a recording those of its operations."""

from __future__ import annotations

from simcore.render.export.format import Request
from simcore.render.export.spans import ExportedSpans


def select_spans(request: Request, folded: bool) -> ExportedSpans:
    """The spans of the ranks that are asked for. folded: without a choice, of equal ranks one, else all.

    Raises `UsageError` for what is not there, and what making the run raises.
    """
    run = request.results
    # Imported here: a recording needs nothing of programs, and what was simulated nothing of recordings.
    if run.recording is not None:
        from simcore.render.export.recorded_spans import select_recorded_spans

        return select_recorded_spans(request, run.recording)
    from simcore.render.export.simulated_spans import select_simulated_spans

    assert run.shape.simulated is not None
    return select_simulated_spans(request, run.shape.simulated, folded)
