"""`wltui report`: the run as text or JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, is_unicode, printable
from simcore.parameters import Parameters
from tui.commands.arguments import (
    Parser,
    add_parameters,
    add_run,
    parameters_from,
)
from tui.commands.inputs import open_input

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.measured import MeasuredRun
    from simcore.run.findings import WhatIf

_DESCRIPTION = "Simulate one step of a workload, or read a measured one, and say where it goes."


def build_parser() -> Parser:
    """The words that `wltui report` takes."""
    parser = Parser(prog="wltui report", description=_DESCRIPTION)
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a workload file, a rank trace, a directory of rank traces, or - for standard input",
    )
    add_run(parser)
    parser.add_argument("--json", action="store_true", help="the figures as JSON (schema wltui.report/1)")
    parser.add_argument(
        "--what-if",
        action="store_true",
        help="also the step time with one thing free or 10 %% better at a time, and under other schedules",
    )
    parser.add_argument(
        "--all-layers",
        action="store_true",
        help="every row of the file with its cells, collectives and their bandwidths",
    )
    parser.add_argument(
        "--explain",
        metavar="NAME[:PHASE]",
        help="only where the figures of these rows come from, with the values put in: mlp_row, mlp_row:ig",
    )
    add_parameters(parser)
    return parser


def main(words: list[str]) -> int:
    """Print the report of a workload file or a measured run. Exit status 0; errors raise."""
    arguments = build_parser().parse_args(words)
    for flag, given in (("--all-layers", arguments.all_layers), ("--explain", arguments.explain is not None)):
        if given and arguments.json:
            raise UsageError(f"{flag} prints text; --json has the figures of all rows")
    parameters = parameters_from(arguments)
    if arguments.explain is not None:
        _print_explained(arguments.file, parameters, arguments.explain)
        return 0
    print_report(
        arguments.file, parameters, arguments.json, run=arguments.run,
        what_if=arguments.what_if, every_layer=arguments.all_layers,
    )  # fmt: skip
    return 0


def _print_explained(path: str, parameters: Parameters, asked: str) -> None:
    from simcore.analysis import Results
    from simcore.analysis.explain import explained
    from simcore.simulation import simulate
    from simcore.workload import Workload

    opened = open_input(path)
    if not isinstance(opened, Workload):
        raise UsageError(f"--explain: {printable(path)} is a measured run, which has no rows of a workload")
    print("\n".join(explained(Results(simulate(opened, parameters)), asked)))


def print_report(
    path: str,
    parameters: Parameters,
    as_json: bool = False,
    ascii_only: bool = False,
    run: str | None = None,
    what_if: bool = False,
    every_layer: bool = False,
) -> None:
    """Open, simulate a workload, and print. run: which of a directory's measured runs.

    what_if: whether it is asked what would help.
    every_layer: all rows of the file in the layer table, in the page alone.
    """
    from simcore.workload import Workload

    opened = open_input(path, run)
    ascii_only = ascii_only or not is_unicode(sys.stdout.encoding)
    if not isinstance(opened, Workload):
        _print_measured(opened, parameters, as_json, ascii_only, what_if)
        return
    # Not before: a measured run is not simulated, and --help must answer at once.
    from simcore.analysis import Results
    from simcore.simulation import simulate

    results = Results(simulate(opened, parameters))
    if what_if:
        _find_what_if(results)
    if as_json:
        from simcore.json_text import json_text
        from simcore.report.as_json import json_report

        print(json_text(json_report(results, what_if)))
        return
    from simcore.report.as_text import text_report

    print(text_report(results, ascii_only, what_if, every_layer), end="")


def _find_what_if(results: Run) -> list[WhatIf]:
    """The table of changes; on a terminal with how far it is, of which nothing stays."""
    if sys.stderr is None or not sys.stderr.isatty():
        return results.what_if(_no_progress)
    try:
        return results.what_if(_show_progress)
    finally:
        print(f"\r{' ' * 30}\r", end="", file=sys.stderr, flush=True)


def _print_measured(
    run: MeasuredRun, parameters: Parameters, as_json: bool, ascii_only: bool, what_if: bool
) -> None:
    from simcore.replay import measured_results

    results = measured_results(run, parameters)
    knobs = _find_what_if(results) if what_if else None
    if as_json:
        from simcore.json_text import json_text
        from simcore.report.measured_json import measured_json

        print(json_text(measured_json(results, knobs)))
        return
    from simcore.report.measured_text import measured_text

    print(measured_text(results, ascii_only, knobs), end="")


def _show_progress(done: int, total: int) -> None:
    """On a terminal's standard error, over itself."""
    print(f"\rwhat-if {done} of {total}", end="", file=sys.stderr, flush=True)


def _no_progress(done: int, total: int) -> None:
    """Nobody watches."""
