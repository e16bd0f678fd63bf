"""The sentence on the range of a model's step where no schedule was given."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.units import duration
from simcore.words.sentences.model import RunSums, Weighed


class ScheduleRange(Weighed, frozen=True):
    """The range of the step; `ns` is the least."""

    rule = "schedule-range"

    is_way: bool
    """Whether the least is one micro-batch through all stages and back."""
    schedule: str
    """The schedule that is assumed."""

    @property
    def text(self) -> str:
        how = "without a bubble and with only gradients and transfers hidden"
        if self.is_way:
            how = "one micro-batch through all stages and back, then the optimizer, with all else hidden"
        return (
            f"No schedule was given: the step is between {duration(self.ns)}, {how}, and "
            f"{duration(self.step_ns)}, as {self.schedule} (--schedule, --overlap-grad-reduce)."
        )


def find_schedule_range(run: RunSums) -> Iterator[ScheduleRange]:
    """Yields a sentence on a model on several stages without a schedule: the least that any
    schedule takes.
    """
    fastest = run.results.lower_bound
    if fastest is not None:
        yield ScheduleRange(
            step_ns=run.step_ns, ns=fastest.ns, is_way=fastest.is_one_microbatch,
            schedule=run.simulation.program.schedule,
        )  # fmt: skip
