"""The three older schemas, distinguished by what is on the wire, and translated to the columns of 0.0.4
(CHAKRA part 1).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from simcore.chakra.wire import (
    BYTES,
    VARINT,
    Columns,
    TextTable,
    WireError,
    messages,
    parse_fields,
    parse_packed,
)

# The present one first.
SCHEMAS = ("0.0.4", "0.0.3", "0.0.2", "0.0.1")
_SAMPLED = 2000
# Types and kinds of collective of the older schemas -> their numbers in 0.0.4.
_OLD_TYPES = {1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7}
_COLLECTIVES = {"0.0.1": {1: 0, 2: 6, 3: 2, 4: 7}, "0.0.2": {0: 0, 1: 6, 2: 2, 3: 7},
                "0.0.3": {0: 0, 1: 6, 2: 2, 3: 7, 4: 5}}  # fmt: skip
_NAMES_OF_0_0_1 = {
    12: "num_ops",
    6: "tensor_size",
    13: "comm_type",
    16: "comm_src",
    17: "comm_dst",
    18: "comm_size",
    19: "comm_tag",
    20: "comm_priority",
}


def schema_of(ranks: Sequence[Columns]) -> str:
    """Returns the schema of files that were read as 0.0.4: that one has attributes in field 10, the older
    ones have fields that it does not have.
    """
    counts = {"0.0.4": 0, "0.0.2": 0, "0.0.1": 0}
    newer = False
    for columns in ranks[:8]:
        counts["0.0.4"] += sum(1 for attribute in columns.attributes[:_SAMPLED] if attribute)
        for node in list(columns.others)[:_SAMPLED]:
            for field_number, wire, value in columns.others[node]:
                if field_number == 11 and wire == BYTES and isinstance(value, bytes):
                    counts["0.0.2"] += 1
                    newer = newer or _is_newer(value)
                elif field_number > 11 and wire == VARINT:
                    counts["0.0.1"] += 1
    if counts["0.0.4"] or not (counts["0.0.2"] or counts["0.0.1"]):
        return "0.0.4"
    if counts["0.0.1"] > counts["0.0.2"]:
        return "0.0.1"
    return "0.0.3" if newer else "0.0.2"


def _is_newer(blob: bytes) -> bool:
    """Returns whether an attribute is of 0.0.3: its values begin in field 4 with a bool, in 0.0.2 with a
    float.
    """
    try:
        kind_fields = parse_fields(blob, 0, len(blob))
    except WireError:
        return False
    kind = next(
        (value for field_number, wire, value in kind_fields if field_number == 2 and wire == VARINT), None
    )
    for field_number, wire, _ in kind_fields:
        if field_number == 4 and wire == VARINT:
            return True  # bool_val; a float is 4 bytes
        if field_number in (6, 7) and wire == VARINT and kind is not None:
            return True  # 0.0.2 has a text in 6 and a list in 7
    return False


def translate(data: bytes, headed: bool, table: TextTable, schema: str) -> Columns:
    """Returns the nodes of a file of an older schema as columns of 0.0.4."""
    spans, damage = messages(data)
    columns = Columns(damage=damage)
    for begin, end in spans[1 if headed and schema == "0.0.3" and _is_header(data, spans) else 0 :]:
        try:
            parts = parse_fields(data, begin, end)
            _add(columns, parts, begin, table, schema)
        except WireError as error:
            # An error within a field has its offset in that field: the begin of the node is reported.
            at = max(error.at, begin)
            if columns.damage is None or at < columns.damage[0]:
                columns.damage = (at, error.message)
    return columns


def _is_header(data: bytes, spans: list[tuple[int, int]]) -> bool:
    begin, end = spans[0]
    return begin == end or data[begin] & 7 == 2


def _add(
    columns: Columns, parts: list[tuple[int, int, int | bytes]], at: int, table: TextTable, schema: str
) -> None:
    node_id = kind = duration = 0
    name = b""
    attributes: list[bytes] = []
    involved: list[int] = []
    ctrl: list[int] = []
    for field_number, wire, value in parts:
        if isinstance(value, int):
            if field_number == 1:
                node_id = value
            elif field_number == 3:
                kind = value
            elif field_number == 4:
                ctrl.append(value)
            elif schema == "0.0.1" and field_number == 7:
                duration = value
            elif schema == "0.0.1" and field_number == 14:
                involved.append(value)
            elif schema == "0.0.1" and field_number in _NAMES_OF_0_0_1:
                if field_number == 13:
                    value = _COLLECTIVES[schema].get(value, 255)
                attributes.append(integer_attribute(_NAMES_OF_0_0_1[field_number], value))
            elif schema == "0.0.1" and field_number == 15:
                attributes.append(text_attribute("pg_name", str(value)))
        elif field_number == 2 and wire == BYTES:
            name = value
        elif field_number == 4 and wire == BYTES:
            ctrl.extend(parse_packed(value))
        elif field_number == 14 and schema == "0.0.1":
            involved.extend(parse_packed(value))
        elif field_number == 11 and schema != "0.0.1":
            key, attribute_value = _attribute(value)
            if key == "runtime" or key == "simulated_run_time":
                duration = attribute_value if isinstance(attribute_value, int) else 0
            elif key == "comm_type" and isinstance(attribute_value, int):
                attributes.append(integer_attribute(key, _COLLECTIVES[schema].get(attribute_value, 255)))
            elif isinstance(attribute_value, int):
                attributes.append(integer_attribute(key, attribute_value))
            elif isinstance(attribute_value, bytes):
                attributes.append(text_attribute(key, attribute_value.decode("utf-8", "replace")))
    if involved:
        attributes.append(bools_attribute("involved_dim", involved))
    kind = kind if schema == "0.0.3" else _OLD_TYPES.get(kind, 0)
    key_of = tuple(attributes)
    columns.id.append(node_id)
    columns.type.append(min(kind, 255))
    columns.duration.append(duration)
    columns.name.append(table.names.setdefault(name, len(table.names)))
    columns.attributes.append(table.attributes.setdefault(key_of, len(table.attributes)))
    columns.at.append(at)
    columns.ctrl.extend(ctrl)
    columns.data_to.append(len(columns.data))
    columns.ctrl_to.append(len(columns.ctrl))


def _attribute(blob: bytes) -> tuple[str, int | bytes | None]:
    """Returns (name, value) of an attribute of 0.0.2 or 0.0.3: whole numbers, bools and texts; None for
    others.
    """
    name = ""
    value: int | bytes | None = None
    for field_number, wire, field_value in parse_fields(blob, 0, len(blob)):
        if field_number == 1 and isinstance(field_value, bytes):
            name = field_value.decode("utf-8", "replace")
        elif (field_number in (4, 5, 6, 7) and wire == VARINT and isinstance(field_value, int)) or (
            field_number in (6, 7, 8) and wire == BYTES and isinstance(field_value, bytes) and value is None
        ):
            value = field_value
        elif wire == 5 and isinstance(field_value, bytes) and value is None and field_number in (4, 5):
            number_of = struct.unpack("<f", field_value)[0]
            value = int(number_of) if number_of.is_integer() else None
    return name, value


def number_bytes(value: int) -> bytes:
    """Returns an int as a varint."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _encode_attribute(name: str, kind: bytes) -> bytes:
    raw = name.encode("utf-8", "replace")
    return b"\x0a" + number_bytes(len(raw)) + raw + kind


