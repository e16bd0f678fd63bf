"""The model behind a file: AICB's own files, random configs, files with a row changed, files of others."""

import json
import random
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.layout import resolve_layout
from simcore.model.aicb import aicb_rows
from simcore.model.aicb_arguments import AicbArguments
from simcore.model.toml_file import read_toml_model
from simcore.recovery import RecoveredModel, recover
from simcore.units import group_digits
from simcore.workload.formats.simai_text import read
from simcore.workload.model import DegreeParameters
from simcore.workload.opening import open_workload
from tests.command_line.running import ROOT, SEED_002
from tests.model.test_aicb import HERE, SHARED, arguments, command_of, index, text_of
from tui.cli import main

CORPUS = ROOT.parent / "shared" / "corpus" / "simai"
# An example is a whole file: what a smaller one would be takes minutes to find.
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
SEED_000 = str(ROOT / "fixtures" / "000_gpt13b_tp4_old_header.txt")
SEED_001 = str(ROOT / "fixtures" / "001_moe_128npu_with_mistakes.txt")
# Files of AICB, and the only public one of its months with seven rows of experts.
OF_CORPUS = {
    "Next-Generatrion-Computer-Systems__SimAI__None-gpt_7B-world_size128": (36, 4096, 16384),
    "Next-Generatrion-Computer-Systems__SimAI__None-gpt_7B-world_size16": (36, 4096, 16384),
    "TyKuro9__SimAI__H100-Mixtral_8x7B": (32, 4096, 14336),
    "TyKuro9__SimAI__H100-gpt_175B": (96, 12288, 49152),
    "TyKuro9__SimAI__H100-gpt_22B": (48, 6144, 24576),
    "aliyun__SimAI__workload_analytical": (96, 6144, 24576),
}


def of_text(text: str) -> RecoveredModel:
    return recover(read("made.txt", text.encode()), text.encode())


def of_file(path: Path | str) -> RecoveredModel:
    return recover(open_workload(str(path)), Path(path).read_bytes())


def asked(found: RecoveredModel) -> tuple[Any, ...]:
    config = found.config
    assert config is not None
    return (
        config.layers, config.hidden, config.ffn, config.vocab, config.seq, config.microbatch_size, config.tp,
        config.pp, config.ep, config.world, config.microbatches, config.sequence_parallel, config.experts,
        config.bias, config.mla,
    )  # fmt: skip


def remade(found: RecoveredModel, folder: Path) -> str:
    """What the command of a recovered file writes."""
    out = folder / "again.txt"
    assert main([*shlex.split(found.command())[1:], "-o", str(out), "--force"]) == 0
    return out.read_text("utf-8")


@pytest.mark.parametrize("run", index(HERE), ids=lambda run: run["file"][:3])
def test_a_file_of_aicb_is_recovered_and_its_command_writes_it_again(
    run: dict[str, Any], tmp_path: Path
) -> None:
    found = of_file(HERE / run["file"])
    assert found.exact
    assert remade(found, tmp_path) == (HERE / run["file"]).read_text("utf-8")


def test_all_files_of_aicb_in_shared_are_recovered_to_what_was_asked_for() -> None:
    if not SHARED.exists():
        pytest.skip("../shared/golden/aicb is not here")
    wrong = []
    for run in index(SHARED):
        found = of_file(SHARED / run["file"])
        meant = AicbArguments(run["command"]).config
        if not found.exact or asked(found) != asked(RecoveredModel("", meant, None, True, True)):
            wrong.append((run["file"], found.line()))
    assert wrong == []


def test_seed_002_is_llama_405b_of_autumn_2024(tmp_path: Path) -> None:
    found = of_file(SEED_002)
    assert found.exact
    assert found.config is not None
    assert found.config.version == "2024-09"
    assert asked(found)[:6] == (128, 16384, 53248, 50257, 4096, 1)
    assert found.config.recompute
    lines = remade(found, tmp_path).split("\n")
    assert lines[2:-1] == Path(SEED_002).read_text("utf-8").rstrip("\n").split("\n")[2:]


