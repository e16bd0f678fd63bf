"""A measured run beside another run as a page of text."""

from __future__ import annotations

import math
import textwrap

from simcore.analysis.beside import Beside, KindChange, StagePair, account_of
from simcore.analysis.compare import Change, leading_parts
from simcore.analysis.run import Run
from simcore.diagnostics import printable
from simcore.replay.slow_ranks import LEAST
from simcore.report.changes import change_figures, difference_of
from simcore.report.measured_words import replay_words
from simcore.report.table import Column, table
from simcore.units import column_unit, duration, plural

_WIDTH = 110
# Cells for what a replay changes.
_CHANGES = 36
_STAMP_CELLS = 24
# What a person reads at once is 40 lines; --all has everything.
_STAGES, _ACCOUNTS, _MOVERS = 4, 9, 6
_NO_LIMIT = 1 << 30


def beside_text(beside: Beside, everything: bool = False) -> str:
    """The page: both runs, what of them is not alike, accounts, stages, what changes most.

    everything: all stages, accounts and changes; else at most 40 lines.
    """
    most = (_NO_LIMIT,) * 3 if everything else (_ACCOUNTS, _STAGES, _MOVERS)
    parts = [_head(beside), _accounts(beside, most[0]), _passes(beside, most[1]), _movers(beside, most[2])]
    return "\n".join([*(part for part in parts if part), _rest(beside)])


def run_words(beside: Beside, side: Run) -> str:
    """`run 20250320144110 of `, before the name of a side whose directory has both runs; else ""."""
    return f"run {printable(side.stamp or '', _STAMP_CELLS)} of " if beside.told_by_stamp else ""


def side_facts(side: Run) -> str:
    """`replayed (compute x2), tp 2 x dp 1 x pp 4, 1 micro-batch`: what a side is, without its name."""
    shape = side.shape
    degrees = [
        f"{name} {degree}"
        for name, degree in zip(("tp", "dp", "pp"), shape[:3], strict=True)
        if degree is not None
    ]
    changes = replay_words(side.scales, _CHANGES)
    kind = f"{side.origin} ({changes})" if changes else side.origin
    words = [kind, *([" x ".join(degrees)] if degrees else [])]
    words += [plural(shape.microbatches, "micro-batch")] if shape.microbatches else []
    return ", ".join(words)


def paired_words(beside: Beside) -> str:
    """How lanes were paired: `8 ranks paired`, or by stage alone."""
    if beside.by_rank:
        return f"{plural(sum(pair.ranks for pair in beside.pairs), 'rank')} paired"
    return f"{plural(len(beside.stages), 'stage')} paired, ranks are not: the mean of each stage"


def notices(beside: Beside) -> list[str]:
    """What has to be known before the figures are believed."""
    lines = []
    if beside.unlike:
        words = [f"{name} {a} in A, {b} in B" for name, a, b in beside.unlike if None not in (a, b)]
        for letter, number in (("A", 1), ("B", 2)):
            unknown = [one[0] for one in beside.unlike if one[number] is None]
            words += [f"of {letter} {', '.join(unknown)} not known"] if unknown else []
        lines.append(f"Not the same layout: {'; '.join(words)}. Paired by stage alone.{_how_alike(beside)}")
    for side, name in ((beside.a, "A"), (beside.b, "B")):
        if not side.together:
            lines.append(f"The ranks of {name} did not run together: who waits for whom is not known.")
        elif alone := _without_partner(side, name):
            lines.append(alone)
    return lines


def _without_partner(side: Run, name: str) -> str:
    """That waiting counts as communication where partners are missing, if that makes a difference."""
    partners = side.partners
    if partners is None:
        return ""
    count, rank, ns = partners.waiting()
    if not ns or ns < partners.run.step_time_ns * LEAST:
        return ""
    missing = partners.missing_words()
    calls = "1 receive or collective has" if count == 1 else f"{count} receives and collectives have"
    return (
        f"Of {name} {f'{missing}: ' if missing else ''}{calls} no partner; waiting there counts as "
        f"communication, up to {duration(ns)} on rank {rank}."
    )


def _how_alike(beside: Beside) -> str:
    """The flags with which a workload has the layout of the trace beside it, as far as that is known."""
    simulated = [side for side in (beside.a, beside.b) if side.partners is None]
    if len(simulated) != 1:
        return ""
    (mine,) = simulated
    own, wanted = mine.shape, (beside.b if mine is beside.a else beside.a).shape
    worlds = [
        None if None in one[:3] else math.prod(degree for degree in one[:3] if degree is not None)
        for one in (own, wanted)
    ]
    flags = [
        f"{flag} {there}"
        for flag, here, there in (
            ("--world", *worlds), ("--tp", own.tp, wanted.tp), ("--pp", own.pp, wanted.pp),
            ("--microbatches", own.microbatches, wanted.microbatches),
        )
        if there is not None and here != there
    ]  # fmt: skip
    known = "what is known of the layout" if None in wanted else "the layout"
    return f" {' '.join(flags)} gives the workload {known} of the trace." if flags else ""


def why_words(beside: Beside) -> str:
    """Whose compute changes most, where that explains something, and what changes most on the mean rank: of
    what changes as the step does. Compute is one account.
    """
    if not beside.movers:
        return "nothing changes: the accounts are equal on every stage"
    found, cause = leading_parts(beside.parts, beside.difference_ns), beside.cause
    most, on_mean = found.most, f"{found.words} on the mean rank"
    if cause is not None and cause.change.ns * most.ns > 0:
        if cause.stage is not None or most.account != cause.change.name:
            return f"{_computes(cause)}; {on_mean}"
        # What the mean rank computes is no news beside what it computes more or less.
        return (
            f"{on_mean}, which computes {duration(cause.change.b_ns)}, before {duration(cause.change.a_ns)}"
        )
    of_it = [one for one in beside.movers if account_of(one.change.name) == most.account]
    first = next((one for one in of_it if one.change.ns * most.ns > 0), None)
    if first is None:
        return on_mean
    there = difference_of(first.change.a_ns, first.change.b_ns)
    return f"{on_mean}, most on {where_words(first)}: {first.change.name} {there}"


