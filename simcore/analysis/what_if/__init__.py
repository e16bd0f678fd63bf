"""What-if: the step time if one thing were cheaper, or the schedule another one.

`what_if` gives all knobs of a run, those that gain most first; `Results.what_if` keeps them.
"""

from __future__ import annotations

from collections.abc import Callable

from simcore.analysis.dependencies import Dependencies
from simcore.analysis.rerun import Rerun
from simcore.analysis.what_if.changes import changes, fitting, fixed, stepped, with_room
from simcore.analysis.what_if.knobs import knobs
from simcore.records import Struct, field
from simcore.simulation import Simulation
from simcore.trace.changes import Trials, Tried
from simcore.trace.findings import WhatIf
from simcore.trace.knobs import Search, by_gain

# About as many changes as a run of a pipeline has, for the progress: which pairs depends on what each gains.
_CHANGES = 15


class Found(Struct):
    """What a search has found that may be cancelled: by name of a knob, by flags of a change."""

    knobs: dict[str, WhatIf | None] = field(default_factory=dict)
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
    rerun = Rerun(simulation, dependencies, cancelled)
    all_knobs = knobs(rerun, on_path)
    found = Found() if found is None else found
    search = Search(len(all_knobs) + _CHANGES, progress, cancelled)
    # What a pass of the graph answers comes before what is simulated.
    for knob in all_knobs:
        search.ask()
        if knob.name not in found.knobs:
            found.knobs[knob.name] = knob.sensitivity(simulation.step_time_ns)
    trials = Trials(simulation.step_time_ns, stepped(simulation, cancelled), search, found.changes)
    fixes, other_fixes = fixed(simulation, trials)
    first = with_room(simulation, fitting(simulation, trials), changes(simulation, trials), trials)
    search.end()
    return [*fixes, *first, *other_fixes, *by_gain(row for row in found.knobs.values() if row is not None)]
