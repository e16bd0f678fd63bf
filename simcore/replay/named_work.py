"""What a rank of a measured run does by name: operations, and sub-operations with what they lie in."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.measured.columns import RankTrace
from simcore.measured.vocabulary import category_of_group
from simcore.replay.timed import Timed
from simcore.run.named_work import NamedWork, OneCall, named_work
from simcore.run.pieces import GAP
from simcore.sources.measured import OF_CATEGORY


def work_of_rank(results: Timed, rank: int) -> NamedWork:
    """What a rank (its place in the run) does, by the accounts of the whole run."""
    pieces, trace = results.ties.pieces[rank], results.run.ranks[rank]
    names = trace.ops.name
    of_piece = [
        "" if kind == GAP else names[op] if sub < 0 else sub_name(trace, sub)
        for kind, op, sub in zip(pieces.kind, pieces.op, pieces.sub, strict=True)
    ]
    # Behind the last operation is piece -1, the last entry.
    of_piece.append("")
    return named_work(results.accounts[rank], of_piece.__getitem__, _calls(trace))


def sub_name(trace: RankTrace, sub: int) -> str:
    """A sub-operation with the operation that it lies in: `layernorm in forward_step`."""
    return f"{trace.subs.name[sub]} in {trace.ops.name[trace.subs.parent[sub]]}"


def _calls(trace: RankTrace) -> Iterator[OneCall]:
    """The operations, each without its sub-operations, and these."""
    ops, subs = trace.ops, trace.subs
    inside = [0] * len(ops)
    for sub, (parent, start, end) in enumerate(zip(subs.parent, subs.start, subs.end, strict=True)):
        inside[parent] += end - start
        account = OF_CATEGORY[category_of_group(subs.group[sub])]
        yield OneCall(account, sub_name(trace, sub), end - start)
    for op, (name, start, end) in enumerate(zip(ops.name, ops.start, ops.end, strict=True)):
        # Sub-operations that run beside each other may last longer than what they lie in.
        yield OneCall(OF_CATEGORY[ops.category(op)], name, max(end - start - inside[op], 0))
