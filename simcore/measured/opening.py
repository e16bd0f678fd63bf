"""Opens measured runs: one trace file, or a directory of them.

Files whose names differ only in rank and stamp are one run if their stamps are close together: ranks of one
run are stamped a second or so apart. Ranks that were profiled one after another on one device are stamped
minutes apart: runs without a common rank, none of them complete, are opened as one such run. A name states
run and rank, and the layout of the run: `wd8_tp2_pp4_numl40_bs2_GPT2BPETokenizer_rank7_20240923205004.txt`;
older names put `trace_rank7_` in front, and some folders are called
`pp2_tp2_ep1_expnNone_dpNone_nl4_hs512_sl2048`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from datetime import datetime

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.measured.columns import RankTrace
from simcore.measured.iterations import ALL
from simcore.measured.rank_positions import Degrees
from simcore.measured.reading import read_trace
from simcore.measured.run import MeasuredRun, make_run
from simcore.ranks import RankSet
from simcore.records import Struct, replace
from simcore.units import plural
from simcore.workload.formats import FileHead, head_of
from simcore.workload.formats.rank_trace import FIRST_LINE
from simcore.workload.ignored_files import IgnoredFiles
from simcore.workload.opening import read_beginning, read_file
from simcore.workload.source import GZIP

_NAME_RANK = re.compile(r"rank_?([0-9]{1,9})(?![0-9])")
# The stage of a schedule plan; in a rank trace it may be ZeRO's stage 1.
_NAME_STAGE = re.compile(r"(?<![a-z])stage_?([0-9]{1,9})(?![0-9])")
_STAMP = re.compile(r"(?<![0-9])[0-9]{14}(?![0-9])")
# The iteration behind the label of a run.
_ITERATION = re.compile(r"#([0-9]{1,9}|all)$")
_DEGREE = re.compile(r"(?:^|[_/])(wd|tp|pp|dp|exp)([1-9][0-9]{0,8})(?=[_./]|$)")


class TraceName(Struct, frozen=True):
    """What a file's name states of its run."""

    key: str
    """The name without rank (or stage) and stamp, equal for all files of a run."""
    stamp: str | None
    """14 digits."""
    rank: int | None
    degrees: Degrees


def read_name(path: str, unit: str = "rank") -> TraceName:
    """Returns the rank, stage and stamp in the file's name or, if it has none, in its folder's name.

    unit: what its lines count, `rank`, or `stage` in a schedule plan: the files of a plan may differ in that.
    """
    folder, name = os.path.split(os.path.abspath(path))
    name = name.removesuffix(".gz")
    stamps = _STAMP.findall(name)
    rank = _NAME_RANK.search(name)
    key = _STAMP.sub("*", _NAME_RANK.sub("rank*", name))
    if unit == "stage":
        key = _NAME_STAGE.sub("stage*", key)
    return TraceName(key, stamps[-1] if stamps else None, int(rank[1]) if rank else None,
                     _degrees(name, os.path.basename(folder)))  # fmt: skip


def _degrees(name: str, folder: str) -> Degrees:
    degrees: dict[str, int] = {}
    for text in (name, folder):
        for key, value in _DEGREE.findall(text):
            degrees.setdefault(key, int(value))
    world, tp, pp, dp = (degrees.get(key) for key in ("wd", "tp", "pp", "dp"))
    if tp is not None and pp is not None:
        if world is None and dp is not None:
            world = tp * pp * dp
        elif world is not None:
            # The name may state a dp with another meaning; ranks / (tp x pp) is Megatron's.
            dp = world // (tp * pp) if world % (tp * pp) == 0 else None
    return Degrees(world, tp, dp, pp, degrees.get("exp"))


# Stamps of one run differ by a second or two; two runs of one job are at least a minute apart.
_SAME_RUN_S = 10
_CHOICES_LISTED = 12


class TraceFile(Struct, frozen=True):
    """A trace file of a run."""

    path: str
    name: TraceName
    first_rank: int
    """Of its first line; in a schedule plan (unit `stage`) the stage."""
    unit: str = "rank"


