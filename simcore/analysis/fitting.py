"""Changes with which the run of a model needs less memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

from simcore.analysis.model_figures import find_model_rows, make_model_figures
from simcore.diagnostics import InputError, UsageError, printable
from simcore.model.maker import ModelMaker
from simcore.model.memory import stage_memory
from simcore.model.resolving import resolve_training
from simcore.model.training import Training
from simcore.names import FORWARD_ONLY
from simcore.program.order import Action, Shape
from simcore.program.schedule_choice import find_schedule
from simcore.records import NamedTuple, replace
from simcore.simulation import Simulation
from simcore.workload.model import ModelParameters

# How many combinations of changes are found, and how many changes one combines.
_MOST_SAVINGS, _MOST_COMBINED = 3, 3
# A change in words, like `recompute full`, and the parameters that it changes.
_Change = tuple[str, dict[str, Any]]


class MemorySaving(NamedTuple):
    """A change with which less memory is needed."""

    words: str
    """Its words, like `recompute full`."""
    fields: dict[str, Any]
    """The fields that it changes."""
    peak_bytes: int
    """What the fullest stage needs with it, bytes."""
    fits: bool
    """Whether the model then fits into memory."""


def find_memory_savings(simulation: Simulation) -> Iterator[MemorySaving]:
    """Yields the possible changes with which a run needs less memory: each alone; if none of them suffices,
    two at once, then three, then all of them. The global batch stays the same.

    Nothing is run: what a schedule holds follows from its order.
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
    """The memory of runs with other parameters. limit_bytes: of a GPU."""

    def __init__(self, simulation: Simulation, limit: int) -> None:
        self.simulation = simulation
        self.limit_bytes = limit
        # The chunks that a schedule holds, by its shape: they do not depend on the size of a chunk.
        self._chunk_events: dict[object, list[list[tuple[int, int, int]]]] = {}

    def apply_changes(self, changes: Sequence[_Change]) -> MemorySaving | None:
        """Returns the effect of some changes; None for an impossible run, or two of the same field."""
        fields: dict[str, Any] = {}
        names = [change.split()[0] for change, _ in changes]
        if len(set(names)) < len(names) and len(names) <= _MOST_COMBINED:
            return None
        for _, values in changes:
            fields |= values
        # Where the number of GPUs was not given, a longer pipeline has more of them.
        parameters = replace(self.simulation.setup.model, **fields)
        try:
            peak = self.find_peak_bytes(parameters)
        except (InputError, UsageError):
            return None
        change_names = {change.split()[0]: change for change, _ in changes}
        return MemorySaving(" + ".join(change_names.values()), fields, peak, peak <= self.limit_bytes)

    def find_peak_bytes(self, parameters: ModelParameters) -> int:
        """Returns what the fullest stage needs with other parameters, bytes."""
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
    """Returns the bytes of a model's fullest stage with other parameters; None for an impossible run."""
    figures = make_model_figures(simulation)
    assert figures is not None, "asked of a model alone"
    try:
        return _Search(simulation, figures.limit).find_peak_bytes(parameters)
    except (InputError, UsageError):
        return None


def stages_and_microbatches(simulation: Simulation, parameters: ModelParameters) -> tuple[int, int] | None:
    """Returns (stages, micro-batches) of a model with other parameters; None where such a run cannot be."""
    maker = simulation.workload.maker
    assert isinstance(maker, ModelMaker)
    assert maker.model is not None
    try:
        training = resolve_training(maker.model, parameters)
    except (InputError, UsageError):
        return None
    return training.pp, training.microbatches


def find_training_schedule(training: Training, name: str | None) -> str:
    """Returns the schedule that a model runs: the requested one, else Megatron's."""
    if training.inference is not None:
        return FORWARD_ONLY
    return name or ("interleaved" if training.chunks > 1 else "1f1b")


def list_chunk_events(training: Training, name: str, is_overlapped: bool) -> list[list[tuple[int, int, int]]]:
    """Returns when each stage holds and frees a chunk, as in `StageProgram`, by the order of its actions
    alone; of a schedule that is searched, whose order depends on times, the most that it may hold.

    is_overlapped: whether forwards overlap backwards. Raises `UsageError` for an impossible schedule.
    """
    schedule, custom = find_schedule(name)
    shape = Shape(training.pp, training.microbatches, training.chunks, is_overlapped)
    misfit = schedule.misfit(training.pp, training.microbatches)
    if misfit:
        raise UsageError(f"--schedule {name}: {misfit}")
    if custom is not None:
        placement = custom.order.placement
        if (placement.stages, placement.parts) != (training.pp, training.chunks):
            raise UsageError(f"--schedule {printable(name, 60)}: it has other stages")
    if schedule.search_limit:
        most = min(training.microbatches, schedule.search_limit * training.pp)
        return [[(microbatch, 0, 1) for microbatch in range(most)]] * training.pp
    return [
        list_held_chunks(schedule.actions(shape, stage) if custom is None else custom.order.stages[stage])
        for stage in range(training.pp)
    ]


def list_held_chunks(actions: Iterable[Action]) -> list[tuple[int, int, int]]:
    """Returns when a stage holds and frees a chunk: (index of the action, chunk, +1 or -1)."""
    return [
        (index, action.chunk, 1 if action.kind == "F" else -1)
        for index, action in enumerate(actions)
        if action.kind != "I"
    ]


def _list_changes(training: Training, same_batch: dict[str, Any]) -> list[_Change]:
    """Returns the changes, those that cost little time first. same_batch: the fields that keep the batch."""
    changes: list[_Change] = []
    if training.inference is not None:
        more = [(name, times * getattr(training, name)) for name in ("tp", "pp") for times in (2, 4, 8)]
        changes = [(f"{name} {degree}", {name: degree}) for name, degree in more]
        narrower = [("kv-dtype fp8", {"kv_dtype": "fp8"})]
        return [*changes, *(narrower if training.inference.kv_dtype != "fp8" else [])]
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
    if training.recompute != "full" or training.recompute_layers != (0, 0):
        changes.append(("recompute full", {"recompute": "full", "recompute_layers": None}))
    return changes


def _list_last_changes(training: Training, same_batch: dict[str, Any]) -> list[_Change]:
    if training.inference is not None:
        return []
    counts = [times * training.pp for times in (4, 8, 16)]
    return [(f"pp {count}", {"pp": count, **same_batch}) for count in counts]


def _keep_batch(simulation: Simulation, training: Training) -> dict[str, Any]:
    """Returns the fields that keep the global batch with fewer replicas; empty where it was given."""
    parameters = simulation.parameters
    if parameters.global_batch is not None and parameters.microbatches is None:
        return {}
    return {"global_batch": training.global_batch, "microbatches": None}
