"""What `export --format chakra` writes is read by Google's protocol buffers with the published schema 0.0.4.

Chakra's own Python package is these messages; the package index has none, so they are declared here, field by
field as the schema numbers them, and made by the library that Chakra's package is made by.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from simcore.parameters import Parameters
from simcore.render.export import FORMATS, Request, save_folder
from simcore.workload import open_workload

protobuf = pytest.importorskip("google.protobuf", reason="google.protobuf is not installed")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
# Number of the single value -> kind; the list of the kind has the number behind it.
KINDS = {
    3: "double", 5: "float", 7: "int32", 9: "int64", 11: "uint32", 13: "uint64", 15: "sint32", 17: "sint64",
    19: "fixed32", 21: "fixed64", 23: "sfixed32", 25: "sfixed64", 27: "bool", 29: "string", 31: "bytes",
}  # fmt: skip
TYPES = ("INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE",
         "COMM_RECV_NODE", "COMM_COLL_NODE")  # fmt: skip


def messages() -> tuple[type, type]:
    """GlobalMetadata and Node of the published schema."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="ChakraProtoMsg", syntax="proto3")

    def add(message: Any, name: str, number: int, kind: str, listed: bool = False) -> Any:
        one = message.field.add(name=name, number=number)
        one.label = kinds.LABEL_REPEATED if listed else kinds.LABEL_OPTIONAL
        if kind.startswith("."):
            one.type, one.type_name = kinds.TYPE_MESSAGE, kind
        else:
            one.type = getattr(kinds, f"TYPE_{kind.upper()}")
        return one

    enum = file.enum_type.add(name="NodeType")
    for number, word in enumerate(TYPES):
        enum.value.add(name=word, number=number)
    attribute = file.message_type.add(name="AttributeProto")
    add(attribute, "name", 1, "string")
    add(attribute, "doc_string", 2, "string")
    attribute.oneof_decl.add(name="value")
    for number, kind in KINDS.items():
        values = file.message_type.add(name=f"{kind.title()}List")
        add(values, "values", 1, kind, listed=True)
        add(attribute, f"{kind}_val", number, kind).oneof_index = 0
        add(attribute, f"{kind}_list", number + 1, f".ChakraProtoMsg.{kind.title()}List").oneof_index = 0
    info = file.message_type.add(name="IOInfo")
    for number, name in enumerate(("values", "shapes", "types"), 1):
        add(info, name, number, "string")
    node = file.message_type.add(name="Node")
    add(node, "id", 1, "uint64")
    add(node, "name", 2, "string")
    kind = add(node, "type", 3, "enum")
    kind.type_name = ".ChakraProtoMsg.NodeType"
    for name, number in (("ctrl_deps", 4), ("data_deps", 5)):
        add(node, name, number, "uint64", listed=True)
    add(node, "start_time_micros", 6, "uint64")
    add(node, "duration_micros", 7, "uint64")
    add(node, "inputs", 8, ".ChakraProtoMsg.IOInfo")
    add(node, "outputs", 9, ".ChakraProtoMsg.IOInfo")
    add(node, "attr", 10, ".ChakraProtoMsg.AttributeProto", listed=True)
    head = file.message_type.add(name="GlobalMetadata")
    add(head, "version", 1, "string")
    add(head, "attr", 2, ".ChakraProtoMsg.AttributeProto", listed=True)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = [pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}") for name in ("GlobalMetadata", "Node")]
    made = [message_factory.GetMessageClass(one) for one in found]
    return made[0], made[1]


def read(data: bytes, metadata: type, node: type) -> tuple[Any, list[Any]]:
    """The messages of a file, each behind its length."""
    from google.protobuf.internal.decoder import _DecodeVarint32  # as Chakra's protolib reads lengths
    from google.protobuf.unknown_fields import UnknownFieldSet

    at = 0
    found = []
    while at < len(data):
        size, at = _DecodeVarint32(data, at)
        one = (node if found else metadata)()
        assert one.ParseFromString(data[at : at + size]) == size
        # proto3 keeps fields that it does not know: none may be there.
        assert not len(UnknownFieldSet(one))
        found.append(one)
        at += size
    return found[0], found[1:]


@pytest.mark.parametrize(("name", "asked"), [
    ("003_gpt2_large_op_table.txt", {}),
    ("001_moe_128npu_with_mistakes.txt", {"schedule": "zb-h1", "overlap_grad_reduce": True}),
])  # fmt: skip
def test_protocol_buffers_read_every_node(name: str, asked: dict[str, Any], tmp_path: Path) -> None:
    metadata, node = messages()
    chosen = next(one for one in FORMATS if one.name == "chakra")
    export = chosen.build_export(Request(open_workload(str(FIXTURES / name)), Parameters(**asked)))
    assert export.files is not None
    save_folder(str(tmp_path / "out"), export.files, False)
    files = sorted((tmp_path / "out").glob("wl.*.et"))
    assert len(files) in (8, 128)
    for path in files[:: len(files) // 4]:
        data = path.read_bytes()
        head, nodes = read(data, metadata, node)
        assert head.version == "0.0.4"
        ids = [one.id for one in nodes]
        assert len(set(ids)) == len(ids) > 20
        again = io.BytesIO()
        for one in nodes:
            assert one.type in range(2, 8)
            assert set(one.data_deps) | set(one.ctrl_deps) <= set(ids) - {one.id}
            values = {attribute.name: attribute.WhichOneof("value") for attribute in one.attr}
            assert values["is_cpu_op"] == "bool_val"
            if TYPES[one.type] == "COMM_COLL_NODE":
                kinds = {key: values[key] for key in ("comm_type", "comm_size", "pg_name")}
                assert kinds == {"comm_type": "int64_val", "comm_size": "int64_val", "pg_name": "string_val"}
            if TYPES[one.type] in ("COMM_SEND_NODE", "COMM_RECV_NODE"):
                assert {values[key] for key in ("comm_src", "comm_dst", "comm_tag")} == {"int32_val"}
                assert values["comm_size"] == "int64_val"
            again.write(one.SerializeToString())
        # Nothing is lost: what the library writes again is as long as what was read.
        framing = sum(1 if one.ByteSize() < 128 else 2 for one in nodes)
        assert again.tell() + framing + head.ByteSize() + 1 == len(data)