class TraceSet(Struct, frozen=True):
    """The files of one run, by rank. stamp: the earliest, None where the names have none."""

    files: tuple[TraceFile, ...]

    @property
    def stamp(self) -> str | None:
        return min((file.name.stamp for file in self.files if file.name.stamp is not None), default=None)

    @property
    def label(self) -> str:
        """The name of the set: the stamp, else the name without the rank."""
        return self.stamp or self.files[0].name.key

    @property
    def labels(self) -> set[str]:
        """All that `--run` takes: the stamps of the files, else their names without the rank."""
        return {file.name.stamp or file.name.key for file in self.files}

    @property
    def names(self) -> set[str | None]:
        """All names of the set: the stamps, the name without the rank, both, and the names of its files."""
        key = self.files[0].name.key
        stamps = {file.name.stamp for file in self.files}
        files = {os.path.basename(file.path) for file in self.files}
        return {*stamps, *(file.name.key for file in self.files), f"{key}@{self.stamp}", *files}

    @property
    def ranks(self) -> frozenset[int]:
        return frozenset(file.first_rank for file in self.files)

    @property
    def expected(self) -> int | None:
        """How many ranks the names state, for a plan how many stages; None if they state none."""
        first = self.files[0]
        return first.name.degrees.world if first.unit == "rank" else first.name.degrees.pp

    @property
    def is_complete(self) -> bool:
        """Whether every rank that the names state is there; True if they state none."""
        count = self.expected
        return count is None or sum(rank < count for rank in self.ranks) == count

    @property
    def lacks_ranks(self) -> bool:
        """Whether other files may belong to it: ranks are missing, or their number is not known."""
        return self.expected is None or not self.is_complete

    @property
    def is_together(self) -> bool | None:
        """Whether the stamps are those of one run; None where the names have none."""
        if all(_seconds(file.name.stamp) is None for file in self.files):
            return None
        return len(self.by_stamp) == 1

    @property
    def by_stamp(self) -> list[TraceSet]:
        """The runs that it consists of where ranks were profiled one after another; otherwise itself."""
        runs: list[list[TraceFile]] = []
        before: float | None = None
        for file in sorted(self.files, key=lambda file: (file.name.stamp or "", *_by_rank(file))):
            now = _seconds(file.name.stamp)
            if not runs or not _is_same_run(before, now):
                runs.append([])
            runs[-1].append(file)
            before = before if now is None else now
        return [TraceSet(tuple(sorted(run, key=_by_rank))) for run in runs]

    def words(self, by_name: bool = False, with_missing: bool = True) -> str:
        """Returns `20240923205004 (ranks 0-7)`, or with what is missing; `by_name` by the name of the
        files.
        """
        of = "" if self.is_complete or not with_missing else f" of {self.expected}, incomplete"
        noun = self.files[0].unit + ("" if len(self.ranks) == 1 else "s")
        label = self.files[0].name.key if by_name else self.label
        last = max((file.name.stamp or "" for file in self.files), default="")
        if self.is_together is False and not by_name:
            label += f" to {last}"
        return f"{printable(label, 80)} ({noun} {RankSet.of(self.ranks).text()}{of})"


