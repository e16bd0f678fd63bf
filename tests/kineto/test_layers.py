"""What a kernel belongs to: the module or annotation around its launch, in the backward pass too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simcore.measured import MeasuredRun
from simcore.measured.facts import device_facts
from simcore.parameters import Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.replay.operations import Operations, groupings
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.kineto.corpus import CORPUS, needs_corpus
from tests.kineto.test_bad_input import event, shown
from tests.says import said

_MAIN, _BACKWARD = 1, 2


def kernel(correlation: int, ts: int, name: str = "gemm") -> dict[str, Any]:
    """A kernel of 10 us that a call of the runtime launched."""
    return event(name=name, ts=ts, args={"stream": 7, "device": 0, "correlation": correlation})


def launch(correlation: int, ts: float, tid: int = _MAIN, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    """That call."""
    args = {"correlation": correlation}
    return event(cat="cuda_runtime", name=name, pid=9, tid=tid, ts=ts, dur=1, args=args)


def around(cat: str, name: str, ts: float, dur: float, tid: int = _MAIN) -> dict[str, Any]:
    """A range of the host."""
    return event(cat=cat, name=name, pid=9, tid=tid, ts=ts, dur=dur, args={})


def flow(number: int, forward: float, backward: float) -> list[dict[str, Any]]:
    """From an operation of the forward pass to one of the backward pass."""
    both = {"id": number, "pid": 9, "cat": "fwdbwd", "name": "fwdbwd"}
    ends = (("s", _MAIN, forward), ("f", _BACKWARD, backward))
    return [both | {"ph": ph, "tid": tid, "ts": ts} for ph, tid, ts in ends]


def run_of(tmp_path: Path, events: list[dict[str, Any]]) -> MeasuredRun:
    """The run of a file with these events."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    run = open_input(str(path))
    assert isinstance(run, MeasuredRun)
    shown(run)
    return run


def layers(run: MeasuredRun) -> list[str | None]:
    """Of each kernel its layer."""
    (rank,) = run.ranks
    assert rank.device is not None
    return rank.device.layer


def two_blocks() -> list[dict[str, Any]]:
    """A model of two blocks with a linear each, and the backward pass of the second one."""
    return [
        around("python_function", "nn.Module: Model_0", 0, 100),
        around("python_function", "nn.Module: Block_0", 10, 30),
        around("python_function", "nn.Module: Linear_0", 12, 20),
        around("cpu_op", "aten::linear", 13, 10),
        launch(1, 15),
        around("python_function", "nn.Module: Block_1", 50, 30),
        around("python_function", "nn.Module: Linear_1", 52, 20),
        around("cpu_op", "aten::linear", 53, 10),
        launch(2, 55),
        around("python_function", "nn.Module: Norm_0", 85, 10),
        launch(3, 88),
        around("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 200, 30, _BACKWARD),
        around("cpu_op", "AddmmBackward0", 202, 20, _BACKWARD),
        launch(4, 205, _BACKWARD),
        launch(5, 300),
        *flow(1, 53, 202),
        *(kernel(number, 1000 + 20 * number) for number in range(1, 6)),
    ]


def test_a_kernel_is_of_the_module_of_which_there_are_several_else_of_the_innermost(tmp_path: Path) -> None:
    assert layers(run_of(tmp_path, two_blocks())) == ["Block_0", "Block_1", "Norm_0", "Block_1", None]


def test_the_backward_pass_has_no_layers_without_its_flows(tmp_path: Path) -> None:
    events = [one for one in two_blocks() if one.get("cat") != "fwdbwd"]
    assert layers(run_of(tmp_path, events)) == ["Block_0", "Block_1", "Norm_0", None, None]


def test_what_a_module_calls_is_forward_and_what_launched_is_no_module(tmp_path: Path) -> None:
    (rank,) = run_of(tmp_path, two_blocks()).ranks
    assert rank.device is not None
    kinds = [rank.ops.category(op) for op in range(5)]
    assert kinds == ["forward", "forward", "forward", "backward", "kernel"]
    assert ("layer", "Block_0") in device_facts(rank, 0)
    assert "layer" not in dict(device_facts(rank, 4))
    assert rank.device.operation == ["aten::linear", "aten::linear", None, "AddmmBackward0", None]


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("FSDP::pre_forward (layers.3)", "layers.3"),
        ("FSDP::all_gather (layers.3)", "layers.3"),
        ("FSDP::x", None),
    ],
)
def test_annotations_of_fsdp_name_their_layer(tmp_path: Path, name: str, layer: str | None) -> None:
    events = [around("user_annotation", name, 0, 100), launch(1, 15), kernel(1, 1000)]
    assert layers(run_of(tmp_path, events)) == [layer]


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("FullyShardedDataParallel._pre_forward", "forward"),
        ("FullyShardedDataParallel._post_forward", "forward"),
        ("FullyShardedDataParallel._pre_backward_prefetch", "backward"),
        ("FullyShardedDataParallel._post_backward_hook", "backward"),
        ("FullyShardedDataParallel._root", "kernel"),
    ],
)
def test_hooks_of_the_first_fsdp_tell_the_phase_and_no_layer(tmp_path: Path, name: str, phase: str) -> None:
    run = run_of(tmp_path, [around("user_annotation", name, 0, 100), launch(1, 15), kernel(1, 1000)])
    assert layers(run) == [None]
    assert run.ranks[0].ops.category(0) == phase


