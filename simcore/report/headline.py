"""What a run is, in the few facts of a screen's first row: the most important first."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from simcore.diagnostics import printable
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.analysis import Results
    from simcore.analysis.run import Run
    from simcore.executing import TraceResults
    from simcore.replay import MeasuredResults

# Cells for the changes of a replay: in a wide row, in a narrow one.
_CHANGES, _SHORT = 34, 11


def headline(run: Run, wide: bool) -> list[str]:
    """Ranks, schedule and network of a simulated run; of a trace ranks, and what its replay changes."""
    if run.origin == "simulated":
        return _simulated(cast("Results", run), wide)
    if run.origin == "executed":
        return _executed(cast("TraceResults", run), wide)
    return _measured(cast("MeasuredResults", run), wide)


def _simulated(run: Results, wide: bool) -> list[str]:
    from simcore.report.words import layout_words, schedule_words

    simulation = run.simulation
    program, layout = simulation.program, simulation.layout
    if not wide:
        count = f" x{program.microbatches}" if program.has_pipeline_schedule else ""
        return [plural(layout.world, "rank"), f"{program.schedule}{count}"]
    ranks = layout_words(layout).replace(" = ", f" {'rank' if layout.world == 1 else 'ranks'} = ", 1)
    return [ranks, schedule_words(program), printable(simulation.parameters.network, 40)]


def _executed(results: TraceResults, wide: bool) -> list[str]:
    """How the traces were run is said wherever they are shown."""
    ranks = plural(len(results.ranks), "rank")
    rules = "astra-sim-2" if results.is_astra else "wltui's rules"
    if not wide:
        return [ranks, rules]
    return [f"{ranks}, {plural(results.held_ops, 'node')}", rules, results.parameters.network]


def _measured(results: MeasuredResults, wide: bool) -> list[str]:
    from simcore.report.measured_words import ranks_words, replay_words

    run, scales = results.run, results.scales
    what = "schedule plan" if not run.timed else "replayed" if run.replayed else "measured"
    if not wide:
        changes = [] if scales is None else scales.changes()
        if changes:
            what = changes[0] if len(changes) == 1 else plural(len(changes), "change")
            what = what if len(what) <= _SHORT else "1 change"
        return [plural(len(run.ranks), run.unit), what]
    words = replay_words(scales, _CHANGES)
    batches = [plural(run.microbatches, "micro-batch")] if run.microbatches else []
    # Where changes are named, what is behind them is a fact of its own: it may have no room.
    facts = [f"{what}: {words}", *batches] if words else [", ".join([what, *batches])]
    return [ranks_words(run), *facts, *([] if run.concurrent else ["not concurrent"])]
