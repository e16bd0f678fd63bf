"""A model on a layout: its stages, what they hold, what is sent, and what cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.analysis.model_figures import find_model_rows, make_model_figures
from simcore.diagnostics import UsageError
from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.model.sharding import stage_parameters
from simcore.model.sizes import Mla, Model, Moe
from simcore.model.toml_file import model_toml
from simcore.names import TWO_WAY_SCHEDULES, V_SCHEDULES
from simcore.parameters import Parameters
from simcore.program.schedules import SCHEDULES
from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.trace.run import mean_ns
from simcore.workload import open_workload
from simcore.workload.model import ModelParameters
from tests.says import said
from tui.cli import main

SMALL = Model("small", 8, 1024, 8, 8, 128, 4096, True, 32000, 2048, tied_embeddings=False)
EXPERTS = Model(
    "experts", 6, 1024, 8, 8, 128, 4096, True, 32000, 2048, tied_embeddings=False, moe=Moe(8, 2, 512, 1, 2),
    mla=Mla(256, 128, 64, 32, 64),
)  # fmt: skip


def run(model: Model = SMALL, **parameters: Any) -> Simulation:
    return simulate(ModelMaker(model.name, model).empty_workload(), Parameters(**parameters))


def report(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["report", "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_report_of_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--model llama-3-8b --gpu h100 --world 16 --tp 2 --cp 2 --pp 2 --global-batch 32 --zero 1"
    found = report(capsys, *words.split())
    assert found["workload"]["degrees"] == {"tp": 2, "cp": 2, "ep": 1, "dp": 2, "pp": 2, "world": 16}
    assert found["workload"]["microbatches"] == 16
    assert set(found["throughput"]) == {
        "tokens_per_s", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mfu", "hfu", "mfu_whole_attention",
        "mfu_causal_attention",
    }  # fmt: skip
    tokens = 32 * 8192 / (found["step_time_ns"] / 1e9)
    assert found["throughput"]["tokens_per_s"] == pytest.approx(tokens)
    assert found["throughput"]["mfu"] == pytest.approx(found["throughput"]["model_tflops_per_gpu"] / 989)
    assert found["model"] == {
        "parameters": 8030261248, "vision_parameters": 0, "mtp_parameters": 0, "name": "llama-3-8b",
        "active_parameters": 8030261248, "active_parameters_without_embedding": 8030261248 - 128256 * 4096,
    }  # fmt: skip
    assert [one["stage"] for one in found["memory"]] == [0, 1]
    for one in found["memory"]:
        parts = ("weights", "gradients", "optimizer", "activations", "logits", "work")
        assert one["total"] == sum(one[part] for part in parts)
        assert one["needed"] == one["total"] + one["overhead"]
        assert one["overhead"] > 1e9
        assert one["fits"] == (one["needed"] <= one["limit"])
    assert "cp" in found["classes"][0]["exposed_ns"]
    assert found["classes"][0]["peak_chunks"] == 2
    keys = ("gpu", "zero", "seq", "stage_layers", "stage_layout")
    assert {key: found["parameters"][key] for key in keys} == {
        "gpu": "h100", "zero": "1", "seq": 8192, "stage_layers": "16*2", "stage_layout": "megatron"
    }  # fmt: skip
    assumed = [one["message"] for one in found["diagnostics"] if one["code"] == "model-assumed"]
    assert any(text.startswith("recompute: none assumed") and "(--recompute)" in text for text in assumed)
    # Megatron has no such flag that turns it off.
    why = "as Transformer Engine and PyTorch choose it"
    assert f"flash: on assumed, {why} (--flash)" in assumed


NEEDS = "interleaved needs --stage-layers, too: stages of {} layers have unequal chunks"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"pp": 4, "global_batch": 8}, "interleaved would shorten the bubble and need more memory"),
        # All are held already.
        ({"pp": 4, "global_batch": 4}, "interleaved would shorten the bubble"),
        ({"pp": 4, "global_batch": 6}, "interleaved needs a multiple of 4 micro-batches, here are 6"),
        ({"pp": 3, "global_batch": 6}, NEEDS.format("11*2,10")),
        (
            {"pp": 32, "global_batch": 64},
            "interleaved cannot run: a stage of 1 layer cannot be cut into chunks",
        ),
    ],
)
def test_interleaved_is_offered_where_it_can_run(given: dict[str, Any], says: str) -> None:
    """On 8 stages with 94 layers and 4 micro-batches it was offered, and refused."""
    given |= {"world": given["pp"]}
    now = run(MODELS["llama-3-8b"], **given)
    (note,) = [one.message for one in now.diagnostics if one.message.startswith("virtual_stages")]
    assert note == f"virtual_stages: 1 assumed, 1f1b; {says} (--virtual-stages)"
    for count in (2, 4, 8, 16, 32):
        tried = given | {"schedule": "interleaved", "virtual_stages": count}
        if "would" not in says:
            with pytest.raises(UsageError):
                run(MODELS["llama-3-8b"], **tried)
        elif count == 2:
            totals = [max(one.total for one in SimulatedRun(made).model.model_figures.memory)
                      for made in (now, run(MODELS["llama-3-8b"], **tried))]  # fmt: skip
            assert (totals[1] > 1.01 * totals[0]) == ("more memory" in says)


@pytest.mark.parametrize("name", MODELS)
def test_the_parameters_of_all_stages_are_those_of_the_model(name: str) -> None:
    model = MODELS[name]
    training = ModelMaker(name, model).make_rows(ModelParameters(pp=2, world=2, gpu="h100")).training
    held = sum(sum(stage_parameters(training, stage)) for stage in (0, 1))
    padding = (training.padded_vocab - model.vocab) * model.hidden * 2
    tied = model.embedding if model.tied_embeddings else 0  # the last stage has one of its own
    assert held == model.parameters + padding + tied


def test_the_throughput_of_several_steps_is_that_of_one() -> None:
    """Without overlap a step begins when the one before has ended."""
    figures = [
        make_model_figures(run(SMALL, world=4, pp=2, global_batch=8, gpu="h100", steps=steps))
        for steps in (1, 3)
    ]
    assert figures[0] is not None
    assert figures[1] is not None
    for one, three in zip(*(of.throughput for of in figures if of is not None), strict=True):
        assert three == pytest.approx(one)


def test_layers_that_do_not_divide_make_stages_that_differ() -> None:
    made = ModelMaker("l", MODELS["llama-3-405b"]).make_rows(ModelParameters(pp=16, world=16, gpu="h100"))
    assert made.training.stage_layers == (7, *(8,) * 14, 7)
    assert [len(stage.chunks[0]) for stage in made.workload.stages] == [36, *[40] * 14, 36]
    other = run(SMALL, pp=4, world=4, stage_layers="1,3,3,1", global_batch=4)
    rows = [len(stage.chunks[0]) for stage in other.workload.stages]
    assert rows == [6, 15, 15, 6]
    assert {one.stage for one in other.timeline.classes} == {0, 1, 2, 3}


def test_dense_and_expert_layers_stand_where_they_are() -> None:
    workload = run(EXPERTS, pp=3, world=6, ep=2, global_batch=12).workload
    names = [[workload.name[row] for row in stage.chunks[0]] for stage in workload.stages]
    assert ["moe_experts" in one for one in names] == [False, True, True]
    assert names[0][0] == "embedding_layer"
    assert names[2][-1] == "final_column"
    assert ["embedding_layer" in one for one in names] == [True, False, False]


@pytest.mark.parametrize(
    ("schedule", "chunks", "held"),
    [
        ("1f1b", 1, lambda stage, stages: stages - stage),
        ("gpipe", 1, lambda stage, stages: 8),
        ("zb-h1", 1, lambda stage, stages: stages),
        ("interleaved", 2, lambda stage, stages: 2 * (stages - 1 - stage) + stages + 1),
    ],
)
def test_chunks_in_flight_are_those_of_the_closed_forms(schedule: str, chunks: int, held: Any) -> None:
    given = {"virtual_stages": chunks} if chunks > 1 else {}
    simulation = run(SMALL, pp=4, world=4, global_batch=8, schedule=schedule, **given)
    figures = make_model_figures(simulation)
    assert figures is not None
    expected = [held(stage, 4) for stage in range(4)]
    assert [stage.peak_chunks for stage in simulation.program.stages] == expected
    assert [one.peak_chunks for one in figures.memory] == expected


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Model, dict[str, Any]]:
    """A model on one stage, with what SimAI's text has words for."""
    pick = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    model = pick(
        SMALL, EXPERTS, Model("gpt", 2, 512, 8, 8, 64, 2048, False, 1000, 512, dropout=True, bias="all")
    )
    tp, dp = pick(1, 2, 4), pick(1, 2, 4)
    ep = pick(1, 2) if model.moe else 1
    assume(dp % ep == 0)
    return model, {
        "world": tp * dp, "tp": tp, "ep": ep, "global_batch": dp * pick(1, 3),
        "recompute": pick("none", "selective", "full"),
        "sequence_parallel": pick("on", "off"), "flash": pick("on", "off"), "zero": pick("0", "1"),
    }  # fmt: skip