def where_words(one: KindChange) -> str:
    """`rank 7`, or `stage 3` of the mean of its ranks."""
    if one.rank is not None:
        return f"rank {one.rank}"
    return "all ranks" if one.stage is None else f"stage {one.stage}"


def _computes(cause: KindChange) -> str:
    """`rank 7 computes 962.7 ms less`."""
    where = f"rank {cause.rank}" if cause.rank is not None else "the mean rank"
    if cause.rank is None and cause.stage is not None:
        where += f" of stage {cause.stage}"
    return f"{where} computes {duration(abs(cause.change.ns))} {'more' if cause.change.ns > 0 else 'less'}"


def _head(beside: Beside) -> str:
    lines = []
    for side, name in ((beside.a, "A"), (beside.b, "B")):
        who = f"{run_words(beside, side)}{printable(side.path)}"
        text = f"{name}  {duration(side.step_time_ns):<11} {who}: {side_facts(side)}"
        lines.append(text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "...")
    steps = difference_of(beside.a.step_time_ns, beside.b.step_time_ns)
    lines.append(f"B - A  {steps}; {paired_words(beside)}")
    for line in (*notices(beside), f"Why: {why_words(beside)}."):
        lines += textwrap.wrap(line, _WIDTH, subsequent_indent="     ")
    return "\n".join(lines) + "\n"


def _accounts(beside: Beside, most: int) -> str:
    """The mean of all ranks, and the stage that moves most."""
    steps = Change("step", beside.a.step_time_ns, beside.b.step_time_ns)
    unit_ns, unit = column_unit(max(steps[1:]))
    worst = _by_change(beside)[0]
    there = [
        pair
        for pair in zip(beside.whole.accounts, worst.accounts, strict=True)
        if any((*pair[0][1:], *pair[1][1:]))
    ]
    kept = sorted(there, key=lambda pair: -max(abs(one.ns) for one in pair))[:most]
    rows = [
        [mean.name, *change_figures(mean, unit_ns), *change_figures(of_stage, unit_ns)]
        for mean, of_stage in [*(pair for pair in there if pair in kept), (steps, steps)]
    ]
    columns = [Column(f"account, {unit}", left=True)]
    columns += [Column(name) for name in ("A", "B", "B - A") * 2]
    left = len(there) - len(kept)
    more = f" ({left} that change less: --all)" if left else ""
    where = "all ranks" if worst.stage is None else f"stage {worst.stage}"
    head = f"Accounts: the mean of the paired stages, then {where}, which changes most{more}"
    return "\n".join([head, *table(columns, rows), ""])


def _by_change(beside: Beside) -> list[StagePair]:
    """The stages, those whose accounts change most first."""
    return sorted(beside.stages, key=lambda one: -sum(abs(change.ns) for change in one.accounts))


def _passes(beside: Beside, most: int) -> str:
    """What a forward and a backward pass takes on each stage."""
    there = [
        (stage, forward, backward)
        for stage in beside.stages
        for forward, backward in [(stage.pass_ns("forward"), stage.pass_ns("backward"))]
        if forward is not None or backward is not None
    ]
    if not there:
        return ""

    def moved(one: tuple[StagePair, Change | None, Change | None]) -> int:
        return -sum(abs(change.ns) for change in one[1:] if change is not None)

    kept = sorted(there, key=moved)[:most]
    shown = [one for one in there if one in kept]
    largest = max(ns for _, *both in shown for change in both if change is not None for ns in change[1:])
    unit_ns, unit = column_unit(largest)
    columns = [Column("stage", left=True), Column("passes"), Column(f"forward A, {unit}"), Column("B"),
               Column("B - A"), Column(f"backward A, {unit}"), Column("B"), Column("B - A")]  # fmt: skip
    rows = [
        [
            str(stage.stage),
            str(len(stage.passes)),
            *(change_figures(forward, unit_ns) if forward is not None else ["-"] * 3),
            *(change_figures(backward, unit_ns) if backward is not None else ["-"] * 3),
        ]
        for stage, forward, backward in shown
    ]
    left = len(there) - len(shown)
    more = f" ({plural(left, 'stage')} more: --all)" if left else ""
    head = f"One pass of a micro-batch, communication in it included, the mean of those that both have{more}"
    return "\n".join([head, *table(columns, rows), ""])


def _movers(beside: Beside, most: int) -> str:
    shown = beside.movers[:most]
    if not shown:
        return ""
    columns = [
        Column("where", left=True),
        Column("what", left=True),
        Column("A"),
        Column("B"),
        Column("B - A"),
    ]
    rows = []
    for one in shown:
        change = one.change
        difference = difference_of(change.a_ns, change.b_ns)
        rows.append([where_words(one), change.name, duration(change.a_ns), duration(change.b_ns), difference])
    left = len(beside.movers) - len(shown)
    more = f" ({left} more: --all)" if left else ""
    alone = ", or a rank that does much more" if any(one.rank is not None for one in shown) else ""
    title = f"What differs most, the mean of a stage's ranks{alone}{more}"
    return "\n".join([title, *table(columns, rows), ""])


def _rest(beside: Beside) -> str:
    words = f"Unchanged: {', '.join(beside.unchanged) or 'nothing'}"
    return "\n".join(textwrap.wrap(words, _WIDTH, subsequent_indent="  ")) + "\n"
