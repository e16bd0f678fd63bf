"""A sweep as it runs: candidates are looked at, left out or run, and each becomes a point and a line.

With a rule the first points that fit are run at once, and then points in waves: the candidates, ordered by
what they take at least, in stretches of a fixed size. Before each wave, points that cannot be among the best
any more are left out: that goes by the waves before alone, so it depends neither on the engine nor on where
a sweep was interrupted. A part (`Shard`) knows fewer results, and so runs what the whole runs and some more;
`as_one` leaves that out again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator

from simcore.diagnostics import Cancelled
from simcore.records import NamedTuple, Struct, replace
from simcore.sweeping.engines import ProcessEngine, SweepEngine, default_jobs, engine_of
from simcore.sweeping.evaluating import Evaluator, Looked
from simcore.sweeping.front import Front, Rule, measures_of, rule_of
from simcore.sweeping.layouts import layouts_of
from simcore.sweeping.point import Point, bound_words
from simcore.sweeping.results_file import ResultsFile

# Points of a wave: two of them keep some ten processes busy, and of thousands little is run in vain.
WAVE = 128
# Points that are run at once, before all candidates were looked at, which takes 30 s of 97 000 layouts: the
# first that fit, whatever they take at least.
SCOUTS = 4


class Shard(Struct, frozen=True):
    """Part `index` of `count`, from 1: every count-th point."""

    index: int = 1
    count: int = 1

    def has(self, number: int) -> bool:
        """Whether a point is of this part."""
        return number % self.count == self.index - 1


class AskedSweep(NamedTuple):
    """A sweep that is asked for. title: of its page. rule: what is looked for; prunes: whether points are
    left out by it. jobs: None for as many as there should be. engine: of other machines, None for processes
    here. output: where its lines go, None for nowhere; resume: whether it goes on there. seconds: how long it
    may take, None for as long as it does.
    """

    evaluator: Evaluator
    title: str = ""
    rule: Rule = Rule()
    prunes: bool = False
    jobs: int | None = None
    engine: str | None = None
    shard: Shard = Shard()
    output: str | None = None
    resume: bool = False
    seconds: float | None = None


class SweepProgress(Struct):
    """How far a sweep is. candidates: how many there are, of layouts as soon as one looks at them; total:
    points that are to be run, as far as that is known; excluded: those that no --where means; done: points
    that are there; ran: those of them that were simulated now; looked: candidates whose memory was looked at.
    least: what the time of those that are still to come is at least (`Measures.time`), where that is known.
    """

    candidates: int | None = None
    total: int | None = None
    excluded: int = 0
    done: int = 0
    ran: int = 0
    looked: int = 0
    least: float | None = None


class Sweep:
    """One sweep. rule: by what points are left out, None where every one is run. is_stopped: asked at each
    candidate; `points` raises `Cancelled` when it holds.
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
    ) -> None:
        self.evaluator = evaluator
        self.engine = engine
        self.rule = rule
        self.file = file
        self.shard = shard
        self.wave = wave
        self.is_stopped = is_stopped
        self.progress = SweepProgress()
        self._there = {point.number: point for point in file.there} if file is not None else {}

    def close(self) -> None:
        """Ends what runs its points, and its file."""
        self.engine.close()
        if self.file is not None:
            self.file.close()

    def points(self) -> Iterator[Point]:
        """Every point as it comes; each is in the file by then. Those that the file had come too."""
        for point in self._exhaustive() if self.rule is None else self._pruned(self.rule):
            self.progress.done += 1
            yield point

    def _exhaustive(self) -> Iterator[Point]:
        """Every point that can be, simulated."""
        space = self.evaluator.definition.space
        if not space.layouts:
            # As many as --where leaves; what it takes away is taken off as it comes.
            self.progress.total = len(range(self.shard.index - 1, len(space), self.shard.count))
        left: list[Point] = []

        def possible() -> Iterator[Looked]:
            for looked in self._looked():
                if looked.why:
                    left.append(self._kept(self.evaluator.point(looked)))
                else:
                    yield looked

        yield from self._run(possible(), left)

    def _pruned(self, rule: Rule) -> Iterator[Point]:
        """Every point, those that need not be run with the reason."""
        waiting: list[tuple[float, int, Looked]] = []
        front, scouts = Front(rule), 0
        for looked in self._looked(whole=True):
            mine = self.shard.has(looked.candidate.number)
            if looked.why or not looked.fits:
                if mine:
                    make = self.evaluator.point if looked.why else self.evaluator.no_memory
                    yield self._kept(make(looked))
                continue
            looked = self.evaluator.bounded(looked)
            if scouts < SCOUTS:
                scouts += 1
                if mine:
                    point = self._scouted(looked)
                    front.add(point)
                    yield point
                continue
            waiting.append((least_time(looked.at_least_ns, looked.work), looked.candidate.number, looked))
        waiting.sort(key=lambda entry: entry[:2])
        self.progress.total = self.progress.done + sum(self.shard.has(number) for _, number, _ in waiting)
        for first in range(0, len(waiting), self.wave):
            self.progress.least = waiting[first][0]
            to_run, left = [], []
            for _, number, looked in waiting[first : first + self.wave]:
                if not self.shard.has(number):
                    continue
                least = measures_of(looked.at_least_ns or 0, looked.work, looked.memory, looked.gpus)
                if front.leaves_out(looked.layout, least):
                    left.append(self._kept(self.evaluator.left_out(looked)))
                else:
                    to_run.append(looked)
            yield from left
            ended = []
            for point in self._run(to_run, []):
                ended.append(point)
                yield point
            for point in ended:
                front.add(point)

    def _scouted(self, looked: Looked) -> Point:
        """The point of one of the first that fit, run by this process."""
        point = self._there.get(looked.candidate.number)
        if point is None:
            point = self.evaluator.point(looked)
            self.progress.ran += 1
        return self._kept(point)

    def _run(self, looked: Iterable[Looked], left: list[Point]) -> Iterator[Point]:
        """The points of these: those of the file at once, the others as the engine has them.

        left: points that come in beside them, given as soon as there are any.
        """

        def missing() -> Iterator[Looked]:
            for point in looked:
                if point.candidate.number in self._there:
                    left.append(self._there[point.candidate.number])
                else:
                    yield point

        for point in self.engine.points(self.evaluator, missing()):
            self.progress.ran += 1
            yield self._kept(point)
            while left:
                yield left.pop(0)
            if self.is_stopped():
                raise Cancelled
        yield from left

    def _kept(self, point: Point) -> Point:
        """A point, written if the file does not have it."""
        if self.file is not None and point.number not in self._there:
            self.file.append(point)
        return point

    def _looked(self, whole: bool = False) -> Iterator[Looked]:
        """The candidates that every --where means: of this part, or of the whole."""
        space = self.evaluator.definition.space
        # Of the whole in the order of numbers: by that `as_one` knows which were the first.
        candidates = space.combinations() if whole else space.grouped()
        self.progress.candidates = len(space)
        if space.layouts:
            # Counting them takes 2 us each, looking at one 100.
            every = layouts_of(self.evaluator.workload, space)
            self.progress.candidates = sum(1 for _ in every)
            candidates = layouts_of(self.evaluator.workload, space)
        for candidate in candidates:
            if not whole and not self.shard.has(candidate.number):
                continue
            if self.is_stopped():
                raise Cancelled
            self.progress.looked += 1
            looked = self.evaluator.look(candidate)
            if self.evaluator.is_meant(looked):
                yield looked
                continue
            if self.shard.has(candidate.number):
                self.progress.excluded += 1
                if not whole and self.progress.total is not None:
                    self.progress.total -= 1


