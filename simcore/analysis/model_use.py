"""The model of a simulated run: see `ModelUse`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.analysis.file_memory import estimate_file_memory
from simcore.simulation import Simulation
from simcore.trace.contexts import FileMemory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simcore.trace.contexts import Imbalance, MemoryLane, MemoryPeak, ModelFigures


class SimulatedModel:
    """The figures of the model that a run trains, each computed on first use.

    step_ns: returns the step of the run with other values of some parameters, None where that would take
    long.
    """

    memory_peaks: Sequence[MemoryPeak] = ()
    product_use = None

    def __init__(self, simulation: Simulation, step_ns: Callable[..., int | None]) -> None:
        self._simulation, self._step_ns = simulation, step_ns

    @cached_property
    def model_figures(self) -> ModelFigures | None:
        """Throughput and memory of the run of a model, or of AICB's file on a GPU; None of other files."""
        if self._simulation.workload.maker is None and self._simulation.parameters.gpu is None:
            return None
        # Imported here: most files have no such figures.
        from simcore.analysis.model_figures import make_model_figures

        return make_model_figures(self._simulation)

    @cached_property
    def imbalance(self) -> Imbalance | None:
        """What uneven loads of experts cost; None where there are none."""
        if self._simulation.parameters.expert_imbalance is None:
            return None
        from simcore.analysis.model_figures import find_imbalance

        return find_imbalance(self._simulation, self._step_ns)

    @cached_property
    def file_memory(self) -> tuple[FileMemory, ...]:
        """The memory by stage that follows from the rows of a file; empty where it does not."""
        return estimate_file_memory(self._simulation)

    @property
    def memory_unknown(self) -> str:
        """Why the memory of a run is not known: its rows do not give the size of their gradients."""
        is_model = self._simulation.workload.maker is not None and bool(self._simulation.workload.stages)
        return "" if is_model or self.file_memory else "the file gives no parameter sizes"

    def memory_lane(self, track_id: int) -> MemoryLane | None:
        """Returns the memory of a rank of a class over the step; None unless it is a model in Megatron's
        dialect.
        """
        from simcore.analysis.model_figures import make_memory_lane

        return make_memory_lane(self.model_figures, self._simulation, track_id)

    @property
    def other_model(self) -> str:
        """How it differs from the model of its file: rows are not rescaled."""
        return describe_model_change(self._simulation)

    @property
    def rescaled(self) -> str:
        """That its rows were made anew for other degrees."""
        return format_rescaling(self._simulation)


def describe_model_change(simulation: Simulation) -> str:
    """Returns how a run with other degrees than its file's differs from the file's model: rows are not
    rescaled.

    "" where tp, ep and pp are the file's, or it states none.
    """
    header, layout = simulation.workload.header, simulation.layout
    changes = []
    if header.tp not in (None, layout.tp):
        changes.append(f"tp {layout.tp} with the compute times and message sizes of tp {header.tp}")
    if header.ep not in (None, layout.ep):
        changes.append(f"ep {layout.ep} with the experts of ep {header.ep}")
    if header.pp is not None and header.pp != layout.pp:
        layers = "half" if header.pp == 2 * layout.pp else f"{layout.pp / header.pp:.3g} times"
        changes.append(f"pp {layout.pp} with the stages of pp {header.pp}, {layers} the layers")
    return f"rows are not rescaled: {'; '.join(changes)}" if changes else ""


def format_rescaling(simulation: Simulation) -> str:
    """Returns `rows are rescaled from tp 8 to tp 4`; "" where they are the file's."""
    words = simulation.workload.rescaled
    return f"rows are rescaled {words}" if words else ""
