"""The algorithms by the name that `--algorithm` takes: a new one is a file and a line here.

Its name also goes into `ALGORITHM_NAMES` of simcore.cluster, which reads it from the user.
"""

from __future__ import annotations

from functools import lru_cache, partial

from simcore.cluster import direct_window
from simcore.collectives.algorithm import Algorithm
from simcore.collectives.algorithms.direct import direct_loads, direct_steps, windowed_loads
from simcore.collectives.algorithms.double_binary_tree import first_tree_steps, tree_loads, tree_steps
from simcore.collectives.algorithms.halving_doubling import halving_doubling_steps
from simcore.collectives.algorithms.ring import ring_steps
from simcore.collectives.algorithms.windowed_direct import windowed_direct_steps

_DIRECT = Algorithm(direct_steps, port_loads=direct_loads)
_HALVING = Algorithm(halving_doubling_steps, power_of_two=True, has_alltoall=False)

ALGORITHMS: dict[str, Algorithm] = {
    "ring": Algorithm(ring_steps),
    "direct": _DIRECT,
    "halving-doubling": _HALVING,
    "double-binary-tree": Algorithm(
        tree_steps,
        first_steps=first_tree_steps,
        port_loads=tree_loads,
        power_of_two=True,
        has_alltoall=False,
        is_tree=True,
    ),
    "one-ring": Algorithm(ring_steps, whole=True),
    "one-direct": _DIRECT._replace(whole=True),
    "one-halving-doubling": _HALVING._replace(whole=True),
}


@lru_cache(maxsize=64)
def algorithm_named(name: str) -> Algorithm:
    """The algorithm called `name`; `direct<W>` is direct with at most W messages in flight."""
    window = direct_window(name)
    if window:
        steps, loads = partial(windowed_direct_steps, window), partial(windowed_loads, window)
        return Algorithm(steps, port_loads=loads, whole=name.startswith("one-"))
    return ALGORITHMS[name]
