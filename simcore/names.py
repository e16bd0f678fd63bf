"""The words that a parameter may be, which `--help` prints without loading a room.

Those of schedules and networks are in their registries, which load nothing either: `SCHEDULES`, `NETWORKS`.
"""

from __future__ import annotations

from typing import Literal

Dialect = Literal["simai", "simai-sim", "astra-sim-1"]
WORKLOAD_DIALECTS: tuple[Dialect, ...] = ("simai", "simai-sim", "astra-sim-1")
# The dialect of execution traces with ASTRA-sim 2.x's rules instead of wltui's.
ASTRA_SIM_2 = "astra-sim-2"
DIALECTS = (*WORKLOAD_DIALECTS, ASTRA_SIM_2)
Optimization = Literal["localBWAware", "baseline"]
OPTIMIZATIONS: tuple[Optimization, ...] = ("localBWAware", "baseline")
# Fastest first (Megatron-LM's two).
RANK_ORDERS = ("tp-ep-dp-pp", "tp-pp-dp")
# The first is the default.
STAGE_LAYOUTS = ("uniform", "megatron")
# Collective algorithms, each of them `ALGORITHM` in the file of its name in simcore/collectives/algorithms/.
# The value is True where it also runs over all dimensions of a group as one flat group, as `one-NAME`.
ALGORITHMS = {"ring": True, "direct": True, "halving-doubling": True, "double-binary-tree": False}
FLAT_ALGORITHMS = tuple(f"one-{name}" for name, flat in ALGORITHMS.items() if flat)
# The names that a user may give; `direct<W>` is a further one.
ALGORITHM_NAMES = (*ALGORITHMS, *FLAT_ALGORITHMS)
# Collectives that have an algorithm, and what rows call them.
COLLECTIVES = {
    "all-reduce": "ALLREDUCE",
    "all-gather": "ALLGATHER",
    "reduce-scatter": "REDUCESCATTER",
    "all-to-all": "ALLTOALL",
}
# Names of clusters, the default one first; their figures are in simcore/cluster/presets.py.
PRESET_NAMES = ("h100-8", "a100-8", "h200-8", "b200-8", "gb200-nvl72", "tpu-v4")
# Topologies that are generated, `NAME:GPUS`, in simcore/topology/generators.py.
TOPOLOGY_NAMES = ("spectrum-x:N", "hpn:N", "dcn:N", "fat-tree:K")
# What of packets counts for flows, the hashes that choose among paths, what slows flows down.
FLOW_MODELS = ("ns3", "plain")
ECMP_NAMES = ("simai", "seeded", "balanced")
CONGESTION_NAMES = ("none", "dcqcn")
# GPUs whose constants are known; they are in simcore/model/gpus.toml.
GPU_NAMES = ("a100-40", "a100-80", "h100", "h200", "b200", "gb200", "mi300x", "h20")
# Trainers whose kernels and launches are known; they are in simcore/model/engines.py.
ENGINE_NAMES = ("megatron", "deepspeed", "torchtitan", "fsdp")
# Types in which linears compute: fp8 has one scale for a tensor, mxfp8 one for 32 numbers, nvfp4 one for 16.
PRECISIONS = ("bf16", "fp8", "mxfp8", "nvfp4")
# Kinds of groups that communicate in a rank trace; `comm` is for groups of no other kind.
GROUP_KINDS = ("pp", "tp", "dp", "embedding", "position", "expert", "expert dp", "comm")
# GiB/s of NVLink and of one NIC by type: SimAI's own presets.
GPU_TYPES = {"H100": 370.8, "H20": 370.8, "H800": 164.8, "A100": 240.0, "A800": 160.0}
NIC_TYPES = {"cx7": 48.5, "cx6": 23.5, "bf3": 48.5}

# Schedules whose chunks do not go round and round: down the stages and up again, and from both ends at once
# (`simcore.program.schedules` has all schedules).
V_SCHEDULES = ("zb-v", "v-half", "v-min", "dualpipev")
TWO_WAY_SCHEDULES = ("dualpipe",)
# The schedule of an inference step, which no training step can have.
FORWARD_ONLY = "forward-only"
