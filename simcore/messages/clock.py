"""The clock of a run of messages: one queue of callbacks, a list for each time, in the order of the calls.

ASTRA-sim's order inside a tick decides what starts first where things end together, so it is reproduced: a
callback scheduled for the present time goes to the end of the present list; a rank's own events of one time
are a list of its own, which runs as a whole where the first of them was scheduled (CHAKRA R8.1, R8.2).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Fault(Exception):
    """An exception in ASTRA-sim: by where it is raised, it ends one rank's event or the program.

    rank: whose event it is. node: the execution trace's node, None where no node is concerned.
    rule: what is wrong. there: what ASTRA-sim does then.
    """

    def __init__(self, rank: int, node: int | None, rule: str, there: str = "throws") -> None:
        super().__init__(rule)
        self.rank = rank
        self.node = node
        self.rule = rule
        self.there = there


class ForbiddenExit(Fault):
    """An assertion or an exit in ASTRA-sim: it stops the program wherever it is raised."""


_Call = Callable[[Any], object]


class Clock:
    """The queue of callbacks. now: ns. swallowed: exceptions that ended a rank's own event but not
    the run.
    """

    __slots__ = ("_lists", "_own", "_times", "now", "started", "swallowed")

    def __init__(self, ranks: int) -> None:
        self.now = 0
        self.started = False
        self.swallowed: list[Fault] = []
        self._times: list[int] = []
        self._lists: dict[int, list[tuple[_Call, Any]]] = {}
        # For each rank its own events by time.
        self._own: list[dict[int, list[tuple[_Call, Any]]]] = [{} for _ in range(ranks)]

    def schedule(self, delay: int, call: _Call, argument: Any) -> None:
        """Schedules a callback `delay` ns from now."""
        time = self.now + delay
        there = self._lists.get(time)
        if there is None:
            self._lists[time] = [(call, argument)]
            heappush(self._times, time)
        else:
            there.append((call, argument))

    def schedule_own(self, rank: int, delay: int, call: _Call, argument: Any) -> None:
        """Schedules an own event of a rank `delay` ns from now."""
        time = self.now + delay
        if time == 0:
            raise ForbiddenExit(rank, None, "an event of 0 ns at the start of the run", "aborts")
        own = self._own[rank]
        there = own.get(time)
        if there is not None:
            there.append((call, argument))
            return
        own[time] = [(call, argument)]
        # As `schedule`: nearly every message comes through here.
        at = self._lists.get(time)
        if at is None:
            self._lists[time] = [(self._run_own, rank)]
            heappush(self._times, time)
        else:
            at.append((self._run_own, rank))

    def _run_own(self, rank: int) -> None:
        own = self._own[rank]
        # It grows while it runs: what is scheduled for this time goes into it.
        for call, argument in own[self.now]:
            try:
                call(argument)
            except ForbiddenExit:
                raise
            except Fault as fault:
                self.swallowed.append(fault)
        del own[self.now]

    @property
    def ranks(self) -> int:
        """The number of ranks that have events of their own."""
        return len(self._own)

    def next_ns(self) -> int | None:
        """Returns the time of the next callback, None without any."""
        return self._times[0] if self._times else None

    def run(self) -> None:
        """Runs until nothing is left. Raises `Fault` where ASTRA-sim's program would end."""
        self.run_until(None)

    def run_until(self, last: int | None) -> None:
        """Runs all callbacks up to a time, inclusive; None for all. Raises `Fault`."""
        times, lists = self._times, self._lists
        while times and (last is None or times[0] <= last):
            self.now = now = heappop(times)
            for call, argument in lists[now]:
                call(argument)
            del lists[now]
