"""A file of results: each point a line, appended and flushed, written by one process at a time; behind the
last one of a sweep that has ended what is known of the best (`best_line.py`).

The lock is the system's own on the file (flock): it ends with its owner, however that ended. A last line
without its end is what a killed writer left: it is dropped, and a message says so.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.sweeping.best_line import BestLine, decode_best, encode_best, is_best_line
from simcore.sweeping.outcome import Outcome
from simcore.sweeping.point import Point, encode_point, is_sweep
from simcore.sweeping.point_lines import PointParser
from simcore.units import plural
from simcore.workload.opening import open_regular
from simcore.workload.source import MOST_BYTES, too_large


class ResultsReader:
    """Reads the points of a file, and those that arrive while another process writes it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.best: BestLine | None = None
        """What is known of the best points, where no point came after it."""
        self._sweep = ""
        self._read_bytes = 0
        self._line_count = 0
        self._parser = PointParser(path)
        self._line_of: dict[int, int] = {}

    @property
    def unread_bytes(self) -> int:
        """Bytes after the last whole line: one that is being written, or whose writer was killed."""
        return max(os.path.getsize(self.path) - self._read_bytes, 0)

    @property
    def whole_bytes(self) -> int:
        """Bytes of the whole lines."""
        return self._read_bytes

    def read_new(self) -> list[Point]:
        """Returns the points of the lines that were added since the last call.

        Raises `InputError` where the file cannot be read, and for a line that is no point.
        """
        try:
            with open_regular(self.path) as file:
                file.seek(self._read_bytes)
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise _build_error(self.path, "read", error) from None
        if len(data) > MOST_BYTES:
            raise too_large(self.path, MOST_BYTES)
        end = data.rfind(b"\n") + 1
        points = []
        for line in data[:end].splitlines():
            self._line_count += 1
            if is_best_line(line):
                self._take_best(line)
            elif line.strip():
                points.append(self._parser.parse(line, self._line_count))
                self._check_once(points[-1].index)
                self._sweep, self.best = points[-1].sweep, None
        self._read_bytes += end
        return points

    def _take_best(self, line: bytes) -> None:
        try:
            best = decode_best(line)
            if best.sweep != self._sweep:
                raise UsageError(f"found sweep {printable(best.sweep, 40)}, expected {self._sweep}")
        except UsageError as error:
            message = str(error)
            raise InputError(
                Diagnostic("error", "sweep-line", message, self.path, self._line_count)
            ) from None
        self.best = best

    def _check_once(self, index: int) -> None:
        """Raises `InputError` for a point of the current line that an earlier line has."""
        earlier = self._line_of.setdefault(index, self._line_count)
        if earlier != self._line_count:
            message = f"found point {index} again, which is in line {earlier}: a sweep writes each once"
            raise InputError(Diagnostic("error", "sweep-line", message, self.path, self._line_count))


