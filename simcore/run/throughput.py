"""How much a step gets done, beside how long it takes: twice the micro-batches are no slower step."""

from __future__ import annotations

from typing import Protocol

from simcore.units import change_percent, duration, plural, signed


class Stepped(Protocol):
    """A run of one step or several: see `Run`."""

    @property
    def step_time_ns(self) -> int: ...
    @property
    def microbatches(self) -> int: ...
    @property
    def steps(self) -> int: ...


def microbatch_ns(run: Stepped) -> int | None:
    """What each micro-batch of a replica takes of the step, ns; None where the run has none."""
    count = run.microbatches * run.steps
    return run.step_time_ns // count if count else None


def throughput_words(run: Stepped) -> str:
    """`16 micro-batches: one in 923.4 ms, 1.083 a second`, of each replica; "" where the run has none.

    The mean of the step: single ones may take more, and less.
    """
    each = microbatch_ns(run)
    if not each:
        return ""
    return f"{plural(run.microbatches, 'micro-batch')}: one in {duration(each)}, {_rate(each)} a second"


def each_words(run: Stepped) -> str:
    """`923.4 ms a micro-batch`, "" where the run has none."""
    each = microbatch_ns(run)
    # Of one alone the step time says it.
    return f"{duration(each)} a micro-batch" if each and each != run.step_time_ns else ""


def each_difference(a: Stepped, b: Stepped) -> str:
    """`a micro-batch -229.0 ms (-24.8 %)`, B less A, where they have not as many; else ""."""
    before, after = microbatch_ns(a), microbatch_ns(b)
    if getattr(a, "origin", None) != getattr(b, "origin", None):
        # What was measured need not be as much work as what was simulated.
        return ""
    if not before or not after or a.microbatches * a.steps == b.microbatches * b.steps:
        return ""
    share = change_percent(before, after)
    return f"a micro-batch {signed(after - before)}" + (f" ({share})" if share else "")


def _rate(each_ns: int) -> str:
    """How many a second, in four figures."""
    return f"{1e9 / each_ns:.4g}" if each_ns > 1e5 else f"{1e9 / each_ns:.0f}"
