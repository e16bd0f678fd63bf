"""Builds a program from a workload and a layout: one step of every stage.

Checks whether the stages of a pipeline can come together in the collectives that span them.

A group of kind `all` has ranks of every stage. Streams are first in, first out, and a collective
starts when every member has reached it: all stages must come to the same collectives in the same
order, and none of them may need a transfer from a stage that waits in one. That depends on
the order of ops alone, never on their times, so it is found here by walking through the program
without times. No file format has such collectives in a pipeline; a workload that a program
makes may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic, InputError, Severity, UsageError, did_you_mean, printable
from simcore.layout import Layout
from simcore.names import FORWARD_ONLY, STAGE_LAYOUTS
from simcore.parameters import FLAGS
from simcore.program.blocks import Structure, find_structure, is_embedding, is_layer, one_block_structure
from simcore.program.ops import (
    PHASES,
    STREAM_OF_GROUP,
    CollectiveCost,
    Cost,
    Join,
    Program,
    Receive,
    StageProgram,
    Wait,
)
from simcore.program.order import Action, Order, Shape
from simcore.program.overrides import ANY_ROW
from simcore.program.plan import ONE_LOOP, Plan, ScheduleDefaults, schedule_defaults
from simcore.program.schedule_choice import (
    ScheduleParameters,
    check_chunks,
    check_model,
    file_microbatches,
    find_schedule,
    resolve_chunks,
)
from simcore.program.schedules import FROM_FILE, SCHEDULES, Schedule
from simcore.program.stage_builder import StageBuilder
from simcore.records import NamedTuple
from simcore.units import byte_size, group_digits, plural
from simcore.workload import Workload
from simcore.workload.memory import check_memory, run_bytes
from simcore.workload.model import base_name
from simcore.workload.traffic import activation_between_stages

if TYPE_CHECKING:
    from simcore.program.policy_builder import PolicyBuilder

_ALL = STREAM_OF_GROUP["all"]


def check_meetings(program: Program, workload: Workload, stage_layout: str) -> None:
    """Raises `UsageError` where the step would hang in a collective over all ranks.

    stage_layout: which rows each stage runs; the message names it unless it is `uniform`.
    """
    if not program.pipelined or not any(_ALL in stage.ops.stream for stage in program.stages):
        return
    # Op indices of the collectives over all ranks, per stage in the order of its stream.
    meetings = [
        [op for op, stream in enumerate(stage.ops.stream) if stream == _ALL] for stage in program.stages
    ]
    why = _find_order_mismatch(program, workload, meetings) or _find_deadlock(program, workload, meetings)
    if why:
        what = f"--schedule {program.schedule}"
        what += f" --stage-layout {stage_layout}" if stage_layout != "uniform" else ""
        raise UsageError(
            f"{what}: collectives over all ranks would hang: {why}; --schedule layer-loop would fit"
        )


def _find_order_mismatch(program: Program, workload: Workload, meetings: list[list[int]]) -> str | None:
    """Returns where a stage comes to another collective than stage 0, in words; None where none does."""
    for stage in range(1, len(meetings)):
        for ordinal, (first, here) in enumerate(zip_longest(meetings[0], meetings[stage]), 1):
            if _identity(program, 0, first) != _identity(program, stage, here):
                return (
                    f"number {ordinal} of a step is {_describe_collective(program, workload, 0, first)} "
                    "on stage 0, "
                    f"{_describe_collective(program, workload, stage, here)} on stage {stage}"
                )
    return None


def _identity(program: Program, stage: int, op: int | None) -> tuple[int, ...] | None:
    if op is None:
        return None
    ops = program.stages[stage].ops
    return ops.row[op], ops.phase[op], ops.microbatch[op], ops.cost[op]


def _describe_collective(program: Program, workload: Workload, stage: int, op: int | None) -> str:
    if op is None:
        return "none"
    ops = program.stages[stage].ops
    cost = program.costs[ops.cost[op]]
    assert isinstance(cost, CollectiveCost)
    row, microbatch = ops.row[op], ops.microbatch[op]
    where = f"line {workload.line[row]}, {PHASES[ops.phase[op]]}"
    where += f", micro-batch {microbatch}" if microbatch >= 0 else ""
    return f"{cost.collective} of {cost.bytes} B of {printable(workload.name[row], 60)} ({where})"


def _find_deadlock(program: Program, workload: Workload, meetings: list[list[int]]) -> str | None:
    """Returns which stage waits in a collective for one that waits for a transfer, in words; None where none
    does.
    """
    walk = _MeetingWalk(program, meetings)
    while walk.advance_all():
        pass
    fewest = min(walk.issued)
    blocked = [stage for stage, come in enumerate(walk.issued) if come > fewest]
    if not blocked:
        return None
    absent = walk.issued.index(fewest)
    return (
        f"stage {blocked[0]} waits in "
        f"{_describe_collective(program, workload, blocked[0], meetings[blocked[0]][fewest])} "
        f"for stage {absent}, and stage {absent} for a transfer from stage {walk.source[absent]}"
    )


class _MeetingWalk:
    """Runs the stages as far as they get without times.

    issued: how many collectives over all ranks each has issued. source: the stage whose transfer each last
    waited for.
    """

    def __init__(self, program: Program, meetings: list[list[int]]) -> None:
        self.issued = [0] * len(meetings)
        self.source = [0] * len(meetings)
        self._stages = program.stages
        self._meeting_index = [{op: index for index, op in enumerate(ops)} for ops in meetings]
        self._sent_messages: set[int] = set()
        self._run_position = [(0, 0)] * len(meetings)
        self._next_op = [0] * len(meetings)

    def advance_all(self) -> bool:
        """Let every stage go on until it waits for something missing. Returns whether any went on."""
        before = [*self._run_position], [*self._next_op], [*self.issued]
        for stage in range(len(self._stages)):
            self._advance(stage)
        return before != (self._run_position, self._next_op, self.issued)

    def _advance(self, stage: int) -> None:
        program = self._stages[stage]
        run_number, wait_number = self._run_position[stage]
        while run_number < len(program.runs):
            run = program.runs[run_number]
            while wait_number < len(run.waits) and self._is_over(stage, run.waits[wait_number]):
                wait_number += 1
            if wait_number < len(run.waits) or not self._issue(stage, run.last):
                break
            run_number, wait_number = run_number + 1, 0
        self._run_position[stage] = run_number, wait_number

    def _is_over(self, stage: int, wait: Wait) -> bool:
        if isinstance(wait, Receive):
            self.source[stage] = wait.source
            return wait.message in self._sent_messages
        return not isinstance(wait, Join) or self._has_met(stage, wait.op)

    def _has_met(self, stage: int, op: int) -> bool:
        """Returns whether every stage has come to an op; one that other stages take no part in needs none."""
        index = self._meeting_index[stage].get(op)
        return index is None or index < min(self.issued)

    def _issue(self, stage: int, last: int) -> bool:
        """Issue the ops before `last`. Returns False if the stage waits in one of them."""
        ops = self._stages[stage].ops
        while self._next_op[stage] < last:
            op = self._next_op[stage]
            index = self._meeting_index[stage].get(op)
            if index is not None:
                self.issued[stage] = index + 1
                if ops.blocking[op] and not self._has_met(stage, op):
                    return False
            elif ops.message[op] >= 0:
                self._sent_messages.add(ops.message[op])
            self._next_op[stage] += 1
        return True


# More is a mistyped number: building alone would take a minute and gigabytes.
MOST_OPS = 40_000_000
# (name, phase) of a row -> factor on its compute, as `layer_scales` gives them.
LayerScales = Mapping[tuple[str, str], float]
_NO_SCALES: LayerScales = {}
# A hundred times the largest file known; more would take minutes and gigabytes.
MOST_ROWS = 250_000


def build_program(
    workload: Workload,
    layout: Layout,
    parameters: ScheduleParameters,
    scales: LayerScales = _NO_SCALES,
    least_forward_bytes: int = 0,
    order: Order | None = None,
) -> tuple[Program, list[Diagnostic]]:
    """Returns the program of one step in dialect simai, and what was assumed for it.

    least_forward_bytes: the size that a smaller forward collective is raised to, unless it is empty. order:
    of a schedule that is searched. Raises `UsageError` for an unknown schedule, a number of micro-batches
    that does not fit, and collectives over all ranks that would hang.
    """
    if workload.is_table:
        # Imported here and below: most files are of SimAI's rows.
        from simcore.program.op_table import build_table_program

        _check_rows(workload)
        check_names(workload, scales)
        program, diagnostics = build_table_program(workload, layout, parameters, scales, MOST_OPS)
        return program, diagnostics + _ignored_parameters(workload, parameters, program.schedule)
    plans = plan_program(workload, layout, parameters, scales, least_forward_bytes, order)
    schedule, plan, actions = plans.schedule, plans.plan, plans.actions
    stages = []
    for stage in range(layout.pp if schedule.pipelined else 1):
        builder = StageBuilder(plan, stage)
        if actions is None:
            builder.loop_over_rows()
        else:
            builder.run_steps(tuple(actions(stage)))
        stages.append(builder.finish())
        if stage == 0 and schedule.pipelined:
            _check_stages(len(stages[0].ops) * layout.pp, layout, plan.microbatches)
    if not schedule.pipelined:
        stages *= layout.pp
    program = assemble_program(plans, tuple(stages), tuple(cost for _, cost in plan.costs))
    check_meetings(program, workload, parameters.stage_layout or STAGE_LAYOUTS[0])
    return program, plans.diagnostics


class ProgramPlan(NamedTuple):
    """What the stages of a program are built from."""

    name: str
    """The name of the schedule."""
    schedule: Schedule
    """The rules of the schedule."""
    plan: Plan
    """What all stages share."""
    actions: Callable[[int], Iterable[Action]] | None
    """Gives a stage's actions; None without a pipeline."""
    diagnostics: list[Diagnostic]
    """What was assumed."""
    order: Order | None = None
    """The order, of a schedule that is searched."""