def test_seed_000_is_gpt_13b_with_its_gather_edited() -> None:
    found = of_file(SEED_000)
    assert not found.exact
    assert asked(found)[:6] == (40, 5120, 20480, 32000, 2048, 1)
    assert found.config is not None
    assert (found.config.world, found.config.version, found.differing) == (128, "2024-07", 1)
    assert found.difference is not None
    assert found.difference.text() == (
        "row 0 (line 3), grad_gather: weight-gradient bytes 202 424 320, AICB writes 6 477 578 240"
    )
    # The note of a run names the same line, with what AICB writes there.
    notes = resolve_layout(open_workload(SEED_000), DegreeParameters(), None)[1]
    (shard,) = [one for one in notes if one.line == 3]
    assert shard.message.startswith("not what AICB writes: grad_gather is 202 424 320 B, ")
    assert group_digits(int(found.difference.expected)) in shard.message
    assert found.title() == "AICB: GPT 13B, 40 layers; line 3 is not what AICB writes"


def test_seed_001_is_none_and_that_is_said_why() -> None:
    found = of_file(SEED_001)
    assert found.config is None
    assert found.line() == (
        "not AICB's: row 7 (line 10) is attention_column_1, a name that AICB does not write"
    )
    assert found.title() == "line 10: not a name AICB writes"


@pytest.mark.parametrize("name", OF_CORPUS)
def test_public_files_of_aicb_are_recovered(name: str) -> None:
    paths = sorted(CORPUS.glob(f"{name}-*")) or sorted(CORPUS.glob(f"{name}*"))
    if not paths:
        pytest.skip("../shared/corpus is not here")
    found = of_file(paths[0])
    assert found.exact
    assert found.config is not None
    assert (found.config.layers, found.config.hidden, found.config.ffn) == OF_CORPUS[name]


def test_of_every_other_public_file_the_first_row_that_does_not_fit_is_named() -> None:
    if not CORPUS.exists():
        pytest.skip("../shared/corpus is not here")
    for path in sorted(CORPUS.glob("*.txt")):
        found = of_file(path)
        assert found.exact == any(path.name.startswith(name) for name in OF_CORPUS), path.name
        if not found.exact:
            assert found.difference is not None, path.name
            assert found.config is not None or found.why


@given(arguments())
@settings(max_examples=100, deadline=None, phases=NO_SHRINKING)
def test_what_is_recovered_makes_the_file(o: dict[str, Any]) -> None:
    if o["moe"] and o["ep"] == 1:
        # No row says how many experts there are: with latent attention it takes a second to find them. Of
        # the presets one is that.
        o["deepseek"] = False
    try:
        text = text_of(command_of(o))
    except UsageError:
        assume(False)
    found = of_text(text)
    meant = AicbArguments(command_of(o)).config
    if not found.exact:
        # Of a file without a layer less is known, and uncommon sizes are not found.
        assert meant.microbatches == 0
        return
    assert found.config is not None
    for one in (found.config, *found.others):
        lines = [row.text() for row in aicb_rows(one, found.times)]
        assert lines == text.split("\n")[2:-1]


