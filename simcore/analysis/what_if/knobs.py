"""The knobs of a run: what could be cheaper in it.

A new family of knobs is a function here and a line in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simcore.analysis.rerun import Chosen, Rerun
from simcore.cluster import Cluster
from simcore.parameters import Parameters, replaced
from simcore.program import StageProgram
from simcore.program.ops import COMPUTE, PHASES, STREAM_OF_GROUP, TO_NEXT, TO_PREVIOUS
from simcore.records import Struct, replace
from simcore.workload.model import base_name

# What takes 10 % less time takes 0.9 of it; 10 % faster is 1 / 0.9 of the bandwidth.
BETTER = 0.9
# GB/s at which no number of bytes takes a ns.
_NO_TIME_GBPS = 1e30


class Cheaper(Struct, frozen=True):
    """Something that takes time. step_ns(factor): the step time when it takes `factor` of that.

    chosen: the ops whose durations it is, None where it is no ops' alone. parameters: those of the run with
    `BETTER` of it, None where none ask for that.
    """

    name: str
    step_ns: Callable[[float], int]
    chosen: Chosen | None = None
    parameters: Parameters | None = None


def knobs(rerun: Rerun) -> list[Cheaper]:
    """All knobs of a run, in the order of their families."""
    return [knob for family in FAMILIES for knob in family(rerun)]


def _of_ops(rerun: Rerun, name: str, chosen: Chosen) -> Cheaper:
    return Cheaper(name, lambda factor: rerun.step_ns(chosen, factor), chosen)


def _compute(rerun: Rerun) -> Iterator[Cheaper]:
    """Compute of each phase that there is."""
    for phase, name in enumerate(PHASES):

        def chosen(stage: StageProgram, phase: int = phase) -> bytes:
            columns = zip(stage.ops.stream, stage.ops.phase, strict=True)
            return bytes(stream == COMPUTE and of == phase for stream, of in columns)

        if any(map(any, map(chosen, rerun.program.stages))):
            yield _of_ops(rerun, f"compute {name}", chosen)


def _layers(rerun: Rerun) -> Iterator[Cheaper]:
    """All that rows of one name do, compute and collectives, names without digits."""
    numbers: dict[str, int] = {}
    names = rerun.simulation.workload.name
    # One entry more: transfers are of row -1.
    number_of_row = [*[numbers.setdefault(base_name(name), len(numbers)) for name in names], -1]
    used = {number_of_row[row] for stage in rerun.program.stages for row in set(stage.ops.row)}
    for name, number in numbers.items():
        if number not in used:
            continue

        def chosen(stage: StageProgram, number: int = number) -> bytes:
            return bytes(number_of_row[row] == number for row in stage.ops.row)

        yield _of_ops(rerun, f"layer {name}", chosen)


def _streams(rerun: Rerun) -> Iterator[Cheaper]:
    """Collectives of each kind of group, and transfers between stages."""
    used = {stream for stage in rerun.program.stages for stream in stage.ops.stream}
    streams = [(kind, (stream,)) for kind, stream in STREAM_OF_GROUP.items()]
    for name, codes in [*streams, ("pp", (TO_NEXT, TO_PREVIOUS))]:
        if used.isdisjoint(codes):
            continue
        table = bytes(code in codes for code in range(256))

        def chosen(stage: StageProgram, table: bytes = table) -> bytes:
            return bytes(stage.ops.stream).translate(table)

        yield _of_ops(rerun, f"stream {name}", chosen)


def _dimensions(rerun: Rerun) -> Iterator[Cheaper]:
    """Bandwidth and latency of each dimension of the network; none where a network has no dimensions."""
    if not rerun.simulation.has_dimensions:
        return
    cluster = rerun.simulation.cluster
    # A group that is no grid goes over the slowest dimension that it crosses: with another one it might move.
    may_move = any(group.shape.flat for group in rerun.folding.group_classes)
    for number in range(len(cluster.dims)):
        for what in ("bandwidth", "latency"):

            def step_ns(factor: float, number: int = number, what: str = what) -> int:
                return rerun.step_ns_on(cheaper_dimension(cluster, number, what, factor))

            asked = None if may_move else _with_dims(rerun, cheaper_dimension(cluster, number, what, BETTER))
            yield Cheaper(f"dimension {number} {what}", step_ns, parameters=asked)


def _with_dims(rerun: Rerun, cluster: Cluster) -> Parameters:
    """The parameters of the run on a cluster, to the last digit of its figures."""
    dims = (f"{one.kind}:{one.size}:{one.bandwidth!r}:{one.latency_ns!r}" for one in cluster.dims)
    return replaced(rerun.simulation.parameters, "dim", tuple(dims))


def cheaper_dimension(cluster: Cluster, number: int, what: str, factor: float) -> Cluster:
    """The cluster whose dimension has its latency times `factor`, or its bandwidth over `factor`."""
    dims = list(cluster.dims)
    one = dims[number]
    if what == "latency":
        dims[number] = replace(one, latency_ns=one.latency_ns * factor)
    else:
        dims[number] = replace(one, bandwidth=one.bandwidth / factor if factor else _NO_TIME_GBPS)
    return replace(cluster, dims=tuple(dims))


FAMILIES: tuple[Callable[[Rerun], Iterator[Cheaper]], ...] = (
    _compute,
    _layers,
    _streams,
    _dimensions,
)
