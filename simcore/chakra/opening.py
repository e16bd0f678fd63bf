"""Opens a set of execution traces: the columns of every rank, and what its files are."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Literal

from simcore.chakra.alike import Reader
from simcore.chakra.files import SetFiles
from simcore.chakra.nodes import Kinds, Nodes, ordered
from simcore.chakra.schema import SCHEMAS, schema_of, translated
from simcore.chakra.wire import Columns, TextTable, messages, read_columns
from simcore.diagnostics import Diagnostic, InputError
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.units import plural
from simcore.workload.opening import read_file
from simcore.workload.source import GZIP

_MOST_ERRORS = 40


class ExecutionFile(Struct, frozen=True):
    """One rank's file as it was read. packed: whether it is gzip. headed: whether its first message is
    metadata; without, the first message is a node.
    """

    rank: int
    path: str
    packed: bool
    headed: bool
    columns: Columns


class ExecutionSet(Struct, frozen=True, dict=True):
    """A set of execution traces. path: as the user gave it. prefix: names of the files up to the rank.

    files: by rank, as many as there are. missing: ranks below the highest that have none.
    table: the texts and attributes of all. schema: of `SCHEMAS`. diagnostics: what was found in reading.
    """

    path: str
    prefix: str
    files: tuple[ExecutionFile, ...]
    missing: RankSet
    table: TextTable
    schema: str
    diagnostics: tuple[Diagnostic, ...]
    kinds: Kinds

    @property
    def format(self) -> Literal["chakra"]:
        """The format as reports name it."""
        return "chakra"

    @property
    def noun(self) -> str:
        """What it is, for messages."""
        return "a set of execution traces"

    @property
    def count(self) -> int:
        """Nodes of all ranks."""
        return sum(len(file.columns) for file in self.files)

    def damage(self) -> list[Diagnostic]:
        """What is cut or damaged in the files, an error each."""
        diagnostics = []
        for file in self.files:
            if file.columns.cut is None:
                continue
            at, reason = file.columns.cut
            last = f" (node {file.columns.id[-1]} is the last that was read)" if len(file.columns) else ""
            diagnostics.append(Diagnostic("error", "damaged-trace", f"byte {at}: {reason}{last}", file.path))
        return diagnostics

    def ordered(self) -> list[Nodes]:
        """The nodes of each rank by id."""
        by_shape: dict[int, Nodes] = {}
        return [ordered(file.columns, by_shape) for file in self.files]


def open_set(set_files: SetFiles) -> ExecutionSet:
    """The set in these files. Raises InputError for one that cannot be read at all."""
    table = TextTable()
    # One file is like no other.
    reader = Reader(table) if len(set_files.by_rank) > 1 else None
    files = [_read(rank, set_files.by_rank[rank], table, reader) for rank in sorted(set_files.by_rank)]
    schema = schema_of([file.columns for file in files])
    said = []
    if schema != SCHEMAS[0]:
        files = [
            _with_columns(file, translated(read_file(file.path), file.headed, table, schema))
            for file in files
        ]
        message = f"found schema {schema} by what is on the wire (it says no version), read as such"
        said.append(Diagnostic("note", "older-schema", message, files[0].path))
    last = files[-1].rank
    there = {file.rank for file in files}
    absent = RankSet.of(rank for rank in range(last) if rank not in there)
    if len(absent):
        message = (
            f"rank{'' if len(absent) == 1 else 's'} {absent.text()} below the highest, {last}, have no file"
        )
        said.append(Diagnostic("warning", "ranks-missing", message, set_files.path))
    bare = [file for file in files if not file.headed]
    if bare:
        message = (
            f"the first message is a node, not GlobalMetadata, in {plural(len(bare), 'file')} (first "
            f"here): it is "
            "taken as a node; ASTRA-sim loses it"
        )
        said.append(Diagnostic("warning", "no-metadata", message, bare[0].path))
    return ExecutionSet(
        set_files.path, set_files.prefix, tuple(files), absent, table, schema, tuple(said), Kinds(table)
    )


def _with_columns(file: ExecutionFile, columns: Columns) -> ExecutionFile:
    """The file with other columns."""
    return ExecutionFile(file.rank, file.path, file.packed, file.headed, columns)


def _read(rank: int, path: str, table: TextTable, reader: Reader | None) -> ExecutionFile:
    packed = _begins_with_gzip(path)
    data = read_file(path)
    if data[:1] in (b"{", b"[") and path.removesuffix(".gz").endswith(".json"):
        from simcore.chakra.json_form import read_json

        return ExecutionFile(rank, path, packed, True, read_json(path, data, table))
    headed = has_metadata(data)
    first = 1 if headed else 0
    columns = read_columns(data, table, first) if reader is None else reader.columns(path, data, first)
    return ExecutionFile(rank, path, packed, headed, columns)


def has_metadata(data: bytes) -> bool:
    """Whether a file's first message is GlobalMetadata: a node begins with a number, it with a text.

    An empty one is metadata too, as it is one message of every file.
    """
    spans, _ = messages(data[: 1 << 20], most=1)
    if not spans:
        return True
    begin, end = spans[0]
    return begin == end or data[begin] & 7 == 2


def _begins_with_gzip(path: str) -> bool:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(2) == GZIP
    except OSError:
        return False


def first_errors(diagnostics: Sequence[Diagnostic]) -> InputError:
    """The error of all of these, as far as a terminal has room."""
    return InputError(*diagnostics[:_MOST_ERRORS])
