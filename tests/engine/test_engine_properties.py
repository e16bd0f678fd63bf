"""What holds for every run, whatever the workload, layout, cluster and schedule.

Planted in a copy of simcore, one at a time, to see these tests fail; NAIVE is the comparison with
the naive simulation of every rank:
  a collective starts at the first arrival          NAIVE, needs, overlap, step end, folded = unfolded
  the sender's compute waits for its transfer       NAIVE
  a channel carries several transfers at once       NAIVE
  the end of a meeting does not free the stream     NAIVE, needs, overlap, folded = unfolded
  asynchronous collectives ignore their stream      NAIVE, needs, overlap, folded = unfolded
  classes with different links share their prices   NAIVE, own duration
  the final join leaves out own transfers           step end
  scales are floored                                NAIVE, own duration
  a collective is ready when its last member comes  any order, NAIVE
  a stretch timed at once on streams in use         overlap
  a stretch timed at once beyond its run            NAIVE
  stretches alike by their first nine durations     overlap, NAIVE
"""

from collections import defaultdict
from random import Random
from typing import SupportsIndex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.diagnostics import Cancelled
from simcore.engine import Times
from simcore.engine.actor import Actor
from simcore.engine.event_queue import Engine
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, STREAMS, Receive
from simcore.simulation import simulate
from tests.engine.reference_simulator import Reference, class_of_ranks, reference_of
from tests.strategies import Case, Cell, Row, cases, make_workload
from tests.stream_spans import stream_spans


@settings(max_examples=50)
@given(cases())
def test_spans_of_one_stream_never_overlap(case: Case) -> None:
    timeline = simulate(*case).timeline
    for number in range(len(timeline.classes)):
        for stream in STREAMS:
            over = 0
            for span in stream_spans(timeline, number, stream):
                assert over <= span.start <= span.end
                over = span.end


@settings(max_examples=50)
@given(cases())
def test_every_op_has_one_span_of_its_own_duration(case: Case) -> None:
    simulation = simulate(*case)
    timeline, reference = simulation.timeline, reference_of(simulation)
    ops = 0
    for rank, number in enumerate(class_of_ranks(simulation)):
        columns, start, end = timeline.columns(number)
        assert len(start) == len(end) == len(columns)
        assert min(start, default=0) >= 0
        assert [over - begin for begin, over in zip(start, end, strict=True)] == reference.duration[rank]
        ops += len(columns)
    assert timeline.spans == ops


@settings(max_examples=70)
@given(cases())
def test_no_span_starts_before_what_it_needs_ends(case: Case) -> None:
    simulation = simulate(*case)
    reference = reference_of(simulation)
    classes = class_of_ranks(simulation)
    end = [simulation.timeline.times.end[number] for number in classes]
    for rank, number in enumerate(classes):
        start = simulation.timeline.times.start[number]
        for op, needs in enumerate(needs_of_rank(reference, rank)):
            for other, needed in needs:
                assert end[other][needed] <= start[op], f"rank {rank} op {op} before rank {other} op {needed}"


@settings(max_examples=70)
@given(cases())
def test_the_step_ends_when_the_last_rank_has_joined_all_its_work(case: Case) -> None:
    simulation = simulate(*case)
    times = simulation.timeline.times
    assert list(times.finish) == [max(end, default=0) for end in times.end]
    assert simulation.step_time_ns == max(times.finish)


@settings(max_examples=120)
@given(cases())
def test_all_times_are_those_of_a_naive_simulation_of_every_rank(case: Case) -> None:
    simulation = simulate(*case)
    reference = reference_of(simulation)
    for rank, number in enumerate(class_of_ranks(simulation)):
        naive, times = reference.times[rank], simulation.timeline.times
        assert list(times.start[number]) == naive.start
        assert list(times.end[number]) == naive.end
        assert times.finish[number] == naive.finish


@settings(max_examples=20)
@given(cases())
def test_the_same_run_twice_is_the_same_to_the_nanosecond(case: Case) -> None:
    first, second = simulate(*case), simulate(*case)
    assert first.timeline.times == second.timeline.times
    assert first.diagnostics == second.diagnostics


class _InAnyOrder(list[Actor]):
    """Actors that can go on, of which any may be the next."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random

    def pop(self, _: SupportsIndex = -1) -> Actor:
        return super().pop(self.random.randrange(len(self)))


@settings(max_examples=50)
@given(cases(), st.randoms(use_true_random=False))
def test_no_order_of_actors_gives_other_times(case: Case, random: Random) -> None:
    class AnyOrder(Engine):
        def run(self) -> Times:
            self.awake = _InAnyOrder(random)
            return super().run()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simcore.engine.Engine", AnyOrder)
        other = simulate(*case)
    assert other.timeline.times == simulate(*case).timeline.times


@pytest.mark.parametrize("network", ["analytical", "shared"])
def test_a_run_stops_when_its_caller_asks_for_it(network: str) -> None:
    workload = make_workload([Row("embedding_layer", Cell(5))], tp=1, pp=2, all_gpus=2, pp_comm=0)
    asked: list[bool] = []

    def is_asked() -> bool:
        asked.append(True)
        return len(asked) == 3

    with pytest.raises(Cancelled):
        simulate(workload, Parameters(microbatches=2000, network=network), is_asked)
    assert len(asked) == 3


def needs_of_rank(reference: Reference, rank: int) -> list[list[tuple[int, int]]]:
    """(rank, op) of all that must have ended before each op of `rank` can start.

    Compute runs in issue order and stops at blocking ops and waits; each stream is first in,
    first out; a transfer comes after what compute did before it; a collective needs what each of
    its members needs.
    """
    world = reference.layout.world
    own = [_own_needs(reference, member) for member in range(world)]
    return [
        [
            need
            for member, member_op in (
                reference.members(rank, op) if reference.is_collective(rank, op) else [(rank, op)]
            )
            for need in own[member][member_op]
        ]
        for op in range(len(reference.of(rank).ops))
    ]


def _own_needs(reference: Reference, rank: int) -> list[list[tuple[int, int]]]:
    stage = reference.of(rank)
    ops = stage.ops
    needs: list[list[tuple[int, int]]] = []
    held_back: list[tuple[int, int]] = []
    before_on_stream: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for run in stage.runs:
        held_back += [
            reference.sender(rank, wait) if isinstance(wait, Receive) else (rank, wait.op)
            for wait in run.waits
        ]
        for op in range(run.first, run.last):
            lane = ops.stream[op]
            needs.append([*held_back, *before_on_stream[lane]])
            before_on_stream[lane] = [(rank, op)]
            if lane == COMPUTE or ops.blocking[op]:
                held_back.append((rank, op))
    return needs


def test_an_asynchronous_collective_runs_beside_compute() -> None:
    """The properties above would hold for a run that does one thing at a time, too."""
    rows = [
        Row("mlp_1", ig=Cell(900)),
        Row("mlp_2", Cell(500), Cell(500), Cell(500, "ALLREDUCE", "dp", 1000)),
    ]
    workload = make_workload(rows, tp=1, pp=1, all_gpus=2)
    timeline = simulate(workload, Parameters(dim=("ring:2:1:10",))).timeline
    (collective,) = stream_spans(timeline, 0, "dp")
    *_, last_compute = stream_spans(timeline, 0, "compute")
    assert collective.start == last_compute.start == 1500
    assert (collective.end, last_compute.end) == (1500 + 1050, 1500 + 900)
