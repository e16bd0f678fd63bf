"""Links of a topology that are slower than it says, or that failed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from simcore.diagnostics import UsageError, printable
from simcore.records import replace
from simcore.topology.model import Topology
from simcore.units import plain_number

FORM = "A-B=X, for example 36-52=0.5, 0 of a link that fails"
_ITEM = re.compile(r"([0-9]{1,7})-([0-9]{1,7})=(\S+)")
_MOST_FACTOR = 1000.0
# The two nodes of a link, in either order.
Ends = frozenset[int]


def parse_link_rates(texts: Sequence[str]) -> dict[Ends, float]:
    """Returns the factor on the rate of each link of `--link-rate A-B=X`. Raises UsageError."""
    factors = {}
    for text in texts:
        match = _ITEM.fullmatch(text)
        factor = plain_number(match[3]) if match else None
        if match is None or factor is None or not 0 <= factor <= _MOST_FACTOR or match[1] == match[2]:
            raise UsageError(f"--link-rate {printable(text, 60)}: {FORM} is expected, X up to 1000")
        factors[frozenset((int(match[1]), int(match[2])))] = factor
    return factors


def missing_link(topology: Topology, factors: Mapping[Ends, float]) -> Ends | None:
    """Returns the first of some links that a topology does not have; None where it has all."""
    pairs = {frozenset(link[:2]) for link in topology.links}
    return next((ends for ends in factors if ends not in pairs), None)


def with_link_rates(topology: Topology, factors: Mapping[Ends, float]) -> Topology:
    """Returns the topology with the rates of some links times a factor, without those of factor 0."""
    links = []
    for link in topology.links:
        factor = factors.get(frozenset(link[:2]), 1.0)
        if factor:
            links.append(link._replace(gbps=link.gbps * factor))
    return replace(topology, links=tuple(links))
