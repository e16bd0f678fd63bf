"""What ranks do by name: each nanosecond of their accounts with what runs, or is waited for, then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from simcore.records import NamedTuple, Struct
from simcore.trace.accounts import Accounts
from simcore.trace.spans import NONE, Trace
from simcore.trace.track import ALIKE, COMPUTE
from simcore.units import differences

# All compute is one account: a name is the same work in every phase.
ALL_COMPUTE = "compute"
IDLE = "idle"
_TOLD_AS = tuple(ALL_COMPUTE if number in COMPUTE else name for number, name in enumerate(ALIKE))


class OneCall(NamedTuple):
    """account: of `Accounts.of`, of its own time; ns: how long it lasts."""

    account: int
    name: str
    ns: int


class Calls(NamedTuple):
    """times: how many there are of a name; ns: how long all of them last, also beside other work."""

    times: int = 0
    ns: int = 0


class Work(NamedTuple):
    """What of one name takes time of one account, ns, and all its calls, as `Calls` has them."""

    ns: int = 0
    calls: int = 0
    total_ns: int = 0


class NamedWork(Struct, frozen=True):
    """The accounts of some ranks together by name: those of one account sum to it.

    ns: by (account, name), 0 where it runs beside other work alone. calls: by (whether it computes, name), as
    rows of a workload are both a compute and a collective. Names are raw text of the file, "" of idle time.
    """

    ns: Mapping[tuple[str, str], int]
    calls: Mapping[tuple[bool, str], Calls]

    def work(self, account: str, name: str) -> Work:
        """What of one name takes time of an account; all its calls also where it takes none."""
        computes = account == ALL_COMPUTE
        # An operation that computes may wait inside.
        calls = self.calls.get((computes, name)) or self.calls.get((not computes, name)) or Calls()
        return Work(self.ns.get((account, name), 0), *calls)


def named_work(
    trace: Trace, track: int, accounts: Accounts, calls: Iterable[OneCall] | None = None
) -> NamedWork:
    """Returns what a rank of a track does by name. accounts: of that track. calls: where spans are none."""
    names = trace.column("name")
    told = [_TOLD_AS[alike] for alike in accounts.of.alike]
    by_number: dict[tuple[int, int], int] = {}
    named = zip(accounts.account, map(names.by_code(trace, track).__getitem__, accounts.op), strict=True)
    for key, ns in zip(named, differences(accounts.edge[1:], accounts.edge[:-1]), strict=True):
        by_number[key] = by_number.get(key, 0) + ns
    ns_of: dict[tuple[str, str], int] = {}
    for (number, label), ns in by_number.items():
        account = told[number]
        told_key = account, "" if account == IDLE or label == NONE else names.labels[label]
        ns_of[told_key] = ns_of.get(told_key, 0) + ns
    there = {(account == ALL_COMPUTE, name) for account, name in ns_of}
    counted: dict[tuple[bool, str], tuple[int, int]] = {}
    for number, name, ns in _calls(trace, track) if calls is None else calls:
        call_key = told[number] == ALL_COMPUTE, name
        count, total_ns = counted.get(call_key, (0, 0))
        counted[call_key] = count + 1, total_ns + ns
        if call_key not in there:
            ns_of.setdefault((told[number], name), 0)
    return NamedWork(ns_of, {key: Calls(*both) for key, both in counted.items()})


def _calls(trace: Trace, track: int) -> Iterator[OneCall]:
    """The spans of a track, and those of others that arrive there."""
    names, spans = trace.column("name"), trace.spans[track]
    columns = names.of[track], spans.category, differences(spans.end, spans.ready)
    for label, category, ns in zip(*columns, strict=True):
        if label != NONE and ns >= names.least_ns:
            yield OneCall(category, names.labels[label], ns)
    by_code = names.by_code(trace, track)
    for code, of, span in trace.arrivals(track):
        sent = trace.spans[of]
        yield OneCall(sent.category[span], names.labels[by_code[code]], sent.end[span] - sent.ready[span])


def summed(several: Iterable[tuple[NamedWork, int]]) -> NamedWork:
    """The work of several ranks together. several: of a rank, and how many such there are."""
    ns_of: dict[tuple[str, str], int] = {}
    calls_of: dict[tuple[bool, str], Calls] = {}
    for work, ranks in several:
        for key, ns in work.ns.items():
            ns_of[key] = ns_of.get(key, 0) + ranks * ns
        for call_key, (count, ns) in work.calls.items():
            before = calls_of.get(call_key, Calls())
            calls_of[call_key] = Calls(before.times + ranks * count, before.ns + ranks * ns)
    return NamedWork(ns_of, calls_of)
