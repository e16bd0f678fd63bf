"""The algorithms by the name that `--algorithm` takes: a new one is a file and a line here.

Its name also goes into `ALGORITHM_NAMES` of simcore.cluster, which reads it from the user.
"""

from __future__ import annotations

from simcore.collectives.algorithm import Algorithm
from simcore.collectives.algorithms.direct import direct_steps
from simcore.collectives.algorithms.halving_doubling import halving_doubling_steps
from simcore.collectives.algorithms.ring import ring_steps

ALGORITHMS: dict[str, Algorithm] = {
    "ring": Algorithm(ring_steps),
    "direct": Algorithm(direct_steps),
    "halving-doubling": Algorithm(halving_doubling_steps, power_of_two=True, has_alltoall=False),
}