@given(layouts())
@settings(max_examples=25, deadline=None)
def test_the_file_of_a_model_takes_the_same_nanoseconds(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[Model, dict[str, Any]]
) -> None:
    from simcore.render.export.format import Request
    from simcore.render.export.simai import export_model

    model, layout = case
    dims = ("switch:8:300:500", "switch:2:50:1000")
    opened = ModelMaker(model.name, model).empty_workload()
    assert opened.maker is not None
    given = Parameters(gpu="h100", dim=dims, **layout)
    path = tmp_path_factory.mktemp("export") / "file.txt"
    exported = export_model(opened.maker, Request(opened, given))
    path.write_bytes(b"".join(exported.chunks))
    file = simulate(open_workload(str(path)), Parameters(dim=dims, schedule="1f1b", local_mem_bw=3350.0))
    made = simulate(opened, replace_memory(given))
    said = [told.code for told in exported.diagnostics if told.severity == "warning"]
    assert said == ["not-in-file"] * (model.moe is not None and made.layout.tp > 1)
    if said:
        # A file's expert groups are along dp: on these the model's rows take the file's time.
        rows = opened.maker.workload(replace_memory(given).part(ModelParameters))
        along_dp = replace(rows, header=replace(rows.header, whole_experts=False), maker=None)
        made = simulate(along_dp, Parameters(dim=dims, schedule="1f1b", local_mem_bw=3350.0))
    assert made.step_time_ns == file.step_time_ns


