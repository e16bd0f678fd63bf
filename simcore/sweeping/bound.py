"""What the step of a model takes at least, whatever its schedule does: found without a run.

A rank does all compute of its stage one after another, and waits for each collective that compute waits for.
Before its first micro-batch comes to a stage, the stages before it have forwarded that, and behind its last
gradient those stages have theirs to make; then come its optimizer and what is sent for it, unless that
overlaps. Of the schedule only the placement of chunks is asked, and whether weight gradients are put off.

What ZeRO 2 and 3 send for a micro-batch runs one after another on its stream, which takes its time too.

Layers of one kind take the same on every stage, so that one of each kind is priced for all layouts that cut
it alike. What is not certain to take its time counts as nothing: where transmissions share ports, where
groups lie differently from stage to stage, where single ranks or ops have factors.
"""

from __future__ import annotations

from simcore.analysis.fitting import schedule_of
from simcore.cluster import AskedCluster, Cluster, choose_cluster, group_shape
from simcore.collectives.exact import scaled
from simcore.engine.finish import part_times
from simcore.folding.graph import is_aligned
from simcore.layout import Layout
from simcore.model.costs import NOTHING, Costs, Row, Sent, nanoseconds
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
from simcore.networks import Network, PlacedCollective, Sharing
from simcore.program.blocks import is_embedding
from simcore.program.building import planned
from simcore.program.ops import (
    COMPUTE,
    AnyCost,
    BesideCost,
    CollectiveCost,
    ComputeCost,
    JoinedCost,
    PartCost,
)
from simcore.program.schedules import SCHEDULES
from simcore.program.stage_builder import StageBuilder
from simcore.records import NamedTuple, Struct, field, replace
from simcore.setup import Setup
from simcore.sweeping.space import Candidate
from simcore.sweeping.step_time import beside_streams, joined_streams
from simcore.workload import Workload
from simcore.workload.model import GroupKind, Phase

# Kinds of layout that are kept: those next to each other in a sweep.
_KEPT = 512
_PARTS = ("fwd", "bwd", "ig", "wg")


class _Times(NamedTuple):
    """ns of forward, backward, and its input and weight gradients."""

    fwd: int
    bwd: int
    ig: int
    wg: int

    def __add__(self, other: object) -> _Times:
        assert isinstance(other, _Times)
        return _Times(*(mine + its for mine, its in zip(self, other, strict=True)))

    def times(self, count: int) -> _Times:
        """So many of them."""
        return _Times(*(count * mine for mine in self))


_NOTHING = _Times(0, 0, 0, 0)


class _Units(Struct, frozen=True):
    """What a micro-batch takes in the parts that stages are made of. layers: dense, with experts."""

    embedding: _Times
    layers: tuple[_Times, _Times]
    head: _Times


class _Edge(NamedTuple):
    """ns of the end of a stage's step: of what adds its gradients up, and of all that comes after."""

    reduce: int
    behind: int


class _Shared(Struct, frozen=True):
    """What ZeRO 2 and 3 send for a micro-batch of a chunk. streams: of each group, one after another. waited:
    what compute waits for, the weights of the first unit and of the last. last: of its first unit's
    gradients, behind all compute.
    """

    streams: dict[GroupKind, _Times] = field(default_factory=dict)
    waited: _Times = _NOTHING
    last: int = 0


_NOT_SHARED = _Shared()


class _Ends(NamedTuple):
    """Of each stage the end of its step, and what is sent for a micro-batch of each of its chunks."""

    edges: list[_Edge]
    shared: list[list[_Shared]]


class _Content(NamedTuple):
    """What a chunk has: layers, dense and with experts, and whether the embedding and the output layer."""

    layers: tuple[int, int]
    begins: bool
    ends: bool
    shared: _Shared

    def __hash__(self) -> int:
        return hash(self[:3])


class _Run(NamedTuple):
    """So many stages, one after another, with the same chunks and the same end of a step."""

    stages: int
    contents: tuple[_Content, ...]
    edge: _Edge


class _Place(Struct):
    """Where ranks are. shapes: of the first group of each kind; None where groups lie differently."""

    layout: Layout
    cluster: Cluster
    network: Network
    prices: dict[object, int]
    aligned: bool


