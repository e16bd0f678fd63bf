"""torchtitan's TOML: which of its keys are parameters here, both ways. Keys are `section.key`."""

from __future__ import annotations

from typing import Any

from simcore.model.known_models import MODELS
from simcore.model.launch.arguments import Argument, Arguments, Fields, Rule, Table
from simcore.units import is_whole

# (name, flavor) of torchtitan -> the model here.
FLAVORS = {
    ("llama3", "8B"): "llama-3-8b", ("llama3", "70B"): "llama-3-70b", ("llama3", "405B"): "llama-3-405b",
    ("deepseek_v3", "671B"): "deepseek-v3", ("qwen3", "235B-A22B"): "qwen3-235b-a22b",
}  # fmt: skip
_SCHEDULES = {
    "1f1b": None, "interleaved1f1b": "interleaved", "gpipe": "gpipe", "loopedbfs": "looped-bfs",
    "zbvzerobubble": "zb-v", "dualpipev": "dualpipev",
}  # fmt: skip
_SCHEDULE_NAMES = {
    None: "1F1B", "1f1b": "1F1B", "interleaved": "Interleaved1F1B", "gpipe": "GPipe",
    "looped-bfs": "LoopedBFS", "zb-v": "ZBVZeroBubble", "dualpipev": "DualPipeV",
}  # fmt: skip
_RESHARDING = "fsdp_reshard_after_forward"
# GPUs that its run_train.sh starts without NGPU.
_DEFAULT_GPUS = 8


def _degree(name: str, field: str, *more: str) -> Argument:
    older = tuple(f"{section}.{name}" for section in ("training", "experimental"))
    return Argument(f"parallelism.{name}", field, default=1, aliases=(*older, *more))


def _names(name: str) -> tuple[str, ...]:
    """Returns a key of parallelism with the sections in which it was."""
    return tuple(f"{section}.{name}" for section in ("parallelism", "training", "experimental"))


def _read_model(arguments: Arguments, fields: Fields) -> None:
    name, flavor = arguments.text("model.name"), arguments.text("model.flavor")
    if name is None or flavor is None:
        return
    model_name = FLAVORS.get((name, flavor))
    if model_name is None:
        expected = ", ".join(f"{one} {size}" for one, size in FLAVORS)
        raise arguments.refusal(
            "model.flavor", f"found {name} {flavor}, expected one of {expected}, or --model NAME beside it"
        )
    fields["known"] = model_name


def _write_model(fields: Fields) -> dict[str, Any]:
    names = {model: flavor for flavor, model in FLAVORS.items()}
    name, flavor = names.get(fields.get("known", ""), ("", ""))
    return {"model.name": name, "model.flavor": flavor} if name else {}


