"""Each change alone: the step time if only it were made, and if all but it were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from simcore.diagnostics import Cancelled, InputError, UsageError
from simcore.parameters import Given
from simcore.records import NamedTuple
from simcore.trace.contexts import Work
from simcore.trace.run import Run
from tui.parameters.fields import FormField

# Step times that are remembered while one scrubs.
_MOST_KNOWN = 500


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One changed field in words. alone: the opened run with it; without: the run without it; None where
    the value does not fit there."""

    words: str
    alone: Given | None
    without: Given | None


@dataclass(frozen=True, slots=True)
class ChangeTimes:
    """A change. alone_ns: the step time with it alone, without_ns: with all others; None: it cannot be.
    work: that of the step with it alone, None where nobody knows.
    """

    words: str
    alone_ns: int | None
    without_ns: int | None
    work: Work | None = None


class _Step(NamedTuple):
    """A step's time, and its work."""

    ns: int
    work: Work | None


def changes_of(fields: Sequence[FormField], opened: Any, now: Any) -> list[FieldChange]:
    """What was changed in the run since it was opened, in the order of the form. opened, now: their bases."""
    changes = []
    for field in fields:
        if field.differs(opened, now):
            words = field.words(field.text(now))
            changes.append(FieldChange(words, _moved(field, now, opened), _moved(field, opened, now)))
    return changes


def _moved(field: FormField, source: Any, target: Any) -> Given | None:
    setup: Given = target.setup
    try:
        return setup.changed(**field.moved(source, target))
    except UsageError:
        return None


class KnownStepTimes:
    """Step times by setup, each found once."""

    def __init__(self) -> None:
        self._known: dict[Given, _Step | None] = {}

    def remember(self, run: Run) -> None:
        """Take the step time of a run that was found anyway."""
        self._known[run.setup] = _Step(run.step_time_ns, run.shape.work)

    def of(
        self,
        changes: Sequence[FieldChange],
        now: Run,
        progress: Callable[[int, int], None],
        cancelled: Callable[[], bool],
    ) -> list[ChangeTimes]:
        """The times of all changes of a run. Raises `Cancelled` when `cancelled()` becomes true."""
        asked = dict.fromkeys(
            setup for change in changes for setup in (change.alone, change.without) if setup
        )
        # A copy: a search that was cancelled may still write.
        known = dict(self._known)
        # None is what cannot be, and has no time.
        steps: dict[Given | None, _Step | None] = {None: None}
        steps.update((setup, known[setup]) for setup in asked if setup in known)
        missing = [setup for setup in asked if setup not in known]
        if len(known) + len(missing) > _MOST_KNOWN:
            self._known = {setup: known[setup] for setup in asked if setup in known}
        for done, setup in enumerate(missing):
            if cancelled():
                raise Cancelled
            progress(done, len(missing))
            steps[setup] = self._known[setup] = _step(now, setup, cancelled)
        return [_times(change.words, steps[change.alone], steps[change.without]) for change in changes]


def _step(now: Run, setup: Given, cancelled: Callable[[], bool]) -> _Step | None:
    try:
        run = now.rerun(setup, cancelled)
    except (UsageError, InputError):
        return None
    return _Step(run.step_time_ns, run.shape.work)


def _times(words: str, alone: _Step | None, without: _Step | None) -> ChangeTimes:
    alone_ns, work = (None, None) if alone is None else alone
    return ChangeTimes(words, alone_ns, None if without is None else without.ns, work)
