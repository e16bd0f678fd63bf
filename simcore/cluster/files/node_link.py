"""A graph as networkx writes it (`node_link_data`): JSON of nodes and links.

{"graph": {"gpus_per_server": 8},
 "nodes": [{"id": "gpu0", "kind": "gpu"}, {"id": "sw", "kind": "switch"}],
 "links": [{"source": "gpu0", "target": "sw", "gbps": 400, "latency_ns": 500}]}

The kind of a node is gpu (host, npu), nvswitch or switch; GPUs are numbered in their order, then the others.
"""

from __future__ import annotations

import json
from typing import Any

from simcore.cluster.files.simai_topology import RATE_UNITS, TIME_UNITS, parse_quantity, topology_settings
from simcore.cluster.files.source import ClusterText, is_number, quoted
from simcore.cluster.parsing import Settings
from simcore.topology import Link, Topology

_CODE = "topology-file"
_KIND_KEYS = ("kind", "type", "role")
_GPU_WORDS, _NVSWITCH_WORDS, _SWITCH_WORDS = ("gpu", "npu", "host"), ("nvswitch",), ("switch",)
_LINK_KEYS = ("links", "edges")


def is_node_link(text: str) -> bool:
    """Returns whether a JSON text may be a graph: it has nodes, and links or edges."""
    return '"nodes"' in text and any(f'"{key}"' in text for key in _LINK_KEYS)


def read_node_link(source: ClusterText) -> Settings:
    """Returns the settings of a graph. Raises InputError."""
    try:
        root = json.loads(source.text)
    except (ValueError, RecursionError):
        raise source.make_error(_CODE, "this is not JSON: expected a graph of nodes and links") from None
    return read_graph(source, root if isinstance(root, dict) else {})


def read_graph(source: ClusterText, root: dict[str, Any]) -> Settings:
    """Returns the settings of a graph as a table of its nodes and links. Raises InputError."""
    nodes: Any = root.get("nodes")
    links: Any = next((root[key] for key in _LINK_KEYS if key in root), None)
    if not _are_tables(nodes) or not _are_tables(links):
        raise source.make_error(_CODE, "found no list of nodes and list of links, expected both")
    of_kind: dict[str, list[object]] = {"gpu": [], "nvswitch": [], "switch": []}
    for node in nodes:
        of_kind[_kind_of(source, node)].append(node.get("id"))
    names = [name for members in of_kind.values() for name in members]
    node_ids = {_key(name): node for node, name in enumerate(names)}
    if len(node_ids) != len(names) or not of_kind["gpu"]:
        raise source.make_error(_CODE, "found nodes of one id, or no GPU; expected ids and a GPU")
    gpus = len(of_kind["gpu"])
    first_switch = gpus + len(of_kind["nvswitch"])
    graph = root.get("graph")
    size = graph.get("gpus_per_server") if isinstance(graph, dict) else None
    per_server = size if size is not None else gpus // max(len(of_kind["nvswitch"]), 1)
    if len(of_kind["nvswitch"]) == 0 and size is None:
        per_server = 1
    if not isinstance(per_server, int) or isinstance(per_server, bool) or not 1 <= per_server <= gpus:
        raise source.make_error(_CODE, f"found gpus_per_server {quoted(per_server)}, expected 1 to {gpus}")
    return topology_settings(
        Topology(
            source.path,
            gpus,
            per_server,
            tuple(range(gpus, first_switch)),
            tuple(range(first_switch, len(names))),
            tuple(_read_link(source, link, node_ids) for link in links),
            str(graph.get("gpu_type", "NONE")) if isinstance(graph, dict) else "NONE",
        )
    )


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _key(name: object) -> str:
    # An id is a text or a number, and 1 is not "1".
    return repr(name)


def _kind_of(source: ClusterText, node: dict[str, Any]) -> str:
    word = next((str(node[key]).lower() for key in _KIND_KEYS if key in node), "")
    for kind, words in (("gpu", _GPU_WORDS), ("nvswitch", _NVSWITCH_WORDS), ("switch", _SWITCH_WORDS)):
        if word in words:
            return kind
    found_text = quoted(word or node.get("id"))
    raise source.make_error(_CODE, f"found node {found_text}, expected kind gpu, nvswitch or switch")


def _read_link(source: ClusterText, link: dict[str, Any], node_ids: dict[str, int]) -> Link:
    ends = [node_ids.get(_key(link.get(key))) for key in ("source", "target")]
    if None in ends or ends[0] == ends[1]:
        text = quoted(f"{link.get('source')} to {link.get('target')}")
        raise source.make_error(_CODE, f"found link {text}, expected one between two of the nodes")
    gbps = _quantity(link, "gbps", "rate", RATE_UNITS)
    latency_ns = _quantity(link, "latency_ns", "latency", TIME_UNITS)
    if gbps is None or not 1e-3 <= gbps <= 1e9 or latency_ns is None or not 0 <= latency_ns <= 1e9:
        expected = "gbps (or rate `400Gbps`) and latency_ns (or latency `500ns`)"
        raise source.make_error(_CODE, f"found a link without rate or latency, expected {expected}")
    first, second = ends
    assert first is not None
    assert second is not None
    return Link(first, second, gbps, latency_ns)


def _quantity(link: dict[str, Any], key: str, text_key: str, units: dict[str, float]) -> float | None:
    """Returns a number of its unit, or a text with one; None for neither."""
    value = link.get(key)
    if is_number(value):
        return float(value)  # type: ignore[arg-type]
    text = link.get(text_key)
    return parse_quantity(text, units) if isinstance(text, str) else None
