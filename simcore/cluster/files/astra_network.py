"""ASTRA-sim's network files, of the analytical backends: 2.0's `network.yml`, one list entry a dimension,

    topology: [ Ring, Switch ]      npus_count: [ 4, 4 ]
    bandwidth: [ 400.0, 50.0 ]      latency: [ 500.0, 2000.0 ]

with bandwidths in GiB/s (2^30) under the name GB/s, latencies ns a hop; and 1.0's `.json`, topology
`Hierarchical`: lists by dimension.

    "topologies-per-dim": ["Ring", "Switch"], "units-count": [4, 4], "links-count": [2, 1],
    "link-latency": [500, 2000], "link-bandwidth": [200.0, 50]

There bandwidths are GiB/s of one link. An NPU has `links-count` links, which a message uses together on a
ring or switch; fully connected, each peer has its share of them.
"""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from simcore.cluster.files.source import ClusterText, Entries, is_number, json_entries, quoted
from simcore.cluster.model import Dimension, Kind, bytes_per_ns
from simcore.cluster.parsing import BANDWIDTHS, LATENCIES, MOST_NPUS, Settings, number_within
from simcore.diagnostics import Diagnostic, printable
from simcore.records import NamedTuple

if TYPE_CHECKING:
    import yaml

# The kinds of dimension by the names of both versions of ASTRA-sim.
KINDS: dict[str, Kind] = {"Ring": "ring", "FullyConnected": "fully-connected", "Switch": "switch"}
_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_YML_CODE = "network-yml"
# Four lists have a few dozen values. The reader of YAML needs half a minute for 1 MiB, a second for 64 KiB of
# brackets in each other, and 0.2 s for these values.
_MOST_CHARACTERS, _MOST_VALUES, _MOST_LEVELS = 1 << 16, 4096, 16


class _Item(NamedTuple):
    """One scalar of the file and its (line, column)."""

    text: str
    location: tuple[int, int]


def read_network_yml(source: ClusterText) -> Settings:
    """Returns the dimensions of a `network.yml`, bandwidths in bytes per ns. Raises InputError."""
    lists, ignored = _read_lists(source)
    counts = {key: len(lists[key]) for key in _KEYS}
    for key in _KEYS[1:]:
        if counts[key] != counts["topology"]:
            message = (
                f"found {counts[key]} values of {key}, expected {counts['topology']}, as many as of topology"
            )
            raise source.make_error(_YML_CODE, message, lists[key][0].location)
    dims = []
    for kind, size, bandwidth, latency in zip(*(lists[key] for key in _KEYS), strict=True):
        if kind.text not in KINDS:
            raise _wrong(source, "topology", kind, "Ring, FullyConnected or Switch")
        if not re.fullmatch("[0-9]{1,7}", size.text) or not 1 <= int(size.text) <= MOST_NPUS:
            raise _wrong(source, "npus_count", size, f"a whole number from 1 to {MOST_NPUS}")
        if number_within(bandwidth.text, BANDWIDTHS) is None:
            raise _wrong(source, "bandwidth", bandwidth, "a number from 1e-6 to 1e9 (GiB/s)")
        latency_ns = number_within(latency.text, LATENCIES)
        if latency_ns is None:
            raise _wrong(source, "latency", latency, "a number from 0 to 1e9 (ns a hop)")
        gbps = bytes_per_ns(bandwidth.text)
        dims.append(Dimension(KINDS[kind.text], int(size.text), gbps, latency_ns))
    return Settings(dims=tuple(dims), diagnostics=source.note_ignored(ignored))


def _read_lists(source: ClusterText) -> tuple[dict[str, list[_Item]], list[tuple[str, tuple[int, int]]]]:
    """Returns the four lists, and the other keys with their (line, column)."""
    root = _compose_root(source)
    lists: dict[str, list[_Item]] = {}
    ignored = []
    if root is None or root.id != "mapping":
        actual = "nothing" if root is None else f"a {root.id}"
        location = (1, 1) if root is None else _location_of(root)
        raise source.make_error(_YML_CODE, f"found {actual}, expected the keys {', '.join(_KEYS)}", location)
    for key, value in root.value:
        name = key.value if key.id == "scalar" else key.id
        if name not in _KEYS:
            ignored.append((str(name), _location_of(key)))
            continue
        if name in lists:
            raise source.make_error(_YML_CODE, f"found {name} twice, expected it once", _location_of(key))
        if value.id != "sequence" or not value.value:
            actual = quoted(value.value) if value.id == "scalar" else f"an empty {value.id}"
            raise source.make_error(
                _YML_CODE, f"found {actual} for {name}, expected a list", _location_of(value)
            )
        for item in value.value:
            if item.id != "scalar":
                message = f"found a {item.id} in {name}, expected a single value"
                raise source.make_error(_YML_CODE, message, _location_of(item))
        lists[name] = [_Item(item.value, _location_of(item)) for item in value.value]
    for key in _KEYS:
        if key not in lists:
            message = f"found no {key}, expected the keys {', '.join(_KEYS)}"
            raise source.make_error(_YML_CODE, message, _location_of(root))
    return lists, ignored


