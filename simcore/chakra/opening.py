"""Opens a set of execution traces: the columns of every rank, the kind of its files, and what is inconsistent
in them; files that differ only in groups, partners and tags are read once.

Of 1,024 ranks most have the same nodes, except for the name of their group and the rank that they send to.
Such files have the same bytes at the same offsets outside of the values of `pg_name`, `comm_src`, `comm_dst`
and `comm_tag`, and values of equal length: then every number and text has the same offset in both, and only
the attributes with these values differ.
"""

from __future__ import annotations

import os
import re
import stat
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal

from simcore.chakra.files import SetFiles
from simcore.chakra.nodes import Kinds, Nodes, sort_nodes_once, topological_order
from simcore.chakra.schema import SCHEMAS, schema_of, translate
from simcore.chakra.wire import Columns, TextTable, WireError, find_field_spans, messages, read_columns
from simcore.diagnostics import Diagnostic, InputError
from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct, replace
from simcore.units import plural
from simcore.workload.formats.protobuf import is_delimited
from simcore.workload.opening import read_file
from simcore.workload.source import GZIP

# Names of groups are distinguished up to this length; a file with a longer one is read by itself.
_LONGEST = 16
_NAMES = b"|".join(re.escape(bytes((size,))) + b".{%d}" % size for size in range(1, _LONGEST + 1))
# An attribute in the encoding of protocol buffers: its name, then one value; whole numbers of any varint
# kind.
_OWN_VALUE = re.compile(
    b"(\n(?:\x07pg_name\xea\x01(?:" + _NAMES + b")"
    b"|\x08comm_(?:src|dst|tag)[8HXhx][\x80-\xff]{0,9}[\x00-\x7f]))",
    re.DOTALL,
)
_ATTRIBUTES = 10
# A message is told among so many bytes.
_HEAD_BYTES = 1 << 14


class _FirstRead(NamedTuple):
    """The first file of its kind."""

    path: str
    first: int
    columns: Columns
    own: tuple[bytes, ...]
    """Its values that others may replace, each once."""
    sets: dict[int, tuple[bytes, ...]]
    """The attributes of nodes that have such a value, by set id."""


class Reader:
    """Reads the files of one set into columns that share a table."""

    def __init__(self, table: TextTable) -> None:
        self._table = table
        self._read: dict[tuple[object, ...], _FirstRead | None] = {}
        self._unchecked: dict[tuple[object, ...], _FirstRead] = {}
        self._shapes: dict[bytes, Columns] = {}

    def columns(self, path: str, data: bytes, first: int) -> Columns:
        """Returns the nodes of a file from message `first` on."""
        parts = _OWN_VALUE.split(data)
        values: dict[bytes, int] = {}
        pattern = array("i", [values.setdefault(value, len(values)) for value in parts[1::2]])
        rest = parts[::2]
        digest = blake2b(b"".join(rest), digest_size=16)
        digest.update(array("q", map(len, rest)).tobytes())
        digest.update(pattern.tobytes())
        own = tuple(values)
        # The last byte before the value is the same for all of one name and kind.
        key = (digest.digest(), first, tuple((len(value), value[:11]) if value[1] == 8 else len(value)
                                             for value in own))  # fmt: skip
        unchecked = self._unchecked.pop(key, None)
        if unchecked is not None:
            self._read[key] = unchecked if self._may_share(unchecked) else None
        first_read = self._read.get(key)
        if first_read is not None:
            return self._share_columns(first_read, own)
        nodes = self._with_shape(read_columns(data, self._table, first))
        if key not in self._read and nodes.shape >= 0:
            self._unchecked[key] = _FirstRead(path, first, nodes, own, self._used_sets(nodes, set(own)))
        return nodes

    def _with_shape(self, columns: Columns) -> Columns:
        """Returns the columns, shared with those of an earlier file where equal; damaged ones are not
        shared.
        """
        if columns.damage is not None or columns.others:
            return columns
        digest = blake2b(digest_size=16)
        for column in (columns.id, columns.type, columns.duration, columns.name, columns.data,
                       columns.data_to, columns.ctrl, columns.ctrl_to):  # fmt: skip
            raw = bytes(column) if isinstance(column, bytearray) else column.tobytes()
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
        key = digest.digest()
        same = self._shapes.get(key)
        if same is None:
            columns.shape = len(self._shapes)
            self._shapes[key] = columns
            return columns
        return replace(same, attributes=columns.attributes, at=columns.at)

    def _used_sets(self, columns: Columns, own: set[bytes]) -> dict[int, tuple[bytes, ...]]:
        used_ids = set(columns.attributes)
        return {
            set_id: blobs
            for blobs, set_id in self._table.attributes.items()
            if set_id in used_ids and not own.isdisjoint(blobs)
        }

    def _may_share(self, read: _FirstRead) -> bool:
        """Returns whether each value found is a whole attribute of a node, not a part of something else."""
        data = read_file(read.path)
        spans, _ = messages(data)
        spans = spans[read.first :]
        index = 0
        there: set[tuple[int, int]] = set()
        for match in _OWN_VALUE.finditer(data):
            begin, end = match.span()
            while index < len(spans) and spans[index][1] < end:
                index += 1
                there = set()
            if index == len(spans) or spans[index][0] > begin:
                return False
            if not there:
                try:
                    there = set(find_field_spans(data, *spans[index], _ATTRIBUTES))
                except WireError:
                    return False
            if (begin, end) not in there:
                return False
        return True

    def _share_columns(self, read: _FirstRead, own: tuple[bytes, ...]) -> Columns:
        """Returns the columns of a file that has other values than `read`."""
        instead = dict(zip(read.own, own, strict=True))
        set_ids = self._table.attributes
        to: dict[int, int] = {}
        for set_id, blobs in read.sets.items():
            mine = tuple(instead.get(blob, blob) for blob in blobs)
            to[set_id] = set_ids.setdefault(mine, len(set_ids))
        attributes = array("i", [to.get(set_id, set_id) for set_id in read.columns.attributes])
        return replace(read.columns, attributes=attributes)


