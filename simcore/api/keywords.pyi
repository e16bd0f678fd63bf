"""Keywords of `run`, `with_` and `sweep`, for type checkers and editors; made by `make shell`."""

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TypedDict

class RunKeywords(TypedDict, total=False):
    world: int | None
    tp: int | None
    ep: int | None
    pp: int | None
    rank_order: str | int | bool | None
    rescale: str | int | bool | None
    without_lines: str | Iterable[str] | Mapping[str | int, float] | None
    schedule: str | int | bool | None
    microbatches: int | None
    virtual_stages: int | None
    passes: int | None
    layers: int | None
    steps: int | None
    stage_layout: str | int | bool | None
    overlap_fwd_bwd: bool | None
    overlap_grad_reduce: bool | None
    overlap_param_gather: bool | None
    dialect: str | int | bool | None
    cluster: str | int | PathLike[str] | None
    system: str | int | PathLike[str] | None
    dim: str | Iterable[str] | Mapping[str | int, float] | None
    algorithm: str | Iterable[str] | Mapping[str | int, float] | None
    splits: int | None
    active_chunks: int | None
    endpoint_delay: int | None
    local_mem_bw: float | None
    collective_optimization: str | int | bool | None
    link_rate: str | Iterable[str] | Mapping[str | int, float] | None
    network: str | int | bool | None
    nvlink: float | None
    nic: float | None
    nics_per_server: int | None
    gpus_per_server: int | None
    gpu_type: str | int | bool | None
    nic_type: str | int | bool | None
    overlap: str | Iterable[str] | Mapping[str | int, float] | None
    flow_model: str | int | bool | None
    send_latency: int | None
    ecmp: str | int | bool | None
    nvls: str | int | bool | None
    pxn: str | int | bool | None
    congestion: str | int | bool | None
    other_job: str | int | PathLike[str] | None
    job_gpus: str | int | PathLike[str] | None
    other_job_gpus: str | int | PathLike[str] | None
    compute_scale: float | None
    comm_scale: float | None
    layer_scale: str | Iterable[str] | Mapping[str | int, float] | None
    time_scale: str | Iterable[str] | Mapping[str | int, float] | None
    slow_rank: str | Iterable[str] | Mapping[str | int, float] | None
    slow_link: str | Iterable[str] | Mapping[str | int, float] | None
    jitter: float | None
    seed: int | None
    no_fold: bool | None
    replay: bool | None
    gap_scale: float | None
    slow_host: str | Iterable[str] | Mapping[str | int, float] | None
    host_scale: float | None
    kind_scale: str | Iterable[str] | Mapping[str | int, float] | None
    stage_scale: str | Iterable[str] | Mapping[str | int, float] | None
    cp: int | None
    cp_comm_type: str | int | bool | None
    cp_inner: int | None
    microbatch_size: int | None
    global_batch: int | None
    seq: int | None
    prefill: int | None
    decode: int | None
    context: int | None
    kv_dtype: str | int | bool | None
    seq_imbalance: str | int | PathLike[str] | None
    sequence_parallel: str | int | bool | None
    overlap_tp: bool | None
    flash: str | int | bool | None
    recompute: str | int | bool | None
    recompute_layers: str | int | PathLike[str] | None
    recompute_rows: str | int | PathLike[str] | None
    offload: float | None
    offload_layers: int | None
    zero: str | int | bool | None
    prefetch: str | int | bool | None
    reshard_after_forward: str | int | bool | None
    shard_size: int | None
    bucket_size: int | None
    etp: int | None
    expert_imbalance: str | int | PathLike[str] | None
    expert_capacity: float | None
    expert_placement: str | int | bool | None
    pad_to_capacity: bool | None
    dispatch: str | int | bool | None
    node_limit: int | None
    dispatch_precision: str | int | bool | None
    grad_dtype: str | int | bool | None
    precision: str | int | bool | None
    engine_preset: str | int | bool | None
    compile: str | int | bool | None
    pp_scatter: str | int | bool | None
    stage_layers: str | int | PathLike[str] | None
    account_for_embedding: bool | None
    account_for_loss: bool | None
    pipeline_layout: str | int | PathLike[str] | None
    model: str | int | PathLike[str] | None
    gpu: str | int | PathLike[str] | None
    memory_limit: str | int | PathLike[str] | None
    as_aicb: str | int | bool | None
    aicb_args: str | int | PathLike[str] | None
    comm_groups: str | int | PathLike[str] | None
    remote_memory: str | int | PathLike[str] | None
    injection_scale: float | None
    rendezvous_protocol: str | int | bool | None
    num_queues_per_dim: int | None

