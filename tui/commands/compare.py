"""`wltui compare`: two runs of a workload, or of two files, beside each other."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, printable
from simcore.parameters import FLAGS, Parameters
from simcore.units import plain_number
from tui.commands.arguments import Parser, add_parameters, parameters_from

if TYPE_CHECKING:
    from simcore.workload import Workload

_SLOWER = 1
_DESCRIPTION = (
    "Simulate a workload twice and say what changes and why: step times, accounts, layers, the ops that "
    "move most. A has the parameters of the command line; B has these and, over them, those of --with. "
    "With two files A is the first one and B the second."
)


def main(words: list[str]) -> int:
    """Print the comparison. Exit status 0, or 1 when B is slower than allowed; errors raise."""
    parser = Parser(prog="wltui compare", description=_DESCRIPTION)
    parser.add_argument("file", metavar="FILE", help="a workload file, or - for standard input")
    parser.add_argument(
        "other", metavar="FILE2", nargs="?", help="another workload for B, rows matched by their names"
    )
    parser.add_argument(
        "--with", dest="with_words", metavar='"PARAMETERS"',
        help='the parameters of B that differ from those of A, quoted: --with "--schedule zb-h1"',
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the figures as JSON (schema wltui.compare/1)")
    parser.add_argument(
        "--fail-if-slower",
        metavar="PERCENT",
        help="exit status 1 when the step of B is longer than that of A by more than this, for example 2%%",
    )
    add_parameters(parser)
    arguments = parser.parse_args(_joined(words))
    if arguments.other is None and arguments.with_words is None:
        raise UsageError('compare FILE needs --with "PARAMETERS" or a second FILE to compare with')
    if arguments.file == arguments.other == "-":
        raise UsageError("FILE -: standard input can be read once")
    limit = _percentage(arguments.fail_if_slower)
    parameters = parameters_from(arguments)
    other_parameters = _with(parameters, arguments.with_words)

    from simcore.analysis import Results
    from simcore.analysis.compare import Comparison
    from simcore.simulation import simulate

    workload = _workload(arguments.file)
    other = workload if arguments.other is None else _workload(arguments.other)
    try:
        changed = Results(simulate(other, other_parameters))
    except UsageError as error:
        if arguments.with_words is None or _fails(workload, parameters):
            raise
        raise UsageError(f"--with: {error}") from None
    comparison = Comparison(Results(simulate(workload, parameters)), changed)
    if arguments.json:
        import json

        from simcore.report.compare_json import compare_json

        print(json.dumps(compare_json(comparison), indent=1, allow_nan=False))
    else:
        from simcore.report.compare_text import compare_text

        print(compare_text(comparison), end="")
    if limit is None:
        return 0
    from simcore.report.compare_text import slower_text

    slower = slower_text(comparison, limit)
    if slower is None:
        return 0
    sys.stdout.flush()
    print(f"wltui: {slower}", file=sys.stderr)
    return _SLOWER


def _joined(words: list[str]) -> list[str]:
    """`--with` and what is behind it as one word: argparse would take `--overlap-grad-reduce` for a flag."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--with":
            joined[-1] = f"--with={word}"
        else:
            joined.append(word)
    return joined


def _workload(path: str) -> Workload:
    """The workload at `path`. Raises `UsageError` for a measured run."""
    from simcore.workload import Workload
    from tui.commands.inputs import open_input

    opened = open_input(path)
    if not isinstance(opened, Workload):
        raise UsageError(
            f"compare {printable(path)}: a measured run cannot be simulated with other parameters; "
            "a workload file is expected"
        )
    return opened


def _fails(workload: Workload, parameters: Parameters) -> bool:
    """Whether the run of A fails by itself, so that --with is not to blame."""
    from simcore.simulation import simulate

    try:
        simulate(workload, parameters)
    except UsageError:
        return True
    return False


def _with(parameters: Parameters, text: str | None) -> Parameters:
    """`parameters` and, over them, those of `text`. Raises `UsageError` that names --with."""
    if text is None:
        return parameters
    parser = Parser(prog="wltui compare", add_help=False)
    add_parameters(parser)
    try:
        given = parser.parse_args(shlex.split(text))
        changes = parameters_from(given)
    except ValueError as error:
        raise UsageError(f"--with {printable(text, 60)}: {str(error).lower()}") from None
    except UsageError as error:
        raise UsageError(f"--with: {error}") from None
    values = {
        flag.field: getattr(changes if _is_given(given, flag.field) else parameters, flag.field)
        for flag in FLAGS
    }
    return Parameters(**values)


def _is_given(arguments: object, field: str) -> bool:
    return getattr(arguments, field, None) not in (None, False)


def _percentage(text: str | None) -> float | None:
    """`2%` or `2` as a number of percent. Raises `UsageError`."""
    if text is None:
        return None
    value = plain_number(text[:-1] if text.endswith("%") else text)
    if value is None or value > 1e6:
        raise UsageError(
            f"--fail-if-slower {printable(text, 60)}: a percentage of 0 or more is expected, for example 2%"
        )
    return value
