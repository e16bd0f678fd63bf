"""Megatron-LM's arguments, and Megatron-DeepSpeed's: which are parameters here, both ways."""

from __future__ import annotations

import re
from typing import Any

from simcore.diagnostics import InputError
from simcore.model.launch.arguments import Argument, Arguments, Fields, Rule, Table
from simcore.units import is_whole, plain_number

_GPT2_VOCABULARY = 50257
# A part of the names of a tokenizer -> its words; models that share a tokenizer have one entry.
_VOCABULARIES = {
    "gpt2": _GPT2_VOCABULARY, "llama2": 32000, "llama-2": 32000, "mixtral": 32000, "mistral": 32000,
    "llama3": 128256, "llama-3": 128256, "deepseek-v3": 129280, "deepseek-r1": 129280, "qwen3": 151936,
    "qwen2": 152064, "256k": 256000,
}  # fmt: skip
# (part of the name of Pai-Megatron-Patch's tokenizer, --extra-vocab-size) -> the words of both.
_PATCHED_VOCABULARIES = {
    ("deepseekv2", "467"): 129280, ("deepseekv2", "2400"): 102400, ("qwen2", "293"): 151936,
}  # fmt: skip
# Module of --recompute-modules -> kind of rows here.
_MODULES = {
    "core_attn": "attention", "moe_act": "moe_act", "layernorm": "norm", "mla_up_proj": "mla_up_proj",
}  # fmt: skip
_STRATEGIES = {"no_shard": "0", "optim": "1", "optim_grads": "2", "optim_grads_params": "3"}
_FSDP = ("use-megatron-fsdp", "use-custom-fsdp")


# -- sizes -------------------------------------------------------------------------------


def _read_heads(arguments: Arguments, fields: Fields) -> None:
    heads = fields.get("model.heads", 1)
    is_grouped = arguments.has("group-query-attention")
    groups = arguments.count("num-query-groups")
    if groups is not None and not is_grouped:
        arguments.warn("num-query-groups", "nothing without --group-query-attention, as in Megatron")
    # Megatron's default is one group.
    fields["model.kv_heads"] = (groups or 1) if is_grouped else heads
    channels = arguments.count("kv-channels")
    fields["model.head_dim"] = channels or fields.get("model.hidden", 1) // max(heads, 1)


def _write_heads(fields: Fields) -> dict[str, Any]:
    output: dict[str, Any] = {}
    if fields["model.kv_heads"] != fields["model.heads"]:
        output |= {"group-query-attention": True, "num-query-groups": fields["model.kv_heads"]}
    if fields["model.head_dim"] != fields["model.hidden"] // fields["model.heads"]:
        output["kv-channels"] = fields["model.head_dim"]
    return output


def _default_ffn(fields: Fields) -> int:
    hidden: int = fields.get("model.hidden", 1)
    return int((4 * hidden * 2 / 3) / 64) * 64 if fields.get("model.gated") else 4 * hidden


def _read_ffn(arguments: Arguments, fields: Fields) -> None:
    fields["model.gated"] = arguments.has("swiglu") | arguments.has("quick-geglu")
    fields["model.ffn"] = arguments.count("ffn-hidden-size") or _default_ffn(fields)


def _write_ffn(fields: Fields) -> dict[str, Any]:
    output: dict[str, Any] = {"swiglu": True} if fields["model.gated"] else {}
    # A model with experts in all layers may have no size of a dense one.
    ffn = fields["model.ffn"] or fields.get("moe.ffn")
    return output if ffn == _default_ffn(fields) else output | {"ffn-hidden-size": ffn}


def _read_bias(arguments: Arguments, fields: Fields) -> None:
    has_no_bias, has_qkv = arguments.has("disable-bias-linear"), arguments.has("add-qkv-bias")
    fields["model.bias"] = ("qkv" if has_qkv else "none") if has_no_bias else "all"
    rates = [arguments.text("attention-dropout"), arguments.text("hidden-dropout")]
    # Megatron's default is 0.1.
    fields["model.dropout"] = any(rate is None or not _is_zero(rate) for rate in rates)


def _is_zero(text: str) -> bool:
    return re.fullmatch(r"0*\.?0*", text) is not None


def _write_bias(fields: Fields) -> dict[str, Any]:
    bias = fields["model.bias"]
    output: dict[str, Any] = {} if bias == "all" else {"disable-bias-linear": True}
    output |= {"add-qkv-bias": True} if bias == "qkv" else {}
    return output if fields["model.dropout"] else output | {"attention-dropout": 0.0, "hidden-dropout": 0.0}


def _read_positions(arguments: Arguments, fields: Fields) -> None:
    table = arguments.count("max-position-embeddings")
    kind = arguments.text("position-embedding-type") or "learned_absolute"
    has_none = arguments.has("no-position-embedding") | arguments.has("use-rotary-position-embeddings")
    is_learned = kind == "learned_absolute" and not has_none
    fields["model.positions"] = (table or fields.get("model.seq", 0)) if is_learned else 0


def _write_positions(fields: Fields) -> dict[str, Any]:
    positions = fields["model.positions"]
    output = {"max-position-embeddings": positions or fields["seq"]}
    return output if positions else output | {"position-embedding-type": "rope"}


