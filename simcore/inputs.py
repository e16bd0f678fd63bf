"""What a user names to be opened: a workload to simulate, or a measured run to look at.

Import from here: `open_input`, `read_input`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

from simcore.diagnostics import UsageError, printable
from simcore.workload import Workload, open_workload
from simcore.workload.opening import (
    is_measured,
    is_model,
    read_beginning,
    read_file,
    read_source,
    stream_source,
)

if TYPE_CHECKING:
    from simcore.measured import MeasuredRun


def open_input(path: str, run: str | None = None) -> Workload | MeasuredRun:
    """The workload or measured run at `path`; a directory is a measured run, one file a rank.

    run: the stamp of one of a directory's runs, None for the newest complete one. Raises
    InputError when it cannot be opened, UsageError when there is no such run to choose.
    """
    if os.path.isdir(path):
        from simcore.measured import open_directory

        return open_directory(path, run)
    if not os.path.lexists(path) and (model := _named_model(path)) is not None:
        _refuse_choice(run, "a model")
        return model
    head = read_beginning(path)
    if is_model(head):
        _refuse_choice(run, "a model")
        return _made_model(path, read_file(path))
    if not is_measured(head):
        _refuse_choice(run, "a workload file")
        return open_workload(path)
    _refuse_choice(run, "one file")
    return _read_run(path, read_file(path))


def read_input(
    stream: BinaryIO | None, run: str | None = None, name: str = "standard input"
) -> Workload | MeasuredRun:
    """The same, of what comes from a stream; `name` is for messages."""
    _refuse_choice(run, "one file")
    source = stream_source(stream, name)
    if is_model(source.head):
        return _made_model(name, source.all())
    if is_measured(source.head):
        return _read_run(name, source.all())
    return read_source(name, source)


def open_model(name: str | None) -> Workload:
    """What `--model` names, without rows yet; None for what AICB's arguments say all of.

    Raises `UsageError` where it is neither a file nor a known model, InputError for a file that is none.
    """
    from simcore.model.maker import ModelMaker

    if name is None:
        return ModelMaker("AICB arguments", None).opened()
    from simcore.model.opening import find_model

    model, found = find_model(name)
    return ModelMaker(name if os.path.lexists(name) else model.name, model, found).opened()


def _named_model(name: str) -> Workload | None:
    # No path of a file: those that are not there are still to be said so.
    if "/" in name or "." in name:
        return None
    from simcore.model.opening import named_model

    return None if named_model(name) is None else open_model(name)


def _made_model(path: str, data: bytes) -> Workload:
    from simcore.model.maker import ModelMaker
    from simcore.model.opening import read_model

    model, found = read_model(path, data)
    return ModelMaker(path, model, found).opened()


def _read_run(path: str, data: bytes) -> MeasuredRun:
    # Imported here: a workload must not pay for the room of the traces.
    from simcore.measured import read_run

    return read_run(path, data)


def _refuse_choice(run: str | None, found: str) -> None:
    if run is not None:
        raise UsageError(f"--run {printable(run, 60)}: found {found}, expected a directory of rank traces")
