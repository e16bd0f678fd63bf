"""The attributes of nodes: a name, and a value of one of 26 kinds. (Chakra schema 0.0.4, AttributeProto.)"""

from __future__ import annotations

import struct
from typing import Any

from simcore.chakra.wire import WireError, parse_fields, parse_packed
from simcore.records import NamedTuple

# Field number -> kind of the single values; the next field number is the list of that kind.
_KINDS = {
    3: "double", 5: "float", 7: "int32", 9: "int64", 11: "uint32", 13: "uint64", 15: "sint32", 17: "sint64",
    19: "fixed32", 21: "fixed64", 23: "sfixed32", 25: "sfixed64", 27: "bool", 29: "string", 31: "bytes",
}  # fmt: skip
INTEGERS = frozenset((
    "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64",
    "bool",
))  # fmt: skip
_FORMATS = {
    "double": "<d", "float": "<f", "fixed32": "<I", "fixed64": "<Q", "sfixed32": "<i", "sfixed64": "<q",
}  # fmt: skip
# A list is displayed, not computed with: what is beyond is left out.
_MOST_ITEMS = 4096


class Value(NamedTuple):
    """A value and its kind: `int64`, `string`, `bool_list` ...; a list's value is a tuple."""

    kind: str
    value: Any


Attributes = dict[str, Value]


def parse(blobs: tuple[bytes, ...]) -> Attributes:
    """Returns attributes by name, the first of a name; one that cannot be read is left out."""
    attributes: Attributes = {}
    for blob in blobs:
        try:
            name, value = _parse_one(blob)
        except WireError:
            continue
        if value is not None:
            attributes.setdefault(name, value)
    return attributes


def _parse_one(blob: bytes) -> tuple[str, Value | None]:
    name, value = "", None
    for field_number, wire, raw in parse_fields(blob, 0, len(blob)):
        if field_number == 1 and isinstance(raw, bytes):
            name = raw.decode("utf-8", "replace")
        elif field_number in _KINDS:
            single = _single(_KINDS[field_number], wire, raw)
            if single is not None:
                value = Value(_KINDS[field_number], single)
        elif field_number - 1 in _KINDS and isinstance(raw, bytes):
            kind = _KINDS[field_number - 1]
            value = Value(kind + "_list", tuple(_items(kind, raw)))
    return name, value


def _items(kind: str, raw: bytes) -> list[Any]:
    items: list[Any] = []
    for field_number, wire, item in parse_fields(raw, 0, len(raw)):
        if field_number != 1 or len(items) >= _MOST_ITEMS:
            continue
        if isinstance(item, bytes) and kind not in ("string", "bytes") and wire == 2:
            if kind in _FORMATS:
                width = struct.calcsize(_FORMATS[kind])
                values = [item[at : at + width] for at in range(0, len(item) - width + 1, width)]
                items += (_single(kind, 5, value) for value in values)
            else:
                items += (_single(kind, 0, number_read) for number_read in parse_packed(item))
        else:
            items.append(_single(kind, wire, item))
    return items


def _single(kind: str, wire: int, raw: int | bytes) -> Any:
    if isinstance(raw, bytes):
        if kind == "string":
            return raw.decode("utf-8", "replace")
        if kind == "bytes":
            return raw
        layout = _FORMATS.get(kind)
        return struct.unpack(layout, raw)[0] if layout and struct.calcsize(layout) == len(raw) else None
    if wire != 0:
        return None
    if kind == "bool":
        return raw != 0
    if kind in ("int32", "int64"):
        if kind == "int32":
            raw &= (1 << 32) - 1
            return raw - (1 << 32) if raw >> 31 else raw
        return raw - (1 << 64) if raw >> 63 else raw
    if kind in ("sint32", "sint64"):
        return (raw >> 1) ^ -(raw & 1)
    if kind == "uint32":
        return raw & ((1 << 32) - 1)
    return raw if kind == "uint64" else None
