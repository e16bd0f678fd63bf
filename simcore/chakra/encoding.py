"""Writes nodes of schema 0.0.4: a message with its length in front, attributes of the kinds that readers
expect.
"""

from __future__ import annotations

from simcore.chakra.schema import bool_attribute, number_bytes, text_attribute

SCHEMA = "0.0.4"


def framed(message: bytes) -> bytes:
    """A message with its length in front."""
    return number_bytes(len(message)) + message


def metadata() -> bytes:
    """The first message of a file, framed."""
    return framed(b"\x0a" + framed(SCHEMA.encode()))


def node_head(number: int, name: bytes, kind: int, data: list[int], ctrl: list[int], micros: int) -> bytes:
    """A node's fields up to its attributes."""
    head = b"\x08" + number_bytes(number) if number else b""
    head += b"\x12" + framed(name) + b"\x18" + number_bytes(kind)
    if ctrl:
        head += b"\x22" + framed(b"".join(map(number_bytes, ctrl)))
    if data:
        head += b"\x2a" + framed(b"".join(map(number_bytes, data)))
    return head + (b"\x38" + number_bytes(micros) if micros else b"")


def attribute(name: str, value: int | str | bool, kind: str = "int64") -> bytes:
    """An attribute of a node; kind: `int64`, `int32` or `uint64` of a number."""
    if isinstance(value, bool):
        body = bool_attribute(name, value)
    elif isinstance(value, str):
        body = text_attribute(name, value)
    else:
        tag = {"int32": b"\x38", "int64": b"\x48", "uint64": b"\x68"}[kind]
        raw = name.encode()
        body = b"\x0a" + framed(raw) + tag + number_bytes(value)
    return b"\x52" + framed(body)