def replace_memory(parameters: Parameters) -> Parameters:

    return parameters.with_value("local_mem_bw", 3350.0)


def test_more_stages_are_a_file_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", "--model", "llama-3-8b", "--pp", "2", "--format", "simai", "-o", str(tmp_path / "out")]
    assert main(words) == 2
    assert "a model on 2 stages is a file for each" in capsys.readouterr().err
    assert main([*words, "--per-rank"]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["stage-0.txt", "stage-1.txt"]
    assert main(["check", str(tmp_path / "out" / "stage-1.txt")]) == 0


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_the_file_of_any_stage_is_read_with_its_micro_batches(tmp_path: Path, recompute: str) -> None:
    """Each as a stage of its own: what it computes is what the stage of the model does."""
    given = {"gpu": "h100", "global_batch": 12, "recompute": recompute, "tp": 2}
    model = run(SMALL, world=8, pp=4, **given)
    words = ["--world", "8", "--tp", "2", "--pp", "4", "--global-batch", "12", "--recompute", recompute]
    toml = tmp_path / "model.toml"
    toml.write_text(model_toml(SMALL), "utf-8")
    out = tmp_path / "out"
    command = ["export", "--model", str(toml), "--gpu", "h100", *words, "--format", "simai", "--per-rank"]
    assert main([*command, "-o", str(out)]) == 0
    accounts = zip(model.timeline.classes, SimulatedRun(model).accounts, strict=True)
    busy = {one.stage: found.busy_ns for one, found in accounts}
    for stage in range(4):
        file = simulate(
            open_workload(str(out / f"stage-{stage}.txt")),
            Parameters(pp=1, world=2, schedule="1f1b", microbatches=None),
        )
        assert len(file.program.structure.blocks) == 12
        assert SimulatedRun(file).accounts[0].busy_ns == busy[stage]


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"tp": 3}, "does not divide the 8 heads of small: 1, 2, 4 or 8 would fit"),
        ({"ep": 2}, "small has no experts; 1 would fit"),
        ({"world": 6, "tp": 4}, "world 6 is not a multiple of tp 4 x pp 1 = 4: 4 or 8 would fit"),
        (
            {"world": 2, "global_batch": 3},
            "not a multiple of micro-batch size 1 x dp 2 = 2: 2 or 4 would fit",
        ),
        ({"global_batch": 4, "microbatches": 3}, "--global-batch 3 would fit"),
        ({"pp": 16}, "pp 16 is above the 8 layers of small: at most 8 would fit"),
        ({"pp": 2, "virtual_stages": 3}, "--virtual-stages 1, 2, 4, or --stage-layers would fit"),
        ({"stage_layers": "1,2", "pp": 2}, "3 layers on 2 stages, expected 8 layers on pp 2"),
        ({"stage_layers": "x"}, "expected layers of a stage like"),
        ({"schedule": "zb-v", "pp": 3, "world": 3}, "pp 1, 2 or 4 would fit, or --stage-layers"),
        (
            {"schedule": "dualpipe", "pp": 2, "world": 2, "overlap_grad_reduce": True},
            "without --overlap-grad-reduce and --overlap-param-gather it would fit",
        ),
        ({"schedule": "dualpipe", "pp": 3, "world": 3}, "3 stages are an odd number"),
        ({"cp": 3}, "not a multiple of 2 x cp 3: 2046 or 2052 would fit"),
        ({"gpu": "k80"}, "none of a100-40"),
        ({"memory_limit": "much"}, "a size like 80GB"),
        ({"recompute": "some"}, "one of none, selective, full"),
        ({"schedule": "layer-loop"}, "for a model 1f1b would fit"),
        ({"aicb_args": "--num_layers 3"}, "is of --as-aicb"),
        ({"dialect": "simai"}, "--dialect is of files: found a model"),
    ],
)
def test_what_cannot_be_names_what_would_fit(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make_model_figures(run(SMALL, **parameters))


def test_flags_of_models_on_a_file_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "fixtures/002_gpt_1024npu.txt", "--recompute", "full", "--zero", "1"]) == 2
    said(capsys.readouterr().err.splitlines(), "--recompute, --zero", "workload file")
    assert main(["report", "fixtures/002_gpt_1024npu.txt", "--model", "llama-3-8b"]) == 2
    said(capsys.readouterr().err.splitlines(), "--model", "fixtures/002_gpt_1024npu.txt is a workload")


