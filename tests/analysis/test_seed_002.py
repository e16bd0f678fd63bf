"""Seed 002, a GPT on 1024 NPUs: the figures it is known to have."""

from functools import cache

import pytest

from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.workload import open_workload
from tests.stream_spans import stream_spans

SEED = "fixtures/002_gpt_1024npu.txt"
FWD, IG, WG = 181_459_408, 133_164_829, 136_029_688
FIRST_W_LESS = 985_820


@cache
def seed_002(**parameters: object) -> Simulation:
    return simulate(open_workload(SEED), Parameters(**parameters))  # type: ignore[arg-type]


def test_seed_002_takes_13_973_040_880_ns_under_1f1b_with_free_communication() -> None:
    simulation = seed_002(comm_scale=0.0)
    assert simulation.program.schedule == "1f1b"
    assert simulation.step_time_ns == 13_973_040_880


def test_that_is_its_closed_form_with_start_end_and_a_shorter_first_block() -> None:
    """16 micro-batches and a bubble of 15; the first block's W is the one that no bubble hides."""
    micro_batches = (16 + 15) * (FWD + IG + WG) - FIRST_W_LESS
    assert seed_002(comm_scale=0.0).step_time_ns == 6 + micro_batches + 3_755_019


def test_seed_002_takes_7_213_232_005_ns_under_layer_loop_with_free_communication() -> None:
    simulation = seed_002(comm_scale=0.0, schedule="layer-loop")
    assert simulation.step_time_ns == 7_213_232_005
    assert all(accounts.bubble_ns == accounts.idle_ns == 0 for accounts in SimulatedRun(simulation).accounts)


def test_compute_of_a_rank_is_the_same_under_both_schedules() -> None:
    one, other = SimulatedRun(seed_002()), SimulatedRun(seed_002(schedule="layer-loop"))
    assert {accounts.busy_ns for accounts in (*one.accounts, *other.accounts)} == {7_213_232_005}


def test_micro_batches_of_seed_002_take_f_i_and_w_and_the_first_block_less() -> None:
    timeline = seed_002(comm_scale=0.0).timeline
    by_batch = [dict.fromkeys(("fwd", "ig", "wg"), 0) for _ in range(16)]
    for span in stream_spans(timeline, 0, "compute"):
        if span.microbatch >= 0:
            by_batch[span.microbatch][span.phase] += span.end - span.start
    assert by_batch[0] == {"fwd": FWD, "ig": IG, "wg": WG - FIRST_W_LESS}
    assert by_batch[1:] == [{"fwd": FWD, "ig": IG, "wg": WG}] * 15


def test_bubble_and_idle_are_the_same_on_every_rank_when_communication_is_free() -> None:
    lost = {found.bubble_ns + found.idle_ns for found in SimulatedRun(seed_002(comm_scale=0.0)).accounts}
    assert lost == {13_973_040_880 - 7_213_232_005}


@pytest.mark.parametrize("schedule", [None, "layer-loop"])
def test_seed_002_has_557_rows_16_micro_batches_and_16_classes_of_64_ranks(schedule: str | None) -> None:
    simulation = seed_002(schedule=schedule)
    timeline = simulation.timeline
    assert len(simulation.workload) == 557
    assert simulation.program.microbatches == 16
    assert [len(found.ranks) for found in timeline.classes] == [64] * 16
    assert timeline.spans == 64 * timeline.ops_simulated


def test_seed_002_needs_between_35_000_and_60_000_ops() -> None:
    assert 35_000 < seed_002().timeline.ops_simulated < 60_000


def test_seed_002_has_8_layers_in_each_of_16_blocks() -> None:
    structure = seed_002().program.structure
    assert structure.layers_per_block == (8,) * 16
    assert {len(block) for block in structure.blocks} == {1 + 8 * 4 + 1}
    assert (len(structure.prologue), len(structure.loss), len(structure.tail)) == (6, 3, 4)


def test_unfolded_seed_002_on_128_ranks_is_the_same_to_the_nanosecond() -> None:
    folded, every_rank = seed_002(world=128), seed_002(world=128, no_fold=True)
    assert (len(folded.timeline.classes), len(every_rank.timeline.classes)) == (16, 128)
    assert folded.step_time_ns == every_rank.step_time_ns
    pairs = zip(SimulatedRun(folded).accounts, SimulatedRun(every_rank).accounts[::8], strict=True)
    assert all(one == other for one, other in pairs)
