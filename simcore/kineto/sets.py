"""Which files of a directory are a profiler's traces, and which of them are one job."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

from simcore.diagnostics import InputError
from simcore.kineto.recording import Recording
from simcore.records import Struct
from simcore.workload.formats import format_of
from simcore.workload.ignored_files import IgnoredFiles
from simcore.workload.opening import read_beginning

_HEAD_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d{1,7})')
_STAMP = re.compile(r"[0-9]{8,}")
# The ending that the profiler's own writer gives to compressed files.
_PACKED = ".json.gz"
# `HOST_PID.STAMP.pt.trace.json`, as the profiler's handler for TensorBoard names files.
_NAME_PROCESS = re.compile(r"(.+)_(\d{1,10})\.\d{10,}\.")
# Ranks of one run begin within minutes; a directory of a day has runs hours apart.
_OTHER_RUN_NS = 3600 * 10**9
_NAME_RANK = re.compile(r"(?:rank|worker)[-_]?(\d{1,7})(?!\d)", re.IGNORECASE)
# Folders of a job are nested so deep: `iteration_100/`, `step_5/rank_0/`.
_DEPTH = 3
_MOST_FILES = 100_000


class ProfilerFile(Struct, frozen=True):
    """A file of a recording."""

    path: str
    rank: int | None
    """As its beginning states it, else its name; None where neither does, or each of its spans does."""
    bytes: int
    """Of the file as it is stored."""


def profiler_files(path: str, depth: int = _DEPTH) -> tuple[list[ProfilerFile], IgnoredFiles]:
    """Returns (the files of recordings of a directory, by name; its other files).

    Folders are searched where the directory itself has none. Raises OSError when it cannot be read.
    """
    files: list[ProfilerFile] = []
    folders: list[str] = []
    others = IgnoredFiles()
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        try:
            if entry.is_dir():
                folders.append(entry.path)
                continue
            size = entry.stat()
            head = read_beginning(entry.path) if stat.S_ISREG(size.st_mode) else b""
            file_format = format_of(head)
            is_recording = file_format is not None and file_format.kind == "profile"
        except OSError:
            others.add(entry.name, b"")
            continue
        except InputError:
            # It is damaged gzip data: that this rank is missing is reported with the reason when it is read.
            head, file_format, is_recording = b"", None, entry.name.endswith(_PACKED)
        if not is_recording:
            others.add(entry.name, head)
            continue
        rank = (
            None if file_format is not None and file_format.spans is not None else _rank_of(entry.name, head)
        )
        files.append(ProfilerFile(entry.path, rank, size.st_size))
        if len(files) > _MOST_FILES:
            break
    if not files and depth:
        for folder in folders:
            try:
                inner, left = profiler_files(folder, depth - 1)
            except OSError:
                continue
            files += inner
            others.add_all(left)
    return files, others


def _rank_of(name: str, head: bytes) -> int | None:
    """Returns the rank that a file's beginning states, else its name; None where neither does."""
    head_match, name_match = _HEAD_RANK.search(head), _NAME_RANK.search(name)
    return int(head_match[1]) if head_match else int(name_match[1]) if name_match else None


class Job(Struct, frozen=True):
    """Recordings of one job: of each rank one, or several windows of different steps, in order of time."""

    ranks: dict[int, list[Recording]]

    @property
    def world(self) -> int | None:
        """The number of ranks that the files state."""
        return max(
            (recording.world for some in self.ranks.values() for recording in some if recording.world),
            default=None,
        )

    @property
    def start_ns(self) -> int:
        """When its first window starts."""
        return min(recording.first_ns for some in self.ranks.values() for recording in some)

    @property
    def stamp(self) -> str:
        """That time as a time stamp, on the clock of its hosts."""
        seconds = self.start_ns // 10**9
        try:
            return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y%m%d%H%M%S")
        except (OverflowError, ValueError, OSError):
            return str(seconds)

    @property
    def is_complete(self) -> bool:
        """Whether all ranks of the world are there."""
        world = self.world
        return world is None or all(rank in self.ranks for rank in range(min(world, len(self.ranks) + 1)))


def jobs_of(recordings: Iterable[Recording]) -> list[Job]:
    """Returns the jobs, the one to open first: complete ones, then those of most ranks, then the newest.

    Metadata state which rank a file is of; else its process, as a process that has other windows is one rank;
    else the file's name; else it gets the next free id, in the order of the names.
    """
    by_job: dict[str, list[Recording]] = {}
    for recording in recordings:
        by_job.setdefault(recording.job, []).append(recording)
    jobs = [job for some in by_job.values() for run in _runs(some) for job in _jobs(run)]
    jobs.sort(key=lambda job: (not job.is_complete, -len(job.ranks), -job.start_ns))
    return jobs


