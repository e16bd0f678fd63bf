"""Topologies: what files and generators give, and what is told of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from simcore.cluster import ClusterParameters, choose_cluster
from simcore.diagnostics import InputError, UsageError
from simcore.topology import Topology, generate_topology

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "simai_ns3"
GENERATORS = {"Spectrum-X": "spectrum-x", "AlibabaHPN": "hpn", "DCN+": "dcn"}
# The generator's arguments of files that no run has.
ARGUMENTS = {
    "sx_16_h100_400G_lat5us": "-topo Spectrum-X -g 16 -psn 8 -gt H100 -l 5000",
    "sx_8_a100_400G_default": "-topo Spectrum-X -g 8 -gt A100",
    "sx_8_a100_nvbw2400G": "-topo Spectrum-X -g 8 -gt A100 -nvbw 2400Gbps -bw 200Gbps -psn 8",
}
TOML = """
gpus = 16
nvswitches = 2
switches = 2
links = ["0-7 16 2880Gbps 25ns", "8-15 17 2880Gbps 25ns", "0-15 18-19 200Gbps 500ns"]
failed = ["3 18"]
slow = ["4 18 0.5"]
"""


def topology_of(path: Path | str) -> Topology:
    topology = choose_cluster(ClusterParameters(cluster=str(path))).cluster(1).topology
    assert topology is not None
    return topology


def generator_text(arguments: str) -> str:
    """The name that wltui gives what SimAI's generator makes of these arguments."""
    words = arguments.split()
    flags = [word[2:] for word in words if word.startswith("--")]
    pairs = [word for word in words if not word.startswith("--")]
    options = {key[1:]: value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}
    # The number of lower switches follows from the rest.
    options.pop("asn", None)
    name, gpus = GENERATORS[options.pop("topo")], options.pop("g")
    return ":".join([name, gpus, *flags, *(f"{key}={value}" for key, value in options.items())])


def test_generators_make_the_files_of_simai_link_for_link() -> None:
    if not GOLDEN.exists():
        pytest.skip("../shared/golden/simai_ns3 is not here")
    arguments = dict(ARGUMENTS)
    for run in json.loads((GOLDEN / "runs.json").read_text())["runs"]:
        if "topo" in run and "topology_generator_args" in run:
            arguments[run["topo"]] = run["topology_generator_args"]
    files = sorted((GOLDEN / "topo").iterdir())
    assert len(files) == 20
    for file in files:
        from_file, generated = topology_of(file), topology_of(generator_text(arguments[file.name]))
        for field in ("gpus", "gpus_per_server", "inner_switches", "switches", "links", "gpu_type"):
            assert getattr(generated, field) == getattr(from_file, field), (file.name, field)


def test_servers_rails_and_tiers_of_each_generator() -> None:
    spectrum = generate_topology("spectrum-x:64:psn=8")
    assert (spectrum.servers, spectrum.rails(), Counter(spectrum.tiers().values())) == (8, 8, {1: 8, 2: 8})
    dcn = generate_topology("dcn:32:npa=8:psn=4")
    assert (dcn.servers, dcn.rails(), Counter(dcn.tiers().values())) == (4, 0, {1: 4, 2: 4})
    tree = generate_topology("fat-tree:8")
    assert (tree.gpus, Counter(tree.tiers().values())) == (128, {1: 32, 2: 32, 3: 16})
    assert not tree.oversubscription()
    assert not tree.unconnected()


def test_a_tier_with_less_to_above_is_oversubscribed() -> None:
    assert generate_topology("dcn:32:npa=8:psn=4").oversubscription() == {1: (12800.0, 6400.0)}
    assert generate_topology("dcn:32:npa=8:psn=8").oversubscription() == {}


