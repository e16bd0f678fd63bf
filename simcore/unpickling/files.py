"""Files that are unpickled, one a rank: which of a directory they are, their ranks and their tables."""

from __future__ import annotations

import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, Severity, printable
from simcore.records import replace
from simcore.units import plural
from simcore.unpickling.process import read_tables
from simcore.workload.formats import format_of
from simcore.workload.ignored_files import IgnoredFiles
from simcore.workload.opening import read_beginning, read_file
from simcore.workload.source import GZIP, MOST_BYTES

_HEAD_BYTES, _FIRST_FILES = 1 << 16, 8
_DIGITS = re.compile(r"(?<![0-9])[0-9]{1,7}(?![0-9])")
# What a name may end with behind the rank.
_ENDINGS = (".gz", ".pkl", ".pickle", ".json", ".txt", ".bin", ".dump")
_LISTED = 8


def begins_with_pickles(path: str) -> bool:
    """Returns whether any of the first files of a directory begins as a pickle does. Most recordings of other
    kinds do not: then nobody has to look at all of its files for pickles first.
    """
    try:
        for name in sorted(os.listdir(path))[:_FIRST_FILES]:
            file_path = os.path.join(path, name)
            if os.path.isfile(file_path):
                with open(file_path, "rb") as file:
                    if file.read(1) == b"\x80":
                        return True
    except OSError:
        pass
    return False


def find_files(path: str, kind: str) -> tuple[list[str], IgnoredFiles]:
    """Returns (the names of the files in a directory whose format is of this kind, the other files in it)."""
    names: list[str] = []
    others = IgnoredFiles()
    try:
        listed = sorted(os.listdir(path))
    except OSError:
        return names, others
    for name in listed:
        file_path = os.path.join(path, name)
        head = b""
        try:
            if not stat.S_ISREG(os.stat(file_path).st_mode):
                continue
            with open(file_path, "rb") as file:
                head = file.read(_HEAD_BYTES)
            if head.startswith(GZIP):
                head = read_beginning(file_path)[:_HEAD_BYTES]
        except (OSError, InputError):
            pass
        file_format = format_of(head)
        if file_format is not None and file_format.kind == kind:
            names.append(name)
        else:
            others.add(name, head)
    return names, others


def numbers_in(text: str) -> list[int]:
    """Returns the numbers of at most 7 digits in a text, in its order."""
    return [int(digits) for digits in _DIGITS.findall(text)]


def rank_of_name(name: str) -> int | None:
    """Returns the rank that a file's name ends with: the last number in it; None without one."""
    stem = name
    while stem.endswith(_ENDINGS):
        stem = stem[: stem.rindex(".")]
    return next(reversed(numbers_in(stem)), None)


def _bytes_or_path(path: str) -> bytes | str:
    """Returns what is read of a file here, or its path, where the process that unpickles can read it."""
    try:
        with open(path, "rb") as file:
            is_plain = file.read(len(GZIP)) != GZIP and os.fstat(file.fileno()).st_size <= MOST_BYTES
    except OSError:
        is_plain = False
    return path if is_plain else read_file(path)


class FileReader(ABC):
    """Reads files of one kind.

    path: the file, or the directory of the files. diagnostics: what is reported of those that are read;
    errors: of the others.
    """

    columns: Path
    """The file that makes their tables, as `worker.py` has it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.diagnostics: list[Diagnostic] = []
        self.errors: list[Diagnostic] = []

    def say(self, severity: Severity, code: str, message: str, file: str = "") -> None:
        self.diagnostics.append(Diagnostic(severity, code, message, file or self.path))

    def say_repeated(self, rank: int, first: str, second: str) -> None:
        message = f"rank {rank} is in {printable(first, 80)} and {printable(second, 80)}: the first is shown"
        self.say("warning", "repeated-rank", message)

    def say_wrong(self, path: str, counts: dict[str, int]) -> None:
        """Reports the values that are of another kind than expected. counts: how many there are by key."""
        for key, count in counts.items():
            message = f"{printable(key)}: {plural(count, 'value')} of another kind than expected; ignored"
            self.say("warning", "bad-value", message, path)

    @abstractmethod
    def refuse(self, path: str, why: str) -> None:
        """Reports a file that cannot be read."""

    def files_by_rank(self, names: Sequence[str]) -> list[tuple[int | None, str]]:
        """Returns (rank, path) of each file of the directory, those whose names have no rank last; reports
        repeated ranks.
        """
        files: list[tuple[int | None, str]] = []
        first_of: dict[int, str] = {}
        for name in sorted(names, key=lambda name: (len(name), name)):
            rank = rank_of_name(name)
            if rank is not None and first_of.setdefault(rank, name) is not name:
                self.say_repeated(rank, first_of[rank], name)
            else:
                files.append((rank, os.path.join(self.path, name)))
        return sorted(files, key=lambda file: (file[0] is None, file[0] or 0))

    def tables_of(
        self, files: Sequence[tuple[int | None, str]], data: bytes | None = None
    ) -> Iterator[tuple[int | None, str, dict[str, Any]]]:
        """Yields (rank by its name, path, table) of each file that can be read, and reports the others.

        data: the bytes of the only file, where they are read already.
        """
        unread: dict[int, InputError] = {}

        def file_data() -> Iterator[bytes | str]:
            for index, (_, path) in enumerate(files):
                try:
                    yield _bytes_or_path(path) if data is None else data
                except InputError as error:
                    unread[index] = error
                    yield b""

        tables = read_tables(self.columns, file_data(), len(files))
        for index, ((rank, path), table) in enumerate(zip(files, tables, strict=True)):
            if index in unread:
                self.errors += unread[index].diagnostics
            elif isinstance(table, str):
                self.refuse(path, table)
            else:
                yield rank, path, table

    def report_unread(self, has_read: bool) -> None:
        """Reports the files that cannot be read as left out. Raises InputError where none was read."""
        if not has_read:
            raise InputError(*self.errors[:_LISTED])
        self.diagnostics += [
            replace(one, severity="warning", message=f"{one.message}; left out") for one in self.errors
        ]
