"""The accounts of simulated and of measured runs under the same names."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.analysis import accounts as simulated
from simcore.analysis.compare.parts import BUSY
from simcore.replay import accounts as measured

# What a trace cannot tell apart is one account: input and weight gradient and what is recomputed run
# inside its backward steps. `embedding`, `position` and `host` are a trace's alone.
ALIKE = (
    "forward", "backward", "optimizer", "exposed tp", "exposed dp", "exposed ep", "exposed expert dp",
    "exposed pp", "exposed embedding", "exposed position", "exposed other", "wait", "bubble", "host", "idle",
)  # fmt: skip
# Places in ALIKE of what a rank computes.
COMPUTE = tuple(ALIKE.index(name) for name in ("forward", "backward", "optimizer"))
_OF_SIMULATED = {
    "compute fwd": "forward", "compute ig": "backward", "compute wg": "backward",
    "compute recompute": "backward", "compute opt": "optimizer",
    "exposed dp_ep": "exposed expert dp", "exposed all": "exposed other",
}  # fmt: skip
_OF_MEASURED = {
    **{f"compute {name}": name for name in ("forward", "backward", "optimizer")},
    "exposed expert": "exposed ep", "exposed comm": "exposed other",
}  # fmt: skip


def _table(accounts: Sequence[str], names: dict[str, str]) -> tuple[int, ...]:
    return tuple(ALIKE.index(names.get(account, account)) for account in accounts)


SIMULATED = _table(simulated.ACCOUNTS, _OF_SIMULATED)
MEASURED = _table(measured.ACCOUNTS, _OF_MEASURED)


def account_of(name: str) -> str:
    """The account that one of ALIKE is a part of where a difference is explained: compute is one."""
    return BUSY if ALIKE.index(name) in COMPUTE else name


def in_same_words(total_ns: Sequence[int], table: Sequence[int]) -> list[int]:
    """ns by ALIKE of what an account of a run has. table: SIMULATED or MEASURED. The sum is the same."""
    found = [0] * len(ALIKE)
    for number, ns in zip(table, total_ns, strict=True):
        found[number] += ns
    return found


def mean_ns(sums: Sequence[int], count: int) -> list[int]:
    """Each sum over `count`, in whole ns, so that the means sum to the whole's mean to the nanosecond."""
    means: list[int] = []
    reached = given = 0
    for ns in sums:
        reached += ns
        means.append(reached // count - given)
        given = reached // count
    return means
