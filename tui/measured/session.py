"""The session over a measured run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from simcore.measured.replay import MeasuredResults
from simcore.measured.replay.scales import Scales
from simcore.report.measured_words import ranks_words, step_words
from simcore.units import plural
from tui.draft import Drafted
from tui.measured.scale_flags import flags_of


@dataclass(slots=True)
class MeasuredSession(Drafted[Scales]):
    """What all screens share over a measured run. opened: as the program started with it, measured or
    replayed. current: the run on the screen. other: the run that was shown before.
    """

    opened: MeasuredResults
    current: MeasuredResults = field(init=False)
    other: MeasuredResults | None = None

    def __post_init__(self) -> None:
        self.current = self.opened
        self.draft = self.opened.scales or Scales()

    @property
    def measured(self) -> bool:
        return True

    @property
    def step(self) -> str:
        return step_words(self.current.run)

    def facts(self, wide: bool) -> list[str]:
        """Ranks, and that they were measured or replayed."""
        run = self.current.run
        what = "schedule plan" if not run.timed else "replayed" if run.replayed else "measured"
        if not wide:
            return [plural(len(run.ranks), run.unit), what]
        if run.microbatches:
            what += f", {plural(run.microbatches, 'micro-batch')}"
        return [ranks_words(run), what, *([] if run.concurrent else ["not concurrent"])]

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
