"""Models: parameters as published, readers, and what they say of what they cannot read."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.diagnostics import InputError, UsageError
from simcore.model.families import FAMILIES
from simcore.model.huggingface import read_config
from simcore.model.known_models import MODELS, named_model
from simcore.model.opening import find_model
from simcore.model.sizes import Mla, Model, Moe
from simcore.model.toml_file import model_toml, read_toml_model
from simcore.sources.inputs import open_input
from tui.cli import main

# As their authors or configurations state them, billions.
PUBLISHED = {
    "gpt-3-175b": 174.6, "megatron-22b": 22.07, "megatron-145b": 145.6, "megatron-530b": 529.6,
    "megatron-1t": 1008.0, "llama-3-8b": 8.03, "llama-3-70b": 70.55, "llama-3-405b": 405.9,
    "mixtral-8x7b": 46.70, "mixtral-8x22b": 140.63, "deepseek-v3": 671.03, "qwen3-235b-a22b": 235.09,
}  # fmt: skip
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "num_hidden_layers": 32, "intermediate_size": 14336, "vocab_size": 128256,
    "max_position_embeddings": 8192, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
DEEPSEEK = LLAMA | {
    "model_type": "deepseek_v2", "hidden_size": 5120, "num_attention_heads": 128, "num_hidden_layers": 60,
    "intermediate_size": 12288, "vocab_size": 102400, "q_lora_rank": 1536, "kv_lora_rank": 512,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 160,
    "num_experts_per_tok": 6, "moe_intermediate_size": 1536, "n_shared_experts": 2,
    "first_k_dense_replace": 1, "moe_layer_freq": 1,
}  # fmt: skip
# Configurations of other kinds, and their parameters as published, billions.
CONFIGS: list[tuple[dict[str, Any], float]] = [
    (LLAMA, 8.03),
    (LLAMA | {"model_type": "mistral", "vocab_size": 32000, "sliding_window": 4096}, 7.24),
    (
        LLAMA | {"model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8,
                 "num_experts_per_tok": 2},
        46.70,
    ),
    (
        LLAMA | {"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28,
                 "num_key_value_heads": 4,
                 "num_hidden_layers": 28, "intermediate_size": 18944, "vocab_size": 152064},
        7.616,
    ),
    (
        LLAMA | {"model_type": "qwen3", "num_hidden_layers": 36, "intermediate_size": 12288, "head_dim": 128,
                 "vocab_size": 151936},
        8.19,
    ),
    (
        LLAMA | {"model_type": "qwen3_moe", "hidden_size": 2048, "num_key_value_heads": 4, "head_dim": 128,
                 "num_hidden_layers": 48, "intermediate_size": 6144, "moe_intermediate_size": 768,
                 "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936},
        30.53,
    ),
    (DEEPSEEK, 235.74),
    # Queries projected at once: `q_lora_rank` is null.
    (
        DEEPSEEK | {"hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 27,
                    "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64,
                    "q_lora_rank": None},
        15.71,
    ),
    (
        DEEPSEEK | {"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
                    "intermediate_size": 18432, "vocab_size": 129280, "n_routed_experts": 256,
                    "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1,
                    "first_k_dense_replace": 3},
        671.03,
    ),
    (
        LLAMA | {"model_type": "qwen2_moe", "hidden_size": 2048, "num_attention_heads": 16,
                 "num_key_value_heads": 16, "num_hidden_layers": 24, "intermediate_size": 5632,
                 "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
                 "num_experts": 60, "num_experts_per_tok": 4, "vocab_size": 151936},
        14.316,
    ),
    (
        {"model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024,
         "vocab_size": 50257, "resid_pdrop": 0.1},
        1.558,
    ),
    (
        {"model_type": "gpt_neox", "hidden_size": 6144, "num_attention_heads": 64, "num_hidden_layers": 44,
         "intermediate_size": 24576, "vocab_size": 50432, "max_position_embeddings": 2048},
        20.55,
    ),
]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_that_were_published(name: str) -> None:
    assert MODELS[name].parameters / 1e9 == pytest.approx(PUBLISHED[name], rel=1e-3)


@pytest.mark.parametrize(("config", "billions"), CONFIGS, ids=lambda one: str(one)[:30])
def test_a_config_has_its_published_parameters(config: dict[str, Any], billions: float) -> None:
    model, _ = read_config("models/mine/config.json", json.dumps(config).encode())
    assert model.name == "mine"
    assert model.parameters / 1e9 == pytest.approx(billions, rel=1e-3)


def test_every_kind_of_config_has_a_published_one() -> None:
    assert {config["model_type"] for config, _ in CONFIGS} <= set(FAMILIES)


@pytest.mark.parametrize(("config", "billions"), CONFIGS, ids=lambda one: str(one)[:30])
def test_no_field_of_a_published_config_is_unknown(config: dict[str, Any], billions: float) -> None:
    _, found = read_config("config.json", json.dumps(config).encode())
    assert all(one.code != "model-field-unknown" for one in found)


def test_what_changes_nothing_and_what_is_not_known_is_said() -> None:
    config = LLAMA | {"num_nextn_predict_layers": 1, "quantization_config": {"a": 1}, "my_field": 1}
    _, found = read_config("config.json", json.dumps(config).encode())
    assert [one.code for one in found] == [
        "model-field-unpriced",
        "model-field-unpriced",
        "model-field-unknown",
    ]
    assert "my_field" in found[2].message


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model_type": "strange"}, "expected one of llama"),
        ({"hidden_size": 4096, "num_hidden_layers": 3}, "found no model_type"),
        ({"model_type": "llama"}, "expected a configuration with its sizes"),
        (LLAMA | {"num_hidden_layers": 10**12}, "layers: found 1000000000000, expected 1 to 10000"),
        (LLAMA | {"hidden_size": -1}, "hidden_size: found `-1`, expected a whole number"),
        (LLAMA | {"vocab_size": "many"}, "vocab_size: found `many`, expected a whole number"),
        (DEEPSEEK | {"moe_layer_freq": [1, 0]}, "moe_layer_freq: found 2 entries, expected one for each"),
        (DEEPSEEK | {"num_experts_per_tok": 999}, "experts_per_token: found 999, expected 1 to experts 160"),
        (LLAMA | {"hidden_size": "big"}, "hidden_size: found `big`, expected a whole number"),
        (LLAMA | {"num_hidden_layers": 10**12}, "layers: found 1000000000000, expected 1 to"),
        (LLAMA | {"num_key_value_heads": 5}, "kv_heads: 5 does not divide heads 32"),
        (LLAMA | {"num_attention_heads": 0, "num_key_value_heads": 0}, "expected 1 to"),
    ],
)
def test_a_config_that_cannot_be_says_what_would_fit(config: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_config("config.json", json.dumps(config).encode())


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Any model."""
    count = lambda most: draw(st.integers(1, most))  # noqa: E731
    heads = count(16)
    moe = mla = None
    layers = count(40)
    if draw(st.booleans()):
        experts = count(64)
        moe = Moe(
            experts, draw(st.integers(1, experts)), count(4096), count(4) - 1, draw(st.integers(0, layers))
        )
    if draw(st.booleans()):
        mla = Mla(count(99) - 1, count(99), count(99), count(99), count(99))
    flag = lambda: draw(st.booleans())  # noqa: E731
    bias = draw(st.sampled_from(("all", "qkv", "none")))
    name = draw(st.text(min_size=1, max_size=20))
    return Model(
        name, layers, heads * count(128), heads, heads, count(256), count(9999), flag(), count(99999),
        count(9999),        flag(), flag(), bias, flag(), count(99) - 1, flag(), moe, mla,
    )  # fmt: skip


