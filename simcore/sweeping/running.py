"""A running sweep: candidates are checked, left out or run, and each becomes a point and a line.

With a rule the first points that fit are run at once, and then points in waves: the candidates, ordered by
their lower bounds, in groups of a fixed size. Before each wave, points that can no longer be among the best
are left out: that depends on earlier waves alone, so neither on the engine nor on where a sweep was
interrupted. A part (`Shard`) knows fewer results, and so runs what the whole runs and some more;
`merge_shards` leaves that out again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from simcore.diagnostics import Cancelled
from simcore.records import NamedTuple, Struct, replace
from simcore.sweeping.engines import ProcessEngine, SweepEngine, default_jobs, engine_of
from simcore.sweeping.evaluating import CandidateCheck, Evaluator
from simcore.sweeping.layouts import list_layouts
from simcore.sweeping.pareto_front import ParetoFront, Rule, measures_of, rule_of
from simcore.sweeping.point import Point, bound_words
from simcore.sweeping.prices import with_cost
from simcore.sweeping.results_file import ResultsFile

# Points of a wave: enough for about ten processes, and of thousands few are run in vain.
WAVE = 128
# Points that are run at once, before all candidates are checked, which takes 30 s for 97 000 layouts: the
# first that fit, whatever their lower bounds.
SCOUTS = 4


class Shard(Struct, frozen=True):
    """Part `index` of `count`, from 1: every count-th point."""

    index: int = 1
    count: int = 1

    def includes(self, index: int) -> bool:
        """Returns whether a point is in this part."""
        return index % self.count == self.index - 1


class SweepOptions(NamedTuple):
    """The options of a sweep."""

    evaluator: Evaluator
    """Checks and runs its points."""
    title: str = ""
    """The title of its page."""
    rule: Rule = Rule()
    """What the sweep looks for."""
    prunes: bool = False
    """Whether points are left out by the rule."""
    jobs: int | None = None
    """How many processes run points; None: the default."""
    engine: str | None = None
    """The engine of other machines; None: processes here."""
    shard: Shard = Shard()
    """The part of the points that is run."""
    output: str | None = None
    """The file of its lines; None: none."""
    resume: bool = False
    """Whether that file is continued."""
    seconds: float | None = None
    """How long it may take; None: without limit."""
    prices: Mapping[str, float] | None = None
    """$ of a GPU for an hour, by its name; None: none are known."""


class SweepProgress(Struct):
    """The progress of a sweep."""

    candidates: int | None = None
    """How many candidates there are; with layouts known once they are counted."""
    total: int | None = None
    """How many points are to be run; None until it is known."""
    excluded: int = 0
    """How many candidates a --where excludes."""
    finished: int = 0
    """How many points there are."""
    simulated: int = 0
    """How many of them this process simulated."""
    checked: int = 0
    """How many candidates were checked."""
    least: float | None = None
    """A lower bound of the time of the remaining points (`Measures.time`); None where none is known."""


class Sweep:
    """One sweep.

    rule: the rule by which points are left out; None: every point is run. is_stopped: called at each
    candidate; `points` raises `Cancelled` when it is true.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        engine: SweepEngine,
        rule: Rule | None = None,
        file: ResultsFile | None = None,
        shard: Shard = Shard(),  # noqa: B008 - frozen, and the whole is the plain case
        wave: int = WAVE,
        is_stopped: Callable[[], bool] = lambda: False,
        prices: Mapping[str, float] | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.engine = engine
        self.rule = rule
        self.file = file
        self.shard = shard
        self.wave = wave
        self.is_stopped = is_stopped
        self.prices = prices or {}
        self.progress = SweepProgress()
        self._earlier_points = (
            {point.index: point for point in file.earlier_points} if file is not None else {}
        )

    def close(self) -> None:
        """Ends what runs its points, and its file."""
        self.engine.close()
        if self.file is not None:
            self.file.close()

    def points(self) -> Iterator[Point]:
        """Yields every point as it finishes, then already in the file. Points that the file had come, too."""
        for point in self._run_all() if self.rule is None else self._run_pruned(self.rule):
            self.progress.finished += 1
            # Those of a file may have other prices.
            yield with_cost(point, self.prices)

    def _run_all(self) -> Iterator[Point]:
        """Yields every possible point, simulated."""
        space = self.evaluator.definition.space
        if not space.layouts:
            # What a --where excludes is subtracted as it is found.
            self.progress.total = len(range(self.shard.index - 1, len(space), self.shard.count))
        impossible: list[Point] = []

        def possible() -> Iterator[CandidateCheck]:
            for check in self._check_candidates():
                if check.why:
                    impossible.append(self._record(self.evaluator.evaluate(check)))
                else:
                    yield check

        yield from self._run_checked(possible(), impossible)

    def _run_pruned(self, rule: Rule) -> Iterator[Point]:
        """Yields every point; those that need not be run have the reason."""
        waiting: list[tuple[float, int, CandidateCheck]] = []
        front, scouts = ParetoFront(rule), 0
        for check in self._check_candidates(all_shards=True):
            is_own = self.shard.includes(check.candidate.index)
            if check.why or not check.fits:
                if is_own:
                    make = self.evaluator.evaluate if check.why else self.evaluator.oversized_point
                    yield self._record(make(check))
                continue
            check = self.evaluator.with_bound(check)
            if scouts < SCOUTS:
                scouts += 1
                if is_own:
                    point = self._run_scout(check)
                    front.add(point)
                    yield point
                continue
            waiting.append((least_time(check.at_least_ns, check.work), check.candidate.index, check))
        waiting.sort(key=lambda entry: entry[:2])
        self.progress.total = self.progress.finished + sum(
            self.shard.includes(index) for _, index, _ in waiting
        )
        for first in range(0, len(waiting), self.wave):
            self.progress.least = waiting[first][0]
            to_run, excluded = [], []
            for _, index, check in waiting[first : first + self.wave]:
                if not self.shard.includes(index):
                    continue
                least = measures_of(check.at_least_ns or 0, check.work, check.memory, check.gpus)
                if front.excludes(check.layout, least):
                    excluded.append(self._record(self.evaluator.left_out_point(check)))
                else:
                    to_run.append(check)
            yield from excluded
            ended = []
            for point in self._run_checked(to_run, []):
                ended.append(point)
                yield point
            for point in ended:
                front.add(point)

    def _run_scout(self, check: CandidateCheck) -> Point:
        """Returns the point of one of the first that fit, run by this process."""
        point = self._earlier_points.get(check.candidate.index)
        if point is None:
            point = self.evaluator.evaluate(check)
            self.progress.simulated += 1
        return self._record(point)

    def _run_checked(self, checks: Iterable[CandidateCheck], pending: list[Point]) -> Iterator[Point]:
        """Yields the points of these checks: those of the file at once, the others as the engine finishes
        them.

        pending: further points, yielded as soon as there are any.
        """

        def missing() -> Iterator[CandidateCheck]:
            for point in checks:
                if point.candidate.index in self._earlier_points:
                    pending.append(self._earlier_points[point.candidate.index])
                else:
                    yield point

        for point in self.engine.points(self.evaluator, missing()):
            self.progress.simulated += 1
            yield self._record(point)
            while pending:
                yield pending.pop(0)
            if self.is_stopped():
                raise Cancelled
        yield from pending

    def _record(self, point: Point) -> Point:
        """Returns a point after writing it if the file does not have it."""
        point = with_cost(point, self.prices)
        if self.file is not None and point.index not in self._earlier_points:
            self.file.append(point)
        return point

    def _check_candidates(self, all_shards: bool = False) -> Iterator[CandidateCheck]:
        """Yields the candidates that no --where excludes: of this part, or of all parts."""
        space = self.evaluator.definition.space
        # All parts are in the order of indices: by that `merge_shards` knows which were the first.
        candidates = space.combinations() if all_shards else space.grouped()
        self.progress.candidates = len(space)
        if space.layouts:
            # Counting takes 2 us for each, checking 100.
            layouts = list_layouts(self.evaluator.workload, space)
            self.progress.candidates = sum(1 for _ in layouts)
            candidates = list_layouts(self.evaluator.workload, space)
        for candidate in candidates:
            if not all_shards and not self.shard.includes(candidate.index):
                continue
            if self.is_stopped():
                raise Cancelled
            self.progress.checked += 1
            check = self.evaluator.check(candidate)
            if self.evaluator.matches_conditions(check):
                yield check
                continue
            if self.shard.includes(candidate.index):
                self.progress.excluded += 1
                if not all_shards and self.progress.total is not None:
                    self.progress.total -= 1


