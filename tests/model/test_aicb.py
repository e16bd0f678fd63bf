"""AICB's rows: files that it made itself, byte for byte, and its rules stated independently."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.model.aicb import aicb_text, read_times
from simcore.model.aicb_arguments import AicbArguments
from simcore.model.maker import ModelMaker
from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.workload.formats.simai_text import read
from tests.command_line.running import ROOT
from tests.model import aicb_statement as statement
from tests.says import said
from tui.cli import main

HERE = Path(__file__).parent / "aicb"
SHARED = ROOT.parent / "shared" / "golden" / "aicb"
TIMES = (HERE / "times.txt").read_bytes()


def index(folder: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads((folder / "index.json").read_text("utf-8"))["runs"]
    return runs


def text_of(command: str) -> str:
    """The file that a command line of AICB's makes, with the times of its own example."""
    arguments = AicbArguments(command)
    times = read_times("times.txt", TIMES, arguments.config.recompute) if arguments.aiob else None
    assert arguments.diagnostics == ()
    return aicb_text(arguments.config, times)


@pytest.mark.parametrize("run", index(HERE), ids=lambda run: run["file"][:3])
def test_a_file_of_aicb_is_made_byte_for_byte(run: dict[str, Any]) -> None:
    assert text_of(run["command"]) == (HERE / run["file"]).read_text("utf-8")


def test_every_file_of_aicb_in_shared_is_made_byte_for_byte() -> None:
    if not SHARED.exists():
        pytest.skip("../shared/golden/aicb is not here")
    runs = index(SHARED)
    equal = [text_of(run["command"]) == (SHARED / run["file"]).read_text("utf-8") for run in runs]
    assert (sum(equal), len(runs)) == (len(runs), 29)


def test_export_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = index(HERE)[0]
    out = tmp_path / "made.txt"
    words = ["--as-aicb", "plain", "--aicb-args", run["command"], "--format", "simai", "-o", str(out)]
    assert main(["export", *words]) == 0
    assert out.read_bytes() == (HERE / run["file"]).read_bytes()


def test_without_its_times_the_cells_are_ours_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = index(HERE)[1]
    out = tmp_path / "made.txt"
    command = run["command"].replace("tests/model/aicb/times.txt", "no/such.txt")
    assert (
        main(["export", "--as-aicb", "aiob", "--aicb-args", command, "--format", "simai", "-o", str(out)])
        == 0
    )
    said(capsys.readouterr().err.splitlines(), "no/such.txt", "no such file", "a100-80")
    mine, theirs = (path.read_text("utf-8").split("\n") for path in (out, HERE / run["file"]))
    cells = [[line.split("\t") for line in one] for one in (mine, theirs)]
    for row in (*cells[0], *cells[1]):
        for place in (2, 5, 8):
            if len(row) > place:
                row[place] = ""
    assert cells[0] == cells[1]


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    """What AICB can be asked for."""
    pick = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    sp, deepseek, aiob = pick(True, False), pick(True, False), pick(True, False)
    assume(aiob or not (sp and deepseek))
    tp, pp, data = pick(1, 2, 4, 8), pick(1, 2, 3, 5), pick(1, 2, 4, 8)
    moe = sp and pick(True, False)
    ep = pick(1, 2, 4) if moe else 1
    return {
        "world_size": tp * pp * data, "tp": tp, "pp": pp, "ep": ep, "aiob": aiob, "sp": sp,
        "deepseek": deepseek,
        "global_batch": pick(1, 8, 24, 64), "micro_batch": pick(1, 2, 3), "num_layers": pick(5, 8, 13),
        "seq_length": pick(512, 2048), "hidden_size": pick(1024, 1536, 5120),
        "vocab_size": pick(32000, 50257),
        "heads": pick(16, 20, 32), "ffn": pick(4096, 1000), "bias": pick(True, False),
        "recompute": pick(True, False), "moe": moe, "experts": pick(8, 16) if moe else 1,
        "topk": pick(1, 2, 6) if moe else 1, "dense": pick(0, 1, 3), "shared": pick(0, 1, 2),
        "mla": [pick(512, 1536), 512, 128, 64, 128],
    }  # fmt: skip


