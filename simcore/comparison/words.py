"""The comparison of two runs, or of two ranks, in words, whatever the runs came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.comparison import op_words
from simcore.comparison.changes import find_main_cause, format_parts
from simcore.comparison.pairs import has_numbers_alone, has_rows
from simcore.comparison.stages import KindChange, change_ns, part_account
from simcore.diagnostics import printable
from simcore.parameters import Parameters
from simcore.records import asdict
from simcore.shell_words import join_words
from simcore.trace.run import Run
from simcore.units import difference, duration, join_names, largest_keys, plural

if TYPE_CHECKING:
    from simcore.comparison import Comparison

# Cells for the changes of a replay.
_CHANGES = 36
# Cells for the flags of a run of execution traces.
_FLAGS = 80
_STAMP_CELLS = 24
_LABEL_CELLS = 24


def title(comparison: Comparison) -> str:
    """Returns the title with the workload where both runs are of one; else ""."""
    ops = comparison.ops
    return "" if ops is None or ops.has_other_file else f"Compare  {printable(comparison.a.path)}"


def side_words(comparison: Comparison, side: int) -> str:
    """Returns what A (0) or B (1) is: what is special about it where ops are matched, else its name and
    facts.

    `rank 7, stage 1: step 20.823 ms of run 20230907231001#10 of jobs/dlrm, measured`
    """
    if comparison.ops is not None:
        return op_words.side_words(comparison.ops, side)
    run, other = (comparison.a, comparison.b)[side], (comparison.b, comparison.a)[side]
    if comparison.ranks is None:
        return f"{run_words(comparison, run)}{printable(run.path)}: {side_facts(run, other)}"
    facts = side_facts(run, other)
    if not comparison.is_of_one_run and comparison.op_changes is not None:
        facts = op_words.side_words(comparison.op_changes, side)
    of = "" if run.setup.label is None else f"run {printable(run.setup.label, _LABEL_CELLS)} of "
    who = ", ".join([f"rank {comparison.ranks[side]}", *track_facts(comparison, side)])
    return f"{who}: step {duration(run.step_time_ns)} of {of}{printable(run.path)}, {facts}"


def track_facts(comparison: Comparison, side: int) -> list[str]:
    """Returns the stage of the rank of A (0) or B (1), and the ranks that are equal to it."""
    (track,) = comparison.tracks[side]
    stage = [] if track.stage is None else [f"stage {track.stage}"]
    return [*stage, *([f"one of ranks {track.ranks.text()}"] if len(track.ranks) > 1 else [])]


def format_side_names(comparison: Comparison) -> tuple[str, str]:
    """Returns `rank 0` and `rank 7`, with the run where there are two; for runs `A, all 8 ranks together` and
    `B`.
    """
    if comparison.ranks is None:
        return f"A, {time_owner_text(comparison)}" if len(comparison.pairs) > 1 else "A", "B"
    of = ("", "") if comparison.is_of_one_run else (" of A", " of B")
    return f"rank {comparison.ranks[0]}{of[0]}", f"rank {comparison.ranks[1]}{of[1]}"


def time_owner_text(comparison: Comparison) -> str:
    """Returns the ranks whose time is counted by name."""
    if comparison.ranks is not None:
        return "time of the step"
    count = sum(pair.ranks for pair in comparison.pairs)
    return f"all {count} ranks together" if count > 1 else f"rank {comparison.pairs[0].rank}"


def accounts_title(comparison: Comparison) -> str:
    """Returns the ranks that the columns of accounts are of; "" for two ranks."""
    if comparison.ranks is not None:
        return ""
    ops = comparison.ops
    if ops is not None:
        where = op_words.where_words(ops, ops.slowest_pair.first, ops.slowest_pair.ranks)
        return f"the mean of all ranks, then {where}, where most time is lost"
    stage = comparison.most_changed.stage
    if stage is None:
        return "the mean of all ranks"
    return f"the mean of the paired stages, then stage {stage}, which changes most"


def run_words(comparison: Comparison, side: Run) -> str:
    """Returns `run 20250320144110 of `, before the name of a side whose directory has both runs; of two steps
    of one run `step 23 of `; else "".
    """
    a, b = comparison.a.setup.stamp, comparison.b.setup.stamp
    if a is None or b is None or a == b:
        return ""
    run, _, step = (side.setup.stamp or "").partition("#")
    if step and a.startswith(f"{run}#") and b.startswith(f"{run}#"):
        return "all steps of " if step == "all" else f"step {printable(step, _STAMP_CELLS)} of "
    return f"run {printable(side.setup.stamp or '', _STAMP_CELLS)} of "


def side_facts(side: Run, other: Run) -> str:
    """Returns how a side was made and its shape, without its name:
    `replayed (compute x2), tp 2 x dp 1 x pp 4, 1 micro-batch`.

    Where no layout tells it, these are also the flags that the other side does not have.
    """
    shape = side.shape
    degrees = [
        f"{name} {degree}"
        for name, degree in (("tp", shape.tp), ("dp", shape.dp), ("pp", shape.pp))
        if degree is not None
    ]
    changes = _own_flags_text(side, other) if has_numbers_alone(side) else ""
    if side.recording is not None:
        # Imported here and below: simulated runs need nothing of recorded ones.
        from simcore.words.measured_run import replay_words

        changes = replay_words(side.recording.changes, _CHANGES)
    kind = f"{side.figures.kind} ({changes})" if changes else side.figures.kind
    parts = [kind, *([" x ".join(degrees)] if degrees else [])]
    parts += [plural(shape.scheduled_microbatches, "micro-batch")] if shape.scheduled_microbatches else []
    return ", ".join(parts)


def _own_flags_text(side: Run, other: Run) -> str:
    """Returns the flags of a run whose values the other does not have: `--time-scale 'all compute=0.5'`."""
    fields, others = asdict(side.parameters), asdict(other.parameters)
    own = {name: value for name, value in fields.items() if value != others[name]}
    return printable(join_words(Parameters(**own).as_flags()), _FLAGS)


def paired_words(comparison: Comparison) -> str:
    """Returns how many ops were matched, or how lanes were paired: `8 ranks paired`, or by stage alone."""
    if comparison.ops is not None:
        return op_words.matched_words(comparison.ops)
    if comparison.is_by_rank:
        return f"{plural(sum(pair.ranks for pair in comparison.pairs), 'rank')} paired"
    return f"{plural(len(comparison.stages), 'stage')} paired, ranks are not: the mean of each stage"


def notices(comparison: Comparison) -> list[str]:
    """Returns the sentences that qualify the figures, to be read before them."""
    if comparison.ops is not None:
        return op_words.notices(comparison.ops)
    if comparison.is_of_one_run:
        return waits_unknown(comparison.a, "the run")
    lines = []
    if comparison.layout_differences and comparison.ranks is None:
        parts = [
            f"{name} {a} in A, {b} in B" for name, a, b in comparison.layout_differences if None not in (a, b)
        ]
        for letter, column in (("A", 1), ("B", 2)):
            unknown = [figure[0] for figure in comparison.layout_differences if figure[column] is None]
            parts += [f"of {letter} {', '.join(unknown)} not known"] if unknown else []
        pairing_text = "Paired by rank number." if comparison.is_by_rank else "Paired by stage alone."
        lines.append(
            f"Not the same layout: {'; '.join(parts)}. {pairing_text}{_matching_flags_text(comparison)}"
        )
    return [*lines, *waits_unknown(comparison.a, "A"), *waits_unknown(comparison.b, "B")]


def waits_unknown(side: Run, name: str) -> list[str]:
    """Returns a sentence on what is not known of the waiting of a run, or none. name: what the
    run is called.
    """
    if side.recording is not None and not side.recording.together:
        return [f"The ranks of {name} did not run together: who waits for whom is not known."]
    alone = _missing_partners_text(side, name)
    return [alone] if alone else []


def _missing_partners_text(side: Run, name: str) -> str:
    """Returns a sentence that waiting counts as communication where partners are missing.

    It is "" where the step does not change much by it.
    """
    if side.recording is None:
        return ""
    from simcore.replay.stragglers import LEAST

    partners = side.recording.partners
    count, rank, ns = partners.waiting()
    if not ns or ns < side.recording.measured_step_ns * LEAST:
        return ""
    partners_text = partners.missing_words()
    calls = "1 receive or collective has" if count == 1 else f"{count} receives and collectives have"
    return (
        f"Of {name} {f'{partners_text}: ' if partners_text else ''}{calls} no partner; waiting there "
        "counts as "
        f"communication, up to {duration(ns)} on rank {rank}."
    )


def _matching_flags_text(comparison: Comparison) -> str:
    """Returns the flags that give a workload the layout of the trace it is compared with, where known."""
    sides = comparison.a, comparison.b
    if has_rows(sides[0]) == has_rows(sides[1]):
        return ""
    workload_shape, other = (side.shape for side in sorted(sides, key=has_rows, reverse=True))
    worlds = [
        None
        if None in (step_shape.tp, step_shape.dp, step_shape.pp)
        else (step_shape.tp or 0) * (step_shape.dp or 0) * (step_shape.pp or 0)
        for step_shape in (workload_shape, other)
    ]
    flags = [
        f"{flag} {there}"
        for flag, here, there in (
            ("--world", *worlds),
            ("--tp", workload_shape.tp, other.tp),
            ("--pp", workload_shape.pp, other.pp),
            ("--microbatches", workload_shape.scheduled_microbatches, other.scheduled_microbatches),
        )
        if there is not None and here != there
    ]
    layout_text = "what is known of the layout" if None in other.by_name.values() else "the layout"
    return f" {' '.join(flags)} gives the workload {layout_text} of the trace." if flags else ""


def why_words(comparison: Comparison) -> str:
    """Returns whose compute changes most, where that explains something, and what changes most on the mean
    rank.

    Only changes of the sign of B - A are named. Compute is one account.
    """
    if not comparison.kind_changes:
        return "nothing changes: the accounts are equal on every stage"
    shift = comparison.path_shift
    if shift is not None and shift.is_anew:
        return f"{shift.text} ({format_parts(comparison.parts)} on the mean rank)"
    leading, cause = find_main_cause(comparison.parts, comparison.difference_ns), comparison.compute_cause
    most, on_mean = leading.most, f"{leading.words} on the mean rank"
    if cause is not None and cause.change.ns * most.ns > 0:
        if cause.stage is not None or most.account != cause.change.name:
            return f"{_computes_text(cause)}; {on_mean}"
        # The change of its compute is named already: that the mean rank computes as much more would repeat
        # it.
        return (
            f"{on_mean}, which computes {duration(cause.change.b_ns)}, before {duration(cause.change.a_ns)}"
        )
    account_changes = [
        mover for mover in comparison.kind_changes if part_account(mover.change.name) == most.account
    ]
    largest_changes = largest_keys(
        {change: change_ns(change) for change in account_changes if change.change.ns * most.ns > 0}
    )
    if not largest_changes:
        return on_mean
    first = largest_changes[0].change
    each = ": " if len(largest_changes) == 1 else ", each about "
    change_text = f"{first.name} {difference(first.a_ns, first.b_ns)}"
    return (
        f"{on_mean}, most on "
        f"{join_names([where_words(change) for change in largest_changes])}{each}{change_text}"
    )


def where_words(change: KindChange) -> str:
    """Returns `rank 7`, or `stage 3` for the mean of its ranks."""
    if change.rank is not None:
        return f"rank {change.rank}"
    return "all ranks" if change.stage is None else f"stage {change.stage}"


def _computes_text(cause: KindChange) -> str:
    """Returns `rank 7 computes 962.7 ms less`."""
    where = f"rank {cause.rank}" if cause.rank is not None else "the mean rank"
    if cause.rank is None and cause.stage is not None:
        where += f" of stage {cause.stage}"
    return f"{where} computes {duration(change_ns(cause))} {'more' if cause.change.ns > 0 else 'less'}"
