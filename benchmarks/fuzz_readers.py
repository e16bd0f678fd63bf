"""Coverage-guided fuzzing of every reader: a file is read, or refused in the project's own words.

A finding is any other exception, a control character in a message, an input that takes longer or more
memory than MOST_SECONDS and MOST_MB, or the end of the process. One is kept of each kind and place, in
--folder beside the corpus, which the next run begins with. Half of the mutations are libFuzzer's, half are
those of tests/fuzz, which know lines, columns and numbers.

Usage: python benchmarks/fuzz_readers.py [TARGET]... [--minutes N | --mutants N] [--seed N] [--folder FOLDER]
Needs atheris (pip install atheris), but for --mutants, which reads so many changed seeds of each target, the
same ones with the same --seed. The minutes are those of all targets together. Exit status 1 when something
was found.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.fuzz.mutants import CHANGES, SMALL, UNSAFE, Chooser  # noqa: E402

MOST_BYTES = 8192
# Of the processor, for an instrumented reader: a page of text takes it a few milliseconds.
MOST_SECONDS = 2.0
MOST_MB = 200
# For what never returns, and for what fills the memory before it does.
END_SECONDS, END_MB = 60, 1500
KEPT = ("busbw.yaml", "busbw_docs.yaml", "busbw_fixed.yaml")
FIGURES = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
KINETO = b"""{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2,
"pg_config": [{"pg_name": "0", "pg_desc": "dp", "pg_size": 2, "ranks": [0, 1]}]},
"baseTimeNanoseconds": 1711964646000000000, "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 9, "tid": 9, "ts": 90.5, "dur": 200},
{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": 100.655, "dur": 7,
 "args": {"External id": 3, "Collective name": "allreduce", "In msg nelems": 64, "Out msg nelems": 64,
 "dtype": "Float", "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 1}},
{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 9, "tid": 9, "ts": 130.5, "dur": 9,
 "args": {"External id": 4, "Input Dims": [[7], [3, 5], [5, 7], [], []],
 "Input type": ["float", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"],
 "Concrete Inputs": ["", "1"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 132, "dur": 2.5,
 "args": {"correlation": 6, "External id": 4}},
{"ph": "X", "cat": "kernel", "name": "sm90_xmma_gemm", "pid": 0, "tid": 7, "ts": 145, "dur": 8,
 "args": {"External id": 4, "device": 0, "stream": 7, "correlation": 6}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 101, "dur": 2.5,
 "args": {"correlation": 5, "External id": 3}},
{"ph": "s", "id": 5, "pid": 9, "tid": 9, "ts": 101, "cat": "ac2g", "name": "ac2g"},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "pid": 0,
 "tid": 7, "ts": 110, "dur": 30.25, "args": {"External id": 3, "device": 0, "stream": 7, "correlation": 5,
 "grid": [8, 1, 1], "block": [544, 1, 1], "est. achieved occupancy %": 3}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 8, "ts": 120, "dur": 9,
 "args": {"device": 0, "stream": 8, "bytes": 832}}]}
"""
CHROME = b"""[{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "DP rank [0]"}},
{"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": "PP rank 0, TP rank 0, compute"}},
{"ph": "M", "name": "thread_name", "pid": 0, "tid": 2, "args": {"name": "PP rank 1, TP rank 0, pp-comm"}},
{"ph": "i", "name": "iteration begin", "pid": 0, "tid": 1, "ts": 0, "args": {"iteration": 3}},
{"ph": "X", "cat": "forward-compute", "name": "forward-compute", "pid": 0, "tid": 1, "ts": 1, "dur": 5.5,
 "args": {"step": 3, "mb_id": 0, "model_chunk": 0}},
{"ph": "B", "name": "backward", "pid": 0, "tid": 1, "ts": 8}, {"ph": "E", "pid": 0, "tid": 1, "ts": 12,
 "args": {"step": 3, "microbatch": 0}},
{"ph": "b", "cat": "x", "id": "0x7", "name": "forward-recv", "pid": 0, "tid": 2, "ts": 3,
 "args": {"step": 3}},
{"ph": "e", "cat": "x", "id": "0x7", "name": "forward-recv", "pid": 0, "tid": 2, "ts": 7},
{"ph": "X", "name": "dp_allreduce", "pid": 0, "tid": 2, "ts": 13, "dur": 2, "args": {"ranks": "0-1,4"}},
{"ph": "X", "cat": "waiting", "name": "wait", "pid": 0, "tid": 2, "ts": 12, "dur": 1,
 "args": {"for": "dp_allreduce"}}, {"ph": "C", "name": "memory", "pid": 0, "ts": 2, "args": {"bytes": 3}}]
"""
LOG = b"""> setting up
 iteration       10/     500 | consumed samples: 80 | elapsed time per iteration (ms): 99.5 |
 iteration       20/     500 | elapsed time per iteration (ms): 1e2 | lm loss: 1.0E+01 |
