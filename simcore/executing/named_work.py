"""What a rank of execution traces does by name: its nodes, with `#` for each number in a name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from simcore.executing.ran import RanTraces, pattern_of
from simcore.executing.trace import account_of
from simcore.run.named_work import NamedWork, OneCall, named_work


def work_of_rank(results: RanTraces, rank: int) -> NamedWork:
    """What a rank does; a node is called as the table of names calls it."""
    # The nodes of ranks that run alike are those of the lowest one.
    first = results.executed.units.first[results.executed.units.of[rank]]

    @cache
    def name_of(place: int) -> str:
        return "" if place < 0 else pattern_of(results.name_of(first, place))

    def calls() -> Iterator[OneCall]:
        executed = results.executed
        begin, start = executed.begin[first], executed.start[first]
        for place, end in enumerate(executed.end[first]):
            if start[place] >= 0 and end >= 0:
                yield OneCall(account_of(executed, first, place), name_of(place), end - begin[place])

    return named_work(results.accounts[rank], name_of, calls())
