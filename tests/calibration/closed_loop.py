"""A measured step made of a simulated one: what each op takes is the simulation's, when it runs is not.

The times come from the small simulation of `tests.measured.made_steps`, which knows nothing of simcore:
its sends hold the sender, ranks start late and stop between operations, so that every kind of waiting
is in the trace.
"""

from __future__ import annotations

from random import Random

from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, OPT, STREAMS, TO_NEXT, Receive
from simcore.simulation import Simulation, simulate
from simcore.workload import Workload
from tests.measured.made_steps import Action, Factors, Layout, made_run, trace_text
from tests.measured.made_steps import simulated as timed
from tests.strategies import Cell, Row, make_workload


def a_workload(
    tp: int, dp: int, pp: int, microbatches: int = 2, size: int = 1 << 22, optimizer_ns: int = 700_000
) -> Workload:
    """Two layers with blocking tp collectives, gradients over dp, an optimizer; transfers of `size` bytes."""
    tp_cell = ("ALLREDUCE", "tp", size)
    layers = [
        Row("attention_column", Cell(310_000, *tp_cell), Cell(270_000, *tp_cell), Cell(290_000)),
        Row("mlp_row", Cell(520_000, "ALLGATHER", "tp", 2 * size), Cell(610_000, *tp_cell), Cell(430_000)),
    ]
    rows = [Row("grad_param_comm", wg=Cell(0, "REDUCESCATTER", "dp", 5 * size))]
    for _ in range(microbatches):
        rows += [Row("embedding_layer", Cell(90_000), Cell(), Cell(80_000)), *layers]
    rows.append(Row("optimizer1", Cell(optimizer_ns)))
    return make_workload(rows, tp=tp, ep=1, pp=pp, all_gpus=tp * dp * pp, pp_comm=size)


def measured_of(
    workload: Workload, parameters: Parameters, seed: int, slow_ranks: dict[int, int] | None = None
) -> MeasuredRun:
    """A step of `workload` under `parameters` as a trace. slow_ranks: factors on compute of some ranks."""
    simulation = simulate(workload, parameters)
    layout = simulation.layout
    made = Layout(layout.tp, layout.dp, layout.pp, simulation.program.microbatches)
    random = Random(seed)
    steps = [_actions(simulation, rank, random) for rank in range(layout.world)]
    times = timed(steps, Factors(ranks=slow_ranks or {}))
    return made_run(trace_text(made, steps, times), made)


def _actions(simulation: Simulation, rank: int, random: Random) -> list[Action]:
    layout, timeline = simulation.layout, simulation.timeline
    number = timeline.folding.class_of(rank)
    tp, dp, stage = layout.position(rank)
    ops, start, end = timeline.columns(number)
    todo = [Action("gap", random.randint(0, 3000) * 1000)]

    def pause() -> None:
        todo.append(Action("gap", random.randint(1, 40) * 1000))

    for run in timeline.stage_program(number).runs:
        for wait in run.waits:
            if isinstance(wait, Receive):
                is_forward = wait.source < stage
                sender, sent = timeline.find_transfer(number, wait.message)
                batch = timeline.stage_program(sender).ops.microbatch[sent]
                name = "recv_forward" if is_forward else "recv_backward"
                pause()
                todo.append(Action("recv", 0, name, ("pp", wait.message, tp, dp), batch=batch))
                pause()
            elif STREAMS[ops.stream[wait.op]] == "dp":
                # The trace of a reduction that nothing hides is an operation where it is waited for.
                key = ("dp", tuple(layout.group_of("dp", rank)), wait.op)
                pause()
                todo.append(Action("meet", end[wait.op] - start[wait.op], "dp_allreduce", key, group="dp"))
                pause()
        for op in range(run.first, run.last):
            ns, batch = end[op] - start[op], max(ops.microbatch[op], 0)
            stream = ops.stream[op]
            step = "forward_step" if ops.phase[op] == 0 else "backward_step"
            if stream == COMPUTE and ops.phase[op] == OPT:
                pause()
                todo.append(Action("meet", 0, "optimizer_step", ("model", dp)))
                todo.append(Action("own", ns, "optimizer_step"))
            elif stream == COMPUTE:
                todo.append(Action("own", ns, step, batch=batch))
            elif stream >= TO_NEXT:
                name = "send_forward" if ops.phase[op] == 0 else "send_backward"
                key = ("pp", ops.message[op], tp, dp)
                pause()
                todo.append(Action("send", ns, name, key, batch=batch))
                pause()
            elif STREAMS[stream] == "tp":
                name = f"{simulation.workload.name[ops.row[op]]} {ops.phase[op]}"
                key = ("tp", stage, dp, op)
                todo.append(Action("meet", ns, step, key, batch=batch, group="tp", sub=name))
    return todo
