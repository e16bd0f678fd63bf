"""docs/diagnostics.md explains every code that a cluster file can give."""

import re
from pathlib import Path

from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.workload import open_workload

ROOT = Path(__file__).parents[2]


def test_every_code_of_the_room_is_explained() -> None:
    files = (ROOT / "simcore" / "cluster" / "files").glob("*.py")
    source = "\n".join(path.read_text() for path in files)
    given = set(re.findall(r'_CODE = "([a-z0-9-]+)"', source))
    given |= set(re.findall(r'"(?:error|warning|note)", "([a-z0-9-]+)"', source))
    given |= set(re.findall(r'refusal\("([a-z0-9-]+)"', source))
    explained = set(
        re.findall(r"^\| `([a-z0-9-]+)`", (ROOT / "docs" / "diagnostics.md").read_text(), re.MULTILINE)
    )
    assert {"network-yml", "not-a-cluster-file", "cluster-key-ignored", "no-such-file"} <= given
    assert given <= explained


def test_every_code_of_the_networks_is_explained() -> None:
    files = (ROOT / "simcore" / "networks").glob("*.py")
    source = "\n".join(path.read_text() for path in files)
    given = set(re.findall(r'"((?:busbw|simai|parameter)-[a-z0-9-]+)"', source)) - {"simai-auto"}
    page = (ROOT / "docs" / "diagnostics.md").read_text()
    assert len(given) == 10
    assert given <= set(re.findall(r"^\|? ?`([a-z0-9-]+)`", page, re.MULTILINE)), given


def test_what_is_said_of_a_run_on_a_cluster_is_explained() -> None:
    source = (ROOT / "simcore" / "simulation.py").read_text()
    given = set(re.findall(r'"(?:error|warning|note)",\s*"([a-z0-9-]+)"', source))
    page = (ROOT / "docs" / "diagnostics.md").read_text()
    assert given == {"cluster-default", "group-flat"}
    assert given <= set(re.findall(r"^\| `([a-z0-9-]+)`", page, re.MULTILINE))


def test_groups_that_are_no_grid_are_said() -> None:
    workload = open_workload(str(ROOT / "fixtures" / "002_gpt_1024npu.txt"))
    run = simulate(workload, Parameters(world=24, tp=3, pp=1, microbatches=1))
    notes = [found.message for found in run.diagnostics if found.code == "group-flat"]
    assert notes == [
        f"some {kind} groups are no grid of the cluster's dimensions: "
        "each is priced as one flat group on the slowest dimension it crosses"
        for kind in ("tp", "dp")
    ]
    run = simulate(workload, Parameters(world=32, tp=4, pp=1, microbatches=1))
    assert [found for found in run.diagnostics if found.code == "group-flat"] == []