def _read_vocabulary(arguments: Arguments, fields: Fields) -> None:
    padded = arguments.count("padded-vocab-size", "pad-vocab-size-to")
    vocabulary = arguments.count("vocab-size")
    step = arguments.count("make-vocab-size-divisible-by") or 128
    fields["model.vocab"], fields["model.vocab_step"] = padded or vocabulary, 1 if padded else step
    if fields["model.vocab"] or "num-layers" not in arguments:
        return
    # Tokenizers stay among what means nothing: their names are another trainer's business.
    names = (
        "tokenizer-type",
        "tokenizer-model",
        "tokenizer-name-or-path",
        "patch-tokenizer-type",
        "merge-file",
    )
    text = " ".join(str(arguments.arguments[name].value) for name in names[:-1] if name in arguments).lower()
    # Merges without more are GPT-2's.
    text = text or "gpt2" * ("merge-file" in arguments)
    count = next((count for part, count in _VOCABULARIES.items() if part in text), None)
    if "extra-vocab-size" in arguments:
        extra = " ".join(arguments.arguments["extra-vocab-size"].value)
        patched = (
            count for (part, more), count in _PATCHED_VOCABULARIES.items() if part in text and more == extra
        )
        count = next(patched, count)
    fields["model.vocab"] = count or _GPT2_VOCABULARY
    if count is None:
        name = next((name for name in names if name in arguments), "num-layers")
        arguments.warn(
            name,
            f"its vocabulary is not known; {_GPT2_VOCABULARY} words assumed, GPT-2's (--vocab-size says it)",
        )
    else:
        name = next(name for name in names if name in arguments)
        arguments.assume(name, f"vocab: {count} words assumed, as the tokenizer's name says (--vocab-size)")


def _write_vocabulary(fields: Fields) -> dict[str, Any]:
    step = fields["model.vocab_step"]
    if step == 1:
        return {"padded-vocab-size": fields["model.vocab"]}
    output = {"vocab-size": fields["model.vocab"]}
    return output if step == 128 else output | {"make-vocab-size-divisible-by": step}


def _read_experts(arguments: Arguments, fields: Fields) -> None:
    experts = arguments.count("num-experts")
    topk = arguments.count("moe-router-topk") or 2
    ffn = arguments.count("moe-ffn-hidden-size") or fields.get("model.ffn") or 1
    shared = arguments.count("moe-shared-expert-intermediate-size", least=0) or 0
    latent = arguments.count("moe-latent-size") or 0
    groups = arguments.count("moe-router-num-groups") or 0
    groups_per_token = arguments.count("moe-router-group-topk") or 0
    frequency = arguments.text("moe-layer-freq")
    etp = arguments.count("expert-tensor-parallel-size")
    dispatcher = arguments.text("moe-token-dispatcher-type") or "allgather"
    capacity = arguments.text("moe-expert-capacity-factor")
    is_padded = arguments.has("moe-pad-expert-input-to-capacity")
    has_grouped_products = arguments.has("moe-grouped-gemm")
    if not experts:
        return
    dense = 0
    if frequency is not None:
        dense = _dense_layers(arguments, frequency, fields.get("model.layers", 0))
    if groups_per_token in (0, groups):
        groups = groups_per_token = 0
    # Shared experts are whole ones, or of a size of their own.
    is_whole = shared % ffn == 0
    fields |= {
        "moe.shared_ffn": 0 if is_whole else shared, "moe.latent": latent,
        "moe.experts": experts, "moe.experts_per_token": topk, "moe.ffn": ffn,
        "moe.shared_experts": shared // ffn if is_whole else 0, "moe.dense_layers": dense,
        "moe.groups": groups, "moe.groups_per_token": groups_per_token,
    }  # fmt: skip
    tp = fields.get("tp", 1)
    if etp not in (None, 1, tp):
        raise arguments.refusal(
            "expert-tensor-parallel-size",
            f"found {etp} with --tensor-model-parallel-size {tp}, expected 1 or {tp}: ranks of tp hold whole "
            "experts or divide each",
        )
    fields["etp"] = etp or tp
    if dispatcher != "alltoall" and fields.get("ep", 1) > 1:
        arguments.warn(
            "moe-token-dispatcher-type" if "moe-token-dispatcher-type" in arguments else "num-experts",
            f"the dispatcher {dispatcher} is priced as an all-to-all",
        )
    if not has_grouped_products:
        arguments.warn(
            "num-experts", "without --moe-grouped-gemm experts run in turn; a grouped product is priced"
        )
    factor = None if capacity is None else plain_number(capacity)
    if is_padded and factor is not None and factor >= 1:
        fields |= {"expert_capacity": factor, "pad_to_capacity": True}
    elif capacity is not None:
        arguments.warn(
            "moe-expert-capacity-factor",
            "loads are even here, so that nothing is dropped (--expert-imbalance)",
        )


