"""Figures and the critical path, without a segment, of runs that have no step."""

from __future__ import annotations

from simcore.trace.critical_path import CriticalPath, MergeFacts, PathSource
from simcore.trace.figures import PathSegment
from simcore.trace.run import Figures, Of


class EmptyPath(PathSource):
    """The critical path of a hung job, or of memory snapshots."""

    def kind(self, track: int, span: int) -> str:
        return "wait"

    def name(self, track: int, span: int) -> str:
        return ""

    def merge_facts(self, track: int, span: int) -> MergeFacts:
        return MergeFacts("", -1)

    def segment(self, path: CriticalPath, index: int) -> PathSegment:
        raise IndexError(index)


class FiguresWithoutStep(Figures[Of]):
    """The figures of a hung job, or of memory snapshots: nothing is timed."""

    path_groupings = ("kind", "rank")
    has_step = False

    @property
    def path_source(self) -> PathSource:
        return EmptyPath()
