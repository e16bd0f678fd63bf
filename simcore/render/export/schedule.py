"""The order of a step as PyTorch's pipelining writes schedules: a line for each rank, a cell for each action.

`torch.distributed.pipelining` reads it with `_load_csv`, and wltui with --schedule FILE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.program import build_program
from simcore.program.order_text import format_order
from simcore.render.export.format import Export, Request
from simcore.setup import Setup
from simcore.simulation import simulate_setup
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.workload import Workload


def export(request: Request) -> Export:
    """Returns the order of the run's schedule. Raises `UsageError` for a run whose rows are one loop."""
    # `ExportFormat.takes` has checked the kind.
    workload, parameters = cast("Workload", request.opened), request.parameters
    if request.per_rank or request.ranks is not None or request.every_rank:
        raise UsageError("--format schedule has a line a stage: --ranks and --per-rank have no meaning")
    program = None
    setup = Setup(workload, parameters)
    if not setup.rules.queued:
        order = simulate_setup(setup).program.order if setup.is_searched else None
        program, program_found = build_program(setup.workload, setup.layout, setup.schedule, order=order)
    if program is None or not program.has_pipeline_schedule:
        raise UsageError("--format schedule: the rows of this run are one loop; --schedule 1f1b would fit")
    notes = [*setup.placement.diagnostics, *program_found]
    if program.placement.copies > 1:
        message = (
            f"{printable(program.schedule, 60)} has each stage on {program.placement.copies} ranks, "
            "which PyTorch does not take: wltui reads it"
        )
        notes.append(Diagnostic("warning", "not-in-file", message, workload.path))
    order = program.order
    what = f"{plural(len(order.stages), 'rank')}, {plural(sum(map(len, order.stages)), 'action')}"
    return Export([format_order(order).encode()], what, tuple(notes))
