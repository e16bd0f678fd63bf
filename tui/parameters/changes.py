"""Each change alone: the step time if only it were made, and if all but it were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from simcore.diagnostics import Cancelled, InputError, UsageError
from simcore.parameters import RunInput
from simcore.records import NamedTuple
from simcore.trace.contexts import StepWork
from simcore.trace.run import Run
from tui.parameters.fields import FormField

# Step times that are remembered while one scrubs.
_MAX_CACHED = 500


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One changed field in words. alone: the opened run with it; without: the run without it; None where
    the value does not fit there."""

    words: str
    alone: RunInput | None
    without: RunInput | None


@dataclass(frozen=True, slots=True)
class ChangeTimes:
    """A change. alone_ns: the step time with it alone, without_ns: with all others; None: it cannot be.
    work: that of the step with it alone, None where nobody knows.
    """

    words: str
    alone_ns: int | None
    without_ns: int | None
    work: StepWork | None = None


class _Step(NamedTuple):
    """A step's time, and its work."""

    ns: int
    work: StepWork | None


def list_changes(fields: Sequence[FormField], opened: Any, now: Any) -> list[FieldChange]:
    """What was changed in the run since it was opened, in the order of the form. opened, now: their bases."""
    changes = []
    for field in fields:
        if field.differs(opened, now):
            words = field.words(field.text(now))
            changes.append(
                FieldChange(
                    words, _setup_with_field(field, now, opened), _setup_with_field(field, opened, now)
                )
            )
    return changes


def _setup_with_field(field: FormField, source: Any, target: Any) -> RunInput | None:
    setup: RunInput = target.setup
    try:
        return setup.with_changes(**field.copy_value(source, target))
    except UsageError:
        return None


class StepTimeCache:
    """Step times by setup, each found once."""

    def __init__(self) -> None:
        self._step_by_setup: dict[RunInput, _Step | None] = {}

    def remember(self, run: Run) -> None:
        """Take the step time of a run that was found anyway."""
        self._step_by_setup[run.setup] = _Step(run.step_time_ns, run.shape.work)

    def find_times(
        self,
        changes: Sequence[FieldChange],
        now: Run,
        progress: Callable[[int, int], None],
        cancelled: Callable[[], bool],
    ) -> list[ChangeTimes]:
        """The times of all changes of a run. Raises `Cancelled` when `cancelled()` becomes true."""
        setups = dict.fromkeys(
            setup for change in changes for setup in (change.alone, change.without) if setup
        )
        # A copy: a search that was cancelled may still write.
        cached = dict(self._step_by_setup)
        # None is what cannot be, and has no time.
        steps: dict[RunInput | None, _Step | None] = {None: None}
        steps.update((setup, cached[setup]) for setup in setups if setup in cached)
        missing = [setup for setup in setups if setup not in cached]
        if len(cached) + len(missing) > _MAX_CACHED:
            self._step_by_setup = {setup: cached[setup] for setup in setups if setup in cached}
        for finished, setup in enumerate(missing):
            if cancelled():
                raise Cancelled
            progress(finished, len(missing))
            steps[setup] = self._step_by_setup[setup] = _step(now, setup, cancelled)
        return [_times(change.words, steps[change.alone], steps[change.without]) for change in changes]


def _step(now: Run, setup: RunInput, cancelled: Callable[[], bool]) -> _Step | None:
    try:
        run = now.rerun(setup, cancelled)
    except (UsageError, InputError):
        return None
    return _Step(run.step_time_ns, run.shape.work)


def _times(words: str, alone: _Step | None, without: _Step | None) -> ChangeTimes:
    alone_ns, work = (None, None) if alone is None else alone
    return ChangeTimes(words, alone_ns, None if without is None else without.ns, work)