def open_sweep(
    options: SweepOptions, is_stopped: Callable[[], bool] = lambda: False, own_process: bool = False
) -> Sweep:
    """Returns a sweep that is ready to run, its file open, its time counted from now; `close` ends it.

    own_process: whether a single job, too, has a process of its own. Raises `UsageError` and `InputError` for
    a file that cannot be written or is of another sweep, and for machines that are missing.
    """
    until = time.monotonic() + (options.seconds or math.inf)

    def is_over() -> bool:
        return time.monotonic() > until or is_stopped()

    rule = options.rule if options.prunes else None
    file = None
    if options.output is not None:
        file = ResultsFile(options.output, options.evaluator.definition.sweep, options.resume)
    try:
        engine = _choose_engine(options, is_over, own_process)
    except BaseException:
        if file is not None:
            file.close()
        raise
    return Sweep(
        options.evaluator, engine, rule, file, options.shard, is_stopped=is_over, prices=options.prices
    )


def _choose_engine(options: SweepOptions, is_over: Callable[[], bool], own_process: bool) -> SweepEngine:
    if options.engine is not None:
        # Imported here: most sweeps run on this machine.
        from simcore.sweeping.clusters import cluster_engine

        return cluster_engine(options.engine)
    jobs = options.jobs or default_jobs()
    return ProcessEngine(jobs, is_over) if own_process else engine_of(jobs, is_over)


