"""The kernels of a profiler's run by family: what each takes of the step."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.kernel_families import COMMUNICATION, COPY, family_of
from simcore.records import NamedTuple
from simcore.replay.operations import Operations
from simcore.trace.layers import LayerUse


class KernelFamily(NamedTuple):
    """Kernels that compute the same kind of thing, of all ranks together."""

    name: str
    """As `family_of` returns it; for communication and copies their own."""
    cost_ns: int
    """The time of all of them in the accounts of the rank where it is most, without waiting, ns."""
    calls: int
    """How many calls there are."""
    call_ns: float
    """How long a call takes on average, waiting included, ns."""
    kernels: Sequence[LayerUse]
    """The most of the step first."""


def kernel_families(operations: Operations) -> list[KernelFamily]:
    """Returns the families of a run's kernels, the most of the step first."""
    members: dict[str, list[LayerUse]] = {}
    for kernel in operations.together:
        members.setdefault(_family(kernel), []).append(kernel)
    families = [_add_up(name, kernels, operations) for name, kernels in members.items()]
    return sorted(families, key=lambda family: (-family.cost_ns, -family.call_ns * family.calls))


def _family(kernel: LayerUse) -> str:
    if kernel.kinds[0] == "copy":
        return COPY
    return COMMUNICATION if kernel.runs.work == "communication" else family_of(kernel.name)


def _add_up(name: str, kernels: list[LayerUse], operations: Operations) -> KernelFamily:
    ns_of_rank: dict[int, int] = {}
    for kernel in kernels:
        for rank, ns in operations.own_ns(kernel).items():
            ns_of_rank[rank] = ns_of_rank.get(rank, 0) + ns
    measured = sum(kernel.runs.measured for kernel in kernels)
    total_ns = sum(kernel.runs.total_ns or 0 for kernel in kernels)
    return KernelFamily(
        name,
        max(ns_of_rank.values()),
        sum(kernel.runs.count or 0 for kernel in kernels),
        total_ns / measured if measured else 0.0,
        sorted(kernels, key=lambda kernel: (-kernel.cost_ns, -(kernel.runs.total_ns or 0))),
    )
