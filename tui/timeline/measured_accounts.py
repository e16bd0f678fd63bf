"""What the cells of a measured rank are drawn from: its accounts, so that waiting is no work."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import compress

from simcore.measured.vocabulary import CATEGORIES
from simcore.replay import MeasuredResults
from simcore.replay.accounts import ACCOUNTS, OVER
from simcore.run.pieces import GAP
from tui.timeline.spans import COMPUTING, DRAWN, Spans

_DRAWN_CATEGORY = {
    "forward": "fwd", "backward": "bwd", "optimizer": "opt", "expert": "ep", "expert dp": "dp_ep",
    "gap": "idle", "outside": "idle",
}  # fmt: skip


def drawn_as(category: str) -> int:
    """Index into DRAWN of a category of CATEGORIES."""
    return DRAWN.index(_DRAWN_CATEGORY.get(category, category))


def _of_account(account: str) -> int:
    kind, _, category = account.partition(" ")
    return drawn_as(category or kind)


_OF_ACCOUNT = bytes(map(_of_account, ACCOUNTS)) + bytes(256 - len(ACCOUNTS))
_ON_COMPUTE = bytes(kind in (*COMPUTING, DRAWN.index("host")) for kind in range(256))
# Category of a lane -> index into DRAWN, as `bytearray.translate` takes it.
TO_DRAWN = bytes(map(drawn_as, CATEGORIES)) + bytes(256 - len(CATEGORIES))


def accounted(results: MeasuredResults, number: int, spans: Spans, *, computing: bool) -> Spans:
    """The accounts of a rank (its index) as spans, each with the item of its operation or gap.

    spans: of the lane; those of its operations that take no time keep the 1 ns that they are drawn with.
    computing: what it computes and the host does alone, else all, waiting and gaps too.
    """
    one, pieces, ops = results.accounts[number], results.ties.pieces[number], results.run.ranks[number].ops
    items = array("q")
    for piece in one.piece:
        op = len(ops) if piece == OVER else pieces.op[piece]
        items.append(-1 - op if piece == OVER or pieces.kind[piece] == GAP else op)
    kinds = one.account.translate(_OF_ACCOUNT)
    found = list(zip(one.edge, one.edge[1:], items, kinds, strict=False))
    if computing:
        found = list(compress(found, kinds.translate(_ON_COMPUTE)))
    starts = [start for start, _, _, _ in found]
    instants: dict[tuple[int, int], tuple[int, int, int, int]] = {}
    for start, item, kind in zip(spans.start, spans.op, spans.category, strict=True):
        if item >= 0 and ops.start[item] == ops.end[item]:
            _, end, _, around = found[bisect_right(starts, start) - 1] if found else (0, 0, 0, -1)
            if kind != around or start >= end:
                instants[start, kind] = start, start + 1, item, kind
    columns = sorted((*found, *instants.values()))
    return Spans(
        array("q", (start for start, _, _, _ in columns)),
        array("q", (end for _, end, _, _ in columns)),
        array("q", (item for _, _, item, _ in columns)),
        bytearray(kind for _, _, _, kind in columns),
    )
