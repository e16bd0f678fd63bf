"""The words of a critical path that dumps do not have: its source, without a segment."""

from __future__ import annotations

from simcore.trace.critical_path import CriticalPath, MergeFacts, PathSource
from simcore.trace.figures import PathSegment


class HungPath(PathSource):
    """The critical path of dumps, which is empty: a hung job has no step."""

    def kind(self, track: int, span: int) -> str:
        return "wait"

    def name(self, track: int, span: int) -> str:
        return ""

    def merge_facts(self, track: int, span: int) -> MergeFacts:
        return MergeFacts("", -1)

    def segment(self, path: CriticalPath, index: int) -> PathSegment:
        raise IndexError(index)