def integer_attribute(name: str, value: int) -> bytes:
    """Returns an attribute of kind int64, encoded."""
    return _encode_attribute(name, b"\x48" + number_bytes(value))


def text_attribute(name: str, value: str) -> bytes:
    """Returns an attribute of kind string, encoded."""
    raw = value.encode("utf-8", "replace")
    return _encode_attribute(name, b"\xea\x01" + number_bytes(len(raw)) + raw)


def bool_attribute(name: str, value: bool) -> bytes:
    """Returns an attribute of kind bool, encoded."""
    return _encode_attribute(name, b"\xd8\x01" + bytes((value,)))


def bools_attribute(name: str, values: Sequence[int]) -> bytes:
    """Returns an attribute of kind bool_list, encoded."""
    flags = bytes(1 if value else 0 for value in values)
    items = b"\x0a" + number_bytes(len(flags)) + flags
    return _encode_attribute(name, b"\xe2\x01" + number_bytes(len(items)) + items)


SCHEMA = "0.0.4"


def frame(message: bytes) -> bytes:
    """Returns a message with its length in front."""
    return number_bytes(len(message)) + message


def metadata() -> bytes:
    """Returns the first message of a file, framed."""
    return frame(b"\x0a" + frame(SCHEMA.encode()))


def node_head(node_id: int, name: bytes, kind: int, data: list[int], ctrl: list[int], micros: int) -> bytes:
    """Returns a node's fields up to its attributes, encoded."""
    head = b"\x08" + number_bytes(node_id) if node_id else b""
    head += b"\x12" + frame(name) + b"\x18" + number_bytes(kind)
    if ctrl:
        head += b"\x22" + frame(b"".join(map(number_bytes, ctrl)))
    if data:
        head += b"\x2a" + frame(b"".join(map(number_bytes, data)))
    return head + (b"\x38" + number_bytes(micros) if micros else b"")


def attribute(name: str, value: int | str | bool, kind: str = "int64") -> bytes:
    """Returns an attribute of a node, encoded; kind: `int64`, `int32` or `uint64` for an int."""
    if isinstance(value, bool):
        body = bool_attribute(name, value)
    elif isinstance(value, str):
        body = text_attribute(name, value)
    else:
        tag = {"int32": b"\x38", "int64": b"\x48", "uint64": b"\x68"}[kind]
        raw = name.encode()
        body = b"\x0a" + frame(raw) + tag + number_bytes(value)
    return b"\x52" + frame(body)
