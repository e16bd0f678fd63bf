"""The lanes of a simulated run: which rank classes share one, their names, what a search finds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.analysis.span_words import SimulatedSpanWords, pass_words
from simcore.collectives import WITH_COPIES
from simcore.program.ops import (
    COMPUTE,
    IG,
    LANE_OF_STREAM,
    PHASES,
    STREAMS,
    TO_NEXT,
    CollectiveCost,
    TransferCost,
)
from simcore.ranks import RankSet, describe_position
from simcore.sources.simulated import ACCOUNTS
from simcore.trace.lane_spans import COMPUTE_STREAM, COMPUTING, KINDS, LaneOrder, TimeStretch, encode_indices
from simcore.trace.lanes import ORDERS, LaneFacts, Lanes, LaneTrack, OpSearchColumns
from simcore.trace.spans import Column
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.analysis.simulation_figures import SimulationFigures

PIPELINE = LANE_OF_STREAM[TO_NEXT]
# The streams of collectives of a class, in the order in which they are shown.
_COLLECTIVE_STREAMS = STREAMS[COMPUTE + 1 : TO_NEXT]
_SPREAD_MEASURES = (("compute", "busy"), *((name, name) for name in ("exposed", "wait", "bubble", "idle")))


class SimulatedLanes(Lanes):
    """The lanes of a simulated run: one for each set of equal ranks.

    These are the rank classes. In a run that simulates every rank (`--no-fold`) the ranks of a stage share a
    lane too, if their times and those of the ranks they receive from are equal to the byte.

    The `op` of a span is its index in the class's ops, or the code in the accounts for idle time and for
    transfers from another rank; ops of 0 ns have no span.
    """

    results: SimulationFigures

    def __init__(self, results: SimulationFigures) -> None:
        super().__init__(results)
        self._timeline = timeline = results.simulation.timeline
        self._layout = results.simulation.layout
        self._has_class_per_rank = 1 < self._layout.world == len(timeline.classes)
        # By class the first of its equals; by each of these the ranks of all its equals.
        self._first_equal: list[int] = list(range(len(timeline.classes)))
        self._ranks = {class_id: rank_class.ranks for class_id, rank_class in enumerate(timeline.classes)}
        if self._has_class_per_rank:
            self._first_equal, equal = timeline.first_equal_class, dict[int, list[int]]()
            for class_id, first in enumerate(self._first_equal):
                equal.setdefault(first, []).append(timeline.ranks_of(class_id).first)
            self._ranks = {first: RankSet.of(ranks) for first, ranks in equal.items()}
        self._lanes_by_stage: dict[int, int] = {}
        for class_id in self._ranks:
            stage = timeline.stage_of(class_id)
            self._lanes_by_stage[stage] = self._lanes_by_stage.get(stage, 0) + 1

    @cached_property
    def facts(self) -> LaneFacts:
        return LaneFacts(
            self.results.step_time_ns, [*self._ranks], self._count_words,
            (*ORDERS, LaneOrder("end", "latest end", "end")), _SPREAD_MEASURES, communication="exposed",
            note_heading=("x", ""),
        )  # fmt: skip

    @cached_property
    def _cell_kinds(self) -> bytes:
        cell_kinds = bytearray(super()._cell_kinds)
        # Input and weight gradient are both drawn as backward, unless the schedule runs them separately.
        if self.results.simulation.program.rules.splits_backward:
            cell_kinds[ACCOUNTS.index("compute wg")] = KINDS.index("wg")
        return bytes(cell_kinds)

    @property
    def _count_words(self) -> str:
        world, classes = self._layout.world, len(self._timeline.classes)
        if len(self._ranks) < classes:
            return f"{world} ranks, each simulated, in {plural(len(self._ranks), 'lane')} of equal ones"
        return f"{plural(world, 'rank')} in {plural(classes, 'class')}"

    @cached_property
    def words(self) -> SimulatedSpanWords:
        return SimulatedSpanWords(self.results, self)

    # -- ranks -------------------------------------------------------------------------

    def _find_track(self, track_id: int) -> LaneTrack:
        timeline, stage, first = (
            self._timeline,
            self._timeline.stage_of(track_id),
            self._first_equal[track_id],
        )
        ranks = self._ranks[first]
        # Where a stage has several lanes, only their ranks distinguish them.
        title = f"stage {stage:>2}" if self._lanes_by_stage[stage] == 1 else f"rank {ranks.text()}"
        seams = timeline.times.pass_ends[track_id][:-1] if timeline.program.steps > 1 else ()
        return LaneTrack(first, ranks, title, self._headings(stage, ranks), stage, seams=seams)

    def _headings(self, stage: int, ranks: RankSet) -> tuple[str, ...]:
        of_stage = f"stage {stage:>2}"
        if len(ranks) > self._layout.tp:
            return (of_stage,)
        groups = {self._layout.position(rank)[1] for rank in ranks}
        return (of_stage, f"dp {min(groups)}") if len(groups) == 1 else (of_stage,)

    def own_track_id(self, rank: int) -> int | None:
        if not 0 <= rank < self._layout.world:
            return None
        # Where each rank is a class, its id is the rank.
        return rank if self._has_class_per_rank else self._timeline.folding.class_of(rank)

    def rank_words(self, rank: int) -> str:
        return f"rank {rank} = {describe_position(self._layout.position(rank))}"

    def missing_text(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        layout, microbatches = self._layout, self.results.simulation.program.microbatches
        if rank is not None and rank >= layout.world:
            return f"no rank {rank}: ranks are 0 to {layout.world - 1}"
        if stage is not None and stage >= layout.pp:
            return f"no stage {stage}: stages are 0 to {layout.pp - 1}"
        if microbatch is not None and microbatch >= microbatches:
            if not microbatches:
                return "this run has no micro-batches"
            return f"no micro-batch {microbatch}: micro-batches are 0 to {microbatches - 1}"
        return ""

    # -- spans -------------------------------------------------------------------------

    def _find_streams(self, track_id: int) -> dict[str, str]:
        present = self._timeline.streams(track_id)
        titles = {COMPUTE_STREAM: COMPUTE_STREAM}
        for stream in _COLLECTIVE_STREAMS:
            if stream in present:
                titles[stream] = f"{stream} x{self._layout.group_size(stream)}"  # type: ignore[arg-type]
        if links := self._timeline.classes[track_id].links.values():
            stages = sorted({self._timeline.stage_of(link.neighbour) for link in links})
            titles[PIPELINE] = f"pp to {','.join(map(str, stages))}"
        return titles

    def stream_of(self, track_id: int, span: int) -> str:
        return LANE_OF_STREAM[self._timeline.stage_program(track_id).ops.stream[span]]

    def span_name(self, track_id: int, op: int) -> tuple[str, str]:
        if op < 0:
            return "receive", ""
        ops = self._timeline.stage_program(track_id).ops
        row = ops.row[op]
        if row < 0:
            return "send", ""
        phase = PHASES[ops.phase[op]]
        # Input and weight gradient have one colour: the name distinguishes them.
        return self.results.simulation.workload.name[row], f" {phase}" if phase in ("ig", "wg") else ""

    def names(self) -> Collection[str]:
        return set(self.results.simulation.workload.name)

    # -- what a search looks at ------------------------------------------------------------

    def _find_search_columns(self, track_id: int) -> OpSearchColumns:
        names: dict[str, int] = {}
        of_row = [names.setdefault(name, len(names)) for name in self.results.simulation.workload.name]
        # Transfers and idle time have row -1: the last entry.
        of_row.append(len(names))
        row, what, microbatch = (
            column.labels_by_code(self.results.trace, track_id)
            for column in (self.results.trace.column("row"), *self._label_columns)
        )
        return OpSearchColumns(
            [*((name,) for name in names), ()], encode_indices(map(of_row.__getitem__, row)),
            self._label_columns[0].labels, what, encode_indices(map((1).__add__, microbatch)),
        )  # fmt: skip

    @cached_property
    def _label_columns(self) -> tuple[Column, Column]:
        """(labels of the words that a search finds ops by, labels of their micro-batches)."""
        of_class = [
            self._timeline.stage_program(class_id).ops for class_id in range(len(self._timeline.classes))
        ]
        # Stages share their ops.
        programs = {id(ops): ops for ops in of_class}
        label_of: dict[tuple[int, int], int] = {}
        label_ids = {
            program: [
                label_of.setdefault(key, len(label_of)) for key in zip(ops.cost, ops.phase, strict=True)
            ]
            for program, ops in programs.items()
        }
        sent_words = [self._op_words(*key) for key in label_of]
        received_words = [words - {"send"} | {"receive"} for words in sent_words]
        # NONE, the code of idle time, indexes the last label.
        labels = [*sent_words, *received_words, frozenset[str]()]
        words = Column(labels, [label_ids[id(ops)] for ops in of_class], range(len(sent_words), len(labels)))
        return words, Column((), [ops.microbatch for ops in of_class])

    def _op_words(self, cost_number: int, phase: int) -> frozenset[str]:
        cost = self._timeline.program.costs[cost_number]
        if isinstance(cost, CollectiveCost):
            return frozenset((WITH_COPIES[cost.collective], cost.group, PHASES[phase]))
        if isinstance(cost, TransferCost):
            return frozenset(("gradient" if phase == IG else "activation", "pp", "send"))
        return frozenset(("compute", PHASES[phase]))

    def _words_of(self, stream: str | None, category: int, what: frozenset[str]) -> frozenset[str]:
        kind = KINDS[category]
        if category in COMPUTING or stream is not None or kind == "idle":
            return what | {kind} if kind in (stream, "idle") else what
        # A rank does not do what it waits for.
        wait_words = what - {"send", "receive"}
        if kind == "wait":
            return wait_words.difference(PHASES) | {kind}
        if kind == "bubble":
            return wait_words - {"pp"} | {kind}
        return wait_words | {"exposed", kind, *(("receive",) if kind == PIPELINE else ())}

    # -- what one moves by ---------------------------------------------------------------

    def passes(self, track_id: int) -> Sequence[TimeStretch]:
        microbatches = self.results.simulation.program.microbatches
        passes = self.results.passes(track_id)
        return [
            TimeStretch(stretch.start_ns, stretch.end_ns, pass_words(stretch, microbatches))
            for stretch in passes
        ]
