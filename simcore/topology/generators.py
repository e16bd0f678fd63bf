"""Topologies by name, link for link as SimAI's generator writes them, and fat trees.

`spectrum-x:64`, `hpn:32:psn=8:dp`, `dcn:32:npa=8:dt`, `fat-tree:8`: the number of GPUs (of a fat tree the
ports of a switch), then options under the names of SimAI's generator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.records import Struct, replace
from simcore.topology.model import Link, Topology
from simcore.units import plain_number

_MOST_GPUS = 1 << 16
_MOST_LINKS = 1 << 22


class _Plan(Struct, frozen=True):
    """The options of a generated topology."""

    gpus: int
    gps: int = 8
    """GPUs of a server."""
    psn: int = 64
    """Switches of the upper tier."""
    npa: int = 64
    """GPUs on a switch of the lower tier."""
    bw: float = 400.0
    """Gb/s of a NIC."""
    apbw: float = 400.0
    """Gb/s between the tiers."""
    nvbw: float = 2880.0
    """Gb/s of NVLink."""
    nl: float = 25.0
    """ns of a link of NVLink."""
    l: float = 500.0  # noqa: E741 - the generator's name
    """ns of every other link."""
    gt: str = "H100"
    """The type of GPU."""
    dp: bool = False
    """Two planes: either half of the upper tier has one of a GPU's two switches."""
    dt: bool = False
    """Two switches of the lower tier to a GPU."""


def _spectrum_x(name: str, plan: _Plan) -> Topology:
    return _two_tiers(name, plan, by_rail=True, sets=1)


def _hpn(name: str, plan: _Plan) -> Topology:
    return _two_tiers(name, plan, by_rail=True, sets=2)


def _dcn(name: str, plan: _Plan) -> Topology:
    return _two_tiers(name, plan, by_rail=False, sets=2 if plan.dt else 1)


