"""SimAI's topology file and its configuration.

A topology file has counts on line 1 (nodes, GPUs of a server, NVSwitches, other switches, links, type of
GPU), the numbers of all switches on line 2, NVSwitches first, and then a line for each link: source, target,
rate, latency, error rate. The configuration (`SimAI.conf`) is lines `KEY value`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from simcore.cluster.files.source import ClusterText, quoted
from simcore.cluster.model import Dimension
from simcore.cluster.parsing import Settings
from simcore.diagnostics import Diagnostic, InputError
from simcore.topology import Link, PacketRules, Topology
from simcore.units import format_number, is_whole, plain_number, plural

_CODE = "topology-file"
_HEAD = re.compile(r"[0-9]{1,8}([ \t]+[0-9]{1,8}){4}([ \t]+\w+)?[ \t]*$")
RATE_UNITS = {"Gbps": 1.0, "Mbps": 1e-3, "Tbps": 1e3}
TIME_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_QUANTITY = re.compile(r"([0-9.eE+-]+)([A-Za-z]+)")
_CONF_CODE = "simai-conf"
# Keys that the flow model takes; the others have no effect on flows.
_CONF_KEYS = ("PACKET_PAYLOAD_SIZE", "HAS_WIN", "CC_MODE", "KMIN_MAP", "KMAX_MAP", "PMAX_MAP")


def is_topology(first_line: str) -> bool:
    """Returns whether the first line of a file is that of a topology file."""
    return _HEAD.match(first_line) is not None


def is_configuration(text: str) -> bool:
    """Returns whether a text is a configuration of SimAI."""
    return re.search(rf"^({'|'.join(_CONF_KEYS)})[ \t]", text, re.MULTILINE) is not None


def read_topology(source: ClusterText) -> Settings:
    """Returns the settings of a topology file. Raises InputError."""
    lines = [
        (line_number, line.split())
        for line_number, line in enumerate(source.text.split("\n"), 1)
        if line.strip()
    ]
    (_, head), *rest = lines
    nodes, gpus_per_server, inner_count, outer_count, link_count = map(int, head[:5])
    gpus = nodes - inner_count - outer_count
    if gpus < 1 or not 1 <= gpus_per_server <= gpus:
        message = f"found {plural(gpus, 'GPU')} in servers of {gpus_per_server}, expected a server or more"
        raise source.make_error(_CODE, message, (1, 1))
    if not rest:
        raise source.make_error(_CODE, "found no line of switches, expected their numbers", (1, 1))
    line_number, words = rest[0]
    switches = [int(word) for word in words if is_whole(word)]
    expected = range(gpus, nodes)
    if not len(switches) == len(words) == len(expected) or sorted(switches) != list(expected):
        message = f"found switches {quoted(' '.join(words[:8]))}, expected {gpus} to {nodes - 1}"
        raise source.make_error(_CODE, message, (line_number, 1))
    links = [_read_link(source, line_number, words, nodes) for line_number, words in rest[1:]]
    if len(links) != link_count:
        message = f"found {plural(len(links), 'link')}, expected {link_count}, as line 1 has it"
        raise source.make_error(_CODE, message, (1, 1))
    inner, outer = tuple(sorted(switches[:inner_count])), tuple(sorted(switches[inner_count:]))
    gpu_type = head[5] if len(head) > 5 else "NONE"
    return topology_settings(
        Topology(source.path, gpus, gpus_per_server, inner, outer, tuple(links), gpu_type)
    )


def _read_link(source: ClusterText, line_number: int, words: list[str], nodes: int) -> Link:
    def wrong(found_text: str, expected: str) -> InputError:
        return source.make_error(_CODE, f"found {quoted(found_text)}, expected {expected}", (line_number, 1))

    if len(words) not in (4, 5):
        raise wrong(" ".join(words), "a link: source, target, rate, latency and error rate")
    ends = []
    for word in words[:2]:
        if not (word.isascii() and word.isdecimal() and len(word) < 8 and int(word) < nodes):
            raise wrong(word, f"the number of a node, 0 to {nodes - 1}")
        ends.append(int(word))
    if ends[0] == ends[1]:
        raise wrong(f"{ends[0]} {ends[1]}", "a link between two nodes")
    gbps = parse_quantity(words[2], RATE_UNITS)
    if gbps is None or not 1e-3 <= gbps <= 1e9:
        raise wrong(words[2], "a rate like 400Gbps")
    latency = parse_quantity(words[3], TIME_UNITS)
    if latency is None or not 0 <= latency <= 1e9:
        raise wrong(words[3], "a latency like 0.0005ms")
    return Link(ends[0], ends[1], gbps, latency)


def parse_quantity(text: str, units: dict[str, float]) -> float | None:
    """Returns a number with one of these units, in the unit that has 1; None for anything else."""
    match = _QUANTITY.fullmatch(text)
    value = plain_number(match[1]) if match else None
    if match is None or value is None or match[2] not in units:
        return None
    # 0.000025 ms are 25 ns, and no 25.000000000000004.
    return float(f"{value * units[match[2]]:.12g}")


@lru_cache(maxsize=8)
def topology_settings(topology: Topology) -> Settings:
    """Returns the settings of a topology: it, and dimensions for networks that have no links, the server and
    what joins servers; notes on what is unconnected or oversubscribed.
    """
    path, dims = topology.name, []
    for inside, size in ((True, topology.gpus_per_server), (False, topology.servers)):
        bandwidth = min(topology.bandwidth(gpu, inside) for gpu in range(topology.gpus))
        latency = max(topology.latency_ns(gpu, inside) for gpu in range(topology.gpus))
        if size > 1:
            # Without links of this kind all goes over the other one.
            bandwidth = bandwidth or min(topology.bandwidth(gpu, not inside) for gpu in range(topology.gpus))
            dims.append(Dimension("switch", size, bandwidth or 1e-6, latency))
    dims = dims or [Dimension("switch", 1, 1.0, 0.0)]
    notes = [Diagnostic("note", "topology", topology.words(), path)]
    missing = topology.unconnected()
    if missing:
        message = f"no path over switches from GPU 0 to {plural(len(missing), 'GPU')}, GPU {missing[0]} first"
        notes.append(Diagnostic("warning", "topology-unconnected", message, path))
    for tier, (below, above) in topology.oversubscription().items():
        message = (
            f"tier {tier} is oversubscribed {format_number(round(below / above, 2))} to 1: "
            f"{format_number(below)} Gb/s from below, {format_number(above)} Gb/s to above"
        )
        notes.append(Diagnostic("note", "topology-oversubscribed", message, path))
    return Settings(dims=tuple(dims), topology=topology, diagnostics=tuple(notes))


def read_configuration(source: ClusterText) -> Settings:
    """Returns the settings of a configuration of SimAI. Raises InputError."""
    values: dict[str, tuple[int, list[str]]] = {}
    for line_number, line in enumerate(source.text.split("\n"), 1):
        words = line.split()
        if words and words[0] in _CONF_KEYS:
            values[words[0]] = (line_number, words[1:])
    default = PacketRules()

    def count(key: str, value: int, least: int, most: int) -> int:
        if key not in values:
            return value
        line_number, words = values[key]
        text = words[0] if words else ""
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            message = f"found {quoted(text)} for {key}, expected a whole number from {least} to {most}"
            raise source.make_error(_CONF_CODE, message, (line_number, 1))
        return int(text)

    def by_rate(key: str, value: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
        if key not in values:
            return value
        line_number, words = values[key]
        entries = [plain_number(word) for word in words[1:]]
        if not entries or len(entries) % 2 or None in entries:
            message = (
                f"found {quoted(' '.join(words))} for {key}, expected a count, then rates and values in turn"
            )
            raise source.make_error(_CONF_CODE, message, (line_number, 1))
        figures = [one for one in entries if one is not None]
        return tuple((rate / 1e9, figure) for rate, figure in zip(figures[::2], figures[1::2], strict=True))

    packets = PacketRules(
        count("PACKET_PAYLOAD_SIZE", default.payload, 1, 1 << 20),
        count("HAS_WIN", int(default.window), 0, 1) == 1,
        count("CC_MODE", default.control, 0, 99),
        by_rate("KMIN_MAP", default.mark_from),
        by_rate("KMAX_MAP", default.mark_all_from),
        by_rate("PMAX_MAP", default.mark_chances),
    )
    return Settings(packets=packets)
