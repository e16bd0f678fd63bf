"""How much memory the fullest stage of a layout needs, as `stage_memory` has it, without going through steps.

What a schedule holds at most of each chunk does not change with more micro-batches than a few times its
stages, so it is found once for all of them; of stages with the same layers the one that holds most counts.
"""

from __future__ import annotations

from typing import Any

from simcore.analysis.fitting import held_chunks, schedule_of
from simcore.diagnostics import UsageError
from simcore.model.memory import stage_memory
from simcore.model.sizes import Model
from simcore.model.training import Training
from simcore.program.schedule_choice import chosen_schedule, other_chunks
from simcore.records import replace

# Every forward comes before every backward: all chunks of all micro-batches are held at once.
ALL_FORWARD = ("gpipe", "looped-bfs")
# The same, but for what the last chunk does: with more micro-batches more is held.
GROWING = ("breadth-first",)
# Of each stage: the numbers of its chunks that are held together, those that are not less than others.
Peaks = tuple[tuple[tuple[int, ...], ...], ...]
_Held = list[tuple[int, int, int]]
_KEPT = 4096


class PeakMemory:
    """Bytes of the fullest stage of many layouts of a model."""

    def __init__(self) -> None:
        self._model: Model | None = None
        self._peaks: dict[object, Peaks] = {}
        # The stages that may be the fullest, each with a way through its peaks.
        self._leasts: dict[object, int] = {}
        # Bytes that are there all the time, and the others, by what each hangs on: points share both.
        self._static: dict[object, int] = {}
        self._others: dict[object, int] = {}
        self._fullest: dict[object, list[tuple[int, _Held]]] = {}

    def bytes_of(
        self, training: Training, schedule: str | None, overlapped: bool, limit: int | None = None
    ) -> int:
        """Bytes of the fullest stage; of more than `limit`, some of them. Raises `UsageError` for a schedule
        that cannot be. overlapped: whether forwards run beside backwards.
        """
        if training.model is not self._model:
            # What is known is of another model.
            self._model = training.model
            for known in (self._peaks, self._leasts, self._static, self._others, self._fullest):
                known.clear()
        name = schedule_of(training, schedule)
        given = _is_file(training, name)
        if limit is not None and (least := self._least(training)) > limit:
            return least
        peaks = self._peaks_of(training, name, given, overlapped)
        key = (peaks, training.chunks, training.placement, training.stage_layers)
        fullest = self._fullest.get(key)
        if fullest is None:
            fullest = self._fullest[key] = _fullest(training, peaks)
            _forget(self._fullest)
        where = (
            training.tp, training.cp, training.dp, training.ep, training.chunks, training.placement,
            training.stage_layers, training.shard_size,
        )  # fmt: skip
        static = (
            where, training.zero, training.grad_bytes, training.prefetch, training.reshard, training.engine,
        )  # fmt: skip
        others = (where, *_of_activations(training), training.offload)
        return max(self._bytes(training, stage, held, static, others) for stage, held in fullest)

    def _bytes(
        self, training: Training, stage: int, held: _Held, static_of: object, others_of: object
    ) -> int:
        """Bytes of a stage. static_of, others_of: what both parts of them hang on."""
        static_key, others_key = (static_of, stage), (others_of, stage, *held)
        static, others = self._static.get(static_key), self._others.get(others_key)
        if static is None or others is None:
            memory = stage_memory(training, stage, held)
            static = self._static[static_key] = memory.static
            others = self._others[others_key] = memory.needed - memory.static
            _forget(self._static)
            _forget(self._others)
        return static + others

    def _least(self, training: Training) -> int:
        """Bytes of the first stage with one micro-batch, which every schedule holds; 0 of a V."""
        moe = training.model.moe
        if training.placement != "loop" or (moe and moe.dense_layers and training.chunks > 1):
            # Which layers the first stage has depends on the chunks.
            return 0
        key = (
            training.tp, training.cp, training.dp, training.ep, training.stage_layers, training.shard_size,
            training.prefetch, training.reshard, training.offload,
            *_of_activations(training),
        )  # fmt: skip
        least = self._leasts.get(key)
        if least is None:
            whole = replace(training, chunks=1, found=())
            least = self._leasts[key] = stage_memory(whole, 0, [(0, 0, 1)]).needed
            _forget(self._leasts)
        return least

    def _peaks_of(self, training: Training, name: str, given: bool, overlapped: bool) -> Peaks:
        """What each stage holds at most. given: the schedule is a file."""
        stages, count = training.pp, training.microbatches
        if name in ALL_FORWARD:
            return (((count,) * training.chunks,),) * stages
        is_bounded = not given and name not in GROWING
        few = few_microbatches(stages, count) if is_bounded else count
        key = (name, stages, training.chunks, few, overlapped)
        peaks = self._peaks.get(key)
        if peaks is None:
            batch = few * training.microbatch_size * training.dp
            held = held_chunks(replace(training, global_batch=batch), name, overlapped)
            peaks = self._peaks[key] = tuple(_highest(way, len(training.stage_chunks)) for way in held)
            _forget(self._peaks)
        return peaks


