"""What the step would take with something changed, as a replay says it: a clause of several sentences."""

from __future__ import annotations

from simcore.records import Struct
from simcore.replay.parameters import Scales
from simcore.replay.replayed_run import ReplayedRun
from simcore.replay.stragglers import LEAST
from simcore.units import change_percent, duration, plural

# A gain is named from this share of the step on: what a percentage with one decimal shows.
LEAST_GAIN = 0.0005


class UnchangedCalls(Struct, frozen=True):
    """Calls without a partner, which a replay leaves as they were, and how long they last on the rank where
    that is most.
    """

    calls: int
    unit: str
    rank: int
    ns: int


class ReplayedStep(Struct, frozen=True):
    """The step before and after, ns. kept: what keeps what it took, so that it may be less; None where that
    is little.
    """

    before_ns: int
    after_ns: int
    unchanged: UnchangedCalls | None = None

    @property
    def change_text(self) -> str:
        """`-24.1 %`."""
        return change_percent(self.before_ns, self.after_ns)

    def is_gain(self, share: float) -> bool:
        """Whether the step is shorter by that share of it."""
        return self.before_ns - self.after_ns >= self.before_ns * share

    @property
    def words(self) -> str:
        """`the step would take 2.925 s (-24.1 %), or less: 2 calls without a partner keep what they took
        (57.805 ms on rank 2)`.
        """
        words = f"the step would take {duration(self.after_ns)} ({self.change_text})"
        if self.unchanged is None:
            return words
        verb = "keeps what it took" if self.unchanged.calls == 1 else "keep what they took"
        where = f"{duration(self.unchanged.ns)} on {self.unchanged.unit} {self.unchanged.rank}"
        return f"{words}, or less: {plural(self.unchanged.calls, 'call')} without a partner {verb} ({where})"


def replay_with(results: ReplayedRun, scales: Scales) -> ReplayedStep:
    """Returns the step with these factors beside that of the replay with nothing changed."""
    after_ns = results.with_scales((results.base.scales or Scales()).times(scales)).step_time_ns
    calls, rank, ns = results.partners.waiting() if results.partners is not None else (0, 0, 0)
    has_unchanged = ns >= results.step_time_ns * LEAST
    unchanged = UnchangedCalls(calls, results.measured.unit, rank, ns) if has_unchanged else None
    return ReplayedStep(results.base.step_time_ns, after_ns, unchanged)


def find_gain(results: ReplayedRun, scales: Scales) -> ReplayedStep | None:
    """Returns the same where it is a gain, else None."""
    gain = replay_with(results, scales)
    return gain if gain.is_gain(LEAST_GAIN) else None
