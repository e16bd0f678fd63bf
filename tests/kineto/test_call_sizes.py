"""Bytes of collectives by the shapes and types of the calls around their launches; why there are none."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.kineto.corpus import DLRM, needs_corpus, raw
from tests.kineto.test_layers import around, kernel, launch

_RANKS, _NS = 4, 100_000
_SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
_ANY = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

# (name, dims, types) of a call.
Call = tuple[str, list[Any], list[str]]


def events_of(calls: list[Call], name: str = _ANY) -> list[dict[str, Any]]:
    """A collective of 100 us whose launch lies in these calls, the outermost first."""
    events = [launch(1, 1050), kernel(1, 2000, name) | {"dur": 100}]
    for depth, (call, dims, types) in enumerate(calls):
        category = "user_annotation" if ":" in call.replace("::", "") else "cpu_op"
        args = {"Input Dims": dims, "Input type": types} if types else {"Input Dims": dims}
        events.append(around(category, call, 1000 + depth, 100 - 2 * depth) | {"args": args})
    return events


def opened(folder: Path, events: list[dict[str, Any]], ranks: int = _RANKS) -> MeasuredRun:
    """A job whose ranks all have these events."""
    for rank in range(ranks):
        who = {"rank": rank, "world_size": _RANKS}
        text = json.dumps({"distributedInfo": who, "traceEvents": events})
        (folder / f"rank{rank}.json").write_text(text)
    run = open_input(str(folder))
    assert isinstance(run, MeasuredRun)
    return run


def told(run: MeasuredRun) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    """(bandwidths, what is without, the page)."""
    results = run_recording(run, Parameters())
    values = run_json(results)["measured"]
    return values["collectives"], values["collectives_without_bandwidth"], run_page(results)


_TENSOR, _LIST = "c10::BFloat16", "TensorList"
# Calls -> (operation, bytes, busbw over algbw).
TOLD: list[tuple[list[Call], str, int, float]] = [
    ([("c10d::allreduce_", [[], [], []], [_LIST, "", ""]), ("nccl:all_reduce", [[1000]], ["float"])],
     "allreduce", 4000, 1.5),
    ([("c10d::allreduce_", [[[10, 100], [24]], [], []], [_LIST, "", ""]),
      ("nccl:all_reduce", [[10, 100], [24]], [_TENSOR, _TENSOR])], "allreduce", 2048, 1.5),
    ([("_c10d_functional::all_reduce", [[10, 100], [], []], [_TENSOR, "", ""])], "allreduce", 2000, 1.5),
    ([("symm_mem::multimem_all_reduce_", [[1000], [], []], [_TENSOR, "", ""])], "allreduce", 2000, 1.5),
    ([("symm_mem::one_shot_all_reduce", [[1000], [], []], ["float", "", ""])], "allreduce", 4000, 1.5),
    ([("symm_mem::one_shot_all_reduce_copy", [[9000], [1000], [], []], ["float", "float", "", ""])],
     "allreduce", 4000, 1.5),
    ([("symm_mem::two_shot_all_reduce_out", [[1000], [], [], [1000]], ["float", "", "", "float"])],
     "allreduce", 4000, 1.5),
    ([("symm_mem::multimem_all_gather_out", [[250], [], [1000]], ["float", "", "float"])],
     "allgather", 4000, 0.75),
    ([("symm_mem::reduce_scatter_out", [[1000], [], [], [250]], ["float", "", "", "float"])],
     "reducescatter", 4000, 0.75),
    ([("c10d::_allgather_base_", [[1000], [250], []], ["half", "half", ""]),
      ("nccl:_all_gather_base", [[250]], ["half"])], "allgather", 2000, 0.75),
    ([("c10d::_reduce_scatter_base_", [[250], [1000], []], ["half", "half", ""]),
      ("nccl:_reduce_scatter_base", [[1000]], ["half"])], "reducescatter", 2000, 0.75),
    ([("c10d::alltoall_base_", [[64, 2], [128], [], [], [], []], ["long int"] * 2 + [""] * 3 + ["Scalar"]),
      ("record_param_comms", [[128], [], []], ["long int", "Scalar", ""]),
      ("nccl:all_to_all", [[128]], ["long int"])], "alltoall", 1024, 0.75),
    ([("record_param_comms", [[128], [], []], ["unsigned char", "Scalar", ""]),
      ("nccl:all_to_all", [[128]], ["unsigned char"])], "alltoall", 128, 0.75),
    ([("c10d::broadcast_", [[[1000]], [], []], [_LIST, "", ""]), ("nccl:broadcast", [[1000]], ["int"])],
     "broadcast", 4000, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("case", TOLD, ids=lambda case: case[0][0][0])
def test_shapes_and_types_of_the_calls_tell_the_bytes(
    tmp_path: Path, case: tuple[list[Call], str, int, float]
) -> None:
    calls, operation, size, factor = case
    (row,), without, page = told(opened(tmp_path, events_of(calls)))
    assert (row["operation"], row["bytes"], row["ranks"]) == (operation, size, _RANKS)
    assert row["algbw_gbps"]["median"] == pytest.approx(size / _NS)
    assert row["busbw_gbps"]["median"] == pytest.approx(factor * size / _NS)
    assert without == []
    assert "without:" not in page


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        ("c10d::_allgather_base_", (250, 1000)), ("c10d::_reduce_scatter_base_", (1000, 250)),
        ("c10d::reduce_scatter_tensor_coalesced_", (1000, 250)), ("c10d::alltoall_base_", (60, 128)),
        ("c10d::gather_", (250, 1000)),
    ],
)  # fmt: skip
def test_what_goes_in_and_what_comes_out_are_told_apart(
    tmp_path: Path, name: str, elements: tuple[int, int]
) -> None:
    put, out = elements
    run = opened(tmp_path, events_of([(name, [[out], [put], []], ["half", "half", ""])]))
    device = run.ranks[0].device
    assert device is not None
    (said,) = device.collectives.values()
    assert (said.elements_in, said.elements_out) == elements


def test_the_kernel_of_a_reduction_tells_its_type_where_no_call_does(tmp_path: Path) -> None:
    calls: list[Call] = [("c10d::allreduce_", [[[1000]], [], []], [_LIST, "", ""])]
    ((row,), _, _) = told(opened(tmp_path, events_of(calls, _REDUCE)))
    assert row["bytes"] == 2000


_UNEVEN: list[Call] = [("c10d::alltoall_base_", [[60], [128], []], ["int", "int", ""])]
# Calls, kernel -> why there is no bandwidth.
UNTOLD: list[tuple[list[Call], str, str]] = [
    ([], _REDUCE, "size not in the trace"),
    ([("nccl:all_reduce", [], [])], _ANY, "size not in the trace"),
    # Of lists an older profiler has no shapes, and the annotation has the first tensor alone.
    ([("c10d::alltoall_", [[], [], []], [_LIST, _LIST, ""]), ("nccl:all_to_all", [[32]], ["int"])], _SEND,
     "size not in the trace"),
    ([("nccl:all_reduce", [[1000]], [])], _ANY, "type not in the trace"),
    ([("c10d::allreduce_", [[[1000]], [], []], [_LIST, "", ""])], _ANY, "type not in the trace"),
    (_UNEVEN, _SEND, "uneven splits"),
    ([("nccl:_all_gather_base", [[250]], ["half"])], _ANY, "number of ranks not in the trace"),
]  # fmt: skip


@pytest.mark.parametrize("case", UNTOLD, ids=lambda case: case[2] + (case[0][0][0] if case[0] else ""))
def test_where_there_is_no_bandwidth_report_and_details_say_why(
    tmp_path: Path, case: tuple[list[Call], str, str]
) -> None:
    calls, name, reason = case
    run = opened(tmp_path, events_of(calls, name))
    rows, (without,), page = told(run)
    assert rows == []
    assert (without["count"], without["reason"]) == (1, reason)
    assert f": {reason}" in page
    lanes = run_recording(run, Parameters()).lanes
    details = dict(lanes.words.detail_rows(0, "stream 7", 0, None))
    assert details["bandwidth"] == f"not known: {reason}"


def test_details_of_a_known_one_have_its_bandwidth(tmp_path: Path) -> None:
    lanes = run_recording(opened(tmp_path, events_of(TOLD[2][0])), Parameters()).lanes
    details = dict(lanes.words.detail_rows(0, "stream 7", 0, None))
    assert details["bandwidth"].startswith("algbw 0.02 GB/s")
    assert "[1000] bfloat16" in details["volume"]


def test_one_member_with_uneven_splits_makes_them_so_for_all(tmp_path: Path) -> None:
    even: list[Call] = [("c10d::alltoall_base_", [[128], [128], []], ["int", "int", ""])]
    opened(tmp_path, events_of(even, _SEND))
    who = {"rank": 2, "world_size": _RANKS}
    text = json.dumps({"distributedInfo": who, "traceEvents": events_of(_UNEVEN, _SEND)})
    (tmp_path / "rank2.json").write_text(text)
    run = open_input(str(tmp_path))
    assert isinstance(run, MeasuredRun)
    rows, (without,), _ = told(run)
    assert rows == []
    assert (without["operation"], without["reason"]) == ("alltoall", "uneven splits")


def test_splits_of_the_metadata_that_differ_are_uneven(tmp_path: Path) -> None:
    for splits, reasons in (("[32, 32, 32, 32]", []), ("[2, 62, 32, 32]", ["uneven splits"])):
        args = {
            "stream": 7, "device": 0, "Collective name": "all_to_allv", "In msg nelems": 128,
            "Out msg nelems": 128, "dtype": "Int", "Group size": 4, "In split size": splits,
            "Out split size": splits,
        }  # fmt: skip
        _, without, _ = told(opened(tmp_path, [kernel(1, 2000, _SEND) | {"args": args}]))
        assert [one["reason"] for one in without] == reasons


def test_of_two_kernels_of_one_call_nobody_knows_what_each_moves(tmp_path: Path) -> None:
    events = [*events_of(TOLD[2][0]), launch(2, 1060), kernel(2, 3000, _ANY)]
    rows, (without,), _ = told(opened(tmp_path, events))
    assert rows == []
    assert (without["count"], without["reason"].split()[0]) == (2, "size")


def test_a_copy_beside_the_kernel_of_a_call_takes_nothing_of_its_size(tmp_path: Path) -> None:
    events = [*events_of(TOLD[2][0]), launch(2, 1060), kernel(2, 3000, "direct_copy_kernel")]
    ((row,), without, _) = told(opened(tmp_path, events))
    assert row["bytes"] == 2000
    assert without == []


def test_a_collective_made_of_others_gives_them_no_size(tmp_path: Path) -> None:
    """An all-gather of uneven parts is broadcasts."""
    name = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    calls: list[Call] = [("c10d::_allgather_base_", [[1000], [250], []], ["half", "half", ""])]
    rows, (without,), _ = told(opened(tmp_path, events_of(calls, name)))
    assert rows == []
    assert without["operation"] == "broadcast"


@pytest.mark.parametrize("ranks", [1, 2])
def test_where_ranks_are_missing_their_number_is_not_known(tmp_path: Path, ranks: int) -> None:
    _, (without,), _ = told(opened(tmp_path, events_of(TOLD[2][0]), ranks))
    assert without["reason"].startswith("number of ranks")


def test_of_one_file_that_does_not_say_among_how_many_it_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": events_of(TOLD[2][0])}))
    run = open_input(str(tmp_path / "a.json"))
    assert isinstance(run, MeasuredRun)
    _, (without,), _ = told(run)
    assert without["reason"].startswith("number of ranks")


def test_a_group_of_one_is_said_to_be_one(tmp_path: Path) -> None:
    args = {
        "stream": 7, "device": 0, "Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8,
        "dtype": "Float", "Group size": 1,
    }  # fmt: skip
    _, without, _ = told(opened(tmp_path, [kernel(1, 2000, _ANY) | {"args": args}]))
    assert {one["reason"] for one in without} == {"a group of one"}


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        (7, ["float"]), ([7], ["float"]), ([[1 << 60, 1 << 60]], ["float"]), ([[-1]], ["float"]),
        ([["x"]], ["float"]), ([[1] * 4000], ["float"]), ([[[[1]]]], [_LIST]), ([[1000]], [7]),
        ([[1000]], {"a": 1}),
    ],
)  # fmt: skip
def test_impossible_shapes_are_none(tmp_path: Path, dims: Any, types: Any) -> None:
    events = events_of([("_c10d_functional::all_reduce", dims, types)])
    rows, (without,), _ = told(opened(tmp_path, events))
    assert rows == []
    assert without["reason"].split()[0] in ("size", "type")


@needs_corpus
def test_all_to_all_of_dlrm_has_the_bandwidth_of_its_shapes() -> None:
    """By the raw files: the shapes that `c10d::alltoall_base_` has around the launch, of all members."""
    size_of = {"float": 4, "int": 4, "long int": 8}
    seen: dict[int, list[tuple[int, int]]] = {}
    for path in sorted(DLRM.glob("worker*")):
        events = [one for one in raw(path)["traceEvents"] if one.get("ph") == "X"]
        kernels = sorted((one for one in events if "SendRecv" in str(one["name"])), key=lambda one: one["ts"])
        for place, one in enumerate(kernels):
            correlation = one["args"]["correlation"]
            (call,) = (
                call for call in events
                if call["cat"] == "cuda_runtime" and call["args"].get("correlation") == correlation
            )  # fmt: skip
            (around_,) = (
                op for op in events
                if op["name"] == "c10d::alltoall_base_" and op["tid"] == call["tid"]
                and op["ts"] <= call["ts"] <= op["ts"] + op["dur"]
            )  # fmt: skip
            (out,), (put,) = around_["args"]["Input Dims"][:2]
            unit = size_of[around_["args"]["Input type"][0]]
            seen.setdefault(place, []).append((out * unit, put * unit))
    sizes = [{size for member in members for size in member} for members in seen.values()]
    wanted = Counter(even.pop() for even in sizes if len(even) == 1)
    run = open_input(str(DLRM))
    assert isinstance(run, MeasuredRun)
    rows, without, _ = told(run)
    found = {row["bytes"]: row["count"] for row in rows if row["operation"] == "alltoall"}
    assert found == wanted
    assert sum(found.values()) == 4
    assert [(one["operation"], one["count"], one["reason"]) for one in without] == [
        ("alltoall", 1, "uneven splits")
    ]
    for row in rows:
        assert row["algbw_gbps"]["median"] == pytest.approx(row["bytes"] / row["median_ns"])


def test_a_call_without_an_id_is_not_that_of_kernels_without_one(tmp_path: Path) -> None:
    call = around("cpu_op", "record_param_comms", 100, 10)
    call["args"] = {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", "Group size": 2}
    run = opened(tmp_path, [call, launch(1, 200), kernel(1, 300, "gemm") | {"dur": 100}], ranks=1)
    (rank,) = run.ranks
    assert rank.device is not None
    assert not rank.device.collectives
