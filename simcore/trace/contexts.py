"""What only some runs have besides their trace: a network, a model, the loop of their step, a recording.

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
    from simcore.flows.traffic import FlowReport
    from simcore.layout import Layout
    from simcore.measured import MeasuredRun
    from simcore.messages.network import LinkHeat, LinkUse
    from simcore.model.memory import StageMemory
    from simcore.model.sizes import Model
    from simcore.model.trust import PublishedError
    from simcore.trace.ports import Ports
    from simcore.trace.track import Track
    from simcore.workload import Workload


# -- the network ---------------------------------------------------------------------


class KindUse(NamedTuple):
    """The traffic of one kind of stream on a dimension, on the rank that sends most over it."""

    bytes: int
    """What it sends, bytes."""
    busy_ns: int
    """How long it keeps the port busy, ns."""


class DimensionUse(Struct, frozen=True):
    """The use of one dimension in a stretch of time."""

    index: int
    """The dimension."""
    rank_class: int
    """The class of the rank that sends most over it."""
    bytes: int
    """What that rank sends over it, bytes."""
    mean_bytes: int
    """The mean of all ranks, bytes, rounded."""
    busy_ns: int
    """How long the port of that rank is busy, ns."""
    mean_busy_ns: int
    """The mean of all ranks, ns, rounded."""
    by_kind: dict[str, KindUse]
    """The bytes of that rank by the kind of stream, in the order of the streams; kinds that send nothing are
    left out.
    """


class PortUse(Struct, frozen=True):
    """A port and how long it is busy in the step."""

    index: int
    """Its dimension."""
    rank_class: int
    """The class of its rank."""
    busy_ns: int
    """How long it is busy, all kinds of streams together, ns."""
    equal_classes: tuple[int, ...]
    """The classes whose ports of this dimension are equally busy and equally slow."""
    factor: float
    """The factor of `--slow-link` on its bandwidth, 1 where there is none."""
    streams: str
    """`most with dp`: the streams that keep it busy longest."""


class SimaiEstimate(Struct, frozen=True):
    """The lines of SimAI's summary, us."""

    dp_us: float
    """Exposed collectives of dp."""
    dp_ep_us: float
    """Exposed collectives of expert dp."""
    tp_us: float
    """Exposed collectives of tp."""
    ep_us: float
    """Exposed collectives of ep."""
    pp_us: int | None
    """Exposed transfers between stages, in whole us; None where SimAI has no bandwidth for them."""
    bubble_us: float
    """The bubble."""
    compute_us: float
    """Compute."""

    @property
    def exposed_us(self) -> float:
        """Exposed collectives without transfers, us."""
        return self.dp_us + self.dp_ep_us + self.tp_us + self.ep_us

    @property
    def total_us(self) -> float:
        """The step as SimAI estimates it, us."""
        return self.compute_us + self.exposed_us + self.bubble_us + (self.pp_us or 0)


class EstimateLine(NamedTuple):
    """One line of SimAI's summary beside one rank of the run.

    The lines compute, dp, dp_ep, tp, ep, pp, bubble and wait of `ours_ns` sum to the step time, which is the
    line total.
    """

    line: str
    """Its name."""
    simai_us: float | None
    """SimAI's value, us; None where SimAI has none."""
    ours_ns: int
    """The value of the rank, ns."""
    text: str
    """Why the two differ, or that they do not."""


class JobFigures(NamedTuple):
    """One of two jobs on a topology."""

    path: str
    """Its file."""
    gpus: RankSet
    together_ns: int
    """Its step beside the other one, which begins at the same time."""
    alone_ns: int
    """Its step on the same GPUs without the other one."""
    assumed: str = ""
    """Its degrees, schedule and micro-batches, which are those of its file; "" of the first job."""


class TwoJobs(NamedTuple):
    """Two jobs on one topology."""

    jobs: tuple[JobFigures, JobFigures]
    shared_ports: tuple[int, ...]
    """The ports that carried flows of both, the hottest first."""