def test_own_constants_of_a_gpu_count(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[gpu]\nbase = "h100"\nmatmul = 0.39\n', "utf-8")
    slow, fast = (run(SMALL, gpu=gpu, microbatch_size=4).step_time_ns for gpu in (str(path), "h100"))
    assert slow > 1.4 * fast


def test_the_gpu_brings_its_network_and_dimensions_count_over_it() -> None:
    simulation = run(SMALL, world=16, tp=8, gpu="a100-80", global_batch=2)
    assert [one.flag() for one in simulation.cluster.dims] == ["switch:8:212:5000", "switch:2:21:5000"]
    given = run(SMALL, world=16, tp=8, gpu="a100-80", global_batch=2, dim=("switch:16:99:1",))
    assert [one.flag() for one in given.cluster.dims] == ["switch:16:99:1"]


def test_shares_of_an_activation_are_put_together_on_the_next_stage() -> None:
    def rows(**parameters: Any) -> list[list[str]]:
        workload = run(SMALL, pp=2, world=4, tp=2, global_batch=2, **parameters).workload
        return [[workload.name[row] for row in stage.chunks[0]] for stage in workload.stages]

    first, last = rows(pp_scatter="on")
    assert (first[0], first[-1]) == ("embedding_layer", "stage_output")
    assert (last[0], last[-1]) == ("stage_input", "final_column")
    assert "stage_input" not in first
    for other in ({}, {"pp_scatter": "on", "sequence_parallel": "on"}):
        assert not {"stage_input", "stage_output"}.intersection(*rows(**other))
    workload = run(SMALL, pp=2, world=4, tp=2, global_batch=2, pp_scatter="on").workload
    row = workload.name.index("stage_input")
    # 2048 tokens of 1024 numbers, 2 bytes each.
    assert (workload.fwd.collective[row], workload.fwd.bytes[row]) == ("ALLGATHER", 2 * 2048 * 1024)


def test_gradients_of_what_every_rank_holds_are_added_up_with_sequence_parallelism() -> None:
    workload = run(SMALL, world=2, tp=2, sequence_parallel="on").workload
    row = workload.name.index("layernorm")
    # Two norms of 1024 in each of 8 layers, and the last one; 4 bytes.
    assert workload.ig.bytes[row] == 4 * (8 * 2 + 1) * 1024
    assert "layernorm" not in run(SMALL, world=2, tp=2).workload.name


def test_context_parallel_ranks_exchange_keys_and_values() -> None:
    simulation = run(SMALL, world=8, cp=4, tp=2, global_batch=1)
    exchange = simulation.workload.name.index("attention_exchange")
    # 2048 tokens, keys and values of 4 heads of 128, 2 bytes.
    assert simulation.workload.fwd.bytes[exchange] == 2048 * 2 * 4 * 128 * 2
    assert simulation.layout.group_size("cp") == 4
    assert list(simulation.layout.group_of("cp", 0)) == [0, 2, 4, 6]
    assert "cp" in simulation.timeline.streams(0)


@pytest.mark.parametrize("gbps", [0.5, 3, 20, 400])
@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1"])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_what_follows_attention_waits_for_the_ring_of_keys_and_values(
    gbps: float, schedule: str, recompute: str
) -> None:
    def exposed(comm_type: str) -> tuple[int, int]:
        results = SimulatedRun(
            run(
                SMALL,
                world=4,
                cp=4,
                global_batch=2,
                schedule=schedule,
                recompute=recompute,
                gpu="h100",
                cp_comm_type=comm_type,
                dim=(f"switch:4:{gbps}:0",),
            )
        )
        workload = results.simulation.workload
        places = {name: workload.name.index(name) for name in workload.name}
        core, sent = places["attention_core"], places["attention_exchange"]
        again = places["attention_exchange_again"]
        cells = {row.index: row.cells for row in results.layers}
        forward = max(0, cells[sent]["fwd"].comm_ns - workload.fwd.compute_ns[core])
        if comm_type == "p2p":
            backward = max(0, cells[again]["ig"].comm_ns - workload.ig.compute_ns[core])
        else:
            forward = cells[sent]["fwd"].comm_ns
            backward = cells[again]["ig"].comm_ns + cells[sent]["ig"].comm_ns
        each = (2 if recompute == "full" else 1) * forward + backward
        return mean_ns(results)["exposed cp"], 2 * SMALL.layers * each

    for comm_type in ("p2p", "all-gather"):
        found, expected = exposed(comm_type)
        assert found == expected
    assert exposed("p2p")[0] < exposed("all-gather")[0]


