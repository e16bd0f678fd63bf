"""The parameters of a model on each rank, and the rows of sharded data parallelism.

Units are gathered before they run, and their gradients reduced after (PyTorch's FSDP, ZeRO 2 and 3;
docs/models.md has the rules).

A unit is a layer, or the embedding, or the output layer. Rows are in the order of the forward; backward
runs them in reverse.
"""

from __future__ import annotations

from simcore.model.costs import NOTHING, CellCollective, Row
from simcore.model.sizes import Model
from simcore.model.training import Training
from simcore.records import NamedTuple
from simcore.workload.model import GroupKind, Phase


class UnitSize(NamedTuple):
    """Parameters of a unit that one rank of tp and ep uses."""

    dense: int
    """All but those of experts."""
    experts: int
    """Those of experts."""
    root: bool = False
    """Whether it is the embedding or the output layer, whose weights stay from their forward to their
    backward.
    """


class Unit(NamedTuple):
    """A unit with the rows that run it."""

    size: UnitSize
    rows: list[Row]


class ShardedRows(NamedTuple):
    """The rows of a chunk with those of its gathers and reductions."""

    rows: list[Row]
    """All rows, in file order."""
    unit_ranges: list[range]
    """The indices of the own rows of each unit."""
    waits: dict[tuple[Phase, int], tuple[int, ...]]
    """As `Workload.waits`, with indices for rows."""


def is_sharded(training: Training) -> bool:
    """Returns whether gradients, or weights too, are shared out unit by unit."""
    is_shared = training.shards > 1 or training.expert_replicas > 1
    return training.zero >= 2 and is_shared and not training.keeps_weights


def sharded_rows(training: Training, units: list[Unit]) -> ShardedRows:
    """Returns the rows of `units` with those that gather their weights and reduce their gradients during
    compute.

    A unit waits for its own weights; those of the unit `prefetch` further on are gathered as it begins.
    """
    return _Chunk(training, units).lay_out()


