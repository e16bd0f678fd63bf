"""Examples of what is said of execution traces: sets of one or two ranks, one fault each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from simcore.chakra import find_set, open_set
from simcore.diagnostics import Diagnostic, InputError
from simcore.executing.execution_result import Execution
from simcore.measured import open_directory
from simcore.parameters import Parameters
from simcore.render.export import FORMATS, Request
from simcore.runs.executed import run_execution
from tests.diagnostic_examples_measured import Example, relative
from tests.executing.encoding import COLL, COMP, LOAD, RECV, SEND, et_bytes, field, varint, write_set
from tests.measured.traces import Op
from tests.measured.traces import write_set as write_ranks
from tests.workload.texts import read

_ONE: dict[str, Any] = {"id": 1, "type": COMP, "micros": 5, "attributes": {}}
_SUM: dict[str, Any] = {
    "id": 2,
    "type": COLL,
    "attributes": {"comm_type": 0, "comm_size": 64, "pg_name": "3"},
}
_LONELY = {"id": 9, "type": RECV, "attributes": {"comm_src": 0, "comm_tag": 3, "comm_size": 8}}
_LOADED = {"id": 2, "type": LOAD, "attributes": {"tensor_size": 50_000}}
_ASTRA = {"dialect": "astra-sim-2"}
_NAMED = {"dim": ("switch:2:50:500",)}
_TWO = {**_ASTRA, "dim": ("switch:2:50:500",)}
_MESSAGE = {"comm_tag": 1, "comm_size": 1 << 20}
_SENT = {"id": 1, "type": SEND, "attributes": {"comm_dst": 1, **_MESSAGE}}
_GOT = {"id": 2, "type": RECV, "attributes": {"comm_src": 0, **_MESSAGE}}
Ranks = Sequence[Sequence[dict[str, Any]]]


def _said(folder: Path, name: str, files: dict[str, str], asked: dict[str, Any]) -> list[Diagnostic]:
    for file, content in files.items():
        (folder / file).write_text(content)
    given = {
        key: str(folder / value) if isinstance(value, str) and value in files else value
        for key, value in asked.items()
    }
    try:
        found = find_set(str(folder / name) if name else str(folder))
        assert found is not None
        results = run_execution(Execution(open_set(found), Parameters(**given)))
    except InputError as error:
        return relative(error.diagnostics, folder)
    return relative(results.diagnostics, folder)


def ran(ranks: Ranks, files: dict[str, str] | None = None, **asked: Any) -> Example:
    """What running a set of these nodes says."""

    def example(folder: Path) -> list[Diagnostic]:
        write_set(folder, ranks)
        return _said(folder, "wl", files or {}, asked)

    return example


def written(change: Callable[[bytes], bytes], name: str = "wl.0.et", **asked: Any) -> Example:
    """What running one rank with changed bytes says."""

    def example(folder: Path) -> list[Diagnostic]:
        (folder / name).write_bytes(change(et_bytes([_ONE])))
        return _said(folder, "wl", {}, asked)

    return example


def two_sets(folder: Path) -> list[Diagnostic]:
    """A directory with two sets."""
    write_set(folder, [[_ONE]])
    write_set(folder, [[_ONE]], "other")
    return _said(folder, "", {}, {})


def exported(text: str) -> Example:
    """What writing a workload as execution traces says."""

    def example(_: Path) -> list[Diagnostic]:
        chosen = next(one for one in FORMATS if one.name == "chakra")
        return list(chosen.build_export(Request(read(text.encode()), Parameters())).diagnostics)

    return example


def exported_trace(folder: Path) -> list[Diagnostic]:
    """What writing a step of the ranks 1 and 3, two stages, as execution traces says."""
    operations = {
        rank: Op("ep_allreduce", "1002.0", group="ep", stage=rank // 2).line(rank) + "\n" for rank in (1, 3)
    }
    (folder / "run").mkdir()
    write_ranks(folder / "run", operations)
    chosen = next(one for one in FORMATS if one.name == "chakra")
    run = open_directory(str(folder / "run"))
    return relative(chosen.build_export(Request(run, Parameters())).diagnostics, folder)


def _bare(_: bytes) -> bytes:
    return et_bytes([], head=field(1, 7) + field(3, COMP) + field(7, 5))


def _old(_: bytes) -> bytes:
    node = field(1, 1) + field(2, b"n") + field(3, 3) + field(7, 4) + field(12, 100)
    return varint(len(node)) + node


_STREAMS = (
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8\n1\n"
    "mlp_row -1 10 ALLREDUCE 64 20 NONE 0 30 ALLREDUCE 128 100\n"
)
_GROUP = '{"1": [0, 1]}'
_FILES = {
    "net.yml": "topology: [ Ring ]\nnpus_count: [ 2 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n",
    "sys.json": '{"all-reduce-implementation": ["ring"], "preferred-dataset-splits": 1}',
    "g.json": '{"3": [0, 1]}',
}

EXECUTING: dict[str, Example] = {
    "several-sets": two_sets,
    "trace-json": written(lambda _: b'{"nodes": [3]}', "wl.0.json"),
    "damaged-trace": written(lambda data: data[:-1]),
    "older-schema": written(_old),
    "no-metadata": written(_bare),
    "no-nodes": written(lambda _: b""),
    "node-twice": ran([[_ONE, _ONE]]),
    "node-missing": ran([[_ONE | {"data": [77]}]]),
    "node-cycle": ran([[_ONE, {"id": 2, "type": COMP, "data": [2], "attributes": {}}]]),
    "ranks-beyond": ran([[_ONE]] * 3, **_TWO),
    "comm-groups": ran([[_ONE]], {"g.json": '{"1": [5]}'}, comm_groups="g.json"),
    "too-long": ran([[_ONE | {"micros": 1 << 62}]]),
    "group-missing": ran([[_SUM]] * 2, {"g.json": _GROUP}, comm_groups="g.json"),
    "files-not-taken": ran([[_SUM]] * 2, _FILES),
    "groups-assumed": ran([[_SUM]] * 2),
    "no-durations": ran([[_ONE | {"micros": 0, "attributes": {"num_ops": 9, "tensor_size": 9}}]]),
    "attribute-missing": ran([[_ONE], [_ONE, _SUM | {"name": "sum", "attributes": {"comm_size": 64}}]]),
    "remote-memory-missing": ran([[_ONE, _LOADED], [_ONE]]),
    "priced-anew": ran([[_SUM | {"attributes": {**_SUM["attributes"], "wltui_ns": 7}}]] * 2, **_NAMED),
    "not-a-member": ran([[_SUM]] * 3, {"g.json": '{"3": [0, 1]}'}, comm_groups="g.json"),
    "collectives-differ": ran([[_SUM], [_SUM | {"attributes": {**_SUM["attributes"], "comm_type": 2}}]]),
    "never-ends": ran([[_ONE], [_LONELY]]),
    "remote-memory": ran([[_ONE]], {"m.json": "{}"}, remote_memory="m.json"),
    "execution-stopped": ran([[_ONE], [_LONELY]], **_TWO),
    "crash-behind-end": ran([[_SENT], [_ONE | {"attributes": {"is_cpu_op": True}}, _GOT]], **_TWO),
    "no-statistics": ran([[_ONE | {"attributes": {"is_cpu_op": True}}]] * 2, **_TWO),
    "whole-microseconds": exported(_STREAMS),
    "one-slot": exported(_STREAMS),
    "network-assumed": exported_trace,
    "ranks-renumbered": exported_trace,
    "not-sent": exported_trace,
}  # fmt: skip
