"""`--network links` equals ASTRA-sim 2.0's congestion-aware backend, first and last rank, to the nanosecond.

The 398 runs are in ../shared/golden/astra2_collectives.json (skipped without it); a twelfth of those of at
most 32 NPUs here and one of the 16 of 512, which take most of the time, all with --whole.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simcore.cluster import ClusterParameters, choose_cluster
from simcore.messages.alone import run_collective
from tests.collectives.test_astra2_golden import network_yml, system_json

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "astra2_collectives.json"


def test_per_link_runs_are_met_to_the_nanosecond(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    if not GOLDEN.exists():
        pytest.skip("../shared/golden/astra2_collectives.json is not here")
    runs = [one for one in json.loads(GOLDEN.read_text())["runs"] if one["backend"] == "per-link FIFO"]
    assert len(runs) == 398
    small = [run for run in runs if len(run["dims"]) < 4]
    some = [*small[::12], runs[len(small)]]
    for run in runs if pytestconfig.getoption("--whole") else some:
        network, system = tmp_path / "network.yml", tmp_path / "system.json"
        network.write_text(network_yml(run))
        system.write_text(system_json(run))
        choice = choose_cluster(ClusterParameters(cluster=str(network), system=str(system)))
        cluster = choice.cluster(choice.npus or 1)
        collective = run["collective"].upper()
        size = run["size_bytes"] * (cluster.npus if collective == "ALLGATHER" else 1)
        ends = run_collective(cluster, range(cluster.npus), collective, size).ends
        assert (min(ends), max(ends)) == (run["finish_min_ns"], run["finish_max_ns"]), run
