"""Sessions of runs whose network a topology chose by itself: of a `.topo` file, SimAI's, a generated one."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.units import duration
from simcore.workload import open_workload
from tests.flows.test_chosen_network import FABRIC, FILES, written
from tests.state.test_sessions_in_a_terminal import opened, quit

# 16 GPUs below two switches, and one of half the rate above these.
TOPO = """Nodes 16
Tiers 2
Podsize 16
Tier 0
Downlink_speed_Gbps 400
Radix_Down 8
Radix_Up 1
Downlink_Latency_ns 500
Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Downlink_Latency_ns 500
"""
# A gradient of 1 MB over 16 ranks.
JOB = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 16
1
grads\t-1\t100000\tNONE\t0\t1\tNONE\t0\t1\tALLREDUCE\t1000000\t1
"""
PORTS = "Ports by tier"


@pytest.mark.parametrize("name", ["htsim", "simai", "generated"])
def test_the_network_that_a_topology_chose_is_there_when_the_file_is_opened_again(
    tmp_path: Path, name: str
) -> None:
    file = written(tmp_path, "job.txt", JOB)
    texts = {"htsim": TOPO, "simai": FILES["topo"]}
    cluster = written(tmp_path, "fabric.topo", texts[name]) if name in texts else FABRIC
    chosen = simulate(open_workload(file), Parameters(cluster=cluster))
    named = simulate(open_workload(file), Parameters(cluster=cluster, network="analytical"))
    step, other_step = (duration(one.step_time_ns) for one in (chosen, named))
    assert chosen.flow_report is not None
    assert step != other_step
    with opened(tmp_path / "state", "--cluster", cluster, file=file) as terminal:
        terminal.wait_for(step)
        terminal.press_each(("9", PORTS))
        quit(terminal)
    # What is kept names no network: the topology chooses it again.
    (session,) = tmp_path.glob("state/wltui/*.json")
    assert '"network"' not in session.read_text()
    with opened(tmp_path / "state", file=file) as terminal:
        # Run 1 is the file as it is, without a topology: no flows, and nothing on their screen.
        terminal.wait_for("restored")
        assert PORTS not in terminal.text
        terminal.press_each(("R", cluster[-12:]), ("j", ">     2"), ("\r", PORTS))
        assert step in terminal.text
        quit(terminal)
