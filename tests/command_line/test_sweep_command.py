"""`wltui sweep` as a user has it: its page, its files, what stops it, and what its points are worth."""

from __future__ import annotations

import csv
import io
import json
import random
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from simcore.sweeping import running
from simcore.sweeping.best_line import is_best_line
from simcore.sweeping.results_file import ResultsReader
from tests.command_line.running import ROOT, SEED_001, SEED_002, Done, environment, wltui, wltui_here
from tests.says import figures, said

_SMALL = ("sweep", "--model", "llama-3-8b", "--world", "16", "--global-batch", "32", "--seq", "2048")
_AXES = ("--vary", "tp=1,2,3,4,8", "--vary", "pp=1..4*2", "--vary", "recompute=none,full")


def swept(*words: str) -> Done:
    """A sweep in this process."""
    return wltui_here(*words, "--jobs", "1")


def test_a_sweep_says_what_is_worth_running_and_what_cannot_be() -> None:
    done = wltui(*_SMALL, *_AXES, "--where", "tp*pp <= 16", "--zero", "1", "--price", "2.5")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "llama-3-8b: 28 points, 22 simulated"
    said(lines, "  6 cannot be", "world 16", "tp 3")
    said(lines, "  2 more", "--where")
    assert said(lines, "* on the front").endswith("time, memory, GPUs, cost")
    assert any(line.startswith("  wltui report --model llama-3-8b --world 16") for line in lines)
    assert any("All else equal," in line or "All of the best" in line for line in lines)


def test_json_and_csv_have_every_figure() -> None:
    page = json.loads(swept(*_SMALL, "--vary", "tp=1,2,4", "--by", "tp", "--top", "1", "--json").stdout)
    assert page["schema"] == "wltui.sweep-front/1"
    assert [family["family"] for family in page["best"]] == [2, 4]
    assert page["do_not_fit"] == 1
    assert all(point["fits" if "fits" in point else "skipped"] is None for point in page["front"])
    rows = list(csv.DictReader(io.StringIO(swept(*_SMALL, "--vary", "tp=1,2,3", "--csv").stdout)))
    assert [row["tp"] for row in rows] == ["1", "2", "3"]
    assert rows[2]["step_time_ns"] == ""
    assert rows[2]["skipped"].startswith("cannot be: ")


def test_a_sweep_says_what_its_fastest_takes_for_granted_as_its_report_does() -> None:
    done = swept(*_SMALL, "--vary", "tp=2,4", "--json")
    page = json.loads(done.stdout)
    command = shlex.split(page["best"][0]["points"][0]["command"])
    notes = json.loads(wltui_here(*command[1:], "--json").stdout)["diagnostics"]
    assumed = [
        note["message"]
        for note in notes
        if note["code"].endswith(("-assumed", "-default", "-missing")) or note["code"] == "model-priced"
    ]
    assert figures(said(assumed, "flash: on")) == ["--flash"]
    assert page["assumed"] == assumed
    # What was given is not among them.
    assert not any(words.startswith("seq:") for words in assumed)
    text = swept(*_SMALL, "--vary", "tp=2,4", "--gpu", "a100-80").stdout
    assert "\nTaken for granted " in text


def test_results_whose_input_is_gone_say_that_what_was_assumed_is_not_known(tmp_path: Path) -> None:
    workload, results = tmp_path / "w.txt", tmp_path / "r.jsonl"
    workload.write_bytes((ROOT / SEED_002).read_bytes())
    swept("sweep", str(workload), "--vary", "microbatches=1,2", "-o", str(results))
    assert "  no cluster given: assuming h100-8" in wltui_here(str(results)).stdout
    workload.unlink()
    said(wltui_here(str(results)).stdout.splitlines(), "  not known", "not open:")


