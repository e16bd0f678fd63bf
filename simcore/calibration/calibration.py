"""What a calibration found: the fitted parameters, what decided each, and what is left per kind."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.parameters import Parameters
from simcore.records import Struct
from simcore.replay.results import MeasuredResults
from simcore.simulation import Simulation
from simcore.units import number


class ComputeFit(Struct, frozen=True):
    """compute_scale before and after. by: the kinds that decided. why: it was not fitted, "" if it was."""

    before: float
    after: float
    by: tuple[str, ...]
    why: str = ""


class BandwidthFit(Struct, frozen=True):
    """A dimension of the cluster: in words as it was; GB/s before and after. by, together, why: `Found`."""

    dimension: int
    text: str
    before: float
    after: float
    by: tuple[str, ...]
    together: tuple[int, ...]
    why: str


class KindFit(Struct, frozen=True):
    """One kind of work on the measured ranks. Calls and ns are of all of them together, waiting left out;
    None where the step has nothing of the kind, or (measured_ns) no time is known.

    fitted: whether it decided a parameter. why: it did not, "" if it did.
    """

    name: str
    measured_calls: int | None
    simulated_calls: int | None
    measured_ns: int | None
    before_ns: int | None
    after_ns: int | None
    fitted: bool
    why: str


class RankFit(Struct, frozen=True):
    """A rank that computes for longer or shorter than the fit says. rank: of the simulation. measured_rank:
    of the trace. factor: measured over simulated; slow_rank: the factor that `--slow-rank` needs for it.
    """

    rank: int
    measured_rank: int
    factor: float
    slow_rank: float


def with_slow_ranks(parameters: Parameters, off: Sequence[RankFit]) -> tuple[str, ...]:
    """`--slow-rank` of the parameters with the ranks that are off as far off: `37=1.3`, each rank once."""
    numbers = {one.rank for one in off}
    kept = [text for text in parameters.slow_rank if int(text.partition("=")[0]) not in numbers]
    return (*kept, *(f"{one.rank}={number(one.slow_rank)}" for one in off))


class Calibration(Struct, frozen=True):
    """before, after: the runs with the parameters that were given and with the fitted ones, `parameters`.

    ranks: how many were compared. kinds: in the order of `kinds.ORDER`. off: ranks whose compute is far
    from the fit, the farthest first; slowed_step_ns: the step time if they are as far off (`--slow-rank`),
    None without any. host_ns, gaps_ns: what the trace has of all ranks and a workload never. notes:
    sentences on what a comparison of the steps has to mind.
    """

    measured: MeasuredResults
    before: Simulation
    after: Simulation
    parameters: Parameters
    ranks: int
    compute: ComputeFit
    bandwidths: tuple[BandwidthFit, ...]
    kinds: tuple[KindFit, ...]
    off: tuple[RankFit, ...]
    slowed_step_ns: int | None
    host_ns: int
    gaps_ns: int
    notes: tuple[str, ...]

    @property
    def measured_step_ns(self) -> int:
        """From the first operation to the end of the last; of the longest rank where they ran apart."""
        return self.measured.measured.step_time_ns

    @property
    def slow_ranks(self) -> tuple[str, ...]:
        """What `--slow-rank` takes for `slowed_step_ns`, those that were given included."""
        return with_slow_ranks(self.parameters, self.off)

    @property
    def is_fitted(self) -> bool:
        """Whether any parameter could be fitted."""
        return not self.compute.why or any(not one.why for one in self.bandwidths)
