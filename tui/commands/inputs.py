"""The file that a command is given, `-` for standard input."""

from __future__ import annotations

import sys

from simcore.workload import Workload, open_workload, read_stream

STANDARD_INPUT = "-"


def open_input(path: str) -> Workload:
    """The workload at `path`. Raises: InputError when it cannot be read."""
    if path == STANDARD_INPUT:
        return read_stream(sys.stdin.buffer if sys.stdin is not None else None)
    return open_workload(path)
