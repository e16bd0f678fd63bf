"""A measured run: the ranks of one step on one time axis, and what is known of their layout."""

from __future__ import annotations

import os
from collections.abc import Callable, KeysView, Sequence
from functools import cached_property
from typing import Literal

from simcore.diagnostics import Diagnostic, InputError, Severity, printable
from simcore.measured import vocabulary
from simcore.measured.clocks import Breach, find_common_clock, largest_gap
from simcore.measured.columns import RankTrace
from simcore.measured.iterations import cut_iteration, parse_iteration, summarize_iterations
from simcore.measured.matching import name_of
from simcore.measured.rank_positions import Degrees
from simcore.measured.step_columns import RankSteps
from simcore.ranks import Block, RankSet
from simcore.records import Struct, field, replace
from simcore.units import duration, plural
from simcore.workload.model import LARGEST

# The units that an operation of an untimed schedule takes: enough for zooming.
SLOT = 1000
# Takes severity, code, message, and a short form of the message where one is needed.
Say = Callable[..., None]


class RecordedStep(Struct, frozen=True):
    """A step that a profiler recorded. ns: its length by rank, of the ranks that have it whole."""

    step_number: int
    ns: dict[int, int]
    job_ns: int | None = None
    """From its first begin on any rank to its last end, None where the ranks have clocks of their own."""
    figures: dict[str, float] = field(default_factory=dict)
    """What its file states of it beside: of a log `loss`, `tokens_per_second`, `tflops`, `memory_bytes`."""

    @property
    def longest_ns(self) -> int:
        """Its length, on clocks of their own that on the rank where it is longest."""
        return max(self.ns.values()) if self.job_ns is None else self.job_ns


class RecordingInfo(Struct, frozen=True):
    """What is known of a recording besides its ranks."""

    format: str
    """The key of its `Format`."""
    step: int | None
    """The displayed one, None for all that was recorded."""
    steps: tuple[RecordedStep, ...]
    """All steps, in order."""
    shifts: tuple[int, ...] = ()
    """ns by which the clock of each rank was corrected."""
    match_counts: tuple[int, ...] = ()
    """From how many collectives each shift is."""
    residual_ns: tuple[int, int] = (0, 0)
    """By how much ends of one collective still differ, the median and the maximum."""
    on_one_clock: bool = False
    """Whether the times of all files are on one clock."""


