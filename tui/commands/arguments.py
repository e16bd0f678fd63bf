"""The parameters of simcore as command-line flags."""

from __future__ import annotations

import argparse
from typing import Any

from simcore.asked import Asked
from simcore.choices import choices
from simcore.parameters import FLAGS, Flag, Parameters, parse_value
from tui.commands.parser import Parser

__all__ = ["Parser", "add_parameters", "parameters_from", "states_parameters"]


def add_parameters(parser: argparse.ArgumentParser, only: str | None = None) -> None:
    """Give `parser` a flag for each parameter, in the groups of the table, or of one of them `only`."""
    parser.add_argument(
        "--params",
        metavar="FILE",
        help="parameters from a TOML file (compute_scale = 0.9); what the command line states counts more",
    )
    groups: dict[str, argparse._ArgumentGroup] = {}
    for flag in FLAGS:
        if only is not None and flag.group != only:
            continue
        group = groups.get(flag.group)
        if group is None:
            group = groups[flag.group] = parser.add_argument_group(flag.group)
        if flag.kind == "switch":
            group.add_argument(flag.option, dest=flag.field, action="store_true", help=flag.help)
        else:
            action = "append" if flag.kind == "words" else "store"
            group.add_argument(
                flag.option, dest=flag.field, action=action, metavar=flag.metavar, help=_help(flag)
            )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the flag that opens a model in place of a file."""
    parser.add_argument(
        "--model", metavar="NAME|FILE",
        help="a model instead of FILE: a name of `wltui models`, a Hugging Face config.json or wltui's TOML",
    )  # fmt: skip



def asked_of(arguments: argparse.Namespace) -> Asked:
    """Which of a directory's measured runs is asked for, and what of it."""
    given = {name: getattr(arguments, name, None) for name in ("run", "step", "comm_names")}
    # What `export` calls ranks are those that it writes.
    ranks = None if hasattr(arguments, "per_rank") else getattr(arguments, "ranks", None)
    keep = not getattr(arguments, "no_cache", False)
    return Asked(given["run"], given["step"], ranks, given["comm_names"], keep)


def add_run(parser: argparse.ArgumentParser, ranks: bool = True) -> None:
    """Give `parser` the flags that choose among the measured runs of a directory, and what of one is opened.

    ranks: whether also its ranks.
    """
    parser.add_argument(
        "--run",
        metavar="STAMP",
        help="of a directory of rank traces the run with this time stamp, or its beginning "
        "(default: the newest complete one)",
    )
    add_profile(parser, ranks)


def add_profile(parser: argparse.ArgumentParser, ranks: bool = True) -> None:
    """Give `parser` the flags that choose what of profiler traces opens. ranks: also which ranks."""
    parser.add_argument(
        "--step",
        metavar="N",
        help="of profiler traces this step, or all that was recorded (default: the last whole one)",
    )
    if ranks:
        parser.add_argument("--ranks", metavar="RANKS", help="of profiler traces these ranks alone: 0-7,12")
    parser.add_argument(
        "--comm-names",
        metavar="REGEX",
        help="of profiler traces kernels with such names communicate, beside those that are known",
    )
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="read profiler traces anew, and keep nothing of them for the next time",
    )


def _help(flag: Flag) -> str:
    words = flag.help
    if flag.kind == "word":
        words += f": {', '.join(choices(flag.field))}"
    elif flag.default not in (None, ()):
        words += f" (default {flag.default:g})"
    return words + (f" [{flag.unit}]" if flag.unit else "")


def states_parameters(arguments: argparse.Namespace) -> bool:
    """Whether any parameter was given, be it at its default."""
    fields = ["params", *(flag.field for flag in FLAGS)]
    return any(getattr(arguments, name, None) not in (None, False) for name in fields)


def parameters_from(arguments: argparse.Namespace) -> Parameters:
    """The parameters that were given, over those of `--params`.

    Raises `UsageError` for a value that cannot be, InputError for one of the file.
    """
    values: dict[str, Any] = {}
    if getattr(arguments, "params", None) is not None:
        # Imported here: most runs have no such file.
        from simcore.parameters_file import read_parameters

        values = read_parameters(arguments.params, choices)
    for flag in FLAGS:
        given = getattr(arguments, flag.field, None)
        if given is None:
            continue
        if flag.kind == "switch":
            values[flag.field] = given or values.get(flag.field, False)
        elif flag.kind == "words":
            values[flag.field] = tuple(word for text in given for word in parse_value(flag, text))
        else:
            values[flag.field] = parse_value(flag, given)
    return Parameters(**values)
