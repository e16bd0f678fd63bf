"""Words of the trade, and what they mean here: `:` leads from `nvlink` or `mfu` to a field or a screen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

# What is typed -> options of parameters, ids of actions, or dimensions: `inner` is dimension 0, `outer` the
# last one. The options of another kind of run lead nowhere.
_MEANINGS: dict[str, tuple[str, ...]] = {
    "nvlink": ("inner", "--nvlink"), "nvswitch": ("inner", "--nvlink"), "intra-node": ("inner",),
    "scale-up": ("inner",), "infiniband": ("outer", "--nic"), "ib": ("outer", "--nic"),
    "roce": ("outer", "--nic"), "ethernet": ("outer", "--nic"), "nic": ("outer", "--nic"),
    "inter-node": ("outer",), "scale-out": ("outer",), "network bandwidth": ("outer", "inner"),
    "topology": ("--cluster", "--dim"),
    "mfu": ("screen.summary",), "tflops": ("screen.summary",), "throughput": ("screen.summary",),
    "tokens": ("screen.summary",), "step time": ("screen.summary",), "breakdown": ("screen.summary",),
    "straggler": ("screen.summary", "timeline.longest-of-all", "--slow-rank"),
    "stragglers": ("screen.summary", "timeline.longest-of-all", "--slow-rank"),
    "steps": ("screen.steps",), "slow steps": ("screen.steps",), "iterations": ("screen.steps",),
    "worst rank": ("screen.summary", "timeline.longest-of-all", "--slow-rank"),
    "slowest rank": ("screen.summary", "timeline.longest-of-all", "--slow-rank"),
    "bottleneck": ("screen.why",), "trace": ("screen.timeline",), "kernels": ("screen.layers",),
    "diff": ("screen.compare",), "delta": ("screen.compare",), "grid search": ("screen.sweep",),
    "autotune": ("screen.sweep",), "warnings": ("screen.notes",), "errors": ("screen.notes",),
    "flash": ("--flash",), "flash attention": ("--flash",),
    "zero": ("--zero",), "fsdp": ("--zero", "--reshard-after-forward"), "distributed optimizer": ("--zero",),
    "hsdp": ("--shard-size",),
    "checkpoint": ("--recompute",), "checkpointing": ("--recompute",), "recomputation": ("--recompute",),
    "activation checkpointing": ("--recompute",), "gradient checkpointing": ("--recompute",),
    "micro-batch size": ("--microbatch-size",), "mbs": ("--microbatch-size",),
    "gradient accumulation": ("--microbatches",), "accumulation": ("--microbatches",),
    "micro-batches": ("--microbatches",), "ga": ("--microbatches",),
    "batch size": ("--global-batch", "--microbatch-size"), "gbs": ("--global-batch",),
    "sequence length": ("--seq",), "context length": ("--seq",), "seqlen": ("--seq",),
    "tensor parallel": ("--tp",), "pipeline parallel": ("--pp",), "expert parallel": ("--ep",),
    "context parallel": ("--cp",), "data parallel": ("--world",), "gpus": ("--world",), "nodes": ("--world",),
    "vpp": ("--virtual-stages",), "interleaving": ("--schedule", "--virtual-stages"),
    "gpu": ("--gpu", "--gpu-type"), "hardware": ("--gpu", "--cluster"), "dtype": ("--precision",),
    "fp8": ("--precision",), "bf16": ("--precision",), "oom": ("--memory-limit", "screen.summary"),
    "sp": ("--sequence-parallel",), "torch.compile": ("--compile",), "fault": ("--slow-rank", "--slow-link"),
}  # fmt: skip
_OF_A_GROUP = re.compile(
    r"(tp|ep|dp|cp|pp|dp_shard|dp_replicate|cp_a2a|cp_p2p|ep_intra|ep_inter) "
    r"(bandwidth|latency|algorithm|network)"
)


def meanings(typed: str, dimensions: int, dimensions_by_group: Mapping[str, Sequence[int]]) -> list[str]:
    """Returns the ids that words of the trade lead to: options, actions, and fields as `dim 1 bandwidth`.

    dimensions: how many the cluster has. dimensions_by_group: those that each kind of group crosses.
    """
    words = " ".join(typed.lower().split())
    of_group = _OF_A_GROUP.fullmatch(words)
    if of_group is not None:
        figure = of_group[2].replace("network", "bandwidth")
        return [f"dim {index} {figure}" for index in dimensions_by_group.get(of_group[1], ())]
    return [*_resolved(_MEANINGS.get(words, ()), dimensions)]


def _resolved(names: Iterable[str], dimensions: int) -> Iterator[str]:
    for name in names:
        if name in ("inner", "outer"):
            index = 0 if name == "inner" else dimensions - 1
            if dimensions > (name == "outer"):
                yield f"dim {index} bandwidth"
        else:
            yield name