def _runs(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """Returns recordings by run: where ranks are distinguished only by the order of their files, those of
    other hours are another run.
    """
    if any(recording.rank is not None or _rank_in_name(recording) is not None for recording in recordings):
        return [list(recordings)]
    runs: list[list[Recording]] = []
    reached = 0
    for recording in sorted(recordings, key=lambda recording: recording.first_ns):
        if not runs or recording.first_ns - reached > _OTHER_RUN_NS:
            runs.append([])
            reached = recording.last_ns
        runs[-1].append(recording)
        reached = max(reached, recording.last_ns)
    return runs


def _number_ranks(recordings: Sequence[Recording]) -> None:
    """Gives an id to each recording whose file states none."""
    used_ranks = {recording.rank for recording in recordings if recording.rank is not None}
    used_ranks |= {rank for recording in recordings if (rank := _rank_in_name(recording)) is not None}
    free = (
        candidate for candidate in range(len(recordings) + len(used_ranks) + 1) if candidate not in used_ranks
    )
    windows: dict[tuple[str, int], list[Recording]] = {}
    for recording in sorted(recordings, key=lambda recording: recording.path):
        if recording.rank is not None:
            continue
        process = _process(recording)
        same_process = windows.setdefault(process, []) if process is not None else []
        if same_process and all(_is_other_window(recording, window) for window in same_process):
            recording.rank, recording.rank_from = same_process[0].rank, same_process[0].rank_from
        elif (name_rank := _rank_in_name(recording)) is not None:
            recording.rank, recording.rank_from = name_rank, "name"
        else:
            recording.rank, recording.rank_from = next(free), "place"
        same_process.append(recording)


def _rank_in_name(recording: Recording) -> int | None:
    match = _NAME_RANK.search(os.path.basename(recording.path))
    return None if match is None else int(match[1])


def _process(recording: Recording) -> tuple[str, int] | None:
    """Returns (host, process) of a recording, where they are known; None where no process is."""
    match = _NAME_PROCESS.match(os.path.basename(recording.path))
    if match is not None:
        return match[1], int(match[2])
    return None if recording.process is None else ("", recording.process)


def _is_other_window(recording: Recording, window: Recording) -> bool:
    """Returns whether one process recorded both, one after the other. Where the host is not known either,
    processes of several hosts may have one id: those have a step in common.
    """
    apart = recording.first_ns >= window.last_ns or recording.last_ns <= window.first_ns
    if _NAME_PROCESS.match(os.path.basename(recording.path)) is not None:
        return apart
    return apart and not {step.step_number for step in recording.steps} & {
        step.step_number for step in window.steps
    }


def _jobs(recordings: Sequence[Recording]) -> list[Job]:
    _number_ranks(recordings)
    parts = _split(recordings)
    merged: list[dict[int, list[Recording]]] = []
    steps: list[set[int]] = []
    for part in parts:
        step_numbers = {step.step_number for recording in part for step in recording.steps}
        # Windows of other steps are a part of the same job.
        at = next(
            (
                index
                for index, other_steps in enumerate(steps)
                if step_numbers and not other_steps & step_numbers
            ),
            None,
        )
        if at is None or not steps[at]:
            merged.append({})
            steps.append(set())
            at = len(merged) - 1
        steps[at] |= step_numbers
        for recording in part:
            merged[at].setdefault(_rank_or_zero(recording), []).append(recording)
    return [Job(merged_job) for merged_job in merged]


def _split(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """Returns parts in which each rank is once, in order of time: by the names of the files where those
    distinguish them.
    """
    if _has_unique_ranks(recordings):
        return [list(recordings)]
    for key in (
        lambda recording: os.path.dirname(recording.path),
        lambda recording: _name_key(recording.path),
    ):
        by_name: dict[str, list[Recording]] = {}
        for recording in recordings:
            by_name.setdefault(key(recording), []).append(recording)
        if 1 < len(by_name) < len(recordings) and all(map(_has_unique_ranks, by_name.values())):
            return sorted(by_name.values(), key=lambda part: min(recording.first_ns for recording in part))
    parts: list[list[Recording]] = []
    for recording in sorted(recordings, key=lambda recording: (recording.first_ns, recording.path)):
        part = next(
            (part for part in parts[-1:] if all(recording.rank != other.rank for other in part)), None
        )
        if part is None:
            parts.append([recording])
        else:
            part.append(recording)
    return parts


def _name_key(path: str) -> str:
    """Returns a file's name without its rank and time stamps."""
    return _STAMP.sub("*", _NAME_RANK.sub("*", os.path.basename(path)))


def _has_unique_ranks(recordings: Sequence[Recording]) -> bool:
    return len({recording.rank for recording in recordings}) == len(recordings)


def _rank_or_zero(recording: Recording) -> int:
    return 0 if recording.rank is None else recording.rank
