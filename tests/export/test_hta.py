"""Traces in PyTorch's form, as far as HolisticTraceAnalysis looks: its own rules, written down again.

tests/export/test_other_readers.py has HTA itself read them. Planted in a copy of simcore, one at a time: the
compute of a row called `SyncBatchNorm` keeps its name; received transfers are left out. Both failed here.
"""

from __future__ import annotations

import re

from hypothesis import given, settings

from simcore.parameters import Parameters
from simcore.render.export import Export
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.inputs import open_model
from simcore.workload import open_workload
from tests.export.reading import Event, Span, common, covered, exported, length, load, ns
from tests.export.test_chrome import SEED_002
from tests.strategies import Case, Cell, Row, cases, make_workload

# hta.utils.utils, 0.5.0
IS_COMMUNICATION = re.compile(r"^nccl.*Kernel")
IS_MEMORY = re.compile(r"(^Memcpy)|(^Memset)|(^dma)")
IS_NO_COMPUTE = re.compile(r"(^nccl.*Kernel)|(.*(Memcpy)|(Memset))|(.*Sync)")
# hta.common.trace_file: looked for line by line.
RANK = re.compile(r'"rank":\s+(\d+)')


def kernels(data: bytes) -> tuple[list[Span], list[Span]]:
    """(communication, computation), told apart as HTA does; all are on a stream and have a duration."""
    found: tuple[list[Span], list[Span]] = ([], [])
    for event in load(data)["traceEvents"]:
        if event["ph"] != "X" or event["cat"] != "kernel":
            continue
        assert event["args"]["stream"] > 0
        assert event["tid"] == event["args"]["stream"]
        name = event["name"]
        is_communication = IS_COMMUNICATION.match(name) is not None
        assert is_communication or not (IS_MEMORY.match(name) or IS_NO_COMPUTE.match(name))
        start = ns(event["ts"])
        found[not is_communication].append((start, start + ns(event["dur"]), event))
    return found


def files(export: Export) -> dict[str, bytes]:
    assert export.files is not None
    return {file.name: b"".join(file.chunks) for file in export.files}


@settings(max_examples=40)
@given(cases(most_ranks=12))
def test_a_rank_communicates_and_computes_as_the_report_says(case: Case) -> None:
    simulation = simulate(*case)
    results = SimulatedRun(simulation)
    found = files(exported("chrome", *case, every_rank=True, per_rank=True))
    assert len(found) == simulation.layout.world
    for name, data in found.items():
        rank = next(match for line in data.decode().splitlines() if (match := RANK.search(line)))
        assert f"rank-{rank[1]}.json" == name
        number = simulation.timeline.folding.class_of(int(rank[1]))
        communication, computation = kernels(data)
        _, comm, overlapped = results.figures.streams[number]
        assert length(covered(communication)) == comm
        assert length(covered(computation)) == results.accounts[number].busy_ns
        assert common(covered(communication), covered(computation)) == overlapped
        correlations = [span[2]["args"]["correlation"] for span in (*communication, *computation)]
        assert sorted(correlations) == list(range(1, len(correlations) + 1))


def test_a_file_has_the_head_of_a_profiler_trace() -> None:
    export = exported("chrome", open_workload(SEED_002), ranks=[70], per_rank=True)
    found = load(files(export)["rank-70.json"])
    assert found["distributedInfo"] == {"backend": "nccl", "rank": 70, "world_size": 1024}
    assert found["schemaVersion"] == 1
    steps = [event for event in found["traceEvents"] if event["name"] == "ProfilerStep#0"]
    assert [event["cat"] for event in steps] == ["user_annotation"]
    assert ns(steps[0]["dur"]) == simulate(open_workload(SEED_002), Parameters()).step_time_ns
    devices = [device["id"] for device in found["deviceProperties"]]
    assert {event["args"]["device"] for event in found["traceEvents"] if event.get("cat") == "kernel"} == set(
        devices
    )
    names = {event["name"] for event in found["traceEvents"] if is_nccl(event)}
    assert names == {
        f"ncclDevKernel_{kind}" for kind in ("AllReduce", "AllGather", "ReduceScatter", "SendRecv")
    }


def is_nccl(event: Event) -> bool:
    return str(event["name"]).startswith("nccl")


def test_copies_to_the_host_are_memory_to_hta() -> None:
    parameters = Parameters(world=4, tp=2, microbatches=2, offload=50.0)
    found = files(exported("chrome", open_model("llama-3-8b"), parameters, per_rank=True))
    (data,) = found.values()
    copies = [one for one in load(data)["traceEvents"] if IS_MEMORY.match(one["name"])]
    assert {one["name"].split(" (")[0] for one in copies} == {"Memcpy DtoH", "Memcpy HtoD"}
    assert {one["cat"] for one in copies} == {"kernel"}
    assert all(one["args"]["bytes"] > 0 and one["args"]["stream"] == one["tid"] for one in copies)


def test_compute_of_rows_that_hta_would_take_for_something_else_is_called_by_its_line() -> None:
    names = ["SyncBatchNorm", "ncclFakeKernel", "Memcpy", "aMemset", "dma_in", "ProfilerStep#9", "plain"]
    workload = make_workload([Row(name, Cell(10)) for name in names], tp=1, ep=1, pp=1, all_gpus=1)
    (data,) = files(exported("chrome", workload, per_rank=True)).values()
    communication, computation = kernels(data)
    assert not communication
    called = [span[2]["name"] for span in computation]
    assert called == [*(f"line {line} fwd" for line in range(3, 9)), "plain fwd"]
    assert [span[2]["args"]["layer"] for span in computation] == names