def _read_batch(arguments: Arguments, fields: Fields) -> None:
    local = arguments.count("training.local_batch_size", "training.batch_size") or 8
    batch = arguments.count("training.global_batch_size", least=-1)
    size = arguments.count(*_names("pipeline_parallel_microbatch_size")) or 1
    count = arguments.count(*_names("pipeline_parallel_microbatches"), least=-1)
    if fields["pp"] > 1 and count is not None and count > 0:
        size = max(local // count, 1)
    size = size if fields["pp"] > 1 else local
    if local % size:
        raise arguments.refusal(
            arguments.use("training.local_batch_size", "training.batch_size") or "training.local_batch_size",
            f"found {local}, expected a multiple of pipeline_parallel_microbatch_size {size}",
        )
    fields["microbatch_size"] = size
    if batch is not None and batch > 0:
        fields["global_batch"] = batch
    else:
        fields["microbatches"] = local // size


def _write_batch(fields: Fields) -> dict[str, Any]:
    size, pp = fields["microbatch_size"], fields["pp"]
    # Without a pipeline a rank's batch is one micro-batch, and more of them are accumulated.
    local = size * (fields["microbatches"] if pp > 1 else 1)
    output: dict[str, Any] = {"training.local_batch_size": local}
    if fields["global_batch"] != local * fields["dp"]:
        output["training.global_batch_size"] = fields["global_batch"]
    return output | ({"parallelism.pipeline_parallel_microbatch_size": size} if pp > 1 and size != 1 else {})


def _read_sharding(arguments: Arguments, fields: Fields) -> None:
    copies = arguments.count(*_names("data_parallel_replicate_degree")) or 1
    shards = arguments.count(*_names("data_parallel_shard_degree"), "training.data_parallel_degree", least=-1)
    shards = -1 if shards is None else shards
    model_ranks = fields["tp"] * fields["pp"] * fields["cp"]
    if shards <= 0:
        ranks = model_ranks * copies
        shards = max(_DEFAULT_GPUS // ranks, 1)
        fields["world"] = ranks * shards
        arguments.assume(
            arguments.use(*_names("data_parallel_shard_degree"), "training.data_parallel_degree")
            or "training",
            f"world: {fields['world']} GPUs assumed, as its run_train.sh starts {_DEFAULT_GPUS} (--world)",
        )
        is_sharded = True
    else:
        fields["world"] = model_ranks * copies * shards
        is_sharded = shards * fields["cp"] > 1
    fields["zero"] = "3" if is_sharded else "0"
    if is_sharded and copies > 1:
        fields["shard_size"] = shards * fields["cp"]
    policy = arguments.choice(
        {word: word for word in ("default", "always", "never")}, f"parallelism.{_RESHARDING}"
    )
    keeps = policy == "never" or (policy in (None, "default") and fields["pp"] > 1)
    if is_sharded and keeps:
        fields["reshard_after_forward"] = "off"
    reduced = arguments.choice({"float32": "fp32", "bfloat16": "bf16"}, "training.mixed_precision_reduce")
    if reduced == "bf16":
        fields["grad_dtype"] = "bf16"


def _write_sharding(fields: Fields) -> dict[str, Any]:
    dp, cp, shard = fields["dp"], fields["cp"], fields["shard_size"]
    shards = (shard // cp if shard else dp) if fields["zero"] == "3" else 1
    output = {
        "parallelism.data_parallel_replicate_degree": dp // max(shards, 1),
        # Of one replica it may be that its sharding is for more of them.
        "parallelism.data_parallel_shard_degree": -1 if fields["zero"] == "3" and dp * cp == 1 else shards,
    }
    keeps = fields["reshard_after_forward"] == "off"
    if fields["zero"] == "3" and keeps != (fields["pp"] > 1):
        output[f"parallelism.{_RESHARDING}"] = "never" if keeps else "always"
    return output | (
        {"training.mixed_precision_reduce": "bfloat16"} if fields["grad_dtype"] == "bf16" else {}
    )


def _read_tensors(arguments: Arguments, fields: Fields) -> None:
    overlaps = arguments.has(*_names("enable_async_tensor_parallel"))
    if fields["tp"] > 1:
        fields["sequence_parallel"] = "on"
        if overlaps:
            fields["overlap_tp"] = True


def _write_tensors(fields: Fields) -> dict[str, Any]:
    return {"parallelism.enable_async_tensor_parallel": True} if fields["overlap_tp"] else {}


_ROTATIONS = {"allgather": "all-gather", "alltoall": "p2p"}


def _read_rotation(arguments: Arguments, fields: Fields) -> None:
    method = arguments.choice(_ROTATIONS, *_names("context_parallel_rotate_method"))
    fields["cp_comm_type"] = method or "all-gather"


def _write_rotation(fields: Fields) -> dict[str, Any]:
    is_ring = fields["cp"] > 1 and fields["cp_comm_type"] == "p2p"
    return {"parallelism.context_parallel_rotate_method": "alltoall"} if is_ring else {}


def _read_pipeline(arguments: Arguments, fields: Fields) -> None:
    name = arguments.use(*_names("pipeline_parallel_schedule"))
    schedule = (arguments.text(name) or "" if name else "1F1B").lower().replace("_", "")
    layers = arguments.count(*_names("pipeline_parallel_layers_per_stage"))
    if fields["pp"] == 1:
        return
    if schedule not in _SCHEDULES:
        expected = ", ".join(dict.fromkeys(_SCHEDULE_NAMES.values()))
        raise arguments.refusal(name or "", f"found {schedule}, expected one of {expected}")
    fields["schedule"] = _SCHEDULES[schedule]
    if schedule in ("interleaved1f1b", "loopedbfs"):
        # Two chunks of a stage are torchtitan's default.
        model = MODELS.get(fields.get("known", ""))
        chunks = max(model.layers // (fields["pp"] * layers), 1) if layers and model else 2
        fields["virtual_stages"] = chunks


def _write_pipeline(fields: Fields) -> dict[str, Any]:
    if fields["pp"] == 1:
        return {}
    schedule, chunks = fields["schedule"], fields["virtual_stages"]
    if schedule is None and chunks > 1:
        schedule = "interleaved"
    name = _SCHEDULE_NAMES.get(schedule)
    output: dict[str, Any] = (
        {} if name in (None, "1F1B") else {"parallelism.pipeline_parallel_schedule": name}
    )
    if chunks > 2 and schedule not in ("zb-v", "dualpipev"):
        output["parallelism.pipeline_parallel_layers_per_stage"] = fields["stages"][0]
    return output


def _read_checkpointing(arguments: Arguments, fields: Fields) -> None:
    words = {word: word for word in ("none", "selective", "full", "memory_budget")}
    mode = arguments.choice(words, "activation_checkpoint.mode") or "selective"
    option = arguments.text("activation_checkpoint.selective_ac_option") or "op"
    if mode == "memory_budget":
        arguments.warn("activation_checkpoint.mode", "nothing is computed again here (--recompute)")
    elif mode == "selective" and is_whole(option) and int(option) > 0:
        fields["recompute"] = "full"
        if int(option) > 1:
            fields["recompute_layers"] = f"1/{option}"
    elif mode != "none":
        fields["recompute"] = mode


def _write_checkpointing(fields: Fields) -> dict[str, Any]:
    recompute, layers = fields["recompute"], fields["recompute_layers"]
    prefix = "activation_checkpoint"
    if recompute == "full" and layers is not None and layers.startswith("1/"):
        return {f"{prefix}.mode": "selective", f"{prefix}.selective_ac_option": layers[2:]}
    output = {f"{prefix}.mode": recompute}
    return output | ({f"{prefix}.selective_ac_option": "op"} if recompute == "selective" else {})


def _read_compute(arguments: Arguments, fields: Fields) -> None:
    fields["engine_preset"] = "torchtitan"
    if arguments.has("compile.enable") | arguments.has("training.compile"):
        fields["compile"] = "on"
    name = arguments.use("model.converters")
    value = arguments.arguments[name].value if name else ()
    converters = [value] if isinstance(value, str) else [str(one) for one in value]
    if arguments.has("training.enable_float8_linear", "float8.enable_float8_linear"):
        converters.append("float8")
    if any("mx" in one for one in converters):
        fields["precision"] = "mxfp8"
    elif any("float8" in one for one in converters):
        fields["precision"] = "fp8"


def _write_compute(fields: Fields) -> dict[str, Any]:
    output: dict[str, Any] = {"compile.enable": True} if fields["compile"] == "on" else {}
    names = {"fp8": "quantize.linear.float8", "mxfp8": "quantize.linear.mx"}
    converter = names.get(fields["precision"])
    return output | ({"model.converters": [converter]} if converter else {})


TABLE: Table = (
    Rule(("model.name", "model.flavor"), (), _read_model, _write_model),
    Argument("training.seq_len", "seq"),
    _degree("tensor_parallel_degree", "tp"),
    _degree("pipeline_parallel_degree", "pp"),
    _degree("context_parallel_degree", "cp"),
    _degree("expert_parallel_degree", "ep"),
    _degree("expert_tensor_parallel_degree", "etp"),
    Rule(("training.local_batch_size", "training.global_batch_size"),
         ("microbatch_size", "global_batch", "microbatches"), _read_batch, _write_batch),
    Rule(("parallelism.data_parallel_replicate_degree", "parallelism.data_parallel_shard_degree"),
         ("world", "zero", "shard_size"), _read_sharding, _write_sharding),
    Rule(_names("enable_async_tensor_parallel"), ("sequence_parallel", "overlap_tp"), _read_tensors,
         _write_tensors),
    Rule(_names("pipeline_parallel_schedule"), ("schedule", "virtual_stages"), _read_pipeline,
         _write_pipeline),
    Rule(_names("context_parallel_rotate_method"), ("cp_comm_type",), _read_rotation, _write_rotation),
    Rule(("activation_checkpoint.mode", "activation_checkpoint.selective_ac_option"),
         ("recompute", "recompute_layers"), _read_checkpointing, _write_checkpointing),
    Rule(("compile.enable", "model.converters"), ("engine_preset", "compile", "precision"), _read_compute,
         _write_compute),
)  # fmt: skip
PRICED_NAMES = ("parallelism.enable_compiled_autograd",)
_GATHERED = "weights are gathered in bf16 here"
# Keys that change the step -> what is taken.
UNPRICED = {
    "float8.enable_fsdp_float8_all_gather": _GATHERED,
    "quantize.linear.float8.enable_fsdp_float8_all_gather": _GATHERED,
    "training.enable_fsdp_float8_all_gather": _GATHERED,
    "training.enable_cpu_offload": "nothing is offloaded here",
    "parallelism.disable_loss_parallel": "the loss is computed on shares of the vocabulary here",
    "experimental.disable_loss_parallel": "the loss is computed on shares of the vocabulary here",
    "parallelism.pipeline_parallel_split_points": "layers are even; --stage-layers says others",
    "parallelism.module_fqns_per_model_part": "layers are even; --stage-layers says others",
    "experimental.pipeline_parallel_split_points": "layers are even; --stage-layers says others",
    "parallelism.pipeline_parallel_schedule_csv": "--schedule FILE would say it",
}