class Bounds:
    """Lower bounds of the step times of one model."""

    def __init__(self, workload: Workload) -> None:
        maker = workload.maker
        assert isinstance(maker, ModelMaker)
        self.workload = workload
        self.maker = maker
        model = maker.model
        assert model is not None
        # A layer of each kind is enough.
        layers = min(model.layers, model.moe.dense_layers + 1 if model.moe else 1)
        self._few = ModelMaker(maker.path, replace(model, layers=layers))
        self._units: dict[object, _Units] = {}
        self._ends_of: dict[object, _Ends] = {}
        self._runs: dict[object, tuple[_Ends, list[_Run]]] = {}
        self._places: dict[object, _Place] = {}

    def at_least_ns(self, candidate: Candidate, training: Training) -> int:
        """No run of a candidate has a shorter step; 0 where nothing is certain."""
        setup = Setup(self.workload, candidate.parameters)
        parameters = setup.parameters
        if (
            parameters.jitter or parameters.time_scale or parameters.layer_scale or parameters.slow_rank
            or parameters.slow_link or parameters.expert_imbalance or setup.rules.network.unfolded
        ):  # fmt: skip
            return 0
        units = self._units_of(setup, training)
        rules = SCHEDULES.get(schedule_of(training, parameters.schedule))
        if rules is None:
            return 0
        splits, count = rules.splits_backward, training.microbatches
        ends = self._ends(setup, training)
        both = training.placement == "both-ways"
        runs = self._runs_of(training, ends)
        times = {content: _chunk_times(content, units) for run in runs for content in run.contents}

        def micro(chunk: _Times) -> int:
            return chunk.fwd + (chunk.ig + chunk.wg if splits else chunk.bwd)

        least = filled = drained = 0
        for run in runs:
            chunks = [times[content] for content in run.contents]
            # Both ways each micro-batch goes through one of two chunks, whichever takes less.
            micro_batch = _Times(*map(min, *chunks)) if both else _Times(*map(sum, zip(*chunks, strict=True)))
            forward, backward = chunks[0].fwd, chunks[0].ig if splits else chunks[0].bwd
            if not both:
                # Of stages that are alike the last one begins last, and so it is done.
                filled += (run.stages - 1) * forward
                drained += (run.stages - 1) * backward
            reduce, behind = run.edge
            # Whatever chunk comes last, what is sent behind it is behind all compute.
            behind_compute = max(reduce, min(chunk.shared.last for chunk in run.contents)) + behind
            least = max(least, filled + count * micro(micro_batch) + behind_compute)
            for kind in run.contents[0].shared.streams:
                each = [micro(chunk.shared.streams.get(kind, _NOTHING)) for chunk in run.contents]
                least = max(least, filled + count * (min(each) if both else sum(each)) + behind)
            until_last = count * (micro_batch.fwd + (micro_batch.ig if splits else micro_batch.bwd))
            least = max(least, filled + until_last + drained + (0 if splits else sum(runs[0].edge)))
            if not both:
                filled += forward
                drained += backward
        return least

    # -- stages ----------------------------------------------------------------------

    def _runs_of(self, training: Training, ends: _Ends) -> list[_Run]:
        """The stages, those that are alike and stand together as one."""
        key = (id(ends), training.placement == "both-ways")
        known = self._runs.get(key)
        if known is not None:
            return known[1]
        both, runs = key[1], list[_Run]()
        for stage in range(training.pp):
            contents = []
            for chunk in training.stage_chunks:
                kinds = dict(training.kinds_of(stage, chunk))
                position = training.position(stage, chunk)
                contents.append(_Content(
                    (kinds.get(False, 0), kinds.get(True, 0)), position == 0 and not both,
                    training.is_last(stage, chunk) and not both, ends.shared[stage][chunk],
                ))  # fmt: skip
            if runs and runs[-1][1:] == (tuple(contents), ends.edges[stage]):
                runs[-1] = runs[-1]._replace(stages=runs[-1].stages + 1)
            else:
                runs.append(_Run(1, tuple(contents), ends.edges[stage]))
        # With what it is of, whose id is else that of another.
        _keep(self._runs, key, (ends, runs))
        return runs

    def _ends(self, setup: Setup, training: Training) -> _Ends:
        """What each stage does at the end of its step, and what is sent for ZeRO 2 and 3."""
        parameters = setup.parameters
        key = (
            self._where(setup, training), training.chunks, training.placement, training.stage_layers,
            training.zero, training.grad_bytes, training.sequence_parallel, parameters.overlap_grad_reduce,
            parameters.overlap_param_gather, parameters.comm_scale, parameters.compute_scale,
            training.prefetch, training.reshard,
        )  # fmt: skip
        ends = self._ends_of.get(key)
        if ends is None:
            where = self._place_of(setup, training)
            ends = _Ends(self._edges_made(where, setup, training), self._shared_made(where, setup, training))
            _keep(self._ends_of, key, ends)
        return ends

    def _edges_made(self, where: _Place, setup: Setup, training: Training) -> list[_Edge]:
        """The end of each stage's step, as far as nothing of it overlaps."""
        parameters = setup.parameters
        overlaps = parameters.overlap_grad_reduce or parameters.overlap_param_gather
        sends = where.aligned and not overlaps and training.placement != "both-ways"
        rows = MegatronRows(Costs(find_gpu(training.gpu), training))
        known: dict[object, _Edge] = {}
        edges = []
        for stage in range(training.pp):
            held = stage_parameters(training, stage), whole_parameters(training, stage)
            if held not in known:
                compute = 0
                sent: dict[tuple[bool, GroupKind], int] = {}
                for row in rows.prologue(*held):
                    compute += sum(
                        scaled(nanoseconds(ops), parameters.compute_scale) for ops in row.ops if ops
                    )
                    if sends and row.wg is not None:
                        key = row.wg.collective == "ALLGATHER", row.wg.group
                        ns = self._sent_ns(where, parameters.comm_scale, row.wg)
                        sent[key] = sent.get(key, 0) + ns
                # Each stream by itself, all reductions before the optimizer and all gathers behind it.
                reduce, gather = (
                    max((ns for key, ns in sent.items() if key[0] is gathers), default=0)
                    for gathers in (False, True)
                )
                known[held] = _Edge(reduce, compute + gather)
            edges.append(known[held])
        return edges

    def _shared_made(self, where: _Place, setup: Setup, training: Training) -> list[list[_Shared]]:
        """What is sent for each chunk of each stage."""
        chunks = training.stage_chunks
        if not where.aligned or not is_sharded(training):
            return [[_NOT_SHARED] * len(chunks)] * training.pp
        known: dict[tuple[UnitSize, ...], _Shared] = {}

        def made(sizes: tuple[UnitSize, ...]) -> _Shared:
            sharded = sharded_rows(training, [Unit(size, [Row("", NOTHING)]) for size in sizes])

            def ns_of(row: Row, phase: Phase) -> int:
                sent = getattr(row, phase)
                return 0 if sent is None else self._sent_ns(where, setup.parameters.comm_scale, sent)

            streams: dict[GroupKind, _Times] = {}
            for row in sharded.rows:
                kinds = {sent.group for sent in (row.fwd, row.ig, row.wg) if sent is not None}
                for kind in kinds:
                    fwd, ig, wg = ns_of(row, "fwd"), ns_of(row, "ig"), ns_of(row, "wg")
                    streams[kind] = streams.get(kind, _NOTHING) + _Times(fwd, ig + wg, ig, wg)
            # The first unit's weights are gathered when it is to run; so are the last one's, backward.
            begins: dict[Phase, range] = {"fwd": sharded.own[0], "ig": sharded.own[-1]}
            waits = {
                phase: max(
                    (ns_of(sharded.rows[row], phase) for at in unit
                     for row in sharded.waits.get((phase, at), ())),
                    default=0,
                )
                for phase, unit in begins.items()
            }  # fmt: skip
            first = sharded.rows[: sharded.own[0].start]
            last = max((ns_of(row, "wg") for row in first), default=0)
            return _Shared(streams, _Times(waits["fwd"], waits["ig"], waits["ig"], 0), last)

        shared = []
        for stage in range(training.pp):
            of_stage = []
            for chunk in chunks:
                sizes = tuple(unit_sizes(training, stage, chunk))
                if sizes not in known:
                    known[sizes] = made(sizes)
                of_stage.append(known[sizes])
            shared.append(of_stage)
        return shared

    def _sent_ns(self, where: _Place, scale: float, sent: Sent) -> int:
        return self._price(where, scale, sent.group, sent.collective, sent.bytes)

    def _price(self, where: _Place, scale: float, kind: GroupKind, collective: str, size: int) -> int:
        if not size or not where.aligned or where.layout.group_size(kind) == 1:
            return 0
        key = (kind, collective, size, scale)
        if key not in where.prices:
            shape = group_shape(where.cluster, next(where.layout.groups(kind)))
            placed = PlacedCollective(kind, shape, (), collective, size)
            where.prices[key] = scaled(where.network.collective_ns(placed), scale)
        return where.prices[key]

    def _where(self, setup: Setup, training: Training) -> object:
        """What of the parameters says where ranks are and what they send."""
        parameters = setup.parameters
        return (
            training.tp, training.cp, training.ep, training.dp, training.pp, training.shard_size,
            training.gpu, parameters.cluster,
            parameters.dim, parameters.system, parameters.network, parameters.rank_order, parameters.splits,
            parameters.active_chunks, parameters.endpoint_delay, parameters.local_mem_bw,
            parameters.algorithm, parameters.collective_optimization, parameters.nvlink, parameters.nic,
            parameters.nics_per_server, parameters.gpus_per_server, parameters.gpu_type, parameters.nic_type,
        )  # fmt: skip

    def _place_of(self, setup: Setup, training: Training) -> _Place:
        """Where the ranks of a run are."""
        key = self._where(setup, training)
        where = self._places.get(key)
        if where is None:
            gpu = find_gpu(training.gpu)
            given = None
            asked = setup.parameters.part(AskedCluster)
            if not asked.dim and asked.cluster is None:
                given = gpu.network_of(training.world)
            layout = Layout(
                training.tp, training.ep, training.dp * training.cp, training.pp, setup.parameters.rank_order,
                training.cp, training.shard_size, whole_experts=True,
            )  # fmt: skip
            model = setup.rules.network
            if model.place:
                cluster = model.place(setup.network, layout)
            else:
                cluster = choose_cluster(asked, given).cluster(training.world)
            network = model.open(setup.network, layout, cluster)
            aligned = is_aligned(layout, cluster) and not isinstance(network, Sharing)
            where = _Place(layout, cluster, network, {}, aligned)
            _keep(self._places, key, where)
        return where

    # -- units -----------------------------------------------------------------------

    def _units_of(self, setup: Setup, training: Training) -> _Units:
        """One layer of each kind and what else a stage may have, as a rank of stage 0 does them.

        How many replicas there are changes none of that, but where experts lie.
        """
        parameters = setup.parameters
        one_stage = replace(
            parameters, pp=None, schedule=None, virtual_stages=None, stage_layers=None, zero=None, steps=1,
            world=training.tp * training.cp * training.dp, microbatches=None,
            global_batch=training.microbatch_size * training.dp, overlap_grad_reduce=False,
            overlap_param_gather=False, overlap_fwd_bwd=False, pp_scatter=None, prefetch=None,
            reshard_after_forward=None, shard_size=None, bucket_size=None, offload=None,
        )  # fmt: skip
        key = (
            replace(one_stage, world=None, global_batch=None, memory_limit=None), parameters.overlap_fwd_bwd
        )  # fmt: skip
        aligned = self._place_of(setup, training).aligned
        if parameters.rank_order != Layout(1, 1, 1, 1).rank_order:
            aligned = False
        units = self._units.get(key)
        if units is None or not aligned:
            of_one = Setup(self._few.opened(), one_stage)
            units = self._made(of_one, aligned and not parameters.overlap_fwd_bwd)
            if aligned:
                _keep(self._units, key, units)
        return units

    def _made(self, setup: Setup, sends: bool) -> _Units:
        workload, layout, scale = setup.workload, setup.layout, setup.parameters.comm_scale
        where = _Place(layout, setup.cluster, setup.open_network(), {}, sends)
        plan = planned(workload, layout, setup.schedule).plan
        plan.joined = joined_streams(workload, setup.schedule)
        plan.beside = beside_streams(workload)
        builder = StageBuilder(plan, 0)

        def cost_ns(cost: AnyCost) -> int:
            if isinstance(cost, ComputeCost):
                return scaled(cost.ns, setup.parameters.compute_scale * cost.scale)
            if isinstance(cost, CollectiveCost):
                whole = self._price(where, scale, cost.group, cost.collective, cost.priced_bytes)
                return cost.share_of(whole)
            if isinstance(cost, PartCost):
                # On streams that are free: what keeps them busy makes it longer.
                _, times_of = part_times(cost, cost_ns)
                return times_of[0][0]
            assert isinstance(cost, JoinedCost | BesideCost)
            ns = sum(cost_ns(beside_cost) * count for beside_cost, count in cost.costs)
            return max(ns, cost_ns(cost.collective)) if isinstance(cost, BesideCost) else ns

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
        model = self._few.made(setup.model).training.model
        kinds = [model.is_moe(layer) for layer in range(model.layers)]
        by_kind: dict[bool, _Times] = {}
        place_of = 0
        for moe in kinds:
            # A layer's rows are those to the next row of the name of its first.
            end = place_of + 1
            while end < len(layers) and names[layers[end]] != names[layers[place_of]]:
                end += 1
            if moe not in by_kind:
                by_kind[moe] = times(tuple(layers[place_of:end]))
            place_of = end
        dense = by_kind.get(False, _NOTHING)
        head = times(final) + (times(loss) if loss else _NOTHING)
        return _Units(times(embedding), (dense, by_kind.get(True, dense)), head)


def _chunk_times(content: _Content, units: _Units) -> _Times:
    """What a micro-batch takes in a chunk."""
    waited = content.shared.waited
    for times, count in zip(units.layers, content.layers, strict=True):
        waited = waited + times.times(count)
    if content.begins:
        waited = waited + units.embedding
    return waited + units.head if content.ends else waited


def _keep(kept: dict, key: object, value: object) -> None:  # type: ignore[type-arg]
    kept[key] = value
    if len(kept) > _KEPT:
        del kept[next(iter(kept))]