class ResultsFile:
    """A file that this process alone writes.

    earlier_points: the points that it had. dropped: bytes of a half-written last line. is_new: whether there
    was no file.
    """

    def __init__(self, path: str, sweep: str, resume: bool) -> None:
        """sweep: the hash of the sweep. resume: whether an existing file is continued.

        Raises `UsageError` where another process writes the file, where it exists and is not to be continued,
        and where it is of another sweep; `InputError` where the system refuses.
        """
        # Not at the top: Windows has none, and there only this class is missing.
        import fcntl

        self.path = path
        self.dropped = 0
        self.earlier_points: list[Point] = []
        self.is_new = not os.path.lexists(path)
        try:
            if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
                raise UsageError(f"{printable(path)} is no regular file: name a file to write")
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except (OSError, ValueError) as error:
            raise _build_error(path, "written", error) from None
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{printable(path)}: another process writes this file; wait until it has ended, or name "
                    "another file"
                ) from None
            except OSError as error:
                raise _build_error(path, "locked", error) from None
            if os.fstat(self._file).st_size:
                self._resume(sweep, resume)
        except BaseException:
            os.close(self._file)
            raise

    def _resume(self, sweep: str, resume: bool) -> None:
        if not resume:
            raise UsageError(
                f"{printable(self.path)} is there already: --resume goes on with it, or name another file"
            )
        reader = ResultsReader(self.path)
        self.earlier_points = reader.read_new()
        if not self.earlier_points and not is_sweep(_read_beginning(self.path)):
            raise UsageError(f"{printable(self.path)}: found no results of a sweep: name another file")
        for point in self.earlier_points:
            if point.sweep != sweep:
                raise UsageError(
                    f"{printable(self.path)} is of another sweep ({point.sweep}, this one is {sweep}): other "
                    "parameters, another input or another version of wltui; name another file"
                )
        indices = [point.index for point in self.earlier_points]
        if len(set(indices)) < len(indices):
            raise UsageError(f"{printable(self.path)}: a point is there twice; --merge makes one file of it")
        self.dropped = reader.unread_bytes
        if self.dropped:
            try:
                os.ftruncate(self._file, reader.whole_bytes)
            except OSError as error:
                raise _build_error(self.path, "written", error) from None

    def append(self, point: Point) -> None:
        """Writes a line. Raises `InputError` where that fails (a full disk), and leaves no half line."""
        line = encode_point(point)
        before = os.fstat(self._file).st_size
        written_bytes = 0
        try:
            while written_bytes < len(line):
                written_bytes += os.write(self._file, line[written_bytes:])
        except OSError as error:
            if written_bytes:
                os.ftruncate(self._file, before)
            raise _build_error(self.path, "written", error) from None

    def close(self) -> None:
        """Ends writing, and with it the lock. A new file without any point is removed."""
        if self._file >= 0:
            if self.is_new and not os.fstat(self._file).st_size:
                os.unlink(self.path)
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def merge_files(paths: Sequence[str]) -> list[Point]:
    """Returns the points of several files of one sweep, in their order. A point that two files have counts
    once.

    Raises `UsageError` for files of several sweeps, and for two results of one point that differ.
    """
    by_index: dict[int, Point] = {}
    first: Point | None = None
    for path in paths:
        for point in ResultsReader(path).read_new():
            first = first or point
            if point.sweep != first.sweep:
                raise UsageError(
                    f"{printable(path)} is of another sweep ({point.sweep}) than {printable(paths[0])} "
                    f"({first.sweep}): only parts of one can be put together"
                )
            other = by_index.setdefault(point.index, point)
            if other != point:
                if other.is_run == point.is_run:
                    raise UsageError(
                        f"{printable(path)}: point {point.index} is another one than in a file before it"
                    )
                # One part left out a point that another one ran.
                by_index[point.index] = point if point.is_run else other
    return [by_index[index] for index in sorted(by_index)]


def write_all(path: str, points: Sequence[Point], force: bool, outcome: Outcome | None = None) -> int:
    """Writes all points as a new file at once, and returns its bytes. Raises as `save` does. outcome: that of
    a sweep that has ended.
    """
    from simcore.render.export import save

    lines = [encode_point(point) for point in points]
    if points and outcome is not None:
        lines.append(encode_best(points[0].sweep, outcome))
    return save(path, lines, force)


def append_best(path: str, sweep: str, outcome: Outcome) -> None:
    """Appends to the file of a sweep that has ended what is known of its best points, unless its last line
    states that. Raises `InputError` where the system refuses, or another process writes the file.
    """
    # Not at the top: Windows has none.
    import fcntl

    line = encode_best(sweep, outcome)
    if not line:
        return
    try:
        with open(path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Reading all points again would take 20 s and 400 MB of 90,000.
            file.seek(-min(len(line), file.seek(0, os.SEEK_END)), os.SEEK_END)
            if file.read() != line:
                file.write(line)
    except OSError as error:
        raise _build_error(path, "written", error) from None


def opened_words(file: ResultsFile | None, resume: bool) -> str:
    """Returns the message on the file of a sweep when the sweep starts; "" where there is none."""
    if file is None:
        return ""
    if file.dropped:
        return dropped_words(file.path, file.dropped)
    if resume and file.is_new:
        return f"{printable(file.path)} is not there: nothing to go on with, the sweep begins"
    return ""


def dropped_words(path: str, dropped: int) -> str:
    """Returns the message on a half-written last line."""
    return f"{printable(path)}: the last line was half written: {plural(dropped, 'byte')} dropped"


def _read_beginning(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def _build_error(path: str, what: str, error: Exception) -> InputError:
    why = f"the file cannot be {what}: {getattr(error, 'strerror', None) or error}"
    if what == "read":
        return InputError(Diagnostic("error", "unreadable-file", why, path))
    return InputError(Diagnostic("error", "unwritable-file", why, path))
