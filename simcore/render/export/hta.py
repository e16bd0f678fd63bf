"""Timelines in the form of PyTorch profiler traces, a file a rank: what HolisticTraceAnalysis reads.

Every op that takes time is a kernel on a stream of the rank's device. HTA tells communication from
computation by kernel names and takes what begins with `nccl` and goes on with `Kernel` for the
first; names that it would take for something else are not used for compute. No host event is made
up but `ProfilerStep#0`, the step. Source: hta.utils.utils and hta.common.trace_file of
HolisticTraceAnalysis 0.5.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from simcore import __version__
from simcore.diagnostics import printable
from simcore.program.ops import COMPUTE, RANK_STREAMS, STREAMS
from simcore.render.export.format import Chosen, Export, Progress, RankFile, Request, choose, left_out, of_run
from simcore.render.export.spans import ClassSpans, Fact, in_pieces, made_once
from simcore.render.report.json_text import microseconds, quoted_json
from simcore.simulation import Simulation, simulate
from simcore.units import plural
from simcore.workload import Workload

# PyTorch's compute stream is 7; HTA takes streams from 1 on for those of a device.
_STREAM = {lane: 7 if lane == "compute" else 20 + index for index, lane in enumerate(RANK_STREAMS)}
_KERNELS = {
    "ALLREDUCE": "ncclDevKernel_AllReduce",
    "ALLGATHER": "ncclDevKernel_AllGather",
    "REDUCESCATTER": "ncclDevKernel_ReduceScatter",
    "ALLTOALL": "ncclDevKernel_AllToAll",
    "SENDRECV": "ncclDevKernel_SendRecv",
}
# What HTA takes for communication, memory or synchronisation, wherever it stands in a name.
_NOT_COMPUTE = re.compile(r"nccl|Memcpy|Memset|Sync|^dma|ProfilerStep")
# The text of a class is kept for all its ranks up to here; beyond, each rank's is made anew.
_MOST_KEPT_OPS = 200_000


def export_per_rank(workload: Workload, request: Request) -> Export:
    """A file for each rank that is asked for: by itself one of each class of equal ranks."""
    simulation = simulate(workload, request.parameters)
    chosen = choose(simulation, request, folded=True)
    spans = chosen.spans(simulation)
    progress = Progress(spans)
    what = f"{chosen.count} of {plural(simulation.layout.world, 'rank')}, {plural(spans, 'span')}"
    diagnostics = (*of_run(simulation), *left_out(simulation, chosen))
    return Export((), what, diagnostics, progress, _files(simulation, chosen, progress))


def _files(simulation: Simulation, chosen: Chosen, progress: Progress) -> Iterator[RankFile]:
    for number, ranks in chosen.of_class.items():
        spans = ClassSpans(simulation, number)
        kept = None
        if len(ranks) > 1 and len(spans.ops) <= _MOST_KEPT_OPS:
            kept = list(_events(spans))
        for rank in ranks:
            yield RankFile(f"rank-{rank}.json", _pieces(simulation, spans, kept, rank, progress))


def _pieces(
    simulation: Simulation, spans: ClassSpans, kept: list[bytes] | None, rank: int, progress: Progress
) -> Iterator[bytes]:
    yield _head(simulation, rank).encode()
    yield from kept if kept is not None else _events(spans)
    progress.done += len(spans.ops)
    yield b"\n]}\n"


def _head(simulation: Simulation, rank: int) -> str:
    """HTA looks for the rank line by line, with a blank behind the colon."""
    world = simulation.layout.world
    tp, dp, stage = simulation.layout.position(rank)
    step = microseconds(simulation.step_time_ns)
    return (
        '{"schemaVersion": 1,\n'
        f'"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {world}}},\n'
        f'"deviceProperties": [{{"id": 0, "name": "simulated by wltui {__version__}"}}],\n'
        f'"displayTimeUnit": "ns",\n"wltui": {{"file": {quoted_json(printable(simulation.workload.path))}, '
        f'"stage": {stage}, "dp": {dp}, "tp": {tp}, "step_time_ns": {simulation.step_time_ns}}},\n'
        '"traceEvents": [\n'
        f'{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#0","pid":1,"tid":1,"ts":0.000,"dur":{step},'
        '"args":{}}'
    )


def _events(spans: ClassSpans) -> Iterator[bytes]:
    """Metadata and kernels of any rank of a class: its number is in the head alone."""
    return (piece for piece, _ in in_pieces(_event_texts(spans)))


def _event_texts(spans: ClassSpans) -> Iterator[str]:
    ops = spans.ops
    received = list(spans.received())
    lanes = {STREAMS[lane] for lane in set(ops.stream)} | {arrival.stream for arrival in received}
    yield from (
        f',\n{{"ph":"M","name":"thread_name","pid":0,"tid":{_STREAM[lane]},'
        f'"args":{{"name":"stream {_STREAM[lane]} {lane}"}}}}'
        for lane in RANK_STREAMS
        if lane in lanes
    )
    bodies = made_once(spans.kinds(), lambda op: _body(spans.fact(op), STREAMS[ops.stream[op]]))
    own = zip(bodies, spans.start, spans.end, strict=True)
    others = ((_body(one.fact, one.stream), one.start, one.end) for one in received)
    # A kernel that takes no time is none.
    kernels = (kernel for kernel in chain(own, others) if kernel[2] > kernel[1])
    for correlation, kernel in enumerate(kernels, 1):
        yield _kernel(*kernel, correlation)


def _kernel(body: str, start: int, end: int, correlation: int) -> str:
    return (
        f',\n{{"ph":"X","cat":"kernel","pid":0,"ts":{microseconds(start)},"dur":{microseconds(end - start)},'
        f'{body},"correlation":{correlation}}}}}'
    )


def _body(fact: Fact, lane: str) -> str:
    """Name, thread and arguments of a kernel, as far as its correlation."""
    stream = _STREAM[lane]
    args = [f'"device":0,"stream":{stream},"phase":"{fact.phase}"']
    if fact.row >= 0:
        args.append(f'"layer":{quoted_json(fact.layer)},"line":{fact.line}')
    if lane == STREAMS[COMPUTE]:
        name = f"{fact.layer} {fact.phase}"
        if _NOT_COMPUTE.search(name):
            name = f"line {fact.line} {fact.phase}"
    else:
        name = _KERNELS[fact.collective]
        args.append(f'"Collective name":"{fact.kind}","bytes":{fact.bytes}')
        if fact.group:
            args.append(f'"Group size":{fact.members},"Process Group Name":"{fact.group}"')
    return f'"name":{quoted_json(name)},"tid":{stream},"args":{{{",".join(args)}'
