"""The parameters of simcore as command-line flags; sizes, durations and lists of ranks as written there."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.parameter_values.choices import help_of
from simcore.parameters import FLAGS, Flag, OpeningOptions, Parameters, flag_of, parse_value
from tui.commands.parser import Parser

if TYPE_CHECKING:
    from collections.abc import Collection

    from simcore.model.launch import Launch

__all__ = ["Parser", "add_parameters", "parse_parameters", "states_parameters"]


def add_parameters(parser: argparse.ArgumentParser, only: str | None = None) -> None:
    """Gives `parser` a flag for each parameter, in the groups of the table, or only those of the group
    `only`.
    """
    parser.add_argument(
        "--params",
        metavar="FILE",
        help="parameters from a TOML file (compute_scale = 0.9); the command line wins over it",
    )
    groups: dict[str, argparse._ArgumentGroup] = {}
    for flag in FLAGS:
        if only is not None and flag.group != only:
            continue
        # The flag of `add_model` is this parameter, too.
        if flag.field == "model" and parser.get_default("opens_model"):
            continue
        group = groups.get(flag.group)
        if group is None:
            group = groups[flag.group] = parser.add_argument_group(flag.group)
        if flag.kind == "switch":
            group.add_argument(flag.option, dest=flag.field, action="store_true", help=flag.help)
        else:
            action = "append" if flag.kind == "words" else "store"
            group.add_argument(
                flag.option, dest=flag.field, action=action, metavar=flag.metavar, help=help_of(flag)
            )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Gives `parser` the flag that opens a model in place of a file."""
    flag = flag_of("model")
    parser.add_argument(flag.option, metavar=flag.metavar, help=flag.help)
    parser.set_defaults(opens_model=True)


def add_model_map(parser: argparse.ArgumentParser) -> None:
    """Gives `parser` the flag that says what the fields of a model's configuration mean."""
    parser.add_argument(
        "--model-map", metavar="FILE",
        help="of a configuration that is not known: its family and what its fields mean, as TOML "
        "(docs/models.md); other commands take what `wltui models FILE --model-map MAP --save` writes",
    )  # fmt: skip


def add_launch(parser: argparse.ArgumentParser) -> None:
    """Gives `parser` the flag that opens a model with its layout, as other projects state them."""
    parser.add_argument(
        "--from-args", metavar="FILE|ARGUMENTS",
        help="a model with its layout, in place of FILE: Megatron-LM's command line or a script that has it, "
        "torchtitan's TOML, or (beside --model) DeepSpeed's JSON; flags here win over it",
    )  # fmt: skip


def launch_of(arguments: argparse.Namespace) -> Launch | None:
    """Returns what `--from-args` states, read once; None without it."""
    text = getattr(arguments, "from_args", None)
    if text is None:
        return None
    if getattr(arguments, "launch", None) is None:
        from simcore.model.launch import read_launch

        arguments.launch = read_launch(text)
    launch: Launch = arguments.launch
    return launch


def opened_name(arguments: argparse.Namespace) -> str | None:
    """Returns the name of what a command opens: its FILE, its --model, or that of its launch arguments."""
    name: str | None = arguments.model if arguments.file is None else arguments.file
    launch = launch_of(arguments)
    return launch.path if name is None and launch is not None else name


def opening_options(arguments: argparse.Namespace) -> OpeningOptions:
    """Returns which of a directory's measured runs is requested, and what of it."""
    explicit_values: dict[str, Any] = {
        name: getattr(arguments, name, None)
        for name in ("run", "step", "comm_names", "step_names", "trace_map")
    }
    # The ranks of `export` are those that it writes.
    ranks = None if hasattr(arguments, "per_rank") else getattr(arguments, "ranks", None)
    uses_cache = not getattr(arguments, "no_cache", False)
    return OpeningOptions(ranks=ranks, cache=uses_cache, **explicit_values)


def add_run(parser: argparse.ArgumentParser, ranks: bool = True) -> None:
    """Gives `parser` the flags that choose among the measured runs of a directory, and what of one is opened.

    ranks: whether also its ranks.
    """
    parser.add_argument(
        "--run",
        metavar="STAMP",
        help="which run of a directory of rank traces, by its time stamp or the beginning of it "
        "(default: the newest complete one)",
    )
    add_profile(parser, ranks)


