"""What a command opens, a file, a directory or `-` for standard input, and what it compares."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, printable
from simcore.parameters import Parameters, RunInput

if TYPE_CHECKING:
    import argparse

    from simcore.parameters import OpeningOptions
    from simcore.sources.inputs import Opened


def select_parameters(run_input: RunInput, other: Opened) -> RunInput:
    """Returns the input with the parameters that apply to it: a trace compared with a workload stays as
    measured.
    """
    from simcore.workload import Workload

    measured_alone = not isinstance(run_input.opened, Workload) and isinstance(other, Workload)
    return run_input.with_parameters(Parameters()) if measured_alone else run_input


def print_warnings(*opened: Opened) -> None:
    """Prints the warnings of traces on standard error, each once: the figures of a page or of JSON show no
    doubt.
    """
    import sys

    from simcore.workload import Workload

    texts = dict.fromkeys(
        diagnostic.text()
        for run in opened
        if not isinstance(run, Workload)
        for diagnostic in run.diagnostics
        if diagnostic.severity != "note"
    )
    for text in texts:
        print(text, file=sys.stderr)


STANDARD_INPUT = "-"


def open_input(path: str, options: OpeningOptions | None = None) -> Opened:
    """Returns the workload or measured run at `path`. options: which of a directory's measured runs, and what
    of it.

    Raises InputError when it cannot be read, UsageError when there is no such run to choose.
    """
    # Not before: --help must answer at once.
    from simcore.sources import inputs

    if path == STANDARD_INPUT:
        return inputs.read_input(sys.stdin.buffer if sys.stdin is not None else None, options)
    return inputs.open_input(path, options)


def is_results(path: str) -> bool:
    """Returns whether a file holds the points of a sweep."""
    try:
        # Reading a pipe without a writer, or a file of the system without a size, may wait for ever.
        if not os.path.isfile(path) or not os.path.getsize(path):
            return False
        with open(path, "rb") as file:
            return file.read(24).startswith(b'{"schema":"wltui.sweep/')
    except (OSError, ValueError):
        return False


def open_from_arguments(arguments: argparse.Namespace) -> Opened:
    """Returns what a command's FILE, or its --model, or AICB's arguments name.

    Raises as `open_input` does, and `UsageError` where two of them are given or none.
    """
    # Not before: `check` has no parameters, and pays for none.
    from tui.commands.arguments import launch_of, opening_options

    launch = launch_of(arguments)
    if launch is not None:
        from simcore.sources import inputs

        if arguments.file is not None:
            raise UsageError(f"--from-args beside FILE {printable(arguments.file, 60)}: give one of the two")
        return inputs.open_launch(launch, arguments.model)
    model_map = getattr(arguments, "model_map", None)
    if model_map is not None and (arguments.model or arguments.file) is not None:
        from simcore.sources.inputs import open_model

        if arguments.model is not None and arguments.file is not None:
            raise UsageError(f"--model beside FILE {printable(arguments.file, 60)}: give one of the two")
        return open_model(arguments.model or arguments.file, model_map)
    if arguments.file is not None:
        opened = open_input(arguments.file, opening_options(arguments))
        if arguments.model is not None:
            from simcore.sources.inputs import require_measured_run

            return require_measured_run(opened, "--model beside FILE")
        return opened
    if arguments.model is None and arguments.aicb_args is None:
        raise UsageError("the following arguments are required: FILE, or --model NAME|FILE")
    if arguments.run is not None:
        raise UsageError("--run: found a model, expected a directory of traces")
    from simcore.sources import inputs

    return inputs.open_model(arguments.model)
