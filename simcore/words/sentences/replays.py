"""The step time of a replay with changes: a clause of several sentences."""

from __future__ import annotations

from simcore.records import Struct
from simcore.replay.parameters import Scales
from simcore.replay.replayed_run import ReplayedRun
from simcore.replay.stragglers import LEAST
from simcore.units import change_percent, duration, plural

# A gain is named from this share of the step on: the least that a percentage with one decimal shows.
LEAST_GAIN = 0.0005


class UnchangedCalls(Struct, frozen=True):
    """Calls without a partner, which a replay leaves as they were."""

    calls: int
    """How many there are."""
    unit: str
    """What the run calls a rank."""
    rank: int
    """The rank where they last longest."""
    ns: int
    """How long they last on that rank."""


class ReplayedStep(Struct, frozen=True):
    """The step before and after a change."""

    before_ns: int
    """The step without the change."""
    after_ns: int
    """The step with the change."""
    unchanged: UnchangedCalls | None = None
    """The calls that keep their duration, so that the step may be shorter; None where these are short."""

    @property
    def change_text(self) -> str:
        """The change of the step: `-24.1 %`."""
        return change_percent(self.before_ns, self.after_ns)

    def is_gain(self, share: float) -> bool:
        """Returns whether the step is shorter by this share of it."""
        return self.before_ns - self.after_ns >= self.before_ns * share

    @property
    def words(self) -> str:
        """The step in words.

        `the step would take 2.925 s (-24.1 %), or less: 2 calls without a partner keep what they took (57.805
        ms on rank 2)`
        """
        words = f"the step would take {duration(self.after_ns)} ({self.change_text})"
        if self.unchanged is None:
            return words
        verb = "keeps what it took" if self.unchanged.calls == 1 else "keep what they took"
        where = f"{duration(self.unchanged.ns)} on {self.unchanged.unit} {self.unchanged.rank}"
        return f"{words}, or less: {plural(self.unchanged.calls, 'call')} without a partner {verb} ({where})"


def replay_with(results: ReplayedRun, scales: Scales) -> ReplayedStep:
    """Returns the step with these factors, and that of the replay without changes."""
    after_ns = results.with_scales((results.base.scales or Scales()).times(scales)).step_time_ns
    calls, rank, ns = results.partners.waiting() if results.partners is not None else (0, 0, 0)
    has_unchanged = ns >= results.step_time_ns * LEAST
    unchanged = UnchangedCalls(calls, results.measured.unit, rank, ns) if has_unchanged else None
    return ReplayedStep(results.base.step_time_ns, after_ns, unchanged)


def find_gain(results: ReplayedRun, scales: Scales) -> ReplayedStep | None:
    """Returns the step with these factors where it is a gain, else None."""
    gain = replay_with(results, scales)
    return gain if gain.is_gain(LEAST_GAIN) else None
