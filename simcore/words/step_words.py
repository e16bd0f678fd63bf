"""What is said of the steps of a run: one sentence a finding, each with its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.ranks import RankSet
from simcore.replay.step_findings import LEAST
from simcore.units import change_percent, duration, plural

if TYPE_CHECKING:
    from simcore.replay.step_findings import Cause, StepFindings
    from simcore.replay.step_table import Difference, StepTable

# Ranks that are named; and from which share on all is explained.
_LISTED, _ALL = 3, 99.5
# From here on a difference is told in whole units.
_WHOLE = 10


def describe_spread(table: StepTable) -> str:
    """Returns how many steps there are, and how long the one in the middle, nine of ten and all take."""
    worst = table.steps[table.slowest_row]
    return (
        f"{plural(len(table), 'step')}: median {duration(table.median_ns)}, p90 {duration(table.p90_ns)}, "
        f"worst {duration(table.sorted_ns[-1])} (step {worst})"
    )


def describe_recurrence(table: StepTable) -> str:
    """Returns which ranks are the ones that are late by most, and in how many steps; "" where none is."""
    if not table.recurrence:
        return ""
    slow = table.slow_rank
    if slow is None:
        listed = ", ".join(f"rank {rank} in {count}" for rank, count in table.recurrence[:_LISTED])
        more = f" and {len(table.recurrence) - _LISTED} more" if len(table.recurrence) > _LISTED else ""
        return f"No rank is the slowest in most of the {len(table)} steps: {listed}{more}."
    late = duration(slow.late_ns)
    how = (
        f"its peers wait for it, {late} longer than it waits"
        if table.has_waits
        else f"it computes {late} longer than its peers"
    )
    return f"Rank {slow.rank} is the slowest in {slow.steps} of {plural(len(table), 'step')}: {how} (median)."


def describe_gain(findings: StepFindings) -> str:
    """Returns what the job would gain were the rank as its peers; "" where that is not known."""
    as_peers = findings.as_peers
    if as_peers is None:
        return ""
    count = len(as_peers.steps)
    before, after = sum(as_peers.before_ns), sum(as_peers.after_ns)
    # Where each step has its own graph, what it gains is taken off its measured length.
    base = "measured" if findings.slowdown is None else "replayed"
    # A rank that comes late without computing longer would compute longer, too.
    gain = f"{duration(abs(as_peers.gain_ns))} {'less' if as_peers.gain_ns >= 0 else 'more'} in all"
    return (
        f"Were rank {as_peers.rank} as its peers, the mean of {plural(count, f'{base} step')} would be "
        f"{duration(round(after / count))}, not {duration(round(before / count))} "
        f"({change_percent(before, after) or 'no change'}): {gain}."
    )


def describe_cause(findings: StepFindings) -> str:
    """Returns which part explains most of what steps take longer than they need; "" where that is not
    known.
    """
    slowdown = findings.slowdown
    if slowdown is None:
        return ""
    total = f"{slowdown.total:.3f} x the step in which all operations of a kind are alike"
    if slowdown.total < LEAST:
        return f"Steps take {total}: nothing worth a search."
    if findings.cause is None:
        return f"Steps take {total}; no single rank, stage or kind explains most of it."
    share = 100 * findings.cause.share
    part = "all of that" if share >= _ALL else f"{share:.0f} % of that"
    return f"Steps take {total}; {_name_cause(findings.cause)} {part}."


def _name_cause(cause: Cause) -> str:
    if cause.part == "rank":
        ranks = [int(rank) for rank in cause.which]
        explains = "explains" if len(ranks) == 1 else "explain"
        return f"rank{'s' if len(ranks) > 1 else ''} {RankSet.of(ranks).text()} {explains}"
    if cause.part == "stage":
        return f"stage {cause.which[0]}, on all of its ranks, explains"
    if cause.part == "gc":
        return "garbage collection (gc) explains"
    if cause.part == "sequence":
        return (
            "micro-batches of uneven length (forward and backward long together on all ranks of a replica, "
            "others in each step) explain"
        )
    return f"{cause.which[0]}, on no single rank or stage, explains"


def describe_difference(difference: Difference | None) -> str:
    """Returns `rank 0 backward +340 ms`; "" without a difference."""
    if difference is None:
        return ""
    value, unit = duration(abs(difference.ns)).split()
    sign = "+" if difference.ns > 0 else "-"
    figure = f"{float(value):.{0 if float(value) >= _WHOLE else 1}f}"
    return f"rank {difference.rank} {difference.what} {sign}{figure} {unit}"
