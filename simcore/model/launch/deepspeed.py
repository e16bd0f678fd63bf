"""DeepSpeed's JSON: which of its keys are parameters here, both ways. Keys are joined by dots."""

from __future__ import annotations

from typing import Any

from simcore.model.launch.arguments import Argument, Arguments, Fields, Rule, Table


def _read_batch(arguments: Arguments, fields: Fields) -> None:
    batch, size = arguments.count("train_batch_size"), arguments.count("train_micro_batch_size_per_gpu")
    count = arguments.count("gradient_accumulation_steps")
    fields |= {"global_batch": batch, "microbatch_size": size, "microbatches": count}
    if batch and size and batch % (size * (count or 1)):
        raise arguments.refusal(
            "train_batch_size",
            f"found {batch}, expected a multiple of {size} a GPU x {count or 1} accumulated",
        )
    if batch and count and batch % count:
        raise arguments.refusal(
            "train_batch_size", f"found {batch}, expected a multiple of {count} accumulated"
        )
    if batch and count:
        # Of a batch without its parts a GPU has one sequence at a time.
        fields["dp"] = batch // ((size or 1) * count)


def _write_batch(fields: Fields) -> dict[str, Any]:
    return {
        "train_batch_size": fields["global_batch"],
        "train_micro_batch_size_per_gpu": fields["microbatch_size"],
        "gradient_accumulation_steps": fields["microbatches"],
    }


def _read_sharding(arguments: Arguments, fields: Fields) -> None:
    fields["engine_preset"] = "deepspeed"
    zero = arguments.count("zero_optimization.stage", least=0) or 0
    if zero > 3:
        raise arguments.refusal("zero_optimization.stage", f"found {zero}, expected 0 to 3")
    fields["zero"] = str(zero)
    overlaps = arguments.has("zero_optimization.overlap_comm")
    # At most: buckets of 0 are what a test of DeepSpeed's own has.
    bucket = arguments.count("zero_optimization.reduce_bucket_size", least=0)
    shard = arguments.count(
        "zero_optimization.mics_shard_size", "zero_optimization.zero_hpz_partition_size", least=-1
    )
    if overlaps and zero < 2:
        fields["overlap_grad_reduce"] = True
        fields["bucket_size"] = bucket or None
    if shard is not None and shard > 1 and zero:
        fields["shard_size"] = shard
        if arguments.use("zero_optimization.zero_hpz_partition_size"):
            arguments.warn(
                "zero_optimization.zero_hpz_partition_size", "gradients stay among these ranks here, too"
            )


def _write_sharding(fields: Fields) -> dict[str, Any]:
    zero = int(fields["zero"])
    output: dict[str, Any] = {"zero_optimization.stage": zero}
    # Which ZeRO 2 and 3 always do here.
    if zero > 1 or fields["overlap_grad_reduce"]:
        output["zero_optimization.overlap_comm"] = True
    if fields["bucket_size"] is not None:
        output["zero_optimization.reduce_bucket_size"] = fields["bucket_size"]
    return output | (
        {"zero_optimization.mics_shard_size": fields["shard_size"]} if fields["shard_size"] else {}
    )


def _read_precision(arguments: Arguments, fields: Fields) -> None:
    # These are not read: both are 2 bytes here, and which of them it is stays.
    is_bf16, is_fp16 = (arguments.rest.get(name) is True for name in ("bf16.enabled", "fp16.enabled"))
    if is_bf16 and is_fp16:
        raise arguments.refusal("fp16.enabled", "found bf16 enabled beside it, expected one of the two")
    if not (is_bf16 or is_fp16) and ("bf16.enabled" in arguments or "fp16.enabled" in arguments):
        name = "bf16.enabled" if "bf16.enabled" in arguments else "fp16.enabled"
        arguments.warn(name, "DeepSpeed computes in fp32 without bf16 and fp16; bf16 is priced")
    types = {"fp32": "fp32", "bf16": "bf16", "fp16": "bf16", "bfp16": "bf16"}
    accumulated = arguments.choice(types, "data_types.grad_accum_dtype")
    # As its `get_data_types`: fp32 with bf16 without ZeRO, else the type of the model.
    default = "bf16" if is_fp16 or (is_bf16 and fields["zero"] != "0") else None
    grad_dtype = accumulated or default
    if grad_dtype == "bf16":
        fields["grad_dtype"] = "bf16"


def _write_precision(fields: Fields) -> dict[str, Any]:
    output: dict[str, Any] = {"bf16.enabled": True}
    is_wide, has_zero = fields["grad_dtype"] == "fp32", fields["zero"] != "0"
    return (
        output
        if is_wide != has_zero
        else output | {"data_types.grad_accum_dtype": "fp32" if is_wide else "bf16"}
    )


TABLE: Table = (
    Rule(("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"),
         ("global_batch", "microbatch_size", "microbatches"), _read_batch, _write_batch),
    Rule(("zero_optimization.stage", "zero_optimization.overlap_comm",
          "zero_optimization.reduce_bucket_size"),
         ("zero", "overlap_grad_reduce", "bucket_size", "shard_size"), _read_sharding, _write_sharding),
    Rule(("bf16.enabled", "fp16.enabled"), ("grad_dtype",), _read_precision, _write_precision),
    Argument("tensor_parallel.autotp_size", "tp", default=1),
)  # fmt: skip
PRICED_NAMES = (
    "bf16.enabled",
    "fp16.enabled",
    "zero_optimization.contiguous_gradients",
    "zero_optimization.reduce_scatter",
)
_LIMIT = "one unit's weights are gathered ahead here (--prefetch)"
# Keys that change the step -> what is taken.
UNPRICED = {
    "sequence_parallel_size": "sequences are whole; --cp N --cp-comm-type a2a would say it",
    "zero_optimization.offload_optimizer.device": "the optimizer runs on the GPU here",
    "zero_optimization.offload_param.device": "weights stay on the GPU here",
    "zero_optimization.cpu_offload": "the optimizer runs on the GPU here",
    "zero_optimization.zero_quantized_weights": "weights are gathered in bf16 here",
    "zero_optimization.zero_quantized_gradients": "gradients are not quantized here",
    "zero_optimization.stage3_prefetch_bucket_size": _LIMIT,
    "zero_optimization.stage3_param_persistence_threshold": "small weights are shared out, too, here",
    "zero_optimization.stage3_max_live_parameters": _LIMIT,
    "activation_checkpointing.partition_activations": "each rank of tp keeps what is computed again here",
    "activation_checkpointing.cpu_checkpointing": "nothing is offloaded here (--offload GBPS)",
    "sparse_attention.mode": "attention is priced over the whole sequence",
    "compression_training": "nothing is compressed here",
    "fp8.enabled": "--precision fp8 would say it",
}
