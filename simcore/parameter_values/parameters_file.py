"""Parameters as a TOML file: the flags of the command line, by the names that the JSON report has.

compute_scale = 0.9
slow_rank = ["37=1.3"]                # what may be repeated is a list
overlap_grad_reduce = true
cluster = "h200-8"                    # a path is as on the command line: from where wltui runs
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.model.toml_text import (
    TomlProblem,
    format_toml_value,
    locate_key,
    parse_toml,
    quote_toml,
    read_text,
)
from simcore.parameter_values.values import InvalidValue, plain_value
from simcore.parameters import FLAGS, Flag

_BY_FIELD = {flag.field: flag for flag in FLAGS}


def read_parameters(path: str) -> dict[str, Any]:
    """Returns {field: value} of the parameters that the file states.

    Raises InputError with the position of what does not fit.
    """
    return _File(path, _text(path)).values()


def toml_of(values: Mapping[str, Any]) -> str:
    """Returns the text of a parameters file with these values of fields."""
    return "".join(f"{field} = {_toml(value)}\n" for field, value in values.items())


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote_toml(value)
    return repr(value)


def _text(path: str) -> str:
    try:
        return read_text(path, "a file of parameters")
    except FileNotFoundError as error:
        raise _refusal(path, f"the file cannot be read: {error.strerror}") from None
    except TomlProblem as problem:
        raise _refusal(path, problem.message, problem.location) from None


def _refusal(path: str, message: str, location: tuple[int, int] | None = None) -> InputError:
    line, column = location or (None, None)
    return InputError(Diagnostic("error", "parameters-file", message, path, line, column))


class _File:
    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    def values(self) -> dict[str, Any]:
        """Returns every value, checked and parsed."""
        values = {}
        for key, value in self._table().items():
            flag = _BY_FIELD.get(key)
            if flag is None:
                close = difflib.get_close_matches(key, list(_BY_FIELD), 1, 0.6)
                expected = f"the name of a parameter{f', for example {close[0]}' if close else ''}"
                raise self._wrong(key, f"found {_quoted(key)}, expected {expected}")
            values[key] = self._value(flag, value)
        return values

    def _table(self) -> dict[str, Any]:
        try:
            return parse_toml(self.text, "single values")
        except TomlProblem as problem:
            raise _refusal(self.path, problem.message, problem.location) from None

    def _value(self, flag: Flag, value: object) -> Any:
        try:
            return plain_value(flag, value)
        except InvalidValue as unfit:
            message = f"found {_quoted(unfit.value)} for {flag.field}, expected {unfit.expected}"
            if unfit.message:
                message = f"{flag.field} {unfit.message}"
            item = unfit.value if unfit.item is not None and isinstance(unfit.value, str) else ""
            raise self._wrong(flag.field, message, item) from None

    def _wrong(self, key: str, message: str, item: str = "") -> InputError:
        return _refusal(self.path, message, locate_key(self.text, key, item))


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else format_toml_value(value)
    return f"`{printable(text, 40)}`"
