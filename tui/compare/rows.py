"""The lines of what differs most: ops, kinds of time, names; the largest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simcore.comparison import Comparison, LanePair, OpChanges
from simcore.comparison.op_words import op_words
from simcore.comparison.words import where_words
from simcore.kernel_names import short_name
from simcore.records import NamedTuple
from simcore.trace.run import Run
from simcore.workload.model import base_name
from tui.timeline.lanes import SpanLane

_ROWS = 20
_NAME = 36


class DifferenceRow(NamedTuple):
    """One line of what differs most."""

    words: str
    measure: str
    """What a_ns and b_ns are of."""
    a_ns: int
    b_ns: int
    pair: int
    """The pair where it is."""
    at_ns: int | None
    """When it begins in A, None for a sum."""


def op_rows(ops: OpChanges, order: Sequence[int]) -> list[DifferenceRow]:
    """Returns the ops that differ most. order: of the pairs on the screen."""
    pair_positions = [ops.pairs[pair_index].first for pair_index in order]
    return [
        DifferenceRow(
            op_words(ops, mover), mover.measure, mover.a_ns, mover.b_ns, pair_positions.index(mover.position),
            mover.a_start_ns,
        )
        for mover in ops.op_changes
    ]  # fmt: skip


def kind_rows(comparison: Comparison, pairs: Sequence[LanePair]) -> list[DifferenceRow]:
    """Returns the kinds of time that differ most, and names. pairs: in the order of the screen."""
    stages, ranks = [pair.stage for pair in pairs], [pair.rank for pair in pairs]
    rows: list[DifferenceRow] = []
    mean_rows: list[DifferenceRow] = []
    for mover in comparison.kind_changes[:_ROWS]:
        pair = stages.index(mover.stage) if mover.rank is None else ranks.index(mover.rank)
        words = f"{where_words(mover)}, {mover.change.name}"
        measure = "mean" if mover.rank is None else "sum"
        # The accounts have the mean of all ranks, too: behind the names it takes no room from them.
        kinds = mean_rows if mover.rank is None and mover.stage is None else rows
        kinds.append(DifferenceRow(words, measure, mover.change.a_ns, mover.change.b_ns, pair, None))
    return [*rows, *name_rows(comparison, pairs, "sum ", {}), *mean_rows]


def name_rows(
    comparison: Comparison, pairs: Sequence[LanePair], measure: str, starts: Mapping[str, int]
) -> list[DifferenceRow]:
    """Returns what differs most by name, each with its calls in A and in B. measure: what the times are of.
    starts: where names begin in A, ns.
    """
    changes = [
        change for change in comparison.name_changes if change.name and (change.ns or change.extra_calls)
    ]
    rows = []
    for change in changes[:_ROWS]:
        calls = f"x{change.a.calls}" + (f"/{change.b.calls}" if change.extra_calls else "")
        words = f"{change.account}: {short_name(change.name, _NAME)}"
        pair, start = pairs.index(comparison.find_most_changed(change)), starts.get(change.name)
        rows.append(DifferenceRow(words, f"{measure}{calls}", change.a.ns, change.b.ns, pair, start))
    return rows


def find_name_starts(run: Run, lane: SpanLane) -> dict[str, int]:
    """Returns where the longest span of each name of a lane begins, ns."""
    spans = lane.spans
    starts: dict[str, int] = {}
    for index in lane.content.by_length:
        if spans.op[index] >= 0:
            name, _ = run.lanes.span_name(lane.track_id, spans.op[index])
            starts.setdefault(base_name(name), spans.start[index])
    return starts
