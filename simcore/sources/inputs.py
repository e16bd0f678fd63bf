"""Opens what a user names: a workload to simulate, or a measured run or execution traces to analyze.

Import from here: `open_input`, `read_input`; `require_workload`, `require_measured_run` where only one kind
fits.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.parameters import OpeningOptions
from simcore.records import replace
from simcore.workload import Workload, open_workload
from simcore.workload.formats import format_of, head_of
from simcore.workload.opening import read_beginning, read_file, read_source, stream_source

if TYPE_CHECKING:
    from simcore.chakra import ExecutionSet
    from simcore.flight import FlightRecord
    from simcore.measured import MeasuredRun
    from simcore.model.launch import Launch
    from simcore.snapshots.record import SnapshotRecord


Opened: TypeAlias = "Workload | MeasuredRun | ExecutionSet | FlightRecord | SnapshotRecord"


def open_input(path: str, options: OpeningOptions | None = None) -> Opened:
    """Returns the workload, measured run, execution traces, flight recorder dumps or memory snapshots at
    `path`.

    A directory is a measured run, or dumps or snapshots of a job, one file a rank, or a set of execution
    traces, which a prefix of its files or one of them names, too. Raises InputError when it cannot be opened,
    UsageError when it does not have what the options choose.
    """
    options = _with_rules(options or OpeningOptions())
    if may_be_traces(path):
        from simcore.chakra import find_set, open_set

        set_files = find_set(path)
        if set_files is not None:
            _refuse_choice(options, "execution traces")
            return open_set(set_files)
    if os.path.isdir(path):
        from simcore.measured import has_rank_traces, open_directory

        if not has_rank_traces(path):
            from simcore.kineto.sets import profiler_files
            from simcore.unpickling.files import begins_with_pickles

            record = _open_pickles(path, options) if begins_with_pickles(path) else None
            if record is not None:
                return record
            if any(profiler_files(path)[0]):
                from simcore.kineto import open_profile

                return open_profile(path, options)
            from simcore.chakra import find_set, open_set

            set_files = find_set(path, with_json=True)
            if set_files is not None:
                _refuse_choice(options, "execution traces")
                return open_set(set_files)
            record = _open_pickles(path, options)
            if record is not None:
                return record
        _refuse_choice(replace(options, run=None, step=None), "a directory without profiler traces")
        return open_directory(path, options.run, options.step)
    if not os.path.lexists(path) and (model := _named_model(path)) is not None:
        _refuse_choice(options, "a model")
        return model
    beginning = read_beginning(path)
    file_format = format_of(beginning)
    if file_format is None or file_format.read is None:
        from simcore.chakra import find_set, is_trace, open_set

        set_files = find_set(path, with_json=True) if is_trace(beginning) else None
        if set_files is not None:
            _refuse_choice(options, "execution traces")
            return open_set(set_files)
    kind = "workload" if file_format is None else file_format.kind
    if kind == "profile":
        from simcore.kineto import open_profile

        return open_profile(path, options)
    if kind == "model":
        _refuse_choice(options, "a model")
        return _made_model(path, read_file(path))
    if kind == "workload":
        # A format that cannot be opened is refused by its own name.
        if file_format is not None and file_format.read is not None:
            _refuse_choice(options, "a workload file")
        return open_workload(path)
    if kind in ("snapshot", "dump"):
        _refuse_choice(options, "one file")
        return (_read_snapshot if kind == "snapshot" else _read_dump)(path, read_file(path))
    # `#2` is an iteration of the file, as one of a directory is listed.
    step = options.step or (options.run or " ").partition("#")[2] or None
    is_iteration = (options.run or "").startswith("#")
    _refuse_choice(replace(options, run=None if is_iteration else options.run, step=None), "one file")
    return _read_run(path, read_file(path), step)


def may_be_traces(path: str) -> bool:
    """Returns whether a path can name execution traces: a directory, one of their files, or a mere prefix."""
    name = os.path.basename(path).removesuffix(".gz")
    return name.endswith((".et", ".eg")) or os.path.isdir(path) or not os.path.lexists(path)


def read_input(
    stream: BinaryIO | None, options: OpeningOptions | None = None, name: str = "standard input"
) -> Workload | MeasuredRun | FlightRecord | SnapshotRecord:
    """Returns the workload, measured run, flight recorder dump or memory snapshot in a stream; `name` is for
    messages.
    """
    options = _with_rules(options or OpeningOptions())
    source = stream_source(stream, name)
    file_format = format_of(source.head)
    kind = "workload" if file_format is None else file_format.kind
    if file_format is not None and kind == "profile":
        from simcore.kineto import read_profile

        if file_format.key == "nsys":
            message = "found an Nsight Systems export in a stream, expected the name of its file"
            raise InputError(Diagnostic("error", "unsupported-format", message, name))
        return read_profile(name, source.all(is_part_enough=file_format.spans is None), options)
    _refuse_choice(options, "one file")
    if kind == "model":
        return _made_model(name, source.all())
    if kind == "rank traces":
        return _read_run(name, source.all())
    if kind == "dump":
        return _read_dump(name, source.all())
    if kind == "snapshot":
        return _read_snapshot(name, source.all())
    return read_source(name, source)


def require_workload(opened: Opened, requester: str) -> Workload:
    """Returns the opened workload. requester: the option that needs one. Raises `UsageError` for
    another kind.
    """
    if not isinstance(opened, Workload):
        subject = f"{requester} {printable(opened.path, 60)} is {opened.noun}"
        raise UsageError(f"{subject}; a workload file is expected")
    return opened


def require_measured_run(opened: Opened, requester: str) -> MeasuredRun:
    """Returns the opened measured run. Raises `UsageError` for another kind."""
    if isinstance(opened, Workload) or opened.source != "measured":
        subject = f"{requester} {printable(opened.path, 60)} is {opened.noun}"
        raise UsageError(
            f"{subject}; rank traces or profiler traces, a directory or one of them, are expected"
        )
    return opened


def open_model(name: str | None, model_map: str | None = None) -> Workload:
    """Returns the model that `--model` names as a workload without rows.

    name: None where AICB's arguments state the whole model. model_map: the file of `--model-map`.
    Raises `UsageError` where it is neither a file nor a known model, InputError for a file that is none.
    """
    from simcore.model.maker import ModelMaker

    if name is None:
        return ModelMaker("AICB arguments", None).empty_workload()
    from simcore.model.opening import find_model

    model, diagnostics = find_model(name, model_map)
    return ModelMaker(name if os.path.lexists(name) else model.name, model, diagnostics).empty_workload()


def open_launch(launch: Launch, name: str | None = None) -> Workload:
    """Returns the model of launch arguments as a workload without rows, with what is to be said of them.

    name: the model that `--model` names in its place. Raises `UsageError` where there is none.
    """
    from simcore.model.launch import PROJECTS
    from simcore.model.maker import ModelMaker
    from simcore.model.opening import find_model

    if name is not None:
        model, diagnostics = find_model(name)
        path = name if os.path.lexists(name) else model.name
        return ModelMaker(path, model, (*diagnostics, *launch.diagnostics)).empty_workload()
    if launch.model is None:
        found_words = f"{PROJECTS[launch.project]}'s arguments without the sizes of a model"
        raise UsageError(f"--from-args: found {found_words}; --model NAME|FILE beside it would fit")
    return ModelMaker(launch.path, launch.model, launch.diagnostics).empty_workload()


def _named_model(name: str) -> Workload | None:
    if " --" in name:
        # Launch arguments that state a model.
        return open_model(name)
    # Paths are no names of models: a path without a file gets the error of a missing file.
    if "/" in name or "." in name:
        return None
    from simcore.model.known_models import named_model

    return None if named_model(name) is None else open_model(name)


def _made_model(path: str, data: bytes) -> Workload:
    from simcore.model.maker import ModelMaker
    from simcore.model.opening import read_model

    model, diagnostics = read_model(path, data)
    return ModelMaker(path, model, diagnostics).empty_workload()


def is_schedule_file(path: str) -> bool:
    """Returns whether the file at `path` is a pipeline schedule, which is a parameter of a run and no input.

    False for an unreadable file: opening it says why.
    """
    # Imported here: `check` alone asks.
    from simcore.workload.formats.unopened import is_schedule

    try:
        return is_schedule(head_of(read_beginning(path)))
    except InputError:
        return False


def _with_rules(options: OpeningOptions) -> OpeningOptions:
    """Returns the options with the rules of their trace map."""
    if options.trace_map is None:
        return options
    from simcore.sources.trace_maps import read_trace_map

    return replace(options, trace_rules=read_trace_map(options.trace_map))


def _read_run(path: str, data: bytes, step: str | None = None) -> MeasuredRun:
    # Imported here: a workload does not need the room of the traces.
    from simcore.measured import read_run

    return read_run(path, data, step)


def _open_pickles(path: str, options: OpeningOptions) -> FlightRecord | SnapshotRecord | None:
    """Returns the record of a directory's flight recorder dumps, else of its memory snapshots; None without
    any.
    """
    from simcore.unpickling.files import find_files

    dumps, others = find_files(path, "dump")
    if dumps:
        from simcore.flight import open_dumps

        _refuse_choice(options, "flight recorder dumps")
        return open_dumps(path, dumps, others)
    snapshots, others = find_files(path, "snapshot")
    if not snapshots:
        return None
    from simcore.snapshots.opening import open_snapshots

    _refuse_choice(options, "memory snapshots")
    return open_snapshots(path, snapshots, others)


def _read_snapshot(path: str, data: bytes) -> SnapshotRecord:
    from simcore.snapshots.opening import read_snapshot

    return read_snapshot(path, data)


def _read_dump(path: str, data: bytes) -> FlightRecord:
    from simcore.flight import read_dump

    return read_dump(path, data)


def _refuse_choice(options: OpeningOptions, actual: str) -> None:
    if options.run is not None:
        message = f"found {actual}, expected a directory of rank traces"
        raise UsageError(f"--run {printable(options.run, 60)}: {message}")
    if options.profiler_option:
        raise UsageError(f"{options.profiler_option}: found {actual}, expected profiler traces")