Training epoch 0, iteration 5/99 | lr: 1e-05 | global_step: 5 | loss: 2.1 | train_step_timing in s: 1.234
[titan] 2025-06-04 14:02:03,456 - root - INFO - step: 10  loss: 8.1 tps: 1,234
[titan] 2025-06-04 14:02:05,456 - root - INFO - step: 20  loss: 8.0 tps: 1,234
"""
TRACE_MAP = b"""# ours
[[rule]]
name = 'block@(?P<microbatch>\\d+)'
kind = "forward"
[[rule]]
cat = "sync.*"
kind = "all-reduce"
group = "dp"
"""
GPU = b"""[gpu]
base = "h100"
memory = 96
sustained = 0.8
source = "ours"
"""
MODEL = b"""[model]
layers = 4
hidden = 64
heads = 4
kv_heads = 2
ffn = 96
vocab = 100
gated = true
[model.moe]
experts = 4
experts_per_token = 2
ffn = 32
dense_layers = 1
"""
CONFIG = b"""{"architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "hidden_size": 64,
"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
"vocab_size": 100, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
"shared_expert_intermediate_size": 32, "mlp_only_layers": [], "tie_word_embeddings": false}
"""
CONFIG_2 = b"""{"model_type": "deepseek_v3", "hidden_size": 64, "num_hidden_layers": 4, "vocab_size": 100,
"num_attention_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "n_shared_experts": 1,
"qk_rope_head_dim": 4, "v_head_dim": 8, "intermediate_size": 96, "moe_intermediate_size": 16,
"n_routed_experts": 8, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1,
"n_group": 4, "topk_group": 2}
"""
ORDER = b"""0F0,0F1,,0B0,0B1\n,1F0,(1F1;1B0)OVERLAP_F_B,1I1,1W1\n"""
ORDER_SENT = b"""0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"""
ORDER_2 = b"""# ours
0: F0 F1 . B0 B1
1: . F0 B0 F1+B1
"""
SIZES = b"""m,n,k,gemm_dtype\n4096,4096,4096,bf16\n128,256,512,fp8\n"""
JSON_TRACE = b"""{"schema": "1.0.2-chakra.0.0.4"}
{"id": "1", "name": "a", "type": "COMP_NODE", "durationMicros": "7",
 "attr": [{"name": "num_ops", "int64Val": "9"}]}
{"id": 2, "name": "sum", "type": "COMM_COLL_NODE", "dataDeps": ["1"],
 "attr": [{"name": "is_cpu_op", "boolVal": false}, {"name": "comm_type", "int64Val": "0"},
 {"name": "comm_size", "uint64Val": "64"}, {"name": "pg_name", "stringVal": "1"}]}
"""
NODES = b"""{"workload_graph": [
 {"id": 1, "name": "a", "node_type": 4, "runtime": 5, "ctrl_deps": [], "data_deps": []},
 {"id": 2, "node_type": 7, "comm_type": 0, "comm_size": 64, "data_deps": [1],
 "involved_dim": {"values": [true]}}]}
"""
GROUPS = b"""{"1": [0, 1], "2": [2, 3], "17": [3, 0, 1, 2]}"""
MEMORY = b"""{"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 50,
"num-npus-per-node": 4}
"""
AICB = (
    b"--frame Megatron --world_size 8 --tensor_model_parallel_size 2 --pipeline_model_parallel 2 "
    b"--num_layers 4 --global_batch 16"
)
SCRIPT = b"""#!/bin/bash
GPUS=8
torchrun --nproc_per_node $GPUS pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 \\
  --seq-length 128 --micro-batch-size 1 --global-batch-size 16 --tensor-model-parallel-size ${TP:-2}
"""
TITAN = b"""[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 2048
[parallelism]
tensor_parallel_degree = 2
"""
DEEPSPEED = (
    b"""{"train_batch_size": 16, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 3}}"""
)
MAP = b"""family = "llama"
[fields]
hidden_size = "hidden"
layers = "depth"
heads = "deep.heads"
vocab = 1000
"""
SLURM = b"""account = "ours"
queue = "gpu"
walltime = "01:00:00"
cores = 8
memory = "16GB"
jobs = 2
prologue = ["module load cuda"]
"""
POLICIES = b"""HYBRID_DLRM 1
3
a -1 10 ALLTOALL 400 20 NONE 0 30 ALLREDUCE 900 10
b -1 10 NONE 0 20 ALLGATHER 64 30 REDUCESCATTER 900 10
embedding -1 10 ALLTOALL 400 20 ALLTOALL 0 30 NONE 0 10
"""
CUSTOMIZED = b"""HYBRID_CUSTOMIZED
1
a -1 10 ALLREDUCE 400 20 NONE 0 30 ALLREDUCE 900 10 1,0 0,1 1,1
"""
CLUSTER = b"""# ours
dim = ["ring:4:400:500", "switch:8:50:1000"]
algorithm = ["1=ring"]
splits = 4
active_chunks = 2
endpoint_delay = 0
local_mem_bw = 1200.5
collective_optimization = "baseline"
"""
NETWORK = b"""# two dimensions
topology: [ Ring, Switch ]  # Ring, Switch, FullyConnected
npus_count: [ 4, 8 ]
bandwidth: [ 400.0, 50 ]    # GB/s
latency: [ 500.0, 2e3 ]     # ns
"""
TOPOLOGY = b"""8 4 1 1 8 H100\n6 7\n0 6 2880Gbps 0.000025ms 0\n1 6 2880Gbps 0.000025ms 0
2 6 2880Gbps 25ns 0\n3 6 2.88Tbps 25ns 0\n0 7 400Gbps 0.0005ms 0\n1 7 400Gbps 0.5us 0\n2 7 400Gbps 500ns 0
3 7 400Gbps 500ns 0\n"""
NODE_LINK = b"""{"graph": {"gpus_per_server": 2},
"nodes": [{"id": "a", "kind": "gpu"}, {"id": 7, "type": "host"}, {"id": "n", "kind": "nvswitch"},
 {"id": "s", "role": "switch"}],
"links": [{"source": "a", "target": "n", "gbps": 2880, "latency_ns": 25},
 {"source": 7, "target": "n", "gbps": 2880, "latency_ns": 25},
 {"source": "a", "target": "s", "rate": "400Gbps", "latency": "0.5us"},
 {"source": 7, "target": "s", "gbps": 400, "latency_ns": 500}]}
