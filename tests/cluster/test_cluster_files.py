"""Cluster files: what they give, and the exact words, line and column when something does not fit."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simcore.cluster import Cluster, ClusterParameters, Dimension, choose_cluster, group_shape
from simcore.cluster.files import read_cluster_file, read_system_file
from simcore.collectives import collective_ns
from simcore.diagnostics import InputError, UsageError
from tests.says import said

NETWORK = """# two dimensions
topology: [ Ring, Switch ]  # Ring, Switch, FullyConnected
npus_count: [ 4, 8 ]
bandwidth: [ 400.0, 50 ]    # GB/s
latency: [ 500.0, 2e3 ]     # ns
"""
SYSTEM: dict[str, Any] = {
    "scheduling-policy": "LIFO",
    "endpoint-delay": 7,
    "active-chunks-per-dimension": 2,
    "preferred-dataset-splits": 4,
    "all-reduce-implementation": ["ring", "halvingDoubling"],
    "all-to-all-implementation": ["direct2", "oneDirect4"],
    "collective-optimization": "baseline",
    "local-mem-bw": 1600,
}
TOML = """# ours
dim = [
  "ring:4:400:500",
  "switch:8:50:1000",
]
algorithm = ["1=ring"]
splits = 4
active_chunks = 2
endpoint_delay = 0
local_mem_bw = 1200.5
collective_optimization = "baseline"
"""


def written(folder: Path, text: str | bytes, name: str = "file") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def cluster(**parameters: Any) -> Cluster:
    return choose_cluster(ClusterParameters(**parameters)).cluster(1)


def test_a_network_yml_gives_gib_per_second(tmp_path: Path) -> None:
    dims = read_cluster_file(written(tmp_path, NETWORK)).dims
    assert dims == (Dimension("ring", 4, 429.4967296, 500.0), Dimension("switch", 8, 53.6870912, 2000.0))


def test_a_network_yml_may_be_written_as_blocks(tmp_path: Path) -> None:
    blocks = "topology:\n- FullyConnected\nnpus_count:\n- 8\nbandwidth: [370.67]\r\nlatency: [ .5 ]\n"
    found = read_cluster_file(written(tmp_path, blocks)).dims
    assert found == (Dimension("fully-connected", 8, 398.00388190208, 0.5),)


def test_a_system_json_gives_algorithms_by_collective(tmp_path: Path) -> None:
    network, system = written(tmp_path, NETWORK, "n"), written(tmp_path, json.dumps(SYSTEM), "s")
    found = cluster(cluster=network, system=system)
    assert found.algorithms_for("ALLREDUCE") == ("ring", "halving-doubling")
    assert found.algorithms_for("ALLTOALL") == ("direct2", "one-direct4")
    assert found.algorithms_for("ALLGATHER") == (None, None)
    assert (found.splits, found.active_chunks, found.endpoint_delay_ns) == (4, 2, 7)
    assert (found.optimization, found.local_mem_bandwidth) == ("baseline", 1600.0)


def test_what_a_system_json_leaves_out_is_as_in_astra_sim(tmp_path: Path) -> None:
    found = cluster(system=written(tmp_path, "{}"))
    assert (found.splits, found.active_chunks, found.endpoint_delay_ns) == (1, 1, 10)
    assert (found.optimization, found.local_mem_bandwidth) == ("localBWAware", 1600.0)


def test_only_an_all_to_all_that_a_system_json_asks_for_has_no_port_time(tmp_path: Path) -> None:
    assert cluster(system=written(tmp_path, "{}")).alltoall_port_time
    text = json.dumps({"all-to-all-implementation": ["oneRing"]})
    found = cluster(system=written(tmp_path, text))
    assert not found.alltoall_port_time
    assert found.algorithms_for("ALLTOALL") == ("one-ring", None)
    assert found.algorithms_for("ALLREDUCE") == (None, None)


def test_what_no_price_depends_on_is_ignored_with_a_note(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"boost-mode": 0} | SYSTEM, indent="\t"))
    notes = read_system_file(path, 2).diagnostics
    assert [note.text() for note in notes] == [
        f"{path}:2:2: note cluster-key-ignored `boost-mode` is ignored"
    ]
    path = written(tmp_path, NETWORK + "units: ns\n")
    notes = read_cluster_file(path).diagnostics
    assert [note.text() for note in notes] == [f"{path}:6:1: note cluster-key-ignored `units` is ignored"]


def test_our_own_file_holds_the_cluster_flags(tmp_path: Path) -> None:
    found = cluster(cluster=written(tmp_path, TOML))
    flags = ["ring:4:400:500", "switch:8:50:1000"]
    same = ClusterParameters(
        dim=tuple(flags), algorithm=("1=ring",), splits=4, active_chunks=2, endpoint_delay=0,
        local_mem_bw=1200.5, collective_optimization="baseline",
    )  # fmt: skip
    assert found == choose_cluster(same).cluster(1)


def test_flags_count_over_the_system_file_and_that_over_the_cluster_file(tmp_path: Path) -> None:
    toml, system = written(tmp_path, TOML, "t"), written(tmp_path, json.dumps(SYSTEM), "s")
    assert cluster(cluster=toml, system=system).endpoint_delay_ns == 7
    found = cluster(cluster=toml, system=system, endpoint_delay=0, splits=9, algorithm=("0=direct",))
    assert (found.endpoint_delay_ns, found.splits, found.active_chunks) == (0, 9, 2)
    assert found.algorithms_for("ALLREDUCE") == ("direct", "halving-doubling")
    assert found.algorithms_for("ALLGATHER") == ("direct", "ring")
    found = cluster(cluster=toml, system=system, algorithm=("all-reduce:0=direct", "1=ring"))
    assert found.algorithms_for("ALLREDUCE") == ("direct", "ring"), "that collective alone"
    assert found.algorithms_for("ALLGATHER")[0] != "direct"
    assert cluster(algorithm=("all-to-all:1=ring",)).by_collective == (("ALLTOALL", (None, "ring")),)
    found = cluster(cluster=toml, dim=("switch:2:1:1", "switch:3:1:1"))
    assert (found.npus, found.splits, found.algorithms) == (6, 4, (None, "ring"))


def test_dimensions_beside_a_preset_keep_its_memory() -> None:
    found = cluster(cluster="h200-8", dim=("ring:4:1:1",))
    assert (found.dims, found.local_mem_bandwidth) == ((Dimension("ring", 4, 1.0, 1.0),), 4800.0)
    assert cluster(dim=("ring:4:1:1",)).local_mem_bandwidth == 3350.0


def test_a_phase_runs_the_algorithm_of_the_whole_collective() -> None:
    dims = (Dimension("switch", 8, 50.0, 500.0), Dimension("switch", 8, 50.0, 500.0))
    lists = (("ALLREDUCE", ("ring", "ring")), ("REDUCESCATTER", ("direct", "direct")))
    mixed, rings = Cluster(dims, (None, None), by_collective=lists), Cluster(dims, ("ring", "ring"))
    shape = group_shape(mixed, range(64))
    for collective, same in (("ALLREDUCE", True), ("REDUCESCATTER", False)):
        prices = {collective_ns(one, shape, collective, 2**20) for one in (mixed, rings)}
        assert (len(prices) == 1) == same


def test_other_dimensions_than_the_file_has_algorithms_for_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, TOML)
    with pytest.raises(UsageError) as error:
        choose_cluster(ClusterParameters(cluster=path, dim=("switch:2:1:1",)))
    shown = path if len(path) <= 60 else path[:57] + "..."
    assert str(error.value) == (
        f"--dim gives 1 dimensions, and --cluster {shown} has algorithms for 2: give as many"
    )


def test_a_cluster_that_is_no_preset_and_no_file_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        choose_cluster(ClusterParameters(cluster="h100"))
    assert str(error.value) == (
        "--cluster h100: no file, and none of h100-8, a100-8, h200-8, b200-8, gb200-nvl72, tpu-v4, "
        "spectrum-x:N, hpn:N, dcn:N, fat-tree:K; did you mean h100-8?"
    )


def test_another_optimization_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        choose_cluster(ClusterParameters(collective_optimization="fast"))
    said([str(error.value)], "--collective-optimization fast", "localBWAware", "baseline")


KEYS = "topology, npus_count, bandwidth, latency"
WRONG_NETWORKS = [
    (NETWORK.replace("Ring, Switch ]", "Torus, Switch ]"),
     "2:13: error network-yml found `Torus` in topology, expected Ring, FullyConnected or Switch"),
    (NETWORK.replace("[ 4, 8 ]", "[ 4, x ]"),
     "3:18: error network-yml found `x` in npus_count, expected a whole number from 1 to 1000000"),
    (NETWORK.replace("[ 4, 8 ]", "[ 4, 0 ]"),
     "3:18: error network-yml found `0` in npus_count, expected a whole number from 1 to 1000000"),
    (NETWORK.replace("400.0", "-1"),
     "4:14: error network-yml found `-1` in bandwidth, expected a number from 1e-6 to 1e9 (GiB/s)"),
    (NETWORK.replace("2e3", "nan"),
     "5:19: error network-yml found `nan` in latency, expected a number from 0 to 1e9 (ns a hop)"),
    (NETWORK.replace("[ 4, 8 ]", "[ 4 ]"),
     "3:15: error network-yml found 1 values of npus_count, expected 2, as many as of topology"),
    (NETWORK.replace("[ 4, 8 ]", "4"), "3:13: error network-yml found `4` for npus_count, expected a list"),
    (NETWORK.replace("[ 4, 8 ]", "[]"),
     "3:13: error network-yml found an empty sequence for npus_count, expected a list"),
    (NETWORK.replace("[ 4, 8 ]", "[ 4, [8] ]"),
     "3:18: error network-yml found a sequence in npus_count, expected a single value"),
    (NETWORK.replace("latency", "lat"), f"2:1: error network-yml found no latency, expected the keys {KEYS}"),
    ("- Ring\n", f"1:1: error network-yml found a sequence, expected the keys {KEYS}"),
    ("topology: [ Ring\nnpus_count: 4\n",
     "2:11: error network-yml this is not YAML: expected ',' or ']', but got ':'"),
    ("topology: \x01\n", "1:11: error network-yml this is not YAML: found character U+0001"),
    ('topology: "\\U7ccccccc"\n',
     "1:12: error network-yml this is not YAML: an escape \\U stands for no character"),
    ('topology: "\\Ucccccccc"\n',
     "1:12: error network-yml this is not YAML: an escape \\U stands for no character"),
    ("a: " + "[" * 600, f"1:19: error network-yml found more than 16 levels, expected the keys {KEYS}"),
    ("a: [" + "1," * 5000 + "]",
     f"1:8191: error network-yml found more than 4096 values, expected the keys {KEYS}"),
    (NETWORK + NETWORK, "7:1: error network-yml found topology twice, expected it once"),
    ("a: &a [*a, *a]\n", f"1:1: error network-yml found no topology, expected the keys {KEYS}"),
    ("# nothing\n\n", ": error not-a-cluster-file the file is empty, expected a cluster"),
    ('\n  {"all-reduce-implementation": "ring"}',
     "2:3: error not-a-cluster-file found an ASTRA-sim system file, "
     "expected a network (--system takes this one)"),
    ("\n  {}", "1:1: error network-json found no topologies-per-dim, expected an ASTRA-sim 1.0 network: "
               "a list of values, one a dimension"),
    (b"topology: [ Ring ]\nx: \xff", "2: error not-a-cluster-file found byte 0xff, expected UTF-8 text"),
    (b" " * (2**20 + 1), ": error not-a-cluster-file found more than 1 MiB, expected a cluster file"),
]  # fmt: skip

WRONG_TOMLS = [
    ("dim = [", ": error cluster-toml this is not TOML: "),
    ("dim = 4 5", "1:9: error cluster-toml this is not TOML: "),
    ("splits = 4\n", ": error cluster-toml found no dim, expected for example dim = [\"switch:8:450:500\"]"),
    ("dim = 4\n", "1:1: error cluster-toml found `4` for dim, expected a list of texts"),
    ("dim = []\n", "1:1: error cluster-toml found `[]` for dim, expected a list of texts"),
    ("# x\ndim = [\n  \"ring:4:1:1\",\n  \"mesh:4:1:1\"]\n",
     "4:4: error cluster-toml dim mesh:4:1:1: KIND `mesh` is not ring, fully-connected or switch"),
    (TOML.replace("1=ring", "2=ring"),
     "6:15: error cluster-toml algorithm 2=ring: no dimension `2` in this cluster, 0 to 1"),
    (TOML.replace("splits = 4", "splits = 0"),
     "7:1: error cluster-toml found `0` for splits, expected a whole number from 1 to 1024"),
    (TOML.replace("splits = 4", "splits = true"),
     "7:1: error cluster-toml found `True` for splits, expected a whole number from 1 to 1024"),
    (TOML.replace("1200.5", "inf"),
     "10:1: error cluster-toml found `inf` for local_mem_bw, expected a number from 1e-6 to 1e9 (GB/s)"),
    (TOML.replace('"baseline"', '"best"'),
     "11:1: error cluster-toml found `best` for collective_optimization, expected localBWAware or baseline"),
    ("dim = [\"ring:4:1:1\"]\nsplit = 4\n",
     "2:1: error cluster-toml found `split`, expected dim, algorithm, splits, active_chunks, "
     "endpoint_delay, local_mem_bw, collective_optimization, topology, gpus, gpus_per_server, gpu_type, "
     "nvswitches, switches, links, failed or slow"),
]  # fmt: skip


def message_of(value: object) -> str:
    """What names a case: its message, not the file."""
    return value if isinstance(value, str) and " error " in value else ""


@pytest.mark.parametrize(("text", "message"), [*WRONG_NETWORKS, *WRONG_TOMLS], ids=message_of)
def test_a_wrong_cluster_file_says_where_and_what_was_expected(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as error:
        read_cluster_file(path)
    expected = path + ("" if message.startswith(":") else ":") + message
    if message.endswith("TOML: "):  # what follows is the parser's own, and differs by version
        assert str(error.value).startswith(expected)
    else:
        assert str(error.value) == expected


def changed(key: str, value: object) -> str:
    return json.dumps(SYSTEM | {key: value}, indent=2)


NAMES = "ring, direct, direct<W>, halvingDoubling, doubleBinaryTree, oneRing, oneHalvingDoubling or oneDirect"
WRONG_SYSTEMS = [
    (changed("endpoint-delay", "10"),
     "3:21: error system-json found `10` for endpoint-delay, expected a whole number from 0 to 1000000000"),
    (changed("endpoint-delay", 1.5),
     "3:21: error system-json found `1.5` for endpoint-delay, expected a whole number from 0 to 1000000000"),
    (changed("preferred-dataset-splits", 0),
     "5:31: error system-json found `0` for preferred-dataset-splits, "
     "expected a whole number from 1 to 1024"),
    (changed("active-chunks-per-dimension", None),
     "4:34: error system-json found `null` for active-chunks-per-dimension, "
     "expected a whole number from 1 to 1024"),
    (changed("local-mem-bw", 0),
     "15:19: error system-json found `0` for local-mem-bw, expected a number from 1e-6 to 1e9 (GB/s)"),
    (changed("collective-optimization", "best"),
     "14:30: error system-json found `best` for collective-optimization, expected localBWAware or baseline"),
    (changed("all-reduce-implementation", ["ring", "Ring"]),
     f"8:5: error system-json found `Ring` in all-reduce-implementation, expected {NAMES}"),
    (changed("all-reduce-implementation", ["ring", "one-direct"]),
     f"8:5: error system-json found `one-direct` in all-reduce-implementation, expected {NAMES}"),
    (changed("all-reduce-implementation", ["direct0", "ring"]),
     f"7:5: error system-json found `direct0` in all-reduce-implementation, expected {NAMES}"),
    (changed("all-reduce-implementation", ["ring"]),
     "6:32: error system-json found 1 in all-reduce-implementation, "
     "expected 2, one a dimension of the network"),
    (changed("all-reduce-implementation", "ring"),
     "6:32: error system-json found 1 in all-reduce-implementation, "
     "expected 2, one a dimension of the network"),
    (changed("all-reduce-implementation", 1),
     "6:32: error system-json found `1` for all-reduce-implementation, "
     "expected a list of one algorithm a dimension"),
    (changed("scheduling-policy", "best"),
     "2:24: error system-json found `best` for scheduling-policy, expected LIFO or FIFO"),
    ("endpoint-delay: 10\nall-reduce-implementation: ring_mesh\n",
     f"2:28: error system-json found `mesh` in all-reduce-implementation, expected {NAMES}"),
    ("endpoint-delay: 10\nring ring\n",
     "2:1: error system-json found `ring ring`, expected a system.json: lines of `key: value`"),
    ("{\n \"a\": }", "2:7: error system-json this is not JSON: Expecting value"),
    ("[]", "1:1: error system-json found no object, expected a system.json"),
    ("[" * 100_000, ": error system-json found too many nested lists, expected an object"),
    ("{\"splits\": " + "9" * 5000 + "}",
     ": error system-json found a number that is too long, expected a system.json"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG_SYSTEMS, ids=message_of)
def test_a_wrong_system_file_says_where_and_what_was_expected(
    tmp_path: Path, text: str, message: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as error:
        read_system_file(path, 2)
    assert str(error.value) == path + ("" if message.startswith(":") else ":") + message


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path, message in [
        (str(tmp_path), "error not-a-cluster-file found a directory, expected a file"),
        ("/dev/null", "error not-a-cluster-file found no regular file, expected a file"),
        (str(tmp_path / "none"), "error unreadable-file the file cannot be read: No such file or directory"),
        ("a\0b", "error no-such-file there is no such file"),
    ]:
        with pytest.raises(InputError) as error:
            read_system_file(path, 2)
        assert str(error.value).endswith(": " + message)


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *NETWORK.split(),
            *TOML.split(),
            *json.dumps(SYSTEM).split(),
            "\n",
            "[",
            "]",
            ",",
            "{",
            "}",
            "\t",
            "1e400",
        ]
    )
    | st.text(max_size=3)
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FRAGMENTS, st.sampled_from([" ", "\n", ""]))
def test_any_text_is_settings_or_an_input_error(tmp_path: Path, words: list[str], between: str) -> None:
    path = written(tmp_path, between.join(words).encode("utf-8", "surrogatepass"))
    for read in (read_cluster_file, lambda path: read_system_file(path, 2)):
        with contextlib.suppress(InputError):
            read(path)


def test_files_are_read_without_what_no_file_needs() -> None:
    import subprocess

    code = (
        "import sys, simcore.simulation; print([m for m in ('yaml', 'tomllib', 'json') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
