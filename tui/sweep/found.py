"""What a screen knows of a sweep: the points that have come, how far it is, and what is said of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from simcore.sweeping.front import Rule, measures
from simcore.sweeping.outcome import Outcome
from simcore.sweeping.pages import open_from, rest_lines
from simcore.sweeping.point import Point
from simcore.sweeping.running import SweepProgress
from simcore.units import digits

# What a sweep is doing. Of a file nobody here knows whether somebody still writes it.
OPENING, RUNNING, STOPPED, DONE, FAILED, FILE = "opening", "running", "stopped", "done", "failed", "file"


class ShownSweep:
    """A sweep as the screen has it. title: what is swept. state: of the above. error: why it failed.

    opened: the words that open its input, behind `wltui report`. output: the file that its lines go to.
    """

    def __init__(self, title: str, rule: Rule, state: str = OPENING, opened: Sequence[str] = ()) -> None:
        self.title = title
        self.opened = tuple(opened)
        self.state = state
        self.error = self.output = ""
        self.points: list[Point] = []
        # Places in `points` of those that were run and fit: of a hundred thousand layouts a few hundred.
        self.fit: list[int] = []
        self.outcome = Outcome(rule)
        self.progress = SweepProgress()
        self._begun = time.monotonic()
        self._pace = Pace(self.progress, False)
        self._seconds: float | None = None
        self._prunes = False
        self._said: tuple[tuple[int, str], list[str]] = ((-1, ""), [])

    def begin(self, rule: Rule, progress: SweepProgress, prunes: bool) -> None:
        """Points come from now on. prunes: whether points are left out by the rule."""
        self.state, self.outcome, self.progress = RUNNING, Outcome(rule), progress
        self._begun = time.monotonic()
        self._pace = Pace(progress, prunes)
        self._prunes = prunes

    def take(self, points: Iterable[Point]) -> None:
        """More points have come."""
        for point in points:
            if point.is_run and point.fits:
                self.fit.append(len(self.points))
            self.points.append(point)
            self.outcome.add(point)

    def end(self, state: str, error: str = "") -> None:
        """No more will come."""
        self.state, self.error = state, error
        self._seconds = time.monotonic() - self._begun

    @property
    def goes_on(self) -> bool:
        """Whether points still come in from here."""
        return self.state in (OPENING, RUNNING)

    @property
    def fastest(self) -> Point | None:
        """The point whose work takes the least time, of those that fit."""
        points = self.outcome.front.points
        return min(points, key=lambda point: (measures(point).time, point.number)) if points else None

    # -- words -----------------------------------------------------------------------

    def counted(self) -> str:
        """How far it is, or how many points there are."""
        if self.state == OPENING:
            return "opening the input"
        if self.state == RUNNING:
            return self._pace.words()
        words = f"{digits(self.outcome.total)} {'point' if self.outcome.total == 1 else 'points'}"
        if self.state == STOPPED:
            total = self.progress.total
            return f"stopped after {words}" + (f" of {digits(total)}" if total is not None else "")
        if self.state == FAILED:
            return f"failed after {words}"
        took = "" if self._seconds is None else f" in {left_words(self._seconds)}"
        return f"{words}{took}, {digits(self.outcome.simulated)} simulated"

    def said(self) -> list[str]:
        """What the best have in common, what others cost, and why some points were not simulated."""
        known = len(self.points), self.state
        if self._said[0] != known:
            counts = self.outcome.count_lines(self.progress.excluded)[1:]
            rest = []
            if self.state == STOPPED:
                self.outcome.open_from = open_from(self.progress, self._prunes)
                rest = rest_lines(self.outcome, self.progress, self._prunes)
            self._said = (known, [*rest, *self.outcome.sentences(), *counts])
        return [self.error, *self._said[1]] if self.error else self._said[1]


class Pace:
    """How fast a sweep goes, since it is known how many points there are: before that they are looked at.

    prunes: whether points are left out, so that what is left takes less than as many points took.
    """

    def __init__(self, progress: SweepProgress, prunes: bool) -> None:
        self._progress = progress
        self._prunes = prunes
        self._begun = time.monotonic()
        self._since: tuple[float, int, int] | None = None

    def words(self) -> str:
        """`345 of 3 000 points, 52 a second, 51 s left`, as far as that is known."""
        progress, now = self._progress, time.monotonic()
        if progress.total is None:
            of = still = ""
            if progress.candidates is not None and progress.looked:
                of = f" of {digits(progress.candidates)}"
                left = (progress.candidates - progress.looked) * (now - self._begun) / progress.looked
                still = f", {left_words(left)} left" if now - self._begun > 1 else ""
            words = f"{digits(progress.looked)}{of} layouts looked at{still}"
            return words + (f", {digits(progress.ran)} simulated" if progress.ran else "")
        words = f"{digits(progress.done)} of {digits(progress.total)} points"
        if self._since is None:
            self._since = now, progress.done, progress.ran
        begun, done, ran = self._since
        if progress.done == done or now <= begun:
            return words
        words += f", {(progress.ran - ran) / (now - begun):.3g} a second"
        left = max(progress.total - progress.done, 0) * (now - begun) / (progress.done - done)
        return f"{words}, {'at most ' if self._prunes else ''}{left_words(left)} left"


def left_words(seconds: float) -> str:
    """A time that somebody waits: `51 s`, `3 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
