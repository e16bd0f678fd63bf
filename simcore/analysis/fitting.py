"""With which changes the run of a model needs less memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from simcore.analysis.model_figures import find_model_rows, make_model_figures
from simcore.diagnostics import UsageError
from simcore.model.maker import ModelMaker
from simcore.model.memory import stage_memory
from simcore.model.training import Training, resolve_training
from simcore.program.order import Shape
from simcore.program.schedule_choice import find_schedule
from simcore.records import NamedTuple, replace
from simcore.simulation import Simulation
from simcore.workload.model import ModelParameters

# So many ways of several changes are enough, of so many at once.
_MOST_SAVINGS, _MOST_COMBINED = 3, 3
# A change of some parameters and its words, like `recompute full`.
_Change = tuple[str, dict[str, Any]]


class MemorySaving(NamedTuple):
    """A change with which less memory is needed: words like `recompute full`, the fields that it changes.

    most: bytes of the fullest stage with it.
    """

    words: str
    fields: dict[str, Any]
    peak_bytes: int
    fits: bool


def find_memory_savings(simulation: Simulation) -> Iterator[MemorySaving]:
    """Changes with which a run needs less memory, those that can be: each alone, and if none of them is
    enough two at once, then three, then all of them. The global batch stays what it is.

    None is run: what a schedule holds is known from its order.
    """
    model_rows, figures = find_model_rows(simulation), make_model_figures(simulation)
    assert model_rows is not None, "asked of a model alone"
    assert figures is not None
    search, same_batch = _Search(simulation, figures.limit), _keep_batch(simulation, model_rows.training)
    current_bytes, fit_count = figures.fullest.needed, 0
    changes, last_changes = (
        _list_changes(model_rows.training, same_batch),
        _list_last_changes(model_rows.training, same_batch),
    )
    for change in changes:
        smaller = search.apply_changes((change,))
        if smaller is not None and smaller.peak_bytes < current_bytes:
            yield smaller
            fit_count += smaller.fits
    for count in range(2, _MOST_COMBINED + 1):
        if fit_count:
            return
        for together in combinations([*changes, *last_changes], count):
            smaller = search.apply_changes(together)
            if smaller is not None and smaller.fits:
                yield smaller
                fit_count += 1
                if fit_count == _MOST_SAVINGS:
                    return
    for longest in last_changes if not fit_count else ():
        smaller = search.apply_changes((*changes, longest))
        if smaller is not None and smaller.fits:
            yield smaller
            return


class _Search:
    """What runs with other parameters need. limit: bytes of a GPU."""

    def __init__(self, simulation: Simulation, limit: int) -> None:
        self.simulation = simulation
        self.limit_bytes = limit
        # What a schedule holds of its chunks: whatever they weigh, it is the same.
        self._chunk_events: dict[object, list[list[tuple[int, int, int]]]] = {}

    def apply_changes(self, changes: Sequence[_Change]) -> MemorySaving | None:
        """A run with these; None where it cannot be, or some of them change the same."""
        fields: dict[str, Any] = {}
        names = [change.split()[0] for change, _ in changes]
        if len(set(names)) < len(names) and len(names) <= _MOST_COMBINED:
            return None
        for _, values in changes:
            fields |= values
        # Where nobody said how many GPUs there are, a longer pipeline has more of them.
        parameters = replace(self.simulation.setup.model, **fields)
        try:
            peak = self.find_peak_bytes(parameters)
        except UsageError:
            return None
        change_names = {change.split()[0]: change for change, _ in changes}
        return MemorySaving(" + ".join(change_names.values()), fields, peak, peak <= self.limit_bytes)

    def find_peak_bytes(self, parameters: ModelParameters) -> int:
        """Bytes of the stage that needs most under other parameters."""
        maker = self.simulation.workload.maker
        assert isinstance(maker, ModelMaker)
        assert maker.model is not None
        training = resolve_training(maker.model, parameters)
        key = (training.pp, training.chunks, training.microbatches)
        if key not in self._chunk_events:
            name = find_training_schedule(training, parameters.schedule)
            self._chunk_events[key] = list_chunk_events(training, name, parameters.overlap_fwd_bwd)
        chunk_events = self._chunk_events[key]
        return max(stage_memory(training, stage, chunk_events[stage]).needed for stage in range(training.pp))


def find_peak_bytes(simulation: Simulation, parameters: ModelParameters) -> int | None:
    """What the fullest stage of a model needs with other parameters; None where such a run cannot be."""
    figures = make_model_figures(simulation)
    assert figures is not None, "asked of a model alone"
    try:
        return _Search(simulation, figures.limit).find_peak_bytes(parameters)
    except UsageError:
        return None


def stages_and_microbatches(simulation: Simulation, parameters: ModelParameters) -> tuple[int, int] | None:
    """(stages, micro-batches) of a model with other parameters; None where such a run cannot be."""
    maker = simulation.workload.maker
    assert isinstance(maker, ModelMaker)
    assert maker.model is not None
    try:
        training = resolve_training(maker.model, parameters)
    except UsageError:
        return None
    return training.pp, training.microbatches


def find_training_schedule(training: Training, name: str | None) -> str:
    """The schedule that a model runs: the one asked for, else Megatron's."""
    return name or ("interleaved" if training.chunks > 1 else "1f1b")


def list_chunk_events(training: Training, name: str, is_overlapped: bool) -> list[list[tuple[int, int, int]]]:
    """When each stage holds and frees a chunk, as `StageProgram` has it, by the order of its actions alone.

    overlapped: whether forwards run beside backwards. Raises `UsageError` for a schedule that cannot be.
    """
    schedule, custom = find_schedule(name)
    shape = Shape(training.pp, training.microbatches, training.chunks, is_overlapped)
    misfit = schedule.misfit(training.pp, training.microbatches)
    if misfit:
        raise UsageError(f"--schedule {name}: {misfit}")
    stages = []
    for stage in range(training.pp):
        actions = schedule.actions(shape, stage) if custom is None else custom.order.stages[stage]
        events: list[tuple[int, int, int]] = []
        for index, action in enumerate(actions):
            if action.kind != "I":
                events.append((index, action.chunk, 1 if action.kind == "F" else -1))
        stages.append(events)
    return stages


def _list_changes(training: Training, same_batch: dict[str, Any]) -> list[_Change]:
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
        changes.append((f"{name} {twice}", {name: twice, **same_batch}))
    if training.recompute != "full":
        changes.append(("recompute full", {"recompute": "full"}))
    return changes


def _list_last_changes(training: Training, same_batch: dict[str, Any]) -> list[_Change]:
    counts = [times * training.pp for times in (4, 8, 16)]
    return [(f"pp {count}", {"pp": count, **same_batch}) for count in counts]


def _keep_batch(simulation: Simulation, training: Training) -> dict[str, Any]:
    """Fewer replicas have as many sequences in a step: nothing to change where their number was given."""
    parameters = simulation.parameters
    if parameters.global_batch is not None and parameters.microbatches is None:
        return {}
    return {"global_batch": training.global_batch, "microbatches": None}
