"""Checks values of a session file: nothing of a file is taken on trust."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from simcore.diagnostics import printable

T = TypeVar("T")

# The largest times of a step, ns, and ids of ranks or groups.
MOST_NS = 2**62
MOST_RANKS = 2**40
MOST_ITEMS = 100_000
MOST_TEXT = 4096
_MOST_DIGITS = 20


class InvalidSession(ValueError):
    """An invalid session file: `where: found X, expected Y`."""


def invalid_value(value: object, where: str, expected: str) -> InvalidSession:
    """Returns the error about a value."""
    import json

    found_text = "nothing" if value is None else printable(json.dumps(value), 40)
    return InvalidSession(f"{where}: found {found_text}, expected {expected}")


def parse_json(text: str) -> object:
    """Returns the JSON of a text. Raises `InvalidSession` for what is not JSON, or has numbers that no
    session has.
    """
    # Imported here: a first start has no session to read.
    import json

    def whole_number(digits: str) -> int:
        # Python takes seconds for a number of a million digits.
        if len(digits) > _MOST_DIGITS:
            raise InvalidSession(f"found a number of {len(digits)} digits")
        return int(digits)

    def no_number(name: str) -> float:
        raise InvalidSession(f"found {name}, expected a number")

    try:
        return json.loads(text, parse_int=whole_number, parse_constant=no_number)
    except json.JSONDecodeError as error:
        raise InvalidSession(f"line {error.lineno}, column {error.colno}: this is not JSON") from None
    except RecursionError:
        raise InvalidSession("found too many nested lists") from None


def check_table(value: object, where: str) -> dict[str, Any]:
    """Returns a JSON object."""
    if not isinstance(value, dict):
        raise invalid_value(value, where, "a table")
    return value


def check_whole(value: object, where: str, least: int = 0, most: int = MOST_NS) -> int:
    """Returns an integer from `least` to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise invalid_value(value, where, f"a whole number from {least} to {most}")
    return value


def check_text(value: object, where: str, most: int = MOST_TEXT) -> str:
    """Returns a text of at most `most` characters."""
    if not isinstance(value, str):
        raise invalid_value(value, where, "a text")
    if len(value) > most:
        raise invalid_value(value, where, f"a text of at most {most} characters")
    return value


def check_items(
    value: object, where: str, check: Callable[[object, str], T], most: int = MOST_ITEMS
) -> tuple[T, ...]:
    """Returns a list of at most `most` items, each of which `check` reads."""
    if not isinstance(value, list):
        raise invalid_value(value, where, "a list")
    if len(value) > most:
        raise InvalidSession(f"{where}: found {len(value)} items, expected at most {most}")
    return tuple(check(item, f"{where}[{index}]") for index, item in enumerate(value))


def check_optional(value: object, where: str, check: Callable[[object, str], T]) -> T | None:
    """Returns what `check` reads, or None for null."""
    return None if value is None else check(value, where)
