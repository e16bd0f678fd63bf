"""Cluster parameters as a user writes them, `--dim` and `--algorithm`, and the settings they make together.

Settings come from a file, a preset or flags.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.cluster.model import KINDS, Cluster, Dimension, bytes_per_ns, is_algorithm
from simcore.diagnostics import Diagnostic, UsageError, did_you_mean, printable
from simcore.names import ALGORITHM_NAMES, COLLECTIVES, Optimization
from simcore.records import Struct, replace
from simcore.units import plain_number

if TYPE_CHECKING:
    from simcore.topology import PacketRules, Topology

MOST_NPUS = 10**6
# Far beyond any network: these bounds catch a figure in the wrong unit and keep times in 64 bits.
BANDWIDTHS = (1e-6, 1e9)
LATENCIES = (0.0, 1e9)


def parse_dimension(text: str) -> Dimension:
    """Returns the dimension that `KIND:SIZE:GBPS:NS` states: its kind, NPUs, GB/s of one message, ns a hop.

    `400GiB` is GiB/s. Raises UsageError that says which field is wrong and what fits.
    """
    fields = text.split(":")
    if len(fields) != 4:
        raise _make_error("dim", text, "KIND:SIZE:GBPS:NS is expected, for example switch:8:450:500")
    kind_text, size_text, bandwidth_text, latency_text = fields
    for kind in KINDS:
        if kind_text == kind:
            break
    else:
        raise _make_error("dim", text, f"KIND {_quoted(kind_text)} is not {either(KINDS)}")
    if not re.fullmatch("[0-9]{1,7}", size_text) or not 1 <= int(size_text) <= MOST_NPUS:
        raise _make_error(
            "dim", text, f"SIZE {_quoted(size_text)} is not a whole number from 1 to {MOST_NPUS}"
        )
    in_gib = bandwidth_text.removesuffix("GiB")
    bandwidth = number_within(in_gib, BANDWIDTHS)
    if bandwidth is not None and in_gib != bandwidth_text:
        bandwidth = bytes_per_ns(in_gib)
    if bandwidth is None:
        raise _make_error(
            "dim", text, f"GBPS {_quoted(bandwidth_text)} is not a number from 1e-6 to 1e9 (GB/s)"
        )
    latency = number_within(latency_text, LATENCIES)
    if latency is None:
        raise _make_error("dim", text, f"NS {_quoted(latency_text)} is not a number from 0 to 1e9 (ns a hop)")
    return Dimension(kind, int(size_text), bandwidth, latency)


def parse_algorithm(text: str, dims: Sequence[Dimension]) -> tuple[str, int, str]:
    """Returns (collective, index of a dimension of `dims`, algorithm) of `DIM=NAME` or `COLLECTIVE:DIM=NAME`.

    The collective is `ALLREDUCE` etc. or "" for all. Raises UsageError that says which part is wrong and what
    fits.
    """
    collective, index_text, name = _algorithm_parts(text)
    indices = {str(index): index for index in range(len(dims))}
    if index_text not in indices:
        fits = "only 0" if len(dims) == 1 else f"0 to {len(dims) - 1}"
        raise _make_error("algorithm", text, f"no dimension {_quoted(index_text)} in this cluster, {fits}")
    check_algorithm(text, name)
    return collective, indices[index_text], name


def algorithm_words(text: str) -> tuple[str, str, str]:
    """Returns the parts of `DIM=NAME` or `COLLECTIVE:DIM=NAME` for a cluster that is unknown: any DIM fits.

    Raises UsageError that says which part is wrong and what fits.
    """
    collective, index_text, name = _algorithm_parts(text)
    if not re.fullmatch("[0-9]{1,7}", index_text):
        raise _make_error("algorithm", text, f"DIM {_quoted(index_text)} is not the number of a dimension")
    check_algorithm(text, name)
    return collective, index_text, name


def _algorithm_parts(text: str) -> tuple[str, str, str]:
    which, equals, name = text.partition("=")
    if not equals:
        raise _make_error("algorithm", text, "DIM=NAME is expected, for example 0=ring")
    word, colon, index_text = which.rpartition(":")
    if colon and word not in COLLECTIVES:
        names = either(list(COLLECTIVES))
        near = did_you_mean(word, list(COLLECTIVES))
        raise _make_error("algorithm", text, f"COLLECTIVE {_quoted(word)} is not {names}{near}")
    return COLLECTIVES.get(word, ""), index_text, name


def check_algorithm(text: str, name: str, also: Sequence[str] = ()) -> None:
    """Raises UsageError unless the NAME of `text`, `DIM=NAME`, is an algorithm or among the words `also`."""
    if name not in also and not is_algorithm(name):
        names = (*also, *ALGORITHM_NAMES[:2], "direct<W>", *ALGORITHM_NAMES[2:])
        near = did_you_mean(name, names)
        raise _make_error("algorithm", text, f"NAME {_quoted(name)} is not {either(names)}{near}")


def number_within(text: str, bounds: tuple[float, float]) -> float | None:
    """Returns a plain decimal number between two bounds, or None."""
    value = plain_number(text)
    return value if value is not None and bounds[0] <= value <= bounds[1] else None


def _make_error(option: str, text: str, why: str) -> UsageError:
    return UsageError(f"--{option} {printable(text, 60)}: {why}")


def _quoted(text: str) -> str:
    return f"`{printable(text, 40)}`"


def either(names: Sequence[str]) -> str:
    """Returns `ring, direct or switch`."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


