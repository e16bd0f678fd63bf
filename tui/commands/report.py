"""`wltui report`: the run as text or JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, is_unicode
from simcore.parameters import RunInput
from tui.commands.arguments import (
    Parser,
    add_launch,
    add_model,
    add_model_map,
    add_parameters,
    add_run,
    parse_parameters,
)
from tui.commands.opened import open_from_arguments
from tui.printing import Controls

if TYPE_CHECKING:
    from simcore.cluster.choice import ClusterChoice
    from simcore.trace.findings import WhatIf
    from simcore.trace.run import Run

_DESCRIPTION = "Simulate one step of a workload, or read a measured one, and say where it goes."


def build_parser() -> Parser:
    """Returns the parser of `wltui report`."""
    parser = Parser(prog="wltui report", description=_DESCRIPTION)
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="a workload file, a trace, a directory or set of traces, a model, or - for standard input",
    )
    add_model(parser)
    add_model_map(parser)
    add_launch(parser)
    add_run(parser)
    parser.add_argument("--json", action="store_true", help="the figures as JSON (schema wltui.report/1)")
    parser.add_argument(
        "--what-if",
        action="store_true",
        help="also what would help: changes that you can make, and what each thing would bring if it were "
        "free or took 10 %% less time",
    )
    parser.add_argument(
        "--all-layers",
        action="store_true",
        help="every row of the file with its cells, collectives and their bandwidths",
    )
    parser.add_argument(
        "--explain",
        metavar="NAME[:PHASE]",
        help="print only where the figures of these rows come from, with their values: mlp_row, mlp_row:ig",
    )
    add_parameters(parser)
    return parser


def main(words: list[str]) -> int:
    """Prints the report of a workload file or a measured run. Exit status 0; errors raise."""
    parser = build_parser()
    arguments, unparsed = parser.parse_known_args(words)
    parser.refuse_rest(arguments.file, unparsed)
    for flag, is_given in (
        ("--all-layers", arguments.all_layers),
        ("--explain", arguments.explain is not None),
    ):
        if is_given and arguments.json:
            raise UsageError(f"{flag} prints text; --json has the figures of all rows")
    parameters = parse_parameters(arguments)
    if arguments.explain is not None:
        _print_explanation(RunInput(open_from_arguments(arguments), parameters), arguments.explain)
        return 0
    print_report(
        RunInput(open_from_arguments(arguments), parameters), arguments.json,
        what_if=arguments.what_if, every_layer=arguments.all_layers,
    )  # fmt: skip
    return 0


def _print_explanation(run_input: RunInput, row_name: str) -> None:
    from simcore.analysis.explain import explain_rows
    from simcore.runs.simulated import run_simulation
    from simcore.sources.inputs import require_workload

    require_workload(run_input.opened, "--explain:")
    print("\n".join(explain_rows(run_simulation(run_input), row_name)))


def print_report(
    run_input: RunInput,
    as_json: bool = False,
    ascii_only: bool = False,
    what_if: bool = False,
    every_layer: bool = False,
) -> None:
    """Simulates a workload and prints it; a measured run is printed as it is.

    what_if: whether the table of changes is printed. every_layer: whether the layer table of the page has all
    rows of the file.
    """
    from simcore.runs import open_run

    cluster, run_input = _take_pricing_cluster(run_input)
    results = open_run(run_input)
    if what_if:
        _find_what_if(results)
    # Not before: what cannot be read or simulated has no page.
    from simcore.render.report.pages import run_json, run_page

    if as_json:
        from simcore.render.report.json_text import json_chunks

        sys.stdout.writelines(json_chunks(run_json(results, what_if, cluster)))
        print()
        return
    ascii_only = ascii_only or not is_unicode(sys.stdout.encoding)
    print(run_page(results, ascii_only, what_if, every_layer, cluster), end="")


def _take_pricing_cluster(run_input: RunInput) -> tuple[tuple[str, ClusterChoice] | None, RunInput]:
    """Returns (the cluster on which the collectives of a profiler's run are also priced, the input without
    it).
    """
    opened, name = run_input.opened, run_input.parameters.cluster
    if name is None:
        return None, run_input
    from simcore.cluster import ClusterParameters, choose_cluster
    from simcore.measured import MeasuredRun

    if not (isinstance(opened, MeasuredRun) and opened.of_devices):
        return None, run_input
    return (name, choose_cluster(ClusterParameters(cluster=name))), run_input.with_changes(cluster=None)


def _find_what_if(results: Run) -> list[WhatIf]:
    """Returns the table of changes; a terminal shows the progress, which is erased at the end."""
    if sys.stderr is None or not sys.stderr.isatty():
        return results.what_if(_no_progress)
    try:
        return results.what_if(_show_progress)
    finally:
        print(Controls(f"\r{' ' * 30}\r"), end="", file=sys.stderr, flush=True)


def _show_progress(finished: int, total: int) -> None:
    """Shows the progress on a terminal's standard error, each time over the last."""
    print(Controls(f"\rwhat-if {finished} of {total}"), end="", file=sys.stderr, flush=True)


def _no_progress(finished: int, total: int) -> None:
    """Does nothing: there is no terminal."""
