"""The critical path of a measured run in legs, one rank doing one thing of one micro-batch, and in sums."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.records import replace
from simcore.replay.critical_path import REASONS
from simcore.replay.timed import Timed
from simcore.replay.worst import IDLE_NAME, piece_name
from simcore.run.findings import Leg


def legs(results: Timed) -> list[Leg]:
    """The legs of the critical path, in the order of time: they cover 0..step time.

    what: the operation's name, raw text of the file; IDLE_NAME where there is none. number: the rank's index.
    """
    found: list[Leg] = []
    last: tuple[int, str, int] | None = None
    for index, one in enumerate(results.critical_path):
        pieces, trace = results.ties.pieces[one.rank], results.measured.ranks[one.rank]
        op = pieces.op[one.piece]
        is_gap = piece_name(results, one.rank, one.piece) == IDLE_NAME
        # A gap is of no operation; what lies inside an operation is a part of it.
        key = (one.rank, IDLE_NAME, -1) if is_gap else (one.rank, trace.ops.name[op], op)
        if key == last:
            found[-1] = replace(found[-1], last=index + 1, end_ns=one.end)
            continue
        last = key
        reason = REASONS[one.reason].format(rank=results.measured.ranks[one.of].number)
        batch = -1 if is_gap else trace.ops.batch[op]
        who = one.rank, trace.number, trace.stage
        found.append(Leg(index, index + 1, one.start, one.end, *who, key[1], batch, reason))
    return found


# What the path can be summed by.
PARTS = ("kind", "op", "stage", "rank")


def path_parts(results: Timed, by: str) -> Iterator[tuple[str, int]]:
    """(part, ns) of each segment of the critical path, in the order of time.

    by: `kind` (as accounts say it), `op` (operation or sub-operation), `stage` or `rank`.
    """
    for one in results.critical_path:
        trace = results.measured.ranks[one.rank]
        if by == "kind":
            part = one.kind
        elif by == "stage":
            part = "no stage" if trace.stage is None else f"stage {trace.stage}"
        elif by == "rank":
            part = f"rank {trace.number}"
        else:
            part = piece_name(results, one.rank, one.piece)
        yield part, one.end - one.start
