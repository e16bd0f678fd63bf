"""Lanes: a rank class, or one of its streams, as spans with categories to draw."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from simcore.analysis import Results
from simcore.analysis.accounts import ACCOUNTS, received_op
from simcore.analysis.shares import Shares
from simcore.program.ops import COMPUTE, PHASES, STREAMS, TO_NEXT, Receive
from simcore.units import percent

# What a cell can show: compute by what it is for, communication by kind, and not computing.
DRAWN = ("fwd", "bwd", "opt", "recompute", "tp", "ep", "dp", "dp_ep", "all", "pp", "wait", "bubble", "idle")
_DRAWN_PHASE = {"fwd": "fwd", "ig": "bwd", "wg": "bwd", "opt": "opt", "recompute": "recompute"}


def _drawn_account(account: str) -> int:
    """Input and weight gradient alternate faster than a cell: both are drawn as backward."""
    words = account.split()
    return DRAWN.index(_DRAWN_PHASE[words[1]] if words[0] == "compute" else words[-1])


_OF_ACCOUNT = tuple(_drawn_account(account) for account in ACCOUNTS)
_OF_PHASE = tuple(DRAWN.index(_DRAWN_PHASE[phase]) for phase in PHASES)
PIPELINE = "pp"
# Streams of a class in the order in which they are shown; the pipeline's four are one lane.
_COLLECTIVE_STREAMS = STREAMS[COMPUTE + 1 : TO_NEXT]


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of a lane as columns, ascending by start, ns.

    op: index into the class's ops, or what the accounts write for idle and for transfers
    from another rank. category: index into DRAWN.
    """

    start: array[int]
    end: array[int]
    op: array[int]
    category: bytearray


