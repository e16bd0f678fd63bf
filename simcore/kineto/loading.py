"""Reads the files of a set in parallel, in as many processes as there are cores and memory for.

Reading a file takes up to `_PEAK` times its uncompressed bytes, and leaves columns that are a small part of
that. So as many are read at once as fit into free memory, and a file that does not fit alone is refused
before anything is read.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.kineto.cache import LAST, Read, find_cache_path, is_kept, keep, load
from simcore.kineto.chrome.rules import Rule
from simcore.kineto.progress import LEAST_BYTES, ReadingLine
from simcore.kineto.reading import read_file_events
from simcore.kineto.recording import Recording
from simcore.kineto.sets import ProfilerFile
from simcore.processes import start_tracker
from simcore.records import NamedTuple
from simcore.units import byte_size
from simcore.workload.formats import Format, format_of
from simcore.workload.memory import free_bytes
from simcore.workload.opening import read_beginning, read_file
from simcore.workload.source import MOST_BYTES

# Peak bytes over bytes of JSON: the file, its events and the columns; measured 1.8 for 120 MB, more for small
# ones (`benchmarks/profiles.py`).
_PEAK = 3
# JSON of traces over its gzip: 10 to 25 in the corpus. Blanks reach a thousand.
_PACKED, _MOST_PACKED = 20, 100
_MOST_FILE = 16 * 2**30
_MOST_ERRORS = 40
# Bytes of a process of its own: the interpreter and what is imported.
_PROCESS = 40 * 2**20

OnProgress = Callable[[float], None]
_One = tuple[list[Recording], list[Diagnostic], tuple[Diagnostic, ...]]


def most_bytes(path: str) -> int:
    """Returns how many uncompressed bytes a file may have: as many as free memory can read, and no more than
    traces compress to.
    """
    free = free_bytes()
    fitting = _MOST_FILE if free is None else min(_MOST_FILE, max(free // _PEAK, MOST_BYTES // 8))
    return min(fitting, max(_MOST_PACKED * os.path.getsize(path), MOST_BYTES))


class ReadOptions(NamedTuple):
    """How files are read."""

    names: str | None = None
    """A pattern of further kernels that communicate."""
    step_names: str | None = None
    """A pattern of annotations that are steps."""
    keep: bool = True
    """Whether the cache is read and written."""
    step: int | None = None
    """The only step whose operations are read, None for the last whole one."""
    whole: bool = True
    """Whether the operations of all steps are read."""
    rules: tuple[Rule, ...] = ()
    """Those of the user, for the spans of Chrome traces."""

    @property
    def patterns(self) -> tuple[str | None, ...]:
        """The expressions that decide what is read."""
        return self.names, self.step_names, *map(repr, self.rules)

    @property
    def is_last(self) -> bool:
        """Whether the last step of each file is all that is read."""
        return self.step is None and not self.whole


def read_one(path: str, part: ReadOptions, on_progress: OnProgress | None = None) -> Read:
    """Returns the recordings of a file, and diagnostics. on_progress: gets the share that is read, now and
    then.
    """
    cache_path = find_cache_path(path, part.patterns) if part.keep else None
    if cache_path is not None and part.is_last:
        last = load(cache_path + LAST, path)
        if last is not None:
            return last
    read = None if cache_path is None else load(cache_path, path)
    if read is None:
        read = _read(path, part, on_progress)
        if cache_path is not None:
            keep(cache_path, read)
    if part.whole:
        return read
    step_recordings = [recording.with_step(part.step) for recording in read[0]], read[1]
    has_step = any(recording.only_step is not None for recording in step_recordings[0])
    if cache_path is not None and part.is_last and has_step:
        keep(cache_path + LAST, step_recordings)
    return step_recordings


def _read(path: str, part: ReadOptions, on_progress: OnProgress | None) -> Read:
    file_format = format_of(read_beginning(path))
    if file_format is not None and file_format.key == "nsys":
        from simcore.kineto.nsys import read_nsys

        return _summarized(read_nsys(path, part.names, part.step_names))
    is_part_enough = file_format is None or file_format.spans is None
    # No name for the bytes: who reads them can let go of them.
    return read_bytes(
        file_format,
        path,
        read_file(path, most_bytes(path), is_part_enough=is_part_enough),
        part,
        on_progress,
    )


def read_bytes(
    file_format: Format | None,
    path: str,
    data: bytes,
    part: ReadOptions,
    on_progress: OnProgress | None = None,
) -> Read:
    """Returns the recordings in the bytes of a file of a format, and diagnostics; `path` is for messages."""
    if file_format is None or file_format.spans is None:
        contents = [data]
        del data
        return _summarized(
            read_file_events(path, contents.pop(), part.names, on_progress, part.step_names, part.rules)
        )
    from simcore.kineto.span_tables import recordings_of

    for option, pattern in (("--comm-names", part.names), ("--step-names", part.step_names)):
        if pattern is not None:
            message = f"found {file_format.name}, which states kinds and steps, expected profiler traces"
            raise UsageError(f"{option}: {message}")
    table, diagnostics = file_format.spans(path, data)
    recordings, more = recordings_of(path, file_format.key, table)
    return _summarized((recordings, [*diagnostics, *more]))


def _summarized(read: Read) -> Read:
    for recording in read[0]:
        recording.summarize_steps()
    return read


def read_all(files: Sequence[ProfilerFile], part: ReadOptions) -> Read:
    """Returns the recordings of all files in their order, and diagnostics; what cannot be read is a warning.

    Raises InputError when none can be read, UsageError when the largest does not fit into free memory.
    """
    read: list[Recording] = []
    diagnostics: list[Diagnostic] = []
    errors: list[Diagnostic] = []
    cached_paths = {file.path for file in files if part.keep and is_kept(file.path, part.patterns)}
    uncached = [file for file in files if file.path not in cached_paths]
    workers = _workers(uncached)
    with ReadingLine([(f"rank {file.rank}", file.bytes) for file in uncached]) as progress:
        results = (
            _read_in_processes(uncached, part, workers, progress)
            if workers > 1
            else (
                _read_one_of(len(uncached), profiler_file.path, part, partial(progress.tell, index))
                for index, profiler_file in enumerate(uncached)
            )
        )
        progress.show()
        file_index = 0
        for file in files:
            if file.path in cached_paths:
                recordings, more, wrong = _read_guarded(file.path, part)
            else:
                recordings, more, wrong = next(results)
                progress.tell(file_index, 1)
                progress.show()
                file_index += 1
            read += recordings
            diagnostics += more
            errors += wrong
    if not read:
        raise InputError(*errors[:_MOST_ERRORS])
    # One unreadable rank hides nothing of the others; the warning that it is missing has the reason.
    diagnostics += [
        Diagnostic("warning", error.code, error.message, error.file, error.line, error.column)
        for error in errors
    ]
    return read, diagnostics


def _workers(files: Sequence[ProfilerFile]) -> int:
    """Returns how many files are read at once. Raises UsageError when one alone does not fit."""
    if not files:
        return 1
    sizes = [_unpacked(file) for file in files]
    largest = max(files, key=_unpacked)
    free = free_bytes()
    needed = _unpacked(largest) * _PEAK
    if free is not None and needed > free:
        raise UsageError(
            f"reading {printable(os.path.basename(largest.path), 80)} would need about {byte_size(needed)} "
            f"of memory and {byte_size(free)} are free (--ranks 0-7 opens a part of the ranks)"
        )
    if len(files) < 2 or sum(sizes) < LEAST_BYTES:
        return 1
    fitting = len(files) if free is None else free // (needed + _PROCESS)
    return max(1, min(len(files), _cores(), fitting))


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _unpacked(file: ProfilerFile) -> int:
    return file.bytes * (_PACKED if file.path.endswith(".gz") else 1)


def _read_guarded(path: str, part: ReadOptions, on_progress: OnProgress | None = None) -> _One:
    """Returns `read_one`, and what is wrong in the file in place of an exception."""
    try:
        recordings, diagnostics = read_one(path, part, on_progress)
    except InputError as error:
        return [], [], error.diagnostics
    return recordings, diagnostics, ()


def _read_one_of(count: int, path: str, part: ReadOptions, on_progress: OnProgress | None = None) -> _One:
    """Returns `_read_guarded` of one of so many files: of several, none holds what its host's lanes are made
    of, which may be more than all else that is kept of a file.
    """
    read = _read_guarded(path, part, on_progress)
    for recording in read[0] if count > 1 else ():
        if recording.columns.host is not None:
            recording.columns.host.lane.make()
    return read


# In a reading process: where it reports its progress, if that is shared with it.
_shared: ReadingLine | None = None


def _begin(progress: ReadingLine | None) -> None:
    """Prepares a reading process."""
    global _shared
    _shared = progress
    # Esc and Ctrl+C must end it too: a pool alone passes the interruption on, and reads on.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _read_in_process(path: str, part: ReadOptions, file_index: int) -> _One:
    return _read_guarded(path, part, None if _shared is None else partial(_shared.tell, file_index))


def _read_in_processes(
    files: Sequence[ProfilerFile], part: ReadOptions, workers: int, progress: ReadingLine
) -> Iterator[_One]:
    # Imported here: a small set starts no process.
    import multiprocessing
    import threading
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    if multiprocessing.current_process().daemon:
        # A worker of another program's pool may have no processes of its own.
        yield from (_read_one_of(len(files), file.path, part) for file in files)
        return
    # A fork while other threads run can inherit a lock that nobody releases; our own thread, which waits for
    # keys, holds none that a process takes.
    alone = (
        threading.active_count() == 1 + progress.looks_for_keys
        and "fork" in multiprocessing.get_all_start_methods()
    )
    if not alone:
        start_tracker()
    context = multiprocessing.get_context("fork" if alone else "spawn")
    try:
        with ProcessPoolExecutor(workers, context, _begin, (progress if alone else None,)) as pool:
            futures = deque(
                pool.submit(_read_in_process, file.path, part, file_index)
                for file_index, file in enumerate(files)
            )
            try:
                while futures:
                    yield futures.popleft().result()
            except BaseException:
                # The pool's own thread cancels: `map` does it in another thread at the same time, and then a
                # cancelled future cannot be told that its process ended (CPython prints the error of a
                # thread).
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool:
        message = "a process that reads ended before it was through: too little memory, or it was killed"
        raise InputError(Diagnostic("error", "reading-ended", message, files[0].path)) from None