def _two_tiers(name: str, plan: _Plan, by_rail: bool, sets: int) -> Topology:
    """Returns servers on lower switches, by rail or one after the other, and upper ones over all of these."""
    gpus, servers = plan.gpus, -(-plan.gpus // plan.gps)
    if by_rail:
        lower = -(-gpus // (plan.npa * plan.gps)) * plan.gps
    else:
        lower = -(-gpus // plan.npa)
    first_lower = gpus + servers
    first_upper = first_lower + sets * lower
    links = []
    for gpu in range(gpus):
        links.append(Link(gpu, gpus + gpu // plan.gps, plan.nvbw, plan.nl))
        if by_rail:
            position = gpu // (plan.npa * plan.gps) * plan.gps + gpu % plan.gps
        else:
            position = gpu // plan.npa
        links += [Link(gpu, first_lower + half * lower + position, plan.bw, plan.l) for half in range(sets)]
    share = plan.psn // 2
    for index in range(sets * lower):
        upper = range(plan.psn)
        if plan.dp and sets == 2:
            upper = range(share) if index < lower else range(share, plan.psn)
        links += [Link(first_lower + index, first_upper + one, plan.apbw, plan.l) for one in upper]
    return _make(name, plan, servers, sets * lower + plan.psn, links)


def _fat_tree(name: str, plan: _Plan) -> Topology:
    """Returns a k-ary fat tree: k pods of k/2 edge and k/2 aggregation switches, k^2/4 core switches."""
    ports = plan.gpus
    half = ports // 2
    if ports % 2 or ports < 4:
        raise UsageError(f"--cluster {printable(name, 60)}: K is an even number from 4 on")
    gpus = ports * half * half
    gps = max(size for size in range(1, plan.gps + 1) if gpus % size == 0)
    plan = replace(plan, gpus=gpus, gps=gps)
    _check_size(name, gpus, 4 * gpus)
    servers = gpus // gps
    edge = gpus + servers
    aggregation = edge + ports * half
    core = aggregation + ports * half
    links = []
    for gpu in range(gpus):
        links.append(Link(gpu, gpus + gpu // gps, plan.nvbw, plan.nl))
        links.append(Link(gpu, edge + gpu // half, plan.bw, plan.l))
    for pod in range(ports):
        for low in range(half):
            links += [
                Link(edge + pod * half + low, aggregation + pod * half + high, plan.apbw, plan.l)
                for high in range(half)
            ]
        for high in range(half):
            links += [
                Link(aggregation + pod * half + high, core + high * half + one, plan.apbw, plan.l)
                for one in range(half)
            ]
    return _make(name, plan, servers, 2 * ports * half + half * half, links)


def _make(name: str, plan: _Plan, servers: int, switches: int, links: list[Link]) -> Topology:
    first = plan.gpus + servers
    inner = tuple(range(plan.gpus, first))
    outer = tuple(range(first, first + switches))
    return Topology(name, plan.gpus, plan.gps, inner, outer, tuple(links), plan.gt)


class Generator(Struct, frozen=True):
    """One entry of the registry."""

    make: Callable[[str, _Plan], Topology]
    defaults: dict[str, object]
    """What differs from the defaults of all."""
    options: tuple[str, ...] = ()
    """Options of this one alone."""


_FIGURES = ("bw", "apbw", "nvbw", "nl", "l")
_COUNTS = ("gps", "psn", "npa")
_COMMON = (*_COUNTS, *_FIGURES, "gt")
GENERATORS: dict[str, Generator] = {
    "spectrum-x": Generator(_spectrum_x, {}),
    "hpn": Generator(_hpn, {"bw": 200.0}, ("dp",)),
    "dcn": Generator(_dcn, {}, ("dt",)),
    "fat-tree": Generator(_fat_tree, {}),
}


def is_generator(text: str) -> bool:
    """Returns whether a text names a generated topology."""
    name, colon, _ = text.partition(":")
    return bool(colon) and name in GENERATORS


@lru_cache(maxsize=8)
def generate_topology(text: str) -> Topology:
    """Returns the topology of `NAME:GPUS[:OPTION=VALUE...]`. Raises UsageError."""
    name, count, *options = text.split(":")
    generator = GENERATORS[name]
    if not re.fullmatch("[0-9]{1,6}", count) or not 2 <= int(count) <= _MOST_GPUS:
        raise _error(text, f"`{printable(count, 20)}` is not a whole number from 2 to {_MOST_GPUS}")
    values: dict[str, object] = dict(generator.defaults)
    if "dt" in options and name == "dcn":
        # Two NICs a GPU have half the rate each.
        values["bw"] = 200.0
    expected = (*_COMMON, *generator.options)
    for option in options:
        key, equals, value = option.partition("=")
        if key not in expected or bool(equals) == (key in generator.options):
            near = did_you_mean(key, expected)
            raise _error(text, f"option `{printable(option, 30)}`: one of {', '.join(expected)}{near}")
        values[key] = _option_value(text, key, value)
    plan = _Plan(int(count), **values)  # type: ignore[arg-type]
    if name != "fat-tree":
        if plan.gpus % plan.gps:
            raise _error(text, f"{plan.gpus} GPUs are no whole servers of {plan.gps}")
        _check_size(text, plan.gpus, plan.psn * -(-plan.gpus // plan.npa) * plan.gps)
    return generator.make(text, plan)


def _option_value(text: str, key: str, value: str) -> object:
    if key in ("dp", "dt"):
        return True
    if key == "gt":
        return value
    figure = plain_number(value.removesuffix("Gbps"))
    if key in _COUNTS:
        if figure is None or figure != int(figure) or not 1 <= figure <= _MOST_GPUS:
            raise _error(text, f"{key} `{printable(value, 20)}` is not a whole number from 1 on")
        return int(figure)
    if figure is None or not (0 if key in ("nl", "l") else 1e-3) <= figure <= 1e9:
        unit = "ns" if key in ("nl", "l") else "Gb/s"
        raise _error(text, f"{key} `{printable(value, 20)}` is not a number of {unit}")
    return figure


def _check_size(text: str, gpus: int, links: int) -> None:
    if gpus > _MOST_GPUS or links > _MOST_LINKS:
        raise _error(text, f"about {links} links: at most {_MOST_LINKS} are made")


def _error(text: str, why: str) -> UsageError:
    return UsageError(f"--cluster {printable(text, 60)}: {why}")
