"""Lanes of a simulated run: a rank class, or one of its streams, as spans with categories to draw."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from simcore.analysis import Results
from simcore.analysis.accounts import ACCOUNTS, received_op
from simcore.program.ops import COMPUTE, PHASES, STREAMS, TO_NEXT, Receive
from simcore.units import plural
from tui.frame import Line, cells
from tui.timeline.axis import TIME
from tui.timeline.query import Query
from tui.timeline.simulated_matching import LaneColumns, simulated_matches
from tui.timeline.simulated_words import simulated_words
from tui.timeline.spans import DRAWN, SpanLane, Spans, busy_words

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


@dataclass(frozen=True)
class Lane(SpanLane):
    """A lane of a simulated run: of a class (stream None, by accounts) or of one of its streams."""

    results: Results
    number: int
    stream: str | None = None

    @property
    def may_overlap(self) -> bool:
        # Transfers to several ranks overlap, and so do collectives whose chunks share the queues.
        return self.stream not in (None, "compute")

    @property
    def covers_all(self) -> bool:
        return self.stream is None

    @property
    def title(self) -> str:
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

    @property
    def count(self) -> str:
        return "" if self.stream else f"x{_count(self.ranks)}"

    @cached_property
    def busy(self) -> str:
        step = self.results.simulation.step_time_ns
        if self.stream is None or self.stream == "compute":
            busy = self.results.accounts[self.number].busy_ns
        else:
            shares = self.shares.between(0, step)
            busy = sum(shares.values())
        return busy_words(busy, step)

    @cached_property
    def spans(self) -> Spans:
        # The op of a span is its index in the class's ops, or what the accounts write for idle and
        # for transfers from another rank; ops of 0 ns have no span.
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

    def label(self, op: int, room: int) -> str:
        """A span's name in at most `room` cells; the phase is kept and the name cut."""
        simulation = self.results.simulation
        if op < 0:
            return "receive"[:room]
        ops = simulation.timeline.stage_program(self.number).ops
        row = ops.row[op]
        if row < 0:
            return "send"[:room]
        phase = PHASES[ops.phase[op]]
        # Input and weight gradient have one colour: the name tells them apart.
        ending = f" {phase}" if phase in ("ig", "wg") else ""
        return cells(simulation.workload.name[row])[: room - len(ending)] + ending

    def told(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        return simulated_words(self, index, others, width, wide)

    @cached_property
    def columns(self) -> LaneColumns:
        """What a search looks at."""
        return LaneColumns(self)

    def matches(self, query: Query) -> bytes:
        return simulated_matches(self, query)


def _count(ranks: int) -> str:
    """How many ranks, in at most four characters: 64, 1024, 131k, 1.0M."""
    if ranks < 10_000:
        return str(ranks)
    return f"{ranks // 1000}k" if ranks < 1_000_000 else f"{ranks / 1e6:.1f}M"


def class_streams(results: Results, number: int) -> list[str]:
    """The streams of a class that have ops, compute first, the pipeline channels as one."""
    present = results.simulation.timeline.streams(number)
    streams = ["compute", *(stream for stream in _COLLECTIVE_STREAMS if stream in present)]
    return [*streams, PIPELINE] if results.simulation.timeline.classes[number].links else streams


@dataclass(frozen=True)
class SimulatedLanes:
    """A simulated run as a source of lanes: one for each rank class."""

    results: Results

    axis = TIME
    count_heading = ("x", "")
    legend = (
        ("fwd", "fwd", "forward"), ("bwd", "bwd", "backward"), ("opt", "opt", "optimizer"),
        ("exposed", "tp", "exposed comm."), ("wait", "wait", "wait"), ("bubble", "bubble", "bubble"),
        ("idle", "", "idle"),
    )  # fmt: skip

    @property
    def length(self) -> int:
        return self.results.simulation.step_time_ns

    @property
    def groups(self) -> int:
        return len(self.results.simulation.timeline.classes)

    @property
    def counted(self) -> str:
        return f"{self.results.simulation.layout.world} ranks in {plural(self.groups, 'class')}"

    @property
    def heat(self) -> dict[int, int]:
        classes = self.results.simulation.timeline.classes
        return {number: len(rank_class.ranks) for number, rank_class in enumerate(classes)}

    @property
    def numbers(self) -> Sequence[int]:
        return range(self.groups)

    def number_of(self, rank: int) -> int | None:
        if not 0 <= rank < self.results.simulation.layout.world:
            return None
        return self.results.simulation.timeline.folding.class_of(rank)

    def lane(self, number: int) -> SpanLane:
        return Lane(self.results, number)

    def streams(self, number: int) -> list[SpanLane]:
        return [Lane(self.results, number, stream) for stream in class_streams(self.results, number)]

    def computing(self, number: int) -> SpanLane:
        return Lane(self.results, number, "compute")