def assemble_program(
    plans: ProgramPlan, stages: tuple[StageProgram, ...], costs: tuple[Cost, ...]
) -> Program:
    """Returns the program of these stages, whose ops have these costs."""
    plan = plans.plan
    return Program(
        plans.name,
        plans.schedule.pipelined,
        plan.structure,
        stages,
        costs,
        plan.microbatches,
        len(plan.messages),
        plan.placement.parts,
        steps=plan.steps,
        rules=plans.schedule,
        placement=plan.placement,
        packings=plan.workload.packed.of_replica if plan.workload.packed is not None else (),
    )


def plan_program(
    workload: Workload,
    layout: Layout,
    parameters: ScheduleParameters,
    scales: LayerScales = _NO_SCALES,
    least_forward_bytes: int = 0,
    order: Order | None = None,
) -> ProgramPlan:
    """Returns the plan of a program in dialect simai, with what was assumed. Raises as
    `build_program` does.
    """
    _check_rows(workload)
    structure, diagnostics = find_structure(workload, parameters.microbatches)
    defaults = schedule_defaults(workload, layout, structure)
    if workload.stages and len(workload.stages[0].chunks) > 1:
        defaults = defaults._replace(schedule="interleaved")
    name = defaults.schedule if parameters.schedule is None else parameters.schedule
    _check_pass(workload, name)
    schedule, _ = find_schedule(name)
    actions = None
    if schedule.pipelined:
        plan, actions, notes = _pipelined_plan(workload, structure, layout, parameters, name, defaults)
        diagnostics += notes
        actions = actions if order is None else order.stages.__getitem__
    else:
        plan = Plan(workload, structure, layout, defaults.microbatches, 0, passes=parameters.passes)
        _check_passes(workload, parameters.passes, queued=False)
    plan.least_forward_bytes = least_forward_bytes
    check_names(workload, scales)
    plan.layer_scales = scales
    diagnostics += _ignored_parameters(workload, parameters, name)
    return ProgramPlan(name, schedule, plan, actions, diagnostics, order)


