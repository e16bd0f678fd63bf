"""The memory of the fullest stage of a layout, as `stage_memory` computes it, without simulating steps.

The most that a schedule holds of each chunk does not change beyond a few times as many micro-batches as
stages, so it is found once for all of them; of stages with the same layers the one that holds most counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simcore.analysis.fitting import find_training_schedule, list_chunk_events, list_held_chunks
from simcore.diagnostics import UsageError
from simcore.model.memory import stage_memory
from simcore.model.sizes import Model
from simcore.model.training import Training
from simcore.program.order import Order
from simcore.program.schedule_choice import chunk_mismatch_text, find_schedule
from simcore.program.schedules import SCHEDULES
from simcore.records import replace

# Every forward comes before every backward: all chunks of all micro-batches are resident at once.
ALL_FORWARD = ("gpipe", "looped-bfs")
# The same except for the last chunk: more micro-batches have more resident chunks.
GROWING = ("breadth-first",)
# For each stage: the counts of its chunks that are resident together, those that no others cover.
Peaks = tuple[tuple[tuple[int, ...], ...], ...]
_ChunkChanges = list[tuple[int, int, int]]
_MAX_CACHED = 4096


class PeakMemory:
    """Finds the bytes of the fullest stage of many layouts of a model, and caches what they share."""

    def __init__(self) -> None:
        self._model: Model | None = None
        self._peaks: dict[object, Peaks] = {}
        # The bytes of the first stage with one micro-batch.
        self._least_bytes: dict[object, int] = {}
        # Bytes that are always resident, and the others, by the parameters of each: points share both.
        self._static: dict[object, int] = {}
        self._others: dict[object, int] = {}
        # The stages that may be the fullest, each with changes that pass through its peaks.
        self._fullest: dict[object, list[tuple[int, _ChunkChanges]]] = {}

    def max_stage_bytes(
        self,
        training: Training,
        schedule: str | None,
        overlapped: bool,
        limit: int | None = None,
        find_order: Callable[[], Order | None] = lambda: None,
    ) -> int:
        """Returns the bytes of the fullest stage, a lower bound where they exceed `limit`.

        Raises `UsageError` for an impossible schedule. overlapped: whether forwards and backwards overlap.
        find_order: gives the order of a schedule that is searched; without one it holds all that it may.
        """
        if training.inference is not None:
            return max(stage_memory(training, stage, ()).needed for stage in range(training.pp))
        if training.model is not self._model:
            # The cached figures are of another model.
            self._model = training.model
            for cache in (self._peaks, self._least_bytes, self._static, self._others, self._fullest):
                cache.clear()
        name = find_training_schedule(training, schedule)
        from_file = _is_file(training, name)
        if limit is not None and (least := self._least(training)) > limit:
            return least
        order = find_order() if name in SCHEDULES and SCHEDULES[name].search_limit else None
        if order is None:
            peaks = self._peaks_of(training, name, from_file, overlapped)
        else:
            peaks = tuple(_find_highest(list_held_chunks(actions), 1) for actions in order.stages)
        key = (peaks, training.chunks, training.placement, training.position_layers, training.routes)
        fullest = self._fullest.get(key)
        if fullest is None:
            fullest = self._fullest[key] = _find_fullest(training, peaks)
            _drop_oldest(self._fullest)
        placement = (
            training.tp, training.cp, training.dp, training.ep, training.chunks, training.placement,
            training.position_layers, training.shard_size, training.etp, training.cp_inner, training.ep_node,
            training.routes,
        )  # fmt: skip
        static = (
            placement,
            training.zero,
            training.grad_bytes,
            training.prefetch,
            training.reshard,
            training.engine,
        )
        others = (placement, *_activation_key(training), training.offload, training.offload_layers)
        return max(
            self._bytes(training, stage, chunk_changes, static, others) for stage, chunk_changes in fullest
        )

    def _bytes(
        self,
        training: Training,
        stage: int,
        chunk_changes: _ChunkChanges,
        static_of: object,
        others_of: object,
    ) -> int:
        """Returns the bytes of a stage. static_of, others_of: the parameters that decide the two parts."""
        static_key, others_key = (static_of, stage), (others_of, stage, *chunk_changes)
        static, others = self._static.get(static_key), self._others.get(others_key)
        if static is None or others is None:
            memory = stage_memory(training, stage, chunk_changes)
            static = self._static[static_key] = memory.static
            others = self._others[others_key] = memory.needed - memory.static
            _drop_oldest(self._static)
            _drop_oldest(self._others)
        return static + others

    def _least(self, training: Training) -> int:
        """Returns the bytes of the first stage with one micro-batch, which every schedule holds; 0 where it
        is not certain.
        """
        moe = training.model.moe
        if training.placement != "loop" or (moe and moe.dense_layers and training.chunks > 1):
            # The layers of the first stage depend on the chunks.
            return 0
        key = (
            training.tp, training.cp, training.dp, training.ep, training.stage_layers, training.shard_size,
            training.prefetch, training.reshard, training.offload, training.offload_layers,
            *_activation_key(training),
        )  # fmt: skip
        least = self._least_bytes.get(key)
        if least is None:
            unsplit = replace(training, chunks=1, position_layers=training.stage_layers, diagnostics=())
            least = self._least_bytes[key] = stage_memory(unsplit, 0, [(0, 0, 1)]).needed
            _drop_oldest(self._least_bytes)
        return least

    def _peaks_of(self, training: Training, name: str, from_file: bool, overlapped: bool) -> Peaks:
        """Returns the most chunks that each stage holds. from_file: whether the schedule is a file."""
        stages, count = training.pp, training.microbatches
        if name in ALL_FORWARD:
            return (((count,) * training.chunks,),) * stages
        is_bounded = not from_file and name not in GROWING
        few_count = few_microbatches(stages, count) if is_bounded else count
        key = (name, stages, training.chunks, few_count, overlapped)
        peaks = self._peaks.get(key)
        if peaks is None:
            batch = few_count * training.microbatch_size * training.dp
            stage_changes = list_chunk_events(replace(training, global_batch=batch), name, overlapped)
            peaks = self._peaks[key] = tuple(
                _find_highest(changes, len(training.stage_chunks)) for changes in stage_changes
            )
            _drop_oldest(self._peaks)
        return peaks


def _activation_key(training: Training) -> tuple[object, ...]:
    """Returns the parameters that decide activations, besides the placement of layers."""
    return (
        training.microbatch_size, training.seq, training.sequence_parallel, training.flash,
        training.recompute, training.recompute_layers, training.recompute_rows, training.loads, training.etp,
        training.capacity, training.layer_loads,
        training.precision, training.engine, training.compiled, training.overlap_tp,
        training.cp_comm_type, training.cp_heads, training.zero, training.grad_bytes,
    )  # fmt: skip


def _drop_oldest(entries: dict[Any, Any]) -> None:
    """Removes the oldest entry of a cache that is full."""
    if len(entries) > _MAX_CACHED:
        del entries[next(iter(entries))]


def _is_file(training: Training, name: str) -> bool:
    """Returns whether a schedule is one of a file. Raises `UsageError` where it is impossible."""
    schedule, read_order = find_schedule(name)
    misfit = schedule.misfit(training.pp, training.microbatches)
    if misfit:
        raise UsageError(f"--schedule {name}: {misfit}")
    chunks = schedule.chunks if read_order is None and schedule.placement != "both-ways" else None
    if chunks is not None and chunks != training.chunks:
        raise UsageError(chunk_mismatch_text(f"--schedule {name}", chunks, training.chunks))
    return read_order is not None


def few_microbatches(stages: int, count: int) -> int:
    """Returns the least number of micro-batches that has the same peaks as `count`.

    It exceeds whole rounds of the schedule by as many as `count` does.
    """
    least, step = 4 * stages, 2 * stages
    return count if count < least + step else least + (count - least) % step


def _find_highest(chunk_changes: _ChunkChanges, chunks: int) -> tuple[tuple[int, ...], ...]:
    """Returns the counts of resident chunks that no others cover."""
    counts = [0] * chunks
    reached: dict[tuple[int, ...], None] = {}
    for _, chunk, change in chunk_changes:
        counts[chunk] += change
        if change > 0:
            reached[tuple(counts)] = None
    highest: list[tuple[int, ...]] = []
    for peak in sorted(reached, key=sum, reverse=True):
        if not any(_covers(other, peak) for other in highest):
            highest.append(peak)
    return tuple(highest)


def _find_fullest(training: Training, peaks: Peaks) -> list[tuple[int, _ChunkChanges]]:
    """Returns one stage of those with the same layers, with the peaks of all of them that no others cover."""
    by_content: dict[object, tuple[int, list[tuple[int, ...]]]] = {}
    for stage, of_stage in enumerate(peaks):
        content = tuple(
            (tuple(training.kinds_of(stage, chunk)), training.position(stage, chunk) == 0,
             training.is_last(stage, chunk))
            for chunk in training.stage_chunks
        )  # fmt: skip
        _, stage_peaks = by_content.setdefault(content, (stage, []))
        stage_peaks += of_stage
    return [(stage, _changes_through(stage_peaks)) for stage, stage_peaks in by_content.values()]


def _changes_through(peaks: list[tuple[int, ...]]) -> _ChunkChanges:
    """Returns changes that pass through all these peaks, like `StageProgram.held`: decreases come before
    increases.
    """
    chunk_changes: _ChunkChanges = []
    counts = (0,) * len(peaks[0]) if peaks else ()
    highest = [
        held_most
        for held_most in peaks
        if not any(_covers(other, held_most) and other != held_most for other in peaks)
    ]
    for peak in dict.fromkeys(highest):
        changes = [
            (chunk, there - here) for chunk, (here, there) in enumerate(zip(counts, peak, strict=True))
        ]
        chunk_changes += [
            (0, chunk, change) for chunk, change in sorted(changes, key=lambda pair: pair[1]) if change
        ]
        counts = peak
    return chunk_changes


def _covers(peak: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(left >= right for left, right in zip(peak, other, strict=True))
