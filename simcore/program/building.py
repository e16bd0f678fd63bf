"""From a workload and a layout to a program: one step of every stage."""

from __future__ import annotations

import math

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.layout import Layout
from simcore.memory import check_memory, run_bytes
from simcore.names import STAGE_LAYOUTS
from simcore.overrides import layer_scales
from simcore.parameters import FLAGS, Parameters
from simcore.program.blocks import Structure, find_structure, is_layer, whole_file
from simcore.program.defaults import ONE_LOOP, ScheduleDefaults, schedule_defaults
from simcore.program.meetings import check_meetings
from simcore.program.op_table import build_table_program, find_layer
from simcore.program.ops import Program
from simcore.program.plan import Plan
from simcore.program.policy_builder import PolicyBuilder
from simcore.program.schedules import SCHEDULES
from simcore.program.schedules.policy_loops import POLICY_LOOPS
from simcore.program.stage_builder import StageBuilder
from simcore.units import plural
from simcore.workload import Workload
from simcore.workload.model import base_name

# Beyond this lies a slip of the keyboard: building alone would take a minute and gigabytes.
MOST_OPS = 40_000_000
# A hundred times the largest file known; more would take minutes and gigabytes.
MOST_ROWS = 250_000


def build_program(
    workload: Workload, layout: Layout, parameters: Parameters, least_forward_bytes: int = 0
) -> tuple[Program, list[Diagnostic]]:
    """The program of one step in dialect simai, and what was assumed on the way.

    least_forward_bytes: what a smaller forward collective, but not an empty one, counts as.
    Raises `UsageError` for a schedule that is not there, micro-batches that cannot be, and
    collectives over all ranks that would hang.
    """
    _check_rows(workload)
    if workload.is_table:
        scales = layer_scales_of(workload, parameters)
        program, found = build_table_program(workload, layout, parameters, scales, MOST_OPS)
        return program, found + _ignored(workload, parameters, program.schedule)
    structure, found = find_structure(workload)
    defaults = schedule_defaults(workload, layout, structure)
    if workload.stages and parameters.virtual_stages is not None and parameters.virtual_stages > 1:
        defaults = defaults._replace(schedule="interleaved")
    name = defaults.schedule if parameters.schedule is None else parameters.schedule
    schedule = SCHEDULES.get(name)
    if schedule is None:
        raise UsageError(f"--schedule {printable(name, 60)}: one of {', '.join(SCHEDULES)} is expected")
    if schedule.pipelined:
        plan, notes = _pipelined_plan(workload, structure, layout, parameters, name, defaults)
        found += notes
    else:
        plan = Plan(workload, structure, layout, defaults.microbatches, 0, passes=parameters.passes)
        _check_passes(workload, parameters, queued=False)
    plan.least_forward_bytes = least_forward_bytes
    plan.layer_scales = layer_scales_of(workload, parameters)
    found += _ignored(workload, parameters, name)
    stages = []
    for stage in range(layout.pp if schedule.pipelined else 1):
        builder = StageBuilder(plan, stage)
        schedule.build(builder)
        stages.append(builder.finish())
        if stage == 0 and schedule.pipelined:
            _check_stages(len(stages[0].ops) * layout.pp, layout, plan.microbatches)
    if not schedule.pipelined:
        stages *= layout.pp
    program = Program(
        name,
        schedule.pipelined,
        structure,
        tuple(stages),
        tuple(cost for _, cost in plan.costs),
        plan.microbatches,
        len(plan.messages),
        plan.chunks,
    )
    check_meetings(program, workload, parameters.stage_layout)
    return program, found


def build_policy_program(
    workload: Workload, layout: Layout, parameters: Parameters, newest_first: bool
) -> tuple[Program, list[Diagnostic]]:
    """The program of one step in dialect astra-sim-1, and what was assumed on the way.

    workload: with the groups of its policy. newest_first: which collective a dimension takes
    first where the policy has no preference. Raises `UsageError` for a schedule or a number of
    passes that cannot be.
    """
    name = ONE_LOOP.schedule
    if parameters.schedule not in (None, name):
        given = printable(str(parameters.schedule), 60)
        raise UsageError(
            f"--schedule {given}: dialect astra-sim-1 runs a policy's own loop, {name} fits "
            "(--dialect simai takes the rows as SimAI does)"
        )
    _check_passes(workload, parameters, queued=True)
    plan = Plan(workload, whole_file(workload), layout, ONE_LOOP.microbatches, 0)
    plan.layer_scales = layer_scales_of(workload, parameters)
    builder = PolicyBuilder(plan, newest_first)
    reduced: dict[int, int | None] = {}
    for _ in range(parameters.passes):
        POLICY_LOOPS[workload.policy](builder, reduced)
    stage = builder.finish()
    costs = tuple(cost for _, cost in plan.costs)
    program = Program(name, False, plan.structure, (stage,), costs, plan.microbatches, 0, queued=True)
    found = [*_left_out(workload, builder), *_ignored(workload, parameters, name)]
    if not stage.ops:
        message = f"nothing of the rows runs under policy {workload.policy}"
        found.append(Diagnostic("warning", "no-ops", message, workload.path, workload.header.line))
    return program, found


