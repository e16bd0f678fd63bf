"""Runs without a step, as a hung job and memory snapshots are; their figures and their empty path."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

from simcore.diagnostics import Cancelled
from simcore.ranks import RankSet
from simcore.trace.contexts import StepShape
from simcore.trace.critical_path import CriticalPath, MergeFacts, PathSource
from simcore.trace.figures import PathSegment
from simcore.trace.findings import WhatIf
from simcore.trace.run import Figures, Of, Run
from simcore.trace.trace_graph import TraceGraph, graph_without_nodes
from simcore.trace.track import Track


class RunWithoutStep(Run):
    """A run in which no step could be timed: nothing has an account, a path or a slack."""

    timed = False
    step_time_ns = 0

    @property
    @abstractmethod
    def ids(self) -> Sequence[int]:
        """The rank or device of each track."""

    @cached_property
    def shape(self) -> StepShape:
        return StepShape(0, self.tracks)

    @cached_property
    def tracks(self) -> tuple[Track, ...]:
        return tuple(Track(index, None, RankSet.of((own_id,))) for index, own_id in enumerate(self.ids))

    def _make_graph(self, cancelled: Callable[[], bool]) -> TraceGraph:
        return graph_without_nodes(self.ids)

    def _find_what_if(
        self, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
    ) -> list[WhatIf]:
        if cancelled():
            raise Cancelled
        return []


class EmptyPath(PathSource):
    """The critical path of a run without a step."""

    def kind(self, track: int, span: int) -> str:
        return "wait"

    def name(self, track: int, span: int) -> str:
        return ""

    def merge_facts(self, track: int, span: int) -> MergeFacts:
        return MergeFacts("", -1)

    def segment(self, path: CriticalPath, index: int) -> PathSegment:
        raise IndexError(index)


class FiguresWithoutStep(Figures[Of]):
    """The figures of a run without a step."""

    path_groupings = ("kind", "rank")
    has_step = False

    @property
    def path_source(self) -> PathSource:
        return EmptyPath()
