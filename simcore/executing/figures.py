"""The figures of execution traces that have run, as every run has them: see `simcore/run/figures.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.cluster import parameter_values
from simcore.executing.accounts import ACCOUNTS, FIRST_EXPOSED
from simcore.parameters import as_dict
from simcore.run.figures import LayerUse, Origin, PathSegment, Said, StreamUse, TrackUse, WaitFor
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.executing.ran import RanTraces


class TraceFigures:
    """See `Figures` in `simcore/analysis/run.py`. Names of nodes have a table of their own, no layers."""

    resolution_ns = 1
    worst_link = None
    simai_beside = ("", ())
    recorded = None
    has_slack = True
    waits_for: tuple[WaitFor, ...] = ()
    mean_streams: tuple[tuple[StreamUse, int], ...] = ()
    track_uses: tuple[TrackUse, ...] = ()

    def __init__(self, results: RanTraces, words: Callable[[], list[str]]) -> None:
        """words: the run in sentences."""
        self.results = results
        self._words = words

    @property
    def title(self) -> str:
        return f"Step time  {duration(self.results.step_time_ns)}"

    @property
    def facts(self) -> list[tuple[str, str]]:
        return [("read", self.results.counted())]

    @property
    def said(self) -> list[Said]:
        return [Said("execution", line) for line in self._words()]

    @cached_property
    def origin(self) -> Origin:
        one = self.results.executed
        degrees = {"tp": None, "ep": None, "dp": None, "pp": None, "world": len(one.nodes)}
        values = as_dict(self.results.parameters, "execution") | parameter_values(one.cluster)
        nodes = one.traces.count
        return Origin(
            "chakra", one.traces.schema, nodes, None, 0, degrees, one.parameters.network, one.rules, values,
            [], nodes, nodes,
        )  # fmt: skip

    @cached_property
    def account_columns(self) -> list[tuple[str, tuple[str, ...]]]:
        found: list[tuple[str, tuple[str, ...]]] = []
        for number, account in enumerate(ACCOUNTS):
            if any(one.total_ns[number] for one in self.results.accounts):
                name = account.removeprefix("compute " if number < FIRST_EXPOSED else "exposed ")
                found.append((name, (account,)))
        return found

    def layers(self, grouped: bool) -> list[LayerUse]:
        return []

    def path_alike(self) -> Iterator[object]:
        for one in self.results.critical_path:
            yield one.kind, self.results.name_of(one.rank, one.place)

    def path_segments(self, indices: Iterable[int] | None = None) -> Iterator[PathSegment]:
        path, results = self.results.critical_path, self.results
        for one in path if indices is None else (path[index] for index in indices):
            yield PathSegment(
                one.start, one.end, one.rank, results.stream_of(one.rank, one.place), one.kind,
                results.name_of(one.rank, one.place), None, None, one.reason,
            )  # fmt: skip

    def path_words(self, index: int) -> tuple[str, str]:
        one = self.results.critical_path[index]
        return one.kind, self.results.name_of(one.rank, one.place)
