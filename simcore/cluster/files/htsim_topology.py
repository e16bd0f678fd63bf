"""htsim's topology file, which ASTRA-sim's htsim backend takes: a fat tree of two or three tiers.

Nodes 32
Tiers 2
Podsize 32
Tier 0                    # the lowest switches
Downlink_speed_Gbps 100   # also of the tier below upwards
Radix_Down 8
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 0       # optional, as Bundle (links between two switches), Oversubscribed and Queue_..
Tier 1
...
"""

from __future__ import annotations

import itertools
import re

from simcore.cluster.files.simai_topology import topology_settings
from simcore.cluster.files.source import ClusterText, quoted
from simcore.cluster.parsing import Settings
from simcore.diagnostics import InputError
from simcore.records import Struct
from simcore.topology import Link, Topology
from simcore.units import plain_number

_CODE = "topology-file"
_MOST_NODES, _MOST_LINKS = 1 << 20, 1 << 22
_HEADER_KEYS = ("nodes", "tiers", "podsize")
_TIER_KEYS = (
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "downlink_latency_ns",
    "switch_latency_ns",
    "bundle",
)
_NEEDED = ("downlink_speed_gbps", "radix_down", "downlink_latency_ns")
# What follows from the others, and queues, which flows do not have.
_IGNORED_KEYS = ("oversubscribed", "queue_down", "queue_up")


# Key -> (value, line).
_Values = dict[str, tuple[float, int]]


class _Tier(Struct):
    gbps: float
    down: int
    up: int
    latency_ns: float
    switch_ns: float
    bundle: int


def is_htsim_topology(text: str) -> bool:
    """Returns whether a text is htsim's topology file."""
    return all(re.search(rf"^[ \t]*{key}[ \t]+[0-9]+[ \t\r]*$", text, re.I | re.M) for key in _HEADER_KEYS)


def read_htsim_topology(source: ClusterText) -> Settings:
    """Returns the settings of a topology file: every node is a server of one GPU. Raises InputError."""
    head: dict[str, tuple[int, int]] = {}
    tiers: dict[int, _Values] = {}
    current: _Values | None = None
    for line_number, line in enumerate(source.text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        key = words[0].lower()
        value = plain_number(words[1]) if len(words) > 1 else None
        if key in _IGNORED_KEYS:
            continue
        if key not in (*_HEADER_KEYS, *_TIER_KEYS, "tier"):
            expected = "one of Nodes, Tiers, Podsize, Tier and the keys of a tier"
            raise _error(source, f"found {quoted(words[0])}, expected {expected}", line_number)
        if value is None or not 0 <= value <= 1e9 or (value != int(value) and not key.startswith("down")):
            raise _error(
                source, f"found {quoted(line.strip())}, expected {words[0]} and a number", line_number
            )
        if key in _HEADER_KEYS:
            head[key] = int(value), line_number
        elif key == "tier":
            if not 0 <= value <= 2:
                raise _error(source, f"found {quoted(line.strip())}, expected Tier 0, 1 or 2", line_number)
            current = tiers.setdefault(int(value), {})
        elif current is None:
            raise _error(source, f"found {words[0]} before a tier, expected Tier 0", line_number)
        else:
            current[key] = value, line_number
    return topology_settings(_build_tree(source, head, tiers))


def _build_tree(source: ClusterText, head: dict[str, tuple[int, int]], tiers: dict[int, _Values]) -> Topology:
    nodes, node_line = head["nodes"]
    count, tier_line = head["tiers"]
    if not 1 <= nodes <= _MOST_NODES:
        raise _error(source, f"found {nodes} nodes, expected 1 to {_MOST_NODES}", node_line)
    if count not in (2, 3):
        raise _error(source, f"found {count} tiers, expected 2 or 3", tier_line)
    read = [_read_tier(source, tiers, tier, count, tier_line) for tier in range(count)]
    pod = nodes if count == 2 else head["podsize"][0]
    pod_line = head["podsize"][1]
    if not pod or nodes % pod or pod % read[0].down:
        message = f"found pods of {pod} for {nodes} nodes and switches of {read[0].down}, expected whole ones"
        raise _error(source, message, pod_line)
    for tier, above in itertools.pairwise(read):
        if tier.up % above.bundle:
            message = f"found Radix_Up {tier.up} for bundles of {above.bundle}, expected whole bundles"
            raise _error(source, message, tier_line)
    lower, middle = nodes // read[0].down, read[0].up // read[1].bundle * (nodes // pod)
    top = middle // (nodes // pod) * (read[1].up // read[2].bundle) if count == 3 else 0
    links = nodes + lower * read[0].up + (middle * read[1].up if count == 3 else 0)
    if links > _MOST_LINKS:
        raise _error(source, f"found about {links} links, expected at most {_MOST_LINKS}", node_line)
    return Topology(
        source.path,
        nodes,
        1,
        (),
        tuple(range(nodes, nodes + lower + middle + top)),
        tuple(_links(nodes, pod, read)),
    )


def _links(nodes: int, pod: int, tiers: list[_Tier]) -> list[Link]:
    """Returns the links, those of a tier after those below it. Half of the latency of a switch is on each of
    its links.
    """
    low, high = tiers[0], tiers[1]
    lower, pods = nodes // low.down, nodes // pod
    a_pod, lower_a_pod = low.up // high.bundle, pod // low.down
    latency = low.latency_ns + low.switch_ns / 2
    links = [Link(node, nodes + node // low.down, low.gbps, latency) for node in range(nodes)]
    latency = high.latency_ns + (low.switch_ns + high.switch_ns) / 2
    first_high = nodes + lower
    for switch in range(lower):
        first = first_high + switch // lower_a_pod * a_pod
        links += [
            Link(nodes + switch, first + index, high.gbps, latency)
            for index in range(a_pod)
            for _ in range(high.bundle)
        ]
    if len(tiers) == 3:
        top = tiers[2]
        first_top = first_high + pods * a_pod
        latency = top.latency_ns + (high.switch_ns + top.switch_ns) / 2
        for switch in range(pods * a_pod):
            links += [
                Link(first_high + switch, first_top + switch % a_pod + a_pod * index, top.gbps, latency)
                for index in range(high.up // top.bundle)
                for _ in range(top.bundle)
            ]
    return links


def _read_tier(
    source: ClusterText,
    tiers: dict[int, dict[str, tuple[float, int]]],
    tier: int,
    count: int,
    line_number: int,
) -> _Tier:
    values = tiers.get(tier, {})
    needed = (*_NEEDED, *(("radix_up",) if tier < count - 1 else ()))
    missing = next((key for key in needed if not values.get(key, (0, 0))[0]), None)
    if missing is not None:
        raise _error(source, f"found no {missing} of tier {tier}, expected a number above 0", line_number)

    def value(key: str, default: float = 0.0) -> float:
        return values.get(key, (default, 0))[0]

    return _Tier(
        value("downlink_speed_gbps"),
        int(value("radix_down")),
        int(value("radix_up")),
        value("downlink_latency_ns"),
        value("switch_latency_ns"),
        max(int(value("bundle", 1.0)), 1),
    )


def _error(source: ClusterText, message: str, line_number: int) -> InputError:
    return source.make_error(_CODE, message, (line_number, 1))
