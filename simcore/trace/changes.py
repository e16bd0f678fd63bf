"""Changes that somebody can make to a run, whatever kind of run it is: what each makes of it, and which gain.

A kind of run gives families of changes, and runs itself with one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters, flag_of
from simcore.records import NamedTuple, Struct
from simcore.trace.findings import WhatIf
from simcore.trace.knobs import Search

# A gain below this share of the step, or of one change over another, is no reason to change anything.
WORTH = 0.001


class Change(Struct, frozen=True):
    """Other values of some fields of `Parameters`. words: what they are, "" where the flags say it. caveat:
    what has to be known before it is made. fixes, moves, meaning: as `WhatIf` has them.
    """

    fields: dict[str, Any]
    words: str = ""
    caveat: str = ""
    fixes: bool = False
    moves: str = ""
    meaning: str = ""

    @property
    def flags(self) -> str:
        """The words of the command line that ask for it, a default too, which is said to be the change."""
        options = Parameters(**self.fields).as_flags()
        for field, value in self.fields.items():
            flag = flag_of(field)
            if value == flag.default and value not in (None, (), False):
                options += [flag.option, str(value)]
        return " ".join(options)

    @property
    def name(self) -> str:
        """What it is, and behind it in brackets what has to be known."""
        return f"{self.words or self.flags} ({self.caveat})" if self.caveat else self.words or self.flags

    def combine(self, other: Change) -> Change:
        """Both at once."""
        words = ""
        if self.words or other.words:
            words = " and ".join(change.words or change.flags for change in (self, other))
        caveat = "; ".join(change.caveat for change in (self, other) if change.caveat)
        return Change(self.fields | other.fields, words, caveat)


class ChangeOutcome(NamedTuple):
    """What a change makes of the run: the step time, ns, and what a rank of the fullest stage needs, about,
    bytes, None where nobody knows. alike_ns: what as much work as the run's takes of a step of more.
    has_effect: False where all that runs is known to start and end as without it.
    """

    ns: int
    memory_bytes: int | None = None
    same_work_ns: int | None = None
    has_effect: bool = True

    @property
    def gain_ns(self) -> int:
        """What is held against the step of the run."""
        return self.ns if self.same_work_ns is None else self.same_work_ns


class Trials:
    """What changes make of a run, each run once.

    base_ns: the step of the run. found: what is known of changes, by flags; None of those that cannot be run.
    """

    def __init__(
        self,
        base_ns: int,
        run: Callable[[Change], ChangeOutcome | None],
        search: Search,
        outcomes: dict[str, ChangeOutcome | None] | None = None,
    ) -> None:
        """run(change): the run with it; None, `InputError` or `UsageError` where it cannot be. found: by a
        search before this one, to which this one adds.
        """
        self.base_ns = base_ns
        # Of a step of some ns, 0.1 % is less than one.
        self.least_ns = max(WORTH * base_ns, 1)
        self.outcomes = {} if outcomes is None else outcomes
        self._run = run
        self._search = search

    def outcome_of(self, change: Change) -> ChangeOutcome | None:
        """What a change makes of the run, None where it cannot be run. Raises `Cancelled`."""
        self._search.begin_next()
        flags = change.flags
        if flags not in self.outcomes:
            try:
                self.outcomes[flags] = self._run(change)
            except (InputError, UsageError):
                self.outcomes[flags] = None
        return self.outcomes[flags]

    def keep_possible(self, family: Iterable[Change]) -> list[Change]:
        """Tries all changes of a family and returns those that can be run."""
        return [change for change in family if self.outcome_of(change) is not None]

    def step_ns(self, change: Change) -> int:
        """The step with a change, for as much work as the run's; as it is where it was not run with it."""
        outcome = self.outcomes.get(change.flags)
        return self.base_ns if outcome is None else outcome.gain_ns

    def is_worthwhile(self, change: Change, *over: Change) -> bool:
        """Whether a change that was tried is worth making: over the run and over each of some others."""
        return min([self.base_ns, *map(self.step_ns, over)]) - self.step_ns(change) >= self.least_ns

    def make_row(self, change: Change) -> WhatIf:
        """A change that can be run, as tables have it; its kind of run adds the parameters with it."""
        outcome = self.outcomes[change.flags]
        assert outcome is not None
        return WhatIf(
            change.name,
            None,
            outcome.ns,
            moves=change.moves,
            flags=change.flags,
            same_work_ns=outcome.same_work_ns,
            meaning=change.meaning,
            memory_bytes=outcome.memory_bytes,
            fixes=change.fixes,
        )
