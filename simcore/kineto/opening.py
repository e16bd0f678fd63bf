"""Opens a profiler's traces, a file, or a directory with one a rank, as the requested run.

The clocks of its ranks are aligned by what they did together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from operator import sub
from statistics import median_low
from typing import TypeVar

from simcore.diagnostics import Diagnostic, InputError, Severity, UsageError, printable
from simcore.kineto.chrome.rules import Rule
from simcore.kineto.groups import name_groups
from simcore.kineto.loading import ReadOptions, read_all, read_bytes, read_one
from simcore.kineto.partitions import part_groups
from simcore.kineto.progress import ReadingLine
from simcore.kineto.recording import ProfilerStep, Recording
from simcore.kineto.sets import Job, ProfilerFile, jobs_of, profiler_files
from simcore.kineto.span_tables import recordings_of
from simcore.measured.columns import RankTrace
from simcore.measured.device_clocks import DeviceClocks, find_axis, find_device_clocks, one_clock
from simcore.measured.device_matching import count_beyond_world, count_incomplete
from simcore.measured.rank_positions import Degrees
from simcore.measured.run import (
    MeasuredRun,
    RecordedStep,
    RecordingInfo,
    align_ranks,
    merge_repeated,
    missing_ranks,
)
from simcore.measured.step_columns import RankSteps, join_steps
from simcore.parameters import OpeningOptions
from simcore.ranks import RankSet
from simcore.records import NamedTuple
from simcore.units import byte_size, duration, plural
from simcore.workload.formats import format_of
from simcore.workload.formats.training_log import KEY as LOG
from simcore.workload.memory import free_bytes
from simcore.workload.source import HEAD_BYTES
from simcore.workload.spans import SpanTable

ALL_STEPS = "all"
_LISTED = 8
# What a report takes beside the columns that were read: 0.42 GB for a million kernels in one step, 2.2 kB for
# each that communicates.
_BYTES_OF_OP, _BYTES_OF_CALL = 450, 2300
# A host that ran further ahead than this share of a step is worth a sentence.
_WORTH_SAYING = 0.01


def open_profile(path: str, options: OpeningOptions) -> MeasuredRun:
    """Returns the run at `path`, a file or a directory. Raises InputError for what cannot be read, UsageError
    for a run, step or rank that is not there.
    """
    _check(options)
    if not os.path.isdir(path):
        size = os.path.getsize(path) if os.path.isfile(path) else 0
        with ReadingLine([(os.path.basename(path), size)]) as progress:
            progress.show()
            part = _read_options(options)
            recordings, diagnostics = read_one(path, part, partial(progress.tell, 0))
        return _run(path, recordings, diagnostics, options, is_set=False)
    files, others = profiler_files(path)
    files = _select_ranks(path, files, options)
    step = _requested_step(options)
    step_number = None if step in (None, ALL_STEPS) else int(step or 0)
    recordings, diagnostics = read_all(
        files,
        _read_options(options)._replace(step=step_number, whole=step == ALL_STEPS),
    )
    if others.count:
        message = others.message(": no profiler traces")
        diagnostics.append(Diagnostic("note", "other-files", message, path))
    return _run(path, recordings, diagnostics, options, is_set=True)


def read_profile(path: str, data: bytes, options: OpeningOptions) -> MeasuredRun:
    """Returns the run in a file's bytes; `path` is for messages."""
    _check(options)
    part = _read_options(options)
    recordings, diagnostics = read_bytes(format_of(data[:HEAD_BYTES]), path, data, part)
    return _run(path, recordings, diagnostics, options, is_set=False)


def open_spans(
    path: str, form: str, table: SpanTable, diagnostics: Sequence[Diagnostic], options: OpeningOptions
) -> MeasuredRun:
    """Returns the run of spans that were read; `path` is for messages. form: the key of their format."""
    _check(options)
    recordings, more = recordings_of(path, form, table)
    return _run(path, recordings, [*diagnostics, *more], options, is_set=False)


