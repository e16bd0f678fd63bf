"""Rows that repeat others give the program that they give by themselves.

Seen to fail on these bugs, planted one at a time: bytes of a collective left out of what makes rows alike;
ops that keep the rows of the first; asynchronous rows taken for blocking ones.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.parameters import Parameters
from simcore.program.plan import Plan
from simcore.records import replace
from simcore.simulation import Simulation, simulate
from simcore.workload import Workload, open_workload
from tests.strategies import Case, Cell, Row, make_workload
from tests.workload.texts import FIXTURES

_COLLECTIVES: tuple[tuple[Any, ...], ...] = ((), ("ALLREDUCE", "tp", 8), ("ALLREDUCE", "tp", 9))
_CELLS = [Cell(ns, *more) for ns, more in product((0, 3, 8), _COLLECTIVES)]


@st.composite
def repeated(draw: st.DrawFn) -> Case:
    """A pipeline whose layers are few kinds, drawn again and again, some of them asynchronous."""
    kinds = draw(st.lists(st.tuples(*[st.sampled_from(_CELLS)] * 3), min_size=1, max_size=3))
    names = ("attention_column", "mlp_row")
    layers = draw(st.integers(1, 3)) * 2
    rows = []
    for _ in range(draw(st.integers(2, 4))):
        rows.append(Row("embedding_layer", *draw(st.sampled_from(kinds))))
        rows += [Row(names[at % 2], *draw(st.sampled_from(kinds))) for at in range(layers)]
    workload = make_workload(rows, tp=2, pp=2, all_gpus=4)
    for cells in (workload.fwd, workload.ig):
        cells.asynchronous.update(draw(st.sets(st.integers(0, len(rows) - 1), max_size=2)))
    return Case(workload, Parameters(overlap_grad_reduce=draw(st.booleans())))


def alone(workload: Workload, parameters: Parameters, patched: pytest.MonkeyPatch) -> Simulation:
    """The same run with each row made by itself."""
    with patched.context() as patch:
        patch.setattr(Plan, "reuse_segment", lambda *_: None)
        return simulate(workload, parameters)


def told(simulation: Simulation) -> list[Any]:
    """All that a run is: ops with their costs, waits, times."""
    program, times = simulation.program, simulation.timeline.times
    found: list[Any] = [program.costs, list(times.start), list(times.end), simulation.step_time_ns]
    for stage in program.stages:
        ops = stage.ops
        found.append((ops.stream, ops.phase, ops.blocking, ops.cost, ops.row, ops.microbatch, ops.message))
        found.append((stage.runs, stage.chunk_changes, stage.peak_chunks))
    return found


@settings(max_examples=80)
@given(repeated())
def test_a_program_with_rows_that_repeat_is_that_of_each_row_by_itself(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patched:
        assert told(simulate(*case)) == told(alone(*case, patched))


@pytest.mark.parametrize(
    "name", ["000_gpt13b_tp4_old_header.txt", "001_moe_128npu_with_mistakes.txt", "002_gpt_1024npu.txt"]
)
@pytest.mark.parametrize("changed", [{}, {"schedule": "1f1b"}, {"stage_layout": "megatron"}])
def test_seeds_are_what_they_are_row_by_row(
    name: str, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = FIXTURES / name
    workload = open_workload(str(path))
    parameters = replace(Parameters(), **changed)
    assert told(simulate(workload, parameters)) == told(alone(workload, parameters, monkeypatch))


def test_most_segments_of_seed_002_come_from_alike_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    once = Plan.reuse_segment

    def counted(self: Plan, part: str, rows: tuple[int, ...]) -> Any:
        found = once(self, part, rows)
        made.append(found is not None)
        return found

    monkeypatch.setattr(Plan, "reuse_segment", counted)
    simulate(open_workload(str(FIXTURES / "002_gpt_1024npu.txt")), Parameters())
    assert (sum(made), len(made)) == (28, 34)
