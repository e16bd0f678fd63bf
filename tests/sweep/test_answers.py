"""What a sweep answers: the fewest GPUs, the longest sequence, the largest micro-batch, the cheapest GPU."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.records import replace
from simcore.sweeping.answers import Answers, answer_sentences
from simcore.sweeping.point import Point
from simcore.sweeping.prices import read_prices, with_cost
from tests.command_line.running import Done, wltui_here
from tests.findings import named
from tests.sweep.made import made_point

_PRICES = {"h100": 2.5, "h200": 3.25, "b200": 7.0}


def sized(number: int, memory: int, **layout: object) -> Point:
    return replace(made_point(number, 5, memory), layout=layout)


def test_the_least_and_the_greatest_that_fit_are_named_with_why_the_next_does_not() -> None:
    points = [sized(0, 500, gpus=8), sized(1, 90, gpus=16), sized(2, 10, gpus=32)]
    (answer,) = answer_sentences(points, ["world"])
    assert named(answer) == ["16", "8"]
    points = [sized(0, 50, seq=8192), sized(1, 90, seq=16384), sized(2, 900, seq=32768)]
    (answer,) = answer_sentences(points, ["seq"])
    assert named(answer) == ["16 384", "32 768"]


def test_what_cannot_be_is_not_called_too_large() -> None:
    impossible = replace(made_point(1, None, microbatch_size=3), skipped="cannot be: 3 does not divide 8")
    (answer,) = answer_sentences([made_point(0, 5, microbatch_size=2), impossible], ["microbatch_size"])
    assert named(answer) == ["2", "3"]
    assert "memory" not in answer


def test_what_was_left_out_as_slow_fits() -> None:
    slow = replace(made_point(1, None, seq=16384), skipped="bound: takes 9 s at least")
    (answer,) = answer_sentences([made_point(0, 5, seq=8192), slow], ["seq"])
    assert named(answer) == ["16 384"]


def test_nothing_is_answered_that_is_not_asked_or_not_known() -> None:
    assert answer_sentences([made_point(0, 5, seq=8), made_point(1, 5, seq=16)], ["tp"]) == []
    assert answer_sentences([made_point(0, 5, seq=8)], ["seq"]) == []
    assert answer_sentences([sized(0, 500, gpus=8), sized(1, 500, gpus=16)], ["world"]) == []


def test_the_cheapest_gpu_is_that_of_all_points_in_any_order() -> None:
    chance = random.Random(5)
    points = [
        with_cost(made_point(index, chance.randint(5, 900), gpu=chance.choice([*_PRICES])), _PRICES)
        for index in range(60)
    ]
    least = min(points, key=lambda point: point.cost or 0)
    sentences = set()
    for _ in range(5):
        chance.shuffle(points)
        answers = Answers(["gpu"], _PRICES)
        for point in points:
            answers.add(point)
        sentences.add(*answers.sentences())
    (sentence,) = sentences
    assert sentence.split()[2] == f"{least.layout['gpu']}:"
    for gpu in _PRICES:
        cost = min(point.cost or 0 for point in points if point.layout["gpu"] == gpu)
        share = re.search(rf"{gpu} costs ([\d.]+) %", sentence)
        assert share is None or float(share[1]) == pytest.approx(100 * (cost / least.cost - 1), abs=0.06)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("h100 = 0\n", ":1:1: h100"),
        ("\nh100 = 'x'\n", ":2:1: h100"),
        ("h100 2\n", ":1:"),
        ("b200 = 3\n", "h100"),
    ],
)
def test_a_file_of_prices_that_does_not_fit_is_refused_with_its_position(
    text: str, names: str, tmp_path: Path
) -> None:
    (tmp_path / "prices.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_prices(str(tmp_path / "prices.toml"), ["h100"])
    assert names in str(caught.value)


# -- the command -------------------------------------------------------------------------

_SWEEP = ("sweep", "--model", "llama-3-8b", "--global-batch", "16", "--seq", "2048", "--jobs", "1", "--json")
_NARROW = ("--layouts", "--where", "cp == 1 and recompute == full and microbatch_size == 1")


def swept(*words: str) -> tuple[dict, list[str]]:  # type: ignore[type-arg]
    done: Done = wltui_here(*_SWEEP, *words)
    page = json.loads(done.stdout)
    return page, page["sentences"]


def test_the_fewest_gpus_of_a_pruned_sweep_are_those_of_all_layouts() -> None:
    words = ("--world", "1,2,4", *_NARROW, "--memory-limit", "50GB", "--by", "world", "--top", "1")
    pruned, sentences = swept(*words)
    whole, _ = swept(*words, "--exhaustive")
    fewest = min(point["gpus"] for family in whole["best"] for point in family["points"])
    assert pruned["simulated"] < whole["simulated"]
    assert named(sentences[0])[0] == str(fewest) == "4"


def test_the_cheapest_gpu_of_a_pruned_sweep_is_that_of_all_layouts(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text("".join(f"{gpu} = {price}\n" for gpu, price in _PRICES.items()))
    words = ("--world", "4", *_NARROW, "--gpu", "h100,h200,b200", "--prices", str(tmp_path / "prices.toml"))
    pruned, sentences = swept(*words, "--top", "1")
    whole, whole_sentences = swept(*words, "--exhaustive", "--top", "1")
    assert pruned["by"] == "gpu"
    assert pruned["simulated"] < whole["simulated"]
    assert sentences[0] == whole_sentences[0]
    costs = {family["family"]: family["points"][0]["cost"] for family in whole["best"]}
    steps = {family["family"]: family["points"][0]["step_time_ns"] for family in whole["best"]}
    for gpu, cost in costs.items():
        assert cost == pytest.approx(_PRICES[gpu] * 4 * steps[gpu] / 3.6e12)
    assert sentences[0].split()[2] == f"{min(costs, key=lambda gpu: costs[gpu])}:"


@pytest.mark.parametrize(
    "words",
    [("--world", "8,16", "--layouts"), ("--world", "8", "--vary", "tp=1,2", "--price", "2"),
     ("--world", "8", "--vary", "gpu=h100,gb200")],
)  # fmt: skip
def test_prices_that_do_not_answer_are_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text("h100 = 2.5\n")
    done = wltui_here(*_SWEEP, *words, "--prices", str(tmp_path / "prices.toml"))
    assert done.returncode == 2
    assert "--price" in done.stderr
