"""What some runs have beside their trace: a network, a model, the loop of their step, a recording.

A run without one of them has the empty one, so that nobody asks which kind of run it is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct

if TYPE_CHECKING:
    from simcore.cluster import Cluster, Dimension
    from simcore.diagnostics import Diagnostic
    from simcore.engine.timeline import Timeline
    from simcore.layout import Layout
    from simcore.measured import MeasuredRun
    from simcore.messages.network import LinkHeat, LinkUse
    from simcore.model.memory import StageMemory
    from simcore.model.sizes import Model
    from simcore.model.trust import PublishedError
    from simcore.trace.track import Track
    from simcore.workload import Workload


# -- the network ---------------------------------------------------------------------


class KindUse(NamedTuple):
    """What streams of one kind put on a dimension, on the rank that sends most over it."""

    bytes: int
    busy_ns: int


class DimensionUse(Struct, frozen=True):
    """One dimension in a stretch of time.

    bytes: of the rank that sends most over it; rank_class: its class. mean_bytes, mean_busy_ns:
    of all ranks, rounded. busy_ns: of that rank's port. by_kind: its bytes by the kind of
    stream, in the order of the streams, kinds that send nothing left out.
    """

    index: int
    rank_class: int
    bytes: int
    mean_bytes: int
    busy_ns: int
    mean_busy_ns: int
    by_kind: dict[str, KindUse]


class PortUse(Struct, frozen=True):
    """A port and how long it is busy in the step.

    index: its dimension. rank_class: of its rank. busy_ns: as in `DimensionUse`, all kinds together.
    alike: the classes whose ports of this dimension are as busy, and as slow. factor: on its bandwidth, 1
    where `--slow-link` leaves it alone. streams: `most with dp`: those that keep it busy longest.
    """

    index: int
    rank_class: int
    busy_ns: int
    equal_classes: tuple[int, ...]
    factor: float
    streams: str


class SimaiEstimate(Struct, frozen=True):
    """The lines of SimAI's summary, us. dp, dp_ep, tp, ep: exposed collectives.

    pp_us: exposed transfers between stages, whole us; None where SimAI has no bandwidth for them.
    """

    dp_us: float
    dp_ep_us: float
    tp_us: float
    ep_us: float
    pp_us: int | None
    bubble_us: float
    compute_us: float

    @property
    def exposed_us(self) -> float:
        """Exposed collectives, transfers not among them."""
        return self.dp_us + self.dp_ep_us + self.tp_us + self.ep_us

    @property
    def total_us(self) -> float:
        """The step as SimAI estimates it."""
        return self.compute_us + self.exposed_us + self.bubble_us + (self.pp_us or 0)


class EstimateLine(NamedTuple):
    """One line of SimAI's summary. simai_us: None where SimAI has none. ours_ns: of one rank of the run.

    text: why the two differ, or that they do not. The lines compute, dp, dp_ep, tp, ep, pp, bubble
    and wait of ours sum to the step time, which is the line total.
    """

    line: str
    simai_us: float | None
    ours_ns: int
    text: str


class NetworkUse(Protocol):
    """A network and what a run has sent over it. dims: its dimensions; dimensions: what crosses each,
    busiest_port: of all. links: what each carried, link_heat: how busy all are over the run; None of a
    network that has none. simai_estimate: SimAI's own of the step, on its networks.
    """

    @property
    def dims(self) -> Sequence[Dimension]: ...
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


class Links(NamedTuple):
    """A network of which no more is known than its dimensions and links: see `NetworkUse`."""

    dims: Sequence[Dimension] = ()
    links: Sequence[LinkUse] | None = None
    link_heat: LinkHeat | None = None
    dimensions: Sequence[DimensionUse] = ()
    busiest_port: PortUse | None = None
    simai_estimate: SimaiEstimate | None = None


NO_NETWORK = Links()


# -- the model -----------------------------------------------------------------------


class Throughput(NamedTuple):
    """Of all ranks and of one: tokens/s; TFLOP/s of the model; MFU and HFU as shares of the peak.

    mfu, mfu_whole_attention: attention counted over the whole square of scores, 12 L h s a token, as papers
    do. mfu_causal_attention: over the half of it that a causal mask leaves.
    """

    tokens_per_s: float
    tokens_per_s_per_gpu: float
    model_tflops_per_gpu: float
    mfu: float
    hfu: float
    mfu_whole_attention: float
    mfu_causal_attention: float


class ModelFigures(Struct, frozen=True, dict=True):
    """Figures of one run of a model. limit: bytes of a GPU. trust: how near published steps are; None where
    a file has the times of ops.
    """

    model: Model
    throughput: Throughput
    memory: tuple[StageMemory, ...]
    limit: int
    trust: PublishedError | None

    @property
    def fullest(self) -> StageMemory:
        """The stage that needs most."""
        return max(self.memory, key=lambda memory: memory.needed)

    @property
    def fits(self) -> bool:
        return self.fullest.needed <= self.limit


class Imbalance(Struct, frozen=True):
    """hot_rank: the lowest of the ranks whose experts get most tokens, max_over_mean times the mean.

    lost_ns: what the step is longer than with even loads. dropped: share of the tokens above the capacity.
    capacity: (factor, step ns, share of tokens dropped) of a run with one. placed_ns: the step with experts
    placed evenly. tokens: of the ranks of an expert group, by place. Each None where it is not known, would
    change nothing, or is given already.
    """

    hot_rank: int
    max_over_mean: float
    lost_ns: int | None
    dropped: float
    balanced_ns: int | None
    capacity: tuple[float, int, float] | None
    placed_ns: int | None
    tokens: tuple[int, ...]


class FileMemory(Struct, frozen=True):
    """Bytes that a rank of one stage holds, about. activations: of layers not run again whole; None where no
    row says how large, and then the total is what it holds at least.

    held: chunks whose activations are there at the peak. What the loss needs, and what single ops need, no
    file says.
    """

    stage: int
    weights: int
    gradients: int
    optimizer: int
    activations: int | None
    peak_chunks: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + (self.activations or 0)


class MemoryLane(NamedTuple):
    """Bytes held from each time, ns, to the next; the first time is 0. limit: bytes of a GPU."""

    stage: int
    time_ns: array[int]
    resident_bytes: array[int]
    limit: int

    def peak_bytes(self, edges: Sequence[int]) -> list[int]:
        """The most that is held in each stretch edges[i]..edges[i+1], ns."""
        peaks = []
        for first, last in pairwise(edges):
            low = bisect_right(self.time_ns, first) - 1
            high = bisect_right(self.time_ns, max(last - 1, first))
            peaks.append(max(self.resident_bytes[low:high]))
        return peaks


class ModelUse(Protocol):
    """What a run says of the model that it trains. model_figures: throughput and memory. imbalance: what
    uneven loads of experts cost. file_memory: what the rows of a file say of memory, by stage;
    memory_unknown: why nobody knows that, "" where one of the two has it. other_model: in what it is not the
    model of its file, in words; "" where it is. rescaled: that its rows were made anew for other degrees, in
    words; "" where they are the file's. memory_lane: of a track over the step, None of a file.
    """

    @property
    def model_figures(self) -> ModelFigures | None: ...
    @property
    def imbalance(self) -> Imbalance | None: ...
    @property
    def file_memory(self) -> Sequence[FileMemory]: ...
    @property
    def memory_unknown(self) -> str: ...
    @property
    def other_model(self) -> str: ...
    @property
    def rescaled(self) -> str: ...
    def memory_lane(self, track_id: int) -> MemoryLane | None: ...


class NoModel(NamedTuple):
    """Of a run whose files say no model: see `ModelUse`."""

    memory_unknown: str
    model_figures: ModelFigures | None = None
    imbalance: Imbalance | None = None
    file_memory: Sequence[FileMemory] = ()
    other_model: str = ""
    rescaled: str = ""

    def memory_lane(self, track_id: int) -> None:
        """None: nobody knows it."""


# -- the layout and the loop ---------------------------------------------------------


class ClusterRun(Protocol):
    """A workload laid out on a cluster. has_dimensions: whether prices depend on those of the cluster."""

    @property
    def workload(self) -> Workload: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def has_dimensions(self) -> bool: ...


class Simulated(ClusterRun, Protocol):
    """What a simulated step came from, and when each op ran. diagnostics: of the file, then of the run."""

    @property
    def timeline(self) -> Timeline: ...
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...


class MapRow(Struct, frozen=True):
    """Ranks with the same place inside their stages that are alike in every stage.

    dp, tp: their coordinates; a rank of each pair is in the row where `is_grid`, else `pairs`
    of them are. classes: rank class of the row's ranks by stage.
    """

    dp: RankSet
    tp: RankSet
    pairs: int
    classes: tuple[int, ...]

    @property
    def is_grid(self) -> bool:
        """Whether every dp coordinate of the row comes with every tp coordinate."""
        return self.pairs == len(self.dp) * len(self.tp)


class StepWork(NamedTuple):
    """What a replica does in a run's steps: how often it has each block of a file whose blocks are unequal,
    else its sequences, or its micro-batches where nobody knows those. replicas: how many do so.
    """

    counts: tuple[int, ...]
    replicas: int = 1


class StepShape:
    """Degrees of a step, None where nobody knows them, and the loop that it is.

    measured: whether it was recorded: nobody knows how much work that is. left_out: the lines of its file
    that it goes without, "" where it has all. scheduled: micro-batches of the schedule, None where a trace
    does not tell. steps: how many steps the times are of together. microbatches: 0 where the step is not
    known to be made of them. microbatches_alike: whether they are as good as equal, so that a mean says
    something.
    held_microbatches: the most whose activations each stage keeps at once, none where nobody knows.
    work: how much a replica does; None where it goes by other loops. rank_map: every rank by its place in
    the layout; None where each has a track of its own. simulated: what it came from, None of all others.
    """

    simulated: Simulated | None = None
    held_microbatches: Sequence[int] = ()
    left_out = ""
    measured = False

    def __init__(
        self,
        step_time_ns: int,
        tracks: Sequence[Track],
        degrees: tuple[int | None, int | None, int | None] = (None, None, None),
        microbatches: int = 0,
        steps: int = 1,
    ) -> None:
        self.step_time_ns, self.tracks = step_time_ns, tracks
        self.microbatches, self.steps = microbatches, steps
        self.tp, self.dp, self.pp = degrees

    @property
    def has_equal_microbatches(self) -> bool:
        return True

    @property
    def rank_map(self) -> Sequence[MapRow] | None:
        return None

    @property
    def scheduled_microbatches(self) -> int | None:
        return self.microbatches or None

    @property
    def work(self) -> StepWork | None:
        count = self.microbatches * self.steps
        return StepWork((count,)) if count else None

    @property
    def by_name(self) -> dict[str, int | None]:
        """The figures in which two runs may differ, by their names."""
        return {"tp": self.tp, "dp": self.dp, "pp": self.pp, "microbatches": self.scheduled_microbatches}

    def track_at(self, position: tuple[int, int, int]) -> Track | None:
        """The track of the rank at (stage, dp, tp) of the layout; None where it is missing."""
        return next((track for track in self.tracks if track.position == position), None)


# -- the recording -------------------------------------------------------------------


class MissingPartners(Protocol):
    """Of communication that has no partner in a trace."""

    def waiting(self) -> tuple[int, int, int]:
        """(calls, the rank where most time may be waiting, how much of it, ns)."""
        ...

    def missing_words(self) -> str:
        """Which ranks the partners are."""
        ...


class Recording(Protocol):
    """The run of the files where times were measured, as they are or replayed. run: with
    these times. together: whether its ranks have a common time, so that one can be seen to wait for another.
    changes: what its replay changes, in
    words, none of the run as measured; is_replayed: whether it is one. measured_step_ns: the step as
    measured; as_read: that run; base: the replay with nothing changed that it does not change.
    """

    @property
    def run(self) -> MeasuredRun: ...
    @property
    def together(self) -> bool: ...
    @property
    def is_replayed(self) -> bool: ...
    @property
    def changes(self) -> Sequence[str]: ...
    @property
    def partners(self) -> MissingPartners: ...
    @property
    def measured_step_ns(self) -> int: ...
    @property
    def as_read(self) -> Any: ...
    @property
    def base(self) -> Any: ...
