"""Logs of trainers: steps without ranks, of which the one of median length opens.

Planted, one at a time: a time in s is taken as ms; a step that comes again counts twice; the last step opens.
Each of them failed here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simcore.diagnostics import InputError
from simcore.kineto import cache
from simcore.render.report.pages import run_json, run_page
from simcore.workload.formats import head_of, training_log
from tests.kineto.test_span_csv import found, opened, results, written
from tui.cli import main

MEGATRON = " iteration {step:8d}/     500 | consumed samples: 80 | elapsed time per iteration (ms): {ms} |"
NEMO = "Training epoch 0, iteration 5/99 | global_step: {step} | loss: 2.1 | train_step_timing in s: {s}"


def log(folder: Path, *ms: float, name: str = "train.log") -> str:
    lines = [MEGATRON.format(step=10 * at, ms=one) for at, one in enumerate(ms, 1)]
    return written(folder, "\n".join(["> setting up", *lines, "done"]), name)


@pytest.mark.parametrize("name", ["megatron.log", "nemo.log", "torchtitan.log"])
def test_the_step_that_is_shown_is_the_median_one_of_the_table(name: str) -> None:
    run = results(str(CASES / name))
    table = run.step_table
    assert table is not None
    assert run.measured.shown_step == table.steps[table.median_row]
    assert run.step_time_ns == table.median_ns


def test_a_log_has_the_steps_that_it_prints(tmp_path: Path) -> None:
    values = run_json(results(log(tmp_path, 12.5, 30, 11), step="all"))
    assert [(step["step"], step["ns"]) for step in values["steps"]] == [
        (10, 12_500_000), (20, 30_000_000), (30, 11_000_000),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [MEGATRON.format(step=7, ms="1250.0"), NEMO.format(step=7, s="1.25"), NEMO.format(step=7, s="125e-2")],
)
def test_the_time_of_a_step_is_in_the_unit_of_its_trainer(tmp_path: Path, line: str) -> None:
    run = opened(written(tmp_path, f"{line}\n"))
    assert run.recorded is not None
    assert (run.recorded.step, run.step_time_ns, run.recorded.format) == (7, 1_250_000_000, "training-log")


def test_steps_of_a_log_with_stamps_last_from_line_to_line(tmp_path: Path) -> None:
    """The first has no line before it; ten steps between two lines share their time."""
    lines = [
        f"[rank0]:[titan] 2025-06-04 23:59:{second},{ms:03d} - root - INFO - \x1b[31mstep: {step:2d}  "
        "\x1b[32mloss:  8.1309  tps: 1,234"
        for step, second, ms in ((1, 10, 0), (2, 11, 500), (12, 31, 500))
    ]
    values = run_json(results(written(tmp_path, "\n".join(lines)), step="all"))
    assert [(step["step"], step["ns"]) for step in values["steps"]] == [
        (2, 1_500_000_000),
        (12, 2_000_000_000),
    ]


def test_the_step_of_median_length_opens(tmp_path: Path) -> None:
    run = opened(log(tmp_path, 40, 10, 20, 90, 30))
    assert run.recorded is not None
    assert (run.recorded.step, run.step_time_ns) == (50, 30_000_000)


def test_a_step_that_comes_again_counts_once(tmp_path: Path) -> None:
    lines = [MEGATRON.format(step=step, ms=10 * at) for at, step in enumerate((1, 2, 2, 3), 1)]
    path = written(tmp_path, "\n".join(lines))
    run = opened(path, step="all")
    assert [one.code for one in found(path) if one.code == "repeated-step"] == ["repeated-step"]
    assert run.step_time_ns == (10 + 20 + 40) * 10**6


@pytest.mark.parametrize(("ms", "status"), [(1010.0, 0), (1030.0, 1)])
def test_two_logs_are_compared_by_their_median_steps(tmp_path: Path, ms: float, status: int) -> None:
    before = log(tmp_path, 1000, 1000, 5000, name="a.log")
    after = log(tmp_path, 9000, ms, ms, name="b.log")
    assert main(["compare", before, after, "--fail-if-slower", "2%"]) == status


# Lines as the trainers print them: a file, the figures of its steps.
FIGURES = [
    (
        "megatron.log",
        [
            {"loss": 2.02153, "tflops": 663.5, "memory_bytes": 2048 * 2**20},
            {"loss": 1.5, "tflops": 231.9, "tokens_per_second": 4711.5},
        ],
    ),
    ("nemo_bar.log", [{"loss": 11.5}, {"loss": 10.25}]),
    ("nemo.log", [{"loss": 14.66, "tokens_per_second": 10730.0, "memory_bytes": 70833405952}] * 2),
    (
        "torchtitan.log",
        [{"loss": 7.62585, "tokens_per_second": 10050, "tflops": 1314.71, "memory_bytes": 2**29}] * 2,
    ),
]
CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize(("name", "figures"), FIGURES)
def test_what_a_line_states_of_its_step_is_in_its_steps(name: str, figures: list[dict[str, float]]) -> None:
    run = results(str(CASES / name), step="all")
    steps = run_json(run)["steps"]
    names = ("loss", "tokens_per_second", "tflops", "memory_bytes")
    assert [{name: step[name] for name in names if name in step} for step in steps] == figures
    page = run_page(run)
    assert all(f"{step['loss']:.5g}" in page for step in steps)


def test_a_loss_that_is_no_number_is_not_stated(tmp_path: Path) -> None:
    lines = [
        MEGATRON.format(step=step, ms="1250.0") + " lm loss: nan | throughput per GPU (TFLOP/s/GPU): inf |"
        for step in (1, 2)
    ]
    for step in run_json(results(written(tmp_path, "\n".join(lines)), step="all"))["steps"]:
        assert not {"loss", "tflops"} & set(step)


@pytest.mark.parametrize("piece", [1, 7, 100])
def test_a_log_that_comes_in_pieces_has_the_same_steps(piece: int) -> None:
    """Of each trainer; a line is read once it has its end."""
    for name, _ in FIGURES:
        data = "caf\N{LATIN SMALL LETTER E WITH ACUTE}\r\n".encode() + (CASES / name).read_bytes().rstrip()
        whole = training_log.read("log", data)[0]
        reader = training_log.LogReader("log")
        for at in range(0, len(data), piece):
            reader.feed(data[at : at + piece])
        assert reader.finish()[0] == whole


def test_a_log_before_its_first_step_is_known_as_one() -> None:
    head = head_of(b"using world size: 8\n------------------------ arguments ------------------------\n")
    assert training_log.FORMATS[0].sniff(head)
    with pytest.raises(InputError, match="expected lines such as"):
        training_log.read("log", b"[titan] 2025-06-04 14:02:03,456 - root - INFO - step:  1  loss:  8.1\n")


def test_a_model_is_fitted_to_the_median_step_of_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log(tmp_path, 1100, 1500, 9000)
    words = ["calibrate", "--model", "llama-3-8b", "--gpu", "h100", "--world", "8", "--tp", "2"]
    assert main([*words, "--global-batch", "8", "--measured-step", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measured_step_ns"] == 1_500_000_000
    assert main([*words, "--measured-step", str(tmp_path / "none.log")]) == 2


def test_a_kept_log_has_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(cache, "_LEAST_BYTES", 1)
    monkeypatch.setattr(cache, "_ENDS", 16)
    text = "".join(f"{MEGATRON.format(step=step, ms=100)} lm loss: {step}.5 |\n" for step in range(1, 2000))
    path = written(tmp_path, text, "train.log")
    steps = [run_json(results(path, step="all"))["steps"]]
    assert list((tmp_path / "state").rglob("*.columns"))
    monkeypatch.setattr(training_log.FORMATS[0], "spans", None)
    steps.append(run_json(results(path, step="all"))["steps"])
    assert steps[0] == steps[1]
    assert steps[1][8]["loss"] == 9.5