def _check_fits(path: str, traces: Sequence[RankTrace]) -> None:
    """Raises UsageError where free memory is too small for a report of these operations."""
    count, free = sum(len(trace.ops) for trace in traces), free_bytes()
    calls = sum(0 if trace.device is None else len(trace.device.collectives) for trace in traces)
    needed = count * _BYTES_OF_OP + calls * _BYTES_OF_CALL
    if free is not None and needed > free:
        raise UsageError(
            f"{plural(count, 'operation')} of {printable(os.path.basename(path), 80)} would need about "
            f"{byte_size(needed)} of memory and {byte_size(free)} are free (--step N opens one step, --ranks "
            "0-7 a part of the ranks)"
        )


def _read_options(options: OpeningOptions) -> ReadOptions:
    """Returns how a whole file is read."""
    rules = tuple(Rule(*rule) for rule in options.trace_rules)
    return ReadOptions(options.comm_names, options.step_names, options.cache, rules=rules)


def _requested_step(options: OpeningOptions) -> str | None:
    """Returns the requested step, stated alone or with its run among those of its job: `--run
    20240923205004#12`.
    """
    return options.step or (options.run or "").partition("#")[2] or None


def _check(options: OpeningOptions) -> None:
    for option, pattern in (("--comm-names", options.comm_names), ("--step-names", options.step_names)):
        try:
            re.compile(pattern or "")
        except (re.error, RecursionError) as error:
            message = f"{option}: found {printable(str(pattern), 60)}, expected a regular expression"
            raise UsageError(f"{message} ({error})") from None
    step = _requested_step(options)
    if step is not None and step != ALL_STEPS and not re.fullmatch(r"\d{1,12}", step):
        option = "--run" if options.step is None else "--step"
        raise UsageError(f"{option}: found {printable(step, 40)}, expected a step's number or all")


def _parse_ranks(text: str) -> set[int]:
    wanted_ranks: set[int] = set()
    for word in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,7})(?:-(\d{1,7}))?\s*", word)
        if ends is None or (ends[2] and int(ends[2]) < int(ends[1])):
            raise UsageError(f"--ranks: found {printable(word, 40)}, expected ranks such as 0-7,12")
        wanted_ranks.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return wanted_ranks


_Item = TypeVar("_Item", ProfilerFile, Recording)


def _select_ranks(path: str, some: Sequence[_Item], options: OpeningOptions) -> list[_Item]:
    """Returns the requested ranks, and those whose rank is not known yet."""
    if options.ranks is None:
        return list(some)
    requested = _parse_ranks(options.ranks)
    fitting = [one for one in some if one.rank is None or one.rank in requested]
    if not fitting:
        raise UsageError(
            f"--ranks {printable(options.ranks, 40)}: no file of these ranks in {printable(path)}"
        )
    return fitting


def _run(
    path: str,
    recordings: Sequence[Recording],
    diagnostics: list[Diagnostic],
    options: OpeningOptions,
    is_set: bool,
) -> MeasuredRun:
    """Returns the requested step of the requested job among recordings. is_set: whether the files are those
    of a directory.
    """
    recordings = [recording for recording in recordings if recording.count]
    if not recordings:
        message = "found no event with a time, expected a profiler's trace"
        raise InputError(Diagnostic("error", "no-events", message, path))
    recordings = _select_ranks(path, recordings, options)
    forms = {recording.form for recording in recordings}
    unit, recordings = _one_each(path, recordings, diagnostics)
    jobs = jobs_of(recordings)
    labels = _labels(jobs)
    job = _choose_job(jobs, labels, (options.run or "").partition("#")[0] or None, path)
    other_jobs = [other for other in jobs if other is not job]
    if other_jobs:
        diagnostics.append(_other_jobs_note(path, job, other_jobs, labels, unit))
    if unit == "rank":
        diagnostics += _ranks_from(path, job)
    rank_steps = _rank_steps(job)
    step, steps = _choose_step(job, unit, options, path, diagnostics)
    opened_ranks = _open_ranks(job, unit, step, options, diagnostics)
    if not opened_ranks:
        raise _empty_step_error(path, step, options)
    traces = [one.trace for one in opened_ranks]
    _check_fits(path, traces)
    diagnostics += [
        *_host_ahead_notes(path, unit, opened_ranks),
        *_other_step_notes(path, unit, opened_ranks),
    ]
    # A file may have all ranks.
    is_set |= unit == "rank" and len(job.ranks) > 1
    if is_set:
        diagnostics += name_groups(path, traces, [one.recording.groups for one in opened_ranks])
        diagnostics += part_groups(path, traces, job.world)
    own_label = labels[id(job)]
    other_steps = [one.step_number for one in steps if one.step_number != step]
    return _device_run(
        path,
        traces,
        diagnostics,
        form=forms.pop() if len(forms) == 1 else "kineto",
        on_one_clock=all(recording.on_one_clock for recording in recordings),
        step=step,
        steps=steps,
        world=job.world if unit == "rank" else None,
        is_set=is_set,
        unit=unit,
        stamp=_step_label(job.stamp, step),
        label=_step_label(own_label, step),
        others=(
            *(_step_label(own_label, other_step) for other_step in other_steps),
            *(labels[id(other)] for other in other_jobs),
        ),
        rank_steps=rank_steps,
    )