def _dense_layers(arguments: Arguments, text: str, layers: int) -> int:
    """Returns how many layers have no experts: those of `([0]*3+[1]*58)`, which come first."""
    pattern: list[int] = []
    plain = re.sub(r"[\s()]", "", text)
    for part in plain.split("+"):
        match_ = re.fullmatch(r"\[?([01](?:,[01])*)\]?(?:\*(\d{1,5}))?", part)
        if match_ is None:
            if plain == "1":
                return 0
            raise arguments.refusal(
                "moe-layer-freq",
                f"found {text[:40]}, expected layers without experts first, like ([0]*3+[1]*58)",
            )
        pattern += [int(one) for one in match_[1].split(",")] * int(match_[2] or 1)
    if pattern == [1]:
        return 0
    dense = pattern.index(1) if 1 in pattern else len(pattern)
    if 0 in pattern[dense:] or len(pattern) != layers:
        raise arguments.refusal(
            "moe-layer-freq",
            f"found {text[:40]}, expected {layers} layers (--num-layers), those without experts first",
        )
    return dense


def _write_experts(fields: Fields) -> dict[str, Any]:
    if "moe.experts" not in fields:
        return {}
    output: dict[str, Any] = {"num-experts": fields["moe.experts"]}
    if fields["moe.experts_per_token"] != 2:
        output["moe-router-topk"] = fields["moe.experts_per_token"]
    ffn, shared, dense = fields["moe.ffn"], fields["moe.shared_experts"], fields["moe.dense_layers"]
    if ffn != (fields["model.ffn"] or ffn):
        output["moe-ffn-hidden-size"] = ffn
    shared_inner = fields["moe.shared_ffn"] or shared * ffn
    if shared_inner:
        output["moe-shared-expert-intermediate-size"] = shared_inner
    if fields["moe.groups"]:
        output |= {
            "moe-router-num-groups": fields["moe.groups"],
            "moe-router-group-topk": fields["moe.groups_per_token"],
        }
    if fields["moe.latent"]:
        output["moe-latent-size"] = fields["moe.latent"]
    if dense:
        output["moe-layer-freq"] = f"([0]*{dense}+[1]*{fields['model.layers'] - dense})"
    if fields["etp"] != fields["tp"]:
        output["expert-tensor-parallel-size"] = fields["etp"]
    if fields["pad_to_capacity"]:
        output |= {
            "moe-expert-capacity-factor": fields["expert_capacity"],
            "moe-pad-expert-input-to-capacity": True,
        }
    return output | {"moe-grouped-gemm": True, "moe-token-dispatcher-type": "alltoall"}


def _read_latent_attention(arguments: Arguments, fields: Fields) -> None:
    has_norm = arguments.has("qk-layernorm", "qk-norm")
    sizes = {
        "q_lora_rank": arguments.count("q-lora-rank", least=0) or 0,
        "kv_lora_rank": arguments.count("kv-lora-rank") or 32,
        "qk_nope_head_dim": arguments.count("qk-head-dim", "qk-nope-head-dim") or 128,
        "qk_rope_head_dim": arguments.count("qk-pos-emb-head-dim", "qk-rope-head-dim") or 64,
        "v_head_dim": arguments.count("v-head-dim") or 128,
    }
    if arguments.has("multi-latent-attention"):
        fields |= {f"mla.{name}": size for name, size in sizes.items()}
        fields["model.kv_heads"], fields["model.head_dim"] = fields.get("model.heads", 1), sizes["v_head_dim"]
    else:
        # With latent attention it means the norms of its ranks, which it always has here.
        fields["model.qk_norm"] = has_norm


def _write_latent_attention(fields: Fields) -> dict[str, Any]:
    if "mla.kv_lora_rank" not in fields:
        return {"qk-layernorm": True} if fields["model.qk_norm"] else {}
    output: dict[str, Any] = {"multi-latent-attention": True, "qk-layernorm": True}
    names = {"q-lora-rank": "q_lora_rank", "kv-lora-rank": "kv_lora_rank", "qk-head-dim": "qk_nope_head_dim",
             "qk-pos-emb-head-dim": "qk_rope_head_dim", "v-head-dim": "v_head_dim"}  # fmt: skip
    return output | {name: fields[f"mla.{field}"] for name, field in names.items() if fields[f"mla.{field}"]}


def _read_window(arguments: Arguments, fields: Fields) -> None:
    window = arguments.text("window-size")
    if window is None:
        return
    if "window-attn-skip-freq" in arguments:
        arguments.warn("window-size", "attention is priced over the whole sequence in all layers")
        return
    left = re.split(r"[,\s]+", window.strip("() "))[0]
    if not is_whole(left):
        raise arguments.refusal(
            "window-size", f"found {window[:40]}, expected tokens before and behind, like 127,0"
        )
    # A query sees so many tokens before it, and its own.
    fields["model.window"] = int(left) + 1


def _write_window(fields: Fields) -> dict[str, Any]:
    window = fields["model.window"]
    return {"window-size": f"{window - 1},0"} if window else {}


# -- the pipeline ------------------------------------------------------------------------


