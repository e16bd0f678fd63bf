"""The session over a measured run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simcore.replay import MeasuredResults
from simcore.replay.scales import Scales
from simcore.report.measured_words import ranks_words, replay_words, step_words
from simcore.units import plural
from tui.draft import Drafted
from tui.measured.scale_flags import flags_of

if TYPE_CHECKING:
    from tui.session import Run

# Cells for the changes of a replay in the first row: of a wide terminal, of a narrow one.
_CHANGES, _SHORT = 34, 11


@dataclass(slots=True)
class MeasuredSession(Drafted[Scales]):
    """What all screens share over a measured run. opened: as the program started with it, measured or
    replayed. as_measured: with the times of the files. current: the run on the screen. other: the run that
    was shown before; of what was opened as a replay at first the one as measured. against: see `AnySession`.
    """

    opened: MeasuredResults
    as_measured: MeasuredResults = field(init=False)
    current: MeasuredResults = field(init=False)
    other: MeasuredResults | None = None
    against: Run | None = None

    def __post_init__(self) -> None:
        self.current = self.opened
        self.as_measured = self.opened.as_measured
        if self.as_measured is not self.opened:
            self.other = self.as_measured
        self.draft = self.opened.scales or Scales()

    @property
    def measured(self) -> bool:
        return True

    @property
    def step(self) -> str:
        return step_words(self.current.run)

    def facts(self, wide: bool) -> list[str]:
        """Ranks, and that they were measured, or what the replay changes."""
        run = self.current.run
        what = "schedule plan" if not run.timed else "replayed" if run.replayed else "measured"
        scales = self.current.scales
        if not wide:
            changes = [] if scales is None else scales.changes()
            if changes:
                what = changes[0] if len(changes) == 1 else plural(len(changes), "change")
                what = what if len(what) <= _SHORT else "1 change"
            return [plural(len(run.ranks), run.unit), what]
        words = replay_words(scales, _CHANGES)
        batches = [plural(run.microbatches, "micro-batch")] if run.microbatches else []
        # Where changes are named, what is behind them is a fact of its own: it may have no room.
        facts = [f"{what}: {words}", *batches] if words else [", ".join([what, *batches])]
        return [ranks_words(run), *facts, *([] if run.concurrent else ["not concurrent"])]

    def show(self, results: MeasuredResults) -> None:
        """Another run on the screen; the one before is a key away."""
        if results is not self.current:
            self.other = self.current
        self.current = results

    def command(self) -> str | None:
        """The command line that opens the run on the screen; None where no flag says one of its changes."""
        scales = self.current.scales
        words = ["wltui", self.current.path]
        if self.opened.measured.stamp is not None:
            words += ["--run", self.opened.measured.stamp]
        if scales is not None:
            flags = flags_of(scales)
            if flags is None:
                return None
            words += flags or ["--replay"]
        return " ".join(map(shlex.quote, words))