@given(models())
@settings(max_examples=100, deadline=None)
def test_a_model_comes_back_from_its_toml(model: Model) -> None:
    assert read_toml_model("x.toml", model_toml(model).encode("utf-8", "surrogatepass"))[0] == model


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[model]\nlayers = 4\nhiden = 3\n", r":3:1: .*`hiden`, expected .* for example hidden"),
        ("[model]\nlayers = 4\n", "found no hidden, expected it"),
        ("[model]\nhidden = 1.5\nheads = 2\n", "hidden: found `1.5`, expected a whole number"),
        ("[model\n", "this is not TOML"),
        ("[model]\n[other]\n", "found \\[other\\], expected"),
        ("[model]\nlayers=4\nhidden=64\nheads=4\nffn=9\nvocab=9\n[model.moe]\nexperts=0\nexperts_per_token=1\nffn=4\n",
         "experts: found 0, expected 1 to"),
    ],
)  # fmt: skip
def test_a_toml_that_cannot_be_names_the_place(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_toml_model("m.toml", text.encode())


@pytest.mark.parametrize("name", ["GPT-3 175B", "gpt3-175b", "LLAMA-3 8B", "Qwen3-235B-A22B", "Mixtral 8x7B"])
def test_a_name_is_known_whatever_its_marks(name: str) -> None:
    assert named_model(name) is not None


def test_a_name_that_is_not_known_names_those_near() -> None:
    with pytest.raises(UsageError, match="near is llama-3-8b"):
        find_model("lama-3-8b")


def test_the_command_lists_and_saves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.toml"
    assert main(["models", "llama-3-8b", "--save", str(out)]) == 0
    assert find_model(str(out))[0] == MODELS["llama-3-8b"]
    assert main(["models"]) == 0
    assert "llama-3-70b             70.55 B" in capsys.readouterr().out
    assert main(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["models"]
    assert [one["parameters"] for one in listed] == [one.parameters for one in MODELS.values()]
    assert open_input(str(out)).format == "model"  # type: ignore[union-attr]