def sets_of(files: Iterable[TraceFile]) -> list[TraceSet]:
    """Returns the runs among `files`, the one to open first: complete ones, newest first, then the others.

    Behind complete ones come those that are complete only if they were profiled one after another.
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


def _choose_set(sets: list[TraceSet], label: str | None, directory: str) -> TraceSet:
    """Returns the run that `--run` names, else the first. Raises UsageError with a list of the runs."""
    if label is None:
        return sets[0]
    fitting = _find_fitting(sets, label)
    if len(fitting) == 1:
        return fitting[0]
    what = f"{len(fitting)} runs fit" if fitting else "there is no such run"
    where = f"in {printable(directory)}"
    by_name = len({trace_set.label for trace_set in fitting}) < len(fitting)
    listed = ", ".join(trace_set.words(by_name) for trace_set in (fitting or sets)[:_CHOICES_LISTED])
    more = len(fitting or sets) - _CHOICES_LISTED
    if more > 0:
        listed += f", and {more} more"
    raise UsageError(f"--run {printable(label, 60)}: {what} {where}; {plural(len(sets), 'run')}: {listed}")


def _label_of(trace_set: TraceSet, sets: list[TraceSet]) -> str:
    """Returns what `--run` finds it by: its stamp or its name without the rank, else both, else its first
    file.
    """
    key = trace_set.files[0].name.key
    names = (trace_set.label, key, f"{key}@{trace_set.stamp}", os.path.basename(trace_set.files[0].path))
    return next((name for name in names if _find_fitting(sets, name) == [trace_set]), names[-1])


def _find_fitting(sets: list[TraceSet], label: str) -> list[TraceSet]:
    """Returns the runs that `--run` may mean: those with this name, else those whose names begin with it."""
    exact = [trace_set for trace_set in sets if label in trace_set.names]
    return exact or [
        trace_set for trace_set in sets if label and any(name.startswith(label) for name in trace_set.labels)
    ]


def _by_rank(file: TraceFile) -> tuple[int, str]:
    return file.first_rank, file.path


def _runs(files: list[TraceFile]) -> list[list[TraceFile]]:
    """Returns files of one name as runs, in time order."""
    runs: list[list[TraceFile]] = []
    before: float | None = None
    for file in sorted(files, key=lambda file: (file.name.stamp or "", file.first_rank, file.path)):
        now = _seconds(file.name.stamp)
        if (
            not runs
            or not _is_same_run(before, now)
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


def _is_same_run(before: float | None, now: float | None) -> bool:
    return now is None or before is None or now - before <= _SAME_RUN_S


def _seconds(stamp: str | None) -> float | None:
    if stamp is None:
        return None
    parts = [int(stamp[:4]), *(int(stamp[at : at + 2]) for at in range(4, 14, 2))]
    try:
        return (datetime(*parts) - datetime(1970, 1, 1)).total_seconds()  # type: ignore[arg-type]
    except ValueError:
        return None


# The beginning of the first line identifies a trace and its first rank.
_HEAD_BYTES = 4096
_LISTED = 8
_MOST_NAMED = 3
# Files that are nearly a set, by the ends of names, and what to do with them.
_ALMOST = (
    ((".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst", ".zip", ".7z"), "unpack {} first"),
    ((".et", ".eg", ".et.gz", ".eg.gz"), "no rank stands in the name of {}"),
)
# The kinds of directories that are opened, by names or by how their files begin.
_EXPECTED = (
    "expected execution traces (NAME.RANK.et or .eg, .gz too), profiler traces (Kineto's JSON with "
    "traceEvents, Nsight's .sqlite) or Megatron's rank traces (text that begins rank:0:...)"
)
_MOST_ERRORS = 40


def read_run(path: str, data: bytes, step: str | None = None) -> MeasuredRun:
    """Returns the run in one file's bytes. step: see `make_run`. Raises InputError with all that is wrong in
    it.
    """
    traces, diagnostics = read_trace(path, data)
    is_plan = _is_plan(head_of(data[:_HEAD_BYTES]))
    name = read_name(path)
    run = make_run(
        path, traces, name.degrees, diagnostics, is_plan=is_plan, is_set=len(traces) > 1, stamp=name.stamp,
        step=step,
    )  # fmt: skip
    return _with_iterations(run, "", ())


def _with_iterations(run: MeasuredRun, label: str | None, others: tuple[str, ...]) -> MeasuredRun:
    """Returns a run with what `--run` opens it by, and its other iterations and runs."""
    if not run.rank_steps:
        return replace(run, label=label or None, others=others)
    labels = [f"{label or ''}#{step}" for step in (ALL, *run.rank_steps[0].columns.step)]
    shown_label = f"{label or ''}#{ALL if run.iteration is None else run.iteration}"
    return replace(
        run, label=shown_label, others=(*(other for other in labels if other != shown_label), *others)
    )


def open_directory(path: str, label: str | None = None, step: str | None = None) -> MeasuredRun:
    """Returns the run in a directory: the newest complete one, or the one that `label` (a stamp) names. step:
    see `make_run`; `STAMP#2` names it too.

    Raises InputError when there is no trace in it or a file of the run is damaged, UsageError when no or more
    than one run fits `label`.
    """
    files, others, folders = _trace_files(path)
    if not files:
        raise InputError(
            Diagnostic("error", "no-rank-traces", _no_traces_message(path, others, folders), path)
        )
    sets = sets_of(files)
    if label is not None and (match := _ITERATION.search(label)):
        label, step = label[: match.start()] or None, step or match[1]
    trace_set = _choose_set(sets, label, path)
    diagnostics: list[Diagnostic] = []
    left = [other for other in sets if other is not trace_set]
    if left:
        listed = ", ".join(other.words() for other in left[:_LISTED])
        more = f", and {len(left) - _LISTED} more" if len(left) > _LISTED else ""
        message = f"{trace_set.words()} is shown; --run opens another run of this directory: {listed}{more}"
        diagnostics.append(Diagnostic("note", "other-runs", message, path))
    parts = trace_set.by_stamp
    if len(parts) > 1:
        listed = ", ".join(part.words(with_missing=False) for part in parts[:_LISTED])
        more = f", and {len(parts) - _LISTED} more" if len(parts) > _LISTED else ""
        message = f"taken as one run whose ranks were profiled one after another: {listed}{more}"
        diagnostics.append(Diagnostic("note", "several-stamps", message, path))
    if others.count:
        message = others.message(", no rank traces")
        diagnostics.append(Diagnostic("note", "other-files", message, path))
    traces, trace_diagnostics, is_plan = _read(trace_set)
    degrees = trace_set.files[0].name.degrees
    run = make_run(
        path,
        traces,
        degrees,
        (*diagnostics, *trace_diagnostics),
        is_plan=is_plan,
        is_set=True,
        stamp=trace_set.stamp,
        together=trace_set.is_together,
        step=step,
    )
    return _with_iterations(run, _label_of(trace_set, sets), tuple(_label_of(other, sets) for other in left))


def has_rank_traces(path: str) -> bool:
    """Returns whether a directory itself has a Megatron rank trace or plan. Raises InputError if it cannot be
    read.
    """
    return bool(_trace_files(path)[0])


def _no_traces_message(path: str, others: IgnoredFiles, folders: int) -> str:
    """Returns the message for a directory without traces: what it has instead, and what can be opened."""
    files = plural(others.count, "file")
    message = f"found a directory without traces ({files}), {_EXPECTED}"
    names = sorted(os.listdir(path))
    explained: set[str] = set()
    for suffixes, words in _ALMOST:
        fitting = [name for name in names if name.lower().endswith(suffixes)]
        if fitting:
            explained.update(fitting)
            some = ", ".join(printable(name, 40) for name in fitting[:_MOST_NAMED])
            more = f" and {len(fitting) - _MOST_NAMED} more" if len(fitting) > _MOST_NAMED else ""
            message += f"; {words.format(some + more)}"
    message += "".join(f"; {line}" for line in others.suggestions(explained))
    if folders:
        message += f"; {plural(folders, 'folder')} in it not searched: name one of them"
    return message


def _trace_files(path: str) -> tuple[list[TraceFile], IgnoredFiles, int]:
    """Returns (the trace files of a directory by name, the other files, the number of folders)."""
    files: list[TraceFile] = []
    others, folders = IgnoredFiles(), 0
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        message = f"the directory cannot be read: {error.strerror or error}"
        raise InputError(Diagnostic("error", "unreadable-file", message, path)) from None
    for name in names:
        file_path = os.path.join(path, name)
        try:
            status = os.stat(file_path)
            if stat.S_ISDIR(status.st_mode):
                folders += 1
                continue
            head = b""
            if stat.S_ISREG(status.st_mode) and status.st_size:
                with open(file_path, "rb") as file:
                    head = file.read(_HEAD_BYTES)
                if head.startswith(GZIP):
                    head = read_beginning(file_path)[:_HEAD_BYTES]
        except (OSError, InputError):
            head = b""
        line = FIRST_LINE.match(head_of(head).first)
        if line is None:
            others.add(name, head)
        else:
            files.append(TraceFile(file_path, read_name(file_path, line[1]), int(line[2][:9]), line[1]))
    return files, others, folders


def _read(trace_set: TraceSet) -> tuple[list[RankTrace], list[Diagnostic], bool]:
    """Returns the ranks of all files of a run; what is wrong in any of them is one error."""
    traces: list[RankTrace] = []
    diagnostics: list[Diagnostic] = []
    errors: list[Diagnostic] = []
    plans = 0
    for file in trace_set.files:
        data = read_file(file.path)
        plans += _is_plan(head_of(data[:_HEAD_BYTES]))
        try:
            ranks, file_diagnostics = read_trace(file.path, data)
        except InputError as error:
            errors += error.diagnostics
            continue
        traces += ranks
        diagnostics += file_diagnostics
    if plans not in (0, len(trace_set.files)):
        message = f"found {plural(plans, 'schedule plan')} among {plural(len(trace_set.files), 'rank trace')}"
        first = trace_set.files[0].path
        errors.append(Diagnostic("error", "trace-line", f"{message}, expected files of one kind", first))
    if errors:
        raise InputError(*errors[:_MOST_ERRORS])
    return traces, diagnostics, plans > 0


def _is_plan(head: FileHead) -> bool:
    line = FIRST_LINE.match(head.first)
    return line is not None and line[1] == "stage"
