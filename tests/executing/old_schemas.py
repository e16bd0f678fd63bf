"""The same two nodes in each older schema of Chakra, field by field as those schemas number them.

A compute of 5 us, then an all-reduce of 4,096 bytes behind it.
"""

from __future__ import annotations

import struct

from tests.executing.encoding import field, varint


def _framed(*messages: bytes) -> bytes:
    return b"".join(varint(len(one)) + one for one in messages)


def _eg_def() -> bytes:
    """0.0.1: no metadata; numbers above 10; COMP 3, COMM_COLL 6; ALL_REDUCE 1."""
    compute = field(1, 7) + field(2, b"fwd") + field(3, 3) + field(7, 5) + field(12, 1000)
    reduce = field(1, 9) + field(2, b"grads") + field(3, 6) + field(4, 7)
    reduce += field(13, 1) + field(14, 1) + field(15, 3) + field(18, 4096)
    return _framed(compute, reduce)


def _with_attributes(schema: str, header: bool, packed: bool) -> bytes:
    """0.0.2 and 0.0.3: attributes in field 11; what a whole number, a text and a bool are differs."""
    whole, text, truth = {
        "0.0.2": (5, 6, None), "0.0.3 of July": (6, 7, 4), "0.0.3 of August": (7, 8, 4),
    }[schema]  # fmt: skip
    comp, coll = (3, 6) if schema == "0.0.2" else (4, 7)

    def attribute(name: str, value: int | str | bool) -> bytes:
        found = field(1, name.encode())
        if isinstance(value, bool):
            # 0.0.2 has none: a float.
            number = varint(4 << 3 | 5) + struct.pack("<f", value)
            return found + (field(truth, int(value)) if truth else number)
        if isinstance(value, str):
            return found + field(text, value.encode())
        return found + (field(2, 2) if schema == "0.0.2" else b"") + field(whole, value)

    compute = field(1, 7) + field(2, b"fwd") + field(3, comp) + field(5, b"[]")
    compute += field(11, attribute("is_cpu_op", False)) + field(11, attribute("runtime", 5))
    reduce = field(1, 9) + field(2, b"grads") + field(3, coll)
    reduce += field(4, varint(7)) if packed else field(4, 7)
    reduce += field(11, attribute("comm_type", 0)) + field(11, attribute("comm_size", 4096))
    reduce += field(11, attribute("pg_name", "3"))
    head = [field(1, attribute("schema", "symbolic"))] if header else []
    return _framed(*head, compute, reduce)


def _first_days() -> bytes:
    """0.0.4 of its first days: GlobalMetadata has attributes and no version."""
    kind = field(1, b"schema") + field(29, b"1.0.1")

    def attribute(name: str, number: int, value: int | bytes) -> bytes:
        return field(10, field(1, name.encode()) + field(number, value))

    compute = field(1, 7) + field(2, b"fwd") + field(3, 4) + field(7, 5) + attribute("is_cpu_op", 27, 0)
    reduce = field(1, 9) + field(2, b"grads") + field(3, 7) + field(5, 7) + attribute("comm_type", 9, 0)
    reduce += attribute("comm_size", 9, 4096) + attribute("pg_name", 29, b"3")
    return _framed(field(1, kind), compute, reduce)


OLD = {
    "0.0.1": _eg_def(),
    "0.0.2": _with_attributes("0.0.2", header=False, packed=False),
    "0.0.3, July": _with_attributes("0.0.3 of July", header=False, packed=True),
    "0.0.3, August": _with_attributes("0.0.3 of August", header=True, packed=False),
    "0.0.4, first days": _first_days(),
}
