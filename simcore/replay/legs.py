"""The critical path of a measured run in legs, one rank doing one thing of one micro-batch, and in sums."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.records import replace
from simcore.replay.critical_path import reason_words
from simcore.replay.timed import Timed
from simcore.replay.worst import IDLE_NAME, piece_name
from simcore.run.findings import Leg


def legs(results: Timed) -> list[Leg]:
    """The legs of the critical path, in the order of time: they cover 0..step time.

    what: the operation's name, raw text of the file; IDLE_NAME where there is none. number: the rank's index.
    """
    path_legs: list[Leg] = []
    last: tuple[int, str, int] | None = None
    for index, piece_segment in enumerate(results.critical_path):
        pieces, trace = results.ties.pieces[piece_segment.rank], results.measured.ranks[piece_segment.rank]
        op = pieces.op[piece_segment.piece]
        is_gap = piece_name(results, piece_segment.rank, piece_segment.piece) == IDLE_NAME
        # A gap is of no operation; what lies inside an operation is a part of it.
        key = (piece_segment.rank, IDLE_NAME, -1) if is_gap else (piece_segment.rank, trace.ops.name[op], op)
        if key == last:
            path_legs[-1] = replace(path_legs[-1], last=index + 1, end_ns=piece_segment.end)
            continue
        last = key
        named = results.measured.ranks[piece_segment.of].number
        reason = reason_words(piece_segment, results.gaps[piece_segment.rank], named)
        batch = -1 if is_gap else trace.ops.batch[op]
        who = piece_segment.rank, trace.number, trace.stage
        path_legs.append(
            Leg(index, index + 1, piece_segment.start, piece_segment.end, *who, key[1], batch, reason)
        )
    return path_legs


# What the path can be summed by.
PARTS = ("kind", "op", "stage", "rank")


def path_parts(results: Timed, by: str) -> Iterator[tuple[str, int]]:
    """(part, ns) of each segment of the critical path, in the order of time.

    by: `kind` (as accounts say it), `op` (operation or sub-operation), `stage` or `rank`.
    """
    for piece_segment in results.critical_path:
        trace = results.measured.ranks[piece_segment.rank]
        if by == "kind":
            part = piece_segment.kind
        elif by == "stage":
            part = "no stage" if trace.stage is None else f"stage {trace.stage}"
        elif by == "rank":
            part = f"rank {trace.number}"
        else:
            part = piece_name(results, piece_segment.rank, piece_segment.piece)
        yield part, piece_segment.end - piece_segment.start
