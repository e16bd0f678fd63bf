"""With which changes the run of a model needs less memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from simcore.analysis.model_figures import made_of, model_figures
from simcore.diagnostics import UsageError
from simcore.model.maker import ModelMaker
from simcore.model.memory import stage_memory
from simcore.model.training import Training, resolve
from simcore.program.order import Shape
from simcore.program.schedule_choice import chosen_schedule
from simcore.records import NamedTuple, replace
from simcore.simulation import Simulation
from simcore.workload.model import AskedModel

# So many ways of several changes are enough, of so many at once.
_ENOUGH, _TOGETHER = 3, 3
# A change of some parameters and its words, like `recompute full`.
_Change = tuple[str, dict[str, Any]]


class Smaller(NamedTuple):
    """A change with which less memory is needed: words like `recompute full`, the fields that it changes.

    most: bytes of the fullest stage with it.
    """

    words: str
    fields: dict[str, Any]
    most: int
    fits: bool


def smaller_runs(simulation: Simulation) -> Iterator[Smaller]:
    """Changes with which a run needs less memory, those that can be: each alone, and if none of them is
    enough two at once, then three, then all of them. The global batch stays what it is.

    None is run: what a schedule holds is known from its order.
    """
    made, figures = made_of(simulation), model_figures(simulation)
    assert made is not None, "asked of a model alone"
    assert figures is not None
    search, same = _Search(simulation, figures.limit), _same_batch(simulation, made.training)
    now, enough = figures.fullest.needed, 0
    changes, further = _changes(made.training, same), _further(made.training, same)
    for change in changes:
        smaller = search.with_changes((change,))
        if smaller is not None and smaller.most < now:
            yield smaller
            enough += smaller.fits
    for count in range(2, _TOGETHER + 1):
        if enough:
            return
        for together in combinations([*changes, *further], count):
            smaller = search.with_changes(together)
            if smaller is not None and smaller.fits:
                yield smaller
                enough += 1
                if enough == _ENOUGH:
                    return
    for longest in further if not enough else ():
        smaller = search.with_changes((*changes, longest))
        if smaller is not None and smaller.fits:
            yield smaller
            return


class _Search:
    """What runs with other parameters need. limit: bytes of a GPU."""

    def __init__(self, simulation: Simulation, limit: int) -> None:
        self.simulation = simulation
        self.limit = limit
        # What a schedule holds of its chunks: whatever they weigh, it is the same.
        self._held: dict[object, list[list[tuple[int, int, int]]]] = {}

    def with_changes(self, changes: Sequence[_Change]) -> Smaller | None:
        """A run with these; None where it cannot be, or some of them change the same."""
        fields: dict[str, Any] = {}
        names = [change.split()[0] for change, _ in changes]
        if len(set(names)) < len(names) and len(names) <= _TOGETHER:
            return None
        for _, values in changes:
            fields |= values
        # Where nobody said how many GPUs there are, a longer pipeline has more of them.
        asked = replace(self.simulation.setup.model, **fields)
        try:
            most = self.most(asked)
        except UsageError:
            return None
        said = {change.split()[0]: change for change, _ in changes}
        return Smaller(" + ".join(said.values()), fields, most, most <= self.limit)

    def most(self, asked: AskedModel) -> int:
        """Bytes of the stage that needs most under other parameters."""
        maker = self.simulation.workload.maker
        assert isinstance(maker, ModelMaker)
        assert maker.model is not None
        training = resolve(maker.model, asked)
        key = (training.pp, training.chunks, training.microbatches)
        if key not in self._held:
            name = schedule_of(training, asked.schedule)
            self._held[key] = held_chunks(training, name, asked.overlap_fwd_bwd)
        held = self._held[key]
        return max(stage_memory(training, stage, held[stage]).needed for stage in range(training.pp))


def most_bytes(simulation: Simulation, asked: AskedModel) -> int | None:
    """What the fullest stage of a model needs with other parameters; None where such a run cannot be."""
    figures = model_figures(simulation)
    assert figures is not None, "asked of a model alone"
    try:
        return _Search(simulation, figures.limit).most(asked)
    except UsageError:
        return None


def stages_and_microbatches(simulation: Simulation, asked: AskedModel) -> tuple[int, int] | None:
    """(stages, micro-batches) of a model with other parameters; None where such a run cannot be."""
    maker = simulation.workload.maker
    assert isinstance(maker, ModelMaker)
    assert maker.model is not None
    try:
        training = resolve(maker.model, asked)
    except UsageError:
        return None
    return training.pp, training.microbatches


def schedule_of(training: Training, asked: str | None) -> str:
    """The schedule that a model runs: the one asked for, else Megatron's."""
    return asked or ("interleaved" if training.chunks > 1 else "1f1b")


def held_chunks(training: Training, name: str, overlapped: bool) -> list[list[tuple[int, int, int]]]:
    """When each stage holds and frees a chunk, as `StageProgram` has it, by the order of its actions alone.

    overlapped: whether forwards run beside backwards. Raises `UsageError` for a schedule that cannot be.
    """
    schedule, given = chosen_schedule(name)
    shape = Shape(training.pp, training.microbatches, training.chunks, overlapped)
    misfit = schedule.misfit(training.pp, training.microbatches)
    if misfit:
        raise UsageError(f"--schedule {name}: {misfit}")
    stages = []
    for stage in range(training.pp):
        actions = schedule.actions(shape, stage) if given is None else given.order.stages[stage]
        held: list[tuple[int, int, int]] = []
        for index, action in enumerate(actions):
            if action.kind != "I":
                held.append((index, action.chunk, 1 if action.kind == "F" else -1))
        stages.append(held)
    return stages


def _changes(training: Training, same: dict[str, Any]) -> list[_Change]:
    """What costs little time first. same: what keeps the batch with other degrees."""
    changes: list[_Change] = []
    if training.tp > 1 and not training.sequence_parallel:
        changes.append(("sequence-parallel on", {"sequence_parallel": "on"}))
    if training.zero == 0 and training.dp * training.cp > 1:
        changes.append(("zero 1", {"zero": "1"}))
    if training.recompute == "none" and not training.flash:
        changes.append(("recompute selective", {"recompute": "selective"}))
    if training.microbatch_size > 1:
        half = training.microbatch_size // 2
        changes.append((f"microbatch-size {half}", {"microbatch_size": half}))
    for name in ("pp", "tp"):
        twice = 2 * getattr(training, name)
        changes.append((f"{name} {twice}", {name: twice, **same}))
    if training.recompute != "full":
        changes.append(("recompute full", {"recompute": "full"}))
    return changes


def _further(training: Training, same: dict[str, Any]) -> list[_Change]:
    counts = [times * training.pp for times in (4, 8, 16)]
    return [(f"pp {count}", {"pp": count, **same}) for count in counts]


def _same_batch(simulation: Simulation, training: Training) -> dict[str, Any]:
    """Fewer replicas have as many sequences in a step: nothing to change where their number was given."""
    given = simulation.parameters
    if given.global_batch is not None and given.microbatches is None:
        return {}
    return {"global_batch": training.global_batch, "microbatches": None}
