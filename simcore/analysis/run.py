"""What every kind of run answers, so that nobody asks where it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from simcore.analysis.rank_map import MapRow
    from simcore.chakra import TraceSet
    from simcore.cluster import Dimension
    from simcore.diagnostics import Diagnostic
    from simcore.measured import MeasuredRun
    from simcore.parameters import Parameters
    from simcore.replay.partners import Partners
    from simcore.replay.scales import Scales
    from simcore.run.findings import Leg, Place, Spot, WhatIf
    from simcore.run.track import StepShape, TimedPass, Track
    from simcore.workload import Workload


class Run(Protocol):
    """A run, simulated, measured or replayed.

    path: what was opened, as the user gave it. stamp: which run of its directory it is, None where files do
    not say. origin: `simulated`, `measured`, `replayed` or `executed`. timed: whether it has times; a plan
    has none.
    together: whether its ranks have a common time, so that one can be seen to wait for another.
    parameters: those that ask for it. label: what `--run` names it by among the runs of its directory,
    others: those of the others. held_ops: timed ops that it holds in memory. scales: of a replay. partners:
    of communication that has none in a trace; None where all are there. measured_step_ns: of a replay.
    microbatches: 0 where the step is not known to be made of them. rank_map: every rank by its place in the
    layout; None where each has a track of its own. dims: of its network, none where it has none. words: the
    run in sentences, the main cause first.
    """

    @property
    def path(self) -> str: ...
    @property
    def stamp(self) -> str | None: ...
    @property
    def label(self) -> str | None: ...
    @property
    def others(self) -> tuple[str, ...]: ...
    @property
    def parameters(self) -> Parameters: ...
    @property
    def held_ops(self) -> int: ...
    @property
    def origin(self) -> str: ...
    @property
    def timed(self) -> bool: ...
    @property
    def together(self) -> bool: ...
    @property
    def step_time_ns(self) -> int: ...
    @property
    def scales(self) -> Scales | None: ...
    @property
    def partners(self) -> Partners | None: ...
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...
    @property
    def shape(self) -> StepShape: ...
    @property
    def measured_step_ns(self) -> int | None: ...
    @property
    def microbatches(self) -> int: ...
    @property
    def mean_busy_ns(self) -> int: ...
    @property
    def rank_map(self) -> list[MapRow] | None: ...
    @property
    def dims(self) -> Sequence[Dimension]: ...
    @property
    def words(self) -> list[str]: ...
    @property
    def source(self) -> Workload | MeasuredRun | TraceSet:
        """What was read: what an export with its parameters begins with."""
        ...

    @property
    def as_read(self) -> Run:
        """Of a replay the run as it was measured; any other run is itself."""
        ...

    def with_parameters(self, parameters: Parameters, cancelled: Callable[[], bool] = ...) -> Run:
        """The same input with other parameters.

        Raises `UsageError` for parameters that it does not have, `Cancelled` when `cancelled()` becomes true.
        """
        ...

    def compute_accounts(self, cancelled: Callable[[], bool]) -> object:
        """Computes what screens look up while they draw, unless it is known. Raises `Cancelled`."""
        ...

    @property
    def tracks(self) -> Sequence[Track]:
        """By stage and then by rank."""
        ...

    def track_at(self, place: tuple[int, int, int]) -> Track | None:
        """Whose track the rank at (stage, dp, tp) of the layout is; None where it is missing."""
        ...

    def common_ns(self, track: Track) -> list[int]:
        """ns of one rank of a track by `simcore.run.accounts.ALIKE`: they sum to the step."""
        ...

    def timed_passes(self, track: Track) -> list[TimedPass]:
        """The forward and backward passes of a rank of a track, in time order."""
        ...

    def account_ns(self, tracks: Iterable[Track]) -> dict[str, int]:
        """ns by account of all ranks of some tracks together, in the order of a bar: `compute fwd`,
        `exposed tp` ... `wait`, `bubble`, `idle`. They sum to a step a rank.
        """
        ...

    @property
    def worst(self) -> list[Place]:
        """The places worth a look."""
        ...

    @property
    def legs(self) -> list[Leg]:
        """The critical path as it is told, in the order of time: the legs cover the step."""
        ...

    @property
    def path_groupings(self) -> tuple[str, ...]:
        """What the critical path can be summed by: `path_sums` in `simcore/run/findings.py`."""
        ...

    def path_parts(self, by: str) -> Iterator[tuple[str, int]]:
        """(part, ns) of each segment of the critical path, in the order of time."""
        ...

    def path_spot(self, index: int) -> Spot:
        """Where a segment of the critical path is seen."""
        ...

    @property
    def what_if_base_ns(self) -> int:
        """The step time that the rows of `what_if` start from, ns."""
        ...

    def what_if(
        self,
        progress: Callable[[int, int], None] = ...,
        cancelled: Callable[[], bool] = ...,
    ) -> list[WhatIf]:
        """What the step would take with one thing changed, the greatest gain first."""
        ...
