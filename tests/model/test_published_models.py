"""Configurations of published models: their parameters, their kinds of layers, and a run of each family."""

from __future__ import annotations

import json
from math import isclose
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.model_table import PAGE, page
from simcore.analysis.model_figures import make_model_figures
from simcore.diagnostics import InputError
from simcore.model.costs import layer_flops, step_flops
from simcore.model.families import FAMILIES
from simcore.model.huggingface import read_config
from simcore.model.maker import ModelMaker
from simcore.model.memory import chunk_activations, layer_activations
from simcore.model.sharding import stage_parameters
from simcore.model.sizes import Model
from simcore.model.toml_file import model_toml, read_toml_model
from simcore.parameters import Parameters
from simcore.simulation import Simulation, simulate
from simcore.workload.model import ModelParameters
from tests.model.published_models import MODELS, Published
from tui.cli import main

SHARED = Path(__file__).resolve().parents[3] / "shared"
CORPUS = SHARED / "corpus" / "configs"
INPUTS = SHARED / "cases" / "inputs"
BY_NAME = {published.name: published for published in MODELS}


def read(config: dict[str, Any]) -> Model:
    """The model of a configuration."""
    return read_config("model/config.json", json.dumps(config).encode())[0]


def of(name: str) -> Model:
    """The model of a published name."""
    return read(BY_NAME[name].config)


# One model of each family, the smallest: what its layers are decides, not how many there are.
OF_FAMILY = [
    min((other for other in MODELS if other.config["model_type"] == kind), key=lambda other: other.total)
    for kind in dict.fromkeys(published.config["model_type"] for published in MODELS)
]
MIXED = [published for published in MODELS if read(published.config).kinds]


def run(model: Model, **given: Any) -> Simulation:
    """A run of a model on 16 GPUs."""
    degrees = {"gpu": "h100", "tp": 2, "world": 16, "ep": 4 if model.moe else None} | given
    return simulate(ModelMaker("config.json", model).empty_workload(), Parameters(**degrees))


@pytest.mark.parametrize("published", MODELS, ids=lambda one: one.name)
def test_parameters_are_within_3_percent_of_the_publishers(published: Published) -> None:
    model = read(published.config)
    assert model.parameters / 1e9 == pytest.approx(published.total, rel=0.03)
    if published.active:
        used = model.active_parameters, model.active_parameters_without_embedding
        least = min(abs(count / 1e9 / published.active - 1) for count in used)
        # Qwen3-Next and GLM 4.7 Flash leave out the output layer, too.
        assert least < (0.2 if published.active == 3 else 0.15)


def test_the_table_of_the_page_is_as_the_command_makes_it() -> None:
    assert page() == PAGE.read_text("utf-8")
    assert len(MODELS) >= 60
    assert len(OF_FAMILY) >= 25


def test_no_field_of_a_published_configuration_is_unknown() -> None:
    for published in MODELS:
        _, notes = read_config("c.json", json.dumps(published.config).encode())
        assert not [note.message for note in notes if note.code == "model-field-unknown"], published.name


@pytest.mark.parametrize("published", OF_FAMILY, ids=lambda one: one.config["model_type"])
def test_each_family_has_its_step_and_its_memory(published: Published) -> None:
    model = read(published.config)
    found = run(model, microbatches=2, tp=1 if model.heads % 2 else 2)
    figures = make_model_figures(found)
    assert figures is not None
    assert found.step_time_ns > 0
    assert all(memory.total > 0 for memory in figures.memory)
    assert 0 < figures.throughput.mfu < 1
    # Every layer is run, whatever its kind.
    assert found.workload.stages is not None
    names = [found.workload.name[row] for row in found.workload.stages[0].chunks[0]]
    mixers = sum(name.endswith("_core") for name in names)
    assert mixers == sum(count for kind, count in model.count_kinds() if model.of_kind(kind).attends)
    assert names.count("moe_experts") == sum(
        count for kind, count in model.count_kinds() if model.experts_of(kind) is not None
    )


