"""The words of a critical path without a segment: of runs that have no step."""

from __future__ import annotations

from simcore.trace.critical_path import CriticalPath, MergeFacts, PathSource
from simcore.trace.figures import PathSegment


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
