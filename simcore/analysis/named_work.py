"""What a rank of a simulated run does by name: rows of the workload without their numbers, transfers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from simcore.analysis.accounts import IDLE_OP
from simcore.run.named_work import NamedWork, OneCall, named_work
from simcore.sources.simulated import own_account
from simcore.workload.model import base_name

if TYPE_CHECKING:
    from simcore.analysis.finished import Finished

_SEND, _RECEIVE = "send", "receive"


def work_of_class(results: Finished, number: int) -> NamedWork:
    """What a rank of class `number` does."""
    ops = results.simulation.timeline.columns(number)[0]
    of_row = [*map(base_name, results.simulation.workload.name), _SEND]

    def name_of(op: int) -> str:
        if op < 0:
            return "" if op == IDLE_OP else _RECEIVE
        return of_row[ops.row[op]]

    return named_work(results.accounts[number], name_of, _calls(results, number, name_of))


def _calls(results: Finished, number: int, name_of: Callable[[int], str]) -> Iterator[OneCall]:
    """The ops that take time, and the transfers that arrive."""
    timeline = results.simulation.timeline
    ops, start, end = timeline.columns(number)
    for op, (begin, over) in enumerate(zip(start, end, strict=True)):
        if over > begin:
            yield OneCall(own_account(ops, op), name_of(op), over - begin)
    for code, of, sent in results.simulation.trace.arrivals(number):
        columns, begins, ends = timeline.columns(of)
        yield OneCall(own_account(columns, sent), name_of(code), ends[sent] - begins[sent])