def _read_pipeline(arguments: Arguments, fields: Fields) -> None:
    layers, pp = fields.get("model.layers", 0), fields.get("pp", 1)
    layout = arguments.text("pipeline-model-parallel-layout")
    of_stage = arguments.count("num-layers-per-virtual-pipeline-stage")
    of_rank = arguments.count("num-virtual-stages-per-pipeline-rank")
    first = arguments.count("decoder-first-pipeline-num-layers")
    last = arguments.count("decoder-last-pipeline-num-layers")
    ends = [arguments.has(f"account-for-{end}-in-pipeline-split") for end in ("embedding", "loss")]
    if arguments.text("pp-partition-method") == "type:transformer|embedding":
        ends = [True, True]
    stated_values = {
        "pipeline-model-parallel-layout": layout, "num-layers-per-virtual-pipeline-stage": of_stage,
        "num-virtual-stages-per-pipeline-rank": of_rank,
    }  # fmt: skip
    several = [name for name, value in stated_values.items() if value is not None]
    if len(several) > 1:
        raise arguments.refusal(several[1], f"found --{several[0]} beside it, expected one of the two")
    fields["account_for_embedding"], fields["account_for_loss"] = ends[0] and pp > 1, ends[1] and pp > 1
    predictions = arguments.count("mtp-num-layers", least=0) or 0
    if layout is not None:
        count = _count_predictions(layout)
        if predictions != count:
            name = "mtp-num-layers" if predictions else "pipeline-model-parallel-layout"
            raise arguments.refusal(name, f"found {predictions} MTP layers, and {count} m in the layout")
        fields["pipeline_layout"] = layout
        return
    positions = layers + sum(ends)
    chunks = of_rank or 1
    if of_stage is not None:
        if positions % (pp * of_stage):
            raise arguments.refusal(
                "num-layers-per-virtual-pipeline-stage",
                f"found {of_stage}, expected a divisor of the {positions / pp:g} layers of a stage",
            )
        chunks = positions // (pp * of_stage)
    if chunks > 1:
        fields["virtual_stages"] = chunks
    if first is not None or last is not None:
        if sum(ends):
            name = (
                "decoder-last-pipeline-num-layers" if first is None else "decoder-first-pipeline-num-layers"
            )
            raise arguments.refusal(name, "found --account-for-... beside it, expected one of the two")
        fields["stage_layers"] = _uneven_stages(arguments, layers, pp, first, last)
    if predictions:
        _read_predictions(arguments, fields, predictions, chunks)


def _count_predictions(layout: str) -> int:
    return sum(int(match_[1] or 1) for match_ in re.finditer(r"m(?:\*(\d{1,5}))?", layout))


def _uneven_stages(arguments: Arguments, layers: int, pp: int, first: int | None, last: int | None) -> str:
    """Returns `--stage-layers` of Megatron's arguments for the first and the last stage."""
    name = "decoder-last-pipeline-num-layers" if first is None else "decoder-first-pipeline-num-layers"
    middle = pp - (first is not None) - (last is not None)
    rest = layers - (first or 0) - (last or 0)
    if middle < 0 or rest < 0 or (rest % middle if middle else rest):
        raise arguments.refusal(
            name,
            f"found {rest} of {layers} layers left for {middle} stages, expected a multiple of the stages",
        )
    parts = [str(first)] if first is not None else []
    parts += [f"{rest // middle}*{middle}"] if middle else []
    return ",".join(parts + ([str(last)] if last is not None else []))


