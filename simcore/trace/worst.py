"""The worst places of a run, each with its figure and where it is: one rule a function, in a table, whatever
the run came from. A rule finds nothing in a run that has nothing of what it is about.
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
from simcore.trace.findings import Place, Spot
from simcore.trace.spans import NONE
from simcore.trace.tables import SpentByLabel
from simcore.trace.track import whole_stages
from simcore.trace.waits import Stretch, longest
from simcore.units import duration, percent
from simcore.workload.model import PHASES

if TYPE_CHECKING:
    from simcore.trace.contexts import PortUse
    from simcore.trace.figures import WaitFor
    from simcore.trace.layers import LayerUse
    from simcore.trace.run import Run

# Cells of a name.
NAME = 32
# A file's placeholder of 1 ns is no compute: what is less than 1 / 1000.
_LEAST_PART = 1000
# A start within 1 / 1000 of the step is the start.
_AT_THE_START = 1000


class LateRank(NamedTuple):
    """A rank that comes last to `last` of its `of` collectives, at most `ns` after the next one."""

    rank: int
    last: int
    of: int
    ns: int


class Operation(NamedTuple):
    """An operation of a rank, as it is called in words, and when it runs, ns."""

    name: str
    start: int
    end: int


class Contexts(NamedTuple):
    """What only some runs have, and rules ask for. Tracks and what runs on them are given by number.

    late: the rank that comes last to most collectives. last: when that begins which ends last on a track;
    None where it is the last segment of its accounts. wait: who waits longest in all, and for whom. called:
    what the accounts of a rank name by a code, in words; None where tracks are classes of ranks. operation:
    one of a track, by its label in the column `op`. rows: those of a workload, equal ones together; seen:
    where some rows are seen best. sent: the longest that goes over a port. node: the name of a span that is a
    node of an execution trace.
    """

    late: LateRank | None = None
    last: Callable[[int], int] | None = None
    wait: WaitFor | None = None
    called: Callable[[int, int], str] | None = None
    operation: Callable[[int, int], Operation] | None = None
    rows: Sequence[LayerUse] = ()
    seen: Callable[[Collection[int]], Spot | None] = lambda rows: None
    sent: Callable[[PortUse], Spot | None] = lambda port: None
    node: Callable[[int, int], str] | None = None


def worst_places(run: Run, has: Contexts) -> list[Place]:
    """Returns who comes late and who ends last; the longest nodes; the longest wait and bubble; what takes
    most of the step, what is exposed longest; the longest idle time, the busiest link; as far as there are.
    """
    return [place for rule in _RULES for place in rule(run, has)] if run.step_time_ns else []


# -- in words --------------------------------------------------------------------------


def _took(run: Run, ns: int) -> str:
    """`3.077 s (79.8 %)`: what takes `ns`, with its share of the step."""
    return f"{duration(ns)} ({percent(ns, run.step_time_ns)} %)"


def _ranks(run: Run, ranks: RankSet) -> str:
    """`all ranks`, `rank 3` or `ranks 0-63`; a recording need not have all ranks."""
    return ranks.of_world(0 if run.recording else sum(len(track.ranks) for track in run.tracks))


def _who(run: Run, numbers: Collection[int]) -> str:
    """`all ranks`, `stages 1-14 alike` or `ranks 0-63`: those of some tracks."""
    blocks = (block for track in run.tracks if track.number in numbers for block in track.ranks.blocks)
    ranks = _ranks(run, RankSet.joined(blocks))
    return ranks if run.recording or ranks == "all ranks" else alike_stages(run, numbers) or ranks


def alike_stages(run: Run, numbers: Collection[int]) -> str:
    """Returns `stages 0-15 alike`, where some tracks are several stages, all ranks of each; else ""."""
    stages = _stages(run, numbers)
    return f"stages {stages.text()} alike" if stages is not None and len(stages) > 1 else ""


def _stages(run: Run, numbers: Collection[int]) -> RankSet | None:
    return whole_stages([track.stage for track in sorted(run.tracks)], numbers)


# -- what rules have in common ---------------------------------------------------------


def _accounts(run: Run, name: str) -> Sequence[int]:
    """The accounts of exposed communication, or the one of another name."""
    of = run.trace.categories
    return range(of.first_exposed, of.first_other) if name == "exposed" else (of.all.index(name),)


def _stretch(run: Run, has: Contexts, what: str, words: str) -> Iterator[Place]:
    """The longest time at a stretch that a rank has in some accounts. words: with places for what it takes,
    for the rank, and for what it does.
    """
    if has.called is not None:
        for track, start, end, code in longest(run.accounts, _accounts(run, what))[:1]:
            told = words.format(_took(run, end - start), _who(run, (track,)), has.called(track, code))
            yield Place(what, told, track, start, end, end - start)


def _most(rows: Sequence[LayerUse], ns_of: Callable[[LayerUse], int]) -> tuple[list[LayerUse], int]:
    """The rows of the name that has most of a figure, the first of equal ones; and how much, ns."""
    lines = [(line.title, line) for line in rows]
    sums: dict[str, int] = {}
    for title, line in lines:
        sums[title] = sums.get(title, 0) + ns_of(line)
    most = max(sums, key=sums.__getitem__, default="")
    return [line for title, line in lines if title == most], sums.get(most, 0)


# -- the rules -------------------------------------------------------------------------


def _late(run: Run, has: Contexts) -> Iterator[Place]:
    """The rank that comes last to most collectives."""
    if has.late is not None:
        rank, last, of, ns = has.late
        number = next(track.number for track in run.tracks if rank in track.ranks)
        words = f"rank {rank} last to {last} of {of} collectives"
        yield Place("late", words, number, 0, run.step_time_ns, ns)


def _end(run: Run, has: Contexts) -> Iterator[Place]:
    """The ranks that end last."""
    ends = run.figures.ends
    end = max(ends)
    number = ends.index(end)
    own = run.accounts[number]
    words = f"{duration(end)}, last to end: {_who(run, {at for at, ns in enumerate(ends) if ns == end})}"
    start = own.edge[own.at(end - 1)] if has.last is None else has.last(number)
    yield Place("end", words, number, start, end, end)


def _wait(run: Run, has: Contexts) -> Iterator[Place]:
    """Who waits longest in all for a slower member, or at a stretch."""
    yield from _stretch(run, has, "wait", "{} at a stretch: {} in {}")
    if has.wait is not None:
        early, late, ns = has.wait.early, has.wait.late, has.wait.ns
        number = next(track.number for track in sorted(run.tracks) if track.first_rank in early)
        own = run.accounts[number]
        first = own.account.index(own.of.first_other)
        words = f"{_took(run, ns)} for {_ranks(run, late)}: {_ranks(run, early)}"
        yield Place("wait", words, number, own.edge[first], own.edge[first + 1], ns)


def _bubble(run: Run, has: Contexts) -> Iterator[Place]:
    """The longest bubble at a stretch; of classes of ranks also who has one as long, or when it begins."""
    yield from _stretch(run, has, "bubble", "{} at a stretch: {} in {}")
    found = longest(run.accounts, _accounts(run, "bubble")) if has.rows else []
    if found:
        number, start, end, _ = found[0]
        whose = alike_stages(run, {one.track for one in found})
        if not whose:
            same = {one.track for one in found if (one.start, one.end) == (start, end)}
            stages = _stages(run, same)
            who = f"stage {stages.text()}" if stages is not None and len(stages) == 1 else _who(run, same)
            begins = "the start" if start * _AT_THE_START <= run.step_time_ns else duration(start)
            whose = f"{who}, from {begins}"
        words = f"{_took(run, end - start)} at a stretch: {whose}"
        yield Place("bubble", words, number, start, end, end - start)


def _layer(run: Run, has: Contexts) -> Iterator[Place]:
    """The layer that takes most of the step: compute and exposed communication together."""
    lines, ns = _most(has.rows, attrgetter("cost_ns"))
    seen = has.seen({row for line in lines for row in line.rows}) if ns else None
    if seen is not None:
        # A sentence names the layer that computes most: with its communication it may be another one.
        computed = sum(line.use.compute_ns for line in lines)
        what = " with communication" if _LEAST_PART * computed >= ns else " of communication"
        words = f"{_took(run, ns)}{'' if computed == ns else what}: {printable(lines[0].title, NAME)}"
        yield Place("layer", words, *seen[:3], ns)


def _operation(run: Run, has: Contexts) -> Iterator[Place]:
    """The operation that computes longest, communication and waiting left out; the first of equal ones."""
    if has.operation is None:
        return
    trace, column = run.trace, run.trace.column("op")
    of_tracks = (SpentByLabel(trace, track, own, column) for track, own in enumerate(run.accounts))
    each = ((ns, track, op) for track, of in enumerate(of_tracks) for op, ns in of.compute.items())
    most = max(each, key=itemgetter(0), default=None)
    if most is not None:
        ns, track, op = most
        name, start, end = has.operation(track, op)
        yield Place("op", f"{_took(run, ns)} of {_who(run, (track,))}: {name}", track, start, end, ns)


def _exposed(run: Run, has: Contexts) -> Iterator[Place]:
    """The layer whose collectives are exposed longest, or the longest communication at a stretch."""
    yield from _stretch(run, has, "exposed", "{} of {}: {}")
    lines, ns = _most(has.rows, lambda line: line.use.exposed_ns)
    if not ns:
        return
    lines = [line for line in lines if line.use.exposed_ns]
    rows = {row for line in lines for row in line.rows}
    cells = [cell for line in lines for cell in map(line.cell, PHASES) if cell.collective and cell.group]
    what = ", ".join(dict.fromkeys(f"{cell.group} {cell.collective_name}" for cell in cells))
    words = f"{_took(run, ns)}: {printable(lines[0].title, NAME)}, {what}"
    column, exposed = run.trace.column("row"), _accounts(run, "exposed")
    for number, own in enumerate(run.accounts):
        row_of = column.by_code(run.trace, number)
        segments = zip(own.account, own.op, pairwise(own.edge), strict=True)
        inside = [times for account, code, times in segments if account in exposed and row_of[code] in rows]
        if inside:
            start, end = max(inside, key=lambda times: times[1] - times[0])
            yield Place("exposed", words, number, start, end, ns)
            return


def _idle(run: Run, has: Contexts) -> Iterator[Place]:
    """The longest time that a rank is idle: a host gap, or before its first operation or behind its last.

    Stretches that touch are one, as on the timeline: a step may begin within such a time.
    """
    if has.called is None:
        return
    touching = re.escape(bytes(_accounts(run, "idle"))) + b"+"
    found = (
        Stretch(track, own.edge[one.start()], own.edge[one.end()], NONE)
        for track, own in enumerate(run.accounts)
        for one in re.finditer(touching, own.account)
    )
    most = max(found, key=lambda one: one.ns, default=None)
    if most is not None:
        took = f"{_took(run, most.ns)} at a stretch from {duration(most.start)} on"
        words = f"{took}: {_who(run, (most.track,))}"
        yield Place("idle", words, most.track, most.start, most.end, most.ns)


def worst_link(run: Run, has: Contexts) -> Iterator[Place]:
    """Yields the port that is busy longest, where the longest that goes over it is."""
    port = run.network.busiest_port
    seen = None if port is None else has.sent(port)
    if port is not None and seen is not None:
        whose = _who(run, port.alike).removesuffix(" alike")
        slowed = f", slowed to {port.factor:g}" if port.factor != 1 else ""
        # By its number alone nobody knows which network it is.
        dim = f"dim {port.index} ({run.network.dims[port.index].rate().partition(' (')[0]})"
        # Of another kind than the other places: a port that is busy holds nobody up by itself.
        words = f"busy {_took(run, port.busy_ns)} on {dim} of {whose}, {port.streams}{slowed}"
        yield Place("link", words, *seen[:3], port.busy_ns, seen.stream)


def _nodes(run: Run, has: Contexts) -> Iterator[Place]:
    """The longest node of communication, of compute, and the one that waits longest; the longest first."""
    if has.node is None:
        return
    exposed = _accounts(run, "exposed")
    most: dict[str, tuple[int, int, int, int]] = {}
    for track, spans in enumerate(run.trace.spans):
        columns = spans.start, spans.ready, spans.end, spans.category
        for span, (start, ready, end, category) in enumerate(zip(*columns, strict=True)):
            word = "comm" if category in exposed else "compute"
            for what, ns, first in ((word, end - ready, ready), ("wait", ready - start, start)):
                if ns > most.get(what, (0,))[0]:
                    most[what] = ns, run.trace.track_of.index(track), span, first
    for what, (ns, rank, span, first) in sorted(most.items(), key=lambda item: -item[1][0]):
        words = f"{_took(run, ns)} of {_who(run, (rank,))}: {has.node(rank, span)}"
        yield Place(what, words, rank, first, first + ns, ns)


_RULES = (_late, _end, _nodes, _wait, _bubble, _layer, _operation, _exposed, _idle, worst_link)
