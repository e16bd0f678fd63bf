"""The differences of two runs by name: kernels, operations or rows, by more calls or by longer ones."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.comparison.changes import AccountChange
from simcore.kernel_names import short_name
from simcore.records import NamedTuple
from simcore.trace.named_work import ALL_COMPUTE, IDLE, NamedTime, NamedWork
from simcore.trace.track import COMMON_ACCOUNTS, COMPUTE
from simcore.units import duration, join_names, plural, signed_duration

# A name whose change is less than 1 / 10 of the difference of its account, and a cause that is less than that
# of the change of its name, is not worth a clause.
_SMALL_SHARE = 10
# The most names in a sentence.
_MOST_NAMES = 3
_NAME_CELLS = 40
# Time that other ranks decide, or that nothing explains.
_WAIT_ACCOUNTS = ("wait", "bubble", IDLE)
# In these accounts a call takes its own time and can be longer; in all others other ranks decide when it
# ends.
_OWN_TIME = (ALL_COMPUTE, "host", "exposed copy")


class NameChange(NamedTuple):
    """The work of one name in one account, in A and in B. Differences are B - A, ns."""

    account: str
    """The account that the time is in."""
    name: str
    """Raw text of the file; "" for idle time."""
    a: NamedTime
    """Time and calls in A."""
    b: NamedTime
    """Time and calls in B."""

    @property
    def ns(self) -> int:
        """How much more of the account it takes in B, ns."""
        return self.b.ns - self.a.ns

    @property
    def extra_calls(self) -> int:
        """How many more calls there are in B."""
        return self.b.calls - self.a.calls

    @property
    def calls_ns(self) -> int:
        """The part of `ns` that more calls explain, each at the mean duration of a call in A and in B."""
        if not self.extra_calls:
            return 0
        if not self.a.calls or not self.b.calls:
            return self.ns
        of_both = self.a.ns * self.b.calls + self.b.ns * self.a.calls
        return round(self.extra_calls * of_both / (2 * self.a.calls * self.b.calls))

    @property
    def each_ns(self) -> int:
        """The part of `ns` that longer calls explain."""
        return self.ns - self.calls_ns

    @property
    def cause_words(self) -> str:
        """Why the name takes more or less: `3 more calls`, `as many calls, each longer`; "" where it does
        not.
        """
        calls = self.a.calls + self.b.calls
        if not calls or not (self.ns or self.extra_calls):
            return ""
        if not (self.a.calls and self.b.calls):
            return f"{plural(calls, 'call')} in {'B' if self.b.calls else 'A'} alone"
        extra = self.extra_calls
        calls_text = (
            plural(abs(extra), "more call" if extra > 0 else "fewer call") if extra else "as many calls"
        )
        if self.account not in _OWN_TIME or abs(self.each_ns) * _SMALL_SHARE < abs(self.ns):
            return calls_text
        figures = (
            (f": {signed_duration(self.calls_ns)}", f": {signed_duration(self.each_ns)}")
            if extra
            else ("", "")
        )
        return f"{calls_text}{figures[0]}, {self._each_words}{figures[1]}"

    @property
    def _each_words(self) -> str:
        """Whether its calls last longer, or less of them overlaps other work: what explains most of
        `each_ns`.
        """
        a, b = self.a, self.b
        longer = (a.calls + b.calls) * (b.total_ns / b.calls - a.total_ns / a.calls) / 2
        if longer * self.each_ns > 0 and 2 * abs(longer) >= abs(self.each_ns):
            return "each longer" if longer > 0 else "each shorter"
        return f"{'less' if self.each_ns > 0 else 'more'} of it beside other work"


def find_name_changes(a: NamedWork, b: NamedWork) -> list[NameChange]:
    """Returns the change of every (account, name) of the two, the largest first, those of 0 ns included."""
    changes = [NameChange(*key, a.work(*key), b.work(*key)) for key in {**a.ns, **b.ns}]
    return sorted(
        changes, key=lambda change: (-abs(change.ns), -abs(change.extra_calls), change.account, change.name)
    )


def merge_compute(accounts: Sequence[AccountChange]) -> list[AccountChange]:
    """Returns accounts by COMMON_ACCOUNTS with all compute as one, as `NamedWork` has it."""
    computes = {COMMON_ACCOUNTS[index] for index in COMPUTE}
    compute = [change for change in accounts if change.name in computes]
    sums = sum(change.a_ns for change in compute), sum(change.b_ns for change in compute)
    others = [change for change in accounts if change.name not in computes]
    return [AccountChange(ALL_COMPUTE, *sums), *others]


def make_sentences(
    accounts: Sequence[AccountChange], names: Sequence[NameChange], a_words: str, b_words: str
) -> list[str]:
    """Returns a sentence on the account that differs most, with its names, and one on what offsets it.

    accounts: by COMMON_ACCOUNTS. names: as `find_name_changes` returns them. a_words, b_words: the names of A
    and B.
    """
    merged = merge_compute(accounts)
    most = max(merged, key=lambda change: (abs(change.ns), change.name not in _WAIT_ACCOUNTS))
    own_change = max(
        (change for change in merged if change.name not in _WAIT_ACCOUNTS), key=lambda change: abs(change.ns)
    )
    # A rank waits for what others do: a change of its own work comes first from half of the largest on.
    first = own_change if 2 * abs(own_change.ns) >= abs(most.ns) else most
    if not first.ns:
        return [f"No account of {b_words} differs from that of {a_words}."]
    texts = [f"{b_words[0].upper()}{b_words[1:]} has {_account_words(first, names, f' than {a_words}')}."]
    against = max(merged, key=lambda change: -change.ns if first.ns > 0 else change.ns)
    if against.ns * first.ns < 0 and abs(against.ns) * _SMALL_SHARE >= abs(first.ns):
        texts.append(f"It has {_account_words(against, names, '')}.")
    return texts


def _account_words(change: AccountChange, names: Sequence[NameChange], than: str) -> str:
    """Returns `12.000 ms more compute than rank 0: 9.100 ms more in gemm (as many calls, each longer)`."""
    words = (
        f"{_signed_text(change.ns)} {_account_name(change.name)}{than} ({duration(change.b_ns)}, "
        f"{duration(change.a_ns)})"
    )
    account_names = [one for one in names if one.account == change.name and one.ns]
    if change.name == IDLE or not account_names:
        return words
    listed_names = [
        one for one in account_names[:_MOST_NAMES] if abs(one.ns) * _SMALL_SHARE >= abs(change.ns)
    ]
    clauses = [
        f"{_signed_text(one.ns)} in {short_name(one.name, _NAME_CELLS)}"
        + (f" ({one.cause_words})" if one.cause_words else "")
        for one in listed_names
    ]
    unlisted_count, unlisted_ns = (
        len(account_names) - len(listed_names),
        change.ns - sum(one.ns for one in listed_names),
    )
    if unlisted_count and unlisted_ns:
        others = f"{unlisted_count} others" if unlisted_count > 1 else "another one"
        clauses.append(
            f"{_signed_text(unlisted_ns)} in {others if listed_names else plural(unlisted_count, 'name')}"
        )
    return f"{words}: {join_names(clauses)}"


def _account_name(account: str) -> str:
    return "idle time" if account == IDLE else account


def _signed_text(ns: int) -> str:
    return f"{duration(abs(ns))} {'more' if ns > 0 else 'less'}"
