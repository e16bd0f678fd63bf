"""`wltui calibrate`: parameters fitted to a measured run, what is left, and the file that keeps them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, printable
from simcore.workload import Workload
from tui.commands.arguments import Parser, add_parameters, add_run, parameters_from
from tui.commands.inputs import STANDARD_INPUT, open_input

if TYPE_CHECKING:
    from simcore.calibration import Calibration
    from simcore.measured import MeasuredRun

_DESCRIPTION = (
    "Fit the compute scale and the bandwidths of the cluster to a measured run of a workload, say what "
    "decided each and how far every kind of work is off before and after, and save the parameters for "
    "--params."
)


def build_parser() -> Parser:
    """The words that `wltui calibrate` takes."""
    parser = Parser(prog="wltui calibrate", description=_DESCRIPTION)
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload file, or - for standard input")
    parser.add_argument(
        "trace", metavar="TRACE", help="what was measured: a directory of rank traces, or one of them"
    )
    add_run(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="save the parameters, those that were given and the fitted ones, as TOML for --params FILE",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it is there")
    parser.add_argument("--json", action="store_true", help="the figures as JSON (schema wltui.calibrate/1)")
    add_parameters(parser)
    return parser


def main(words: list[str]) -> int:
    """Print the calibration and, if asked to, save its parameters. Exit status 0; errors raise."""
    arguments = build_parser().parse_args(words)
    if arguments.workload == arguments.trace == STANDARD_INPUT:
        raise UsageError("WORKLOAD - and TRACE -: standard input can be read once")
    if arguments.force and arguments.output is None:
        raise UsageError("--force overwrites the FILE of --output: name one")
    if arguments.output is not None:
        from simcore.export.saving import check_file

        check_file(arguments.output, arguments.force)
    parameters = parameters_from(arguments)
    workload, measured = _inputs(arguments.workload, arguments.trace, arguments.run)

    from simcore.calibration import calibrate

    calibration = calibrate(workload, parameters, measured)
    from simcore.report.calibration import warnings

    for warning in warnings(calibration):
        print(warning, file=sys.stderr)
    if arguments.output is not None:
        _save(calibration, arguments.output, arguments.force)
    if arguments.json:
        from simcore.json_text import json_text
        from simcore.report.calibration import calibration_json

        print(json_text(calibration_json(calibration)))
        return 0
    from simcore.report.calibration import calibration_text, saved_text

    print(calibration_text(calibration), end="")
    if calibration.is_fitted:
        print(saved_text(calibration, arguments.output), end="")
    return 0


def _inputs(workload_path: str, trace_path: str, run: str | None) -> tuple[Workload, MeasuredRun]:
    """What the two arguments name. Raises `UsageError` where one is the other's kind of file."""
    workload = open_input(workload_path)
    if not isinstance(workload, Workload):
        raise UsageError(
            f"calibrate: WORKLOAD {printable(workload_path, 60)} is a measured run; a workload file is "
            "expected, and the trace behind it"
        )
    measured = open_input(trace_path, run)
    if isinstance(measured, Workload) or measured.format == "chakra":
        raise UsageError(
            f"calibrate: TRACE {printable(trace_path, 60)} is no measured run; a directory of rank traces, "
            "or one of them, is expected"
        )
    return workload, measured


def _save(calibration: Calibration, path: str, force: bool) -> None:
    """Raises `UsageError` where nothing was fitted, and what `save` raises."""
    from simcore.export.saving import save
    from simcore.parameters_file import parameters_toml
    from simcore.report.calibration import NOTHING_SAVED

    if not calibration.is_fitted:
        raise UsageError(f"--output {printable(path)}: {NOTHING_SAVED}")
    save(path, [parameters_toml(calibration.parameters).encode()], force)