class MeasuredRun(Struct, frozen=True, dict=True):
    """One step as it was measured. Times are ns from the start of the step."""

    path: str
    """As the user stated it."""
    unit: str
    """What an id counts, `rank`, or `stage` in a plan."""
    ranks: tuple[RankTrace, ...]
    """By id."""
    degrees: Degrees
    missing: RankSet
    """Ranks of the world that have no file."""
    concurrent: bool
    """Whether all ranks share a clock and a time; if not, each begins at 0."""
    timed: bool
    """False for an untimed schedule, whose operations take SLOT units each, in their order."""
    stamp: str | None
    """Of the run, None where it is not known."""
    diagnostics: tuple[Diagnostic, ...]
    replayed: bool = False
    """Whether the times are those of a replay, not of the files."""
    label: str | None = None
    """What `--run` names it by, None for a run of one file."""
    others: tuple[str, ...] = ()
    """The labels of the other runs of its directory."""
    recorded: RecordingInfo | None = None
    """Of profiler traces."""
    iteration: int | None = None
    """The one that is shown of rank traces of several; None for all of them, and of other runs."""
    rank_steps: tuple[RankSteps, ...] = ()
    """What each rank did in all steps of the files, whichever is shown; of files of several steps."""

    @property
    def format(self) -> str:
        """The format as reports name it."""
        return "rank-trace" if self.recorded is None else self.recorded.format

    @property
    def source(self) -> Literal["measured"]:
        """The kind of run that this file makes."""
        return "measured"

    @property
    def noun(self) -> str:
        """The noun for it in messages."""
        return "a measured run"

    @property
    def of_devices(self) -> bool:
        """Whether its ranks are what a profiler recorded of devices, with streams."""
        return self.recorded is not None

    @property
    def shown_step(self) -> int | None:
        """The number of the step that it shows of several, None for all."""
        return self.iteration if self.recorded is None else self.recorded.step

    @property
    def steps_on_one_clock(self) -> bool:
        """Whether times of different ranks can be compared in all steps of the files."""
        return self.concurrent if self.recorded is None else self.recorded.on_one_clock

    @property
    def has_kernels(self) -> bool:
        """Whether a profiler recorded kernels of devices, with their times."""
        hosts_alone = any(diagnostic.code == "no-device" for diagnostic in self.diagnostics)
        return self.of_devices and self.timed and not hosts_alone

    @cached_property
    def length(self) -> int:
        """The end of the axis: when the last operation of any rank ended."""
        return max(rank.last_ns for rank in self.ranks)

    @property
    def step_time_ns(self) -> int:
        """From the start of the first operation to the end of the last, ns; 0 for an untimed schedule."""
        return self.length if self.timed else 0

    @property
    def ops(self) -> int:
        """The number of operations of all ranks."""
        return sum(len(rank.ops) for rank in self.ranks)

    @property
    def subs(self) -> int:
        """The number of sub-operations of all ranks."""
        return sum(len(rank.subs) for rank in self.ranks)

    @cached_property
    def op_names(self) -> KeysView[str]:
        """The names of all operations and sub-operations, each once, in the order of ranks and files."""
        names = (name for rank in self.ranks for name in (*rank.ops.name, *rank.subs.name))
        return dict.fromkeys(names).keys()

    @property
    def microbatches(self) -> int:
        """The number of micro-batches of the step."""
        return _microbatches(self.ranks)

    @cached_property
    def kinds(self) -> list[str]:
        """The trace's group kinds that occur, in the order of `vocabulary.GROUPS`, others by name."""
        kinds = {kind for rank in self.ranks for kind in (*rank.ops.group, *rank.subs.group)}
        stated_kinds = {kind for kind in kinds if kind is not None}
        known_kinds = [kind for kind in vocabulary.GROUPS if kind in stated_kinds]
        return known_kinds + sorted(stated_kinds.difference(known_kinds))


def _microbatches(ranks: Sequence[RankTrace]) -> int:
    """Returns the micro-batches of the rank that has most, by the counter of forward steps; for devices, of
    all ranks that state a number; 0 where none does.
    """
    return max(map(_batches_of, ranks), default=0)


def _batches_of(rank: RankTrace) -> int:
    ops = rank.ops
    if rank.device is not None:
        return max(ops.batch, default=-1) + 1
    batches = (batch + 1 for name, batch in zip(ops.name, ops.batch, strict=True) if name == "forward_step")
    return max(batches, default=0)


