"""Trainers: which ops of a layer they fuse, how many kernels they start, and whose attention they run.

A trainer is one entry of `ENGINES` here and its name in `ENGINE_NAMES`.
"""

from __future__ import annotations

from simcore.records import NamedTuple, Struct


class Passes(NamedTuple):
    """What an elementwise op of a layer reads and writes, in passes over its tensor of 2-byte numbers.

    forward_kernels, backward_kernels: launches.
    """

    forward: float
    backward: float
    forward_kernels: int = 1
    backward_kernels: int = 1


class Kernels(Struct, frozen=True):
    """The kernels of a layer's elementwise ops, as one trainer writes them.

    norm: over the hidden size. residual: the addition. rotary: of queries and keys. gated, activation: SwiGLU
    of two products, or GELU of one; passes over one of them. loss: passes over the logits. small: kernels of
    a layer forward and backward that take no time worth counting but their launch: biases, splits. merge:
    passes over the output of attention where parts of it are merged in fp32 (one kernel: 2 bytes read, 4 read
    and written; PyTorch's operators one by one: 32 bytes).
    routing: kernels of a layer with experts, each way, that count, mask and balance its tokens.
    adds_gradients: products of weight gradients add to those of earlier micro-batches.
    """

    norm: Passes
    residual: Passes
    rotary: Passes
    gated: Passes
    activation: Passes
    loss: Passes
    small: tuple[int, int]
    merge: float
    adds_gradients: bool = False
    routing: int = 30


# One kernel each: forward the tensor is read and written, backward its gradient, too (Megatron-LM with
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
# InternLM's and Megatron-DeepSpeed's: norm and rotary from apex and flash-attention, the rest as written.
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
    """A trainer. name: as `--engine-preset` has it. compiled: whether `--compile on` fits it.

    kernels: without torch.compile; with it they are `FUSED`. newest_attention: whether attention runs the
    kernels that are written for the GPU (Transformer Engine's, FlashAttention-3) or FlashAttention-2.
    graphs: whether CUDA graphs start a layer's kernels on GPUs with FP4, as NVIDIA's recipes for Blackwell.
    pipeline_shards: whether it runs a pipeline of 1f1b with ZeRO 3. least_bucket, bucket_of_replica:
    parameters whose gradients are sent at once, at least, and for each replica (Megatron-LM
    distributed_data_parallel.py: max(40 M, 1 M a replica); DeepSpeed's reduce_bucket_size: 500 M).
    broadcast_us: where each rank's share of the weights of ZeRO 1 comes by a broadcast of its own, what one
    takes besides its bytes, us (fitted on InternLM's steps with ZeRO 1 on 8 to 1,024 GPUs: docs/accuracy.md).
    whole_gradients: ZeRO 1 adds gradients up whole on every rank (DeepSpeed's pipeline engine).
    bucket_share: share of the network's rate that gradients and weights reach behind the last backward, where
    buckets are copied, sent and waited for in turn (fitted on BigScience's and InternLM's steps together).
    scatters: ranks of tp send their shares of an activation to the next stage. blocking_transfers: such a
    transfer runs on the stream of compute (DeepSpeed's pipe/p2p.py).
    holds: whose way of holding weights, gradients and the loss it has, megatron, deepspeed or fsdp.
    selective_by_op: whether what it runs again of a layer are single products.
    """

    name: str
    kernels: Kernels
    compiled: bool = False
    newest_attention: bool = True
    graphs: bool = False
    pipeline_shards: bool = False
    least_bucket: int = 40_000_000
    bucket_of_replica: int = 0
    broadcast_us: float = 0.0
    whole_gradients: bool = False
    bucket_share: float = 1.0
    scatters: bool = False
    blocking_transfers: bool = False
    holds: str = "megatron"
    selective_by_op: bool = False

    def bucket(self, replicas: int) -> int:
        """Parameters whose gradients are sent at once, of a run with so many replicas."""
        return max(self.least_bucket, self.bucket_of_replica * replicas)


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("megatron", FUSED, graphs=True, bucket_of_replica=1_000_000),
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
        ),
        Engine(
            "torchtitan",
            EAGER,
            compiled=True,
            newest_attention=False,
            pipeline_shards=True,
            holds="fsdp",
            selective_by_op=True,
        ),
        Engine("fsdp", EAGER, compiled=True, newest_attention=False, holds="fsdp"),
    )
}