@pytest.mark.slow
def test_points_of_unequal_work_have_the_time_of_a_micro_batch_beside_the_step() -> None:
    """The fastest has the longest step: 8 micro-batches are more work than 2."""
    file = str(ROOT / SEED_002)
    lines = swept("sweep", file, "--vary", "microbatches=2,8").stdout.splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("Fastest"))
    assert lines[head + 1].split() == ["step", "a", "micro-b.", "slower", "by", "GPUs", "micro-b."]
    # 11 050 ms / 8 and 8 257 ms / 2, as their reports say.
    assert "11.050 s" in lines[head + 2]
    assert "1.381 s" in lines[head + 2]
    assert "4.128 s" in lines[head + 3]
    assert "1.381 s" in wltui_here("report", file, "--microbatches", "8").stdout
    # Equal work needs no such column, and with more replicas all of their micro-batches count.
    equal = swept("sweep", file, "--microbatches", "2", "--vary", "schedule=1f1b,gpipe")
    assert "a micro-b." not in equal.stdout
    more = swept("sweep", file, "--vary", "world=1024,2048", "--vary", "microbatches=2,4").stdout
    assert "all mb/s" in more


def test_a_sweep_over_numbers_of_unequal_micro_batches_says_that_they_are_unequal() -> None:
    words = "the micro-batches of the file are unequal: points with another number of them do other work"
    unequal, equal = (str(ROOT / name) for name in (SEED_001, SEED_002))
    assert words in swept("sweep", unequal, "--vary", "microbatches=1,2").stdout
    # The same work of all points, and equal micro-batches.
    assert words not in swept("sweep", unequal, "--vary", "schedule=1f1b,zb-h1").stdout
    assert words not in swept("sweep", equal, "--vary", "microbatches=2,4").stdout


def test_of_a_workload_file() -> None:
    words = ("--vary", "microbatches=4,8", "--vary", "schedule=1f1b,gpipe", "--json")
    done = swept("sweep", str(ROOT / SEED_001), *words)
    page = json.loads(done.stdout)
    assert page["simulated"] == 4
    best = page["best"][0]["points"][0]
    # Twice the micro-batches are more work, and less bubble for each.
    assert best["layout"]["microbatches"] == 8
    assert (best["tokens_per_s"], best["memory_peak_bytes"]) == (None, None)


@pytest.mark.slow
def test_a_point_takes_what_its_own_command_reports(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    axes = ("--vary", "tp=2,4", "--vary", "pp=1,2", "--vary", "recompute=none,full")
    swept(*_SMALL, *axes, "--vary", "schedule=none,gpipe,zb-v", "--vary", "zero=0,2", "-o", str(path))
    ran = [point for point in ResultsReader(str(path)).read_new() if point.is_run]
    assert len(ran) > 20
    for point in random.Random(5).sample(ran, 4):
        report = json.loads(wltui_here(*shlex.split(point.command)[1:], "--json").stdout)
        assert report["step_time_ns"] == point.step_time_ns
        assert round(report["throughput"]["tokens_per_s"]) == round(point.tokens_per_s or 0)
        assert max(stage["needed"] for stage in report["memory"]) == point.memory_peak_bytes


def test_what_is_in_a_file_is_said_again_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    words = (*_SMALL, "--vary", "tp=2,3,4", "--vary", "recompute=none,full", "-o", str(path))
    first = swept(*words)
    whole = path.read_bytes()
    again = wltui_here(str(path))
    assert again.stdout.partition(":")[2].splitlines()[1:] == first.stdout.partition(":")[2].splitlines()[1:]
    refused = swept(*words)
    assert (refused.returncode, figures(refused.stderr)[-1]) == (2, "--resume")
    path.write_bytes(whole[: len(whole) - 100])
    resumed = swept(*words, "--resume")
    assert "half written" in resumed.stderr
    assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())
    other = swept(*words, "--resume", "--zero", "1")
    assert (other.returncode, "another sweep" in other.stderr) == (2, True)