def build_policy_program(
    workload: Workload,
    layout: Layout,
    parameters: ScheduleParameters,
    newest_first: bool,
    scales: LayerScales = _NO_SCALES,
) -> tuple[Program, list[Diagnostic]]:
    """Returns the program of one step in dialect astra-sim-1, and what was assumed for it.

    workload: with the groups of its policy. newest_first: whether a dimension takes the newest collective
    first where the policy has no preference. Raises `UsageError` for a schedule or a number of passes that
    does not fit.
    """
    from simcore.program.policy_builder import PolicyBuilder
    from simcore.program.schedules.policy_loops import POLICY_LOOPS

    name = ONE_LOOP.schedule
    if parameters.schedule not in (None, name):
        quoted = printable(str(parameters.schedule), 60)
        raise UsageError(
            f"--schedule {quoted}: dialect astra-sim-1 runs a policy's own loop, {name} fits "
            "(--dialect simai takes the rows as SimAI does)"
        )
    _check_passes(workload, parameters.passes, queued=True)
    plan = Plan(workload, one_block_structure(workload), layout, ONE_LOOP.microbatches, 0)
    check_names(workload, scales)
    plan.layer_scales = scales
    builder = PolicyBuilder(plan, newest_first)
    reduced: dict[int, int | None] = {}
    for _ in range(parameters.passes):
        POLICY_LOOPS[workload.policy](builder, reduced)
    stage = builder.finish()
    costs = tuple(cost for _, cost in plan.costs)
    program = Program(name, False, plan.structure, (stage,), costs, plan.microbatches, 0, queued=True)
    diagnostics = [*_left_out(workload, builder), *_ignored_parameters(workload, parameters, name)]
    if not stage.ops:
        message = f"nothing of the rows runs under policy {workload.policy}"
        diagnostics.append(Diagnostic("warning", "no-ops", message, workload.path, workload.header.line))
    return program, diagnostics