@pytest.mark.parametrize("published", MODELS, ids=lambda one: one.name)
def test_the_parts_of_a_model_are_all_of_it(published: Published) -> None:
    """Parameters of the ranks, and of the kinds of layers, add up to those of the model."""
    model = read(published.config)
    tables = model.embedding * (1 if model.tied_embeddings else 2) + model.positions * model.hidden
    kinds = sum(count * model.layer_parameters(kind) for kind, count in model.count_kinds())
    assert kinds + tables + model.norm + model.other + model.vision_parameters == model.parameters
    training = ModelMaker("m", model).make_rows(ModelParameters(gpu="h100")).training
    of_rank = sum(stage_parameters(training, 0))
    padding = (training.padded_vocab - model.vocab) * model.hidden * (1 if model.tied_embeddings else 2)
    assert of_rank - padding == model.parameters - model.vision_parameters


@pytest.mark.parametrize("published", MIXED, ids=lambda one: one.name)
def test_kinds_of_layers_share_out_flops_and_memory(published: Published) -> None:
    model = read(published.config)
    training = ModelMaker("m", model).make_rows(ModelParameters(gpu="h100")).training
    each = [sum(layer_flops(model, kind, training.seq)) * count for kind, count in model.count_kinds()]
    forward = sum(each) + 2 * model.embedding
    assert isclose(step_flops(training)[0], 3 * forward * training.seq * training.global_batch)
    of_layers = sum(layer_activations(training, kind) * count for kind, count in model.count_kinds())
    assert of_layers == sum(chunk_activations(training, 0))
    stages = ModelMaker("m", model).make_rows(ModelParameters(gpu="h100", pp=2)).training
    held = [sum(chunk_activations(stages, stage)) for stage in (0, 1)]
    assert sum(held) == sum(chunk_activations(training, 0))


# Sizes from the models' pages; FLOPs as the table of docs/models.md states them, by hand.
S = 8192.0
TABLE = {
    ("Llama 3.1 8B", 0): 2 * 32 * 256 * S / 2,
    ("gpt-oss 20B", 0): 2 * 64 * 128 * (128 - 128**2 / (2 * S)),
    ("gpt-oss 20B", 1): 2 * 64 * 128 * S / 2,
    ("DeepSeek V3.2", 1): 2 * 128 * (2 * 512 + 64) * (2048 - 2048**2 / (2 * S)) + 2 * 64 * 128 * S / 2,
    ("Qwen3.5 35B-A3B", 0): 8 * 32 * 128 * 128,
    ("Nemotron 3 Nano 30B-A3B", 0): 7 * 64 * 64 * 128,
    ("DeepSeek V4 Flash", 0): 4 * 64 * 512 * (128 - 128**2 / (2 * S)),
    ("DeepSeek V4 Flash", 1): 4 * 64 * 512 * (128 - 128**2 / (2 * S) + 512 - 512**2 / (2 * S / 4))
    + 2 * 64 * 128 * S / 4 / 2,
    ("DeepSeek V4 Flash", 2): 4 * 64 * 512 * (128 - 128**2 / (2 * S) + S / 128 / 2),
}


@pytest.mark.parametrize(("name", "kind"), TABLE)
def test_flops_between_the_linears_are_those_of_the_table(name: str, kind: int) -> None:
    assert layer_flops(of(name), kind, int(S), causal=True)[1] == pytest.approx(TABLE[name, kind])


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kind in TABLE if name != "Llama 3.1 8B"])
def test_the_ops_of_a_core_have_the_flops_of_the_table(name: str, kind: int) -> None:
    """The ops of rows and the count of a step are written apart."""
    model = of(name)
    found = ModelMaker("m", model).make_rows(ModelParameters(gpu="h100"))
    seen: dict[int, float] = {}
    cores = [row for row, rows in enumerate(found.workload.name) if rows.endswith("_core")]
    kinds = [layer for layer in map(model.kind_of, range(model.layers)) if model.of_kind(layer).attends]
    for row, of_kind in zip(cores, kinds, strict=False):
        seen.setdefault(of_kind, sum(op.flops for op in found.ops[row].fwd) / S)
    assert seen[kind] == pytest.approx(TABLE[name, kind], rel=0.02)


