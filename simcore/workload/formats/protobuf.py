"""Protocol buffers as bytes: enough of their wire format to tell which tool wrote a file."""

from __future__ import annotations

from collections.abc import Iterator

FIXED_BYTES = {1: 8, 5: 4}  # wire type -> bytes
VARINT, LENGTH = 0, 2


def varint(raw: bytes, at: int) -> tuple[int, int]:
    """The base-128 number at `at` and the place after it; -1 when there is none."""
    value = 0
    for index, byte in enumerate(raw[at : at + 10]):
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return value, at + index + 1
    return -1, len(raw)


def fields(message: bytes) -> Iterator[tuple[int, int, bytes] | None]:
    """(number, wire type, bytes) of the fields in a message, the bytes of a text or message that is cut as
    far as they go; None last where it is none.
    """
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        field_number, wire = key >> 3, key & 7
        begin, end = at, -1
        if wire == VARINT:
            value, end = varint(message, at)
            end = end if value >= 0 else -1
        elif wire == LENGTH:
            length, begin = varint(message, at)
            end = begin + length if length >= 0 else -1
        elif wire in FIXED_BYTES:
            end = at + FIXED_BYTES[wire]
        if key < 0 or field_number == 0 or end < 0:
            yield None
            return
        yield field_number, wire, message[begin:end]
        at = end
    if at > len(message):
        yield None


def is_message(message: bytes) -> bool:
    """Whether the bytes are a whole message."""
    return None not in fields(message)


def is_delimited(raw: bytes) -> bool:
    """Returns whether a file that begins with `raw` has messages behind their lengths: a varint and that many
    bytes of protobuf. Text never has the control bytes of one.
    """
    if not any(byte < 32 and byte not in b" \t\r\n\f\v" for byte in raw[:64]):
        return False
    length, start = varint(raw, 0)
    if length == 0:  # proto3 leaves default values out: the metadata message may be empty
        length, start = varint(raw, start)
    return 0 < length <= len(raw) - start and is_message(raw[start : start + length])
