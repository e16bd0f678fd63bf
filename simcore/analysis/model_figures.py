"""What is said of the run of a model: tokens a second, FLOPs, and memory.

Memory is that of each stage, and that of a rank as time goes on: it rises with each forward and falls with
each backward that ends.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from simcore.analysis.results import Results
from simcore.diagnostics import UsageError, printable
from simcore.model.flops import step_flops
from simcore.model.maker import Made, ModelMaker
from simcore.model.memory import StageMemory, chunk_activations, memory_limit, stage_memory
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


def throughput_facts(figures: ModelFigures) -> list[str]:
    """Tokens a second, FLOP/s and their share of the peak, a fact each."""
    found = figures.throughput
    return [
        f"{tokens_words(found.tokens_per_s)} tokens/s",
        f"{tokens_words(found.tokens_per_s_per_gpu)}/GPU",
        f"{found.model_tflops_per_gpu:.1f} TFLOP/s/GPU",
        f"MFU {100 * found.mfu:.1f} %",
        f"HFU {100 * found.hfu:.1f} %",
    ]


def tokens_words(tokens: float) -> str:
    """A number of tokens in four figures: `14.25 k`, `873.2`."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if tokens >= size:
            return f"{tokens / size:.4g}{unit}"
    return f"{tokens:.4g}"


def memory_words(figures: ModelFigures) -> str:
    """What the fullest stage needs of what a GPU has."""
    fullest = figures.fullest
    fits = "" if figures.fits else ", does not fit"
    return f"{fullest.total / 1e9:.1f} of {figures.limit / 1e9:.1f} GB on stage {fullest.stage}{fits}"


def model_words(figures: ModelFigures) -> str:
    """The model's name and size."""
    model = figures.model
    active = f", {model.active_parameters / 1e9:.2f} B active" if model.moe else ""
    return f"{printable(model.name)}, {model.parameters / 1e9:.2f} B parameters{active}"


class MemoryLane(NamedTuple):
    """Bytes held from each time, ns, to the next; the first time is 0. limit: bytes of a GPU."""

    stage: int
    time_ns: array[int]
    held: array[int]
    limit: int

    def most(self, edges: Sequence[int]) -> list[int]:
        """The most that is held in each stretch edges[i]..edges[i+1], ns."""
        found = []
        for first, last in pairwise(edges):
            low = bisect_right(self.time_ns, first) - 1
            high = bisect_right(self.time_ns, max(last - 1, first))
            found.append(max(self.held[low:high]))
        return found


def memory_lane(results: Results, number: int) -> MemoryLane | None:
    """The lane of class `number`; None unless the run is of a model in Megatron's dialect.

    Its maximum is the total of the stage: weights, gradients and optimizer states are there all the time,
    logits and what single ops need as long as any activations are.
    """
    figures, simulation = results.model_figures, results.simulation
    maker = simulation.workload.maker
    if figures is None or not isinstance(maker, ModelMaker):
        return None
    timeline = simulation.timeline
    stage = timeline.stage_of(number)
    memory: StageMemory = figures.memory[stage]
    each = chunk_activations(maker.made(simulation.parameters).training, stage)
    ops, start, end = timeline.columns(number)
    times, held = array("q", [0]), array("q", [memory.static])
    activations = count = 0
    for op, chunk, change in timeline.stage_program(number).held:
        count += change
        activations += change * each[chunk]
        # It is there when the first op of the forward begins, and gone when the last of the backward ends.
        time_ns = start[op] if change > 0 and op < len(ops) else end[op - 1] if op else 0
        times.append(max(time_ns, times[-1]))
        held.append(memory.static + (activations + memory.logits + memory.work if count else 0))
    return MemoryLane(stage, times, held, figures.limit)
