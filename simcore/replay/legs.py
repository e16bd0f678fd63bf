"""The critical path of a measured run in legs: one rank doing one thing of one micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from simcore.records import Struct
from simcore.replay.critical_path import REASONS, Segment
from simcore.replay.worst import GAP_NAME, piece_name

if TYPE_CHECKING:
    from simcore.replay.results import MeasuredResults

_Part = TypeVar("_Part", str, tuple[int, str])


class Leg(Struct, frozen=True):
    """Segments of the path that follow each other on one rank, in one operation.

    rank: its index. what: the operation's name, raw text of the file; GAP_NAME between two. microbatch: -1
    where none is stated. reason: why the leg could not begin earlier.
    """

    start_ns: int
    end_ns: int
    rank: int
    what: str
    microbatch: int
    reason: str

    @property
    def ns(self) -> int:
        """How long it takes."""
        return self.end_ns - self.start_ns


def legs(results: MeasuredResults) -> list[Leg]:
    """The legs of the critical path, in the order of time: they cover 0..step time."""
    found: list[Leg] = []
    last: tuple[int, str, int] | None = None
    for one in results.critical_path:
        pieces, trace = results.ties.pieces[one.rank], results.measured.ranks[one.rank]
        op = pieces.op[one.piece]
        is_gap = piece_name(results, one.rank, one.piece) == GAP_NAME
        # A gap is of no operation; what lies inside an operation is a part of it.
        key = (one.rank, GAP_NAME, -1) if is_gap else (one.rank, trace.ops.name[op], op)
        if key == last:
            before = found.pop()
            found.append(
                Leg(before.start_ns, one.end, before.rank, before.what, before.microbatch, before.reason)
            )
            continue
        last = key
        reason = REASONS[one.reason].format(rank=results.measured.ranks[one.of].number)
        found.append(Leg(one.start, one.end, one.rank, key[1], -1 if is_gap else trace.ops.batch[op], reason))
    return found


def path_sums(results: MeasuredResults, by: str) -> list[tuple[str, int]]:
    """(what, ns) of the critical path, the longest first; they sum to the step time.

    by: `kind` (as accounts say it), `op` (operation or sub-operation), `stage` or `rank`.
    """
    sums = _sums(results, lambda one: _part_of(results, one, by))
    if by in ("stage", "rank"):
        # Of equal ones, stage 3 before stage 10.
        sums.sort(key=lambda pair: (-pair[1], len(pair[0])))
    return sums


def path_sums_of_ranks(results: MeasuredResults) -> list[tuple[tuple[int, str], int]]:
    """((number of a rank, kind), ns) of the critical path, the longest first; they sum to the step time."""
    return _sums(results, lambda one: (results.measured.ranks[one.rank].number, one.kind))


def _sums(results: MeasuredResults, part_of: Callable[[Segment], _Part]) -> list[tuple[_Part, int]]:
    sums: dict[_Part, int] = {}
    for one in results.critical_path:
        part = part_of(one)
        sums[part] = sums.get(part, 0) + one.end - one.start
    return sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))


def longest_of_part(results: MeasuredResults, by: str, part: str) -> tuple[int, int, int] | None:
    """(rank, start, end) of the longest segment of a part of the path; the first of equal ones.

    by, part: as `path_sums` has them. rank: its index.
    """
    found = [one for one in results.critical_path if _part_of(results, one, by) == part]
    longest = max(found, key=lambda one: one.end - one.start, default=None)
    return None if longest is None else (longest.rank, longest.start, longest.end)


def _part_of(results: MeasuredResults, one: Segment, by: str) -> str:
    trace = results.measured.ranks[one.rank]
    return {
        "kind": one.kind,
        "stage": "no stage" if trace.stage is None else f"stage {trace.stage}",
        "rank": f"rank {trace.number}",
    }.get(by) or piece_name(results, one.rank, one.piece)
