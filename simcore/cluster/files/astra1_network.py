"""ASTRA-sim 1.0 network `.json` of the analytical backend, topology `Hierarchical`: lists by dimension.

    "topologies-per-dim": ["Ring", "Switch"], "units-count": [4, 4], "links-count": [2, 1],
    "link-latency": [500, 2000], "link-bandwidth": [200.0, 50]

Bandwidths are GiB/s (2^30) of one link, latencies ns a hop. An NPU has `links-count` links, which
a message uses together on a ring or switch; fully connected, each peer has its share of them.
"""

from __future__ import annotations

from fractions import Fraction

from simcore.cluster.files.astra_network import KINDS
from simcore.cluster.files.source import ClusterText, Entries, is_number, json_entries
from simcore.cluster.model import Dimension
from simcore.cluster.parsing import BANDWIDTHS, LATENCIES, MOST_NPUS, Settings
from simcore.diagnostics import Diagnostic

_CODE = "network-json"
_WHAT = "an ASTRA-sim 1.0 network"
# What ASTRA-sim 1.0 takes for the local memory when it prices a reduction, GB/s.
LOCAL_MEMORY = 500_000.0
_TOPOLOGIES = "topologies-per-dim"
_PRICED = (_TOPOLOGIES, "units-count", "links-count", "link-latency", "link-bandwidth")
_UNPRICED = ("nic-latency", "router-latency", "hbm-latency", "hbm-scale")
_SILENT = ("topology-name", "dimension-type", "dimensions-count", "hbm-bandwidth", *_UNPRICED)


def read_network_json(source: ClusterText) -> Settings:
    """The dimensions of a 1.0 network, bandwidths in bytes per ns. Raises InputError."""
    entries = json_entries(source, _CODE, _WHAT)
    topologies = entries.list_of(_TOPOLOGIES)
    count = len(topologies)
    columns = [topologies, *[entries.list_of(key, count) for key in _PRICED[1:]]]
    dims = []
    for index, (topology, units, links, latency, bandwidth) in enumerate(zip(*columns, strict=True)):
        if topology not in KINDS:
            raise entries.wrong(_TOPOLOGIES, "Ring, FullyConnected or Switch", index)
        for key, value, most in (("units-count", units, MOST_NPUS), ("links-count", links, 10**6)):
            if not is_number(value) or value != int(value) or not 1 <= value <= most:
                raise entries.wrong(key, f"a whole number from 1 to {most}", index)
        if not is_number(latency) or not LATENCIES[0] <= latency <= LATENCIES[1]:
            raise entries.wrong("link-latency", "a number from 0 to 1e9 (ns a hop)", index)
        if not is_number(bandwidth) or not BANDWIDTHS[0] <= bandwidth <= BANDWIDTHS[1]:
            raise entries.wrong("link-bandwidth", "a number from 1e-6 to 1e9 (GiB/s)", index)
        share = Fraction(int(links), max(int(units) - 1, 1) if topology == "FullyConnected" else 1)
        gbps = float(Fraction(str(bandwidth)) * share * 2**30 / 10**9)
        dims.append(Dimension(KINDS[topology], int(units), gbps, float(latency)))
    return Settings(
        dims=tuple(dims),
        local_mem_bandwidth=LOCAL_MEMORY,
        diagnostics=(*_unpriced(entries), *_unknown(entries)),
    )


def _unpriced(entries: Entries) -> list[Diagnostic]:
    """A warning for each delay that is there and that no price has."""
    found = []
    for key in _UNPRICED:
        if key not in entries.by_key:
            continue
        entry = entries.by_key[key]
        values = entry.value if isinstance(entry.value, list) else [entry.value]
        if any(value != 0 for value in values):
            line, column = entries.source.place(entry.key_at)
            message = f"found a {key} other than 0, which no price here has: ignored"
            found.append(
                Diagnostic("warning", "network-delay-ignored", message, entries.source.path, line, column)
            )
    return found


def _unknown(entries: Entries) -> tuple[Diagnostic, ...]:
    known = (*_PRICED, *_SILENT)
    places = [
        (key, entries.source.place(entry.key_at)) for key, entry in entries.by_key.items() if key not in known
    ]
    return entries.source.ignored(places)
