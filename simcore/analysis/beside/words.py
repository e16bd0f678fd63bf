"""A measured run beside another run, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from simcore.analysis.compare.parts import BUSY
from simcore.analysis.compare.reasons import leading_parts
from simcore.diagnostics import printable
from simcore.replay.run_words import replay_words
from simcore.replay.stragglers import LEAST
from simcore.run.track import ALIKE, COMPUTE
from simcore.units import difference, duration, plural

if TYPE_CHECKING:
    from simcore.analysis.beside.pairs import Beside, KindChange
    from simcore.analysis.run import Run

# Cells for what a replay changes.
_CHANGES = 36
_STAMP_CELLS = 24


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
    there = difference(first.change.a_ns, first.change.b_ns)
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


def account_of(name: str) -> str:
    """The account that one of ALIKE is a part of where a difference is explained: compute is one."""
    return BUSY if ALIKE.index(name) in COMPUTE else name
