"""What a user names to be opened: a workload to simulate, or a measured run to look at.

Import from here: `open_input`, `read_input`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

from simcore.diagnostics import UsageError, printable
from simcore.workload import Workload, open_workload
from simcore.workload.opening import is_measured, read_beginning, read_file, read_source, stream_source

if TYPE_CHECKING:
    from simcore.chakra import TraceSet
    from simcore.measured import MeasuredRun


def open_input(path: str, run: str | None = None) -> Workload | MeasuredRun | TraceSet:
    """The workload, measured run or execution traces at `path`.

    A directory is a measured run, one file a rank, or a set of execution traces, which a prefix of its files
    or
    one of them names, too. run: the stamp of one of a directory's runs, None for the newest complete one.
    Raises
    InputError when it cannot be opened, UsageError when there is no such run to choose.
    """
    if may_be_traces(path):
        from simcore.chakra import find_set, open_set

        found = find_set(path)
        if found is not None:
            _refuse_choice(run, "execution traces")
            return open_set(found)
    if os.path.isdir(path):
        from simcore.measured import open_directory

        return open_directory(path, run)
    if not is_measured(read_beginning(path)):
        _refuse_choice(run, "a workload file")
        return open_workload(path)
    _refuse_choice(run, "one file")
    return _read_run(path, read_file(path))


def may_be_traces(path: str) -> bool:
    """Whether a path can name execution traces: a directory, a file of theirs, or no file but a prefix."""
    name = os.path.basename(path).removesuffix(".gz")
    return name.endswith((".et", ".eg")) or os.path.isdir(path) or not os.path.lexists(path)


def read_input(
    stream: BinaryIO | None, run: str | None = None, name: str = "standard input"
) -> Workload | MeasuredRun:
    """The same, of what comes from a stream; `name` is for messages."""
    _refuse_choice(run, "one file")
    source = stream_source(stream, name)
    if is_measured(source.head):
        return _read_run(name, source.all())
    return read_source(name, source)


def _read_run(path: str, data: bytes) -> MeasuredRun:
    # Imported here: a workload must not pay for the room of the traces.
    from simcore.measured import read_run

    return read_run(path, data)


def _refuse_choice(run: str | None, found: str) -> None:
    if run is not None:
        raise UsageError(f"--run {printable(run, 60)}: found {found}, expected a directory of rank traces")
