"""What a rank of a measured run takes of the step, in the words of simulated runs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate, pairwise

from simcore.measured.columns import MEASURED, PASSES, RankTrace
from simcore.measured.vocabulary import LAUNCH, category_of_group
from simcore.replay.accounts import FIRST_EXPOSED, RankAccounts
from simcore.run.figures import StreamUse

# The trace's words for what simulated runs have too. A trace does not tell input and weight gradients and
# what is recomputed apart: `bwd` is all of a backward step. `other`: of groups without a name.
PHASES = {"forward": "fwd", "backward": "bwd", "optimizer": "opt", "kernel": "kernel"}
KINDS = {"expert": "ep", "expert dp": "dp_ep", "comm": "other"}


def compute_ns(accounts: RankAccounts) -> dict[str, int]:
    """Compute by phase, ns."""
    return {PHASES[name]: ns for name, ns in accounts.compute_ns().items()}


def exposed_ns(accounts: RankAccounts) -> dict[str, int]:
    """Exposed communication by kind of group, ns."""
    return {KINDS.get(name, name): ns for name, ns in accounts.exposed_ns().items()}


def stream_times(rank: RankTrace, accounts: RankAccounts) -> list[StreamUse]:
    """The streams that a rank has, compute first. rank: with the times that the accounts are of.

    Where compute waits for it, communication is busy from when the last member has come.
    """
    found = [StreamUse("compute", accounts.busy_ns, 0, 0)]
    computed = _computed(accounts)
    spans = _communication(rank)
    # Never said when it runs.
    unknown = LAUNCH in rank.ops.name
    for category, ns in accounts.exposed_ns().items():
        beside = sum(computed(end) - computed(start) for start, end in _merged(spans.get(category, [])))
        if ns or beside:
            name = KINDS.get(category, category)
            found.append(StreamUse(name, ns + beside, None if unknown else beside, ns))
    return found


def overlapped_ns(rank: RankTrace, accounts: RankAccounts) -> int | None:
    """Communication beside compute, ns; None of a rank that launches some and never says when it runs."""
    if LAUNCH in rank.ops.name:
        return None
    computed = _computed(accounts)
    spans = [span for of_kind in _communication(rank).values() for span in of_kind]
    return sum(computed(end) - computed(start) for start, end in _merged(spans))


def _communication(rank: RankTrace) -> dict[str, list[tuple[int, int]]]:
    """(start, end) of the sub-operations by category: beside compute only those can run."""
    found: dict[str, list[tuple[int, int]]] = {}
    subs = rank.subs
    for group, known, start, end in zip(subs.group, subs.known, subs.start, subs.end, strict=True):
        if known == MEASURED and end > start:
            found.setdefault(category_of_group(group), []).append((start, end))
    return found


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of spans, as disjoint ones."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _computed(accounts: RankAccounts) -> Callable[[int], int]:
    """How much the rank has computed until a moment, ns."""
    edge = accounts.edge
    lengths = [
        over - begin if account < FIRST_EXPOSED else 0
        for account, (begin, over) in zip(accounts.account, pairwise(edge), strict=True)
    ]
    before = list(accumulate(lengths, initial=0))

    def until(time_ns: int) -> int:
        segment = min(bisect_right(edge, time_ns), len(edge) - 1) - 1
        if segment < 0:
            return 0
        inside = time_ns - edge[segment] if accounts.account[segment] < FIRST_EXPOSED else 0
        return before[segment] + min(inside, lengths[segment])

    return until


def peak_microbatches(rank: RankTrace) -> int | None:
    """The most micro-batches that are forward and not yet backward; None where the trace names none."""
    held: dict[int, int] = {}
    most = 0
    ops = rank.ops
    for op in rank.passes:
        if ops.batch[op] < 0:
            continue
        forward = PASSES[ops.name[op]] == "forward"
        held[ops.batch[op]] = held.get(ops.batch[op], 0) + (1 if forward else -1)
        most = max(most, sum(count > 0 for count in held.values()))
    return most or None
