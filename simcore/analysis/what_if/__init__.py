"""What-if: the step time if one thing were cheaper, or the schedule another one.

`what_if` gives all knobs of a run, those that gain most first; `Results.what_if` keeps them.
"""

from __future__ import annotations

from collections.abc import Callable

from simcore.analysis.dependencies import Dependencies
from simcore.analysis.rerun import Chosen, Rerun
from simcore.analysis.what_if.changes import Tried, changes, fitting, fixed, stepped, with_room
from simcore.analysis.what_if.knobs import BETTER, Cheaper, knobs
from simcore.diagnostics import Cancelled
from simcore.records import Struct, field
from simcore.simulation import Simulation
from simcore.trace.findings import Change, WhatIf

# About as many changes as a run of a pipeline has, for the progress.
_CHANGES = 15


class Found(Struct):
    """What a search has found that may be cancelled: by name of a knob, by flags of a change."""

    knobs: dict[str, WhatIf] = field(default_factory=dict)
    changes: dict[str, Tried | None] = field(default_factory=dict)


def what_if(
    simulation: Simulation,
    dependencies: Dependencies,
    on_path: set[tuple[int, int]],
    progress: Callable[[int, int], None] = lambda done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
    found: Found | None = None,
) -> list[WhatIf]:
    """The changes that a user can make to a run: what the file asks for and does not have, then those that
    gain most first; of a model that does not fit
    into memory first those with which it does; then its sensitivity: every knob, by what 10 % less time on it
    gains, then by what it takes, else in the order of the families.

    simulation: with equal ranks folded; dependencies: its own. on_path: (stage, op) of what its critical path
    is made of. progress(done, total): called before each knob, before each change, and when all are done.
    Raises `Cancelled` when `cancelled()` becomes true. found: of
    this run, by a search before this one; what this one finds is added.
    """
    step = simulation.step_time_ns
    rerun = Rerun(simulation, dependencies, cancelled)
    all_knobs = knobs(rerun)
    found = Found() if found is None else found
    tried = 0

    def tell() -> None:
        nonlocal tried
        # How many changes there will be shows as they are tried: which pairs depends on what each gains.
        progress(tried, max(len(all_knobs) + _CHANGES, tried + 1))
        tried += 1
        if cancelled():
            raise Cancelled

    # What a pass of the graph answers comes before what is simulated.
    for knob in all_knobs:
        tell()
        if knob.name not in found.knobs:
            found.knobs[knob.name] = _cheaper(rerun, knob, on_path, step)
    simulated = stepped(simulation, cancelled)

    def asked(change: Change) -> Tried | None:
        tell()
        if change.flags not in found.changes:
            found.changes[change.flags] = simulated(change)
        return found.changes[change.flags]

    fixes, other_fixes = fixed(simulation, asked)
    first = with_room(simulation, fitting(simulation, asked), changes(simulation, asked), asked)
    progress(tried, tried)
    what_ifs = sorted(found.knobs.values(), key=lambda knob: (knob.better10_ns, knob.free_ns))
    return [*fixes, *first, *other_fixes, *what_ifs]


def _cheaper(rerun: Rerun, knob: Cheaper, on_path: set[tuple[int, int]], step: int) -> WhatIf:
    if rerun.is_fixed and knob.chosen is not None and not _is_on(on_path, rerun, knob.chosen):
        # The path takes what it took, and nothing takes longer.
        return WhatIf(knob.name, step, step, parameters=knob.better.parameters)
    free, better = knob.step_ns(0.0), knob.step_ns(BETTER)
    return WhatIf(
        knob.name, free, better, anomaly=max(free, better) > step, parameters=knob.better.parameters
    )


def _is_on(on_path: set[tuple[int, int]], rerun: Rerun, chosen: Chosen) -> bool:
    """Whether any of the chosen ops is on the critical path."""
    masks = [chosen(stage) for stage in rerun.program.stages]
    return any(masks[stage][op] for stage, op in on_path)