def make_run(
    path: str,
    traces: Sequence[RankTrace],
    degrees: Degrees,
    diagnostics: Sequence[Diagnostic],
    *,
    is_plan: bool,
    is_set: bool,
    stamp: str | None = None,
    together: bool | None = None,
    step: str | None = None,
) -> MeasuredRun:
    """Returns the run of these ranks, whose times are still on the clock of the files.

    diagnostics: of the files. is_set: the ranks are all that could be found, so missing ones are a warning.
    together: whether the stamps of the files are those of one run, False for ranks that were profiled one
    after another, None where it is not known. step: the iteration to show, None or `all` for all of them.
    Raises InputError for a step longer than an axis can be, UsageError for an iteration that is not there.
    """
    notes: list[Diagnostic] = []

    def say(severity: Severity, code: str, message: str, brief: str = "") -> None:
        notes.append(Diagnostic(severity, code, message, path, brief=brief))

    unit = "stage" if is_plan else "rank"
    ranks = sorted(_each_once(traces, unit, say), key=lambda rank: rank.rank)
    stated_degrees, degrees = degrees, _complete_degrees(degrees, ranks) if not is_plan else degrees
    missing = RankSet(()) if is_plan else missing_ranks(degrees, ranks, is_set, say)
    timed = any(rank.timed for rank in ranks)
    concurrent = True
    if timed:
        ranks, concurrent = _align_clocks(ranks, degrees, together, say)
    # The clocks of hosts are the same in all iterations, whichever is shown.
    rank_steps = () if is_plan else summarize_iterations(ranks)
    iteration = parse_iteration(step, path, rank_steps)
    if iteration is not None:
        ranks = [cut_iteration(rank, iteration) if rank.timed else rank for rank in ranks]
    if timed:
        ranks = align_ranks(path, ranks, concurrent)
        if not any(rank.last_ns for rank in ranks):
            say("warning", "no-step-time", "no operation takes time: the step is 0 ns long")
        for rank in ranks:
            if not rank.timed:
                words = f"{unit} {rank.rank} has no times: its operations stand at the start"
                say("warning", "untimed-rank", words)
    else:
        ranks = [_set_slot_times(rank) for rank in ranks]
        message = "the file has no times: the order of the operations is shown, and no step time"
        say("warning", "untimed-schedule", message)
    _say_steps(ranks, bool(rank_steps), timed and not is_plan, say)
    if not is_plan:
        _say_layout(stated_degrees, degrees, ranks, say)
    return MeasuredRun(path, unit, tuple(ranks), degrees, missing, concurrent, timed, stamp,
                       (*notes, *merge_repeated(diagnostics)), rank_steps=rank_steps,
                       iteration=iteration)  # fmt: skip


def _align_clocks(
    ranks: list[RankTrace], degrees: Degrees, together: bool | None, say: Say
) -> tuple[list[RankTrace], bool]:
    """Returns (the ranks on one clock where their clocks can be aligned, whether they have a common time),
    and reports where they have none. together: as in `make_run`.
    """
    # Ranks of one step wait for each other at its end: their times overlap.
    gap = largest_gap((rank.first_ns, rank.last_ns) for rank in ranks if rank.timed)
    if together is not False:
        shifted = _on_one_clock(ranks, degrees, gap > 0, say)
        gap = gap if shifted is None else 0
        ranks = shifted or ranks
    concurrent = gap == 0
    if not concurrent:
        message = (
            f"the ranks did not run at the same time (up to {duration(gap)} lie between them): they were "
            "profiled one after another, or their hosts' clocks differ; each is shown from its own start"
        )
        say("warning", "not-concurrent", message, "ranks did not run at one time")
    return ranks, concurrent


def _say_steps(ranks: Sequence[RankTrace], can_open_one: bool, is_timed_run: bool, say: Say) -> None:
    """Reports how many steps are shown as one. can_open_one: whether --step can."""
    steps = max(rank.ops.name.count("optimizer_step") for rank in ranks)
    if steps > 1:
        more = "; --step N opens one of them" if can_open_one else ""
        message = f"found {steps} optimizer steps: all of them are shown as one step{more}"
        say("note", "several-steps", message)
    elif steps == 1 and is_timed_run and not can_open_one:
        # This assumption comes first: all others are of this step, and no run can check it.
        message = (
            "one step is recorded, taken to be like the others: a warm-up step, or a slow one, would look "
            "like this, too; all figures hang on it"
        )
        say("note", "step-assumed", message, "all steps are like the one recorded: all figures hang on it")


def _each_once(traces: Sequence[RankTrace], unit: str, say: Say) -> list[RankTrace]:
    by_number: dict[int, RankTrace] = {}
    for trace in traces:
        first = by_number.setdefault(trace.rank, trace)
        if first is not trace:
            names = " and ".join(os.path.basename(rank_trace.path) for rank_trace in (first, trace))
            say("warning", "repeated-rank", f"{unit} {trace.rank} is in {names}: the first is shown")
    return list(by_number.values())