_MOST_ERRORS = 40


class ExecutionFile(Struct, frozen=True):
    """The file of one rank as it was read."""

    rank: int
    path: str
    packed: bool
    """Whether it is gzip."""
    headed: bool
    """Whether its first message is metadata; otherwise it is a node."""
    columns: Columns


class ExecutionSet(Struct, frozen=True, dict=True):
    """A set of execution traces."""

    path: str
    """As the user stated it."""
    prefix: str
    """Names of the files up to the rank."""
    files: tuple[ExecutionFile, ...]
    """By rank, those that there are."""
    missing: RankSet
    """Ranks below the highest that have no file."""
    table: TextTable
    """The texts and attributes of all files."""
    schema: str
    """One of `SCHEMAS`."""
    diagnostics: tuple[Diagnostic, ...]
    """Those of reading."""
    kinds: Kinds

    @property
    def format(self) -> str:
        """The format as reports name it."""
        return "chakra"

    @property
    def source(self) -> Literal["executed"]:
        """The kind of run that this file makes."""
        return "executed"

    @property
    def noun(self) -> str:
        """The noun for it in messages."""
        return "a set of execution traces"

    @property
    def count(self) -> int:
        """The number of nodes of all ranks."""
        return sum(len(file.columns) for file in self.files)

    def damage(self) -> list[Diagnostic]:
        """Returns an error for each file that is truncated or damaged."""
        diagnostics = []
        for file in self.files:
            if file.columns.damage is None:
                continue
            at, reason = file.columns.damage
            last = f" (node {file.columns.id[-1]} is the last that was read)" if len(file.columns) else ""
            diagnostics.append(Diagnostic("error", "damaged-trace", f"byte {at}: {reason}{last}", file.path))
        return diagnostics

    def nodes_by_rank(self) -> list[Nodes]:
        """Returns the nodes of each rank by id."""
        by_shape: dict[int, Nodes] = {}
        return [sort_nodes_once(file.columns, by_shape) for file in self.files]


def open_set(set_files: SetFiles) -> ExecutionSet:
    """Returns the set in these files. Raises InputError for one that cannot be read at all."""
    table = TextTable()
    # A single file has no other to share with.
    reader = Reader(table) if len(set_files.by_rank) > 1 else None
    files = [_read(rank, set_files.by_rank[rank], table, reader) for rank in sorted(set_files.by_rank)]
    schema = schema_of([file.columns for file in files])
    diagnostics = []
    if schema != SCHEMAS[0]:
        files = [
            _with_columns(file, translate(read_file(file.path), file.headed, table, schema)) for file in files
        ]
        message = f"found schema {schema} by what is on the wire (it says no version), read as such"
        diagnostics.append(Diagnostic("note", "older-schema", message, files[0].path))
    last = files[-1].rank
    there = {file.rank for file in files}
    absent = RankSet.of(rank for rank in range(last) if rank not in there)
    if len(absent):
        message = (
            f"rank{'' if len(absent) == 1 else 's'} {absent.text()} below the highest, {last}, have no file"
        )
        diagnostics.append(Diagnostic("warning", "ranks-missing", message, set_files.path))
    bare = [file for file in files if not file.headed]
    if bare:
        message = (
            f"the first message is a node, not GlobalMetadata, in {plural(len(bare), 'file')} (first "
            f"here): it is "
            "taken as a node; ASTRA-sim loses it"
        )
        diagnostics.append(Diagnostic("warning", "no-metadata", message, bare[0].path))
    return ExecutionSet(
        set_files.path,
        set_files.prefix,
        tuple(files),
        absent,
        table,
        schema,
        tuple(diagnostics),
        Kinds(table),
    )


