"""Uneven loads of experts: the rules of docs/experts.md, by hand and as properties."""

import json
import re
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.analysis.model_figures import find_model_rows, make_memory_lane, make_model_figures
from simcore.diagnostics import InputError, UsageError
from simcore.model.costs import step_flops
from simcore.model.imbalance import ExpertLoads, expert_loads
from simcore.model.known_models import MODELS
from simcore.model.launch import read_launch_file, write_launch
from simcore.model.launch.fields import LaunchParameters
from simcore.model.maker import ModelMaker
from simcore.model.memory import layer_activations
from simcore.model.opening import find_model
from simcore.model.resolving import resolve_training
from simcore.model.sharding import stage_parameters
from simcore.model.sizes import Model, Moe
from simcore.parameters import Parameters
from simcore.program.ops import CollectiveCost, ComputeCost
from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.run import mean_ns
from simcore.words.simulated_sentences import find_sentences
from simcore.workload.model import ModelParameters
from tests.findings import finding
from tests.model.test_megatron import SMALL, report, run
from tests.says import figures, said
from tui.cli import main

MODEL = Model(
    "uneven", 3, 1024, 8, 8, 128, 4096, True, 32000, 1024, tied_embeddings=False, moe=Moe(8, 2, 512, 1, 1)
)


def loads_of(
    text: str, experts: int = 8, ranks: int = 4, routed: int = 1000, **given: Any
) -> ExpertLoads | None:
    return expert_loads(ModelParameters(expert_imbalance=text, **given), experts, ranks, routed)


def written(folder: Path, text: str) -> str:
    path = folder / "loads.txt"
    path.write_text(text, "utf-8")
    return str(path)


# -- loads -----------------------------------------------------------------------------------


def test_tokens_of_a_file_by_hand(tmp_path: Path) -> None:
    found = loads_of(written(tmp_path, "# of layer 3\n1 3, 2 2\n0 0\n4 4\n"))
    assert found is not None
    # 4,000 tokens by 16 parts.
    assert found.tokens == ((250, 750), (500, 500), (0, 0), (1000, 1000))
    assert (found.hot, found.max_over_mean, found.dropped) == (3, 2.0, 0)
    assert found.port_tokens == (1000, 1000, 1000, 2000)


def test_a_file_may_have_a_number_for_each_rank(tmp_path: Path) -> None:
    found = loads_of(written(tmp_path, "1 2 3 2"))
    assert found is not None
    assert found.tokens == ((250, 250), (500, 500), (750, 750), (500, 500))


def test_tokens_above_the_capacity_are_dropped(tmp_path: Path) -> None:
    found = loads_of(written(tmp_path, "1 3 2 2 0 0 4 4"), expert_capacity=1.5)
    assert found is not None
    # 1.5 times 500 is the most of an expert.
    assert found.tokens == ((250, 750), (500, 500), (0, 0), (750, 750))
    assert found.dropped == 500
    assert found.sent_tokens == 875


def test_a_balanced_placement_puts_the_fullest_expert_on_the_emptiest_rank(tmp_path: Path) -> None:
    found = loads_of(written(tmp_path, "1 3 2 2 0 0 4 4"), expert_placement="balanced")
    assert found is not None
    assert sorted(map(sorted, found.tokens)) == [[0, 1000], [0, 1000], [250, 750], [500, 500]]
    assert all(len(one) == 2 for one in found.tokens)


@given(
    st.integers(0, 2**40),
    st.sampled_from((0.1, 0.5, 1.5)),
    st.sampled_from((1, 2, 4, 8)),
    st.integers(1, 10**6),
)
def test_drawn_loads_are_all_tokens_and_the_same_for_a_seed(
    seed: int, sigma: float, ranks: int, routed: int
) -> None:
    one, other = (loads_of(f"lognormal:{sigma}", 8, ranks, routed, seed=seed) for _ in range(2))
    assert one == other
    assert one is not None
    assert sum(one.of_rank) == routed * ranks
    placed = loads_of(f"lognormal:{sigma}", 8, ranks, routed, seed=seed, expert_placement="balanced")
    assert placed is not None
    assert sorted(sum(placed.tokens, ())) == sorted(sum(one.tokens, ()))


def test_the_deviation_of_many_drawn_loads_is_sigma() -> None:
    found = loads_of("lognormal:0.5", 4096, 1, 10**9)
    assert found is not None
    import math

    logs = [math.log(tokens) for tokens in found.tokens[0]]
    mean = sum(logs) / len(logs)
    assert math.sqrt(sum((one - mean) ** 2 for one in logs) / len(logs)) == pytest.approx(0.5, rel=0.03)


# -- runs ------------------------------------------------------------------------------------


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    pick = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    tp, cp, dp, pp = pick(1, 2), pick(1, 2), pick(1, 2, 4), pick(1, 2)
    ep = pick(1, 2, 4, 8)
    assume(cp * dp % ep == 0 or tp * cp * dp % ep == 0)
    return {
        "world": tp * cp * dp * pp, "tp": tp, "cp": cp, "pp": pp, "ep": ep, "global_batch": dp * pick(1, 2),
        "gpu": "h100", "dim": (f"switch:{pick(2, 4)}:300:500", "switch:64:20:5000"),
        "zero": pick("0", "1"), "recompute": pick("none", "full"),
        "rank_order": pick("tp-ep-dp-pp", "tp-pp-dp"),
        "network": pick("analytical", "analytical", "shared"),
    }  # fmt: skip


