"""The parameters of the vision tower of a model, with its projector: no part of a step of text.

Formulas are those of transformers' classes, by the kind of tower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = dict[str, Any]


def count_vision(kind: str, tower: Table, outer: Table, text: int) -> int | None:
    """Returns the parameters of a tower and its projector; None where the kind is not known.

    kind: the model type of the whole, or of the tower. tower: its configuration. text: the hidden size of
    the text model.
    """
    formula = _TOWERS.get(kind) or _TOWERS.get(str(tower.get("model_type")))
    try:
        return formula(tower, outer, text) if formula else None
    except (TypeError, ValueError, ZeroDivisionError):
        return None


def _size(table: Table, default: int, *names: str) -> int:
    for name in names:
        value = table.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 32:
            return int(value)
    return default


def _linear(inner: int, out: int) -> int:
    """Returns those of a linear with a bias."""
    return inner * out + out


def _vit_layers(tower: Table, hidden: int, ffn: int, layers: int) -> int:
    """Returns those of layers of attention and a feed-forward part with biases, and two LayerNorms."""
    count = _size(tower, layers, "num_hidden_layers", "depth", "vt_num_hidden_layers", "layers")
    return count * (4 * _linear(hidden, hidden) + _linear(hidden, ffn) + _linear(ffn, hidden) + 4 * hidden)


def _merger(hidden: int, merge: int, out: int) -> int:
    """Returns those of the two linears of merged patches."""
    wide = hidden * merge**2
    return _linear(wide, wide) + _linear(wide, out)


def _qwen3(tower: Table, outer: Table, text: int) -> int:
    hidden, merge = _size(tower, 1152, "hidden_size"), _size(tower, 2, "spatial_merge_size")
    ffn, patch = _size(tower, 4304, "intermediate_size"), _size(tower, 16, "patch_size")
    out, deep = _size(tower, text, "out_hidden_size"), tower.get("deepstack_visual_indexes", (8, 16, 24))
    size = _linear(3 * _size(tower, 2, "temporal_patch_size") * patch**2, hidden)
    size += _size(tower, 2304, "num_position_embeddings") * hidden + _vit_layers(tower, hidden, ffn, 27)
    mergers = _merger(hidden, merge, out)
    return size + 2 * hidden + mergers + len(deep or ()) * (2 * hidden * merge**2 + mergers)


def _qwen2_5(tower: Table, outer: Table, text: int) -> int:
    hidden, ffn = _size(tower, 3584, "hidden_size"), _size(tower, 3420, "intermediate_size")
    layers, patch = _size(tower, 32, "depth"), _size(tower, 14, "patch_size", "spatial_patch_size")
    each = 4 * _linear(hidden, hidden) + 2 * _linear(hidden, ffn) + _linear(ffn, hidden) + 2 * hidden
    out = _size(tower, 3584, "out_hidden_size")
    size = 3 * _size(tower, 2, "temporal_patch_size") * patch**2 * hidden + layers * each + hidden
    return size + _merger(hidden, _size(tower, 2, "spatial_merge_size"), out)


def _qwen2(tower: Table, outer: Table, text: int) -> int:
    hidden, patch = _size(tower, 1280, "embed_dim"), _size(tower, 14, "patch_size")
    ffn = hidden * _size(tower, 4, "mlp_ratio")
    size = 3 * _size(tower, 2, "temporal_patch_size") * patch**2 * hidden
    size += _vit_layers(tower, hidden, ffn, 32) + 2 * hidden
    return size + _merger(hidden, _size(tower, 2, "spatial_merge_size"), _size(tower, 3584, "hidden_size"))


def _patches(tower: Table, image: int, patch: int) -> int:
    return (_size(tower, image, "image_size") // max(_size(tower, patch, "patch_size"), 1)) ** 2


def _siglip(tower: Table, outer: Table, text: int) -> int:
    hidden, ffn = _size(tower, 768, "hidden_size"), _size(tower, 3072, "intermediate_size")
    size = _linear(3 * _size(tower, 16, "patch_size") ** 2, hidden) + _patches(tower, 224, 16) * hidden
    size += _vit_layers(tower, hidden, ffn, 12) + 2 * hidden
    if tower.get("vision_use_head", True):
        # A probe that attends to all patches, and a feed-forward part.
        size += 3 * hidden + 4 * _linear(hidden, hidden) + _linear(hidden, ffn) + _linear(ffn, hidden)
    return size + hidden * text + hidden


def _clip(tower: Table, outer: Table, text: int) -> int:
    hidden, ffn = _size(tower, 768, "hidden_size"), _size(tower, 3072, "intermediate_size")
    size = 3 * _size(tower, 32, "patch_size") ** 2 * hidden + (_patches(tower, 224, 32) + 2) * hidden
    size += _vit_layers(tower, hidden, ffn, 12) + 4 * hidden
    return size + _linear(hidden, text) + _linear(text, text)


def _llama4(tower: Table, outer: Table, text: int) -> int:
    hidden, ffn = _size(tower, 768, "hidden_size"), _size(tower, 5632, "intermediate_size")
    size = 3 * _size(tower, 14, "patch_size") ** 2 * hidden + (_patches(tower, 448, 14) + 2) * hidden
    size += _vit_layers(tower, hidden, ffn, 34) + 4 * hidden
    middle, out = _size(tower, 4096, "projector_input_dim"), _size(tower, 4096, "projector_output_dim")
    size += ffn * middle + middle * out
    return size + _size(tower, 7680, "vision_output_dim") * text


def _kimi(tower: Table, outer: Table, text: int) -> int:
    hidden = _size(tower, 1152, "vt_hidden_size", "hidden_size")
    ffn = _size(tower, 4304, "vt_intermediate_size", "intermediate_size")
    height, width = _size(tower, 64, "init_pos_emb_height"), _size(tower, 64, "init_pos_emb_width")
    size = _linear(3 * _size(tower, 14, "patch_size") ** 2, hidden) + height * width * hidden
    size += _vit_layers(tower, hidden, ffn, 27) + 2 * hidden
    return size + 2 * hidden + _merger(hidden, 2, text)


def _pixtral(tower: Table, outer: Table, text: int) -> int:
    hidden, ffn = _size(tower, 1024, "hidden_size"), _size(tower, 4096, "intermediate_size")
    layers, merge = _size(tower, 24, "num_hidden_layers"), _size(outer, 2, "spatial_merge_size")
    size = 3 * _size(tower, 14, "patch_size") ** 2 * hidden + hidden
    size += layers * (4 * hidden**2 + 3 * hidden * ffn + 2 * hidden)
    return size + hidden + hidden**2 * merge**2 + hidden * text + text**2


def _minimax(tower: Table, outer: Table, text: int) -> int:
    hidden, ffn = _size(tower, 1280, "hidden_size"), _size(tower, 5120, "intermediate_size")
    wide, merge = _size(outer, 6144, "projector_hidden_size"), _size(tower, 2, "spatial_merge_size")
    size = 3 * _size(tower, 2, "temporal_patch_size") * _size(tower, 14, "patch_size") ** 2 * hidden
    size += 2 * hidden + _vit_layers(tower, hidden, ffn, 32)
    return size + _linear(hidden, wide) + _linear(wide * merge**2, wide) + 2 * _linear(wide, wide)


def _step(tower: Table, outer: Table, text: int) -> int:
    hidden = _size(tower, 1536, "width", "hidden_size")
    ratio = tower.get("mlp_ratio", 8960 / 1536)
    ffn = int(hidden * (ratio if isinstance(ratio, int | float) else 4))
    layers = _size(tower, 47, "layers", "num_hidden_layers")
    size = 3 * _size(tower, 14, "patch_size") ** 2 * hidden + _patches(tower, 728, 14) * hidden + 2 * hidden
    size += _vit_layers(tower, hidden, ffn, layers) + layers * 2 * hidden
    # Two convolutions of 3 x 3, each to twice the size.
    return size + _linear(9 * hidden, 2 * hidden) + _linear(18 * hidden, 4 * hidden) + 4 * hidden * text


def _gemma4(tower: Table, outer: Table, text: int) -> int:
    hidden, ffn = _size(tower, 1152, "hidden_size"), _size(tower, 4304, "intermediate_size")
    heads, kv_heads = _size(tower, 16, "num_attention_heads"), _size(tower, 16, "num_key_value_heads")
    head = _size(tower, hidden // max(heads, 1), "head_dim")
    each = 2 * hidden * head * (heads + kv_heads) + 2 * head + 3 * hidden * ffn + 4 * hidden
    size = 2 * _size(tower, 10240, "position_embedding_size") * hidden
    size += 3 * _size(tower, 16, "patch_size") ** 2 * hidden
    return size + _size(tower, 27, "num_hidden_layers") * each + hidden * text


def _glm4(tower: Table, outer: Table, text: int) -> int:
    hidden, inner = _size(tower, 1536, "hidden_size"), _size(tower, 13696, "intermediate_size")
    out, merge = _size(tower, 4096, "out_hidden_size"), _size(tower, 2, "spatial_merge_size")
    size = _linear(3 * _size(tower, 2, "temporal_patch_size") * _size(tower, 14, "patch_size") ** 2, hidden)
    size += _patches(tower, 336, 14) * hidden + 2 * hidden + _linear(hidden * merge**2, out)
    size += _size(tower, 24, "depth") * (4 * hidden**2 + 3 * hidden * out + 2 * hidden)
    return size + out**2 + 2 * out + 3 * out * inner


_TOWERS: dict[str, Callable[[Table, Table, int], int]] = {
    "qwen3_vl": _qwen3, "qwen3_vl_moe": _qwen3, "qwen3_5": _qwen3, "qwen3_5_moe": _qwen3,
    "qwen2_5_vl": _qwen2_5, "qwen2_vl": _qwen2, "gemma3": _siglip, "siglip_vision_model": _siglip,
    "clip_vision_model": _clip, "llama4": _llama4, "kimi_k25": _kimi, "kimi_k3": _kimi,
    "mistral3": _pixtral, "pixtral": _pixtral, "minimax_m3_vl": _minimax, "minimax_m3": _minimax,
    "step3p7": _step, "gemma4": _gemma4, "glm4v": _glm4, "glm4v_moe": _glm4,
}  # fmt: skip
# Models that have a tower whether their file has a `vision_config` or not.
ALWAYS = {"Llama4ForConditionalGeneration": "llama4"}
