"""The session over a measured run."""

from __future__ import annotations

from dataclasses import dataclass

from simcore.measured import MeasuredRun
from simcore.report.measured_words import ranks_words, step_words
from simcore.units import plural


@dataclass(slots=True)
class MeasuredSession:
    """What all screens share over a measured run, or over its replay; no screen changes it."""

    opened: MeasuredRun
    error: str = ""
    running: bool = False

    @property
    def measured(self) -> bool:
        return True

    @property
    def current(self) -> MeasuredRun:
        return self.opened

    @property
    def step(self) -> str:
        return step_words(self.opened)

    def facts(self, wide: bool) -> list[str]:
        """Ranks, and that they were measured or replayed."""
        run = self.opened
        what = "schedule plan" if not run.timed else "replayed" if run.replayed else "measured"
        if not wide:
            return [plural(len(run.ranks), run.unit), what]
        if run.microbatches:
            what += f", {plural(run.microbatches, 'micro-batch')}"
        return [ranks_words(run), what, *([] if run.concurrent else ["not concurrent"])]
