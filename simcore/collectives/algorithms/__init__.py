"""The algorithms by the name that `--algorithm` takes, each loaded when a run has it.

A new one is a file here, with its `ALGORITHM`, and a line in `ALGORITHMS` of simcore.names.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from simcore.cluster import direct_window
from simcore.collectives.algorithm import Algorithm


@lru_cache(maxsize=64)
def algorithm_named(name: str) -> Algorithm:
    """Returns the algorithm `name`: `direct<W>` is direct with at most W messages in flight, `one-NAME` takes
    all dimensions as one flat group.
    """
    on_dimension = name.removeprefix("one-")
    window = direct_window(name)
    algorithm: Algorithm
    if window:
        from simcore.collectives.algorithms.windowed_direct import windowed_direct

        algorithm = windowed_direct(window)
    else:
        algorithm = import_module(f"{__name__}.{on_dimension.replace('-', '_')}").ALGORITHM
    return algorithm._replace(takes_flat_group=name != on_dimension)
