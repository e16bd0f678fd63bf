"""The files of a model, told by their content: a `config.json` or its like, wltui's own TOML, and the launch
arguments of a trainer.
"""

from __future__ import annotations

import re

from simcore.workload.formats.format import BLANKS, FileHead, Format

# No text has a NUL among so many first bytes.
_TEXT_BYTES = 512
_TABLE = re.compile(r"\[\s*model\s*[\].]")
# Sizes under the names that configurations have for them.
_SIZES = (
    b'"hidden_size"', b'"n_embd"', b'"num_hidden_layers"', b'"n_layer"', b'"architectures"', b'"dim"',
    b'"n_layers"', b'"head_num"', b'"layer_num"', b'"ffn_hidden_size"', b'"d_kv_c"', b'"vocab_size"',
)  # fmt: skip


def _is_config(head: FileHead) -> bool:
    start = head.raw.lstrip(BLANKS)
    # Beside its kind, or what tells that the kind is missing.
    if not start.startswith(b"{") or b'"ph"' in start:
        return False
    return b'"model_type"' in start or sum(name in start for name in _SIZES) > 1


def _is_toml(head: FileHead) -> bool:
    return bool(head.lines) and _TABLE.match(head.lines[0]) is not None


# Keys of torchtitan, and Megatron-LM's arguments for sizes and degrees.
_TITAN = re.compile(rb"^[ \t]*\[(training|parallelism|activation_checkpoint|experimental)\]", re.MULTILINE)
_MEGATRON = re.compile(rb"--(num-layers|hidden-size|tensor-model-parallel-size|micro-batch-size)[ =]")


def is_launch(raw: bytes) -> bool:
    """Returns whether a file with these first bytes has the launch arguments of a trainer."""
    # Of binary files a directory may have thousands: to search one takes 1.5 ms.
    if raw.lstrip(BLANKS).startswith((b"{", b"[{")) or b"\0" in raw[:_TEXT_BYTES]:
        return False
    return _TITAN.search(raw) is not None or _MEGATRON.search(raw) is not None


FORMATS: tuple[Format, ...] = (
    Format("model (config.json)", _is_config, kind="model"),
    Format("launch arguments", lambda head: is_launch(head.raw), kind="model"),
    Format("model (TOML)", _is_toml, kind="model"),
)
