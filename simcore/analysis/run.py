"""What every kind of run answers, so that nobody asks where it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from simcore.analysis.dimensions import DimensionUse, PortUse
    from simcore.analysis.file_memory import FileMemory
    from simcore.analysis.model_figures import Imbalance, ModelFigures
    from simcore.analysis.rank_map import MapRow
    from simcore.analysis.simai_estimate import EstimateLine, SimaiEstimate
    from simcore.chakra import ExecutionSet
    from simcore.cluster import Dimension
    from simcore.diagnostics import Diagnostic
    from simcore.measured import MeasuredRun
    from simcore.messages.network import LinkHeat, LinkUse
    from simcore.parameters import Given, Parameters
    from simcore.replay.parameters import Scales
    from simcore.replay.partners import Partners
    from simcore.replay.timed import Timed
    from simcore.run.figures import (
        NodeTables,
        Origin,
        PathSegment,
        Said,
        StreamUse,
        TrackUse,
        WaitFor,
        Work,
    )
    from simcore.run.findings import Leg, Place, Spot, WhatIf
    from simcore.run.gradients import Gradient
    from simcore.run.track import StepShape, TimedPass, Track
    from simcore.trace.lanes import Lanes
    from simcore.trace.named_work import NamedWork
    from simcore.trace.tables import LayerUse
    from simcore.workload import Workload


class Run(Protocol):
    """A run, simulated, measured, replayed or executed.

    path: what was opened, as the user gave it. stamp: which run of its directory it is, None where files do
    not say. origin: `simulated`, `measured`, `replayed` or `executed`. doing: what it is to make
    another one of it, `simulating` or `replaying`. timed: whether it has times; a plan
    has none.
    together: whether its ranks have a common time, so that one can be seen to wait for another.
    parameters: those that ask for it. label: what `--run` names it by among the runs of its directory,
    others: those of the others. held_ops: timed ops that it holds in memory. scales: of a replay. partners:
    of communication that has none in a trace; None where all are there. measured_step_ns: of a replay.
    microbatches: 0 where the step is not known to be made of them; held_microbatches: the most whose
    activations each stage keeps at once, none where nobody knows. rank_map: every rank by its place in the
    layout; None where each has a track of its own. dims: of its network, none where it has none; dimensions:
    what crosses each, busiest_port: of all. links: what each carried, link_heat: how busy all
    are over the run, None of a network that has none.
    words: the run in sentences, the main cause first. mean_ns: each account, the mean of all ranks.
    gradients: the slopes of the step time over each scale, None without slack.
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
    def setup(self) -> Given: ...
    @property
    def parameters(self) -> Parameters: ...
    @property
    def held_ops(self) -> int: ...
    @property
    def origin(self) -> str: ...
    @property
    def doing(self) -> str: ...
    @property
    def timed(self) -> bool: ...
    @property
    def together(self) -> bool: ...
    @property
    def step_time_ns(self) -> int: ...
    @property
    def steps(self) -> int: ...
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
    def microbatches_alike(self) -> bool: ...
    @property
    def work(self) -> Work | None: ...
    @property
    def held_microbatches(self) -> tuple[int, ...]: ...
    @property
    def mean_busy_ns(self) -> int: ...
    @property
    def rank_map(self) -> list[MapRow] | None: ...
    @property
    def dims(self) -> Sequence[Dimension]: ...
    @property
    def words(self) -> list[str]: ...
    @property
    def mean_ns(self) -> dict[str, int]: ...
    @property
    def gradients(self) -> Sequence[Gradient] | None: ...
    @property
    def dimensions(self) -> Sequence[DimensionUse]: ...
    @property
    def busiest_port(self) -> PortUse | None: ...
    @property
    def links(self) -> Sequence[LinkUse] | None: ...
    @property
    def link_heat(self) -> LinkHeat | None: ...
    @property
    def simai_estimate(self) -> SimaiEstimate | None: ...
    @property
    def source(self) -> Workload | MeasuredRun | ExecutionSet:
        """What was read: what an export with its parameters begins with."""
        ...

    @property
    def as_read(self) -> Run:
        """Of a replay the run as it was measured; any other run is itself."""
        ...

    def rerun(self, setup: Any, cancelled: Callable[[], bool]) -> Run:
        """The run of another setup of the same input; raises as `with_parameters` does."""
        ...

    def with_parameters(self, parameters: Parameters, cancelled: Callable[[], bool] = ...) -> Run:
        """The same input with other parameters.

        Raises `UsageError` for parameters that it does not have, `Cancelled` when `cancelled()` becomes true.
        """
        ...

    def compute_accounts(self, cancelled: Callable[[], bool]) -> object:
        """Computes what screens look up while they draw, unless it is known. Raises `Cancelled`."""
        ...

    def weigh_assumptions(self, cancelled: Callable[[], bool] = ..., all_of_them: bool = ...) -> None:
        """Finds by runs of their own what assumptions cost, and what is not sent: notes and words say it from
        then on. all_of_them: else what words need alone. Raises `Cancelled`.
        """
        ...

    @property
    def other_model(self) -> str:
        """In what it is not the model of its file, in words; "" where it is."""
        ...

    @property
    def lanes(self) -> Lanes:
        """Its tracks and their streams as a timeline shows them."""
        ...

    @property
    def tracks(self) -> Sequence[Track]:
        """By stage and then by rank."""
        ...

    def track_at(self, place: tuple[int, int, int]) -> Track | None:
        """Whose track the rank at (stage, dp, tp) of the layout is; None where it is missing."""
        ...

    def common_ns(self, track: Track) -> list[int]:
        """ns of one rank of a track by `simcore.run.track.ALIKE`: they sum to the step."""
        ...

    def named_work(self, track: Track) -> NamedWork:
        """What a rank of a track does by name: those of an account sum to its `common_ns`, compute as one."""
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
    def model_figures(self) -> ModelFigures | None:
        """Throughput and memory of the run of a model; None of any other."""
        ...

    @property
    def imbalance(self) -> Imbalance | None:
        """What uneven loads of experts cost a simulated model; None of any other run."""
        ...

    @property
    def file_memory(self) -> tuple[FileMemory, ...]:
        """What the rows of a file say of memory, by stage; nothing where they do not."""
        ...

    @property
    def memory_unknown(self) -> str:
        """Why nobody knows what it needs of memory; "" where `model_figures` or `file_memory` has it."""
        ...

    def headline(self, wide: bool) -> list[str]:
        """What it is, in the facts of a screen's first row, the most important first."""
        ...

    @property
    def figures(self) -> Figures:
        """What a page states of it."""
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

    @property
    def tried(self) -> str:
        """What is said of the changes that `what_if` tried beside those that it gives; "" for nothing."""
        ...