@given(layouts())
@settings(max_examples=25, deadline=None)
def test_imbalance_0_is_the_balanced_run(given: dict[str, Any]) -> None:
    balanced, found = run(MODEL, **given), run(MODEL, **given, expert_imbalance="lognormal:0")
    assert found.step_time_ns == balanced.step_time_ns
    assert found.timeline.times == balanced.timeline.times
    assert make_model_figures(found).memory == make_model_figures(balanced).memory  # type: ignore[union-attr]
    assert SimulatedRun(found).model.imbalance is None


@given(layouts(), st.integers(0, 99), st.integers(0, 63))
@settings(max_examples=50, deadline=None)
def test_accounts_folding_and_memory_hold(given: dict[str, Any], seed: int, slow: int) -> None:
    given = {**given, "seed": seed, "expert_imbalance": "lognormal:0.8"}
    if seed % 3 == 0:
        given["slow_rank"] = (f"{slow % given['world']}=1.5",)
    folded, whole = (run(MODEL, no_fold=no_fold, **given) for no_fold in (False, True))
    ours, every = SimulatedRun(folded), SimulatedRun(whole)
    assert folded.step_time_ns == whole.step_time_ns
    training = find_model_rows(folded).training  # type: ignore[union-attr]
    loads = training.loads
    assert loads is not None
    for rank in range(folded.layout.world):
        number = folded.timeline.folding.class_of(rank)
        assert folded.timeline.columns(number)[1:] == whole.timeline.columns(rank)[1:]
        assert sum(ours.accounts[number].total_ns) == folded.step_time_ns
        assert ours.accounts[number].total_ns == every.accounts[rank].total_ns
        # What it computes is what its own experts get, on every rank of the class.
        place = folded.layout.expert_group_index(rank)
        assert loads.tokens[folded.timeline.classes[number].expert] == loads.tokens[place]
        lanes = [
            make_memory_lane(one.model.model_figures, one.simulation, index)
            for one, index in ((ours, number), (every, rank))
        ]
        assert lanes[0].resident_bytes == lanes[1].resident_bytes  # type: ignore[union-attr]
    # The fullest rank of a stage has what the figures say.
    figures = ours.model.model_figures
    assert figures is not None
    for stage in figures.memory:
        lanes = [
            make_memory_lane(figures, folded, number)
            for number, one in enumerate(folded.timeline.classes)
            if one.stage == stage.stage
        ]
        assert max(max(one.resident_bytes) for one in lanes if one is not None) == stage.needed