def _read_predictions(arguments: Arguments, fields: Fields, count: int, chunks: int) -> None:
    """Fills the layout of a model whose MTP layers stand on its last virtual stage."""
    if fields.get("zero") in ("2", "3"):
        arguments.warn(
            "mtp-num-layers", "left out: ZeRO 2 and 3 have no layers that predict further tokens here"
        )
        return
    pp, layers = fields.get("pp", 1), fields.get("model.layers", 0)
    ends = [int(fields.pop("account_for_embedding")), int(fields.pop("account_for_loss"))]
    stages = fields.pop("stage_layers", None)
    fields.pop("virtual_stages", None)
    if stages is not None:
        sizes = [
            int(one.partition("*")[0])
            for one in stages.split(",")
            for _ in range(int(one.partition("*")[2] or 1))
        ]
        if any(size % chunks for size in sizes):
            raise arguments.refusal(
                "mtp-num-layers", f"found stages of {stages} layers, expected multiples of {chunks}"
            )
        positions = [sizes[position % pp] // chunks for position in range(pp * chunks)]
    else:
        each, more = divmod(layers + sum(ends), pp * chunks)
        if more:
            raise arguments.refusal(
                "mtp-num-layers",
                f"found {layers} layers on {pp * chunks} virtual stages, expected a multiple of them",
            )
        positions = [each] * (pp * chunks)
        positions[0] -= ends[0]
        positions[-1] -= ends[1]
    fields["pipeline_layout"] = write_layout(tuple(positions), (0,) * (len(positions) - 1) + (count,))


def write_layout(layers: tuple[int, ...], predictions: tuple[int, ...] = ()) -> str:
    """Returns Megatron's text of the layers of each virtual stage."""
    stages = [
        _repeated("t", count) + _repeated("m", predictions[index] if predictions else 0)
        for index, count in enumerate(layers)
    ]
    stages[0], stages[-1] = f"E{stages[0]}", f"{stages[-1]}L"
    return "|".join(stages)


def _repeated(letter: str, count: int) -> str:
    return letter * count if count < 2 else f"{letter}*{count}"


def _write_pipeline(fields: Fields) -> dict[str, Any]:
    stages, predictions, pp, chunks = (
        fields[name] for name in ("stages", "predictions", "pp", "virtual_stages")
    )
    output: dict[str, Any] = {"mtp-num-layers": sum(predictions)} if any(predictions) else {}
    if fields["pipeline_layout"] is not None:
        return output | {"pipeline-model-parallel-layout": fields["pipeline_layout"]}
    if any(predictions):
        return output | {"pipeline-model-parallel-layout": write_layout(stages, predictions)}
    ends = [fields["account_for_embedding"], fields["account_for_loss"]]
    for end, is_counted in zip(("embedding", "loss"), ends, strict=True):
        output |= {f"account-for-{end}-in-pipeline-split": True} if is_counted else {}
    positions = fields["model.layers"] + sum(ends)
    if any(ends) or len(set(stages)) == 1:
        each = positions // (pp * chunks)
        return output | ({"num-layers-per-virtual-pipeline-stage": each} if chunks > 1 else {})
    by_rank = [sum(stages[stage::pp]) for stage in range(pp)]
    is_even = all(count % chunks == 0 for count in by_rank) and all(
        count == by_rank[position % pp] // chunks for position, count in enumerate(stages)
    )
    if pp > 2 and is_even and len(set(by_rank[1:-1])) == 1:
        if by_rank[0] != by_rank[1]:
            output["decoder-first-pipeline-num-layers"] = by_rank[0]
        if by_rank[-1] != by_rank[1]:
            output["decoder-last-pipeline-num-layers"] = by_rank[-1]
        return output | ({"num-virtual-stages-per-pipeline-rank": chunks} if chunks > 1 else {})
    return output | {"pipeline-model-parallel-layout": write_layout(stages)}


# -- memory, precision, sharding ---------------------------------------------------------


def _read_recompute(arguments: Arguments, fields: Fields) -> None:
    granularity = arguments.choice({"full": "full", "selective": "selective"}, "recompute-granularity")
    method = arguments.choice(
        {"uniform": "uniform", "block": "block"}, "recompute-method", "activations-checkpoint-method"
    )
    count = arguments.count(
        "recompute-num-layers", "activations-checkpoint-num-layers", "checkpoint-num-layers"
    )
    modules = arguments.text("recompute-modules")
    if arguments.has("checkpoint-activations") | arguments.has("deepspeed-activation-checkpointing") or (
        "activations-checkpoint-method" in arguments
    ):
        granularity = granularity or "full"
    if arguments.has("recompute-activations"):
        # As Megatron has it, whatever the granularity.
        granularity = "selective"
    if granularity is None:
        return
    fields["recompute"] = granularity
    if granularity == "full":
        if method is None and "recompute-granularity" in arguments:
            raise arguments.refusal(
                "recompute-granularity", "found full, expected --recompute-method uniform or block"
            )
        if method == "block" and count is not None:
            fields["recompute_layers"] = str(count)
        elif (count or 1) > 1:
            arguments.warn("recompute-num-layers", "a layer is computed again at a time here")
        return
    words = (modules or "core_attn").replace(",", " ").split()
    rows = [_MODULES[word] for word in words if word in _MODULES]
    for word in words:
        if word not in _MODULES:
            arguments.warn("recompute-modules", f"{word} is not computed again here (--recompute-rows)")
    if "attention" not in rows:
        fields["recompute"] = "none"
    others = [row for row in rows if row != "attention"]
    if "moe_act" in others and "moe.experts" not in fields:
        others.remove("moe_act")
    if others:
        fields["recompute_rows"] = ",".join(others)


def _write_recompute(fields: Fields) -> dict[str, Any]:
    recompute, layers, rows = fields["recompute"], fields["recompute_layers"], fields["recompute_rows"]
    if recompute == "full":
        block = layers is not None and "/" not in layers
        return {
            "recompute-granularity": "full", "recompute-method": "block" if block else "uniform",
            "recompute-num-layers": int(layers) if block else 1,
        }  # fmt: skip
    names = {row: module for module, row in _MODULES.items()}
    words = ["core_attn"] if recompute == "selective" else []
    words += [names[word.strip()] for word in (rows or "").split(",") if word.strip() in names]
    words = list(dict.fromkeys(words))
    if not words:
        return {}
    output: dict[str, Any] = {"recompute-granularity": "selective"}
    return output if words == ["core_attn"] else output | {"recompute-modules": tuple(words)}


def _read_precision(arguments: Arguments, fields: Fields) -> None:
    # These are not read: both are 2 bytes here, and which of them it is stays.
    if "bf16" in arguments and "fp16" in arguments:
        raise arguments.refusal("fp16", "found --bf16 beside it, expected one of the two")
    if "bf16" not in arguments and "fp16" not in arguments:
        name = "num-layers" if "num-layers" in arguments else "tensor-model-parallel-size"
        arguments.warn(name, "found neither --bf16 nor --fp16: Megatron computes in fp32; bf16 is priced")
    fp8 = arguments.text("fp8-format", "fp8", "fp8-hybrid", "fp8-e4m3") if arguments.use(
        "fp8-format", "fp8") else arguments.has("fp8-hybrid") | arguments.has("fp8-e4m3")  # fmt: skip
    recipe = arguments.text("fp8-recipe") or "delayed"
    fp4 = arguments.use("fp4-format")
    if fp4 and fp8:
        raise arguments.refusal(fp4, "found --fp8-format beside it, expected one of the two")
    if fp4:
        fields["precision"] = "nvfp4"
    elif fp8:
        fields["precision"] = "mxfp8" if recipe == "mxfp8" else "fp8"
        if recipe not in ("mxfp8", "delayed", "tensorwise"):
            arguments.warn("fp8-recipe", "priced with one scale for a tensor")
    # Gradients are added up in fp32 with bf16 unless a flag says otherwise, and with fp16 only if one does.
    narrow, wide = arguments.has("grad-reduce-in-bf16"), "accumulate-allreduce-grads-in-fp32" in arguments
    if narrow and wide:
        raise arguments.refusal(
            "accumulate-allreduce-grads-in-fp32",
            "found --grad-reduce-in-bf16 beside it, expected one of the two",
        )
    if narrow or ("fp16" in arguments and not wide):
        fields["grad_dtype"] = "bf16"


def _write_precision(fields: Fields) -> dict[str, Any]:
    output: dict[str, Any] = {"bf16": True}
    precision = fields["precision"]
    if precision == "nvfp4":
        output["fp4-format"] = "e2m1"
    elif precision == "mxfp8":
        output |= {"fp8-format": "e4m3", "fp8-recipe": "mxfp8"}
    elif precision == "fp8":
        output["fp8-format"] = "hybrid"
    return output | ({"grad-reduce-in-bf16": True} if fields["grad_dtype"] == "bf16" else {})


def _read_sharding(arguments: Arguments, fields: Fields) -> None:
    is_distributed = arguments.has("use-distributed-optimizer")
    overlaps = {
        "overlap_grad_reduce": arguments.has("overlap-grad-reduce"),
        "overlap_param_gather": arguments.has("overlap-param-gather"),
    }
    if overlaps["overlap_param_gather"] and not is_distributed and "deepspeed" not in arguments:
        raise arguments.refusal("overlap-param-gather", "expected --use-distributed-optimizer beside it")
    if overlaps["overlap_param_gather"] and not overlaps["overlap_grad_reduce"]:
        raise arguments.refusal("overlap-param-gather", "expected --overlap-grad-reduce beside it")
    strategy = arguments.choice(_STRATEGIES, "data-parallel-sharding-strategy")
    if arguments.has("deepspeed"):
        fields["engine_preset"] = "deepspeed"
        zero = arguments.choice({level: level for level in "0123"}, "zero-stage") or "0"
        # DeepSpeed's optimizer for bf16 shares its states out, and refuses other levels.
        fields["zero"] = "1" if zero == "0" and "bf16" in arguments else zero
    else:
        arguments.use("zero-stage")
        fields["engine_preset"] = "megatron"
        fields["zero"] = "1" if is_distributed else "0"
        if arguments.has(*_FSDP):
            fields["zero"] = strategy or "0"
        elif arguments.has("use-torch-fsdp2"):
            fields["zero"] = "3"
            if arguments.has("torch-fsdp2-no-reshard-after-forward"):
                fields["reshard_after_forward"] = "off"
    if fields["zero"] in ("0", "1"):
        fields |= overlaps
        bucket = arguments.count("ddp-bucket-size")
        if bucket is not None and any(overlaps.values()):
            fields["bucket_size"] = bucket


def _write_sharding(fields: Fields) -> dict[str, Any]:
    zero = fields["zero"]
    overlaps = {
        name: True
        for name in ("overlap-grad-reduce", "overlap-param-gather")
        if fields[name.replace("-", "_")]
    }
    if fields["engine_preset"] == "deepspeed":
        return {"deepspeed": True, "zero-stage": 0 if zero == "1" else int(zero), **overlaps}
    if zero in ("2", "3"):
        strategy = next(word for word, level in _STRATEGIES.items() if level == zero)
        if fields["reshard_after_forward"] == "off":
            return {"use-torch-fsdp2": True, "torch-fsdp2-no-reshard-after-forward": True}
        return {
            "use-distributed-optimizer": True, "overlap-grad-reduce": True, "overlap-param-gather": True,
            "use-megatron-fsdp": True, "data-parallel-sharding-strategy": strategy,
        }  # fmt: skip
    output: dict[str, Any] = {"use-distributed-optimizer": True} if zero == "1" else {}
    bucket = {} if fields["bucket_size"] is None else {"ddp-bucket-size": fields["bucket_size"]}
    return output | overlaps | bucket


def _read_launcher(arguments: Arguments, fields: Fields) -> None:
    """Fills the number of ranks from what starts them: torchrun's arguments, DeepSpeed's."""
    of_node, nodes = ("nproc-per-node", "num-gpus"), ("nnodes", "num-nodes")
    try:
        counts = arguments.count(*of_node), arguments.count(*nodes)
    except InputError:
        # A number that the machine tells: the ranks are those of --world.
        return
    if counts[0] is not None:
        world = counts[0] * (counts[1] or 1)
        fields["world"] = world
        instances = arguments.count("num-distributed-optimizer-instances")
        degrees = [fields.get(name, 1) for name in ("tp", "pp", "cp")]
        data = world // (degrees[0] * degrees[1])
        if instances and instances > 1 and fields.get("zero") != "0":
            if data % instances:
                raise arguments.refusal(
                    "num-distributed-optimizer-instances", f"found {instances}, expected a divisor of {data}"
                )
            fields["shard_size"] = data // instances


def _write_launcher(fields: Fields) -> dict[str, Any]:
    world, shard = fields["world"], fields["shard_size"]
    of_node = next(count for count in (8, 4, 2, 1) if world % count == 0) if world > 8 else world
    output = {"nproc-per-node": of_node, "nnodes": world // of_node}
    if shard:
        output["num-distributed-optimizer-instances"] = fields["dp"] * fields["cp"] // shard
    return output


def _read_inner_ranks(arguments: Arguments, fields: Fields) -> None:
    text = arguments.text("hierarchical-context-parallel-sizes")
    if text is None or fields.get("cp_comm_type") != "a2a+p2p":
        return
    inner, _, rest = text.replace(",", " ").partition(" ")
    sizes = [int(word) for word in (inner, rest.strip()) if is_whole(word)]
    if len(sizes) != 2 or sizes[0] * sizes[1] != fields.get("cp", 1):
        raise arguments.refusal(
            "hierarchical-context-parallel-sizes",
            f"found {text}, expected two numbers whose product is --context-parallel-size "
            f"{fields.get('cp', 1)}",
        )
    fields["cp_inner"] = sizes[0]


def _write_inner_ranks(fields: Fields) -> dict[str, Any]:
    inner, cp = fields["cp_inner"], fields["cp"]
    if fields["cp_comm_type"] != "a2a+p2p":
        return {}
    return {"hierarchical-context-parallel-sizes": (str(inner), str(cp // inner))}


_RANKS = ("nproc-per-node", "nnodes")
# The launcher's arguments, which stand before the script.
LAUNCHERS = (
    *_RANKS,
    "node-rank",
    "master-addr",
    "master-port",
    "rdzv-endpoint",
    "rdzv-backend",
    "rdzv-id",
    "max-restarts",
    "tee",
    "redirects",
    "standalone",
    "log-dir",
)

TABLE: Table = (
    Argument("tensor-model-parallel-size", "tp", aliases=("model-parallel-size",), default=1),
    Argument("pipeline-model-parallel-size", "pp", default=1),
    Argument("context-parallel-size", "cp", default=1),
    Argument(
        "cp-comm-type",
        "cp_comm_type",
        words={
            "p2p": "p2p",
            "allgather": "all-gather",
            "all_gather": "all-gather",
            "a2a": "a2a",
            "a2a+p2p": "a2a+p2p",
        },
        default="p2p",
    ),
    Rule(("hierarchical-context-parallel-sizes",), ("cp_inner",), _read_inner_ranks, _write_inner_ranks),
    Argument("expert-model-parallel-size", "ep", default=1),
    Argument("sequence-parallel", "sequence_parallel", on="on"),
    Argument("use-tp-pp-dp-mapping", "rank_order", on="tp-pp-dp"),
    Argument("micro-batch-size", "microbatch_size"),
    Argument("global-batch-size", "global_batch"),
    Argument("seq-length", "model.seq", aliases=("encoder-seq-length",)),
    Argument("num-layers", "model.layers", aliases=("encoder-num-layers",)),
    Argument("hidden-size", "model.hidden"),
    Argument("num-attention-heads", "model.heads"),
    Rule(("group-query-attention", "num-query-groups", "kv-channels"), (), _read_heads, _write_heads),
    Rule(("swiglu", "quick-geglu", "ffn-hidden-size"), (), _read_ffn, _write_ffn),
    Argument("untie-embeddings-and-output-weights", "model.tied_embeddings", on=False, default=True),
    Argument("normalization", "model.norm_bias", words={"LayerNorm": True, "RMSNorm": False}, default=True),
    Rule(
        ("disable-bias-linear", "add-qkv-bias", "attention-dropout", "hidden-dropout"),
        (),
        _read_bias,
        _write_bias,
    ),
    Rule(
        (
            "max-position-embeddings",
            "position-embedding-type",
            "no-position-embedding",
            "use-rotary-position-embeddings",
        ),
        (),
        _read_positions,
        _write_positions,
    ),
    Rule(
        ("vocab-size", "padded-vocab-size", "make-vocab-size-divisible-by"),
        (),
        _read_vocabulary,
        _write_vocabulary,
    ),
    Rule(("multi-latent-attention", "qk-layernorm"), (), _read_latent_attention, _write_latent_attention),
    Rule(("window-size",), (), _read_window, _write_window),
    Argument("attention-output-gate", "model.gate", on="element", default="none"),
    Argument(
        "softmax-type",
        "model.sinks",
        words={"learnable": True, "vanilla": False, "off-by-one": False},
        default=False,
    ),
    Rule(("num-experts",), ("etp", "expert_capacity", "pad_to_capacity"), _read_experts, _write_experts),
    Argument(
        "attention-backend",
        "flash",
        words={"auto": "on", "flash": "on", "fused": "on", "unfused": "off", "local": "off"},
        default="on",
    ),
    Rule(
        ("bf16", "fp16", "fp8-format", "fp8-recipe", "fp4-format", "grad-reduce-in-bf16"),
        ("precision", "grad_dtype"),
        _read_precision,
        _write_precision,
    ),
    Rule(
        ("recompute-granularity", "recompute-method", "recompute-num-layers", "recompute-modules"),
        ("recompute", "recompute_layers", "recompute_rows"),
        _read_recompute,
        _write_recompute,
    ),
    Rule(
        ("use-distributed-optimizer", "overlap-grad-reduce", "overlap-param-gather", "ddp-bucket-size"),
        ("zero", "bucket_size"),
        _read_sharding,
        _write_sharding,
    ),
    Argument("tp-comm-overlap", "overlap_tp", on=True),
    Argument("overlap-moe-expert-parallel-comm", "overlap_fwd_bwd", on=True),
    Rule(
        ("num-layers-per-virtual-pipeline-stage", "pipeline-model-parallel-layout"),
        ("virtual_stages", "pipeline_layout", "stage_layers"),
        _read_pipeline,
        _write_pipeline,
    ),
    Rule(_RANKS, ("world", "shard_size"), _read_launcher, _write_launcher),
)
# Arguments that say what is priced anyway.
PRICED_NAMES = (
    "bf16",
    "fp16",
    "use-mcore-models",
    "use-flash-attn",
    "accumulate-allreduce-grads-in-fp32",
    "overlap-p2p-communication",
)
# Arguments that change the step -> what is taken.
UNPRICED = {
    "fp8-param-gather": "weights are gathered in bf16 here",
    "fp4-param-gather": "weights are gathered in bf16 here",
    "num-distributed-optimizer-instances": "states are shared out over all replicas (--shard-size)",
    "moe-shared-expert-overlap": "shared experts run before the others here",
    "moe-layer-recompute": "experts are not computed again here (--recompute-rows moe_act)",
    "cpu-offloading": "nothing is offloaded here (--offload GBPS)",
    "fine-grained-activation-offloading": "nothing is offloaded here (--offload GBPS)",
    "optimizer-cpu-offload": "the optimizer runs on the GPU here",
    "optimizer-offload-fraction": "the optimizer runs on the GPU here",
    "use-precision-aware-optimizer": "optimizer states take 12 bytes a parameter here",
    "optimizer": "Adam is priced",
    "distribute-saved-activations": "each rank of tp keeps what is computed again here",
    "partition-activations": "each rank of tp keeps what is computed again here",
    "ds-sequence-parallel-size": "sequences are whole; --cp N --cp-comm-type a2a would say it",
    "no-overlap-p2p-communication": "transfers between stages run beside compute here",
    "overlap-param-gather-with-optimizer-step": "weights are gathered behind the optimizer here",
    "delay-wgrad-compute": "weight gradients follow their layer here",
    "defer-embedding-wgrad-compute": "weight gradients follow their layer here",
    "rampup-batch-size": "each step has --global-batch-size here",
    "step-batch-size-schedule": "each step has --global-batch-size here",
    "linear-attention-freq": "attention is priced over the whole sequence in all layers",
    "experimental-attention-variant": "attention is priced over the whole sequence",
    "hybrid-layer-pattern": "all layers are attention with a feed-forward part here",
    "hybrid-override-pattern": "all layers are attention with a feed-forward part here",
    "heterogeneous-layers-config-path": "all layers are equal here",
    "spec": "the layers are Megatron's usual ones here",
    "embed-layernorm": "the norm of the embedding is not priced",
    "fp32-residual-connection": "the residual is in bf16 here",
    "first-last-layers-bf16": "all layers have one precision here",
    "cuda-graph-impl": "CUDA graphs are those of the GPU (docs/models.md)",
    "enable-cuda-graph": "CUDA graphs are those of the GPU (docs/models.md)",
    "external-cuda-graph": "CUDA graphs are those of the GPU (docs/models.md)",
    "no-gradient-accumulation-fusion": "gradients are added up by their product here",
    "no-bias-swiglu-fusion": "SwiGLU is one kernel here",
    "no-bias-gelu-fusion": "GELU is one kernel here",
    "no-bias-dropout-fusion": "the residual is one kernel here",
    "no-rope-fusion": "rotary positions are one kernel here",
    "cross-entropy-loss-fusion": "the loss is priced without fusion",
    "use-nccl-ub": "collectives take 16 SMs from compute here",
    "outer-dp-sharding-strategy": "the groups that share weights out have whole copies here",
    "megatron-fsdp-main-grads-dtype": "--grad-dtype would say it",
    "microbatch-group-size-per-virtual-pipeline-stage": "micro-batches take turns in groups of pp here",
    "tp-comm-overlap-disable-qkv": "all linears of a layer overlap here",
    "tp-comm-overlap-disable-fc1": "all linears of a layer overlap here",
    "disable-tp-comm-overlap-ag": "gathers overlap, too, here",
    "disable-tp-comm-overlap-rs": "reduce-scatters overlap, too, here",
}