def _one_each(
    path: str, recordings: Sequence[Recording], diagnostics: list[Diagnostic]
) -> tuple[str, Sequence[Recording]]:
    """Returns (what the recordings are of, `rank` or `device`; one recording of each). The devices of a
    single file have their own numbers.
    """
    ranks = {(recording.path, recording.rank) for recording in recordings}
    if len(ranks) == 1 and len(recordings) > 1:
        for index, recording in enumerate(recordings):
            recording.rank = index if recording.device is None else recording.device
        return "device", recordings
    if len(ranks) < len(recordings):
        recordings = _one_device_each(path, recordings, diagnostics)
    return "rank", recordings


class _OpenedRank(NamedTuple):
    """What is shown of a rank."""

    rank: int
    recording: Recording
    step: ProfilerStep | None
    """None for all that was recorded."""
    trace: RankTrace


def _open_ranks(
    job: Job, unit: str, step: int | None, options: OpeningOptions, diagnostics: list[Diagnostic]
) -> list[_OpenedRank]:
    """Returns what each rank has in a step, None for all that was recorded; without ranks that have nothing
    in it, which are reported.
    """
    opened_ranks = []
    for rank, windows in sorted(job.ranks.items()):
        recording = next((one for one in windows if one.find_step(step) is not None), windows[-1])
        profiled = recording.find_step(step)
        step_number = None if profiled is None else profiled.step_number
        if not recording.has_step(step_number):
            # Its last step is not that of the rest of its job.
            recording = _read_whole(recording, options)
        trace = recording.trace(rank, step_number)
        if len(trace.ops):
            opened_ranks.append(_OpenedRank(rank, recording, profiled, trace))
        else:
            message = f"{unit} {rank} has nothing in step {step}: it is left out"
            diagnostics.append(Diagnostic("warning", "empty-step", message, recording.path))
    return opened_ranks


def _read_whole(recording: Recording, options: OpeningOptions) -> Recording:
    """Returns a recording with the operations of all of its steps."""
    again = read_one(recording.path, _read_options(options))[0]
    of_device = [other for other in again if other.device == recording.device]
    # A file of spans has many ranks, none with a device; one of many devices states at most one rank.
    return next(other for other in of_device if len(of_device) == 1 or other.rank == recording.rank)


def _empty_step_error(path: str, step: int | None, options: OpeningOptions) -> InputError | UsageError:
    """Returns the error for a step in which no rank has any operation."""
    if _requested_step(options) is None:
        message = f"found no operation in step {step}, the last whole one: --step all would fit"
        return InputError(Diagnostic("error", "no-events", message, path))
    return UsageError(f"--step {step}: no operation was recorded in it in {printable(path)}")


def _other_jobs_note(
    path: str, job: Job, other_jobs: Sequence[Job], labels: dict[int, str], unit: str
) -> Diagnostic:
    """Returns the note that a directory has more jobs than the one that is shown."""
    listed = ", ".join(
        f"{labels[id(other)]} ({plural(len(other.ranks), unit)})" for other in other_jobs[:_LISTED]
    )
    message = f"{labels[id(job)]} is shown; --run opens another job of this directory: {listed}"
    return Diagnostic("note", "other-runs", message, path)


