"""Lower bounds of the step time of a model, whatever its schedule does: found without a run.

A rank does all compute of its stage one op after another, and waits for each collective that compute waits
for. Before its first micro-batch reaches a stage, the stages before it have run that forward, and after its
last gradient those stages still have theirs to compute; then come its optimizer and its communication, unless
that overlaps. Of the schedule only the placement of chunks counts, and whether weight gradients are delayed.
What ZeRO 2 and 3 send for a micro-batch runs one after another on its stream, which takes its time, too.

Layers of one kind take the same time on every stage, so one of each kind is priced for all layouts that split
it equally. Of uneven experts those of the fullest rank count, and of jitter the shortest that it can make.
What is not certain to take its time counts as nothing: where transmissions share ports, where groups are
placed differently from stage to stage, where rows have factors.
"""

from __future__ import annotations

from simcore.analysis.fitting import find_training_schedule
from simcore.cluster import Cluster, ClusterParameters, choose_cluster, group_shape
from simcore.collectives.exact import scaled
from simcore.diagnostics import UsageError
from simcore.engine.finish import part_times
from simcore.folding.graph import is_aligned
from simcore.layout import Layout
from simcore.model.costs import NOTHING, CellCollective, Costs, Row, nanoseconds
from simcore.model.gpu import find_gpu
from simcore.model.maker import ModelMaker
from simcore.model.megatron import MegatronRows
from simcore.model.sharding import (
    Unit,
    UnitSize,
    is_sharded,
    sharded_rows,
    stage_parameters,
    unit_sizes,
    whole_parameters,
)
from simcore.model.training import Training
from simcore.networks import GroupCollective, Network, Sharing
from simcore.program.blocks import is_embedding
from simcore.program.building import plan_program
from simcore.program.ops import (
    COMPUTE,
    AnyCost,
    CollectiveCost,
    ComputeCost,
    OverlapCost,
    PartCost,
    SequenceCost,
    SplitCost,
)
from simcore.program.overrides import parse_factor
from simcore.program.schedules import SCHEDULES
from simcore.program.stage_builder import StageBuilder
from simcore.records import NamedTuple, Struct, field, replace
from simcore.setup import Setup
from simcore.sweeping.space import Candidate
from simcore.sweeping.step_time import find_idle_streams, find_merged_streams
from simcore.workload import Workload
from simcore.workload.model import GroupKind, Phase

# Cached kinds of layout: those next to each other in a sweep.
_MAX_CACHED = 512
# The sum of twelve uniforms is at most so far off its mean (`simcore.model.hashed`).
_LARGEST_NORMAL = 6
_PARTS = ("fwd", "bwd", "ig", "wg")


class _Times(NamedTuple):
    """The times of a micro-batch, ns: forward, backward, and the input and weight gradients of that."""

    fwd: int
    bwd: int
    ig: int
    wg: int

    def __add__(self, other: object) -> _Times:
        assert isinstance(other, _Times)
        return _Times(*(mine + its for mine, its in zip(self, other, strict=True)))

    def times(self, count: int) -> _Times:
        """Returns the times of `count` of them."""
        return _Times(*(count * mine for mine in self))


_NOTHING = _Times(0, 0, 0, 0)


class _Units(Struct, frozen=True):
    """The times of a micro-batch in the parts that stages consist of."""

    embedding: _Times
    """The embedding."""
    layers: tuple[_Times, ...]
    """A layer of each kind."""
    head: _Times
    """The final rows and the loss."""


class _Edge(NamedTuple):
    """The end of a stage's step, ns."""

    reduce: int
    """The reduction of its gradients."""
    behind: int
    """All that follows."""


class _ShardTraffic(Struct, frozen=True):
    """The times of what ZeRO 2 and 3 send for a micro-batch of a chunk."""

    streams: dict[GroupKind, _Times] = field(default_factory=dict)
    """The collectives of each group, one after another."""
    waited: _Times = _NOTHING
    """The collectives that compute waits for: the weights of the first unit and of the last."""
    last: int = 0
    """The gradients of its first unit, after all compute, ns."""