"""
GRAPHML = b"""<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="kind" attr.type="string"/>
<key id="d1" for="edge" attr.name="gbps" attr.type="double"/><key id="d2" for="edge" attr.name="latency_ns"
attr.type="long"/><graph edgedefault="undirected"><node id="a"><data key="d0">gpu</data></node>
<node id="b"><data key="d0">host</data></node><node id="s"><data key="d0">switch</data></node>
<edge source="a" target="s"><data key="d1">400.5</data><data key="d2">500</data></edge>
<edge source="b" target="s"><data key="d1">4e2</data><data key="d2">500</data></edge></graph></graphml>
"""
NETWORK_1 = b"""{"topology-name": "Hierarchical", "topologies-per-dim": ["Ring", "FullyConnected", "Switch"],
"dimension-type": ["N", "P", "P"], "dimensions-count": 3, "units-count": [4, 5, 2], "links-count": [2, 2, 3],
"link-latency": [500, 1, 0], "link-bandwidth": [25.0, 100, 50], "nic-latency": [0, 0, 0]}
"""
CONFIGURATION = b"""ENABLE_QCN 1\nPACKET_PAYLOAD_SIZE 9000\nHAS_WIN 1\nCC_MODE 1\nKMIN_MAP 2 400 400 2880 800
KMAX_MAP 2 400 1600 2880 3200\nPMAX_MAP 2 400 0.2 2880 0.2\n"""
SYSTEM = b"""{"scheduling-policy": "LIFO", "endpoint-delay": 7, "active-chunks-per-dimension": 2,
"preferred-dataset-splits": 4, "all-reduce-implementation": ["ring", "halvingDoubling"],
"all-to-all-implementation": ["direct2", "oneDirect4"], "collective-optimization": "baseline",
"local-mem-bw": 1600}
"""
SYSTEM_1 = b"""scheduling-policy: FIFO
endpoint-delay: 1
preferred-dataset-splits: 64
boost-mode: 0
all-reduce-implementation: ring_halvingDoubling
all-to-all-implementation: direct_direct3
collective-optimization: baseline
"""
PARAMETERS = b"""compute_scale = 0.9
slow_rank = ["37=1.3", "7=2"]
overlap_grad_reduce = true
cluster = "h200-8"
schedule = "interleaved"
microbatches = 4
"""
KEYMAP = b"""[timeline]
zoom-in = "i"
pan-left = ["Ctrl+b", "Ctrl+g"]
[app]
help = "F1"
"""


def workload(path: str, data: bytes) -> Any:
    """The file, and what a check says of it."""
    from simcore.sources.checking import check_file_of
    from simcore.sources.inputs import read_input

    return check_file_of(lambda: read_input(BytesIO(data), name=path))


def profile(path: str, data: bytes) -> Any:
    """A profiler's file, with all that a page makes of it."""
    from simcore.measured import MeasuredRun
    from simcore.parameters import Parameters
    from simcore.render.report.pages import run_page
    from simcore.runs.measured import run_recording
    from simcore.sources.inputs import open_input

    found = open_input(path)
    if isinstance(found, MeasuredRun):
        # Products are read from the file a second time.
        run_page(run_recording(found, Parameters(gpu="h100" if found.timed else None)))
    return found


def trace_map(path: str, data: bytes) -> Any:
    from simcore.sources.trace_maps import read_trace_map

    return read_trace_map(path)


def traces(path: str, data: bytes) -> Any:
    """An execution trace of one rank, alone and beside a second rank whose trace is whole, read and run by
    both rules and on links, with its page.
    """
    from simcore.chakra import find_set, open_set
    from simcore.diagnostics import InputError, UsageError
    from simcore.executing.execution_result import Execution
    from simcore.parameters import Parameters
    from simcore.render.report.pages import run_page
    from simcore.runs.executed import run_execution

    beside, second = Path(f"{path}-pair.0.et"), Path(f"{path}-pair.1.et")
    Path(f"{path}.0.et").write_bytes(data)
    beside.write_bytes(data)
    if not second.exists():
        second.write_bytes(_partner())
    for first in (str(beside), f"{path}.0.et"):
        files = find_set(first)
        assert files is not None
        try:
            found = open_set(files)
        except InputError:
            if first != str(beside):
                raise
            continue
        for asked in (
            {"dialect": "astra-sim-2", "dim": ("switch:2:50:500",)},
            {"dialect": "astra-sim-2", "network": "links", "dim": ("switch:2:50:500",)},
            {"network": "links"},
        ):
            try:
                run_execution(Execution(found, Parameters(**asked)))
            except (InputError, UsageError) as error:
                str(error)
        if first == str(beside):
            try:
                run_page(run_execution(Execution(found, Parameters())))
            except InputError as error:
                str(error)
    run_page(run_execution(Execution(found, Parameters())))
    return found


