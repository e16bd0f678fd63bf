"""From a workload and a layout to a program: one step of every stage."""

from __future__ import annotations

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.layout import Layout
from simcore.parameters import Parameters
from simcore.program.blocks import Structure, find_structure, is_layer
from simcore.program.ops import Program
from simcore.program.schedules import SCHEDULES
from simcore.program.stage_builder import Plan, StageBuilder
from simcore.units import plural
from simcore.workload import Workload

# Beyond this lies a slip of the keyboard: building alone would take a minute and gigabytes.
MOST_OPS = 40_000_000


def build_program(
    workload: Workload, layout: Layout, parameters: Parameters
) -> tuple[Program, list[Diagnostic]]:
    """The program of one step, and what was assumed on the way.

    Raises `UsageError` for a schedule that is not there or micro-batches that cannot be,
    `InputError` for a dialect that has no schedule here.
    """
    dialect = parameters.dialect if parameters.dialect is not None else workload.dialect
    if dialect not in ("simai", "astra-sim-1"):
        raise UsageError(f"--dialect {printable(dialect, 60)}: simai or astra-sim-1 is expected")
    if dialect != "simai":
        raise InputError(
            Diagnostic(
                "error",
                "dialect-not-simulated",
                "the rows follow ASTRA-sim 1.0's rules (dialect astra-sim-1), which this version does not "
                "simulate; --dialect simai reads them as SimAI does",
                workload.path,
                1,
                1,
            )
        )
    name = parameters.schedule if parameters.schedule is not None else default_schedule(layout)
    schedule = SCHEDULES.get(name)
    if schedule is None:
        raise UsageError(f"--schedule {printable(name, 60)}: one of {', '.join(SCHEDULES)} is expected")
    structure, found = find_structure(workload)
    blocks = len(structure.blocks)
    microbatches = blocks
    transfer_bytes = 0
    if schedule.pipelined:
        microbatches = blocks if parameters.microbatches is None else parameters.microbatches
        if not blocks:
            microbatches = 0
        # Six cells a row, each at most one op; the rows outside blocks run once more.
        rows = microbatches * max(map(len, structure.blocks), default=0) + len(workload)
        most_ops = 6 * layout.pp * rows
        if most_ops > MOST_OPS:
            raise UsageError(
                f"{plural(microbatches, 'micro-batch')} on {plural(layout.pp, 'stage')} are up to "
                f"{most_ops} ops: at most {MOST_OPS} are simulated"
            )
        if layout.pp > 1:
            transfer_bytes, notes = _transfer_bytes(workload, structure, layout)
            found += notes
    elif parameters.microbatches is not None:
        found.append(
            Diagnostic(
                "warning",
                "microbatches-ignored",
                f"--microbatches {parameters.microbatches} has no effect: layer-loop runs each row once",
                workload.path,
            )
        )
    plan = Plan(workload, structure, layout, microbatches, transfer_bytes)
    stages = []
    for stage in range(layout.pp if schedule.pipelined else 1):
        builder = StageBuilder(plan, stage)
        schedule.build(builder)
        stages.append(builder.finish())
    if not schedule.pipelined:
        stages *= layout.pp
    program = Program(
        name,
        schedule.pipelined,
        structure,
        tuple(stages),
        tuple(plan.costs),
        microbatches,
        len(plan.messages),
    )
    return program, found


def default_schedule(layout: Layout) -> str:
    """`1f1b` where there is a pipeline, else `layer-loop`."""
    return "1f1b" if layout.pp > 1 else "layer-loop"


def _transfer_bytes(workload: Workload, structure: Structure, layout: Layout) -> tuple[int, list[Diagnostic]]:
    """Bytes of one activation between stages: `pp_comm`, else what SPEC 4 takes for it."""
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
