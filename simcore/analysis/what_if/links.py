"""Changes of a topology and of the paths of flows: a link that fails or has another rate, all links of a tier
at twice their rate, other paths.
"""

from __future__ import annotations

from collections.abc import Iterator

from simcore.simulation import Simulation
from simcore.trace.changes import Change

_BALANCED = "balanced"
# The factors on the rate of a link that are tried, with what each is called.
_FACTORS = (("0", "fails"), ("0.5", "at 0.5x rate"), ("2", "at 2x rate"))
# With fewer ranks no switch of a server makes an all-reduce.
_NVLS_LEAST_RANKS = 8


def flow_changes(simulation: Simulation) -> Iterator[Change]:
    """Yields other paths for flows, of a run under flows: perfectly balanced ones, rails by NVLink, and
    all-reduces in the switches of servers.
    """
    topology, parameters = simulation.cluster.topology, simulation.parameters
    if simulation.flow_report is None or topology is None:
        return
    if simulation.setup.network.ecmp != _BALANCED:
        yield Change({"ecmp": _BALANCED}, meaning="flows take all equal paths: no collision")
    if topology.rails() and parameters.pxn != "on":
        yield Change({"pxn": "on"}, meaning="all-reduces reach other rails over NVLink")
    is_hopper = topology.gpu_type in ("H100", "H800")
    if is_hopper and parameters.nvls != "on" and simulation.layout.tp >= _NVLS_LEAST_RANKS:
        yield Change({"nvls": "on"}, meaning="switches of servers make all-reduces")


def congestion_changes(simulation: Simulation) -> Iterator[Change]:
    """Yields what congestion control costs, of a run in which it would slow flows down."""
    report = simulation.flow_report
    if report is None or report.congestion != "none" or not report.marked_ports():
        return
    # Imported here: few runs have such ports.
    from simcore.flows.packets import has_few_packets

    is_hashed = simulation.setup.network.ecmp != _BALANCED
    if report.control == "DCQCN" and is_hashed and has_few_packets(report):
        yield Change({"congestion": "dcqcn"}, meaning="senders slow down where queues are marked")


def link_changes(simulation: Simulation, first: int, second: int) -> Iterator[Change]:
    """Yields the link between two nodes failed, and with other rates."""
    topology, rates = simulation.cluster.topology, simulation.parameters.link_rate
    if topology is None:
        return
    # Imported here: a run without a topology tries no link.
    from simcore.topology import parse_link_rates

    ends = frozenset((first, second))
    others = tuple(text for text in rates if ends not in parse_link_rates((text,)))
    low, high = sorted(ends)
    link = f"link {topology.name_of(low)} - {topology.name_of(high)}"
    for factor, words in _FACTORS:
        yield Change({"link_rate": (*others, f"{low}-{high}={factor}")}, f"{link} {words}")
    if len(others) < len(rates):
        yield Change({"link_rate": others}, f"{link} as the topology has it")
    yield from tier_changes(simulation, first, second)


def tier_changes(simulation: Simulation, first: int, second: int) -> Iterator[Change]:
    """Yields all links between such nodes at twice their rate, or as the topology has them."""
    topology, rates = simulation.cluster.topology, simulation.parameters.link_rate
    if topology is None:
        return
    # Imported here: as above.
    from simcore.topology import parse_link_rates, tier_ends

    ends = tier_ends(topology, first, second)
    others = tuple(text for text in rates if ends not in parse_link_rates((text,)))
    low, *high = sorted(ends, key=lambda kind: topology.tier_order(kind, kind))
    name = f"{low}-{high[0] if high else low}"
    count = sum(tier_ends(topology, *link[:2]) == ends for link in topology.links)
    if len(others) < len(rates):
        yield Change({"link_rate": others}, f"all {name} links as the topology has them")
    elif count > 1:
        yield Change({"link_rate": (*others, f"{name}=2")}, f"all {count} {name} links at 2x rate")


def hottest_tier_changes(simulation: Simulation) -> Iterator[Change]:
    """Yields the links of the tier of the port outside servers that is loaded most, of those with several
    flows at once, at twice their rate.
    """
    report, topology = simulation.flow_report, simulation.cluster.topology
    if report is None or topology is None:
        return
    inner = topology.inner_set()
    ports = [
        port
        for port in report.ports
        if port.most_flows > 1 and port.source not in inner and port.target not in inner
    ]
    hottest = max(ports, key=lambda port: port.bytes / port.gbps, default=None)
    if hottest is not None:
        yield from tier_changes(simulation, hottest.source, hottest.target)
