"""What is said of the run of a model: tokens a second, FLOPs, and the memory of each stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from simcore.diagnostics import UsageError
from simcore.model.flops import step_flops
from simcore.model.maker import Made, ModelMaker
from simcore.model.memory import StageMemory, memory_limit, stage_memory
from simcore.model.sizes import Model
from simcore.model.training import Training
from simcore.parameters import Parameters
from simcore.program import build_program
from simcore.records import Struct, replace
from simcore.simulation import Simulation, made, place, simulate

# So many ways of several changes are enough.
_ENOUGH = 2


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
    """Changes with which the run needs less memory, those that can be: each alone, and if none of them is
    enough several at once.

    Each is built as far as it takes to know what its schedule holds, and not run.
    """
    training, alone = _training(simulation), []
    now = max(one.total for one in _figures(simulation).memory)
    changes = _changes(training)
    for words, values in changes:
        found = _smaller(simulation, words, values, limit)
        if found is not None and found.most < now:
            alone.append(found)
    yield from alone
    if any(one.fits for one in alone):
        return
    together: dict[str, object] = {}
    said: list[str] = []
    enough = 0
    for words, values in (*changes, *_further(training)):
        # Full recompute takes the place of selective, a longer pipeline that of a shorter one.
        said = [one for one in said if one.split()[0] != words.split()[0]] + [words]
        together |= values
        if len(said) < 2:
            continue
        found = _smaller(simulation, " + ".join(said), dict(together), limit)
        if found is not None and found.fits:
            yield found
            enough += 1
            if enough == _ENOUGH:
                return


def interleaved_run(simulation: Simulation) -> Simulation | None:
    """A run of the same model with as many virtual stages as fit, its gradients reduced as backward goes.

    None where a schedule, virtual stages or overlap were given, on one stage, and where no number of virtual
    stages fits.
    """
    found, parameters = _made(simulation), simulation.parameters
    given = (parameters.schedule, parameters.virtual_stages)
    if found is None or found.training.pp == 1 or given != (None, None):
        return None
    if parameters.overlap_grad_reduce or parameters.overlap_param_gather or parameters.jitter:
        return None
    training = found.training
    layers, rest = divmod(training.model.layers, training.pp)
    if rest or training.microbatches % training.pp or len(set(training.stage_layers)) > 1 or layers == 1:
        return None
    other = replace(
        parameters,
        virtual_stages=layers,
        overlap_grad_reduce=training.dp * training.cp > 1,
        overlap_param_gather=training.dp * training.cp > 1 and training.zero > 0,
        no_fold=False,
    )
    try:
        return simulate(simulation.workload, other)
    except UsageError:
        return None


def _changes(training: Training) -> list[tuple[str, dict[str, object]]]:
    changes: list[tuple[str, dict[str, object]]] = []
    if training.recompute == "none" and not training.flash:
        changes.append(("recompute selective", {"recompute": "selective"}))
    if training.recompute != "full":
        changes.append(("recompute full", {"recompute": "full"}))
    if training.zero == 0 and training.dp * training.cp > 1:
        changes.append(("zero 1", {"zero": "1"}))
    for name in ("pp", "tp"):
        twice = 2 * getattr(training, name)
        changes.append((f"{name} {twice}", {name: twice}))
    return changes


def _further(training: Training) -> list[tuple[str, dict[str, object]]]:
    return [(f"pp {times * training.pp}", {"pp": times * training.pp}) for times in (4, 8, 16)]


def _smaller(simulation: Simulation, words: str, values: dict[str, object], limit: int) -> Smaller | None:
    # Where nobody said how many GPUs there are, a longer pipeline has more of them.
    parameters = replace(simulation.parameters, **values)
    try:
        most = _most(simulation, parameters)
    except UsageError:
        return None
    return Smaller(words, parameters, most, most <= limit)


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


def _training(simulation: Simulation) -> Training:
    found = _made(simulation)
    assert found is not None, "asked of a model alone"
    return found.training


def _figures(simulation: Simulation) -> ModelFigures:
    found = model_figures(simulation)
    assert found is not None, "asked of a model alone"
    return found
