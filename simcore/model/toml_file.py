"""Reads and writes a model as wltui's own TOML.

[model]
layers = 32
hidden = 4096
heads = 32
ffn = 14336
vocab = 128256
"""

from __future__ import annotations

import difflib
from typing import Any

from simcore.diagnostics import Diagnostic, UsageError
from simcore.model.huggingface import name_of, quote_value, refusal
from simcore.model.sizes import BIASES, Mla, Model, Moe, check_model
from simcore.model.toml_text import TomlProblem, format_toml_value, locate_in_table, parse_toml

_COUNTS = (
    "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "seq", "positions", "vocab_step",
)  # fmt: skip
_SWITCHES = ("gated", "tied_embeddings", "dropout", "norm_bias", "qk_norm")
_TABLES = {
    "moe": ("experts", "experts_per_token", "ffn", "shared_experts", "dense_layers"),
    "mla": Mla.__struct_fields__,
}
_MODEL_KEYS = (*_COUNTS, *_SWITCHES, "name", "bias", *_TABLES)


def read_toml_model(path: str, data: bytes) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Returns the model of a TOML file. Raises InputError with the position of what does not fit."""
    text = data.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n")
    try:
        table = parse_toml(text, "sizes of a model")
    except TomlProblem as problem:
        raise refusal(path, problem.message, problem.location) from None
    sizes = table.get("model")
    if not isinstance(sizes, dict):
        raise refusal(path, f"found {quote_value(sizes)} for [model], expected a table of sizes")
    for name in table:
        if name != "model":
            message = (
                f"found [{quote_value(name)[1:-1]}], expected [model], [model.moe] and [model.mla] alone"
            )
            raise refusal(path, message, locate_in_table(text, name))
    reader = _Reader(path, text, sizes)
    try:
        return check_model(reader.model()), ()
    except UsageError as error:
        message = str(error)
        raise refusal(path, message, locate_in_table(text, "model", message.split(":")[0])) from None


class _Reader:
    def __init__(self, path: str, text: str, sizes: dict[str, Any]) -> None:
        self.path, self.text, self.sizes = path, text, sizes

    def model(self) -> Model:
        self._check_keys(self.sizes, _MODEL_KEYS, "model")
        moe = self._table("moe")
        moe_sizes = mla_sizes = None
        if moe is not None:
            values = [self._count(moe, key, 0 if key.endswith(("rts", "ers")) and key != "experts" else None)
                      for key in _TABLES["moe"]]  # fmt: skip
            moe_sizes = Moe(*values)
        mla = self._table("mla")
        if mla is not None:
            mla_sizes = Mla(*(self._count(mla, key, 0 if key == "q_lora_rank" else None)
                              for key in _TABLES["mla"]))  # fmt: skip
        count, sizes = self._count, self.sizes
        hidden, heads = count(sizes, "hidden"), count(sizes, "heads")
        gated = self._switch("gated", True)
        name, bias = sizes.get("name"), sizes.get("bias", "none" if gated else "all")
        if name is not None and not isinstance(name, str):
            raise self._wrong("name", f"name: found {quote_value(name)}, expected a text")
        if bias not in BIASES:
            raise self._wrong("bias", f"bias: found {quote_value(bias)}, expected one of {', '.join(BIASES)}")
        seq = count(sizes, "seq", 2048)
        return Model(
            name or name_of(self.path),
            count(sizes, "layers"),
            hidden,
            heads,
            # Some files have 0 for "as many as heads" and for "hidden / heads".
            count(sizes, "kv_heads", heads) or heads,
            count(sizes, "head_dim", 0) or (mla_sizes.v_head_dim if mla_sizes else hidden // max(heads, 1)),
            # A GPT's is 4 times the hidden size; a model with experts in all layers needs none.
            count(
                sizes, "ffn", 0 if moe_sizes and not moe_sizes.dense_layers else None if gated else 4 * hidden
            ),
            gated,
            count(sizes, "vocab"),
            seq,
            tied_embeddings=self._switch("tied_embeddings", not gated),
            dropout=self._switch("dropout", not gated),
            bias=bias,
            norm_bias=self._switch("norm_bias", not gated),
            positions=count(sizes, "positions", 0 if gated else seq),
            qk_norm=self._switch("qk_norm", False),
            moe=moe_sizes,
            mla=mla_sizes,
            vocab_step=count(sizes, "vocab_step", 128),
        )

    def _table(self, name: str) -> dict[str, Any] | None:
        table = self.sizes.get(name)
        if table is None:
            return None
        if not isinstance(table, dict):
            raise self._wrong(name, f"{name}: found {quote_value(table)}, expected a table of sizes")
        self._check_keys(table, _TABLES[name], f"model.{name}")
        return table

    def _check_keys(self, table: dict[str, Any], allowed: tuple[str, ...], where: str) -> None:
        for key in table:
            if key not in allowed:
                close = difflib.get_close_matches(key, allowed, 1)
                hint = f", for example {close[0]}" if close else ""
                message = f"[{where}]: found {quote_value(key)}, expected one of {', '.join(allowed)}{hint}"
                raise self._wrong(key, message)

    def _count(self, table: dict[str, Any], key: str, default: int | None = None) -> int:
        value = table.get(key, default)
        if value is None:
            message = f"found no {key}, expected it: a model without its sizes cannot be priced"
            raise self._wrong(None, message)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 2**62:
            raise self._wrong(key, f"{key}: found {quote_value(value)}, expected a whole number")
        return value

    def _switch(self, key: str, default: bool) -> bool:
        value = self.sizes.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, f"{key}: found {quote_value(value)}, expected true or false")
        return value

    def _wrong(self, key: str | None, message: str) -> Exception:
        return refusal(self.path, message, locate_in_table(self.text, "model", key))


def model_toml(model: Model) -> str:
    """Returns the text of such a file, which `read_toml_model` reads back as the same model."""
    lines = ["[model]"]
    safe = "".join(
        character if character.isprintable() and character not in '"\\' else f"\\U{ord(character):08x}"
        for character in model.name
    )
    lines.append(f'name = "{safe}"')
    lines += [f"{key} = {format_toml_value(getattr(model, key))}" for key in (*_COUNTS, *_SWITCHES, "bias")]
    for table, keys in _TABLES.items():
        part = getattr(model, table)
        if part is not None:
            lines += ["", f"[model.{table}]", *(f"{key} = {getattr(part, key)}" for key in keys)]
    return "\n".join(lines) + "\n"
