"""What a command is given to open: a file or a directory, or `-` for standard input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, printable
from tui.commands.arguments import asked_of

if TYPE_CHECKING:
    import argparse

    from simcore.asked import Asked
    from simcore.chakra import TraceSet
    from simcore.measured import MeasuredRun
    from simcore.workload import Workload

STANDARD_INPUT = "-"


def open_input(path: str, asked: Asked | None = None) -> Workload | MeasuredRun | TraceSet:
    """The workload or measured run at `path`. asked: which of a directory's measured runs, and what of it.

    Raises: InputError when it cannot be read, UsageError when there is no such run to choose.
    """
    # Not before: --help must answer at once.
    from simcore import inputs

    if path == STANDARD_INPUT:
        return inputs.read_input(sys.stdin.buffer if sys.stdin is not None else None, asked)
    return inputs.open_input(path, asked)


def open_given(arguments: argparse.Namespace) -> Workload | MeasuredRun | TraceSet:
    """What a command's FILE, or its --model, or AICB's arguments alone name.

    Raises as `open_input` does, and `UsageError` where two of them are given or none.
    """
    if arguments.model is None and arguments.file is not None:
        return open_input(arguments.file, asked_of(arguments))
    given = arguments.file if arguments.model is not None else None
    if given is not None:
        raise UsageError(f"--model beside FILE {printable(given, 60)}: give one of the two")
    if arguments.model is None and arguments.aicb_args is None:
        raise UsageError("the following arguments are required: FILE, or --model NAME|FILE")
    if arguments.run is not None:
        raise UsageError("--run: found a model, expected a directory of traces")
    from simcore import inputs

    return inputs.open_model(arguments.model)
