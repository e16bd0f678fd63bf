"""Links of a topology that have another rate than it says, or that failed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from simcore.diagnostics import UsageError, printable
from simcore.records import replace
from simcore.topology.model import Topology
from simcore.units import plain_number

FORM = "A-B=X, for example 36-52=0.5, 0 of a link that fails, or asw-psw=2 of all between such switches"
_NODE_ID, _NODE_KIND = "[0-9]{1,7}", "gpu|nvsw|asw|psw|core|tier[0-9]{1,3}"
_ITEM = re.compile(rf"(?:({_NODE_ID})-({_NODE_ID})|({_NODE_KIND})-({_NODE_KIND}))=(\S+)")
_MOST_FACTOR = 1000.0
# The two nodes of a link, or the kinds of nodes of all links of a tier, in either order.
Ends = frozenset[int] | frozenset[str]


def parse_link_rates(texts: Sequence[str]) -> dict[Ends, float]:
    """Returns the factor on the rate of each link, or of all links of a tier, of `--link-rate A-B=X`. Raises
    UsageError.
    """
    factors: dict[Ends, float] = {}
    for text in texts:
        match = _ITEM.fullmatch(text)
        factor = plain_number(match[5]) if match else None
        is_loop = match is not None and match[1] is not None and match[1] == match[2]
        if match is None or factor is None or not 0 <= factor <= _MOST_FACTOR or is_loop:
            raise UsageError(f"--link-rate {printable(text, 60)}: {FORM} is expected, X up to 1000")
        if match[1] is None:
            factors[frozenset((match[3], match[4]))] = factor
        else:
            factors[frozenset((int(match[1]), int(match[2])))] = factor
    return factors


def tier_ends(topology: Topology, source: int, target: int) -> frozenset[str]:
    """Returns the kinds of two nodes, by which `--link-rate` names all links between such."""
    return frozenset(topology.kind_of(node).rstrip("-") for node in (source, target))


def missing_link(topology: Topology, factors: Mapping[Ends, float]) -> Ends | None:
    """Returns the first of some links, or tiers, that a topology does not have; None where it has all."""
    there: set[Ends] = {frozenset(link[:2]) for link in topology.links}
    there |= {tier_ends(topology, *link[:2]) for link in topology.links}
    return next((ends for ends in factors if ends not in there), None)


def with_link_rates(topology: Topology, factors: Mapping[Ends, float]) -> Topology:
    """Returns the topology with the rates of some links times a factor, without those of factor 0. That of a
    link counts over that of its tier.
    """
    return _with_factors(topology, frozenset(factors.items()))


@lru_cache(maxsize=8)
def _with_factors(topology: Topology, items: frozenset[tuple[Ends, float]]) -> Topology:
    factors, links = dict(items), []
    for link in topology.links:
        factor = factors.get(frozenset(link[:2]))
        if factor is None:
            factor = factors.get(tier_ends(topology, *link[:2]), 1.0)
        if factor:
            links.append(link._replace(gbps=link.gbps * factor))
    return replace(topology, links=tuple(links))