def test_a_toml_states_nodes_links_and_failures(tmp_path: Path) -> None:
    file = tmp_path / "fabric.toml"
    file.write_text(TOML)
    topology = topology_of(file)
    assert (topology.nodes, topology.servers, len(topology.links)) == (20, 2, 16 + 32 - 1)
    rates = {(link.source, link.target): link.gbps for link in topology.links}
    assert (3, 18) not in rates
    assert (rates[4, 18], rates[4, 19]) == (100, 200)


def test_a_generated_topology_can_have_failures(tmp_path: Path) -> None:
    file = tmp_path / "fabric.toml"
    file.write_text('topology = "spectrum-x:16:psn=8"\nfailed = ["0-15 18-25"]\n')
    with pytest.raises(InputError):
        # Not each of these GPUs is on each of these switches.
        topology_of(file)
    file.write_text('topology = "spectrum-x:16:psn=8"\nfailed = ["0 18", "18-25 26-33"]\n')
    choice = choose_cluster(ClusterParameters(cluster=str(file)))
    assert [found.code for found in choice.diagnostics] == ["topology", "topology-unconnected"]


@pytest.mark.parametrize("text", ["spectrum-x:12", "spectrum-x:x", "hpn:16:dt", "dcn:16:npa=0", "fat-tree:5",
                                  "spectrum-x:60000:psn=60000", "spectrum-x:8:bw=fast"])  # fmt: skip
def test_a_generator_refuses_what_it_cannot_make(text: str) -> None:
    with pytest.raises(UsageError):
        generate_topology(text)


def test_a_topology_has_dimensions_for_networks_without_links() -> None:
    cluster = choose_cluster(ClusterParameters(cluster="hpn:32:psn=8")).cluster(32)
    assert [(dim.kind, dim.size, dim.bandwidth) for dim in cluster.dims] == [
        ("switch", 8, 360),
        ("switch", 4, 50),
    ]


def test_other_dimensions_are_another_network() -> None:
    choice = choose_cluster(ClusterParameters(cluster="hpn:32:psn=8", dim=("switch:32:50:500",)))
    assert choice.cluster(32).topology is None


def test_a_configuration_states_packets(tmp_path: Path) -> None:
    file = tmp_path / "SimAI.conf"
    file.write_text("CC_MODE 0\nPACKET_PAYLOAD_SIZE 1000\nHAS_WIN 0\nKMIN_MAP 1 400000000000 800\n")
    packets = choose_cluster(ClusterParameters(system=str(file))).cluster(8).packets
    assert packets is not None
    assert (packets.payload, packets.window, packets.control_name) == (1000, False, "")
    assert packets.mark_from == ((400.0, 800),)


def test_a_link_is_slower_or_fails_by_its_ends() -> None:
    dcn = choose_cluster(ClusterParameters(cluster="dcn:16:npa=8:psn=2", link_rate=("18-20=0.5", "21-19=0")))
    changed, before = dcn.settings.topology, generate_topology("dcn:16:npa=8:psn=2")
    assert changed is not None
    rates = {frozenset(link[:2]): link.gbps for link in changed.links}
    assert len(changed.links) == len(before.links) - 1
    assert frozenset((19, 21)) not in rates
    assert {
        frozenset(link[:2]): link.gbps for link in before.links if link[:2] not in ((19, 21), (18, 20))
    } == {ends: rate for ends, rate in rates.items() if ends != frozenset((18, 20))}
    assert rates[frozenset((18, 20))] == 200.0


@pytest.mark.parametrize(
    "text", ["18", "18-20", "18-20=fast", "18-18=0.5", "18-20=-1", "18-20=1e9", "0-21=0.5"]
)
def test_a_link_that_is_not_there_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--link-rate"):
        choose_cluster(ClusterParameters(cluster="dcn:16:npa=8:psn=2", link_rate=(text,)))


def test_a_cluster_without_links_by_number_has_no_rates_of_links() -> None:
    with pytest.raises(UsageError, match="topology"):
        choose_cluster(ClusterParameters(cluster="h100-8", link_rate=("0-1=0.5",)))
