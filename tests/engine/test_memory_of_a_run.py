"""A run that needs more memory than is free is refused before it takes any.

Seen to fail: with `_CLASS_OP = 20` the estimate; without `_check_memory` in
`fold`, and without `_check_stages`, what is refused only after it was taken.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import pytest

from simcore import simulation
from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.sources.inputs import open_input
from simcore.workload import Workload, memory
from tests.command_line.running import HEADER, ROOT, SEED_002, Done, environment, process, workload_file
from tests.findings import facts, finding
from tests.says import figures

SMALL = "mlp_layer -1 5 ALLREDUCE 1000 6 NONE 0 7 ALLREDUCE 500 100"
# Runs `wltui`, then prints the most memory that the process ever had, kB (Linux).
PEAK = """
import re, sys
from tui.cli import main
status = main(sys.argv[1:])
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
sys.exit(status)
"""
needs_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells")


def seed() -> Workload:
    opened = open_input(str(ROOT / SEED_002))
    assert isinstance(opened, Workload)
    return opened


def limited(kilobytes: int, *words: str) -> Done:
    """`wltui` with a limit on its address space."""
    command = 'ulimit -v "$1"; shift; exec "$@"'
    return process(["bash", "-c", command, "-", str(kilobytes), *words], environment())


@functools.cache
def peak_bytes(*words: str) -> int:
    done = process([sys.executable, "-c", PEAK, *words], environment())
    return int(done.stdout.splitlines()[-1]) * 1024


@needs_linux
@pytest.mark.parametrize(
    ("flags", "estimate"),
    [
        (
            ["--jitter", "0.1", "--world", "128", "--microbatches", "4"],
            memory.run_bytes(10440, 83520, 128, 128),
        ),
        (["--microbatches", "50"], memory.run_bytes(126200, 126200, 16)),
        (["--dialect", "astra-sim-1", "--passes", "4"], memory.run_bytes(9840, 9840, 1, queued=True)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_estimate_is_within_a_factor_of_two(flags: list[str], estimate: int) -> None:
    grown = peak_bytes("report", SEED_002, *flags) - peak_bytes("report", SEED_002, "--world", "128")
    assert estimate / 2 < grown < estimate * 2


@needs_linux
def test_ranks_that_are_listed_take_what_is_said(tmp_path: Path) -> None:
    path = workload_file(tmp_path, SMALL)
    grown = peak_bytes("report", path, "--world", "4096", "--no-fold") - peak_bytes("report", path)
    estimate = memory.run_bytes(5, 5 * 4096, 4096, 4096, has_equal_ranks=True)
    assert estimate / 2 < grown < estimate * 2


FEWER = "fewer --microbatches would need less"
REFUSED = [
    ({"no_fold": True, "world": 2048}, "124.0 MB", "2048 ranks one by one have 5191680 ops",
     "without --no-fold equal ranks are simulated once"),
    ({"jitter": 0.1}, "265.3 MB", "1024 ranks one by one have 2595840 ops",
     "without --jitter equal ranks are simulated once"),
    ({"microbatches": 1000}, "349.5 MB", "1000 micro-batches on 16 stages have about 2496400 ops", FEWER),
    ({"schedule": "layer-loop", "passes": 1000}, "233.9 MB", "1000 passes of 557 rows have about 1671000 ops",
     "fewer --passes would need less"),
    pytest.param(
        {"schedule": "layer-loop", "passes": 50}, "201.8 MB", "16 rank classes with 1968000 ops",
        "fewer micro-batches or passes would need less", marks=pytest.mark.slow,
    ),
    ({"dialect": "astra-sim-1", "passes": 1000}, "1.3 GB", "1000 passes of 557 rows have about 1671000 ops",
     "fewer --passes would need less"),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "needed", "what", "hint"), REFUSED)
def test_a_run_that_would_need_more_than_is_free_says_so(
    monkeypatch: pytest.MonkeyPatch, parameters: dict[str, Any], needed: str, what: str, hint: str
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: 100 * 10**6)
    with pytest.raises(UsageError) as raised:
        simulate(seed(), Parameters(**parameters))
    assert facts(str(raised.value)) == facts(f"{needed}; 100.0 MB; {what}; {hint}")


def test_ranks_that_fit_no_grid_are_refused_before_they_are_listed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened = open_input(workload_file(tmp_path, SMALL))
    assert isinstance(opened, Workload)
    monkeypatch.setattr(memory, "free_bytes", lambda: 40 * 10**6)
    dim = ("ring:5:100:10", "ring:13107:10:10")
    with pytest.raises(UsageError) as raised:
        simulate(opened, Parameters(world=65535, tp=3, dim=dim))
    assert facts(str(raised.value)) == "72.1 MB, 40.0 MB, 65535, --world"


def test_a_file_that_is_too_large_by_itself_is_an_error_of_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**6)
    monkeypatch.setattr(memory, "_ALWAYS_THERE", 0)
    with pytest.raises(InputError) as raised:
        simulate(seed(), Parameters())
    assert finding(str(raised.value)) == (
        f"{ROOT / SEED_002}:1:1: error cannot-simulate 5.7 MB, 1.0 MB, 16, 16, 40336, --microbatches"
    )


def test_where_nothing_tells_what_is_free_every_run_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: None)
    monkeypatch.setattr(memory, "_ALWAYS_THERE", 0)
    assert simulate(seed(), Parameters()).step_time_ns


def test_memory_that_ends_during_a_run_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(simulation, "RunPricing", run_out)
    with pytest.raises(UsageError) as raised:
        simulate(seed(), Parameters())
    assert "not enough" in str(raised.value)


@needs_linux
@pytest.mark.parametrize("flags", [["--no-fold", "--world", "3072"], ["--microbatches", "1000"]])
def test_under_a_limit_nothing_is_taken_before_it_is_refused(flags: list[str]) -> None:
    done = limited(170_000, sys.executable, "-c", PEAK, "report", SEED_002, *flags)
    assert done.returncode == 2
    assert done.stderr.startswith("wltui: the run ")
    assert [one[-2:] for one in figures(done.stderr)[:2]] == ["MB", "MB"]
    assert done.stderr.count("\n") == 1
    usual = peak_bytes("report", SEED_002, "--world", "128")
    assert int(done.stdout) * 1024 < usual + 15 * 10**6


@pytest.mark.slow
@needs_linux
def test_a_file_for_which_there_is_no_memory_is_one_line(tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    large.write_text(HEADER + "\n1\n" + "x" * 60_000_000, encoding="ascii")
    done = limited(120_000, sys.executable, "-m", "tui", "check", str(large))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "not enough memory" in done.stderr


MEMINFO = "MemTotal:  100 kB\nMemFree:  5 kB\nMemAvailable:  60 kB\n"
GROUPS = {
    "no groups": ({}, 60 * 1024),
    "no limit": ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 60 * 1024),
    "the group's own": (
        {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "5000\n",
         "sys/fs/cgroup/a/b/memory.current": "3000\n",
         "sys/fs/cgroup/a/b/memory.stat": "inactive_file 500\n"},
        2500,
    ),
    "of a group around it": (
        {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "5000\n",
         "sys/fs/cgroup/a/memory.current": "4900\n", "sys/fs/cgroup/a/b/memory.max": "max\n"},
        100,
    ),
    "as a container sees it": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "7000\n",
         "sys/fs/cgroup/memory.current": "8000\n"},
        0,
    ),
    "version 1": (
        {"proc/self/cgroup": "4:cpu:/x\n3:hugetlb,memory:/c\n",
         "sys/fs/cgroup/memory/c/memory.limit_in_bytes": "9000\n",
         "sys/fs/cgroup/memory/c/memory.usage_in_bytes": "1000\n",
         "sys/fs/cgroup/memory/c/memory.stat": "inactive_file 9\ntotal_inactive_file 50\n"},
        8050,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_what_is_free_is_the_least_of_what_limits_it(tmp_path: Path, name: str) -> None:
    files, expected = GROUPS[name]
    for place, text in {"proc/meminfo": MEMINFO, **files}.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text, encoding="ascii")
    assert memory.free_bytes(str(tmp_path)) == expected


def test_a_system_that_tells_nothing_is_not_asked_again(tmp_path: Path) -> None:
    assert memory.free_bytes(str(tmp_path)) is None
