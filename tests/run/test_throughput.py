"""What a micro-batch takes stands beside the step time, and decides where two steps have not as many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.comparison import Comparison
from simcore.parameters import Parameters
from simcore.records import Struct
from simcore.render.report.comparison import SIDES
from simcore.render.report.pages import run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.contexts import StepWork
from simcore.trace.figures import (
    compare_by_work,
    each_words,
    find_same_work_ns,
    is_other_work,
    microbatch_ns,
    throughput_words,
)
from simcore.units import change_percent, duration, signed_duration
from simcore.workload import open_workload
from tests.findings import named
from tests.says import said
from tui.change_words import change_name, name_and_share
from tui.chrome import run_difference
from tui.frame import text_of
from tui.panels import with_most_a_microbatch

SEED = "fixtures/002_gpt_1024npu.txt"
# Two micro-batches, of 8 layers and of 1.
UNEQUAL = "fixtures/001_moe_128npu_with_mistakes.txt"


class Made(Struct, frozen=True):
    step_time_ns: int
    microbatches: int
    steps: int = 1
    measured: bool = False
    has_equal_microbatches: bool = True
    left_out: str = ""

    @property
    def work(self) -> StepWork | None:
        return StepWork((self.microbatches * self.steps,)) if self.microbatches else None


def seed(**changes: int) -> SimulatedRun:
    return SimulatedRun(simulate(open_workload(SEED), Parameters(**changes)))


@given(st.integers(1, 10**12), st.integers(1, 10**4), st.integers(1, 5))
def test_a_micro_batch_takes_its_share_of_all_steps(step: int, count: int, steps: int) -> None:
    each = microbatch_ns(Made(step, count, steps))
    assert each is not None
    assert each * count * steps <= step < (each + 1) * count * steps


def test_what_has_no_micro_batches_is_silent() -> None:
    none = Made(1000, 0)
    assert (microbatch_ns(none), throughput_words(none), each_words(none)) == (None, "", "")
    assert compare_by_work(none, Made(1000, 4)) is None
    assert not is_other_work(none, Made(1000, 4))


@pytest.mark.slow
def test_twice_the_micro_batches_are_no_slower_step() -> None:
    a, b = seed(), seed(microbatches=32)
    assert throughput_words(a.shape) == "step / 16 micro-batches = 923.4 ms, 1.083 a second"
    by_work = compare_by_work(a.shape, b.shape)
    assert by_work is not None
    assert by_work.words == "a micro-batch -228.9 ms (-24.8 %)"
    said([text_of([run_difference(a.shape, b.shape)])], "-24.8 %", "same work")
    assert run_difference(a.shape, b.shape, True) == [("-24.8 % same work", "better")]
    assert compare_by_work(a.shape, seed(virtual_stages=1).shape) is None
    page = SIDES.lines(Comparison(a, b), None)  # type: ignore[arg-type]
    assert any("step / 16 = 923.4 ms" in line for line in page)
    steps = "B - A  a micro-batch -228.9 ms (-24.8 %); step +7.448 s (+50.4 %)"
    assert any(line.startswith(steps) for line in page)


def test_unequal_micro_batches_and_one_alone_have_no_mean() -> None:
    unequal = SimulatedRun(simulate(open_workload(UNEQUAL), Parameters()))
    assert throughput_words(unequal.shape) == "2 unequal micro-batches"
    assert unequal.figures.headline(True)[1] == "1f1b, 2 micro-batches"
    assert each_words(unequal.shape) == ""
    alike = unequal.with_parameters(Parameters(microbatches=1))
    assert throughput_words(alike.shape) == "1 micro-batch: 171.2 ms, 5.841 a second"
    one = seed(microbatches=1)
    assert "mean" not in throughput_words(one.shape) + "".join(one.figures.headline(True)) + each_words(
        one.shape
    )


@pytest.mark.parametrize("steps", [1, 3])
def test_of_several_steps_it_is_the_mean_of_all(steps: int) -> None:
    results = seed(steps=steps)
    assert microbatch_ns(results.shape) == results.step_time_ns // (16 * steps)


# -- unequal micro-batches ---------------------------------------------------------------


@pytest.mark.parametrize("times", [2, 3])
def test_the_same_unequal_micro_batches_more_often_are_compared_by_work(times: int) -> None:
    a = SimulatedRun(simulate(open_workload(UNEQUAL), Parameters()))
    b = a.with_parameters(Parameters(microbatches=2 * times))
    assert (a.shape.work, b.shape.work) == (StepWork((1, 1), 4), StepWork((times, times), 4))
    by_work = compare_by_work(a.shape, b.shape)
    assert by_work is not None
    assert (by_work.same_work_ns, by_work.each_ns) == (b.step_time_ns // times, None)
    assert not is_other_work(a.shape, b.shape)
    share = change_percent(a.step_time_ns, b.step_time_ns // times)
    ((words, role),) = run_difference(a.shape, b.shape)
    assert said([words], share, "same work") == words
    assert role == "better"
    assert run_difference(a.shape, b.shape, True) == [(f"{share} same work", "better")]
    less = by_work.same_work_ns - a.step_time_ns
    said([by_work.words], "same work", signed_duration(less), share)
    page = SIDES.lines(Comparison(a, b), None)  # type: ignore[arg-type]
    assert any(line.startswith(f"B - A  {by_work.words}; step +") for line in page)


def test_the_header_keeps_what_the_row_of_the_advice_promises() -> None:
    a = SimulatedRun(simulate(open_workload(UNEQUAL), Parameters()))
    (row,) = [knob for knob in a.what_if() if knob.same_work_ns]
    assert row.parameters is not None
    b = a.with_parameters(row.parameters)
    assert b.step_time_ns == row.better10_ns
    name, promised, role = name_and_share(a.step_time_ns, row, (), 60)
    assert promised.strip() == "-27.1%"
    assert name.rstrip().endswith(f", {duration(b.step_time_ns)}): same work in")
    assert row.gain_ns == b.step_time_ns // 2
    assert run_difference(a.shape, b.shape, True) == [("-27.1 % same work", role)]


@pytest.mark.slow
def test_what_the_header_of_a_file_asks_for_is_the_first_change_and_no_gain() -> None:
    """Two newcomers looked for a key that does what the first sentence tells. Planted: by what it gains."""
    a = SimulatedRun(simulate(open_workload(UNEQUAL), Parameters()))
    first, *others = a.what_if()
    assert named(first.name) == ["--without-lines", "83-93"]
    assert (first.fixes, first.microbatches, first.same_work_ns) == (True, None, None)
    assert first.parameters is not None
    assert a.with_parameters(Parameters(microbatches=1)).step_time_ns == first.better10_ns
    b = a.with_parameters(first.parameters)
    assert b.step_time_ns == first.better10_ns
    assert first.better10_ns > others[0].better10_ns
    name, *share = name_and_share(a.step_time_ns, first, (), 51)
    assert (name.rstrip(), share) == (change_name(first, (), 50), ["not a gain", "warn"])
    # What tells it from the other fix stays, and a word of its flag goes.
    for room, flag in ((46, "without-lines"), (42, "without")):
        narrow = name_and_share(a.step_time_ns, first, (), room)
        assert narrow[0].startswith(f"fix: {flag} 83-93")
    # What its count of rows asks for is the last of the changes, no gain either: beside each other it was
    # asked which of them to take, and that only its author knows.
    other = [knob for knob in others if knob.list == "change"][-1]
    assert named(other.name) == ["--without-lines", "82-83", "9"]
    assert (other.fixes, other.parameters) == (True, Parameters(without_lines=("82-83",)))
    assert a.with_parameters(Parameters(without_lines=("82-83",))).step_time_ns == other.better10_ns
    ((words, role),) = run_difference(a.shape, b.shape)
    said([words], "not", "same work")
    assert role == "warn"
    page = run_page(a, with_what_if=True)
    said(page.splitlines(), first.name, duration(b.step_time_ns), "not", "same work", "11.7")
    # Before what gains. Twice the batch waits for the fix: how many there are is what the file does not tell.
    assert with_most_a_microbatch(a.what_if()) == a.what_if()
    assert any(knob.same_work_ns for knob in others)
    # A newcomer asked whether what gains still holds once the file is fixed.
    assert first.meaning
    assert not any(first.meaning in knob.meaning for knob in (*others, *b.what_if()))
    # With one micro-batch twice the batch is twice the same: a newcomer missed that row after the fix.
    (more,) = [knob for knob in b.what_if() if knob.microbatches]
    assert with_most_a_microbatch(b.what_if())[1] is more
    c = b.with_parameters(Parameters(without_lines=("83-93",), microbatches=2))
    assert (more.better10_ns, more.same_work_ns) == (c.step_time_ns, c.step_time_ns // 2)
    # Who asked for a number, and a file whose header asks for what it has, have nothing to fix.
    for run in (b, seed(pp=4, microbatches=4)):
        assert not any(knob.fixes for knob in run.what_if())


@pytest.mark.parametrize("count", [1, 3, 5])
def test_other_unequal_micro_batches_are_other_work(count: int) -> None:
    """One of them alone is the large one: neither half the work nor a faster step."""
    a = SimulatedRun(simulate(open_workload(UNEQUAL), Parameters()))
    b = a.with_parameters(Parameters(microbatches=count))
    assert compare_by_work(a.shape, b.shape) is None
    assert is_other_work(a.shape, b.shape)
    ((words, role),) = run_difference(a.shape, b.shape)
    said([words], "not", "same work")
    assert role == "warn"
    # And twice as many of an odd number are other ones than these twice.
    assert not any(knob.microbatches for knob in b.what_if())
    page = SIDES.lines(Comparison(a, b), None)  # type: ignore[arg-type]
    assert any(line.startswith(f"B - A  {words};") for line in page)
    assert find_same_work_ns(100, StepWork((2, 1)), StepWork((3, 3))) is None


def test_as_many_micro_batches_of_all_replicas_are_the_same_batch() -> None:
    """Made anew for half the tensor parallelism a replica has half of them: the step decides."""
    a = seed()
    b = a.with_parameters(Parameters(tp=4, rescale="on"))
    assert (a.shape.microbatches, b.shape.microbatches) == (16, 8)
    assert compare_by_work(a.shape, b.shape) is None
    assert not is_other_work(a.shape, b.shape)


def test_what_was_measured_is_not_held_against_what_was_simulated_by_work() -> None:
    assert compare_by_work(Made(1000, 4), Made(1000, 8, measured=True)) is None
    assert compare_by_work(Made(1000, 4), Made(1000, 8)) is not None
