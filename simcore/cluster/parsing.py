"""Cluster parameters as a user writes them: `--dim` and `--algorithm`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from simcore.cluster.model import KINDS, Dimension, is_algorithm
from simcore.diagnostics import UsageError, printable
from simcore.names import ALGORITHM_NAMES
from simcore.units import plain_number

MOST_NPUS = 10**6
# Far beyond any network; they catch a figure in the wrong unit and keep times in 64 bits.
BANDWIDTHS = (1e-6, 1e9)
LATENCIES = (0.0, 1e9)


def parse_dimension(text: str) -> Dimension:
    """`KIND:SIZE:GBPS:NS` as a dimension: its kind, NPUs, GB/s of one message, ns a hop.

    Raises UsageError that says which field is wrong and what fits.
    """
    fields = text.split(":")
    if len(fields) != 4:
        raise _refusal("dim", text, "KIND:SIZE:GBPS:NS is expected, for example switch:8:450:500")
    kind_text, size_text, bandwidth_text, latency_text = fields
    for kind in KINDS:
        if kind_text == kind:
            break
    else:
        raise _refusal("dim", text, f"KIND {_quoted(kind_text)} is not {either(KINDS)}")
    if not re.fullmatch("[0-9]{1,7}", size_text) or not 1 <= int(size_text) <= MOST_NPUS:
        raise _refusal("dim", text, f"SIZE {_quoted(size_text)} is not a whole number from 1 to {MOST_NPUS}")
    bandwidth = number_within(bandwidth_text, BANDWIDTHS)
    if bandwidth is None:
        raise _refusal("dim", text, f"GBPS {_quoted(bandwidth_text)} is not a number from 1e-6 to 1e9 (GB/s)")
    latency = number_within(latency_text, LATENCIES)
    if latency is None:
        raise _refusal("dim", text, f"NS {_quoted(latency_text)} is not a number from 0 to 1e9 (ns a hop)")
    return Dimension(kind, int(size_text), bandwidth, latency)


def parse_algorithm(text: str, dims: Sequence[Dimension]) -> tuple[int, str]:
    """`DIM=NAME` as the index of a dimension of `dims` and the name of an algorithm.

    Raises UsageError that says which of the two is wrong and what fits.
    """
    index_text, name = _halves(text)
    indices = {str(index): index for index in range(len(dims))}
    if index_text not in indices:
        fits = "only 0" if len(dims) == 1 else f"0 to {len(dims) - 1}"
        raise _refusal("algorithm", text, f"no dimension {_quoted(index_text)} in this cluster, {fits}")
    check_algorithm(text, name)
    return indices[index_text], name


def algorithm_words(text: str) -> tuple[str, str]:
    """The two halves of `DIM=NAME`, for a cluster that is not known: the number is any.

    Raises UsageError that says which of the two is wrong and what fits.
    """
    index_text, name = _halves(text)
    if not re.fullmatch("[0-9]{1,7}", index_text):
        raise _refusal("algorithm", text, f"DIM {_quoted(index_text)} is not the number of a dimension")
    check_algorithm(text, name)
    return index_text, name


def _halves(text: str) -> tuple[str, str]:
    index_text, equals, name = text.partition("=")
    if not equals:
        raise _refusal("algorithm", text, "DIM=NAME is expected, for example 0=ring")
    return index_text, name


def check_algorithm(text: str, name: str, also: Sequence[str] = ()) -> None:
    """Raises UsageError unless the NAME of `text`, `DIM=NAME`, is an algorithm or among the words `also`."""
    if name not in also and not is_algorithm(name):
        names = (*also, *ALGORITHM_NAMES[:2], "direct<W>", *ALGORITHM_NAMES[2:])
        raise _refusal("algorithm", text, f"NAME {_quoted(name)} is not {either(names)}")


def number_within(text: str, bounds: tuple[float, float]) -> float | None:
    """A plain decimal number between two bounds, or None."""
    value = plain_number(text)
    return value if value is not None and bounds[0] <= value <= bounds[1] else None


def _refusal(option: str, text: str, why: str) -> UsageError:
    return UsageError(f"--{option} {printable(text, 60)}: {why}")


def _quoted(text: str) -> str:
    return f"`{printable(text, 40)}`"


def either(names: Sequence[str]) -> str:
    """`ring, direct or switch`."""
    return f"{', '.join(names[:-1])} or {names[-1]}"
