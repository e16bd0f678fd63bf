"""Opens measured runs: one trace file, or a directory of them."""

from __future__ import annotations

import os
import stat

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.measured.columns import RankTrace
from simcore.measured.names import read_name
from simcore.measured.reading import read_trace
from simcore.measured.run import MeasuredRun, make_run
from simcore.measured.sets import TraceFile, TraceSet, chosen, label_of, sets_of
from simcore.records import replace
from simcore.units import plural
from simcore.workload.formats import Head, head_of
from simcore.workload.formats.rank_trace import FIRST_LINE
from simcore.workload.opening import read_beginning, read_file
from simcore.workload.source import GZIP

# The first line's beginning tells a trace and its first rank.
_HEAD_BYTES = 4096
_LISTED = 8
_MOST_NAMED = 3
# What is nearly a set, by the ends of names, and what to do with it.
_ALMOST = (
    ((".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst", ".zip", ".7z"), "unpack {} first"),
    ((".et", ".eg", ".et.gz", ".eg.gz"), "no rank stands in the name of {}"),
)
# What kinds of directories are opened, by names or by how their files begin.
_EXPECTED = (
    "expected execution traces (NAME.RANK.et or .eg, .gz too), profiler traces (Kineto's JSON with "
    "traceEvents, Nsight's .sqlite) or Megatron's rank traces (text that begins rank:0:...)"
)
_MOST_ERRORS = 40


def read_run(path: str, data: bytes) -> MeasuredRun:
    """The run in one file's bytes. Raises InputError with all that is wrong in it."""
    traces, diagnostics = read_trace(path, data)
    is_plan = _is_plan(head_of(data[:_HEAD_BYTES]))
    name = read_name(path)
    return make_run(
        path, traces, name.degrees, diagnostics, is_plan=is_plan, is_set=len(traces) > 1, stamp=name.stamp
    )


def open_directory(path: str, wanted: str | None = None) -> MeasuredRun:
    """The run in a directory: the newest complete one, or the one that `wanted` (a stamp) names.

    Raises InputError when there is no trace in it or a file of the run is damaged, UsageError
    when no or more than one run fits `wanted`.
    """
    files, others, folders = _trace_files(path)
    if not files:
        raise InputError(Diagnostic("error", "no-rank-traces", _nothing_there(path, others, folders), path))
    sets = sets_of(files)
    trace_set = chosen(sets, wanted, path)
    diagnostics: list[Diagnostic] = []
    left = [other for other in sets if other is not trace_set]
    if left:
        listed = ", ".join(other.words() for other in left[:_LISTED])
        more = f", and {len(left) - _LISTED} more" if len(left) > _LISTED else ""
        message = f"{trace_set.words()} is shown; --run opens another run of this directory: {listed}{more}"
        diagnostics.append(Diagnostic("note", "other-runs", message, path))
    parts = trace_set.by_stamp
    if len(parts) > 1:
        listed = ", ".join(part.words(with_missing=False) for part in parts[:_LISTED])
        more = f", and {len(parts) - _LISTED} more" if len(parts) > _LISTED else ""
        message = f"taken as one run whose ranks were profiled one after another: {listed}{more}"
        diagnostics.append(Diagnostic("note", "several-stamps", message, path))
    if others:
        message = f"{plural(others, 'other file')} of the directory left aside, no rank traces"
        diagnostics.append(Diagnostic("note", "other-files", message, path))
    traces, said, is_plan = _read(trace_set)
    degrees = trace_set.files[0].name.degrees
    run = make_run(
        path,
        traces,
        degrees,
        (*diagnostics, *said),
        is_plan=is_plan,
        is_set=True,
        stamp=trace_set.stamp,
        together=trace_set.is_together,
    )
    return replace(
        run, label=label_of(trace_set, sets), others=tuple(label_of(other, sets) for other in left)
    )


def has_rank_traces(path: str) -> bool:
    """Whether a directory has a Megatron rank trace or plan of its own. Raises InputError if it cannot be
    read.
    """
    return bool(_trace_files(path)[0])


def _nothing_there(path: str, others: int, folders: int) -> str:
    """What a directory has instead of traces, and what kinds of them would be opened."""
    files = plural(others, "file")
    message = f"found a directory without traces ({files}), {_EXPECTED}"
    names = sorted(os.listdir(path))
    for suffixes, words in _ALMOST:
        some = [printable(name, 40) for name in names if name.lower().endswith(suffixes)]
        if some:
            more = f" and {len(some) - _MOST_NAMED} more" if len(some) > _MOST_NAMED else ""
            message += f"; {words.format(', '.join(some[:_MOST_NAMED]) + more)}"
    if folders:
        message += f"; {plural(folders, 'folder')} in it not searched: name one of them"
    return message


def _trace_files(path: str) -> tuple[list[TraceFile], int, int]:
    """(the trace files of a directory by name, how many other files, how many folders)."""
    files: list[TraceFile] = []
    others = folders = 0
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        message = f"the directory cannot be read: {error.strerror or error}"
        raise InputError(Diagnostic("error", "unreadable-file", message, path)) from None
    for name in names:
        file_path = os.path.join(path, name)
        try:
            mode = os.stat(file_path).st_mode
            if stat.S_ISDIR(mode):
                folders += 1
                continue
            head = b""
            if stat.S_ISREG(mode):
                with open(file_path, "rb") as file:
                    head = file.read(_HEAD_BYTES)
                if head.startswith(GZIP):
                    head = read_beginning(file_path)[:_HEAD_BYTES]
        except (OSError, InputError):
            head = b""
        line = FIRST_LINE.match(head_of(head).first)
        if line is None:
            others += 1
        else:
            files.append(TraceFile(file_path, read_name(file_path, line[1]), int(line[2][:9]), line[1]))
    return files, others, folders


def _read(trace_set: TraceSet) -> tuple[list[RankTrace], list[Diagnostic], bool]:
    """The ranks of all files of a run; what is wrong in any of them is one error."""
    traces: list[RankTrace] = []
    diagnostics: list[Diagnostic] = []
    errors: list[Diagnostic] = []
    plans = 0
    for file in trace_set.files:
        data = read_file(file.path)
        plans += _is_plan(head_of(data[:_HEAD_BYTES]))
        try:
            ranks, said = read_trace(file.path, data)
        except InputError as error:
            errors += error.diagnostics
            continue
        traces += ranks
        diagnostics += said
    if plans not in (0, len(trace_set.files)):
        message = f"found {plural(plans, 'schedule plan')} among {plural(len(trace_set.files), 'rank trace')}"
        first = trace_set.files[0].path
        errors.append(Diagnostic("error", "trace-line", f"{message}, expected files of one kind", first))
    if errors:
        raise InputError(*errors[:_MOST_ERRORS])
    return traces, diagnostics, plans > 0


def _is_plan(head: Head) -> bool:
    line = FIRST_LINE.match(head.first)
    return line is not None and line[1] == "stage"