def _check_pass(workload: Workload, name: str) -> None:
    """Raises `UsageError` for a training step's schedule of an inference step, and the reverse."""
    inference = workload.header.inference
    if inference and name != FORWARD_ONLY:
        raise UsageError(f"--schedule {printable(name, 60)}: an inference step has forwards alone: "
                         f"{FORWARD_ONLY} fits")  # fmt: skip
    if name == FORWARD_ONLY and not inference:
        raise UsageError(f"--schedule {name} is of an inference step, and the rows are of training")


def _check_stages(ops: int, layout: Layout, microbatches: int) -> None:
    """Raises `UsageError` where there is not enough memory for all stages. ops: how many they have, about."""
    what = f"{plural(microbatches, 'micro-batch')} on {plural(layout.pp, 'stage')} have about {ops} ops"
    check_memory(run_bytes(ops, ops, layout.pp), what, "fewer --microbatches would need less")


def _left_out(workload: Workload, builder: PolicyBuilder) -> list[Diagnostic]:
    """Returns a note on the cells that the policy never runs."""
    computes, collectives = builder.left_out()
    parts = [plural(computes, "compute cell")] if computes else []
    parts += [plural(collectives, "collective")] if collectives else []
    if not parts:
        return []
    message = f"policy {workload.policy} never runs {' and '.join(parts)} of the rows: left out"
    return [Diagnostic("note", "policy-leaves-out", message, workload.path, workload.header.line)]


def _check_passes(workload: Workload, passes: int, queued: bool) -> None:
    """Raises `UsageError` where the passes have too many ops, or more than there is memory for."""
    # A row has up to six ops.
    most_ops = 6 * passes * len(workload)
    if passes > 1 and most_ops > MOST_OPS:
        raise UsageError(
            f"--passes {passes} of {plural(len(workload), 'row')} are up to {most_ops} ops: "
            f"at most {MOST_OPS} are simulated"
        )
    # Most rows have at least half of them.
    ops = most_ops // 2
    what = f"{plural(passes, 'pass')} of {plural(len(workload), 'row')} have about {ops} ops"
    check_memory(run_bytes(ops, ops, 1, queued=queued), what, "fewer --passes would need less")


def program_findings(workload: Workload, layout: Layout) -> list[Diagnostic]:
    """Returns the diagnostics of `build_program` for a file under default parameters, without building
    anything.

    Raises InputError for more rows than are simulated.
    """
    _check_rows(workload)
    if workload.is_table:
        from simcore.program.op_table import find_layer

        return find_layer(workload, layout, None)[2]
    if workload.header.inference:
        # Its rows are those of all stages.
        return []
    structure, diagnostics = find_structure(workload)
    if layout.pp > 1:
        diagnostics += bytes_between_stages(workload, structure, layout)[1]
        diagnostics += _uniform_stages(workload, structure)
    return diagnostics


