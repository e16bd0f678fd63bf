"""A measured run with the interface of every run; its figures are in `ReplayedRun`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.cached_methods import cached_method, get_cached
from simcore.diagnostics import UsageError
from simcore.measured.run import MeasuredRun
from simcore.parameters import Parameters
from simcore.replay.parameters import Replay
from simcore.replay.replayed_run import ReplayedRun
from simcore.trace.accounts import Accounts
from simcore.trace.findings import WhatIf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simcore.measured.columns import RankTrace
    from simcore.measured.step_meetings import AlignedSteps
    from simcore.replay.step_findings import StepFindings
    from simcore.replay.step_table import StepTable
    from simcore.trace.contexts import FileMemory, MemoryLane, MemoryPeak, ProductUse
    from simcore.trace.lanes import Lanes
    from simcore.words.measured import MeasuredFigures


class MeasuredMemory:
    """What a recording tells of memory, which stands in place of a model: see `ModelUse`."""

    model_figures: None = None
    imbalance: None = None
    file_memory: Sequence[FileMemory] = ()
    other_model = rescaled = ""

    def __init__(
        self, traces: Sequence[RankTrace], find_use: Callable[[], ProductUse | None] = lambda: None
    ) -> None:
        """find_use: returns how well the step uses its GPUs."""
        self._traces, self._find_use = traces, find_use

    @cached_property
    def product_use(self) -> ProductUse | None:
        return self._find_use()

    @cached_property
    def memory_peaks(self) -> tuple[MemoryPeak, ...]:
        if not any(trace.device is not None and len(trace.device.memory) for trace in self._traces):
            return ()
        # Imported here: few recordings have it.
        from simcore.replay.device_memory import find_memory_peak

        peaks = map(find_memory_peak, self._traces)
        return tuple(peak for peak in peaks if peak is not None)

    @property
    def memory_unknown(self) -> str:
        return "" if self.memory_peaks else "a trace gives no parameter sizes"

    def memory_lane(self, track_id: int) -> MemoryLane | None:
        if not self.memory_peaks:
            return None
        from simcore.replay.device_memory import make_measured_lane

        return make_measured_lane(self._traces[track_id])


class RecordedRun(ReplayedRun):
    """A run whose times were measured, as measured or, with `scales`, replayed."""

    @cached_property
    def model(self) -> MeasuredMemory:
        # Nothing tells when a replay would allocate.
        return MeasuredMemory(self.measured.ranks if self.scales is None else (), self._find_product_use)

    def _find_product_use(self) -> ProductUse | None:
        # Imported here: most runs are not asked for it.
        from simcore.replay.product_use import MeasuredStep, find_product_use

        step = self.parameters.part(MeasuredStep)
        return find_product_use(self.measured, step, self.step_time_ns) if step.has_use else None

    @property
    def recording(self) -> RecordedRun:
        return self

    @cached_property
    def step_table(self) -> StepTable | None:
        """All steps of its files as measured, whichever it shows; None where there is one alone."""
        if not self.has_several_steps:
            return None
        # Imported here: only a run of several steps needs it.
        from simcore.replay.step_table import StepTable

        ranks = [rank.rank for rank in self.measured.ranks]
        peers = {rank: [ranks[peer] for peer in some] for rank, some in zip(ranks, self.peers, strict=True)}
        return StepTable(self._align_steps(), peers, self.measured.steps_on_one_clock)

    def _align_steps(self) -> AlignedSteps:
        # Imported here: only a run of several steps needs it.
        from simcore.kineto.step_calls import align_steps
        from simcore.measured.step_meetings import AlignedSteps, start_each

        run = self.measured
        if run.recorded is not None:
            return align_steps(run.rank_steps, run.unit, run.degrees.world, run.steps_on_one_clock)
        return AlignedSteps(run.rank_steps, ()) if run.concurrent else start_each(run.rank_steps)

    @property
    def has_several_steps(self) -> bool:
        return max((len(one.columns) for one in self.measured.rank_steps), default=0) > 1

    @property
    def step_findings(self) -> StepFindings | None:
        """What is found in the steps of a run of all of them as measured; None of other runs."""
        return self.find_in_steps(lambda: False, lambda _, __: None)

    @cached_method
    def find_in_steps(
        self, cancelled: Callable[[], bool], progress: Callable[[int, int], None]
    ) -> StepFindings | None:
        """Returns `step_findings`, computed now unless they are known. progress: takes how many of how many
        steps are replayed. Raises `Cancelled`.
        """
        table = self.step_table
        if table is None or self.scales is not None or not self.has_all_steps:
            return None
        from simcore.replay.step_findings import find_in_steps

        return find_in_steps(self, table, cancelled, progress)

    @property
    def has_all_steps(self) -> bool:
        """Whether it has the operations of several steps."""
        if self.measured.recorded is None:
            return self.has_several_steps and self.measured.iteration is None
        return any(rank.step is not None for rank in self.measured.ranks)

    @cached_property
    def lanes(self) -> Lanes:
        # Imported here: only the screen needs it.
        from simcore.replay.lanes import MeasuredLanes

        return MeasuredLanes(self)

    @cached_property
    def as_read(self) -> RecordedRun:
        """The same run with the times of the files."""
        return self if self.scales is None else RecordedRun(self.measured, None, self.durations)

    def rerun(self, setup: Replay, cancelled: Callable[[], bool]) -> RecordedRun:
        """Returns the same trace as measured, or replayed with the parameters.

        Raises `UsageError` for parameters that the trace does not have, and for a replay too long for its
        times.
        """
        scales = setup.scales
        if scales is None:
            durations = get_cached(self, "durations", self._durations)
            return RecordedRun(
                self.measured, None, durations, setup if setup.parameters.explicit_names else None
            )
        measured_results = RecordedRun(self.measured, scales, self.durations, setup)
        try:
            # Every figure of a replay needs its times.
            _ = measured_results.times
        except OverflowError:
            flags = ", ".join(flag.option for flag in setup.parameters.explicit_flags())
            raise UsageError(f"{flags}: the replay would take 2^63 ns (292 years) or more") from None
        return measured_results

    def _accounts(self, cancelled: Callable[[], bool]) -> list[Accounts]:
        # The timeline draws the run with these times, so that they are computed first.
        _ = self.run
        return super()._accounts(cancelled)

    @cached_property
    def figures(self) -> MeasuredFigures:
        from simcore.words.measured import MeasuredFigures

        return MeasuredFigures(self)

    def _find_what_if(
        self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> list[WhatIf]:
        from simcore.replay.what_if import what_if

        return what_if(self, progress, cancelled)


def run_recording(run: MeasuredRun, parameters: Parameters) -> RecordedRun:
    """Returns a trace as it was measured, or replayed if a parameter requires it. Raises `UsageError`."""
    return RecordedRun(run).with_parameters(parameters)
