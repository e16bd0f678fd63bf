"""`wltui compare`: compares two runs of a workload, of two files, or of a file and a trace."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, printable
from simcore.parameters import FLAGS, RunInput
from simcore.records import replace
from simcore.runs import open_run
from simcore.units import plain_number
from tui.commands.arguments import Parser, add_parameters, add_profile, opening_options, parse_parameters
from tui.commands.opened import open_input, print_warnings, select_parameters

if TYPE_CHECKING:
    import argparse

    from simcore.parameters import OpeningOptions

_SLOWER = 1
_RANK_DIGITS = 7
_DESCRIPTION = (
    "Simulate a workload twice and say what changes and why: step times, accounts, layers, the ops that "
    "move most. Run A has the parameters of the command line; run B has the same, changed by --with. "
    "Of two files the first is A and the second B. Either may be a trace or a directory of traces, which is "
    "shown as it was measured; beside a workload the command line is the workload's, beside another trace it "
    "is that of both replays. --rank and --rank2 show two ranks alone, of one run or of two. On the screen: "
    "wltui FILE2 --against FILE."
)


def build_parser() -> Parser:
    """Returns the parser of `wltui compare`."""
    parser = Parser(prog="wltui compare", description=_DESCRIPTION)
    parser.add_argument("file", metavar="FILE", help="a workload file, a trace, or - for standard input")
    parser.add_argument(
        "other",
        metavar="FILE2",
        nargs="?",
        help="another workload or trace, for B; rows are matched by name",
    )
    parser.add_argument(
        "--with", dest="with_words", metavar='"PARAMETERS"',
        help='the parameters in which B differs from A, quoted: --with "--schedule zb-h1"',
    )  # fmt: skip
    parser.add_argument(
        "--all",
        action="store_true",
        help="all accounts, stages, layers and ops, on as many lines as it takes",
    )
    parser.add_argument(
        "--json", action="store_true",
        help="the figures as JSON (schema wltui.compare/1; with a trace wltui.beside/1)",
    )  # fmt: skip
    parser.add_argument("--run", metavar="STAMP", help="which run of a directory of traces A is")
    parser.add_argument("--run2", metavar="STAMP", help="which run of a directory of traces B is")
    add_profile(parser)
    parser.add_argument(
        "--step2", metavar="N", help="which step of profiler traces B is: of FILE2, else of FILE"
    )
    parser.add_argument(
        "--rank", metavar="R",
        help="one rank of A beside one of B: its accounts, and what it does by name "
        "(JSON of schema wltui.ranks/1)",
    )  # fmt: skip
    parser.add_argument(
        "--rank2", metavar="R", help="which rank of B; with one run alone another one of it (default: --rank)"
    )
    parser.add_argument(
        "--fail-if-slower",
        metavar="PERCENT",
        help="exit status 1 if B's step is longer than A's by more than this, for example 2%%",
    )
    add_parameters(parser)
    return parser


def main(words: list[str]) -> int:
    """Prints the comparison. Exit status 0, or 1 when B is slower than allowed; errors raise."""
    arguments = build_parser().parse_args(attach_with_words(words))
    ranks = _parse_ranks(arguments)
    same_files = arguments.other is None and arguments.run2 is None and arguments.step2 is None
    of_one_run = same_files and arguments.with_words is None
    if of_one_run and arguments.rank2 is None:
        raise UsageError(
            'compare FILE needs --with "PARAMETERS", a second FILE, --run2, --step2, or --rank and --rank2'
        )
    if arguments.file == arguments.other == "-":
        raise UsageError("FILE -: standard input can be read once")
    slower_limit = _parse_percentage(arguments.fail_if_slower)
    if of_one_run and slower_limit is not None:
        raise UsageError("--fail-if-slower: found two ranks of one run, expected two runs")
    parameters = parse_parameters(arguments)
    # Checked before a file is opened: its errors depend on none.
    override_parameters(RunInput(None, parameters), arguments.with_words)

    first = open_input(arguments.file, opening_options(arguments))
    second = (
        first
        if same_files
        else open_input(arguments.other or arguments.file, _opening_options_of_b(arguments))
    )
    input_a = select_parameters(RunInput(first, parameters), second)
    input_b = override_parameters(
        select_parameters(RunInput(second, parameters), first), arguments.with_words
    )
    try:
        run_b = open_run(input_b)
    except UsageError as error:
        if arguments.with_words is None or _fails(input_a):
            raise
        raise UsageError(f"--with: {error}") from None
    a = run_b if of_one_run else open_run(input_a)
    from simcore.comparison import Comparison
    from simcore.render.report.comparison import comparison_json, comparison_page, slower_words

    comparison = Comparison(a, run_b, ranks)
    print_warnings(first, second)
    if arguments.json:
        from simcore.render.report.json_text import json_text

        print(json_text(comparison_json(comparison)))
    else:
        print(comparison_page(comparison, arguments.all), end="")
    if slower_limit is None:
        return 0
    slower = slower_words(a.step_time_ns, run_b.step_time_ns, slower_limit)
    if slower is None:
        return 0
    sys.stdout.flush()
    print(f"wltui: {slower}", file=sys.stderr)
    return _SLOWER


def _opening_options_of_b(arguments: argparse.Namespace) -> OpeningOptions:
    """Returns which of a directory's runs B is: with A's directory another step of the same run, else another
    run.
    """
    options = opening_options(arguments)
    run = arguments.run2
    if run is None and arguments.other is None:
        run = arguments.run
    return replace(options, run=run, step=arguments.step2 or options.step)


def _parse_ranks(arguments: argparse.Namespace) -> tuple[int, int] | None:
    """Returns the requested ranks of A and of B, None where there are none. Raises `UsageError`."""
    if arguments.rank is None and arguments.rank2 is None:
        return None
    if arguments.rank is None:
        raise UsageError(f"--rank2 {printable(arguments.rank2, 60)}: --rank, the rank of A, is expected too")
    rank = _parse_rank("--rank", arguments.rank)
    return rank, rank if arguments.rank2 is None else _parse_rank("--rank2", arguments.rank2)


def _parse_rank(option: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _RANK_DIGITS:
        raise UsageError(f"{option} {printable(text, 60)}: one rank is expected, for example 7")
    return int(text)


def attach_with_words(words: list[str]) -> list[str]:
    """Returns the words with `--with` and its value as one: argparse would take `--overlap-grad-reduce` for a
    flag.
    """
    attached: list[str] = []
    for word in words:
        if attached and attached[-1] == "--with":
            attached[-1] = f"--with={word}"
        else:
            attached.append(word)
    return attached


def _fails(run_input: RunInput) -> bool:
    """Returns whether the run of A fails by itself, so that --with is not the cause."""
    try:
        open_run(run_input)
    except UsageError:
        return True
    return False


def override_parameters(run_input: RunInput, text: str | None) -> RunInput:
    """Returns the input with its parameters and, over them, those of `text`. Raises `UsageError` that names
    --with.
    """
    if text is None:
        return run_input
    parser = Parser(prog="wltui compare", add_help=False)
    add_parameters(parser)
    try:
        words = parser.parse_args(shlex.split(text))
        changes = parse_parameters(words)
    except ValueError as error:
        raise UsageError(f"--with {printable(text, 60)}: {str(error).lower()}") from None
    except UsageError as error:
        raise UsageError(f"--with: {error}") from None
    values = {flag.field: getattr(changes, flag.field) for flag in FLAGS if _is_given(words, flag.field)}
    return run_input.with_changes(**values)


def _is_given(arguments: object, field: str) -> bool:
    return getattr(arguments, field, None) not in (None, False)


def _parse_percentage(text: str | None) -> float | None:
    """Returns `2%` or `2` as a number of per cent. Raises `UsageError`."""
    if text is None:
        return None
    value = plain_number(text[:-1] if text.endswith("%") else text)
    if value is None or value > 1e6:
        raise UsageError(
            f"--fail-if-slower {printable(text, 60)}: a percentage of 0 or more is expected, for example 2%"
        )
    return value
