"""How a step is read from rows where two readings give different nanoseconds.

Each test's name is a sentence of docs/semantics.md, Readings of the rules.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis import Results
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
    assert [found.compute_ns()["fwd"] for found in Results(simulation).accounts] == [4 * 110] * 3


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
        (accounts,) = Results(run(rows, {}, schedule=schedule)).accounts
        assert accounts.compute_ns() == {"fwd": 100, "ig": 50, "wg": 25, "opt": 63, "recompute": 0}


# -- recompute -----------------------------------------------------------------------

FOUR = [layer("embedding_layer", 1), layer("a", 10, 5), layer("b", 100, 6), layer("c", 1000, 7)]


def recomputed(rows: list[Row], checkpoints: tuple[int, ...], initiates: tuple[int, ...], **more: Any) -> int:
    degrees = {"checkpoints": checkpoints, "checkpoint_initiates": initiates}
    (accounts,) = Results(run(rows, degrees, **{"schedule": "1f1b"} | more)).accounts
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
    for found in Results(run(rows, degrees, microbatches=2, **chunked)).accounts:
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
