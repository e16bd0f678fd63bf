"""Reads and writes a model as wltui's own TOML.

[model]
layers = 32
hidden = 4096
heads = 32
ffn = 14336
vocab = 128256

Layers of several kinds: `pattern` names the kind of each, and a table of `[model.kinds]` has what differs.
"""

from __future__ import annotations

import difflib
import re
from itertools import groupby
from typing import Any

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.model.fields import quote_value, refusal
from simcore.model.huggingface import name_of
from simcore.model.mixers import Compression, DeltaNet, Indexer, Mamba
from simcore.model.sizes import BIASES, GATES, MOST_LAYERS, Mla, Model, Moe, check_model
from simcore.model.toml_text import TomlProblem, format_toml_value, locate_in_table, parse_toml, quote_toml
from simcore.records import Struct, replace

_COUNTS = (
    "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "seq", "positions", "vocab_step",
)  # fmt: skip
_SWITCHES = ("gated", "tied_embeddings", "dropout", "norm_bias", "qk_norm")
# Keys that most models leave out: their values are then those of `Model`.
_RARE_COUNTS = (
    "v_head_dim", "window", "norms", "streams", "longest", "layer_other", "other", "vision_parameters",
    "mtp_layers",
)  # fmt: skip
_RARE_SWITCHES = ("chunked", "shares_kv", "sinks", "qk_norm_whole", "attends")
_TABLES: dict[str, type[Struct]] = {
    "moe": Moe, "mla": Mla, "indexer": Indexer, "compression": Compression, "delta": DeltaNet, "mamba": Mamba,
}  # fmt: skip
_CHOICES = {"bias": BIASES, "gate": GATES}
_MODEL_KEYS = (
    *_COUNTS, *_SWITCHES, *_RARE_COUNTS, *_RARE_SWITCHES, "name", *_CHOICES, *_TABLES, "kinds", "pattern",
    "mtp_kind",
)  # fmt: skip
# Keys of the whole model alone.
_OF_WHOLE = ("kinds", "pattern", "mtp_kind", "mtp_layers", "vision_parameters", "other", "longest")
_RUN = re.compile(r"(.*?)(?:\*(\d{1,5}))?", re.DOTALL)


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
            message = f"found [{quote_value(name)[1:-1]}], expected [model] and its tables alone"
            raise refusal(path, message, locate_in_table(text, name))
    reader = _Reader(path, text, sizes)
    try:
        return check_model(reader.whole_model()), ()
    except UsageError as error:
        message = str(error)
        raise refusal(path, message, locate_in_table(text, "model", message.split(":")[0])) from None