class NetworkUse(Protocol):
    """A network and what a run has sent over it."""

    @property
    def dims(self) -> Sequence[Dimension]:
        """Its dimensions."""

    @property
    def dimensions(self) -> Sequence[DimensionUse]:
        """The traffic of each dimension."""

    @property
    def busiest_port(self) -> PortUse | None:
        """The port that is busy longest."""

    @property
    def links(self) -> Sequence[LinkUse] | None:
        """What each link carried; None of a network without links."""

    @property
    def link_heat(self) -> LinkHeat | None:
        """How busy all links are over the run; None of a network without links."""

    @property
    def flow_report(self) -> FlowReport | None:
        """What flows sent over the links of a topology; None without flows."""

    @property
    def slowed_step_ns(self) -> int | None:
        """The step time under congestion control; None where it would change nothing or is not told."""

    @property
    def ports(self) -> Ports | None:
        """What each port carried; None of a network without links."""

    @property
    def two_jobs(self) -> TwoJobs | None:
        """How this job and another one on the same topology slow each other down; None without another."""

    @property
    def simai_estimate(self) -> SimaiEstimate | None:
        """SimAI's own estimate of the step, on SimAI's networks."""


class Links(NamedTuple):
    """A network of which only the dimensions and links are known: see `NetworkUse`."""

    dims: Sequence[Dimension] = ()
    links: Sequence[LinkUse] | None = None
    link_heat: LinkHeat | None = None
    dimensions: Sequence[DimensionUse] = ()
    busiest_port: PortUse | None = None
    simai_estimate: SimaiEstimate | None = None
    flow_report: FlowReport | None = None
    slowed_step_ns: int | None = None
    ports: Ports | None = None
    two_jobs: TwoJobs | None = None


NO_NETWORK = Links()


# -- the model -----------------------------------------------------------------------


class Throughput(NamedTuple):
    """The throughput of a run of a model; MFU and HFU are shares of the peak."""

    tokens_per_s: float
    """Tokens per second of all ranks."""
    tokens_per_s_per_gpu: float
    """Tokens per second of one rank."""
    model_tflops_per_gpu: float
    """TFLOP/s of the model on one rank."""
    mfu: float
    """MFU; attention is counted over the whole square of scores, 12 L h s a token, as papers do."""
    hfu: float
    """HFU."""
    mfu_whole_attention: float
    """MFU with attention counted over the whole square of scores."""
    mfu_causal_attention: float
    """MFU with attention counted over the half of the square that a causal mask leaves."""


class InferenceFigures(NamedTuple):
    """The figures of a pass forward of a model."""

    step: str
    """`prefill` or `decode`."""
    sequences: int
    """Sequences of all replicas."""
    tokens: int
    """Tokens of each sequence that the step runs."""
    context: int
    """Tokens of each sequence in the cache before."""
    kv_dtype: str
    """The type of the cache."""
    latency_ns: int
    """The time to the first token of prompts, or of a token of each sequence."""
    moved_bytes: int
    """Bytes that a rank of the busiest stage reads and writes in its memory."""
    hbm_share: float
    """These in the time of the step, as a share of what the memory can do."""

    @property
    def decodes(self) -> bool:
        """Whether each sequence gets its next token."""
        return self.context > 0


class ModelFigures(Struct, frozen=True, dict=True):
    """Figures of one run of a model."""

    model: Model
    """The model."""
    throughput: Throughput
    """Its throughput."""
    memory: tuple[StageMemory, ...]
    """The memory that each stage needs."""
    limit: int
    """The memory of a GPU, bytes."""
    trust: PublishedError | None
    """How near published steps are; None where a file has the times of ops."""
    inference: InferenceFigures | None = None
    """Those of an inference step; None of training."""

    @property
    def fullest(self) -> StageMemory:
        """The stage that needs most memory."""
        return max(self.memory, key=lambda memory: memory.needed)

    @property
    def fits(self) -> bool:
        return self.fullest.needed <= self.limit


class LayerImbalance(NamedTuple):
    """The loads of a layer's experts."""

    layer: int
    """The layer, from 0."""
    hot_position: int
    """The place in an expert group of the rank whose experts get most tokens."""
    max_over_mean: float
    """The tokens of that rank over the mean."""


