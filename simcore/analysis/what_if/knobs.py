"""The knobs of a run: what could be cheaper in it, and which other schedules fit.

A new family of knobs is a function here and a line in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simcore.analysis.rerun import Chosen, Rerun
from simcore.cluster import Cluster
from simcore.parameters import Parameters, as_flags, replaced
from simcore.program import SCHEDULES, StageProgram
from simcore.program.building import fitting_chunks
from simcore.program.ops import COMPUTE, PHASES, STREAM_OF_GROUP, TO_NEXT, TO_PREVIOUS
from simcore.records import Struct, replace
from simcore.workload.model import base_name

# What takes 10 % less time takes 0.9 of it; 10 % faster is 1 / 0.9 of the bandwidth.
BETTER = 0.9
# GB/s at which no number of bytes takes a ns.
_NO_TIME_GBPS = 1e30


class Cheaper(Struct, frozen=True):
    """Something that takes time. step_ns(factor): the step time when it takes `factor` of that.

    chosen: the ops whose durations it is, None where it is no ops' alone.
    """

    name: str
    step_ns: Callable[[float], int]
    chosen: Chosen | None = None


class Other(Struct, frozen=True):
    """Another way to run the step; name: the flags that ask for it."""

    name: str
    parameters: Parameters


Knob = Cheaper | Other


def knobs(rerun: Rerun) -> list[Knob]:
    """All knobs of a run, in the order of their families."""
    return [knob for family in FAMILIES for knob in family(rerun)]


def _of_ops(rerun: Rerun, name: str, chosen: Chosen) -> Cheaper:
    return Cheaper(name, lambda factor: rerun.step_ns(chosen, factor), chosen)


def _compute(rerun: Rerun) -> Iterator[Knob]:
    """Compute of each phase that there is."""
    for phase, name in enumerate(PHASES):

        def chosen(stage: StageProgram, phase: int = phase) -> bytes:
            columns = zip(stage.ops.stream, stage.ops.phase, strict=True)
            return bytes(stream == COMPUTE and of == phase for stream, of in columns)

        if any(map(any, map(chosen, rerun.program.stages))):
            yield _of_ops(rerun, f"compute {name}", chosen)


def _layers(rerun: Rerun) -> Iterator[Knob]:
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


def _streams(rerun: Rerun) -> Iterator[Knob]:
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


def _dimensions(rerun: Rerun) -> Iterator[Knob]:
    """Bandwidth and latency of each dimension of the network; none where a network has no dimensions."""
    if not rerun.simulation.has_dimensions:
        return
    cluster = rerun.simulation.cluster
    for number in range(len(cluster.dims)):
        for what in ("bandwidth", "latency"):

            def step_ns(factor: float, number: int = number, what: str = what) -> int:
                return rerun.step_ns_on(cheaper_dimension(cluster, number, what, factor))

            yield Cheaper(f"dimension {number} {what}", step_ns)


def cheaper_dimension(cluster: Cluster, number: int, what: str, factor: float) -> Cluster:
    """The cluster whose dimension has its latency times `factor`, or its bandwidth over `factor`."""
    dims = list(cluster.dims)
    one = dims[number]
    if what == "latency":
        dims[number] = replace(one, latency_ns=one.latency_ns * factor)
    else:
        dims[number] = replace(one, bandwidth=one.bandwidth / factor if factor else _NO_TIME_GBPS)
    return replace(cluster, dims=tuple(dims))


def _schedules(rerun: Rerun) -> Iterator[Knob]:
    """The other pipeline schedules, `interleaved` with each number of virtual stages that fits."""
    simulation = rerun.simulation
    program, parameters = simulation.program, simulation.parameters
    if program.rules is not SCHEDULES.get(program.schedule):
        # The stages and micro-batches of a schedule file are not those of another schedule by themselves.
        parameters = replace(parameters, pp=simulation.layout.pp, microbatches=program.microbatches)
    # Of layer-loop and op tables no other schedule runs the same step.
    if not program.has_pipeline_schedule:
        return
    for name, schedule in SCHEDULES.items():
        if not schedule.tried:
            continue
        for count in fitting_chunks(
            program.structure, simulation.layout.pp, program.microbatches, name
        ):
            chunks = count or schedule.chunks
            if (name, chunks) != (program.schedule, program.virtual_stages):
                other = replaced(replaced(parameters, "schedule", name), "virtual_stages", count)
                yield Other(_flags(schedule=name, virtual_stages=count), other)


def _overlaps(rerun: Rerun) -> Iterator[Knob]:
    """Forwards beside backwards, gradients and parameters exchanged beside compute, where not there yet."""
    parameters = rerun.simulation.parameters
    if not rerun.simulation.program.has_pipeline_schedule:
        return
    fields = ["overlap_grad_reduce", "overlap_param_gather"]
    if rerun.simulation.program.rules.pairs:
        fields.insert(0, "overlap_fwd_bwd")
    for field in fields:
        if not getattr(parameters, field):
            yield Other(_flags(**{field: True}), replaced(parameters, field, True))


def _flags(**values: object) -> str:
    return " ".join(as_flags(Parameters(**values)))  # type: ignore[arg-type]


FAMILIES: tuple[Callable[[Rerun], Iterator[Knob]], ...] = (
    _schedules,
    _overlaps,
    _compute,
    _layers,
    _streams,
    _dimensions,
)