def test_one_launch_of_a_graph_has_many_kernels_of_one_step_and_layer(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        [
            around("user_annotation", "ProfilerStep#1", 0, 100),
            around("python_function", "nn.Module: Model_0", 5, 50),
            launch(1, 10, name="cudaGraphLaunch"),
            around("user_annotation", "ProfilerStep#2", 100, 100),
            launch(2, 110, name="cudaGraphLaunch"),
            # The second step begins while the kernels of the first one's graph still run.
            *(kernel(1, 60 + 12 * number) for number in range(5)),
            *(kernel(2, 130 + 12 * number, "norm") for number in range(5)),
        ],
    )
    assert run.recorded is not None
    assert [len(step.ns) for step in run.recorded.steps] == [1, 1]
    assert run.ranks[0].ops.name == ["norm"] * 5
    first = open_input(run.path, asked_step("1"))
    assert isinstance(first, MeasuredRun)
    assert layers(first) == ["Model_0"] * 5


def asked_step(number: str) -> Any:
    """What asks for a step."""
    from simcore.parameters import OpeningOptions

    return OpeningOptions(step=number)


def test_events_of_another_vendors_device_are_kernels(tmp_path: Path) -> None:
    run = run_of(tmp_path, [event(cat="mtia_ccp_events", name="gemm"), event(cat="gpu_op", ts=200)])
    assert run.ops == 2


def test_layers_are_a_table_of_their_own(tmp_path: Path) -> None:
    results = run_recording(run_of(tmp_path, two_blocks()), Parameters())
    said(run_page(results).splitlines(), "Layers of", "all ranks")
    rows = {(one["name"], one["kind"]): one["total_ns"] for one in run_json(results)["measured"]["layers"]}
    assert rows["Block_1", "forward"] == rows["Block_1", "backward"] == rows["(no layer)", "kernel"] == 10_000
    together = {one.name: one.runs.count for one in Operations(results, "layer").together}
    assert together == {"Block_0": 1, "Block_1": 2, "Norm_0": 1, "(no layer)": 1}
    launched = {one.name: one.runs.count for one in Operations(results, "operation").together}
    assert launched == {"aten::linear": 2, "(no operation around)": 2, "AddmmBackward0": 1}


def test_without_any_layer_there_is_no_table(tmp_path: Path) -> None:
    results = run_recording(run_of(tmp_path, [event(), event(ts=300)]), Parameters())
    assert groupings(results.measured) == ("kernel",)
    assert not any(line.startswith("Layers of ") for line in run_page(results).splitlines())
    assert "layers" not in run_json(results)["measured"]


@needs_corpus
def test_a_real_trace_with_stacks_tells_its_24_layers() -> None:
    run = open_input(str(CORPUS / "h100_qwen.json.gz"))
    assert isinstance(run, MeasuredRun)
    names = {name for name in layers(run) if name is not None and "DecoderLayer" in name}
    assert names <= {f"Qwen2DecoderLayer_{number}" for number in range(24)}
    assert len(names) >= 20
    kinds = {run.ranks[0].ops.category(op) for op, name in enumerate(layers(run)) if name}
    assert kinds <= {"forward", "copy"}