class Imbalance(Struct, frozen=True):
    """The effects of uneven loads of experts; a field is None where it is not known, would change nothing, or
    is a parameter already.
    """

    hot_rank: int
    """The lowest of the ranks whose experts get most tokens."""
    max_over_mean: float
    """The tokens of that rank over the mean."""
    lost_ns: int | None
    """How much longer the step is than with even loads, ns."""
    dropped: float
    """The share of the tokens above the capacity."""
    balanced_ns: int | None
    """The step with even loads, ns."""
    capacity: tuple[float, int, float] | None
    """(factor, step ns, share of tokens dropped) of a run with a capacity."""
    placed_ns: int | None
    """The step with experts placed evenly, ns."""
    tokens: tuple[int, ...]
    """The tokens of the ranks of an expert group, by position; of all layers the mean, where they differ."""
    by_layer: tuple[LayerImbalance, ...] = ()
    """The layers with uneven loads, where layers differ."""


class FileMemory(Struct, frozen=True):
    """The bytes that a rank of one stage holds, approximately.

    What the loss needs, and what single ops need, is in no file.
    """

    stage: int
    """The stage."""
    weights: int
    """Bytes of weights."""
    gradients: int
    """Bytes of gradients."""
    optimizer: int
    """Bytes of optimizer state."""
    activations: int | None
    """Bytes of activations of layers that are not recomputed in full; None where no row gives their size, and
    then the total is a lower bound.
    """
    peak_chunks: int
    """How many chunks have their activations resident at the peak."""

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + (self.activations or 0)


class MemoryLane(NamedTuple):
    """The bytes that are resident over the step."""

    stage: int
    """The stage."""
    time_ns: array[int]
    """When each value begins, ns; the first is 0."""
    resident_bytes: array[int]
    """The bytes that are resident from each time to the next."""
    limit: int
    """The memory of a GPU, bytes; of a recording what its allocator holds at most."""
    name: str = ""
    """What the lane is called; "" for that of a stage."""

    def peak_bytes(self, edges: Sequence[int]) -> list[int]:
        """Returns the most bytes that are resident in each stretch edges[i]..edges[i+1], ns."""
        peaks = []
        for first, last in pairwise(edges):
            low = bisect_right(self.time_ns, first) - 1
            high = bisect_right(self.time_ns, max(last - 1, first))
            peaks.append(max(self.resident_bytes[low:high]))
        return peaks


class MemoryPeak(NamedTuple):
    """When a rank of a recording has most memory allocated in its step."""

    rank: int
    """The rank."""
    allocated_bytes: int
    """What is allocated then."""
    reserved_bytes: int
    """What the allocator holds of the device then."""
    most_reserved_bytes: int
    """The most that it holds in the step."""
    time_ns: int
    """When, from the start of the step, ns."""
    operation: str | None
    """The annotation or host operation that ran then; None where none did."""
    held_by: tuple[tuple[str, int], ...]
    """(host operation, bytes) of what was allocated in the recording and is held then, the most first."""


class RankProducts(NamedTuple):
    """The products of a rank in its step whose shapes were recorded."""

    rank: int
    """The rank."""
    flops: float
    """Their FLOPs; attention over the whole square of scores."""
    causal_flops: float
    """Their FLOPs without what causal masks leave out."""
    flops_by_precision: dict[str, float]
    """Their FLOPs by the type of the operands; "" where it is not stated."""
    ns: int
    """The time of their kernels, ns."""
    hfu: float
    """What they would take at the peaks of their types, as a share of the step."""
    hfu_causal_attention: float
    """The same without what causal masks leave out."""
    mfu: float
    """The same without what the backward pass makes again."""
    calls: int
    """How many there are."""
    flops_without_peak: float
    """Their FLOPs in types whose peak is not known, which HFU does not count."""
    without_shapes: int
    """How many kernels of products there are whose call states no shapes."""
    without_shapes_ns: int
    """The time of these, ns."""