_NOT_SHARED = _ShardTraffic()


class _Ends(NamedTuple):
    """The end of the step of each stage, and the traffic for a micro-batch of each of its chunks."""

    edges: list[_Edge]
    shared: list[list[_ShardTraffic]]


class _Content(NamedTuple):
    """What a chunk consists of."""

    layers: tuple[int, ...]
    """How many layers are of each kind."""
    begins: bool
    """Whether it has the embedding."""
    ends: bool
    """Whether it has the output layer."""
    shared: _ShardTraffic
    """What ZeRO 2 and 3 send for it."""

    def __hash__(self) -> int:
        return hash(self[:3])


class _Run(NamedTuple):
    """Consecutive stages with the same chunks and the same end of a step."""

    stages: int
    """How many stages there are."""
    contents: tuple[_Content, ...]
    """Their chunks."""
    edge: _Edge
    """The end of their step."""


class _RankShapes(Struct):
    """The placement of ranks on the network, with the prices that are known."""

    layout: Layout
    cluster: Cluster
    network: Network
    prices: dict[object, int]
    """ns by kind of group, collective, bytes and scale."""
    aligned: bool
    """Whether all groups of a kind are placed equally; prices are known only then."""


class Bounds:
    """Lower bounds of the step times of one model."""

    def __init__(self, workload: Workload) -> None:
        maker = workload.maker
        assert isinstance(maker, ModelMaker)
        self.workload = workload
        self.maker = maker
        model = maker.model
        assert model is not None
        # One layer of each kind is enough.
        layers = min(model.layers, model.moe.dense_layers + 1 if model.moe else 1)
        few_layers = replace(model, layers=layers)
        self._kinds: tuple[int, ...] = (0, 1)
        if model.kinds:
            self._kinds = tuple(sorted(set(model.pattern)))
            few_layers = replace(model, layers=len(self._kinds), pattern=self._kinds)
        self._few_layers_maker = ModelMaker(maker.path, few_layers)
        self._units: dict[object, _Units] = {}
        self._ends_of: dict[object, _Ends] = {}
        self._runs: dict[object, tuple[_Ends, list[_Run]]] = {}
        self._shapes: dict[object, _RankShapes] = {}

    def find_bound_ns(self, candidate: Candidate, training: Training) -> int:
        """Returns a step time that no run of a candidate is below, ns; 0 where nothing is certain."""
        shortest = _find_shortest(candidate)
        if shortest is None:
            return 0
        setup = Setup(self.workload, shortest.parameters)
        parameters = setup.parameters
        if setup.rules.network.needs_all_ranks or training.layer_loads:
            return 0
        units = self._units_of(setup, training)
        rules = SCHEDULES.get(find_training_schedule(training, parameters.schedule))
        if rules is None:
            return 0
        splits, count = rules.splits_backward, training.microbatches
        ends = self._ends(setup, training)
        is_both_ways = training.placement == "both-ways"
        runs = self._find_equal_stages(training, ends)
        times = {content: _chunk_times(content, units) for run in runs for content in run.contents}

        def micro(chunk: _Times) -> int:
            return chunk.fwd + (chunk.ig + chunk.wg if splits else chunk.bwd)

        least = filled = drained = 0
        for run in runs:
            chunks = [times[content] for content in run.contents]
            # With a placement both ways each micro-batch goes through one of two chunks: the shorter one
            # counts.
            micro_batch = (
                _Times(*map(min, *chunks)) if is_both_ways else _Times(*map(sum, zip(*chunks, strict=True)))
            )
            forward, backward = chunks[0].fwd, chunks[0].ig if splits else chunks[0].bwd
            if not is_both_ways:
                # Of equal stages the last one starts and ends last.
                filled += (run.stages - 1) * forward
                drained += (run.stages - 1) * backward
            reduce, behind = run.edge
            # Whichever chunk comes last, what is sent after it comes after all compute.
            behind_compute = max(reduce, min(chunk.shared.last for chunk in run.contents)) + behind
            least = max(least, filled + count * micro(micro_batch) + behind_compute)
            for kind in run.contents[0].shared.streams:
                each = [micro(chunk.shared.streams.get(kind, _NOTHING)) for chunk in run.contents]
                least = max(least, filled + count * (min(each) if is_both_ways else sum(each)) + behind)
            until_last = count * (micro_batch.fwd + (micro_batch.ig if splits else micro_batch.bwd))
            least = max(least, filled + until_last + drained + (0 if splits else sum(runs[0].edge)))
            if not is_both_ways:
                filled += forward
                drained += backward
        return least

    # -- stages ----------------------------------------------------------------------

    def _find_equal_stages(self, training: Training, ends: _Ends) -> list[_Run]:
        """Returns the stages, consecutive equal ones as one run."""
        key = (id(ends), training.placement == "both-ways")
        cached = self._runs.get(key)
        if cached is not None:
            return cached[1]
        is_both_ways, runs = key[1], list[_Run]()
        for stage in range(training.pp):
            contents = []
            for chunk in training.stage_chunks:
                kinds = dict(training.kinds_of(stage, chunk))
                position = training.position(stage, chunk)
                contents.append(_Content(
                    tuple(kinds.get(kind, 0) for kind in self._kinds), position == 0 and not is_both_ways,
                    training.is_last(stage, chunk) and not is_both_ways, ends.shared[stage][chunk],
                ))  # fmt: skip
            if runs and runs[-1][1:] == (tuple(contents), ends.edges[stage]):
                runs[-1] = runs[-1]._replace(stages=runs[-1].stages + 1)
            else:
                runs.append(_Run(1, tuple(contents), ends.edges[stage]))
        # Stored with the ends whose id is the key: a freed id would become that of another object.
        _cache(self._runs, key, (ends, runs))
        return runs

    def _ends(self, setup: Setup, training: Training) -> _Ends:
        """Returns the end of each stage's step, and what is sent for ZeRO 2 and 3."""
        parameters = setup.parameters
        key = (
            self._placement_key(setup, training), training.chunks, training.placement,
            training.position_layers, training.zero, training.grad_bytes, training.sequence_parallel,
            parameters.overlap_grad_reduce, parameters.overlap_param_gather, parameters.comm_scale,
            parameters.compute_scale, training.prefetch, training.reshard,
        )  # fmt: skip
        ends = self._ends_of.get(key)
        if ends is None:
            shapes = self._find_shapes(setup, training)
            ends = _Ends(
                self._build_edges(shapes, setup, training), self._build_shard_traffic(shapes, setup, training)
            )
            _cache(self._ends_of, key, ends)
        return ends

    def _build_edges(self, shapes: _RankShapes, setup: Setup, training: Training) -> list[_Edge]:
        """Returns the end of each stage's step, without what overlaps."""
        parameters = setup.parameters
        overlaps = parameters.overlap_grad_reduce or parameters.overlap_param_gather or training.keeps_weights
        sends = shapes.aligned and not overlaps and training.placement != "both-ways"
        rows = MegatronRows(Costs(find_gpu(training.gpu), training))
        edge_by_parameters: dict[object, _Edge] = {}
        edges = []
        for stage in range(training.pp):
            parameter_counts = stage_parameters(training, stage), whole_parameters(training, stage)
            if parameter_counts not in edge_by_parameters:
                compute = 0
                stream_ns: dict[tuple[bool, GroupKind], int] = {}
                for row in rows.prologue(*parameter_counts):
                    compute += sum(
                        scaled(nanoseconds(ops), parameters.compute_scale) for ops in row.ops if ops
                    )
                    if sends and row.wg is not None:
                        key = row.wg.collective == "ALLGATHER", row.wg.group
                        ns = self._collective_ns(shapes, parameters.comm_scale, row.wg)
                        stream_ns[key] = stream_ns.get(key, 0) + ns
                # Each stream on its own: all reductions come before the optimizer and all gathers after it.
                reduce, gather = (
                    max((ns for key, ns in stream_ns.items() if key[0] is gathers), default=0)
                    for gathers in (False, True)
                )
                edge_by_parameters[parameter_counts] = _Edge(reduce, compute + gather)
            edges.append(edge_by_parameters[parameter_counts])
        return edges

    def _build_shard_traffic(
        self, shapes: _RankShapes, setup: Setup, training: Training
    ) -> list[list[_ShardTraffic]]:
        """Returns what is sent for each chunk of each stage."""
        chunks = training.stage_chunks
        if not shapes.aligned or not is_sharded(training):
            return [[_NOT_SHARED] * len(chunks)] * training.pp
        by_sizes: dict[tuple[UnitSize, ...], _ShardTraffic] = {}

        def build(sizes: tuple[UnitSize, ...]) -> _ShardTraffic:
            if not sizes:
                # A virtual stage may be empty.
                return _NOT_SHARED
            sharded = sharded_rows(training, [Unit(size, [Row("", NOTHING)]) for size in sizes])

            def ns_of(row: Row, phase: Phase) -> int:
                collective = getattr(row, phase)
                return (
                    0
                    if collective is None
                    else self._collective_ns(shapes, setup.parameters.comm_scale, collective)
                )

            streams: dict[GroupKind, _Times] = {}
            for row in sharded.rows:
                kinds = {
                    collective.group for collective in (row.fwd, row.ig, row.wg) if collective is not None
                }
                for kind in kinds:
                    fwd, ig, wg = ns_of(row, "fwd"), ns_of(row, "ig"), ns_of(row, "wg")
                    streams[kind] = streams.get(kind, _NOTHING) + _Times(fwd, ig + wg, ig, wg)
            # The weights of the first unit are gathered when it is to run, those of the last one when its
            # backward is.
            begins: dict[Phase, range] = {"fwd": sharded.unit_ranges[0], "ig": sharded.unit_ranges[-1]}
            waits = {
                phase: max(
                    (ns_of(sharded.rows[row], phase) for at in unit
                     for row in sharded.waits.get((phase, at), ())),
                    default=0,
                )
                for phase, unit in begins.items()
            }  # fmt: skip
            first = sharded.rows[: sharded.unit_ranges[0].start]
            last = max((ns_of(row, "wg") for row in first), default=0)
            return _ShardTraffic(streams, _Times(waits["fwd"], waits["ig"], waits["ig"], 0), last)

        shared = []
        for stage in range(training.pp):
            of_stage = []
            for chunk in chunks:
                sizes = tuple(unit_sizes(training, stage, chunk))
                if sizes not in by_sizes:
                    by_sizes[sizes] = build(sizes)
                of_stage.append(by_sizes[sizes])
            shared.append(of_stage)
        return shared

    def _collective_ns(self, shapes: _RankShapes, scale: float, cell: CellCollective) -> int:
        return self._price(shapes, scale, cell.group, cell.collective, cell.bytes)

    def _price(self, shapes: _RankShapes, scale: float, kind: GroupKind, collective: str, size: int) -> int:
        if not size or not shapes.aligned or shapes.layout.group_size(kind) == 1:
            return 0
        key = (kind, collective, size, scale)
        if key not in shapes.prices:
            shape = group_shape(shapes.cluster, next(shapes.layout.groups(kind)))
            group_collective = GroupCollective(kind, shape, (), collective, size)
            shapes.prices[key] = scaled(shapes.network.collective_ns(group_collective), scale)
        return shapes.prices[key]

    def _placement_key(self, setup: Setup, training: Training) -> object:
        """Returns the parameters that decide where ranks are and what they send."""
        parameters = setup.parameters
        return (
            training.tp, training.cp, training.ep, training.dp, training.pp, training.shard_size,
            training.etp, training.cp_inner, training.ep_node, training.gpu, parameters.cluster,
            parameters.dim, parameters.system, setup.network_name, parameters.rank_order, parameters.splits,
            parameters.active_chunks, parameters.endpoint_delay, parameters.local_mem_bw,
            parameters.algorithm, parameters.collective_optimization, parameters.nvlink, parameters.nic,
            parameters.nics_per_server, parameters.gpus_per_server, parameters.gpu_type, parameters.nic_type,
            parameters.flow_model, parameters.send_latency, parameters.ecmp, parameters.nvls, parameters.pxn,
            parameters.congestion,
        )  # fmt: skip

    def _find_shapes(self, setup: Setup, training: Training) -> _RankShapes:
        """Returns the placement of the ranks of a run."""
        key = self._placement_key(setup, training)
        shapes = self._shapes.get(key)
        if shapes is None:
            gpu = find_gpu(training.gpu)
            gpu_network = None
            cluster_parameters = setup.parameters.part(ClusterParameters)
            if not cluster_parameters.dim and cluster_parameters.cluster is None:
                gpu_network = gpu.network_of(training.world)
            layout = Layout(
                training.tp, training.ep, training.dp * training.cp, training.pp, setup.parameters.rank_order,
                training.cp, training.shard_size, training.etp == 1, training.cp_inner, training.ep_node,
            )  # fmt: skip
            model = setup.rules.network
            if model.make_cluster:
                cluster = model.make_cluster(setup.network, layout)
            else:
                cluster = choose_cluster(cluster_parameters, gpu_network).cluster(training.world)
            network = model.open(setup.network, layout, cluster)
            aligned = is_aligned(layout, cluster) and not isinstance(network, Sharing)
            shapes = _RankShapes(layout, cluster, network, {}, aligned)
            _cache(self._shapes, key, shapes)
        return shapes

    # -- units -----------------------------------------------------------------------

    def _units_of(self, setup: Setup, training: Training) -> _Units:
        """Returns the times of one layer of each kind, and of the other parts of a stage, on a rank of stage
        0.

        All ranks of the world are replicas of one stage here: compute waits for the slowest of so many.
        """
        parameters = setup.parameters
        aligned = self._find_shapes(setup, training).aligned
        if parameters.rank_order != Layout(1, 1, 1, 1).rank_order:
            aligned = False
        replicas = training.dp * training.pp
        # A single micro-batch adds its gradients to none, as those of ZeRO 2 and 3 do.
        few = 2 if training.zero < 2 and training.microbatches > 1 else 1
        one_stage = replace(
            parameters, pp=None, schedule=None, virtual_stages=None, stage_layers=None, pipeline_layout=None,
            account_for_embedding=False, account_for_loss=False, zero=None, steps=1,
            world=training.tp * training.cp * replicas, microbatches=None,
            global_batch=training.microbatch_size * replicas * few, overlap_grad_reduce=False,
            overlap_param_gather=False, overlap_fwd_bwd=False, pp_scatter=None, prefetch=None,
            engine_preset=training.engine, reshard_after_forward=None, shard_size=None, bucket_size=None,
            offload=None, offload_layers=None,
            # Not every layer runs again, or all do.
            recompute="none" if parameters.recompute_layers else parameters.recompute, recompute_layers=None,
        )  # fmt: skip
        key = (replace(one_stage, global_batch=None, memory_limit=None), few, parameters.overlap_fwd_bwd)
        units = self._units.get(key)
        if units is None or not aligned:
            of_one = Setup(self._few_layers_maker.empty_workload(), one_stage)
            hot = training.loads.hot if training.loads is not None else 0
            units = self._price_units(of_one, aligned and not parameters.overlap_fwd_bwd, hot)
            if aligned:
                _cache(self._units, key, units)
        return units

    def _price_units(self, setup: Setup, sends: bool, expert: int) -> _Units:
        """Returns the times of a rank's parts. expert: its index in its expert group."""
        workload, layout, scale = setup.workload, setup.layout, setup.parameters.comm_scale
        shapes = _RankShapes(layout, setup.cluster, setup.open_network(), {}, sends)
        plan = plan_program(workload, layout, setup.schedule).plan
        plan.merged_streams = find_merged_streams(workload, setup.schedule)
        plan.idle_streams = find_idle_streams(workload)
        builder = StageBuilder(plan, 0)

        def cost_ns(cost: AnyCost) -> int:
            if isinstance(cost, ComputeCost):
                return scaled(cost.ns_of(expert), setup.parameters.compute_scale * cost.scale)
            if isinstance(cost, CollectiveCost):
                full_ns = self._price(shapes, scale, cost.group, cost.collective, cost.priced_bytes)
                return cost.share_of(full_ns)
            if isinstance(cost, PartCost):
                # On idle streams: other work on them makes it longer.
                _, times_of = part_times(cost, cost_ns)
                return times_of[0][0]
            if isinstance(cost, SplitCost):
                return cost.ns_of(cost_ns)
            assert isinstance(cost, SequenceCost | OverlapCost)
            ns = sum(cost_ns(part_cost) * count for part_cost, count in cost.costs)
            return max(ns, cost_ns(cost.collective)) if isinstance(cost, OverlapCost) else ns

        def times(rows: tuple[int, ...]) -> _Times:
            sums = []
            for part in _PARTS:
                ops = builder.part_ops(part, rows).ops
                table = [cost for _, cost in plan.costs]
                columns = zip(ops.stream, ops.blocking, ops.cost, strict=True)
                waited = (cost for stream, blocks, cost in columns if blocks or stream == COMPUTE)
                sums.append(sum(cost_ns(table[cost]) for cost in waited))
            return _Times(*sums)

        assert workload.stages is not None
        chunk, loss = workload.stages[0].chunks[0], workload.stages[0].loss
        names = workload.name
        embedding = tuple(row for row in chunk if is_embedding(names[row]))
        final = tuple(row for row in chunk if names[row].startswith("final_"))
        layers = [row for row in chunk if row not in embedding and row not in final]
        few_rows = self._few_layers_maker.make_rows(setup.model)
        model, rows_of_kind = few_rows.training.model, MegatronRows(Costs(few_rows.gpu, few_rows.training))
        by_kind: dict[int, _Times] = {}
        position = 0
        for kind in map(model.kind_of, range(model.layers)):
            end = position + rows_of_kind.count_layer_rows(kind)
            if kind not in by_kind:
                by_kind[kind] = times(tuple(layers[position:end]))
            position = end
        assert position == len(layers)
        head = times(final) + (times(loss) if loss else _NOTHING)
        of_kinds = tuple(by_kind.get(kind, _NOTHING) for kind in self._kinds)
        return _Units(times(embedding), of_kinds, head)


