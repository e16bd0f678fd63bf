"""Uneven pipelines: which layers each virtual stage has, what that costs and holds, and what cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.model.costs import step_flops
from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.model.opening import find_model
from simcore.model.resolving import resolve_training
from simcore.model.sharding import stage_parameters
from simcore.model.sizes import Model
from simcore.model.training import Training
from simcore.records import replace
from simcore.simulation import Simulation
from simcore.workload.model import PHASES, ModelParameters, Phase
from tests.model.test_megatron import EXPERTS, SMALL, run


def training_of(model: Model, **parameters: Any) -> Training:
    return ModelMaker(model.name, model).make_rows(ModelParameters(**parameters)).training


def layers_of(model: Model = SMALL, **parameters: Any) -> list[tuple[int, ...]]:
    """The layers of each chunk of each stage."""
    parameters = {"world": parameters["pp"], "gpu": "h100"} | parameters
    return training_of(model, **parameters).layers_by_stage


def step_by_hand(simulation: Simulation, transfer_ns: int) -> int:
    """The step of two stages and one micro-batch: all compute one after the other, two transfers between,
    and each stage's optimizer when its backward is over.
    """
    workload = simulation.workload

    def compute_ns(rows: Iterable[int], phases: Sequence[Phase] = PHASES) -> int:
        return sum(workload.cells(phase).compute_ns[row] for row in rows for phase in phases)

    first, last = workload.stages
    last_is_back = compute_ns(first.chunks[0], ("fwd",)) + transfer_ns + compute_ns(last.chunks[0])
    first_is_back = last_is_back + transfer_ns + compute_ns(first.chunks[0], ("ig", "wg"))
    return max(last_is_back + compute_ns(last.prologue), first_is_back + compute_ns(first.prologue))


def test_a_step_of_uneven_stages_is_what_they_do_one_after_the_other() -> None:
    """One micro-batch, to the nanosecond: compute, and two transfers of 4 MiB."""
    common: dict[str, Any] = {
        "world": 2, "pp": 2, "microbatch_size": 1, "gpu": "h100", "global_batch": 1
    }  # fmt: skip
    small = replace(SMALL, layers=4)
    for layout in ("Ett|ttL", "Et|tttL", "Ettt|tL", "E|ttttL", "Etttt|L"):
        simulation = run(small, **common, pipeline_layout=layout)
        assert simulation.step_time_ns == step_by_hand(simulation, 25_300), layout


@pytest.mark.parametrize(
    ("layers", "pp", "virtual_stages", "expected"),
    [
        # Layouts that are published: Llama 3.1 405B on 8 x 8, Qwen 3 235B on 32 x 3.
        (126, 8, 8, [(1, *(2,) * 7), *[(2,) * 8] * 6, (*(2,) * 7, 1)]),
        (94, 32, 3, [(0, 1, 1), *[(1, 1, 1)] * 30, (1, 1, 0)]),
        (30, 4, 2, [(3, 4), (4, 4), (4, 4), (4, 3)]),
    ],
)
def test_embedding_and_loss_take_the_place_of_a_layer(
    layers: int, pp: int, virtual_stages: int, expected: list[tuple[int, ...]]
) -> None:
    model = replace(SMALL, layers=layers)
    ends = {"account_for_embedding": True, "account_for_loss": True}
    assert layers_of(model, pp=pp, virtual_stages=virtual_stages, **ends) == expected
    each = (layers + 2) // (pp * virtual_stages)
    less, middle = each - 1, pp * virtual_stages - 2
    layout = f"E{'t' * less}|({'t' * each}|)*{middle}{'t' * less}L"
    assert layers_of(model, pp=pp, pipeline_layout=layout) == expected


def test_one_end_alone_takes_a_layers_place() -> None:
    model = replace(SMALL, layers=7)
    assert layers_of(model, pp=2, account_for_embedding=True) == [(3,), (4,)]
    assert layers_of(model, pp=2, virtual_stages=2, account_for_loss=True) == [(2, 2), (2, 1)]


@pytest.mark.parametrize(
    ("text", "virtual_stages", "expected"),
    [
        ("15,16*6,15", 2, [(8, 7), *[(8, 8)] * 6, (8, 7)]),
        ("7+8,16*6,15", 2, [(7, 8), *[(8, 8)] * 6, (8, 7)]),
        ("15,16*6,15", 4, [(4, 4, 4, 3), *[(4,) * 4] * 6, (4, 4, 4, 3)]),
    ],
)
def test_layers_of_a_stage_are_cut_as_evenly_as_they_can_be(
    text: str, virtual_stages: int, expected: list[tuple[int, ...]]
) -> None:
    model = replace(SMALL, layers=126)
    parameters: dict[str, Any] = {"pp": 8, "virtual_stages": virtual_stages, "stage_layers": text}
    assert layers_of(model, **parameters) == expected
    values = ModelMaker("m", model).values(ModelParameters(world=8, gpu="h100", **parameters))
    assert values["stage_layers"] == text


def test_a_layout_is_read_as_megatron_reads_it() -> None:
    model = MODELS["deepseek-v3"]
    training = training_of(model, world=16, pp=16, gpu="h100", pipeline_layout="Et*3|(tt|)*29,m|L")
    assert training.chunks == 2
    assert training.position_layers == (3, *(2,) * 29, 0, 0)
    assert training.position_predictions == (*(0,) * 30, 1, 0)
    # Chunk i lies on stage i mod pp.
    assert training.layers_by_stage == [(3, 2), *[(2, 2)] * 13, (2, 0), (2, 0)]
    assert [training.predictions_of(stage, 1) for stage in (13, 14, 15)] == [0, 1, 0]
    blanks = training_of(model, world=16, pp=16, gpu="h100", pipeline_layout="E ttt | (t,t|)*29 m |L")
    assert blanks.position_layers == training.position_layers


@st.composite
def chunk_layouts(draw: st.DrawFn) -> tuple[int, int, list[int]]:
    """(stages, chunks of each, layers of each position), some of them empty."""
    pp, chunks = draw(st.sampled_from([(2, 1), (2, 2), (3, 2), (4, 1), (2, 3)]))
    return pp, chunks, draw(st.lists(st.integers(0, 3), min_size=pp * chunks, max_size=pp * chunks))


def layout_of(counts: list[int]) -> str:
    return f"E{'|'.join('t' * count for count in counts)}L"


@settings(max_examples=25)
@given(chunk_layouts(), st.sampled_from([{}, {"tp": 2, "sequence_parallel": "on"}, {"zero": "1", "dp": 2}]))
def test_compute_memory_and_flops_follow_the_layers(
    layout: tuple[int, int, list[int]], more: dict[str, Any]
) -> None:
    """Planted: a layer that is not moved with its stage."""
    pp, chunks, counts = layout
    if not sum(counts):
        return
    model = replace(EXPERTS, layers=sum(counts), moe=replace(EXPERTS.moe, dense_layers=1))
    more = dict(more)
    world = pp * more.get("tp", 1) * more.pop("dp", 1)
    parameters = {"world": world, "pp": pp, "gpu": "h100", **more}
    made = ModelMaker("m", model).make_rows(ModelParameters(**parameters, pipeline_layout=layout_of(counts)))
    training = made.training
    starts = [0, *accumulate(counts)]
    for stage in range(pp):
        for chunk in range(chunks):
            first = starts[chunk * pp + stage]
            assert training.layers_of(stage, chunk) == range(first, first + counts[chunk * pp + stage])
    # All layers are held and computed once, whatever stage has them.
    together = [sum(counts)] + [0] * (pp * chunks - 1)
    first = ModelMaker("m", model).make_rows(
        ModelParameters(**parameters, pipeline_layout=layout_of(together))
    )
    sums = []
    for rows in (made, first):
        stages = range(pp)
        held = sum(sum(stage_parameters(rows.training, stage)) for stage in stages)
        all_rows = [row for stage in rows.workload.stages for chunk in stage.chunks for row in chunk]
        compute = sum(rows.workload.cells(phase).compute_ns[row] for row in all_rows for phase in PHASES)
        sums.append((held, compute, step_flops(rows.training)))
    assert sums[0] == sums[1]


@settings(max_examples=10)
@given(st.sampled_from([(2, 1), (4, 1), (2, 2), (2, 4)]), st.integers(1, 2), st.integers(1, 3))
def test_an_even_layout_is_the_plain_one_to_the_nanosecond(
    degrees: tuple[int, int], each: int, batches: int
) -> None:
    pp, chunks = degrees
    model = replace(SMALL, layers=pp * chunks * each)
    common: dict[str, Any] = {"world": pp, "pp": pp, "global_batch": pp * batches, "gpu": "h100"}
    cut = {"virtual_stages": chunks} if chunks > 1 else {}
    plain = run(model, **common, **cut).step_time_ns
    assert run(model, **common, pipeline_layout=layout_of([each] * (pp * chunks))).step_time_ns == plain
    by_stage = run(model, **common, **cut, stage_layers=f"{each * chunks}*{pp}")
    assert by_stage.step_time_ns == plain
    by_chunk = run(model, **common, **cut, stage_layers=f"{'+'.join([str(each)] * chunks)}*{pp}")
    assert by_chunk.step_time_ns == plain


def test_a_layer_that_predicts_a_further_token_is_priced_and_held() -> None:
    """A block, two norms, a projection of two hidden states to one, and the head again."""
    model = replace(EXPERTS, layers=3, moe=replace(EXPERTS.moe, dense_layers=1))
    common: dict[str, Any] = {"world": 4, "pp": 4, "gpu": "h100", "global_batch": 4}
    without = run(model, **common, pipeline_layout="Et|t|t|L").workload
    found = run(model, **common, pipeline_layout="Et|t|tm|L").workload
    rows = [[found.name[row] for row in stage.chunks[0]] for stage in found.stages]
    before = [[without.name[row] for row in stage.chunks[0]] for stage in without.stages]
    assert rows[:2] == before[:2]
    assert rows[2] == [*before[2], "mtp_embedding", "mtp_projection", *before[2]]
    assert rows[3] == ["final_column", "final_column"]
    training = training_of(model, world=4, pp=4, gpu="h100", pipeline_layout="Et|t|tm|L")
    plain = training_of(model, world=4, pp=4, gpu="h100", pipeline_layout="Et|t|t|L")
    more = [
        sum(stage_parameters(training, stage)) - sum(stage_parameters(plain, stage)) for stage in range(4)
    ]
    layer = sum(stage_parameters(plain, 2))
    table = training.padded_vocab * model.hidden
    assert more == [0, 0, layer + 2 * model.hidden**2 + 3 * model.hidden + table, 0]
    flops, plain_flops = step_flops(training)[0], step_flops(plain)[0]
    head = 6 * model.vocab * model.hidden
    last_layer = (plain_flops / plain.global_batch / model.seq - head) / 3
    expected = head + 12 * model.hidden**2
    per_token = (flops - plain_flops) / plain.global_batch / model.seq
    # The last layer has experts, the first none: a layer's share is between them.
    assert expected < per_token < expected + 2 * last_layer


def test_layouts_that_cannot_be_say_what_would_fit() -> None:
    eight = replace(SMALL, layers=8)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        (
            {"pp": 2, "pipeline_layout": "Et*8|t|L"},
            "3 virtual stages on pp 2, expected a multiple of it: 2 or 4",
        ),
        ({"pp": 2, "pipeline_layout": "Et*4|t*3L"}, "7 t, expected 8, the layers of small"),
        ({"pp": 2, "pipeline_layout": "t*4|Et*4L"}, "1 E, expected one E, first of all"),
        ({"pp": 2, "pipeline_layout": "Et*4|t*4"}, "0 L, expected one L, last of all"),
        ({"pp": 2, "pipeline_layout": "Et*4m|t*4L"}, "t behind m, expected all m behind the last t"),
        ({"pp": 2, "pipeline_layout": "Et*4|t*4xL"}, "found x, expected E"),
        ({"pp": 2, "pipeline_layout": "Et*99999|t*99999L"}, "at most 65536 letters"),
        (
            {"pp": 2, "pipeline_layout": "Et*4|t*4L", "virtual_stages": 2},
            "--virtual-stages 2: --pipeline-layout has 2",
        ),
        (
            {"pp": 2, "pipeline_layout": "Et*4|t*4L", "stage_layers": "4*2"},
            "without --stage-layers it would fit",
        ),
        ({"pp": 2, "pipeline_layout": "Et*2|tt|tt|ttL", "schedule": "zb-v"}, "1f1b or interleaved would fit"),
        ({"pp": 2, "pipeline_layout": "Et*4|t*4mL", "zero": "2"}, "--zero 0 or 1 would fit"),
        ({"pp": 2, "pipeline_layout": "E|t*8L", "offload": 50.0}, "found 0 layers in a chunk"),
        ({"pp": 2, "account_for_loss": True}, "8 layers and 1 more on pp 2 x virtual stages 1 do not divide"),
        ({"pp": 2, "account_for_loss": True, "stage_layers": "4*2"}, "--stage-layers says how many layers"),
        ({"pp": 2, "virtual_stages": 2, "stage_layers": "4+0,2+2"}, "found 4+0, expected"),
        ({"pp": 2, "virtual_stages": 2, "stage_layers": "1,7"}, "1 layers are fewer than 2 virtual stages"),
        ({"pp": 2, "virtual_stages": 2, "stage_layers": "1+1+2,4"}, "are 3 chunks, expected 2"),
        ({"pp": 2, "virtual_stages": 3}, "--virtual-stages 1, 2, 4, or --stage-layers would fit"),
    )
    for parameters, words in cases:
        with pytest.raises(UsageError) as error:
            run(eight, **{"world": 2, "gpu": "h100", **parameters})
        assert words in str(error.value), parameters
    with pytest.raises(UsageError, match="--account-for-embedding --account-for-loss, or --stage-layers"):
        run(replace(SMALL, layers=10), world=2, pp=2, virtual_stages=3, gpu="h100")


def test_an_odd_number_of_layers_divides_over_no_stages_of_two_chunks() -> None:
    model, _ = find_model("deepseek-v3")
    with pytest.raises(UsageError, match="61 layers; --stage-layers would fit"):
        resolve_training(model, ModelParameters(pp=2, schedule="zb-v"))