class SweepKeywords(TypedDict, total=False):
    world: int | Iterable[int | None] | None
    tp: int | Iterable[int | None] | None
    ep: int | Iterable[int | None] | None
    pp: int | Iterable[int | None] | None
    rank_order: str | int | bool | Iterable[str | int | bool | None] | None
    rescale: str | int | bool | Iterable[str | int | bool | None] | None
    without_lines: str | Iterable[str] | Mapping[str | int, float] | None
    schedule: str | int | bool | Iterable[str | int | bool | None] | None
    microbatches: int | Iterable[int | None] | None
    virtual_stages: int | Iterable[int | None] | None
    passes: int | Iterable[int | None] | None
    layers: int | Iterable[int | None] | None
    steps: int | Iterable[int | None] | None
    stage_layout: str | int | bool | Iterable[str | int | bool | None] | None
    overlap_fwd_bwd: bool | Iterable[bool | None] | None
    overlap_grad_reduce: bool | Iterable[bool | None] | None
    overlap_param_gather: bool | Iterable[bool | None] | None
    dialect: str | int | bool | Iterable[str | int | bool | None] | None
    cluster: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    system: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    dim: str | Iterable[str] | Mapping[str | int, float] | None
    algorithm: str | Iterable[str] | Mapping[str | int, float] | None
    splits: int | Iterable[int | None] | None
    active_chunks: int | Iterable[int | None] | None
    endpoint_delay: int | Iterable[int | None] | None
    local_mem_bw: float | Iterable[float | None] | None
    collective_optimization: str | int | bool | Iterable[str | int | bool | None] | None
    link_rate: str | Iterable[str] | Mapping[str | int, float] | None
    network: str | int | bool | Iterable[str | int | bool | None] | None
    nvlink: float | Iterable[float | None] | None
    nic: float | Iterable[float | None] | None
    nics_per_server: int | Iterable[int | None] | None
    gpus_per_server: int | Iterable[int | None] | None
    gpu_type: str | int | bool | Iterable[str | int | bool | None] | None
    nic_type: str | int | bool | Iterable[str | int | bool | None] | None
    overlap: str | Iterable[str] | Mapping[str | int, float] | None
    flow_model: str | int | bool | Iterable[str | int | bool | None] | None
    send_latency: int | Iterable[int | None] | None
    ecmp: str | int | bool | Iterable[str | int | bool | None] | None
    nvls: str | int | bool | Iterable[str | int | bool | None] | None
    pxn: str | int | bool | Iterable[str | int | bool | None] | None
    congestion: str | int | bool | Iterable[str | int | bool | None] | None
    other_job: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    job_gpus: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    other_job_gpus: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    compute_scale: float | Iterable[float | None] | None
    comm_scale: float | Iterable[float | None] | None
    layer_scale: str | Iterable[str] | Mapping[str | int, float] | None
    time_scale: str | Iterable[str] | Mapping[str | int, float] | None
    slow_rank: str | Iterable[str] | Mapping[str | int, float] | None
    slow_link: str | Iterable[str] | Mapping[str | int, float] | None
    jitter: float | Iterable[float | None] | None
    seed: int | Iterable[int | None] | None
    no_fold: bool | Iterable[bool | None] | None
    replay: bool | Iterable[bool | None] | None
    gap_scale: float | Iterable[float | None] | None
    slow_host: str | Iterable[str] | Mapping[str | int, float] | None
    host_scale: float | Iterable[float | None] | None
    kind_scale: str | Iterable[str] | Mapping[str | int, float] | None
    stage_scale: str | Iterable[str] | Mapping[str | int, float] | None
    cp: int | Iterable[int | None] | None
    cp_comm_type: str | int | bool | Iterable[str | int | bool | None] | None
    cp_inner: int | Iterable[int | None] | None
    microbatch_size: int | Iterable[int | None] | None
    global_batch: int | Iterable[int | None] | None
    seq: int | Iterable[int | None] | None
    prefill: int | Iterable[int | None] | None
    decode: int | Iterable[int | None] | None
    context: int | Iterable[int | None] | None
    kv_dtype: str | int | bool | Iterable[str | int | bool | None] | None
    seq_imbalance: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    sequence_parallel: str | int | bool | Iterable[str | int | bool | None] | None
    overlap_tp: bool | Iterable[bool | None] | None
    flash: str | int | bool | Iterable[str | int | bool | None] | None
    recompute: str | int | bool | Iterable[str | int | bool | None] | None
    recompute_layers: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    recompute_rows: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    offload: float | Iterable[float | None] | None
    offload_layers: int | Iterable[int | None] | None
    zero: str | int | bool | Iterable[str | int | bool | None] | None
    prefetch: str | int | bool | Iterable[str | int | bool | None] | None
    reshard_after_forward: str | int | bool | Iterable[str | int | bool | None] | None
    shard_size: int | Iterable[int | None] | None
    bucket_size: int | Iterable[int | None] | None
    etp: int | Iterable[int | None] | None
    expert_imbalance: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    expert_capacity: float | Iterable[float | None] | None
    expert_placement: str | int | bool | Iterable[str | int | bool | None] | None
    pad_to_capacity: bool | Iterable[bool | None] | None
    dispatch: str | int | bool | Iterable[str | int | bool | None] | None
    node_limit: int | Iterable[int | None] | None
    dispatch_precision: str | int | bool | Iterable[str | int | bool | None] | None
    grad_dtype: str | int | bool | Iterable[str | int | bool | None] | None
    precision: str | int | bool | Iterable[str | int | bool | None] | None
    engine_preset: str | int | bool | Iterable[str | int | bool | None] | None
    compile: str | int | bool | Iterable[str | int | bool | None] | None
    pp_scatter: str | int | bool | Iterable[str | int | bool | None] | None
    stage_layers: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    account_for_embedding: bool | Iterable[bool | None] | None
    account_for_loss: bool | Iterable[bool | None] | None
    pipeline_layout: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    gpu: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    memory_limit: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    as_aicb: str | int | bool | Iterable[str | int | bool | None] | None
    aicb_args: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    comm_groups: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    remote_memory: str | int | PathLike[str] | Iterable[str | int | PathLike[str] | None] | None
    injection_scale: float | Iterable[float | None] | None
    rendezvous_protocol: str | int | bool | Iterable[str | int | bool | None] | None
    num_queues_per_dim: int | Iterable[int | None] | None
    dp: int | Iterable[int]
