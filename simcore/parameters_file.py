"""Parameters as a TOML file: the flags of the command line, by the names that the JSON report has.

compute_scale = 0.9
slow_rank = ["37=1.3"]                # what may be repeated is a list
overlap_grad_reduce = true
cluster = "h200-8"                    # a path is as on the command line: from where wltui runs
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from simcore.choices import is_one_of, may_be_file
from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.forms import check_item
from simcore.parameters import FLAGS, Flag, Parameters, parse_value, stated
from simcore.toml_text import TomlProblem, as_written, parse_toml, place_of_key, read_text

_BY_FIELD = {flag.field: flag for flag in FLAGS}
_EXPECTED = {"count": "a whole number", "positive": "a number", "scale": "a number", "word": "a text",
             "text": "a text", "words": "a list of texts", "switch": "true or false"}  # fmt: skip


def read_parameters(path: str, choices: Callable[[str], tuple[str, ...]]) -> dict[str, Any]:
    """Field -> value, of the parameters that the file states.

    choices: what a parameter that is a word may be.
    Raises InputError with the place of what cannot be.
    """
    return _File(path, _text(path), choices).values()


def parameters_toml(parameters: Parameters) -> str:
    """The parameters that are not at their default, as such a file."""
    return "".join(
        f"{flag.field} = {_toml(getattr(parameters, flag.field))}\n" for flag in stated(parameters)
    )


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A basic string of TOML; characters beyond ASCII stand for themselves.
        return '"' + "".join(_character(one) for one in value) + '"'
    return repr(value)


def _character(one: str) -> str:
    if one in '"\\':
        return "\\" + one
    return one if one.isprintable() else f"\\U{ord(one):08x}"


def _text(path: str) -> str:
    try:
        return read_text(path, "a file of parameters")
    except FileNotFoundError as error:
        raise _refusal(path, f"the file cannot be read: {error.strerror}") from None
    except TomlProblem as problem:
        raise _refusal(path, problem.message, problem.place) from None


def _refusal(path: str, message: str, place: tuple[int, int] | None = None) -> InputError:
    line, column = place or (None, None)
    return InputError(Diagnostic("error", "parameters-file", message, path, line, column))


class _File:
    def __init__(self, path: str, text: str, choices: Callable[[str], tuple[str, ...]]) -> None:
        self.path = path
        self.text = text
        self.choices = choices

    def values(self) -> dict[str, Any]:
        """Every key checked and parsed."""
        found = {}
        for key, value in self._table().items():
            flag = _BY_FIELD.get(key)
            if flag is None:
                close = difflib.get_close_matches(key, list(_BY_FIELD), 1, 0.6)
                expected = f"the name of a parameter{f', for example {close[0]}' if close else ''}"
                raise self._wrong(key, f"found {_quoted(key)}, expected {expected}")
            found[key] = self._value(flag, value)
        return found

    def _table(self) -> dict[str, Any]:
        try:
            return parse_toml(self.text, "single values")
        except TomlProblem as problem:
            raise _refusal(self.path, problem.message, problem.place) from None

    def _value(self, flag: Flag, value: object) -> Any:
        if flag.kind == "switch":
            if not isinstance(value, bool):
                raise self._unfit(flag, value)
            return value
        if flag.kind == "words":
            if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
                raise self._unfit(flag, value)
            return tuple(word for one in value for word in self._parsed(flag, one, one))
        wanted = str if flag.kind in ("word", "text") else (int, float)
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise self._unfit(flag, value)
        text = value if isinstance(value, str) else repr(value)
        parsed = self._parsed(flag, text, "")
        if flag.kind == "word":
            self._check_word(flag, text)
        return parsed

    def _parsed(self, flag: Flag, text: str, item: str) -> Any:
        """`text` as the flag takes it; its complaint gets a place here."""
        try:
            value = parse_value(flag, text)
            if flag.kind == "words":
                for word in value:
                    check_item(flag.field, word)
            return value
        except UsageError as error:
            message = f"{flag.field} {str(error).removeprefix(flag.option + ' ')}"
            raise self._wrong(flag.field, message, item) from None

    def _check_word(self, flag: Flag, text: str) -> None:
        known = self.choices(flag.field)
        if not is_one_of(text, known) and not may_be_file(flag.field, text):
            message = f"found {_quoted(text)} for {flag.field}, expected one of {', '.join(known)}"
            raise self._wrong(flag.field, message)

    def _unfit(self, flag: Flag, value: object) -> InputError:
        message = f"found {_quoted(value)} for {flag.field}, expected {_EXPECTED[flag.kind]}"
        return self._wrong(flag.field, message)

    def _wrong(self, key: str, message: str, item: str = "") -> InputError:
        return _refusal(self.path, message, place_of_key(self.text, key, item))


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else as_written(value)
    return f"`{printable(text, 40)}`"
