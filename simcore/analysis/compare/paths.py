"""The critical paths of two runs beside each other: what each is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from simcore.analysis.results import Results


class Change(NamedTuple):
    """A figure of the one run and of the other, ns."""

    name: str
    a_ns: int
    b_ns: int

    @property
    def ns(self) -> int:
        """How much larger it is in the other run."""
        return self.b_ns - self.a_ns


class PathChanges(NamedTuple):
    """ns of both critical paths by kind of segment, by stage, and by name of rows without digits.

    Names are those of `CriticalPath.by_kind` and `Results.critical_by_layer`, a stage's is its
    number. What changes most comes first, then what is longest.
    """

    kind: list[Change]
    stage: list[Change]
    layer: list[Change]


def path_changes(a: Results, b: Results) -> PathChanges:
    """Each sums to the step times of the two runs."""
    one, other = a.critical_path, b.critical_path
    return PathChanges(
        _changes(one.by_kind(), other.by_kind()),
        _changes(one.by_stage(), other.by_stage()),
        _changes(a.critical_by_layer, b.critical_by_layer),
    )


def _changes(
    a: Mapping[str, int] | Mapping[int, int], b: Mapping[str, int] | Mapping[int, int]
) -> list[Change]:
    sums = [{str(name): ns for name, ns in side.items()} for side in (a, b)]
    found = [Change(name, sums[0].get(name, 0), sums[1].get(name, 0)) for name in {**sums[0], **sums[1]}]
    return sorted(found, key=lambda one: (-abs(one.ns), -max(one.a_ns, one.b_ns), one.name))
