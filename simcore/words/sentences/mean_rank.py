"""What the time of executed ranks goes to."""

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
    """What a rank spends, ns: the mean of all, and the range where the mean is of none of them."""

    name: str
    ns: int
    rank_range: tuple[int, int] | None


class MeanRank(Sentence, frozen=True, kw_only=True):
    """What the mean rank's time goes to, the largest parts first. in_cycles: whether the step is one of
    cycles.
    """

    rule = "mean-rank"

    step_ns: int
    is_in_cycles: bool
    parts: tuple[Part, ...]

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
    """Speaks of every run; of compute as a whole where nodes do not say of which phase they are."""
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
    """What the exposed communication is that ASTRA-sim prints for the rank that ends last: all but GPU
    compute. ns_of: its parts, the largest first.
    """

    rule = "printed-exposed"

    rank: int
    exposed_ns: int
    ns_of: dict[str, int]

    @property
    def text(self) -> str:
        shares = ", ".join(f"{name} {percent(ns, self.exposed_ns)} %" for name, ns in self.ns_of.items())
        return (
            f"The {plural(self.exposed_ns, 'cycle')} of exposed communication that ASTRA-sim prints for rank "
            f"{self.rank}, the last to end, are all but GPU compute: {shares}."
        )


def find_printed_exposed(results: ExecutionAnalysis) -> Iterator[PrintedExposed]:
    """Speaks of what ASTRA-sim prints; not of a number that wraps there, or that other rules make."""
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
