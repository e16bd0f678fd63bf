"""The words for a span of a simulated run: what it is, its ranks, when it runs, and the origin of its length.

They are facts that can be checked by hand: what the file or the network gives, the factors of the run on it,
and the remaining difference where other traffic, queues or jitter change the duration; what it waited for and
what it holds back.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

from simcore.analysis.accounts import IDLE_OP, op_kind
from simcore.analysis.equal_ranks import find_late_classes
from simcore.analysis.microbatch_passes import Pass, find_pass
from simcore.collectives import WITH_COPIES, algorithm_bandwidth, bus_bandwidth
from simcore.collectives.exact import scaled
from simcore.diagnostics import printable_within
from simcore.engine.pricing import rounds_phases
from simcore.folding.graph import PortFactors
from simcore.layout import Layout
from simcore.networks import GroupCollective, Sharing
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
from simcore.ranks import RankSet, describe_position
from simcore.records import Struct
from simcore.simulation import Simulation
from simcore.sources.simulated import (
    ACCOUNTS,
    BUBBLE,
    IDLE,
    WAIT,
)
from simcore.trace.findings import Dependency
from simcore.trace.lane_spans import COMPUTE_STREAM, SpanSummary, format_clock, microbatch_words, slack_words
from simcore.trace.lanes import PHASE_WORDS, Lanes, SpanWords
from simcore.units import byte_size, duration, format_number, group_digits, join_names, plural, short_number
from simcore.workload.model import PHASES as CELLS
from simcore.workload.model import GroupKind

if TYPE_CHECKING:
    from simcore.analysis.simulation_figures import SimulationFigures


# A factor of a run, and its name.
_Factor = tuple[float, str]


# (words, ns, factors) of collectives by the class of the group and the cost: these determine the price.
_Prices = dict[tuple[int, int], tuple[str, int, list[_Factor]]]


def explain_duration(simulation: Simulation, class_id: int, op: int, prices: _Prices | None = None) -> str:
    """Returns the origin of the duration of an op of a class, in one or two lines of text.

    It is the price as the file or the network has it, the run's factors, and the difference to what the op
    takes, with its reason: jitter, other traffic at its ports, queues. prices: a cache of collectives that
    were explained before, for callers that explain many: pricing one anew takes 150 us.
    """
    timeline = simulation.timeline
    ops, start, end = timeline.columns(class_id)
    cost = timeline.program.costs[ops.cost[op]]
    if isinstance(cost, ComputeCost):
        words, expected_ns, factors = _explain_compute(simulation, class_id, op, cost)
    elif isinstance(cost, CollectiveCost):
        key = (timeline.groups_of(class_id)[cost.group], ops.cost[op])
        cached_price = None if prices is None else prices.get(key)
        words, expected_ns, factors = cached_price or _explain_collective(simulation, class_id, cost)
        if prices is not None:
            prices[key] = words, expected_ns, factors
    else:
        words, expected_ns, factors = _explain_transfer(simulation, class_id, op, cost)
    if simulation.setup.overrides.time_scales:
        # Imported here: few runs have time scales.
        from simcore.engine.time_scales import factors_of

        for factor in factors_of(simulation.setup.overrides.time_scales, ops, op, simulation.workload.name):
            # Each factor rounds once more, and the price may be cached for other rows.
            expected_ns, factors = scaled(expected_ns, factor), [*factors, (factor, "time scale")]
    return words + _factors_text(
        simulation, ops.stream[op] == COMPUTE, end[op] - start[op], expected_ns, factors
    )


def _explain_compute(
    simulation: Simulation, class_id: int, op: int, cost: ComputeCost
) -> tuple[str, int, list[_Factor]]:
    rank_class = simulation.timeline.classes[class_id]
    ops = simulation.timeline.stage_program(class_id).ops
    row, program = ops.row[op], simulation.program
    packing = program.packing_of(rank_class.replica, ops.microbatch[op])
    ns = cost.ns_of(rank_class.expert, packing)
    cell = _find_cell(simulation, class_id, op)
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
        words = f"{duration(ns)}"
        phase = next((cell_phase for cell_phase in CELLS if cell_phase == cell), None)
        # The ops of a cell are known for the fullest rank of an expert group, and the micro-batch of most
        # attention.
        is_fullest = phase is not None and ns == cost.ns
        cell_ops = maker.summarize_ops(simulation.setup.model, row, phase) if is_fullest and phase else ""
        words += f": {cell_ops}" if cell_ops else ""
        packed = simulation.workload.packed
        if packed is not None and cost.by_packing:
            words += f", documents of up to {group_digits(packed.longest[packing])} tokens"
    return words, scaled(ns, product), factors


def _explain_collective(
    simulation: Simulation, class_id: int, cost: CollectiveCost
) -> tuple[str, int, list[_Factor]]:
    timeline, network = simulation.timeline, simulation.network
    if cost.ns:
        scale = simulation.parameters.comm_scale
        words = f"{byte_size(cost.bytes)} over the link to the host"
        return words, scaled(cost.ns, scale), [(scale, "comm scale")]
    group = timeline.folding.group_classes[timeline.groups_of(class_id)[cost.group]]
    group_collective = GroupCollective.of(group, cost)
    words = network.explain_collective(group_collective) + _slow_ports_text(simulation, group.ports)
    scale = simulation.parameters.comm_scale
    if cost.split_count > 1:
        words += f"; of it piece {cost.split_index + 1} of {cost.split_count}"
        whole_ns = scaled(network.collective_ns(group_collective), scale)
        return words, cost.share_of(whole_ns), [(scale, "comm scale")]
    rounded = ", each phase of a chunk rounded" if rounds_phases(network, group_collective, scale) else ""
    return words, network.collective_ns(group_collective, scale), [(scale, f"comm scale{rounded}")]


def _explain_transfer(
    simulation: Simulation, class_id: int, op: int, cost: TransferCost
) -> tuple[str, int, list[_Factor]]:
    timeline, network = simulation.timeline, simulation.network
    link = timeline.classes[class_id].links[cost.step]
    phase = timeline.stage_program(class_id).ops.phase[op]
    what = "an activation" if phase in (FWD, RECOMPUTE) else "a gradient"
    formula = network.explain_transfer(link.shape, link.ports, cost.bytes) + _slow_ports_text(
        simulation, link.ports
    )
    alone_ns = network.transfer_ns(link.shape, link.ports, cost.bytes)
    words = f"{what} of {byte_size(cost.bytes)}: {formula}"
    scale = simulation.parameters.comm_scale
    return words, scaled(alone_ns, scale), [(scale, "comm scale")]


def _slow_ports_text(simulation: Simulation, ports: PortFactors) -> str:
    """Returns which dimensions have less than their bandwidth in the formula, in words."""
    dims = simulation.cluster.dims
    slowed = [
        f"dimension {index} at {format_number(factor)} of {format_number(dims[index].bandwidth)} GB/s "
        "(slow link)"
        for index, factor in enumerate(ports)
        if factor != 1
    ]
    return f", {' and '.join(slowed)}" if slowed else ""


def _factors_text(
    simulation: Simulation, is_compute: bool, ns: int, expected: int, factors: list[_Factor]
) -> str:
    """Returns the factors that are not 1, and the difference of `ns` to the price times these, in words."""
    changed_factors = [(factor, what) for factor, what in factors if factor != 1]
    words = "".join(f", times {short_number(factor)} ({what})" for factor, what in changed_factors)
    if changed_factors:
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
        report = simulation.flow_report
        if report is None or ns > expected:
            return f"{words}, {more} as {_other_traffic_words(simulation)}"
        # Nobody is faster for others' flows: packets are a little faster than shares say.
        return f"{words}, {more}{' packet by packet' if report.detail != 'shares' else ''}"
    return f"{words}, {more} in the queues of the dimensions"


def _other_traffic_words(simulation: Simulation) -> str:
    """Returns what shares ports with a collective or transfer; of flows, the groups that send any."""
    report, timeline = simulation.flow_report, simulation.timeline
    if report is None or simulation.other_job is not None:
        return "other traffic shares its ports"
    kinds = {
        "pp" if isinstance(cost, TransferCost) else cost.group
        for cost in timeline.program.costs
        if isinstance(cost, TransferCost) or (isinstance(cost, CollectiveCost) and not cost.ns)
    }
    if len(kinds) > 1:
        return f"other flows share its ports, those of {join_names(sorted(kinds))}"
    (kind,) = kinds
    if sum(group.kind == kind for group in timeline.folding.group_classes) == 1:
        return "other traffic shares its ports" if report.detail == "shares" else "its packets wait at ports"
    return f"flows of other {kind} groups share its ports"


def _find_cell(simulation: Simulation, class_id: int, op: int) -> str:
    """Returns the cell of a row that the compute belongs to: `opt` and `recompute` are no cells.

    The optimizer runs the cells of a row in their order: of cells with the same ns, the op's index among the
    row's ops of that ns decides.
    """
    ops = simulation.timeline.stage_program(class_id).ops
    costs = simulation.timeline.program.costs
    phase, row = PHASES[ops.phase[op]], ops.row[op]
    if phase in CELLS:
        return phase
    if phase == "recompute":
        return "fwd"
    cost = costs[ops.cost[op]]
    assert isinstance(cost, ComputeCost)
    equal_cells = [cell for cell in CELLS if simulation.workload.cells(cell).compute_ns[row] == cost.ns]
    before = 0
    for earlier in range(op):
        if ops.row[earlier] == row and ops.stream[earlier] == COMPUTE:
            other = costs[ops.cost[earlier]]
            before += isinstance(other, ComputeCost) and other.ns == cost.ns
    return equal_cells[before % len(equal_cells)]


class OpFacts(Struct, frozen=True):
    """One op of a rank class, or a transfer that it receives."""

    name: str
    """The row's name, raw text of the file; "" for a transfer."""
    phase: str
    """One of PHASES."""
    kind: str
    """`compute`, a collective's name, `send` or `receive`."""
    stream: str
    """The lane of its stream."""
    start_ns: int
    """When it begins, ns."""
    end_ns: int
    """When it ends, ns."""
    row: int
    """The row of the file, -1 for a transfer."""
    microbatch: int
    """Its micro-batch, -1 without one."""
    other_stage: int | None
    """The stage that a transfer goes to or comes from."""
    class_id: int
    """The class whose op it is, for `explain_duration`."""
    op: int
    """The op of that class."""
    collective: str | None = None
    """The collective in the words of the file."""
    group: GroupKind | None = None
    """The kind of group of a collective."""
    bytes: int = 0
    """The bytes of its whole buffer, or of the transfer; 0 for compute."""

    def bandwidths(self, layout: Layout) -> tuple[float, float] | None:
        """Returns (algbw, busbw), GB/s, by what the span took in this run, as nccl-tests defines them.

        Its doc/PERFORMANCE.md has the factors (`bus_bandwidth`). None for compute, and for spans of 0 ns.
        """
        ns = self.end_ns - self.start_ns
        if not self.bytes or not ns:
            return None
        members = layout.group_size(self.group) if self.group is not None else 2
        algbw = algorithm_bandwidth(self.bytes, ns)
        return algbw, bus_bandwidth(self.collective or "SENDRECV", members, self.bytes, ns)


