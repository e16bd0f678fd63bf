"""What every kind of run answers, so that nobody asks where it came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from simcore.diagnostics import Diagnostic
from simcore.parameters import Parameters
from simcore.run.track import StepShape, TimedPass, Track

if TYPE_CHECKING:
    from simcore.measured import MeasuredRun
    from simcore.replay.partners import Partners
    from simcore.replay.scales import Scales
    from simcore.workload import Workload


class Run(Protocol):
    """A run, simulated, measured or replayed.

    path: what was opened, as the user gave it. stamp: which run of its directory it is, None where files do
    not say. origin: `simulated`, `measured` or `replayed`. timed: whether it has times; a plan has none.
    together: whether its ranks have a common time, so that one can be seen to wait for another.
    parameters: those that ask for it. label: what `--run` names it by among the runs of its directory,
    others: those of the others. held_ops: timed ops that it holds in memory. scales: of a replay. partners:
    of communication that has none in a trace; None where all are there.
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
    def source(self) -> Workload | MeasuredRun:
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
