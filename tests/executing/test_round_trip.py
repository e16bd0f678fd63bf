"""A step written as execution traces comes back with the same step and accounts by wltui's rules."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simcore.chakra import find_set, open_set
from simcore.executing.execution_result import Execution
from simcore.parameters import Parameters
from simcore.program.schedules import SCHEDULES
from simcore.render.export import FORMATS, Request, save_folder
from simcore.runs.executed import ExecutedRun, run_execution
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.run import common_ns
from simcore.trace.track import COMMON_ACCOUNTS
from simcore.workload import open_workload

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
OLD, MOE, LARGE, TABLE = (
    str(FIXTURES / name)
    for name in (
        "000_gpt13b_tp4_old_header.txt",
        "001_moe_128npu_with_mistakes.txt",
        "002_gpt_1024npu.txt",
        "003_gpt2_large_op_table.txt",
    )
)


def written(path: str, parameters: Parameters, folder: Path) -> ExecutedRun:
    chosen = next(one for one in FORMATS if one.name == "chakra")
    export = chosen.build_export(Request(open_workload(path), parameters))
    assert export.files is not None
    save_folder(str(folder / "out"), export.files, False)
    found = find_set(str(folder / "out"))
    assert found is not None
    return run_execution(Execution(open_set(found), Parameters()))


def sums(run: SimulatedRun | ExecutedRun) -> Counter[str]:
    found: Counter[str] = Counter()
    for track in run.tracks:
        for name, ns in zip(COMMON_ACCOUNTS, common_ns(run, track), strict=True):
            found[name] += ns * len(track.ranks)
    return +found


# Two ranks of each kind of group on each of 4 stages: each rank is a file to write and to read.
FEW: dict[str, Any] = {"world": 16, "tp": 2, "pp": 4, "microbatches": 4}
CASES = [
    (TABLE, {}),
    pytest.param(OLD, {}, marks=pytest.mark.slow),
    pytest.param(MOE, {}, marks=pytest.mark.slow),
    # All its stages; each rank is a file to write and to read.
    pytest.param(LARGE, {"microbatches": 4, "world": 32, "tp": 1}, marks=pytest.mark.slow),
    (MOE, {"schedule": "zb-h1", "overlap_grad_reduce": True}),
    pytest.param(
        MOE,
        {"slow_rank": ("5=1.4",), "jitter": 0.05, "world": 16, "tp": 2},
        marks=pytest.mark.slow,
    ),
    pytest.param(MOE, {"schedule": "gpipe", "network": "shared"}, marks=pytest.mark.slow),
    pytest.param(OLD, {"overlap_param_gather": True}, marks=pytest.mark.slow),
    # While a stage waits for a message its gathers and reductions are under way beside: that is a bubble.
    (MOE, {"overlap_param_gather": True, "overlap_grad_reduce": True}),
    pytest.param(
        MOE,
        {"overlap_param_gather": True, "overlap_grad_reduce": True, "schedule": "zb-h1"},
        marks=pytest.mark.slow,
    ),
    pytest.param(
        LARGE,
        {"overlap_param_gather": True, "overlap_grad_reduce": True, **FEW},
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_schedule_comes_back(schedule: str, tmp_path: Path) -> None:
    asked = Parameters(schedule=schedule, virtual_stages=2, **FEW)
    simulated = SimulatedRun(simulate(open_workload(LARGE), asked))
    read = written(LARGE, asked, tmp_path)
    assert read.step_time_ns == simulated.step_time_ns
    assert sums(read) == sums(simulated)


@pytest.mark.sampled(2)
# Which cases are drawn depends on their names: not on where this checkout is.
@pytest.mark.parametrize(
    ("path", "asked"), CASES, ids=lambda value: Path(value).name[:3] if isinstance(value, str) else None
)
def test_step_and_accounts_come_back(path: str, asked: dict[str, object], tmp_path: Path) -> None:
    parameters = Parameters(**asked)  # type: ignore[arg-type]
    simulated = SimulatedRun(simulate(open_workload(path), parameters))
    read = written(path, parameters, tmp_path)
    assert read.step_time_ns == simulated.step_time_ns
    assert sums(read) == sums(simulated)
    assert sum(ns for _, _, ns in read.critical_path) == read.step_time_ns


def test_astra_sims_rules_run_what_is_written(tmp_path: Path) -> None:
    written(TABLE, Parameters(), tmp_path)
    folder = tmp_path / "out"
    found = find_set(str(folder))
    assert found is not None
    asked = Parameters(
        dialect="astra-sim-2",
        cluster=str(folder / "network.yml"),
        system=str(folder / "system.json"),
        comm_groups=str(folder / "comm_group.json"),
        remote_memory=str(folder / "memory.json"),
    )
    assert len(run_execution(Execution(open_set(found), asked)).executed.ranks) == 8