def opened_sweep(
    asked: AskedSweep, is_stopped: Callable[[], bool] = lambda: False, apart: bool = False
) -> Sweep:
    """Returns a sweep that is ready to run, its file open, its time counted from now; `close` ends it.

    apart: whether a single job, too, has a process of its own. Raises `UsageError` and `InputError` for a
    file that cannot be written or is another sweep's, and for machines that are not there.
    """
    until = time.monotonic() + (asked.seconds or math.inf)

    def is_over() -> bool:
        return time.monotonic() > until or is_stopped()

    rule = asked.rule if asked.prunes else None
    file = None
    if asked.output is not None:
        file = ResultsFile(asked.output, asked.evaluator.definition.sweep, asked.resume)
    try:
        engine = _engine(asked, is_over, apart)
    except BaseException:
        if file is not None:
            file.close()
        raise
    return Sweep(asked.evaluator, engine, rule, file, asked.shard, is_stopped=is_over)


def _engine(asked: AskedSweep, is_over: Callable[[], bool], apart: bool) -> SweepEngine:
    if asked.engine is not None:
        # Loaded here: most sweeps run on this machine.
        from simcore.sweeping.clusters import cluster_engine

        return cluster_engine(asked.engine)
    jobs = asked.jobs or default_jobs()
    return ProcessEngine(jobs, is_over) if apart else engine_of(jobs, is_over)


def as_one(points: Iterable[Point], wave: int = WAVE) -> list[Point]:
    """The points of all parts of a sweep as one process would have written them, in the order of numbers.

    What a part ran because it did not know the others' results is left out again.
    """
    by_number = {point.number: point for point in points}
    rule = next((point.rule for point in by_number.values()), "")
    if rule:
        bounded = sorted(
            (least_time(point.at_least_ns, point.work), number)
            for number, point in by_number.items()
            if point.at_least_ns is not None
        )
        front = Front(rule_of(rule))
        scouts = sorted(number for _, number in bounded)[:SCOUTS]
        for number in scouts:
            front.add(by_number[number])
        bounded = [entry for entry in bounded if entry[1] not in scouts]
        for first in range(0, len(bounded), wave):
            kept = []
            for _, number in bounded[first : first + wave]:
                point = by_number[number]
                least = measures_of(point.at_least_ns or 0, point.work, point.memory_peak_bytes, point.gpus)
                if front.leaves_out(point.layout, least):
                    why = bound_words(point.at_least_ns or 0)
                    nothing = {"step_time_ns": None, "tokens_per_s": None, "cost": None, "skipped": why}
                    by_number[number] = replace(point, **nothing)
                else:
                    kept.append(point)
            for point in kept:
                front.add(point)
    return [by_number[number] for number in sorted(by_number)]


def least_time(at_least_ns: int | None, work: int | None) -> float:
    """ns of a token at least: what waves are ordered by."""
    return measures_of(at_least_ns or 0, work, None, None).time