def _pair() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Nodes of two ranks: compute, a collective, a message from the first to the second."""
    from tests.executing.encoding import COLL, COMP, RECV, SEND

    ends = {"comm_src": 0, "comm_dst": 1, "comm_tag": 3, "comm_size": 4096}
    first: list[dict[str, Any]] = [
        {"id": 1, "name": "mb0.fwd", "type": COMP, "micros": 5, "attributes": {"num_ops": 7}},
        {"id": 2, "name": "sum", "type": COLL, "data": [1], "attributes": {"comm_type": 0, "comm_size": 64}},
        {"id": 3, "name": "send", "type": SEND, "ctrl": [1], "attributes": ends},
    ]
    return first, [*first[:2], {"id": 3, "name": "receive", "type": RECV, "data": [2], "attributes": ends}]


def _partner() -> bytes:
    from tests.executing.encoding import et_bytes

    return et_bytes(_pair()[1])


def _traces() -> list[bytes]:
    """Small execution traces: one rank's with all kinds of nodes, a pair's first, of the older schemas."""
    from tests.executing.encoding import COLL, COMP, LOAD, et_bytes, field
    from tests.executing.old_schemas import OLD

    nodes = [
        {"id": 4, "name": "fwd", "type": COMP, "micros": 7, "attributes": {"is_cpu_op": False, "num_ops": 9}},
        {"id": 7, "type": COLL, "data": [4], "attributes": {"comm_type": 0, "comm_size": 4096, "pg_name": "1",
                                                            "involved_dim": [True, False]}},
        {"id": 9, "type": LOAD, "ctrl": [4, 7], "attributes": {"tensor_size": 1 << 40}},
        {"id": 12, "name": "cpu", "type": COMP, "micros": 1, "attributes": {"is_cpu_op": True, "x": 0.5}},
    ]  # fmt: skip
    bare = et_bytes(nodes, packed=False, head=field(2, b""))
    return [et_bytes(nodes), et_bytes(_pair()[0]), bare, *OLD.values()]


def dumps(path: str, data: bytes) -> Any:
    """A flight recorder dump, alone and beside that of a second rank, with all that a page makes of it. JSON
    is also read in this process, where its reader is instrumented; a pickle never is.
    """
    from simcore.flight.columns import read_table
    from simcore.flight.findings import find_hang
    from simcore.flight.opening import open_dumps
    from simcore.parameters import Parameters, RunInput
    from simcore.render.report.pages import run_page
    from simcore.runs.hung import run_dumps
    from simcore.unpickling.worker import reply_to
    from simcore.workload.ignored_files import IgnoredFiles

    if data[:1] != b"\x80":
        reply_to(data, read_table)
    folder = Path(f"{path}-ranks")
    folder.mkdir(exist_ok=True)
    (folder / "rank_0").write_bytes(data)
    (folder / "rank_1").write_bytes(_dumps()[1])
    record = open_dumps(str(folder), ["rank_0", "rank_1"], IgnoredFiles())
    find_hang(record)
    run_page(run_dumps(RunInput(record, Parameters())))
    return record


@cache
def _dumps() -> list[bytes]:
    """Small dumps of two ranks as pickles of both protocols, and as JSON."""
    import pickle

    from tests.hangs.incidents import Fault, dumps_of

    made = dumps_of(Fault(stops={1: 4}), ring=4)
    return [pickle.dumps(made[0], 2), pickle.dumps(made[1], 4), json.dumps(made[0]).encode()]


def snapshots(path: str, data: bytes) -> Any:
    """A memory snapshot, alone and beside that of a second rank, with all that a page makes of it. What it
    holds is also read in this process, where its reader is instrumented, from JSON: a pickle never is.
    """
    from simcore.parameters import Parameters, RunInput
    from simcore.render.export import Request, find_format
    from simcore.render.report.pages import run_page
    from simcore.runs.snapshot import run_snapshots
    from simcore.snapshots.columns import read_table
    from simcore.snapshots.opening import open_snapshots
    from simcore.unpickling.worker import reply_to
    from simcore.workload.ignored_files import IgnoredFiles

    if data[:1] != b"\x80":
        reply_to(data, read_table)
    folder = Path(f"{path}-ranks")
    folder.mkdir(exist_ok=True)
    (folder / "rank_0").write_bytes(data)
    (folder / "rank_1").write_bytes(_snapshots()[1])
    record = open_snapshots(str(folder), ["rank_0", "rank_1"], IgnoredFiles())
    run = run_snapshots(RunInput(record, Parameters()))
    run_page(run)
    for name in ("csv", "chrome"):
        export = find_format(name, "--format").build_export(Request(record, Parameters(), run=run))
        b"".join(export.chunks).decode("utf-8")
    for track_id in range(len(run.tracks)):
        for stream in (None, *run.lanes.streams(track_id)):
            run.lanes.content(track_id, stream)
    return record


@cache
def _snapshots() -> list[bytes]:
    """Small snapshots as pickles of both protocols, and as JSON."""
    import pickle

    from tests.snapshots.made import random_run, snapshot

    made = [snapshot(random_run(seed, 14, expandable=seed == 1)) for seed in range(2)]
    return [pickle.dumps(made[0], 2), pickle.dumps(made[1], 4), json.dumps(made[0]).encode()]


def cluster(path: str, data: bytes) -> Any:
    from simcore.cluster.files import read_cluster_file

    return read_cluster_file(path)


def system(path: str, data: bytes) -> Any:
    from simcore.cluster.files import read_system_file

    return read_system_file(path, 2)


def busbw(path: str, data: bytes) -> Any:
    from simcore.compat.simai_busbw import BusbwFile

    return BusbwFile(path)


def nccl_tests(path: str, data: bytes) -> Any:
    """What nccl-tests printed, with bandwidths between and beyond its sizes."""
    from simcore.collectives.nccl_tests import read_measured

    tables = read_measured(path)
    for table in tables:
        for size in (1, 1 << 20, 1 << 40, *(one.size for one in table.times[:8])):
            table.busbw_of(size)
    return tables


def followed_log(path: str, data: bytes) -> Any:
    """A log that comes in two halves, with the page of its steps."""
    from simcore.measured import MeasuredRun
    from simcore.parameters import OpeningOptions, Parameters
    from simcore.render.report.pages import run_page
    from simcore.runs.measured import run_recording
    from simcore.sources.following import Follower

    follower = Follower(path, OpeningOptions(step="all"))
    Path(path).write_bytes(data[: len(data) // 2])
    runs = [follower.look()]
    with open(path, "ab") as file:
        file.write(data[len(data) // 2 :])
    runs.append(follower.look())
    for run in runs:
        if isinstance(run, MeasuredRun):
            run_page(run_recording(run, Parameters()))
    return runs[-1]


def parameters(path: str, data: bytes) -> Any:
    from simcore.parameter_values.parameters_file import read_parameters

    return read_parameters(path)


def keymap(path: str, data: bytes) -> Any:
    from tui.app import WltuiApp
    from tui.keys import read_keymap
    from tui.screens import all_bindings

    return read_keymap(path, all_bindings(), WltuiApp.BINDINGS)


def session(path: str, data: bytes) -> Any:
    """A session file; one that is damaged is set aside with these words."""
    from simcore.diagnostics import Diagnostic, InputError
    from tui.state.checking import InvalidSession
    from tui.state.files import read_text
    from tui.state.session_content import parse_session

    os.chmod(path, 0o600)
    try:
        return parse_session(read_text(path) or "")
    except InvalidSession as error:
        raise InputError(Diagnostic("error", "session", str(error), path)) from None


def results(path: str, data: bytes) -> Any:
    """The lines of a sweep, and their page."""
    from simcore.sweeping.outcome import Outcome
    from simcore.sweeping.pages import json_values, text_page
    from simcore.sweeping.pareto_front import Rule, rule_of
    from simcore.sweeping.results_file import ResultsReader

    reader = ResultsReader(path)
    points = reader.read_new()
    outcome = Outcome(rule_of(points[0].rule) if points and points[0].rule else Rule(), points)
    if reader.best is not None:
        outcome.robustness, outcome.spread = reader.best.robustness, reader.best.spread
    json.dumps(json_values(outcome))
    return Words(text_page(outcome, "r").split("\n"))


class Words:
    """Lines of a page, as what a reader says."""

    def __init__(self, lines: list[str]) -> None:
        from simcore.diagnostics import Diagnostic

        self.diagnostics = [Diagnostic("note", "page", line) for line in lines]


def _results() -> list[bytes]:
    from simcore.records import replace
    from simcore.sweeping.best_line import encode_best
    from simcore.sweeping.outcome import Outcome, Robustness, Spread
    from simcore.sweeping.pareto_front import Rule
    from simcore.sweeping.point import encode_point
    from tests.sweep.made import made_point

    points = [made_point(0, 10), made_point(1, None), made_point(2, 30, tp=2, schedule="1f1b")]
    parameters = {"tp": 2, "slow_rank": ["3=1.5"], "compute_scale": 0.5}
    command = "wltui report x --tp 2 --compute-scale 0.5 --slow-rank 3=1.5"
    points.append(replace(made_point(3, 40), parameters=parameters, command=command, rule="time+memory;10;"))
    outcome = Outcome(Rule(), points)
    outcome.robustness, outcome.spread = Robustness({0: 6, 2: 3}, 9, "noise"), Spread(0.04, 15)
    ended = b"".join([*map(encode_point, points), encode_best(points[0].sweep, outcome)])
    return [b"".join(map(encode_point, points)), encode_point(points[3]), ended]


def gpu(path: str, data: bytes) -> Any:
    from simcore.model.gpu import find_gpu

    return find_gpu(path)


def model(path: str, data: bytes) -> Any:
    """A model, and a step of it."""
    from simcore.diagnostics import UsageError
    from simcore.model.opening import read_model
    from simcore.model.resolving import resolve_training
    from simcore.parameters import Parameters
    from simcore.workload.model import ModelParameters

    found, diagnostics = read_model(path, data)
    with contextlib.suppress(UsageError):
        resolve_training(found, Parameters(world=8, tp=2).part(ModelParameters))
    return Words([one.text() for one in diagnostics])


def launch(path: str, data: bytes) -> Any:
    """Launch arguments: a script, TOML or JSON."""
    from simcore.diagnostics import Diagnostic, InputError, UsageError
    from simcore.model.launch import read_launch_file

    try:
        return read_launch_file(path)
    except UsageError as error:
        raise InputError(Diagnostic("error", "launch", str(error))) from None


def model_map(path: str, data: bytes) -> Any:
    """The fields of a model under other names."""
    from simcore.model.model_map import map_fields

    return map_fields("config.json", {"hidden": 64, "depth": 4, "deep": {"heads": 4}}, path)


def lengths(path: str, data: bytes) -> Any:
    """Lengths of documents."""
    from simcore.model.packing import _read_lengths

    return _read_lengths(path, 2, 2, 4096)


def prices(path: str, data: bytes) -> Any:
    """Prices of GPUs."""
    from simcore.diagnostics import Diagnostic, InputError, UsageError
    from simcore.sweeping.prices import read_prices

    try:
        return read_prices(path, ("h100",))
    except UsageError as error:
        raise InputError(Diagnostic("error", "prices", str(error))) from None


def slurm(path: str, data: bytes) -> Any:
    """Jobs to request of Slurm."""
    from simcore.diagnostics import Diagnostic, InputError, UsageError
    from simcore.sweeping.clusters import slurm_arguments

    try:
        return slurm_arguments(path)
    except UsageError as error:
        raise InputError(Diagnostic("error", "slurm", str(error))) from None


def order(path: str, data: bytes) -> Any:
    from simcore.diagnostics import InputError
    from simcore.program.order_files import check_order

    _, diagnostics = check_order(path)
    if diagnostics:
        raise InputError(*diagnostics)


def sizes(path: str, data: bytes) -> Any:
    from simcore.model.gpu import find_gpu
    from simcore.model.operations.alone import price_file

    return price_file(find_gpu("h100"), "product", path)


def loads(path: str, data: bytes) -> Any:
    """Tokens of experts."""
    from simcore.model.imbalance import _read_weights

    return _read_weights(path, 4, 2)


def arguments(path: str, data: bytes) -> Any:
    """Arguments of AICB, as a text."""
    from simcore.diagnostics import Diagnostic, InputError, UsageError
    from simcore.model.aicb_arguments import AicbArguments

    try:
        return AicbArguments(data.decode("utf-8", "surrogateescape"))
    except UsageError as error:
        raise InputError(Diagnostic("error", "aicb", str(error))) from None


def groups(path: str, data: bytes) -> Any:
    from simcore.compat.astra2_system import read_groups

    return read_groups(path, 4)


def memory(path: str, data: bytes) -> Any:
    from simcore.compat.astra2_system import read_memory

    return read_memory(path)


def json_trace(path: str, data: bytes) -> Any:
    """The JSON form of an execution trace, run."""
    from simcore.chakra import find_set, open_set
    from simcore.executing.execution_result import Execution
    from simcore.parameters import Parameters
    from simcore.render.report.pages import run_page
    from simcore.runs.executed import run_execution

    Path(f"{path}-set.0.json").write_bytes(data)
    files = find_set(f"{path}-set")
    assert files is not None
    found = open_set(files)
    run_page(run_execution(Execution(found, Parameters())))
    return found


def cached(path: str, data: bytes) -> Any:
    """Cached columns whose checksum is right: nothing, or what was kept."""
    import zlib

    from simcore.kineto.cache import _MAGIC, load

    entry = Path(f"{path}-traces") / "a.columns"
    entry.parent.mkdir(mode=0o700, exist_ok=True)
    entry.touch(0o600)
    entry.write_bytes(_MAGIC + zlib.crc32(data).to_bytes(4, "big") + data)
    return load(str(entry), "trace.json")


def _cached() -> list[bytes]:
    from simcore.kineto.cache import _CHECKSUM_BYTES, _MAGIC, keep
    from simcore.kineto.reading import read_file_events

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "traces", "a.columns")
        keep(path, read_file_events("trace.json", KINETO))
        return [Path(path).read_bytes()[len(_MAGIC) + _CHECKSUM_BYTES :]]


def _session() -> list[bytes]:
    """A session with everything in it that one can have."""
    from simcore.parameters import Parameters
    from tui.state.files import Identity
    from tui.state.session_content import Stored, StoredRun, format_session
    from tui.timeline.saved import SavedMark, SavedTimeline

    key = (("stage",), 1, 2, None)
    timeline = SavedTimeline(
        9000, 0, 500, 10, 80, 20, key, 0, "busy", (key,), (), ((1, (2, 3)),), (key,), (), "mlp", (1,), "fwd",
        7, (1, 5), (SavedMark("a", 5, key, "here"),),
    )  # fmt: skip
    runs = (StoredRun(Parameters(pp=2), "two", 5000),)
    stored = Stored(Identity(9, 8, 7), "0.1.0", "timeline", Parameters(tp=4), runs, {"timeline": timeline})
    return [format_session(stored).encode()]


def _fixture(name: str, most: int = MOST_BYTES // 2) -> bytes:
    """The beginning of a fixture, whole lines."""
    data = next((ROOT / "fixtures").glob(f"{name}*")).read_bytes()[:most]
    return data[: data.rfind(b"\n") + 1] or data


def _export() -> list[bytes]:
    """A small export of Nsight Systems."""
    import sqlite3

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.sqlite"
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("pragma page_size = 512")
            kernels = "CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, shortName)"
            connection.execute(f"create table {kernels}")
            connection.execute("create table StringIds (id, value)")
            connection.execute("insert into StringIds values (1, 'gemm')")
            connection.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (10, 20, 0, 7, 1)")
        connection.close()
        return [path.read_bytes()]


def _small_simai() -> list[bytes]:
    """SimAI's texts with the count that fits the rows left over, so that they are read to the end."""
    whole = [_fixture(name) for name in ("000", "001", "002")]
    rows = [b"\n".join([*text.split(b"\n")[:1], b"3", *text.split(b"\n")[2:5], b""]) for text in whole]
    return [*whole, *rows, SMALL["old_transformer.txt"]]


