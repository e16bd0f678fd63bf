"""The work of ranks by name: each nanosecond of their accounts with what then runs or is waited for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from simcore.records import NamedTuple, Struct
from simcore.trace.accounts import Accounts
from simcore.trace.spans import NONE, Trace
from simcore.trace.track import COMMON_ACCOUNTS, COMPUTE
from simcore.units import differences

# All compute is one account: a name is the same work in every phase.
ALL_COMPUTE = "compute"
IDLE = "idle"
_ACCOUNT_NAMES = tuple(
    ALL_COMPUTE if account_index in COMPUTE else name for account_index, name in enumerate(COMMON_ACCOUNTS)
)


class CallTime(NamedTuple):
    """One call of a name."""

    account: int
    """The index in `Accounts.of` of the account of its own time."""
    name: str
    """Its name, raw text of the file."""
    ns: int
    """How long it lasts."""


class CallCounts(NamedTuple):
    """times: how many calls of a name there are; ns: how long all of them last, overlapped time too."""

    times: int = 0
    ns: int = 0


class NamedTime(NamedTuple):
    """The time of one name in one account, and all calls of the name, as `CallCounts` has them."""

    ns: int = 0
    """The time in the account, ns."""
    calls: int = 0
    """How many calls of the name there are, whatever their account."""
    total_ns: int = 0
    """How long all these calls last, ns."""


class NamedWork(Struct, frozen=True):
    """The accounts of some ranks together by name: the names of one account sum to it.

    ns: by (account, name), 0 where all of it overlaps other work. calls: by (whether it computes, name), as
    rows of a workload are both a compute and a collective. Names are raw text of the file, "" of idle time.
    """

    ns: Mapping[tuple[str, str], int]
    calls: Mapping[tuple[bool, str], CallCounts]

    def work(self, account: str, name: str) -> NamedTime:
        """Returns the time of one name in an account, with all calls of the name even where that is 0."""
        computes = account == ALL_COMPUTE
        # An operation that computes may wait inside.
        calls = self.calls.get((computes, name)) or self.calls.get((not computes, name)) or CallCounts()
        return NamedTime(self.ns.get((account, name), 0), *calls)


def named_work(
    trace: Trace, track: int, accounts: Accounts, calls: Iterable[CallTime] | None = None
) -> NamedWork:
    """Returns the work of a rank of a track by name. accounts: of that track. calls: those of a run whose
    calls are not its spans.
    """
    names = trace.column("name")
    account_names = [_ACCOUNT_NAMES[common_index] for common_index in accounts.of.common_indices]
    by_number: dict[tuple[int, int], int] = {}
    labelled = zip(
        accounts.account, map(names.labels_by_code(trace, track).__getitem__, accounts.op), strict=True
    )
    for key, ns in zip(labelled, accounts.lengths, strict=True):
        by_number[key] = by_number.get(key, 0) + ns
    ns_of: dict[tuple[str, str], int] = {}
    for (account_index, label), ns in by_number.items():
        account = account_names[account_index]
        work_key = account, "" if account == IDLE or label == NONE else names.labels[label]
        ns_of[work_key] = ns_of.get(work_key, 0) + ns
    there = {(account == ALL_COMPUTE, name) for account, name in ns_of}
    calls_by_name: dict[tuple[bool, str], tuple[int, int]] = {}
    for account_index, name, ns in _find_calls(trace, track) if calls is None else calls:
        call_key = account_names[account_index] == ALL_COMPUTE, name
        count, total_ns = calls_by_name.get(call_key, (0, 0))
        calls_by_name[call_key] = count + 1, total_ns + ns
        if call_key not in there:
            ns_of.setdefault((account_names[account_index], name), 0)
    return NamedWork(ns_of, {key: CallCounts(*both) for key, both in calls_by_name.items()})


def _find_calls(trace: Trace, track: int) -> Iterator[CallTime]:
    """Yields the calls of a track: its spans, and spans of other tracks that arrive there."""
    names, spans = trace.column("name"), trace.spans[track]
    columns = names.of[track], spans.category, differences(spans.end, spans.ready)
    for label, category, ns in zip(*columns, strict=True):
        if label != NONE and ns >= names.least_ns:
            yield CallTime(category, names.labels[label], ns)
    by_code = names.labels_by_code(trace, track)
    for code, of, span in trace.arrivals(track):
        sender_spans = trace.spans[of]
        yield CallTime(
            sender_spans.category[span],
            names.labels[by_code[code]],
            sender_spans.end[span] - sender_spans.ready[span],
        )


def sum_work(several: Iterable[tuple[NamedWork, int]]) -> NamedWork:
    """Returns the work of several ranks together. several: (work of a rank, how many such ranks)."""
    ns_of: dict[tuple[str, str], int] = {}
    calls_of: dict[tuple[bool, str], CallCounts] = {}
    for work, ranks in several:
        for key, ns in work.ns.items():
            ns_of[key] = ns_of.get(key, 0) + ranks * ns
        for call_key, (count, ns) in work.calls.items():
            before = calls_of.get(call_key, CallCounts())
            calls_of[call_key] = CallCounts(before.times + ranks * count, before.ns + ranks * ns)
    return NamedWork(ns_of, calls_of)
