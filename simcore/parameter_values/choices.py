"""The words that a parameter may be. Reads names and registries, and loads nothing that runs."""

from __future__ import annotations

from simcore.networks import network_names
from simcore.parameters import Flag, flag_of
from simcore.program.schedules import SCHEDULES, is_schedule_file

_REGISTRIES = {"schedule": tuple(SCHEDULES), "network": network_names()}


def is_one_of(text: str, words: tuple[str, ...]) -> bool:
    """Returns whether `text` is one of a parameter's words; some take more behind a colon: `busbw:FILE`."""
    name, _, argument = text.partition(":")
    takes_argument = {word.partition(":")[0]: ":" in word for word in words}
    return name in takes_argument and bool(argument) == takes_argument[name]


def may_be_file(field: str, text: str) -> bool:
    """Returns whether `text` can be a file where the words of `field` are names, as a schedule file."""
    return field == "schedule" and is_schedule_file(text)


def choices(field: str) -> tuple[str, ...]:
    """Returns the words that `field` of `Parameters` may be, in the order in which they are displayed."""
    return _REGISTRIES.get(field) or flag_of(field).choices


def help_of(flag: Flag) -> str:
    """Returns one line on a parameter: what it is, what it may be, its default and its unit."""
    words = flag.help
    if flag.kind == "word":
        words += f": {', '.join(choices(flag.field))}"
    elif flag.default not in (None, ()):
        words += f" (default {flag.default:g})"
    return words + (f" [{flag.unit}]" if flag.unit else "")
