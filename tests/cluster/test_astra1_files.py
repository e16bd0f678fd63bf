"""ASTRA-sim 1.0's network `.json` and its system file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simcore.cluster import Dimension
from simcore.cluster.files import read_cluster_file, read_system_file
from simcore.cluster.files.astra_network import bytes_per_ns
from simcore.diagnostics import InputError
from tests.findings import finding, findings

NETWORK: dict[str, Any] = {
    "topology-name": "Hierarchical",
    "topologies-per-dim": ["Ring", "FullyConnected", "Switch"],
    "dimension-type": ["N", "P", "P"],
    "dimensions-count": 3,
    "units-count": [4, 5, 2],
    "links-count": [2, 2, 3],
    "link-latency": [500, 1, 0],
    "link-bandwidth": [25.0, 100, 50],
    "nic-latency": [0, 0, 0],
    "router-latency": [0, 0, 0],
    "hbm-latency": [0, 0, 0],
    "hbm-bandwidth": [370, 370, 370],
    "hbm-scale": [0, 0, 0],
}
SYSTEM = """scheduling-policy: FIFO
endpoint-delay: 1
active-chunks-per-dimension: 2
preferred-dataset-splits: 64
boost-mode: 0

all-reduce-implementation: ring_halvingDoubling
all-to-all-implementation: direct_direct3
collective-optimization: baseline
"""


def written(folder: Path, text: str) -> str:
    path = folder / "file"
    path.write_text(text)
    return str(path)


def test_a_message_has_all_links_of_a_ring_or_switch_and_its_share_of_them_fully_connected(
    tmp_path: Path,
) -> None:
    found = read_cluster_file(written(tmp_path, json.dumps(NETWORK)))
    assert found.dims == (
        Dimension("ring", 4, bytes_per_ns("50"), 500.0),
        Dimension("fully-connected", 5, bytes_per_ns("50"), 1.0),  # 2 links for 4 peers
        Dimension("switch", 2, bytes_per_ns("150"), 0.0),
    )
    assert found.local_mem_bandwidth == 500_000
    assert found.diagnostics == ()


def test_delays_that_no_price_has_are_a_warning_and_other_keys_a_note(tmp_path: Path) -> None:
    text = json.dumps(NETWORK | {"nic-latency": [0, 7, 0], "hbm-scale": 1, "x": {}}, indent=0)
    path = written(tmp_path, text)

    def line(key: str) -> int:
        return text[: text.index(f'"{key}"')].count("\n") + 1

    found = read_cluster_file(path).diagnostics
    assert findings(one.text() for one in found) == [
        f"{path}:{line('nic-latency')}:1: warning network-delay-ignored 0",
        f"{path}:{line('hbm-scale')}:1: warning network-delay-ignored 0",
        f"{path}:{line('x')}:1: note cluster-key-ignored `x`",
    ]
    assert [
        key in one.message for key, one in zip(("nic-latency", "hbm-scale", "x"), found, strict=True)
    ] == [True] * 3


WRONG = [
    ("topologies-per-dim", ["Ring", "Mesh", "Switch"], '"Mesh"',
     "found `Mesh` in topologies-per-dim, expected Ring, FullyConnected or Switch"),
    ("topologies-per-dim", [], '[]',
     "found `[]` for topologies-per-dim, expected a list of values, one a dimension"),
    ("units-count", [4, 5], '[4', "found `[4, 5]` for units-count, expected a list of 3, one a dimension"),
    ("units-count", [4, 5, [2]], '[4',
     "found `[4, 5, [2]]` for units-count, expected a list of single values"),
    ("units-count", [4, 0, 2], '0', "found `0` in units-count, expected a whole number from 1 to 1000000"),
    ("units-count", [4, 1.5, 2], '1.5',
     "found `1.5` in units-count, expected a whole number from 1 to 1000000"),
    ("links-count", [2, True, 3], 'true',
     "found `true` in links-count, expected a whole number from 1 to 1000000"),
    ("link-latency", [-1, 1, 0], '-1',
     "found `-1` in link-latency, expected a number from 0 to 1e9 (ns a hop)"),
    ("link-bandwidth", [25, "x", 50], '"x"',
     "found `x` in link-bandwidth, expected a number from 1e-6 to 1e9 (GiB/s)"),
    ("link-bandwidth", [float("nan"), 1, 50], 'NaN',
     "found `NaN` in link-bandwidth, expected a number from 1e-6 to 1e9 (GiB/s)"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "needle", "message"), WRONG, ids=lambda value: str(value)[:30])
def test_a_wrong_network_says_where_and_what_was_expected(
    tmp_path: Path, key: str, value: object, needle: str, message: str
) -> None:
    text = json.dumps(NETWORK | {key: value})
    path = written(tmp_path, text)
    column = text.index(needle, text.index(f'"{key}": ') + len(key) + 2) + 1
    with pytest.raises(InputError) as error:
        read_cluster_file(path)
    assert str(error.value) == f"{path}:1:{column}: error network-json {message}"


def test_json_that_is_none(tmp_path: Path) -> None:
    path = written(tmp_path, '{"units-count": [1,\n }')
    with pytest.raises(InputError) as error:
        read_cluster_file(path)
    assert finding(str(error.value)) == f"{path}:2:2: error network-json JSON"


@pytest.mark.parametrize("as_json", [False, True])
def test_the_system_file_of_version_1_joins_algorithms(tmp_path: Path, as_json: bool) -> None:
    values: dict[str, Any] = dict(line.split(": ") for line in SYSTEM.split("\n") if line)
    for key, value in values.items():
        values[key] = int(value) if value.isdecimal() else value
    found = read_system_file(written(tmp_path, json.dumps(values) if as_json else SYSTEM), 2)
    assert dict(found.by_collective) == {
        "ALLREDUCE": ("ring", "halving-doubling"),
        "ALLTOALL": ("direct", "direct3"),
    }
    assert (found.endpoint_delay_ns, found.splits, found.active_chunks) == (1, 64, 2)
    assert (found.optimization, found.newest_first, found.alltoall_port_time) == ("baseline", False, False)
    assert found.local_mem_bandwidth == 500_000
    assert [one.message for one in found.diagnostics] == ["`boost-mode` is ignored"]


def test_schedulers_that_are_not_simulated_are_a_warning(tmp_path: Path) -> None:
    text = "inter-dimension-scheduling: themis\nintra-dimension-scheduling: FIFO\nendpoint-delay: 10\n"
    path = written(tmp_path, text)
    assert [one.text() for one in read_system_file(path, 2).diagnostics] == [
        f"{path}:1:29: warning scheduler-ignored found `themis` for inter-dimension-scheduling, "
        "expected baseline; baseline is simulated"
    ]
