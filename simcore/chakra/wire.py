"""Reads a Chakra file's bytes into columns: messages one after another, each with its length as a varint.

This module knows the wire alone: fields by number, attributes as their bytes. `schema.py` has what the fields
mean in each of the schemas. A field with one byte for its tag and one for its length, as nearly all have,
costs no call; the attributes of a node are kept as bytes, and equal ones are one object: of 2.6 million nodes
of 1,024 ranks some thousands are different.

Format: protocol buffers' encoding; framing as `google.protobuf.util.SerializeDelimitedToOstream` has it.
"""

from __future__ import annotations

from array import array

from simcore.records import Struct, field

# Lengths from here on are refused: ASTRA-sim reads a length as a signed number of 32 bits.
MOST_LENGTH = 1 << 31
MOST_ATTRIBUTES = 1 << 16
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_U64 = (1 << 64) - 1


class WireError(Exception):
    """Bytes that are no message. at: the byte, from 0. message: found and expected."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at
        self.message = message


class TextTable(Struct):
    """Texts and attributes that occur in the files of a set, each once; shared by all ranks."""

    names: dict[bytes, int] = field(default_factory=lambda: {b"": 0})
    """Raw bytes of a name -> its id."""
    attributes: dict[tuple[bytes, ...], int] = field(default_factory=lambda: {(): 0})
    """The attributes of a node as bytes, one item an attribute -> id of the set."""


class Columns(Struct):
    """The nodes of one file in its order, as columns of equal length."""

    id: array[int] = field(default_factory=lambda: array("Q"))
    type: bytearray = field(default_factory=bytearray)
    duration: array[int] = field(default_factory=lambda: array("Q"))
    """us."""
    name: array[int] = field(default_factory=lambda: array("i"))
    """Id in the table."""
    attributes: array[int] = field(default_factory=lambda: array("i"))
    """Id of the set in the table."""
    at: array[int] = field(default_factory=lambda: array("Q"))
    """The byte of the file at which the node begins."""
    data: array[int] = field(default_factory=lambda: array("Q"))
    """The ids that a node waits for by data dependencies, those of all nodes one after another."""
    data_to: array[int] = field(default_factory=lambda: array("i"))
    """Where those of a node end."""
    ctrl: array[int] = field(default_factory=lambda: array("Q"))
    """The ids that a node waits for by control dependencies, in the same way."""
    ctrl_to: array[int] = field(default_factory=lambda: array("i"))
    """Where those of a node end."""
    others: dict[int, list[tuple[int, int, int | bytes]]] = field(default_factory=dict)
    """By row (field, wire type, value) of fields that schema 0.0.4 does not have or has as something else."""
    damage: tuple[int, str] | None = None
    """The error at the end of what was read, as (byte, words), None where the file was whole."""
    shape: int = -1
    """Files of one set with the same value, not -1, share all columns but `attributes` and `at`."""

    def __len__(self) -> int:
        return len(self.id)


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Returns (the number, 64 bits of it; the byte behind it). Raises `WireError` where it is truncated or
    too long.
    """
    shift = value = 0
    first = at
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _U64, at
        shift += 7
        if shift >= 70:
            raise WireError(first, "found a number of more than 10 bytes, expected a varint of 64 bits")
    raise WireError(first, "the file ends within a number" if end == len(data) else "a number is cut")


def messages(data: bytes, most: int = 1 << 62) -> tuple[list[tuple[int, int]], tuple[int, str] | None]:
    """Returns ((first byte, byte behind) of at most `most` messages; the error at the end or None).

    The last message may be truncated: then its end is that of the data.
    """
    spans: list[tuple[int, int]] = []
    at, size = 0, len(data)
    while at < size and len(spans) < most:
        length = data[at]
        begin = at
        at += 1
        if length > 127 and at < size and data[at] < 128:
            # The length has two bytes, as that of nearly every node with attributes.
            length = length & 127 | data[at] << 7
            at += 1
        elif length > 127:
            try:
                length, at = varint(data, begin, size)
            except WireError as error:
                return spans, (error.at, error.message)
            if length >= MOST_LENGTH:
                return spans, (begin, f"found a message of {length} bytes, expected less than 2^31")
        end = at + length
        if end > size:
            spans.append((at, size))
            return spans, (begin, f"the file ends within a message of {length} bytes ({size - at} are there)")
        spans.append((at, end))
        at = end
    return spans, None


def parse_fields(data: bytes, at: int, end: int) -> list[tuple[int, int, int | bytes]]:
    """Returns (number, wire type, value) of the fields of a message. Raises `WireError`."""
    read: list[tuple[int, int, int | bytes]] = []
    while at < end:
        begin = at
        tag, at = varint(data, at, end)
        field_number, kind = tag >> 3, tag & 7
        value: int | bytes
        if kind == VARINT:
            value, at = varint(data, at, end)
        elif kind == BYTES:
            length, at = varint(data, at, end)
            if length > end - at:
                message = (
                    f"found {length} bytes of field {field_number}, expected at most {end - at} up to its end"
                )
                raise WireError(begin, message)
            value = data[at : at + length]
            at += length
        elif kind in (FIXED64, FIXED32):
            width = 8 if kind == FIXED64 else 4
            if end - at < width:
                raise WireError(begin, f"field {field_number} is cut")
            value = data[at : at + width]
            at += width
        else:
            raise WireError(begin, f"found wire type {kind}, expected 0, 1, 2 or 5")
        if field_number == 0:
            raise WireError(begin, "found a field of number 0")
        read.append((field_number, kind, value))
    return read


