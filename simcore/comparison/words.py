"""Two runs, or two ranks, beside each other in words, whatever they came from."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from simcore.comparison import op_words
from simcore.comparison.changes import leading_parts
from simcore.comparison.pairs import has_rows, numbers_alone
from simcore.comparison.stages import KindChange, account_of, size
from simcore.diagnostics import printable
from simcore.parameters import Parameters
from simcore.records import asdict
from simcore.trace.run import Run
from simcore.units import difference, duration, largest, listed, plural

if TYPE_CHECKING:
    from simcore.comparison import Comparison

# Cells for what a replay changes.
_CHANGES = 36
# And for the flags of a run of execution traces.
_FLAGS = 80
_STAMP_CELLS = 24
_LABEL_CELLS = 24


def title(comparison: Comparison) -> str:
    """The workload, where both runs are of one; else ""."""
    ops = comparison.ops
    return "" if ops is None or ops.other_file else f"Compare  {printable(comparison.a.path)}"


def side_words(comparison: Comparison, number: int) -> str:
    """What A (0) or B (1) is: what is special about it where ops are matched, else its name with what it is.

    `rank 7, stage 1: step 20.823 ms of run 20230907231001#10 of jobs/dlrm, measured`
    """
    if comparison.ops is not None:
        return op_words.side_words(comparison.ops, number)
    run, other = (comparison.a, comparison.b)[number], (comparison.b, comparison.a)[number]
    if comparison.ranks is None:
        return f"{run_words(comparison, run)}{printable(run.path)}: {side_facts(run, other)}"
    facts = side_facts(run, other)
    if not comparison.of_one_run and comparison.rows_of_both is not None:
        facts = op_words.side_words(comparison.rows_of_both, number)
    of = "" if run.setup.label is None else f"run {printable(run.setup.label, _LABEL_CELLS)} of "
    who = ", ".join([f"rank {comparison.ranks[number]}", *track_facts(comparison, number)])
    return f"{who}: step {duration(run.step_time_ns)} of {of}{printable(run.path)}, {facts}"


def track_facts(comparison: Comparison, number: int) -> list[str]:
    """The stage of the rank of A (0) or B (1), and the ranks that do as it does."""
    (track,) = comparison.tracks[number]
    stage = [] if track.stage is None else [f"stage {track.stage}"]
    return [*stage, *([f"one of ranks {track.ranks.text()}"] if len(track.ranks) > 1 else [])]


def names_of_sides(comparison: Comparison) -> tuple[str, str]:
    """`rank 0` and `rank 7`, with the run where there are two; of runs `A, all 8 ranks together` and `B`."""
    if comparison.ranks is None:
        return f"A, {whose_names(comparison)}" if len(comparison.pairs) > 1 else "A", "B"
    of = ("", "") if comparison.of_one_run else (" of A", " of B")
    return f"rank {comparison.ranks[0]}{of[0]}", f"rank {comparison.ranks[1]}{of[1]}"


def whose_names(comparison: Comparison) -> str:
    """Whose time what is done by name is."""
    if comparison.ranks is not None:
        return "time of the step"
    count = sum(pair.ranks for pair in comparison.pairs)
    return f"all {count} ranks together" if count > 1 else f"rank {comparison.pairs[0].rank}"


def accounts_title(comparison: Comparison) -> str:
    """Whose accounts stand beside each other; "" of two ranks."""
    if comparison.ranks is not None:
        return ""
    ops = comparison.ops
    if ops is not None:
        where = op_words.where_words(ops, ops.worst.first, ops.worst.ranks)
        return f"the mean of all ranks, then {where}, where most time is lost"
    stage = comparison.most_changed.stage
    if stage is None:
        return "the mean of all ranks"
    return f"the mean of the paired stages, then stage {stage}, which changes most"


def run_words(comparison: Comparison, side: Run) -> str:
    """`run 20250320144110 of `, before the name of a side whose directory has both runs; else ""."""
    a, b = comparison.a.setup.stamp, comparison.b.setup.stamp
    return (
        f"run {printable(side.setup.stamp or '', _STAMP_CELLS)} of " if None not in (a, b) and a != b else ""
    )


def side_facts(side: Run, other: Run) -> str:
    """`replayed (compute x2), tp 2 x dp 1 x pp 4, 1 micro-batch`: what a side is, without its name. Where no
    layout tells it also the flags that the other side does not have.
    """
    shape = side.shape
    degrees = [
        f"{name} {degree}"
        for name, degree in (("tp", shape.tp), ("dp", shape.dp), ("pp", shape.pp))
        if degree is not None
    ]
    changes = _flags_of_its_own(side, other) if numbers_alone(side) else ""
    if side.recording is not None:
        # Imported here and below: simulated runs need nothing of recorded ones.
        from simcore.words.measured_run import replay_words

        changes = replay_words(side.recording.changes, _CHANGES)
    kind = f"{side.figures.kind} ({changes})" if changes else side.figures.kind
    parts = [kind, *([" x ".join(degrees)] if degrees else [])]
    parts += [plural(shape.scheduled, "micro-batch")] if shape.scheduled else []
    return ", ".join(parts)


def _flags_of_its_own(side: Run, other: Run) -> str:
    """`--time-scale 'all compute=0.5'`: the flags of a run whose values the other has not."""
    fields, others = asdict(side.parameters), asdict(other.parameters)
    own = {name: value for name, value in fields.items() if value != others[name]}
    return printable(shlex.join(Parameters(**own).as_flags()), _FLAGS)


def paired_words(comparison: Comparison) -> str:
    """How many ops were matched, or how lanes were paired: `8 ranks paired`, or by stage alone."""
    if comparison.ops is not None:
        return op_words.matched_words(comparison.ops)
    if comparison.by_rank:
        return f"{plural(sum(pair.ranks for pair in comparison.pairs), 'rank')} paired"
    return f"{plural(len(comparison.stages), 'stage')} paired, ranks are not: the mean of each stage"


def notices(comparison: Comparison) -> list[str]:
    """What has to be known before the figures are believed."""
    if comparison.ops is not None:
        return op_words.notices(comparison.ops)
    if comparison.of_one_run:
        return waits_unknown(comparison.a, "the run")
    lines = []
    if comparison.unlike and comparison.ranks is None:
        parts = [f"{name} {a} in A, {b} in B" for name, a, b in comparison.unlike if None not in (a, b)]
        for letter, number in (("A", 1), ("B", 2)):
            unknown = [figure[0] for figure in comparison.unlike if figure[number] is None]
            parts += [f"of {letter} {', '.join(unknown)} not known"] if unknown else []
        paired = "Paired by rank number." if comparison.by_rank else "Paired by stage alone."
        lines.append(f"Not the same layout: {'; '.join(parts)}. {paired}{_how_alike(comparison)}")
    return [*lines, *waits_unknown(comparison.a, "A"), *waits_unknown(comparison.b, "B")]


def waits_unknown(side: Run, name: str) -> list[str]:
    """What is not known of the waiting of a run, a sentence or none. name: how the run is called."""
    if side.recording is not None and not side.recording.together:
        return [f"The ranks of {name} did not run together: who waits for whom is not known."]
    alone = _without_partner(side, name)
    return [alone] if alone else []


def _without_partner(side: Run, name: str) -> str:
    """That waiting counts as communication where partners are missing, if that makes a difference."""
    if side.recording is None:
        return ""
    from simcore.replay.stragglers import LEAST

    partners = side.recording.partners
    count, rank, ns = partners.waiting()
    if not ns or ns < side.recording.measured_step_ns * LEAST:
        return ""
    missing = partners.missing_words()
    calls = "1 receive or collective has" if count == 1 else f"{count} receives and collectives have"
    return (
        f"Of {name} {f'{missing}: ' if missing else ''}{calls} no partner; waiting there counts as "
        f"communication, up to {duration(ns)} on rank {rank}."
    )


def _how_alike(comparison: Comparison) -> str:
    """The flags with which a workload has the layout of the trace beside it, as far as that is known."""
    sides = comparison.a, comparison.b
    if has_rows(sides[0]) == has_rows(sides[1]):
        return ""
    own, wanted = (side.shape for side in sorted(sides, key=has_rows, reverse=True))
    worlds = [
        None
        if None in (step_shape.tp, step_shape.dp, step_shape.pp)
        else (step_shape.tp or 0) * (step_shape.dp or 0) * (step_shape.pp or 0)
        for step_shape in (own, wanted)
    ]
    flags = [
        f"{flag} {there}"
        for flag, here, there in (
            ("--world", *worlds), ("--tp", own.tp, wanted.tp), ("--pp", own.pp, wanted.pp),
            ("--microbatches", own.scheduled, wanted.scheduled),
        )
        if there is not None and here != there
    ]  # fmt: skip
    known = "what is known of the layout" if None in wanted.by_name.values() else "the layout"
    return f" {' '.join(flags)} gives the workload {known} of the trace." if flags else ""


def why_words(comparison: Comparison) -> str:
    """Whose compute changes most, where that explains something, and what changes most on the mean rank: of
    what changes as the step does. Compute is one account.
    """
    if not comparison.movers:
        return "nothing changes: the accounts are equal on every stage"
    leading, cause = leading_parts(comparison.parts, comparison.difference_ns), comparison.cause
    most, on_mean = leading.most, f"{leading.words} on the mean rank"
    if cause is not None and cause.change.ns * most.ns > 0:
        if cause.stage is not None or most.account != cause.change.name:
            return f"{_computes(cause)}; {on_mean}"
        # What the mean rank computes is no news beside what it computes more or less.
        return (
            f"{on_mean}, which computes {duration(cause.change.b_ns)}, before {duration(cause.change.a_ns)}"
        )
    of_it = [mover for mover in comparison.movers if account_of(mover.change.name) == most.account]
    near = largest({change: size(change) for change in of_it if change.change.ns * most.ns > 0})
    if not near:
        return on_mean
    first = near[0].change
    each = ": " if len(near) == 1 else ", each about "
    there = f"{first.name} {difference(first.a_ns, first.b_ns)}"
    return f"{on_mean}, most on {listed([where_words(change) for change in near])}{each}{there}"


def where_words(change: KindChange) -> str:
    """`rank 7`, or `stage 3` of the mean of its ranks."""
    if change.rank is not None:
        return f"rank {change.rank}"
    return "all ranks" if change.stage is None else f"stage {change.stage}"


def _computes(cause: KindChange) -> str:
    """`rank 7 computes 962.7 ms less`."""
    where = f"rank {cause.rank}" if cause.rank is not None else "the mean rank"
    if cause.rank is None and cause.stage is not None:
        where += f" of stage {cause.stage}"
    return f"{where} computes {duration(size(cause))} {'more' if cause.change.ns > 0 else 'less'}"