def _check_stages(ops: int, layout: Layout, microbatches: int) -> None:
    """Raises `UsageError` where there is not the memory for all stages. ops: what they have, about."""
    what = f"{plural(microbatches, 'micro-batch')} on {plural(layout.pp, 'stage')} have about {ops} ops"
    check_memory(run_bytes(ops, ops, layout.pp), what, "fewer --microbatches would need less")


def _left_out(workload: Workload, builder: PolicyBuilder) -> list[Diagnostic]:
    """A note on the cells that the policy never runs."""
    computes, collectives = builder.left_out()
    words = [plural(computes, "compute cell")] if computes else []
    words += [plural(collectives, "collective")] if collectives else []
    if not words:
        return []
    message = f"policy {workload.policy} never runs {' and '.join(words)} of the rows: left out"
    return [Diagnostic("note", "policy-leaves-out", message, workload.path, workload.header.line)]


def _check_passes(workload: Workload, parameters: Parameters, queued: bool) -> None:
    """Raises `UsageError` where the passes have too many ops, or more than there is memory for."""
    # A row has up to six.
    most_ops = 6 * parameters.passes * len(workload)
    if parameters.passes > 1 and most_ops > MOST_OPS:
        raise UsageError(
            f"--passes {parameters.passes} of {plural(len(workload), 'row')} are up to {most_ops} ops: "
            f"at most {MOST_OPS} are simulated"
        )
    # Most rows have half of them or more.
    ops = most_ops // 2
    what = f"{plural(parameters.passes, 'pass')} of {plural(len(workload), 'row')} have about {ops} ops"
    check_memory(run_bytes(ops, ops, 1, queued=queued), what, "fewer --passes would need less")


def program_findings(workload: Workload, layout: Layout) -> list[Diagnostic]:
    """What `build_program` says of a file under default parameters, without building anything.

    Raises: InputError for more rows than are simulated.
    """
    _check_rows(workload)
    if workload.is_table:
        return find_layer(workload, layout, None)[2]
    structure, found = find_structure(workload)
    if layout.pp > 1:
        found += bytes_between_stages(workload, structure, layout)[1]
    return found


def _check_rows(workload: Workload) -> None:
    if len(workload) > MOST_ROWS:
        message = f"found {len(workload)} rows: at most {MOST_ROWS} are simulated; this is the first too many"
        place = (workload.path, workload.line[MOST_ROWS], 1)
        raise InputError(Diagnostic("error", "too-many-rows", message, *place))


def _pipelined_plan(
    workload: Workload,
    structure: Structure,
    layout: Layout,
    parameters: Parameters,
    name: str,
    defaults: ScheduleDefaults,
) -> tuple[Plan, list[Diagnostic]]:
    """The plan of a pipeline schedule. Raises `UsageError` for what cannot be, with what would fit."""
    if parameters.stage_layout not in STAGE_LAYOUTS:
        given = printable(parameters.stage_layout, 60)
        raise UsageError(f"--stage-layout {given}: one of {', '.join(STAGE_LAYOUTS)} is expected")
    microbatches = defaults.microbatches
    if parameters.microbatches is not None and structure.blocks:
        microbatches = parameters.microbatches
    # Six cells a row, each at most one op; the rows outside blocks run once more.
    block = max(map(len, structure.blocks), default=0)
    if workload.stages:
        block = max(sum(map(len, stage.chunks)) for stage in workload.stages)
        block += sum(map(len, workload.recomputed.values()))
    rows = microbatches * block + len(workload)
    most_ops = 6 * layout.pp * rows
    if most_ops > MOST_OPS:
        raise UsageError(
            f"{plural(microbatches, 'micro-batch')} on {plural(layout.pp, 'stage')} are up to "
            f"{most_ops} ops: at most {MOST_OPS} are simulated"
        )
    chunks = defaults.virtual_stages
    if SCHEDULES[name].chunked:
        chunks = _chunks(structure, layout, parameters, microbatches, name)
    if workload.stages and chunks != len(workload.stages[0].chunks):
        made = len(workload.stages[0].chunks)
        raise UsageError(f"--schedule {name} has no virtual stages: --virtual-stages {made} does not fit it")
    transfer_bytes, found = bytes_between_stages(workload, structure, layout) if layout.pp > 1 else (0, [])
    plan = Plan(
        workload,
        structure,
        layout,
        microbatches,
        transfer_bytes,
        chunks=chunks,
        megatron=parameters.stage_layout == "megatron",
        overlap_grad_reduce=parameters.overlap_grad_reduce,
        overlap_param_gather=parameters.overlap_param_gather,
    )
    return plan, found