@pytest.mark.parametrize("name", ["Qwen3.5 35B-A3B", "DeepSeek V4 Flash", "Nemotron 3 Nano 30B-A3B"])
def test_two_ranks_of_a_layer_take_half_as_long_for_its_core(name: str) -> None:
    times = []
    for tp in (1, 2):
        found = ModelMaker("m", of(name)).make_rows(ModelParameters(gpu="h100", tp=tp))
        cores = [row for row, title in enumerate(found.workload.name) if title.endswith("_core")]
        # What selects keys runs whole on each rank.
        fused = [op for row in cores for op in found.ops[row].fwd if not op.name.startswith("index")]
        times.append(sum(op.seconds for op in fused))
    assert times[1] / times[0] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("published", MIXED, ids=lambda one: one.name)
def test_a_model_of_several_kinds_comes_back_from_its_toml(published: Published) -> None:
    model = read(published.config)
    assert read_toml_model("x.toml", model_toml(model).encode())[0] == model


@pytest.mark.parametrize("name", ["Qwen3.5 35B-A3B", "DeepSeek V4 Flash", "Nemotron 3 Nano 30B-A3B"])
@pytest.mark.parametrize("given", [
    {"pp": 2, "microbatches": 4, "recompute": "full", "sequence_parallel": "on", "zero": "1"},
    {"zero": "3", "engine_preset": "fsdp"}, {"cp": 2}, {"offload": 50.0, "recompute_rows": "norm,mlp_act"},
], ids=str)  # fmt: skip
def test_layers_of_several_kinds_run_with_every_option(name: str, given: dict[str, Any]) -> None:
    assert run(of(name), **given).step_time_ns > 0


@pytest.mark.parametrize("name", ["DeepSeek V3.2", "Qwen3.5 35B-A3B", "DeepSeek V4 Flash"])
def test_a_layer_that_predicts_a_further_token_is_priced_and_held(name: str) -> None:
    model = of(name)
    first = model.layers // 2
    layout = f"Et*{first}|t*{model.layers - first}{{}}L"
    steps, held = [], []
    for letters in ("", "m"):
        found = run(model, world=32, pp=2, microbatches=4, pipeline_layout=layout.format(letters))
        figures = make_model_figures(found)
        assert figures is not None
        steps.append(found.step_time_ns)
        held.append(figures.memory[1].weights)
    assert steps[1] > steps[0]
    # Two bytes a number; a rank has half, of experts a quarter, and a table of embeddings.
    assert model.mtp_parameters / 4 < held[1] - held[0] < 2 * (model.mtp_parameters / 2 + model.embedding)


def test_a_window_is_faster_than_all_tokens_and_a_wide_one_as_fast() -> None:
    plain = BY_NAME["Mistral 7B"].config
    steps = [
        run(read(plain | {"sliding_window": window, "max_position_embeddings": 8192})).step_time_ns
        for window in (None, 8192, 1024)
    ]
    assert steps[0] == steps[1] > steps[2]


def test_a_sweep_over_a_model_of_several_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(BY_NAME["Qwen3.5 35B-A3B"].config))
    words = ["sweep", str(file), "--gpu", "h200", "--world", "16", "--vary", "tp=1,2", "--vary", "ep=4,8"]
    assert main([*words, "--json"]) == 0
    points = json.loads(capsys.readouterr().out)
    assert points["points"] == points["simulated"] == 4