def find_field_spans(data: bytes, at: int, end: int, field_number: int) -> list[tuple[int, int]]:
    """Returns (first byte, byte behind) of each value of a message's field of bytes. Raises `WireError`."""
    spans: list[tuple[int, int]] = []
    while at < end:
        tag, at = varint(data, at, end)
        kind = tag & 7
        if kind == VARINT:
            _, at = varint(data, at, end)
            continue
        length = 8 if kind == FIXED64 else 4
        if kind == BYTES:
            length, at = varint(data, at, end)
        elif kind not in (FIXED64, FIXED32):
            raise WireError(at, f"found wire type {kind}, expected 0, 1, 2 or 5")
        if length > end - at:
            raise WireError(at, f"field {tag >> 3} is cut")
        if kind == BYTES and tag >> 3 == field_number:
            spans.append((at, at + length))
        at += length
    return spans


def parse_packed(value: bytes) -> list[int]:
    """Returns the numbers of a packed list. Raises `WireError`."""
    values: list[int] = []
    at, end = 0, len(value)
    while at < end:
        integer = value[at]
        at += 1
        if integer > 127:
            integer, at = varint(value, at - 1, end)
        values.append(integer)
    return values


def read_columns(data: bytes, table: TextTable, first: int = 1) -> Columns:
    """Returns the nodes of a file's messages from message `first` on, by schema 0.0.4.

    A message that is truncated or damaged is there as far as it could be read; `damage` has the byte and the
    words of the first one.
    """
    spans, damage = messages(data)
    columns = Columns(damage=damage)
    names, attribute_sets = table.names, table.attributes
    add_id, add_type, add_duration = columns.id.append, columns.type.append, columns.duration.append
    add_name, add_attributes, add_at = columns.name.append, columns.attributes.append, columns.at.append
    all_data, all_ctrl = columns.data, columns.ctrl
    add_data_to, add_ctrl_to = columns.data_to.append, columns.ctrl_to.append
    for begin, end in spans[first:]:
        at = begin
        node_id = kind = duration = name = 0
        attributes: list[bytes] = []
        others: list[tuple[int, int, int | bytes]] | None = None
        try:
            while at < end:
                tag = data[at]
                at += 1
                if tag > 127:
                    field_at = at - 1
                    tag, at = varint(data, field_at, end)
                if tag & 7 == 2:
                    field_at = at - 1
                    if at >= end:
                        raise WireError(field_at, "a field is cut")
                    length = data[at]
                    at += 1
                    if length > 127:
                        length, at = varint(data, at - 1, end)
                    past = at + length
                    if past > end:
                        message = f"found {length} bytes of field {tag >> 3}, expected at most {end - at}"
                        raise WireError(field_at, message)
                    if tag == 82:  # attr
                        if len(attributes) == MOST_ATTRIBUTES:
                            message = f"found more than {MOST_ATTRIBUTES} attributes of node {node_id}"
                            raise WireError(field_at, message)
                        attributes.append(data[at:past])
                    elif tag == 18:
                        raw = data[at:past]
                        known_id = names.get(raw)
                        if known_id is None:
                            known_id = names[raw] = len(names)
                        name = known_id
                    elif tag == 42:  # data_deps, packed
                        if length == 1 and data[at] < 128:
                            all_data.append(data[at])
                        elif length == 2 and data[at] > 127 and data[at + 1] < 128:
                            all_data.append(data[at] & 127 | data[at + 1] << 7)
                        else:
                            all_data.extend(parse_packed(data[at:past]))
                    elif tag == 34:
                        if length == 1 and data[at] < 128:
                            all_ctrl.append(data[at])
                        elif length == 2 and data[at] > 127 and data[at + 1] < 128:
                            all_ctrl.append(data[at] & 127 | data[at + 1] << 7)
                        else:
                            all_ctrl.extend(parse_packed(data[at:past]))
                    elif tag not in (66, 74):  # inputs, outputs
                        others = others or []
                        others.append((tag >> 3, 2, data[at:past]))
                    at = past
                elif tag & 7 == 0:
                    if at >= end:
                        raise WireError(at - 1, "a field is cut")
                    value = data[at]
                    at += 1
                    if value > 127:
                        if at < end and data[at] < 128:
                            value = value & 127 | data[at] << 7
                            at += 1
                        else:
                            value, at = varint(data, at - 1, end)
                    if tag == 8:
                        node_id = value
                    elif tag == 24:
                        kind = value if value < 256 else 255
                    elif tag == 56:
                        duration = value
                    elif tag == 40:
                        all_data.append(value)
                    elif tag == 32:
                        all_ctrl.append(value)
                    elif tag != 48:
                        others = others or []
                        others.append((tag >> 3, 0, value))
                elif tag & 7 in (1, 5):
                    width = 8 if tag & 7 == 1 else 4
                    if at + width > end:
                        raise WireError(at - 1, f"field {tag >> 3} is cut")
                    others = others or []
                    others.append((tag >> 3, tag & 7, data[at : at + width]))
                    at += width
                else:
                    raise WireError(at - 1, f"found wire type {tag & 7}, expected 0, 1, 2 or 5")
        except WireError as error:
            if columns.damage is None or error.at < columns.damage[0]:
                # In a message that the end of the file truncates, the byte where the truncation was seen
                # counts.
                columns.damage = (error.at, error.message)
        if others is not None:
            columns.others[len(columns.id)] = others
        if len(attributes) == 0:
            set_id = 0
        else:
            key = tuple(attributes)
            known_id = attribute_sets.get(key)
            if known_id is None:
                known_id = attribute_sets[key] = len(attribute_sets)
            set_id = known_id
        add_id(node_id)
        add_type(kind)
        add_duration(duration)
        add_name(name)
        add_attributes(set_id)
        add_at(begin)
        add_data_to(len(all_data))
        add_ctrl_to(len(all_ctrl))
    return columns