def _chunks(
    structure: Structure, layout: Layout, parameters: Parameters, microbatches: int, name: str
) -> int:
    """Chunks of a stage: they divide the layers of every block, and P divides the micro-batches."""
    chunks = parameters.virtual_stages
    layers = math.gcd(*structure.layers_per_block)
    fitting = _divisors(layers)
    words = ", ".join(map(str, fitting)) or "no number"
    if chunks is None:
        raise UsageError(f"--schedule {name} needs --virtual-stages; {words} would fit")
    if layers == 0 or layers % chunks:
        raise UsageError(
            f"--virtual-stages {chunks} does not divide the layers of a stage: {words} would fit"
        )
    if microbatches % layout.pp:
        below = microbatches - microbatches % layout.pp
        near = f"{below} or {below + layout.pp}" if below else str(layout.pp)
        raise UsageError(
            f"--schedule {name}: {microbatches} micro-batches are not a multiple of {layout.pp} stages: "
            f"{near} would fit"
        )
    return chunks


def fitting_chunks(structure: Structure, stages: int, microbatches: int) -> list[int]:
    """The numbers of virtual stages that `interleaved` takes, none where it takes the micro-batches not."""
    if not microbatches or microbatches % stages:
        return []
    return _divisors(math.gcd(*structure.layers_per_block))


def _divisors(layers: int) -> list[int]:
    return [number for number in range(1, layers + 1) if layers % number == 0]


def layer_scales_of(workload: Workload, parameters: Parameters) -> dict[tuple[str, str], float]:
    """The scales of `--layer-scale`. Raises `UsageError` for a name that no row has."""
    scales = layer_scales(parameters)
    names = {*workload.name, *map(base_name, workload.name)} if scales else set()
    for name, _ in scales:
        if name not in names:
            raise UsageError(f"--layer-scale {printable(name, 60)}: no row of the file has this name")
    return scales


def _ignored(workload: Workload, parameters: Parameters, name: str) -> list[Diagnostic]:
    """A diagnostic for each parameter that was given and that the schedule does not use."""
    unused = {"microbatches", "stage_layout", "overlap_grad_reduce", "overlap_param_gather"}
    if SCHEDULES[name].pipelined:
        unused = {"passes"}
    if not SCHEDULES[name].chunked:
        unused.add("virtual_stages")
    reasons = dict.fromkeys(unused, f"schedule {name}")
    if workload.is_table:
        reasons |= dict.fromkeys(("dialect", "ep"), "an op table")
    else:
        reasons["layers"] = "a file that is no op table"
    return [
        Diagnostic(
            "warning",
            "parameter-ignored",
            f"{flag.option} has no effect on {reasons[flag.field]}",
            workload.path,
        )
        for flag in FLAGS
        if flag.field in reasons and getattr(parameters, flag.field) != flag.default
    ]


def bytes_between_stages(
    workload: Workload, structure: Structure, layout: Layout
) -> tuple[int, list[Diagnostic]]:
    """Bytes of one activation between stages: `pp_comm`, else what docs/semantics.md takes for it."""
    header = workload.header
    if header.pp_comm is not None:
        return header.pp_comm, []
    fwd = workload.fwd

    def note(severity: str, message: str) -> list[Diagnostic]:
        return [Diagnostic(severity, "pp-comm-missing", message, workload.path, header.line)]  # type: ignore[arg-type]

    names = workload.name
    layer_rows = [row for block in structure.blocks for row in block if is_layer(names[row])]
    candidates = [row for row in layer_rows if names[row].startswith("attention")][:1] + layer_rows
    candidates = [row for row in candidates if fwd.collective[row] and fwd.bytes[row]]
    if not candidates:
        return 0, note(
            "warning",
            "no pp_comm in the header and no forward collective to take it from: "
            "transfers between stages are free",
        )
    row = candidates[0]
    size, collective = fwd.bytes[row], fwd.collective[row]
    if collective in ("ALLGATHER", "REDUCESCATTER"):
        return size // layout.tp, note(
            "note",
            f"no pp_comm in the header: {size // layout.tp} B taken, the forward "
            f"{collective} of {printable(names[row])} (line {workload.line[row]}) divided by tp {layout.tp}",
        )
    return size, note(
        "note",
        f"no pp_comm in the header: {size} B taken, the forward {collective} of "
        f"{printable(names[row])} (line {workload.line[row]})",
    )
