"""How a replay differs from what was measured: when each rank ends, and which operations explain it."""

from __future__ import annotations

from simcore.records import Struct
from simcore.replay.replayed_run import ReplayedRun


class RankDifference(Struct, frozen=True):
    """How the replay of one rank differs from its measurement."""

    rank: int
    """Its id."""
    measured_ns: int
    """When its last operation ends, as measured."""
    replayed_ns: int
    """When its last operation ends in the replay."""
    ops: tuple[tuple[str, int], ...]
    """(name, ns more than measured) of the operations that changed, the greatest change first; GAPS is one of
    the names.
    """


GAPS = "host gaps"


def differences(results: ReplayedRun) -> list[RankDifference]:
    """Returns the difference of each rank; the changes of its operations and gaps add up to it."""
    of_ranks = []
    for before, after in zip(results.measured.ranks, results.run.ranks, strict=True):
        changes: dict[str, int] = {}
        changed = after.last_ns - before.last_ns
        counted_spans = set()
        for op, name in enumerate(before.ops.name):
            span = (before.ops.start[op], before.ops.end[op])
            if span in counted_spans:
                # It is the second line of one physical operation.
                continue
            counted_spans.add(span)
            ns = (after.ops.end[op] - after.ops.start[op]) - (span[1] - span[0])
            changes[name] = changes.get(name, 0) + ns
        changes[GAPS] = changed - sum(changes.values())
        ops = sorted(
            ((name, ns) for name, ns in changes.items() if ns), key=lambda pair: (-abs(pair[1]), pair[0])
        )
        of_ranks.append(RankDifference(before.rank, before.last_ns, after.last_ns, tuple(ops)))
    return of_ranks