def _find_shortest(candidate: Candidate) -> Candidate | None:
    """Returns a candidate that takes no longer: without jitter and slow ranks or links, each duration
    as short as these can make it. None where none is known.
    """
    parameters = candidate.parameters
    try:
        ranks = [parse_factor(text, "", "")[1] for text in parameters.slow_rank]
        links = [parse_factor(text, "", "")[1] for text in parameters.slow_link]
    except UsageError:
        # The run itself says so.
        return None
    factor = 1 - _LARGEST_NORMAL * parameters.jitter
    if parameters.time_scale or parameters.layer_scale or parameters.seq_imbalance:
        return None
    if parameters.prefill is not None or parameters.decode is not None:
        return None
    if factor <= 0 or max(links, default=1.0) > 1:
        return None
    if not (parameters.jitter or ranks or links):
        return candidate
    # A little less, as factors are multiplied in another order.
    factor *= 1 - 1e-9
    of_shortest = replace(
        parameters, jitter=0.0, slow_rank=(), slow_link=(), comm_scale=parameters.comm_scale * factor,
        compute_scale=parameters.compute_scale * factor * min([1.0, *ranks]),
    )  # fmt: skip
    return replace(candidate, parameters=of_shortest)


def _chunk_times(content: _Content, units: _Units) -> _Times:
    """Returns the times of a micro-batch in a chunk."""
    waited = content.shared.waited
    for times, count in zip(units.layers, content.layers, strict=True):
        waited = waited + times.times(count)
    if content.begins:
        waited = waited + units.embedding
    return waited + units.head if content.ends else waited


def _cache(entries: dict, key: object, value: object) -> None:  # type: ignore[type-arg]
    entries[key] = value
    if len(entries) > _MAX_CACHED:
        del entries[next(iter(entries))]
