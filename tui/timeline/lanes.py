"""Lanes of a simulated run: a rank class, or one of its streams, as spans with categories to draw."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from simcore.analysis import Results
from simcore.analysis.accounts import ACCOUNTS, received_op
from simcore.analysis.rank_map import MEASURES
from simcore.analysis.shares import Shares
from simcore.program.ops import COMPUTE, PHASES, STREAMS, TO_NEXT
from simcore.ranks import Block, RankSet
from simcore.units import plural
from tui.frame import Line, cells
from tui.timeline.axis import TIME
from tui.timeline.group_words import legend_of, told_group
from tui.timeline.query import Query
from tui.timeline.simulated_matching import LaneColumns, simulated_matches
from tui.timeline.simulated_words import simulated_words
from tui.timeline.spans import ALL, DRAWN, OTHERS, Kind, LaneKey, Order, SpanLane, Spans, busy_words

# What a phase of PHASES is drawn as, where input and weight gradient are not told apart.
DRAWN_PHASE = {"fwd": "fwd", "ig": "bwd", "wg": "bwd", "opt": "opt", "recompute": "recompute"}


def _tables(drawn_phase: dict[str, str]) -> tuple[bytes, bytes]:
    """Index into ACCOUNTS, and into PHASES, -> index into DRAWN, as `translate` takes it."""
    words = [account.split() for account in ACCOUNTS]
    accounts = [DRAWN.index(drawn_phase[one[1]] if one[0] == "compute" else one[-1]) for one in words]
    phases = [DRAWN.index(drawn_phase[phase]) for phase in PHASES]
    return bytes(accounts) + bytes(256 - len(accounts)), bytes(phases) + bytes(256 - len(phases))


# Input and weight gradient alternate faster than a cell: both are drawn as backward, unless the
# schedule takes them apart.
_TOGETHER = _tables(DRAWN_PHASE)
_APART = _tables(DRAWN_PHASE | {"wg": "wg"})
PIPELINE = "pp"
# Streams of a class in the order in which they are shown; the pipeline's four are one lane.
_COLLECTIVE_STREAMS = STREAMS[COMPUTE + 1 : TO_NEXT]
# The measure of an order, where it has another name.
_MEASURE_OF = {"busy": "computing"}


@dataclass(frozen=True)
class Lane(SpanLane):
    """A lane of a simulated run: of ranks (stream None, by accounts) or of one of their streams.

    number: their class. rank: ALL, the only rank it is of, or OTHERS. rank_set: the equal ranks that it
    stands for; of OTHERS these and the ones apart. name: what its ranks are called. like: the lane of
    an equal rank, whose spans and sums it shares. left: how many ranks OTHERS are.
    """

    results: Results
    number: int
    stream: str | None
    rank: int
    rank_set: RankSet = field(compare=False)
    name: str = field(compare=False)
    like: Lane | None = field(default=None, compare=False)
    left: int = 0

    @property
    def key(self) -> LaneKey:
        return LaneKey((), self.number, self.rank, self.stream)

    @property
    def may_overlap(self) -> bool:
        # Transfers to several ranks overlap, and so do collectives whose chunks share the queues.
        return self.stream not in (None, "compute")

    @property
    def covers_all(self) -> bool:
        return self.stream is None

    @property
    def title(self) -> str:
        if self.stream is None:
            return self.name
        if self.stream == "compute":
            return "compute"
        if self.stream == PIPELINE:
            classes = self.results.simulation.timeline.classes
            stages = sorted({classes[one.neighbour].stage for one in classes[self.number].links.values()})
            return f"pp to {','.join(map(str, stages))}"
        size = self.results.simulation.layout.group_size(self.stream)  # type: ignore[arg-type]
        return f"{self.stream} x{size}"

    @property
    def ranks(self) -> int:
        """How many equal ranks the lane stands for."""
        return self.left or len(self.rank_set)

    @property
    def count(self) -> str:
        if self.stream or self.rank >= 0 or (self.ranks == 1 and self.name.startswith("rank")):
            return ""
        return f"x{short_count(self.ranks)}"

    @cached_property
    def busy(self) -> str:
        step = self.results.simulation.step_time_ns
        if self.stream is None or self.stream == "compute":
            busy = self.results.accounts[self.number].busy_ns
        else:
            shares = self.shares.between(0, step)
            busy = sum(shares.values())
        return busy_words(busy, step)

    def share(self, measure: str) -> str:
        if self.stream is not None:
            return self.busy
        ns = MEASURES[_MEASURE_OF.get(measure, measure)](self.results.accounts[self.number])
        return busy_words(ns, self.results.step_time_ns)

    @cached_property
    def spans(self) -> Spans:
        # The op of a span is its index in the class's ops, or what the accounts write for idle and
        # for transfers from another rank; ops of 0 ns have no span.
        if self.like is not None:
            return self.like.spans
        if self.stream is None:
            accounts = self.results.accounts[self.number]
            category = accounts.account.translate(self._tables[0])
            return Spans(accounts.edge[:-1], accounts.edge[1:], accounts.op, category)
        return self._stream_spans()

    @cached_property
    def shares(self) -> Shares:
        return super().shares if self.like is None else self.like.shares

    @cached_property
    def _tables(self) -> tuple[bytes, bytes]:
        return _APART if self.results.simulation.program.rules.splits_backward else _TOGETHER

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
            for arrival in timeline.arrivals(self.number):
                begin, over = timeline.received_times(self.number, arrival.message)
                if over > begin:
                    found.append((begin, over, received_op(arrival.message)))
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
                category = bytearray(self._tables[1][ops.phase[op]] for _, _, op in found)
            else:
                category = bytearray((DRAWN.index(self.stream or ""),)) * len(found)
        start_column, end_column, op_column = (
            array("q", (span[part] for span in found)) for part in range(3)
        )
        return Spans(start_column, end_column, op_column, category)

    @property
    def seams(self) -> Sequence[int]:
        timeline = self.results.simulation.timeline
        if timeline.program.steps == 1 or self.stream not in (None, "compute"):
            return ()
        return timeline.times.pass_ends[self.number][:-1]

    @property
    def whose(self) -> str:
        return " ".join(self.name.split())

    def label(self, op: int, room: int) -> str:
        """A span's name in at most `room` cells; the name is cut for the phase, if three of it are left."""
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
        name = cells(simulation.workload.name[row])
        return name[:room] if room - len(ending) < min(len(name), 3) else name[: room - len(ending)] + ending

    def told(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        return simulated_words(self, index, others, width, wide)

    @cached_property
    def columns(self) -> LaneColumns:
        """What a search looks at."""
        return LaneColumns(self) if self.like is None else self.like.columns

    def matches(self, query: Query) -> bytes:
        return simulated_matches(self, query)


def short_count(ranks: int) -> str:
    """How many ranks, in at most four characters: 64, 1024, 131k, 1.0M."""
    if ranks < 10_000:
        return str(ranks)
    return f"{ranks // 1000}k" if ranks < 1_000_000 else f"{ranks / 1e6:.1f}M"


def class_streams(results: Results, number: int) -> list[str]:
    """The streams of a class that have ops, compute first, the pipeline channels as one."""
    present = results.simulation.timeline.streams(number)
    streams = ["compute", *(stream for stream in _COLLECTIVE_STREAMS if stream in present)]
    return [*streams, PIPELINE] if results.simulation.timeline.classes[number].links else streams


class SimulatedLanes:
    """A simulated run as a source of lanes: one for each set of equal ranks.

    These are the rank classes; in a run that simulates every rank (`--no-fold`) the ranks of a stage
    whose times, and those of whom they receive from, are equal to the byte are one lane too.
    """

    axis = TIME
    count_heading = ("x", "")
    orders = (
        Order("", "lane", "busy"), Order("busy", "least busy", "busy"),
        Order("bubble", "most bubble", "bubb"), Order("wait", "most wait", "wait"),
        Order("exposed", "most exposed", "expo"), Order("end", "latest end", "end"),
    )  # fmt: skip

    def __init__(self, results: Results) -> None:
        self.results = results
        timeline = results.simulation.timeline
        self._each_rank = 1 < results.simulation.layout.world == len(timeline.classes)
        self._ranks: dict[int, RankSet] = {}
        # Of each class, the one that stands for its equals.
        self._first: list[int] = list(range(len(timeline.classes)))
        if self._each_rank:
            self._join_equals()
        else:
            self._ranks = {number: one.ranks for number, one in enumerate(timeline.classes)}
        self.numbers: list[int] = list(self._ranks)
        of_stage: dict[int, int] = {}
        for number in self.numbers:
            stage = timeline.classes[number].stage
            of_stage[stage] = of_stage.get(stage, 0) + 1
        self._of_stage = of_stage
        self._lanes: dict[tuple[int, int, str | None], Lane] = {}

    def _join_equals(self) -> None:
        timeline = self.results.simulation.timeline
        times: dict[tuple[int, bytes, bytes], int] = {}
        own = [
            times.setdefault((one.stage, start.tobytes(), end.tobytes()), len(times))
            for one, start, end in zip(
                timeline.classes, timeline.times.start, timeline.times.end, strict=True
            )
        ]
        equal: dict[tuple[int, ...], list[int]] = {}
        for number, one in enumerate(timeline.classes):
            received = (
                part for step, link in sorted(one.links.items()) for part in (step, own[link.neighbour])
            )
            equal.setdefault((own[number], *received), []).append(number)
        for numbers in equal.values():
            ranks = RankSet.of(timeline.classes[number].ranks.first for number in numbers)
            self._ranks[numbers[0]] = ranks
            for number in numbers:
                self._first[number] = numbers[0]

    @property
    def length(self) -> int:
        return self.results.step_time_ns

    @property
    def groups(self) -> int:
        return len(self.numbers)

    @property
    def counted(self) -> str:
        layout, classes = self.results.simulation.layout, len(self.results.simulation.timeline.classes)
        if self.groups < classes:
            return f"{layout.world} ranks, each simulated, in {plural(self.groups, 'lane')} of equal ones"
        return f"{plural(layout.world, 'rank')} in {plural(classes, 'class')}"

    @property
    def heat(self) -> dict[int, int]:
        return {number: len(ranks) for number, ranks in self._ranks.items()}

    @cached_property
    def legend(self) -> tuple[Kind, ...]:
        totals = [0] * len(ACCOUNTS)
        for number in self.numbers:
            totals = [
                one + ns for one, ns in zip(totals, self.results.accounts[number].total_ns, strict=True)
            ]
        table = self.lane(self.numbers[0])._tables[0]
        names = {DRAWN[table[index]] for index, ns in enumerate(totals) if ns}
        return legend_of(names, "exposed")

    def measure(self, order: str, number: int) -> int:
        # Who is least busy comes first; else the most.
        ns = MEASURES[_MEASURE_OF.get(order, order)](self.results.accounts[number])
        return ns if order == "busy" else -ns

    def headings(self, number: int) -> tuple[str, ...]:
        layout, ranks = self.results.simulation.layout, self.ranks(number)
        stage = f"stage {self.results.simulation.timeline.classes[number].stage:>2}"
        if len(ranks) > layout.tp:
            return (stage,)
        groups = {layout.position(rank)[1] for rank in ranks}
        return (stage, f"dp {min(groups)}") if len(groups) == 1 else (stage,)

    def ranks(self, number: int) -> RankSet:
        return self._ranks[self._first[number]]

    def count(self, number: int) -> int:
        return len(self.ranks(number))

    def number_of(self, rank: int) -> int | None:
        if not 0 <= rank < self.results.simulation.layout.world:
            return None
        # Where each rank is a class, a class's number is its rank.
        number = rank if self._each_rank else self.results.simulation.timeline.folding.class_of(rank)
        return self._first[number]

    def lane(self, number: int, rank: int = ALL, left: int = 0) -> Lane:
        # A comparison asks for a class of any rank, not only for those that stand for their equals.
        found = self._lane(self._first[number], rank, None)
        # How many are left changes with every rank that is shown apart.
        return (
            Lane(self.results, number, None, OTHERS, found.rank_set, "the others", found.like, left)
            if left
            else found
        )

    def _lane(self, number: int, rank: int, stream: str | None) -> Lane:
        """A lane, the same one each time: what it has computed is kept."""
        found = self._lanes.get((number, rank, stream))
        if found is None:
            ranks = self.ranks(number)
            stage = self.results.simulation.timeline.classes[number].stage
            # Several lanes in a stage: only their ranks tell them apart.
            name = f"stage {stage:>2}" if self._of_stage[stage] == 1 else f"rank {ranks.text()}"
            if rank == ALL:
                found = Lane(self.results, number, stream, ALL, ranks, name)
            else:
                like, own = self._lane(number, ALL, stream), number
                if rank >= 0:
                    # Its own class has the words of where its figures come from.
                    own = rank if self._each_rank else number
                    name, ranks = f"rank {rank}", RankSet([Block(rank, rank)])
                else:
                    name = "the others"
                found = Lane(self.results, own, stream, rank, ranks, name, like)
            self._lanes[number, rank, stream] = found
        return found

    def streams(self, number: int, rank: int = ALL) -> list[SpanLane]:
        return [self._lane(number, rank, stream) for stream in class_streams(self.results, number)]

    def computing(self, number: int) -> SpanLane:
        # By accounts: these spans are made anyway, and their compute is the compute stream's.
        return self._lane(number, ALL, None)

    def told(self, title: Line, numbers: Sequence[int]) -> list[Line]:
        accounts = [self.results.accounts[number] for number in numbers]
        found = {
            "compute" if measure == "computing" else measure: list(map(MEASURES[measure], accounts))
            for measure in ("computing", "exposed", "wait", "bubble", "idle")
        }
        return told_group(title, [self.ranks(number).first for number in numbers], found, self.length)