def test_ranks_differ_in_compute_and_in_bytes(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1 1 1 1 1 4 6")
    found = run(MODEL, gpu="h100", world=4, ep=4, global_batch=4, expert_imbalance=path)
    assert len(found.timeline.classes) == 2  # three ranks have equal loads
    computed = [sum(one.compute_ns().values()) for one in SimulatedRun(found).accounts]
    assert computed[1] > computed[0]
    sent = {
        cost.ports for cost in found.program.costs if isinstance(cost, CollectiveCost) and cost.group == "ep"
    }
    even = 2 * 1024 * 1024 * 2  # hidden x tokens x top-2 x 2 B
    assert sent == {(even, even, even, even * 10 * 4 // 16)}
    uneven = [cost for cost in found.program.costs if isinstance(cost, ComputeCost) and cost.by_rank]
    assert uneven
    assert all(one.by_rank[3] > one.by_rank[0] == one.by_rank[1] for one in uneven)


def test_an_uneven_all_to_all_has_the_price_of_the_slowest_port(tmp_path: Path) -> None:
    def all_to_all_ns(**given: Any) -> int:
        found = run(MODEL, gpu="h100", world=4, ep=4, **given)
        ops, start, end = found.timeline.columns(0)
        lane = next(
            op for op in range(len(ops)) if found.program.costs[ops.cost[op]][:2] == ("ALLTOALL", "ep")
        )
        return end[lane] - start[lane]

    # The hot rank gets twice what each sends: as an even all-to-all of twice the tokens.
    path = written(tmp_path, "2 2 2 2 2 2 6 6")
    uneven = all_to_all_ns(global_batch=4, expert_imbalance=path, dim=("switch:4:100:0",), endpoint_delay=0)
    twice = all_to_all_ns(global_batch=8, microbatch_size=2, dim=("switch:4:100:0",), endpoint_delay=0)
    assert uneven == twice


def test_all_layers_have_the_same_loads() -> None:
    found = run(MODEL, gpu="h100", world=8, ep=8, global_batch=16, expert_imbalance="lognormal:0.5")
    ops, _, _ = found.timeline.columns(0)
    cells = {
        (ops.phase[op], found.program.costs[ops.cost[op]])
        for op in range(len(ops))
        if isinstance(found.program.costs[ops.cost[op]], ComputeCost)
        and found.program.costs[ops.cost[op]].by_rank  # type: ignore[union-attr]
    }
    assert len(cells) == 3  # forward, input gradient, weight gradient, of two layers and two micro-batches


# Layer 0 of `MODEL` is dense.
BY_LAYER = {
    "lines of layers with experts": "9 1 1 1 1 1 1 1\n1 1 1 1 1 1 1 9\n",
    "lines of all layers": "0 0 0 0 0 0 0 0\n9,1,1,1,1,1,1,1\n1,1,1,1,1,1,1,9\n",
    "numbered": "layer,e0,e1,e2,e3,e4,e5,e6,e7\n2,1,1,1,1,1,1,1,9\n1,9,1,1,1,1,1,1,1\n",
    "numbered from 1": 'layer;"0";"1";"2";"3";"4";"5";"6";"7"\n2;9;1;1;1;1;1;1;1\n3;1;1;1;1;1;1;1;9\n',
    "numbered without a heading": "1 9 1 1 1 1 1 1 1\n2 1 1 1 1 1 1 1 9\n",
    "an expert a line, from 1": "layer,expert,tokens\n"
    + "".join(
        f"{layer},{expert},{9 if expert == hot else 1}\n"
        for layer, hot in ((2, 1), (3, 8))
        for expert in range(1, 9)
    ),
    "an expert a line": "layer,expert,tokens\n"
    + "".join(
        f"{layer},{expert},{9 if expert == hot else 1}\n"
        for layer, hot in ((1, 0), (2, 7))
        for expert in range(8)
    ),
}


@pytest.mark.parametrize("text", BY_LAYER.values(), ids=BY_LAYER)
def test_a_file_may_have_the_loads_of_each_layer(text: str, tmp_path: Path) -> None:
    """By hand: of 16 shares the hot expert has 9; its rank of four, with two experts, has 10 times 1/16."""
    path = written(tmp_path, text)
    found = run(MODEL, gpu="h100", world=4, ep=4, global_batch=4, expert_imbalance=path)
    model_rows = find_model_rows(found)
    assert model_rows is not None
    routed = model_rows.training.routed_tokens
    first, last = model_rows.training.layer_loads[1:]
    assert model_rows.training.layer_loads[0] is None
    assert first is not None
    assert last is not None
    assert first.tokens[0] == (routed * 4 * 9 // 16, routed * 4 // 16)
    assert last.tokens[3] == (routed * 4 // 16, routed * 4 * 9 // 16)
    # Each layer has the rows that it would have if all layers were like it.
    names = found.workload.name
    rows = [row for row, name in enumerate(names) if name == "moe_experts"]
    alike = []
    for line in ("9 1 1 1 1 1 1 1", "1 1 1 1 1 1 1 9"):
        same = run(MODEL, gpu="h100", world=4, ep=4, global_batch=4, expert_imbalance=written(tmp_path, line))
        at = same.workload.name.index("moe_experts")
        alike.append([same.workload.uneven[phase, at] for phase in ("fwd", "ig", "wg")])
    assert [[found.workload.uneven[phase, row] for phase in ("fwd", "ig", "wg")] for row in rows] == alike


def test_equal_lines_are_the_file_of_one_line(tmp_path: Path) -> None:
    given: dict[str, Any] = {"gpu": "h100", "world": 4, "ep": 4, "pp": 1, "global_batch": 8}
    one = run(MODEL, **given, expert_imbalance=written(tmp_path, "3 1 1 1 1 1 2 1"))
    both = run(MODEL, **given, expert_imbalance=written(tmp_path, "3 1 1 1 1 1 2 1\n3 1 1 1 1 1 2 1"))
    assert both.step_time_ns == one.step_time_ns
    figures = [make_model_figures(found) for found in (one, both)]
    assert figures[0].memory == figures[1].memory  # type: ignore[union-attr]
    assert both.workload.stages == one.workload.stages


def test_layers_whose_hot_ranks_differ_wait_less_than_those_of_one(tmp_path: Path) -> None:
    """The mean loads are more even; each layer waits for its own hot rank, so that the step hardly is
    shorter.
    """
    given: dict[str, Any] = {"gpu": "h100", "world": 4, "ep": 4, "global_batch": 4}
    one = SimulatedRun(run(MODEL, **given, expert_imbalance=written(tmp_path, "9 1 1 1 1 1 1 1")))
    path = written(tmp_path, BY_LAYER["numbered"])
    each = SimulatedRun(run(MODEL, **given, expert_imbalance=path))
    imbalances = [found.model.imbalance for found in (one, each)]
    assert imbalances[0] is not None
    assert imbalances[1] is not None
    assert imbalances[1].max_over_mean < imbalances[0].max_over_mean
    assert [(line.layer, line.hot_position) for line in imbalances[1].by_layer] == [(1, 0), (2, 3)]
    assert {line.max_over_mean for line in imbalances[1].by_layer} == {imbalances[0].max_over_mean}
    assert each.step_time_ns == pytest.approx(one.step_time_ns, rel=0.01)
    assert each.model.model_figures is not None
    assert one.model.model_figures is not None
    assert each.model.model_figures.memory[0].needed < one.model.model_figures.memory[0].needed


@pytest.mark.slow
def test_the_report_names_the_hot_rank_and_what_would_help(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "--model mixtral-8x7b --gpu h100 --world 8 --ep 4 --global-batch 16 --expert-imbalance lognormal:0.5"
    )
    found = report(capsys, *words.split())
    imbalance = found["imbalance"]
    assert set(imbalance) == {
        "hot_rank", "max_over_mean", "lost_ns", "dropped", "balanced_placement_ns", "capacity",
        "tokens",
    }  # fmt: skip
    step = {
        name: report(capsys, *words.split()[: -2 if name == "even" else None], *more)["step_time_ns"]
        for name, more in (
            ("even", ()), ("placed", ("--expert-placement", "balanced")),
            ("cut", ("--expert-capacity", "1.25")),
        )
    }  # fmt: skip
    assert imbalance["lost_ns"] == found["step_time_ns"] - step["even"]
    assert imbalance["balanced_placement_ns"] == step["placed"]
    assert imbalance["capacity"]["step_time_ns"] == step["cut"]
    sentence = next(one for one in found["sentences"] if one["rule"] == "uneven-experts")
    assert sentence["ns"] == imbalance["lost_ns"]
    assert figures(sentence["text"])[:2] == [str(imbalance["hot_rank"]), "1.13"]
    # The rank that computes most.
    busiest = max(found["classes"], key=lambda one: sum(one["compute_ns"].values()))
    assert busiest["ranks"].startswith(str(imbalance["hot_rank"]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "rules"),
    [
        # What a hot rank costs a tenth of the step leads; behind it comes what communication costs.
        ("--zero 1 --recompute full --memory-limit 400GB", ["uneven-experts", "free-communication"]),
        # What does not fit comes before it, and nothing between the two: a small screen has two sentences.
        ("--memory-limit 40GB", ["memory", "uneven-experts"]),
    ],
)
def test_a_hot_rank_is_named_before_what_it_makes_of_the_rest(
    capsys: pytest.CaptureFixture[str], words: str, rules: list[str]
) -> None:
    of_all = "--model mixtral-8x7b --gpu h100 --world 64 --ep 8 --global-batch 64 --expert-imbalance"
    found = report(capsys, *f"{of_all} lognormal:0.5 --seed 7 {words}".split())
    assert [one["rule"] for one in found["sentences"]][:2] == rules
    even = report(capsys, *f"{of_all} lognormal:0.5 --seed 7 {words}".replace(":0.5", ":0").split())
    lost = found["step_time_ns"] - even["step_time_ns"]
    assert found["imbalance"]["lost_ns"] == lost > 0.1 * found["step_time_ns"]
    # Of a little unevenness another cause leads.
    little = report(capsys, *f"{of_all} lognormal:0.02 --seed 7 {words}".split())
    assert "uneven-experts" not in [one["rule"] for one in little["sentences"]][:2]


def test_without_uneven_experts_nothing_is_said_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--model mixtral-8x7b --gpu h100 --world 8 --ep 4 --global-batch 16"
    found = report(capsys, *words.split())
    assert "imbalance" not in found
    assert not any(one["rule"] == "uneven-experts" for one in found["sentences"])
    even = run(MODEL, gpu="h100", world=4, ep=4, expert_imbalance="lognormal:0")
    assert not any(one.rule == "uneven-experts" for one in find_sentences(SimulatedRun(even)))


@pytest.mark.slow
def test_what_would_help_is_among_the_changes(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "--model mixtral-8x7b --gpu h100 --world 16 --ep 4 --pp 2 --global-batch 32 --zero 1 --recompute full"
    )
    words += " --expert-imbalance lognormal:1 --what-if --memory-limit 400GB"
    found = report(capsys, *words.split())
    knobs = [one["knob"] for one in found["what_if"] if one.get("list") == "change"]
    assert any("--expert-placement balanced" in one for one in knobs)
    words_of = [one["words"] for one in found["what_if"] if "words" in one]
    assert any(re.search(r"--expert-capacity 1.25 \(drops [\d.]+ % of tokens\)", one) for one in words_of)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"expert_imbalance": "lognormal:x"},
            "a deviation from 0 to 5 is expected, for example lognormal:0.5",
        ),
        ({"expert_imbalance": "lognormal:-1"}, "a deviation from 0 to 5 is expected"),
        (
            {"expert_capacity": 1.5},
            "--expert-capacity is of uneven loads: with --expert-imbalance or --pad-to-capacity it",
        ),
        ({"expert_placement": "balanced"}, "with --expert-imbalance it would fit"),
        ({"expert_imbalance": "lognormal:1", "network": "links"}, "analytical and shared would fit"),
    ],
)
def test_what_does_not_go_together_says_what_would(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(MODEL, gpu="h100", world=4, ep=4, **given)
    assert words in str(caught.value)


def test_a_model_without_experts_has_no_loads() -> None:
    with pytest.raises(UsageError, match="small has no experts; a model with them would fit"):
        run(SMALL, gpu="h100", world=4, expert_imbalance="lognormal:0.5")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 2 3", "found 3 numbers, expected 8 numbers of tokens, one an expert, or 4, one a rank"),
        ("1 2 x 4", "line 1: found x, expected 8 numbers"),
        ("0 0 0 0", "found only zeros"),
        ("1 2 3 4\n-1", "line 2: found -1"),
        ("1 " * 9, "found more than 8 numbers"),
        ("", "found 0 numbers"),
        ("1 2 3 4 5 6 7 8\n" * 4, "found 4 lines of loads, expected 2, one a layer with experts, or 3"),
        ("layer,a,b\n1,2,3", "line 2: found 3 numbers, expected 9 numbers a line"),
        ("layer,expert,tokens\n1,9,3", "line 2: found expert 9, expected 0 to 7"),
        ("layer,expert,tokens\n1,0,3\n1,8,3", "line 2: found expert 0, expected 1 to 8"),
        ("layer,expert,tokens\n7,1,3", "line 2: found layer 7, expected 0 to 2"),
        ("layer,expert,tokens\n1,1,3", "layer 2: found no tokens"),
        ("layer 0 1 2 3 4 5 6 7\n" + "1 1 1 1 1 1 1 1 1\n" * 2, "line 3: layer 1 comes a second time"),
    ],
)
def test_a_file_of_other_numbers_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        run(MODEL, gpu="h100", world=4, ep=4, expert_imbalance=written(tmp_path, text))
    found = caught.value.diagnostics[0]
    said = f"line {found.line}: {found.message}" if found.line else found.message
    assert words in said


