"""What the words of a profiler mean: categories of events, kernels that communicate, groups, types."""

from __future__ import annotations

import re

# Categories of events, old and new spelling, and other vendors'.
KERNELS = frozenset(("kernel", "Kernel", "mtia_ccp_events", "gpu_op"))
COPIES = frozenset(("gpu_memcpy", "Memcpy", "gpu_memset", "Memset"))
LAUNCHES = frozenset((
    "cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "xpu_runtime", "privateuse1_runtime",
    "mtia_runtime",
))  # fmt: skip
HOST_OPS = frozenset(("cpu_op", "Operator", "operator"))
ANNOTATIONS = frozenset(("user_annotation",))
# The same over what they launched.
ON_DEVICES = frozenset(("gpu_user_annotation",))
# Calls of Python, those of modules among them.
PYTHON = frozenset(("python_function",))
# What the profiler takes for itself: `CUPTI Buffer Flush`, `Lazy Function Loading`.
OVERHEAD = frozenset(("overhead", "Overhead"))
MODULE = "nn.Module: "
# The flow from an operation of the forward pass to the one of the backward pass that it has.
BACKWARD_FLOW = "fwdbwd"

# Kernels that communicate, by name: NCCL and its ports, DeepEP, and those of vLLM, SGLang and MSCCL++. HTA's
# expression (`^nccl.*Kernel`) finds none of the 32 of DeepSeek's trace.
COMMUNICATION = (
    r"nccl(Dev)?Kernel|rccl|hccl|^ep::(intranode|internode)|deep_ep::|cross_device_reduce|mscclpp|nvshmem|symm_mem"
    r"|^nccl:|^gloo:|^mpi:|^ucc:|MEMORY_SYMMETRIC"
)
# Annotations of the host around a collective, by backend.
COLLECTIVE_ANNOTATION = re.compile(r"^(?:nccl|gloo|mpi|ucc|hccl|rccl|xccl):(\w+)")
STEP = re.compile(r"^ProfilerStep\s*#\s*(\d{1,12})")
_KERNEL_KIND = re.compile(
    r"(?:nccl|rccl|hccl)(?:Dev|Symk|Symm)?_?(?:Kernel)?_?(?:Dev)?_?(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|"
    r"SendRecv|AllToAll|Send|Recv|Gather|Scatter)", re.IGNORECASE
)  # fmt: skip

_DTYPES = {
    "byte": 1, "char": 1, "bool": 1, "short": 2, "half": 2, "bfloat16": 2, "c10::bfloat16": 2, "c10::half": 2,
    "int": 4, "float": 4, "long": 8, "long int": 8, "double": 8, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "c10::float8_e4m3fn": 1, "c10::float8_e5m2": 1, "signed char": 1, "unsigned char": 1,
}  # fmt: skip
# Bytes -> the torch type that the words of a rank trace have for it.
_SAME_SIZE = {1: "torch.int8", 2: "torch.bfloat16", 4: "torch.float32", 8: "torch.float64"}

_BACKWARD = re.compile(r"backward|autograd::engine", re.IGNORECASE)
_OPTIMIZER = re.compile(r"^Optimizer\.(step|zero_grad)#|## ?optimizer|optimizer[_.]step", re.IGNORECASE)
# FSDP1 annotates its hooks, and names no module in them: `FullyShardedDataParallel._pre_forward`.
_FORWARD = re.compile(r"## ?forward|\.forward\b|^forward|Parallel\._(?:pre|post)_forward", re.IGNORECASE)

# FSDP2 names the module of its annotations: `FSDP::pre_forward (layers.3)`.
_FSDP = re.compile(r"^FSDP::[^(]*\(([^()]+)\)")


def module_class(name: str) -> str:
    """The class of a module's call: `nn.Module: TransformerBlock_3` is one of several."""
    return name[len(MODULE) :].rstrip("0123456789")


def layer_of(name: str) -> str | None:
    """The layer that an annotation names."""
    match_ = _FSDP.match(name)
    return None if match_ is None else match_[1]


def phase_of(name: str) -> str | None:
    """What an annotation or operation of the host is a part of: forward, backward or optimizer."""
    if _OPTIMIZER.search(name):
        return "optimizer"
    if _BACKWARD.search(name):
        return "backward"
    return "forward" if _FORWARD.search(name) else None


def kernel_kind(name: str) -> str:
    """The collective that a kernel's name tells, else the name up to its arguments."""
    named = _KERNEL_KIND.search(name)
    if named is not None:
        return named[1].lower()
    return re.split(r"[(<]", name, maxsplit=1)[0].removeprefix("void ").strip()


def operation_word(name: str) -> str:
    """One word for a collective however it is written: `all_reduce`, `allreduce_`, `_allreduce_base`."""
    return re.sub(r"[^a-z0-9]|base|coalesced", "", name.lower())


def category_of_group_name(name: str | None) -> str:
    """The kind of a process group by the name that its program gave it: tp, dp, pp, expert; `comm` if none
    fits.
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


def dtype_of(text: str | None) -> str | None:
    """A torch type of the size of the one that is written; None where it is not known."""
    size = _DTYPES.get((text or "").lower().removeprefix("torch."))
    return None if size is None else _SAME_SIZE[size]
