"""The files of a model, told by their content: a Hugging Face `config.json`, and wltui's own TOML."""

from __future__ import annotations

import re

from simcore.workload.formats.format import FileHead, Format

_BLANKS = b" \t\r\n\f\v"
_TABLE = re.compile(r"\[\s*model\s*[\].]")
# Sizes under the names that configurations have for them.
_SIZES = (b'"hidden_size"', b'"n_embd"', b'"num_hidden_layers"', b'"n_layer"', b'"architectures"')


def _is_config(head: FileHead) -> bool:
    start = head.raw.lstrip(_BLANKS)
    if not start.startswith(b"{"):
        return False
    # Beside its kind, or what tells that the kind is missing.
    has_model_type = b'"model_type"' in start and b'"ph"' not in start
    return has_model_type or sum(name in start for name in _SIZES) > 1


def _is_toml(head: FileHead) -> bool:
    return bool(head.lines) and _TABLE.match(head.lines[0]) is not None


FORMATS: tuple[Format, ...] = (
    Format("model (config.json)", _is_config, kind="model"),
    Format("model (TOML)", _is_toml, kind="model"),
)