@dataclass(frozen=True)
class Lane:
    """A lane of the timeline: of a class (stream None, by accounts) or of one of its streams."""

    results: Results
    number: int
    stream: str | None = None

    @property
    def title(self) -> str:
        """What stands in the lane column, without sign and count."""
        timeline = self.results.simulation.timeline
        rank_class = timeline.classes[self.number]
        if self.stream is None:
            alone = sum(other.stage == rank_class.stage for other in timeline.classes) == 1
            # Several classes in a stage: only their ranks tell them apart.
            return f"stage {rank_class.stage:>2}" if alone else f"rank {rank_class.ranks.text()}"
        if self.stream == "compute":
            return "compute"
        if self.stream == PIPELINE:
            stages = sorted({timeline.classes[link.neighbour].stage for link in rank_class.links.values()})
            return f"pp to {','.join(map(str, stages))}"
        size = self.results.simulation.layout.group_size(self.stream)  # type: ignore[arg-type]
        return f"{self.stream} x{size}"

    @property
    def ranks(self) -> int:
        """How many equal ranks the lane stands for."""
        return len(self.results.simulation.timeline.classes[self.number].ranks)

    @cached_property
    def busy(self) -> str:
        """The share of the step in which the lane's stream is busy: `49%`, `<1%`."""
        step = self.results.simulation.step_time_ns
        if self.stream is None or self.stream == "compute":
            busy = self.results.accounts[self.number].busy_ns
        else:
            shares = self.shares.between(0, step)
            busy = sum(shares.values())
        share = percent(busy, step)
        return "<1%" if busy and float(share) < 1 else f"{float(share):.0f}%"

    @cached_property
    def spans(self) -> Spans:
        """The lane's spans; empty ones (0 ns) are left out."""
        if self.stream is None:
            accounts = self.results.accounts[self.number]
            category = accounts.account.translate(bytes(_OF_ACCOUNT) + bytes(256 - len(_OF_ACCOUNT)))
            return Spans(accounts.edge[:-1], accounts.edge[1:], accounts.op, category)
        return self._stream_spans()

    def _stream_spans(self) -> Spans:
        timeline = self.results.simulation.timeline
        ops, start, end = timeline.columns(self.number)
        if self.stream == PIPELINE:
            lanes = range(TO_NEXT, len(STREAMS))
            found = [
                (start[op], end[op], op)
                for op in range(len(ops))
                if ops.stream[op] in lanes and end[op] > start[op]
            ]
            for run in timeline.stage_program(self.number).runs:
                for wait in run.waits:
                    if isinstance(wait, Receive):
                        begin, over = timeline.received_times(self.number, wait.message)
                        if over > begin:
                            found.append((begin, over, received_op(wait.message)))
            found.sort()
            category = bytearray((DRAWN.index("pp"),)) * len(found)
        else:
            code = STREAMS.index(self.stream or "compute")
            found = [
                (start[op], end[op], op)
                for op in range(len(ops))
                if ops.stream[op] == code and end[op] > start[op]
            ]
            # In the queues of astra-sim-1 a collective may be served before one issued earlier.
            found.sort()
            if code == COMPUTE:
                category = bytearray(_OF_PHASE[ops.phase[op]] for _, _, op in found)
            else:
                category = bytearray((DRAWN.index(self.stream or ""),)) * len(found)
        start_column, end_column, op_column = (
            array("q", (span[part] for span in found)) for part in range(3)
        )
        return Spans(start_column, end_column, op_column, category)

    @cached_property
    def shares(self) -> Shares:
        """How much of any stretch each category fills; what overlaps counts once.

        Transfers to several ranks overlap, and so do collectives whose chunks share the queues.
        """
        spans = self.spans
        if self.stream is None or self.stream == "compute":
            return Shares(zip(spans.start, spans.end, spans.category, strict=True))
        union: list[tuple[int, int, int]] = []
        for start, end, category in zip(spans.start, spans.end, spans.category, strict=True):
            if union and start <= union[-1][1]:
                union[-1] = (union[-1][0], max(end, union[-1][1]), category)
            else:
                union.append((start, end, category))
        return Shares(union)

    @cached_property
    def _latest_end(self) -> array[int]:
        """Of each span, the latest end of it and of all that begin before it."""
        return array("q", accumulate(self.spans.end, max))

    @cached_property
    def by_length(self) -> list[int]:
        """The indices of the spans, the longest first."""
        spans = self.spans
        return sorted(range(len(spans.start)), key=lambda index: spans.start[index] - spans.end[index])

    def at(self, time_ns: int) -> int | None:
        """The index of the span that runs at `time_ns`, the latest to start; None between spans."""
        spans = self.spans
        index = bisect_right(spans.start, time_ns) - 1
        if self.stream is None and spans.start:
            return max(index, 0)
        # Transfers may overlap: go back as long as one that began before may still run.
        while index >= 0 and self._latest_end[index] > time_ns:
            if spans.end[index] > time_ns:
                return index
            index -= 1
        return None

    def starting_in(self, first_ns: int, last_ns: int) -> range:
        """The indices of the spans that begin from `first_ns` on and before `last_ns`."""
        starts = self.spans.start
        return range(bisect_left(starts, first_ns), bisect_left(starts, last_ns))

    def next_start(self, time_ns: int) -> int | None:
        """The start of the first span that begins after `time_ns`."""
        starts = self.spans.start
        index = bisect_right(starts, time_ns)
        return starts[index] if index < len(starts) else None

    def previous_start(self, time_ns: int) -> int | None:
        """The start of the last span that begins before `time_ns`."""
        starts = self.spans.start
        index = bisect_left(starts, time_ns) - 1
        return starts[index] if index >= 0 else None


def class_streams(results: Results, number: int) -> list[str]:
    """The streams of a class that have ops, compute first, the pipeline channels as one."""
    present = results.simulation.timeline.streams(number)
    streams = ["compute", *(stream for stream in _COLLECTIVE_STREAMS if stream in present)]
    return [*streams, PIPELINE] if results.simulation.timeline.classes[number].links else streams
