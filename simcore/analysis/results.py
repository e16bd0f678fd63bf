"""A simulated run, as every kind of run is asked (`Run`); its figures are those of `Finished`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.analysis import run_words
from simcore.analysis.finished import Finished
from simcore.analysis.stakes import SCHEDULE_ASSUMED, of_other_schedules
from simcore.analysis.worst import worst_places
from simcore.once import forget, once
from simcore.parameters import FLAGS, Rerunnable
from simcore.run.findings import Leg, Place, Spot, WhatIf
from simcore.run.track import StepShape, TimedPass, Track, in_same_words
from simcore.setup import Setup
from simcore.simulation import simulate
from simcore.sources.simulated import ACCOUNTS, IN_BARS, NAMES
from simcore.workload import Workload

if TYPE_CHECKING:
    from simcore.analysis.figures import SimulatedFigures
    from simcore.analysis.sentences import Sentence
    from simcore.analysis.simai_estimate import SimaiEstimate
    from simcore.analysis.what_if import Found
    from simcore.cluster import Dimension
    from simcore.trace.lanes import Lanes
    from simcore.trace.named_work import NamedWork


class Results(Rerunnable, Finished, frozen=True, dict=True):
    """What was simulated: screen, report and JSON take it from here and nowhere else."""

    @cached_property
    def lanes(self) -> Lanes:
        # Asked for by the screen alone.
        from simcore.analysis.lanes import SimulatedLanes
        from simcore.trace.lanes import Lanes

        return Lanes(self, SimulatedLanes(self))

    @property
    def stamp(self) -> None:
        """A workload file is one run."""

    @property
    def label(self) -> None:
        """A workload file is one run."""

    @property
    def others(self) -> tuple[str, ...]:
        return ()

    @property
    def setup(self) -> Setup:
        """What it was simulated from."""
        return self.simulation.setup

    @property
    def held_ops(self) -> int:
        return self.simulation.timeline.ops_simulated

    @property
    def source(self) -> Workload:
        """The workload with the groups and sizes of its file."""
        return self.simulation.workload.as_written

    @property
    def as_read(self) -> Results:
        return self

    def rerun(self, setup: Setup, cancelled: Callable[[], bool]) -> Results:
        return Results(simulate(setup.opened, setup.parameters, cancelled))

    @cached_property
    def ignored(self) -> dict[str, str]:
        """The parameters that were given and have no effect on the run, by field: what is said of them."""
        messages = [
            diagnostic.message for diagnostic in self.diagnostics if diagnostic.code == "parameter-ignored"
        ]
        said = {message.split()[0]: message for message in messages}
        return {flag.field: said[flag.option] for flag in FLAGS if flag.option in said}

    @property
    def other_model(self) -> str:
        return run_words.other_model(self.simulation)

    @property
    def rescaled(self) -> str:
        """That its rows were made anew for other degrees, in words; "" where they are the file's."""
        return run_words.rescaled_words(self.simulation)

    @property
    def left_out(self) -> str:
        """The lines of its file that it goes without, `lines 82-83`; "" where it has all."""
        return self.simulation.workload.left_out

    @property
    def origin(self) -> str:
        return "simulated"

    @property
    def doing(self) -> str:
        return "simulating"

    @property
    def timed(self) -> bool:
        return True

    @property
    def together(self) -> bool:
        return True

    @property
    def scales(self) -> None:
        """None: it is simulated with its parameters."""

    @property
    def partners(self) -> None:
        """None: all that takes part is there."""

    @property
    def shape(self) -> StepShape:
        """Its degrees and micro-batches."""
        layout = self.simulation.layout
        return StepShape(layout.tp, layout.dp, layout.pp, self.simulation.program.microbatches)

    def track_at(self, place: tuple[int, int, int]) -> Track:
        """The track of the rank at (stage, dp, tp) of the layout."""
        stage, dp, tp = place
        rank = self.simulation.layout.rank(tp, dp, stage)
        number = self.simulation.timeline.folding.class_of(rank)
        return next(track for track in self.tracks if track.number == number)

    def common_ns(self, track: Track) -> list[int]:
        """ns of one rank of a track by ALIKE: they sum to the step."""
        return in_same_words(self.accounts[track.number].total_ns, NAMES.alike)

    def timed_passes(self, track: Track) -> list[TimedPass]:
        """The passes of a rank of a track, in the order in which its compute stream does them."""
        return [
            TimedPass(a_pass.direction, a_pass.microbatch, a_pass.part, a_pass.start_ns, a_pass.end_ns)
            for a_pass in self.passes(track.number)
        ]

    def named_work(self, track: Track) -> NamedWork:
        """What a rank of a track does by name."""
        from simcore.trace.named_work import named_work

        return named_work(self.simulation.trace, track.number, self.accounts[track.number])

    @property
    def measured_step_ns(self) -> None:
        """None: nothing was measured."""

    def account_ns(self, tracks: Iterable[Track]) -> dict[str, int]:
        """ns by account of the ranks of some tracks together, in the order of a bar."""
        sums = [0] * len(ACCOUNTS)
        for track in tracks:
            for account, ns in enumerate(self.accounts[track.number].total_ns):
                sums[account] += ns * len(track.ranks)
        return {ACCOUNTS[account]: sums[account] for account in IN_BARS}

    @property
    def words(self) -> list[str]:
        """The run in sentences, the main cause first."""
        from simcore.analysis.sentences import told

        return told(self.sentences)

    @cached_property
    def worst(self) -> list[Place]:
        """The places worth a look."""
        return worst_places(self)

    @cached_property
    def legs(self) -> list[Leg]:
        """The critical path, a leg for what a rank does of a micro-batch."""
        from simcore.trace.critical_path import path_legs

        return path_legs(self.critical_path, self.path_source)

    @property
    def path_groupings(self) -> tuple[str, ...]:
        """What the critical path can be summed by."""
        return self.path_source.groupings

    def path_parts(self, by: str) -> Iterator[tuple[str, int]]:
        """(part, ns) of each segment of the critical path. by: of `path_groupings`."""
        from simcore.trace.critical_path import path_parts

        return path_parts(self.critical_path, self.path_source, by)

    def path_spot(self, index: int) -> Spot:
        """Where a segment of the critical path is seen."""
        path = self.critical_path
        number, (start, end) = path.track[index], path.edge[index : index + 2]
        return Spot(number, start, end, self.stream_at(number, path.span[index], start, end))

    tried = ""

    @property
    def what_if_base_ns(self) -> int:
        """The step time that the rows of `what_if` start from, ns."""
        return self.step_time_ns

    @property
    def dims(self) -> Sequence[Dimension]:
        """The dimensions of its network; none of one without."""
        simulation = self.simulation
        return simulation.cluster.dims if simulation.has_dimensions else ()

    def headline(self, wide: bool) -> list[str]:
        """What the run is, in the facts of a screen's first row."""
        from simcore.analysis.run_words import headline

        return headline(self, wide)

    @cached_property
    def figures(self) -> SimulatedFigures:
        """What a page states of it."""
        # Imported here: the screen opens without.
        from simcore.analysis.figures import SimulatedFigures

        return SimulatedFigures(self, lambda: self.sentences)

    def what_if(
        self,
        progress: Callable[[int, int], None] = lambda done, total: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[WhatIf]:
        """Step times with one thing cheaper or another schedule, computed once; see `what_if` there."""
        return self._what_if(progress, cancelled)

    @once
    def _what_if(self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]) -> list[WhatIf]:
        from simcore.analysis.what_if import what_if

        # Who leaves a screen and comes back does not wait for the same runs again: 1.2 s of seed 002.
        known = self._found_so_far()
        path = self.compute_critical_path(cancelled)
        waits, on_path = self.compute_dependencies(cancelled), self.path_source.stage_ops(path)
        found = what_if(self.folded(), waits, on_path, progress, cancelled, known)
        self.weigh_assumptions(cancelled)
        self._weigh_schedule(found)
        self._found_so_far.forget()
        return found

    @once
    def _found_so_far(self) -> Found:
        """What a search for changes that was stopped has found."""
        from simcore.analysis.what_if import Found

        return Found()

    def weigh_assumptions(
        self, cancelled: Callable[[], bool] = lambda: False, all_of_them: bool = True
    ) -> None:
        """Find what assumptions cost, once: notes and sentences say it from then on."""
        known = self.other_layout_ns, self.backward_sent_ns
        super().weigh_assumptions(cancelled, all_of_them)
        if (self.other_layout_ns, self.backward_sent_ns) != known:
            forget(self, "sentences")
            _ = self.sentences

    def _weigh_schedule(self, found: Sequence[WhatIf]) -> None:
        """Say of a schedule that nobody gave what the best other one of those that were tried is worth."""
        if any(one.code == SCHEDULE_ASSUMED for one in self.diagnostics):
            stake = of_other_schedules(self.simulation, found, self.variants)
            if stake is not None:
                self._take_stakes(self._stakes | {SCHEDULE_ASSUMED: stake})

    @cached_property
    def sentences(self) -> list[Sentence]:
        """The run in words, the main cause first."""
        from simcore.analysis.sentences import sentences_of

        return sentences_of(self)

    @cached_property
    def simai_estimate(self) -> SimaiEstimate | None:
        """SimAI's own estimate of the step; None unless the network is one of SimAI's."""
        if self.simulation.has_dimensions:
            return None
        # Imported here: the common run has no use for it.
        from simcore.analysis.simai_estimate import simai_estimate

        return simai_estimate(self.simulation)

    def compute_layer_path(self, cancelled: Callable[[], bool]) -> Results:
        """Both of them computed unless they are known; `Cancelled` when that becomes true. Gives the run."""
        self.compute_critical_path(cancelled)
        self.compute_slacks(cancelled)
        _ = self.rows.critical_ns, self.rows.slack_ns
        return self
