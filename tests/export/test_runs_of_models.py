"""What models alone have in exports: hybrid shards, copies to the host, pieces, uneven experts."""

import json
from pathlib import Path

import pytest

from tui.cli import main

HYBRID = "--model llama-3-8b --gpu h100 --world 16 --global-batch 16 --zero 3 --shard-size 8"
UNEVEN = "--model mixtral-8x7b --gpu h100 --world 4 --ep 4 --global-batch 4 --expert-imbalance lognormal:0.5"
PACKED = "--model llama-3-8b --gpu h100 --world 4 --global-batch 8 --seq-imbalance lognormal:0.5"
PIECES = "--model llama-3-8b --gpu h100 --world 4 --tp 2 --sequence-parallel on --overlap-tp --global-batch 4"


def exported(words: str, name: str, out: Path) -> int:
    return main(["export", *words.split(), "--format", name, "-o", str(out)])


@pytest.mark.parametrize("words", [HYBRID, f"{HYBRID} --offload 55", UNEVEN, PACKED, PIECES])
def test_timelines_are_written(words: str, tmp_path: Path) -> None:
    assert exported(words, "chrome", tmp_path / "run.json") == 0
    assert exported(words, "csv", tmp_path / "run.csv") == 0
    events = json.loads((tmp_path / "run.json").read_text("utf-8"))["traceEvents"]
    categories = {event["cat"].split(",")[0] for event in events if "cat" in event}
    assert ("copy" in categories) == ("--offload" in words)
    table = (tmp_path / "run.csv").read_text("utf-8")
    assert ("dp_shard" in table) == ("--shard-size" in words)


@pytest.mark.parametrize(
    "words", ["--model llama-3-8b --gpu h100 --world 4 --global-batch 8 --zero 3", HYBRID, UNEVEN, PACKED]
)
def test_execution_traces_take_the_same_step(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exported(words, "chakra", tmp_path / "set") == 0
    capsys.readouterr()
    steps = []
    for asked in ([str(tmp_path / "set")], words.split()):
        assert main(["report", "--json", *asked]) == 0
        steps.append(json.loads(capsys.readouterr().out)["step_time_ns"])
    assert steps[0] == steps[1]


@pytest.mark.parametrize(
    ("words", "name", "said"),
    [
        (f"{HYBRID} --offload 55", "chakra", "copies to the host's memory (--offload) have no node here"),
        (PIECES, "chakra", "without it the set would fit"),
        (PIECES, "simai", "--overlap-tp has no word in SimAI text"),
        (UNEVEN, "simai", "--expert-imbalance has no word in SimAI text"),
        (PACKED, "simai", "--seq-imbalance has no word in SimAI text"),
        (HYBRID, "simai", "collectives beside compute"),
    ],
)
def test_what_a_format_has_no_words_for_is_refused(
    words: str, name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exported(words, name, tmp_path / "out") != 0
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_inference_step_is_written_as_aicbs_and_takes_the_same_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--model llama-3-8b --gpu h100 --tp 4 --decode 16 --context 4096 --dim switch:4:341:100"
    assert exported(words, "simai", tmp_path / "w.txt") == 0
    assert "mode: 1" in (tmp_path / "w.txt").read_text("utf-8").splitlines()[0]
    capsys.readouterr()
    steps = []
    for asked in ([str(tmp_path / "w.txt"), "--dim", "switch:4:341:100"], words.split()):
        assert main(["report", *asked, "--json"]) == 0
        steps.append(json.loads(capsys.readouterr().out)["step_time_ns"])
    assert steps[0] == steps[1]


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("--global-batch 2", ["0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1"]),
        ("--decode 4 --context 10 --microbatches 2", ["0F0,0F1", "1F0,1F1"]),
    ],
)
def test_the_order_of_a_models_schedule_is_written(words: str, lines: list[str], tmp_path: Path) -> None:
    assert exported(f"--model llama-3-8b --pp 2 {words}", "schedule", tmp_path / "s.csv") == 0
    assert (tmp_path / "s.csv").read_text("utf-8").splitlines() == lines
