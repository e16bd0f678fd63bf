"""Writes execution traces for tests: Chakra's schema 0.0.4 by hand, nothing of the reader's code."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COMP, SEND, RECV, COLL, LOAD, STORE, INVALID, METADATA = 4, 5, 6, 7, 2, 3, 0, 1


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = []
    while True:
        value, low = value >> 7, value & 127
        out.append(low + (128 if value else 0))
        if not value:
            return bytes(out)


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name: str, value: Any) -> bytes:
    head = field(1, name.encode())
    if isinstance(value, bool):
        return head + field(27, int(value))
    if isinstance(value, int):
        return head + field(9, value)
    if isinstance(value, str):
        return head + field(29, value.encode())
    if isinstance(value, float):
        return head + varint(3 << 3 | 1) + struct.pack("<d", value)
    return head + field(28, field(1, bytes(map(int, value))))


def node_bytes(node: Mapping[str, Any], packed: bool = True) -> bytes:
    """A node: id, name, type, ctrl, data, micros, attributes."""
    found = b""
    if node.get("id"):
        found += field(1, node["id"])
    found += field(2, node.get("name", f"n{node.get('id', 0)}").encode())
    if node.get("type"):
        found += field(3, node["type"])
    for number, key in ((4, "ctrl"), (5, "data")):
        ids = node.get(key, ())
        if ids and packed:
            found += field(number, b"".join(map(varint, ids)))
        else:
            found += b"".join(field(number, one) for one in ids)
    if node.get("micros"):
        found += field(7, node["micros"])
    for name, value in node.get("attributes", {}).items():
        found += field(10, attribute(name, value))
    return found


def et_bytes(nodes: Sequence[Mapping[str, Any]], packed: bool = True, head: bytes | None = None) -> bytes:
    messages = [field(1, b"0.0.4") if head is None else head, *(node_bytes(one, packed) for one in nodes)]
    return b"".join(varint(len(one)) + one for one in messages)


def write_set(folder: Path, ranks: Sequence[Sequence[Mapping[str, Any]]], name: str = "wl") -> str:
    """Writes a set; gives its prefix."""
    for rank, nodes in enumerate(ranks):
        (folder / f"{name}.{rank}.et").write_bytes(et_bytes(nodes))
    return str(folder / name)


def write_network(path: Path, dims: Sequence[tuple[str, int, float, float]]) -> str:
    lists = zip(*dims, strict=True)
    keys = ("topology", "npus_count", "bandwidth", "latency")
    path.write_text(
        "".join(f"{key}: [ {', '.join(map(str, one))} ]\n" for key, one in zip(keys, lists, strict=True))
    )
    return str(path)


def write_json(path: Path, value: object) -> str:
    path.write_text(json.dumps(value, indent=1))
    return str(path)
