"""The accounts that every run has, whatever it came from, under one name each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# What a trace cannot tell apart is one account: input and weight gradient and what is recomputed run inside
# its backward steps. `embedding`, `position` and `host` are a trace's alone, `kernel` (compute of which
# nothing tells what it is for) and `copy` a profiler's.
ALIKE = (
    "forward", "backward", "optimizer", "exposed tp", "exposed dp", "exposed ep", "exposed expert dp",
    "exposed pp", "exposed embedding", "exposed position", "exposed other", "wait", "bubble", "host", "idle",
    "kernel", "exposed copy",
)  # fmt: skip
# Accounts that are left out where no run is a profiler's.
OF_PROFILES = ("kernel", "exposed copy")
# Places in ALIKE of what a rank computes.
COMPUTE = tuple(ALIKE.index(name) for name in ("forward", "backward", "optimizer", "kernel"))


def places_in_alike(accounts: Sequence[str], names: Mapping[str, str]) -> tuple[int, ...]:
    """The place in ALIKE of each account of one kind of run. names: of those that have another name there."""
    return tuple(ALIKE.index(names.get(account, account)) for account in accounts)


def in_same_words(total_ns: Sequence[int], table: Sequence[int]) -> list[int]:
    """ns by ALIKE of what an account of a run has. table: of `places_in_alike`. The sum is the same."""
    found = [0] * len(ALIKE)
    for number, ns in zip(table, total_ns, strict=True):
        found[number] += ns
    return found


def busy_ns(common_ns: Sequence[int]) -> int:
    """What is computed, of ns by ALIKE."""
    return sum(common_ns[account] for account in COMPUTE)


def mean_ns(sums: Sequence[int], count: int) -> list[int]:
    """Each sum over `count`, in whole ns, so that the means sum to the whole's mean to the nanosecond."""
    means: list[int] = []
    reached = given = 0
    for ns in sums:
        reached += ns
        means.append(reached // count - given)
        given = reached // count
    return means
