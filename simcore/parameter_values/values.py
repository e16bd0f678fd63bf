"""Values of parameters, read and checked by one rule wherever they are written: TOML, JSON, the form.

Text is read by `parse_value` of `simcore/parameters.py`, which loads nothing; the words that a parameter may
be, and the form of the items of a list, are checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from simcore.cluster import algorithm_words, parse_dimension
from simcore.compat.simai_network import overlap_ratios
from simcore.diagnostics import UsageError, printable
from simcore.layout import MOST_RANKS
from simcore.parameter_values.choices import choices, is_one_of, may_be_file
from simcore.parameters import Flag, Input, flag_of, parse_value
from simcore.program.overrides import (
    TRACE_FORMS,
    layer_scales,
    parse_factor,
    slow_links_of,
    slow_ranks_of,
    time_scales,
)
from simcore.records import NamedTuple
from simcore.topology import parse_link_rates
from simcore.units import is_whole

# The dimensions of an unknown run.
_MOST_DIMENSIONS = 10**6


class Form(NamedTuple):
    """The form of an item of a list."""

    example: str
    """A valid item."""
    check: Callable[[str, int, int], object]
    """Raises `UsageError`, which begins with the flag and says what fits, for (text, ranks, dimensions)."""


def _lines(text: str, world: int, dimensions: int) -> object:
    # Imported here: few runs leave lines out.
    from simcore.workload.without_lines import line_range

    return line_range(text)


_WORDS = {"layer_scale": "NAME:PHASE=X, or OP=X of a trace,"}


def _named_factor(field: str, most: int | None = None) -> Callable[[str, int, int], object]:
    """Returns the check of `NAME=X` of a trace.

    most: the greatest name, where names are numbers or `none`.
    """

    def check(text: str, world: int, dimensions: int) -> object:
        none = "none" if field == "stage_scale" else None
        flag, form = flag_of(field), _WORDS.get(field, TRACE_FORMS[field])
        left, factor = parse_factor(text, flag.option, form, zero=True)
        if not left or (most is not None and left != none and not (is_whole(left) and int(left) <= most)):
            raise UsageError(f"{flag.option} {printable(text, 60)}: {form} is expected")
        return factor

    return check


FORMS: dict[str, Form] = {
    "dim": Form("switch:8:450:500", lambda text, world, dimensions: parse_dimension(text)),
    "algorithm": Form("0=ring", lambda text, world, dimensions: algorithm_words(text)),
    "overlap": Form("dp=0.5,tp=0.3", lambda text, world, dimensions: overlap_ratios((text,))),
    "layer_scale": Form("mlp_row:fwd=0.9", lambda text, world, dimensions: layer_scales((text,))),
    "time_scale": Form("stream tp=0.9", lambda text, world, dimensions: time_scales((text,))),
    "without_lines": Form("82-83", _lines),
    "slow_rank": Form("37=1.3", lambda text, world, dimensions: slow_ranks_of((text,), world)),
    "slow_link": Form("1:37=0.5", lambda text, world, dimensions: slow_links_of((text,), world, dimensions)),
    "link_rate": Form("36-52=0.5", lambda text, world, dimensions: parse_link_rates((text,))),
    "kind_scale": Form("dp=0.5", _named_factor("kind_scale")),
    "slow_host": Form("37=0.5", _named_factor("slow_host", MOST_RANKS)),
    "stage_scale": Form("3=0.9", _named_factor("stage_scale", MOST_RANKS)),
}
# The forms that fit either, for parameters that a workload and a trace write differently, while it is not
# known which of them is open.
_OF_EITHER: dict[str, Form] = {
    "layer_scale": Form("mlp_row:fwd=0.9", _named_factor("layer_scale")),
}


def form_of(field: str) -> str:
    """Returns how an item of the list is written, with an example: `R=X, eg 37=1.3`."""
    return f"{flag_of(field).metavar}, eg {FORMS[field].example}"


def check_item(
    field: str,
    text: str,
    world: int = MOST_RANKS,
    dimensions: int = _MOST_DIMENSIONS,
    of: Input | None = None,
) -> None:
    """Raises `UsageError` when `text` is no item of the list parameter `field`.

    world, dimensions: of the run; by default any rank and dimension that a run may have is accepted.
    of: what is open; None accepts what fits a workload or a trace.
    """
    form = FORMS[field] if of == "workload" else _OF_EITHER.get(field, FORMS[field])
    form.check(text, world, dimensions)


class InvalidValue(ValueError):
    """A value that a parameter cannot have.

    value: it, or the invalid item of a list; expected: what fits, "" where `message` says both. item: the
    index of the item in its list, None for the whole value.
    """

    def __init__(self, value: object, expected: str, message: str = "", item: int | None = None) -> None:
        super().__init__(message or expected)
        self.value, self.expected, self.message, self.item = value, expected, message, item


# Kind of flag -> what a file writes for it.
_EXPECTED = {"count": "a whole number", "positive": "a number", "scale": "a number", "word": "a text",
             "text": "a text", "words": "a list of texts", "switch": "true or false"}  # fmt: skip


def plain_value(flag: Flag, value: object) -> Any:
    """Returns the value of `flag` from a plain value, as TOML and JSON have them. Raises `InvalidValue`."""
    if flag.kind == "switch":
        if not isinstance(value, bool):
            raise InvalidValue(value, _EXPECTED[flag.kind])
        return value
    if flag.kind == "words":
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item for item in value):
            raise InvalidValue(value, _EXPECTED[flag.kind])
        return tuple(word for index, item in enumerate(value) for word in _items(flag, item, index))
    expected_type = str if flag.kind in ("word", "text") else (int, float)
    if not isinstance(value, expected_type) or isinstance(value, bool):
        raise InvalidValue(value, _EXPECTED[flag.kind])
    return text_value(flag, value if isinstance(value, str) else repr(value))


def text_value(flag: Flag, text: str, words: tuple[str, ...] | None = None) -> Any:
    """Returns the value of `flag`, which is no list, from text.

    words: what a flag of kind `word` may be. Raises `InvalidValue`.
    """
    if flag.kind == "switch":
        if text not in ("on", "off"):
            raise InvalidValue(text, "on or off")
        return text == "on"
    if flag.kind == "word":
        words = choices(flag.field) if words is None else words
        if not is_one_of(text, words) and not may_be_file(flag.field, text):
            raise InvalidValue(text, f"one of {', '.join(words)}")
    try:
        return parse_value(flag, text)
    except UsageError as error:
        raise InvalidValue(text, "", _error_text(flag, error)) from None


def _items(flag: Flag, value: str, index: int) -> Iterator[str]:
    """Returns the words of one item of a list."""
    try:
        for word in parse_value(flag, value):
            check_item(flag.field, word)
            yield word
    except UsageError as error:
        raise InvalidValue(value, "", _error_text(flag, error), index) from None


def _error_text(flag: Flag, error: UsageError) -> str:
    """Returns what the command line says about a value, without its option."""
    return str(error).removeprefix(flag.option + " ")