def test_all_to_all_each_rank_of_a_sequence_has_some_heads_of_all_of_it() -> None:
    """By hand: 2 bytes of each number, 1024 tokens of a rank, 8 query heads of 128 and 2 of keys and values;
    all of it is exposed, forward and backward, in each of 8 layers and 2 micro-batches.
    """
    grouped = replace(SMALL, kv_heads=2)
    given: dict[str, Any] = {
        "world": 2, "cp": 2, "global_batch": 2, "gpu": "h100", "cp_comm_type": "a2a",
        "dim": ("switch:2:10:0",),
    }  # fmt: skip
    results = SimulatedRun(run(grouped, **given))
    workload = results.simulation.workload
    inputs, output = 2 * 1024 * (8 + 2 + 2) * 128, 2 * 1024 * 8 * 128
    sizes = {
        (name, phase): workload.cells(phase).bytes[workload.name.index(name)]  # type: ignore[arg-type]
        for name in ("attention_heads", "attention_heads_again")
        for phase in ("fwd", "ig")
    }
    assert set(sizes.values()) == {inputs, output}
    assert sizes["attention_heads", "fwd"] == sizes["attention_heads", "ig"] == inputs
    # Half of each buffer goes to the other rank.
    each = round(inputs / 2 / 10) + round(output / 2 / 10)
    assert mean_ns(results)["exposed cp"] == pytest.approx(2 * 2 * SMALL.layers * each, rel=1e-3)
    with pytest.raises(
        UsageError, match="cp 4 does not divide the 2 key-value heads of a rank of tp 1: cp 1 or 2"
    ):
        run(grouped, world=4, cp=4, global_batch=2, gpu="h100", cp_comm_type="a2a")


