"""Trainers: which ops of a layer they fuse, how many kernels they start, whose attention they run, and which
layouts.

A trainer is one entry of `ENGINES` here and its name in `ENGINE_NAMES`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from simcore.records import NamedTuple, Struct


class Passes(NamedTuple):
    """The reads and writes of an elementwise op of a layer, in passes over its tensor of 2-byte numbers."""

    forward: float
    """Passes of the forward."""
    backward: float
    """Passes of the backward."""
    forward_kernels: int = 1
    """Launches of the forward."""
    backward_kernels: int = 1
    """Launches of the backward."""


class Kernels(Struct, frozen=True):
    """The kernels of a layer's elementwise ops in one trainer."""

    norm: Passes
    """A norm over the hidden size."""
    residual: Passes
    """The addition of the residual."""
    rotary: Passes
    """Rotary positions of queries and keys."""
    gated: Passes
    """SwiGLU of two products; passes over one of them."""
    activation: Passes
    """GELU of one product."""
    loss: Passes
    """Passes over the logits."""
    small: tuple[int, int]
    """Kernels of a layer, forward and backward, of which only the launch counts: biases, splits."""
    merge: float
    """Passes over the output of attention where parts of it are merged in fp32 (one kernel: 2 bytes read, 4
    read and written; PyTorch's operators one by one: 32 bytes).
    """
    adds_gradients: bool = False
    """Whether products of weight gradients add to those of earlier micro-batches."""
    routing: int = 30
    """Kernels of a layer with experts, each way, that count, mask and balance its tokens."""


# One kernel each: forward reads and writes the tensor, backward its gradient, too (Megatron-LM with
# Transformer Engine or apex; torch.compile fuses the same chains).
FUSED = Kernels(
    norm=Passes(2, 4, 1, 2),
    residual=Passes(3, 1),
    rotary=Passes(2, 2, 2, 2),
    gated=Passes(3, 5),
    activation=Passes(2, 3),
    loss=Passes(8, 4, 6, 3),
    small=(6, 4),
    merge=5,
    adds_gradients=True,
)
# One kernel for each operator of the model's Python code, which computes norms, positions and loss in fp32.
# RMSNorm, bytes a number: x to fp32 6, square 8, mean 4, scaled 8, to bf16 6, times weight 4 = 36, 18 passes;
# each has a gradient that reads what it read. Rotary: to fp32 6, complex product 8, to bf16 6 = 10 passes of
# each of queries and keys. SwiGLU: silu 4, product 6 bytes; backward two products 12, silu 6. Residual:
# backward the two branches' gradients are added up.
EAGER = Kernels(
    norm=Passes(18, 30, 7, 12),
    residual=Passes(3, 3),
    rotary=Passes(10, 10, 6, 6),
    gated=Passes(5, 9, 2, 3),
    activation=Passes(2, 3),
    loss=Passes(9, 7, 5, 4),
    small=(6, 4),
    merge=16,
)
# InternLM's and Megatron-DeepSpeed's: norm and rotary from apex and flash-attention, other ops as in `EAGER`.
PARTLY = Kernels(
    norm=Passes(2, 4, 1, 2),
    residual=Passes(3, 3),
    rotary=Passes(2, 2, 2, 2),
    gated=Passes(5, 9, 2, 3),
    activation=Passes(2, 3),
    loss=Passes(9, 7, 5, 4),
    small=(6, 4),
    merge=5,
)


