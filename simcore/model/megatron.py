"""The rows that Megatron-LM runs on each stage: compute of the ops, and the bytes that it sends.

Dialect `megatron` (docs/models.md). Layers of one kind at the same index of a chunk are the same rows on
every stage; rows of single stages are the embedding, the loss, and the gradients of their parameters.
"""

from __future__ import annotations

import math
from array import array
from typing import Any

from simcore.model.costs import NOTHING, CellCollective, Costs, Op, Row, concat_ops, nanoseconds, select_ops
from simcore.model.costs import RowOps as OpCells
from simcore.model.imbalance import ExpertLoads
from simcore.model.memory import layer_activations
from simcore.model.operations.mixers import mixer_name, mixer_parts
from simcore.model.sharding import (
    StageParameters,
    Unit,
    is_sharded,
    layer_parameters,
    sharded_rows,
    stage_parameters,
    unit_sizes,
    whole_parameters,
)
from simcore.workload import Cells, Header, Workload
from simcore.workload.model import (
    PHASES,
    GroupKind,
    PackedCells,
    Phase,
    SplitCell,
    StageRows,
    UnevenCell,
)

# SMs that NCCL takes from compute: one for each of its channels between servers.
_NCCL_SMS = 16
# A number in FP8, with its share of a scale of 4 bytes for each 128 (DeepSeek-V3, arXiv 2412.19437, 3.3).
_FP8_BYTES = 1 + 4 / 128
POLICY = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
FORMAT = "model"
# What makes the latent vectors of attention; the other ops before its core make heads of them.
_OF_LATENTS = ("norm", "kv down", "query down")
# With `--recompute-rows`: row -> the separate row whose output it takes.
_INPUT_ROW = {
    "attention_column": "attention_norm", "delta_column": "delta_norm", "mamba_column": "mamba_norm",
    "attention_core": "attention_up", "mlp_column": "mlp_norm", "moe_router": "moe_norm",
    "mlp_row": "mlp_act", "moe_experts_out": "moe_act", "moe_shared_row": "moe_shared_act",
}  # fmt: skip


