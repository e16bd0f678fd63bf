"""Reads lines of results: each is a whole point whose values can be, and whose command runs it.

What a command says is made anew from the parameters and compared: a line of a file that somebody sent must
not have its reader paste another command.
"""

from __future__ import annotations

from typing import Any

import msgspec

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.parameter_values.values import InvalidValue, plain_value
from simcore.parameters import FLAGS, Parameters
from simcore.shell_words import join_words, split_words
from simcore.sweeping.pareto_front import rule_of
from simcore.sweeping.point import CANNOT_BE, FAILED, LEFT_OUT, NO_MEMORY, SCHEMA, Point
from simcore.sweeping.space import DERIVED

_DECODER = msgspec.json.Decoder(Point)
_REASONS = (CANNOT_BE, NO_MEMORY, LEFT_OUT, FAILED)
_FLAGS = {flag.field: (order, flag) for order, flag in enumerate(FLAGS)}
# Kind of parameter -> the types of its value in a layout. Some words of the command line are a number or a
# switch there.
_TYPES: dict[str, tuple[type, ...]] = {
    "count": (int,), "positive": (int, float), "scale": (int, float), "word": (str, int, bool),
    "text": (str,), "words": (list,), "switch": (bool,),
}  # fmt: skip
# No count of a layout is larger.
_MOST = 2**40
_START = "wltui report"
_EXPECTED_COMMAND = (
    f"found another command than that of its parameters, expected `{_START} FILE` or `{_START} --model NAME` "
    "with them"
)


class PointParser:
    """Parses the lines of one file of results."""

    def __init__(self, path: str) -> None:
        self._path = path
        # Most lines share their rule, the words that open the input, and the values of most parameters.
        self._rules = {""}
        self._beginnings: set[str] = set()
        self._values: dict[tuple[str, str], tuple[int, str]] = {}

    def parse(self, line: bytes, line_number: int) -> Point:
        """Returns the point of a line. Raises `InputError` at the line for one that cannot be."""
        try:
            point = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            message = f"found no point of a sweep, expected {SCHEMA}: {printable(str(error), 120)}"
            raise self._refusal(message, line_number) from None
        try:
            self._check(point)
        except UsageError as error:
            raise self._refusal(str(error), line_number) from None
        return point

    def _refusal(self, message: str, line_number: int) -> InputError:
        return InputError(Diagnostic("error", "sweep-line", message, self._path, line_number))

    def _check(self, point: Point) -> None:
        """Raises `UsageError` for what no sweep writes."""
        if point.schema != SCHEMA:
            raise UsageError(f"found schema {printable(point.schema, 40)}, expected {SCHEMA}")
        if point.rule not in self._rules:
            rule_of(point.rule)
            self._rules.add(point.rule)
        if (point.step_time_ns is None) != (point.skipped is not None):
            raise UsageError("expected a step time, or why there is none")
        if point.skipped is not None and point.reason not in _REASONS:
            raise UsageError(f"skipped: found {printable(point.reason, 40)}, expected {', '.join(_REASONS)}")
        for name, value in point.layout.items():
            _check_layout_value(name, value)
        self._check_command(point)

    def _check_command(self, point: Point) -> None:
        """Raises `UsageError` where the command is not that of the parameters."""
        options = sorted(self._option(name, value) for name, value in point.parameters.items())
        ending = "".join(f" {option}" for _, option in options if option)
        if not point.command.endswith(ending):
            raise UsageError(_EXPECTED_COMMAND)
        beginning = point.command.removesuffix(ending)
        if beginning not in self._beginnings:
            _split_beginning(beginning)
            self._beginnings.add(beginning)

    def _option(self, name: str, value: Any) -> tuple[int, str]:
        """Returns the place of a parameter on the command line, and its words."""
        key = name, repr(value)
        option = self._values.get(key)
        if option is None:
            text = join_words(Parameters(**checked_values({name: value})).as_flags())
            option = self._values[key] = _FLAGS[name][0], text
        return option


def checked_values(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of `Parameters` that the line of a point states.

    Raises `UsageError` for a parameter that is unknown, or has a value that it cannot have.
    """
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _FLAGS:
            raise UsageError(f"{printable(name, 40)}: no parameter has this name")
        try:
            checked[name] = plain_value(_FLAGS[name][1], value)
        except InvalidValue as unfit:
            expected = unfit.message or f"found {printable(str(unfit.value), 60)}, expected {unfit.expected}"
            raise UsageError(f"{name}: {expected}") from None
    return checked


def opening_words(point: Point) -> tuple[str, ...]:
    """Returns the words that open the input of a point. Raises `UsageError` where its command has none."""
    flags = Parameters(**checked_values(point.parameters)).as_flags()
    return _split_beginning(point.command.removesuffix(f" {join_words(flags)}") if flags else point.command)


def _split_beginning(beginning: str) -> tuple[str, ...]:
    """Returns the words behind `wltui report`: none, a file, or --model and a name."""
    try:
        words = split_words(beginning)
    except ValueError:
        words = []
    opened = tuple(words[2:])
    names = opened[1:] if opened[:1] == ("--model",) else opened
    fits = join_words(words) == beginning and join_words(words[:2]) == _START
    if not fits or len(names) > 1 or len(opened) - len(names) > len(names) or "-" in "".join(names)[:1]:
        raise UsageError(_EXPECTED_COMMAND)
    return opened


def _check_layout_value(name: str, value: Any) -> None:
    """Raises `UsageError` for a value that no layout has."""
    if name in DERIVED:
        types: tuple[type, ...] = (int,)
    elif name in _FLAGS:
        types = _TYPES[_FLAGS[name][1].kind]
    else:
        raise UsageError(f"layout: {printable(name, 40)}: no parameter has this name")
    if value is None:
        return
    fits = isinstance(value, types) and (type(value) is not bool or bool in types)
    if fits and isinstance(value, (int, float)):
        fits = 0 <= value <= _MOST
    if fits and isinstance(value, list):
        fits = all(isinstance(item, str) for item in value)
    if not fits:
        raise UsageError(f"layout: {name}: found {printable(str(value), 40)}, which it cannot be")
