"""What a command is given to open: a file or a directory, or `-` for standard input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simcore.chakra import TraceSet
    from simcore.measured import MeasuredRun
    from simcore.workload import Workload

STANDARD_INPUT = "-"


def open_input(path: str, run: str | None = None) -> Workload | MeasuredRun | TraceSet:
    """The workload or measured run at `path`. run: which of a directory's measured runs.

    Raises: InputError when it cannot be read, UsageError when there is no such run to choose.
    """
    # Not before: --help must answer at once.
    from simcore import inputs

    if path == STANDARD_INPUT:
        return inputs.read_input(sys.stdin.buffer if sys.stdin is not None else None, run)
    return inputs.open_input(path, run)
