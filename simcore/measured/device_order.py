"""Which calls of several ranks are at the same position of their order.

Where a rank has fewer of them than another, its window began late or ended early: they are aligned with the
others where types and sizes agree and the times between their ends are most similar. Neither rule uses a
clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median_low

from simcore.measured.columns import CollectiveInfo, RankTrace
from simcore.measured.matching import Call, times_of

# At most so many alignments of two windows are tried, besides those that begin or end together.
_MOST_SHIFTS = 64
_COMPARED = 256
# Kernels of one collective end 1 to 332 us apart on aligned clocks (dlrm_8, hta_sampled); kernels that order
# pairs wrongly, 13 to 134 ms (hta_sampled).
APART_NS = 1_000_000
# Members give and take different sizes; of several operations launched as one it is not known which is
# stated.
ANY_SIZE = ("alltoall", "gather", "scatter", "sendrecv", "allgatherv", "batchisendirecv")


def get_collective(ranks: Sequence[RankTrace], call: Call) -> CollectiveInfo:
    """Returns what the profiler states of a call."""
    device = ranks[call.rank].device
    assert device is not None
    return device.collectives[call.op]


def align_calls(ranks: Sequence[RankTrace], by_rank: Mapping[int, list[Call]]) -> Iterator[tuple[Call, ...]]:
    """Yields the calls of one kind at the same position, by rank: the rank with the most calls leads."""
    lead = max(by_rank, key=lambda rank: (len(by_rank[rank]), -rank))
    by_position: list[list[Call]] = [[call] for call in by_rank[lead]]
    for rank in sorted(by_rank):
        if rank == lead:
            continue
        shift = _find_shift(ranks, by_rank[lead], by_rank[rank])
        for index, call in enumerate(by_rank[rank]):
            at = index + shift
            if 0 <= at < len(by_rank[lead]) and _agree(ranks, by_rank[lead][at], call):
                by_position[at].append(call)
            else:
                yield (call,)
    for calls in by_position:
        yield tuple(sorted(calls))


def _find_shift(ranks: Sequence[RankTrace], lead: list[Call], other: list[Call]) -> int:
    """Returns the call of the leading rank that the first call of another rank is aligned with."""
    more = len(lead) - len(other)
    if not more and all(
        _agree(ranks, call, other_call) for call, other_call in zip(lead, other, strict=True)
    ):
        return 0
    candidates: list[int] = sorted(
        {more, *range(-min(_MOST_SHIFTS, len(other) - 1), min(_MOST_SHIFTS, len(lead) - 1) + 1)}
    )

    def fit(shift: int) -> tuple[int, int, int]:
        pairs = [
            (lead[index + shift], call)
            for index, call in enumerate(other[:_COMPARED])
            if 0 <= index + shift < len(lead)
        ]
        agree = sum(_agree(ranks, *pair) for pair in pairs)
        apart = [times_of(ranks[b.rank], b)[1] - times_of(ranks[a.rank], a)[1] for a, b in pairs]
        middle = median_low(apart) if apart else 0
        spread = median_low(abs(ns - middle) for ns in apart) if apart else 0
        # Sizes come first, then similar times; of equal ones windows that end together.
        return -agree, spread, abs(shift - more)

    return min(candidates, key=fit)


def _agree(ranks: Sequence[RankTrace], call: Call, two: Call) -> bool:
    """Returns whether two calls can be one collective: their types and sizes agree where they are stated."""
    first, second = get_collective(ranks, call), get_collective(ranks, two)
    if first.dtype is not None and second.dtype is not None and first.dtype != second.dtype:
        return False
    if not first.operation or first.operation.startswith(ANY_SIZE):
        return True
    there = (elements_of(first), elements_of(second))
    return min(there) < 0 or there[0] == there[1]


def elements_of(info: CollectiveInfo) -> int:
    """Returns the elements that go into a call; for a receive those that come out, where stated. -1 if not
    known.
    """
    return info.elements_out if info.receives and info.elements_out >= 0 else info.elements_in
