"""The sentences on how executed ranks spend their time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.executing.trace import ACCOUNTS, states_phases
from simcore.records import Struct
from simcore.trace.run import mean_ns
from simcore.units import duration, percent, plural, range_if_far_apart, whole_percent
from simcore.words.rules import Sentence

if TYPE_CHECKING:
    from simcore.executing.execution_analysis import ExecutionAnalysis

_MOST_PARTS = 3


class Part(Struct, frozen=True):
    """A part of a rank's time."""

    name: str
    ns: int
    """The mean of all ranks."""
    rank_range: tuple[int, int] | None
    """The least and the most of a rank where the mean describes none of them; else None."""


class MeanRank(Sentence, frozen=True, kw_only=True):
    """The parts of the mean rank's time."""

    rule = "mean-rank"

    step_ns: int
    is_in_cycles: bool
    """Whether the step is counted in cycles."""
    parts: tuple[Part, ...]
    """The parts, the largest first."""

    @property
    def text(self) -> str:
        parts = []
        for part in self.parts:
            words = f"{part.name} {percent(part.ns, self.step_ns)} %"
            if part.rank_range is not None:
                least, most = (percent(ns, self.step_ns) for ns in part.rank_range)
                words += f" (ranks {least} to {most} %)"
            parts.append(words)
        length = duration(self.step_ns)
        if self.is_in_cycles:
            length += f", {plural(self.step_ns, 'cycle')}"
        return f"Of the step ({length}) the mean rank spends {', '.join(parts)}."


def find_mean_rank(results: ExecutionAnalysis) -> Iterator[MeanRank]:
    """Yields a sentence on every run, with compute as one part where nodes do not state their phase."""
    ns_of, ns_by_rank = mean_ns(results), [[one.ns(name) for name in ACCOUNTS] for one in results.accounts]
    names = {name: [name] for name in ns_of}
    if not states_phases(results.executed):
        of_phases = [name for name in ns_of if name.startswith("compute ")]
        names = {"compute": of_phases} | {name: [name] for name in ns_of if name not in of_phases}
    sums = {name: sum(ns_of[part] for part in of_name) for name, of_name in names.items()}
    parts, step = [], results.step_time_ns
    for name in sorted(sums, key=lambda name: -sums[name])[:_MOST_PARTS]:
        if not sums[name]:
            continue
        columns = [ACCOUNTS.index(part) for part in names[name]]
        of_ranks = [sum(account[column] for column in columns) for account in ns_by_rank]
        is_wide = range_if_far_apart(whole_percent(ns, step) for ns in of_ranks)
        parts.append(Part(name, sums[name], (min(of_ranks), max(of_ranks)) if is_wide else None))
    yield MeanRank(step_ns=step, is_in_cycles=results.is_in_cycles, parts=tuple(parts))


class PrintedExposed(Sentence, frozen=True, kw_only=True):
    """The exposed communication that ASTRA-sim prints for the rank that ends last: all but GPU compute."""

    rule = "printed-exposed"

    rank: int
    """The rank that ends last."""
    exposed_ns: int
    """The printed figure."""
    ns_of: dict[str, int]
    """The parts of it, the largest first."""

    @property
    def text(self) -> str:
        shares = ", ".join(f"{name} {percent(ns, self.exposed_ns)} %" for name, ns in self.ns_of.items())
        return (
            f"The {plural(self.exposed_ns, 'cycle')} of exposed communication that ASTRA-sim prints for rank "
            f"{self.rank}, the last to end, are all but GPU compute: {shares}."
        )


def find_printed_exposed(results: ExecutionAnalysis) -> Iterator[PrintedExposed]:
    """Yields a sentence on the figure that ASTRA-sim prints.

    Silent on a figure that wraps there, and on one that other rules make.
    """
    rank, _, exposed = max(results.executed.ranks, key=lambda figures: (figures[1], -figures[0]))
    accounts = results.accounts[rank]
    parts = {
        "communication": sum(accounts.exposed_ns().values()),
        "waiting for members": accounts.wait_ns,
        "waiting for messages": accounts.bubble_ns,
        "CPU nodes": accounts.ns("host"),
        "idle": accounts.idle_ns,
    }
    if not results.is_in_cycles or not exposed or sum(parts.values()) != exposed:
        return
    largest_parts = sorted(((ns, name) for name, ns in parts.items() if ns), reverse=True)
    yield PrintedExposed(rank=rank, exposed_ns=exposed, ns_of={name: ns for ns, name in largest_parts})
