"""The run of ranks that a profiler recorded: their clocks brought together by what they did together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from simcore.diagnostics import Diagnostic, Severity
from simcore.measured.columns import RankTrace
from simcore.measured.device_matching import device_clocks, match_devices, partial
from simcore.measured.names import Degrees
from simcore.measured.run import (
    MeasuredRun,
    Recorded,
    RecordedStep,
    aligned,
    largest_gap,
    missing_ranks,
    told_once,
)
from simcore.ranks import RankSet
from simcore.units import duration, plural

_LISTED = 4


def make_device_run(
    path: str,
    ranks: Sequence[RankTrace],
    diagnostics: Sequence[Diagnostic],
    *,
    form: Literal["kineto", "nsys"],
    step: int | None,
    steps: tuple[RecordedStep, ...],
    world: int | None,
    is_set: bool,
    unit: str = "rank",
    stamp: str | None = None,
    label: str | None = None,
    others: tuple[str, ...] = (),
) -> MeasuredRun:
    """The run of these ranks, their times still on the clocks of their hosts.

    diagnostics: of the files. form: `kineto` or `nsys`. step: of all of them, None for all that was
    recorded. world: how many ranks there are, None if not told. Raises InputError for a step longer than an
    axis can be.
    """
    notes: list[Diagnostic] = []

    def say(severity: Severity, code: str, message: str, brief: str) -> None:
        notes.append(Diagnostic(severity, code, message, path, brief=brief))

    ranks = sorted(ranks, key=lambda rank: rank.number)
    degrees = Degrees(world) if unit == "rank" else Degrees()
    missing = missing_ranks(degrees, ranks, is_set, say) if unit == "rank" and world != 1 else RankSet(())
    clocks = device_clocks(ranks, degrees)
    recorded = Recorded(form, step, steps, clocks.shifts, clocks.matched, clocks.residual_ns)
    ranks = [rank.moved(shift) for rank, shift in zip(ranks, clocks.shifts, strict=True)]
    loose = [rank.number for rank, matched in zip(ranks[1:], clocks.matched[1:], strict=True) if not matched]
    if len(ranks) > 1 and len(loose) < len(ranks) - 1:
        most = max(range(len(ranks)), key=lambda index: abs(clocks.shifts[index]))
        middle, worst = clocks.residual_ns
        message = (
            f"clocks brought together by the ends of {plural(max(clocks.matched), 'collective')}: rank "
            f"{ranks[most].number} moved most, by {duration(clocks.shifts[most])}; what is left differs by "
            f"{duration(middle)} in the middle and {duration(worst)} at most"
        )
        say("note", "clock-offset", message, "clocks brought together by collectives")
    gap = largest_gap(ranks)
    # Devices of one file are on its clock.
    if loose and unit == "rank":
        which = RankSet.of(loose).text()
        message = f"nothing ties the clock of rank {which} to the others: its times are those of its file"
        say("warning", "loose-clock", message, f"clock of rank {which} tied to no other")
    if gap:
        message = (
            f"the ranks did not run at the same time (up to {duration(gap)} lie between them): each is shown "
            "from its own start"
        )
        say("warning", "not-concurrent", message, "ranks did not run at one time")
    matches = match_devices(ranks, degrees, not gap)
    lacking = partial(ranks, matches)
    if lacking:
        message = (
            f"{plural(lacking, 'collective')} with members that are missing: time spent waiting for "
            "a missing rank counts as communication"
        )
        say("note", "missing-members", message, f"{plural(lacking, 'collective')} lacking members")
    ranks = aligned(path, ranks, gap == 0)
    said = (*notes, *told_once(diagnostics))
    return MeasuredRun(path, unit, tuple(ranks), degrees, missing, gap == 0, True, stamp, said,
                       label=label, others=others, recorded=recorded)  # fmt: skip