def _compose_root(source: ClusterText) -> yaml.Node | None:
    """Returns the file as nodes with (line, column); nothing of it is constructed."""
    # Imported here: only a network.yml needs it, and it takes longer than a price.
    import yaml

    if len(source.text) > _MOST_CHARACTERS:
        message = f"found more than {_MOST_CHARACTERS} characters, expected the keys {', '.join(_KEYS)}"
        raise source.make_error(_YML_CODE, message, source.locate(_MOST_CHARACTERS))

    class BoundedLoader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
        values = levels = 0

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            self.values += 1
            self.levels += 1
            if self.values > _MOST_VALUES or self.levels > _MOST_LEVELS:
                what = f"{_MOST_VALUES} values" if self.values > _MOST_VALUES else f"{_MOST_LEVELS} levels"
                mark = self.peek_event().start_mark
                message = f"found more than {what}, expected the keys {', '.join(_KEYS)}"
                raise source.make_error(_YML_CODE, message, (mark.line + 1, mark.column + 1))
            node = super().compose_node(parent, index)
            self.levels -= 1
            return node

    try:
        return yaml.compose(source.text, Loader=BoundedLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        location = (mark.line + 1, mark.column + 1) if mark else None
        # The problem may quote an alias that is as long as the file.
        message = f"this is not YAML: {printable(error.problem or 'found no document')}"
        raise source.make_error(_YML_CODE, message, location) from None
    except yaml.reader.ReaderError as error:
        code = error.character if isinstance(error.character, int) else ord(error.character)
        message = f"this is not YAML: found character U+{code:04X}"
        raise source.make_error(_YML_CODE, message, source.locate(error.position)) from None
    except (ValueError, OverflowError):
        # The reader makes a character of an escape like "\\U7ccccccc" without a look at its number.
        escapes = re.finditer(r"\\U([0-9A-Fa-f]{8})", source.text)
        at = next((escape.start() for escape in escapes if int(escape[1], 16) > sys.maxunicode), 0)
        message = r"this is not YAML: an escape \U stands for no character"
        raise source.make_error(_YML_CODE, message, source.locate(at)) from None


def _location_of(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _wrong(source: ClusterText, key: str, item: _Item, expected: str) -> Exception:
    return source.make_error(
        _YML_CODE, f"found {quoted(item.text)} in {key}, expected {expected}", item.location
    )


_JSON_CODE = "network-json"
_WHAT = "an ASTRA-sim 1.0 network"
# What ASTRA-sim 1.0 takes for the local memory when it prices a reduction, GB/s.
LOCAL_MEMORY = 500_000.0
_TOPOLOGIES = "topologies-per-dim"
_PRICED_KEYS = (_TOPOLOGIES, "units-count", "links-count", "link-latency", "link-bandwidth")
_UNPRICED_KEYS = ("nic-latency", "router-latency", "hbm-latency", "hbm-scale")
_SILENT_KEYS = ("topology-name", "dimension-type", "dimensions-count", "hbm-bandwidth", *_UNPRICED_KEYS)


def read_network_json(source: ClusterText) -> Settings:
    """Returns the dimensions of a 1.0 network, bandwidths in bytes per ns. Raises InputError."""
    entries = json_entries(source, _JSON_CODE, _WHAT)
    topologies = entries.list_of(_TOPOLOGIES)
    count = len(topologies)
    columns = [topologies, *[entries.list_of(key, count) for key in _PRICED_KEYS[1:]]]
    dims = []
    for index, (topology, units, links, latency, bandwidth) in enumerate(zip(*columns, strict=True)):
        if topology not in KINDS:
            raise entries.make_value_error(_TOPOLOGIES, "Ring, FullyConnected or Switch", index)
        for key, value, most in (("units-count", units, MOST_NPUS), ("links-count", links, 10**6)):
            if not is_number(value) or value != int(value) or not 1 <= value <= most:
                raise entries.make_value_error(key, f"a whole number from 1 to {most}", index)
        if not is_number(latency) or not LATENCIES[0] <= latency <= LATENCIES[1]:
            raise entries.make_value_error("link-latency", "a number from 0 to 1e9 (ns a hop)", index)
        if not is_number(bandwidth) or not BANDWIDTHS[0] <= bandwidth <= BANDWIDTHS[1]:
            raise entries.make_value_error("link-bandwidth", "a number from 1e-6 to 1e9 (GiB/s)", index)
        share = Fraction(int(links), max(int(units) - 1, 1) if topology == "FullyConnected" else 1)
        gbps = float(Fraction(str(bandwidth)) * share * 2**30 / 10**9)
        dims.append(Dimension(KINDS[topology], int(units), gbps, float(latency)))
    return Settings(
        dims=tuple(dims),
        local_mem_bandwidth=LOCAL_MEMORY,
        diagnostics=(*_warn_of_delays(entries), *_note_unknown_keys(entries)),
    )


def _warn_of_delays(entries: Entries) -> list[Diagnostic]:
    """Returns a warning for each delay in the file that no price includes."""
    diagnostics = []
    for key in _UNPRICED_KEYS:
        if key not in entries.by_key:
            continue
        entry = entries.by_key[key]
        values = entry.value if isinstance(entry.value, list) else [entry.value]
        if any(value != 0 for value in values):
            line, column = entries.source.locate(entry.key_at)
            message = f"found a {key} other than 0, which no price here has: ignored"
            diagnostics.append(
                Diagnostic("warning", "network-delay-ignored", message, entries.source.path, line, column)
            )
    return diagnostics


def _note_unknown_keys(entries: Entries) -> tuple[Diagnostic, ...]:
    known_keys = (*_PRICED_KEYS, *_SILENT_KEYS)
    unknown_keys = [
        (key, entries.source.locate(entry.key_at))
        for key, entry in entries.by_key.items()
        if key not in known_keys
    ]
    return entries.source.note_ignored(unknown_keys)
