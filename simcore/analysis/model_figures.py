"""What is said of the run of a model: tokens a second, FLOPs, and the memory of each stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from simcore.diagnostics import UsageError
from simcore.model.flops import step_flops
from simcore.model.maker import Made, ModelMaker
from simcore.model.memory import StageMemory, memory_limit, stage_memory
from simcore.model.sizes import Model
from simcore.parameters import Parameters
from simcore.program import build_program
from simcore.records import Struct, replace
from simcore.simulation import Simulation, made, place

# What is tried for a run that does not fit, the cheapest first.
_RECOMPUTES = ("selective", "full")


class Throughput(NamedTuple):
    """Of all ranks and of one: tokens/s; TFLOP/s of the model; MFU and HFU as shares of the peak."""

    tokens_per_s: float
    tokens_per_s_per_gpu: float
    model_tflops_per_gpu: float
    mfu: float
    hfu: float


class Smaller(NamedTuple):
    """A change with which less memory is needed. words: like `recompute full`."""

    words: str
    parameters: Parameters
    most: int
    fits: bool


class ModelFigures(Struct, frozen=True, dict=True):
    """Figures of one run of a model. limit: bytes of a GPU."""

    model: Model
    throughput: Throughput
    memory: tuple[StageMemory, ...]
    limit: int

    @property
    def fullest(self) -> StageMemory:
        """The stage that needs most."""
        return max(self.memory, key=lambda one: one.total)

    @property
    def fits(self) -> bool:
        return self.fullest.total <= self.limit


def model_figures(simulation: Simulation) -> ModelFigures | None:
    """The figures of a run; None unless it is of a model in Megatron's dialect."""
    found = _made(simulation)
    if found is None:
        return None
    training, step = found.training, simulation.step_time_ns
    seconds = max(step, 1) / 1e9
    tokens = training.global_batch * training.seq / seconds
    ours, hardware = (flops / seconds / training.world for flops in step_flops(training))
    peak = (found.gpu.peak_fp8 if training.fp8 else found.gpu.peak) * 1e12
    throughput = Throughput(tokens, tokens / training.world, ours / 1e12, ours / peak, hardware / peak)
    held = [stage.held for stage in simulation.program.stages]
    memory = tuple(stage_memory(training, stage, held[stage]) for stage in range(training.pp))
    limit = memory_limit(simulation.parameters.memory_limit, found.gpu.memory)
    return ModelFigures(training.model, throughput, memory, limit)


def smaller_runs(simulation: Simulation, limit: int) -> Iterator[Smaller]:
    """Changes of the layout or of what is kept with which the run needs less memory, those that can be.

    Each is built as far as it takes to know what its schedule holds, and not run.
    """
    training = _training(simulation)
    changes: list[tuple[str, dict[str, object]]] = []
    if training.recompute == "none":
        changes += [
            (f"recompute {word}", {"recompute": word})
            for word in _RECOMPUTES
            if word == "full" or not training.flash
        ]
    elif training.recompute == "selective":
        changes.append(("recompute full", {"recompute": "full"}))
    if training.zero == 0 and training.dp * training.cp > 1:
        changes.append(("zero 1", {"zero": "1"}))
    changes.append((f"pp {2 * training.pp}", {"pp": 2 * training.pp}))
    changes.append((f"tp {2 * training.tp}", {"tp": 2 * training.tp}))
    now = max(one.total for one in (model_figures(simulation) or _nothing()).memory)
    for words, values in changes:
        parameters = replace(simulation.parameters, world=training.world, **values)
        try:
            most = _most(simulation, parameters)
        except UsageError:
            continue
        if most < now:
            yield Smaller(words, parameters, most, most <= limit)


def _most(simulation: Simulation, parameters: Parameters) -> int:
    """Bytes of the stage that needs most under other parameters."""
    workload = made(simulation.workload, parameters)
    layout, _, _ = place(workload, parameters)
    program, _ = build_program(workload, layout, parameters)
    assert isinstance(workload.maker, ModelMaker)
    training = workload.maker.made(parameters).training
    return max(
        stage_memory(training, stage, program.stages[stage].held).total for stage in range(training.pp)
    )


def _made(simulation: Simulation) -> Made | None:
    maker = simulation.workload.maker
    if not isinstance(maker, ModelMaker) or simulation.parameters.as_aicb is not None:
        return None
    return maker.made(simulation.parameters)


def _training(simulation: Simulation):  # type: ignore[no-untyped-def]
    found = _made(simulation)
    assert found is not None
    return found.training


def _nothing() -> ModelFigures:
    raise AssertionError("asked of a model alone")
