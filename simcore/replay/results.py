"""A measured run, as every kind of run is asked (`Run`); its figures are those of `Timed`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from simcore.diagnostics import UsageError
from simcore.measured.columns import PASSES, RankTrace
from simcore.measured.places import places_of
from simcore.measured.run import MeasuredRun
from simcore.once import known, once
from simcore.replay.parameters import Replay
from simcore.replay.path_words import MeasuredPath
from simcore.replay.timed import Timed
from simcore.replay.worst import worst_places
from simcore.run.accounts import Accounts
from simcore.run.findings import Leg, Place, Spot, WhatIf
from simcore.run.track import StepShape, TimedPass, Track, in_same_words
from simcore.sources.measured import ACCOUNTS, NAMES, PROFILED, measured_calls
from simcore.trace.critical_path import path_legs, path_parts
from simcore.trace.named_work import named_work

if TYPE_CHECKING:
    from simcore.replay.figures import MeasuredFigures
    from simcore.trace.lanes import Lanes
    from simcore.trace.named_work import NamedWork


class MeasuredResults(Timed, frozen=True, dict=True):
    """A timed run, as measured or, with `scales`, replayed: screen and report take figures from here."""

    @cached_property
    def lanes(self) -> Lanes:
        # Asked for by the screen alone.
        from simcore.replay.lanes import MeasuredLanes
        from simcore.trace.lanes import Lanes

        return Lanes(self, MeasuredLanes(self))

    @property
    def path(self) -> str:
        """What was opened, as the user gave it."""
        return self.measured.path

    @property
    def stamp(self) -> str | None:
        """Which run of its directory it is, by the names of the files; None where they do not say."""
        return self.measured.stamp

    @property
    def label(self) -> str | None:
        """What `--run` names it by."""
        return self.measured.label

    @property
    def others(self) -> tuple[str, ...]:
        """The labels of the other runs of its directory."""
        return self.measured.others

    @property
    def held_ops(self) -> int:
        return self.measured.ops + self.measured.subs

    @property
    def source(self) -> MeasuredRun:
        """The run of the files."""
        return self.measured

    @property
    def other_model(self) -> str:
        """A replay does the same work."""
        return ""

    @property
    def origin(self) -> str:
        """`measured`, or `replayed`."""
        return "measured" if self.scales is None and not self.measured.replayed else "replayed"

    @property
    def doing(self) -> str:
        """What it is to make another run of it."""
        return "replaying"

    @property
    def shape(self) -> StepShape:
        """Its degrees and micro-batches, as far as the trace tells."""
        degrees = places_of(self.measured.ranks, self.measured.degrees).degrees
        return StepShape(degrees.tp, degrees.dp, degrees.pp, self.measured.microbatches or None)

    def track_at(self, place: tuple[int, int, int]) -> Track | None:
        """The track of the rank at (stage, dp, tp) of the layout; None where that rank is missing."""
        return next((track for track in self.tracks if track.place == place), None)

    def common_ns(self, track: Track) -> list[int]:
        """ns of the rank of a track by ALIKE: they sum to the step."""
        return in_same_words(self.accounts[track.number].total_ns, NAMES.alike)

    def timed_passes(self, track: Track) -> list[TimedPass]:
        """The forward and backward steps of a track's rank that say their micro-batch, by their start."""
        return timed_passes(self.run.ranks[track.number])

    def named_work(self, track: Track) -> NamedWork:
        """What the rank of a track does by name."""
        rank = track.number
        return named_work(self.trace, rank, self.accounts[rank], measured_calls(self.run.ranks[rank]))

    @cached_property
    def as_read(self) -> MeasuredResults:
        """The same run with the times of the files."""
        return self if self.scales is None else MeasuredResults(self.measured, None, self.durations)

    def rerun(self, setup: Replay, cancelled: Callable[[], bool]) -> MeasuredResults:
        """The same trace as measured, or replayed as the parameters ask.

        Raises `UsageError` for what the trace does not have, and for a replay too long for its times.
        """
        scales = setup.scales
        if scales is None:
            return MeasuredResults(self.measured, None, known(self, "durations", self.known))
        measured_results = MeasuredResults(self.measured, scales, self.durations, setup)
        try:
            # Whatever is asked of a replay needs its times.
            _ = measured_results.times
        except OverflowError:
            asked = ", ".join(flag.option for flag in setup.parameters.stated())
            raise UsageError(f"{asked}: the replay would take 2^63 ns (292 years) or more") from None
        return measured_results

    def compute_accounts(self, cancelled: Callable[[], bool]) -> list[Accounts]:
        """The accounts and the run with these times, computed now unless they are known."""
        if not self.timed:
            return []
        _ = self.run
        return self.accounts

    @property
    def measured_step_ns(self) -> int | None:
        """Of a replay the step time as measured, ns; else None."""
        return self.measured.step_time_ns if self.origin == "replayed" else None

    def account_ns(self, tracks: Iterable[Track]) -> dict[str, int]:
        """ns by account of the ranks of some tracks together, in the order of the accounts."""
        sums = dict(zip(ACCOUNTS, self.sum_ns([track.number for track in tracks]), strict=True))
        return {
            name: ns
            for name, ns in sums.items()
            if ns or self.measured.of_devices or not name.endswith(PROFILED)
        }

    @property
    def rank_map(self) -> None:
        """None: a rank of a trace is a line of its own."""

    dims: ClassVar[tuple[()]] = ()

    dimensions: ClassVar[tuple[()]] = ()

    busiest_port: ClassVar[None] = None
    links: ClassVar[None] = None
    link_heat: ClassVar[None] = None

    simai_estimate: ClassVar[None] = None

    @property
    def words(self) -> list[str]:
        """The run in sentences, the largest account first."""
        from simcore.replay.insights import insight_lines

        return insight_lines(self)

    @cached_property
    def worst(self) -> list[Place]:
        """The places worth a look: the last rank, the longest wait, bubble, operation, communication."""
        return worst_places(self)

    @cached_property
    def legs(self) -> list[Leg]:
        """The critical path, a leg for what a rank does in one operation; none of an order without times."""
        return path_legs(self.critical_path, self.path_source) if self.timed else []

    @property
    def path_groupings(self) -> tuple[str, ...]:
        """What the critical path can be summed by."""
        return MeasuredPath.groupings

    def path_parts(self, by: str) -> Iterator[tuple[str, int]]:
        """(part, ns) of each segment of the critical path. by: of `path_groupings`."""
        return path_parts(self.critical_path, self.path_source, by) if self.timed else iter(())

    def path_spot(self, index: int) -> Spot:
        """Where a segment of the critical path is seen: in the lane of its rank."""
        path = self.critical_path
        return Spot(path.track[index], path.edge[index], path.edge[index + 1])

    @property
    def imbalance(self) -> None:
        """None: experts are not known apart."""

    @property
    def model_figures(self) -> None:
        """None: a trace says no model."""

    @property
    def file_memory(self) -> tuple[()]:
        """Nothing: a trace says no parameters."""
        return ()

    @property
    def memory_unknown(self) -> str:
        return "a trace gives no parameter sizes"

    def headline(self, wide: bool) -> list[str]:
        """What the run is, in the facts of a screen's first row."""
        from simcore.replay.run_words import headline

        return headline(self, wide)

    @cached_property
    def figures(self) -> MeasuredFigures:
        """What a page states of it."""
        from simcore.replay.figures import MeasuredFigures

        return MeasuredFigures(self, lambda: self.words)

    tried = ""

    def weigh_assumptions(
        self, cancelled: Callable[[], bool] = lambda: False, all_of_them: bool = True
    ) -> None:
        """What it assumes has no other run that would tell what that costs."""

    @property
    def what_if_base_ns(self) -> int:
        """The step time that the rows of `what_if` start from, ns: of a replay with nothing changed."""
        return self.base.step_time_ns

    def what_if(
        self,
        progress: Callable[[int, int], None] = lambda done, total: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[WhatIf]:
        """Step times with one thing changed, computed once; see `what_if` there."""
        return self._what_if(progress, cancelled)

    @once
    def _what_if(self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]) -> list[WhatIf]:
        from simcore.replay.what_if import what_if

        return what_if(self, progress, cancelled)


def timed_passes(rank: RankTrace) -> list[TimedPass]:
    """The forward and backward steps of a rank that say their micro-batch, by their start."""
    ops = rank.ops
    done: dict[tuple[str, int], int] = {}
    passes = []
    for op in rank.passes:
        direction, batch = PASSES[ops.name[op]], ops.batch[op]
        if batch < 0:
            continue
        part = done.get((direction, batch), 0)
        done[direction, batch] = part + 1
        passes.append(TimedPass(direction, batch, part, ops.start[op], ops.end[op]))
    return passes
