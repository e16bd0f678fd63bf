"""The words for the critical path of a simulated run: its parts, merged segments and reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simcore.analysis.accounts import IDLE_OP, op_kind
from simcore.analysis.dependencies import Dependencies
from simcore.analysis.layers import NOT_MODELLED
from simcore.program.ops import COMPUTE, LANE_OF_STREAM, PHASES, STREAMS, TO_NEXT, ComputeCost, Ops
from simcore.simulation import Simulation
from simcore.trace.critical_path import CriticalPath, MergeFacts, PathSource
from simcore.trace.figures import PathSegment
from simcore.trace.reasons import Facts
from simcore.units import add_to_column
from simcore.workload.model import base_name

IDLE_KIND = "idle"
# The kinds of compute, by phase.
_COMPUTE = tuple(f"compute {phase}" for phase in PHASES)
# The part of transfers and idle time, which have no row of the file.
NO_LAYER = "no layer"
# Shorter chains of the path are described segment by segment.
_LEAST_CHAIN = 4
# The pass of a span by its phase: both gradients belong to the backward pass.
_PASS_NAMES = {
    "fwd": "forward",
    "ig": "backward",
    "wg": "backward",
    "opt": "optimizer",
    "recompute": "recompute",
}


class SimulatedPath(PathSource):
    """The critical path of a simulated run. A layer: the rows of one base name, raw text of the file."""

    def __init__(self, simulation: Simulation, dependencies: Dependencies) -> None:
        self._timeline, self._names = simulation.timeline, simulation.workload.name
        self._layers = [base_name(name) or NO_LAYER for name in self._names]
        self._dependencies = dependencies
        # A table, as it is read for each segment of the path, 24,000 of seed 002.
        self._ops = [self._timeline.stage_program(class_id).ops for class_id in range(len(simulation.trace))]

    def stage(self, track: int) -> int:
        return self._timeline.stage_of(track)

    def find_row(self, track: int, span: int) -> int:
        """Returns the row of the file; -1 for transfers and idle time."""
        return -1 if span == IDLE_OP else self._ops[track].row[span]

    def kind(self, track: int, span: int) -> str:
        """Returns `compute PHASE`, kind of group, `pp` or `idle`."""
        if span == IDLE_OP:
            return IDLE_KIND
        ops = self._ops[track]
        stream = ops.stream[span]
        return _COMPUTE[ops.phase[span]] if stream == COMPUTE else LANE_OF_STREAM[stream]

    def stage_ops(self, path: CriticalPath) -> set[tuple[int, int]]:
        """Returns (stage, op) of everything on a path."""
        pairs = zip(path.track, path.span, strict=True)
        return {(self.stage(track), span) for track, span in pairs if span != IDLE_OP}

    def name(self, track: int, span: int) -> str:
        """Returns the layer; NO_LAYER for transfers and idle time."""
        row = self.find_row(track, span)
        return self._layers[row] if row >= 0 else NO_LAYER

    def kind_key(self, track: int, span: int) -> object:
        """Returns a key of the cell: rows with the same name share it."""
        if span == IDLE_OP:
            return None
        ops = self._ops[track]
        return ops.stream[span], ops.phase[span], self.name(track, span)

    def merge_facts(self, track: int, span: int) -> MergeFacts:
        """Returns what a span is a part of.

        It is `forward`, `backward`, `optimizer`, `recompute` or `idle`; a collective outside micro-batches is
        the kind of its group with its layer, raw text of the file: `dp of grad_gather`; a transfer is `pp`.
        """
        if span == IDLE_OP:
            return MergeFacts(IDLE_KIND, -1)
        ops = self._ops[track]
        stream, microbatch = ops.stream[span], ops.microbatch[span]
        if stream >= TO_NEXT:
            return MergeFacts("pp", microbatch)
        if microbatch < 0 and stream:
            row = ops.row[span]
            name = base_name(self._names[row]) if row >= 0 else ""
            return MergeFacts(f"{STREAMS[stream]} of {name}" if name else STREAMS[stream], -1)
        is_unknown = microbatch < 0 and self._is_placeholder(ops, span)
        return MergeFacts(_PASS_NAMES[PHASES[ops.phase[span]]], microbatch, is_placeholder=is_unknown)

    def _is_placeholder(self, ops: Ops, span: int) -> bool:
        cost = self._timeline.program.costs[ops.cost[span]]
        return ops.stream[span] == COMPUTE and isinstance(cost, ComputeCost) and cost.ns in NOT_MODELLED

    def wait_facts(self, path: CriticalPath, index: int) -> Facts:
        return self._dependencies.make_facts(path.neighbours(index), path.span[index], path.rank[index])

    # -- segment by segment ------------------------------------------------------------

    def segment(self, path: CriticalPath, index: int) -> PathSegment:
        """Returns segment `index`, with its words."""
        track, span = path.track[index], path.span[index]
        start, end, rank = path.edge[index], path.edge[index + 1], path.rank[index]
        kind, reason = op_kind(self._timeline, track, span), self.reason(path, index)
        if span == IDLE_OP:
            return PathSegment(start, end, rank, STREAMS[COMPUTE], kind, None, None, None, reason)
        ops = self._ops[track]
        row, microbatch = ops.row[span], ops.microbatch[span]
        return PathSegment(
            start, end, rank, STREAMS[ops.stream[span]], kind, self._names[row] if row >= 0 else None,
            PHASES[ops.phase[span]], microbatch if microbatch >= 0 else None, reason,
        )  # fmt: skip

    def segments(self, path: CriticalPath, indices: Iterable[int] | None = None) -> Iterator[PathSegment]:
        """Yields some segments, or all: equal chains of the path are described once."""
        if indices is not None:
            yield from super().segments(path, indices)
            return
        cached_segments: dict[object, list[PathSegment]] = {}
        for begin, over, way in path.chains():
            # Why a chain begins depends on what is before it.
            yield self.segment(path, begin)
            if over - begin < _LEAST_CHAIN or path.span[begin] < 0:
                yield from (self.segment(path, index) for index in range(begin + 1, over))
                continue
            ops, first = self._ops[path.track[begin]], path.span[begin]
            chain_slice, span_offsets = (
                slice(first, path.span[over - 1] + 1),
                add_to_column(path.span[begin:over], -first),
            )
            key = (
                id(way),
                span_offsets.tobytes(),
                ops.row[chain_slice].tobytes(),
                ops.cost[chain_slice].tobytes(),
                bytes(ops.phase[chain_slice]),
            )
            if key not in cached_segments:
                cached_segments[key] = [self.segment(path, index) for index in range(begin + 1, over)]
            edges, rank = path.edge[begin + 1 : over + 1], path.rank[begin]
            batches = map(ops.microbatch.__getitem__, path.span[begin + 1 : over])
            for start, end, batch, segment in zip(
                edges, edges[1:], batches, cached_segments[key], strict=False
            ):
                yield PathSegment(
                    start, end, rank, *segment[3:7], None if batch < 0 else batch, segment.reason
                )
