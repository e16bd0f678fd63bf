"""What a piece of a measured rank is called."""

from __future__ import annotations

from typing import Protocol

from simcore.measured.matching import Call, name_of
from simcore.measured.run import MeasuredRun
from simcore.sources.pieces import GAP
from simcore.sources.ties import Ties

IDLE_NAME = "idle"


class InPieces(Protocol):
    """A run whose ranks are taken apart. measured: the run of the files, by whose names pieces are called."""

    @property
    def measured(self) -> MeasuredRun: ...

    @property
    def ties(self) -> Ties: ...


def piece_name(results: InPieces, rank: int, piece: int) -> str:
    """Returns the operation or sub-operation of a piece, as the file has it; `idle` where there is none."""
    pieces, trace = results.ties.pieces[rank], results.measured.ranks[rank]
    if not 0 <= piece < len(pieces) or pieces.kind[piece] == GAP:
        return IDLE_NAME
    return name_of(trace, Call(rank, pieces.op[piece], pieces.sub[piece]))