class ProductLine(NamedTuple):
    """Equal products of all ranks."""

    operation: str
    """The operation of the host."""
    kind: str
    """`product`, `attention` or `convolution`."""
    shape: str
    """Their sizes."""
    precision: str
    """The type of their operands; "" where it is not stated."""
    calls: int
    """How many there are."""
    flops: float
    """Their FLOPs together; attention over the whole square of scores."""
    causal_flops: float
    """Their FLOPs without what a causal mask leaves out."""
    ns: int
    """The time of their kernels, ns."""
    tflops: float | None
    """TFLOP/s that they reach, a causal mask taken off; None without kernels."""
    peak_share: float | None
    """What that is of the peak of their type; None where either is not known."""
    expected_ns: int | None
    """What measured operations of the shape take alone on such a GPU; None where nobody measured any."""
    is_far_below: bool
    """Whether they take far longer than that, in a share of the step that matters."""


class ProductUse(NamedTuple):
    """How well a measured step uses its GPUs."""

    gpu: str
    """The GPU whose peaks count."""
    model: str | None
    """The model that is trained, where it was stated."""
    step_ns: int
    """The step."""
    ranks: tuple[RankProducts, ...]
    """By rank."""
    lines: tuple[ProductLine, ...]
    """Equal products together, what takes longest first."""
    throughput: Throughput | None
    """That of the model; None without one, or where its tokens are not known."""
    assumed: tuple[str, ...]
    """What was assumed of the model's step, or why it is not known."""
    reason: str
    """Why products, or some, are not known; "" where they are."""

    @property
    def hfu(self) -> float | None:
        """HFU of the products, the mean of the ranks; None without products."""
        return sum(rank.hfu for rank in self.ranks) / len(self.ranks) if self.lines else None

    @property
    def mfu(self) -> float | None:
        """MFU: that of the model, else of the products without what is recomputed; None without either."""
        if self.throughput is not None:
            return self.throughput.mfu
        return sum(rank.mfu for rank in self.ranks) / len(self.ranks) if self.lines else None


class ModelUse(Protocol):
    """What a run states about the model that it trains."""

    @property
    def model_figures(self) -> ModelFigures | None:
        """Throughput and memory."""

    @property
    def imbalance(self) -> Imbalance | None:
        """What uneven loads of experts cost."""

    @property
    def file_memory(self) -> Sequence[FileMemory]:
        """The memory by stage that follows from the rows of a file."""

    @property
    def memory_peaks(self) -> Sequence[MemoryPeak]:
        """The peaks of the ranks whose allocator was recorded."""

    @property
    def product_use(self) -> ProductUse | None:
        """How well a measured step uses its GPUs, where that was asked."""

    @property
    def memory_unknown(self) -> str:
        """Why the memory is not known, "" where `model_figures`, `file_memory` or `memory_peaks` has it."""

    @property
    def other_model(self) -> str:
        """How it differs from the model of its file, in words; "" where it does not."""

    @property
    def rescaled(self) -> str:
        """That its rows were made anew for other degrees, in words; "" where they are the file's."""

    def memory_lane(self, track_id: int) -> MemoryLane | None:
        """Returns the memory of a track over the step, None for a run of a file."""


class NoModel(NamedTuple):
    """The model of a run whose files state none: see `ModelUse`."""

    memory_unknown: str
    model_figures: ModelFigures | None = None
    imbalance: Imbalance | None = None
    file_memory: Sequence[FileMemory] = ()
    memory_peaks: Sequence[MemoryPeak] = ()
    product_use: ProductUse | None = None
    other_model: str = ""
    rescaled: str = ""

    def memory_lane(self, track_id: int) -> None:
        """Returns None: the memory is not known."""


# -- the layout and the loop ---------------------------------------------------------


class ClusterRun(Protocol):
    """A workload laid out on a cluster."""

    @property
    def workload(self) -> Workload:
        """The workload."""

    @property
    def layout(self) -> Layout:
        """Where its ranks are."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def has_dimensions(self) -> bool:
        """Whether prices depend on the dimensions of the cluster."""


class Simulated(ClusterRun, Protocol):
    """The sources of a simulated step and when each op ran. diagnostics: of the file, then of the run."""

    @property
    def timeline(self) -> Timeline: ...
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...


class MapRow(Struct, frozen=True):
    """Ranks with the same position inside their stages that are equal in every stage."""

    dp: RankSet
    """Their dp coordinates."""
    tp: RankSet
    """Their tp coordinates."""
    pairs: int
    """How many (dp, tp) pairs are in the row: all of them where `is_grid`."""
    classes: tuple[int, ...]
    """The rank class of the row's ranks by stage."""

    @property
    def is_grid(self) -> bool:
        """Whether the row has every dp coordinate with every tp coordinate."""
        return self.pairs == len(self.dp) * len(self.tp)