def merge_shards(points: Iterable[Point], wave: int = WAVE) -> list[Point]:
    """Returns the points of all parts of a sweep as one process would have written them, in the order of
    indices.

    What a part ran because it did not know the results of the others is left out again.
    """
    by_index = {point.index: point for point in points}
    rule = next((point.rule for point in by_index.values()), "")
    if rule:
        bounded = sorted(
            (least_time(point.at_least_ns, point.work), index)
            for index, point in by_index.items()
            if point.at_least_ns is not None
        )
        front = ParetoFront(rule_of(rule))
        scouts = sorted(index for _, index in bounded)[:SCOUTS]
        for index in scouts:
            front.add(by_index[index])
        bounded = [entry for entry in bounded if entry[1] not in scouts]
        for first in range(0, len(bounded), wave):
            simulated = []
            for _, index in bounded[first : first + wave]:
                point = by_index[index]
                least = measures_of(point.at_least_ns or 0, point.work, point.memory_peak_bytes, point.gpus)
                if front.excludes(point.layout, least):
                    why = bound_words(point.at_least_ns or 0)
                    nothing = {"step_time_ns": None, "tokens_per_s": None, "cost": None, "skipped": why}
                    by_index[index] = replace(point, **nothing)
                else:
                    simulated.append(point)
            for point in simulated:
                front.add(point)
    return [by_index[index] for index in sorted(by_index)]


def least_time(at_least_ns: int | None, work: int | None) -> float:
    """Returns the least ns of a token, by which waves are ordered."""
    return measures_of(at_least_ns or 0, work, None, None).time