class _Chunk:
    """Lays out the rows of a chunk.

    By unit, the ranges of its rows in file order: gathers: weights gathered before its forward. regathers:
    weights gathered before its backward. reductions: gradients reduced. copy_sums: copies of gradients added
    up.
    """

    def __init__(self, training: Training, units: list[Unit]) -> None:
        self.training = training
        self.units = units
        self.rows: list[Row] = []
        self.gathers: dict[int, range] = {}
        self.regathers: dict[int, range] = {}
        self.reductions: dict[int, range] = {}
        self.copy_sums: dict[int, range] = {}

    def lay_out(self) -> ShardedRows:
        """Returns all rows, and which waits for which."""
        unit_ranges: list[range] = []
        # By unit the row at which its forward, and the row at which its backward begins.
        begins: list[int] = []
        begins_back: list[int] = []
        last, ahead = len(self.units) - 1, self.training.prefetch
        for unit_index, unit in enumerate(self.units):
            # Backward comes to these rows last, at the end of this unit's backward.
            if unit_index == 0:
                self._add_copies(0)
            self.reductions[unit_index] = self._append_rows(self._reductions(unit.size))
            if unit_index < last:
                self._add_copies(unit_index + 1)
            gathers_start = len(self.rows)
            for other in range(ahead + 1) if unit_index == 0 else [unit_index + ahead]:
                if other <= last and self._is_gathered(other):
                    self.gathers[other] = self._append_rows(self._gather("weights_gather", other, "fwd"))
            first = len(self.rows)
            unit_ranges.append(self._append_rows(unit.rows))
            begins.append(gathers_start if unit_index and ahead and gathers_start < first else first)
            for other in [unit_index - ahead] if unit_index < last else range(max(last - ahead, 0), last + 1):
                if other >= 0 and self._is_gathered(other) and self._is_resharded(other):
                    self.regathers[other] = self._append_rows(
                        self._gather("weights_gather_again", other, "ig")
                    )
            end = len(self.rows) - 1
            begins_back.append(end if unit_index < last and ahead else unit_ranges[-1][-1])
        waits: dict[tuple[Phase, int], tuple[int, ...]] = {}
        for unit_index in range(last + 1):
            if self.gathers.get(unit_index):
                waits["fwd", begins[unit_index]] = tuple(self.gathers[unit_index])
            if self.regathers.get(unit_index):
                waits["ig", begins_back[unit_index]] = tuple(reversed(self.regathers[unit_index]))
            for row in self.copy_sums.get(unit_index, ()):
                waits["wg", row] = tuple(self.reductions[unit_index])
        return ShardedRows(self.rows, unit_ranges, waits)

    def _append_rows(self, rows: list[Row]) -> range:
        first = len(self.rows)
        self.rows += rows
        return range(first, len(self.rows))

    def _is_gathered(self, unit_index: int) -> bool:
        return self.training.zero == 3 and any(self.units[unit_index].size[:2])

    def _is_resharded(self, unit_index: int) -> bool:
        """Returns whether the weights of a unit are freed after its forward, so that backward gathers them
        again.
        """
        return self.training.reshard and not self.units[unit_index].size.root

    def _gather(self, name: str, unit_index: int, phase: Phase) -> list[Row]:
        rows = []
        for group, size, ranks, suffix in self._buffers(self.units[unit_index].size):
            if size and ranks > 1:
                row = Row(name + suffix, NOTHING)
                collective = CellCollective("ALLGATHER", group, 2 * size, True)
                rows.append(row._replace(fwd=collective) if phase == "fwd" else row._replace(ig=collective))
        return rows

    def _reductions(self, unit: UnitSize) -> list[Row]:
        return [
            Row(
                "grad_reduce" + suffix,
                NOTHING,
                wg=CellCollective("REDUCESCATTER", group, self._gradient(size)),
            )
            for group, size, ranks, suffix in self._buffers(unit)
            if size and ranks > 1
        ]

    def _add_copies(self, unit_index: int) -> None:
        """Adds the rows that add up the gradients of a unit between groups of `--shard-size`."""
        training = self.training
        size = self.units[unit_index].size.dense
        if training.copies > 1 and size:
            collective = CellCollective(
                "ALLREDUCE", "dp_replicate", -(-self._gradient(size) // training.shards)
            )
            self.copy_sums[unit_index] = self._append_rows([Row("grad_copies", NOTHING, wg=collective)])

    def _gradient(self, parameters: int) -> int:
        return self.training.grad_bytes * parameters

    def _buffers(self, unit: UnitSize) -> list[tuple[GroupKind, int, int, str]]:
        """Returns (group, parameters, ranks, end of the row's name) of the buffers of a unit."""
        training = self.training
        dense: GroupKind = "dp_shard" if training.copies > 1 else "dp"
        return [
            (dense, unit.dense, training.shards, ""),
            ("dp_ep", unit.experts, training.expert_replicas, "_experts"),
        ]


class StageParameters(NamedTuple):
    """The number of parameters on one rank of a stage: of experts, and all others."""

    dense: int
    experts: int


def stage_parameters(training: Training, stage: int) -> StageParameters:
    """Returns the parameters of a rank of `stage`: divided by tp, experts by ep; a vocabulary padded as in
    Megatron.
    """
    model, tp = training.model, training.tp
    dense = experts = 0
    for chunk in training.stage_chunks:
        for kind, count in training.kinds_of(stage, chunk):
            of_layer = layer_parameters(training, kind)
            dense, experts = dense + count * of_layer.dense, experts + count * of_layer.experts
    embedding = training.padded_vocab // tp * model.hidden
    first = any(training.position(stage, chunk) == 0 for chunk in training.stage_chunks)
    last = any(training.is_last(stage, chunk) for chunk in training.stage_chunks)
    if first:
        dense += embedding + model.positions * model.hidden + model.other
    if last:
        dense += model.norm
    predictions = sum(training.predictions_of(stage, chunk) for chunk in training.stage_chunks)
    if predictions:
        of_layer = layer_parameters(training, model.prediction_kind)
        # The projection of the hidden state and the next token's embedding, their norms, and the head's.
        dense += predictions * (of_layer.dense + 2 * model.hidden**2 // tp + 3 * model.norm)
        experts += predictions * of_layer.experts
        if not (first or (last and model.tied_embeddings)):
            # A copy of the table of the first stage.
            dense += embedding
    # A V has both tables on one stage; a stage of two-way schedules has tables of two models.
    together = first and last and training.placement != "both-ways"
    if last and not (together and model.tied_embeddings):
        dense += embedding
    return StageParameters(dense, experts)


def whole_parameters(training: Training, stage: int) -> int:
    """Returns the parameters of a stage that every rank of tp has: norms, biases of linears split by rows,
    routers, latent ranks.
    """
    model = training.model
    size = 0
    for chunk in training.stage_chunks:
        size += model.norm if training.is_last(stage, chunk) else 0
        predictions = training.predictions_of(stage, chunk)
        if predictions:
            size += predictions * (3 * model.norm + _whole_layer_parameters(model, model.prediction_kind))
        for kind, count in training.kinds_of(stage, chunk):
            size += count * _whole_layer_parameters(model, kind)
    return size


def _whole_layer_parameters(model: Model, kind: int) -> int:
    """Returns the parameters of a layer of a kind that every rank of tp has."""
    moe, model = model.experts_of(kind), model.of_kind(kind)
    size = model.attention()[1] + model.norms * model.norm + model.layer_other
    if moe is not None:
        return size + moe.whole(model.hidden)
    return size + model.mlp(model.ffn)[1]


def layer_parameters(training: Training, kind: int) -> StageParameters:
    """Returns the parameters of a rank in one layer of a kind."""
    moe, model, tp = training.model.experts_of(kind), training.model.of_kind(kind), training.tp
    sharded, whole = model.attention()
    if model.has_kv_heads and model.kv_heads < tp:
        # A rank has at least one key-value head, so that several ranks have the same ones.
        sharded += (tp - model.kv_heads) * model.kv_width * model.hidden
    dense = sharded // tp + whole + model.norms * model.norm + model.layer_other
    if moe is None:
        sharded, whole = model.mlp(model.ffn)
        return StageParameters(dense + sharded // tp + whole, 0)
    expert = sum(model.mlp(moe.ffn, moe.width(model.hidden)))
    shared = sum(model.mlp(moe.shared_inner)) // tp
    here = moe.experts // training.ep
    return StageParameters(dense + shared + moe.whole(model.hidden), expert * here // training.etp)


def unit_sizes(training: Training, stage: int, chunk: int) -> list[UnitSize]:
    """Returns the units of a chunk whose weights and gradients ZeRO 2 and 3 share out, in forward order."""
    model = training.model
    embedding = training.padded_vocab // training.tp * model.hidden
    first, last = training.position(stage, chunk) == 0, training.is_last(stage, chunk)
    sizes = [
        size
        for kind, count in training.kinds_of(stage, chunk)
        for size in [UnitSize(*layer_parameters(training, kind))] * count
    ]
    if training.copies > 1:
        sizes = [UnitSize(unit_size.dense + unit_size.experts, 0) for unit_size in sizes]
    if first:
        sizes.insert(0, UnitSize(embedding + model.positions * model.hidden + model.other, 0, True))
    if last:
        # As in `stage_parameters`: a stage with both tables of one model has one where they are tied.
        on_stage = any(training.position(stage, stage_chunk) == 0 for stage_chunk in training.stage_chunks)
        tied = model.tied_embeddings and on_stage and training.placement != "both-ways"
        sizes.append(UnitSize(model.norm + (0 if tied else embedding), 0, True))
    return sizes