def test_without_seq_at_most_8192_tokens_are_run_and_the_first_assumption_says_so() -> None:
    model = read(BY_NAME["Llama 3.1 8B"].config | {"max_position_embeddings": 131072})
    assumed = [one for one in run(model).diagnostics if one.code == "model-assumed"]
    assert "seq: 8192 assumed" in assumed[0].message
    assert "131072" in assumed[0].message
    short = read(BY_NAME["Llama 3.1 8B"].config | {"max_position_embeddings": 4096})
    assert (short.seq, short.longest) == (4096, 0)


META = {
    "dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 1024,
    "ffn_dim_multiplier": 1.3, "norm_eps": 1e-05, "rope_theta": 500000.0,
}  # fmt: skip
SPELLINGS: list[tuple[dict[str, Any], str]] = [
    (META, "Llama 3.1 8B"),
    ({"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
      "vocab_size": 32000, "moe": {"num_experts": 8, "num_experts_per_tok": 2}}, "Mixtral 8x7B"),
    ({"dim": 5120, "n_layers": 48, "n_heads": 40, "n_kv_heads": 8, "head_dim": 128, "vocab_size": 202048,
      "multiple_of": 2048, "ffn_dim_multiplier": 1.2, "ffn_exp": 4.0,
      "moe_args": {"num_experts": 16, "top_k": 1, "interleave_moe_layer_step": 1}}, "Llama 4 Scout"),
    ({"vocab_size": 129280, "dim": 7168, "inter_dim": 18432, "moe_inter_dim": 2048, "n_layers": 61,
      "n_dense_layers": 3, "n_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1,
      "n_activated_experts": 8, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
      "qk_rope_head_dim": 64, "v_head_dim": 128, "dtype": "fp8"}, "DeepSeek V3"),
    ({"num_layers": 61, "dense_layer": 3, "hidden_size": 7168, "num_attention_heads": 128,
      "vocab_size": 129280, "d_kv_c": 512, "d_q_c": 1536, "d_r": 64, "d_q": 128, "d_kv": 128,
      "router_expert": 256, "shared_experts": 1, "moe_router_topk": 8, "expert_dim": 2048,
      "num_experts": 288}, "DeepSeek V3"),
    ({"model_type": "moe", "attention_type": "mla", "hidden_size": 7168, "head_num": 128, "kv_head_num": 128,
      "head_size": 128, "intermediate_size": 18432, "moe_ffn_hidden_size": 2048,
      "moe_shared_expert_intermediate_size": 2048, "layer_num": 61, "dense_layers": 3, "expert_num": 256,
      "v_head_dim": 128, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "q_lora_rank": 1536,
      "kv_lora_rank": 512, "topk": 8, "vocab_size": 129280, "use_swiglu": True}, "DeepSeek V3"),
    (BY_NAME["DeepSeek V4 Flash"].config | {"model_type": "deepseek_ref", "n_hash_layers": 3},
     "DeepSeek V4 Flash"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "same"), SPELLINGS, ids=range(len(SPELLINGS)))
def test_other_spellings_are_the_same_model(config: dict[str, Any], same: str) -> None:
    model, expected = read(config), of(same)
    assert model.parameters == expected.parameters - expected.vision_parameters
    assert model.active_parameters == expected.active_parameters


def test_a_part_of_a_configuration_states_its_sizes_alone() -> None:
    """Older files have the defaults of every class in each part."""
    config = BY_NAME["DBRX"].config
    parts = {name: config[name] | {"tie_word_embeddings": True, "model_type": ""} for name in
             ("attn_config", "ffn_config")}  # fmt: skip
    assert read(config | parts) == of("DBRX")


ENCODERS = {
    "an encoder and a decoder": {"model_type": "t5", "is_encoder_decoder": True, "d_model": 512},
    "an encoder of text": {"model_type": "bert", "type_vocab_size": 2, "vocab_size": 30522},
    "an encoder of images": {"model_type": "vit", "image_size": 224, "patch_size": 16, "hidden_size": 768},
    "an encoder of sound": {"model_type": "hubert", "feat_extract_norm": "group", "hidden_size": 768},
}  # fmt: skip