def command_of(o: dict[str, Any]) -> str:
    """The command line for these arguments."""
    words = [
        f"--{name} {o[name]}"
        for name in (
            "world_size",
            "global_batch",
            "micro_batch",
            "num_layers",
            "seq_length",
            "hidden_size",
            "vocab_size",
        )
    ]
    words += [
        f"--tensor_model_parallel_size {o['tp']} --pipeline_model_parallel={o['pp']}",
        f"--num_attention_heads {o['heads']} --ffn_hidden_size {o['ffn']}",
        f"--frame {'DeepSeek' if o['deepseek'] else 'Megatron'} --n_dense_layers {o['dense']}",
        f"--n_shared_expert {o['shared']} --q_lora_rank 7 --q_lora_rank {o['mla'][0]}",
    ]
    if o["moe"]:
        words.append(f"--moe_enable --num_experts {o['experts']} --moe_router_topk {o['topk']}")
        words.append(f"--expert_model_parallel_size {o['ep']}")
    flags = {"sp": "enable_sequence_parallel", "bias": "add_bias_linear",
             "recompute": "recompute_activations",
             "aiob": "aiob_enable"}  # fmt: skip
    return " ".join([*words, *(f"--{flag}" for name, flag in flags.items() if o[name])])


@given(arguments())
@settings(max_examples=100, deadline=None)
def test_any_arguments_give_the_rows_of_the_rules(o: dict[str, Any]) -> None:
    lines = text_of(command_of(o)).split("\n")
    expected = statement.rows(o)
    assert lines[0] == statement.header(o)
    assert lines[1:2] == [str(len(expected))]
    found = []
    for line in lines[2:-1]:
        cell = line.split("\t")
        assert (cell[1], cell[11]) == ("-1", "100")
        pairs = [(cell[place], int(cell[place + 1])) for place in (3, 6, 9)]
        found.append((cell[0], *pairs))
    assert found == expected


def test_a_model_gives_aicbs_rows_and_they_simulate_as_the_file_does() -> None:
    run = index(HERE)[0]
    given = Parameters(as_aicb="plain", aicb_args=run["command"])
    made = simulate(ModelMaker("AICB arguments", None).empty_workload(), given)
    file = read("file.txt", (HERE / run["file"]).read_bytes())
    assert made.step_time_ns == simulate(file, Parameters()).step_time_ns


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("--world_size 12 --tensor_model_parallel_size 8", "8 or 16 would fit"),
        ("--moe_enable --num_experts 8", "experts with sequence parallelism alone"),
        ("--num_layers many", "found many, expected a whole number"),
        ("--num_layers", "found nothing, expected a whole number"),
        ("--hidden_size 0", "found 0, expected 1 or more"),
        ("--frame DeepSpeed", "found DeepSpeed, expected Megatron or DeepSeek"),
        ("--num_layers 4 5", "found 5, expected an argument"),
        ("--num_layers 1000000000000 --global_batch 1000", "rows: at most"),
        ("--num_layers 'a", "No closing quotation"),
    ],
)
def test_what_cannot_be_names_what_would_fit(command: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        AicbArguments(command)


def test_plain_deepseek_with_sequence_parallelism_stops_as_aicb_does() -> None:
    arguments = AicbArguments("--frame DeepSeek --enable_sequence_parallel --global_batch 4")
    with pytest.raises(UsageError, match="aiob would fit"):
        aicb_text(arguments.config, None)


def test_an_argument_that_is_not_known_is_said() -> None:
    (found,) = AicbArguments("--num_layers 4 --no_such 3").diagnostics
    said([found.message], "--no_such", "not known", "AICB")
