"""The worst findings of a run, each with its figure and where it is: one rule is one function in a table,
whatever the run came from. A rule finds nothing in a run that does not have its subject.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from simcore.diagnostics import printable
from simcore.ranks import RankSet
from simcore.records import NamedTuple
from simcore.trace.findings import Finding, TrackInterval
from simcore.trace.spans import NONE
from simcore.trace.tables import SpentByLabel
from simcore.trace.track import find_whole_stages
from simcore.trace.waits import Stretch, find_longest
from simcore.units import duration, percent
from simcore.workload.model import PHASES

if TYPE_CHECKING:
    from simcore.trace.contexts import PortUse
    from simcore.trace.figures import WaitFor
    from simcore.trace.layers import LayerUse
    from simcore.trace.run import Run

# The width of a name, cells.
NAME = 32
# A file's placeholder of 1 ns is no compute: a part below 1 / 1000 does not count.
_LEAST_PART = 1000
# A start in the first 1 / 1000 of the step is called the start.
_AT_THE_START = 1000


class LateRank(NamedTuple):
    """A rank that often comes last to its collectives."""

    rank: int
    """The rank."""
    late_count: int
    """How many collectives it comes last to."""
    collectives: int
    """How many collectives it has."""
    ns: int
    """The most that it comes after the next one, ns."""


class Operation(NamedTuple):
    """An operation of a rank."""

    name: str
    """Its name in words."""
    start: int
    """When it begins, ns."""
    end: int
    """When it ends, ns."""


class Contexts(NamedTuple):
    """What only some runs have, and rules need. Tracks and what runs on them are given by id."""

    late_rank: LateRank | None = None
    """The rank that comes last to most collectives."""
    find_last_start: Callable[[int], int] | None = None
    """Returns when the work begins that ends last on a track, ns; None where it is the last segment of its
    accounts.
    """
    longest_wait: WaitFor | None = None
    """Who waits longest in total, and for whom."""
    describe_code: Callable[[int, int], str] | None = None
    """Returns what a code in the accounts of a rank stands for, in words; None where tracks are classes of
    ranks.
    """
    operation: Callable[[int, int], Operation] | None = None
    """Returns an operation of a track, by its label in the column `op`."""
    rows: Sequence[LayerUse] = ()
    """The rows of a workload, equal ones together."""
    find_rows: Callable[[Collection[int]], TrackInterval | None] = lambda rows: None
    """Returns where some rows are best seen."""
    find_sent: Callable[[PortUse], TrackInterval | None] = lambda port: None
    """Returns where the longest span that goes over a port is."""
    describe_node: Callable[[int, int], str] | None = None
    """Returns the name of a span that is a node of an execution trace."""
    cut_wait: Stretch | None = None
    """The longest idle time that was waiting, where files have cut it off."""


def find_worst_findings(run: Run, has: Contexts) -> list[Finding]:
    """Returns what all rules find: who comes late and who ends last, the longest nodes, wait and bubble, what
    takes most of the step, what is exposed longest, the longest idle time, the busiest link.
    """
    return [finding for rule in _RULES for finding in rule(run, has)] if run.step_time_ns else []


# -- in words --------------------------------------------------------------------------


def _time_text(run: Run, ns: int) -> str:
    """Returns `3.077 s (79.8 %)`: a time with its share of the step."""
    return f"{duration(ns)} ({percent(ns, run.step_time_ns)} %)"


def _ranks_text(run: Run, ranks: RankSet) -> str:
    """Returns `all ranks`, `rank 3` or `ranks 0-63`; a recording need not have all ranks."""
    return ranks.of_world(0 if run.recording else sum(len(track.ranks) for track in run.tracks))


def _who_text(run: Run, track_ids: Collection[int]) -> str:
    """Returns `all ranks`, `equal stages 1-14` or `ranks 0-63` for some tracks."""
    blocks = (block for track in run.tracks if track.track_id in track_ids for block in track.ranks.blocks)
    ranks = _ranks_text(run, RankSet.merge_blocks(blocks))
    return ranks if run.recording or ranks == "all ranks" else same_stages_text(run, track_ids) or ranks


def same_stages_text(run: Run, track_ids: Collection[int]) -> str:
    """Returns `equal stages 0-15`, where some tracks are several stages, all ranks of each; else ""."""
    stages = _find_stages(run, track_ids)
    return f"equal stages {stages.text()}" if stages is not None and len(stages) > 1 else ""


def _find_stages(run: Run, track_ids: Collection[int]) -> RankSet | None:
    return find_whole_stages([track.stage for track in sorted(run.tracks)], track_ids)


# -- what rules have in common ---------------------------------------------------------


def _find_accounts(run: Run, name: str) -> Sequence[int]:
    """Returns the accounts of exposed communication, or the one of another name."""
    of = run.trace.categories
    return range(of.first_exposed, of.first_other) if name == "exposed" else (of.all.index(name),)


def _find_longest_stretch(run: Run, has: Contexts, kind: str, words: str) -> Iterator[Finding]:
    """Yields the longest time without a break that a rank has in some accounts. words: a format with places
    for the time, for the rank, and for what it does.
    """
    if has.describe_code is not None:
        longest = find_longest(run.accounts, _find_accounts(run, kind))[:1]
        if kind == "wait" and has.cut_wait is not None:
            longest = [has.cut_wait]
        for track, start, end, code in longest:
            text = words.format(
                _time_text(run, end - start), _who_text(run, (track,)), has.describe_code(track, code)
            )
            yield Finding(kind, text, track, start, end, end - start)


def _most_rows(rows: Sequence[LayerUse], ns_of: Callable[[LayerUse], int]) -> tuple[list[LayerUse], int]:
    """Returns the rows of the name with most of a figure, the first of equal ones; and that, ns."""
    lines = [(line.title, line) for line in rows]
    sums: dict[str, int] = {}
    for title, line in lines:
        sums[title] = sums.get(title, 0) + ns_of(line)
    most = max(sums, key=sums.__getitem__, default="")
    return [line for title, line in lines if title == most], sums.get(most, 0)


# -- the rules -------------------------------------------------------------------------


def _find_late_rank(run: Run, has: Contexts) -> Iterator[Finding]:
    """Yields the rank that comes last to most collectives."""
    if has.late_rank is not None:
        rank, last, of, ns = has.late_rank
        track_id = next(track.track_id for track in run.tracks if rank in track.ranks)
        words = f"rank {rank} last to {last} of {of} collectives"
        yield Finding("late", words, track_id, 0, run.step_time_ns, ns)


def _find_last_end(run: Run, has: Contexts) -> Iterator[Finding]:
    """Yields the ranks that end last."""
    ends = run.figures.ends
    end = max(ends)
    track_id = ends.index(end)
    own = run.accounts[track_id]
    words = f"{duration(end)}, last to end: {_who_text(run, {at for at, ns in enumerate(ends) if ns == end})}"
    start = own.edge[own.at(end - 1)] if has.find_last_start is None else has.find_last_start(track_id)
    yield Finding("end", words, track_id, start, end, end)


def _find_longest_wait(run: Run, has: Contexts) -> Iterator[Finding]:
    """Yields who waits longest for a slower member, in total or without a break."""
    yield from _find_longest_stretch(run, has, "wait", "{} at a stretch: {} in {}")
    if has.longest_wait is not None:
        early, late, ns = has.longest_wait.early, has.longest_wait.late, has.longest_wait.ns
        track_id = next(track.track_id for track in sorted(run.tracks) if track.first_rank in early)
        own = run.accounts[track_id]
        first = own.account.index(own.of.first_other)
        words = f"{_time_text(run, ns)} for {_ranks_text(run, late)}: {_ranks_text(run, early)}"
        yield Finding("wait", words, track_id, own.edge[first], own.edge[first + 1], ns)


def _find_longest_bubble(run: Run, has: Contexts) -> Iterator[Finding]:
    """Yields the longest bubble without a break; of rank classes also which of them have one as long."""
    yield from _find_longest_stretch(run, has, "bubble", "{} at a stretch: {} in {}")
    stretches = find_longest(run.accounts, _find_accounts(run, "bubble")) if has.rows else []
    if stretches:
        track_id, start, end, _ = stretches[0]
        who_text = same_stages_text(run, {one.track for one in stretches})
        if not who_text:
            same = {one.track for one in stretches if (one.start, one.end) == (start, end)}
            stages = _find_stages(run, same)
            who = (
                f"stage {stages.text()}" if stages is not None and len(stages) == 1 else _who_text(run, same)
            )
            begins = "the start" if start * _AT_THE_START <= run.step_time_ns else duration(start)
            who_text = f"{who}, from {begins}"
        words = f"{_time_text(run, end - start)} at a stretch: {who_text}"
        yield Finding("bubble", words, track_id, start, end, end - start)


def _find_costliest_layer(run: Run, has: Contexts) -> Iterator[Finding]:
    """Yields the layer that takes most of the step: compute and exposed communication together."""
    lines, ns = _most_rows(has.rows, attrgetter("cost_ns"))
    interval = has.find_rows({row for line in lines for row in line.rows}) if ns else None
    if interval is not None:
        # A sentence names the layer that computes most: with communication it may be another one.
        computed = sum(line.use.compute_ns for line in lines)
        what = " with communication" if _LEAST_PART * computed >= ns else " of communication"
        words = f"{_time_text(run, ns)}{'' if computed == ns else what}: {printable(lines[0].title, NAME)}"
        yield Finding("layer", words, *interval[:3], ns)


def _find_longest_operation(run: Run, has: Contexts) -> Iterator[Finding]:
    """Yields the operation that computes longest, without communication and waiting."""
    if has.operation is None:
        return
    trace, column = run.trace, run.trace.column("op")
    of_tracks = (SpentByLabel(trace, track, own, column) for track, own in enumerate(run.accounts))
    each = ((ns, track, op) for track, of in enumerate(of_tracks) for op, ns in of.compute.items())
    most = max(each, key=itemgetter(0), default=None)
    if most is not None:
        ns, track, op = most
        name, start, end = has.operation(track, op)
        yield Finding(
            "op", f"{_time_text(run, ns)} of {_who_text(run, (track,))}: {name}", track, start, end, ns
        )


def _find_most_exposed(run: Run, has: Contexts) -> Iterator[Finding]:
    """Yields the layer with the longest exposed collectives, or the longest communication at once."""
    yield from _find_longest_stretch(run, has, "exposed", "{} of {}: {}")
    lines, ns = _most_rows(has.rows, lambda line: line.use.exposed_ns)
    if not ns:
        return
    lines = [line for line in lines if line.use.exposed_ns]
    rows = {row for line in lines for row in line.rows}
    cells = [cell for line in lines for cell in map(line.cell, PHASES) if cell.collective and cell.group]
    what = ", ".join(dict.fromkeys(f"{cell.group} {cell.collective_name}" for cell in cells))
    words = f"{_time_text(run, ns)}: {printable(lines[0].title, NAME)}, {what}"
    column, exposed = run.trace.column("row"), _find_accounts(run, "exposed")
    for track_id, own in enumerate(run.accounts):
        row_of = column.labels_by_code(run.trace, track_id)
        segments = zip(own.account, own.op, pairwise(own.edge), strict=True)
        inside = [times for account, code, times in segments if account in exposed and row_of[code] in rows]
        if inside:
            start, end = max(inside, key=lambda times: times[1] - times[0])
            yield Finding("exposed", words, track_id, start, end, ns)
            return


def _find_longest_idle(run: Run, has: Contexts) -> Iterator[Finding]:
    """Yields the longest time that a rank is idle: a host gap, or the time before its first operation or
    behind its last one.

    Stretches that touch are one, as on the timeline: a step may begin within such a time.
    """
    if has.describe_code is None or has.cut_wait is not None:
        return
    touching = re.escape(bytes(_find_accounts(run, "idle"))) + b"+"
    stretches = (
        Stretch(track, own.edge[one.start()], own.edge[one.end()], NONE)
        for track, own in enumerate(run.accounts)
        for one in re.finditer(touching, own.account)
    )
    most = max(stretches, key=lambda one: one.ns, default=None)
    if most is not None:
        took = f"{_time_text(run, most.ns)} at a stretch from {duration(most.start)} on"
        words = f"{took}: {_who_text(run, (most.track,))}"
        yield Finding("idle", words, most.track, most.start, most.end, most.ns)


def find_busiest_link(run: Run, has: Contexts) -> Iterator[Finding]:
    """Yields the port that is busy longest, at the longest span that goes over it."""
    port = run.network.busiest_port
    interval = None if port is None else has.find_sent(port)
    if port is not None and interval is not None:
        who = _who_text(run, port.equal_classes).removeprefix("equal ")
        slowed = f", slowed to {port.factor:g}" if port.factor != 1 else ""
        # The index alone does not say which network it is.
        dimension = run.network.dims[port.index]
        dim = dimension.name(port.index, dimension.bandwidth_text().partition(" (")[0])
        # `busy` marks another kind of figure than the other findings have: a busy port delays nobody by
        # itself.
        words = f"busy {_time_text(run, port.busy_ns)} on {dim} of {who}, {port.streams}{slowed}"
        yield Finding("link", words, *interval[:3], port.busy_ns, interval.stream)


def _find_longest_nodes(run: Run, has: Contexts) -> Iterator[Finding]:
    """Yields the longest nodes of communication and of compute, and the longest wait; the longest first."""
    if has.describe_node is None:
        return
    exposed = _find_accounts(run, "exposed")
    most: dict[str, tuple[int, int, int, int]] = {}
    for track, spans in enumerate(run.trace.spans):
        columns = spans.start, spans.ready, spans.end, spans.category
        for span, (start, ready, end, category) in enumerate(zip(*columns, strict=True)):
            word = "comm" if category in exposed else "compute"
            for kind, ns, first in ((word, end - ready, ready), ("wait", ready - start, start)):
                if ns > most.get(kind, (0,))[0]:
                    most[kind] = ns, run.trace.track_of.index(track), span, first
    for kind, (ns, rank, span, first) in sorted(most.items(), key=lambda item: -item[1][0]):
        words = f"{_time_text(run, ns)} of {_who_text(run, (rank,))}: {has.describe_node(rank, span)}"
        yield Finding(kind, words, rank, first, first + ns, ns)


_RULES = (
    _find_late_rank,
    _find_last_end,
    _find_longest_nodes,
    _find_longest_wait,
    _find_longest_bubble,
    _find_costliest_layer,
    _find_longest_operation,
    _find_most_exposed,
    _find_longest_idle,
    find_busiest_link,
)
