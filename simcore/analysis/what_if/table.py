"""All knobs of a run with the step times they give, those that gain most first."""

from __future__ import annotations

from collections.abc import Callable

from simcore.analysis.critical_path import CriticalPath
from simcore.analysis.rerun import Chosen, Rerun
from simcore.analysis.what_if.knobs import BETTER, Cheaper, Other, knobs
from simcore.diagnostics import Cancelled, UsageError
from simcore.run.findings import WhatIf
from simcore.run.simulated import SimulatedGraph
from simcore.simulation import Simulation, simulate


def what_if(
    simulation: Simulation,
    built: SimulatedGraph,
    path: CriticalPath,
    progress: Callable[[int, int], None] = lambda done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[WhatIf]:
    """Every knob of a run, the greatest gain first: step time less `better10_ns`, then less `free_ns`.

    simulation: with equal ranks folded; built: its graph. So a schedule stands with all that it gains
    between others with a tenth of what they take; equal gains are in the order of the families.
    progress(done, total): called before each knob and when all are done. Raises `Cancelled` when
    `cancelled()` becomes true.
    """
    step = simulation.step_time_ns
    on_path = path.stage_ops()
    rerun = Rerun(simulation, built, cancelled)
    all_knobs = knobs(rerun)
    found: dict[int, WhatIf] = {}
    # What a pass of the graph answers comes before what is simulated.
    in_turn = sorted(range(len(all_knobs)), key=lambda place: isinstance(all_knobs[place], Other))
    for done, place in enumerate(in_turn):
        progress(done, len(all_knobs))
        if cancelled():
            raise Cancelled
        knob = all_knobs[place]
        if isinstance(knob, Other):
            one = _other(simulation, knob, cancelled)
        else:
            one = _cheaper(rerun, knob, on_path, step)
        if one is not None:
            found[place] = one
    progress(len(all_knobs), len(all_knobs))
    in_order = [found[place] for place in sorted(found)]
    return sorted(in_order, key=lambda one: (one.better10_ns, step if one.free_ns is None else one.free_ns))


def _cheaper(rerun: Rerun, knob: Cheaper, on_path: set[tuple[int, int]], step: int) -> WhatIf:
    if rerun.is_fixed and knob.chosen is not None and not _is_on(on_path, rerun, knob.chosen):
        # The path takes what it took, and nothing takes longer.
        return WhatIf(knob.name, step, step)
    free, better = knob.step_ns(0.0), knob.step_ns(BETTER)
    return WhatIf(knob.name, free, better, anomaly=max(free, better) > step)


def _is_on(on_path: set[tuple[int, int]], rerun: Rerun, chosen: Chosen) -> bool:
    """Whether any of the chosen ops is on the critical path."""
    masks = [chosen(stage) for stage in rerun.program.stages]
    return any(masks[stage][op] for stage, op in on_path)


def _other(simulation: Simulation, knob: Other, cancelled: Callable[[], bool]) -> WhatIf | None:
    try:
        step = simulate(simulation.workload, knob.parameters, cancelled).step_time_ns
    except UsageError:
        # It has more ops than are simulated, or what else it needs is not there: it does not fit.
        return None
    return WhatIf(knob.name, None, step, parameters=knob.parameters)