class Engine(Struct, frozen=True):
    """A trainer."""

    name: str
    """As `--engine-preset` has it."""
    kernels: Kernels
    """Its kernels without torch.compile; with it they are `FUSED`."""
    compiled: bool = False
    """Whether `--compile on` fits it."""
    newest_attention: bool = True
    """Whether attention runs the kernels that are written for the GPU (Transformer Engine's,
    FlashAttention-3), not FlashAttention-2.
    """
    graphs: bool = False
    """Whether CUDA graphs start a layer's kernels on GPUs with FP4, as in NVIDIA's recipes for Blackwell."""
    pipeline_shards: bool = False
    """Whether it runs a pipeline of 1f1b with ZeRO 3."""
    least_bucket: int = 40_000_000
    """The least number of parameters whose gradients are sent at once (Megatron-LM
    distributed_data_parallel.py: max(40 M, 1 M a replica); DeepSpeed's reduce_bucket_size: 500 M).
    """
    bucket_of_replica: int = 0
    """The least number for each replica."""
    broadcast_us: float = 0.0
    """The time of a broadcast besides its bytes, us, where each rank's share of the weights of ZeRO 1 has a
    broadcast of its own (fitted on InternLM's steps with ZeRO 1 on 8 to 1,024 GPUs: docs/accuracy.md).
    """
    whole_gradients: bool = False
    """Whether ZeRO 1 adds gradients up whole on every rank (DeepSpeed's pipeline engine)."""
    bucket_share: float = 1.0
    """The share of the network's rate that gradients and weights reach behind the last backward, where
    buckets are copied, sent and waited for in turn (fitted on BigScience's and InternLM's steps together).
    """
    scatters: bool = False
    """Whether ranks of tp send their shares of an activation to the next stage."""
    blocking_transfers: bool = False
    """Whether such a transfer runs on the stream of compute (DeepSpeed's pipe/p2p.py)."""
    holds: str = "megatron"
    """Whose rules for the memory of weights, gradients and the loss it follows: megatron, deepspeed
    or fsdp.
    """
    selective_by_op: bool = False
    """Whether it recomputes single products of a layer."""
    degrees: tuple[str, ...] = ("tp", "pp", "cp", "ep")
    """The degrees beside dp that it runs."""
    schedules: tuple[str, ...] = ("1f1b", "interleaved")
    """The schedules of its pipelines."""
    zeros: tuple[int, ...] = (0, 1)
    """The stages of ZeRO of its recipes without a pipeline; without replicas 0 is always one."""
    pipeline_zeros: tuple[int, ...] = (0, 1)
    """Those in a pipeline."""
    pipeline_overlaps: bool = True
    """Whether it sends gradients and weights of ZeRO 0 and 1 beside compute in a pipeline."""
    tp_overlaps: tuple[bool, ...] = (False,)
    """Whether it cuts gathers and reduce-scatters of tp into pieces that run beside compute: as its recipes
    have it, or both where they leave it to the user.
    """

    def bucket(self, replicas: int) -> int:
        """Returns the parameters whose gradients are sent at once, in a run with so many replicas."""
        return max(self.least_bucket, self.bucket_of_replica * replicas)

    def misfit(self, layout: Mapping[str, Any], replicas: int, fields: Container[str]) -> str:
        """Returns why its recipes have no such layout, "" where they do. replicas: the ranks that hold the
        same part of the model. fields: what of the layout is asked about.
        """
        for degree in ("tp", "pp", "cp", "ep"):
            if degree in fields and (layout[degree] or 1) > 1 and degree not in self.degrees:
                return f"recipes of {self.name} have no {degree}"
        pipelined = (layout["pp"] or 1) > 1
        schedule = layout["schedule"] or "1f1b"
        if "schedule" in fields and pipelined and schedule not in self.schedules:
            return f"recipes of {self.name} have no {schedule}, but {' and '.join(self.schedules)}"
        zeros, zero = self.pipeline_zeros if pipelined else self.zeros, int(layout["zero"] or 0)
        if "zero" in fields and zero not in zeros and (zero or replicas > 1):
            where = " in a pipeline" if pipelined else ""
            return f"recipes of {self.name} have no ZeRO {zero}{where}, but {' and '.join(map(str, zeros))}"
        return ""

    def recipe(self, layout: Mapping[str, Any], replicas: int) -> dict[str, tuple[bool, ...]]:
        """Returns the overlaps of a layout as its recipes have them, each with its choices. replicas: as in
        `misfit`.
        """
        zero = int(layout["zero"] or 0)
        # ZeRO 2 and 3 reduce beside backward, ZeRO 3 gathers beside compute, by themselves.
        overlaps = replicas > 1 and zero < 2 and (self.pipeline_overlaps or (layout["pp"] or 1) == 1)
        is_sequence_parallel = (layout["tp"] or 1) > 1 and layout["sequence_parallel"] == "on"
        return {
            "overlap_grad_reduce": (overlaps,),
            "overlap_param_gather": (overlaps and zero == 1,),
            "overlap_tp": self.tp_overlaps if is_sequence_parallel else (False,),
        }


# Of a model that nobody gives one.
DEFAULT_ENGINE = "megatron"
ENGINES = {
    engine.name: engine
    for engine in (
        Engine("megatron", FUSED, graphs=True, bucket_of_replica=1_000_000, tp_overlaps=(True,)),
        Engine(
            "deepspeed",
            PARTLY,
            newest_attention=False,
            least_bucket=500_000_000,
            broadcast_us=2000.0,
            whole_gradients=True,
            bucket_share=0.5,
            scatters=True,
            blocking_transfers=True,
            holds="deepspeed",
            degrees=("tp", "pp", "ep"),
            schedules=("1f1b",),
            zeros=(0, 1, 2, 3),
            pipeline_overlaps=False,
        ),
        Engine(
            "torchtitan",
            EAGER,
            compiled=True,
            newest_attention=False,
            pipeline_shards=True,
            holds="fsdp",
            selective_by_op=True,
            schedules=("1f1b", "interleaved", "gpipe", "zb-v"),
            zeros=(3,),
            pipeline_zeros=(3,),
            tp_overlaps=(False, True),
        ),
        Engine(
            "fsdp",
            EAGER,
            compiled=True,
            newest_attention=False,
            holds="fsdp",
            degrees=(),
            zeros=(2, 3),
        ),
    )
}
