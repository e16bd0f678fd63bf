"""Which files of a directory are one run: equal names but for rank and stamp, stamps close together.

Ranks of one run are stamped a second or so apart. Ranks that were profiled one after another
on one device are stamped minutes apart: runs that have no rank in common, none of them
complete, are taken as one such run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime

from simcore.diagnostics import UsageError, printable
from simcore.measured.names import TraceName
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.units import plural

# Stamps of one run differ by a second or two; two runs of one job are at least a minute apart.
_SAME_RUN_S = 10
_LISTED = 12


class TraceFile(Struct, frozen=True):
    """A trace file. first_rank: of its first line, in a schedule plan (unit `stage`) the stage."""

    path: str
    name: TraceName
    first_rank: int
    unit: str = "rank"


class TraceSet(Struct, frozen=True):
    """The files of one run, by rank. stamp: the earliest, None where the names have none."""

    files: tuple[TraceFile, ...]

    @property
    def stamp(self) -> str | None:
        return min((file.name.stamp for file in self.files if file.name.stamp is not None), default=None)

    @property
    def label(self) -> str:
        """What it is called: the stamp, else the name without the rank."""
        return self.stamp or self.files[0].name.key

    @property
    def labels(self) -> set[str]:
        """All that `--run` takes: the stamps of the files, else their names without the rank."""
        return {file.name.stamp or file.name.key for file in self.files}

    @property
    def names(self) -> set[str | None]:
        """All that it is called: the stamps, the name without the rank, both, and the names of its files."""
        key = self.files[0].name.key
        stamps = {file.name.stamp for file in self.files}
        files = {os.path.basename(file.path) for file in self.files}
        return {*stamps, *(file.name.key for file in self.files), f"{key}@{self.stamp}", *files}

    @property
    def ranks(self) -> frozenset[int]:
        return frozenset(file.first_rank for file in self.files)

    @property
    def expected(self) -> int | None:
        """How many ranks the names state, of a plan how many stages; None if they state none."""
        first = self.files[0]
        return first.name.degrees.world if first.unit == "rank" else first.name.degrees.pp

    @property
    def is_complete(self) -> bool:
        """Whether every rank that the names state is there; True if they state none."""
        count = self.expected
        return count is None or sum(rank < count for rank in self.ranks) == count

    @property
    def lacks_ranks(self) -> bool:
        """Whether other files may belong to it: ranks are missing, or nobody knows how many there are."""
        return self.expected is None or not self.is_complete

    @property
    def is_together(self) -> bool | None:
        """Whether the stamps are those of one run; None where the names have none."""
        if all(_seconds(file.name.stamp) is None for file in self.files):
            return None
        return len(self.by_stamp) == 1

    @property
    def by_stamp(self) -> list[TraceSet]:
        """The runs that it was put together of, ranks that were profiled one after another: mostly itself."""
        runs: list[list[TraceFile]] = []
        before: float | None = None
        for file in sorted(self.files, key=lambda file: (file.name.stamp or "", *_by_rank(file))):
            now = _seconds(file.name.stamp)
            if not runs or not _near(before, now):
                runs.append([])
            runs[-1].append(file)
            before = before if now is None else now
        return [TraceSet(tuple(sorted(run, key=_by_rank))) for run in runs]

    def words(self, by_name: bool = False, with_missing: bool = True) -> str:
        """`20240923205004 (ranks 0-7)`, or with what is missing; `by_name` by the name of the files."""
        of = "" if self.is_complete or not with_missing else f" of {self.expected}, incomplete"
        noun = self.files[0].unit + ("" if len(self.ranks) == 1 else "s")
        label = self.files[0].name.key if by_name else self.label
        last = max((file.name.stamp or "" for file in self.files), default="")
        if self.is_together is False and not by_name:
            label += f" to {last}"
        return f"{printable(label, 80)} ({noun} {RankSet.of(self.ranks).text()}{of})"


def sets_of(files: Iterable[TraceFile]) -> list[TraceSet]:
    """The runs among `files`, the one to open first: complete ones, newest first, then the others.

    Behind complete ones stand those that are complete only if they were profiled one after another.
    """
    by_key: dict[str, list[TraceFile]] = {}
    for file in files:
        by_key.setdefault(file.name.key, []).append(file)
    runs = [run for key in sorted(by_key) for run in _runs(by_key[key])]
    trace_sets = [TraceSet(tuple(sorted(run, key=_by_rank))) for run in runs]
    # Sorting keeps the order of equals: by name, then in time.
    trace_sets.sort(key=lambda trace_set: trace_set.stamp or "", reverse=True)
    trace_sets.sort(key=lambda trace_set: (not trace_set.is_complete, trace_set.is_together is False))
    return trace_sets


def chosen(sets: list[TraceSet], wanted: str | None, directory: str) -> TraceSet:
    """The run that `--run` asks for, else the first. Raises UsageError that lists what there is."""
    if wanted is None:
        return sets[0]
    fitting = _fitting(sets, wanted)
    if len(fitting) == 1:
        return fitting[0]
    what = f"{len(fitting)} runs fit" if fitting else "there is no such run"
    where = f"in {printable(directory)}"
    by_name = len({trace_set.label for trace_set in fitting}) < len(fitting)
    listed = ", ".join(trace_set.words(by_name) for trace_set in (fitting or sets)[:_LISTED])
    more = len(fitting or sets) - _LISTED
    if more > 0:
        listed += f", and {more} more"
    raise UsageError(f"--run {printable(wanted, 60)}: {what} {where}; {plural(len(sets), 'run')}: {listed}")


def label_of(trace_set: TraceSet, sets: list[TraceSet]) -> str:
    """What `--run` finds it by: its stamp or its name without the rank, else both, else its first file."""
    key = trace_set.files[0].name.key
    names = (trace_set.label, key, f"{key}@{trace_set.stamp}", os.path.basename(trace_set.files[0].path))
    return next((name for name in names if _fitting(sets, name) == [trace_set]), names[-1])


def _fitting(sets: list[TraceSet], wanted: str) -> list[TraceSet]:
    """The runs that `--run` may mean: those that are called so, else those whose names begin so."""
    exact = [trace_set for trace_set in sets if wanted in trace_set.names]
    return exact or [
        trace_set
        for trace_set in sets
        if wanted and any(name.startswith(wanted) for name in trace_set.labels)
    ]


def _by_rank(file: TraceFile) -> tuple[int, str]:
    return file.first_rank, file.path


def _runs(files: list[TraceFile]) -> list[list[TraceFile]]:
    """Files of one name as runs, in time order."""
    runs: list[list[TraceFile]] = []
    before: float | None = None
    for file in sorted(files, key=lambda file: (file.name.stamp or "", file.first_rank, file.path)):
        now = _seconds(file.name.stamp)
        if (
            not runs
            or not _near(before, now)
            or any(file.first_rank == other.first_rank for other in runs[-1])
        ):
            runs.append([])
        runs[-1].append(file)
        before = now
    merged: list[list[TraceFile]] = []
    for run in runs:
        last = TraceSet(tuple(merged[-1])) if merged else None
        this = TraceSet(tuple(run))
        if last is not None and last.lacks_ranks and this.lacks_ranks and not last.ranks & this.ranks:
            merged[-1] = [*merged[-1], *run]
        else:
            merged.append(run)
    return merged


def _near(before: float | None, now: float | None) -> bool:
    return now is None or before is None or now - before <= _SAME_RUN_S


def _seconds(stamp: str | None) -> float | None:
    if stamp is None:
        return None
    parts = [int(stamp[:4]), *(int(stamp[at : at + 2]) for at in range(4, 14, 2))]
    try:
        return (datetime(*parts) - datetime(1970, 1, 1)).total_seconds()  # type: ignore[arg-type]
    except ValueError:
        return None
