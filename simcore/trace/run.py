"""A run of any source: its setup and its trace, and what follows from them, each computed once.

Each kind of run is a subclass that gives what it alone can: its trace and graph, its words, how it is run
again, and what it has besides a trace (`simcore/trace/contexts.py`). Nothing else asks which kind it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from simcore.cached_methods import cached_method, cached_on, is_cached
from simcore.diagnostics import Diagnostic
from simcore.kernel_names import short_name
from simcore.trace.account_walk import accounts_of
from simcore.trace.accounts import AccountNames, Accounts, used_accounts
from simcore.trace.contexts import NO_NETWORK, ModelUse, NetworkUse, Recording, StepShape
from simcore.trace.figures import (
    HangTables,
    Insight,
    NodeTables,
    Origin,
    PathSegment,
    SnapshotTables,
    StreamUse,
    TrackUse,
    WaitFor,
)
from simcore.trace.findings import Finding, MergedSegment, Step, TrackInterval, WhatIf
from simcore.trace.spans import Trace
from simcore.trace.track import TimedPass, Track, to_common_accounts
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.parameters import Parameters, RunInput
    from simcore.trace.contexts import EstimateLine
    from simcore.trace.critical_path import CriticalPath, PathSource
    from simcore.trace.gradients import Gradient
    from simcore.trace.lanes import Lanes
    from simcore.trace.layers import LayerUse, Lines
    from simcore.trace.named_work import NamedWork
    from simcore.trace.streams import TrackStreams
    from simcore.trace.trace_graph import TraceGraph

R = TypeVar("R", bound="Run")


class Run(ABC):
    """A simulated, measured, replayed or executed run. timed: whether it has times; a plan has none."""

    timed = True

    # -- what a kind of run gives --------------------------------------------------------

    @property
    @abstractmethod
    def setup(self) -> RunInput:
        """What was opened, with its parameters."""

    @abstractmethod
    def rerun(self: R, setup: Any, cancelled: Callable[[], bool]) -> R:
        """Returns the same input run with another setup. Raises `UsageError`, `InputError`, `Cancelled`."""

    @property
    @abstractmethod
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of reading and running."""

    @property
    @abstractmethod
    def model(self) -> ModelUse:
        """What the run states about the model that it trains."""

    @property
    def network(self) -> NetworkUse:
        """Its network, and what was sent over it."""
        return NO_NETWORK

    @property
    def recording(self) -> Recording | None:
        """The recording of a run whose times were measured, else None."""
        return None

    @property
    @abstractmethod
    def shape(self) -> StepShape:
        """Its degrees, and the loop of its step."""

    @property
    @abstractmethod
    def step_time_ns(self) -> int:
        """When the last rank has ended, ns; 0 of an order without times."""

    @property
    @abstractmethod
    def trace(self) -> Trace:
        """What ran on each track."""

    @abstractmethod
    def _make_graph(self, cancelled: Callable[[], bool]) -> TraceGraph:
        """Returns the graph of the trace. Raises `Cancelled`."""

    @property
    @abstractmethod
    def tracks(self) -> Sequence[Track]:
        """Its tracks, by stage and then by rank."""

    @property
    @abstractmethod
    def lanes(self) -> Lanes:
        """Its tracks and their streams as a timeline shows them."""

    @property
    @abstractmethod
    def figures(self) -> Figures[Any]:
        """Its figures, in words and in tables."""

    @abstractmethod
    def _find_what_if(
        self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> list[WhatIf]: ...

    # -- what follows --------------------------------------------------------------------

    def what_if(
        self,
        progress: Callable[[int, int], None] = lambda begun_items, total: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[WhatIf]:
        """Returns the step with one thing changed, for each thing, the greatest gain first; found once.

        progress(begun_items, total): called before each change and when all are tried. Raises `Cancelled`,
        `UsageError` for an order without times.
        """
        return self._what_if(progress, cancelled)

    @cached_method
    def _what_if(self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]) -> list[WhatIf]:
        return self._find_what_if(progress, cancelled)

    @property
    def path(self) -> str:
        """What was opened, as the user gave it."""
        return self.setup.path

    @property
    def parameters(self) -> Parameters:
        """The parameters of this run."""
        return self.setup.parameters

    def with_parameters(self: R, parameters: Parameters, cancelled: Callable[[], bool] = lambda: False) -> R:
        """Returns the same input under other parameters. Raises `UsageError`, `InputError`, `Cancelled`."""
        return self.rerun(self.setup.with_parameters(parameters), cancelled)

    @cached_property
    def accounts(self) -> list[Accounts]:
        """The accounts of each track, by its id: each sums to the step."""
        return self.compute_accounts(lambda: False)

    @cached_method
    def compute_accounts(self, cancelled: Callable[[], bool]) -> list[Accounts]:
        """Returns the accounts, which screens look up while they draw, computed now unless they are known.

        Raises `Cancelled`.
        """
        return self._accounts(cancelled) if self.timed else []

    def _accounts(self, cancelled: Callable[[], bool]) -> list[Accounts]:
        return accounts_of(self.trace, cancelled)

    @cached_property
    def trace_graph(self) -> TraceGraph:
        """The graph of the trace."""
        return self._compute_graph(lambda: False)

    @cached_method
    def _compute_graph(self, cancelled: Callable[[], bool]) -> TraceGraph:
        return self._make_graph(cancelled)

    @cached_property
    def critical_path(self) -> CriticalPath:
        """The chain of segments that the step time consists of; empty of an order without times."""
        return self.compute_critical_path(lambda: False)

    @cached_method
    def compute_critical_path(self, cancelled: Callable[[], bool]) -> CriticalPath:
        """Returns the critical path, computed now unless it is known. Raises `Cancelled`."""
        # Imported here and below: the screen opens without these modules.
        from simcore.trace.critical_path import CriticalPath

        return CriticalPath(self._compute_graph(cancelled), cancelled)

    @cached_property
    def slacks(self) -> Sequence[array[int]] | None:
        """How much later each span of each track may end before the step is longer, ns; None where the order
        depends on times.
        """
        return self.compute_slacks(lambda: False)

    @cached_method
    def compute_slacks(self, cancelled: Callable[[], bool]) -> Sequence[array[int]] | None:
        """Returns the slacks, computed now unless they are known. Raises `Cancelled`."""
        from simcore.trace.trace_graph import compute_slack

        return compute_slack(self._compute_graph(cancelled), cancelled)

    def weigh_assumptions(  # noqa: B027  # most runs assume nothing
        self, cancelled: Callable[[], bool] = lambda: False, include_all: bool = True
    ) -> None:
        """Finds by separate runs what assumptions cost: notes and words state it from then on.

        include_all: else only what words need. Raises `Cancelled`.
        """


def as_read(run: Run) -> Run:
    """Returns the run as it was measured for a replay; any other run is returned itself."""
    return run if run.recording is None else run.recording.as_read


def count_spans(run: Run) -> int:
    """Returns how many spans a run holds in memory."""
    return sum(map(len, run.trace.spans)) if run.timed else 0


# What a run holds besides its columns once it was on every screen: accounts, path, slack and lanes of each
# span of a track with times of its own; its rows and words. Seed 002 holds 9.5 MB, 1.1 of them columns, 128
# ranks of it 22 MB and 8.2.
_SPAN_BYTES, _WORDS_BYTES = 210, 500_000


def estimate_bytes(run: Run) -> int:
    """Returns about how many bytes a run holds in memory once it was on every screen."""
    if not run.timed:
        return _WORDS_BYTES
    trace = run.trace
    # Tracks of one program share columns.
    columns = {
        id(column): len(column) * getattr(column, "itemsize", 1)
        for table in (*trace.spans, *trace.waits)
        for column in map(table.__getattribute__, table.__struct_fields__)
    }
    own = sum(len(trace.spans[track]) for track in set(trace.equal_tracks))
    return sum(columns.values()) + own * _SPAN_BYTES + _WORDS_BYTES


# -- its figures --------------------------------------------------------------------------

Of = TypeVar("Of", bound=Run)


class Figures(ABC, Generic[Of]):
    """The figures of a run; what it lacks is empty, or None; an order without times has only counts."""

    resolution_ns = 1
    """The resolution of the times, ns."""
    has_step = True
    """Whether there is a step, which a hung job and a snapshot have not."""
    states_shares = False
    """Whether its words give shares of the step."""
    path_groupings: tuple[str, ...]
    """What the critical path can be summed by."""
    lines: Lines = "rows"
    """The kind of lines of its layer table."""
    headings: ClassVar[Mapping[str, str]] = {}
    """The headings of accounts that tables of ranks call differently."""
    json_keys: ClassVar[Mapping[str, str]] = {}
    """The keys of accounts that JSON calls differently."""

    def __init__(self, run: Of) -> None:
        self.run = run

    @property
    @abstractmethod
    def kind(self) -> str:
        """`simulated`, `measured`, `replayed` or `executed`."""

    @property
    @abstractmethod
    def path_source(self) -> PathSource:
        """The words for the critical path."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The step time, with the run it is of."""

    @property
    @abstractmethod
    def facts(self) -> list[tuple[str, str]]:
        """(name, words) for each fact about what was read."""

    @abstractmethod
    def headline(self, wide: bool) -> list[str]:
        """Returns the facts of a screen's first row, the most important first."""

    @property
    @abstractmethod
    def insights(self) -> list[Insight]:
        """The sentences about the run, the main cause first, with the rules that say them."""

    @property
    @abstractmethod
    def worst_findings(self) -> list[Finding]:
        """The findings worth a look."""

    @property
    @abstractmethod
    def origin(self) -> Origin:
        """What was read, and what was made of it."""

    @property
    @abstractmethod
    def streams(self) -> Sequence[TrackStreams]:
        """How a rank of each track uses its streams, by track id; empty of an order without times."""

    @property
    def ends(self) -> Sequence[int]:
        """When a rank of each track ends, by track id, ns; empty of an order without times."""
        return [accounts.last_end_ns for accounts in self.run.accounts]

    def stream_order(self, use: StreamUse) -> Any:
        """Returns the key that `mean_streams` is sorted by; equal ones keep the order of the ranks."""
        return 0

    def peaks(self, track_id: int) -> tuple[int | None, int | None]:
        """Returns the most micro-batches, and of a model chunks, that a rank of a track holds at once; None
        where that is not known.
        """
        return None, None

    def exposed_ns(self, track_id: int) -> dict[str, int]:
        """Returns exposed communication of a rank of a track by kind, ns."""
        return {
            self.json_keys.get(kind, kind): ns
            for kind, ns in self.run.accounts[track_id].exposed_ns().items()
        }

    @cached_property
    def track_uses(self) -> list[TrackUse]:
        """The step of a rank of each track, by track id."""
        return [self._track_use(track) for track in sorted(self.run.tracks)] if self.run.timed else []

    def _track_use(self, track: Track) -> TrackUse:
        accounts, streams = self.run.accounts[track.track_id], self.streams[track.track_id]
        compute_ns = {self.json_keys.get(phase, phase): ns for phase, ns in accounts.compute_ns().items()}
        peak_microbatches, peak_chunks = self.peaks(track.track_id)
        return TrackUse(
            track, compute_ns, self.exposed_ns(track.track_id), accounts.wait_ns, accounts.bubble_ns,
            accounts.ns("host") if "host" in accounts.of.all else None, accounts.idle_ns,
            streams.overlapped_ns, streams.comm_ns, peak_microbatches, streams.streams, peak_chunks,
        )  # fmt: skip

    @cached_property
    def mean_streams(self) -> list[tuple[StreamUse, int]]:
        """Each stream as the mean of all ranks, with the busy ns of the rank that is busy longest on it."""
        if not self.run.timed:
            return []
        from simcore.trace.streams import mean_use

        tracks = sorted(self.run.tracks)
        means = mean_use((self.streams[track.track_id].streams, len(track.ranks)) for track in tracks)
        return sorted(means, key=lambda mean: self.stream_order(mean[0]))

    def named_work(self, track: Track) -> NamedWork:
        """Returns the work of a rank of a track by name; the names of an account sum to its `common_ns`,
        all compute as one account.
        """
        from simcore.trace.named_work import named_work

        return named_work(self.run.trace, track.track_id, self.run.accounts[track.track_id])

    @property
    def gradients(self) -> Sequence[Gradient] | None:
        """The slopes of the step time over each scale; None where they are not known."""
        return None

    @property
    def what_if_base_ns(self) -> int:
        """The step time that the rows of `what_if` start from, ns."""
        return self.run.step_time_ns

    @property
    def changes_summary(self) -> str:
        """The words for changes that `what_if` tried besides those that it returns."""
        return ""

    @property
    def worst_link(self) -> Finding | None:
        """The finding on the port that is busy longest."""
        return None

    @property
    def waits_for(self) -> Sequence[WaitFor]:
        """Who waits for whom, the longest wait first."""
        return ()

    @property
    def simai_comparison(self) -> tuple[str, Sequence[EstimateLine]]:
        """(ranks, lines): SimAI's estimate in comparison with these ranks."""
        return "", ()

    @property
    def nodes(self) -> NodeTables | None:
        """The tables of execution traces, else None."""
        return None

    @property
    def hang(self) -> HangTables | None:
        """What is found in flight recorder dumps, else None."""
        return None

    @property
    def snapshot(self) -> SnapshotTables | None:
        """What is found in memory snapshots, else None."""
        return None

    def passes(self, track: Track) -> list[TimedPass]:
        """Returns the forward and backward passes of a rank of a track, in time order; empty if not known."""
        return []

    def layers(self, grouped: bool) -> Sequence[LayerUse]:
        """Returns each row of a workload, or operation; grouped: equal rows together, the costliest first."""
        return []

    @property
    def words(self) -> list[str]:
        """The texts of the sentences."""
        return [insight.text for insight in self.insights]

    @property
    def account_columns(self) -> Sequence[tuple[str, Sequence[str]]]:
        """(heading, the accounts that it adds up) of each column of a table of ranks."""
        return used_accounts(self.run.accounts, self.headings)

    def path_segments(self, indices: Iterable[int] | None = None) -> Iterator[PathSegment]:
        """Yields segments of the critical path, in the order of time: some, or all."""
        return self.path_source.segments(self.run.critical_path, indices)

    def path_kind_keys(self) -> Iterable[object]:
        """Returns a key for each segment of the critical path: segments with equal keys run the same."""
        return self.path_source.kind_keys(self.run.critical_path)

    def path_words(self, index: int) -> tuple[str, str]:
        """Returns what a segment does, and its row or operation, "" without one: equal for equal ones."""
        (segment,) = self.path_segments((index,))
        return segment.kind, segment.layer or ""

    def path_interval(self, index: int) -> TrackInterval:
        """Returns where a segment of the critical path is seen."""
        path = self.run.critical_path
        track_id = self.path_source.track_id(path.track[index], path.rank[index])
        return TrackInterval(track_id, path.edge[index], path.edge[index + 1])


_DESCRIPTION = "description"


def compute_description(run: Run, cancelled: Callable[[], bool]) -> None:
    """Computes the sentences and the worst findings of a run, which need the critical path, unless they are
    known. Raises `Cancelled`.
    """

    def compute() -> None:
        run.compute_critical_path(cancelled)
        _ = run.figures.worst_findings, run.figures.words

    cached_on(run, _DESCRIPTION, compute)


def is_described(run: Run) -> bool:
    """Returns whether `compute_description` has been called for a run."""
    return is_cached(run, _DESCRIPTION)


# -- sums over ranks -------------------------------------------------------------------


def account_ns(run: Run, tracks: Iterable[Track]) -> dict[str, int]:
    """Returns ns by account of all ranks of some tracks together, in the order of a bar.

    The accounts sum to one step for each rank.
    """
    of = run.trace.categories
    sums = sum_ns(run, tracks)
    rare = of.rare_accounts
    return {of.all[at]: sums[at] for at in of.in_bars if sums[at] or of.all[at] not in rare}


def mean_ns(run: Run) -> dict[str, int]:
    """Returns each account as the mean of all ranks, ns, rounded."""
    return means(
        run.trace.categories, ((run.accounts[track.track_id], len(track.ranks)) for track in run.tracks)
    )


def means(of: AccountNames, accounts: Iterable[tuple[Accounts, int]]) -> dict[str, int]:
    """Returns each account as the mean of some ranks, ns, rounded. accounts: with their rank counts."""
    sums, count = [0] * len(of.all), 0
    for of_rank, ranks in accounts:
        count += ranks
        for account, ns in enumerate(of_rank.total_ns):
            sums[account] += ns * ranks
    rare = of.rare_accounts
    return {name: round(ns / count) for name, ns in zip(of.all, sums, strict=True) if ns or name not in rare}


def mean_busy_ns(run: Run) -> int:
    """Returns the compute of a rank as the mean of all ranks, ns, rounded."""
    return mean_of_ranks(run, (accounts.busy_ns for accounts in run.accounts))


def mean_of_ranks(run: Run, by_track: Iterable[int]) -> int:
    """Returns the mean over all ranks of a figure given by track id for a rank of each track, rounded."""
    ranks = [len(track.ranks) for track in sorted(run.tracks)]
    return round(sum(ns * count for ns, count in zip(by_track, ranks, strict=True)) / sum(ranks))


def common_ns(run: Run, track: Track) -> list[int]:
    """Returns ns of one rank of a track by `COMMON_ACCOUNTS`: they sum to the step."""
    return to_common_accounts(run.accounts[track.track_id].total_ns, run.trace.categories.common_indices)


def sum_ns(run: Run, tracks: Iterable[Track]) -> list[int]:
    """Returns ns by account, as `trace.categories` has them, of all ranks of some tracks together."""
    sums = [0] * len(run.trace.categories.all)
    for track in tracks:
        ranks = len(track.ranks)
        for account, ns in enumerate(run.accounts[track.track_id].total_ns):
            sums[account] += ns * ranks
    return sums


# -- the critical path in merged segments and parts --------------------------------------

# The width of the name of what a segment does, cells.
_SEGMENT_CELLS = 40


def merged_segments_of(run: Run) -> list[MergedSegment]:
    """Returns the merged segments of the critical path, in the order of time: they cover the step."""
    from simcore.trace.critical_path import merge_segments

    return cached_on(
        run, "legs of the path", lambda: merge_segments(run.critical_path, run.figures.path_source)
    )


def path_step(run: Run, time_ns: int, direction: int) -> Step | None:
    """Returns the step from the merged segment at a time to the next (1) or previous one (-1); None past the
    ends.
    """
    segments = merged_segments_of(run)
    index = bisect_right(segments, time_ns, key=lambda segment: segment.start_ns) - 1 + direction
    if not 0 <= index < len(segments):
        return None
    segment, parts = segments[index], len(run.critical_path)
    activity = short_name(segment.what, _SEGMENT_CELLS)
    activity += f" of micro-batch {segment.microbatch}" if segment.microbatch >= 0 else ""
    # Reports list unmerged segments: with both counts the words fit either list.
    merged_note = f" (joined from {parts})" if parts > len(segments) else ""
    words = (
        f"path segment {index + 1} of {len(segments)}{merged_note}: {activity}, {duration(segment.ns)}; "
        f"{segment.reason}"
    )
    return Step(segment.track_id, find_interval(run, segment).stream, segment.start_ns, segment.rank, words)


def path_parts(run: Run, by: str) -> Iterator[tuple[str, int]]:
    """Yields (part, ns) of each segment of the critical path, in the order of time."""
    from simcore.trace.critical_path import path_parts as parts

    return parts(run.critical_path, run.figures.path_source, by)


def sum_path(run: Run, by: str) -> list[tuple[str, int]]:
    """Returns (part, ns) of the critical path, the longest first; they sum to the step time.

    by: of `figures.path_groupings`.
    """
    sums = run.figures.path_source.sum_parts(run.critical_path, by)
    # Of equal times stage 3 comes before stage 10.
    is_numbered = by in ("stage", "rank")
    return sorted(sums.items(), key=lambda pair: (-pair[1], len(pair[0]) if is_numbered else 0, pair[0]))


def find_longest_of_part(run: Run, by: str, part: str) -> TrackInterval | None:
    """Returns where the longest segment of a part of the critical path is, the first of equal ones.

    by, part: as in `sum_path`. None where no segment belongs to it.
    """
    best, most = -1, -1
    for index, (name, ns) in enumerate(path_parts(run, by)):
        if ns > most and name == part:
            best, most = index, ns
    return None if best < 0 else run.figures.path_interval(best)


# Compute of which a file knows nothing is at most so long, ns.
_PLACEHOLDER_NS = 1000


def find_interval(run: Run, segment: MergedSegment) -> TrackInterval:
    """Returns where a merged segment is seen: on a stream if all its segments are on that one, else on the
    lane of the track.
    """
    intervals = [run.figures.path_interval(index) for index in range(segment.first, segment.last)]
    # Placeholders of a file without times do not count, unless there is nothing else.
    timed = [
        interval for interval in intervals if interval.end_ns - interval.start_ns > _PLACEHOLDER_NS
    ] or intervals
    streams = {interval.stream for interval in timed}
    return TrackInterval(
        segment.track_id, segment.start_ns, segment.end_ns, streams.pop() if len(streams) == 1 else None
    )
