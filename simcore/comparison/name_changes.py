"""What differs between two by name: kernels, operations or rows, by more calls or by longer ones."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.comparison.changes import AccountChange
from simcore.kernel_names import short_name
from simcore.records import NamedTuple
from simcore.trace.named_work import ALL_COMPUTE, IDLE, NamedTime, NamedWork
from simcore.trace.track import COMMON_ACCOUNTS, COMPUTE
from simcore.units import duration, join_names, plural, signed_duration

# A name that is less than one in so many of the difference of its account, and a cause that is less of that
# of its name, is not worth a clause.
_SMALL_SHARE = 10
# Names that a sentence has.
_MOST_NAMES = 3
_NAME_CELLS = 40
# What others decide, or nothing at all.
_WAIT_ACCOUNTS = ("wait", "bubble", IDLE)
# In these a call takes its own time: it can be longer. Elsewhere others decide when it is over.
_OWN_TIME = (ALL_COMPUTE, "host", "exposed copy")


class NameChange(NamedTuple):
    """What has one name, of one account, in A and in B. Differences are B - A, ns.

    name: raw text of the file, "" of what is idle.
    """

    account: str
    name: str
    a: NamedTime
    b: NamedTime

    @property
    def ns(self) -> int:
        """How much more of the account it takes."""
        return self.b.ns - self.a.ns

    @property
    def extra_calls(self) -> int:
        """How many more calls there are."""
        return self.b.calls - self.a.calls

    @property
    def calls_ns(self) -> int:
        """How much of `ns` is that there are more calls, each at the mean of what one takes in A and in B."""
        if not self.extra_calls:
            return 0
        if not self.a.calls or not self.b.calls:
            return self.ns
        of_both = self.a.ns * self.b.calls + self.b.ns * self.a.calls
        return round(self.extra_calls * of_both / (2 * self.a.calls * self.b.calls))

    @property
    def each_ns(self) -> int:
        """The rest of `ns`: that a call takes more."""
        return self.ns - self.calls_ns

    @property
    def cause_words(self) -> str:
        """`3 more calls`, `as many calls, each longer`: why it takes more or less; "" where it does not."""
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
        """Whether its calls last longer, or less of them runs beside other work: most of `each_ns`."""
        a, b = self.a, self.b
        longer = (a.calls + b.calls) * (b.total_ns / b.calls - a.total_ns / a.calls) / 2
        if longer * self.each_ns > 0 and 2 * abs(longer) >= abs(self.each_ns):
            return "each longer" if longer > 0 else "each shorter"
        return f"{'less' if self.each_ns > 0 else 'more'} of it beside other work"


def find_name_changes(a: NamedWork, b: NamedWork) -> list[NameChange]:
    """Every (account, name) of the two, what differs most first; equal ones too."""
    changes = [NameChange(*key, a.work(*key), b.work(*key)) for key in {**a.ns, **b.ns}]
    return sorted(
        changes, key=lambda change: (-abs(change.ns), -abs(change.extra_calls), change.account, change.name)
    )


def merge_compute(accounts: Sequence[AccountChange]) -> list[AccountChange]:
    """Accounts by ALIKE with all compute as one, as names have it."""
    computes = {COMMON_ACCOUNTS[index] for index in COMPUTE}
    compute = [change for change in accounts if change.name in computes]
    sums = sum(change.a_ns for change in compute), sum(change.b_ns for change in compute)
    others = [change for change in accounts if change.name not in computes]
    return [AccountChange(ALL_COMPUTE, *sums), *others]


def make_sentences(
    accounts: Sequence[AccountChange], names: Sequence[NameChange], a_words: str, b_words: str
) -> list[str]:
    """The account that differs most and the names that it is of; then what B has less, or more, for it.

    accounts: by ALIKE; names: as `name_changes` has them. a_words, b_words: who A and B are.
    """
    merged = merge_compute(accounts)
    most = max(merged, key=lambda change: (abs(change.ns), change.name not in _WAIT_ACCOUNTS))
    own_change = max(
        (change for change in merged if change.name not in _WAIT_ACCOUNTS), key=lambda change: abs(change.ns)
    )
    # A rank waits for what others do: its own work comes first where it is much of it.
    first = own_change if 2 * abs(own_change.ns) >= abs(most.ns) else most
    if not first.ns:
        return [f"No account of {b_words} differs from that of {a_words}."]
    texts = [f"{b_words[0].upper()}{b_words[1:]} has {_account_words(first, names, f' than {a_words}')}."]
    against = max(merged, key=lambda change: -change.ns if first.ns > 0 else change.ns)
    if against.ns * first.ns < 0 and abs(against.ns) * _SMALL_SHARE >= abs(first.ns):
        texts.append(f"It has {_account_words(against, names, '')}.")
    return texts


def _account_words(change: AccountChange, names: Sequence[NameChange], than: str) -> str:
    """`12.000 ms more compute than rank 0: 9.100 ms more in gemm (as many calls, each longer)`."""
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