def _rank_steps(job: Job) -> tuple[RankSteps, ...]:
    """Returns the steps of each rank, of a job of several."""
    rank_steps = []
    for rank, some in sorted(job.ranks.items()):
        parts = [recording.step_columns for recording in some if recording.step_columns is not None]
        if parts:
            ops = sum(recording.count for recording in some)
            ahead = frozenset([step.step_number for one in some for step in one.steps if step.ahead_ns])
            rank_steps.append(
                RankSteps(
                    rank,
                    some[0].stage,
                    join_steps(parts),
                    ops,
                    ahead,
                    some[0].groups,
                    some[0].columns.on_device,
                )
            )
    return tuple(rank_steps)


def _ranks_from(path: str, job: Job) -> list[Diagnostic]:
    """Returns notes on where the ids of ranks come from, if not from the files."""
    by: dict[str, list[int]] = {}
    windows = []
    for rank, some in sorted(job.ranks.items()):
        if some[0].rank_from != "file":
            by.setdefault(some[0].rank_from, []).append(rank)
            windows += [rank] if len(some) > 1 else []
    messages = []
    if "name" in by:
        messages.append(f"rank {RankSet.of(by['name']).text()}: the number is that of the file's name")
    if "place" in by:
        which = RankSet.of(by["place"]).text()
        messages.append(f"rank {which}: the number is the place of its file among the names, counted from 0")
    if windows:
        which = RankSet.of(windows).text()
        messages.append(f"rank {which}: files of one process are windows of one rank")
    text = f"{'; '.join(messages)}; no file states its rank" if messages else ""
    return [Diagnostic("note", "rank-from-name", text, path)] if messages else []


def _no_steps(step_names: str | None) -> str:
    if step_names is not None:
        return f"no annotation fits --step-names {printable(step_names, 60)}"
    return "there is no ProfilerStep (--step-names REGEX names other annotations of steps)"


def _host_ahead_notes(path: str, unit: str, opened_ranks: Sequence[_OpenedRank]) -> list[Diagnostic]:
    """Returns notes on where the step of a device is taken to begin, if the host ran ahead, and how long it
    would be otherwise.
    """
    profiled = [(one.rank, one.step) for one in opened_ranks if one.step is not None]
    if not profiled:
        return []
    rank, step = max(profiled, key=lambda one: (one[1].ahead_ns, -one[0]))
    if step.ahead_ns < _WORTH_SAYING * (step.end - step.start):
        return []
    ahead, otherwise = duration(step.ahead_ns), duration(step.end - step.annotated)
    message = (
        f"the host runs ahead of the device: step {step.step_number} is taken to begin when the device "
        f"is done with what was launched before it, on {unit} {rank} {ahead} after the host began it; "
        f"from there on it would last {otherwise}"
    )
    brief = f"step from when the device is free; from the host's start on {otherwise}"
    return [Diagnostic("note", "step-begin-assumed", message, path, brief=brief)]


def _other_step_notes(path: str, unit: str, opened_ranks: Sequence[_OpenedRank]) -> list[Diagnostic]:
    """Returns notes on operations left out because the device is at another step then."""
    outside = [
        (one.rank, one.step.step_number, *one.recording.count_outside(one.step.step_number))
        for one in opened_ranks
        if one.step is not None
    ]
    outside = [one for one in outside if one[2]]
    if not outside:
        return []
    count, which = sum(one[2] for one in outside), RankSet.of([one[0] for one in outside]).text()
    operations = f"{plural(count, 'operation')} of step {outside[0][1]} on {unit} {which}"
    message = (
        f"{operations} {'runs' if count == 1 else 'run'} while the device is at another step, too: what lies "
        f"there, up to {duration(max(one[3] for one in outside))} on one {unit}, is not shown"
    )
    return [Diagnostic("note", "beside-other-steps", message, path)]


def _one_device_each(
    path: str, recordings: Sequence[Recording], diagnostics: list[Diagnostic]
) -> list[Recording]:
    """Returns the recording with most operations of each file: a set has one a rank."""
    best: dict[tuple[str, int | None], Recording] = {}
    for recording in recordings:
        other = best.get((recording.path, recording.rank))
        if other is None or recording.count > other.count:
            best[recording.path, recording.rank] = recording
    left = len(recordings) - len(best)
    message = (
        f"{plural(left, 'device')} left aside, besides the one that each rank uses most: open its file alone"
    )
    diagnostics.append(Diagnostic("warning", "several-devices", message, path))
    return list(best.values())


