"""The lanes of a simulated run: its rank classes and their streams as spans, searched, ordered, summed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import compress, count
from typing import TYPE_CHECKING

from simcore.analysis.accounts import IDLE_OP
from simcore.analysis.rank_map import last_end_ns
from simcore.analysis.span_words import SimulatedSpanWords, pass_words
from simcore.collectives import WITH_COPIES
from simcore.program.ops import COMPUTE, IG, PHASES, STREAMS, TO_NEXT, CollectiveCost
from simcore.ranks import RankSet, place_words
from simcore.sources.simulated import ACCOUNTS, BUBBLE, FIRST_EXPOSED, NAMES, WAIT
from simcore.trace.lane_spans import COMPUTE_STREAM, KINDS, LaneOrder, Searched, Spans, TimeStretch, codes
from simcore.trace.lanes import (
    LEAST_BUSY,
    MOST_BUBBLE,
    MOST_EXPOSED,
    MOST_WAIT,
    NATURAL,
    Content,
    LaneFacts,
    Lanes,
    LaneTrack,
    Wait,
    account_spans,
    drawn_as,
    figures_of_accounts,
    kinds_of_accounts,
    waits_of_accounts,
)
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.analysis.finished import Finished

# The pipeline's four channels are one lane.
PIPELINE = "pp"
# Streams of a class in the order in which they are shown.
_COLLECTIVE_STREAMS = STREAMS[COMPUTE + 1 : TO_NEXT]
# The accounts that say less than the op behind them: collectives, those waited for, and transfers.
_OF_AN_OP = bytes(FIRST_EXPOSED <= account <= WAIT or account == BUBBLE for account in range(256))


def _tables(apart: bool) -> tuple[bytes, bytes]:
    """Index into ACCOUNTS, and into PHASES, -> index into KINDS, as `translate` takes it."""
    accounts = bytearray(kinds_of_accounts(NAMES))
    phases = [drawn_as(phase) for phase in PHASES]
    if apart:
        accounts[ACCOUNTS.index("compute wg")] = phases[PHASES.index("wg")] = KINDS.index("wg")
    return bytes(accounts), bytes(phases)


# Both are drawn as backward, unless the schedule takes them apart.
_TOGETHER, _APART = _tables(apart=False), _tables(apart=True)
_FIGURES = figures_of_accounts(NAMES)
_ORDERS = (NATURAL, LEAST_BUSY, MOST_BUBBLE, MOST_WAIT, MOST_EXPOSED, LaneOrder("end", "latest end", "end"))
_SPREAD = (("compute", "busy"), *((name, name) for name in ("exposed", "wait", "bubble", "idle")))


class SimulatedLanes:
    """What a simulated run says of its lanes: a lane for each set of equal ranks.

    These are the rank classes; in a run that simulates every rank (`--no-fold`) the ranks of a stage
    whose times, and those of whom they receive from, are equal to the byte are one lane too.

    The `op` of a span is its index in the class's ops, or what the accounts write for idle and for
    transfers from another rank; ops of 0 ns have no span.
    """

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
    def facts(self) -> LaneFacts:
        return LaneFacts(
            self.results.step_time_ns, self.numbers, self._counted, _FIGURES, self._tables[0], _ORDERS,
            _SPREAD, communication="exposed", beside=("x", ""), covers_all=True,
            ends=lambda number: last_end_ns(self.results.accounts[number]),
        )  # fmt: skip

    @cached_property
    def _tables(self) -> tuple[bytes, bytes]:
        return _APART if self.results.simulation.program.rules.splits_backward else _TOGETHER

    @property
    def _counted(self) -> str:
        world, classes = self._layout.world, len(self._timeline.classes)
        if len(self.numbers) < classes:
            return f"{world} ranks, each simulated, in {plural(len(self.numbers), 'lane')} of equal ones"
        return f"{plural(world, 'rank')} in {plural(classes, 'class')}"

    def words(self, lanes: Lanes) -> SimulatedSpanWords:
        return SimulatedSpanWords(self.results, lanes)

    # -- ranks -------------------------------------------------------------------------

    def track(self, number: int) -> LaneTrack:
        timeline, stage, first = self._timeline, self._timeline.stage_of(number), self._first[number]
        ranks = self._ranks[first]
        # Several lanes in a stage: only their ranks tell them apart.
        title = f"stage {stage:>2}" if self._of_stage[stage] == 1 else f"rank {ranks.text()}"
        seams = timeline.times.pass_ends[number][:-1] if timeline.program.steps > 1 else ()
        return LaneTrack(first, ranks, title, self._headings(stage, ranks), stage, seams=seams)

    def _headings(self, stage: int, ranks: RankSet) -> tuple[str, ...]:
        of_stage = f"stage {stage:>2}"
        if len(ranks) > self._layout.tp:
            return (of_stage,)
        groups = {self._layout.position(rank)[1] for rank in ranks}
        return (of_stage, f"dp {min(groups)}") if len(groups) == 1 else (of_stage,)

    def own_number(self, rank: int) -> int | None:
        if not 0 <= rank < self._layout.world:
            return None
        # Where each rank is a class, a class's number is its rank.
        return rank if self._each_rank else self._timeline.folding.class_of(rank)

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

    def streams(self, number: int) -> dict[str, str]:
        present = self._timeline.streams(number)
        titles = {COMPUTE_STREAM: COMPUTE_STREAM}
        for stream in _COLLECTIVE_STREAMS:
            if stream in present:
                titles[stream] = f"{stream} x{self._layout.group_size(stream)}"  # type: ignore[arg-type]
        if links := self._timeline.classes[number].links.values():
            stages = sorted({self._timeline.stage_of(link.neighbour) for link in links})
            titles[PIPELINE] = f"pp to {','.join(map(str, stages))}"
        return titles

    def content(self, number: int, stream: str | None) -> Content:
        if stream is None:
            spans = account_spans(self.results.accounts[number], self._tables[0])
        else:
            spans = self._stream_spans(number, stream)
        return Content(spans, spans)

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

    def searched(self, number: int, stream: str | None, spans: Spans) -> Searched:
        """Op -1 of a span is idle, a `wait_code` what its class waits for there: what stands for them are the
        last entries of a column, counted from the end.
        """
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
        arrived = self._arrived(number, name)
        if isinstance(column, bytearray):
            return column + bytearray(arrived) + b"\0"
        return column + array(column.typecode, [*arrived, -1])

    def _arrived(self, number: int, name: str) -> list[int]:
        """A column of what a class waits for, the last wait first."""
        waits, program = self.results.simulation.trace.waits[number], self._timeline.stage_program
        columns = {of: getattr(program(of).ops, name) for of in set(waits.of) if of >= 0}
        pairs = zip(reversed(waits.of), reversed(waits.span), strict=True)
        return [columns[of][span] if of >= 0 else 0 for of, span in pairs]

    # -- what one moves by ---------------------------------------------------------------

    def passes(self, number: int) -> Sequence[TimeStretch]:
        microbatches = self.results.simulation.program.microbatches
        passes = self.results.passes(number)
        return [
            TimeStretch(stretch.start_ns, stretch.end_ns, pass_words(stretch, microbatches))
            for stretch in passes
        ]

    def waits(self, number: int, spans: Callable[[], Spans]) -> list[Wait]:
        return waits_of_accounts(self.results.accounts[number])
