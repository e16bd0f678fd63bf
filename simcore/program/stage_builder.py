"""Builds the step of one stage: micro-batches in the order of a schedule, waits, transfers."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from simcore.program.ops import (
    COMPUTE,
    FWD,
    IG,
    TO_NEXT,
    TO_PREVIOUS,
    WG,
    InnerJoins,
    Join,
    OpRun,
    Ops,
    Receive,
    StageProgram,
    Stretches,
    TransferCost,
    Wait,
)
from simcore.program.order import Action
from simcore.program.plan import Gathers, OpSegment, Plan, RowBuilder, merge_ops
from simcore.records import NamedTuple
from simcore.units import split_by_weight
from simcore.workload.model import Phase


class _ChunkRoute(NamedTuple):
    """A chunk's position on its route."""

    position: int
    """Its position."""
    before: int | None
    """The stage of the position before; None at the beginning."""
    behind: int | None
    """The stage of the position behind; None at the end."""
    has_loss: bool
    """Whether the chunk runs the loss rows."""


class StageBuilder:
    """Builds the step of one stage in the order of its schedule.

    Waits and transfers between stages come with the actions; `finish` adds the last join. A
    micro-batch goes from position to position of its route, its gradient back.
    """

    def __init__(self, plan: Plan, stage: int) -> None:
        self.plan = plan
        self.stage = stage
        self.stages = plan.layout.pp
        self.ops = Ops()
        self._row_ops = RowBuilder(plan, self.ops)
        self._runs: list[OpRun] = []
        self._waits: list[Wait] = []
        self._run_start = 0
        self._outstanding: list[int] = []
        self._pass_ends: list[int] = []
        self._held_chunks = 0
        self._has_backward = True
        self._peak_chunks = 0
        self._chunk_changes: list[tuple[int, int, int]] = []
        self._step = 0
        self._stretches = Stretches()
        # (index of its first op, key) of each part of a micro-batch, where only the step time is needed.
        self.parts: list[tuple[int, tuple[str, tuple[int, ...]]]] = []
        self._by_side = not plan.placement.is_loop
        self._chunk_routes: dict[int, _ChunkRoute] = {}
        # Chunk -> its first micro-batch forward; its last one whose weight gradients are made.
        self._first_forward: dict[int, int] = {}
        self._last_gradient: dict[int, int] = {}
        # (copy, row) -> the gathers that its first forward waits for, and all of them where ops are merged.
        self._gathered: dict[tuple[int, int], list[int]] = {}
        self._gathers = Gathers()
        names, wg = plan.workload.name, plan.workload.wg
        self._points: list[list[int]] = [[], [], [], [], []]
        stages = plan.workload.stages
        self._prologue = stages[stage].prologue if stages else plan.structure.prologue
        for row in self._prologue:
            self._points[_end_point(names[row], wg.collective[row]) - 1].append(row)

    # -- micro-batches of a pipeline -------------------------------------------------

    def run_steps(self, actions: Sequence[Action], steps: int | None = None) -> None:
        """Append all steps, or so many: the start of each, its actions in order, its end. No step waits for
        one of another stage.
        """
        self._has_backward = any(action.kind != "F" for action in actions)
        if not (self._first_forward or self._last_gradient):
            self.find_ends(actions)
        for step in range(self.plan.steps if steps is None else steps):
            self._step = step
            if step:
                self._end_pass()
            self.start_of_step()
            self._run_actions(actions)
            self.end_of_step()

    def find_ends(self, actions: Sequence[Action]) -> None:
        """Find the first forward of each chunk among these actions, and the last one that makes gradients."""
        for action in actions:
            if action.kind == "F":
                self._first_forward.setdefault(action.chunk, action.microbatch)
            elif action.kind != "I":
                self._last_gradient[action.chunk] = action.microbatch

    def list_ends(self, actions: Sequence[Action]) -> tuple[Action, ...]:
        """Returns these first and last ones of all actions."""

        def is_end(action: Action) -> bool:
            of_chunk = self._first_forward if action.kind == "F" else self._last_gradient
            return action.kind != "I" and of_chunk.get(action.chunk) == action.microbatch

        return tuple(filter(is_end, actions))

    def _run_actions(self, actions: Sequence[Action]) -> None:
        do = {"F": self.forward, "B": self.backward, "I": self.input_grad, "W": self.weight_grad}
        waiting: Action | None = None
        for action in actions:
            if waiting is None and action.paired and self.plan.overlapped and not self.is_special(action):
                waiting = action
                continue
            first = len(self.ops)
            if waiting is None:
                do[action.kind](action.microbatch, action.chunk)
            elif self.is_special(action):
                do[waiting.kind](waiting.microbatch, waiting.chunk)
                self._stretches.append(first, len(self.ops), waiting, self._step)
                first, waiting = len(self.ops), None
                do[action.kind](action.microbatch, action.chunk)
            else:
                self._overlap(waiting, action)
                self._stretches.append(first, len(self.ops), waiting, self._step)
                waiting = None
            self._stretches.append(first, len(self.ops), action, self._step)

    def forward(self, microbatch: int, chunk: int = 0) -> None:
        """Append F of a micro-batch: receive, the chunk's rows, send; after the last part the loss rows."""
        way = self._chunk_route(chunk)
        self._receive(FWD, microbatch, way.position - 1, way.before)
        self._hold(chunk, 1)
        if self._gathers_first(microbatch, chunk):
            self._forward_as_gathered(microbatch, chunk)
        else:
            self._segment("fwd", microbatch, self.plan.rows(self.stage, microbatch, chunk))
        # The activation is sent when the chunk's last row has ended; loss rows come after it.
        self._send(FWD, microbatch, way.position, way.behind)
        if way.has_loss:
            self._segment("fwd", microbatch, self.plan.loss_rows(self.stage, chunk))
        if not self._has_backward:
            self._hold(chunk, -1)

    def backward(self, microbatch: int, chunk: int = 0) -> None:
        """Append B of a micro-batch: receive, the loss rows' gradients, the rows in reverse, send back."""
        self._backward(microbatch, chunk, "bwd")
        self._hold(chunk, -1)

    def input_grad(self, microbatch: int, chunk: int = 0) -> None:
        """Append I of a micro-batch: B without its weight gradients."""
        self._backward(microbatch, chunk, "ig")

    def weight_grad(self, microbatch: int, chunk: int = 0) -> None:
        """Append W of a micro-batch: the weight gradients of the loss rows and of its rows in reverse."""
        if self._chunk_route(chunk).has_loss:
            self._segment("wg", microbatch, self.plan.loss_rows(self.stage, chunk))
        self._gradients(microbatch, chunk, "wg")
        self._hold(chunk, -1)

    def _hold(self, chunk: int, change: int) -> None:
        """Note that a chunk's activations of one micro-batch are in memory from here on, or no longer."""
        self._held_chunks += change
        self._peak_chunks = max(self._peak_chunks, self._held_chunks)
        self._chunk_changes.append((len(self.ops), chunk, change))

    def _backward(self, microbatch: int, chunk: int, part: str) -> None:
        way = self._chunk_route(chunk)
        self._receive(IG, microbatch, way.position + 1, way.behind)
        if way.has_loss:
            self._segment(part, microbatch, self.plan.loss_rows(self.stage, chunk))
        self._gradients(microbatch, chunk, part)
        self._send(IG, microbatch, way.position, way.before)

    def _gradients(self, microbatch: int, chunk: int, part: str) -> None:
        rows = self.plan.rows(self.stage, microbatch, chunk)
        if part != "ig" and self._reduces_last(microbatch, chunk):
            self._gradients_and_reductions(microbatch, chunk, part, rows)
        else:
            self._segment(part, microbatch, rows)

    def is_special(self, action: Action) -> bool:
        """Returns whether collectives of the start or the end of the step run among the rows of an action."""
        microbatch, chunk = action.microbatch, action.chunk
        if action.kind == "F":
            return self._gathers_first(microbatch, chunk)
        return action.kind != "I" and self._reduces_last(microbatch, chunk)

    def special_ops(self, action: Action) -> None:
        """Append the rows of an action among which such collectives run, nothing of other stages."""
        if action.kind == "F":
            self._forward_as_gathered(action.microbatch, action.chunk)
        else:
            self._gradients(action.microbatch, action.chunk, "bwd" if action.kind == "B" else "wg")

    def _gathers_first(self, microbatch: int, chunk: int) -> bool:
        return self._first_forward.get(chunk) == microbatch and self._gathers_in_forward()

    def _reduces_last(self, microbatch: int, chunk: int) -> bool:
        last = self._last_gradient[chunk] == microbatch
        return last and self.plan.overlap_grad_reduce and self._reduces_in_backward()

    # -- forward and backward that take turns ----------------------------------------

    def _overlap(self, forward: Action, backward: Action) -> None:
        """Append a forward and a backward that share the compute stream, row by row.

        They begin when both have their inputs and send when both have ended. Their rows take turns, and what
        would wait for a collective waits only before its own next row: so the collectives of one overlap with
        the compute of the other.
        """
        ahead, back = self._chunk_route(forward.chunk), self._chunk_route(backward.chunk)
        self._receive(FWD, forward.microbatch, ahead.position - 1, ahead.before)
        self._receive(IG, backward.microbatch, back.position + 1, back.behind)
        self._hold(forward.chunk, 1)
        turns = [
            self._turns("fwd", forward, loss_first=False),
            self._turns("ig" if backward.kind == "I" else "bwd", backward, loss_first=True),
        ]
        while turns:
            turns = [turn for turn in turns if next(turn, False)]
        self._send(FWD, forward.microbatch, ahead.position, ahead.behind)
        self._send(IG, backward.microbatch, back.position, back.before)
        if backward.kind == "B":
            self._hold(backward.chunk, -1)

    def _turns(self, part: str, action: Action, loss_first: bool) -> Iterator[bool]:
        """Append the rows of an action, yielding after each turn."""
        _, microbatch, chunk, _ = action
        rows = [self.plan.rows(self.stage, microbatch, chunk), self.plan.loss_rows(self.stage, chunk)]
        for row in reversed(rows) if loss_first else rows:
            yield from self._row_turns(part, microbatch, row)

    def _row_turns(self, part: str, microbatch: int, rows: tuple[int, ...]) -> Iterator[bool]:
        """Append the ops of rows, a turn up to each collective that the next op waits for, or to the end of a
        row.
        """
        segment = self.part_ops(part, rows)
        start = 0
        # Awaited op of the segment -> its index here: rows of the other action are between.
        issued: dict[int, int] = {}
        for end in _turn_ends(segment.ops):
            first = len(self.ops)
            self._extend(segment, start, end, microbatch, issued)
            start, last = end, len(self.ops) - 1
            if self.ops.stream[last] != COMPUTE and self.ops.blocking[last]:
                self.ops.blocking[last] = 0
                self._remember_asynchronous(first, last)
                yield True
                self._wait(Join(last))
            else:
                self._remember_asynchronous(first)
                yield True

    # -- ops of rows and between stages ----------------------------------------------

    def part_ops(self, part: str, rows: tuple[int, ...]) -> OpSegment:
        """Returns the ops of a part of a micro-batch over rows: made once, of no micro-batch."""
        key = (part, rows)
        segment = self.plan.segments.get(key)
        if segment is None:
            segment = self.plan.reuse_segment(part, rows)
            if segment is not None:
                self.plan.segments[key] = segment
                return segment
            segment, row_ops = self._empty_segment()
            merged = self.plan.merged_streams is not None
            if part == "fwd":
                for row in rows:
                    if not (merged and self._repeat_row(segment.ops, part, row)):
                        row_ops.forward(row)
            else:
                recomputed = self.plan.recomputed(rows)
                for row in reversed(rows):
                    repeats = merged and row not in recomputed
                    if not (repeats and self._repeat_row(segment.ops, part, row)):
                        self._row_gradients(row_ops, part, row, recomputed)
            if self.plan.merged_streams is not None:
                segment = merge_ops(segment, self.plan)
            segment = self.plan.segments[key] = self.plan.with_inner(segment)
        return segment

    def _empty_segment(self) -> tuple[OpSegment, RowBuilder]:
        """Returns a segment, and what appends rows to it."""
        segment = OpSegment(Ops(), [])
        ops, joins, _ = segment
        return segment, RowBuilder(self.plan, ops, wait=lambda op: joins.append((len(ops), op)))

    def _segment(self, part: str, microbatch: int, rows: tuple[int, ...]) -> None:
        if self.plan.merged_streams is not None:
            self.parts.append((len(self.ops), (part, rows)))
        self._append(self.part_ops(part, rows), microbatch)

    def _append(self, segment: OpSegment, microbatch: int) -> None:
        """Append the ops of a segment, and their waits."""
        first = len(self.ops)
        if segment.inner is None:
            self.ops.extend(segment.ops, microbatch)
            self._remember_asynchronous(first)
            return
        if self._run_start < first:
            self._close_run()
        self.ops.extend(segment.ops, microbatch)
        self._close_run(segment.inner)
        self._outstanding += [first + op for op in segment.inner.unjoined]

    def _extend(
        self, segment: OpSegment, start: int, end: int, microbatch: int, issued: dict[int, int]
    ) -> None:
        """Append the ops start..end-1 of a segment, and their waits. issued: indices here of earlier ops."""
        awaited = sorted({op for _, op in segment.joins})

        def copy(until: int) -> None:
            base = len(self.ops) - start
            # With overlapped tp a layer has hundreds of joins: each is visited once.
            copied_ops = awaited[bisect_left(awaited, start) : bisect_left(awaited, until)]
            issued.update((op, base + op) for op in copied_ops)
            self.ops.extend(segment.ops.part(start, until), microbatch)

        for position, op in segment.joins:
            if start <= position < end or position == end == len(segment.ops):
                copy(position)
                start = position
                self._wait(Join(issued[op]))
        copy(end)

    def _row_ops_of(self, microbatch_of: dict[int, int]) -> RowBuilder:
        """Returns a builder that appends rows to the stage directly, in no segment."""
        return RowBuilder(self.plan, self.ops, microbatch_of, lambda op: self._wait(Join(op)))

    @staticmethod
    def _row_gradients(row_ops: RowBuilder, part: str, row: int, recomputed: dict[int, list[int]]) -> None:
        if part != "wg":
            if row in recomputed:
                # The input gradient needs the row's weights.
                row_ops.begin("ig", row)
                row_ops.recompute(recomputed[row])
            row_ops.input_grad(row)
        if part != "ig":
            row_ops.weight_grad(row, blocking=False)

    def _chunk_route(self, chunk: int) -> _ChunkRoute:
        """Returns the position of a chunk on its route."""
        way = self._chunk_routes.get(chunk)
        if way is None:
            placement = self.plan.placement
            position = placement.position(self.stage, chunk)
            # Each chunk is on a route.
            route = next(way for way in placement.routes if (self.stage, chunk) in way)
            neighbours = [
                route[index].stage if 0 <= index < placement.depth else None
                for index in (position - 1, position + 1)
            ]
            has_loss = bool(self.plan.loss_rows(self.stage, chunk))
            way = self._chunk_routes[chunk] = _ChunkRoute(position, neighbours[0], neighbours[1], has_loss)
        return way

    def _receive(self, phase: int, microbatch: int, producer: int, source: int | None) -> None:
        """Wait for what position `producer` sends from stage `source`; not if that is None or this stage."""
        if source is not None and source != self.stage:
            self._wait(Receive(self.plan.message(phase, microbatch, producer, self._step), source))

    def _send(self, phase: int, microbatch: int, producer: int, target: int | None) -> None:
        """Send what position `producer` has made to stage `target`; not if that is None or this stage."""
        if target is None or target == self.stage:
            return
        step = target - self.stage
        cost = self.plan.cost(TransferCost(step, self.plan.transfer_bytes))
        self._outstanding.append(len(self.ops))
        # In a loop activations go to the next stage and gradients back; else the side decides the stream.
        to_next = step > 0 if self._by_side else phase == FWD
        message = self.plan.message(phase, microbatch, producer, self._step)
        self.ops.append(TO_NEXT if to_next else TO_PREVIOUS, phase, 0, cost, -1, microbatch, message)

    # -- communication that overlaps with compute ------------------------------------

    def _copy_rows(self, chunk: int, microbatch: int) -> list[int]:
        """Returns the rows of a micro-batch in the copy of a stage that a chunk belongs to, in
        forward order.
        """
        parts = self.plan.placement.parts
        first = chunk - chunk % parts
        return [
            row
            for copied in range(first, first + parts)
            for row in self.plan.rows(self.stage, microbatch, copied)
        ]

    def _weights(self, rows: list[int]) -> list[int]:
        """Returns each row's weight for its share of a gradient or parameter buffer: its weight-gradient
        time.
        """
        compute_ns = self.plan.workload.wg.compute_ns
        return [compute_ns[row] for row in rows]

    def _reduces_in_backward(self) -> bool:
        """Returns whether reductions can be shared out: some row of the last micro-batch has a wg time."""
        parts = self.plan.placement.parts
        chunks = range(0, self.plan.placement.chunks, parts)
        return bool(self._points[1]) and all(
            any(self._weights(self._copy_rows(chunk, self._last_gradient[chunk]))) for chunk in chunks
        )

    def _gathers_in_forward(self) -> bool:
        """Returns whether gathers can be shared out: some row of a first forward has a wg time."""
        if not self.plan.overlap_param_gather or not self.plan.microbatches:
            return False
        chunks = range(0, self.plan.placement.chunks, self.plan.placement.parts)
        return any(any(self._weights(self._copy_rows(chunk, self._first_forward[chunk]))) for chunk in chunks)

    def _gradients_and_reductions(
        self, microbatch: int, chunk: int, part: str, rows: tuple[int, ...]
    ) -> None:
        """Append the rows in reverse, each row's share of every reduction issued after its weight
        gradient.
        """
        if self.plan.merged_streams is not None:
            segment = self._shared(
                (part, chunk), lambda: self._merge_reductions(microbatch, chunk, part, rows)
            )
            self._append(segment, microbatch)
            return
        wg, by_reduction = self.plan.workload.wg, self._reduction_bytes(microbatch, chunk)
        row_ops = self._row_ops_of(dict.fromkeys([*rows, *by_reduction], microbatch))
        recomputed = self.plan.recomputed(rows)
        for row in reversed(rows):
            first = len(self.ops)
            if row not in recomputed and self._repeats_alone("ig", row):
                row_ops.begin("ig", row)
                self._segment(part, microbatch, (row,))
                first = len(self.ops)
            else:
                self._row_gradients(row_ops, part, row, recomputed)
            for reduction, by_row in by_reduction.items():
                row_ops.part_of_collective(wg, reduction, WG, False, by_row[row])
            self._remember_asynchronous(first)

    def _merge_reductions(self, microbatch: int, chunk: int, part: str, rows: tuple[int, ...]) -> OpSegment:
        """Returns the same rows and reductions merged."""
        wg, by_reduction = self.plan.workload.wg, self._reduction_bytes(microbatch, chunk)
        recomputed = self.plan.recomputed(rows)
        segment, row_ops = self._empty_segment()
        for row in reversed(rows):
            if row in recomputed or not self._repeat_row(segment.ops, part, row):
                self._row_gradients(row_ops, part, row, recomputed)
            for reduction, by_row in by_reduction.items():
                row_ops.part_of_collective(wg, reduction, WG, False, by_row[row])
        return merge_ops(segment, self.plan)

    def _repeat_row(self, ops: Ops, part: str, row: int) -> bool:
        """Append the ops of a row as those of the first row with its cells. Returns False, and appends
        nothing, where ops wait for those of other rows.
        """
        if self.plan.workload.waits:
            return False
        key = part, self.plan.first_equal_row(row)
        if key not in self.plan.shared:
            segment, row_ops = self._empty_segment()
            if part == "fwd":
                row_ops.forward(row)
            else:
                self._row_gradients(row_ops, part, row, {})
            self.plan.shared[key] = None if segment.joins else segment.ops
        equal_ops: Ops | None = self.plan.shared[key]
        if equal_ops is None:
            return False
        ops.extend(equal_ops, -1)
        first = len(ops) - len(equal_ops)
        ops.row[first:] = array("i", (row,)) * len(equal_ops)
        return True

    def _reduction_bytes(self, microbatch: int, chunk: int) -> dict[int, dict[int, int]]:
        """Returns by reduction the bytes that are sent at each row."""
        order = self._copy_rows(chunk, microbatch)[::-1]
        weights = self._weights(order)
        return {
            reduction: self._bucket_bytes(reduction, chunk, microbatch, order, weights)
            for reduction in self._points[1]
        }

    def _bucket_bytes(
        self, buffer: int, chunk: int, microbatch: int, order: list[int], weights: list[int]
    ) -> dict[int, int]:
        """Returns the bytes of a buffer that are sent at each row of a copy of the stage, whose rows share it
        by weight.

        Shares are put together, last row first, until a bucket has its least size. A bucket is sent at its
        first row, where backward has all its gradients and forward needs its parameters; none has rows of two
        chunks.
        """
        size_of = self.plan.workload.wg.bytes[buffer]
        by_row = dict(zip(order, split_by_weight(weights, size_of), strict=True))
        least = self.plan.workload.buckets.get(buffer, 0)
        if not least:
            return by_row
        bytes_of = dict.fromkeys(by_row, 0)
        parts = self.plan.placement.parts
        first = chunk - chunk % parts
        for copied in range(first, first + parts):
            rows = self.plan.rows(self.stage, microbatch, copied)
            size = 0
            for row in reversed(rows):
                size += by_row[row]
                if size >= least or row == rows[0]:
                    bytes_of[row], size = size, 0
        return bytes_of

    def _issue_gathers(self) -> None:
        """Issues the parameter gathers of all layers; a layer's first forward waits for its gather."""
        if self.plan.merged_streams is None:
            self._gathered = self._append_gathers(self.ops, self._row_ops)
            return
        self._gathers, self._gathered, segment = self._shared(("gathers",), self._merge_gathers)
        self._append(segment, -1)

    def _append_gathers(self, ops: Ops, row_ops: RowBuilder) -> dict[tuple[int, int], list[int]]:
        """Append the gathers to `ops`, and return those that each row of a copy waits for."""
        wg = self.plan.workload.wg
        gathered: dict[tuple[int, int], list[int]] = {}
        for copy in range(self.plan.placement.copies):
            chunk = copy * self.plan.placement.parts
            order = self._copy_rows(chunk, self._first_forward[chunk])
            weights = self._weights(order)
            if not any(weights):
                continue
            microbatch = self._first_forward[chunk]
            parts = {
                gather: self._bucket_bytes(gather, chunk, microbatch, order, weights)
                for gather in self._points[4]
            }
            for row in order:
                first = len(ops)
                for gather, by_row in parts.items():
                    row_ops.part_of_collective(wg, gather, WG, False, by_row[row])
                gathered[copy, row] = list(range(first, len(ops)))
                if ops is self.ops:
                    self._remember_asynchronous(first)
        return gathered

    def _merge_gathers(self) -> tuple[Gathers, dict[tuple[int, int], list[int]], OpSegment]:
        """Returns the gathers, those that each row of a copy waits for, and their issue."""
        ops = Ops()
        gathered = self._append_gathers(ops, RowBuilder(self.plan, ops))
        table = [cost for _, cost in self.plan.costs]
        gathers = Gathers(ops.stream, [table[cost] for cost in ops.cost])
        return gathers, gathered, gathers.segment(self.plan, ops.row[0]) if ops else OpSegment(ops, [])

    def _forward_as_gathered(self, microbatch: int, chunk: int) -> None:
        """Append the first F of a chunk: each row waits for its parameters."""
        copy = chunk // self.plan.placement.parts
        rows = self.plan.rows(self.stage, microbatch, chunk)
        if self.plan.merged_streams is not None:
            segment = self._shared(("fwd", chunk), lambda: self._merge_gathered(copy, rows))
            self._append(segment, microbatch)
            return
        row_ops = self._row_ops_of(dict.fromkeys(rows, microbatch))
        for row in rows:
            self._join(self._gathered.get((copy, row), []))
            if self._repeats_alone("fwd", row):
                row_ops.begin("fwd", row)
                self._segment("fwd", microbatch, (row,))
            else:
                row_ops.forward(row)

    def _merge_gathered(self, copy: int, rows: tuple[int, ...]) -> OpSegment:
        """Returns the same rows merged."""
        segment, row_ops = self._empty_segment()
        waits: list[tuple[int, int]] = []
        for row in rows:
            waits += [(len(segment.ops), gather) for gather in self._gathered.get((copy, row), ())]
            if not self._repeat_row(segment.ops, "fwd", row):
                row_ops.forward(row)
        return merge_ops(segment, self.plan, self._gathers, waits)

    def _shared(self, what: tuple[object, ...], build: Callable[[], Any]) -> Any:
        """Returns what stages of a model with the same rows share. what: its name and its chunk."""
        stages = self.plan.workload.stages
        if not stages:
            return build()
        key = (what, stages[self.stage].prologue, stages[self.stage].chunks)
        shared = self.plan.shared
        if key not in shared:
            shared[key] = build()
        return shared[key]

    def _repeats_alone(self, phase: Phase, row: int) -> bool:
        """Returns whether a row's ops wait for each other, and only their first for those of other rows."""
        workload = self.plan.workload
        waits_later = ("wg", row) in workload.waits or workload.wg.collective[row] is not None
        return (phase, row) in workload.split_cells and not (phase == "ig" and waits_later)

    # -- the whole file as one program -----------------------------------------------

    def loop_over_rows(self) -> None:
        """Append each pass: forward over all rows of the file, then backward in reverse, every row once.

        The forward of a row waits for its weight-gradient collective of the pass before.
        """
        rows = tuple(range(len(self.plan.workload)))
        blocks = enumerate(self.plan.structure.blocks)
        row_ops = RowBuilder(
            self.plan, self.ops, {row: block for block, members in blocks for row in members}
        )
        recomputed = self.plan.recomputed(rows)
        reduced: dict[int, int] = {}
        joined_ops: set[int] = set()
        for pass_index in range(self.plan.passes):
            if pass_index:
                self._end_pass()
            for row in rows:
                if row in reduced:
                    joined_ops.add(reduced[row])
                    self._wait(Join(reduced.pop(row)))
                row_ops.forward(row)
            for row in reversed(rows):
                first = len(self.ops)
                self._row_gradients(row_ops, "bwd", row, recomputed)
                self._remember_asynchronous(first)
                if len(self.ops) > first and not self.ops.blocking[-1]:
                    reduced[row] = len(self.ops) - 1
        self._outstanding = [op for op in self._outstanding if op not in joined_ops]
        self._peak_chunks = len(self.plan.structure.blocks)

    def _end_pass(self) -> None:
        """Mark the end of a pass: the next ops are a run of their own."""
        if self._waits or self._run_start < len(self.ops):
            self._close_run()
        self._pass_ends.append(len(self._runs))

    # -- start and end of a pipelined step -------------------------------------------

    def start_of_step(self) -> None:
        """Append the forward cells of the prologue rows, in row order; before them overlapped gathers.

        That is once for each copy of a stage, as everything at the start and the end of a step.
        """
        self._gathered.clear()
        if self._gathers_in_forward():
            self._issue_gathers()
        for row in self._repeat_for_copies(self._prologue):
            self._row_ops.forward(row)

    def _repeat_for_copies(self, rows: Sequence[int]) -> list[int]:
        # The rows of a model's stage include those of all its copies.
        return [*rows] * (1 if self.plan.workload.stages else self.plan.placement.copies)

    def end_of_step(self) -> None:
        """Append the five points of the end of a step, each waiting for the one before."""
        others, reductions, _, optimizer_compute, gathers = map(self._repeat_for_copies, self._points)
        rows = self._row_ops
        for row in others:
            rows.input_grad(row)
            rows.weight_grad(row, blocking=True)
        overlapped = self.plan.overlap_grad_reduce and self.plan.microbatches and self._reduces_in_backward()
        self._issue_together(reductions, issued=bool(overlapped))
        for row in self._repeat_for_copies(self.plan.structure.tail):
            rows.forward(row)
            rows.input_grad(row)
            rows.weight_grad(row, blocking=True)
        for row in optimizer_compute:
            rows.input_grad(row)
            rows.weight_grad(row, blocking=True)
        self._issue_together(gathers, issued=bool(self._gathered))

    def _issue_together(self, members: list[int], issued: bool) -> None:
        """Append the compute cells of the rows, then their weight-gradient collectives, then a join.

        The join is over every collective still running, those of backward included: the
        optimizer needs all gradients. issued: whether the collectives ran earlier, layer by layer.
        """
        wg = self.plan.workload.wg
        for row in members:
            self._row_ops.input_grad(row)
            self._row_ops.compute(wg, row, WG)
        first = len(self.ops)
        for row in members if not issued else ():
            self._row_ops.collective(wg, row, WG, blocking=False)
        self._remember_asynchronous(first)
        self._join([op for op in self._outstanding if self.ops.message[op] < 0])

    # -- waits -----------------------------------------------------------------------

    def _remember_asynchronous(self, first: int, last: int | None = None) -> None:
        """Remember which of the ops first..last-1 compute does not wait for; by default all from `first`."""
        blocking = self.ops.blocking
        until = len(self.ops) if last is None else last
        op = blocking.find(0, first, until)
        while op >= 0:
            self._outstanding.append(op)
            op = blocking.find(0, op + 1, until)

    def _join(self, ops: list[int]) -> None:
        """Wait for ops in the order they were issued."""
        for op in ops:
            self._wait(Join(op))
        joined_ops = set(ops)
        self._outstanding = [op for op in self._outstanding if op not in joined_ops]

    def _wait(self, wait: Wait) -> None:
        if self._run_start < len(self.ops):
            self._close_run()
        self._waits.append(wait)

    def _close_run(self, inner: InnerJoins | None = None) -> None:
        self._runs.append(OpRun(self._run_start, len(self.ops), tuple(self._waits), inner))
        self._run_start = len(self.ops)
        self._waits = []

    def finish(self) -> StageProgram:
        """Returns the stage's program, closed by a join on all outstanding work, transfers included."""
        self._close_run()
        self._waits = [Join(op) for op in self._outstanding]
        self._close_run()
        # In whole micro-batches: as many chunks as a stage is split into are one.
        peak_microbatches = -(-self._peak_chunks // self.plan.placement.parts)
        pass_ends = (*self._pass_ends, len(self._runs) - 1)
        return StageProgram(
            self.ops, tuple(self._runs), peak_microbatches, pass_ends, peak_chunks=self._peak_chunks,
            chunk_changes=tuple(self._chunk_changes), stretches=self._stretches,
        )  # fmt: skip


def _turn_ends(ops: Ops) -> list[int]:
    """Returns where each turn of an overlapped pair ends.

    That is behind a collective that compute waits for, and behind a row that has none since the turn before.
    No turn is without ops.
    """
    ends: list[int] = []
    count, waited = len(ops), -1
    for op in range(count):
        if ops.stream[op] != COMPUTE and ops.blocking[op]:
            waited = ops.row[op]
            ends.append(op + 1)
        elif op + 1 == count or (ops.row[op + 1] != ops.row[op] and ops.row[op] != waited):
            ends.append(op + 1)
    return ends


def _end_point(name: str, wg_collective: str | None) -> int:
    """Returns the point of the end of the step at which a prologue row runs; tail rows are point 3."""
    if name.startswith("grad_param_compute"):
        return 4
    if wg_collective in ("REDUCESCATTER", "ALLREDUCE"):
        return 2
    return 5 if wg_collective == "ALLGATHER" else 1
