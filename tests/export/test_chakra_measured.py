"""Measured runs written as execution traces come back as the replay with nothing changed: its step, and each
rank's compute, exposed communication by group and waits.

Planted in a copy of simcore, one at a time: what runs beside a collective forgotten at the wait for it; a
communicator of its own for every collective. Both failed here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.chakra import find_set, open_set
from simcore.diagnostics import Diagnostic, UsageError
from simcore.executing.execution_result import Execution
from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.render.export import FORMATS, Request, save_folder
from simcore.replay.replayed_run import ReplayedRun
from simcore.runs.executed import ExecutedRun, run_execution
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from simcore.sources.measured import NAMES
from simcore.trace.run import common_ns
from simcore.trace.track import COMMON_ACCOUNTS, to_common_accounts
from tests.kineto.test_second_replay import made_set
from tests.kineto.test_second_replay import written as profiler_files
from tests.measured.damaged import DAMAGED
from tests.measured.made_steps import Factors, Layout, actions, made_run, simulated, trace_text
from tests.measured.traces import step, write_set
from tests.says import figures
from tests.workload.texts import REPOSITORY, shared_folder

TRACE = str(REPOSITORY / "fixtures" / "004_megatron_rank7_trace.txt")
CHAKRA = next(one for one in FORMATS if one.name == "chakra")
# What execution traces have no word of their own for.
_THERE = {"kernel": "forward", "exposed copy": "exposed comm"}
_FILES = {
    "cluster": "network.yml",
    "system": "system.json",
    "comm_groups": "comm_group.json",
    "remote_memory": "memory.json",
}


def exported(run: MeasuredRun, folder: Path, **asked: object) -> dict[str, Diagnostic]:
    """Writes a run into a folder of this name; gives what is said, by code."""
    export = CHAKRA.build_export(Request(run, Parameters(**asked)))  # type: ignore[arg-type]
    assert export.files is not None
    save_folder(str(folder), export.files, True)
    return {one.code: one for one in export.diagnostics}


def read_again(folder: Path, **asked: object) -> ExecutedRun:
    found = find_set(str(folder))
    assert found is not None
    return run_execution(Execution(open_set(found), Parameters(**asked)))  # type: ignore[arg-type]


def expected(base: ReplayedRun) -> list[dict[str, int]]:
    found = []
    for one in base.accounts:
        sums: dict[str, int] = {}
        for name, ns in zip(
            COMMON_ACCOUNTS, to_common_accounts(one.total_ns, NAMES.common_indices), strict=True
        ):
            word = _THERE.get(name, name)
            sums[word] = sums.get(word, 0) + ns
        found.append(sums)
    return found


def accounts_of(read: ExecutedRun) -> list[dict[str, int]]:
    of_rank = {rank: track for track in read.tracks for rank in track.ranks}
    return [
        {
            name: ns
            for name, ns in zip(COMMON_ACCOUNTS, common_ns(read, of_rank[rank]), strict=True)
            if name not in _THERE
        }
        for rank in sorted(of_rank)
    ]


def assert_comes_back(run: MeasuredRun, folder: Path) -> ReplayedRun:
    said = exported(run, folder)
    assert "whole-microseconds" in said
    base = run_recording(run, Parameters()).base
    read = read_again(folder)
    assert read.step_time_ns == base.step_time_ns
    assert accounts_of(read) == expected(base)
    assert read_again(folder, comm_groups=str(folder / "comm_group.json")).step_time_ns == base.step_time_ns
    return base


def opened(path: Path | str) -> MeasuredRun:
    run = open_input(str(path))
    assert isinstance(run, MeasuredRun)
    return run


@pytest.fixture(scope="module", autouse=True)
def neither_disk_nor_processes() -> Iterator[None]:
    """What is written need not outlive the machine: hundreds of files wait for the disk, each 7 ms. Profiles
    are read in this process: starting others takes longer.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr("simcore.kineto.loading._cores", lambda: 1)
        yield


_LAYOUTS = st.builds(
    Layout, st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]), st.integers(1, 3),
    st.booleans(),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6))
def test_a_made_step_comes_back(layout: Layout, seed: int) -> None:
    steps = actions(layout, Random(seed))
    run = made_run(trace_text(layout, steps, simulated(steps, Factors())), layout)
    with TemporaryDirectory() as folder:
        assert_comes_back(run, Path(folder) / "out")


@settings(max_examples=60, deadline=None)
@given(DAMAGED)
def test_the_step_of_a_damaged_trace_comes_back(case: tuple[Layout, str]) -> None:
    layout, text = case
    run = made_run(text, layout)
    with TemporaryDirectory() as folder:
        exported(run, Path(folder) / "out")
        read = read_again(Path(folder) / "out")
        assert read.step_time_ns == run_recording(run, Parameters()).base.step_time_ns


