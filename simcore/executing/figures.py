"""The figures of execution traces that have run, as every run has them: see `simcore/run/figures.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.diagnostics import printable
from simcore.executing.executed import words_of
from simcore.run.accounts import told_accounts
from simcore.run.figures import (
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
from simcore.trace.streams import TrackStreams, mean_use, track_streams
from simcore.trace.tables import LayerUse, SpentByLabel
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.executing.ran import RanTraces


# Streams of a rank that send nothing.
_NO_MESSAGES = (COMPUTE_STREAM, "cpu", "memory")


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
            ("network", f"{executed.setup.parameters.network}: {dims}"),
        ]

    @property
    def said(self) -> list[Said]:
        return [Said("execution", line) for line in self._words()]

    @cached_property
    def origin(self) -> Origin:
        executed = self.results.executed
        degrees = {"tp": None, "ep": None, "dp": None, "pp": None, "world": len(executed.nodes)}
        values = self.results.parameters.as_dict("execution") | dict(executed.used)
        nodes = executed.traces.count
        return Origin(
            "chakra", executed.traces.schema, nodes, None, 0, degrees, executed.setup.parameters.network,
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
        means = mean_use((self._streams_of(rank), 1) for rank in self.results.ranks)
        return sorted(
            means, key=lambda pair: (pair[0].kind != COMPUTE_STREAM, -pair[0].busy_ns, pair[0].stream)
        )

    def _streams_of(self, rank: int) -> list[StreamUse]:
        """What each stream of a rank is; ranks that run alike have other groups."""
        results = self.results
        unit = results.executed.units.of[rank]
        column = results.trace.column("stream")
        exposed = SpentByLabel(results.trace, unit, results.accounts[rank], column).exposed
        uses = []
        for label, (busy_ns, beside_ns) in self._uses[unit].used.items():
            stream = results.stream_of(rank, column.of[unit].index(label))
            beside_ns = 0 if stream == COMPUTE_STREAM else beside_ns
            uses.append(StreamUse(stream, busy_ns, beside_ns, exposed.get(label, 0)))
        return uses

    @cached_property
    def _uses(self) -> list[TrackStreams]:
        """Of each class of ranks how its streams are used."""
        results = self.results
        column = results.trace.column("stream")
        silent = [label for label, stream in enumerate(column.labels) if stream in _NO_MESSAGES]
        return [
            track_streams(results.trace, unit, results.accounts[rank], column, silent)
            for unit, rank in enumerate(results.executed.units.first)
        ]

    @cached_property
    def account_columns(self) -> list[tuple[str, tuple[str, ...]]]:
        return told_accounts(self.results.accounts, {})

    def layers(self, grouped: bool) -> list[LayerUse]:
        return []

    def path_alike(self) -> Iterator[object]:
        source = self.results.path_source
        for track, span, _ in self.results.critical_path:
            yield source.kind(track, span), source.name(track, span)

    def path_segments(self, indices: Iterable[int] | None = None) -> Iterator[PathSegment]:
        return self.results.path_source.segments(self.results.critical_path, indices)

    def path_words(self, index: int) -> tuple[str, str]:
        source, path = self.results.path_source, self.results.critical_path
        where = path.track[index], path.span[index]
        return source.kind(*where), source.name(*where)
