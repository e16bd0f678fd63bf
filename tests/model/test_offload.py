"""`--offload`: activations in the host's memory, the rules of docs/models.md by hand and as properties."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.model_figures import make_memory_lane, make_model_figures
from simcore.diagnostics import UsageError
from simcore.model.maker import ModelMaker
from simcore.model.memory import chunk_activations, layer_activations
from simcore.model.sizes import Model
from simcore.parameters import Parameters
from simcore.program.ops import OFFLOAD, PHASES
from simcore.runs.simulated import SimulatedRun
from simcore.setup import Setup
from simcore.simulation import Simulation
from simcore.sweeping.bound import Bounds
from simcore.sweeping.space import Candidate
from simcore.sweeping.step_time import StepTimes
from simcore.workload.model import ModelParameters
from tests.model.test_experts import MODEL
from tests.model.test_megatron import SMALL, run
from tests.says import said
from tui.cli import main

THREE = Model("three", 3, 1024, 8, 8, 128, 4096, True, 32000, 2048, tied_embeddings=False)
OUT, BACK = "activations_out", "activations_back"


def copies(simulation: Simulation) -> list[tuple[str, int, int]]:
    ops, start, end = simulation.timeline.columns(0)
    return [
        (simulation.workload.name[ops.row[op]], start[op], end[op])
        for op, lane in enumerate(ops.stream)
        if lane == OFFLOAD
    ]


def by_hand(simulation: Simulation, copy_ns: int) -> list[tuple[str, int, int]]:
    """The copies of three layers on one GPU, and the end of the last backward of a layer."""
    ops, start, end = simulation.timeline.columns(0)
    took: dict[tuple[str, str], list[int]] = {}
    for op, lane in enumerate(ops.stream):
        if lane == 0:
            name = simulation.workload.name[ops.row[op]]
            part = "layer" if name.startswith(("attention", "mlp")) else name
            phase = "fwd" if PHASES[ops.phase[op]] == "fwd" else "bwd"
            took.setdefault((part, phase), []).append(end[op] - start[op])
    forward, backward = (sum(took["layer", phase]) // 3 for phase in ("fwd", "bwd"))
    first = sum(took["embedding_layer", "fwd"])
    head = sum(took["final_column", "fwd"]) + sum(took["final_column", "bwd"])
    one = first + forward
    out0 = one, one + copy_ns
    two = one + forward
    out1 = max(two, out0[1]), max(two, out0[1]) + copy_ns
    three = max(max(two, out0[1]) + forward, out1[1])
    begun = three + head
    back1 = begun, begun + copy_ns
    behind = max(begun + backward, back1[1])
    back0 = behind, behind + copy_ns
    last = max(behind + backward, back0[1]) + backward
    return [(OUT, *out0), (OUT, *out1), (BACK, *back1), (BACK, *back0), ("end", last, last)]


@pytest.mark.parametrize("rate", [1000.0, 100.0, 50.0, 7.0])
def test_three_layers_by_hand(rate: float) -> None:
    found = run(THREE, gpu="h100", world=1, offload=rate)
    training = ModelMaker("three", THREE).make_rows(found.parameters.part(ModelParameters)).training
    *expected, (_, last, _) = by_hand(found, round(layer_activations(training, False) / rate))
    assert copies(found) == expected
    ops, _, end = found.timeline.columns(0)
    layers = [op for op in range(len(ops)) if found.workload.name[ops.row[op]].startswith("attention")]
    assert end[layers[-1]] == last


def test_the_last_layer_of_a_chunk_stays() -> None:
    found = run(THREE, gpu="h100", world=1, global_batch=2, offload=100.0)
    assert [name for name, _, _ in copies(found)] == [OUT, OUT, BACK, BACK] * 2
    figures, without = (
        make_model_figures(found),
        make_model_figures(run(THREE, gpu="h100", world=1, global_batch=2)),
    )
    assert figures is not None
    assert without is not None
    assert figures.memory[0].activations * 3 == without.memory[0].activations
    assert figures.memory[0].work - without.memory[0].work == 2 * figures.memory[0].activations


def test_copies_out_and_back_take_turns() -> None:
    found = run(SMALL, gpu="h100", world=2, pp=2, global_batch=8, offload=20.0)
    spans = copies(found)
    assert all(before[2] <= behind[1] for before, behind in pairwise(spans))
    assert {name for name, _, _ in spans} == {OUT, BACK}


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Model, dict[str, Any]]:
    pick = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    pp, tp, dp = pick(1, 2), pick(1, 2), pick(1, 2)
    given: dict[str, Any] = {
        "world": pp * tp * dp, "pp": pp, "tp": tp, "global_batch": dp * pick(1, 2, 4), "gpu": "h100",
        "offload": pick(5.0, 55.0, 500.0), "recompute": pick("none", "selective", "full"),
        "network": pick("analytical", "analytical", "shared"), "comm_scale": pick(1.0, 1.5),
        "recompute_rows": None,
    }  # fmt: skip
    if given["recompute"] == "none":
        given["recompute_rows"] = pick(None, "mlp_act,norm")
    if pp == 1 and dp > 1:
        given["zero"] = pick("0", "2", "3")
    elif pp == 2:
        given["schedule"] = pick("1f1b", "gpipe")
    return pick(SMALL, MODEL, THREE) if pp == 1 else SMALL, given


@given(layouts())
@settings(max_examples=50, deadline=None)
def test_two_layers_of_a_pass_are_there_at_once(case: tuple[Model, dict[str, Any]]) -> None:
    """And folding, accounts and memory hold."""
    model, given = case
    folded, every = (run(model, **given, no_fold=apart) for apart in (False, True))
    results = SimulatedRun(folded)
    figures = results.model.model_figures
    assert figures is not None
    for rank in range(folded.layout.world):
        number = folded.timeline.folding.class_of(rank)
        assert folded.timeline.columns(number)[1:] == every.timeline.columns(rank)[1:]
        assert sum(results.accounts[number].total_ns) == folded.step_time_ns
    for number, rank_class in enumerate(folded.timeline.classes):
        lane = make_memory_lane(figures, folded, number)
        assert lane is not None
        assert max(lane.resident_bytes) == figures.memory[rank_class.stage].needed
        assert _most_there(folded, number) <= 2


def _most_there(simulation: Simulation, number: int) -> int:
    """The most layers that leave, compute or come back of a rank at once, those that stay left out."""
    ops, start, end = simulation.timeline.columns(number)
    names = simulation.workload.name
    changes: list[tuple[int, int]] = []
    chunk = simulation.workload.stages[simulation.timeline.stage_of(number)].chunks[0]
    # By row of a layer that leaves: its number.
    layer_of: dict[int, int] = {}
    layer, leaving = 0, [row for row in chunk if names[row] == OUT]
    for row in chunk:
        if names[row].startswith(("attention_", "mlp_", "moe_")) and layer < len(leaving):
            layer_of[row] = layer
        elif names[row] == OUT:
            layer += 1
    backs = [row for row in chunk if names[row] == BACK]
    began: dict[tuple[int, int, bool], int] = {}
    over: dict[tuple[int, int, bool], int] = {}
    for op in range(len(ops)):
        row, microbatch, phase = ops.row[op], ops.microbatch[op], PHASES[ops.phase[op]]
        if names[row] == OUT:
            over[microbatch, leaving.index(row), False] = end[op]
        elif names[row] == BACK:
            began[microbatch, backs.index(row), True] = start[op]
        elif row in layer_of and ops.stream[op] == 0:
            if phase == "fwd":
                began.setdefault((microbatch, layer_of[row], False), start[op])
            else:
                over[microbatch, layer_of[row], True] = end[op]
    assert began.keys() == over.keys()
    for key in began:
        changes += [(began[key], 1), (over[key], -1)]
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


@given(layouts())
@settings(max_examples=20, deadline=None)
def test_a_faster_link_is_never_worse_and_a_sweep_has_the_same_steps(
    case: tuple[Model, dict[str, Any]],
) -> None:
    model, given = case
    given = {**given, "network": "analytical"}
    found = run(model, **given)
    assert run(model, **given | {"offload": 2 * given["offload"]}).step_time_ns <= found.step_time_ns
    assert run(model, **given | {"offload": None}).step_time_ns <= found.step_time_ns
    maker, parameters = ModelMaker(model.name, model), Parameters(**given)
    assert (
        StepTimes().find_step_time(Setup(maker.empty_workload(), parameters)).step_time_ns
        == found.step_time_ns
    )
    training = maker.make_rows(parameters.part(ModelParameters)).training
    bound = Bounds(maker.empty_workload()).find_bound_ns(Candidate(0, parameters), training)
    assert 0 < bound <= found.step_time_ns


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"schedule": "zb-h1", "pp": 2}, "1f1b, interleaved, gpipe, looped-bfs, breadth-first would fit"),
        ({"overlap_fwd_bwd": True, "pp": 2}, "one of the two would fit"),
        ({"pp": 8, "world": 8}, "fewer stages than 8, or fewer virtual stages, would fit"),
    ],
)
def test_what_does_not_go_together_says_what_would(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(SMALL, gpu="h100", offload=55.0, **{"world": 2, "global_batch": 8, **given})
    assert words in str(caught.value)


@pytest.mark.parametrize("given", ["0", "-1", "fast"])
def test_without_a_link_nothing_leaves(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--model", "llama-3-8b", f"--offload={given}"]) == 2
    said(capsys.readouterr().err.splitlines(), f"--offload {given}", "GB/s", "above 0")


def test_uneven_experts_stay() -> None:
    with pytest.raises(UsageError, match="one of the two would fit"):
        run(MODEL, gpu="h100", world=4, ep=4, offload=55.0, expert_imbalance="lognormal:0.5")


def test_each_rule_of_the_page_has_a_test_of_its_name() -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")
    section = page.partition("## Activations in the host's memory")[2].partition("\n## ")[0]
    here = Path(__file__).read_text("utf-8")
    rules = re.findall(r"^\* \*\*(.+?)\.?\*\*", section, re.MULTILINE)
    assert len(rules) == 3
    for rule in rules:
        assert f"def test_{re.sub(r'[^a-z]+', '_', rule.lower()).strip('_')}(" in here


def test_the_first_layers_alone_are_offloaded_and_the_others_stay() -> None:
    """Of eight layers on a GPU: so many are copied out and back, and so many fewer are held."""
    layout: dict[str, Any] = {"gpu": "h100", "global_batch": 2, "offload": 20.0}
    all_of_them = run(SMALL, **layout)
    for count in (1, 3, 7):
        simulation = run(SMALL, **layout, offload_layers=count)
        names = [name for name, _, _ in copies(simulation)]
        assert (names.count(OUT), names.count(BACK)) == (2 * count, 2 * count)
    assert run(SMALL, **layout, offload_layers=7).step_time_ns == all_of_them.step_time_ns
    each = layer_activations(ModelMaker("m", SMALL).make_rows(ModelParameters(gpu="h100")).training, False)

    def held(**parameters: Any) -> int:
        return chunk_activations(ModelMaker("m", SMALL).make_rows(ModelParameters(**parameters)).training, 0)[
            0
        ]

    assert held(gpu="h100") == 8 * each
    for count in (1, 3, 7):
        assert held(gpu="h100", offload=20.0, offload_layers=count) == (8 - count) * each
    with pytest.raises(UsageError, match="its last one stays; at most 7 would fit"):
        run(SMALL, **layout, offload_layers=8)
    with pytest.raises(UsageError, match="with --offload it would fit"):
        run(SMALL, gpu="h100", offload_layers=1)
