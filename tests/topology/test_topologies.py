"""Topologies: what files and generators give, and what is told of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def test_a_tier_has_another_rate_where_its_links_have_none_of_their_own() -> None:
    dcn = choose_cluster(
        ClusterParameters(cluster="dcn:16:npa=8:psn=2", link_rate=("psw-asw=2", "18-20=0.5"))
    )
    topology, plain = dcn.settings.topology, generate_topology("dcn:16:npa=8:psn=2")
    assert topology is not None
    for link, before in zip(topology.links, plain.links, strict=True):
        factor = 0.5 if {*link[:2]} == {18, 20} else 2 if min(link[:2]) >= 18 else 1
        assert link.gbps == before.gbps * factor


def test_a_cluster_without_links_by_number_has_no_rates_of_links() -> None:
    with pytest.raises(UsageError, match="topology"):
        choose_cluster(ClusterParameters(cluster="h100-8", link_rate=("0-1=0.5",)))


LEAF_SPINE = """# a comment
Nodes 32
Tiers 2
Podsize 32

Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 300
Oversubscribed 4

Tier 1
Downlink_speed_Gbps 200
Radix_Down 4
Downlink_Latency_ns 600
Switch_Latency_ns 100
"""
THREE_TIERS = """Nodes 432
Tiers 3
Podsize 36
Tier 0
Downlink_speed_Gbps 100
Radix_Down 6
Radix_Up 6
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 100
Radix_Down 6
Radix_Up 6
Downlink_Latency_ns 1000
Tier 2
Downlink_speed_Gbps 100
Radix_Down 36
Downlink_Latency_ns 600000
Bundle 3
"""


def test_a_file_of_htsim_is_a_leaf_spine(tmp_path: Path) -> None:
    file = tmp_path / "leaf_spine.topo"
    file.write_text(LEAF_SPINE)
    topology = topology_of(file)
    assert (topology.gpus, topology.gpus_per_server, len(topology.switches)) == (32, 1, 4 + 2)
    assert Counter(topology.tiers().values()) == {1: 4, 2: 2}
    assert topology.oversubscription() == {1: (3200.0, 1600.0)}
    # Over both tiers: the links, twice the lower switch and once the upper one.
    assert topology.links[0].latency_ns * 2 + topology.links[-1].latency_ns * 2 == 3200 + 2 * 300 + 100
    assert [link.target for link in topology.links[:32]] == [32 + node // 8 for node in range(32)]


def test_a_file_of_htsim_has_pods_and_bundles(tmp_path: Path) -> None:
    file = tmp_path / "three.topo"
    file.write_text(THREE_TIERS)
    topology = topology_of(file)
    assert Counter(topology.tiers().values()) == {1: 72, 2: 72, 3: 12}
    assert topology.oversubscription() == {}
    ends = Counter(link[:2] for link in topology.links if topology.tiers().get(link.target) == 3)
    assert set(ends.values()) == {3}
    # A core switch has a bundle to one switch of each pod, at the same position.
    core = 432 + 72 + 72
    assert {(link.source - 432 - 72) % 6 for link in topology.links if link.target == core} == {0}
    assert sum(link.target == core for link in topology.links) == 36
    assert not topology.unconnected()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Tiers 2", "Tiers 4"), ("Radix_Down 8", "Radix_Down 7"), ("Radix_Up 2", "Radix_Upward 2"),
        ("Downlink_Latency_ns 600", ""), ("Nodes 32", "Nodes 99999999"), ("Tier 1", "Tier 3"),
        ("Radix_Down 8", "Radix_Down many"),
    ],
)  # fmt: skip
def test_a_file_of_htsim_that_fits_nowhere_is_refused(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "wrong.topo"
    file.write_text(LEAF_SPINE.replace(before, after, 1))
    with pytest.raises(InputError):
        topology_of(file)


GRAPH = {
    "directed": False,
    "graph": {"gpus_per_server": 2},
    "nodes": [{"id": "sw", "kind": "switch"}]
    + [{"id": gpu, "type": "GPU"} for gpu in range(4)]
    + [{"id": f"nv{server}", "kind": "nvswitch"} for server in range(2)],
    "links": [{"source": gpu, "target": "sw", "gbps": 400, "latency_ns": 500} for gpu in range(4)]
    + [
        {"source": gpu, "target": f"nv{gpu // 2}", "rate": "2.88Tbps", "latency": "0.025us"}
        for gpu in range(4)
    ],
}


def test_a_graph_of_networkx_is_a_topology(tmp_path: Path) -> None:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(GRAPH))
    topology = topology_of(file)
    assert (topology.gpus, topology.gpus_per_server) == (4, 2)
    assert (topology.inner_switches, topology.switches) == ((4, 5), (6,))
    assert topology.links[0] == (0, 6, 400.0, 500.0)
    assert topology.links[-1] == (3, 5, 2880.0, 25.0)
    edges = {**GRAPH, "edges": GRAPH["links"]}
    del edges["links"]
    file.write_text(json.dumps(edges))
    assert topology_of(file).links == topology.links


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes": []}, {"nodes": [{"id": 0}]},
        {"links": [{"source": 0, "target": 9, "gbps": 1, "latency_ns": 1}]},
        {"links": [{"source": 0, "target": "sw", "gbps": "fast", "latency_ns": 1}]}, {"links": 3},
        {"graph": {"gpus_per_server": 0}}, {"nodes": [{"id": 0, "kind": "gpu"}, {"id": 0, "kind": "switch"}]},
    ],
)  # fmt: skip
def test_a_graph_that_is_no_network_is_refused(tmp_path: Path, changed: dict[str, object]) -> None:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps({**GRAPH, **changed}))
    with pytest.raises(InputError):
        topology_of(file)


def graphml_of(graph: dict[str, Any]) -> str:
    """The graph as networkx writes it in GraphML."""
    keys: dict[tuple[str, str], str] = {}

    def data(of: str, attributes: dict[str, Any]) -> str:
        texts = []
        for name, value in attributes.items():
            key = (
                keys.setdefault((of, name), f"d{len(keys)}") if name not in ("id", "source", "target") else ""
            )
            texts.append(f'<data key="{key}">{value}</data>' if key else "")
        return "".join(texts)

    nodes = [f'<node id="{node["id"]}">{data("node", node)}</node>' for node in graph["nodes"]]
    edges = [
        f'<edge source="{link["source"]}" target="{link["target"]}">{data("edge", link)}</edge>'
        for link in graph["links"]
    ]
    of_graph = data("graph", graph["graph"])
    types = dict.fromkeys(("gbps", "latency_ns", "gpus_per_server"), "long")
    declared = "".join(
        f'<key id="{key}" for="{of}" attr.name="{name}" attr.type="{types.get(name, "string")}"/>'
        for (of, name), key in keys.items()
    )
    body = f'<graph edgedefault="undirected">{"".join(nodes + edges)}{of_graph}</graph>'
    space = 'xmlns="http://graphml.graphdrawing.org/xmlns"'
    return f"<?xml version='1.0' encoding='utf-8'?>\n<graphml {space}>{declared}{body}</graphml>"


def test_a_graph_in_graphml_is_the_topology_of_its_json(tmp_path: Path) -> None:
    as_json, as_xml = tmp_path / "graph.json", tmp_path / "graph.graphml"
    as_json.write_text(json.dumps(GRAPH))
    as_xml.write_text(graphml_of(GRAPH))
    for field in ("gpus", "gpus_per_server", "inner_switches", "switches", "links"):
        assert getattr(topology_of(as_xml), field) == getattr(topology_of(as_json), field)


BOMB = '<!DOCTYPE g [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("<graphml", f"{BOMB}<graphml", 1).replace(">switch<", ">&b;<"),
        lambda text: text.replace("<graphml", f"{OUTSIDE}<graphml", 1).replace(">switch<", ">&a;<"),
        lambda text: text.replace("<graphml", "<!DOCTYPE g SYSTEM 'http://localhost/x'><graphml", 1),
        lambda text: text.replace(">switch<", ">&b;<"),
        lambda text: text[: len(text) // 2],
        lambda text: text.replace(">400<", ">fast<"),
        lambda text: text.replace('target="sw"', 'target="nowhere"'),
        lambda text: text.replace("</graph>", "<a>" * 200_000),
        lambda text: text.replace("attr.name", "name"),
        lambda text: text.replace("'utf-8'", "'no-such'").replace(">400<", ">fast<"),
    ],
    ids=[
        "entities",
        "a file",
        "an address",
        "no entity",
        "cut",
        "a rate",
        "an end",
        "deep",
        "no names",
        "utf",
    ],
)
def test_graphml_that_is_no_network_is_refused(tmp_path: Path, change: Callable[[str], str]) -> None:
    file = tmp_path / "graph.graphml"
    file.write_text(change(graphml_of(GRAPH)))
    with pytest.raises(InputError):
        topology_of(file)