@pytest.mark.parametrize("words", ENCODERS)
def test_an_encoder_is_refused_by_what_it_is(words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(ENCODERS[words])


@pytest.mark.parametrize("config", [{"hidden_size": 64, "num_hidden_layers": 2}, {"model_type": "strange"}])
def test_a_refusal_names_the_two_other_ways(config: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"--model-map FILE .*TOML"):
        read(config)


MAP = 'family = "qwen3"\n[fields]\nhidden = "width"\nffn = "inner.size"\nhead_dim = 128\n'
ODD = {
    "model_type": "odd", "width": 4096, "inner": {"size": 12288}, "num_hidden_layers": 36,
    "vocab_size": 151936, "num_attention_heads": 32, "num_key_value_heads": 8,
}  # fmt: skip


def test_a_map_says_what_fields_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, fields = tmp_path / "odd.json", tmp_path / "map.toml"
    file.write_text(json.dumps(ODD))
    fields.write_text(MAP)
    assert main(["models", str(file), "--model-map", str(fields), "--json"]) == 0
    (values,) = json.loads(capsys.readouterr().out)["models"]
    assert values["parameters"] == of("Qwen3 8B").parameters
    assert main(["report", "--model", str(file), "--model-map", str(fields), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["parameters"] == values["parameters"]


@pytest.mark.parametrize(("text", "says"), [
    ('family = "lama"\n', "map.toml:1:1: .*`lama`, expected one like llama"),
    ('[fields]\nhidden = "breadth"\n', "map.toml:2:1: .*hidden: found no `breadth`"),
    ("[field]\n", "expected family and"), ("family = ", "this is not TOML"),
])  # fmt: skip
def test_a_map_that_cannot_be_names_the_place(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "map.toml").write_text(text)
    with pytest.raises(InputError, match=says):
        read_config("odd.json", json.dumps(ODD).encode(), str(tmp_path / "map.toml"))


def test_the_json_of_models_has_what_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(BY_NAME["Qwen3.5 35B-A3B"].config))
    assert main(["models", str(file), "--json"]) == 0
    (values,) = json.loads(capsys.readouterr().out)["models"]
    model = of("Qwen3.5 35B-A3B")
    for key in ("parameters", "vision_parameters", "mtp_parameters", "active_parameters",
                "active_parameters_without_embedding"):  # fmt: skip
        assert values[key] == getattr(model, key) > 0
    assert [(kind["name"], kind["layers"]) for kind in values["kinds"]] == [("linear", 30), ("full", 10)]


@given(st.sampled_from(MODELS), st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_configuration_is_read_or_refused(published: Published, data: st.DataObject) -> None:
    config = json.loads(json.dumps(published.config))
    table = config.get("text_config", config)
    for key in data.draw(st.lists(st.sampled_from(sorted(table)), min_size=1, max_size=3, unique=True)):
        table[key] = data.draw(st.sampled_from(
            [None, -1, 0, 1, 7, 10**6, 10**30, 1.5, "text", [], [1], ["x"] * 3, {}, {"head_dim": 3}, True]
        ))  # fmt: skip
    try:
        model = read(config)
    except InputError:
        return
    assert model.parameters >= 0


@pytest.mark.skipif(not INPUTS.exists(), reason="../shared/cases is not here")
def test_the_small_cases_come_out_as_their_readme_says() -> None:
    def case(name: str) -> tuple[Model, list[str]]:
        model, notes = read_config(name, (INPUTS / f"{name}.json").read_bytes())
        return model, [note.message for note in notes]

    assert case("qwen2moe_shared_smaller_than_expert")[0].parameters / 1e9 == pytest.approx(19.299, abs=5e-4)
    assert case("qwen2moe_shared_not_a_multiple")[0].parameters / 1e9 == pytest.approx(19.978, abs=5e-4)
    assert not case("qwen25_window_off")[1]
    assert "text_config" in case("llava_text_config")[1][0]
    with pytest.raises(InputError, match="found no model_type"):
        case("no_model_type")


@pytest.mark.skipif(not CORPUS.exists(), reason="../shared/corpus is not here")
@pytest.mark.parametrize(
    "file", sorted(CORPUS.glob("*.json")) if CORPUS.exists() else [], ids=lambda f: f.stem
)
def test_a_given_configuration_opens_and_runs(file: Path) -> None:
    model, notes = read_config(str(file), file.read_bytes())
    assert not [note.message for note in notes if note.code == "model-field-unknown"]
    assert run(model).step_time_ns > 0
    counted = _oracle_count(json.loads(file.read_bytes()))
    assert model.parameters == pytest.approx(counted, rel=1e-3)


def _oracle_count(config: dict[str, Any]) -> int:
    """The parameters of transformers' own class, made on torch's meta device; skips without it."""
    transformers = pytest.importorskip("transformers", reason="the extra `oracle` is not installed")
    torch = pytest.importorskip("torch", reason="the extra `oracle` is not installed")
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    def plain(table: dict[str, Any]) -> dict[str, Any]:
        values = {
            key: value for key, value in table.items() if key not in ("quantization_config", "auto_map")
        }
        return {key: plain(value) if isinstance(value, dict) else value for key, value in values.items()}

    kind = config["model_type"]
    if kind not in CONFIG_MAPPING:
        pytest.skip(f"transformers has no {kind}")
    made = CONFIG_MAPPING[kind].from_dict(plain(config))
    named = getattr(transformers, (config.get("architectures") or ["none"])[0], None)
    classes = [transformers.AutoModelForImageTextToText] if "text_config" in config else []
    with torch.device("meta"):
        if named is not None:
            model = named._from_config(made)
        else:
            try:
                model = [*classes, transformers.AutoModelForCausalLM][0].from_config(made)
            except ValueError:
                pytest.skip(f"transformers has no decoder of {kind}")
    return sum({id(one): one.numel() for one in model.parameters()}.values())


@pytest.mark.parametrize("published", MODELS, ids=lambda one: one.name)
def test_parameters_are_within_a_thousandth_of_transformers(published: Published) -> None:
    pytest.importorskip("transformers", reason="the extra `oracle` is not installed")
    counted = _oracle_count(published.config)
    assert read(published.config).parameters == pytest.approx(counted, rel=1e-3)


# Configurations of transformers' own that are no decoder, or lack what a model has: kind -> why.
NO_DEFAULT = {
    "deepseek_v2": "its default has no number of experts a token", "dbrx": "its default lacks rope_theta",
    "mimo_v2_flash": "its default leaves out that layers that slide have sinks",
}  # fmt: skip

# What other defaults leave out.
LEFT_OUT: dict[str, dict[str, Any]] = {
    "ministral": {"head_dim": 128}, "hunyuan_v1_dense": {"head_dim": 128},
    "nemotron": {"head_dim": 128, "num_key_value_heads": 8},
    "hunyuan_v1_moe": {"head_dim": 128, "num_experts": 8, "moe_topk": 2},
    "dots1": {"n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2},
}  # fmt: skip


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_default_of_a_family_is_within_a_thousandth_of_transformers(kind: str) -> None:
    pytest.importorskip("transformers", reason="the extra `oracle` is not installed")
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if kind not in CONFIG_MAPPING or kind in NO_DEFAULT:
        pytest.skip(NO_DEFAULT.get(kind, f"transformers has no {kind}"))
    config = json.loads(json.dumps(CONFIG_MAPPING[kind](**LEFT_OUT.get(kind, {})).to_dict(), default=str)) | {
        "model_type": kind
    }
    assert read(config).parameters == pytest.approx(_oracle_count(config), rel=1e-3)


def test_families_of_the_table_are_in_the_reader() -> None:
    from simcore.model.families import NESTED

    assert {kind.config["model_type"] for kind in OF_FAMILY} <= {*FAMILIES, *NESTED}
