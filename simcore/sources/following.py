"""What is new in a file or a directory that a running job writes to: a trainer's log, traces of ranks, dumps.

Of a log the new bytes alone are read. A directory, and a file that is no log, is opened again once its files
have not changed from one look to the next: a file that is being written is waited for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simcore.diagnostics import InputError, UsageError, printable
from simcore.parameters import OpeningOptions
from simcore.records import NamedTuple, replace
from simcore.sources.inputs import Opened, open_input
from simcore.workload import Workload
from simcore.workload.formats import format_of
from simcore.workload.formats.training_log import KEY, LogReader
from simcore.workload.opening import read_beginning
from simcore.workload.source import GZIP

if TYPE_CHECKING:
    from simcore.measured import MeasuredRun

# Traces lie in folders of a job, so deep at most (`kineto.sets`); more files than these are no job.
_DEPTH, _MOST_FILES = 4, 100_000
# A file that changes at each of so many looks is opened as it is: the rank that writes it may never pause.
_MOST_CHANGES = 10
_BLOCK_BYTES = 1 << 24
# The beginning of a log by which another one in its place is noticed.
_BEGINNING = 256


class _State(NamedTuple):
    """The state of a file."""

    path: str
    bytes: int
    written_ns: int
    inode: int


@dataclass(slots=True)
class _OpenLog:
    """A log of which a part is read."""

    reader: LogReader
    inode: int = 0
    offset: int = 0
    beginning: bytes = b""


class Follower:
    """The file or directory at `path`. waiting: why there is nothing to show yet, or nothing new."""

    def __init__(self, path: str, options: OpeningOptions) -> None:
        self.path, self.options = path, options
        self.waiting = ""
        self._shown_states: tuple[_State, ...] | None = None
        self._seen_states: tuple[_State, ...] | None = None
        self._changes = 0
        self._log: _OpenLog | None = None

    def forget(self) -> None:
        """Lets the next look open what is there, whether or not it is new."""
        self._shown_states = None

    def look(self, label: str | None = None) -> Opened | None:
        """Returns what is there, if it is new; None otherwise. label: of the run among those of the
        directory, None for the one that the options choose.

        Raises UsageError for what does not grow: a workload, a model.
        """
        states = find_states(self.path)
        if not states:
            self.waiting = f"{printable(self.path, 60)} is not there yet"
            self._log = None
            return None
        if states == self._shown_states:
            return None
        options = self.options if label is None else replace(self.options, run=label, step=None)
        try:
            opened = self._open(states, options)
        except InputError as error:
            self.waiting = error.diagnostics[0].text()
            self._shown_states = states
            return None
        except OSError as error:
            # It went away, or may not be read: the next look tries again.
            self.waiting = f"{printable(self.path, 60)} cannot be read: {error.strerror or error}"
            return None
        if opened is not None:
            self.waiting = ""
        return opened

    def _open(self, states: tuple[_State, ...], options: OpeningOptions) -> Opened | None:
        if self._is_log():
            run = self._read_log(options)
            self._shown_states = states
            return run
        is_changing = self._seen_states is not None and states != self._seen_states
        self._changes = self._changes + 1 if is_changing else 0
        self._seen_states = states
        if is_changing and self._changes < _MOST_CHANGES:
            return None
        self._changes = 0
        opened = open_input(self.path, options)
        if isinstance(opened, Workload):
            raise UsageError(
                f"--follow: found {opened.noun}, {printable(self.path, 60)}, expected what a running job "
                "writes: a trainer's log, or a directory of traces"
            )
        self._shown_states = states
        return opened

    def _is_log(self) -> bool:
        if os.path.isdir(self.path):
            return False
        if self._log is not None:
            return True
        with open(self.path, "rb") as file:
            if file.read(len(GZIP)) == GZIP:
                return False
        beginning = read_beginning(self.path)
        file_format = format_of(beginning)
        if file_format is None or file_format.key != KEY:
            return False
        self._log = _OpenLog(LogReader(self.path))
        return True

    def _read_log(self, options: OpeningOptions) -> MeasuredRun | None:
        """Returns the steps of the log, if there are new ones; what stands in its place now is read anew."""
        log = self._log
        assert log is not None
        with open(self.path, "rb") as file:
            beginning = file.read(_BEGINNING)
            inode, is_longer = os.fstat(file.fileno()).st_ino, file.seek(0, os.SEEK_END) >= log.offset
            if not is_longer or log.inode not in (0, inode) or not beginning.startswith(log.beginning):
                log = self._log = _OpenLog(LogReader(self.path))
            log.inode = inode
            steps = log.reader.steps
            file.seek(log.offset)
            while data := file.read(_BLOCK_BYTES):
                log.reader.feed(data)
                log.offset += len(data)
            log.beginning = beginning[: log.offset]
        if not log.reader.steps:
            self.waiting = f"{printable(self.path, 60)} has no step yet"
            return None
        if log.reader.steps == steps:
            return None
        from simcore.kineto.opening import open_spans

        return open_spans(self.path, KEY, *log.reader.table(), options)


def find_states(path: str) -> tuple[_State, ...]:
    """Returns the states of the file at `path`, or of the files in the directory, by path; none where there
    is none.
    """
    states: list[_State] = []
    try:
        if not os.path.isdir(path):
            return (_state(path, os.stat(path)),)
        _add_states(path, states, _DEPTH)
    except (OSError, ValueError):
        # It went away while it was looked at.
        return tuple(states)
    return tuple(sorted(states))


def _add_states(folder: str, states: list[_State], depth: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(states) >= _MOST_FILES:
                return
            if entry.is_dir():
                if depth:
                    _add_states(entry.path, states, depth - 1)
            else:
                states.append(_state(entry.path, entry.stat()))


def _state(path: str, status: os.stat_result) -> _State:
    return _State(path, status.st_size, status.st_mtime_ns, status.st_ino)