class _Reader:
    def __init__(self, path: str, text: str, sizes: dict[str, Any]) -> None:
        self.path, self.text, self.sizes = path, text, sizes

    def whole_model(self) -> Model:
        """Returns the model with its kinds of layers."""
        model, kinds = self.model(), self.sizes.get("kinds")
        if kinds is None:
            return model
        if not isinstance(kinds, dict) or not kinds:
            raise self._wrong("kinds", f"kinds: found {quote_value(kinds)}, expected tables of kinds")
        own = {key: value for key, value in self.sizes.items() if key not in _OF_WHOLE}
        models = []
        for name, differs in kinds.items():
            if not isinstance(differs, dict):
                raise self._wrong("kinds", f"kinds: found {quote_value(differs)}, expected a table")
            # `moe = false` in a kind: without what the others have.
            both = own | differs
            merged = {key: both[key] for key in both if key not in _TABLES or both[key] is not False}
            models.append(_Reader(self.path, self.text, merged | {"name": name or "kind"}).model())
        names, pattern = [*kinds], self._pattern([*kinds])
        predicted = self.sizes.get("mtp_kind")
        if predicted is not None and predicted not in names:
            expected = ", ".join(printable(name, 40) for name in names)
            message = f"mtp_kind: found {quote_value(predicted)}, expected one of {expected}"
            raise self._wrong("mtp_kind", message)
        mtp_kind = -1 if predicted is None else names.index(predicted)
        models = [replace(kind, name=name) for kind, name in zip(models, names, strict=True)]
        return replace(model, kinds=tuple(models), pattern=pattern, mtp_kind=mtp_kind)

    def _pattern(self, names: list[str]) -> tuple[int, ...]:
        """Returns the kind of each layer from `["linear*3", "full"]`."""
        words = self.sizes.get("pattern")
        if not isinstance(words, list) or not words:
            message = f"pattern: found {quote_value(words)}, expected the kind of each layer"
            raise self._wrong("pattern", message)
        pattern: list[int] = []
        for word in words:
            match = _RUN.fullmatch(word) if isinstance(word, str) else None
            kind: object = word if match is None or word in names else match[1]
            times = None if match is None or word in names else match[2]
            if kind not in names:
                expected = ", ".join(printable(name, 40) for name in names)
                raise self._wrong("pattern", f"pattern: found {quote_value(word)}, expected {expected}")
            pattern += [names.index(str(kind))] * int(times or 1)
            if len(pattern) > MOST_LAYERS:
                raise self._wrong("pattern", f"pattern: found more than {MOST_LAYERS} layers")
        return tuple(pattern)

    def model(self) -> Model:
        """Returns the model of one kind of layer that the table states."""
        self._check_keys(self.sizes, _MODEL_KEYS, "model")
        parts: dict[str, Any] = {}
        for part, record in _TABLES.items():
            table = self.sizes.get(part)
            if table is not None:
                parts[part] = self._record(part, table, record)
        count, sizes, mla, moe = self._count, self.sizes, parts.get("mla"), parts.get("moe")
        hidden, heads = count(sizes, "hidden"), count(sizes, "heads")
        gated = self._switch("gated", True)
        name = sizes.get("name")
        choices = {"bias": sizes.get("bias", "none" if gated else "all"), "gate": sizes.get("gate", "none")}
        if name is not None and not isinstance(name, str):
            raise self._wrong("name", f"name: found {quote_value(name)}, expected a text")
        for key, value in choices.items():
            if value not in _CHOICES[key]:
                message = f"{key}: found {quote_value(value)}, expected one of {', '.join(_CHOICES[key])}"
                raise self._wrong(key, message)
        seq = count(sizes, "seq", 2048)
        plain = Model("", 1, 1, 1, 1, 1, 1, True, 1, 1)
        rare: dict[str, Any] = {key: count(sizes, key, getattr(plain, key)) for key in _RARE_COUNTS}
        rare |= {key: self._switch(key, getattr(plain, key)) for key in _RARE_SWITCHES}
        return Model(
            name or name_of(self.path),
            count(sizes, "layers"),
            hidden,
            heads,
            # Some files have 0 for "as many as heads" and for "hidden / heads".
            count(sizes, "kv_heads", heads) or heads,
            count(sizes, "head_dim", 0) or (mla.v_head_dim if mla else hidden // max(heads, 1)),
            # A GPT's is 4 times the hidden size; a model with experts in all layers needs none.
            count(sizes, "ffn", 0 if moe and not moe.dense_layers else None if gated else 4 * hidden),
            gated,
            count(sizes, "vocab"),
            seq,
            tied_embeddings=self._switch("tied_embeddings", not gated),
            dropout=self._switch("dropout", not gated),
            norm_bias=self._switch("norm_bias", not gated),
            positions=count(sizes, "positions", 0 if gated else seq),
            qk_norm=self._switch("qk_norm", False),
            vocab_step=count(sizes, "vocab_step", 128),
            **choices,
            **rare,
            **parts,
        )

    def _record(self, where: str, table: object, record: type[Struct]) -> Struct:
        """Returns the sizes of a table below [model]."""
        if not isinstance(table, dict):
            raise self._wrong(where, f"{where}: found {quote_value(table)}, expected a table of sizes")
        keys = record.__struct_fields__
        self._check_keys(table, keys, f"model.{where}")
        required = len(keys) - len(record.__struct_defaults__)
        defaults = dict(zip(keys[required:], record.__struct_defaults__, strict=True))
        if record is Mla:
            # 0 where queries are projected at once.
            defaults["q_lora_rank"] = 0
        values: dict[str, Any] = {}
        for key in keys:
            default = defaults.get(key)
            if key == "indexer":
                nested = table.get(key)
                values[key] = nested and self._record(f"{where}.{key}", nested, Indexer)
            elif isinstance(default, bool):
                values[key] = self._switch(key, default, table)
            else:
                values[key] = self._count(table, key, default)
        return record(**values)

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

    def _switch(self, key: str, default: bool, table: dict[str, Any] | None = None) -> bool:
        value = (self.sizes if table is None else table).get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, f"{key}: found {quote_value(value)}, expected true or false")
        return value

    def _wrong(self, key: str | None, message: str) -> Exception:
        return refusal(self.path, message, locate_in_table(self.text, "model", key))