class Figures(Protocol):
    """What a page of text or a JSON states of every kind of run, beside what `Run` answers; of an order
    without times there are counts alone. A subject that a run has nothing of is empty, or None.

    title: the step time, with what it is of. facts: (name, words) of what was read. resolution_ns: what the
    times are told to. recorded: the run of the files where its times were measured, as they are or replayed.
    has_slack: whether it is known how much longer each part may take. said: the run in sentences, the main
    cause first. account_columns: (heading, the accounts of `account_ns` that it adds up), what a table of
    ranks tells apart. track_uses: what the step is for a rank of each track, by number. mean_streams: each
    stream, the mean of all ranks, and the busy ns of the rank that is busy longest on it. waits_for: the
    longest first. simai_beside: (ranks, lines), SimAI's estimate beside these ranks.
    nodes: of execution traces alone.
    """

    resolution_ns: int

    @property
    def title(self) -> str: ...
    @property
    def facts(self) -> list[tuple[str, str]]: ...
    @property
    def origin(self) -> Origin: ...
    @property
    def recorded(self) -> Timed | None: ...
    @property
    def has_slack(self) -> bool: ...
    @property
    def said(self) -> list[Said]: ...
    @property
    def account_columns(self) -> Sequence[tuple[str, Sequence[str]]]: ...
    @property
    def track_uses(self) -> Sequence[TrackUse]: ...
    @property
    def mean_streams(self) -> Sequence[tuple[StreamUse, int]]: ...
    @property
    def worst_link(self) -> Place | None: ...
    @property
    def waits_for(self) -> Sequence[WaitFor]: ...
    @property
    def simai_beside(self) -> tuple[str, Sequence[EstimateLine]]: ...
    @property
    def nodes(self) -> NodeTables | None: ...

    def layers(self, grouped: bool) -> Sequence[LayerUse]:
        """Each row of a workload, or operation; grouped: equal rows together, the most expensive first."""
        ...

    def path_alike(self) -> Iterator[object]:
        """Of each segment of the critical path what it runs: those with equal ones are alike."""
        ...

    def path_segments(self, indices: Iterable[int] | None = None) -> Iterator[PathSegment]:
        """Segments of the critical path, in the order of time: some, or all."""
        ...

    def path_words(self, index: int) -> tuple[str, str]:
        """What a segment does, and to which row or operation: alike ones by one name, "" for none."""
        ...