@pytest.mark.parametrize("seed", range(12))
def test_a_made_profiler_set_comes_back(seed: int, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    run = opened(profiler_files(tmp_path / "set", made_set(seed)))
    assert run.of_devices
    assert_comes_back(run, tmp_path / "out")


def test_a_real_rank_comes_back(tmp_path: Path) -> None:
    assert_comes_back(opened(TRACE), tmp_path / "out")


@pytest.mark.parametrize(
    "name",
    [
        "rank_trace/wd4_tp1_pp2", "rank_trace/wd4_tp2_pp2", "rank_trace/wd8_tp2_pp4",
        "rank_trace/schedule_plan",
        "kineto/dlrm_8", "kineto/hta_sampled", "kineto/nccl_data.json.gz",
    ],
)  # fmt: skip
def test_real_runs_come_back(name: str, tmp_path: Path) -> None:
    folder = shared_folder("corpus")
    assert_comes_back(opened(folder / name), tmp_path / "out")


def test_the_tail_of_a_kernel_that_nothing_waits_for_is_not_written(tmp_path: Path) -> None:
    """It is 52 us of one rank here, which waits in another collective meanwhile."""
    run = opened(shared_folder("corpus") / "kineto/gloo_4")
    exported(run, tmp_path / "out")
    base = run_recording(run, Parameters()).base
    read = read_again(tmp_path / "out")
    assert read.step_time_ns == base.step_time_ns
    tails = []
    for found, other in zip(accounts_of(read), expected(base), strict=True):
        tails.append(other["exposed dp"] - found["exposed dp"])
        assert found == other | {"exposed dp": found["exposed dp"], "wait": other["wait"] + tails[-1]}
    assert tails == [0, 0, 52_232, 0]


def test_a_replay_with_other_durations_is_written(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank, 1000.0 + rank, stage=rank // 2) for rank in range(4)})
    run = opened(tmp_path)
    exported(run, tmp_path / "out", compute_scale=2.0)
    replayed = run_recording(run, Parameters(compute_scale=2.0))
    assert read_again(tmp_path / "out").step_time_ns == replayed.step_time_ns


def test_astra_sims_rules_run_a_measured_run(tmp_path: Path) -> None:
    layout = Layout(2, 2, 2, 2)
    steps = actions(layout, Random(3))
    run = made_run(trace_text(layout, steps, simulated(steps, Factors())), layout)
    exported(run, tmp_path / "out")
    beside = {name: str(tmp_path / "out" / file) for name, file in _FILES.items()}
    read = read_again(tmp_path / "out", dialect="astra-sim-2", **beside)
    assert [rank for rank, _, _ in read.executed.ranks] == list(range(layout.world))


def test_what_the_files_cannot_say_is_said(tmp_path: Path) -> None:
    layout = Layout(2, 1, 1, 1, asynchronous=True)
    steps = actions(layout, Random(3))
    said = exported(made_run(trace_text(layout, steps, simulated(steps, Factors())), layout), tmp_path / "a")
    assert figures(said["one-slot"].message)[0] == "2"
    layout = Layout(1, 2, 1, 1)
    steps = actions(layout, Random(3))
    said = exported(made_run(trace_text(layout, steps, simulated(steps, Factors())), layout), tmp_path / "b")
    assert not {"one-slot", "ranks-renumbered"} & said.keys()
    said = exported(opened(TRACE), tmp_path / "c")
    assert figures(said["ranks-renumbered"].message)[:2] == ["7", "0"]
    assert "one-slot" not in said


def test_ranks_and_orders_without_times_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a set has all ranks"):
        CHAKRA.build_export(Request(opened(TRACE), Parameters(), every_rank=True))
    (tmp_path / "plan.txt").write_text("stage:0:forward_step(batch_id=0)\nstage:1:recv_forward(batch_id=0)\n")
    with pytest.raises(UsageError, match="an order without times"):
        CHAKRA.build_export(Request(opened(tmp_path / "plan.txt"), Parameters()))


def test_with_a_network_named_a_rank_keeps_what_it_spends_in_communication_by_itself(tmp_path: Path) -> None:
    """No member of those collectives is in the trace: the network has no say in them."""
    run = opened(TRACE)
    exported(run, tmp_path / "out")
    base = run_recording(run, Parameters()).base
    named = {name: str(tmp_path / "out" / file) for name, file in _FILES.items()}
    read = read_again(tmp_path / "out", **named)
    assert read.step_time_ns == base.step_time_ns
    assert accounts_of(read) == expected(base)
    assert "priced-anew" not in {one.code for one in read.diagnostics}


def test_with_a_network_named_collectives_of_several_ranks_are_priced_anew_and_that_is_said(
    tmp_path: Path,
) -> None:
    layout = Layout(2, 1, 1, 1)
    steps = actions(layout, Random(3))
    run = made_run(trace_text(layout, steps, simulated(steps, Factors())), layout)
    exported(run, tmp_path / "out")
    as_written = read_again(tmp_path / "out")
    read = read_again(tmp_path / "out", cluster=str(tmp_path / "out" / "network.yml"))
    assert read.step_time_ns != as_written.step_time_ns
    assert [one.code for one in read.diagnostics].count("priced-anew") == 1
    assert "priced-anew" not in {one.code for one in as_written.diagnostics}
