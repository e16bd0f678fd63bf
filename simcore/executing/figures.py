"""The figures of execution traces that have run, as every run has them: see `simcore/run/figures.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.diagnostics import printable
from simcore.executing.executed import words_of
from simcore.executing.trace import ACCOUNTS, FIRST_EXPOSED, WAIT
from simcore.parameters import as_dict
from simcore.records import NamedTuple, replace
from simcore.run.accounts import merged
from simcore.run.figures import (
    LayerUse,
    NodeTables,
    Origin,
    PathSegment,
    RankEnd,
    Said,
    StreamUse,
    TrackUse,
    WaitFor,
)
from simcore.run.lanes import COMPUTE_STREAM
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.executing.ran import RanTraces


# Streams of a rank that send nothing.
_NO_MESSAGES = (COMPUTE_STREAM, "cpu", "memory")


class _RankUse(NamedTuple):
    """streams: a node of each, and what it is for the rank. overlapped_ns: communication beside compute,
    comm_ns: all of it.
    """

    streams: list[tuple[int, StreamUse]]
    overlapped_ns: int
    comm_ns: int


class TraceFigures:
    """See `Figures` in `simcore/analysis/run.py`. Names of nodes have a table of their own, no layers."""

    resolution_ns = 1
    worst_link = None
    simai_beside = ("", ())
    recorded = None
    has_slack = True
    waits_for: tuple[WaitFor, ...] = ()

    def __init__(self, results: RanTraces, sentences: Callable[[], list[str]]) -> None:
        """sentences: the run in words."""
        self.results = results
        self._words = sentences

    @property
    def title(self) -> str:
        step = self.results.step_time_ns
        unit = "cycles of ASTRA-sim, 1 ns each" if self.results.is_in_cycles else "ns"
        return f"Step time  {duration(step)} ({step} {unit})"

    @property
    def facts(self) -> list[tuple[str, str]]:
        executed = self.results.executed
        dims = " x ".join(dim.text() for dim in executed.cluster.dims)
        return [
            ("file", printable(executed.traces.path)),
            ("format", f"execution traces (Chakra), schema {executed.traces.schema}"),
            ("rules", words_of(executed)),
            ("read", self.results.counted()),
            ("network", f"{executed.parameters.network}: {dims}"),
        ]

    @property
    def said(self) -> list[Said]:
        return [Said("execution", line) for line in self._words()]

    @cached_property
    def origin(self) -> Origin:
        executed = self.results.executed
        degrees = {"tp": None, "ep": None, "dp": None, "pp": None, "world": len(executed.nodes)}
        values = as_dict(self.results.parameters, "execution") | dict(executed.used)
        nodes = executed.traces.count
        return Origin(
            "chakra", executed.traces.schema, nodes, None, 0, degrees, executed.parameters.network,
            executed.rules, values, [], nodes,
            sum(len(executed.nodes[rank]) for rank in executed.units.first),
            rank_classes=len(executed.units.first),
        )  # fmt: skip

    @property
    def nodes(self) -> NodeTables:
        results = self.results
        exposed_words = "end less GPU compute" + (", as ASTRA-sim prints it" if results.is_in_cycles else "")
        ranks = [RankEnd(*rank) for rank in results.executed.ranks]
        return NodeTables(ranks, results.name_table, results.group_table, exposed_words, results.is_in_cycles)

    @cached_property
    def track_uses(self) -> list[TrackUse]:
        uses = []
        for track in self.results.tracks:
            accounts, streams = self.results.accounts[track.number], self._streams_of(track.number)
            use = self._uses[self.results.executed.units.of[track.number]]
            uses.append(TrackUse(
                track, accounts.compute_ns(), accounts.exposed_ns(), accounts.wait_ns, accounts.bubble_ns,
                accounts.ns("host"), accounts.idle_ns, use.overlapped_ns, use.comm_ns, None, streams,
            ))  # fmt: skip
        return uses

    @cached_property
    def mean_streams(self) -> list[tuple[StreamUse, int]]:
        sums: dict[str, list[int]] = {}
        count = len(self.results.ranks)
        for rank in self.results.ranks:
            for use in self._streams_of(rank):
                row = sums.setdefault(use.stream, [0, 0, 0, 0])
                row[0] += use.busy_ns
                row[1] += use.overlapped_ns or 0
                row[2] += use.exposed_ns
                row[3] = max(row[3], use.busy_ns)
        uses = [
            (StreamUse(stream, round(busy / count), round(beside / count), round(exposed / count)), most)
            for stream, (busy, beside, exposed, most) in sums.items()
        ]
        return sorted(
            uses, key=lambda pair: (pair[0].kind != COMPUTE_STREAM, -pair[0].busy_ns, pair[0].stream)
        )

    def _streams_of(self, rank: int) -> list[StreamUse]:
        """What each stream of a rank is; ranks that run alike have other groups."""
        results = self.results
        uses = self._uses[results.executed.units.of[rank]].streams
        return [replace(use, stream=results.stream_of(rank, place)) for place, use in uses]

    @cached_property
    def _uses(self) -> list[_RankUse]:
        """Of each class of ranks what the streams are for its lowest rank."""
        return [self._use_of(rank) for rank in self.results.executed.units.first]

    def _use_of(self, rank: int) -> _RankUse:
        results = self.results
        accounts = results.accounts[rank]
        exposed: dict[str, int] = {}
        for segment, account in enumerate(accounts.account):
            if FIRST_EXPOSED <= account < WAIT:
                stream = results.stream_of(rank, accounts.op[segment])
                exposed[stream] = exposed.get(stream, 0) + accounts.edge[segment + 1] - accounts.edge[segment]
        computed = accounts.computed()

        def joined(times: Iterable[tuple[int, int]]) -> tuple[int, int]:
            """How long at least one of them runs, and how much of that the rank computes."""
            spans = merged(times)
            return (
                sum(end - start for start, end in spans),
                sum(computed(end) - computed(start) for start, end in spans),
            )

        streams = []
        sent: list[tuple[int, int]] = []
        for stream, (place, times) in self._busy_of(rank).items():
            busy, beside = joined(times)
            beside = 0 if stream == COMPUTE_STREAM else beside
            streams.append((place, StreamUse(stream, busy, beside, exposed.get(stream, 0))))
            sent += times if stream not in _NO_MESSAGES else ()
        comm, overlapped = joined(sent)
        return _RankUse(streams, overlapped, comm)

    def _busy_of(self, rank: int) -> dict[str, tuple[int, list[tuple[int, int]]]]:
        """Of each stream of a rank its first node, and (begin, end) of each that has run; waits left out."""
        results, executed = self.results, self.results.executed
        start, begin, meetings = executed.start[rank], executed.begin[rank], executed.meetings[rank]
        columns, rows = executed.nodes[rank].columns, executed.nodes[rank].row
        busy: dict[str, tuple[int, list[tuple[int, int]]]] = {}
        # What a node is in is the same for all with its type and attributes: millions of nodes have hundreds.
        known: dict[tuple[int, int, bool], list[tuple[int, int]]] = {}
        for place, end in enumerate(executed.end[rank]):
            if end < 0 or start[place] < 0:
                continue
            row = rows[place]
            key = (columns.type[row], columns.attributes[row], meetings[place] < 0)
            times = known.get(key)
            if times is None:
                stream = results.stream_of(rank, place)
                times = known[key] = busy.setdefault(stream, (place, []))[1]
            if end > begin[place]:
                times.append((begin[place], end))
        return busy

    @cached_property
    def account_columns(self) -> list[tuple[str, tuple[str, ...]]]:
        columns: list[tuple[str, tuple[str, ...]]] = []
        for number, account in enumerate(ACCOUNTS):
            if any(accounts.total_ns[number] for accounts in self.results.accounts):
                name = account.removeprefix("compute " if number < FIRST_EXPOSED else "exposed ")
                columns.append((name, (account,)))
        return columns

    def layers(self, grouped: bool) -> list[LayerUse]:
        return []

    def path_alike(self) -> Iterator[object]:
        for node_segment in self.results.critical_path:
            yield node_segment.kind, self.results.name_of(node_segment.rank, node_segment.place)

    def path_segments(self, indices: Iterable[int] | None = None) -> Iterator[PathSegment]:
        path, results = self.results.critical_path, self.results
        for segment in path if indices is None else (path[index] for index in indices):
            yield PathSegment(
                segment.start, segment.end, segment.rank,
                results.stream_of(segment.rank, segment.place), segment.kind,
                results.name_of(segment.rank, segment.place), None, None, segment.reason,
                results.executed.nodes[segment.rank].id[segment.place],
            )  # fmt: skip

    def path_words(self, index: int) -> tuple[str, str]:
        node_segment = self.results.critical_path[index]
        return node_segment.kind, self.results.name_of(node_segment.rank, node_segment.place)
