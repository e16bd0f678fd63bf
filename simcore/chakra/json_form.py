"""The JSON form of an execution trace: what Chakra's jsonizer writes, or a list of nodes in one object.

The jsonizer writes messages of the protocol buffers' JSON one after another, the metadata first; Chakra's
feeder of version 1 reads an object with `workload_graph` or `nodes`. Names of fields are in snake or camel
case, 64-bit numbers may be texts. STAGE's have types in its own words, names of collectives, and the number
of a group as `comm_group`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from simcore.chakra.nodes import COLLECTIVE_WORDS
from simcore.chakra.schema import bool_attribute, bools_attribute, integer_attribute, text_attribute
from simcore.chakra.wire import Columns, TextTable
from simcore.diagnostics import Diagnostic, InputError, printable

# A 64-bit number that is written as a text.
_WHOLE = re.compile("-?[0-9]{1,20}")
_TYPES = ("INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE",
          "COMM_RECV_NODE", "COMM_COLL_NODE")  # fmt: skip
# STAGE's words for them.
_STAGE_TYPES = {
    "mem_load_node": 2, "mem_store_node": 3, "comp_node": 4, "comm_send_node": 5, "comm_recv_node": 6,
    "coll_comm_node": 7,
}  # fmt: skip
# Attributes that feeder 1's form has as fields of the node.
_FIELDS = (
    "is_cpu_op",
    "num_ops",
    "tensor_size",
    "comm_type",
    "comm_priority",
    "comm_size",
    "comm_src",
    "comm_dst",
    "comm_tag",
    "pg_name",
)
# Those of them that are whole numbers, from 0.
_COUNTS = frozenset(_FIELDS) - {"is_cpu_op", "pg_name"}


def read_json(path: str, data: bytes, table: TextTable) -> Columns:
    """Returns the nodes of a file. Raises InputError with the position of what does not fit."""
    try:
        text = data.decode("utf-8")
        values = _values(text)
    except UnicodeDecodeError as error:
        raise _refusal(path, f"byte {error.start}: this is not UTF-8") from None
    except json.JSONDecodeError as error:
        message = f"this is not JSON: {error.msg}"
        raise InputError(
            Diagnostic("error", "trace-json", message, path, error.lineno, error.colno)
        ) from None
    except (RecursionError, ValueError):
        raise _refusal(path, "found lists that are too deep or a number that is too long") from None
    nodes: list[Any] = []
    for value in values:
        if isinstance(value, list):
            nodes += value
            continue
        if not isinstance(value, dict):
            raise _refusal(path, "found no object, expected nodes of an execution trace")
        listed = value.get("workload_graph", value.get("nodes"))
        if isinstance(listed, list):
            nodes += listed
        elif "id" in value or "type" in value or "name" in value:
            nodes.append(value)
    columns = Columns()
    for index, node in enumerate(nodes):
        if not isinstance(node, dict):
            raise _refusal(path, f"entry {index} of the nodes is no object")
        _add(columns, {_snake(key): value for key, value in node.items()}, index, path, table)
    return columns


def _values(text: str) -> list[Any]:
    """Returns the JSON values of a text that has them one after another."""
    decoder = json.JSONDecoder()
    values: list[Any] = []
    at = 0
    while True:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at == len(text):
            return values
        value, at = decoder.raw_decode(text, at)
        values.append(value)


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key).lstrip("_")


def _add(columns: Columns, node: dict[str, Any], index: int, path: str, table: TextTable) -> None:
    def whole(value: Any, what: str) -> int:
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 64:
            raise _refusal(path, f"entry {index} of the nodes: its {what} is no whole number")
        return value

    def count(value: Any, what: str, most: int = (1 << 64) - 1) -> int:
        value = whole(value, what)
        if not 0 <= value <= most:
            raise _refusal(path, f"entry {index} of the nodes: found {what} {value}, expected 0 to {most}")
        return int(value)

    kind = node.get("type", node.get("node_type", 0))
    if isinstance(kind, str) and not _WHOLE.fullmatch(kind):
        if kind not in _TYPES and kind not in _STAGE_TYPES:
            words = f"found type '{printable(kind, 40)}', expected {', '.join(_TYPES)}"
            raise _refusal(path, f"entry {index} of the nodes: {words}")
        kind = _STAGE_TYPES[kind] if kind in _STAGE_TYPES else _TYPES.index(kind)
    if "comm_group" in node and "pg_name" not in node:
        node["pg_name"] = str(whole(node["comm_group"], "comm_group"))

    def attribute(name: str, value: Any) -> bytes | None:
        if isinstance(value, str) and name != "pg_name" and _WHOLE.fullmatch(value):
            value = int(value)
        if name == "comm_type" and value in COLLECTIVE_WORDS:
            value = COLLECTIVE_WORDS.index(value)
        if name in _COUNTS:
            count(value, name)
        elif name in _FIELDS and not isinstance(value, bool if name == "is_cpu_op" else str):
            raise _refusal(path, f"entry {index} of the nodes: its {name} cannot be this")
        elif isinstance(value, int) and not isinstance(value, bool):
            whole(value, printable(name, 40))
        return _attribute(name, value)

    attributes = [attribute(name, node[name]) for name in _FIELDS if name in node]
    listed = node.get("attr", node.get("attribute", ()))
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            for key, value in entry.items():
                if key not in ("name", "doc_string", "docString"):
                    attributes.append(attribute(entry["name"], value))
    key_of = tuple(encoded for encoded in attributes if encoded is not None)
    stated_name = node.get("name", "")
    if not isinstance(stated_name, str):
        raise _refusal(path, f"entry {index} of the nodes: its name is no text")
    name = stated_name.encode("utf-8", "replace")
    columns.id.append(whole(node.get("id", 0), "id") & (1 << 64) - 1)
    columns.type.append(count(kind, "type", len(_TYPES) - 1))
    columns.duration.append(count(node.get("duration_micros", node.get("runtime", 0)), "duration"))
    columns.name.append(table.names.setdefault(name, len(table.names)))
    columns.attributes.append(table.attributes.setdefault(key_of, len(table.attributes)))
    columns.at.append(index)
    for field, column in (("data_deps", columns.data), ("ctrl_deps", columns.ctrl)):
        parents = node.get(field, ())
        for parent in parents if isinstance(parents, list) else ():
            column.append(whole(parent, field) & (1 << 64) - 1)
    columns.data_to.append(len(columns.data))
    columns.ctrl_to.append(len(columns.ctrl))


def _attribute(name: str, value: Any) -> bytes | None:
    if isinstance(value, bool):
        return bool_attribute(name, value)
    if isinstance(value, int):
        return integer_attribute(name, value)
    if isinstance(value, str):
        return text_attribute(name, value)
    if isinstance(value, dict):
        values = value.get("values")
        if isinstance(values, list) and all(isinstance(entry, bool) for entry in values):
            return bools_attribute(name, values)
    return None


def _refusal(path: str, message: str) -> InputError:
    return InputError(Diagnostic("error", "trace-json", message, path))
