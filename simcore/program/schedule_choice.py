"""The schedule of a run: which one is chosen, and whether it fits the stages, micro-batches and layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic, UsageError, did_you_mean, printable
from simcore.layout import Layout
from simcore.names import FORWARD_ONLY
from simcore.program.blocks import Structure, is_embedding
from simcore.program.order import Placement
from simcore.program.schedules import (
    FROM_FILE,
    INFERENCE,
    SCHEDULES,
    Schedule,
    is_schedule_file,
)
from simcore.records import Struct, replace
from simcore.units import plural
from simcore.workload import Workload
from simcore.workload.model import DegreeParameters, ModelParameters

if TYPE_CHECKING:
    from simcore.program.order_files import ReadOrder


class ScheduleParameters(Struct, frozen=True):
    """The parameters of the schedule, as in `Parameters`; None: as the file says, or the default."""

    schedule: str | None = None
    microbatches: int | None = None
    virtual_stages: int | None = None
    passes: int = 1
    layers: int | None = None
    steps: int = 1
    stage_layout: str | None = None
    overlap_fwd_bwd: bool = False
    overlap_grad_reduce: bool = False
    overlap_param_gather: bool = False
    explicit_names: frozenset[str] = frozenset()
    """The names of all parameters that are not at their default."""


def with_stages_of_schedule(
    workload: Workload, name: str | None, degree_parameters: DegreeParameters
) -> tuple[DegreeParameters, list[Diagnostic]]:
    """Returns the degrees with the stages of a schedule file, unless another number of stages is given.

    Raises what `find_schedule` does.
    """
    if name is None or degree_parameters.pp is not None or not is_schedule_file(name):
        return degree_parameters, []
    _, read_order = find_schedule(name)
    assert read_order is not None
    stages = read_order.order.placement.stages
    diagnostics = []
    if stages != (workload.header.pp or 1):
        message = f"pp {stages} taken, as many stages as {printable(name, 60)} has"
        diagnostics.append(
            Diagnostic("note", "schedule-stages", message, workload.path, workload.header.line)
        )
    return replace(degree_parameters, pp=stages), diagnostics


def with_chunks_of_schedule(workload: Workload, parameters: ModelParameters) -> ModelParameters:
    """Returns the parameters of a model with the stages and the virtual stages of a schedule file, where none
    are given, and its routes, where its chunks do not lie round and round.

    Raises what `find_schedule` does.
    """
    name = parameters.schedule
    if workload.maker is None or name is None or not is_schedule_file(name):
        return parameters
    _, read_order = find_schedule(name)
    assert read_order is not None
    placement = read_order.order.placement
    if parameters.pp is None:
        parameters = replace(parameters, pp=placement.stages)
    if parameters.pipeline_layout is not None or parameters.virtual_stages not in (None, placement.parts):
        return parameters
    if placement.is_loop and placement.copies == 1:
        return replace(parameters, virtual_stages=placement.parts) if placement.parts > 1 else parameters
    routes = tuple(tuple(chunk.stage for chunk in route) for route in placement.routes)
    return replace(parameters, virtual_stages=None, routes=routes)


def find_schedule(name: str) -> tuple[Schedule, ReadOrder | None]:
    """Returns the schedule of that name, or of the file of that name with its content.

    Raises `UsageError` for a name that is neither, `InputError` for a file that cannot be run.
    """
    if name in SCHEDULES:
        return SCHEDULES[name], None
    if name == FORWARD_ONLY:
        return INFERENCE, None
    if not is_schedule_file(name):
        names = ", ".join(SCHEDULES)
        raise UsageError(
            f"--schedule {printable(name, 60)}: one of {names} is expected, or a schedule file"
            f"{did_you_mean(name, SCHEDULES)}"
        )
    # Imported here: few runs have a schedule file.
    from simcore.program.order_files import open_order

    read_order = open_order(name)
    splits = any(action.kind == "I" for actions in read_order.order.stages for action in actions)
    return FROM_FILE._replace(splits_backward=splits), read_order


def file_microbatches(
    read_order: ReadOrder, structure: Structure, layout: Layout, requested: int | None
) -> int:
    """Returns the micro-batches of a schedule file. Raises `UsageError` where the run has another shape."""
    placement, name = read_order.order.placement, printable(read_order.path, 60)
    if layout.pp != placement.stages:
        raise UsageError(
            f"--schedule {name}: its {plural(placement.stages, 'stage')} do not fit pp {layout.pp}: "
            f"--pp {placement.stages} would fit"
        )
    count = read_order.order.microbatches
    if requested not in (None, count):
        raise UsageError(
            f"--microbatches {requested}: {name} has {count}, and without the flag they are taken"
        )
    return count if structure.blocks else 0


def resolve_chunks(structure: Structure, schedule: Schedule, requested: int | None, name: str) -> int:
    """Returns the chunks of a stage. Raises `UsageError` where they do not divide the layers of every
    block.
    """
    chunks = schedule.chunks if schedule.chunks is not None else requested
    if chunks is None:
        divisors = ", ".join(map(str, _divisors(math.gcd(*structure.layers_per_block)))) or "no number"
        raise UsageError(f"--schedule {name} needs --virtual-stages; {divisors} would fit")
    flag_text = f"--schedule {name}" if schedule.chunks is not None else f"--virtual-stages {chunks}"
    check_chunks(structure, chunks, flag_text)
    return chunks


def check_chunks(structure: Structure, chunks: int, flag_text: str) -> None:
    """Raises `UsageError` where so many chunks do not divide the layers of a stage."""
    layers = math.gcd(*structure.layers_per_block)
    if chunks == 1 or (layers and layers % chunks == 0):
        return
    if flag_text.startswith("--virtual-stages"):
        divisors = ", ".join(map(str, _divisors(layers))) or "no number"
        raise UsageError(f"{flag_text} does not divide the layers of a stage: {divisors} would fit")
    raise UsageError(
        f"{flag_text} cuts the layers of a stage in {chunks}: {plural(layers, 'layer')} cannot be, "
        f"a multiple of {chunks} would fit"
    )


def check_model(workload: Workload, placement: Placement, flag_text: str) -> None:
    """Raises `UsageError` where a schedule places chunks differently than the rows of a model are
    made for.
    """
    model_chunks = len(workload.stages[0].chunks)
    if placement.chunks != model_chunks:
        raise UsageError(chunk_mismatch_text(flag_text, placement.parts, model_chunks))
    for route in placement.routes:
        (first, first_chunk), (last, last_chunk) = route[0], route[-1]
        begins = [workload.name[row] for row in workload.stages[first].chunks[first_chunk]]
        ends = [workload.name[row] for row in workload.stages[last].chunks[last_chunk]]
        if not (any(map(is_embedding, begins)) and any(end.startswith("final_") for end in ends)):
            raise UsageError(
                f"{flag_text}: its chunks lie otherwise than round and round, and the stages of a model "
                "are made "
                "for a schedule by its name"
            )


def chunk_mismatch_text(flag_text: str, parts: int, model_chunks: int) -> str:
    """Returns why a model made for so many virtual stages does not fit a schedule with `parts` of them."""
    fit = "no virtual stages" if parts == 1 else f"{parts} virtual stages"
    return f"{flag_text} has {fit}: --virtual-stages {model_chunks} does not fit it"


def fitting_chunks(structure: Structure, stages: int, microbatches: int, name: str) -> list[int | None]:
    """Returns the numbers of virtual stages that a schedule is made for; [None] where it implies them.

    A schedule that takes several is another schedule with one (Megatron-LM refuses to interleave a single
    chunk of a stage).
    """
    schedule = SCHEDULES[name]
    layers = math.gcd(*structure.layers_per_block)
    if not microbatches or schedule.misfit(stages, microbatches):
        return []
    if schedule.chunks is None:
        return [*_divisors(layers)[1:]]
    return [None] if schedule.chunks == 1 or (layers and layers % schedule.chunks == 0) else []


def _divisors(layers: int) -> list[int]:
    return [divisor for divisor in range(1, layers + 1) if layers % divisor == 0]
