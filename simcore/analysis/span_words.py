"""What is said of a span of a simulated run: what it is, whose, when, and where its length comes from.

In facts that can be redone by hand: what the file or the network gives, the factors of the run on it, and
what is left when other traffic, queues or jitter make it another duration; what it waited for and what it
holds back.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

from simcore.analysis.accounts import IDLE_OP, op_kind
from simcore.analysis.alike import waited_for
from simcore.analysis.microbatch_passes import Pass, pass_at
from simcore.collectives import WITH_COPIES, algorithm_bandwidth, bus_bandwidth
from simcore.collectives.exact import scaled
from simcore.diagnostics import in_short
from simcore.engine.pricing import rounds_phases
from simcore.folding.graph import PortFactors
from simcore.layout import Layout
from simcore.networks import PlacedCollective, Sharing
from simcore.program.ops import (
    COMPUTE,
    FWD,
    LANE_OF_STREAM,
    PHASES,
    RECOMPUTE,
    CollectiveCost,
    ComputeCost,
    TransferCost,
)
from simcore.ranks import RankSet, place_words
from simcore.records import Struct
from simcore.simulation import Simulation
from simcore.sources.simulated import (
    ACCOUNTS,
    BUBBLE,
    IDLE,
    WAIT,
)
from simcore.trace.findings import Dependency
from simcore.trace.lane_spans import COMPUTE_STREAM, SpanSaid, clock, microbatch_words, slack_words
from simcore.trace.lanes import PHASE_WORDS, Lanes, SpanWords
from simcore.units import byte_size, duration, number, plural
from simcore.workload.model import PHASES as CELLS
from simcore.workload.model import GroupKind

if TYPE_CHECKING:
    from simcore.analysis.finished import Finished


# A factor of a run that is not 1, and what it is called.
_Factor = tuple[float, str]


# Of collectives that cost the same in the same group: its class and the number of the cost -> the price.
_Priced = dict[tuple[int, int], tuple[str, int, list[_Factor]]]


def origin(simulation: Simulation, of: int, op: int, priced: _Priced | None = None) -> str:
    """Where the duration of op `op` of class `of` comes from, in one or two lines of text.

    The price as the file or the network has it, the run's factors, and the difference to what the op
    takes, with its reason: jitter, other traffic at its ports, queues. priced: of collectives that were
    told before, for those who tell many: pricing one anew is 150 us.
    """
    timeline = simulation.timeline
    ops, start, end = timeline.columns(of)
    cost = timeline.program.costs[ops.cost[op]]
    if isinstance(cost, ComputeCost):
        words, expected_ns, factors = _compute(simulation, of, op, cost)
    elif isinstance(cost, CollectiveCost):
        key = (timeline.groups_of(of)[cost.group], ops.cost[op])
        known = None if priced is None else priced.get(key)
        words, expected_ns, factors = known or _collective(simulation, of, cost)
        if priced is not None:
            priced[key] = words, expected_ns, factors
    else:
        words, expected_ns, factors = _transfer(simulation, of, op, cost)
    if simulation.setup.overrides.time_scales:
        # Imported here: few runs have one.
        from simcore.engine.time_scales import factors_of

        for factor in factors_of(simulation.setup.overrides.time_scales, ops, op, simulation.workload.name):
            # Each rounds once more, and what the file or the network gives may be kept for other rows.
            expected_ns, factors = scaled(expected_ns, factor), [*factors, (factor, "time scale")]
    return words + _outcome(simulation, ops.stream[op] == COMPUTE, end[op] - start[op], expected_ns, factors)


def _compute(simulation: Simulation, of: int, op: int, cost: ComputeCost) -> tuple[str, int, list[_Factor]]:
    rank_class = simulation.timeline.classes[of]
    row = simulation.timeline.stage_program(of).ops.row[op]
    cell = _cell_of(simulation, of, op)
    factors = [
        (simulation.parameters.compute_scale, "compute scale"),
        (cost.scale, "layer scale"),
        (rank_class.slowdown, "slow rank"),
    ]
    product = math.prod(factor for factor, _ in factors)
    maker = simulation.workload.maker
    if maker is None:
        words = f"{duration(cost.ns)}, the {cell} cell of line {simulation.workload.line[row]}"
    else:
        words = f"{duration(cost.ns_of(rank_class.expert))}"
        phase = next((known for known in CELLS if known == cell), None)
        # The ops of a cell are those of the fullest rank of an expert group.
        known = phase is not None and cost.ns_of(rank_class.expert) == cost.ns
        ops = maker.summed(simulation.setup.model, row, phase) if known and phase else ""
        words += f": {ops}" if ops else ""
    return words, scaled(cost.ns_of(rank_class.expert), product), factors


def _collective(simulation: Simulation, of: int, cost: CollectiveCost) -> tuple[str, int, list[_Factor]]:
    timeline, network = simulation.timeline, simulation.network
    if cost.ns:
        scale = simulation.parameters.comm_scale
        words = f"{byte_size(cost.bytes)} over the link to the host"
        return words, scaled(cost.ns, scale), [(scale, "comm scale")]
    group = timeline.folding.group_classes[timeline.groups_of(of)[cost.group]]
    placed = PlacedCollective.of(group, cost)
    words = network.explain_collective(placed) + _ports(simulation, group.ports)
    scale = simulation.parameters.comm_scale
    if cost.pieces > 1:
        words += f"; of it piece {cost.piece + 1} of {cost.pieces}"
        whole_ns = scaled(network.collective_ns(placed), scale)
        return words, cost.share_of(whole_ns), [(scale, "comm scale")]
    rounded = ", each phase of a chunk rounded" if rounds_phases(network, placed, scale) else ""
    return words, network.collective_ns(placed, scale), [(scale, f"comm scale{rounded}")]


def _transfer(simulation: Simulation, of: int, op: int, cost: TransferCost) -> tuple[str, int, list[_Factor]]:
    timeline, network = simulation.timeline, simulation.network
    link = timeline.classes[of].links[cost.step]
    phase = timeline.stage_program(of).ops.phase[op]
    what = "an activation" if phase in (FWD, RECOMPUTE) else "a gradient"
    formula = network.explain_transfer(link.shape, link.ports, cost.bytes) + _ports(simulation, link.ports)
    alone_ns = network.transfer_ns(link.shape, link.ports, cost.bytes)
    words = f"{what} of {byte_size(cost.bytes)}: {formula}"
    scale = simulation.parameters.comm_scale
    return words, scaled(alone_ns, scale), [(scale, "comm scale")]


def _ports(simulation: Simulation, ports: PortFactors) -> str:
    """Which dimensions the formula has at less than their bandwidth."""
    dims = simulation.cluster.dims
    slowed = [
        f"dimension {index} at {number(factor)} of {number(dims[index].bandwidth)} GB/s (slow link)"
        for index, factor in enumerate(ports)
        if factor != 1
    ]
    return f", {' and '.join(slowed)}" if slowed else ""


def _outcome(simulation: Simulation, is_compute: bool, ns: int, expected: int, factors: list[_Factor]) -> str:
    """The factors that are not 1, and what is left between what they make of the price and `ns`."""
    named = [(factor, what) for factor, what in factors if factor != 1]
    words = "".join(f", times {number(factor)} ({what})" for factor, what in named)
    if named:
        words += f" = {duration(expected)}"
    if ns == expected:
        return words
    sharing = not is_compute and isinstance(simulation.network, Sharing)
    if simulation.parameters.jitter and not sharing and expected:
        return f"{words}, times {ns / expected:.4g} (jitter)"
    more = f"{duration(abs(ns - expected))} {'more' if ns > expected else 'less'}"
    if simulation.parameters.jitter:
        return f"{words}, {more} by jitter{' and other traffic at its ports' if sharing else ''}"
    if sharing:
        return f"{words}, {more} as other traffic shares its ports"
    return f"{words}, {more} in the queues of the dimensions"


def _cell_of(simulation: Simulation, of: int, op: int) -> str:
    """Which cell of a row the compute stands in: `opt` and `recompute` name none by themselves.

    The optimizer runs the cells of a row in their order: of cells with the same ns, the op's place among
    the row's ops of that ns says which.
    """
    ops = simulation.timeline.stage_program(of).ops
    costs = simulation.timeline.program.costs
    phase, row = PHASES[ops.phase[op]], ops.row[op]
    if phase in CELLS:
        return phase
    if phase == "recompute":
        return "fwd"
    cost = costs[ops.cost[op]]
    assert isinstance(cost, ComputeCost)
    like = [cell for cell in CELLS if simulation.workload.cells(cell).compute_ns[row] == cost.ns]
    before = 0
    for earlier in range(op):
        if ops.row[earlier] == row and ops.stream[earlier] == COMPUTE:
            other = costs[ops.cost[earlier]]
            before += isinstance(other, ComputeCost) and other.ns == cost.ns
    return like[before % len(like)]


class OpFacts(Struct, frozen=True):
    """One op of a rank class, or a transfer that it receives.

    name: the row's name, raw text of the file; "" for a transfer. phase: of PHASES. kind:
    `compute`, a collective's name, `send` or `receive`. row: of the file, -1 for a transfer.
    other_stage: where a transfer goes or comes from. of, op: whose op it is, for `origin`.
    collective, group: of a collective, as the file's words; bytes: of its whole buffer, or of the
    transfer; 0 for compute.
    """

    name: str
    phase: str
    kind: str
    stream: str
    start_ns: int
    end_ns: int
    row: int
    microbatch: int
    other_stage: int | None
    of: int
    op: int
    collective: str | None = None
    group: GroupKind | None = None
    bytes: int = 0

    def bandwidths(self, layout: Layout) -> tuple[float, float] | None:
        """(algbw, busbw), GB/s, by what the span took in this run, as nccl-tests defines them.

        Its doc/PERFORMANCE.md has the factors (`bus_bandwidth`). None for compute, and where no time passes.
        """
        ns = self.end_ns - self.start_ns
        if not self.bytes or not ns:
            return None
        members = layout.group_size(self.group) if self.group is not None else 2
        algbw = algorithm_bandwidth(self.bytes, ns)
        return algbw, bus_bandwidth(self.collective or "SENDRECV", members, self.bytes, ns)


def op_facts(simulation: Simulation, number: int, op: int) -> OpFacts | None:
    """The facts of op `op` of class `number`, as the accounts write it; None for idle."""
    if op == IDLE_OP:
        return None
    of, own = simulation.trace.span_of(number, op)
    return _facts(simulation, of, own, received_by=None if own == op else number)


def _facts(simulation: Simulation, number: int, op: int, received_by: int | None = None) -> OpFacts:
    timeline = simulation.timeline
    ops, start, end = timeline.columns(number)
    rank_class = timeline.classes[number]
    cost = timeline.program.costs[ops.cost[op]]
    row, lane = ops.row[op], ops.stream[op]
    name = simulation.workload.name[row] if row >= 0 else ""
    other_stage = None
    if isinstance(cost, CollectiveCost):
        kind = WITH_COPIES[cost.collective]
    elif isinstance(cost, TransferCost):
        kind = "send" if received_by is None else "receive"
        other_stage = rank_class.stage + (cost.step if received_by is None else 0)
    else:
        kind = "compute"
    stream = LANE_OF_STREAM[lane]
    phase = PHASES[ops.phase[op]]
    collective: str | None = None
    kind_of_group: GroupKind | None = None
    if isinstance(cost, CollectiveCost):
        collective, kind_of_group = cost.collective, cost.group
    size = 0 if isinstance(cost, ComputeCost) else cost.bytes
    return OpFacts(
        name, phase, kind, stream, start[op], end[op], row, ops.microbatch[op], other_stage,
        number, op, collective, kind_of_group, size,
    )  # fmt: skip


def pass_words(a_pass: Pass, microbatches: int) -> str:
    """`forward of micro-batch 2 (3rd of 16), part 1 of 2`."""
    part = f", part {a_pass.part + 1} of {a_pass.parts}" if a_pass.parts > 1 else ""
    return f"{a_pass.direction} of {microbatch_words(a_pass.microbatch, microbatches)}{part}"


class SimulatedSpanWords(SpanWords):
    """Of a simulated run."""

    most = 3

    def __init__(self, results: Finished, lanes: Lanes) -> None:
        super().__init__(lanes)
        self._results = results
        self._simulation, self._timeline = results.simulation, results.simulation.timeline
        # Of each class, when its passes begin.
        self._pass_starts: dict[int, array[int]] = {}
        self._priced: _Priced = {}
        # Who tells all spans of a lane asks for each three times, and of the same ranks.
        self._last: tuple[int, int, OpFacts | None] = (-1, -1, None)
        self._whose_of: tuple[RankSet | None, tuple[str, ...]] = (None, ())

    # -- in few words ------------------------------------------------------------------

    def said(self, number: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSaid:
        whose = self._whose(ranks)
        if index is None:
            return SpanSaid("", whose)
        spans = self._lanes.spans(number, stream)
        start, end, op = spans.start[index], spans.end[index], spans.op[index]
        facts = self._op_facts(number, op)
        times = self.times(start, end)
        if facts is None:
            over = end >= self._simulation.step_time_ns
            why = "the step of these ranks is over" if over else "ASTRA-sim 1.0 changes its state"
            return SpanSaid(f"idle, {why}", whose, times, duration(end - start))
        itself = ("", "")
        if facts.end_ns - facts.start_ns != end - start:
            is_copy = facts.group == "offload"
            kind = "transfer" if facts.other_stage is not None else "copy" if is_copy else "collective"
            kind = f"the {kind} itself"
            takes = duration(facts.end_ns - facts.start_ns)
            itself = f"{kind} takes {takes}", f", from {clock(facts.start_ns)}"
        what = self._what(number, stream, index, facts)
        return SpanSaid(what, whose, times, duration(end - start), itself, self._origin(facts))

    def _origin(self, facts: OpFacts) -> str:
        return origin(self._simulation, facts.of, facts.op, self._priced)

    def _whose(self, ranks: RankSet) -> tuple[str, ...]:
        """The ranks of a lane in words, the most of them first."""
        if self._whose_of[0] is not ranks:
            self._whose_of = ranks, self._whose_words(ranks)
        return self._whose_of[1]

    def _whose_words(self, ranks: RankSet) -> tuple[str, ...]:
        few = f"rank {ranks.first} x{len(ranks)}"
        rank = f"rank {ranks.first} = {place_words(self._simulation.layout.position(ranks.first))}"
        if len(ranks) == 1:
            return rank, few
        text = ranks.text()
        alike = f"ranks {text if len(text) <= 24 else text[:21] + '...'} alike"
        return f"{alike}, {rank}", alike, few

    def _what(self, number: int, stream: str | None, index: int, facts: OpFacts) -> str:
        microbatch = f", micro-batch {facts.microbatch}" if facts.microbatch >= 0 else ""
        phase = PHASE_WORDS[facts.phase]
        if facts.other_stage is not None:
            way = "to" if facts.kind == "send" else "from"
            what = "activation" if facts.phase == "fwd" else "gradient"
            op = f"{what} {way} stage {facts.other_stage}{microbatch}"
        elif facts.kind == "compute":
            return f"{phase}   {in_short(facts.name, 40)}{microbatch}"
        else:
            op = f"{facts.kind} ({facts.stream}) of {in_short(facts.name, 40)}, {phase}{microbatch}"
        if stream is not None:
            return op
        account = self._results.accounts[number].account[index]
        if account == BUBBLE:
            return f"bubble   waits for the {op}"
        return f"{'wait' if account == WAIT else 'exposed'}   {op}"

    def volume(self, number: int, stream: str | None, index: int) -> str:
        facts = self._facts(number, stream, index)
        return "" if facts is None else self._volume(facts)

    def aside(self, number: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        facts = self._facts(number, stream, index)
        if facts is None:
            return ""
        if facts.kind != "compute":
            # How a collective's time comes about fills the lines below: its pass is among the details.
            words = self._for_whom(number, stream, index, rank)
            return words if wide else words.partition(" = ")[0]
        if wide:
            return self._in_pass(number, stream, index)
        a_pass = self._pass_of(number, stream, index)
        return "" if a_pass is None else f"pass {duration(a_pass.end_ns - a_pass.start_ns)}"

    def _facts(self, number: int, stream: str | None, index: int) -> OpFacts | None:
        return self._op_facts(number, self.op(number, stream, index))

    def _op_facts(self, number: int, op: int) -> OpFacts | None:
        if self._last[0] != number or self._last[1] != op:
            self._last = number, op, op_facts(self._simulation, number, op)
        return self._last[2]

    # -- in full -----------------------------------------------------------------------

    def all_of(self, number: int, stream: str | None, index: int, rank: int | None) -> list[tuple[str, str]]:
        spans = self._lanes.spans(number, stream)
        start, end = spans.start[index], spans.end[index]
        facts = self._facts(number, stream, index)
        simulation = self._simulation
        ranks = self._timeline.ranks_of(number)
        rank = ranks.first if rank is None else rank
        equal = f"; {len(ranks)} equal ranks: {ranks.text()}" if len(ranks) > 1 else ""
        rows = [
            ("runs", self.times_and_length(start, end)),
            ("on", f"{self._lanes.rank_words(rank)}{equal}"),
        ]
        if stream is None:
            rows.insert(0, ("account", ACCOUNTS[self._results.accounts[number].account[index]]))
        if facts is None:
            return rows
        rows += [
            *self.dependency_rows(number, stream, index, rank),
            ("slack", self._slack_words(number, stream, index)),
            ("pass", self._in_pass(number, stream, index)),
            ("waits", self._for_whom(number, stream, index, rank)),
        ]
        itself = facts.end_ns - facts.start_ns
        if itself != end - start:
            times = self.times(facts.start_ns, facts.end_ns)
            rows.append((f"{facts.kind} itself", f"{times}, {duration(itself)}"))
        rows.append(("takes", self._origin(facts)))
        if facts.group is not None:
            members = RankSet.of(simulation.layout.group_of(facts.group, rank))
            words = f"{facts.group} group of {plural(len(members), 'rank')}: {members.text()}"
            rows.append(("members", words))
        rows.append(("volume", self._volume(facts)))
        if facts.microbatch >= 0:
            words = microbatch_words(facts.microbatch, simulation.program.microbatches)
            rows.append(("micro-batch", words))
        if facts.row >= 0:
            workload = simulation.workload
            line = f"line {workload.line[facts.row]} of {in_short(workload.path)}"
            rows.append(("row", f"{in_short(facts.name, 80)}, {line}"))
        return [(label, words) for label, words in rows if words]

    def _volume(self, facts: OpFacts) -> str:
        """Bytes and bandwidths of what is sent, by the time it takes in this run."""
        bandwidths = facts.bandwidths(self._simulation.layout)
        if bandwidths is None:
            return ""
        algbw, busbw = bandwidths
        if facts.group == "offload":
            return f"{byte_size(facts.bytes)}, {algbw:.2f} GB/s"
        return f"{byte_size(facts.bytes)}, algbw {algbw:.2f} GB/s, busbw {busbw:.2f} GB/s"

    def _in_pass(self, number: int, stream: str | None, index: int) -> str:
        """The pass of a span, when it is and how long it takes."""
        a_pass = self._pass_of(number, stream, index)
        if a_pass is None:
            return ""
        words = pass_words(a_pass, self._simulation.program.microbatches)
        times = self.times(a_pass.start_ns, a_pass.end_ns)
        return f"{words} takes {duration(a_pass.end_ns - a_pass.start_ns)} here: {times}"

    def _pass_of(self, number: int, stream: str | None, index: int) -> Pass | None:
        """The pass that a span of the compute stream is a part of; what runs beside it is of none."""
        spans = self._lanes.spans(number, stream)
        if stream is None:
            if self._results.accounts[number].account[index] in (WAIT, BUBBLE, IDLE):
                return None
        else:
            ops = self._timeline.stage_program(number).ops
            op = spans.op[index]
            if op < 0 or not (ops.stream[op] == COMPUTE or ops.blocking[op]):
                return None
        passes = self._results.passes(number)
        if number not in self._pass_starts:
            self._pass_starts[number] = array("q", (a_pass.start_ns for a_pass in passes))
        index_of = pass_at(passes, self._pass_starts[number], spans.start[index])
        return None if index_of is None else passes[index_of]

    def _for_whom(self, number: int, stream: str | None, index: int, rank: int | None) -> str:
        """The rank that a wait or bubble is for."""
        if stream is not None:
            return ""
        timeline, layout, lanes = self._timeline, self._simulation.layout, self._lanes
        account = self._results.accounts[number].account[index]
        rank = timeline.ranks_of(number).first if rank is None else rank
        if account not in (WAIT, BUBBLE):
            return ""
        facts = self._facts(number, stream, index)
        assert facts is not None
        if account == BUBBLE:
            assert facts.other_stage is not None
            return f"for {lanes.rank_words(layout.neighbour(rank, facts.other_stage))}"
        late = waited_for(timeline, self._results.accounts, number, index)
        if not late:
            return ""
        assert facts.group is not None
        members = list(layout.group_of(facts.group, rank))
        ranks = [member for member in members if any(member in timeline.ranks_of(number) for number in late)]
        others = f" and {plural(len(ranks) - 1, 'other')}" if len(ranks) > 1 else ""
        return f"for {lanes.rank_words(ranks[0])}{others}: the last of {len(members)} to come"

    def _slack_words(self, number: int, stream: str | None, index: int) -> str:
        """How much longer a span may take, or that it is critical; "" where there is no slack."""
        op = self.op(number, stream, index)
        if self._results.slacks is None or op < 0:
            return ""
        if stream is None and not self._is_shown(number, op, index):
            return ""
        return slack_words(self._results.slacks[number][op])

    def _is_shown(self, number: int, op: int, segment: int) -> bool:
        """Whether a segment of the accounts is the op itself, and not a wait for it."""
        return self._results.accounts[number].edge[segment] >= self._timeline.times.start[number][op]

    # -- what waits for what -----------------------------------------------------------

    def dependencies(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Dependency]:
        dependencies, op = self._results.dependencies, self.op(number, stream, index)
        if stream is None:
            accounts = self._results.accounts[number]
            if direction > 0:
                return dependencies.segment_effects(number, accounts, index, rank)
            found = dependencies.segment_causes(number, accounts, index, rank)
            is_itself = found and (found[0].number, found[0].span) == (number, op)
            # It runs here: what is asked for is what held it back.
            return found[1:] if is_itself and self._is_shown(number, op, index) else found
        of, sent = self._simulation.trace.span_of(number, op)
        of_rank = rank if sent == op else None
        if direction < 0:
            return dependencies.causes(of, sent, of_rank)
        found = dependencies.effects(of, sent, of_rank)
        return [effect for effect in found if sent == op or effect.number == number]

    def shown_in(self, stream: str | None, of: Dependency) -> str | None:
        shown = self._results.stream_at(of.number, of.span, of.start_ns, of.end_ns)
        # Someone who looks at streams stays with streams.
        return COMPUTE_STREAM if shown is None and stream == COMPUTE_STREAM else shown

    def name(self, number: int, span: int) -> str:
        """`fwd mlp_row`, `tp all-gather of mlp_row`, `transfer`, `idle`."""
        if span == IDLE_OP:
            return "idle"
        ops = self._timeline.stage_program(number).ops
        kind, row = op_kind(self._timeline, number, span, with_group=True), ops.row[span]
        name = in_short(self._simulation.workload.name[row], 24) if row >= 0 else ""
        if kind == "compute":
            return f"{PHASES[ops.phase[span]]} {name}"
        return f"{kind} of {name}" if name else kind