def _kept(pattern: str) -> list[bytes]:
    """The files of tests of recordings that fit a pattern."""
    return [path.read_bytes() for path in sorted((ROOT / "tests/kineto").glob(pattern))]


# What reads, and what it is seeded with.
TARGETS: dict[str, tuple[Callable[[str, bytes], Any], Callable[[], list[bytes]]]] = {
    "simai": (workload, _small_simai),
    "policies": (workload, lambda: [POLICIES, CUSTOMIZED, POLICIES.replace(b"HYBRID_DLRM 1", b"DATA")]),
    "op-table-csv": (workload, lambda: [_fixture("003"), _fixture("003", 700)]),
    "op-table-json": (workload, lambda: [SMALL["op_table.json"]]),
    "rank-trace": (workload, lambda: [_fixture("004"), _fixture("004", 2000)]),
    "kineto": (profile, lambda: [KINETO, KINETO.replace(b'"cat": "kernel"', b'"cat": "cpu_op"')]),
    "chrome": (
        profile,
        lambda: [CHROME, b'{"traceEvents": ' + CHROME + b"}", *_kept("chrome_traces/*.json")],
    ),
    "training-log": (profile, lambda: [LOG, *_kept("cases/*.log")]),
    "followed-log": (followed_log, lambda: [LOG, *_kept("cases/*.log")]),
    "nccl-tests": (nccl_tests, lambda: _kept("../networks/nccl_tests/*")),
    "trace-map": (trace_map, lambda: [TRACE_MAP]),
    "nsys": (profile, _export),
    "execution-trace": (traces, _traces),
    "flight-recorder": (dumps, _dumps),
    "memory-snapshot": (snapshots, _snapshots),
    "cluster-toml": (cluster, lambda: [CLUSTER]),
    "astra-network": (cluster, lambda: [NETWORK, NETWORK_1]),
    "topology": (cluster, lambda: [TOPOLOGY, NODE_LINK, GRAPHML]),
    "astra-system": (system, lambda: [SYSTEM, SYSTEM_1, CONFIGURATION]),
    "busbw": (busbw, lambda: [(ROOT / "tests/networks/simai" / name).read_bytes() for name in KEPT]),
    "parameters": (parameters, lambda: [PARAMETERS]),
    "keymap": (keymap, lambda: [KEYMAP]),
    "session": (session, _session),
    "sweep-results": (results, _results),
    "gpu": (gpu, lambda: [GPU]),
    "model": (model, lambda: [MODEL]),
    "config": (model, lambda: [CONFIG, CONFIG_2]),
    "launch": (launch, lambda: [SCRIPT, TITAN, DEEPSPEED]),
    "model-map": (model_map, lambda: [MAP]),
    "sequence-lengths": (lengths, lambda: [b"0 0 4096\n0 1 2048 2048\n1 0 4096\n1 1 1000 3096\n"]),
    "prices": (prices, lambda: [b"h100 = 2.5\nh200 = 3\n"]),
    "slurm": (slurm, lambda: [SLURM]),
    "order": (order, lambda: [ORDER, ORDER_2, ORDER_SENT]),
    "operation-sizes": (sizes, lambda: [SIZES]),
    "expert-loads": (loads, lambda: [b"10 20 30 40.5\n", b"# of ranks\n10, 20\n"]),
    "aicb-arguments": (arguments, lambda: [AICB]),
    "comm-groups": (groups, lambda: [GROUPS]),
    "remote-memory": (memory, lambda: [MEMORY]),
    "json-trace": (json_trace, lambda: [JSON_TRACE, NODES]),
    "span-csv": (profile, lambda: [SMALL["spans.csv"]]),
    "cache": (cached, _cached),
}
# The modules that read what a user names, and by which targets they are reached. Whatever else opens or
# parses something is in `OWN`, with what that is: a test fails for a module that is in neither.
READERS = {
    "simcore/chakra/files.py": "json-trace",
    "simcore/chakra/json_form.py": "json-trace",
    "simcore/chakra/opening.py": "execution-trace",
    "simcore/cluster/files/cluster_toml.py": "cluster-toml",
    "simcore/cluster/files/graphml.py": "topology",
    "simcore/cluster/files/node_link.py": "topology",
    "simcore/cluster/files/source.py": "cluster-toml",
    "simcore/collectives/nccl_tests.py": "nccl-tests",
    "simcore/compat/astra2_rules.py": "execution-trace",
    "simcore/compat/astra2_system.py": "comm-groups",
    "simcore/unpickling/files.py": "memory-snapshot",
    "simcore/unpickling/process.py": "flight-recorder",
    "simcore/unpickling/worker.py": "flight-recorder",
    "simcore/flight/columns.py": "flight-recorder",
    "simcore/kineto/allocations.py": "kineto",
    "simcore/kineto/cache.py": "cache",
    "simcore/kineto/products.py": "kineto",
    "simcore/kineto/chrome/events.py": "chrome",
    "simcore/kineto/events.py": "kineto",
    "simcore/kineto/loading.py": "kineto",
    "simcore/kineto/nsys.py": "nsys",
    "simcore/kineto/opening.py": "kineto",
    "simcore/measured/opening.py": "rank-trace",
    "simcore/model/gpu.py": "gpu",
    "simcore/model/huggingface.py": "config",
    "simcore/model/imbalance.py": "expert-loads",
    "simcore/model/launch/__init__.py": "launch",
    "simcore/model/maker.py": "model",
    "simcore/model/model_map.py": "model-map",
    "simcore/model/opening.py": "model",
    "simcore/model/operations/alone.py": "operation-sizes",
    "simcore/model/packing.py": "sequence-lengths",
    "simcore/model/toml_file.py": "model",
    "simcore/model/toml_text.py": "model",
    "simcore/parameter_values/parameters_file.py": "parameters",
    "simcore/program/order_files.py": "order",
    "simcore/sources/inputs.py": "simai",
    "simcore/sources/trace_maps.py": "trace-map",
    "simcore/sweeping/clusters.py": "slurm",
    "simcore/sweeping/point_lines.py": "sweep-results",
    "simcore/sources/following.py": "followed-log",
    "simcore/sweeping/prices.py": "prices",
    "simcore/sweeping/results_file.py": "sweep-results",
    "simcore/sweeping/best_line.py": "sweep-results",
    "simcore/workload/formats/op_table_json.py": "op-table-json",
    "simcore/workload/formats/span_csv.py": "span-csv",
    "simcore/workload/opening.py": "simai",
    "tui/commands/opened.py": "sweep-results",
    "tui/keys/keymap.py": "keymap",
    "tui/state/checking.py": "session",
    "tui/state/files.py": "session",
    "tui/state/keeper.py": "session",
}
_SAME, _OURS, _SYSTEM, _OUTPUT = "by another reader", "a file of the program", "of the system", "only written"
OWN = {
    "simcore/compat/simai_auto.py": _OURS,
    "simcore/executing/sibling_files.py": _SAME,
    "simcore/kineto/repairing.py": _SAME,
    "simcore/model/operations/experts.py": _OURS,
    "simcore/model/operations/timing.py": _OURS,
    "simcore/model/trust.py": _OURS,
    "simcore/pipes.py": _SAME,
    "simcore/render/export/saving.py": _OUTPUT,
    "simcore/render/page/document.py": _OURS,
    "simcore/sweeping/evaluating.py": "hashed alone",
    "simcore/workload/memory.py": _SYSTEM,
    "tui/cli.py": _OUTPUT,
    "tui/commands/models.py": _SAME,
    "tui/commands/on_screen.py": _SYSTEM,
    "tui/notes/listing.py": _SAME,
    "tui/terminal/driver.py": _SYSTEM,
}


