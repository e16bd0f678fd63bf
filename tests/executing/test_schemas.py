"""Older schemas and the JSON form say the same as 0.0.4 does."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from simcore.chakra import find_set, open_set
from simcore.diagnostics import InputError
from simcore.executing.execution_result import Execution
from simcore.parameters import Parameters
from simcore.runs.executed import ExecutedRun, run_execution
from tests.executing.encoding import COLL, COMP, et_bytes, write_set
from tests.executing.old_schemas import OLD

TODAY = [
    {"id": 7, "name": "fwd", "type": COMP, "micros": 5, "attributes": {"is_cpu_op": False}},
    {"id": 9, "name": "grads", "type": COLL, "data": [7],
     "attributes": {"comm_type": 0, "comm_size": 4096, "pg_name": "3"}},
]  # fmt: skip
DIM = Parameters(dim=("ring:2:100:500",))


def opened(prefix: str) -> ExecutedRun:
    found = find_set(prefix)
    assert found is not None
    return run_execution(Execution(open_set(found), DIM))


def facts(run: ExecutedRun) -> list[Any]:
    """What each node of a rank is and when, but for attributes that only one of the schemas has."""
    one = run.executed
    return [
        (
            one.nodes[rank].id[place],
            run.name_of(rank, place),
            run.kind_word(rank, place),
            one.start[rank][place],
            one.end[rank][place],
            run.group_word(rank, place),
            run.attributes_of(rank, place).get("comm_size"),
        )
        for rank in run.ranks
        for place in range(len(one.nodes[rank]))
    ]


@pytest.fixture
def today(tmp_path: Path) -> list[Any]:
    return facts(opened(write_set(tmp_path, [TODAY, TODAY], "today")))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("schema", OLD)
def test_an_older_schema_says_the_same(schema: str, packed: bool, tmp_path: Path, today: list[Any]) -> None:
    for rank in range(2):
        data = gzip.compress(OLD[schema]) if packed else OLD[schema]
        (tmp_path / f"old.{rank}.et{'.gz' if packed else ''}").write_bytes(data)
    run = opened(str(tmp_path / "old"))
    assert run.setup.source.schema == schema.split(",")[0]
    assert facts(run) == today
    said = [one.code for one in run.diagnostics]
    assert ("older-schema" in said) == (not schema.startswith("0.0.4"))


def test_nodes_of_0_0_4_without_metadata_are_all_read(tmp_path: Path, today: list[Any]) -> None:
    for rank in range(2):
        whole = et_bytes(TODAY)
        (tmp_path / f"bare.{rank}.et").write_bytes(whole[whole[0] + 1 :])
    run = opened(str(tmp_path / "bare"))
    assert facts(run) == today
    assert "no-metadata" in [one.code for one in run.diagnostics]


def snake(node: dict[str, Any]) -> dict[str, Any]:
    """As feeder 1 reads it."""
    return {"id": node["id"], "name": node["name"], "type": node["type"], "data_deps": node.get("data", []),
            "ctrl_deps": [], "duration_micros": node.get("micros", 0), **node["attributes"]}  # fmt: skip


def camel(node: dict[str, Any]) -> dict[str, Any]:
    """As protocol buffers' JSON has it: camel case, numbers of 64 bits as texts, names of types."""
    kinds = {bool: "boolVal", int: "int64Val", str: "stringVal"}
    attributes = [
        {"name": name, kinds[type(value)]: str(value) if type(value) is int else value}
        for name, value in node["attributes"].items()
    ]
    return {"id": str(node["id"]), "name": node["name"], "type": {COMP: "COMP_NODE", COLL: "COMM_COLL_NODE"}[
        node["type"]], "dataDeps": [str(one) for one in node.get("data", [])],
        "durationMicros": str(node.get("micros", 0)), "attr": attributes}  # fmt: skip


FORMS = {
    "workload_graph": json.dumps({"workload_graph": [snake(one) for one in TODAY]}),
    "nodes": json.dumps({"nodes": [camel(one) for one in TODAY]}),
    "jsonizer": json.dumps({"version": "0.0.4"}, indent=2) + "".join(json.dumps(camel(one), indent=2)
                                                                     for one in TODAY),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_the_json_form_says_the_same(form: str, packed: bool, tmp_path: Path, today: list[Any]) -> None:
    for rank in range(2):
        data = FORMS[form].encode()
        name = f"text.{rank}.json{'.gz' if packed else ''}"
        (tmp_path / name).write_bytes(gzip.compress(data) if packed else data)
    assert facts(opened(str(tmp_path / "text"))) == today


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"nodes": [{"id": "x"}]}', "entry 0 .* id"),
        ('{"nodes": [{"id": 1, "type": "COMP"}]}', "found type 'COMP', expected"),
        ('{"nodes": [3]}', "entry 0 .* object"),
        ('{"nodes": [{"id": 1}', "this is not JSON"),
        ('{"nodes": [{"id": 1, "data_deps": [5], "type": "COMP_NODE"}]}', "waits for node 5"),
        ("[" * 100_000, "too deep"),
    ],
)
def test_bad_json_is_an_error_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.0.json").write_text(text)
    with pytest.raises(InputError, match=said):
        opened(str(tmp_path / "bad"))


@pytest.mark.parametrize("schema", [one for one in OLD if not one.startswith("0.0.4")])
def test_an_old_file_that_is_damaged_anywhere_is_read_or_refused(
    schema: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """The fuzzer found numbers and attributes cut within a field that went up as exceptions. Each byte in one
    of three ways, with --whole in all of them.
    """
    changes = (0xFF, 0x80, 0x01)
    path = tmp_path / "old.0.et"
    said = []
    for at in range(len(OLD[schema])):
        for change in changes if pytestconfig.getoption("--whole") else [changes[at % 3]]:
            data = bytearray(OLD[schema])
            data[at] ^= change
            path.write_bytes(data)
            try:
                opened(str(tmp_path / "old"))
            except InputError as error:
                said.append(str(error))
    assert len(said) > 20
    assert all("old.0.et" in one for one in said)
