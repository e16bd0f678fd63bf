"""Changes that a user can make to a run of any kind: what each makes of the run, and which ones gain.

A kind of run gives families of changes, and runs itself with one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters, flag_of
from simcore.records import NamedTuple, Struct
from simcore.trace.findings import WhatIf
from simcore.trace.knobs import Search

# A gain below this share of the step, or of one change over another, is no reason to change anything.
WORTH = 0.001


class Change(Struct, frozen=True):
    """Other values of some fields of `Parameters`."""

    fields: dict[str, Any]
    """The new values by field."""
    words: str = ""
    """The change in words, "" where the flags say it."""
    caveat: str = ""
    """What a user has to know before making it."""
    fixes: bool = False
    """As in `WhatIf`."""
    moves: str = ""
    """As in `WhatIf`."""
    meaning: str = ""
    """As in `WhatIf`."""

    @property
    def flags(self) -> str:
        """The words of the command line that request it, default values too."""
        options = Parameters(**self.fields).as_flags()
        for field, value in self.fields.items():
            flag = flag_of(field)
            if value == flag.default and value not in (None, (), False):
                options += [flag.option, str(value)]
        return " ".join(options)

    @property
    def name(self) -> str:
        """The change in words, with its caveat behind it in brackets."""
        return f"{self.words or self.flags} ({self.caveat})" if self.caveat else self.words or self.flags

    def combine(self, other: Change) -> Change:
        """Returns both changes as one."""
        words = ""
        if self.words or other.words:
            words = " and ".join(change.words or change.flags for change in (self, other))
        caveat = "; ".join(change.caveat for change in (self, other) if change.caveat)
        meaning = "; ".join(change.meaning for change in (self, other) if change.meaning)
        return Change(self.fields | other.fields, words, caveat, meaning=meaning)


class ChangeOutcome(NamedTuple):
    """What a change makes of the run."""

    ns: int
    """The step time, ns."""
    memory_bytes: int | None = None
    """About what a rank of the fullest stage needs, bytes; None where that is not known."""
    same_work_ns: int | None = None
    """The part of a longer step that as much work as the run's takes, ns; None where the work is the same."""
    has_effect: bool = True
    """False where every op is known to start and end as without the change."""
    network_fields: Mapping[str, Any] = MappingProxyType({})
    """Other fields of `Parameters` that the run takes to be of the same network as the one without the
    change, which has it by itself.
    """
    method: str = ""
    """Both networks in words, where it has another one all the same."""

    @property
    def gain_ns(self) -> int:
        """The time to compare with the step of the run, ns."""
        return self.ns if self.same_work_ns is None else self.same_work_ns


class Trials:
    """What changes make of a run; each change is run once.

    base_ns: the step of the run, ns. outcomes: what is known of changes, by flags; None of those that cannot
    be run.
    """

    def __init__(
        self,
        base_ns: int,
        run: Callable[[Change], ChangeOutcome | None],
        search: Search,
        outcomes: dict[str, ChangeOutcome | None] | None = None,
    ) -> None:
        """run(change): runs it with the change; returns None, or raises `InputError` or `UsageError`, where
        that is not possible. outcomes: those of an earlier search, to which this one adds.
        """
        self.base_ns = base_ns
        # 0.1 % of a step of a few ns is less than 1 ns.
        self.least_ns = max(WORTH * base_ns, 1)
        self.outcomes = {} if outcomes is None else outcomes
        self._run = run
        self._search = search

    def outcome_of(self, change: Change) -> ChangeOutcome | None:
        """Returns what a change makes of the run, None where it cannot be run. Raises `Cancelled`."""
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
        """Returns the step with a change for as much work as the run's, ns; the run's step where it was not
        run.
        """
        outcome = self.outcomes.get(change.flags)
        return self.base_ns if outcome is None else outcome.gain_ns

    def is_worthwhile(self, change: Change, *over: Change) -> bool:
        """Returns whether a tried change is worth making: it gains over the run and over each of `over`."""
        return min([self.base_ns, *map(self.step_ns, over)]) - self.step_ns(change) >= self.least_ns

    def make_row(self, change: Change) -> WhatIf:
        """Returns a change that was run as a row of a table; its kind of run adds the parameters."""
        outcome = self.outcomes[change.flags]
        assert outcome is not None
        return WhatIf(
            change.name,
            None,
            outcome.ns,
            moves=change.moves,
            flags=" ".join([change.flags, *Parameters(**outcome.network_fields).as_flags()]),
            same_work_ns=outcome.same_work_ns,
            meaning="; ".join(filter(None, [change.meaning, outcome.method])),
            memory_bytes=outcome.memory_bytes,
            fixes=change.fixes,
        )
