"""Every stored run of ASTRA-sim 2.x: ends and exposed times of all ranks, start and end of all nodes, to the
ns.

The runs are ../shared/golden/chakra/runs.tar.gz (skipped without it): 270 sets, by both backends. A seventh
of them here, all with --whole. A run that does not finish there is an error that names a rank.
"""

from __future__ import annotations

import gzip
import json
import shlex
import zlib
from pathlib import Path
from typing import Any

import pytest

from simcore.chakra import find_set, open_set
from simcore.diagnostics import InputError
from simcore.executing.execution_result import Execution
from simcore.parameters import Parameters
from simcore.runs.executed import run_execution
from tests.executing.stored_runs import RUNS, unpack

FLAGS = {
    "comm-group-configuration": "comm_groups",
    "injection-scale": "injection_scale",
    "num-queues-per-dim": "num_queues_per_dim",
    "rendezvous-protocol": "rendezvous_protocol",
}


def parameters_of(folder: Path, backend: str) -> Parameters:
    command = (folder / "cmd.txt").read_text().splitlines()[0]
    values: dict[str, Any] = {}
    for word in shlex.split(command)[1:]:
        name, _, text = word.removeprefix("--").partition("=")
        if name in FLAGS:
            values[FLAGS[name]] = str(folder / text) if name.startswith("comm") else text
    for name, kind in (("injection_scale", float), ("num_queues_per_dim", int)):
        if name in values:
            values[name] = kind(values[name])
    return Parameters(
        dialect="astra-sim-2",
        cluster=str(folder / "network.yml"),
        system=str(folder / "system.json"),
        remote_memory=str(folder / "memory.json"),
        network="links" if backend == "aware" else "analytical",
        **values,
    )


def check(folder: Path, backend: str, stored: dict[str, Any], world: int) -> None:
    finished = sorted(map(tuple, stored["finished"]))
    found = find_set(str(folder / "wl"))
    assert found is not None
    said = ""
    try:
        results = run_execution(Execution(open_set(found), parameters_of(folder, backend)))
    except InputError as error:
        said = str(error)
    if said:
        assert len(finished) < world, f"{folder.name} {backend}: {said}"
        assert "rank" in said or "group" in said or "ring of 2" in said, said
        return
    executed = results.executed
    if len(finished) == world:
        assert sorted(executed.ranks) == finished, (folder.name, backend)
    else:
        # The log of a crash behind the end may lack its last lines (R6.4).
        assert stored["exit_status"] != 0, (folder.name, backend)
        assert set(finished) <= set(executed.ranks), (folder.name, backend)
    for key, nodes in stored.get("nodes", {}).items():
        for rank in range(world) if key == "all" else [int(key)]:
            one = executed.nodes[rank]
            times = {
                str(one.id[at]): [executed.start[rank][at], executed.end[rank][at]] for at in range(len(one))
            }
            assert times == nodes, (folder.name, backend, rank)


def test_stored_runs_are_met_to_the_nanosecond(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """One test: each worker that has a part of it unpacks all of them."""
    if not RUNS.exists():
        pytest.skip("../shared/golden/chakra is not here")
    whole = pytestconfig.getoption("--whole")
    unpack(tmp_path, lambda name: whole or zlib.crc32(name.encode()) % 7 == 0)
    folders = sorted(tmp_path.iterdir())
    assert len(folders) > 30
    for folder in folders:
        plain = folder / "result.json"
        packed = folder / "result.json.gz"
        data = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
        stored = json.loads(data)
        world = json.loads((folder / "entry.json").read_text())["expected_ranks"]
        for backend, result in stored.items():
            check(folder, backend, result, world)