def test_each_rule_of_the_page_has_a_test_of_its_name() -> None:
    page = (Path(__file__).parents[2] / "docs" / "experts.md").read_text("utf-8")
    here = Path(__file__).read_text("utf-8")
    rules = re.findall(r"^\* \*\*(.+?)\.?\*\*", page, re.MULTILINE)
    assert len(rules) == 5
    for rule in rules:
        name = re.sub(r"[^a-z0-9]+", "_", rule.lower().replace("all-to-all", "all_to_all")).strip("_")
        assert f"def test_{name}(" in here


def test_128_loads_on_1024_ranks_are_as_many_classes() -> None:
    """And no more: benchmarks/engine.py has the time that they take."""
    model = MODELS["qwen3-235b-a22b"]
    opened = ModelMaker(model.name, replace(model, layers=4)).empty_workload()
    given = Parameters(gpu="h100", world=1024, ep=128, global_batch=1024, expert_imbalance="lognormal:0.5")
    assert len(simulate(opened, given).timeline.classes) == 128


def test_the_json_keeps_its_keys_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--model mixtral-8x7b --gpu h100 --world 8 --ep 8 --expert-imbalance lognormal:0.5"
    keys = list(report(capsys, *words.split()))
    assert keys.index("imbalance") == keys.index("model") + 1
    assert json.dumps(keys)