class MegatronRows:
    """Makes the rows of one training on one GPU. ops: the ops of each row of `workload`."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.training = costs.training
        training = costs.training
        self._act = 2 * training.tokens * training.model.hidden
        self._rows: list[Row] = []
        self._rows_by_layer: dict[tuple[int, tuple[ExpertLoads | None, ...]], list[Row]] = {}
        self._recomputed: dict[int, tuple[int, ...]] = {}
        self._waits: dict[tuple[Phase, int], tuple[int, ...]] = {}
        self._is_sharded = is_sharded(training)

    def workload(self, path: str) -> Workload:
        """Returns the workload, without its `maker`. path: for messages."""
        training = self.training
        stages = self._stages()
        columns: list[Cells] = []
        for phase in PHASES:
            collectives = [getattr(row, phase) for row in self._rows]
            columns.append(
                Cells(
                    array("q", [nanoseconds(getattr(row.ops, phase)) for row in self._rows]),
                    [message and message.collective for message in collectives],
                    [message and message.group for message in collectives],
                    array("q", [message.bytes if message else 0 for message in collectives]),
                    {
                        index
                        for index, message in enumerate(collectives)
                        if message and message.is_overlapped and phase != "wg"
                    },
                )
            )
        count = len(self._rows)
        scattered = training.tp if training.sequence_parallel or training.pp_scatter else 1
        header = Header(
            tp=training.tp,
            ep=training.ep,
            pp=training.pp,
            vpp=training.chunks * math.gcd(*training.position_layers),
            ga=training.microbatches,
            all_gpus=training.world,
            pp_comm=self._act // scattered if training.pp > 1 else 0,
            cp=training.cp,
            cp_inner=training.cp_inner,
            shard=training.shard_size,
            whole_experts=training.etp == 1,
            ep_node=training.ep_node,
        )
        return Workload(
            path=path,
            format=FORMAT,
            policy=POLICY,
            dialect="simai",
            header=header,
            name=[row.name for row in self._rows],
            line=array("q", range(1, count + 1)),
            fwd=columns[0],
            ig=columns[1],
            wg=columns[2],
            process_ns=array("q", [100]) * count,
            declared_rows=None,
            stages=stages,
            recomputed=self._recomputed,
            waits=self._waits,
            buckets=self._buckets(),
            split_cells=self._split_cells(),
            uneven=self._uneven(),
            packed=self._packed(),
            host_link=training.offload,
            gathers_in_forward=training.keeps_weights,
        )

    def _uneven(self) -> dict[tuple[Phase, int], UnevenCell]:
        """Returns the cells in which the ranks of an expert group differ."""
        uneven: dict[tuple[Phase, int], UnevenCell] = {}
        if self.training.loads is None:
            return uneven
        for index, row in enumerate(self._rows):
            for phase in PHASES:
                collective: CellCollective | None = getattr(row, phase)
                compute = tuple(nanoseconds(getattr(ops, phase)) for ops in row.by_rank)
                ports = collective.ports if collective is not None else ()
                if compute or ports:
                    uneven[phase, index] = UnevenCell(compute, ports)
        return uneven

    def _packed(self) -> PackedCells | None:
        """Returns the cells in which micro-batches differ by their documents."""
        packing = self.training.packing
        if packing is None:
            return None
        cells: dict[tuple[Phase, int], tuple[int, ...]] = {}
        for index, row in enumerate(self._rows):
            for phase in PHASES:
                ns = tuple(nanoseconds(getattr(ops, phase)) for ops in row.by_packing)
                if len(set(ns)) > 1:
                    cells[phase, index] = ns
        longest = tuple(microbatch.longest for microbatch in packing.microbatches)
        return PackedCells(packing.of_replica, cells, longest)

    def _split_cells(self) -> dict[tuple[Phase, int], SplitCell]:
        """Returns with `--overlap-tp` the cells of layers whose collectives overlap with their products."""
        split_cells: dict[tuple[Phase, int], SplitCell] = {}
        if not self.training.overlap_tp:
            return split_cells
        for index, row in enumerate(self._rows):
            if row.name.startswith(("embedding", "final")):
                continue
            phases: tuple[tuple[Phase, CellCollective | None, list[Op]], ...] = (
                ("fwd", row.fwd, row.ops.fwd), ("ig", row.ig, [*reversed(row.ops.ig)])
            )  # fmt: skip
            for phase, collective, ops in phases:
                products = [op_index for op_index, op in enumerate(ops) if op.flops]
                if collective is not None and collective.group == "tp" and products:
                    first, last = products[0], products[-1] + 1
                    before, product = nanoseconds(ops[:first]), nanoseconds(ops[first:last])
                    before = min(before, nanoseconds(ops))
                    product = min(product, nanoseconds(ops) - before)
                    split_cells[phase, index] = SplitCell(self.training.tp, before, product)
        return split_cells

    def _buckets(self) -> dict[int, int]:
        """Returns the bytes of a bucket of each buffer of gradients, and of parameters."""
        training = self.training
        parameters = training.bucket_size
        if training.keeps_weights:
            # A unit is a layer.
            parameters = max(
                sum(layer_parameters(training, kind)) for kind, _ in training.model.count_kinds()
            )
        each = {
            "ALLREDUCE": self.training.grad_bytes,
            "REDUCESCATTER": self.training.grad_bytes,
            "ALLGATHER": 2,
        }
        return {
            index: parameters * each[row.wg.collective]
            for index, row in enumerate(self._rows)
            if row.wg is not None and parameters
        }

    @property
    def ops(self) -> list[OpCells]:
        """The ops of each row, in the order of the rows."""
        return [row.ops for row in self._rows]

    # -- stages --------------------------------------------------------------------------

    def _stages(self) -> tuple[StageRows, ...]:
        training = self.training
        prologues: dict[tuple[StageParameters, int], tuple[int, ...]] = {}
        for stage in range(training.pp):
            parameters = stage_parameters(training, stage), whole_parameters(training, stage)
            if parameters not in prologues:
                prologues[parameters] = self._append_rows(self.prologue(*parameters))
        # With sharded units the embedding's rows are among those of the layers.
        embedding = () if self._is_sharded else self._append_rows([self._embedding()])
        scattered = training.pp_scatter and not training.sequence_parallel
        scattered = scattered and training.tp > 1 and training.pp > 1
        blocking = training.pp > 1 and self.costs.engine.blocking_transfers
        stage_input = self._append_rows([self._input_row(scattered)]) if scattered or blocking else ()
        chunks = self._chunks()
        predictions = [self._append_predictions(count) for count in training.position_predictions]
        stage_output = self._append_rows([self._output_row(scattered)]) if scattered or blocking else ()
        heads = [self._final()] * (1 + training.predictions)
        final = () if self._is_sharded else self._append_rows(heads)
        loss = self._append_rows(self._loss() * (1 + training.predictions))
        self._append_rows(self._tail())
        stages = []
        for stage in range(training.pp):
            of_stage = []
            for chunk, rows in zip(training.stage_chunks, chunks[stage], strict=True):
                # At the turn of a V the activation stays on its stage.
                comes_from_it, stays = training.turns(stage, chunk)
                before = () if comes_from_it else stage_input
                behind = () if stays else stage_output
                before = embedding if training.position(stage, chunk) == 0 else before
                behind = final if training.is_last(stage, chunk) else behind
                if predictions:
                    rows += predictions[training.position(stage, chunk)]
                of_stage.append(before + rows + behind)
            has_loss = any(training.is_last(stage, chunk) for chunk in training.stage_chunks)
            stages.append(
                StageRows(
                    prologues[stage_parameters(training, stage), whole_parameters(training, stage)],
                    tuple(of_stage),
                    loss if has_loss else (),
                )
            )
        return tuple(stages)

    def _append_predictions(self, count: int) -> tuple[int, ...]:
        """Returns the rows of so many layers that predict a further token each, behind those of a chunk."""
        model = self.training.model
        rows: tuple[int, ...] = ()
        for _ in range(count):
            embedding = self._embedding()._replace(name="mtp_embedding")
            rows += self._append_rows([embedding, *self._projection()])
            layer = self._append_rows(self._layer(model.prediction_kind))
            self._note_recomputed(layer, self.training.recomputes_predictions)
            self._note_waits(layer)
            rows += layer
        return rows

    def _projection(self) -> list[Row]:
        """Returns the projection of the hidden state and the next token's embedding: split by columns, its
        output gathered.
        """
        row = self._column("mtp_projection", self.costs.prediction())
        double = [part and part._replace(bytes=2 * part.bytes) for part in (row.fwd, row.ig)]
        gathered = Row("mtp_gather", NOTHING, self._tensor("ALLGATHER", self._act))
        return [row._replace(fwd=double[0], ig=double[1]), *([gathered] if self.training.tp > 1 else [])]

    def _append_rows(self, rows: list[Row]) -> tuple[int, ...]:
        first = len(self._rows)
        self._rows += rows
        return tuple(range(first, len(self._rows)))

    def _chunks(self) -> list[list[tuple[int, ...]]]:
        """Returns the layers' rows of each chunk of each stage."""
        training = self.training
        # Rows of a layer by its chunk and the layers before it: equal chunks share their rows.
        rows_by_key: dict[tuple[Any, ...], tuple[int, ...]] = {}
        sharded: dict[tuple[Any, ...], tuple[int, ...]] = {}
        chunks = []
        for stage in range(training.pp):
            of_stage = []
            for chunk in training.stage_chunks:
                if self._is_sharded:
                    of_stage.append(self._sharded_chunk(stage, chunk, sharded))
                    continue
                rows: tuple[int, ...] = ()
                kinds: tuple[int, ...] = ()
                loads: tuple[ExpertLoads | None, ...] = ()
                layer_rows: list[tuple[int, ...]] = []
                here = training.layers_of(stage, chunk)
                for layer in here:
                    kind = training.model.kind_of(layer)
                    kinds += (kind,)
                    loads += training.layer_loads[layer : layer + 1]
                    key = (chunk, kinds, loads, layer == here[-1])
                    is_new = key not in rows_by_key
                    if is_new:
                        rows_by_key[key] = self._append_rows(
                            self._with_copies(self._rows_of(layer), kinds, layer == here[-1])
                        )
                        self._note_recomputed(rows_by_key[key], training.recomputes(len(kinds) - 1))
                        self._note_waits(rows_by_key[key])
                    layer_rows.append(rows_by_key[key])
                    if is_new:
                        self._note_copies(layer_rows)
                    rows += rows_by_key[key]
                of_stage.append(tuple(sorted(rows)))
            chunks.append(of_stage)
        return chunks

    def _sharded_chunk(
        self,
        stage: int,
        chunk: int,
        rows_by_key: dict[tuple[Any, ...], tuple[int, ...]],
    ) -> tuple[int, ...]:
        """Returns the rows of a chunk with those that gather and reduce its units.

        rows_by_key: the rows of equal chunks.
        """
        training = self.training
        sizes = unit_sizes(training, stage, chunk)
        here = training.layers_of(stage, chunk)
        kinds = tuple(training.model.kind_of(layer) for layer in here)
        key = (chunk, kinds, training.layer_loads[here.start : here.stop], *sizes)
        if key not in rows_by_key:
            rows = [
                self._with_copies(self._rows_of(layer), kinds[: index + 1], index == len(kinds) - 1)
                for index, layer in enumerate(here)
            ]
            if training.position(stage, chunk) == 0:
                rows.insert(0, [self._embedding()])
            if training.is_last(stage, chunk):
                rows.append([self._final()])
            sharded = sharded_rows(training, [Unit(*unit) for unit in zip(sizes, rows, strict=True)])
            row_indices = rows_by_key[key] = self._append_rows(sharded.rows)
            # The embedding is a unit before those of layers.
            first = int(training.position(stage, chunk) == 0)
            for index, unit_range in enumerate(sharded.unit_ranges, -first):
                self._note_recomputed(
                    row_indices[unit_range.start : unit_range.stop], training.recomputes(index)
                )
                self._note_waits(row_indices[unit_range.start : unit_range.stop])
            units = [row_indices[part.start : part.stop] for part in sharded.unit_ranges]
            of_layers = [unit for unit in units if _is_layer(self._rows[unit[0]].name)]
            for count in range(1, len(of_layers) + 1):
                self._note_copies(of_layers[:count])
            for (phase, row), others in sharded.waits.items():
                where = (phase, row_indices[row])
                self._waits[where] = (*self._waits.get(where, ()), *(row_indices[other] for other in others))
        return rows_by_key[key]

    def _with_copies(self, rows: list[Row], kinds: tuple[int, ...], last: bool) -> list[Row]:
        """Returns with `--offload` a layer's rows, and the copies of its activations behind its forward.

        kinds: of the layers of the chunk up to this one. Before its backward the
        activations of the layer before it begin to be copied back. Those of the last layer of a chunk stay:
        its forward ends when the copies to the host have ended.
        """
        training, index = self.training, len(kinds) - 1
        if not training.offload:
            return rows
        with_copies = [*rows]
        if last:
            with_copies.append(Row("activations_left", NOTHING))
        elif training.offloads(index):
            size = layer_activations(training, kinds[index])
            with_copies.append(
                Row("activations_out", NOTHING, CellCollective("OFFLOAD", "offload", size, True))
            )
        if index and training.offloads(index - 1):
            size = layer_activations(training, kinds[index - 1])
            with_copies.append(
                Row("activations_back", NOTHING, None, CellCollective("FETCH", "offload", size, True))
            )
        return with_copies

    def _computing_rows(self, rows: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the rows of a layer that compute."""
        return tuple(row for row in rows if not self._rows[row].name.startswith("activations_"))

    def _note_copies(self, layers: list[tuple[int, ...]]) -> None:
        """Notes the waits of the last of these layers of a chunk for the copies of the layer two before it.

        And those of the backward of the layer before, whose activations are copied back during its own.
        """
        if not self.training.offload:
            return
        rows_by_name = [{self._rows[row].name: row for row in rows} for rows in layers]
        here, last_index = rows_by_name[-1], len(layers) - 1

        def wait(phase: Phase, row: int, other: int) -> None:
            self._waits[phase, row] = (*self._waits.get((phase, row), ()), other)

        copied = [rows["activations_out"] for rows in rows_by_name if "activations_out" in rows]
        if last_index > 1 and "activations_out" in rows_by_name[-3]:
            wait("fwd", self._computing_rows(layers[-1])[0], rows_by_name[-3]["activations_out"])
        if copied and "activations_left" in here:
            wait("fwd", here["activations_left"], copied[-1])
        if "activations_back" in here:
            wait("ig", self._computing_rows(layers[-2])[-1], here["activations_back"])

    def _note_recomputed(self, rows: tuple[int, ...], is_whole: bool) -> None:
        """Notes which rows of a layer run forward again. is_whole: whether all of them do."""
        rows = self._computing_rows(rows)
        if is_whole and _is_layer(self._rows[rows[0]].name):
            # Backward begins with the last row of a layer.
            self._recomputed[rows[-1]] = rows
            return
        # A kind of row runs again before the backward of the row that needs its output.
        row_of = {self._rows[row].name: row for row in rows}
        for needs, row in row_of.items():
            again = [name for name in (_INPUT_ROW.get(needs, ""),) if name in row_of]
            if needs == "attention_core" and "attention" in self.training.recompute_rows:
                again.append(needs)
            if again:
                self._recomputed[row] = tuple(map(row_of.__getitem__, again))

    def _note_waits(self, rows: tuple[int, ...]) -> None:
        """Notes the waits of what follows attention for the keys and values that a ring sends during it."""
        row_of = {self._rows[row].name: row for row in rows}
        if "attention_exchange" in row_of:
            behind = row_of.get("attention_heads_again", row_of["attention_row"])
            before = row_of.get("attention_heads", row_of["attention_column"])
            self._waits["fwd", behind] = (row_of["attention_exchange"],)
            self._waits["ig", before] = (row_of["attention_exchange_again"],)

    # -- rows ----------------------------------------------------------------------------

    def _tensor(self, collective: str, size: int) -> CellCollective | None:
        return CellCollective(collective, "tp", size) if self.training.tp > 1 else None

    def _column(self, name: str, ops: OpCells) -> Row:
        """Returns a linear split by columns: its input is gathered, and its input's gradient added up.

        With sequence parallelism Megatron gathers the input once more for the weight gradient, during the
        product of the input gradient, which takes longer: no op.
        """
        act = self._act
        if self.training.sequence_parallel:
            return Row(name, ops, self._tensor("ALLGATHER", act), self._tensor("REDUCESCATTER", act))
        return Row(name, ops, None, self._tensor("ALLREDUCE", act))

    def _row(self, name: str, ops: OpCells) -> Row:
        """Returns a linear split by rows: its output is added up."""
        act = self._act
        if self.training.sequence_parallel:
            return Row(name, ops, self._tensor("REDUCESCATTER", act), self._tensor("ALLGATHER", act))
        return Row(name, ops, self._tensor("ALLREDUCE", act), None)

    def count_layer_rows(self, kind: int) -> int:
        """Returns how many rows a layer of a kind has, without copies of its activations."""
        return len(self._layer(kind))

    def _rows_of(self, layer: int) -> list[Row]:
        """Returns the rows of a layer of the model."""
        kind, loads = self.training.model.kind_of(layer), self.training.layer_loads[layer : layer + 1]
        rows = self._rows_by_layer.get((kind, loads))
        if rows is None:
            rows_of = self
            if loads:
                rows_of = type(self)(type(self.costs)(self.costs.gpu, self.training.of_layer(layer)))
            rows = self._rows_by_layer[kind, loads] = rows_of._layer(kind)
        return rows

    def _layer(self, kind: int) -> list[Row]:
        """Returns the rows of a layer of a kind."""
        costs, training = self.costs, self.training
        model, tokens = training.model, training.tokens
        if model.kinds:
            of_kind = type(self)(type(costs)(costs.gpu, training.of_kind(kind)))
            return of_kind._layer(int(model.experts_of(kind) is not None))
        rows = self._mixer() if model.attends else []
        if not rows and not model.ffn and model.experts_of(kind) is None:
            # Pruned altogether.
            return [Row("no_op", NOTHING)]
        if model.experts_of(kind) is None:
            ffn = model.ffn // training.tp
            if not ffn:
                return self._at_least_host([part for row in rows for part in self._split_recomputed(row)])
            rows.append(self._column("mlp_column", concat_ops(costs.norm(), costs.mlp_in(ffn, tokens))))
            rows.append(self._row("mlp_row", concat_ops(costs.mlp_out(ffn, tokens), costs.residual())))
        else:
            rows += self._moe()
        return self._at_least_host([part for row in rows for part in self._split_recomputed(row)])

    def _mixer(self) -> list[Row]:
        """Returns the rows of a layer's attention, or of what stands in its place."""
        costs, training = self.costs, self.training
        name = mixer_name(costs)
        before_core, core_ops, behind_core = mixer_parts(costs)
        rows = [self._column(f"{name}_column", concat_ops(costs.norm(), before_core))]
        core = Row(f"{name}_core", core_ops)
        if training.packing is not None and not training.model.unmeasured:
            each = tuple(map(costs.attention_core, training.packing.microbatches))
            core = Row(f"{name}_core", each[0], by_packing=each)
        if training.cp > 1 and name == "attention":
            before, behind = self._exchange()
            rows += [*before, core, *behind]
        else:
            rows.append(core)
        return [*rows, self._row(f"{name}_row", concat_ops(behind_core, costs.residual()))]

    def _split_recomputed(self, row: Row) -> list[Row]:
        """Returns a row of a layer, with the parts that `--recompute-rows` runs again as rows of
        their own.
        """
        kinds = self.training.recompute_rows
        rows = [row]
        if "norm" in kinds and _INPUT_ROW.get(row.name, "").endswith("_norm"):
            norm = row.name.partition("_")[0] + "_norm"
            rows = [
                Row(norm, select_ops(row.ops, ("norm",))),
                row._replace(ops=select_ops(row.ops, ("norm",), False)),
            ]
        row = rows.pop()
        if "mla_up_proj" in kinds and row.name == "attention_column":
            # Projections down, whose outputs are kept, have its collectives.
            down, up = (select_ops(row.ops, _OF_LATENTS, is_matching) for is_matching in (True, False))
            return [*rows, row._replace(ops=down), Row("attention_up", up)]
        if "mlp_act" in kinds and row.name in ("mlp_column", "moe_shared_column"):
            act = Row(row.name.removesuffix("column") + "act", select_ops(row.ops, ("activation",)))
            return [*rows, row._replace(ops=select_ops(row.ops, ("activation",), False)), act]
        if not kinds.isdisjoint(("mlp_act", "moe_act")) and row.name == "moe_experts":
            # Tokens are sent after the last of these in forward, their gradients after the first in backward.
            parts = []
            for name, ops in (("moe_experts", "up"), ("moe_act", "activation"), ("moe_experts_out", "down")):
                by_rank = tuple(select_ops(row_ops, (ops,)) for row_ops in row.by_rank)
                parts.append(Row(name, select_ops(row.ops, (ops,)), by_rank=by_rank))
            return [*rows, parts[0]._replace(ig=row.ig), parts[1], parts[2]._replace(fwd=row.fwd)]
        return [*rows, row]

    def _exchange(self) -> tuple[list[Row], list[Row]]:
        """Returns the rows that exchange heads, keys and values in a cp group, before and behind attention.

        `p2p`: a ring's steps, during attention, as one all-gather; in backward they are sent again, and their
        gradients with them. `all-gather`: before attention, which waits; in backward gathered again, and
        their gradients scattered at its end. `a2a`: queries, keys and values of some heads of the whole
        sequence for all heads of a part of it, and the output back; in backward its gradient, and then those
        of queries, keys and values (DeepSpeed-Ulysses, arXiv 2309.14509). `a2a+p2p`: so in inner groups,
        whose ranks then have a longer part of the sequence, and a ring between those that have the same heads
        (USP, arXiv 2405.07719). Backward runs the rows behind attention first.
        """
        training = self.training
        model, ring = training.model, training.cp_ring
        heads = model.heads // training.tp
        kv_heads = heads if model.mla else max(model.kv_heads // training.tp, 1)
        keys = kv_heads * (model.query_dim + model.value_dim)
        before: list[Row] = []
        behind: list[Row] = []
        if training.cp_heads > 1:
            group: GroupKind = "cp_a2a" if training.cp_inner else "cp"
            scatter, gather = (
                CellCollective("ALLTOALL", group, 2 * training.tokens * elements)
                for elements in (heads * model.query_dim + keys, heads * model.value_dim)
            )
            before.append(Row("attention_heads", NOTHING, scatter, scatter))
            behind.append(Row("attention_heads_again", NOTHING, gather, gather))
        if ring == 1:
            return before, behind
        size = 2 * training.tokens * keys * ring
        if training.cp_comm_type == "all-gather":
            gather = CellCollective("ALLGATHER", "cp", size)
            return (
                [Row("attention_exchange", NOTHING, gather, CellCollective("REDUCESCATTER", "cp", size))],
                [Row("attention_exchange_again", NOTHING, None, gather)],
            )
        group = "cp_p2p" if training.cp_inner else "cp"
        once, twice = (CellCollective("ALLGATHER", group, times * size, True) for times in (1, 2))
        return (
            [*before, Row("attention_exchange", NOTHING, once)],
            [Row("attention_exchange_again", NOTHING, None, twice), *behind],
        )

    def _send_tokens(self, number_bytes: float, group: GroupKind = "ep", share: float = 1) -> CellCollective:
        """Returns the all-to-all of tokens between the ranks of a group, a number of them in so many bytes.

        share: of the copies that go to each expert.
        """
        training, moe, loads = self.training, self.training.model.moe, self.training.loads
        assert moe is not None
        if loads is None:
            size = self._routed_act // training.tp
            if training.capacity:
                size = 2 * moe.width(training.model.hidden) * training.routed_tokens
            return CellCollective("ALLTOALL", group, round(share * size * number_bytes / 2))
        each = round(number_bytes * moe.width(training.model.hidden))
        ports = tuple(each * tokens for tokens in loads.port_tokens)
        return CellCollective("ALLTOALL", "ep", each * loads.sent_tokens, ports=ports)

    @property
    def _routed_act(self) -> int:
        """Bytes of the tokens of a micro-batch, each once for each of its experts."""
        training, moe = self.training, self.training.model.moe
        assert moe is not None
        return 2 * training.tokens * moe.width(training.model.hidden) * moe.experts_per_token

    def _moe(self) -> list[Row]:
        costs, training = self.costs, self.training
        moe = training.model.moe
        assert moe is not None
        dispatch: CellCollective | None = None
        combine: CellCollective | None = None
        loads = training.loads
        experts = costs.experts()
        by_rank: tuple[OpCells, ...] = ()
        if loads is not None:
            by_rank = tuple(map(costs.experts, loads.tokens))
            experts = by_rank[loads.hot]
        if training.ep > 1:
            dispatch, combine = (
                self._send_tokens(_FP8_BYTES if training.fp8_dispatch else 2),
                self._send_tokens(2),
            )
        combined = concat_ops(costs.permute(), costs.latent("latent up", False), costs.residual())
        routed = concat_ops(costs.norm(), costs.latent("latent down", True), costs.router())
        if training.etp > 1 or training.ep_node:
            to_experts, from_experts = self._hops(dispatch, combine)
            rows = [
                Row("moe_router", routed),
                *to_experts,
                Row("moe_experts", experts),
                *from_experts,
                Row("moe_combine", combined),
            ]
            return [*rows, *self._shared_experts()]
        rows = [
            Row("moe_router", routed, dispatch),
            # In backward the gradients of the experts' inputs are sent back to the ranks of the tokens.
            Row("moe_experts", experts, combine, combine, by_rank=by_rank),
            Row("moe_combine", combined, None, dispatch),
        ]
        return [*rows, *self._shared_experts()]

    def _hops(
        self, dispatch: CellCollective | None, combine: CellCollective | None
    ) -> tuple[list[Row], list[Row]]:
        """Returns the rows that send tokens to experts, and their results back, where they take several hops.

        dispatch, combine: the all-to-alls of a single hop. In backward gradients take the same hops.
        """
        training, moe = self.training, self.training.model.moe
        assert moe is not None
        hops = [("dispatch", "return", dispatch, combine)]
        if training.ep_node:
            # One copy for each node goes to the rank with the sender's place there, which sends it on. The
            # results of a token are added up in the node before they go back.
            share = training.node_copies / moe.experts_per_token
            number_bytes = _FP8_BYTES if training.fp8_dispatch else 2
            hops = [
                (
                    "dispatch_inter",
                    "return_inter",
                    self._send_tokens(number_bytes, "ep_inter", share),
                    self._send_tokens(2, "ep_inter", share),
                ),
                (
                    "dispatch_intra",
                    "return_intra",
                    self._send_tokens(number_bytes, "ep_intra"),
                    self._send_tokens(2, "ep_intra"),
                ),
            ]
        if training.etp > 1:
            # Ranks of tp gather their tokens, and add up what their parts of the experts make of them.
            whole = self._routed_act
            if training.capacity:
                whole = 2 * moe.width(training.model.hidden) * training.expert_tokens
            gather, scatter = self._tensor("ALLGATHER", whole), self._tensor("REDUCESCATTER", whole)
            hops.append(("gather", "scatter", gather, scatter))
        return (
            [Row(f"moe_{there}", NOTHING, to, back) for there, _, to, back in hops],
            [Row(f"moe_{home}", NOTHING, back, to) for _, home, to, back in reversed(hops)],
        )

    def _shared_experts(self) -> list[Row]:
        """Returns the rows of the experts that every token takes."""
        costs, training = self.costs, self.training
        moe = training.model.moe
        if moe is None or not moe.shared_inner:
            return []
        ffn = moe.shared_inner // training.tp
        return [
            self._column("moe_shared_column", costs.mlp_in(ffn, training.tokens)),
            self._row("moe_shared_row", costs.mlp_out(ffn, training.tokens)),
        ]

    def _at_least_host(self, rows: list[Row]) -> list[Row]:
        """Returns the rows of a layer, filled up to the time that the host needs to start its kernels."""
        packing, last = self.training.packing, rows[-1]
        waits = [self._host_wait(rows, index) for index in range(len(packing.microbatches) if packing else 1)]
        if not any(map(any, waits)):
            return rows
        each = tuple(concat_ops(last.ops, wait) for wait in waits)
        return [*rows[:-1], last._replace(ops=each[0], by_packing=each if packing else ())]

    def _host_wait(self, rows: list[Row], index: int) -> OpCells:
        """Returns how long the rows of a layer wait for the host. index: of the micro-batch among the
        different ones.
        """
        waits: list[list[Op]] = []
        for phases, small in zip((("fwd",), ("ig", "wg")), self.costs.kernels.small, strict=True):
            cells = [row.by_packing[index] if row.by_packing else row.ops for row in rows]
            ops = [op for of_row in cells for phase in phases for op in getattr(of_row, phase)]
            launches = small + sum(op.kernels for op in ops)
            launches += self.costs.kernels.routing if any(row.name == "moe_router" for row in rows) else 0
            idle = max(0.0, launches * self.costs.host - sum(op.seconds for op in ops))
            waits.append([Op("host starts kernels", 0, 0, 0, idle, "host")] if idle else [])
        forward_wait, backward_wait = waits
        return OpCells(forward_wait, backward_wait, [])

    def _embedding(self) -> Row:
        act, parallel = self._act, self.training.sequence_parallel
        return Row(
            "embedding_layer",
            self.costs.embedding(),
            self._tensor("REDUCESCATTER" if parallel else "ALLREDUCE", act),
            self._tensor("ALLGATHER", act) if parallel else None,
        )

    def _input_row(self, scattered: bool) -> Row:
        """Returns the row that gathers a stage's input, sent in shares of tp, before its first layer
        (`--pp-scatter on`).
        """
        gathered = self._tensor("ALLGATHER", self._act) if scattered else None
        return Row("stage_input", self._transfer_wait(scattered), gathered)

    def _output_row(self, scattered: bool) -> Row:
        """Returns the row that gathers the gradient of its output, before the backward of its last layer."""
        gathered = self._tensor("ALLGATHER", self._act) if scattered else None
        return Row("stage_output", self._transfer_wait(scattered), None, gathered)

    def _transfer_wait(self, scattered: bool) -> OpCells:
        """Returns the wait of compute for a transfer that the trainer starts on the stream of compute, each
        way.
        """
        training, gpu = self.training, self.costs.gpu
        if training.pp == 1 or not self.costs.engine.blocking_transfers:
            return NOTHING
        size = self._act / (training.tp if scattered or training.sequence_parallel else 1)
        rate, latency = (
            (gpu.network, gpu.network_ns) if training.world > gpu.server else (gpu.nvlink, gpu.nvlink_ns)
        )
        waits = [Op("transfer", 0, 0, 0, size / (rate * 1e9) + latency * 1e-9, "network", 0)]
        return OpCells(waits, waits, [])

    def _final(self) -> Row:
        return self._column("final_column", self.costs.head())

    def _loss(self) -> list[Row]:
        if self.training.tp == 1:
            return []
        reduction = CellCollective("ALLREDUCE", "tp", 4 * self.training.tokens)
        return [Row(f"cross_entropy{index}", NOTHING, reduction) for index in (1, 2, 3)]

    def _tail(self) -> list[Row]:
        """Returns the norm of the gradients, one number of every rank of tp."""
        return (
            [Row("optimizer1", NOTHING, CellCollective("ALLREDUCE", "tp", 4))] if self.training.tp > 1 else []
        )

    def prologue(self, parameters: StageParameters, whole: int) -> list[Row]:
        """Returns the rows of a stage for its gradients and parameters at the end of a step.

        whole: parameters that every rank of tp has. With sequence parallelism each rank has processed only a
        share of the tokens, so that their gradients are added up over tp.
        """
        training = self.training
        dense, experts = parameters
        rows = []
        if training.sequence_parallel and training.tp > 1:
            rows.append(
                Row("layernorm", NOTHING, None, self._tensor("ALLREDUCE", training.grad_bytes * whole))
            )
        dense_group: GroupKind = "dp_shard" if training.copies > 1 else "dp"
        expert_group: GroupKind = "dp_shard" if training.copies > 1 else "dp_ep"
        expert_ranks = training.shards if training.copies > 1 else training.expert_replicas
        shards, expert_shards = (training.shards, expert_ranks) if training.zero else (1, 1)
        if training.zero < 3 or training.keeps_weights:
            rows += self._gradient_rows("grad_param_comm", "grad_gather", dense, dense_group, training.shards)
            rows += self._gradient_rows(
                "moe_grad_norm2", "moe_grad_norm1", experts, expert_group, expert_ranks
            )
        states = dense / shards + experts / expert_shards
        optimizer = self.costs.optimizer(states, dense + experts)
        slower = self._overlap_loss_s(dense, training.shards) + self._overlap_loss_s(experts, expert_ranks)
        if slower:
            lost = Op("compute beside gradients", 0, 0, 0, slower, "network", 0)
            optimizer = concat_ops(optimizer, OpCells([], [lost], []))
        rows.append(Row("grad_param_compute", optimizer))
        return rows

    def _overlap_loss_s(self, parameters: int, ranks: int) -> float:
        """Returns the time that compute loses in a step while gradients and weights are sent, s: the SMs that
        NCCL runs on, for as long as it sends.

        It is counted once, at the end of the step.
        """
        training, gpu = self.training, self.costs.gpu
        if ranks < 2 or training.zero > 1:
            return 0.0
        size = parameters * (training.grad_bytes if training.overlaps_gradients else 0)
        size *= 2 if self._adds_whole_gradients else 1
        weights = 2 * parameters if training.zero and training.overlaps_weights else 0
        if self._has_copies_of_states:
            seconds = self._send_time_s(size, training.dp * training.cp) + self._send_time_s(weights, ranks)
        else:
            seconds = self._send_time_s(size + weights, ranks)
        return seconds * _NCCL_SMS / (gpu.sms - _NCCL_SMS)

    @property
    def _has_copies_of_states(self) -> bool:
        """Whether groups of ranks hold copies of each other's optimizer states: gradients are then added up
        over all replicas.
        """
        training = self.training
        return (training.zero == 1 or training.keeps_weights) and training.copies > 1

    @property
    def _adds_whole_gradients(self) -> bool:
        """Whether gradients are added up whole on every rank."""
        # DeepSpeed's pipeline does so whatever share a rank keeps.
        return not self.training.zero or self.costs.engine.whole_gradients or self._has_copies_of_states

    def _send_time_s(self, size: float, ranks: int) -> float:
        """Returns the time of `size` bytes of gradients or weights between replicas at the network's
        rate, s.
        """
        gpu = self.costs.gpu
        # Members of a group in one server share the traffic that leaves it.
        inside = max(1, gpu.server // self.training.tp)
        rate = gpu.nvlink if ranks <= inside else gpu.network * inside
        return size * (ranks - 1) / ranks / (rate * 1e9)

    def _stalls(self, size: float, ranks: int, is_overlapped: bool) -> OpCells:
        """Returns the time that a trainer loses between the buckets that it sends behind the last
        backward.
        """
        share = self.costs.engine.bucket_share
        if share == 1 or is_overlapped:
            return NOTHING
        seconds = self._send_time_s(size, ranks) * (1 / share - 1)
        return OpCells([], [], [Op("between buckets", 0, 0, 0, seconds, "network", 0)])

    def _gradient_rows(
        self, reduce: str, gather: str, parameters: int, group: GroupKind, ranks: int
    ) -> list[Row]:
        """Returns the rows that add gradients up over `ranks`, and gather the weights where each rank has
        updated a share.

        With ZeRO 2 gradients are added up unit by unit, in each backward.
        """
        if ranks == 1 or not parameters:
            return []
        size = self.training.grad_bytes * parameters
        training, is_whole = self.training, self._adds_whole_gradients
        reduce_group, reduce_ranks = group, ranks
        if self._has_copies_of_states:
            reduce_group, reduce_ranks = "dp", training.dp * training.cp
        stalls = self._stalls((2 if is_whole else 1) * size, reduce_ranks, training.overlaps_gradients)
        if not training.zero:
            return [Row(reduce, stalls, wg=CellCollective("ALLREDUCE", group, size))]
        each = self.costs.engine.broadcast_us * 1e-6
        waits = [Op("broadcasts", 0, 0, 0, ranks * each, "launch", 0)] if each else []
        waiting = concat_ops(
            OpCells([], [], waits),
            self._stalls(2 * parameters, ranks, training.overlaps_weights or training.keeps_weights),
        )
        gathered = Row(gather, waiting, wg=CellCollective("ALLGATHER", group, 2 * parameters))
        if training.zero > 1 and not training.keeps_weights:
            return [gathered]
        kind = "ALLREDUCE" if is_whole else "REDUCESCATTER"
        return [gathered, Row(reduce, stalls, wg=CellCollective(kind, reduce_group, size))]


def _is_layer(name: str) -> bool:
    """Returns whether a row of this name begins a layer, not the embedding or the output layer."""
    return not name.startswith(("embedding", "final"))
