"""Meanings of the words of a profiler: categories of events, kernels that communicate, groups, types."""

from __future__ import annotations

import re
from functools import lru_cache

# Categories of events, old and new spelling, and other vendors': Kineto's own are those of its ActivityType.
KERNELS = frozenset(("kernel", "Kernel", "mtia_ccp_events", "gpu_op"))
COPIES = frozenset(("gpu_memcpy", "Memcpy", "gpu_memset", "Memset"))
LAUNCHES = frozenset((
    "cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "xpu_runtime", "xpu_driver", "mtia_runtime",
    "privateuse1_runtime", "privateuse1_driver",
))  # fmt: skip
# Known categories that are not displayed: they lie over what is, or measure the profiler itself.
_IGNORED = frozenset((
    "gpu_user_annotation", "cuda_sync", "xpu_sync", "cuda_event", "Trace", "ac2g", "fwdbwd",
    "cpu_instant_event", "external_correlation", "collective_comm", "glow_runtime", "mtia_insight",
    "mtia_counters", "cuda_profiler_range", "xpu_scope_profiler", "hardware_counters",
))  # fmt: skip
_IGNORED_ENDS = ("_annotation", "_sync", "_counters", "_overhead")
_LAUNCH_ENDS = ("_runtime", "_driver")
HOST_OPS = frozenset(("cpu_op", "Operator", "operator"))
ANNOTATIONS = frozenset(("user_annotation",))
# The same annotations over what they launched.
ON_DEVICES = frozenset(("gpu_user_annotation",))
# Calls of Python, those of modules among them.
PYTHON = frozenset(("python_function",))
# The profiler's own time: `CUPTI Buffer Flush`, `Lazy Function Loading`.
OVERHEAD = frozenset(("overhead", "Overhead"))
MODULE = "nn.Module: "
# The flow from an operation of the forward pass to its operation of the backward pass.
BACKWARD_FLOW = "fwdbwd"

# Annotations of the host around a collective, by backend.
COLLECTIVE_ANNOTATION = re.compile(r"^(?:nccl|gloo|mpi|ucc|hccl|rccl|xccl):(\w+)")
STEP = re.compile(r"^ProfilerStep\s*#\s*(\d{1,12})")
# A type as a trace writes it -> the torch type as a rank trace writes it.
_DTYPES = {
    "byte": "uint8", "char": "int8", "bool": "bool", "short": "int16", "int": "int32", "long": "int64",
    "half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64",
    "signed char": "int8", "unsigned char": "uint8", "short int": "int16", "long int": "int64",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2", "float8_e4m3fnuz": "float8_e4m3fn",
    "float8_e5m2fnuz": "float8_e5m2",
}  # fmt: skip
# The end of the names of NCCL's kernels that reduce; those that only move bytes all have `int8_t`.
_REDUCED = re.compile(
    r"nccl\w*(?:AllReduce|ReduceScatter|Reduce)\w*?"
    r"_(f16|half|bf16|__nv_bfloat16|hip_bfloat16|f32|float|f64|double)(?![A-Za-z0-9])"
)
_OF_NAME = {
    "f16": "half", "half": "half", "bf16": "bfloat16", "__nv_bfloat16": "bfloat16",
    "hip_bfloat16": "bfloat16", "f32": "float", "float": "float", "f64": "double", "double": "double",
}  # fmt: skip

_BACKWARD = re.compile(r"backward|autograd::engine", re.IGNORECASE)
_OPTIMIZER = re.compile(r"^Optimizer\.(step|zero_grad)#|## ?optimizer|optimizer[_.]step", re.IGNORECASE)
# FSDP1 annotates its hooks, and names no module in them: `FullyShardedDataParallel._pre_forward`.
_FORWARD = re.compile(r"## ?forward|\.forward\b|^forward|Parallel\._(?:pre|post)_forward", re.IGNORECASE)

# FSDP2 names the module of its annotations: `FSDP::pre_forward (layers.3)`.
_FSDP = re.compile(r"^FSDP::[^(]*\(([^()]+)\)")


def is_ignored(category: str | None) -> bool:
    """Returns whether events of this category are known and not displayed."""
    return category is not None and (category in _IGNORED or category.endswith(_IGNORED_ENDS))


def is_launch(category: str | None) -> bool:
    """Returns whether events of this category are the host's calls that launch something."""
    return category is not None and (category in LAUNCHES or category.endswith(_LAUNCH_ENDS))


def is_copy(category: str | None) -> bool:
    """Returns whether the name of a category says that its events copy memory."""
    return category is not None and ("memcpy" in category.lower() or "memset" in category.lower())


def module_class(name: str) -> str:
    """Returns the class of a module's call: `nn.Module: TransformerBlock_3` is one of several."""
    return name[len(MODULE) :].rstrip("0123456789")


def layer_of(name: str) -> str | None:
    """Returns the layer that an annotation names; None where it names none."""
    match_ = _FSDP.match(name)
    return None if match_ is None else match_[1]


def phase_of(name: str) -> str | None:
    """Returns the phase of an annotation or operation of the host: forward, backward or optimizer."""
    if _OPTIMIZER.search(name):
        return "optimizer"
    if _BACKWARD.search(name):
        return "backward"
    return "forward" if _FORWARD.search(name) else None


@lru_cache(1 << 10)
def operation_word(name: str) -> str:
    """Returns one word for a collective in any spelling: `all_reduce`, `allreduce_`, `_allreduce_base`."""
    return re.sub(r"[^a-z0-9]|base|coalesced", "", name.lower())


@lru_cache(1 << 10)
def category_of_group_name(name: str | None) -> str:
    """Returns the kind of a process group by the name that its program gave it: tp, dp, pp, expert; `comm` if
    none fits.
    """
    words = set(re.split(r"[^a-z0-9]+", (name or "").lower()))
    if words & {"ep", "expert", "exp", "moe"}:
        return "expert"
    if words & {"tp", "tensor", "sp", "sequence"} and not words & {"pp", "pipeline"}:
        return "tp"
    if words & {"pp", "pipeline", "pipe"}:
        return "pp"
    if words & {"dp", "data", "fsdp", "hsdp", "ddp", "replicate", "shard"}:
        return "dp"
    return "comm"


@lru_cache(1 << 10)
def dtype_of(text: str | None) -> str | None:
    """Returns the torch type of `Float`, `c10::BFloat16` ...; None where it is not known."""
    word = (text or "").lower().removeprefix("torch.").removeprefix("c10::")
    return f"torch.{_DTYPES[word]}" if word in _DTYPES else None


@lru_cache(1 << 10)
def reduced_dtype(name: str) -> str | None:
    """Returns the type in the name of a kernel that reduces, as a trace writes types; None where there is
    none.
    """
    match = _REDUCED.search(name)
    return None if match is None else _OF_NAME[match[1]]
