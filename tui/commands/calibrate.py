"""`wltui calibrate`: parameters fitted to a measured run, the remaining error, and the file that
keeps them.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, printable
from simcore.parameters import OpeningOptions
from tui.commands.arguments import (
    Parser,
    add_model,
    add_parameters,
    add_run,
    opening_options,
    parse_duration,
    parse_parameters,
)
from tui.commands.opened import STANDARD_INPUT, open_input

if TYPE_CHECKING:
    import argparse

    from simcore.calibration import Calibration
    from simcore.measured import MeasuredRun
    from simcore.workload import Workload

_DESCRIPTION = (
    "Fit the compute scale and the cluster's bandwidths to a measured run of a workload. Says what decided "
    "each of them and how far off each kind of work was before and is after, and saves them for --params."
)


def build_parser() -> Parser:
    """Returns the parser of `wltui calibrate`."""
    parser = Parser(prog="wltui calibrate", description=_DESCRIPTION)
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?", help="a workload file, or - for standard input"
    )
    parser.add_argument(
        "trace", metavar="TRACE", nargs="?",
        help="what was measured: a directory of rank traces, or one of them",
    )  # fmt: skip
    add_model(parser)
    parser.add_argument(
        "--measured-step", metavar="DURATION|LOG",
        help="in place of TRACE: how long one step took, like 13.75s or 850ms, or a trainer's log, for the "
        "median of its steps; fits one factor",
    )  # fmt: skip
    add_run(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="save the parameters, given and fitted, as TOML for --params FILE",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it is there")
    parser.add_argument("--json", action="store_true", help="the figures as JSON (schema wltui.calibrate/1)")
    add_parameters(parser)
    return parser


def main(words: list[str]) -> int:
    """Prints the calibration and, if requested, saves its parameters. Exit status 0; errors raise."""
    arguments = build_parser().parse_args(words)
    if arguments.model is not None:
        if arguments.trace is not None:
            name = printable(arguments.workload, 60)
            raise UsageError(f"--model beside WORKLOAD {name}: give one of the two")
        arguments.workload, arguments.trace = arguments.model, arguments.workload
    if arguments.measured_step is not None:
        return _fit_one_step(arguments)
    if arguments.workload is None or arguments.trace is None:
        raise UsageError("the following arguments are required: WORKLOAD, and TRACE or --measured-step")
    if arguments.workload == arguments.trace == STANDARD_INPUT:
        raise UsageError("WORKLOAD - and TRACE -: standard input can be read once")
    if arguments.force and arguments.output is None:
        raise UsageError("--force overwrites the FILE of --output: name one")
    if arguments.output is not None:
        from simcore.render.export.saving import check_file

        check_file(arguments.output, arguments.force)
    parameters = parse_parameters(arguments)
    workload, measured = _open_inputs(arguments.workload, arguments.trace, opening_options(arguments))

    from simcore.calibration import calibrate
    from simcore.setup import Setup

    calibration = calibrate(Setup(workload, parameters), measured)
    from simcore.render.report.calibration import warnings

    for warning in warnings(calibration):
        print(warning, file=sys.stderr)
    if arguments.output is not None:
        _save(calibration, arguments.output, arguments.force)
    if arguments.json:
        from simcore.render.report.calibration import calibration_json
        from simcore.render.report.json_text import json_text

        print(json_text(calibration_json(calibration)))
        return 0
    from simcore.render.report.calibration import calibration_text, saved_text

    print(calibration_text(calibration), end="")
    if calibration.is_fitted:
        print(saved_text(calibration, arguments.output), end="")
    return 0


def _fit_one_step(arguments: argparse.Namespace) -> int:
    """Prints the factor that fits a measured step, and saves it if requested."""
    if arguments.workload is None:
        raise UsageError("--measured-step: WORKLOAD, or --model NAME|FILE, is expected")
    if arguments.trace is not None:
        raise UsageError("--measured-step stands instead of TRACE: give one of the two")
    measured_ns = _read_step(arguments.measured_step, opening_options(arguments))
    parameters = parse_parameters(arguments)
    from simcore.sources.inputs import require_workload

    workload = require_workload(open_input(arguments.workload), "calibrate: WORKLOAD")
    from simcore.calibration.one_step import fit_step
    from simcore.setup import Setup
    from simcore.units import change_percent, duration

    fit = fit_step(Setup(workload, parameters), measured_ns)
    if arguments.json:
        from simcore.render.report.json_text import json_text

        figures = {
            "schema": "wltui.calibrate-step/1",
            "measured_step_ns": measured_ns,
            "before_ns": fit.before.step_time_ns,
            "after_ns": fit.after.step_time_ns,
            "compute_scale": fit.scale,
        }
        print(json_text(figures))
    else:
        before, after = fit.before.step_time_ns, fit.after.step_time_ns
        off_before, off_after = change_percent(measured_ns, before), change_percent(measured_ns, after)
        print(f"Measured step   {duration(measured_ns)}")
        print(f"  simulated     {duration(before)} ({off_before})")
        print(f"  compute scale {fit.scale:g}: {duration(after)} ({off_after} left)")
        print("One step decides one factor: whether compute or the network is off, a trace says.")
    if arguments.output is not None:
        from simcore.parameter_values.parameters_file import toml_of
        from simcore.render.export.saving import save

        save(arguments.output, [toml_of(fit.after.parameters.explicit_values()).encode()], arguments.force)
    elif not arguments.json:
        print(f"--compute-scale {fit.scale:g} gives it; -o FILE saves it for --params FILE")
    return 0


def _read_step(text: str, options: OpeningOptions) -> int:
    """Returns the ns of `--measured-step`: a duration, or a file or directory of steps: then the median of
    all, or the step that the options name.
    """
    try:
        return parse_duration("--measured-step", text)
    except UsageError as error:
        if not os.path.exists(text):
            raise UsageError(f"{error}, or a trainer's log; there is no such file") from None
    from statistics import median_high

    from simcore.sources.inputs import require_measured_run

    run = require_measured_run(open_input(text, options), "--measured-step")
    steps = run.recorded.steps if run.recorded is not None and options.step is None else ()
    return median_high(step.longest_ns for step in steps) if steps else run.step_time_ns


def _open_inputs(
    workload_path: str, trace_path: str, options: OpeningOptions
) -> tuple[Workload, MeasuredRun]:
    """Returns the workload and the run of the two arguments. Raises `UsageError` where one is the other's
    kind of file.
    """
    from simcore.sources.inputs import require_measured_run, require_workload

    workload = require_workload(open_input(workload_path), "calibrate: WORKLOAD")
    return workload, require_measured_run(open_input(trace_path, options), "calibrate: TRACE")


def _save(calibration: Calibration, path: str, force: bool) -> None:
    """Saves the parameters. Raises `UsageError` where nothing was fitted, and what `save` raises."""
    from simcore.parameter_values.parameters_file import toml_of
    from simcore.render.export.saving import save
    from simcore.render.report.calibration import NOTHING_SAVED

    if not calibration.is_fitted:
        raise UsageError(f"--output {printable(path)}: {NOTHING_SAVED}")
    save(path, [toml_of(calibration.after.parameters.explicit_values()).encode()], force)
