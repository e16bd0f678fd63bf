"""Two jobs on one topology slow each other down by exactly what they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simcore.analysis.simulation_figures import SimulationFigures
from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.render.report.section import PageOptions
from simcore.render.report.usage import FLOWS
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload

# GPUs 0 and 1 on one switch, 2 and 3 on another, with one link between the two: 80 Gb/s are 10 bytes a ns.
FABRIC = """
gpus = 4
gpus_per_server = 1
switches = 2
links = ["0-1 4 80Gbps 0ns", "2-3 5 80Gbps 0ns", "4 5 80Gbps 0ns"]
"""
# A gradient of 1 MB over two ranks that compute nothing.
JOB = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 2
1
grads\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLREDUCE\t1000000\t1
"""


def jobs_at(tmp_path: Path, job_gpus: str, other_job_gpus: str | None, **parameters: Any) -> SimulatedRun:
    """A job, and another one of the same file."""
    fabric, one, other = tmp_path / "fabric.toml", tmp_path / "one.txt", tmp_path / "other.txt"
    fabric.write_text(FABRIC)
    one.write_text(JOB)
    other.write_text(JOB)
    stated: dict[str, Any] = {
        "cluster": str(fabric), "network": "flows", "flow_model": "plain", "job_gpus": job_gpus,
        "other_job_gpus": other_job_gpus, "other_job": str(other) if other_job_gpus else None,
    }  # fmt: skip
    return SimulatedRun(simulate(open_workload(str(one)), Parameters(**stated | parameters)))


def test_two_jobs_whose_flows_share_a_link_each_take_twice_as_long_on_it(tmp_path: Path) -> None:
    # Two steps of half of the bytes, 500,000 at 10 bytes a ns, and 1 ns of compute in each of three cells.
    alone = jobs_at(tmp_path, "0,2", None)
    assert alone.step_time_ns == 2 * 50_000 + 3
    run = jobs_at(tmp_path, "0,2", "1,3")
    assert run.simulation.other_job is not None
    assert run.step_time_ns == run.simulation.other_job.step_time_ns == 2 * 100_000 + 3
    two_jobs, ports = run.two_jobs, run.ports
    assert two_jobs is not None
    assert ports is not None
    assert [(job.alone_ns, job.together_ns) for job in two_jobs.jobs] == [(100_003, 200_003)] * 2
    # What the other job was taken for stands beside what follows from it.
    assumed = two_jobs.jobs[1].assumed
    assert "dp 2" in assumed
    assert any(assumed in sentence for sentence in run.figures.words)
    assert any(assumed in line for line in FLOWS.lines(run, PageOptions()))
    # Both directions between the switches, and no other port.
    assert {ports.all[index].ends for index in two_jobs.shared_ports} == {(4, 5), (5, 4)}


def test_jobs_in_other_places_slow_nothing(tmp_path: Path) -> None:
    run = jobs_at(tmp_path, "0,1", "2,3")
    assert run.step_time_ns == jobs_at(tmp_path, "0,1", None).step_time_ns
    assert run.two_jobs is not None
    assert run.two_jobs.shared_ports == ()
    assert all(job.alone_ns == job.together_ns for job in run.two_jobs.jobs)


def test_the_other_job_is_behind_this_one_where_no_place_is_stated(tmp_path: Path) -> None:
    run = jobs_at(tmp_path, "0-1", "2-3")
    parameters = run.simulation.parameters
    parameters = parameters.with_value("job_gpus", None).with_value("other_job_gpus", None)
    default = SimulatedRun(simulate(run.simulation.setup.source, parameters))
    assert default.two_jobs is not None
    assert [job.gpus.text() for job in default.two_jobs.jobs] == ["0-1", "2-3"]


def test_the_report_has_both_jobs_and_what_they_share(tmp_path: Path) -> None:
    run = jobs_at(tmp_path, "0,2", "1,3")
    values = FLOWS.values(run, PageOptions())["two_jobs"]
    assert [(job["gpus"], job["slowdown"]) for job in values["jobs"]] == [
        ("0,2", 200_003 / 100_003), ("1,3", 200_003 / 100_003),
    ]  # fmt: skip
    assert sorted(values["shared_ports"]) == [[4, 5], [5, 4]]
    assert any("asw4 > asw5" in line for line in FLOWS.lines(run, PageOptions()))
    told = next(sentence for sentence in run.sentences if sentence.rule == "other-job")
    assert told.ns == 100_000


def test_a_rerun_has_the_other_job_beside_it(tmp_path: Path) -> None:
    run = jobs_at(tmp_path, "0,2", "1,3")
    from simcore.analysis.rerun import Rerun

    masks = [b"\0" * len(stage.ops) for stage in run.simulation.program.stages]
    assert Rerun(run.simulation, run.dependencies).step_ns(masks, 1.0) == run.step_time_ns


@pytest.mark.parametrize(
    ("job_gpus", "other_job_gpus", "parameters"),
    [
        ("0,2", "2,3", {}), ("0-2", "3", {}), ("0,9", "1,3", {}), ("0,2", "1", {}),
        ("0,2", "1,3", {"network": "analytical"}), ("zero", "1,3", {}),
    ],
)  # fmt: skip
def test_places_that_do_not_fit_are_refused(
    tmp_path: Path, job_gpus: str, other_job_gpus: str, parameters: dict[str, str]
) -> None:
    with pytest.raises(UsageError):
        jobs_at(tmp_path, job_gpus, other_job_gpus, **parameters)


def test_flows_of_the_other_job_say_so(tmp_path: Path) -> None:
    run = jobs_at(tmp_path, "0,2", "1,3")
    assert isinstance(run, SimulationFigures)
    ports = run.ports
    assert ports is not None
    index = next(index for index in ports.by_heat if len(ports.jobs(index)) == 2)
    assert {layer for _, layer, _ in ports.purposes(index)} == {"grads", "grads of other.txt"}


def test_two_jobs_run_by_the_rules_of_simais_scheduler(tmp_path: Path) -> None:
    run = jobs_at(tmp_path, "0,2", "1,3", dialect="simai-sim")
    alone = jobs_at(tmp_path, "0,2", None, dialect="simai-sim")
    assert run.simulation.other_job is not None
    assert run.step_time_ns == run.simulation.other_job.step_time_ns
    assert run.step_time_ns - alone.step_time_ns == 100_000