class Judge:
    """Reads inputs, and keeps the first one of each finding."""

    def __init__(self, name: str, folder: Path) -> None:
        self.read = TARGETS[name][0]
        self._folder = folder
        self._path = str(folder / "input")
        self._known: set[tuple[str, str]] = set()

    def opened(self, data: bytes) -> list[str]:
        """What is said of an input."""
        from simcore.diagnostics import InputError

        if self.read is not workload:
            Path(self._path).write_bytes(data)
        try:
            found = self.read(self._path, data)
        except InputError as error:
            return str(error).split("\n")
        return [one.text() for one in getattr(found, "diagnostics", ())]

    def one(self, data: bytes) -> None:
        """One input."""
        begin, before = time.process_time(), _resident_mb()
        said: list[str] = []
        try:
            said = self.opened(data)
        except Exception as error:
            self._keep(type(error).__name__, _place(error), data)
        if time.process_time() - begin > MOST_SECONDS:
            self._keep("slow", "", data)
        if _resident_mb() - before > MOST_MB:
            self._keep("memory", "", data)
        unsafe = next((line for line in said if UNSAFE.search(line)), None)
        if unsafe is not None:
            self._keep("control character", " ".join(unsafe.split()[1:3]), data)

    def _keep(self, kind: str, place: str, data: bytes) -> None:
        if (kind, place) in self._known:
            return
        self._known.add((kind, place))
        name = f"finding-{len(self._known)}"
        (self._folder / name).write_bytes(data)
        with open(self._folder / "findings.json", "a", encoding="utf-8") as file:
            file.write(json.dumps([kind, place, str(self._folder / name)]) + "\n")


