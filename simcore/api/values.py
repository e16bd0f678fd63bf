"""Parameters as keywords: every flag of the command line by its name, `_` for `-`, with Python's values."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

from simcore.diagnostics import InputError, UsageError, did_you_mean, printable
from simcore.parameter_values.choices import help_of
from simcore.parameter_values.values import InvalidValue, plain_value
from simcore.parameters import FLAGS, Flag

if TYPE_CHECKING:
    from simcore.cluster import Dimension

_BY_FIELD = {flag.field: flag for flag in FLAGS}


class WrongType(UsageError, TypeError):
    """An argument of a type that does not fit: a `TypeError` of Python, and a `UsageError` as other
    errors.
    """

    def __init__(self, name: str, value: object, expected: str) -> None:
        """Makes the error. name: of the argument, or of the function where it is the first."""
        super().__init__(f"{name}: found {printable(repr(value), 60)}, expected {expected}")


# Option of the command line -> keyword of Python; those of a run's parameters are in FLAGS.
_KEYWORDS = {flag.option: flag.field for flag in FLAGS} | {
    "--run": "run", "--step": "step", "--ranks": "ranks", "--comm-names": "comm_names",
    "--step-names": "step_names", "--trace-map": "trace_map",
    "--model": "model", "--format": "format", "--where": "where",
    "--from-args": "from_args",
    "--output": "path", "--force": "force=True",
}  # fmt: skip
_OPTION = re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*")


# Kind of flag -> type of its keyword.
_TYPES = {
    "count": "int", "positive": "float", "scale": "float", "switch": "bool",
    "word": "str | int | bool", "text": "str | int | PathLike[str]",
    "words": "str | Iterable[str] | Mapping[str | int, float]",
}  # fmt: skip
_F = TypeVar("_F", bound=Callable[..., Any])


def keyword_types(several: bool = False) -> dict[str, str]:
    """Returns {keyword: type}, for signatures and for the file that `make shell` makes.

    several: for a sweep, where a list varies a parameter, except those that are a list already.
    """
    types = {}
    for flag in FLAGS:
        one = f"{_TYPES[flag.kind]} | None"
        swept = several and flag.kind != "words"
        types[flag.field] = f"{_TYPES[flag.kind]} | Iterable[{one}] | None" if swept else one
    return types


def with_keywords(types: Mapping[str, str], stays: bool = False) -> Callable[[_F], _F]:
    """Returns a decorator that gives a function a signature with each parameter by name and type, which
    notebooks complete, and a line on each in its documentation.

    stays: whether a parameter that is not given keeps its value; else it is at its default.
    """

    def add_signature(function: _F) -> _F:
        own = inspect.signature(function)
        parameters = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        defaults = {flag.field: flag.default for flag in FLAGS}
        for name, annotation in types.items():
            default = ... if stays else defaults.get(name)
            only = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(name, only, default=default, annotation=annotation))
        function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined] # read by inspect
        lines = [f"    {flag.field}: {in_keywords(help_of(flag))}" for flag in FLAGS]
        function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", "parameters:", *lines])
        return function

    return add_signature


def in_keywords(words: str) -> str:
    """Returns words of the command line with Python's keywords in place of its flags."""
    replaced = words.replace("--model NAME|FILE", "load(model=NAME)").replace("--vary: ", "sweep: ")
    replaced = replaced.replace("--vary ", "").replace("(repeatable)", "(or a list)")
    return _OPTION.sub(lambda option: _KEYWORDS.get(option[0], option[0]), replaced)


@contextmanager
def errors_in_keywords() -> Iterator[None]:
    """Has errors raised inside, or in a function that this decorates, name keywords in place of flags."""
    try:
        yield
    except (InputError, UsageError) as error:
        error.args = (in_keywords(str(error)),)
        raise


def whole_number(name: str, value: object, least: int = 0) -> int:
    """Returns a value as a whole number, also one of numpy. Raises `UsageError`: a `WrongType` where it is no
    number.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise WrongType(name, value, "a whole number")
    if value < least:
        raise UsageError(f"{name}: found {value}, expected a whole number from {least}")
    return int(value)


def text(name: str, value: object, expected: str = "a text") -> str:
    """Returns a value as text, a path included. Raises `WrongType`."""
    if not isinstance(value, str | os.PathLike):
        raise WrongType(name, value, expected)
    return os.fspath(value)


def check_values(values: Mapping[str, object]) -> dict[str, Any]:
    """Returns the values of fields of `Parameters`, as these have them.

    A list may be a mapping, `slow_rank={77: 1.5}`; None resets a parameter. Raises `UsageError` with the
    keyword, what was found and what fits.
    """
    return {name: _value(name, value) for name, value in values.items()}


def _value(name: str, value: object) -> Any:
    flag = _BY_FIELD.get(name)
    if flag is None:
        raise UsageError(
            f"{printable(name, 40)}: no parameter of this name{did_you_mean(name, tuple(_BY_FIELD))}"
        )
    if value is None:
        return flag.default
    try:
        return plain_value(flag, _plain(flag, value))
    except InvalidValue as unfit:
        quoted = printable(repr(unfit.value), 60)
        message = unfit.message or f"found {quoted}, expected {unfit.expected}"
        raise UsageError(f"{name}: {message}") from None


def _plain(flag: Flag, value: object) -> object:
    if isinstance(value, Integral) and not isinstance(value, bool):
        # The value may be one of numpy.
        value = int(value)
    elif isinstance(value, Real) and not isinstance(value, bool):
        value = float(value)
        value = int(value) if flag.kind == "count" and value.is_integer() else value
    if flag.kind == "words":
        if isinstance(value, str):
            return [value]
        if isinstance(value, Mapping):
            return [f"{key}={factor}" for key, factor in value.items()]
        return list(value) if isinstance(value, Iterable) else value
    if flag.kind in ("word", "text"):
        # `zero=1`, `sequence_parallel=True`: the flag writes these as words.
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, os.PathLike):
            return os.fspath(value)
    return value


def split_factors(
    name: str, factor_by_key: Mapping[str | int, float], dims: Sequence[Dimension]
) -> tuple[dict[int, float], dict[str, float]]:
    """Returns factors as ({dimension: factor}, {group: factor}). name: the keyword, for messages.

    Raises `UsageError` for a dimension that the network does not have, and a value that is no factor.
    """
    by_dimension: dict[int, float] = {}
    by_group: dict[str, float] = {}
    for key, factor in factor_by_key.items():
        if isinstance(factor, bool) or not isinstance(factor, Real) or not 0 < factor < 1e12:
            raise UsageError(f"{name}[{key!r}]: found {factor!r}, expected a factor above 0")
        if isinstance(key, str):
            by_group[key] = float(factor)
        elif isinstance(key, Integral) and 0 <= key < len(dims):
            by_dimension[int(key)] = float(factor)
        else:
            there = f"dimensions 0 to {len(dims) - 1}" if dims else "no dimensions"
            raise UsageError(f"{name}[{key!r}]: the network has {there}")
    return by_dimension, by_group
