"""What a screen knows of a sweep: the points that have arrived, its progress, and the sentences
about them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from simcore.sweeping.best_line import BestLine
from simcore.sweeping.outcome import Outcome
from simcore.sweeping.pages import open_from, remaining_lines
from simcore.sweeping.pareto_front import Rule, measures
from simcore.sweeping.point import Point
from simcore.sweeping.running import SweepProgress
from simcore.units import group_digits

# The states of a sweep. FILE: whether a file is still being written is unknown here.
OPENING, RUNNING, STOPPED, FINISHED, FAILED, FILE = "opening", "running", "stopped", "done", "failed", "file"


class SweepResult:
    """A sweep as the screen has it.

    `title` is what is swept, `state` one of the above, `error` why it failed. `opened` is the words that open
    its input, behind `wltui report`, `output` the file that its lines go to.
    """

    def __init__(self, title: str, rule: Rule, state: str = OPENING, opened: Sequence[str] = ()) -> None:
        self.title = title
        self.opened = tuple(opened)
        self.state = state
        self.error = self.output = ""
        self.points: list[Point] = []
        # Indices in `points` of those that were run and fit: of a hundred thousand layouts a few hundred.
        self.fitting_indices: list[int] = []
        self.outcome = Outcome(rule)
        self.progress = SweepProgress()
        self._start_time = time.monotonic()
        self._pace = Pace(self.progress, False)
        self._seconds: float | None = None
        self._prunes = False
        self._cached_sentences: tuple[tuple[int, str, bool], list[str]] = ((-1, "", True), [])

    def begin(self, rule: Rule, progress: SweepProgress, prunes: bool) -> None:
        """Begins the sweep: points arrive from now on. prunes: whether points are left out by the rule."""
        self.state, self.outcome, self.progress = RUNNING, Outcome(rule), progress
        self._start_time = time.monotonic()
        self._pace = Pace(progress, prunes)
        self._prunes = prunes

    def add_points(self, points: Iterable[Point]) -> None:
        """Adds points that have arrived."""
        for point in points:
            if point.is_run and point.fits:
                self.fitting_indices.append(len(self.points))
            self.points.append(point)
            self.outcome.add(point)

    def take_best(self, best: BestLine | None) -> None:
        """Takes what a file states of the best points of a sweep that has ended."""
        outcome = self.outcome
        outcome.robustness, outcome.spread = (None, None) if best is None else best[1:]

    def end(self, state: str, error: str = "") -> None:
        """Ends the sweep: no more points arrive."""
        self.state, self.error = state, error
        self._seconds = time.monotonic() - self._start_time

    @property
    def is_running(self) -> bool:
        """Whether this program still produces points."""
        return self.state in (OPENING, RUNNING)

    @property
    def fastest(self) -> Point | None:
        """The point whose work takes the least time, of those that fit."""
        points = self.outcome.front.points
        return min(points, key=lambda point: (measures(point).time, point.index)) if points else None

    # -- words -----------------------------------------------------------------------

    def progress_text(self) -> str:
        """Returns how far it is, or how many points there are."""
        if self.state == OPENING:
            return "opening the input"
        if self.state == RUNNING:
            return self._pace.describe()
        words = f"{group_digits(self.outcome.total)} {'point' if self.outcome.total == 1 else 'points'}"
        if self.state == STOPPED:
            total = self.progress.total
            return f"stopped after {words}" + (f" of {group_digits(total)}" if total is not None else "")
        if self.state == FAILED:
            return f"failed after {words}"
        duration_text = "" if self._seconds is None else f" in {format_wait(self._seconds)}"
        return f"{words}{duration_text}, {group_digits(self.outcome.simulated)} simulated"

    def sentences(self) -> list[str]:
        """Returns what the best have in common, what others cost, and why some points were not simulated."""
        cache_key = len(self.points), self.state, self.outcome.robustness is None
        if self._cached_sentences[0] != cache_key:
            counts = self.outcome.count_lines(self.progress.excluded)[1:]
            remaining = []
            if self.state == STOPPED:
                self.outcome.open_from = open_from(self.progress, self._prunes)
                remaining = remaining_lines(self.outcome, self.progress, self._prunes)
            self._cached_sentences = (cache_key, [*remaining, *self.outcome.sentences(), *counts])
        return [self.error, *self._cached_sentences[1]] if self.error else self._cached_sentences[1]


class Pace:
    """The rate of a sweep since the number of points is known: before that layouts are checked.

    prunes: whether points are left out, so that the remaining ones take less time each than the ones before.
    """

    def __init__(self, progress: SweepProgress, prunes: bool) -> None:
        self._progress = progress
        self._prunes = prunes
        self._start_time = time.monotonic()
        self._since: tuple[float, int, int] | None = None

    def describe(self) -> str:
        """Returns `345 of 3 000 points, 52 a second, 51 s left`, or what of that is known."""
        progress, now = self._progress, time.monotonic()
        if progress.total is None:
            total_text = remaining_text = ""
            if progress.candidates is not None and progress.checked:
                total_text = f" of {group_digits(progress.candidates)}"
                remaining_s = (
                    (progress.candidates - progress.checked) * (now - self._start_time) / progress.checked
                )
                remaining_text = f", {format_wait(remaining_s)} left" if now - self._start_time > 1 else ""
            words = f"{group_digits(progress.checked)}{total_text} layouts looked at{remaining_text}"
            return words + (f", {group_digits(progress.simulated)} simulated" if progress.simulated else "")
        words = f"{group_digits(progress.finished)} of {group_digits(progress.total)} points"
        if self._since is None:
            self._since = now, progress.finished, progress.simulated
        start, finished, simulated = self._since
        if progress.finished == finished or now <= start:
            return words
        words += f", {(progress.simulated - simulated) / (now - start):.3g} a second"
        remaining_s = (
            max(progress.total - progress.finished, 0) * (now - start) / (progress.finished - finished)
        )
        return f"{words}, {'at most ' if self._prunes else ''}{format_wait(remaining_s)} left"


def format_wait(seconds: float) -> str:
    """Returns a time to wait: `51 s`, `3 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