class StepWork(NamedTuple):
    """The work of a replica in a run's steps.

    counts: how often it has each block of a file whose blocks are unequal, else its sequences, or its
    micro-batches where sequences are not known. replicas: how many replicas do this work. tokens: of a
    sequence, 0 where they are not known.
    """

    counts: tuple[int, ...]
    replicas: int = 1
    tokens: int = 0


class StepShape:
    """The degrees of a step, None where they are not known, and the loop of the step."""

    simulated: Simulated | None = None
    """The sources of a simulated step, None of all others."""
    held_microbatches: Sequence[int] = ()
    """The most micro-batches whose activations each stage holds at once, empty where that is not known."""
    left_out = ""
    """The lines of its file that it goes without, "" where it has all."""
    other_model = ""
    """How its rows differ from the model of its file, in words; "" where they do not."""
    measured = False
    """Whether it was recorded: then nobody knows how much work it is."""

    def __init__(
        self,
        step_time_ns: int,
        tracks: Sequence[Track],
        degrees: tuple[int | None, int | None, int | None] = (None, None, None),
        microbatches: int = 0,
        steps: int = 1,
    ) -> None:
        self.step_time_ns, self.tracks = step_time_ns, tracks
        # microbatches: 0 where the step is not known to consist of them. steps: the times cover so many
        # steps.
        self.microbatches, self.steps = microbatches, steps
        self.tp, self.dp, self.pp = degrees

    @property
    def has_equal_microbatches(self) -> bool:
        """Whether the micro-batches are practically equal, so that a mean is meaningful."""
        return True

    @property
    def rank_map(self) -> Sequence[MapRow] | None:
        """Every rank by its position in the layout; None where each has a track of its own."""
        return None

    @property
    def scheduled_microbatches(self) -> int | None:
        """The micro-batches of the schedule, None where a trace does not give them."""
        return self.microbatches or None

    @property
    def work(self) -> StepWork | None:
        """How much work a replica does; None where the step is another kind of loop."""
        count = self.microbatches * self.steps
        return StepWork((count,)) if count else None

    @property
    def by_name(self) -> dict[str, int | None]:
        """The figures in which two runs may differ, by their names."""
        return {"tp": self.tp, "dp": self.dp, "pp": self.pp, "microbatches": self.scheduled_microbatches}

    def track_at(self, position: tuple[int, int, int]) -> Track | None:
        """Returns the track of the rank at (stage, dp, tp) of the layout; None where it is missing."""
        return next((track for track in self.tracks if track.position == position), None)


# -- the recording -------------------------------------------------------------------


class MissingPartners(Protocol):
    """Communication that has no partner in a trace."""

    def waiting(self) -> tuple[int, int, int]:
        """Returns (calls, the rank where most time may be waiting, how much of it, ns)."""
        ...

    def missing_words(self) -> str:
        """Returns which ranks the partners are, in words."""
        ...


class Recording(Protocol):
    """The run of the files in which times were measured, as they are or replayed."""

    @property
    def run(self) -> MeasuredRun:
        """The run with these times."""

    @property
    def together(self) -> bool:
        """Whether its ranks have a common clock, so that one can be seen to wait for another."""

    @property
    def is_replayed(self) -> bool:
        """Whether it is a replay."""

    @property
    def changes(self) -> Sequence[str]:
        """What its replay changes, in words; none of the run as measured."""

    @property
    def partners(self) -> MissingPartners:
        """Its communication without a partner."""

    @property
    def has_several_steps(self) -> bool:
        """Whether its files have several steps, whichever it shows."""

    @property
    def measured_step_ns(self) -> int:
        """The step as measured, ns."""

    @property
    def as_read(self) -> Any:
        """The run as measured."""

    @property
    def base(self) -> Any:
        """The replay that what-if starts from: the run itself if it is one, else a replay without changes."""