def _with_columns(file: ExecutionFile, columns: Columns) -> ExecutionFile:
    """Returns a copy of the file with its columns replaced."""
    return ExecutionFile(file.rank, file.path, file.packed, file.headed, columns)


def _read(rank: int, path: str, table: TextTable, reader: Reader | None) -> ExecutionFile:
    packed = _begins_with_gzip(path)
    data = read_file(path)
    may_be_json = not path.removesuffix(".gz").endswith((".et", ".eg")) and data.lstrip()[:1] in (b"{", b"[")
    if may_be_json and not is_delimited(data[:_HEAD_BYTES]):
        from simcore.chakra.json_form import read_json

        return ExecutionFile(rank, path, packed, True, read_json(path, data, table))
    headed = has_metadata(data)
    first = 1 if headed else 0
    columns = read_columns(data, table, first) if reader is None else reader.columns(path, data, first)
    return ExecutionFile(rank, path, packed, headed, columns)


def has_metadata(data: bytes) -> bool:
    """Returns whether a file's first message is GlobalMetadata: a node begins with a number, it with a text.

    An empty message is metadata too, as it is one message of every file.
    """
    spans, _ = messages(data[: 1 << 20], most=1)
    if not spans:
        return True
    begin, end = spans[0]
    return begin == end or data[begin] & 7 == 2


def _begins_with_gzip(path: str) -> bool:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return False
        with open(path, "rb") as file:
            return file.read(2) == GZIP
    except OSError:
        return False


def first_errors(diagnostics: Sequence[Diagnostic]) -> InputError:
    """Returns one error for these, at most as many as a terminal has room for."""
    return InputError(*diagnostics[:_MOST_ERRORS])


_OF_A_FILE = 8
_LISTED = 8


class NodeOrder(NamedTuple):
    """The nodes of a set in an order in which they can run."""

    nodes: list[Nodes]
    """By rank, by id."""
    orders: list[list[int]]
    """By rank the indices of its nodes, each after those that it waits for."""
    errors: list[Diagnostic]
    """What keeps the set from running."""


def find_structure(traces: ExecutionSet) -> NodeOrder:
    """Returns the nodes of a set, and an error for what is truncated, damaged, missing, duplicate or in a
    circle.
    """
    errors = traces.damage()
    if len(traces.missing):
        message = f"rank {traces.missing.text()}: there is no such file"
        errors.append(Diagnostic("error", "ranks-missing", message, traces.path))
    nodes = traces.nodes_by_rank()
    orders: list[list[int]] = []
    by_shape: dict[int, list[int]] = {}
    for file, file_nodes in zip(traces.files, nodes, strict=True):
        errors += [
            Diagnostic("error", problem.code, f"byte {problem.at}: {problem.message}", file.path)
            for problem in file_nodes.problems[:_OF_A_FILE]
        ]
        if not len(file_nodes):
            errors.append(Diagnostic("error", "no-nodes", "found no node, expected at least one", file.path))
        shape = file_nodes.columns.shape
        same = by_shape.get(shape)
        if same is None:
            same = topological_order(file_nodes)
            if shape >= 0 and not file_nodes.problems:
                by_shape[shape] = same
        orders.append(same)
        circle = _find_circle(file_nodes, orders[-1])
        if circle:
            names = ", ".join(str(file_nodes.id[node]) for node in circle[:_LISTED])
            names += f" and {len(circle) - _LISTED} more" if len(circle) > _LISTED else ""
            at = file_nodes.columns.at[file_nodes.row[circle[0]]]
            verb = "waits for itself" if len(circle) == 1 else "wait for each other in a circle"
            noun = "node" if len(circle) == 1 else "nodes"
            errors.append(Diagnostic("error", "node-cycle", f"byte {at}: {noun} {names} {verb}", file.path))
    return NodeOrder(nodes, orders, errors)


def _find_circle(nodes: Nodes, there: Sequence[int]) -> list[int]:
    """Returns the indices of a circle of nodes that wait for each other, [] where `there` has all of them."""
    if len(there) == len(nodes):
        return []
    left = set(range(len(nodes))).difference(there)
    node = min(left)
    position_of: dict[int, int] = {}
    walk: list[int] = []
    while node not in position_of:
        position_of[node] = len(walk)
        walk.append(node)
        node = next(parent for parent in (*nodes.data[node], *nodes.ctrl[node]) if parent in left)
    return walk[position_of[node] :]