def model_toml(model: Model) -> str:
    """Returns the text of such a file, which `read_toml_model` reads back as the same model."""
    plain = Model("", 1, 1, 1, 1, 1, 1, True, 1, 1)
    lines = ["[model]", f"name = {quote_toml(model.name)}"]
    lines += [f"{key} = {format_toml_value(getattr(model, key))}" for key in (*_COUNTS, *_SWITCHES, "bias")]
    lines += _differing_lines(model, plain, (*_RARE_COUNTS, *_RARE_SWITCHES, "gate"))
    if model.kinds:
        runs = [(kind, len([*run])) for kind, run in groupby(model.pattern)]
        words = [model.kinds[kind].name + (f"*{times}" if times > 1 else "") for kind, times in runs]
        lines.append(f"pattern = [{', '.join(map(quote_toml, words))}]")
        if model.mtp_kind >= 0:
            lines.append(f"mtp_kind = {quote_toml(model.kinds[model.mtp_kind].name)}")
    lines += _table_lines(model, plain, "model")
    for kind in model.kinds:
        where = f"model.kinds.{quote_toml(kind.name)}"
        keys = (*_COUNTS, *_SWITCHES, *_RARE_COUNTS, *_RARE_SWITCHES, *_CHOICES)
        keys = tuple(key for key in keys if key not in _OF_WHOLE)
        lines += ["", f"[{where}]", *_differing_lines(kind, model, keys), *_table_lines(kind, model, where)]
    return "\n".join(lines) + "\n"


def _differing_lines(model: Model, other: Model, keys: tuple[str, ...]) -> list[str]:
    """Returns the lines of the keys in which two models differ."""
    values = ((key, getattr(model, key)) for key in keys if getattr(model, key) != getattr(other, key))
    return [f"{key} = {format_toml_value(value)}" for key, value in values]


def _table_lines(model: Model, other: Model, where: str) -> list[str]:
    """Returns the tables in which two models differ; `false` for one that only the other has."""
    missing = [f"{name} = false" for name in _TABLES if getattr(model, name) is None and getattr(other, name)]
    lines = [*missing]
    for name in _TABLES:
        part = getattr(model, name)
        if part is None or part == getattr(other, name):
            continue
        lines += ["", f"[{where}.{name}]", *_record_lines(part)]
        nested = getattr(part, "indexer", None)
        if nested is not None:
            lines += ["", f"[{where}.{name}.indexer]", *_record_lines(nested)]
    return lines


def _record_lines(part: Struct) -> list[str]:
    """Returns the lines of a table: every size, and what differs from the record's defaults."""
    keys = part.__struct_fields__
    required = len(keys) - len(part.__struct_defaults__)
    written_keys = keys if isinstance(part, Mla) else (*keys[:required], *_rare(part, keys, required))
    values = ((key, getattr(part, key)) for key in written_keys if key != "indexer")
    return [f"{key} = {format_toml_value(value)}" for key, value in values]


def _rare(part: Struct, keys: tuple[str, ...], required: int) -> list[str]:
    # Shared experts and dense layers were always written.
    always = ("shared_experts", "dense_layers")
    defaults = zip(keys[required:], part.__struct_defaults__, strict=True)
    return [key for key, default in defaults if getattr(part, key) != default or key in always]