Algorithms = tuple[str | None, ...]


def _with_names(names: Algorithms, choices: Sequence[tuple[str, int, str]], dimensions: int) -> Algorithms:
    """Returns one name a dimension, with the chosen ones at their positions."""
    if not choices:
        return names
    by_dimension = list(names or (None,) * dimensions)
    for _, index, name in choices:
        by_dimension[index] = name
    return tuple(by_dimension)


class Settings(Struct, frozen=True):
    """Part of a cluster; None and () are left open. The fields are those of `Cluster`."""

    dims: tuple[Dimension, ...] = ()
    algorithms: Algorithms = ()
    by_collective: tuple[tuple[str, Algorithms], ...] = ()
    endpoint_delay_ns: int | None = None
    local_mem_bandwidth: float | None = None
    alltoall_port_time: bool | None = None
    splits: int | None = None
    active_chunks: int | None = None
    optimization: Optimization | None = None
    newest_first: bool | None = None
    topology: Topology | None = None
    packets: PacketRules | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    """What was ignored in the file that the settings come from."""

    def over(self, other: Settings) -> Settings:
        """Returns these settings with those of `other` where they are open.

        Algorithms that are set here for all collectives replace those that `other` sets for some.
        """
        return Settings(
            self.dims or other.dims,
            self._algorithms_over(other.algorithms),
            self.by_collective
            or tuple((name, self._algorithms_over(names)) for name, names in other.by_collective),
            other.endpoint_delay_ns if self.endpoint_delay_ns is None else self.endpoint_delay_ns,
            self.local_mem_bandwidth or other.local_mem_bandwidth,
            other.alltoall_port_time if self.alltoall_port_time is None else self.alltoall_port_time,
            self.splits or other.splits,
            self.active_chunks or other.active_chunks,
            self.optimization or other.optimization,
            other.newest_first if self.newest_first is None else self.newest_first,
            # Other dimensions are another network.
            self.topology or (None if self.dims else other.topology),
            self.packets or other.packets,
            (*other.diagnostics, *self.diagnostics),
        )

    def with_algorithms(self, choices: Sequence[tuple[str, int, str]], dimensions: int) -> Settings:
        """Returns the settings with other algorithms: (collective, dimension, name), "" for all collectives.

        dimensions: their number, which the settings of a preset do not know yet.
        """
        if not choices:
            return self
        several = [choice for choice in choices if not choice[0]]
        by_collective = dict(self.by_collective)
        algorithms = _with_names(self.algorithms, several, dimensions)
        for kind in [*by_collective, *dict.fromkeys(kind for kind, *_ in choices if kind)]:
            own = [choice for choice in choices if choice[0] == kind]
            names = by_collective.get(kind, self.algorithms)
            by_collective[kind] = _with_names(names, [*several, *own], dimensions)
        return replace(self, algorithms=algorithms, by_collective=tuple(by_collective.items()))

    def cluster(self) -> Cluster:
        """Returns the cluster, with the defaults for what is still open."""
        return Cluster(
            self.dims,
            self.algorithms or (None,) * len(self.dims),
            10 if self.endpoint_delay_ns is None else self.endpoint_delay_ns,
            self.local_mem_bandwidth or 3350.0,
            self.alltoall_port_time is not False,
            self.splits or 1,
            self.active_chunks or 1,
            self.optimization or "localBWAware",
            self.by_collective,
            self.newest_first is not False,
            topology=self.topology,
            packets=self.packets,
        )

    def _algorithms_over(self, other: Algorithms) -> Algorithms:
        if not self.algorithms or not other:
            return self.algorithms or other
        return tuple(mine or theirs for mine, theirs in zip(self.algorithms, other, strict=True))
