"""Reads the files of a set; those that differ only in groups, partners and tags are read once.

Of 1,024 ranks most have the same nodes, but for the name of their group and the rank that they send to. Such
files have the same bytes at the same places outside of the values of `pg_name`, `comm_src`, `comm_dst` and
`comm_tag`, and values of equal length: then every number and text of one stands where it stands in the other,
and only the attributes with these values are other ones.
"""

from __future__ import annotations

import re
from array import array
from hashlib import blake2b

from simcore.chakra.wire import Columns, TextTable, WireError, messages, places_of, read_columns
from simcore.records import NamedTuple, replace
from simcore.workload.opening import read_file

# Names of groups up to this are told apart; a file with a longer one is read by itself.
_LONGEST = 16
_NAMES = b"|".join(re.escape(bytes((size,))) + b".{%d}" % size for size in range(1, _LONGEST + 1))
# An attribute as protocol buffers write it: its name, then one value; of whole numbers any kind of varint.
_OWN = re.compile(
    b"(\n(?:\x07pg_name\xea\x01(?:" + _NAMES + b")"
    b"|\x08comm_(?:src|dst|tag)[8HXhx][\x80-\xff]{0,9}[\x00-\x7f]))",
    re.DOTALL,
)
_ATTRIBUTES = 10


class _Read(NamedTuple):
    """The first file of its kind. own: its values, each once. sets: the attributes of nodes that have one."""

    path: str
    first: int
    columns: Columns
    own: tuple[bytes, ...]
    sets: dict[int, tuple[bytes, ...]]


class Reader:
    """Reads the files of one set into columns that share a table."""

    def __init__(self, table: TextTable) -> None:
        self._table = table
        self._read: dict[tuple[object, ...], _Read | None] = {}
        self._unchecked: dict[tuple[object, ...], _Read] = {}
        self._shapes: dict[bytes, Columns] = {}

    def columns(self, path: str, data: bytes, first: int) -> Columns:
        """The nodes of a file from its `first`-th message on."""
        parts = _OWN.split(data)
        values: dict[bytes, int] = {}
        pattern = array("i", [values.setdefault(value, len(values)) for value in parts[1::2]])
        rest = parts[::2]
        digest = blake2b(b"".join(rest), digest_size=16)
        digest.update(array("q", map(len, rest)).tobytes())
        digest.update(pattern.tobytes())
        own = tuple(values)
        # The last byte of what is before the value differs for none of one name and kind.
        key = (digest.digest(), first, tuple((len(value), value[:11]) if value[1] == 8 else len(value)
                                             for value in own))  # fmt: skip
        unchecked = self._unchecked.pop(key, None)
        if unchecked is not None:
            self._read[key] = unchecked if self._may_share(unchecked) else None
        known = self._read.get(key)
        if known is not None:
            return self._shared(known, own)
        nodes = self._with_shape(read_columns(data, self._table, first))
        if key not in self._read and nodes.shape >= 0:
            self._unchecked[key] = _Read(path, first, nodes, own, self._sets(nodes, set(own)))
        return nodes

    def _with_shape(self, columns: Columns) -> Columns:
        """The columns, with those of an earlier file where they are equal; damaged ones stay alone."""
        if columns.cut is not None or columns.others:
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

    def _sets(self, columns: Columns, own: set[bytes]) -> dict[int, tuple[bytes, ...]]:
        numbers = set(columns.attributes)
        return {
            number: blobs
            for blobs, number in self._table.attributes.items()
            if number in numbers and not own.isdisjoint(blobs)
        }

    def _may_share(self, read: _Read) -> bool:
        """Whether each value that was found is a whole attribute of a node, not a part of something else."""
        data = read_file(read.path)
        spans, _ = messages(data)
        spans = spans[read.first :]
        index = 0
        there: set[tuple[int, int]] = set()
        for match in _OWN.finditer(data):
            begin, end = match.span()
            while index < len(spans) and spans[index][1] < end:
                index += 1
                there = set()
            if index == len(spans) or spans[index][0] > begin:
                return False
            if not there:
                try:
                    there = set(places_of(data, *spans[index], _ATTRIBUTES))
                except WireError:
                    return False
            if (begin, end) not in there:
                return False
        return True

    def _shared(self, read: _Read, own: tuple[bytes, ...]) -> Columns:
        """The columns of a file that has other values than `read`."""
        instead = dict(zip(read.own, own, strict=True))
        numbers = self._table.attributes
        to: dict[int, int] = {}
        for number, blobs in read.sets.items():
            mine = tuple(instead.get(blob, blob) for blob in blobs)
            to[number] = numbers.setdefault(mine, len(numbers))
        attributes = array("i", [to.get(number, number) for number in read.columns.attributes])
        return replace(read.columns, attributes=attributes)
