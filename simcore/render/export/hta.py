"""Timelines in the form of PyTorch profiler traces, a file for each rank, which HolisticTraceAnalysis reads.

Every op that takes time is a kernel on a stream of the rank's device. HTA tells communication from
computation by kernel names: communication starts with `nccl` and goes on with `Kernel`. Names that it would
misread are not used for compute. The only host event is `ProfilerStep#0`, the step. Source: hta.utils.utils
and hta.common.trace_file of HolisticTraceAnalysis 0.5.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from simcore import __version__
from simcore.diagnostics import printable
from simcore.program.ops import RANK_STREAMS
from simcore.render.export.format import Progress, RankFile
from simcore.render.export.spans import ExportedSpans, Fact, TrackSpans, build_cached, encode_in_chunks
from simcore.render.report.json_text import microseconds, quoted_json
from simcore.trace.run import Run

# PyTorch's compute stream is 7; HTA takes streams from 1 on for those of a device.
_STREAM = {lane: 7 if lane == "compute" else 20 + index for index, lane in enumerate(RANK_STREAMS)}
_KERNELS = {
    "ALLREDUCE": "ncclDevKernel_AllReduce",
    "ALLGATHER": "ncclDevKernel_AllGather",
    "REDUCESCATTER": "ncclDevKernel_ReduceScatter",
    "ALLTOALL": "ncclDevKernel_AllToAll",
    "SENDRECV": "ncclDevKernel_SendRecv",
}
# Copies to the host's memory and back, as CUPTI calls them.
_COPIES = {"offload": "Memcpy DtoH (Device -> Pinned)", "fetch": "Memcpy HtoD (Pinned -> Device)"}
# The parts of a name that HTA reads as communication, memory or synchronisation, anywhere in it.
_NOT_COMPUTE = re.compile(r"nccl|Memcpy|Memset|Sync|^dma|ProfilerStep")
# The text of a track is cached for all its ranks up to this many spans; beyond, it is made again for each
# rank.
_MAX_CACHED_SPANS = 200_000


def rank_files(run: Run, spans: ExportedSpans, progress: Progress) -> Iterator[RankFile]:
    """Yields a file for each rank that is written."""
    for track in spans.tracks:
        cached_events = None
        if len(track.ranks) > 1 and len(track) <= _MAX_CACHED_SPANS:
            cached_events = list(_events(track))
        for rank in track.ranks:
            yield RankFile(f"rank-{rank}.json", _json_chunks(run, track, cached_events, rank, progress))


def _json_chunks(
    run: Run, track: TrackSpans, cached_events: list[bytes] | None, rank: int, progress: Progress
) -> Iterator[bytes]:
    yield _head(run, rank).encode()
    yield from cached_events if cached_events is not None else _events(track)
    progress.written_count += len(track)
    yield b"\n]}\n"


def _head(run: Run, rank: int) -> str:
    """Returns the head of a file. HTA looks for the rank line by line, with a blank after the colon."""
    simulated, step_ns = run.shape.simulated, run.step_time_ns
    assert simulated is not None
    tp, dp, stage = simulated.layout.position(rank)
    return (
        '{"schemaVersion": 1,\n'
        f'"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {simulated.layout.world}}},\n'
        f'"deviceProperties": [{{"id": 0, "name": "simulated by wltui {__version__}"}}],\n'
        f'"displayTimeUnit": "ns",\n"wltui": {{"file": {quoted_json(printable(run.path))}, '
        f'"stage": {stage}, "dp": {dp}, "tp": {tp}, "step_time_ns": {step_ns}}},\n'
        '"traceEvents": [\n'
        '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#0","pid":1,"tid":1,"ts":0.000,'
        f'"dur":{microseconds(step_ns)},"args":{{}}}}'
    )


def _events(track: TrackSpans) -> Iterator[bytes]:
    """Returns metadata and kernels of any rank of a track: only the head has the rank's number."""
    return (chunk for chunk, _ in encode_in_chunks(_event_texts(track)))


def _event_texts(track: TrackSpans) -> Iterator[str]:
    received = list(track.received())
    # All threads but `waiting` are streams.
    lanes = {name.split(" (")[0] for _, name in track.assign_threads(received)[1].names}
    yield from (
        f',\n{{"ph":"M","name":"thread_name","pid":0,"tid":{_STREAM[lane]},'
        f'"args":{{"name":"stream {_STREAM[lane]} {lane}"}}}}'
        for lane in RANK_STREAMS
        if lane in lanes
    )
    bodies = build_cached(track.kinds(), lambda span: _body(track.fact(span)))
    issued = zip(bodies, track.start, track.end, strict=True)
    arrived = ((_body(one.fact), one.start, one.end) for one in received)
    # Kernels without time are left out.
    kernels = (kernel for kernel in chain(issued, arrived) if kernel[2] > kernel[1])
    for correlation, kernel in enumerate(kernels, 1):
        yield _kernel(*kernel, correlation)


def _kernel(body: str, start: int, end: int, correlation: int) -> str:
    return (
        f',\n{{"ph":"X","cat":"kernel","pid":0,"ts":{microseconds(start)},"dur":{microseconds(end - start)},'
        f'{body},"correlation":{correlation}}}}}'
    )


def _body(fact: Fact) -> str:
    """Returns the name, thread and arguments of a kernel, up to its correlation."""
    stream = _STREAM[fact.stream]
    args = [f'"device":0,"stream":{stream},"phase":"{fact.phase}"']
    if fact.row >= 0:
        args.append(f'"layer":{quoted_json(fact.layer)},"line":{fact.line}')
    if fact.kind == "compute":
        name = f"{fact.layer} {fact.phase}"
        if _NOT_COMPUTE.search(name):
            name = f"line {fact.line} {fact.phase}"
    elif fact.kind in _COPIES:
        name = _COPIES[fact.kind]
        args.append(f'"bytes":{fact.bytes}')
    else:
        name = _KERNELS[fact.collective]
        args.append(f'"Collective name":"{fact.kind}","bytes":{fact.bytes}')
        if fact.group:
            args.append(f'"Group size":{fact.members},"Process Group Name":"{fact.group}"')
    return f'"name":{quoted_json(name)},"tid":{stream},"args":{{{",".join(args)}'
