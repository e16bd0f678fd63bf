"""`--ecmp balanced`: one rank of each class, beside every rank on its own path where paths are not shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.flows.alone import run_collectives
from simcore.flows.traffic import FlowRules
from simcore.parameters import Parameters
from simcore.simulation import Simulation, simulate
from simcore.topology import generate_topology
from simcore.workload import open_workload

ROWS = {
    "rings between servers": "grad -1 1 NONE 0 1 NONE 0 1 {kind} 67108864 100",
    "rings in a server": "layer -1 1000 {kind} 67108864 1 NONE 0 1 NONE 0 100",
}


def run(folder: Path, rows: str, tp: int, world: int, cluster: str, **others: object) -> Simulation:
    file = folder / "workload.txt"
    head = f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tp} ep: 1 pp: 1 vpp: 1 ga: 1"
    head = f"{head} all_gpus: {world}"
    file.write_text(f"{head} checkpoints: 0 checkpoint_initiates: 0\n{len(rows.splitlines())}\n{rows}\n")
    parameters = Parameters(cluster=cluster, network="flows", **others)  # type: ignore[arg-type]
    return simulate(open_workload(str(file)), parameters)


@pytest.mark.parametrize("where", ROWS)
@pytest.mark.parametrize("kind", ["ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"])
@pytest.mark.parametrize("cluster", ["spectrum-x:32:psn=8", "hpn:32:psn=8", "dcn:32:psn=8"])
def test_a_step_is_that_of_all_ranks_where_no_port_is_shared(
    tmp_path: Path, where: str, kind: str, cluster: str
) -> None:
    steps = {
        ecmp: run(tmp_path, ROWS[where].format(kind=kind), 8, 32, cluster, ecmp=ecmp, send_latency=3000)
        for ecmp in ("balanced", "simai")
    }
    assert len(steps["balanced"].timeline.classes) == 1
    # On HPN a hash may put two flows of a GPU on one of its two NICs; on DCN+ acknowledgements that wait stop
    # windows.
    if "hpn" not in cluster or where == "rings in a server":
        assert steps["balanced"].step_time_ns == pytest.approx(steps["simai"].step_time_ns, rel=0.04)
    assert steps["balanced"].step_time_ns <= 1.02 * steps["simai"].step_time_ns


def test_the_links_above_a_switch_are_shared_by_all_below_it(tmp_path: Path) -> None:
    # 8 flows from each switch on 4, 2, 1 links of the same rate.
    row = ROWS["rings between servers"].format(kind="ALLTOALL")
    times = [
        run(tmp_path, row, 8, 32, f"dcn:32:npa=8:psn={switches}", ecmp="balanced").step_time_ns
        for switches in (8, 4, 2, 1)
    ]
    assert times[0] == pytest.approx(times[1] / 2, rel=0.1)
    assert times[1] == pytest.approx(times[2] / 2, rel=0.02)
    assert times[2] == pytest.approx(times[3] / 2, rel=0.02)


def test_collectives_of_two_groups_share_ports(tmp_path: Path) -> None:
    rows = "\n".join([ROWS["rings between servers"].format(kind="ALLREDUCE")] * 2)
    one, two = (
        run(tmp_path, text, 8, 32, "spectrum-x:32:psn=8", ecmp="balanced").step_time_ns
        for text in (rows.splitlines()[0], rows)
    )
    assert two == pytest.approx(2 * one, rel=0.01)


def test_a_thousand_ranks_take_a_second(tmp_path: Path) -> None:
    rows = "\n".join(row.format(kind="ALLREDUCE") for row in ROWS.values())
    simulation = run(tmp_path, rows, 8, 1024, "spectrum-x:1024", ecmp="balanced")
    assert len(simulation.timeline.classes) == 1
    assert simulation.flow_report is not None
    assert simulation.flow_report.last_flow_end_ns > 0


def test_what_needs_every_rank_is_refused(tmp_path: Path) -> None:
    row = ROWS["rings in a server"].format(kind="ALLREDUCE")
    for others in ({"dialect": "simai-sim"}, {"job_gpus": "0-31"}):
        with pytest.raises(UsageError):
            run(tmp_path, row, 8, 32, "spectrum-x:32:psn=8", ecmp="balanced", **others)
    with pytest.raises(UsageError):
        run_collectives(
            generate_topology("spectrum-x:8"), [range(8)], "ALLREDUCE", 8, FlowRules(ecmp="balanced")
        )
