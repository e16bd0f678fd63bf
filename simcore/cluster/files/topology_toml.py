"""A topology in wltui's own cluster file: nodes and links, or a generated one with failures.

gpus = 16
gpus_per_server = 8
nvswitches = 2                                       # numbered behind the GPUs, then the switches
switches = 2
links = [
    "0-7 16 2880Gbps 25ns", "8-15 17 2880Gbps 25ns", # each of the first with each of the second
    "0-15 18-19 200Gbps 500ns",
]
failed = ["3 18"]                                    # links that are down
slow = ["4 18 0.5"]                                  # links with a part of their rate

In place of all but the last two, `topology = "spectrum-x:64:psn=8"` has the links of a generator.
"""

from __future__ import annotations

import re
from typing import Any

from simcore.cluster.files.simai_topology import RATE_UNITS, TIME_UNITS, parse_quantity, topology_settings
from simcore.cluster.files.source import ClusterText, quoted
from simcore.cluster.parsing import MOST_NPUS, Settings
from simcore.diagnostics import InputError, UsageError
from simcore.model.toml_text import locate_key
from simcore.records import replace
from simcore.topology import (
    Ends,
    Link,
    Topology,
    generate_topology,
    is_generator,
    missing_link,
    with_link_rates,
)

KEYS = (
    "topology", "gpus", "gpus_per_server", "gpu_type", "nvswitches", "switches", "links", "failed", "slow",
)  # fmt: skip
_CODE = "cluster-toml"
_RANGE = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")
_MOST_LINKS = 1 << 22


def read_topology_table(source: ClusterText, table: dict[str, Any]) -> Settings:
    """Returns the settings of the keys of a topology. Raises InputError."""
    text = table.get("topology")
    if text is not None:
        clash = next((key for key in KEYS[1:7] if key in table), None)
        if clash is not None:
            raise _error(source, clash, f"found {clash} with topology, expected one of them")
        if not isinstance(text, str) or not is_generator(text):
            raise _error(
                source, "topology", f"found {quoted(text)} for topology, expected spectrum-x:64 or so"
            )
        try:
            topology = generate_topology(text)
        except UsageError as error:
            raise _error(source, "topology", str(error).removeprefix("--cluster ")) from None
    else:
        topology = _read_nodes(source, table)
    changed: dict[Ends, float] = {}
    for key in ("failed", "slow"):
        for entry in _texts(source, table, key):
            words = entry.split()
            factor = parse_quantity(f"{words[-1]}x", {"x": 1.0}) if key == "slow" and words else 0.0
            ends = words if key == "failed" else words[:-1]
            if len(ends) != 2 or factor is None or (key == "slow" and not 0 < factor <= 1):
                example = "3 18" if key == "failed" else "3 18 0.5"
                raise _error(
                    source, key, f"found {quoted(entry)} in {key}, expected a link like {example}", entry
                )
            for first in _nodes(source, key, entry, ends[0], topology.nodes):
                for second in _nodes(source, key, entry, ends[1], topology.nodes):
                    changed[frozenset((first, second))] = factor
    missing = missing_link(topology, changed)
    if missing is not None:
        ends_text = " to ".join(map(str, sorted(missing)))
        key = "failed" if not changed[missing] else "slow"
        raise _error(source, key, f"found no link {ends_text}, expected one of the topology")
    topology = with_link_rates(topology, changed)
    return topology_settings(replace(topology, name=source.path))


def _read_nodes(source: ClusterText, table: dict[str, Any]) -> Topology:
    counts = {}
    for key, least, default in (
        ("gpus", 1, None),
        ("gpus_per_server", 1, 8),
        ("nvswitches", 0, 0),
        ("switches", 0, 0),
    ):
        value = table.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST_NPUS:
            message = f"found {quoted(value)} for {key}, expected a whole number from {least} to {MOST_NPUS}"
            raise _error(source, key, message)
        counts[key] = value
    gpus, inner = counts["gpus"], counts["nvswitches"]
    first_outer = gpus + inner
    nodes = first_outer + counts["switches"]
    gpu_type = table.get("gpu_type", "NONE")
    if not isinstance(gpu_type, str):
        raise _error(source, "gpu_type", f"found {quoted(gpu_type)} for gpu_type, expected a text")
    links: list[Link] = []
    for entry in _texts(source, table, "links"):
        words = entry.split()
        gbps = parse_quantity(words[2], RATE_UNITS) if len(words) == 4 else None
        latency = parse_quantity(words[3], TIME_UNITS) if len(words) == 4 else None
        if gbps is None or latency is None or not 1e-3 <= gbps <= 1e9 or not 0 <= latency <= 1e9:
            message = f"found {quoted(entry)} in links, expected a link like 0-7 16 400Gbps 500ns"
            raise _error(source, "links", message, entry)
        firsts = _nodes(source, "links", entry, words[0], nodes)
        seconds = _nodes(source, "links", entry, words[1], nodes)
        if len(links) + len(firsts) * len(seconds) > _MOST_LINKS:
            raise _error(source, "links", f"found more than {_MOST_LINKS} links", entry)
        links += [Link(one, two, gbps, latency) for one in firsts for two in seconds if one != two]
    return Topology(
        source.path,
        gpus,
        min(counts["gpus_per_server"], gpus),
        tuple(range(gpus, first_outer)),
        tuple(range(first_outer, nodes)),
        tuple(links),
        gpu_type,
    )


def _nodes(source: ClusterText, key: str, entry: str, text: str, nodes: int) -> range:
    match = _RANGE.fullmatch(text)
    first = int(match[1]) if match else nodes
    last = int(match[2] or match[1]) if match else nodes
    if not first <= last < nodes:
        message = f"found {quoted(text)} in {key}, expected a node or a range of them, 0 to {nodes - 1}"
        raise _error(source, key, message, entry)
    return range(first, last + 1)


def _texts(source: ClusterText, table: dict[str, Any], key: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise _error(source, key, f"found {quoted(value)} for {key}, expected a list of texts")
    return value


def _error(source: ClusterText, key: str, message: str, text: str | None = None) -> InputError:
    return source.make_error(_CODE, message, locate_key(source.text, key, text or ""))
