"""The sentence on late members of collectives of executed ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.executing.trace import WAIT
from simcore.units import duration, join_names, join_with_figures, largest_keys
from simcore.words.rules import Sentence

if TYPE_CHECKING:
    from simcore.executing.execution_analysis import ExecutionAnalysis

# More nodes take over a second to walk.
_MOST_NODES = 500_000


class MembersWait(Sentence, frozen=True, kw_only=True):
    """How long all ranks together wait for the last members of their collectives."""

    rule = "members-wait"

    ns: int
    """The sum of all waits."""
    ns_of: dict[int, int]
    """The part for each late rank; {} where it is not known."""

    @property
    def text(self) -> str:
        words = f"All ranks together wait {duration(self.ns)} for the last members of their collectives"
        ranks = largest_keys(self.ns_of)
        names, figures = [f"rank {rank}" for rank in ranks], [duration(self.ns_of[rank]) for rank in ranks]
        if not ranks:
            return f"{words}."
        if all(self.ns_of[rank] == self.ns for rank in ranks):
            return f"{words}, all for {join_names(names)}."
        if len(ranks) == 1:
            return f"{words}, longest for {names[0]}: {figures[0]}."
        return f"{words}, longest for {join_with_figures(names, figures)}."


def find_member_waits(results: ExecutionAnalysis) -> Iterator[MembersWait]:
    """Yields a sentence where waiting for members takes more than a hundredth of the ranks' time."""
    ns = sum(account.ns("wait") for account in results.accounts)
    if ns * 100 >= results.step_time_ns * len(results.accounts):
        yield MembersWait(ns=ns, ns_of=_sum_waits_by_late_rank(results))


def _sum_waits_by_late_rank(results: ExecutionAnalysis) -> dict[int, int]:
    """Returns for each rank how long others wait for it in collectives that it starts last, ns.

    Where several start last, each of them counts. {} where equal ranks are executed as one, and for more
    nodes than are walked.
    """
    executed = results.executed
    if len(executed.units.first) < len(results.ranks) or results.held_ops > _MOST_NODES:
        return {}
    last: dict[int, tuple[int, list[int]]] = {}
    for rank in results.ranks:
        start = executed.start[rank]
        for node, meeting in enumerate(executed.meetings[rank]):
            if meeting < 0:
                continue
            last_start, late = last.get(meeting, (-1, []))
            if start[node] > last_start:
                last[meeting] = start[node], [rank]
            elif start[node] == last_start:
                late.append(rank)
    ns_of: dict[int, int] = {}
    for rank in results.ranks:
        accounts = results.accounts[rank]
        for segment, account in enumerate(accounts.account):
            meeting = executed.meetings[rank][accounts.op[segment]] if account == WAIT else -1
            if meeting in last:
                for late_rank in last[meeting][1]:
                    ns_of[late_rank] = (
                        ns_of.get(late_rank, 0) + accounts.edge[segment + 1] - accounts.edge[segment]
                    )
    return ns_of
