"""The worst places of a run, each with its figure and where it is: one rule a function, in a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import add
from typing import TYPE_CHECKING

from simcore.analysis.accounts import row_of
from simcore.analysis.alike import alike, longest_wait, ranks_of, whole_stages
from simcore.analysis.layer_order import longest_span
from simcore.diagnostics import printable
from simcore.sources.simulated import BUBBLE, FIRST_EXPOSED, WAIT
from simcore.trace.findings import Place
from simcore.trace.waits import longest
from simcore.units import duration, percent
from simcore.workload.model import PHASES, base_name

if TYPE_CHECKING:
    from simcore.analysis.finished import Finished
    from simcore.analysis.layers import LayerLines

_NAME = 32
# A file's placeholder of 1 ns is no compute: what is less than 1 / 1000.
_LEAST_PART = 1000
# A start within 1 / 1000 of the step is the start.
_AT_THE_START = 1000


def worst_places(results: Finished) -> list[Place]:
    """Who ends last; the longest wait and bubble; the layer that takes most, the one exposed most, the
    busiest link; as far as there are, in this order.
    """
    return [place for rule in _RULES if (place := rule(results)) is not None]


def _who(results: Finished, numbers: Collection[int]) -> str:
    """`all ranks`, `stages 1-14 alike` or `ranks 0-63`: the classes with these numbers."""
    world = results.simulation.layout.world
    ranks = ranks_of(results.simulation.timeline.classes, numbers)
    return (_stages(results, numbers) if len(ranks) < world else "") or ranks.of_world(world)


def _end(results: Finished) -> Place | None:
    """The ranks that end last."""
    ends = results.figures.ends
    if not ends or not max(ends):
        return None
    number = ends.index(max(ends))
    accounts = results.accounts[number]
    last = accounts.at(ends[number] - 1)
    words = f"{duration(ends[number])}, last to end: {_who(results, alike(ends, ends[number]))}"
    return Place("end", words, number, accounts.edge[last], accounts.edge[last + 1], ends[number])


def _stages(results: Finished, numbers: Collection[int]) -> str:
    """`stages 0-15 alike`, where the classes with these numbers are several stages; else ""."""
    stages = whole_stages(results.simulation.timeline.classes, numbers)
    return f"stages {stages.text()} alike" if stages is not None and len(stages) > 1 else ""


def _wait(results: Finished) -> Place | None:
    """Who waits longest in all for a slower member."""
    if not results.waiting:
        return None
    wait = longest_wait(results.simulation.timeline.classes, results.waiting)
    early = results.waiting[0].early
    accounts = results.accounts[early]
    first = accounts.account.index(WAIT)
    share, world = percent(wait.ns, results.step_time_ns), results.simulation.layout.world
    words = f"{duration(wait.ns)} ({share} %) for {wait.late.of_world(world)}: {wait.early.of_world(world)}"
    return Place("wait", words, early, accounts.edge[first], accounts.edge[first + 1], wait.ns)


def _bubble(results: Finished) -> Place | None:
    """The longest bubble at a stretch."""
    best = longest(results.accounts, (BUBBLE,))
    if best is None:
        return None
    number, start, end, _ = best
    bubbles = [
        (class_number, accounts.edge[index], accounts.edge[index + 1])
        for class_number, accounts in enumerate(results.accounts)
        for index, account in enumerate(accounts.account)
        if account == BUBBLE
    ]
    as_long = _stages(
        results, {class_number for class_number, first, last in bubbles if last - first == end - start}
    )
    share = percent(end - start, results.step_time_ns)
    stretch = f"{duration(end - start)} ({share} %) at a stretch"
    words = f"{stretch}: {as_long}"
    if not as_long:
        same = {class_number for class_number, first, last in bubbles if (first, last) == (start, end)}
        stages = whole_stages(results.simulation.timeline.classes, same)
        who = f"stage {stages.text()}" if stages is not None and len(stages) == 1 else _who(results, same)
        begins = "the start" if start * _AT_THE_START <= results.step_time_ns else duration(start)
        words = f"{stretch}: {who}, from {begins}"
    return Place("bubble", words, number, start, end, end - start)


def _layer(results: Finished) -> Place | None:
    """The layer that takes most of the step: compute and exposed communication together."""
    groups, names = results.layer_groups, results.simulation.workload.name
    by_layer = groups.by_name(list(map(add, groups.compute_ns, groups.exposed_ns)))
    name = max(by_layer, key=lambda layer: by_layer[layer], default="")
    ns = by_layer.get(name, 0)
    if not ns:
        return None
    rows = frozenset(row for number in _places_of(groups, names, name) for row in groups.members(number))
    # A sentence names the layer that computes most: with its communication it may be another one.
    computed = groups.by_name(groups.compute_ns).get(name, 0)
    what = " with communication" if _LEAST_PART * computed >= ns else " of communication"
    what = "" if computed == ns else what
    words = f"{duration(ns)} ({percent(ns, results.step_time_ns)} %){what}: {printable(name, _NAME)}"
    seen = longest_span(results.simulation.timeline, rows)
    return None if seen is None else Place("layer", words, *seen, ns)


def _places_of(groups: LayerLines, names: Sequence[str], name: str) -> list[int]:
    """The groups of equal rows that a layer consists of. names: of all rows of the file."""
    return [index for index, first in enumerate(groups.first_row) if base_name(names[first]) == name]


def _collective(results: Finished) -> Place | None:
    """The layer whose collectives are exposed longest."""
    groups, names = results.layer_groups, results.simulation.workload.name
    by_layer = groups.by_name(groups.exposed_ns)
    name = max(by_layer, key=lambda layer: by_layer[layer], default="")
    ns = by_layer.get(name, 0)
    if not ns:
        return None
    exposed = [groups[number] for number in _places_of(groups, names, name) if groups.exposed_ns[number]]
    rows = {row for group in exposed for row in group.rows}
    cells = [cell for group in exposed for cell in map(group.cell, PHASES) if cell.collective and cell.group]
    what = ", ".join(dict.fromkeys(f"{cell.group} {cell.collective_name}" for cell in cells))
    share = percent(ns, results.step_time_ns)
    words = f"{duration(ns)} ({share} %): {printable(name, _NAME)}, {what}"
    for number, accounts in enumerate(results.accounts):
        inside = [
            index
            for index, account in enumerate(accounts.account)
            if FIRST_EXPOSED <= account < WAIT
            and row_of(results.simulation, number, accounts.op[index]) in rows
        ]
        if inside:
            edge = accounts.edge
            index = max(inside, key=lambda index: (edge[index + 1] - edge[index], -index))
            return Place("exposed", words, number, edge[index], edge[index + 1], ns)
    return None


def worst_link(results: Finished) -> Place | None:
    """The port that is busy longest, and the longest that it carries."""
    from simcore.analysis.dimensions import longest_over

    simulation, port = results.simulation, results.busiest_port
    op = None if port is None else longest_over(simulation, port.rank_class, port.index)
    if port is None or op is None:
        return None
    share = percent(port.busy_ns, results.step_time_ns)
    whose = _who(results, port.alike).removesuffix(" alike")
    slowed = f", slowed to {port.factor:g}" if port.factor != 1 else ""
    # Of another kind than the places above: a port that is busy holds nobody up by itself.
    busy = f"busy {duration(port.busy_ns)} ({share} %)"
    # By its number alone nobody knows which network it is.
    rate = simulation.cluster.dims[port.index].rate().partition(" (")[0]
    words = f"{busy} on dim {port.index} ({rate}) of {whose}, {port.streams}{slowed}"
    _, start, end = simulation.timeline.columns(port.rank_class)
    number, begins, ends = port.rank_class, start[op], end[op]
    stream = results.stream_at(number, op, begins, ends)
    return Place("link", words, number, begins, ends, port.busy_ns, op, stream)


_RULES: tuple[Callable[[Finished], Place | None], ...] = (
    _end, _wait, _bubble, _layer, _collective, worst_link
)  # fmt: skip