def _labels(jobs: Sequence[Job]) -> dict[int, str]:
    """Returns the `--run` label of each job: its stamp, where two share it also the first file's name."""
    stamps = [job.stamp for job in jobs]
    return {
        id(job): job.stamp if stamps.count(job.stamp) == 1 else f"{job.stamp}@{_first_name(job)}"
        for job in jobs
    }


def _step_label(label: str, step: int | None) -> str:
    """Returns the `--run` label of a step of a job."""
    return f"{label}#{ALL_STEPS if step is None else step}"


def _first_name(job: Job) -> str:
    return os.path.basename(min(recording.path for some in job.ranks.values() for recording in some))


def _choose_job(jobs: Sequence[Job], labels: dict[int, str], label: str | None, path: str) -> Job:
    """Returns the job whose label begins so, None for the first. Raises UsageError where not one does."""
    if label is None:
        return jobs[0]
    fitting = [job for job in jobs if labels[id(job)].startswith(label)]
    if len(fitting) == 1:
        return fitting[0]
    what = f"{len(fitting)} jobs fit" if fitting else "there is no such job"
    listed = ", ".join(labels[id(job)] for job in jobs[:_LISTED])
    raise UsageError(
        f"--run {printable(label, 60)}: {what} in {printable(path)}; {plural(len(jobs), 'job')}: {listed}"
    )


def _choose_step(
    job: Job, unit: str, options: OpeningOptions, path: str, diagnostics: list[Diagnostic]
) -> tuple[int | None, tuple[RecordedStep, ...]]:
    """Returns (the step to show, None for all that was recorded; all steps). Ranks that do not have a
    requested step whole leave the job, which is reported.
    """
    steps = _recorded_steps(job)
    lengths = {step.step_number: step.ns for step in steps}
    requested = _requested_step(options)
    is_log = any(recording.form == LOG for some in job.ranks.values() for recording in some)
    if requested is None:
        whole = [one.step_number for one in steps if len(one.ns) == len(job.ranks)]
        if whole and is_log:
            # A log has nothing of a step but its time, and the last one may be any.
            length_of = {step: lengths[step][min(lengths[step])] for step in whole}
            median_ns = median_low(length_of.values())
            return next(step for step, ns in length_of.items() if ns == median_ns), steps
        recordings = [recording for some in job.ranks.values() for recording in some]
        for step_number in reversed(whole):
            found_steps = (recording.find_step(step_number) for recording in recordings)
            if any(step is not None and step.ops for step in found_steps):
                return step_number, steps
        why = f"no step is whole on every {unit}" if steps else _no_steps(options.step_names)
        diagnostics.append(Diagnostic("note", "no-steps", f"{why}: all that was recorded is one step", path))
        return None, steps
    if requested == ALL_STEPS:
        if any(len(some) > 1 for some in job.ranks.values()):
            message = "ranks have several windows: the last one is shown, --step opens a step of another"
            diagnostics.append(Diagnostic("note", "several-windows", message, path))
        return None, steps
    step_number = int(requested)
    if step_number not in lengths:
        there = RankSet.of(sorted(lengths)).text() if lengths else "none"
        raise UsageError(f"--step {step_number}: no such step in {printable(path)}, found {there}")
    lacking = sorted(set(job.ranks) - set(lengths[step_number]))
    if lacking:
        message = f"{unit} {RankSet.of(lacking).text()} does not have step {step_number} whole: left out"
        diagnostics.append(Diagnostic("warning", "step-not-whole", message, path))
        for rank in lacking:
            del job.ranks[rank]
    return step_number, steps