def _place(error: BaseException) -> str:
    """The last line of ours that an exception came through."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if str(ROOT) in one.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def inside(name: str, folder: Path, seconds: int, seed: int) -> None:
    """One target in this process, as long as `seconds`."""
    import atheris  # type: ignore[import-not-found]

    atheris.enabled_hooks.add("str")
    judge = Judge(name, folder)
    with atheris.instrument_imports(include=["simcore", "tui.keys", "tui.state", "tomllib", "yaml"]):
        # Once, so that what a reader imports when it is needed is instrumented, and takes no time later.
        for data in TARGETS[name][1]():
            judge.opened(data)

    def changed(data: bytes, most: int, number: int) -> bytes:
        if number % 2:
            return bytes(atheris.Mutate(data, most))
        choose = Chooser(number)
        return choose.one_of(CHANGES)(data, choose)[:most]

    limits = [f"-timeout={END_SECONDS}", f"-rss_limit_mb={END_MB}", f"-max_len={MOST_BYTES}"]
    words = [f"-max_total_time={seconds}", f"-seed={seed}", "-print_final_stats=1", "-verbosity=1", *limits]
    corpus = str(folder / "corpus")
    atheris.Setup(
        [sys.argv[0], *words, f"-artifact_prefix={folder}/", corpus], judge.one, custom_mutator=changed
    )
    atheris.Fuzz()


def read_mutants(name: str, folder: Path, count: int, seed: int) -> Iterator[str]:
    """So many changed seeds of a target, in this process; its line, and what was found."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "findings.json").write_text("", encoding="utf-8")
    judge, seeds = Judge(name, folder), TARGETS[name][1]()
    for data in seeds:
        judge.opened(data)
    begin = time.process_time()
    for number in range(count):
        choose = Chooser(seed * 1_000_003 + number)
        data = choose.one_of(seeds)
        for _ in range(choose.one_of((1, 1, 1, 2, 2, 3, 5))):
            data = choose.one_of(CHANGES)(data, choose)
        judge.one(data)
    yield f"{name:<16} {count:>8} {time.process_time() - begin:8.1f} s"
    for line in (folder / "findings.json").read_text(encoding="utf-8").splitlines():
        kind, place, path = json.loads(line)
        yield f"found: {name}: {kind} {place}, {path}"


