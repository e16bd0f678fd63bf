"""A measured run in words, as reports, screens and the row above them describe it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.diagnostics import printable
from simcore.kernel_names import short_name
from simcore.measured import MeasuredRun
from simcore.measured.run import RecordedStep
from simcore.ranks import RankSet
from simcore.trace.figures import throughput_words
from simcore.units import IN_TIME, change_percent, duration, plural, short_layout, signed_duration
from simcore.words.product_facts import use_facts
from simcore.workload.formats import format_label

if TYPE_CHECKING:
    from simcore.replay.replayed_run import ReplayedRun

# The most steps that are all listed; of more, this many of the slowest are.
_MOST_STEPS, _SLOWEST = 6, 3
# Cells for the changes of a replay: on a page, in a wide row of the screen, in a narrow one.
_PAGE_CELLS, _ROW_CELLS, _SHORT_CELLS = 80, 34, 26


def title(results: ReplayedRun) -> str:
    """Returns what was measured or replayed, and its step time; for an order without times, that
    it is one.
    """
    run = results.run
    if not run.timed:
        return f"{'Planned order' if run.unit == 'stage' else 'Order of the operations'}, no times"
    each = throughput_words(results.shape)
    more = f"\n                    {each}" if each else ""
    return f"{'Replayed' if run.replayed else 'Measured'} step time  {duration(run.step_time_ns)}{more}"


def facts(results: ReplayedRun) -> list[tuple[str, str]]:
    """Returns (name, words) of what was read and replayed, in the order of a page."""
    run = results.run
    subs = f"; {plural(run.subs, 'sub-operation')} inside them" if run.subs else ""
    steps = run.recorded.steps if run.recorded is not None else ()
    batches = f", {plural(run.microbatches, 'micro-batch')}" if run.microbatches else ""
    rows = [
        ("file", printable(run.path)),
        ("format", format_words(run)),
        *([("run", run.stamp)] if run.stamp is not None else []),
        *([("steps", steps_words(steps))] if len(steps) > 1 else []),
        ("ranks", f"{ranks_words(run)}; {clock_words(run)}"),
        ("read", f"{plural(run.ops, 'operation')}{batches}{subs}"),
    ]
    if run.replayed:
        measured = results.measured.step_time_ns
        change_text = change_percent(measured, run.step_time_ns) or signed_duration(run.step_time_ns)
        rows.append(("measured", f"{duration(measured)}; the replay is {change_text} from it"))
        changes = replay_words(results.changes, _PAGE_CELLS)
        rows += [("changed", changes)] if changes else []
    return rows


def format_words(run: MeasuredRun) -> str:
    """Returns what wrote the files; for a profiler also which of its steps is shown."""
    if run.recorded is None:
        return f"rank-trace, {'Megatron' if run.unit == 'rank' else 'Megatron schedule plan'}"
    writer = format_label(run.format)
    step_numbers = [step.step_number for step in run.recorded.steps]
    steps_text = f"{plural(len(step_numbers), 'step')} ({RankSet.of(step_numbers).text()})"
    if run.recorded.step is None:
        return f"{writer}; all that was recorded" + (f", {steps_text}" if step_numbers else "")
    choice_text = "the only one" if len(step_numbers) == 1 else f"of {steps_text}"
    return f"{writer}; step {run.recorded.step}, {choice_text}"


def steps_words(steps: Sequence[RecordedStep]) -> str:
    """Returns how long each step lasts on its slowest rank; of many steps the median and the slowest."""
    slowest = sorted(steps, key=lambda step: -step.longest_ns)
    # The step of a set of ranks lasts longer: from the first rank's start to the last one's end.
    of_one = any(len(step.ns) > 1 and step.job_ns is None for step in steps)
    of_ranks = ", each on the rank that takes longest" if of_one else ""
    if len(steps) <= _MOST_STEPS:
        each = ", ".join(f"{step.step_number} {duration(step.longest_ns)}" for step in steps)
        return f"{each}{of_ranks}; the slowest is {slowest[0].step_number}"
    middle = slowest[len(slowest) // 2].longest_ns
    slowest_text = ", ".join(f"{step.step_number} {duration(step.longest_ns)}" for step in slowest[:_SLOWEST])
    return f"{duration(middle)} in the middle{of_ranks}; the slowest: {slowest_text}"


def headline(results: ReplayedRun, wide: bool) -> list[str]:
    """Returns the ranks and the changes of the replay: what the run is, the most important first."""
    run = results.run
    product_use = results.model.product_use
    use = [] if product_use is None else use_facts(product_use)[-2:]
    kind = "schedule plan" if not run.timed else "replayed" if run.replayed else "measured"
    if not wide:
        kind = _short_changes(results.changes) or kind
        degrees = (("tp", run.degrees.tp), ("dp", run.degrees.dp), ("pp", run.degrees.pp))
        # The layout is stated where all its ranks are there.
        is_whole = run.degrees.world in (None, len(run.ranks)) and run.unit == "rank"
        return [short_layout(len(run.ranks), run.unit, degrees if is_whole else ()), kind, *use[:1]]
    changes = replay_words(results.changes, _ROW_CELLS)
    batches = [plural(run.microbatches, "micro-batch")] if run.microbatches else []
    # Behind changes the micro-batches are a fact of their own, which a narrow row can leave out.
    headlines = [f"{kind}: {changes}", *batches] if changes else [", ".join([kind, *batches])]
    return [ranks_words(run), *headlines, *use, *([] if run.concurrent else ["not concurrent"])]


def ranks_words(run: MeasuredRun) -> str:
    """Returns how many ranks there are, and of how many: `8 ranks = tp 2 x dp 1 x pp 4`, `2 of 8 ranks`, `2
    stages`.
    """
    count, degrees = len(run.ranks), run.degrees
    if run.unit != "rank":
        return plural(count, run.unit)
    of = "" if degrees.world in (None, count) else f"{count} of "
    words = of + plural(degrees.world or count, "rank")
    degree_names = (("tp", degrees.tp), ("dp", degrees.dp), ("pp", degrees.pp))
    factors = [f"{name} {degree}" for name, degree in degree_names if degree is not None]
    if len(factors) == len(degree_names):
        return f"{words} = {' x '.join(factors)}"
    return ", ".join([words, *factors])


def replay_words(changes: Sequence[str], room: int) -> str:
    """Returns the changes of a replay in about `room` cells: `compute x2, rank 7 x0.5 in time and 3 more`; ""
    for none.
    """
    listed_changes = list(changes[:1])
    for change in changes[1:]:
        if len(", ".join([*listed_changes, change])) > room:
            break
        listed_changes.append(change)
    unlisted = len(changes) - len(listed_changes)
    return (
        ", ".join(listed_changes)
        + IN_TIME * bool(listed_changes)
        + (f" and {unlisted} more" if unlisted else "")
    )


def _short_changes(changes: Sequence[str]) -> str:
    """Returns the changes for a small screen, `rank 7 x0.5 in time`; `3 changes` where not all have room; ""
    for none.
    """
    if len(changes) == 1:
        what, _, factor = changes[0].replace("host gaps and start of", "host of").rpartition(" ")
        return f"{short_name(what, _SHORT_CELLS - len(factor) - 1)} {factor}{IN_TIME}"
    what = ", ".join(changes)
    if len(what) > _SHORT_CELLS and all(change.startswith("stage ") for change in changes):
        return f"times of {plural(len(changes), 'stage')}"
    forms = (what + IN_TIME * bool(changes), what, plural(len(changes), "change"))
    return next((form for form in forms if len(form) <= _SHORT_CELLS), forms[-1])


def clock_words(run: MeasuredRun) -> str:
    """Returns what the times of the ranks have in common."""
    if not run.timed:
        return "no times, the order alone"
    if run.replayed:
        return "replayed together"
    if len(run.ranks) == 1:
        return "from the start of its first operation"
    return "on one clock" if run.concurrent else "not concurrent: each from its own start"