def _recorded_steps(job: Job) -> tuple[RecordedStep, ...]:
    """Returns the whole steps of a job."""
    recordings = [recording for some in job.ranks.values() for recording in some]
    on_one_clock = all(recording.on_one_clock for recording in recordings)
    figures: dict[int, dict[str, float]] = {}
    for recording in recordings:
        for name, by_step in recording.figures.items():
            for step_number, value in by_step.items():
                figures.setdefault(step_number, {}).setdefault(name, value)
    ranks: list[int] = []
    by_number: dict[int, tuple[list[int], list[int], list[int]]]
    windows: list[tuple[Sequence[int], Sequence[int], Sequence[int]]] = []
    for rank, some in job.ranks.items():
        for recording in some:
            columns = recording.step_columns
            ranks.append(rank)
            if columns is not None:
                windows.append((columns.step, columns.start, columns.end))
            else:
                # The last step of a truncated file is not whole.
                whole = recording.steps[: len(recording.steps) - recording.is_truncated]
                windows.append(([step.step_number for step in whole], [step.start for step in whole],
                                [step.end for step in whole]))  # fmt: skip
    if all(columns_of_rank[0] == windows[0][0] for columns_of_rank in windows) and len(set(ranks)) == len(
        ranks
    ):
        # As it is nearly always: 640,000 steps of ranks take 0.1 s of 0.8.
        starts, ends = (list(zip(*column, strict=True)) for column in list(zip(*windows, strict=True))[1:])
        by_number = {
            step_number: (ranks, [*start], [*end])
            for step_number, start, end in zip(windows[0][0], starts, ends, strict=True)
        }
    else:
        by_number = {}
        for rank, columns_of_rank in zip(ranks, windows, strict=True):
            for step_number, start, end in zip(*columns_of_rank, strict=True):
                of_step = by_number.setdefault(step_number, ([], [], []))
                for column, value in zip(of_step, (rank, start, end), strict=True):
                    column.append(value)
    return tuple(
        RecordedStep(
            step_number,
            dict(zip(some_ranks, map(sub, ends, starts), strict=True)),
            max(ends) - min(starts) if on_one_clock else None,
            figures.get(step_number, {}),
        )
        for step_number, (some_ranks, starts, ends) in sorted(by_number.items())
    )


def _offset_words(ranks: Sequence[RankTrace], clocks: DeviceClocks) -> str:
    """Returns the clock offsets that collectives imply, in words."""
    tied = [index for index, root in enumerate(clocks.root) if clocks.match_counts[index] or index == root]
    most = max(tied, key=lambda index: abs(clocks.shifts[index]))
    middle, worst = clocks.residual_ns
    return (
        f"clocks brought together by the ends of {plural(max(clocks.match_counts), 'collective')}: rank "
        f"{ranks[most].rank} moved most, by {duration(clocks.shifts[most])}; what is left differs by "
        f"{duration(middle)} in the middle and {duration(worst)} at most"
    )


def _say_loose(
    ranks: Sequence[RankTrace], clocks: DeviceClocks, say: Callable[[Severity, str, str, str], None]
) -> None:
    """Reports the clocks that no collective aligns with that of the first rank."""
    apart = [index for index, root in enumerate(clocks.root) if root]
    by_messages = [index for index in apart if not clocks.message_root[index]]
    loose = [ranks[index].rank for index in apart if clocks.message_root[index]]
    if by_messages:
        which = RankSet.of([ranks[index].rank for index in by_messages]).text()
        largest_shift = max(abs(clocks.shifts[clocks.root[index]]) for index in by_messages)
        how = (
            f"moved by {duration(largest_shift)}{' at most' if len(by_messages) > 1 else ''}, no "
            "further than needed"
        )
        message = (
            f"sends and receives alone tie the clock of rank {which} to the others: it is "
            f"{how if largest_shift else 'not moved'}, as no receive ends before its send begins"
        )
        say("note", "bound-clock", message, f"clock of rank {which} tied by sends and receives alone")
    if loose:
        which = RankSet.of(loose).text()
        message = f"nothing ties the clock of rank {which} to the others: its times are those of its file"
        say("warning", "loose-clock", message, f"clock of rank {which} tied to no other")