def test_a_file_to_go_on_with_that_is_not_there_is_said(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    done = swept(*_SMALL, "--vary", "tp=1,2", "-o", str(path), "--resume")
    assert (done.returncode, len(path.read_bytes().splitlines())) == (0, 2)
    said(done.stderr.splitlines(), str(path), "is not there")
    again = swept(*_SMALL, "--vary", "tp=1,2", "-o", str(path), "--resume")
    assert again.stderr == ""


@pytest.mark.slow
def test_a_time_limit_ends_a_sweep_and_says_what_was_not_come_to(monkeypatch: pytest.MonkeyPatch) -> None:
    # 5 ms for each look at the clock, one a layout.
    clock = SimpleNamespace(monotonic=partial(next, count(0.0, 0.005)))
    monkeypatch.setattr(running, "time", clock)
    words = ("sweep", "--model", "llama-3-8b", "--world", "32", "--global-batch", "128", "--layouts")
    done = swept(*words, "--time-limit", "1.5s", "--json")
    assert done.returncode == 0
    said(done.stderr.splitlines(), "layouts to look")
    said(done.stderr.splitlines(), "wltui:", "time limit", "1.5s")
    (stopped,) = json.loads(done.stdout)["stopped"]
    seen, layouts, simulated = map(int, figures(stopped))
    assert 0 < simulated <= seen <= 300 < layouts


def test_parts_are_put_together(tmp_path: Path) -> None:
    whole, merged = tmp_path / "whole", tmp_path / "merged"
    axes = ("--vary", "tp=1,2,3,4", "--vary", "pp=1,2", "--vary", "recompute=none,full", "--top", "2")
    swept(*_SMALL, *axes, "--prune", "-o", str(whole))
    parts = [str(tmp_path / f"part{index}") for index in (1, 2)]
    for index, part in enumerate(parts, 1):
        swept(*_SMALL, *axes, "--prune", "--shard", f"{index}/2", "-o", part)
    done = wltui_here("sweep", "-o", str(merged), "--merge", *parts)
    assert done.returncode == 0
    # What is known of the best is not put together.
    assert any(map(is_best_line, whole.read_bytes().splitlines()))
    points = [line for line in whole.read_bytes().splitlines() if not is_best_line(line)]
    assert sorted(merged.read_bytes().splitlines()) == sorted(points)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "jobs"), [(signal.SIGTERM, 130, "1"), (signal.SIGKILL, -9, "2")]
)
def test_a_signal_keeps_what_is_there(tmp_path: Path, number: signal.Signals, status: int, jobs: str) -> None:
    """And a sweep that was stopped ends with the lines of one that was not."""
    path = tmp_path / "r.jsonl"
    words = ["sweep", "--model", "llama-3-8b", "--world", "64", "--global-batch", "256", "--vary",
             "tp=1,2,4,8", "--vary", "pp=1..8*2", "--vary", "recompute=none,selective,full", "--vary",
             "zero=0,1", "--jobs", jobs, "-o", str(path)]  # fmt: skip
    running = subprocess.Popen(
        [sys.executable, "-m", "tui", *words], cwd=ROOT, env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not path.exists() or path.stat().st_size < 9_000):
        time.sleep(0.01)
    running.send_signal(number)
    # Ends with the last process that has the pipe: of a killed one none goes on.
    _, said = running.communicate(timeout=60)
    assert running.returncode == status
    if status == 130:
        assert "keeps them, and --resume goes on" in said
    reader = ResultsReader(str(path))
    before = reader.read_new()
    assert 5 < len(before) < 96
    done = wltui_here(*words, "--jobs", "1", "--resume")
    assert done.returncode == 0
    numbers = [point.index for point in ResultsReader(str(path)).read_new()]
    assert sorted(numbers) == list(range(96))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "llama-3-8b"), "nothing varies: --vary NAME=VALUES, or --layouts"),
        (("--vary", "tp=1,2"), "FILE, or --model NAME|FILE"),
        (("-", "--vary", "tp=1,2"), "a file is expected"),
        (("--model", "llama-3-8b", "--vary", "tp=1,2", "--resume"), "-o FILE names the results"),
        (("--model", "llama-3-8b", "--vary", "tp=1,2", "--shard", "3/2"), "--shard 3/2: I/N is expected"),
        (("--model", "llama-3-8b", "--vary", "tp=1,2", "--jobs", "0"), "--jobs 0: a whole number from 1"),
        (("--model", "llama-3-8b", "--vary", "tp=1,2", "--time-limit", "2 weeks"), "90s, 2m or 1h"),
        (("--model", "llama-3-8b", "--vary", "tp=1,2", "--by", "scheduel"), "did you mean schedule?"),
        (("--model", "llama-3-8b", "--vary", "tp=1,2", "--price", "-1"), "--price -1: $ of a GPU"),
        (("--model", "llama-3-8b", "--vary", "tp=1,2", "--json", "--csv"), "give one of the two"),
        (("--model", "llama-3-8b", "--layouts"), "--layouts: --world says"),
        ((str(ROOT / SEED_002), "--layouts"), "a model would fit"),
        (("--model", "llama-3-8b", "--vary", "tp=1", "--prune", "--exhaustive"), "give one of the two"),
        (("--merge", "/nowhere.jsonl"), "there is no such file"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(words: tuple[str, ...], said: str) -> None:
    done = wltui_here("sweep", *words)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


_SCRIPT = "fixtures/launch/llama3_8b_fp8.txt"


@pytest.mark.parametrize("project", ["megatron", "torchtitan", "deepspeed"])
def test_the_fastest_point_is_printed_as_launch_arguments(project: str, tmp_path: Path) -> None:
    words = ("sweep", "--from-args", _SCRIPT, "--vary", "tp=2,4", "--vary", "zero=1")
    best = json.loads(swept(*words, "--json").stdout)["best"][0]["points"][0]
    done = swept(*words, "--emit", project)
    assert done.returncode == 0
    path = tmp_path / "launch"
    path.write_text(done.stdout)
    model = ["--model", "llama-3-8b"] if project == "deepspeed" else []
    again = wltui_here("report", "--from-args", str(path), *model, "--json")
    if project == "megatron":
        assert done.stderr == ""
        assert json.loads(again.stdout)["step_time_ns"] == best["step_time_ns"]
        # What means nothing here stays.
        assert "--clip-grad 1.0" in done.stdout
    else:
        # Neither has ZeRO 1 of Megatron's, or its layout of tensors.
        assert done.stderr.startswith("wltui: ")
        assert again.returncode == 0


def test_what_a_sweep_varies_is_not_taken_from_launch_arguments() -> None:
    # Each of the best is run under nine further conditions: five of them, not ten.
    words = ("--layouts", "--json", "--where", "cp == 1 and zero == 1", "--top", "5")
    done = swept("sweep", "--from-args", _SCRIPT, *words)
    best = json.loads(done.stdout)["best"][0]["points"]
    assert len({point["layout"]["tp"] for point in best}) > 1
    assert {point["parameters"]["precision"] for point in best} == {"fp8"}
    assert {point["parameters"]["overlap_grad_reduce"] for point in best} == {True}
    # Each opens again by its own command, whatever the file says.
    again = wltui_here(*shlex.split(best[-1]["command"])[1:], "--json")
    assert json.loads(again.stdout)["step_time_ns"] == best[-1]["step_time_ns"]


def test_what_depends_on_what_a_sweep_varies_is_not_taken_either() -> None:
    script = "fixtures/launch/mixtral_8x7b_interleaved.txt"
    points = json.loads(swept("sweep", "--from-args", script, "--vary", "pp=2,8", "--json").stdout)
    assert points["simulated"] == 2
    assert {point["layout"]["virtual_stages"] for point in points["best"][0]["points"]} == {1}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--emit", "megatrn"), ["--emit", "megatron"]),
        (("--emit", "megatron", "--json"), ["--json", "--emit"]),
    ],
)
def test_other_forms_beside_emit_are_refused(words: tuple[str, ...], names: list[str]) -> None:
    done = swept("sweep", "--from-args", _SCRIPT, "--vary", "tp=1,2", *words)
    assert done.returncode == 2
    assert all(name in done.stderr for name in names)


def test_launch_arguments_beside_a_file_or_broken_are_refused() -> None:
    assert wltui_here("report", SEED_001, "--from-args", _SCRIPT).returncode == 2
    assert wltui_here("report", "--from-args", "nowhere.sh").returncode == 2
    done = wltui_here("report", "--from-args", "--num-layers 3x")
    assert (done.returncode, "3x" in done.stderr) == (1, True)
