"""How a step is read from rows where two readings give different nanoseconds.

Each test's name is a sentence of docs/semantics.md, Readings of the rules.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.runs.simulated import SimulatedRun
from tests.analysis.booking import pair_ns, run, spans
from tests.program.expected_step import flattened
from tests.strategies import Cell, Row, layer


def order(rows: list[Row], degrees: dict[str, Any], stage: int = 0, **parameters: Any) -> list[str]:
    """What a stage does, short: `ROW.CELL` for compute, `ROW.CELL!` for a collective, `send`, `join N`."""
    simulation = run(rows, degrees, **{"schedule": "1f1b"} | parameters)
    words = []
    for action in flattened(simulation.program, stage):
        if action[0] in ("compute", "comm"):
            name = rows[action[2]].name
            words.append(f"{name}.{action[1]}{'!' if action[0] == 'comm' else ''}")
        else:
            words.append(f"join {len(action[1])}" if action[0] == "join" else action[0])
    return words


BLOCK = layer("embedding_layer", 100, 50, 25)
SHORT = Cell(1, "ALLREDUCE", "dp", 100)


def test_the_activation_leaves_when_the_last_row_of_the_block_has_ended_and_loss_rows_come_after_it() -> None:
    simulation = run([BLOCK, layer("cross_entropy1", 1000, 7, 3)], {"pp": 2})
    assert spans(simulation, 0, "pp>next") == [(100, 100)]
    assert spans(simulation, 1, "compute")[0] == (100, 200)
    assert simulation.step_time_ns == 100 + (100 + 1000 + 7 + 3 + 50 + 25) + (7 + 3 + 50 + 25)


def test_the_gradient_leaves_when_b_has_computed_and_does_not_wait_for_its_asynchronous_collectives() -> None:
    block = Row("embedding_layer", Cell(100), Cell(50), Cell(25, "ALLREDUCE", "dp", 10_000))
    simulation = run([block], {"pp": 2, "dp": 2})
    assert spans(simulation, 2, "pp>prev") == [(275, 275)]
    assert spans(simulation, 2, "dp") == [(275, 275 + pair_ns(10_000))]


def test_loss_rows_run_for_every_micro_batch_on_every_stage() -> None:
    simulation = run([BLOCK, layer("cross_entropy1", 10, 0, 0)], {"pp": 3}, microbatches=4)
    assert [found.compute_ns()["fwd"] for found in SimulatedRun(simulation).accounts] == [4 * 110] * 3


def test_prologue_rows_go_forward_once_before_the_first_micro_batch_and_their_collectives_block() -> None:
    norm = Row("grad_norm", Cell(5, "ALLGATHER", "tp", 100), Cell(1), Cell(1))
    steps = order([norm, BLOCK], {"tp": 2, "pp": 2}, microbatches=2)
    assert steps[:3] == ["grad_norm.fwd", "grad_norm.fwd!", "embedding_layer.fwd"]
    assert steps.count("grad_norm.fwd") == 1


def test_blocks_repeat_in_turn_for_more_micro_batches_and_the_first_ones_run_for_fewer() -> None:
    rows = [layer("embedding_layer", 1), layer("embedding_layer", 10)]
    times = [
        run(rows, {}, schedule="1f1b", microbatches=count).step_time_ns for count in (None, 1, 2, 3, 4, 5)
    ]
    assert times == [11, 1, 11, 12, 22, 23]


def test_a_prologue_row_runs_whole_at_the_point_of_its_weight_gradient_collective_even_of_0_bytes() -> None:
    rows = [
        Row("grad_gather", ig=Cell(1), wg=Cell(0, "ALLGATHER", "dp", 0)),
        Row("layernorm", ig=Cell(1, "ALLREDUCE", "tp", 100), wg=Cell(1, "ALLREDUCE", "dp", 0)),
        Row("other", ig=Cell(1)),
        BLOCK,
        layer("optimizer1", 1),
    ]
    steps = order(rows, {"tp": 2, "dp": 2})
    end = steps[steps.index("embedding_layer.wg") + 1 :]
    assert end == [
        "other.ig",
        "layernorm.ig",
        "layernorm.ig!",
        "layernorm.wg",
        "optimizer1.opt",
        "grad_gather.ig",
    ]


def test_a_grad_param_compute_row_runs_after_the_optimizer_rows_whatever_its_collective() -> None:
    rows = [Row("grad_param_compute", ig=Cell(9), wg=SHORT), BLOCK, layer("optimizer1", 1)]
    steps = order(rows, {"dp": 2})
    assert steps[-4:] == [
        "optimizer1.opt",
        "grad_param_compute.opt",
        "grad_param_compute.opt",
        "grad_param_compute.opt!",
    ]


def test_rows_of_points_2_and_5_compute_first_and_then_issue_their_collectives_together() -> None:
    gather = Cell(1, "ALLGATHER", "dp", 100)
    rows = [
        Row("grad_a", wg=SHORT),
        Row("gather_a", wg=gather),
        Row("grad_b", wg=SHORT),
        Row("gather_b", wg=gather),
    ]
    steps = order([*rows, BLOCK], {"dp": 2})
    end = steps[steps.index("embedding_layer.wg") + 1 :]
    assert end[:5] == ["grad_a.wg", "grad_b.wg", "grad_a.wg!", "grad_b.wg!", "join 2"]
    assert end[5:] == ["gather_a.wg", "gather_b.wg", "gather_a.wg!", "gather_b.wg!", "join 2"]


def test_point_2_joins_every_collective_still_running_those_of_backward_included() -> None:
    block = Row("embedding_layer", Cell(100), Cell(50), Cell(25, "ALLREDUCE", "dp", 10_000))
    rows = [block, layer("optimizer1", 7)]
    simulation = run(rows, {"dp": 2}, schedule="1f1b")
    assert order(rows, {"dp": 2})[-2:] == ["join 1", "optimizer1.opt"]
    assert simulation.step_time_ns == 175 + pair_ns(10_000) + 7


def test_points_1_to_4_do_not_wait_for_the_ranks_own_transfers_and_the_final_join_does() -> None:
    rows = [BLOCK, layer("optimizer1", 7)]
    simulation = run(rows, {"pp": 2, "pp_comm": 1000})
    sent = 100 + 1010 + 175
    assert spans(simulation, 1, "pp>prev") == [(sent, sent + 1010)]
    assert spans(simulation, 1, "compute")[-1] == (sent, sent + 7)
    assert simulation.timeline.times.finish[1] == sent + 1010


def test_tail_rows_run_forward_then_input_then_weight_gradient_and_their_collectives_block() -> None:
    row = Row("optimizer1", Cell(1, "ALLREDUCE", "tp", 4), Cell(1, "ALLREDUCE", "tp", 4), SHORT)
    steps = order([BLOCK, row], {"tp": 2, "dp": 2})
    assert steps[3:] == ["optimizer1.opt", "optimizer1.opt!"] * 3


def test_compute_of_tail_rows_and_of_grad_param_compute_rows_is_phase_opt_whatever_its_cell() -> None:
    rows = [layer("grad_param_compute", 1, 2, 4), BLOCK, layer("optimizer1", 8, 16, 32)]
    for schedule in ("1f1b", "layer-loop"):
        (accounts,) = SimulatedRun(run(rows, {}, schedule=schedule)).accounts
        assert accounts.compute_ns() == {"fwd": 100, "ig": 50, "wg": 25, "opt": 63, "recompute": 0}


# -- recompute -----------------------------------------------------------------------

FOUR = [layer("embedding_layer", 1), layer("a", 10, 5), layer("b", 100, 6), layer("c", 1000, 7)]


def recomputed(rows: list[Row], checkpoints: tuple[int, ...], initiates: tuple[int, ...], **more: Any) -> int:
    degrees = {"checkpoints": checkpoints, "checkpoint_initiates": initiates}
    (accounts,) = SimulatedRun(run(rows, degrees, **{"schedule": "1f1b"} | more)).accounts
    return accounts.compute_ns()["recompute"]


def test_a_recompute_stops_before_the_row_that_initiates_it() -> None:
    assert recomputed(FOUR, (1,), (3,)) == 10 + 100


def test_a_recompute_starts_at_the_nearest_checkpoint_before_the_row_and_without_one_there_is_none() -> None:
    assert recomputed(FOUR, (0, 2), (3,)) == 100
    assert recomputed(FOUR, (0, 3), (3,)) == 1 + 10 + 100
    assert recomputed(FOUR, (), (3,)) == 0
    assert recomputed(FOUR, (3,), (2,)) == 0


def test_a_recompute_stays_inside_its_block_and_under_layer_loop_inside_the_file() -> None:
    two_blocks = [
        layer("embedding_layer", 1),
        layer("a", 10),
        layer("embedding_layer", 100),
        layer("b", 1000),
    ]
    assert recomputed(two_blocks, (0,), (3,)) == 100
    assert recomputed(two_blocks, (0,), (3,), schedule="layer-loop") == 111


SIX = [layer("embedding_layer", 1, 1), *[layer(f"mlp_{number}", 10, 5) for number in range(1, 5)],
         layer("final_norm", 1, 1)]  # fmt: skip


def test_each_chunk_and_stage_recomputes_its_own_rows() -> None:
    degrees = {"checkpoints": (1,), "checkpoint_initiates": (4,), "pp": 2}
    chunked = {"schedule": "interleaved", "virtual_stages": 2, "microbatches": 2}
    last_chunk = ["final_norm.ig", "mlp_3.recompute", "mlp_4.ig", "mlp_3.ig"]
    first_chunk = ["mlp_1.recompute", "mlp_2.recompute", "mlp_2.ig", "mlp_1.ig", "embedding_layer.ig"]
    gradients = [step for step in order(SIX, degrees, **chunked) if step[-2:] == "ig" or "recompute" in step]
    assert gradients == [*last_chunk, *last_chunk, *first_chunk, *first_chunk]
    # The row that initiates is on the last stage alone.
    degrees |= {"checkpoints": (3,), "checkpoint_initiates": (5,)}
    for stage in (0, 1):
        steps = order(SIX, degrees, stage, stage_layout="megatron", microbatches=1)
        again = steps.index("mlp_3.recompute")
        assert steps[again : again + 2] == ["mlp_3.recompute", "mlp_4.recompute"]
        assert steps[again + 2] == ("mlp_4.ig" if stage == 0 else "final_norm.ig")


@settings(max_examples=100)
@given(
    st.lists(st.integers(1, 999), min_size=4, max_size=4),
    *[st.lists(st.integers(0, 5), max_size=3).map(tuple)] * 2,
    st.sampled_from([1, 2, 4]),
)
def test_the_chunks_of_a_stage_together_recompute_what_a_whole_block_does(
    times: list[int], checkpoints: tuple[int, ...], initiates: tuple[int, ...], chunks: int
) -> None:
    """Seen to fail on these bugs: a recompute that ends at its chunk; one that starts in every chunk."""
    rows = [layer("embedding_layer", 3, 1), *[layer("mlp", ns, 1) for ns in times], layer("final_norm", 7, 1)]
    once = recomputed(rows, checkpoints, initiates)
    degrees = {"checkpoints": checkpoints, "checkpoint_initiates": initiates, "pp": 2}
    chunked = {"schedule": "interleaved", "virtual_stages": chunks} if chunks > 1 else {"schedule": "zb-h1"}
    for found in SimulatedRun(run(rows, degrees, microbatches=2, **chunked)).accounts:
        assert found.compute_ns()["recompute"] == 2 * once


def test_a_recompute_comes_before_the_input_gradient_of_its_row_and_its_collectives_block() -> None:
    rows = [Row("embedding_layer", Cell(1, "ALLREDUCE", "tp", 100)), layer("a", 10, 5, 5)]
    steps = order(rows, {"tp": 2, "checkpoints": (0,), "checkpoint_initiates": (1,)})
    assert steps[3:] == ["embedding_layer.recompute", "embedding_layer.recompute!", "a.ig", "a.wg"]


# -- blocks --------------------------------------------------------------------------


def test_a_file_without_embedding_layer_is_one_block_less_the_names_that_belong_before_and_after_it() -> None:
    names = ["grad_gather", "mlp_1", "layernorm", "cross_entropy1", "mlp_2", "optimizer1", "moe_grad_norm1"]
    structure = run([layer(name, 1) for name in names], {}, schedule="1f1b").program.structure
    assert structure.blocks == ((1, 4),)
    assert (structure.prologue, structure.loss, structure.tail) == ((0, 2, 6), (3,), (5,))


def test_rows_behind_the_first_loss_or_optimizer_row_belong_to_no_block() -> None:
    names = ["embedding_layer", "mlp_1", "cross_entropy1", "final_norm", "optimizer1"]
    structure = run([layer(name, 1) for name in names], {}, schedule="1f1b").program.structure
    assert (structure.blocks, structure.loss, structure.tail) == (((0, 1),), (2,), (3, 4))


def test_without_blocks_a_step_is_its_start_and_its_end() -> None:
    rows = [layer("grad_param_compute", 3, 5), layer("cross_entropy1", 100), layer("optimizer1", 7)]
    simulation = run(rows, {"pp": 2}, microbatches=4)
    assert simulation.program.microbatches == 0
    assert simulation.step_time_ns == 3 + 5 + 7


def test_layer_loop_runs_every_row_once_on_every_rank_and_hands_nothing_to_other_stages() -> None:
    rows = [layer("grad_gather", 1, 2, 4), BLOCK, layer("optimizer1", 8)]
    simulation = run(rows, {"pp": 3, "pp_comm": 10**6}, schedule="layer-loop")
    assert simulation.step_time_ns == 1 + 2 + 4 + 175 + 8
    assert simulation.timeline.streams(0) == ["compute"]
    assert order(rows, {}, schedule="layer-loop")[:3] == [
        "grad_gather.fwd",
        "embedding_layer.fwd",
        "optimizer1.opt",
    ]


# -- schedules of chunks and pairs -----------------------------------------------------


def two_layers(*more: Row) -> list[Row]:
    return [*more[:1], layer("mlp_1", 10, 10, 10), layer("mlp_2", 10, 10, 10), *more[1:]]


def test_in_a_v_embedding_and_loss_are_on_stage_0() -> None:
    rows = two_layers(BLOCK, layer("final_norm", 1, 1, 1), layer("cross_entropy1", 7, 7, 7))
    steps = [
        order(rows, {"pp": 2}, stage, schedule="zb-v", microbatches=1, stage_layout="megatron")
        for stage in (0, 1)
    ]
    forward = ["embedding_layer.fwd", "mlp_1.fwd", "send", "receive", "mlp_2.fwd", "final_norm.fwd"]
    assert [step for step in steps[0] if not step.startswith("join")][:8] == [
        *forward, "cross_entropy1.fwd", "cross_entropy1.ig"
    ]  # fmt: skip
    # From chunk 0 to chunk 1 of the last stage nothing is sent.
    assert steps[1][:5] == ["receive", "mlp_1.fwd", "mlp_2.fwd", "send", "receive"]


def test_from_both_ends_each_stage_runs_the_start_and_the_end_of_a_step_twice() -> None:
    norm = layer("grad_norm", 5, 3, 2)
    rows = [norm, *two_layers(BLOCK), layer("optimizer1", 9, 0, 0)]
    for stage in (0, 1):
        steps = order(rows, {"pp": 2}, stage, schedule="dualpipe", microbatches=2)
        assert steps[:2] == ["grad_norm.fwd"] * 2
        counts = [sum(step.startswith(name) for step in steps) for name in ("optimizer1", "mlp_1.fwd")]
        assert counts == [2, 2]


def test_a_reduction_beside_backward_goes_with_the_micro_batch_that_a_chunk_does_last() -> None:
    reduction = Row("grad_param_comm", wg=Cell(0, "REDUCESCATTER", "dp", 1000))
    simulation = run(
        [reduction, *two_layers(BLOCK)], {"pp": 2, "dp": 2},
        schedule="looped-bfs", virtual_stages=2, microbatches=3, overlap_grad_reduce=True,
    )  # fmt: skip
    ops = simulation.program.stages[0].ops
    issued = {ops.microbatch[op] for op in range(len(ops)) if ops.row[op] == 0}
    assert issued == {0}


def test_the_next_step_of_a_rank_begins_when_its_own_step_is_over() -> None:
    """zb-h2 at equal times: a stage is done before the next one, and goes on."""
    simulation = run([layer("mlp", 10, 10, 10)], {"pp": 2}, schedule="zb-h2", microbatches=4, steps=2)
    timeline = simulation.timeline
    for number, ends in enumerate(timeline.times.pass_ends):
        first_of_second = next(one.first for one in timeline.stage_program(number).stretches if one.step == 1)
        assert ends[0] == timeline.times.start[number][first_of_second] == 10 * number + 4 * 30
    assert SimulatedRun(simulation).figures.origin.steady_step_ns == 4 * 30
    assert SimulatedRun(simulation).step_end_ns == [130, 250]


PAIRED = [Row("mlp_1", Cell(100, "ALLREDUCE", "dp", 80), Cell(100, "ALLREDUCE", "dp", 80), Cell(100))]


def pair_of(rows: list[Row], overlapped: bool) -> list[tuple[str, int, int]]:
    """(stream and phase, start, end) of the first pair of the stage in the middle, from its first op on."""
    simulation = run(
        rows, {"pp": 2, "dp": 2}, schedule="dualpipe", microbatches=4, overlap_fwd_bwd=overlapped
    )
    timeline = simulation.timeline
    stretches = [*timeline.stage_program(0).stretches]
    pair = next(place for place, one in enumerate(stretches) if one.action.paired)
    first, last = stretches[pair].first, stretches[pair + 1].last
    ops, start, end = timeline.columns(0)
    begin = min(start[op] for op in range(first, last))
    kinds = {op: "compute" if ops.stream[op] == 0 else "comm" for op in range(first, last)}
    return [
        (f"{kind} {ops.phase[op]}", start[op] - begin, end[op] - begin)
        for op, kind in kinds.items()
        if ops.stream[op] < 6
    ]


def test_in_a_pair_a_collective_of_one_runs_beside_the_compute_of_the_other() -> None:
    comm = pair_ns(80)
    assert pair_of(PAIRED, overlapped=False) == [
        ("compute 0", 0, 100), ("comm 0", 100, 100 + comm),
        ("compute 1", 100 + comm, 200 + comm), ("comm 1", 200 + comm, 200 + 2 * comm),
        ("compute 2", 200 + 2 * comm, 300 + 2 * comm),
    ]  # fmt: skip
    # One row each: forward's collective beside the input gradient; on its stream the other comes behind it.
    behind = max(200, 100 + comm)
    assert pair_of(PAIRED, overlapped=True) == [
        ("compute 0", 0, 100), ("comm 0", 100, 100 + comm),
        ("compute 1", 100, 200), ("comm 1", behind, behind + comm),
        ("compute 2", behind + comm, behind + comm + 100),
    ]  # fmt: skip


def test_a_pair_begins_when_both_have_what_they_need_and_sends_when_both_are_done() -> None:
    simulation = run(PAIRED, {"pp": 2, "dp": 2}, schedule="dualpipe", microbatches=4, overlap_fwd_bwd=True)
    program = simulation.timeline.stage_program(0)
    stretches = [*program.stretches]
    pair = next(place for place, one in enumerate(stretches) if one.action.paired)
    first, last = stretches[pair].first, stretches[pair].last
    assert stretches[pair][:2] == stretches[pair + 1][:2]
    runs = [one for one in program.runs if first <= one.first < last]
    # The turns of a pair wait for nothing of other stages but at its beginning.
    assert all(hasattr(wait, "op") for one in runs[1:] for wait in one.waits)
    streams = [program.ops.stream[op] >= 6 for op in range(first, last)]
    assert streams == sorted(streams)