def _check_rows(workload: Workload) -> None:
    if len(workload) > MOST_ROWS:
        message = f"found {len(workload)} rows: at most {MOST_ROWS} are simulated; this is the first too many"
        location = (workload.path, workload.line[MOST_ROWS], 1)
        raise InputError(Diagnostic("error", "too-many-rows", message, *location))


def _pipelined_plan(
    workload: Workload,
    structure: Structure,
    layout: Layout,
    parameters: ScheduleParameters,
    name: str,
    defaults: ScheduleDefaults,
) -> tuple[Plan, Callable[[int], Iterable[Action]], list[Diagnostic]]:
    """Returns the plan of a pipeline schedule, what gives a stage's actions, and what was assumed.

    Raises `UsageError` with what would fit.
    """
    if parameters.stage_layout not in (None, *STAGE_LAYOUTS):
        layout_word = printable(str(parameters.stage_layout), 60)
        raise UsageError(f"--stage-layout {layout_word}: one of {', '.join(STAGE_LAYOUTS)} is expected"
                         f"{did_you_mean(parameters.stage_layout, STAGE_LAYOUTS)}")  # fmt: skip
    schedule, read_order = find_schedule(name)
    actions: Callable[[int], Iterable[Action]]
    microbatches = defaults.microbatches
    if parameters.microbatches is not None and structure.blocks:
        microbatches = parameters.microbatches
    if read_order is not None:
        microbatches = file_microbatches(read_order, structure, layout, parameters.microbatches)
    # A row has six cells, each at most one op; the rows outside blocks run once more.
    block = max(map(len, structure.blocks), default=0)
    if workload.stages:
        block = max(sum(map(len, stage.chunks)) for stage in workload.stages)
        block += sum(map(len, workload.recomputed.values()))
    rows = microbatches * block + len(workload)
    most_ops = 6 * layout.pp * rows * parameters.steps
    if most_ops > MOST_OPS:
        times = f" in {parameters.steps} steps" if parameters.steps > 1 else ""
        raise UsageError(
            f"{plural(microbatches, 'micro-batch')} on {plural(layout.pp, 'stage')}{times} are up to "
            f"{most_ops} ops: at most {MOST_OPS} are simulated"
        )
    if read_order is not None:
        if parameters.overlap_fwd_bwd and read_order.pairs_wait:
            raise UsageError(
                f"--overlap-fwd-bwd: pairs of {printable(name, 60)} would wait for each other: "
                f"{read_order.pairs_wait}; without it they would fit"
            )
        order = read_order.order if structure.blocks else read_order.order.without_microbatches()
        placement, actions = order.placement, order.stages.__getitem__
        check_chunks(structure, placement.parts, f"--schedule {printable(name, 60)}")
    else:
        requested = parameters.virtual_stages
        if requested is None and workload.stages and len(workload.stages[0].chunks) > 1:
            # The layout of a model's layers implies them.
            requested = len(workload.stages[0].chunks)
        chunks = resolve_chunks(structure, schedule, requested, name)
        misfit = schedule.misfit(layout.pp, microbatches)
        if misfit:
            raise UsageError(f"--schedule {name}: {misfit}")
        shape = Shape(layout.pp, microbatches, chunks, parameters.overlap_fwd_bwd)
        placement, actions = schedule.chunk_placement(shape), partial(schedule.actions, shape)
    if workload.stages and not workload.header.inference:
        check_model(workload, placement, f"--schedule {printable(name, 60)}")
    transfer_bytes, diagnostics = (
        bytes_between_stages(workload, structure, layout) if layout.pp > 1 else (0, [])
    )
    if layout.pp > 1 and parameters.stage_layout is None:
        diagnostics = [*diagnostics, *_uniform_stages(workload, structure)]
    plan = Plan(
        workload,
        structure,
        layout,
        microbatches,
        transfer_bytes,
        placement=placement,
        steps=parameters.steps,
        overlapped=parameters.overlap_fwd_bwd,
        megatron=parameters.stage_layout == "megatron",
        overlap_grad_reduce=parameters.overlap_grad_reduce,
        overlap_param_gather=parameters.overlap_param_gather or workload.gathers_in_forward,
    )
    return plan, actions, [*diagnostics, *(read_order.diagnostics if read_order is not None else ())]