def _on_one_axis(
    ranks: Sequence[RankTrace],
    clocks: DeviceClocks,
    unit: str,
    say: Callable[[Severity, str, str, str], None],
) -> tuple[list[int], bool]:
    """Returns (ns by which each rank is shifted further, whether the ranks have a common time), and reports
    it. Where those tied in several sets begin at one start, waits are those inside the sets.
    """
    spans = [(rank.first_ns, rank.last_ns) for rank in ranks]
    axis = find_axis(spans, clocks.message_root, any(rank.ahead_ns for rank in ranks[1:]))
    gap = axis.gap_ns
    if gap and 1 < len(set(clocks.message_root)) < len(ranks):
        loose = RankSet.of(
            [rank.rank for root, rank in zip(clocks.message_root, ranks, strict=True) if root]
        ).text()
        message = (
            f"nothing ties the clock of rank {loose} to the others, which did not run at the same time by it "
            f"(up to {duration(gap)} lie between them): what is tied is shown from one start"
        )
        say("warning", "loose-clock", message, f"clock of rank {loose} tied to no other")
        return axis.further, True
    # Devices without common calls that are behind their hosts drift apart: at no time are all at one step.
    drifts = axis.drifts
    # Devices of one file are on its clock.
    if unit == "rank" and not drifts:
        _say_loose(ranks, clocks, say)
    if drifts:
        message = (
            f"nothing ties the {unit}s to each other, and they are behind their hosts, each by another time: "
            "each is shown from its own start"
        )
        say("warning", "not-concurrent", message, f"nothing ties the {unit}s to each other")
    elif gap:
        message = (
            f"the ranks did not run at the same time (up to {duration(gap)} lie between them): each is shown "
            "from its own start"
        )
        say("warning", "not-concurrent", message, "ranks did not run at one time")
    return axis.further, axis.is_shared


def _device_run(
    path: str,
    ranks: Sequence[RankTrace],
    diagnostics: Sequence[Diagnostic],
    *,
    form: str,
    on_one_clock: bool,
    step: int | None,
    steps: tuple[RecordedStep, ...],
    world: int | None,
    is_set: bool,
    unit: str,
    stamp: str,
    label: str,
    others: tuple[str, ...],
    rank_steps: tuple[RankSteps, ...],
) -> MeasuredRun:
    """Returns the run of these ranks, whose times are still on the clocks of their hosts.

    diagnostics: of the files. form: the key of their format. on_one_clock: whether their clocks are one.
    step: of all of them, None for all that was recorded. world: the number of ranks, None if not stated.
    Raises InputError for a step longer than an axis can be.
    """
    notes: list[Diagnostic] = []

    def say(severity: Severity, code: str, message: str, brief: str = "") -> None:
        notes.append(Diagnostic(severity, code, message, path, brief=brief))

    ranks = sorted(ranks, key=lambda rank: rank.rank)
    degrees = Degrees(world) if unit == "rank" else Degrees()
    missing = missing_ranks(degrees, ranks, is_set, say) if unit == "rank" and world != 1 else RankSet(())
    clocks = one_clock(len(ranks)) if on_one_clock else find_device_clocks(ranks, degrees)
    ranks = [rank.shift(shift) for rank, shift in zip(ranks, clocks.shifts, strict=True)]
    if any(clocks.match_counts):
        say("note", "clock-offset", _offset_words(ranks, clocks), "clocks brought together by collectives")
    further, concurrent = ([0] * len(ranks), True) if on_one_clock else _on_one_axis(ranks, clocks, unit, say)
    shifts = tuple(map(sum, zip(clocks.shifts, further, strict=True)))
    recorded = RecordingInfo(form, step, steps, shifts, clocks.match_counts, clocks.residual_ns, on_one_clock)
    ranks = [rank.shift(shift) for rank, shift in zip(ranks, further, strict=True)]
    lacking = count_incomplete(ranks, degrees, concurrent)
    if lacking:
        message = (
            f"{plural(lacking, 'collective')} with members that are missing: time spent waiting for "
            "a missing rank counts as communication"
        )
        say("note", "missing-members", message, f"{plural(lacking, 'collective')} lacking members")
    whole = degrees.world
    beyond, members = (0, 0) if whole is None else count_beyond_world(ranks, whole)
    if beyond:
        calls = plural(beyond, "call")
        message = (
            f"{calls} of groups of up to {members} members in a world of {plural(whole or 0, 'rank')}: "
            "their partners are not known, and no wait is stated of them"
        )
        say("warning", "group-unknown", message, f"groups of {calls} not known")
    ranks = align_ranks(path, ranks, concurrent)
    all_diagnostics = (*notes, *merge_repeated(diagnostics))
    return MeasuredRun(path, unit, tuple(ranks), degrees, missing, concurrent, True, stamp, all_diagnostics,
                       label=label, others=others, recorded=recorded, rank_steps=rank_steps)  # fmt: skip
