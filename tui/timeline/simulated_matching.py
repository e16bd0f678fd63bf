"""Which spans of a simulated run's lane a query means, as a byte a span.

Of each span a lane keeps three bytes once they were asked for: what it is, which name it has,
which micro-batch it is of. A word is looked up in the tables behind those bytes, which are short,
and `translate` does the rest: 1 ns a span. A million spans take 100 to 150 ms the first time,
and 10 ms for every letter after that.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import compress, count
from typing import TYPE_CHECKING

from simcore.analysis.accounts import ACCOUNTS, BUBBLE, FIRST_EXPOSED, WAIT
from simcore.collectives import NAMES
from simcore.program.ops import IG, PHASES, CollectiveCost
from tui.timeline.flags import both, either, lasting, table
from tui.timeline.query import Query, Word

if TYPE_CHECKING:
    from tui.timeline.lanes import Lane

# The spans that say more than their account: collectives, those waited for, and transfers.
_WITH_MORE = (*range(FIRST_EXPOSED, WAIT), WAIT, BUBBLE)
_LAST_BYTE = 255


# What spans can be, in the words of a query.
Kind = frozenset[str]


def simulated_matches(lane: Lane, query: Query) -> bytes:
    """For each span of the lane 1 if the query means it, else 0. Rank and stage are not looked at."""
    columns, spans = lane.columns, lane.spans
    found = [columns.word(word) for word in query.words]
    if query.microbatch is not None:
        found.append(columns.microbatch(query.microbatch))
    return both([*found, lasting(spans.start, spans.end, query)])


class LaneColumns:
    """What the spans of a lane are, kept for the next search.

    The `op` of a span indexes the ops of its class; op -1 is idle, -2 - m the transfer that arrives as
    message m: what stands for them are the last entries of a column, counted from the end.
    """

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.simulation = lane.results.simulation
        self.timeline = self.simulation.timeline
        self.ops = self.timeline.stage_program(lane.number).ops

    def word(self, word: Word) -> bytes:
        """1 for each span that a word means: by what it is, or by the name of its row."""
        wanted = frozenset(word.kinds)
        flags = bytes(len(self.lane.spans.start))
        if wanted:
            kinds, of_span = self._kinds
            flags = of_span.translate(
                table(code for code, kind in enumerate(kinds) if not wanted.isdisjoint(kind))
            )
        if any(map(word.is_in, set(self.simulation.workload.name))):
            return either(flags, self._named(word)) if wanted else self._named(word)
        return flags

    def microbatch(self, number: int) -> bytes:
        """1 for each span of a micro-batch, transfers and the waits for them among them."""
        if number + 1 < _LAST_BYTE and self.timeline.program.microbatches < _LAST_BYTE:
            return self._microbatches.translate(table([number + 1]))
        column = self._with_sent("microbatch")
        return self._of_each(column, number.__eq__)

    def _named(self, word: Word) -> bytes:
        names, of_span = self._names
        if len(names) < _LAST_BYTE:
            return of_span.translate(table(i for i, name in enumerate(names) if word.is_in(name)))
        wanted = [*map(word.is_in, self.simulation.workload.name), False]
        return self._of_each(self._with_sent("row"), wanted.__getitem__)

    def _of_each(self, column: Sequence[int], value: Callable[[int], int]) -> bytes:
        return bytes(map(value, map(column.__getitem__, self.lane.spans.op)))

    # -- a byte a span -----------------------------------------------------------------

    @cached_property
    def _kinds(self) -> tuple[list[Kind], bytes]:
        """The kinds of span that there are, and the number of each span's."""
        accounts, of_span = self._plain_kinds
        kinds = [self._kind(account, -1) for account in accounts]
        more = compress(count(), of_span.translate(table(_WITH_MORE)))
        # Equal ops are few: their kind is found out once.
        codes: dict[tuple[int, int, int], int] = {}
        cost, phase = self._with_sent("cost"), self._with_sent("phase")
        op_of = self.lane.spans.op
        for index in more:
            op = op_of[index]
            key = (of_span[index], cost[op], phase[op])
            code = codes.get(key)
            if code is None:
                kind = self._kind(accounts[key[0]], op)
                if kind not in kinds:
                    kinds.append(kind)
                code = codes[key] = kinds.index(kind)
            of_span[index] = code
        return kinds, bytes(of_span)

    @property
    def _plain_kinds(self) -> tuple[list[str], bytearray]:
        """What spans are without a look at their ops, and the number of each span's."""
        lane, spans = self.lane, self.lane.spans
        if lane.stream is None:
            return list(ACCOUNTS), bytearray(lane.results.accounts[lane.number].account)
        if lane.stream == "compute":
            return list(ACCOUNTS), bytearray(map(self.ops.phase.__getitem__, spans.op))
        # The numbers of accounts that say more, so that their ops are looked at.
        names = ["" for _ in ACCOUNTS]
        names[WAIT], names[BUBBLE] = "send", "receive"
        if lane.stream == "pp":
            return names, bytearray(BUBBLE if op < 0 else WAIT for op in spans.op)
        names[FIRST_EXPOSED] = lane.stream
        return names, bytearray((FIRST_EXPOSED,)) * len(spans.start)

    def _kind(self, account: str, op: int) -> Kind:
        """The words of spans of an account about ops like `op` (-1: nothing more is known)."""
        words = set(account.split())
        if op == -1 or account.startswith("compute"):
            return Kind(words)
        phase = PHASES[self._with_sent("phase")[op]]
        cost = self.timeline.program.costs[self._with_sent("cost")[op]]
        if isinstance(cost, CollectiveCost):
            words |= {NAMES[cost.collective], cost.group}
            # A wait is not a part of the phase that it is for.
            return Kind(words if account == "wait" else words | {phase})
        words.add("gradient" if phase == PHASES[IG] else "activation")
        if account != "bubble":
            words.add("pp")
        if account == "exposed pp":
            words.add("receive")
        return Kind(words)

    @cached_property
    def _names(self) -> tuple[list[str], bytes]:
        """The names of rows, and the number of each span's; all beyond 254 share one."""
        numbers: dict[str, int] = {}
        of_row = [
            numbers.setdefault(name, min(len(numbers), _LAST_BYTE - 1))
            for name in self.simulation.workload.name
        ]
        # Row -1, a transfer or idle, is the last entry.
        of_row.append(_LAST_BYTE)
        return list(numbers), self._of_each(self._with_sent("row"), of_row.__getitem__)

    @cached_property
    def _microbatches(self) -> bytes:
        """The micro-batch of each span, plus 1, where there are less than 254."""
        return self._of_each(self._with_sent("microbatch"), (1).__add__)

    def _with_sent(self, name: str) -> Sequence[int]:
        """A column of the ops with what stands for transfers and idle behind it, as `op` indexes it."""
        column: array[int] | bytearray = getattr(self.ops, name)
        sent = self.timeline.sent_column(name)
        if isinstance(column, bytearray):
            return column + bytearray(reversed(sent)) + b"\0"
        return column + array(column.typecode, [*reversed(sent), -1])