def fuzz(name: str, folder: Path, seconds: int, seed: int) -> Iterator[str]:
    """One target in a process of its own; its line, and what was found."""
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    (folder / "findings.json").write_text("", encoding="utf-8")
    for number, data in enumerate(TARGETS[name][1]()):
        (corpus / f"seed-{number}").write_bytes(data)
    words = ["--inside", name, "--folder", str(folder), "--seconds", str(seconds), "--seed", str(seed)]
    done = subprocess.run(
        [sys.executable, __file__, *words], capture_output=True, text=True, errors="replace", check=False
    )
    figures = FIGURES.findall(done.stderr) or [("-", "-", "-")]
    edges, features, kept = figures[-1]
    runs = re.search(r"number_of_executed_units: +(\d+)", done.stderr)
    count = runs[1] if runs else "-"
    yield f"{name:<15} {seconds:6} s {count:>10} {figures[0][0]:>8} {edges:>8} {features:>9} {kept:>8}"
    for line in (folder / "findings.json").read_text(encoding="utf-8").splitlines():
        kind, place, path = json.loads(line)
        yield f"found: {name}: {kind} {place}, {path}"
    if done.returncode:
        yield f"found: {name}: the process ended with {done.returncode}: {done.stderr[-600:]}"


def main() -> int:
    """Fuzz the targets in turn. Exit status 1 when something was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], default=[])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--mutants", type=int)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        inside(given.inside, given.folder, given.seconds, given.seed)
        return 0
    folder = given.folder or Path(tempfile.mkdtemp(prefix="fuzz-"))
    targets = given.targets or list(TARGETS)
    if given.mutants:
        print(f"python {sys.version.split()[0]}, seed {given.seed}, in {folder}")
        print("reader            mutants")
        found = False
        for name in targets:
            for line in read_mutants(name, folder / name, given.mutants, given.seed):
                found |= line.startswith("found")
                print(line, flush=True)
        return int(found)
    seconds = max(round(given.minutes * 60 / len(targets)), 1)
    print(f"python {sys.version.split()[0]}, seed {given.seed}, in {folder}")
    print("reader             time executions    edges       at   features   corpus")
    print("                              read    first  the end")
    found = False
    for name in targets:
        for line in fuzz(name, folder / name, seconds, given.seed):
            found |= line.startswith("found")
            print(line, flush=True)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
