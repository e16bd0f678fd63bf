"""Each change alone: the step time if only it were made, and if all others were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from simcore.diagnostics import Cancelled, InputError, UsageError
from simcore.parameters import RunInput
from simcore.trace.figures import KnownStep
from simcore.trace.run import Run
from tui.parameters.fields import FormField

# Step times that are cached while a value is scrubbed.
_MAX_CACHED = 500


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One changed field in words."""

    words: str
    alone: RunInput | None
    """The opened run with it; None where the value does not fit there."""
    without: RunInput | None
    """The current run without it; None where the value does not fit there."""


@dataclass(frozen=True, slots=True)
class ChangeTimes:
    """The step times of a change."""

    words: str
    alone: KnownStep | None
    """The step with it alone; None where that cannot be run."""
    without_ns: int | None
    """The step time with all other changes; None where that cannot be run."""


def list_changes(fields: Sequence[FormField], opened: Any, now: Any) -> list[FieldChange]:
    """Returns what was changed in the run since it was opened, in the order of the form. opened, now: their
    contexts.
    """
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
    """Step times by setup, each computed once."""

    def __init__(self) -> None:
        self._step_by_setup: dict[RunInput, KnownStep | None] = {}

    def remember(self, run: Run) -> None:
        """Caches the step time of a run that exists already."""
        self._step_by_setup[run.setup] = KnownStep.of(run.shape)

    def find_times(
        self,
        changes: Sequence[FieldChange],
        now: Run,
        progress: Callable[[int, int], None],
        cancelled: Callable[[], bool],
    ) -> list[ChangeTimes]:
        """Returns the times of all changes of a run. Raises `Cancelled` when `cancelled()` becomes true."""
        setups = dict.fromkeys(
            setup for change in changes for setup in (change.alone, change.without) if setup
        )
        # A copy: a cancelled computation may still write.
        cached = dict(self._step_by_setup)
        # None stands for a setup that cannot be, and has no time.
        steps: dict[RunInput | None, KnownStep | None] = {None: None}
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


def _step(now: Run, setup: RunInput, cancelled: Callable[[], bool]) -> KnownStep | None:
    try:
        run = now.rerun(setup, cancelled)
    except (UsageError, InputError):
        return None
    return KnownStep.of(run.shape)


def _times(words: str, alone: KnownStep | None, without: KnownStep | None) -> ChangeTimes:
    return ChangeTimes(words, alone, None if without is None else without.step_time_ns)
