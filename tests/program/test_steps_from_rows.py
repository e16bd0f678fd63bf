"""From rows to ops: each generated step is the one that the rules, written down again, give.

Planted in a copy of simcore, one at a time: one warm-up more, point 2 joins only its own
collectives, a final join without transfers.
`test_every_stage_does_what_the_schedule_says_in_that_order` failed on each.
"""

from hypothesis import given, settings

from simcore.program import build_program
from simcore.program.ops import Join, Receive
from simcore.setup import Setup
from tests.program.expected_step import ExpectedStep, flattened
from tests.strategies import Case, cases


@settings(max_examples=100)
@given(cases())
def test_every_stage_does_what_the_schedule_says_in_that_order(case: Case) -> None:
    setup = Setup(*case)
    layout = setup.layout
    program, _ = build_program(case.workload, layout, setup.schedule, setup.overrides.layer_scales)
    expected = ExpectedStep(case.workload, layout, case.parameters.microbatches)
    for stage in range(layout.pp):
        step = expected.one_f_one_b(stage) if program.pipelined else expected.layer_loop()
        assert flattened(program, stage) == step


@settings(max_examples=30)
@given(cases())
def test_every_message_is_sent_once_and_received_once(case: Case) -> None:
    setup = Setup(*case)
    layout = setup.layout
    program, _ = build_program(case.workload, layout, setup.schedule, setup.overrides.layer_scales)
    sent, received = [], []
    for stage in program.stages if program.pipelined else ():
        sent += [message for message in stage.ops.message if message >= 0]
        received += [wait.message for run in stage.runs for wait in run.waits if isinstance(wait, Receive)]
    assert sorted(sent) == sorted(received) == list(range(program.messages))
    if program.pipelined:
        assert program.messages == 2 * (layout.pp - 1) * program.microbatches


@settings(max_examples=30)
@given(cases())
def test_every_asynchronous_op_is_joined_once(case: Case) -> None:
    setup = Setup(*case)
    layout = setup.layout
    program, _ = build_program(case.workload, layout, setup.schedule, setup.overrides.layer_scales)
    for stage in program.stages:
        ops = stage.ops
        joined = [wait.op for run in stage.runs for wait in run.waits if isinstance(wait, Join)]
        asynchronous = [op for op in range(len(ops)) if not ops.blocking[op]]
        assert sorted(joined) == asynchronous
        assert (stage.runs[0].first, stage.runs[-1].first, stage.runs[-1].last) == (0, len(ops), len(ops))
