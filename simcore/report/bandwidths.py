"""Bandwidths of the collectives of a profiler trace whose bytes are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.report.section import Field, PageAsked, field_lines, field_values, keys, more_line
from simcore.units import byte_size, duration

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.cluster.choice import ClusterChoice
    from simcore.replay.bandwidths import Bandwidth

_ROWS = 20
# The collectives that `wltui collective` knows, by the word for them in a trace.
_SIMULATED = {
    "allreduce": "all-reduce", "allgather": "all-gather", "allgatherintotensor": "all-gather",
    "reducescatter": "reduce-scatter", "reducescattertensor": "reduce-scatter", "alltoall": "all-to-all",
    "alltoallv": "all-to-all",
}  # fmt: skip
_NAME_CELLS = 24


def _rate(gbps: float) -> str:
    return f"{gbps:.2f}" if gbps < 100 else f"{gbps:.0f}"


def _rates(of: Any, bandwidth: Bandwidth) -> dict[str, float]:
    return {"best": of(bandwidth.least_ns), "median": of(bandwidth.middle_ns), "worst": of(bandwidth.most_ns)}


_FIELDS: list[Field[Bandwidth]] = [
    Field(
        "collective",
        lambda bandwidth: printable(bandwidth.operation, _NAME_CELLS) + "*" * bandwidth.waits_included,
        "operation", lambda bandwidth: bandwidth.operation, left=True,
    ),
    Field(
        "group",
        lambda bandwidth: "-" if bandwidth.group is None else printable(bandwidth.group, _NAME_CELLS),
        "group", lambda bandwidth: bandwidth.group, left=True,
    ),
    Field("ranks", lambda bandwidth: str(bandwidth.ranks), "ranks", lambda bandwidth: bandwidth.ranks),
    Field("bytes", lambda bandwidth: byte_size(bandwidth.bytes), "bytes", lambda bandwidth: bandwidth.bytes),
    Field("count", lambda bandwidth: str(bandwidth.times), "count", lambda bandwidth: bandwidth.times),
    *keys("least_ns"),
    Field(
        "median", lambda bandwidth: duration(bandwidth.middle_ns),
        "median_ns", lambda bandwidth: bandwidth.middle_ns,
    ),
    *keys("most_ns", "waits_included"),
    Field(
        "algbw", lambda bandwidth: _rate(bandwidth.algbw(bandwidth.middle_ns)),
        "algbw_gbps", lambda bandwidth: _rates(bandwidth.algbw, bandwidth),
    ),
    Field(
        "busbw", lambda bandwidth: _rate(bandwidth.busbw(bandwidth.middle_ns)),
        "busbw_gbps", lambda bandwidth: _rates(bandwidth.busbw, bandwidth),
    ),
    Field("best", lambda bandwidth: _rate(bandwidth.busbw(bandwidth.least_ns))),
    Field("worst", lambda bandwidth: _rate(bandwidth.busbw(bandwidth.most_ns))),
]  # fmt: skip


def _found(run: Run) -> list[Bandwidth]:
    recorded = run.figures.recorded
    if recorded is None or not recorded.measured.of_devices:
        return []
    # Imported here: other runs have none.
    from simcore.replay.bandwidths import bandwidths

    return bandwidths(recorded)


def lines(run: Run, asked: PageAsked) -> list[str]:
    """A line for collectives of one operation, group and size, those that take most first."""
    bandwidths = _found(run)
    if not bandwidths:
        return []
    shown = bandwidths if asked.every_layer or asked.everything else bandwidths[:_ROWS]
    more = more_line(len(bandwidths) - len(shown), where="--all-layers has all")
    waits = "  *: members are missing, so the time holds the waiting for them"
    return [
        "Bandwidths of collectives, GB/s, as nccl-tests have them; best, worst: busbw",
        *field_lines(_fields(asked), shown), *more,
        *([waits] if any(bandwidth.waits_included for bandwidth in bandwidths) else []),
        *_beside_a_cluster(shown, asked),
    ]  # fmt: skip


def _fields(asked: PageAsked) -> list[Field[Bandwidth]]:
    """With what they take on the cluster that is asked for."""
    if asked.cluster is None:
        return _FIELDS
    name, choice = asked.cluster
    on = printable(name, _NAME_CELLS)

    def ns(bandwidth: Bandwidth) -> int | None:
        return _priced_ns(choice, bandwidth)

    def busbw(bandwidth: Bandwidth) -> float | None:
        measured_ns = ns(bandwidth)
        return None if measured_ns is None else bandwidth.busbw(measured_ns)

    return [
        *_FIELDS,
        Field(
            f"on {on}", lambda bandwidth: "-" if (value := ns(bandwidth)) is None else duration(value),
            "cluster_ns", ns, optional=True,
        ),
        Field(
            "busbw", lambda bandwidth: "-" if (value := busbw(bandwidth)) is None else _rate(value),
            "cluster_busbw_gbps", busbw, optional=True,
        ),
    ]  # fmt: skip


def _priced_ns(choice: ClusterChoice, bandwidth: Bandwidth) -> int | None:
    """What `wltui collective` says of it: alone, on an idle network. None of what it does not know. Raises
    UsageError where the cluster has no such ranks.
    """
    word = _SIMULATED.get(bandwidth.operation)
    if word is None:
        return None
    # Imported here: most pages ask for no cluster.
    from simcore.cluster import group_shape
    from simcore.collectives import NAMES, collective_done

    members = bandwidth.members or tuple(range(bandwidth.ranks))
    cluster = choice.cluster(members[-1] + 1)
    collective = next(name for name, told in NAMES.items() if told == word)
    return collective_done(cluster, group_shape(cluster, members), collective, bandwidth.bytes).last_ns


def _beside_a_cluster(bandwidths: Sequence[Bandwidth], asked: PageAsked) -> list[str]:
    """What the columns of a cluster are, else the command that says what the first it knows takes on one;
    nothing where it knows none.
    """
    if asked.cluster is not None and any(bandwidth.operation in _SIMULATED for bandwidth in bandwidths):
        on = printable(asked.cluster[0], _NAME_CELLS)
        guessed = any(
            bandwidth.members is None and bandwidth.operation in _SIMULATED for bandwidth in bandwidths
        )
        return [
            f"  on {on}: alone on an idle network, as `wltui collective` says it"
            + (", of the first ranks where the trace does not tell which" if guessed else "")
        ]
    for bandwidth in bandwidths:
        name = _SIMULATED.get(bandwidth.operation)
        if name is not None:
            ranks = f"0-{bandwidth.ranks - 1}"
            command = f"wltui collective {name} --size {bandwidth.bytes} --ranks {ranks} --cluster NAME"
            return [f"  {command}: what it takes on a cluster"]
    return []


def bandwidth_values(run: Run, asked: PageAsked) -> list[dict[str, Any]]:
    """Each line as JSON."""
    return field_values(_fields(asked), _found(run))


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`measured` has them."""
    return {}