def find_op_facts(simulation: Simulation, class_id: int, op: int) -> OpFacts | None:
    """Returns the facts of an op of a class, as the accounts write it; None for idle."""
    if op == IDLE_OP:
        return None
    owner, own_op = simulation.trace.span_of(class_id, op)
    return _make_op_facts(simulation, owner, own_op, received_by=None if own_op == op else class_id)


def _make_op_facts(simulation: Simulation, class_id: int, op: int, received_by: int | None = None) -> OpFacts:
    timeline = simulation.timeline
    ops, start, end = timeline.columns(class_id)
    rank_class = timeline.classes[class_id]
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
        class_id, op, collective, kind_of_group, size,
    )  # fmt: skip


def pass_words(a_pass: Pass, microbatches: int) -> str:
    """Returns `forward of micro-batch 2 (3rd of 16), part 1 of 2`."""
    part = f", part {a_pass.part + 1} of {a_pass.parts}" if a_pass.parts > 1 else ""
    return f"{a_pass.direction} of {microbatch_words(a_pass.microbatch, microbatches)}{part}"


class SimulatedSpanWords(SpanWords):
    """The words for spans of a simulated run."""

    most_dependencies = 3

    def __init__(self, results: SimulationFigures, lanes: Lanes) -> None:
        super().__init__(lanes)
        self._results = results
        self._simulation, self._timeline = results.simulation, results.simulation.timeline
        # By class when its passes begin.
        self._pass_starts: dict[int, array[int]] = {}
        self._prices: _Prices = {}
        # Callers that describe all spans of a lane ask for each three times, and for the same ranks.
        self._last: tuple[int, int, OpFacts | None] = (-1, -1, None)
        self._cached_ranks_texts: tuple[RankSet | None, tuple[str, ...]] = (None, ())

    # -- in few words ------------------------------------------------------------------

    def summarize(self, track_id: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSummary:
        ranks_texts = self._ranks_texts(ranks)
        if index is None:
            return SpanSummary("", ranks_texts)
        spans = self._lanes.spans(track_id, stream)
        start, end, op = spans.start[index], spans.end[index], spans.op[index]
        facts = self._find_op_facts(track_id, op)
        times = self.format_times(start, end)
        if facts is None:
            over = end >= self._simulation.step_time_ns
            why = "the step of these ranks is over" if over else "ASTRA-sim 1.0 changes its state"
            if not over and not self._simulation.program.queued:
                why = "the first input is on its way through the stages before"
            return SpanSummary(f"idle, {why}", ranks_texts, times, duration(end - start))
        partner = ("", "")
        if facts.end_ns - facts.start_ns != end - start:
            is_copy = facts.group == "offload"
            kind = "transfer" if facts.other_stage is not None else "copy" if is_copy else "collective"
            kind = f"the {kind} itself"
            takes = duration(facts.end_ns - facts.start_ns)
            partner = f"{kind} takes {takes}", f", from {format_clock(facts.start_ns)}"
        what = self._describe(track_id, stream, index, facts)
        return SpanSummary(
            what, ranks_texts, times, duration(end - start), partner, self._explain_duration(facts)
        )

    def _explain_duration(self, facts: OpFacts) -> str:
        return explain_duration(self._simulation, facts.class_id, facts.op, self._prices)

    def _ranks_texts(self, ranks: RankSet) -> tuple[str, ...]:
        """Returns the ranks of a lane in words, in several lengths, the longest first."""
        if self._cached_ranks_texts[0] is not ranks:
            self._cached_ranks_texts = ranks, self._make_ranks_texts(ranks)
        return self._cached_ranks_texts[1]

    def _make_ranks_texts(self, ranks: RankSet) -> tuple[str, ...]:
        short_text = f"rank {ranks.first} x{len(ranks)}"
        rank = f"rank {ranks.first} = {describe_position(self._simulation.layout.position(ranks.first))}"
        if len(ranks) == 1:
            return rank, short_text
        text = ranks.text()
        equal_ranks = f"equal ranks {text if len(text) <= 24 else text[:21] + '...'}"
        return f"{equal_ranks}, {rank}", equal_ranks, short_text

    def _describe(self, track_id: int, stream: str | None, index: int, facts: OpFacts) -> str:
        microbatch = f", micro-batch {facts.microbatch}" if facts.microbatch >= 0 else ""
        phase = PHASE_WORDS[facts.phase]
        if facts.other_stage is not None:
            preposition = "to" if facts.kind == "send" else "from"
            what = "activation" if facts.phase == "fwd" else "gradient"
            op = f"{what} {preposition} stage {facts.other_stage}{microbatch}"
        elif facts.kind == "compute":
            return f"{phase}   {printable_within(facts.name, 40)}{microbatch}"
        else:
            op = f"{facts.kind} ({facts.stream}) of {printable_within(facts.name, 40)}, {phase}{microbatch}"
        if stream is not None:
            return op
        account = self._results.accounts[track_id].account[index]
        if account == BUBBLE:
            return f"bubble   waits for the {op}"
        return f"{'wait' if account == WAIT else 'exposed'}   {op}"

    def volume(self, track_id: int, stream: str | None, index: int) -> str:
        facts = self._find_facts(track_id, stream, index)
        return "" if facts is None else self._volume_text(facts)

    def side_note(self, track_id: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        facts = self._find_facts(track_id, stream, index)
        if facts is None:
            return ""
        if facts.kind != "compute":
            # The words for a collective's time fill the lines below: its pass is among the details.
            words = self._awaited_text(track_id, stream, index, rank)
            return words if wide else words.partition(" = ")[0]
        if wide:
            return self._pass_text(track_id, stream, index)
        a_pass = self._find_pass(track_id, stream, index)
        return "" if a_pass is None else f"pass {duration(a_pass.end_ns - a_pass.start_ns)}"

    def _find_facts(self, track_id: int, stream: str | None, index: int) -> OpFacts | None:
        return self._find_op_facts(track_id, self.op(track_id, stream, index))

    def _find_op_facts(self, track_id: int, op: int) -> OpFacts | None:
        if self._last[0] != track_id or self._last[1] != op:
            self._last = track_id, op, find_op_facts(self._simulation, track_id, op)
        return self._last[2]

    # -- in full -----------------------------------------------------------------------

    def detail_rows(
        self, track_id: int, stream: str | None, index: int, rank: int | None
    ) -> list[tuple[str, str]]:
        spans = self._lanes.spans(track_id, stream)
        start, end = spans.start[index], spans.end[index]
        facts = self._find_facts(track_id, stream, index)
        simulation = self._simulation
        ranks = self._timeline.ranks_of(track_id)
        rank = ranks.first if rank is None else rank
        equal = f"; {len(ranks)} equal ranks: {ranks.text()}" if len(ranks) > 1 else ""
        rows = [
            ("runs", self.format_times_and_length(start, end)),
            ("on", f"{self._lanes.rank_words(rank)}{equal}"),
        ]
        if stream is None:
            rows.insert(0, ("account", ACCOUNTS[self._results.accounts[track_id].account[index]]))
        if facts is None:
            return rows
        rows += [
            *self.dependency_rows(track_id, stream, index, rank),
            ("slack", self._slack_words(track_id, stream, index)),
            ("pass", self._pass_text(track_id, stream, index)),
            ("waits", self._awaited_text(track_id, stream, index, rank)),
        ]
        own_ns = facts.end_ns - facts.start_ns
        if own_ns != end - start:
            times = self.format_times(facts.start_ns, facts.end_ns)
            rows.append((f"{facts.kind} itself", f"{times}, {duration(own_ns)}"))
        rows.append(("takes", self._explain_duration(facts)))
        if facts.group is not None:
            members = RankSet.of(simulation.layout.group_of(facts.group, rank))
            words = f"{facts.group} group of {plural(len(members), 'rank')}: {members.text()}"
            rows.append(("members", words))
        rows.append(("volume", self._volume_text(facts)))
        if facts.microbatch >= 0:
            words = microbatch_words(facts.microbatch, simulation.program.microbatches)
            rows.append(("micro-batch", words))
        if facts.row >= 0:
            workload = simulation.workload
            line = f"line {workload.line[facts.row]} of {printable_within(workload.path)}"
            rows.append(("row", f"{printable_within(facts.name, 80)}, {line}"))
        return [(label, words) for label, words in rows if words]

    def _volume_text(self, facts: OpFacts) -> str:
        """Returns bytes and bandwidths of what is sent, by the time that it takes in this run."""
        bandwidths = facts.bandwidths(self._simulation.layout)
        if bandwidths is None:
            return ""
        algbw, busbw = bandwidths
        if facts.group == "offload":
            return f"{byte_size(facts.bytes)}, {algbw:.2f} GB/s"
        return f"{byte_size(facts.bytes)}, algbw {algbw:.2f} GB/s, busbw {busbw:.2f} GB/s"

    def _pass_text(self, track_id: int, stream: str | None, index: int) -> str:
        """Returns the pass of a span, when it is and how long it takes, in words."""
        a_pass = self._find_pass(track_id, stream, index)
        if a_pass is None:
            return ""
        words = pass_words(a_pass, self._simulation.program.microbatches)
        times = self.format_times(a_pass.start_ns, a_pass.end_ns)
        return f"{words} takes {duration(a_pass.end_ns - a_pass.start_ns)} here: {times}"

    def _find_pass(self, track_id: int, stream: str | None, index: int) -> Pass | None:
        """Returns the pass of a span of the compute stream; None for spans that overlap compute."""
        spans = self._lanes.spans(track_id, stream)
        if stream is None:
            if self._results.accounts[track_id].account[index] in (WAIT, BUBBLE, IDLE):
                return None
        else:
            ops = self._timeline.stage_program(track_id).ops
            op = spans.op[index]
            if op < 0 or not (ops.stream[op] == COMPUTE or ops.blocking[op]):
                return None
        passes = self._results.passes(track_id)
        if track_id not in self._pass_starts:
            self._pass_starts[track_id] = array("q", (a_pass.start_ns for a_pass in passes))
        index_of = find_pass(passes, self._pass_starts[track_id], spans.start[index])
        return None if index_of is None else passes[index_of]

    def _awaited_text(self, track_id: int, stream: str | None, index: int, rank: int | None) -> str:
        """Returns the rank that a wait or bubble is for, in words."""
        if stream is not None:
            return ""
        timeline, layout, lanes = self._timeline, self._simulation.layout, self._lanes
        account = self._results.accounts[track_id].account[index]
        rank = timeline.ranks_of(track_id).first if rank is None else rank
        if account not in (WAIT, BUBBLE):
            return ""
        facts = self._find_facts(track_id, stream, index)
        assert facts is not None
        if account == BUBBLE:
            assert facts.other_stage is not None
            return f"for {lanes.rank_words(layout.neighbour(rank, facts.other_stage))}"
        late = find_late_classes(timeline, self._results.accounts, track_id, index)
        if not late:
            return ""
        assert facts.group is not None
        members = list(layout.group_of(facts.group, rank))
        ranks = [
            member for member in members if any(member in timeline.ranks_of(class_id) for class_id in late)
        ]
        others = f" and {plural(len(ranks) - 1, 'other')}" if len(ranks) > 1 else ""
        return f"for {lanes.rank_words(ranks[0])}{others}: the last of {len(members)} to come"

    def _slack_words(self, track_id: int, stream: str | None, index: int) -> str:
        """Returns how much longer a span may take, or that it is critical; "" where there is no slack."""
        op = self.op(track_id, stream, index)
        if self._results.slacks is None or op < 0:
            return ""
        if stream is None and not self._is_op_itself(track_id, op, index):
            return ""
        return slack_words(self._results.slacks[track_id][op])

    def _is_op_itself(self, track_id: int, op: int, segment: int) -> bool:
        """Returns whether a segment of the accounts is the op itself, and not a wait for it."""
        return self._results.accounts[track_id].edge[segment] >= self._timeline.times.start[track_id][op]

    # -- what waits for what -----------------------------------------------------------

    def dependencies(
        self, track_id: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Dependency]:
        dependencies, op = self._results.dependencies, self.op(track_id, stream, index)
        if stream is None:
            accounts = self._results.accounts[track_id]
            if direction > 0:
                return dependencies.segment_effects(track_id, accounts, index, rank)
            segment_causes = dependencies.segment_causes(track_id, accounts, index, rank)
            is_itself = segment_causes and (segment_causes[0].track_id, segment_causes[0].span) == (
                track_id,
                op,
            )
            # The op runs in this segment: its first cause is itself, the others held it back.
            return (
                segment_causes[1:]
                if is_itself and self._is_op_itself(track_id, op, index)
                else segment_causes
            )
        of, sent_op = self._simulation.trace.span_of(track_id, op)
        of_rank = rank if sent_op == op else None
        if direction < 0:
            return dependencies.causes(of, sent_op, of_rank)
        segment_causes = dependencies.effects(of, sent_op, of_rank)
        return [effect for effect in segment_causes if sent_op == op or effect.track_id == track_id]

    def stream_showing(self, stream: str | None, of: Dependency) -> str | None:
        own_stream = self._results.find_stream(of.track_id, of.span, of.start_ns, of.end_ns)
        # A user on a lane of a stream stays on lanes of streams.
        return COMPUTE_STREAM if own_stream is None and stream == COMPUTE_STREAM else own_stream

    def span_name(self, track_id: int, span: int) -> str:
        """Returns `fwd mlp_row`, `tp all-gather of mlp_row`, `transfer`, `idle`."""
        if span == IDLE_OP:
            return "idle"
        ops = self._timeline.stage_program(track_id).ops
        kind, row = op_kind(self._timeline, track_id, span, with_group=True), ops.row[span]
        name = printable_within(self._simulation.workload.name[row], 24) if row >= 0 else ""
        if kind == "compute":
            return f"{PHASES[ops.phase[span]]} {name}"
        return f"{kind} of {name}" if name else kind