def add_profile(parser: argparse.ArgumentParser, ranks: bool = True) -> None:
    """Gives `parser` the flags that choose what of profiler traces opens. ranks: also which ranks."""
    parser.add_argument(
        "--step",
        metavar="N",
        help="which step of profiler traces; all: everything recorded (default: the last whole step)",
    )
    if ranks:
        help_text = "open only these ranks of profiler traces: 0-7,12"
        parser.add_argument("--ranks", metavar="RANKS", help=help_text)
    parser.add_argument(
        "--comm-names",
        metavar="REGEX",
        help="kernels of profiler traces with such names communicate, besides those that are known",
    )
    parser.add_argument(
        "--step-names",
        metavar="REGEX",
        help="annotations of profiler traces with such names are the steps, in place of ProfilerStep#N",
    )
    parser.add_argument(
        "--trace-map",
        metavar="FILE",
        help="rules as TOML that say what the spans of a Chrome trace are; wltui check FILE --save-map MAP "
        "writes some to begin with (docs/chrome.md)",
    )
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="read profiler traces anew, and keep no copy for the next time",
    )


def _check_word(flag: Flag, text: str) -> None:
    """Raises `UsageError` for a word that a flag with a list of its own does not have, used or not."""
    if flag.kind == "word" and flag.choices and text not in flag.choices:
        raise UsageError(
            f"{flag.option} {printable(text, 60)}: one of {', '.join(flag.choices)} is expected"
            f"{did_you_mean(text, flag.choices)}"
        )


def states_parameters(arguments: argparse.Namespace) -> bool:
    """Returns whether any parameter was given, even with its default."""
    fields = ["params", *(flag.field for flag in FLAGS)]
    return any(getattr(arguments, name, None) not in (None, False) for name in fields)


def _opens_model(arguments: argparse.Namespace) -> bool:
    """Returns whether --model is what a command opens, and no parameter of a trace."""
    return getattr(arguments, "opens_model", False) and getattr(arguments, "file", None) is None


def parse_parameters(arguments: argparse.Namespace, free: Collection[str] = ()) -> Parameters:
    """Returns the parameters that were given, over those of `--params`, over those of `--from-args`.

    free: parameters of `--from-args` that are not taken. Raises `UsageError` for an invalid value, InputError
    for one of the file.
    """
    values: dict[str, Any] = {}
    if getattr(arguments, "params", None) is not None:
        # Imported here: most runs have no such file.
        from simcore.parameter_values.parameters_file import read_parameters

        values = read_parameters(arguments.params)
    for flag in FLAGS:
        explicit_values = getattr(arguments, flag.field, None)
        if explicit_values is None or (flag.field == "model" and _opens_model(arguments)):
            continue
        if flag.kind == "switch":
            values |= {flag.field: True} if explicit_values else {}
        elif flag.kind == "words":
            values[flag.field] = tuple(word for text in explicit_values for word in parse_value(flag, text))
        else:
            values[flag.field] = parse_value(flag, explicit_values)
            _check_word(flag, explicit_values)
    launch = launch_of(arguments)
    return Parameters(**values) if launch is None else Parameters(**launch.under(values, free))


_UNITS = {
    "": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_MOST_BYTES = 2**63 - 1


def parse_size(option: str, text: str) -> int:
    """Returns `64MiB`, `1.5GB` or `4096` as bytes. Raises UsageError."""
    match_ = re.fullmatch(r"([0-9]{1,19})(?:\.([0-9]{1,12}))? ?([A-Za-z]*)", text)
    if match_ is not None and match_[3] in _UNITS:
        fraction = match_[2] or ""
        parts: int = 10 ** len(fraction)
        size, rest = divmod(int(match_[1] + fraction) * _UNITS[match_[3]], parts)
        if not rest and 1 <= size <= _MOST_BYTES:
            return size
    raise UsageError(
        f"{option} {printable(text, 60)}: a whole number of bytes from 1 to 2^63 - 1 is expected, "
        "for example 64MiB, 1.5GB or 4096"
    )


def parse_sizes(option: str, text: str) -> list[int]:
    """Returns `1KiB..1GiB` as sizes that double from the first on; one size as itself. Raises UsageError."""
    first_text, dots, last_text = text.partition("..")
    size = parse_size(option, first_text)
    if not dots:
        return [size]
    last = parse_size(option, last_text)
    if last < size:
        raise UsageError(f"{option} {printable(text, 60)}: the second size is less than the first")
    sizes = []
    while size <= last:
        sizes.append(size)
        size *= 2
    return sizes


_TIMES = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def parse_duration(option: str, text: str) -> int:
    """Returns `13.75s` or `850 ms` as ns. Raises UsageError."""
    match_ = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?([a-z]+)", text)
    if match_ is not None and match_[2] in _TIMES:
        ns = round(float(match_[1]) * _TIMES[match_[2]])
        if 1 <= ns < 2**62:
            return ns
    raise UsageError(f"{option} {printable(text, 60)}: a duration is expected, for example 13.75s or 850ms")
