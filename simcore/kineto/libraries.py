"""The kernels of communication libraries by their names, and the collective that each name implies.

The names are those of the sources of each library: of PyTorch's symmetric memory, NCCL and RCCL, NVSHMEM,
DeepEP, FlashInfer, TensorRT-LLM, Transformer Engine, vLLM, SGLang and AITER, quickreduce, MSCCL++, oneCCL and
HCCL. A library is one line of `_LIBRARIES`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from simcore.records import NamedTuple

ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL = "allreduce", "allgather", "reducescatter", "alltoall"
SENDRECV, BARRIER = "sendrecv", "barrier"
# Words that distinguish a collective from all others: sends and receives may be a part of any.
COLLECTIVES = frozenset((ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, "broadcast", "reduce"))


class _Library(NamedTuple):
    """The kernels of one library.

    names: a regular expression of its kernels. words: (a part of the name, the collective), the first match
    counts; without one the name itself decides.
    """

    names: str
    words: tuple[tuple[str, str], ...] = ()


_NCCL = (
    "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "SendRecv", "AllToAll", "Send", "Recv",
    "Gather", "Scatter",
)  # fmt: skip
# HTA's expression (`^nccl.*Kernel`) matches none of the 32 of DeepSeek's trace.
_LIBRARIES = {
    "NCCL and RCCL": _Library(
        r"nccl\w*Kernel|rccl|msccl(?:pp|Kernel)", tuple((rf"nccl\w*?{word}", word.lower()) for word in _NCCL)
    ),
    "backends": _Library(r"^(?:nccl|gloo|mpi|ucc|xccl|hccl):"),
    "HCCL": _Library(
        r"hccl|hcom_|MoeDistribute(?:Dispatch|Combine)",
        ((r"hcom_\w*SendRecv", SENDRECV), (r"hcom_receive", "recv"), (r"hcom_send", "send"),
         (r"hcom_reduce_", "reduce"), (r"hcom_broadcast", "broadcast"), (r"hcom_scatter", "scatter"),
         (r"hcom_gather", "gather"), (r"MoeDistribute", ALLTOALL)),
    ),
    "oneCCL": _Library(
        r"oneccl_|(?:Allreduce|Allgatherv|Reduce_scatter)_small_kernel|"
        r"(?:Allreduce|Allgatherv?|ReduceScatter)(?:Medium|Large)(?:NoCopy)?Kernel"
    ),
    "DeepEP": _Library(
        r"deep_ep(?:::|\d)|\bep::(?:intranode|internode)",
        ((r"\bbarrier", BARRIER), (r"pp_send_impl", "send"), (r"pp_recv_impl", "recv"),
         (r"dispatch|combine|cached_notify", ALLTOALL)),
    ),
    "PyTorch symmetric memory": _Library(
        r"symm_mem|symmetric_memory::|MEMORY_SYMMETRIC|multimem_(?:one_shot_)?(?:all_reduce|all_gather)|"
        r"(?:one|two)_shot_all_reduce_|(?:oneShot|twoShot|hybridCubeMesh)AllReduceKernel",
        # <type, alignment, ranks, whether it scatters>: one kernel is both.
        ((r"two_shot_all_reduce_kernel<[^,<>]+,[^,<>]+,[^,<>]+, *(?:true|\(bool\)1)\b", REDUCESCATTER),
         (r"barrier_kernel", BARRIER)),
    ),
    "NVSHMEM": _Library(
        r"nvshmem|(?:alltoall|broadcast|fcollect|rdxn|reducescatter|barrier|sync)_on_stream_kernel",
        ((r"fcollect", ALLGATHER), (r"rdxn_on_stream|nvshmemi_reduce_kernel", ALLREDUCE),
         (r"broadcast_on_stream", "broadcast"), (r"(?:barrier|sync)_on_stream", BARRIER),
         (r"exchangeSplitAndOffset", ALLTOALL)),
    ),
    "FlashInfer and TensorRT-LLM": _Library(
        r"allreduce_fusion_kernel|all_reduce_norm_kernel|(?:one|two)shotAllreduce|AllreduceFusionKernel|"
        r"lowPrecisionTwoShot|moe(?:A2A|_?AllToAll)\w*Kernel|helixAllToAll|allToAllMetadataDevice|"
        r"mixed_comm::|pcie_ipc::|ulysses_a2a_kernel|rmsNormLamport",
        ((r"pcie_ipc::|lowPrecisionTwoShot|rmsNormLamport", ALLREDUCE), (r"moeA2A|ulysses_a2a", ALLTOALL)),
    ),
    "Transformer Engine": _Library(
        r"userbuffers_(?:fp16|push|pull)|kuserbuffers_",
        ((r"sum_inplace_gpu_\w+?_rs", REDUCESCATTER), (r"sum_inplace_gpu_\w+?_ag", ALLGATHER),
         (r"sum_inplace_gpu", ALLREDUCE), (r"pushsendrecv", SENDRECV), (r"(?:push|pull)send", "send"),
         (r"(?:push|pull)recv", "recv")),
    ),
    "vLLM, SGLang and AITER": _Library(
        r"cross_device_reduce|reduce_scatter_cross_device|aiter(?:::|\d+)(?:allgather|allreduce)",
        ((r"cross_device_reduce", ALLREDUCE),),
    ),
    "quickreduce": _Library(r"quickreduce(?:::|\d)|allreduce_prototype"),
    "MSCCL++": _Library(r"allreduce(?:AllPairs|Fullmesh|Nvls|Packet|RsAg)|allgatherFullmesh"),
}  # fmt: skip
# Kernels of these libraries that access the memory of their own device alone.
_LOCAL = re.compile(
    r"get_dispatch_layout|_epilogue_impl|lamport_init|trtllm_allreduce::rms_|moeA2ASanitize|"
    r"trtllm_alltoall::(?:moe_prepare::)?(?:compute|inplace|move|memset|moeLocal)"
)

# Words of kernels that are in no library; `small_reduce` implies nothing.
_WORDS = (
    (ALLREDUCE, r"(?:(?<![a-z])all|All|ALL)_?(?:[Rr]educe|REDUCE)|(?<!sm)(?<!c)allreduce"),
    (REDUCESCATTER, r"(?i:reduce_?scatter)"),
    (ALLGATHER, r"(?:(?<![a-z])all|All|ALL)_?(?:[Gg]ather|GATHER)"),
    (ALLTOALL, r"(?:(?<![a-z])all|All|ALL)_?(?:to|To|2|TO)_?(?:all|All|ALL)|(?<![A-Za-z0-9])a2a(?![a-z0-9])"),
    # Alone it is the name of an elementwise operation.
    ("broadcast", r"(?i:(?:multimem|nvls|ipc|p2p|peer|rank|cross_device|collective)\w*_?broadcast)"),
)
_SAYS = tuple((word, re.compile(pattern)) for word, pattern in _WORDS)
# All lanes of a warp reduce; Inductor names a kernel by the operations around it, and it computes.
_NO_COLLECTIVE = re.compile(
    r"(?i:(?:warp|block|thread|cluster|lane|wave)_?all_?(?:reduce|gather))|^triton_[a-z]{2,5}_"
)
_UNNAMED, _ARGUMENTS = "(anonymous namespace)", re.compile(r"[(<]")
_OF_LIBRARY = re.compile("|".join(library.names for library in _LIBRARIES.values()))


class KernelNames:
    """Which kernels communicate, by their names. added: a regular expression of further ones."""

    def __init__(self, added: str | None = None) -> None:
        self._added = re.compile(added) if added else None
        self._cache: dict[str, bool] = {}

    def communicates(self, name: str) -> bool:
        """Returns whether a kernel of this name communicates; each name is looked at once."""
        result = self._cache.get(name)
        if result is None:
            identifier = identifier_of(name)
            by_library = _OF_LIBRARY.search(identifier) is not None and _LOCAL.search(identifier) is None
            result = by_library or (self._added is not None and self._added.search(name) is not None)
            self._cache[name] = result
        return result


def identifier_of(name: str) -> str:
    """Returns a kernel's name without its return type, its template's arguments and its own.

    >>> identifier_of("void (anonymous namespace)::mine<float>(int)"), identifier_of("a::b<4>::run(int)")
    ('(anonymous namespace)::mine', 'a::b')
    """
    if _UNNAMED not in name:
        return _ARGUMENTS.split(name, maxsplit=1)[0].removeprefix("void ").strip()
    head = _ARGUMENTS.split(name.replace(_UNNAMED, "\0"), maxsplit=1)[0]
    return head.removeprefix("void ").strip().replace("\0", _UNNAMED)


def collective_in_name(name: str) -> str | None:
    """Returns the collective in the name of any kernel, None where there is none, or it means something
    else.
    """
    identifier = identifier_of(name)
    collective = next((word for word, says in _SAYS if says.search(identifier) is not None), None)
    if collective is None or _LOCAL.search(identifier) is not None:
        return None
    return None if _NO_COLLECTIVE.search(identifier) is not None else collective


@lru_cache(1 << 12)
def kernel_kind(name: str) -> str:
    """Returns the collective in the name of a kernel that communicates, else the name up to its arguments."""
    identifier = identifier_of(name)
    # They are compiled at the first use: all 60 of them at once take 6 ms.
    for library in _LIBRARIES.values():
        if re.search(library.names, identifier) is not None:
            collective = next(
                (word for part, word in library.words if re.search(part, name) is not None), None
            )
            if collective is not None:
                return collective
    return collective_in_name(name) or identifier_of(name)