@pytest.mark.parametrize("gbps", [0.1, 40])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_heads_are_scattered_in_inner_groups_and_keys_go_round_between_them(
    gbps: float, recompute: str
) -> None:
    """By hand, to the nanosecond: groups of 2 beside each other on an inner dimension of 10 GB/s, rings of 2
    on an outer one. 512 tokens of a rank, 8 query heads of 128 and 2 of keys and values, 2 bytes each number.
    """
    grouped = replace(SMALL, kv_heads=2)
    results = SimulatedRun(
        run(
            grouped, world=4, cp=4, global_batch=2, gpu="h100", cp_comm_type="a2a+p2p", cp_inner=2,
            dim=("switch:2:10:0", f"switch:2:{gbps}:0"), endpoint_delay=0, recompute=recompute,
        )
    )  # fmt: skip
    layout, workload = results.simulation.layout, results.simulation.workload
    assert list(layout.groups("cp_a2a")) == [[0, 1], [2, 3]]
    assert list(layout.groups("cp_p2p")) == [[0, 2], [1, 3]]
    inputs, output, keys = (2 * 512 * heads * 128 for heads in (8 + 2 + 2, 8, 2 + 2))
    # Half of each buffer goes to the other rank; so does the own part of keys and values, once and twice.
    scatter, gather = (size // 2 // 10 for size in (inputs, output))
    ring, ring_again = int(keys / gbps), int(2 * keys / gbps)
    core = workload.name.index("attention_core")
    times = 2 if recompute == "full" else 1
    forward, backward = workload.fwd.compute_ns[core], workload.ig.compute_ns[core]
    waits = times * max(0, ring - forward) + max(0, ring_again - backward)
    found, passes = mean_ns(results), 2 * SMALL.layers
    assert found["exposed cp_a2a"] == passes * (times + 1) * (scatter + gather)
    assert found["exposed cp_p2p"] == passes * waits
    assert (waits > 0) == (gbps < 1)


@given(
    st.sampled_from((1, 2)), st.sampled_from((2, 4, 8)), st.sampled_from((1, 2)),
    st.sampled_from(("none", "full")), st.sampled_from((0.0, 1.0, 30.0)),
)  # fmt: skip
@settings(max_examples=10, deadline=None)
def test_inner_groups_of_one_are_a_ring_and_of_all_an_all_to_all(
    tp: int, cp: int, pp: int, recompute: str, scale: float
) -> None:
    assume(SMALL.heads % (tp * cp) == 0)
    given: dict[str, Any] = {
        "world": tp * cp * pp, "tp": tp, "cp": cp, "pp": pp, "global_batch": 2, "gpu": "h100",
        "recompute": recompute, "comm_scale": scale,
    }  # fmt: skip
    for inner, kind, merges in ((1, "p2p", cp - 1), (cp, "a2a", 0)):
        same = run(**given, cp_comm_type="a2a+p2p", cp_inner=inner)
        other = run(**given, cp_comm_type=kind)
        assert same.step_time_ns == other.step_time_ns
        assert make_model_figures(same).memory == make_model_figures(other).memory
        # A ring merges what each of its steps gives.
        rows = ModelMaker("small", SMALL).make_rows(
            ModelParameters(world=tp * cp * pp, tp=tp, cp=cp, pp=pp, cp_comm_type=kind)
        )
        core = rows.ops[rows.workload.name.index("attention_core")].fwd
        assert sum(op.kernels for op in core if op.name == "merge") == merges


def test_an_inner_group_that_cannot_be_says_what_would_fit() -> None:
    grouped = replace(SMALL, kv_heads=2)
    given: dict[str, Any] = {"world": 8, "cp": 8, "global_batch": 1, "gpu": "h100"}
    for more, words in (
        ({"cp_inner": 3}, "--cp-inner 3 does not divide cp 8: 1 or 2 would fit"),
        ({"cp_inner": 4}, "does not divide the 2 key-value heads of a rank of tp 1: 1 or 2 would fit"),
        ({"cp_inner": 2, "cp_comm_type": "a2a"}, "found a2a; without --cp-inner"),
    ):
        with pytest.raises(UsageError, match=words):
            run(grouped, **given | {"cp_comm_type": "a2a+p2p"} | more)
    # What is assumed fits in a server, and divides the heads.
    assert run(grouped, **given, cp_comm_type="a2a+p2p").layout.cp_inner == 2


@given(
    st.sampled_from((1, 2)), st.sampled_from((1, 2, 4)), st.sampled_from((1, 2, 4)), st.sampled_from((1, 2)),
    st.sampled_from((1, 2)), st.sampled_from(("tp-ep-dp-pp", "tp-pp-dp")), st.integers(0, 63),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_folding_is_exact_with_context_and_expert_parallelism(
    tp: int, cp: int, ep: int, dp: int, pp: int, order: str, slow: int
) -> None:
    world = tp * cp * dp * pp
    assume(cp * dp % ep == 0)
    given_ = {
        "world": world, "tp": tp, "cp": cp, "ep": ep, "pp": pp, "global_batch": 2 * dp, "gpu": "h100",
        "rank_order": order, "slow_rank": (f"{slow % world}=1.5",),
    }  # fmt: skip
    # Servers of two, so that it matters who is in a group.
    given_["dim"] = ("switch:2:300:500", "switch:64:20:5000")
    folded, whole = (SimulatedRun(run(EXPERTS, no_fold=no_fold, **given_)) for no_fold in (False, True))
    assert folded.step_time_ns == whole.step_time_ns
    assert mean_ns(folded) == mean_ns(whole)


def test_a_row_unfolds_into_its_ops(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["report", "--model", "llama-3-8b", "--gpu", "a100-80", "--explain", "attention_core:fwd"]) == 0
    )
    text = capsys.readouterr().out
    assert "flash attention" in text
    # 2 x 8192^2 x 32 heads x 256, half of it under the mask.
    assert "549.8 GFLOP at 44.4 % of the peak" in text


def test_the_schedules_of_a_v_and_of_both_ways_are_those_of_their_placement() -> None:
    placed = {name: one.placement for name, one in SCHEDULES.items()}
    assert {name for name, one in placed.items() if one == "v"} == set(V_SCHEDULES)
    assert {name for name, one in placed.items() if one == "both-ways"} == set(TWO_WAY_SCHEDULES)


@pytest.mark.parametrize("schedule", [*V_SCHEDULES, *TWO_WAY_SCHEDULES])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_a_v_and_both_ways_run_the_layers_of_the_model(schedule: str, recompute: str) -> None:
    given = {"world": 8, "pp": 4, "tp": 2, "global_batch": 16, "gpu": "h100", "recompute": recompute}
    simulation, usual = run(SMALL, **given, schedule=schedule), run(SMALL, **given)
    made = find_model_rows(simulation)
    assert made is not None
    training, workload, placement = made.training, simulation.workload, simulation.program.placement
    for route in placement.routes:
        # A micro-batch goes through all layers in their order, from the embedding to the output layer.
        assert [layer for place in route for layer in training.layers_of(*place)] == [*range(SMALL.layers)]
        assert [training.position(*place) for place in route] == [*range(placement.depth)]
        names = [
            [workload.name[row] for row in workload.stages[place.stage].chunks[place.chunk]]
            for place in route
        ]
        assert names[0][0] == "embedding_layer"
        assert names[-1][-1] == "final_column"
        assert sum(one.count("embedding_layer") + one.count("final_column") for one in names) == 2
    # All ranks together compute what those of 1f1b do, but for the optimizer, of both ways twice.
    work = [
        sum(mean_ns(SimulatedRun(one))[f"compute {phase}"] for phase in ("fwd", "ig", "wg", "recompute"))
        for one in (simulation, usual)
    ]
    assert work[0] == pytest.approx(work[1], abs=8)
    held = sum(sum(stage_parameters(training, stage)) for stage in range(4))
    beside = find_model_rows(usual)
    assert beside is not None
    whole = sum(sum(stage_parameters(beside.training, stage)) for stage in range(4))
    assert held == whole * placement.copies
    unfolded = run(SMALL, **given, schedule=schedule, no_fold=True)
    assert mean_ns(SimulatedRun(unfolded)) == mean_ns(SimulatedRun(simulation))


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "zb-h1", "zb-v", "dualpipev"])
def test_the_memory_lane_reaches_the_figure_and_comes_down_again(schedule: str) -> None:
    from simcore.analysis.model_figures import make_memory_lane
    from simcore.runs.simulated import SimulatedRun

    results = SimulatedRun(run(EXPERTS, pp=3, world=6, ep=2, global_batch=12, schedule=schedule, gpu="h100"))
    figures = results.model.model_figures
    assert figures is not None
    for number, one in enumerate(results.simulation.timeline.classes):
        lane, stage = make_memory_lane(figures, results.simulation, number), figures.memory[one.stage]
        assert lane is not None
        assert (max(lane.resident_bytes), lane.resident_bytes[0], lane.resident_bytes[-1]) == (
            stage.needed,
            stage.static,
            stage.static,
        )
        assert list(lane.time_ns) == sorted(lane.time_ns)
        step = results.step_time_ns
        assert max(lane.peak_bytes([step * column // 40 for column in range(41)])) == stage.needed


def test_the_timeline_has_the_memory_of_the_lane_at_the_cursor() -> None:
    from simcore.analysis.model_figures import make_memory_lane
    from simcore.runs.simulated import SimulatedRun
    from tui.frame import BLOCKS
    from tui.timeline.margins import MemoryRow
    from tui.timeline.window import Window

    drawn = []
    for limit in ("80GB", "1GB"):
        results = SimulatedRun(run(SMALL, pp=2, world=2, global_batch=4, gpu="h100", memory_limit=limit))
        lane = make_memory_lane(results.model.model_figures, results.simulation, 1)
        row = MemoryRow(BLOCKS)
        assert row.lane(results, 1) == lane
        assert lane is not None
        drawn.append(row.line(lane, Window.whole(results.step_time_ns), 23, 40))
    fits, over = ("".join(text for text, _ in line) for line in drawn)
    assert fits.startswith("  memory, stage 1")
    assert "!" not in fits
    assert "!" in over
    assert drawn[1][0][1] == "warn"


def test_two_layouts_of_a_model_are_compared_with_their_throughput(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["compare", "llama-3-8b", "--gpu", "h100", "--world", "8", "--tp", "2", "--global-batch", "8"]
    assert main([*words, "--with", "--tp 4"]) == 0
    text = capsys.readouterr().out
    assert "other rows" in text or "Why: compute" in text
    assert text.count("tokens/s") == 2
    assert "another file" not in text
    assert main([*words, "--with", "--recompute full", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["a"]["throughput"]["mfu"] == pytest.approx(found["a"]["throughput"]["hfu"])
    assert found["b"]["throughput"]["mfu"] < found["b"]["throughput"]["hfu"]
    assert found["changed"] == {"recompute": {"a": "none", "b": "full"}}


def test_a_config_alone_is_opened_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.model.test_models import LLAMA

    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), "utf-8")
    assert main(["check", str(path)]) == 0
    found = (
        report(capsys, str(path), "--gpu", "h100", "--world", "4", "--tp", "4") if capsys.readouterr() else {}
    )
    assert found["model"]["parameters"] == 8030261248


def test_every_layer_is_on_one_virtual_stage() -> None:
    for given_ in ({"pp": 4, "virtual_stages": 2}, {"pp": 2, "virtual_stages": 4}, {"pp": 3}, {"pp": 8}):
        world = given_["pp"]
        training = (
            ModelMaker("s", SMALL).make_rows(ModelParameters(world=world, gpu="h100", **given_)).training
        )
        places = [
            (chunk, stage) for chunk in range(training.chunks) for stage in range(training.pp)
        ]  # fmt: skip
        found = [layer for chunk, stage in places for layer in training.layers_of(stage, chunk)]
        assert found == list(range(8))


def test_cells_beyond_64_bits_are_an_error() -> None:
    with pytest.raises(UsageError, match="shorter sequences or smaller micro-batches would fit"):
        run(SMALL, gpu="h100", seq=2**40)


def test_mfu_counts_attention_whole_and_stands_beside_its_causal_half(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--model", "llama-3-8b", "--gpu", "h100", "--world", "8", "--global-batch", "8"]
    found = report(capsys, *words)["throughput"]
    # 6 N of products and the output layer, 12 L h s of attention (arXiv 2104.04473).
    products, attention = 6 * (8_030_261_248 - 128_256 * 4096), 12 * 32 * 4096 * 8192
    peak = 989e12 / found["tokens_per_s_per_gpu"]
    assert found["mfu"] == found["mfu_whole_attention"]
    assert found["mfu_whole_attention"] == pytest.approx((products + attention) / peak, rel=1e-3)
    assert found["mfu_causal_attention"] == pytest.approx((products + attention / 2) / peak, rel=1e-3)
    assert main(["report", *words]) == 0
    whole, half = (100 * found[key] for key in ("mfu_whole_attention", "mfu_causal_attention"))
    text = capsys.readouterr().out
    assert f"{whole:.1f} % with attention whole (12 L h s, as papers), {half:.1f} % with its causal" in text


def test_limits_are_what_torch_states() -> None:
    from simcore.model.gpu import find_gpu
    from simcore.model.memory import memory_limit

    gib = {
        "a100-80": 79.15, "a100-40": 39.39, "h100": 79.11, "h200": 139.80, "h20": 95.00, "b200": 178.35,
        "gb200": 184.31, "mi300x": 191.98,
    }  # fmt: skip
    for name, printed in gib.items():
        assert memory_limit(None, find_gpu(name).memory) / 2**30 == pytest.approx(printed, abs=0.006)
    assert memory_limit(None, find_gpu("h100").memory) == 84_942_979_072
    assert memory_limit(None, 96) == 96 * 10**9