@given(
    st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_gradients_of_experts_are_added_up_over_all_ranks_that_hold_them(
    tp: int, cp: int, dp: int, ep: int, pp: int
) -> None:
    """So memory and communication count the same ranks, and no two of them compute the same tokens."""
    assume(tp * cp * dp % ep == 0)
    simulation = run(MODEL, gpu="h100", world=tp * cp * dp * pp, tp=tp, cp=cp, ep=ep, pp=pp)
    layout = simulation.layout
    of_model = find_model_rows(simulation)
    assert of_model is not None
    holders = of_model.training.expert_replicas
    assert layout.group_size("dp_ep") == holders == tp * cp * dp // ep
    for group in layout.groups("dp_ep"):
        assert len({layout.expert_group_index(rank) for rank in group}) == 1
    for group in layout.groups("ep"):
        assert sorted(layout.expert_group_index(rank) for rank in group) == list(range(ep))


def test_an_export_says_where_simai_has_other_expert_groups(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--model mixtral-8x7b --gpu h100 --world 16 --ep 4"
    exported = ["export", "--format", "simai", *words.split(), "-o", "-"]
    assert main([*exported, "--tp", "4"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if " not-in-file " in line]
    assert finding(line).endswith("warning not-in-file dp, tp, 1, 4, tp, 4")
    said([line], "along dp, not tp", "1 rank there", "4 here", "tp 4 apart")
    assert main(exported) == 0
    assert "not-in-file" not in capsys.readouterr().err


@pytest.mark.parametrize("loads", [{}, {"expert_imbalance": "lognormal:0.8"}])
def test_tokens_are_sent_in_fp8_and_come_back_in_bf16(loads: dict[str, Any]) -> None:
    """A number and its part of a scale are 1 + 4 / 128 bytes, in place of 2."""
    layout: dict[str, Any] = {"world": 4, "ep": 4, "global_batch": 4, "gpu": "h100", **loads}

    def sent(**more: Any) -> dict[tuple[str, str], int]:
        workload = run(MODEL, **layout, **more).workload
        return {
            (name, phase): cells.bytes[row]
            for phase in ("fwd", "ig")
            for cells in [workload.cells(phase)]  # type: ignore[arg-type]
            for row, name in enumerate(workload.name)
            if cells.group[row] == "ep"
        }

    plain, narrow = sent(), sent(dispatch_precision="fp8")
    assert sent(dispatch_precision="bf16") == plain
    share = (1 + 4 / 128) / 2
    expected = {("moe_router", "fwd"): share, ("moe_combine", "ig"): share}
    assert plain.keys() == narrow.keys() == {*expected, ("moe_experts", "fwd"), ("moe_experts", "ig")}
    for where, size in plain.items():
        assert narrow[where] == pytest.approx(size * expected.get(where, 1), rel=1e-6)
    with pytest.raises(UsageError, match="found ep 1; --ep 2 or more would fit"):
        run(MODEL, world=4, gpu="h100", dispatch_precision="fp8")


def test_ranks_of_tp_divide_each_expert() -> None:
    """As much compute and as many parameters on each rank as with whole experts over twice the ranks; before
    and behind, tokens are gathered over tp and their sums scattered.
    """
    layout: dict[str, Any] = {
        "world": 8, "tp": 2, "sequence_parallel": "on", "global_batch": 4, "gpu": "h100"
    }  # fmt: skip

    def made(**more: Any) -> Any:
        return ModelMaker("m", MODEL).make_rows(ModelParameters(**layout, **more))

    whole, divided = made(ep=4), made(ep=2, etp=2)
    counts = [stage_parameters(rows.training, 0) for rows in (whole, divided)]
    assert counts[0] == counts[1]
    assert (whole.training.expert_replicas, divided.training.expert_replicas) == (2, 2)
    workload, act = divided.workload, 2 * divided.training.tokens * MODEL.hidden
    assert MODEL.moe is not None
    sent = {
        (workload.name[row], phase): (cells.collective[row], cells.group[row], cells.bytes[row])
        for phase in ("fwd", "ig")
        for cells in [workload.cells(phase)]  # type: ignore[arg-type]
        for row in range(len(workload))
        if workload.name[row] in ("moe_dispatch", "moe_gather", "moe_scatter", "moe_return")
    }
    routed = act * MODEL.moe.experts_per_token
    exchange, gather = ("ALLTOALL", "ep", routed // 2), ("ALLGATHER", "tp", routed)
    scatter = ("REDUCESCATTER", "tp", routed)
    assert sent == {
        ("moe_dispatch", "fwd"): exchange, ("moe_gather", "fwd"): gather, ("moe_scatter", "fwd"): scatter,
        ("moe_return", "fwd"): exchange, ("moe_dispatch", "ig"): exchange, ("moe_gather", "ig"): scatter,
        ("moe_scatter", "ig"): gather, ("moe_return", "ig"): exchange,
    }  # fmt: skip
    flops = [
        sum(
            op.flops
            for row, ops in enumerate(rows.ops)
            if rows.workload.name[row] == "moe_experts"
            for op in ops.fwd
        )
        for rows in (whole, divided)
    ]
    assert flops[1] == pytest.approx(flops[0])
    assert run(MODEL, **layout, ep=4, etp=1).step_time_ns == run(MODEL, **layout, ep=4).step_time_ns


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tp": 2, "etp": 4}, "ranks of tp 2 hold whole experts or divide each; 1 or tp 2 would fit"),
        ({"etp": 2}, "ranks of tp 1 hold whole experts or divide each; 1 would fit"),
        ({"tp": 2, "etp": 2, "ep": 8}, "ep 8 does not divide dp x cp 4"),
        ({"tp": 2, "etp": 2, "ep": 2, "expert_imbalance": "lognormal:1"}, "one of the two would fit"),
    ],
)
def test_experts_that_cannot_be_divided_say_what_would_fit(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run(MODEL, world=8, global_batch=8, gpu="h100", **given)


# -- hops, and padding -------------------------------------------------------------------------


def gpu_of(folder: Path, server: int) -> str:
    """A file of an H100 in servers of so many."""
    path = folder / f"of-{server}.toml"
    path.write_text(f'[gpu]\nbase = "h100"\nserver = {server}\n', "utf-8")
    return str(path)


@pytest.mark.parametrize(("limit", "copies"), [(None, 11 / 7), (1, 1)])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_a_token_goes_to_each_node_once(
    tmp_path: Path, limit: int | None, copies: float, precision: str
) -> None:
    """By hand, to the nanosecond: 2 nodes of 2 ranks, 8 experts, 2 of a token. Both are on one node in 12 of
    28 cases, so that 11/7 nodes are reached. 1024 tokens of 1024 numbers; each leg sends half of its buffer.
    """
    results = SimulatedRun(
        run(
            MODEL, world=4, ep=4, global_batch=4, gpu=gpu_of(tmp_path, 2), dispatch="hierarchical",
            dim=("switch:2:10:0", "switch:2:1:0"), endpoint_delay=0, node_limit=limit,
            dispatch_precision=precision,
        )
    )  # fmt: skip
    layout = results.simulation.layout
    assert list(layout.groups("ep_intra")) == [[0, 1], [2, 3]]
    assert list(layout.groups("ep_inter")) == [[0, 2], [1, 3]]
    each = (2, 1 + 4 / 128 if precision == "fp8" else 2)
    inter = sum(round(copies * 1024 * 1024 * number) // 2 // 1 for number in each)
    intra = sum(round(2 * 1024 * 1024 * number) // 2 // 10 for number in each)
    found = mean_ns(results)
    # There and back, forward and backward, in two layers with experts.
    assert found["exposed ep_inter"] == 2 * 2 * inter
    assert found["exposed ep_intra"] == 2 * 2 * intra
    assert "exposed ep" not in {name for name, ns in found.items() if ns}


@given(st.sampled_from((1, 2, 4, 8)), st.integers(1, 4), st.integers(0, 4))
def test_nodes_that_a_token_goes_to_are_those_of_all_choices(ranks: int, chosen: int, limit: int) -> None:
    """The mean over every choice of experts on the nodes that are allowed."""
    server = 2 if ranks > 1 else 1
    nodes = max(ranks // server, 1)
    assume(limit <= nodes and (not limit or limit * 8 // nodes >= chosen))
    moe = Moe(8, chosen, 512, 1, 1)
    made = ModelMaker("m", replace(MODEL, moe=moe)).make_rows(
        ModelParameters(world=ranks, ep=ranks, global_batch=ranks)
    )
    training = replace(made.training, ep_node=server, node_limit=limit)
    allowed = range((limit or nodes) * 8 // nodes)
    reached = [len({expert * nodes // 8 for expert in experts}) for experts in combinations(allowed, chosen)]
    assert training.node_copies == pytest.approx(sum(reached) / len(reached))


def choices_of_groups(experts: int, chosen: int, groups: int, of_token: int) -> list[tuple[int, ...]]:
    """Every choice of groups, and of experts in them."""
    each = experts // groups
    return [
        found
        for some in combinations(range(groups), of_token)
        for found in combinations([e for e in range(experts) if e // each in some], chosen)
    ]


@given(st.sampled_from((2, 4, 8)), st.integers(1, 4), st.sampled_from((2, 4, 8)), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_groups_of_experts_lie_on_nodes_in_their_order(
    nodes: int, chosen: int, groups: int, of_token: int
) -> None:
    """The mean over every choice of groups and of experts in them, one rank a node."""
    assume(of_token < groups and of_token * 8 // groups >= chosen)
    moe = Moe(8, chosen, 512, 1, 1, groups=groups, groups_per_token=of_token)
    with TemporaryDirectory() as folder:
        given = ModelParameters(world=nodes, ep=nodes, global_batch=nodes, gpu=gpu_of(Path(folder), 1))
        training = resolve_training(replace(MODEL, moe=moe), replace(given, dispatch="hierarchical"))
    reached = [
        len({expert * nodes // 8 for expert in experts})
        for experts in choices_of_groups(8, chosen, groups, of_token)
    ]
    assert training.node_copies == pytest.approx(sum(reached) / len(reached))
    (stated,) = [one.message for one in training.diagnostics if one.message.startswith("node_limit")]
    assert stated.startswith(f"node_limit: {of_token * nodes // groups if nodes >= groups else of_token} ")


def test_groups_that_do_not_lie_on_whole_nodes_and_a_stated_limit(tmp_path: Path) -> None:
    moe = Moe(24, 2, 512, groups=8, groups_per_token=2)
    given = {"world": 6, "ep": 6, "global_batch": 6, "gpu": gpu_of(tmp_path, 2), "dispatch": "hierarchical"}
    trainings = [
        resolve_training(replace(MODEL, moe=one), ModelParameters(**given, node_limit=limit))
        for one in (moe, replace(moe, groups=0, groups_per_token=0))
        for limit in (None, 2)
    ]
    copies = [training.node_copies for training in trainings]
    assert copies[:2] == copies[2:]
    stated = [any("node_limit: none" in one.message for one in of.diagnostics) for of in trainings]
    assert stated == [True, False, False, False]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"n_group": 8, "topk_group": 4, "topk_method": "noaux_tc"}, (8, 4)),
        ({"n_group": 8, "topk_group": 4, "topk_method": "greedy"}, (0, 0)),
        ({"n_group": 1, "topk_group": 1}, (0, 0)),
        ({"n_group": 8, "topk_group": 8}, (0, 0)),
        ({}, (0, 0)),
        ({"n_group": 7, "topk_group": 4}, "groups: 7 does not divide experts 64"),
        ({"n_group": 32, "topk_group": 2}, "groups_per_token: found 2, expected 3 to 32"),
    ],
)
def test_groups_of_a_configuration(tmp_path: Path, more: dict[str, Any], expected: object) -> None:
    sizes = {
        "model_type": "deepseek_v3", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
        "intermediate_size": 1024, "vocab_size": 1024, "n_routed_experts": 64, "num_experts_per_tok": 6,
        "moe_intermediate_size": 128, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
        "v_head_dim": 32,
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(sizes | more), "utf-8")
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            find_model(str(path))
        return
    moe = find_model(str(path))[0].moe
    assert moe is not None
    assert (moe.groups, moe.groups_per_token) == expected


def test_groups_of_a_script_are_read_and_written() -> None:
    launch = read_launch_file("fixtures/launch/deepseek_v3_fsdp.txt")
    assert launch.model is not None
    assert launch.model.moe is not None
    assert (launch.model.moe.groups, launch.model.moe.groups_per_token) == (8, 4)
    assert launch.model.name == "deepseek-v3"
    written, _ = write_launch("megatron", launch.model, LaunchParameters(world=64, ep=8, global_batch=64))
    assert "--moe-router-num-groups 8" in written
    assert "--moe-router-group-topk 4" in written


@given(layouts(), st.sampled_from((1, 2, 8)))
@settings(max_examples=15, deadline=None)
def test_hops_inside_a_node_or_to_one_expert_a_node_are_the_plain_dispatch(
    given: dict[str, Any], chosen: int
) -> None:
    """Where expert groups are in a node, or each of their ranks is in one of its own with one expert."""
    model = replace(MODEL, moe=Moe(8, chosen, 512, 1, 1))
    assume(given["ep"] > 1 and given["network"] == "analytical")
    for server, fits in ((64, True), (1, given["ep"] == 8)):
        if not fits:
            continue
        with TemporaryDirectory() as folder:
            of_gpu = given | {"gpu": gpu_of(Path(folder), server)}
            plain, hops = (run(model, **of_gpu, dispatch=way) for way in ("plain", "hierarchical"))
            # Where tokens go once for each expert anyway, nothing hangs on the nodes.
            limited = run(model, **of_gpu, dispatch="plain", node_limit=1 if server == 64 else None)
        assert plain.step_time_ns == hops.step_time_ns == limited.step_time_ns
        of_plain, of_hops = (make_model_figures(one).memory for one in (plain, hops))
        assert [one.total for one in of_plain] == [one.total for one in of_hops]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dispatch": "hierarchical"}, "found ep 1; --ep 2 or more would fit"),
        ({"node_limit": 2}, "found ep 1; --ep 2 or more would fit"),
        ({"ep": 8, "node_limit": 2}, "8 experts are on 1 node, the 2 of a token on 1 or more; 1 would fit"),
        ({"pad_to_capacity": True}, "with --expert-capacity, 1 or more, it would fit"),
        ({"expert_capacity": 1.5}, "with --expert-imbalance or --pad-to-capacity it would fit"),
        (
            {"expert_capacity": 1.5, "pad_to_capacity": True, "expert_imbalance": "lognormal:1"},
            "one of the two would fit",
        ),
    ],
)  # fmt: skip
def test_a_dispatch_that_cannot_be_says_what_would_fit(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run(MODEL, world=8, global_batch=8, gpu="h100", **given)


def test_hops_of_uneven_loads_are_refused_but_in_one_node(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "world": 4, "ep": 4, "global_batch": 4, "dispatch": "hierarchical", "expert_imbalance": "lognormal:1"
    }  # fmt: skip
    assert run(MODEL, **given, gpu="h100").step_time_ns
    with pytest.raises(UsageError, match="--expert-imbalance: one of the two would fit"):
        run(MODEL, **given, gpu=gpu_of(tmp_path, 2))


def test_experts_that_are_filled_up_run_their_capacity() -> None:
    """By hand: 1024 tokens on each of 4 ranks, 2 of 8 experts for each: 256 of an expert from each rank, with
    1.5 times as many 384.
    """
    given: dict[str, Any] = {"world": 4, "ep": 4, "global_batch": 4, "gpu": "h100"}

    def made(**more: Any) -> Any:
        return ModelMaker("m", MODEL).make_rows(ModelParameters(**given, **more))

    even, filled = made(), made(expert_capacity=1.5, pad_to_capacity=True)
    assert (even.training.routed_tokens, filled.training.routed_tokens) == (8 * 256, 8 * 384)
    router = even.workload.name.index("moe_router")
    assert even.workload.fwd.bytes[router] == 8 * 256 * 1024 * 2
    assert filled.workload.fwd.bytes[router] == 8 * 384 * 1024 * 2
    experts = even.workload.name.index("moe_experts")
    flops = [sum(op.flops for op in rows.ops[experts].fwd) for rows in (even, filled)]
    assert flops[1] == pytest.approx(1.5 * flops[0])
    more = [layer_activations(rows.training, True) for rows in (even, filled)]
    # The input of an expert, permuted and as it is kept; both outputs of its first linear, the activation.
    assert more[1] - more[0] == 8 * 128 * (2 * 1024 + 2 * 1024 + 4 * 512 + 2 * 512)
    assert layer_activations(even.training, False) == layer_activations(filled.training, False)
    model_flops, hardware = step_flops(filled.training)
    assert step_flops(even.training) == (model_flops, model_flops)
    each = 2 * 3 * 1024 * 512
    # Half of what two experts do for a token, in two layers, three times.
    assert hardware - model_flops == pytest.approx(3 * 2 * each * 4 * 1024)


@given(layouts())
@settings(max_examples=10, deadline=None)
def test_experts_filled_up_to_the_mean_are_those_that_all_get_the_same(given: dict[str, Any]) -> None:
    filled = run(MODEL, **given, expert_capacity=1, pad_to_capacity=True)
    even = run(MODEL, **given)
    assert filled.step_time_ns == even.step_time_ns
    assert make_model_figures(filled).memory == make_model_figures(even).memory


def test_hops_have_no_word_in_simai_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "export", "--model", "mixtral-8x7b", "--gpu", gpu_of(tmp_path, 2), "--world", "8", "--ep", "8",
        "--global-batch", "8", "--format", "simai", "-o", str(tmp_path / "out.txt"),
    ]  # fmt: skip
    assert main([*words, "--dispatch", "hierarchical"]) == 2
    assert "--dispatch hierarchical has no word in SimAI text" in capsys.readouterr().err
    assert main(words) == 0
