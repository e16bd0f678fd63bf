"""Execution traces that have run, as every kind of run is asked; the figures are those of `RanTraces`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.chakra.nodes import COMP
from simcore.diagnostics import Cancelled, Diagnostic, InputError
from simcore.executing.executed import Execution
from simcore.executing.path_words import ExecutedPath
from simcore.executing.ran import RanTraces
from simcore.executing.retimed import run_at_scales
from simcore.executing.run import execute
from simcore.executing.trace import ACCOUNTS, NAMES
from simcore.executing.untaken import untaken
from simcore.kernel_names import shown_name
from simcore.names import ASTRA_SIM_2
from simcore.once import once
from simcore.ranks import RankSet
from simcore.run.findings import Leg, Place, Spot, WhatIf
from simcore.run.track import StepShape, TimedPass, Track, in_same_words
from simcore.trace.critical_path import path_legs, path_parts
from simcore.units import duration, percent, plural

if TYPE_CHECKING:
    from simcore.chakra.opening import ExecutionSet
    from simcore.cluster import Dimension
    from simcore.executing.figures import TraceFigures
    from simcore.executing.what_if import TriedChanges
    from simcore.trace.lanes import Lanes
    from simcore.trace.named_work import NamedWork

# Parameters of collectives and messages, which may change nothing.
COLLECTIVE_FIELDS = (
    "algorithm", "splits", "active_chunks", "endpoint_delay", "local_mem_bw", "collective_optimization",
    "injection_scale", "rendezvous_protocol", "num_queues_per_dim",
)  # fmt: skip


class TraceResults(RanTraces, frozen=True, dict=True):
    """What execution traces gave: screen, report and JSON take it from here and nowhere else."""

    @property
    def other_model(self) -> str:
        """Nodes are what they are."""
        return ""

    @property
    def imbalance(self) -> None:
        """None: experts are not known apart."""

    @property
    def model_figures(self) -> None:
        """Of nodes no model is known."""

    @property
    def file_memory(self) -> tuple[()]:
        """Of nodes no gradients are known."""
        return ()

    @property
    def memory_unknown(self) -> str:
        return "execution traces give no parameter sizes"

    @property
    def steps(self) -> int:
        """How many steps its times are of together: one."""
        return 1

    @property
    def path(self) -> str:
        """What was opened, as the user gave it."""
        return self.executed.traces.path

    @cached_property
    def lanes(self) -> Lanes:
        """Its ranks and their streams as a timeline shows them."""
        from simcore.executing.lanes import TraceLanes
        from simcore.trace.lanes import Lanes

        return Lanes(self, TraceLanes(self))

    @cached_property
    def figures(self) -> TraceFigures:
        """What a page states of it."""
        from simcore.executing.figures import TraceFigures

        return TraceFigures(self, lambda: self.words)

    def headline(self, wide: bool) -> list[str]:
        """Ranks, how they were run and on which network."""
        ranks = plural(len(self.ranks), "rank")
        rules = ASTRA_SIM_2 if self.is_astra else "wltui's rules"
        if not wide:
            return [ranks, rules]
        return [f"{ranks}, {plural(self.held_ops, 'node')}", rules, self.executed.setup.parameters.network]

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found in reading and running, what lies beside it, and which parameters have no effect."""
        return (*untaken(self.setup), *self.executed.diagnostics, *self._ignored())

    def _ignored(self) -> list[Diagnostic]:
        """A warning for each parameter of collectives and messages that was given and has no effect."""
        if not any(flag.field in COLLECTIVE_FIELDS for flag in self.parameters.stated()):
            return []
        from simcore.executing.what_if import ignored

        return ignored(self, self._again, COLLECTIVE_FIELDS)

    @property
    def source(self) -> ExecutionSet:
        """The traces that were read."""
        return self.executed.traces

    stamp = None

    label = None

    others: tuple[str, ...] = ()

    origin = "executed"

    doing = "simulating"

    timed = True

    together = True

    scales = None

    partners = None

    measured_step_ns = None

    microbatches = 0
    microbatches_alike = True

    # How much work a set of traces is nobody knows.
    work = None
    held_microbatches = ()

    rank_map = None

    gradients = None

    dimensions = ()

    busiest_port = None

    simai_estimate = None

    @property
    def as_read(self) -> TraceResults:
        """It is itself."""
        return self

    @property
    def shape(self) -> StepShape:
        """Degrees are not in execution traces."""
        return StepShape(None, None, None, None)

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """The dimensions of the network."""
        return self.executed.cluster.dims

    def _again(self, setup: Execution) -> TraceResults:
        return self.rerun(setup, lambda: False)

    def rerun(self, setup: Execution, cancelled: Callable[[], bool]) -> TraceResults:
        """The same traces with other parameters. Raises `UsageError`, InputError, `Cancelled`."""
        if cancelled():
            raise Cancelled
        return executed_results(setup, cancelled)

    def track_at(self, place: tuple[int, int, int]) -> Track | None:
        """None: the layout is not known."""
        return None

    def common_ns(self, track: Track) -> list[int]:
        """ns of the rank of a track by ALIKE: they sum to the step."""
        return in_same_words(self.accounts[track.number].total_ns, NAMES.alike)

    def account_ns(self, tracks: Iterable[Track]) -> dict[str, int]:
        """ns by account of the ranks of some tracks together."""
        return dict(zip(ACCOUNTS, self.sum_ns([track.number for track in tracks]), strict=True))

    def timed_passes(self, track: Track) -> list[TimedPass]:
        """Passes of micro-batches are not in execution traces."""
        return []

    def named_work(self, track: Track) -> NamedWork:
        """What the rank of a track does by name."""
        from simcore.trace.named_work import named_work

        return named_work(self.trace, self.executed.units.of[track.number], self.accounts[track.number])

    @property
    def path_groupings(self) -> tuple[str, ...]:
        """What the critical path can be summed by."""
        return ExecutedPath.groupings

    @cached_property
    def legs(self) -> list[Leg]:
        """The critical path, a leg for what a rank does in one go."""
        return path_legs(self.critical_path, self.path_source)

    def path_parts(self, by: str) -> Iterator[tuple[str, int]]:
        """(part, ns) of each segment of the critical path."""
        return path_parts(self.critical_path, self.path_source, by)

    def path_spot(self, index: int) -> Spot:
        """Where a segment of the critical path is seen."""
        path = self.critical_path
        return Spot(path.rank[index], path.edge[index], path.edge[index + 1])

    @cached_property
    def worst(self) -> list[Place]:
        """The last rank, the longest wait, the longest node of communication and of compute."""
        places: list[Place] = []
        executed = self.executed
        rank, end, _ = max(executed.ranks, key=lambda item: (item[1], -item[0]))
        latest = RankSet.of(number for number, ns, _ in executed.ranks if ns == end)
        words = f"{duration(end)}, last to end: {latest.of_world(len(executed.ranks))}"
        places.append(Place("end", words, rank, 0, max(end, 1), end))
        best: dict[str, tuple[int, int, int]] = {}
        for who in executed.units.first:
            start, begin, ends = executed.start[who], executed.begin[who], executed.end[who]
            for place in range(len(ends)):
                if start[place] < 0 or ends[place] < 0:
                    continue
                kind = self.type_of(who, place)
                word = "compute" if kind == COMP else "comm"
                for what, ns in ((word, ends[place] - begin[place]), ("wait", begin[place] - start[place])):
                    if ns > best.get(what, (0, 0, 0))[0]:
                        best[what] = (ns, who, place)
        for what, (ns, who, place) in sorted(best.items(), key=lambda item: -item[1][0]):
            first = executed.start[who][place] if what == "wait" else executed.begin[who][place]
            name = shown_name(self.name_of(who, place))
            text = f"{duration(ns)} ({percent(ns, self.step_time_ns)} %) of rank {who}: {name}"
            places.append(Place(what, text, who, first, first + ns, ns, place))
        return places

    @property
    def words(self) -> list[str]:
        """The run in sentences: which nodes, groups and links hold most of the step."""
        from simcore.executing.insights import sentences

        return sentences(self)

    def weigh_assumptions(
        self, cancelled: Callable[[], bool] = lambda: False, all_of_them: bool = True
    ) -> None:
        """What it assumes has no other run that would tell what that costs."""

    @property
    def what_if_base_ns(self) -> int:
        """The step time that the rows of `what_if` start from, ns."""
        return self.step_time_ns

    def what_if(
        self,
        progress: Callable[[int, int], None] = lambda done, total: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[WhatIf]:
        """Step times with one thing changed, computed once."""
        return self._found(progress, cancelled).rows

    @once
    def _found(self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]) -> TriedChanges:
        # Imported here: only who asks runs the set again.
        from simcore.executing.what_if import what_if

        return what_if(self, self._again, progress, cancelled)

    @property
    def tried(self) -> str:
        """What is said of the changes that `what_if` tried, "" before it is there."""
        found = self._found.known
        return "" if found is None else found.said


def executed_results(setup: Execution, cancelled: Callable[[], bool] = lambda: False) -> TraceResults:
    """A set that has run. Raises `UsageError`, InputError, `Cancelled`."""
    try:
        plain = TraceResults(execute(setup.changed(time_scale=())))
    except InputError as error:
        # What is wrong may be that they were not taken.
        raise InputError(*error.diagnostics, *untaken(setup)) from None
    return TraceResults(run_at_scales(plain, setup, cancelled)) if setup.parameters.time_scale else plain
