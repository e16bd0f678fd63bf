"""Makes the workload of a model from parameters: the maker that a `Workload` of a model has."""

from __future__ import annotations

import os
from array import array
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.aicb import AicbConfig, AicbTimes, aicb_text, modules, read_times, times_of_rows
from simcore.model.aicb_arguments import AicbArguments, check_config
from simcore.model.costs import Costs, Op, RowOps, nanoseconds
from simcore.model.gpu import Gpu, find_gpu
from simcore.model.megatron import FORMAT, POLICY, MegatronRows
from simcore.model.options.request import DEFAULTS
from simcore.model.pipeline_layers import stage_words
from simcore.model.resolving import DEFAULT_GPU, resolve_training
from simcore.model.sizes import Model, Moe
from simcore.model.training import Training
from simcore.names import FORWARD_ONLY
from simcore.parameters import FLAGS, flag_of
from simcore.records import Struct, replace
from simcore.units import byte_size, duration
from simcore.workload import Cells as Columns
from simcore.workload import Header, Workload
from simcore.workload.model import InputNetwork, ModelParameters, Phase

_AICB = "AICB arguments"
# A form needs the rows of the draft, of the run on the screen and of the opened one, in turn.
_MOST_CACHED = 4
# Parameters that `--aicb-args` replaces.
_IN_AICB_ARGS = tuple(flag.field for flag in FLAGS if flag.of == ("model",) and "aicb" not in flag.field)


class ModelRows(Struct, frozen=True):
    """Rows of a model and what they were made from."""

    training: Training
    """How the model is trained."""
    gpu: Gpu
    """The GPU."""
    workload: Workload
    """The rows."""
    ops: list[RowOps]
    """The ops of each row of the workload."""


def _rows_of(gpu: Gpu, training: Training) -> MegatronRows:
    if training.inference is None:
        return MegatronRows(Costs(gpu, training))
    # Imported here: most runs are of training.
    from simcore.model.inference_rows import InferenceRows
    from simcore.model.operations.inference import InferenceCosts

    return InferenceRows(InferenceCosts(gpu, training))


