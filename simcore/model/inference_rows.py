"""The rows of an inference step: forward alone, as servers of models run it (docs/inference.md)."""

from __future__ import annotations

import math

from simcore.diagnostics import Diagnostic
from simcore.model.costs import NOTHING, CellCollective, Row, concat_ops
from simcore.model.gpu import Gpu
from simcore.model.kv_cache import cached_tokens
from simcore.model.megatron import MegatronRows
from simcore.model.operations.inference import InferenceCosts
from simcore.model.operations.mixers import mixer_name, mixer_parts
from simcore.model.operations.products import GRID_NK
from simcore.model.operations.servers import collective_in_server, sent_share
from simcore.model.sharding import StageParameters
from simcore.model.training import Training
from simcore.records import replace
from simcore.workload import Workload
from simcore.workload.inference import without_backward


class InferenceRows(MegatronRows):
    """Makes the rows of one inference step on one GPU."""

    costs: InferenceCosts

    def workload(self, path: str) -> Workload:
        """Returns the workload, without its `maker`. path: for messages."""
        workload = without_backward(super().workload(path))
        return replace(
            workload,
            header=replace(workload.header, inference=True),
            waits={cell: rows for cell, rows in workload.waits.items() if cell[0] == "fwd"},
            uneven={cell: ranks for cell, ranks in workload.uneven.items() if cell[0] == "fwd"},
        )

    def prologue(self, parameters: StageParameters, whole: int) -> list[Row]:
        """Returns no rows: nothing is updated."""
        del parameters, whole
        return []

    def _loss(self) -> list[Row]:
        return []

    def _tail(self) -> list[Row]:
        return []

    def _final(self) -> Row:
        """Returns the output layer of the last token of each sequence, whose logits are gathered."""
        training = self.training
        size = 2 * training.microbatch_size * training.padded_vocab
        return Row("final_column", self.costs.head(), self._tensor("ALLGATHER", size))

    def _mixer(self) -> list[Row]:
        """Returns the rows of a layer's attention, over the cache where a token is decoded."""
        costs, training = self.costs, self.training
        assert training.inference is not None
        if not training.inference.decodes:
            return super()._mixer()
        name = mixer_name(costs)
        before_core, _, behind_core = mixer_parts(costs)
        rows = [
            self._column(f"{name}_column", concat_ops(costs.norm(), before_core)),
            Row(f"{name}_core", costs.cache_core()),
        ]
        if training.cp > 1 and name == "attention":
            rows.append(Row("attention_merge", NOTHING, self._merge()))
        return [*rows, self._row(f"{name}_row", behind_core)]

    def _merge(self) -> CellCollective:
        """Returns the sum of what ranks of cp made of their parts of the cache, with a weight a head."""
        training, model = self.training, self.training.model
        width = model.mla.kv_lora_rank if model.mla else model.value_dim
        heads = model.heads // training.tp
        return CellCollective("ALLREDUCE", "cp", training.tokens * heads * (2 * width + 4))

    def _moe(self) -> list[Row]:
        """Returns the rows of a layer's experts.

        Without ranks for experts every rank of tp has all tokens and a part of each expert, whose sums are
        added up once, with those of shared experts. With ep each rank of tp sends its share of the tokens,
        and gathers the others' when they are back.
        """
        training = self.training
        if training.ep == 1 and training.etp > 1:
            costs = self.costs
            combined = concat_ops(costs.permute(), costs.latent("latent up", False))
            routed = concat_ops(costs.norm(), costs.latent("latent down", True), costs.router())
            shared = [row._replace(fwd=None) for row in self._shared_experts()]
            # Ranks that share the tokens out gather them for the experts.
            gathered = self._tensor("ALLGATHER", self._act) if training.sequence_parallel else None
            return [
                Row("moe_router", routed, gathered),
                Row("moe_experts", costs.experts()),
                *shared,
                self._row("moe_combine", combined),
            ]
        rows = super()._moe()
        if training.tp == 1 or training.sequence_parallel:
            return rows
        at = next(index for index, row in enumerate(rows) if row.name == "moe_combine")
        rows[at] = rows[at]._replace(fwd=self._tensor("ALLGATHER", self._act))
        return rows


def hop_ns(training: Training, gpu: Gpu) -> float:
    """Returns the time of a hop of NVLink, ns, with which an all-reduce of the step's activations over tp (ep
    where there is no tp) takes what NCCL's takes.

    That of training is fitted on messages of 20 MB and more; decoded tokens are far less, and an all-reduce
    of 64 kB over 8 H100 takes 19 us in place of 39.
    """
    ranks = min(training.tp if training.tp > 1 else training.ep, gpu.server)
    if ranks < 2:
        return gpu.nvlink_ns
    size = 2 * training.tokens * training.model.hidden
    sending_s = sent_share("all_reduce", ranks) * size / (gpu.nvlink * 1e9)
    waiting_s = collective_in_server(gpu, "all_reduce", ranks, size) - sending_s
    # A halving and a doubling, each of so many hops.
    hops = 2 * math.ceil(math.log2(ranks))
    return round(max(0.0, waiting_s) * 1e9 / hops)


def inference_notes(training: Training) -> list[Diagnostic]:
    """Returns what is assumed of an inference step beside what follows from the model."""
    # A product of few rows is one of few columns, transposed, and those were measured.
    step, least = training.inference, GRID_NK[0]
    assert step is not None
    texts = [
        "kernels are started by CUDA graphs, the norm adds the residual; sampling and what a server does "
        "between steps are not priced"
    ]
    if training.tokens < least:
        texts.append(
            f"products of fewer than {least} rows were not measured: the formula of measured ones, by which "
            "few rows take what reading the weights takes"
        )
    if step.decodes:
        texts.append(
            "attention over a cache was not measured: its bytes at the rate of other kernels that memory "
            "bounds"
        )
    if training.model.moe is not None and training.loads is None:
        texts.append("tokens choose all experts alike: as many are read as they are expected to hit")
    positions = max(training.model.longest, training.model.seq)
    if cached_tokens(training) * training.cp > positions:
        texts.append(f"a sequence is longer than the {positions} positions that the model was made for")
    return [Diagnostic("note", "inference-assumed", text, training.model.name) for text in texts]