def _of_activations(training: Training) -> tuple[object, ...]:
    """What activations hang on beside where layers are."""
    return (
        training.microbatch_size, training.seq, training.sequence_parallel, training.flash,
        training.recompute, training.recompute_rows, training.loads, training.precision, training.engine,
        training.compiled, training.overlap_tp, training.cp_comm_type, training.zero, training.grad_bytes,
    )  # fmt: skip


def _forget(kept: dict[Any, Any]) -> None:
    """Takes away what was kept first, where that is much."""
    if len(kept) > _KEPT:
        del kept[next(iter(kept))]


def _is_file(training: Training, name: str) -> bool:
    """Whether a schedule is one of a file. Raises `UsageError` where it cannot be."""
    schedule, given = chosen_schedule(name)
    misfit = schedule.misfit(training.pp, training.microbatches)
    if misfit:
        raise UsageError(f"--schedule {name}: {misfit}")
    chunks = schedule.chunks if given is None and schedule.placement != "both-ways" else None
    if chunks is not None and chunks != training.chunks:
        raise UsageError(other_chunks(f"--schedule {name}", chunks, training.chunks))
    return given is not None


def few_microbatches(stages: int, count: int) -> int:
    """As few micro-batches as hold what `count` hold: as many more than whole rounds of them."""
    least, step = 4 * stages, 2 * stages
    return count if count < least + step else least + (count - least) % step


def _highest(held: _Held, chunks: int) -> tuple[tuple[int, ...], ...]:
    """The numbers of chunks held together that no others are above."""
    now = [0] * chunks
    seen: dict[tuple[int, ...], None] = {}
    for _, chunk, change in held:
        now[chunk] += change
        if change > 0:
            seen[tuple(now)] = None
    highest: list[tuple[int, ...]] = []
    for peak in sorted(seen, key=sum, reverse=True):
        if not any(_covers(other, peak) for other in highest):
            highest.append(peak)
    return tuple(highest)


def _fullest(training: Training, peaks: Peaks) -> list[tuple[int, _Held]]:
    """Of stages with the same layers one, with the peaks of all of them that no others are above."""
    alike: dict[object, tuple[int, list[tuple[int, ...]]]] = {}
    for stage, of_stage in enumerate(peaks):
        what = tuple(
            (tuple(training.kinds_of(stage, chunk)), training.position(stage, chunk) == 0,
             training.is_last(stage, chunk))
            for chunk in training.stage_chunks
        )  # fmt: skip
        _, known = alike.setdefault(what, (stage, []))
        known += of_stage
    return [(stage, _way(known)) for stage, known in alike.values()]


def _way(peaks: list[tuple[int, ...]]) -> _Held:
    """A way through all of these, as `StageProgram.held` has it: down before it goes up."""
    held: _Held = []
    now = (0,) * len(peaks[0]) if peaks else ()
    kept = [
        held_most
        for held_most in peaks
        if not any(_covers(other, held_most) and other != held_most for other in peaks)
    ]
    for peak in dict.fromkeys(kept):
        changes = [(chunk, there - here) for chunk, (here, there) in enumerate(zip(now, peak, strict=True))]
        held += [(0, chunk, change) for chunk, change in sorted(changes, key=lambda pair: pair[1]) if change]
        now = peak
    return held


def _covers(peak: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(left >= right for left, right in zip(peak, other, strict=True))
