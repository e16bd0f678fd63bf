"""The lanes of a simulated run: its rank classes and their streams as spans, searched, ordered, summed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import compress, count
from typing import TYPE_CHECKING

from simcore.analysis.accounts import IDLE_OP
from simcore.analysis.rank_map import MEASURES
from simcore.analysis.span_words import PHASE_WORDS, SimulatedSpanWords, pass_words
from simcore.collectives import WITH_COPIES
from simcore.program.ops import COMPUTE, IG, PHASES, STREAMS, TO_NEXT, CollectiveCost
from simcore.ranks import RankSet, place_words
from simcore.run.lanes import (
    COMPUTE_STREAM,
    KINDS,
    TIME,
    Figure,
    LaneOrder,
    Searched,
    Spans,
    StretchFigures,
    TimeStretch,
    codes,
    figures_of,
)
from simcore.sources.simulated import (
    ACCOUNTS,
    BUBBLE,
    FIRST_EXPOSED,
    WAIT,
)
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.analysis.finished import Finished

# What a phase of PHASES is drawn as, where input and weight gradient are not told apart.
_DRAWN_PHASE = {"fwd": "fwd", "ig": "bwd", "wg": "bwd", "opt": "opt", "recompute": "recompute"}
_SHORT = {"forward": "fwd", "input grad": "ig", "weight grad": "wg", "optimizer": "opt"}
# The pipeline's four channels are one lane.
PIPELINE = "pp"
# Streams of a class in the order in which they are shown.
_COLLECTIVE_STREAMS = STREAMS[COMPUTE + 1 : TO_NEXT]
# The measure of an order, where it has another name.
_MEASURE_OF = {"busy": "computing"}
# The accounts that say less than the op behind them: collectives, those waited for, and transfers.
_OF_AN_OP = bytes(FIRST_EXPOSED <= account <= WAIT or account == BUBBLE for account in range(256))


def _tables(drawn_phase: dict[str, str]) -> tuple[bytes, bytes]:
    """Index into ACCOUNTS, and into PHASES, -> index into KINDS, as `translate` takes it."""
    words = [account.split() for account in ACCOUNTS]
    accounts = [
        KINDS.index(drawn_phase[account_words[1]] if account_words[0] == "compute" else account_words[-1])
        for account_words in words
    ]
    phases = [KINDS.index(drawn_phase[phase]) for phase in PHASES]
    return bytes(accounts) + bytes(256 - len(accounts)), bytes(phases) + bytes(256 - len(phases))


# Input and weight gradient alternate faster than a cell: both are drawn as backward, unless the
# schedule takes them apart.
_TOGETHER = _tables(_DRAWN_PHASE)
_APART = _tables(_DRAWN_PHASE | {"wg": "wg"})


def _figure(account: str) -> Figure:
    kind, _, of = account.partition(" ")
    if kind == "compute":
        words = PHASE_WORDS[of]
        return Figure(words, _SHORT.get(words, words), _DRAWN_PHASE[of], 0)
    if kind == "exposed":
        return Figure(account, f"exp {of}", of, 0)
    return Figure(account, account, "" if account == "idle" else account, 0)


_FIGURES = tuple(map(_figure, ACCOUNTS))


class SimulatedLanes:
    """`RunLanes` of a simulated run: a lane for each set of equal ranks.

    These are the rank classes; in a run that simulates every rank (`--no-fold`) the ranks of a stage
    whose times, and those of whom they receive from, are equal to the byte are one lane too.

    The `op` of a span is its index in the class's ops, or what the accounts write for idle and for
    transfers from another rank; ops of 0 ns have no span.
    """

    axis = TIME
    timed = True
    numbered = ("x", "")
    communication_words = "exposed"
    alike_words = ""
    orders = (
        LaneOrder("", "lane", "busy"), LaneOrder("busy", "least busy", "busy", least_first=True),
        LaneOrder("bubble", "most bubble", "bubble"), LaneOrder("wait", "most wait", "wait"),
        LaneOrder("exposed", "most exposed", "exposed"), LaneOrder("end", "latest end", "end"),
    )  # fmt: skip

    def __init__(self, results: Finished) -> None:
        self.results = results
        self._timeline = timeline = results.simulation.timeline
        self._layout = results.simulation.layout
        self._each_rank = 1 < self._layout.world == len(timeline.classes)
        # Of each class, the one that stands for its equals; of each of those, all their ranks.
        self._first: list[int] = list(range(len(timeline.classes)))
        self._ranks = {number: rank_class.ranks for number, rank_class in enumerate(timeline.classes)}
        if self._each_rank:
            self._ranks = self._join_equals()
        self.numbers: list[int] = list(self._ranks)
        of_stage: dict[int, int] = {}
        for number in self.numbers:
            stage = timeline.stage_of(number)
            of_stage[stage] = of_stage.get(stage, 0) + 1
        self._of_stage = of_stage
        self._spans: dict[tuple[int, str | None], Spans] = {}

    def _join_equals(self) -> dict[int, RankSet]:
        timeline = self._timeline
        times: dict[tuple[int, bytes, bytes], int] = {}
        own = [
            times.setdefault((rank_class.stage, start.tobytes(), end.tobytes()), len(times))
            for rank_class, start, end in zip(
                timeline.classes, timeline.times.start, timeline.times.end, strict=True
            )
        ]
        equal: dict[tuple[int, ...], list[int]] = {}
        for number, rank_class in enumerate(timeline.classes):
            received = (
                part
                for step, link in sorted(rank_class.links.items())
                for part in (step, own[link.neighbour])
            )
            equal.setdefault((own[number], *received), []).append(number)
        joined = {}
        for numbers in equal.values():
            joined[numbers[0]] = RankSet.of(timeline.ranks_of(number).first for number in numbers)
            for number in numbers:
                self._first[number] = numbers[0]
        return joined

    @property
    def length(self) -> int:
        return self.results.step_time_ns

    @property
    def counted(self) -> str:
        world, classes = self._layout.world, len(self._timeline.classes)
        if len(self.numbers) < classes:
            return f"{world} ranks, each simulated, in {plural(len(self.numbers), 'lane')} of equal ones"
        return f"{plural(world, 'rank')} in {plural(classes, 'class')}"

    def beside(self, number: int) -> str:
        return ""

    @cached_property
    def kinds(self) -> Collection[str]:
        totals = [0] * len(ACCOUNTS)
        for number in self.numbers:
            own = self.results.accounts[number].total_ns
            totals = [sum_ns + ns for sum_ns, ns in zip(totals, own, strict=True)]
        return {KINDS[self._tables[0][account]] for account, ns in enumerate(totals) if ns}

    @cached_property
    def _tables(self) -> tuple[bytes, bytes]:
        return _APART if self.results.simulation.program.rules.splits_backward else _TOGETHER

    @property
    def heat(self) -> dict[int, int]:
        return {number: len(ranks) for number, ranks in self._ranks.items()}

    def measure_ns(self, order: str, number: int) -> int:
        return MEASURES[_MEASURE_OF.get(order, order)](self.results.accounts[number])

    def busy_ns(self, number: int) -> int:
        return self.results.accounts[number].busy_ns

    def spread(self, numbers: Sequence[int]) -> dict[str, list[int]]:
        accounts = [self.results.accounts[number] for number in numbers]
        return {
            "compute" if measure == "computing" else measure: list(map(MEASURES[measure], accounts))
            for measure in ("computing", "exposed", "wait", "bubble", "idle")
        }

    # -- ranks -------------------------------------------------------------------------

    def headings(self, number: int) -> tuple[str, ...]:
        ranks = self.ranks(number)
        stage = f"stage {self._timeline.stage_of(number):>2}"
        if len(ranks) > self._layout.tp:
            return (stage,)
        groups = {self._layout.position(rank)[1] for rank in ranks}
        return (stage, f"dp {min(groups)}") if len(groups) == 1 else (stage,)

    def ranks(self, number: int) -> RankSet:
        return self._ranks[self._first[number]]

    def number_of(self, rank: int) -> int | None:
        return self._first[self.own_number(rank)] if 0 <= rank < self._layout.world else None

    def number_like(self, number: int) -> int:
        return self._first[number]

    def alike(self, number: int) -> Sequence[int]:
        return (number,)

    def own_number(self, rank: int) -> int:
        # Where each rank is a class, a class's number is its rank.
        return rank if self._each_rank else self._timeline.folding.class_of(rank)

    def stage_of(self, number: int) -> int | None:
        return self._timeline.stage_of(number)

    def rank_words(self, rank: int) -> str:
        return f"rank {rank} = {place_words(self._layout.position(rank))}"

    def missing(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        layout, microbatches = self._layout, self.results.simulation.program.microbatches
        if rank is not None and rank >= layout.world:
            return f"no rank {rank}: ranks are 0 to {layout.world - 1}"
        if stage is not None and stage >= layout.pp:
            return f"no stage {stage}: stages are 0 to {layout.pp - 1}"
        if microbatch is not None and microbatch >= microbatches:
            if not microbatches:
                return "this run has no micro-batches"
            return f"no micro-batch {microbatch}: micro-batches are 0 to {microbatches - 1}"
        return ""

    # -- spans -------------------------------------------------------------------------

    def title(self, number: int) -> str:
        stage = self._timeline.stage_of(number)
        # Several lanes in a stage: only their ranks tell them apart.
        return f"stage {stage:>2}" if self._of_stage[stage] == 1 else f"rank {self.ranks(number).text()}"

    def streams(self, number: int) -> list[str]:
        present = self._timeline.streams(number)
        streams = [COMPUTE_STREAM, *(stream for stream in _COLLECTIVE_STREAMS if stream in present)]
        return [*streams, PIPELINE] if self._timeline.classes[number].links else streams

    def stream_title(self, number: int, stream: str) -> str:
        if stream == COMPUTE_STREAM:
            return stream
        if stream == PIPELINE:
            classes = self._timeline.classes
            stages = sorted({classes[link.neighbour].stage for link in classes[number].links.values()})
            return f"pp to {','.join(map(str, stages))}"
        return f"{stream} x{self._layout.group_size(stream)}"  # type: ignore[arg-type]

    def seams(self, number: int) -> Sequence[int]:
        timeline = self._timeline
        return timeline.times.pass_ends[number][:-1] if timeline.program.steps > 1 else ()

    def overlaps(self, stream: str | None) -> bool:
        # Transfers to several ranks overlap, and so do collectives whose chunks share the queues.
        return stream not in (None, COMPUTE_STREAM)

    def covers_all(self, stream: str | None) -> bool:
        return stream is None

    def spans(self, number: int, stream: str | None) -> Spans:
        spans = self._spans.get((number, stream))
        if spans is None:
            if stream is None:
                accounts = self.results.accounts[number]
                category = accounts.account.translate(self._tables[0])
                spans = Spans(accounts.edge[:-1], accounts.edge[1:], accounts.op, category)
            else:
                spans = self._stream_spans(number, stream)
            self._spans[number, stream] = spans
        return spans

    def drawn(self, number: int, stream: str | None) -> Spans:
        return self.spans(number, stream)

    def _stream_spans(self, number: int, stream: str) -> Spans:
        timeline = self._timeline
        ops, start, end = timeline.columns(number)
        lanes = range(TO_NEXT, len(STREAMS)) if stream == PIPELINE else (STREAMS.index(stream),)
        arrivals = [
            (start[op], end[op], op)
            for op in range(len(ops))
            if ops.stream[op] in lanes and end[op] > start[op]
        ]
        if stream == PIPELINE:
            for code, of, sent in self.results.simulation.trace.arrivals(number):
                begin, over = timeline.times.start[of][sent], timeline.times.end[of][sent]
                if over > begin:
                    arrivals.append((begin, over, code))
        # In the queues of astra-sim-1 a collective may be served before one issued earlier.
        arrivals.sort()
        if stream == COMPUTE_STREAM:
            category = bytearray(self._tables[1][ops.phase[op]] for _, _, op in arrivals)
        else:
            category = bytearray((KINDS.index(stream),)) * len(arrivals)
        start_column, end_column, op_column = (
            array("q", (span[part] for span in arrivals)) for part in range(3)
        )
        return Spans(start_column, end_column, op_column, category)

    def name(self, number: int, op: int) -> tuple[str, str]:
        if op < 0:
            return "receive", ""
        ops = self._timeline.stage_program(number).ops
        row = ops.row[op]
        if row < 0:
            return "send", ""
        phase = PHASES[ops.phase[op]]
        # Input and weight gradient have one colour: the name tells them apart.
        return self.results.simulation.workload.name[row], f" {phase}" if phase in ("ig", "wg") else ""

    def names(self) -> Collection[str]:
        return set(self.results.simulation.workload.name)

    # -- what a search looks at ------------------------------------------------------------

    def searched(self, number: int, stream: str | None) -> Searched:
        """Op -1 of a span is idle, -2 - m the transfer that arrives as message m: what stands for them are
        the last entries of a column, counted from the end.
        """
        spans = self.spans(number, stream)
        kinds, kind = self._searched_kinds(number, stream, spans)
        numbers: dict[str, int] = {}
        of_row = [numbers.setdefault(name, len(numbers)) for name in self.results.simulation.workload.name]
        # Row -1, a transfer or idle, is the last entry.
        of_row.append(len(numbers))
        return Searched(
            kinds, kind, [*((name,) for name in numbers), ()],
            codes(self._of_each(number, "row", of_row.__getitem__, spans)),
            codes(self._of_each(number, "microbatch", (1).__add__, spans)),
        )  # fmt: skip

    def _of_each(self, number: int, column: str, value: Callable[[int], int], spans: Spans) -> Iterator[int]:
        return map(value, map(self._with_sent(number, column).__getitem__, spans.op))

    def _searched_kinds(
        self, number: int, stream: str | None, spans: Spans
    ) -> tuple[list[frozenset[str]], bytes]:
        accounts, plain = self._plain_kinds(number, stream, spans)
        of_span = bytearray(plain)
        kinds = [self._kind(number, account, -1) for account in accounts]
        # Equal ops are few: their kind is found out once.
        known: dict[tuple[int, int, int], int] = {}
        cost, phase = self._with_sent(number, "cost"), self._with_sent(number, "phase")
        ops = spans.op
        for index in compress(count(), of_span.translate(_OF_AN_OP)):
            op = ops[index]
            key = (of_span[index], cost[op], phase[op])
            code = known.get(key)
            if code is None:
                kind = self._kind(number, accounts[key[0]], op)
                if kind not in kinds:
                    kinds.append(kind)
                code = known[key] = kinds.index(kind)
            of_span[index] = code
        return kinds, bytes(of_span)

    def _plain_kinds(
        self, number: int, stream: str | None, spans: Spans
    ) -> tuple[Sequence[str], bytes | bytearray]:
        """What spans are without a look at their ops, and the number of each span's."""
        if stream is None:
            return ACCOUNTS, self.results.accounts[number].account
        if stream == COMPUTE_STREAM:
            phase = self._timeline.stage_program(number).ops.phase
            return ACCOUNTS, bytes(map(phase.__getitem__, spans.op))
        # The numbers of accounts that say less than their ops, so that these are looked at.
        names = ["" for _ in ACCOUNTS]
        names[WAIT], names[BUBBLE] = "send", "receive"
        if stream == PIPELINE:
            return names, bytes(BUBBLE if op < 0 else WAIT for op in spans.op)
        names[FIRST_EXPOSED] = stream
        return names, bytes((FIRST_EXPOSED,)) * len(spans.start)

    def _kind(self, number: int, account: str, op: int) -> frozenset[str]:
        """The words of spans of an account about ops like `op` (-1: nothing more is known)."""
        words = set(account.split())
        if op == IDLE_OP or account.startswith("compute"):
            return frozenset(words)
        phase = PHASES[self._with_sent(number, "phase")[op]]
        cost = self._timeline.program.costs[self._with_sent(number, "cost")[op]]
        if isinstance(cost, CollectiveCost):
            words |= {WITH_COPIES[cost.collective], cost.group}
            # A wait is not a part of the phase that it is for.
            return frozenset(words if account == "wait" else words | {phase})
        words.add("gradient" if phase == PHASES[IG] else "activation")
        if account != "bubble":
            words.add("pp")
        if account == "exposed pp":
            words.add("receive")
        return frozenset(words)

    def _with_sent(self, number: int, name: str) -> Sequence[int]:
        """A column of the ops with what stands for transfers and idle behind it, as `op` indexes it."""
        column: array[int] | bytearray = getattr(self._timeline.stage_program(number).ops, name)
        sent = self._timeline.sent_column(name)
        if isinstance(column, bytearray):
            return column + bytearray(reversed(sent)) + b"\0"
        return column + array(column.typecode, [*reversed(sent), -1])

    # -- what one moves by ---------------------------------------------------------------

    def passes(self, number: int) -> Sequence[TimeStretch]:
        microbatches = self.results.simulation.program.microbatches
        passes = self.results.passes(number)
        return [
            TimeStretch(stretch.start_ns, stretch.end_ns, pass_words(stretch, microbatches))
            for stretch in passes
        ]

    def waits(self, number: int) -> Sequence[int]:
        return self.results.waits(number)

    def all_waits(self) -> Sequence[tuple[int, int]]:
        return self.results.all_waits

    def waited_ns(self, number: int, index: int) -> int:
        edge = self.results.accounts[number].edge
        return edge[index + 1] - edge[index]

    def path(self) -> Iterator[tuple[int, int, int, int, str]]:
        path = self.results.critical_path
        for index, (number, op, rank) in enumerate(zip(path.track, path.span, path.rank, strict=True)):
            stream = ""
            if op != IDLE_OP:
                code = self._timeline.stage_program(number).ops.stream[op]
                stream = STREAMS[code] if code < TO_NEXT else PIPELINE
            yield path.edge[index], path.edge[index + 1], self._first[number], rank, stream

    @property
    def figure_words(self) -> Sequence[str]:
        return [figure.words for figure in _FIGURES]

    def figures(self, number: int, first_ns: int, last_ns: int) -> StretchFigures:
        figures = self.results.ranges.of_class(number, first_ns, last_ns)
        return figures_of(_FIGURES, figures, last_ns - first_ns, 1)

    def all_figures(self, first_ns: int, last_ns: int) -> StretchFigures:
        world = self._layout.world
        figures = self.results.ranges.of_all(first_ns, last_ns)
        return figures_of(_FIGURES, figures, (last_ns - first_ns) * world, world)

    def longest(self, number: int, first_ns: int, last_ns: int) -> tuple[int, Figure | None]:
        longest, account = self.results.ranges.longest(number, first_ns, last_ns)
        return longest.count, _FIGURES[account]._replace(ns=longest.ns) if longest.index >= 0 else None

    @cached_property
    def words(self) -> SimulatedSpanWords:
        return SimulatedSpanWords(self.results, self)