def _uniform_stages(workload: Workload, structure: Structure) -> list[Diagnostic]:
    """Returns a note on rows that a model has once and that every stage runs, where no other stage layout is
    requested.

    None for a file whose rows are stated by stage, for rows that take no time, and for rows with a collective
    over all ranks, which every stage has to reach.
    """
    if workload.stages:
        return []
    names = workload.name
    in_blocks = [row for block in structure.blocks for row in block if not is_layer(names[row])]
    kinds = {
        "embedding": [row for row in in_blocks if is_embedding(names[row])],
        "final": [row for row in in_blocks if not is_embedding(names[row])],
        "loss": list(structure.loss),
    }
    columns = [column for cells in (workload.fwd, workload.ig, workload.wg)
               for column in (cells.compute_ns, cells.bytes)]  # fmt: skip
    counts = {
        kind: len(rows)
        for kind, rows in kinds.items()
        if any(column[row] for row in rows for column in columns)
    }
    groups = [cells.group for cells in (workload.fwd, workload.ig, workload.wg)]
    meet = any(group[row] == "all" for rows in kinds.values() for row in rows for group in groups)
    if not counts or meet:
        return []
    *others, last = counts
    what, count = f"{', '.join(others)} and {last}" if others else last, sum(counts.values())
    rows = f"all {count} {what} rows" if count > 1 else f"the {what} row"
    message = (
        f"stage layout uniform, the default: every stage runs {rows} of the file; with --stage-layout "
        "megatron the first or the last stage alone does"
    )
    diagnostic = Diagnostic(
        "note", "stage-layout-default", message, workload.path, brief="stage layout uniform"
    )
    return [diagnostic]


def check_names(workload: Workload, scales: LayerScales) -> None:
    """Raises `UsageError` where a scale names a row that does not exist."""
    names = {*workload.name, *map(base_name, workload.name)} if scales else set()
    for name, _ in scales:
        if name not in names and name != ANY_ROW:
            raise UsageError(f"--layer-scale {printable(name, 60)}: no row of the file has this name")


def _ignored_parameters(workload: Workload, parameters: ScheduleParameters, name: str) -> list[Diagnostic]:
    """Returns a diagnostic for each explicit parameter that the schedule does not use."""
    unused = {
        "microbatches", "stage_layout", "overlap_grad_reduce", "overlap_param_gather", "overlap_fwd_bwd",
        "steps",
    }  # fmt: skip
    rules = SCHEDULES.get(name, FROM_FILE)
    if rules.pipelined:
        unused = {"passes"} if rules.pairs else {"passes", "overlap_fwd_bwd"}
    if rules.chunks is not None or rules is FROM_FILE:
        unused.add("virtual_stages")
    reasons = dict.fromkeys(unused, f"schedule {printable(name, 60)}")
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
        if flag.field in reasons and flag.field in parameters.explicit_names
    ]


def bytes_between_stages(
    workload: Workload, structure: Structure, layout: Layout
) -> tuple[int, list[Diagnostic]]:
    """Returns the bytes of one activation between stages: `pp_comm`, else what docs/semantics.md assumes."""
    header = workload.header
    if header.pp_comm is not None:
        return header.pp_comm, []
    fwd = workload.fwd

    def note(severity: Severity, message: str, brief: str) -> list[Diagnostic]:
        return [Diagnostic(severity, "pp-comm-missing", message, workload.path, header.line, brief=brief)]

    names = workload.name
    layer_rows = [row for block in structure.blocks for row in block if is_layer(names[row])]
    candidates = [row for row in layer_rows if names[row].startswith("attention")][:1] + layer_rows
    candidates = [row for row in candidates if fwd.collective[row] and fwd.bytes[row]]
    if not candidates:
        return 0, note(
            "warning",
            "no pp_comm in the header and no forward collective to take it from: "
            "transfers between stages are free",
            "transfers between stages are free",
        )
    row = candidates[0]
    collective = fwd.collective[row]
    size = activation_between_stages(fwd.bytes[row], collective, layout.tp)
    divided = f" divided by tp {layout.tp}" if collective in ("ALLGATHER", "REDUCESCATTER") else ""
    return size, note(
        "note",
        f"no pp_comm in the header: {group_digits(size)} B taken, the forward {collective} of "
        f"{printable(names[row])} (line {workload.line[row]}){divided}",
        f"{byte_size(size)} between stages",
    )
