"""Reads `--model-map`: which family a configuration is of, and what its fields are called.

family = "llama"

[fields]
hidden = "width"          # ours = the file's, or a table's: "decoder.width"
heads = 32                # or the value itself
"""

from __future__ import annotations

import difflib
from typing import Any

from simcore.diagnostics import printable
from simcore.model.families import FAMILIES
from simcore.model.fields import SPELLINGS, quote_value, refusal
from simcore.model.toml_text import TomlProblem, locate_in_table, parse_toml, read_text

# No size of a model is larger.
_MOST = 1 << 40


def map_fields(path: str, whole: dict[str, Any], map_path: str) -> tuple[dict[str, Any], str | None]:
    """Returns a configuration with its fields as `fields.py` knows them, and its family; None for its own.

    path: of the configuration, for messages. Raises InputError for a map that does not fit.
    """
    try:
        text = read_text(map_path, "a map of a model's fields")
        table = parse_toml(text, "a map of a model's fields")
    except FileNotFoundError:
        raise refusal(map_path, "there is no such file") from None
    except TomlProblem as problem:
        raise refusal(map_path, problem.message, problem.location) from None
    for key in table:
        if key not in ("family", "fields"):
            message = f"found {quote_value(key)}, expected family and [fields]"
            raise refusal(map_path, message, locate_in_table(text, key))
    family = table.get("family")
    if family is not None and not (isinstance(family, str) and family in FAMILIES):
        close = difflib.get_close_matches(str(family), FAMILIES, 3, 0.4) or [*FAMILIES][:3]
        message = f"family: found {quote_value(family)}, expected one like {', '.join(close)}"
        raise refusal(map_path, message, locate_in_table(text, "family"))
    fields = table.get("fields", {})
    if not isinstance(fields, dict):
        raise refusal(map_path, f"fields: found {quote_value(fields)}, expected a table")
    mapped = dict(whole)
    for ours, theirs in fields.items():
        location = locate_in_table(text, "fields", ours)
        is_value = isinstance(theirs, bool) or (isinstance(theirs, int) and 0 <= theirs <= _MOST)
        if not is_value and not isinstance(theirs, str):
            message = f"{printable(ours, 40)}: found {quote_value(theirs)}, expected a field, or its value"
            raise refusal(map_path, message, location)
        value = _look_up(whole, theirs) if isinstance(theirs, str) else theirs
        if value is None:
            message = f"{printable(ours, 40)}: found no {quote_value(theirs)} in {printable(path, 60)}"
            raise refusal(map_path, message, location)
        if isinstance(theirs, str):
            mapped.pop(theirs, None)
        for spelling in SPELLINGS.get(ours, ()):
            mapped.pop(spelling, None)
        mapped[SPELLINGS.get(ours, (ours,))[0]] = value
    return mapped, family


def _look_up(whole: dict[str, Any], name: str) -> Any:
    """Returns the value of a field, or of one in a table: `decoder.width`."""
    if name in whole:
        return whole[name]
    value: Any = whole
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
