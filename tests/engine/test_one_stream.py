"""Dialect simai-sim: one collective of a rank at a time, the newest of those that wait first, to the ns."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.simulation import Simulation, simulate
from simcore.workload import open_workload

HEAD = (
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tp} ep: 1 pp: {pp} vpp: 1 ga: 1 "
    "all_gpus: {world} checkpoints: 0 checkpoint_initiates: 0\n{rows}\n"
)
# Bytes over bandwidth alone: 8 GPUs a server at 80 Gb/s each, which are 10 bytes a ns.
PARAMETERS = Parameters(
    cluster="spectrum-x:16:nvbw=80:bw=80:nl=0:l=0:psn=1",
    network="flows",
    flow_model="plain",
    dialect="simai-sim",
)


def run(
    folder: Path, *rows: str, tp: int = 2, world: int = 4, stages: int = 1, **others: object
) -> Simulation:
    text = HEAD.format(tp=tp, world=world, pp=stages, rows=len(rows)) + "\n".join(rows) + "\n"
    file = folder / "workload.txt"
    file.write_text(text)
    values = {name: getattr(PARAMETERS, name) for name in ("cluster", "network", "flow_model", "dialect")}
    return simulate(open_workload(str(file)), Parameters(**{**values, **others}))  # type: ignore[arg-type]


def spans(simulation: Simulation, rank: int = 0) -> dict[tuple[str, int], tuple[int, int]]:
    """Start and end of the collectives of a rank by row and order."""
    ops = simulation.program.stages[0].ops
    times = simulation.timeline.times
    names = simulation.workload.name
    return {
        (names[ops.row[op]], op): (times.start[rank][op], times.end[rank][op])
        for op in range(len(ops))
        if ops.stream[op]
    }


def test_a_collective_waits_for_that_of_another_group(tmp_path: Path) -> None:
    # Two gradients of dp 2 at once: 20,000 bytes are two steps of 10,000, 1000 ns each, and 100 more.
    first, second = (f"{name} -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 20000 100" for name in ("a", "b"))
    simulation = run(tmp_path, first, second, tp=2, world=4)
    times = sorted(spans(simulation).values())
    # Forward and input gradients take 1 ns a row, then b's weight gradient 1, and its reduction begins.
    assert times == [(4, 2104), (2004, 4104)]
    assert simulation.step_time_ns == 4104


def test_of_those_that_wait_the_newest_goes_first(tmp_path: Path) -> None:
    rows = [f"{name} -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 20000 0" for name in ("a", "b", "c")]
    order = sorted(spans(run(tmp_path, *rows)).items(), key=lambda item: item[1])
    assert [name for (name, _), _ in order] == ["c", "a", "b"]


def test_a_blocking_collective_waits_for_one_in_flight(tmp_path: Path) -> None:
    rows = ["a -1 1 NONE 0 1 ALLREDUCE 20000 1 NONE 0 0", "b -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 20000 0"]
    of_b, of_a = sorted(spans(run(tmp_path, *rows)).values())
    assert of_a[0] == of_b[1]


def test_small_forward_collectives_count_as_4096_bytes(tmp_path: Path) -> None:
    small, whole = (run(tmp_path, f"a -1 1 ALLREDUCE {size} 1 NONE 0 1 NONE 0 0") for size in (8, 4096))
    assert small.step_time_ns == whole.step_time_ns > 400


def test_the_ranks_of_all_stages_are_replicas(tmp_path: Path) -> None:
    simulation = run(tmp_path, "a -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 20000 0", stages=2, world=8)
    assert (simulation.layout.pp, simulation.layout.dp) == (1, 4)
    assert "pp-ignored" in [diagnostic.code for diagnostic in simulation.diagnostics]


@pytest.mark.parametrize("others", [{"network": "analytical"}, {"schedule": "gpipe"}, {"pp": 2}])
def test_what_it_lacks_is_refused(tmp_path: Path, others: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        run(tmp_path, "a -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 20000 0", **others)


def test_ranks_begin_their_part_when_they_can(tmp_path: Path) -> None:
    # On packets with other traffic ranks end at different times, and go on at once.
    rows = [f"{name} -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4000000 0" for name in ("a", "b")]
    simulation = run(
        tmp_path, *rows, tp=2, world=32, cluster="dcn:32:npa=8:psn=2", flow_model="ns3", send_latency=3000
    )
    starts = {max(spans(simulation, rank).values())[0] for rank in range(32)}
    assert len(starts) > 2
    for rank in range(32):
        early, late = sorted(spans(simulation, rank).values())
        assert early[1] == late[0]