@pytest.mark.slow
@given(st.integers(0, 10**9), arguments())
@settings(max_examples=60, deadline=None, phases=NO_SHRINKING)
def test_a_row_changed_is_the_one_that_is_named(seed: int, o: dict[str, Any]) -> None:
    rng = random.Random(seed)
    o |= {"global_batch": 64, "micro_batch": 1, "num_layers": 13, "ffn": 4096}
    assume(64 // (o["world_size"] // (o["tp"] * o["pp"])) > 1)
    if o["moe"] and o["ep"] == 1:
        # No row says how many experts there are: with latent attention it takes seconds to find them.
        o["deepseek"] = False
    try:
        text = text_of(command_of(o))
    except UsageError:
        assume(False)
    lines = text.split("\n")
    place = rng.randrange(2, len(lines) - 1)
    cells = lines[place].split("\t")
    cell = rng.choice((0, 2, 3, 4, 6, 7, 9, 10))
    changed = {0: "mlp_other", 3: "ALLTOALL_EP", 6: "ALLTOALL_EP", 9: "ALLREDUCE"}
    cells[cell] = changed.get(cell) or str(int(cells[cell]) * 2 + 128)
    assume("\t".join(cells) != lines[place])
    lines[place] = "\t".join(cells)
    after = of_text("\n".join(lines))
    is_named = after.difference is not None and (after.config is None or after.difference.line == place + 1)
    # What is recovered of the file itself, as dear as that of the changed one, is asked only where it counts.
    assert (is_named and not after.exact) or not of_text(text).exact, (text, place, after)


# -- the command -------------------------------------------------------------------------


def test_models_from_writes_the_toml_and_its_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "m.toml"
    assert main(["models", "--from", SEED_002, "--save", str(out), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    model, _ = read_toml_model(str(out), out.read_bytes())
    assert (model.name, model.layers, model.hidden) == ("Llama 405B", 128, 16384)
    assert values["exact"] is True
    assert values["model"]["hidden"] == 16384
    assert (values["layout"]["tp"], values["layout"]["pp"], values["layout"]["microbatches"]) == (8, 16, 16)
    assert values["aicb"]["mode"] == "aiob"
    assert values["first_difference"] is None
    assert values["command"].startswith("wltui export --as-aicb aiob --aicb-args ")


def test_what_is_no_file_of_aicb_is_not_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "m.toml"
    assert main(["models", "--from", SEED_001, "--save", str(out)]) == 2
    assert "a name that AICB does not write" in capsys.readouterr().err
    assert not out.exists()


def test_check_names_the_model_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", SEED_002]) == 0
    said = [line for line in capsys.readouterr().out.split("\n") if "aicb-model" in line]
    assert len(said) == 1
    assert "Llama 405B: 128 layers, hidden 16384" in said[0]


# Presets of AICB's scripts: what each is recovered to, on layouts that its golden files have not.
PRESETS = (
    "--num_layers 36 --hidden_size 4096 --num_attention_heads 32 --vocab_size 50257",
    "--num_layers 80 --hidden_size 8192 --num_attention_heads 64 --vocab_size 32000 --ffn_hidden_size 28672",
    "--num_layers 32 --hidden_size 4096 --num_attention_heads 32 --vocab_size 32000 --ffn_hidden_size 14336 "
    "--moe_enable --num_experts 8 --moe_router_topk 2",
    "--num_layers 61 --hidden_size 18432 --num_attention_heads 128 --vocab_size 129280 --frame DeepSeek "
    "--moe_enable --ffn_hidden_size 2048 --num_experts 256 --moe_router_topk 8 --n_shared_expert 1 "
    "--aiob_enable",
)


@pytest.mark.parametrize("layout", [(1, 4, 16), (2, 2, 4), (8, 1, 2)], ids=str)
@pytest.mark.parametrize("preset", PRESETS, ids=["gpt 7B", "llama 65B", "mixtral", "deepseek preset"])
def test_presets_are_recovered_on_any_layout(preset: str, layout: tuple[int, int, int]) -> None:
    tp, pp, dp = layout
    degrees = f"--tensor_model_parallel_size {tp} --pipeline_model_parallel {pp} --world_size {tp * pp * dp}"
    command = f"{preset} {degrees} --enable_sequence_parallel --global_batch {4 * dp} --seq_length 4096"
    found = of_text(text_of(command))
    assert found.exact
    assert found.config is not None
    meant = AicbArguments(command).config
    assert (found.config.hidden, found.config.ffn, found.config.layers, found.config.vocab) == (
        meant.hidden, meant.ffn, meant.layers, meant.vocab,
    )  # fmt: skip
