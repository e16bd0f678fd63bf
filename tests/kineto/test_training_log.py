"""Logs of trainers: steps without ranks, of which the one of median length opens.

Planted, one at a time: a time in s is taken as ms; a step that comes again counts twice; the last step opens.
Each of them failed here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.render.report.pages import run_json
from tests.kineto.test_span_csv import found, opened, results, written
from tui.cli import main

MEGATRON = " iteration {step:8d}/     500 | consumed samples: 80 | elapsed time per iteration (ms): {ms} |"
NEMO = "Training epoch 0, iteration 5/99 | global_step: {step} | loss: 2.1 | train_step_timing in s: {s}"


def log(folder: Path, *ms: float, name: str = "train.log") -> str:
    lines = [MEGATRON.format(step=10 * at, ms=one) for at, one in enumerate(ms, 1)]
    return written(folder, "\n".join(["> setting up", *lines, "done"]), name)


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