class ModelMaker:
    """Makes the rows of a model that was opened.

    model: None where AICB's arguments state all of it. diagnostics: those of its file.
    """

    def __init__(self, path: str, model: Model | None, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        self.path = path
        self.model = model
        self.diagnostics = diagnostics
        self._cached_rows: dict[ModelParameters, ModelRows] = {}
        self._aicb_workload: tuple[ModelParameters, Workload] | None = None

    def empty_workload(self) -> Workload:
        """Returns a workload without rows, whose maker makes those of a run."""
        none = array("q")
        return Workload(
            self.path, FORMAT, POLICY, "simai", Header(), [], none, Columns(), Columns(), Columns(), none,
            None, self.diagnostics, maker=self,
        )  # fmt: skip

    def workload(self, parameters: ModelParameters) -> Workload:
        """Returns the rows under these parameters. Raises `UsageError` where they do not fit, with what
        would.
        """
        if parameters.as_aicb is None:
            return self.make_rows(parameters).workload
        if self._aicb_workload is None or self._aicb_workload[0] != parameters:
            self._aicb_workload = parameters, self._make_aicb_workload(parameters)
        return self._aicb_workload[1]

    def make_rows(self, parameters: ModelParameters) -> ModelRows:
        """Returns the rows in dialect megatron, and what they were made from; the last results are cached."""
        model_rows = self._cached_rows.get(parameters)
        if model_rows is None:
            self._check(parameters)
            assert self.model is not None
            training = resolve_training(self.model, parameters)
            gpu = find_gpu(training.gpu)
            rows = _rows_of(gpu, training)
            diagnostics = (*self.diagnostics, *training.diagnostics, *self._pricing_notes(training, gpu))
            try:
                workload = replace(rows.workload(self.path), diagnostics=diagnostics, maker=self)
            except OverflowError:
                raise UsageError(
                    f"--seq {training.seq} in micro-batches of {training.microbatch_size}: a cell would have "
                    "2^63 bytes or ns or more; shorter sequences or smaller micro-batches would fit"
                ) from None
            model_rows = ModelRows(training, gpu, workload, rows.ops)
            # One assignment, as a worker thread makes rows, too.
            self._cached_rows = dict([*self._cached_rows.items(), (parameters, model_rows)][-_MOST_CACHED:])
        return model_rows

    def network(self, parameters: ModelParameters) -> InputNetwork | None:
        """Returns the network of the GPU; None where rows are AICB's."""
        if parameters.as_aicb is not None:
            if parameters.gpu is None:
                return None
            world = (self._aicb_config(parameters)[0]).world
            gpu = find_gpu(parameters.gpu)
            return gpu.network_of(world)
        training, gpu = (model_rows := self.make_rows(parameters)).training, model_rows.gpu
        if training.inference is not None:
            from simcore.model.inference_rows import hop_ns

            gpu = replace(gpu, nvlink_ns=hop_ns(training, gpu))
        return gpu.network_of(training.world)

    def values(self, parameters: ModelParameters) -> dict[str, Any]:
        """Returns {field: value} that a run takes for the parameters of a model that were not given."""
        if parameters.as_aicb is not None:
            return {}
        try:
            model_rows = self.make_rows(parameters)
        except (UsageError, InputError):
            # For a draft that does not fit: Megatron's defaults.
            return {
                "schedule": "1f1b", "microbatches": 1, "virtual_stages": 1, "cp": 1, "microbatch_size": 1,
                "global_batch": 1, "seq": self.model.seq if self.model else 1, "stage_layers": "none",
                "shard_size": "none", "bucket_size": "none", "gpu": DEFAULT_GPU, **DEFAULTS,
                "prefetch": "none", "reshard_after_forward": "none", "expert_imbalance": "none",
                "seq_imbalance": "none",
                "recompute_layers": "none", "recompute_rows": "none", "offload": "none",
                "offload_layers": "none", "pipeline_layout": "none", "engine_preset": "megatron",
                "expert_capacity": "none", "expert_placement": "none", "dispatch_precision": "none", "etp": 1,
                "cp_inner": "none", "dispatch": "plain", "node_limit": "none", **_NO_INFERENCE,
            }  # fmt: skip
        training = model_rows.training
        on_off = {True: "on", False: "off"}
        inference = training.inference
        schedule = "interleaved" if training.chunks > 1 else "1f1b"
        return {
            "schedule": schedule if inference is None else FORWARD_ONLY,
            "microbatches": training.microbatches,
            "virtual_stages": training.chunks,
            "cp": training.cp,
            "cp_comm_type": training.cp_comm_type,
            "cp_inner": training.cp_heads if training.cp_comm_type == "a2a+p2p" else "none",
            "microbatch_size": training.microbatch_size,
            "global_batch": training.global_batch,
            "seq": training.seq,
            "sequence_parallel": on_off[training.sequence_parallel],
            "flash": on_off[training.flash],
            "recompute": training.recompute,
            "zero": str(training.zero),
            **_sharding_values(training),
            **_NO_INFERENCE,
            **({} if inference is None else {"kv_dtype": inference.kv_dtype, "etp": training.etp}),
            "grad_dtype": "fp32" if training.grad_bytes == 4 else "bf16",
            "precision": training.precision,
            "engine_preset": training.engine,
            "compile": on_off[training.compiled],
            "pp_scatter": on_off[training.pp_scatter],
            "stage_layers": stage_words(training.layers_by_stage),
            "gpu": training.gpu,
            "memory_limit": parameters.memory_limit or f"{model_rows.gpu.memory:.12g}GB",
        }

    def explain_ops(self, parameters: ModelParameters, row: int, phase: Phase) -> list[str]:
        """Returns the ops of a cell: time, what bounds it, FLOPs, bytes, and the share of the peak it
        reaches.
        """
        if parameters.as_aicb is not None:
            return []
        ops: list[Op] = getattr(self.make_rows(parameters).ops[row], phase)
        width = max((len(op.name) for op in ops), default=0)
        lines = []
        for op in ops:
            words = f"{op.name:<{width}} {op.seconds * 1e6:10.1f} us, {op.bound_by}"
            if op.flops:
                words += f"; {op.flops / 1e9:.1f} GFLOP at {100 * op.efficiency:.1f} % of the peak"
            if op.bytes:
                words += f"; {byte_size(round(op.bytes))}"
            lines.append(words)
        return lines

    def summarize_ops(self, parameters: ModelParameters, row: int, phase: Phase) -> str:
        """Returns the ops of a cell in one line, the longest first."""
        if parameters.as_aicb is not None:
            return ""
        ops: list[Op] = getattr(self.make_rows(parameters).ops[row], phase)
        longest = sorted(ops, key=lambda op: -op.seconds)
        return " + ".join(f"{op.name} {duration(round(op.seconds * 1e9))} ({op.bound_by})" for op in longest)

    def _check(self, parameters: ModelParameters) -> None:
        if parameters.aicb_args is not None:
            raise UsageError("--aicb-args is of --as-aicb plain|aiob")
        if self.model is None:
            raise UsageError("found no model: --model NAME|FILE would fit")
        for field, why in (("passes", "layer-loop"), ("layers", "op tables"), ("dialect", "files")):
            if getattr(parameters, field) != flag_of(field).default:
                raise UsageError(f"{flag_of(field).option} is of {why}: found a model")
        if parameters.schedule == "layer-loop":
            raise UsageError("--schedule layer-loop runs the rows of a file; for a model 1f1b would fit")

    def _pricing_notes(self, training: Training, gpu: Gpu) -> list[Diagnostic]:
        """Returns notes on what is not priced of a training, and on the sources of its constants."""
        texts = [f"constants of {printable(gpu.name, 40)}: {printable(gpu.source)}"] if gpu.source else []
        if training.model.tied_embeddings and training.pp > 1 and training.inference is None:
            texts.append(
                "the first and the last stage add up the gradients of the tied embedding: not priced"
            )
        if training.placement == "both-ways":
            texts.append(
                "each stage lies on two ranks, whose gradients are added up when the step ends: not priced"
            )
        if training.cp_ring > 1 and training.cp_comm_type != "all-gather":
            texts.append(
                "the ring of keys and values is priced as one all-gather beside attention, for which what "
                "follows attention waits"
            )
        unmeasured = training.model.unmeasured
        if unmeasured:
            words = ", ".join(unmeasured)
            texts.append(f"{words}: no kernel was measured; their times and activations are about right")
        notes = [Diagnostic("note", "model-priced", text, self.path) for text in texts]
        if training.inference is None:
            return notes
        from simcore.model.inference_rows import inference_notes

        return [*notes, *inference_notes(training)]

    # -- AICB ----------------------------------------------------------------------------

    def text(self, parameters: ModelParameters) -> tuple[str, tuple[Diagnostic, ...]] | None:
        """Returns AICB's file, where the parameters request it; else None."""
        return None if parameters.as_aicb is None else self._make_aicb_text(parameters)

    def _make_aicb_text(self, parameters: ModelParameters) -> tuple[str, tuple[Diagnostic, ...]]:
        """Returns the text that AICB writes, and what was assumed for it."""
        config, arguments = self._aicb_config(parameters)
        diagnostics: list[Diagnostic] = list(arguments.diagnostics if arguments else ())
        mode = parameters.as_aicb
        if mode not in flag_of("as_aicb").choices:
            raise UsageError(f"--as-aicb {printable(str(mode), 40)}: plain or aiob is expected")
        if arguments is not None and arguments.aiob != (mode == "aiob"):
            has = "has" if arguments.aiob else "has no"
            message = f"--as-aicb {mode}: --aicb-args {has} --aiob_enable; {mode} taken"
            diagnostics.append(Diagnostic("note", "aicb-mode", message, _AICB))
        times = None
        if mode == "aiob":
            times, time_diagnostics = self._times(config, arguments, parameters)
            diagnostics += time_diagnostics
        quirks = _quirks(config, mode == "aiob")
        diagnostics += [Diagnostic("note", "aicb-quirk", text, self.path) for text in quirks]
        return aicb_text(config, times), tuple(diagnostics)

    def _make_aicb_workload(self, parameters: ModelParameters) -> Workload:
        from simcore.workload.formats.simai_text import read

        text, diagnostics = self._make_aicb_text(parameters)
        workload = read(self.path, text.encode())
        all_diagnostics = (*self.diagnostics, *diagnostics, *workload.diagnostics)
        return replace(workload, diagnostics=all_diagnostics, maker=self)

    def _aicb_config(self, parameters: ModelParameters) -> tuple[AicbConfig, AicbArguments | None]:
        if parameters.aicb_args is not None:
            options = [
                flag_of(field).option
                for field in (*_IN_AICB_ARGS, "world", "tp", "pp", "ep", "microbatches")
                if getattr(parameters, field) != flag_of(field).default
                and field not in ("gpu", "memory_limit")
            ]
            if options:
                raise UsageError(f"{', '.join(options)}: --aicb-args has its own, give one of the two")
            if self.model is not None:
                raise UsageError(
                    "--aicb-args has its own sizes: found a model beside it "
                    f"({printable(self.model.name, 40)})"
                )
            arguments = AicbArguments(parameters.aicb_args)
            return arguments.config, arguments
        if self.model is None:
            raise UsageError("--as-aicb: found neither a model nor --aicb-args, expected one of them")
        if parameters.seq_imbalance is not None:
            raise UsageError(
                "--seq-imbalance: AICB's rows are those of every micro-batch; without --as-aicb it would fit"
            )
        config = _config_of(resolve_training(self.model, parameters), self.model)
        check_config(config)
        return config, None

    def _times(
        self, config: AicbConfig, arguments: AicbArguments | None, parameters: ModelParameters
    ) -> tuple[AicbTimes, list[Diagnostic]]:
        path = arguments.comp_filepath if arguments else None
        if path is not None and os.path.lexists(path):
            from simcore.workload.opening import read_file

            data = read_file(path)
            if data.lstrip().startswith(b"HYBRID_TRANSFORMER"):
                # A file that AICB wrote states its times, too.
                from simcore.workload.formats.simai_text import read

                return times_of_rows(read(path, data), config), []
            return read_times(path, data, config.recompute), []
        diagnostics = []
        gpu = find_gpu(parameters.gpu or "a100-80")
        why = (
            "no --comp_filepath is given" if path is None else f"{printable(path, 60)}: there is no such file"
        )
        message = f"{why}; compute cells are those of {printable(gpu.name, 40)} (docs/models.md)"
        diagnostics.append(Diagnostic("note" if path is None else "warning", "aicb-times", message, _AICB))
        return estimate_aicb_times(config, gpu), diagnostics


# The parameters of an inference step, where there is none.
_NO_INFERENCE = {"prefill": "none", "decode": "none", "context": "none", "kv_dtype": "none"}


def _sharding_values(training: Training) -> dict[str, Any]:
    """Returns the defaults taken for parameters of sharding and buckets; none where they have no effect."""
    sharded = training.zero == 3
    return {
        "prefetch": str(training.prefetch) if sharded else "none",
        "reshard_after_forward": ("on" if training.reshard else "off") if sharded else "none",
        "shard_size": training.shards if training.zero else "none",
        "bucket_size": training.bucket_size or "none",
        "recompute_layers": "none", "recompute_rows": "none", "offload": "none", "offload_layers": "none",
        "pipeline_layout": "none", "seq_imbalance": "none",
        "expert_imbalance": "none", "expert_capacity": "none", "expert_placement": "none",
        "dispatch_precision": "none", "etp": 1, "dispatch": "plain", "node_limit": "none",
    }  # fmt: skip


def _config_of(training: Training, model: Model) -> AicbConfig:
    """Returns the arguments of AICB for this training."""
    moe = model.moe or Moe(0, 1, model.ffn)
    return AicbConfig(
        model.layers, model.hidden, model.heads, moe.ffn, model.vocab, training.seq,
        training.microbatch_size, training.global_batch, training.world, training.tp, training.pp,
        training.ep, training.sequence_parallel, training.recompute != "none", model.bias == "all",
        moe.experts or None, moe.experts_per_token, moe.shared_experts, moe.dense_layers, model.mla,
    )  # fmt: skip


def estimate_aicb_times(config: AicbConfig, gpu: Gpu) -> AicbTimes:
    """Returns what AICB would measure, from the constants of a GPU; its layers are without collectives."""
    moe = None
    if config.experts is not None:
        moe = Moe(config.experts, min(config.experts_per_token, config.experts), config.ffn)
    heads = max(config.heads, config.tp, 1)
    model = Model(
        "AICB", max(config.layers, 1), config.hidden, heads, heads, max(config.hidden // heads, 1),
        config.ffn, False, config.vocab, config.seq, positions=config.seq, moe=moe, mla=config.mla,
    )  # fmt: skip
    training = Training(
        model, config.tp, 1, max(config.dp, 1), config.pp, max(config.ep, 1), 1,
        (config.stage_layers,) * config.pp, config.microbatch_size, config.global_batch, config.seq,
        config.sequence_parallel, True, "none", 1, 4, "bf16", False, gpu.name,
    )  # fmt: skip
    costs = Costs(gpu, training)
    attention = (costs.norm(), costs.attention_in(), costs.attention_core(), costs.attention_out())
    inner = max(config.ffn // config.tp, 1)
    mlp = [costs.norm(), costs.mlp_in(inner, training.tokens), costs.mlp_out(inner, training.tokens)]
    if moe:
        mlp = [costs.norm(), costs.experts()]
    # The parameters of one rank: its share of those of the stage.
    rank_parameters = sum(n for _, n in modules(config))
    adam = nanoseconds(costs.optimizer(rank_parameters / max(config.dp, 1), rank_parameters).ig)
    forward = sum(nanoseconds(part.fwd) for part in attention)
    return AicbTimes(
        nanoseconds(costs.embedding().fwd),
        forward + (nanoseconds(costs.attention_core().fwd) if config.recompute else 0),
        sum(nanoseconds(part.fwd) for part in mlp),
        (adam // 2, adam - adam // 2),
        forward // 5,
    )


def _quirks(config: AicbConfig, aiob: bool) -> list[str]:
    """Returns what AICB writes in this file and no trainer sends."""
    quirks = []
    if config.layers % config.pp:
        lost = config.layers - config.stage_layers * config.pp
        quirks.append(f"{config.layers} layers on pp {config.pp}: AICB loses {lost} of them")
    if config.microbatches == 0:
        quirks.append(
            f"a global batch of {config.global_batch} is less than micro-batch {config.microbatch_size} "
            f"x dp {config.dp}: AICB writes no layer"
        )
    if not config.sequence_parallel and config.tp > 1:
        quirks.append("`layernorm` all-reduces all parameters over tp; Megatron needs none of it")
    if aiob and config.tp > 1:
        quirks.append(
            "half of the tensor-parallel traffic of backward is missing (0 bytes, or no collective)"
        )
    if config.experts is not None:
        quirks.append("the first row of the experts gathers over tp, not over ep")
    return quirks
