"""Points on workers of a real Dask scheduler, and in jobs that dask-jobqueue asks Slurm for: the same lines.

A scheduler and its workers are processes started from the package; without it these are
skipped by name.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.sweeping.clusters import cluster_engine, slurm_arguments, slurm_cluster
from simcore.sweeping.engines import HereEngine
from simcore.sweeping.results_file import ResultsFile
from simcore.sweeping.running import Sweep
from tests.command_line.running import ROOT, environment
from tests.sweep.test_pruning import _RULE, _SOME, _evaluator, _swept

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
distributed = pytest.importorskip("distributed", reason="Dask is not installed: the extra wltui[dask]")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _started(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
        cwd=ROOT, env=environment() | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


@pytest.fixture
def scheduler() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler on loopback; the processes of two workers and, last, its own."""
    port = _free_port()
    processes = [_started("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard",
                          "--no-show")]  # fmt: skip
    workers = [
        _started("dask_worker", f"tcp://127.0.0.1:{port}", "--nthreads", "1", "--no-nanny", "--no-dashboard",
                 "--death-timeout", "60")
        for _ in range(2)
    ]  # fmt: skip
    try:
        client = distributed.Client(f"tcp://127.0.0.1:{port}", timeout=60, set_as_default=False)
        client.wait_for_workers(2, timeout=60)
        client.close()
        yield f"dask://127.0.0.1:{port}", [*workers, *processes]
    finally:
        for process in (*workers, *processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, list[bytes]]:
    """The lines of the sweep as one process writes them, every point run or some left out."""
    folder = tmp_path_factory.mktemp("whole")
    found = {}
    for prunes in (False, True):
        _swept(folder / str(prunes), _RULE if prunes else None)
        found[prunes] = sorted((folder / str(prunes)).read_bytes().splitlines())
    return found


def test_workers_write_the_same_lines_also_when_one_is_killed(
    scheduler: tuple[str, list[subprocess.Popen[bytes]]], whole: dict[bool, list[bytes]], tmp_path: Path
) -> None:
    address, workers = scheduler
    _swept(tmp_path / "left out", _RULE, cluster_engine(address))
    assert sorted((tmp_path / "left out").read_bytes().splitlines()) == whole[True]
    evaluator = _evaluator(_SOME, None)
    engine = cluster_engine(address)
    with ResultsFile(str(tmp_path / "killed"), evaluator.definition.sweep, resume=False) as file:
        for count, _ in enumerate(Sweep(evaluator, engine, None, file).points()):
            if count == 5:
                workers[0].kill()
                workers[0].wait()
    engine.close()
    assert sorted((tmp_path / "killed").read_bytes().splitlines()) == whole[False]


def test_a_scheduler_that_dies_is_one_line_and_the_sweep_goes_on_later(
    scheduler: tuple[str, list[subprocess.Popen[bytes]]],
    whole: dict[bool, list[bytes]],
    tmp_path: Path,
) -> None:
    address, processes = scheduler
    evaluator = _evaluator(_SOME, None)
    with (
        import_module("dask.config").set({"distributed.comm.timeouts.connect": "1s"}),
        ResultsFile(str(tmp_path / "killed"), evaluator.definition.sweep, resume=False) as file,
    ):
        engine = cluster_engine(address)
        points = Sweep(evaluator, engine, None, file).points()
        next(points)
        processes[-1].kill()
        processes[-1].wait()
        with pytest.raises(UsageError, match="--resume"):
            list(points)
        engine.close()
    with ResultsFile(str(tmp_path / "killed"), evaluator.definition.sweep, resume=True) as file:
        for _ in Sweep(evaluator, HereEngine(), None, file).points():
            pass
    assert sorted((tmp_path / "killed").read_bytes().splitlines()) == whole[False]


