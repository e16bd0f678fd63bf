"""What a micro-batch takes stands beside the step time, and decides where two steps have not as many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.analysis import Results
from simcore.analysis.two_runs import compared
from simcore.parameters import Parameters
from simcore.records import Struct
from simcore.report.sides import lines
from simcore.run.figures import each_difference, each_words, microbatch_ns, throughput_words
from simcore.simulation import simulate
from simcore.workload import open_workload

SEED = "fixtures/002_gpt_1024npu.txt"


class Made(Struct, frozen=True):
    step_time_ns: int
    microbatches: int
    steps: int = 1
    origin: str = "simulated"
    microbatches_alike: bool = True


def seed(**changes: int) -> Results:
    return Results(simulate(open_workload(SEED), Parameters(**changes)))


@given(st.integers(1, 10**12), st.integers(1, 10**4), st.integers(1, 5))
def test_a_micro_batch_takes_its_share_of_all_steps(step: int, count: int, steps: int) -> None:
    each = microbatch_ns(Made(step, count, steps))
    assert each is not None
    assert each * count * steps <= step < (each + 1) * count * steps


def test_what_has_no_micro_batches_is_silent() -> None:
    none = Made(1000, 0)
    assert (microbatch_ns(none), throughput_words(none), each_words(none)) == (None, "", "")
    assert each_difference(none, Made(1000, 4)) == ""


def test_twice_the_micro_batches_are_no_slower_step() -> None:
    a, b = seed(), seed(microbatches=32)
    assert throughput_words(a) == "16 micro-batches: mean 923.4 ms, 1.083 a second"
    assert each_difference(a, b) == "a micro-batch -228.9 ms (-24.8 %)"
    assert each_difference(a, seed(virtual_stages=1)) == ""
    page = lines(compared(a, b), None)  # type: ignore[arg-type]
    assert any("mean 923.4 ms a micro-batch" in line for line in page)
    steps = "B - A  +7.448 s (+50.4 %), a micro-batch -228.9 ms (-24.8 %)"
    assert any(line.startswith(steps) for line in page)


def test_unequal_micro_batches_and_one_alone_have_no_mean() -> None:
    unequal = Results(simulate(open_workload("fixtures/001_moe_128npu_with_mistakes.txt"), Parameters()))
    assert throughput_words(unequal) == "2 unequal micro-batches"
    assert unequal.headline(True)[1] == "1f1b, 2 micro-batches"
    assert each_words(unequal) == ""
    alike = unequal.with_parameters(Parameters(microbatches=1))
    assert throughput_words(alike) == "1 micro-batch: 171.2 ms, 5.841 a second"
    one = seed(microbatches=1)
    assert "mean" not in throughput_words(one) + "".join(one.headline(True)) + each_words(one)


@pytest.mark.parametrize("steps", [1, 3])
def test_of_several_steps_it_is_the_mean_of_all(steps: int) -> None:
    results = seed(steps=steps)
    assert microbatch_ns(results) == results.step_time_ns // (16 * steps)