def _complete_degrees(degrees: Degrees, ranks: Sequence[RankTrace]) -> Degrees:
    """Returns the degrees, completed from the ranks where no name states them: with all stages, pp; with pp,
    no more.
    """
    if degrees.world is not None or degrees.pp is not None:
        return degrees
    stages = {rank.stage for rank in ranks}
    if None in stages or stages != set(range(len(stages))) or len(ranks) < 2:
        return degrees
    return Degrees(degrees.world, degrees.tp, degrees.dp, len(stages), degrees.exp)


def _say_layout(stated_degrees: Degrees, degrees: Degrees, ranks: Sequence[RankTrace], say: Say) -> None:
    """Reports where the degrees come from, and what follows from a dp of 1."""
    degrees_by_name = (("tp", stated_degrees.tp), ("dp", stated_degrees.dp), ("pp", stated_degrees.pp))
    degree_words = " x ".join(f"{name} {degree}" for name, degree in degrees_by_name if degree is not None)
    assumed = []
    if degree_words:
        assumed.append(f"{degree_words} is read from the names of the files or of their folder")
    elif degrees.pp is not None:
        assumed.append(f"pp {degrees.pp} is counted from the stages in the lines")
    if stated_degrees.position(0) is not None:
        assumed.append("rank numbers count tp first, then dp, then stages")
    batches = _microbatches(ranks)
    if batches and assumed:
        are = "is" if batches == 1 else "are"
        assumed.append(f"{plural(batches, 'micro-batch')} {are} counted from forward_step")
    if assumed:
        say(
            "note",
            "layout-assumed",
            "; ".join(assumed),
            f"{degree_words}: from file names" if degree_words else "",
        )
    if degrees.dp != 1:
        return
    ns, rank_id, name = max(
        (
            (end - start, rank.rank, name)
            for rank in ranks
            if rank.timed
            for ops in (rank.ops,)
            for name, group, start, end in zip(ops.name, ops.group, ops.start, ops.end, strict=True)
            if group == "dp"
        ),
        default=(0, 0, ""),
    )
    if ns:
        message = (
            f"with dp 1 no other rank takes part in {printable(name)}: what it takes, up to {duration(ns)} "
            f"on rank {rank_id}, is the rank's own time; it counts as dp communication, as the trace names it"
        )
        say("note", "dp-of-one", message, f"{printable(name, 14)} at dp 1 has no partner")


def missing_ranks(degrees: Degrees, ranks: Sequence[RankTrace], is_set: bool, say: Say) -> RankSet:
    """Returns the ranks of the world that have no file, and reports them."""
    there = [rank.rank for rank in ranks]
    world = degrees.world
    if world is None:
        # No name states the world: only a hole in the ids can be seen.
        absent, of = _find_holes(there, there[-1] if is_set else 0), "before the last one"
    else:
        beyond = [rank_id for rank_id in there if rank_id >= world]
        if beyond:
            outside = RankSet.of(beyond).text()
            states = "the name states" if ranks[0].device is None else "the files state"
            message = f"rank {outside} does not fit the {world} ranks that {states}"
            say("warning", "rank-outside", message)
        absent, of = _find_holes(there, world), f"of {world}"
    if len(absent):
        noun = "rank" if len(absent) == 1 else "ranks"
        verb = "is" if len(absent) == 1 else "are"
        message = f"{noun} {absent.text()} {of} {verb} missing: {plural(len(there), 'rank')} shown"
        brief = f"{noun} {absent.text()} missing"
        if not is_set:
            brief = f"rank {there[0]} of {world} ranks alone"
            message = f"{brief}; a directory with the others opens as one run"
        say("warning" if is_set else "note", "ranks-missing", message, brief)
    return absent