def test_a_scheduler_without_workers_is_said(tmp_path: Path) -> None:
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address=None, scheduler_port=0, protocol="tcp"
        ) as cluster,
        pytest.raises(UsageError, match="has no workers"),
    ):
        cluster_engine(cluster.scheduler_address.replace("tcp://", "dask://"))


def test_a_local_cluster(whole: dict[bool, list[bytes]], tmp_path: Path) -> None:
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, scheduler_port=0,
        protocol="tcp",
    ) as cluster:  # fmt: skip
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        _swept(tmp_path / "found", None, cluster_engine(address))
    assert sorted((tmp_path / "found").read_bytes().splitlines()) == whole[False]


_JOBS = """\
queue = "gpu"
account = "alice"
cores = 2
memory = "4GB"
walltime = "00:30:00"
processes = 1
jobs = 1
interface = "lo"
prologue = ["export HELLO=1"]
directives = ["--exclusive"]
"""


def test_the_script_for_slurm_asks_for_what_the_file_says(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed: the extra wltui[dask]")
    path = tmp_path / "jobs.toml"
    path.write_text(_JOBS)
    arguments, jobs = slurm_arguments(str(path))
    assert jobs == 1
    cluster = slurm_cluster(arguments)
    try:
        script = cluster.job_script()
    finally:
        cluster.close()
    for line in ("#SBATCH -p gpu", "#SBATCH -A alice", "#SBATCH --cpus-per-task=2", "#SBATCH --mem=4G",
                 "#SBATCH -t 00:30:00", "#SBATCH --exclusive", "export HELLO=1"):  # fmt: skip
        assert line in script.splitlines()
    assert "distributed.cli.dask_worker tcp://127.0.0.1:" in script
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


_SBATCH = """#!/bin/sh
# Slurm's part: it takes the script, says its number, and runs it somewhere.
cp "$1" "{folder}/script"
# Who submitted it takes it away then.
setsid bash "{folder}/script" > "{folder}/log" 2>&1 &
echo $! > "{folder}/pid"
echo "Submitted batch job 7"
"""
_SCANCEL = """#!/bin/sh
kill -- -$(cat "{folder}/pid") 2>/dev/null
exit 0
"""


def test_jobs_that_are_submitted_run_the_points(
    whole: dict[bool, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script that is handed to sbatch is run as it stands; Slurm itself is not here."""
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed: the extra wltui[dask]")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("sbatch", _SBATCH), ("scancel", _SCANCEL)):
        tool = tools / name
        tool.write_text(text.format(folder=tmp_path))
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    path = tmp_path / "jobs.toml"
    path.write_text(_JOBS)
    engine = cluster_engine(f"slurm:{path}")
    try:
        _swept(tmp_path / "found", None, engine)
        assert sorted((tmp_path / "found").read_bytes().splitlines()) == whole[False]
        assert "#SBATCH -p gpu" in (tmp_path / "script").read_text()
    finally:
        subprocess.run([str(tools / "scancel"), "7"], check=False)
    deadline = time.monotonic() + 20
    pid = int((tmp_path / "pid").read_text())
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spark://x", "dask://HOST:PORT or slurm:FILE.toml is expected"),
        ("dask://head", "dask://HOST:PORT is expected, like dask://head:8786"),
        ("dask://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1"),
        ("slurm:/nowhere.toml", "there is no such file"),
    ],
)
def test_an_engine_that_cannot_be(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.sweeping.clusters._CONNECT_TIMEOUT_S", 2)
    with pytest.raises(UsageError, match=re.escape(said)):
        cluster_engine(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cores = 2", "memory, jobs missing; a job needs cores, memory, jobs"),
        ('quue = "gpu"', "found quue, expected some of account"),
        ("cores = 0", "cores: found 0, expected a whole number above 0"),
        ('queue = "a\\nb"', "expected a text of one line"),
        ("queue =", "this is not TOML"),
    ],
)
def test_a_file_of_jobs_that_cannot_be(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=re.escape(said)):
        slurm_arguments(str(path))
