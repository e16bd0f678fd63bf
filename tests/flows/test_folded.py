"""`--ecmp balanced` of many ranks: one of each class, beside every rank on all its paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.networks.balanced import BalancedTransport
from simcore.parameters import Parameters
from simcore.simulation import Simulation, simulate
from simcore.workload import open_workload
from tests.strategies import Case, Cell, Row, cases, make_workload

ROWS = {
    "rings between servers": "grad -1 1 NONE 0 1 NONE 0 1 {kind} 67108864 100",
    "rings in a server": "layer -1 1000 {kind} 67108864 1 NONE 0 1 NONE 0 100",
}


@pytest.fixture
def _folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.setup.MOST_BALANCED_RANKS", 0)


def run(folder: Path, rows: str, tp: int, world: int, cluster: str, **others: object) -> Simulation:
    file = folder / "workload.txt"
    head = f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tp} ep: 1 pp: 1 vpp: 1 ga: 1"
    head = f"{head} all_gpus: {world}"
    file.write_text(f"{head} checkpoints: 0 checkpoint_initiates: 0\n{len(rows.splitlines())}\n{rows}\n")
    parameters = Parameters(cluster=cluster, network="flows", ecmp="balanced", **others)  # type: ignore[arg-type]
    return simulate(open_workload(str(file)), parameters)


@pytest.mark.usefixtures("_folded")
@pytest.mark.parametrize("where", ROWS)
@pytest.mark.parametrize("kind", ["ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"])
@pytest.mark.parametrize("cluster", ["spectrum-x:32:psn=8", "hpn:32:psn=8", "dcn:32:npa=8:psn=4"])
def test_a_step_is_that_of_all_ranks(tmp_path: Path, where: str, kind: str, cluster: str) -> None:
    row = ROWS[where].format(kind=kind)
    one = run(tmp_path, row, 8, 32, cluster)
    every = run(tmp_path, row, 8, 32, cluster, no_fold=True)
    assert (len(one.timeline.classes), len(every.timeline.classes)) == (1, 32)
    assert one.step_time_ns == pytest.approx(every.step_time_ns, rel=0.02)


@pytest.mark.usefixtures("_folded")
def test_the_links_above_a_switch_are_shared_by_all_below_it(tmp_path: Path) -> None:
    # 8 flows from each switch on 4, 2, 1 links of the same rate.
    row = ROWS["rings between servers"].format(kind="ALLTOALL")
    times = [
        run(tmp_path, row, 8, 32, f"dcn:32:npa=8:psn={switches}").step_time_ns for switches in (8, 4, 2, 1)
    ]
    assert times[0] == pytest.approx(times[1] / 2, rel=0.1)
    assert times[1] == pytest.approx(times[2] / 2, rel=0.02)
    assert times[2] == pytest.approx(times[3] / 2, rel=0.02)


@pytest.mark.usefixtures("_folded")
def test_collectives_of_a_port_share_it(tmp_path: Path) -> None:
    # Experts' gradients and others are of two groups, and go out at once.
    both = "a -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 67108864 0\nb -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 67108864 0"
    one, two = (
        run(tmp_path, text, 8, 32, "spectrum-x:32:psn=8").step_time_ns
        for text in (both.splitlines()[0], both)
    )
    assert two == pytest.approx(2 * one, rel=0.01)


def test_many_ranks_are_simulated_once(tmp_path: Path) -> None:
    rows = "\n".join(row.format(kind="ALLREDUCE") for row in ROWS.values())
    simulation = run(tmp_path, rows, 8, 256, "spectrum-x:256")
    assert len(simulation.timeline.classes) == 1
    assert simulation.flow_report is not None
    assert simulation.flow_report.last_flow_end_ns > 0


@pytest.mark.usefixtures("_folded")
def test_what_needs_every_rank_is_refused(tmp_path: Path) -> None:
    row = ROWS["rings in a server"].format(kind="ALLREDUCE")
    for others in ({"dialect": "simai-sim"}, {"job_gpus": "0-31"}):
        with pytest.raises(UsageError):
            run(tmp_path, row, 8, 32, "spectrum-x:32:psn=8", **others)


# Two stages in a server: their transfers are on the links of the tp groups.
_BOTH = Cell(100, "ALLREDUCE", "tp", 20_000)
_IN_A_SERVER = Case(
    make_workload([Row("mlp", _BOTH, _BOTH)], tp=2, ep=1, pp=2, all_gpus=4, pp_comm=20_000),
    Parameters(microbatches=4),
)


# Their links are slow for transmissions of a few kB, so that these meet.
SLOW_CLUSTERS = [
    "dcn:24:gps=4:npa=4:psn=2:nvbw=2:bw=1", "spectrum-x:24:gps=4:psn=2:nvbw=1", "hpn:32:gps=8:nvbw=2:bw=9",
]  # fmt: skip


@settings(max_examples=60)
@example(_IN_A_SERVER, SLOW_CLUSTERS[-1], "ns3", ())
@given(
    cases(),
    st.sampled_from(
        [
            "dcn:24:gps=4:npa=4:psn=2:nvbw=2:bw=1",
            "spectrum-x:24:gps=4:psn=2:nvbw=1",
            "hpn:32:gps=8:nvbw=2:bw=9",
        ]
    ),
    st.sampled_from(["ns3", "plain"]),
    st.sampled_from([(), ("0=1.5",)]),
)
def test_groups_whose_links_are_their_own_end_as_those_in_the_queue_of_flows(
    case: Case, cluster: str, model: str, slow: tuple[str, ...]
) -> None:
    # It failed with each of these planted: links of two groups taken for those of one, those of transfers
    # left out, no time of full links, mean flows of one collective, a group of two classes timed by the last.
    flows = Parameters(
        cluster=cluster, network="flows", ecmp="balanced", flow_model=model, slow_rank=slow,
        rank_order=case.parameters.rank_order, schedule=case.parameters.schedule,
        microbatches=case.parameters.microbatches,
    )  # fmt: skip

    def run_all() -> Simulation:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("simcore.setup.MOST_BALANCED_RANKS", 0)
            return simulate(case.workload, flows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BalancedTransport, "links_of", lambda *_: [0])
        queued = run_all()
    assume(len(queued.timeline.classes) < queued.layout.world)
    known = run_all()
    assert known.timeline.times == queued.timeline.times
    assert known.flow_report == queued.flow_report