def _find_holes(there: Sequence[int], world: int) -> RankSet:
    """Returns the ids below `world` that are not in `there`, which is ascending; a world may be huge."""
    blocks, expected = [], 0
    for rank_id in [*(rank_id for rank_id in there if rank_id < world), world]:
        if rank_id > expected:
            blocks.append(Block(expected, rank_id - 1))
        expected = rank_id + 1
    return RankSet(blocks)


def _on_one_clock(ranks: list[RankTrace], degrees: Degrees, apart: bool, say: Say) -> list[RankTrace] | None:
    """Returns the ranks on the clock of the first host, None where their clocks are one, or cannot be
    aligned.
    """
    timed = [rank for rank in ranks if rank.timed]
    common = find_common_clock(timed, degrees, apart)
    if common.breach is not None:
        say("warning", "clocks-disagree", _breach_words(timed, common.breach))
    if not common.clocks:
        return None
    first, *others = (
        _ranks_words([timed[member].rank for member in clock.members]) for clock in common.clocks
    )
    shifted = [
        f"{members} by {'+' if clock.shift_ns < 0 else ''}{duration(-clock.shift_ns)} "
        f"(from {plural(clock.match_count, 'matched communication')})"
        for members, clock in zip(others, common.clocks[1:], strict=True)
    ]
    message = (
        f"the ranks ran on hosts whose clocks differ from that of {first}: {', '.join(shifted)}; all are "
        "shown on that clock"
    )
    if common.loose:
        message += f"; nothing ties {_ranks_words([timed[index].rank for index in common.loose])} to them"
    say("note", "clock-offset", message, f"clocks of hosts brought to that of {first}")
    shifts = {timed[member].rank: clock.shift_ns for clock in common.clocks for member in clock.members}
    return [rank.shift(shifts.get(rank.rank, 0)) for rank in ranks]


def _breach_words(ranks: Sequence[RankTrace], breach: Breach) -> str:
    early, late = (
        (ranks[call.rank].rank, printable(name_of(ranks[call.rank], call), 60))
        for call in (breach.early, breach.late)
    )
    return (
        f"rank {early[0]} has finished {early[1]} {duration(breach.ns)} before rank {late[0]} begins the "
        f"{late[1]} that it needs, and no offset of the clocks explains it: waits between ranks are uncertain"
    )


def _ranks_words(rank_ids: list[int]) -> str:
    return f"{'rank' if len(rank_ids) == 1 else 'ranks'} {RankSet.of(rank_ids).text()}"


def align_ranks(path: str, ranks: Sequence[RankTrace], concurrent: bool) -> list[RankTrace]:
    """Returns the ranks with times from the start of the step, or from their own."""
    first = min(rank.first_ns for rank in ranks if rank.timed)
    last = max(rank.last_ns for rank in ranks if rank.timed)
    longest = last - first if concurrent else max(r.last_ns - r.first_ns for r in ranks if r.timed)
    if longest > LARGEST:
        message = f"the step would take {longest} ns, expected at most {LARGEST}"
        raise InputError(Diagnostic("error", "value-too-large", message, path))
    return [rank.shift(-(first if concurrent else rank.first_ns)) if rank.timed else rank for rank in ranks]


def _set_slot_times(rank: RankTrace) -> RankTrace:
    """Returns an untimed schedule with its operations one after another."""
    ops, subs = rank.ops, rank.subs
    for index in range(len(ops)):
        ops.start[index], ops.end[index] = index * SLOT, (index + 1) * SLOT
    for index, parent in enumerate(subs.parent):
        subs.start[index] = subs.end[index] = parent * SLOT
    return rank


def merge_repeated(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Returns the diagnostics of many files, those with equal words merged into one."""
    files: dict[tuple[str, str], list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        files.setdefault((diagnostic.code, diagnostic.message), []).append(diagnostic)
    merged = []
    for same in files.values():
        first = same[0]
        message = first.message
        if len(same) > 1:
            message += f" (in {len(same)} files, first here)"
        merged.append(replace(first, message=message))
    return merged
