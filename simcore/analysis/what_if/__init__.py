"""What-if: the step time if one thing were cheaper, or with another schedule.

`what_if` returns all changes and knobs of a run, those that gain most first.
"""

from __future__ import annotations

from collections.abc import Callable

from simcore.analysis.dependencies import Dependencies
from simcore.analysis.rerun import Rerun
from simcore.analysis.what_if.changes import (
    find_changes,
    find_fitting,
    find_fixes,
    make_stepper,
    order_by_memory,
)
from simcore.analysis.what_if.knobs import make_knobs
from simcore.records import Struct, field
from simcore.simulation import Simulation
from simcore.trace.changes import ChangeOutcome, Trials
from simcore.trace.findings import WhatIf
from simcore.trace.knobs import Search, sort_by_gain

# About how many changes a run of a pipeline has, for the progress: the pairs depend on what each change
# gains.
_CHANGES = 15


class WhatIfCache(Struct):
    """What a search that was cancelled has found: by name of a knob, by flags of a change."""

    knobs: dict[str, WhatIf | None] = field(default_factory=dict)
    changes: dict[str, ChangeOutcome | None] = field(default_factory=dict)


def what_if(
    simulation: Simulation,
    dependencies: Dependencies,
    on_path: set[tuple[int, int]],
    progress: Callable[[int, int], None] = lambda begun_items, total: None,
    cancelled: Callable[[], bool] = lambda: False,
    cache: WhatIfCache | None = None,
) -> list[WhatIf]:
    """Returns the changes that a user can make to a run, then its sensitivity.

    First come changes that the file asks for and does not have, then those that gain most; of a model that
    does not fit into memory first those with which it does. The sensitivity is every knob, by what 10 % less
    time on it gains, then by what it takes, else in the order of the families.

    simulation: with equal ranks folded; dependencies: of that. on_path: (stage, op) of its critical path.
    progress(begun_items, total): called before each knob, before each change, and at the end. Raises
    `Cancelled` when `cancelled()` becomes true. cache: of this run, from an earlier search; results are
    added.
    """
    rerun = Rerun(simulation, dependencies, cancelled)
    all_knobs = make_knobs(rerun, on_path)
    cache = WhatIfCache() if cache is None else cache
    search = Search(len(all_knobs) + _CHANGES, progress, cancelled)
    # Passes over the graph come before simulations.
    for knob in all_knobs:
        search.begin_next()
        if knob.name not in cache.knobs:
            cache.knobs[knob.name] = knob.sensitivity(simulation.step_time_ns)
    trials = Trials(simulation.step_time_ns, make_stepper(simulation, cancelled), search, cache.changes)
    fixes, other_fixes = find_fixes(simulation, trials)
    possible_changes = order_by_memory(
        simulation, find_fitting(simulation, trials), find_changes(simulation, trials), trials
    )
    search.end()
    return [
        *fixes,
        *possible_changes,
        *other_fixes,
        *sort_by_gain(row for row in cache.knobs.values() if row is not None),
    ]
