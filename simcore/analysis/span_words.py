"""What is said of a span of a simulated run: what it is, whose, when, where its length comes from, what it
waited for and what it holds back.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from simcore.analysis.accounts import (
    ACCOUNTS,
    BUBBLE,
    IDLE,
    IDLE_OP,
    WAIT,
    received_op,
)
from simcore.analysis.alike import waited_for
from simcore.analysis.dependencies import Dependency, op_kind
from simcore.analysis.microbatch_passes import Pass, pass_at
from simcore.analysis.origins import OpFacts, op_facts
from simcore.diagnostics import in_short
from simcore.program.ops import COMPUTE, PHASES, STREAMS, TO_NEXT
from simcore.ranks import RankSet, place_words
from simcore.run.lanes import COMPUTE_STREAM, RunLanes, Said, Step, clock, microbatch_words
from simcore.units import byte_size, duration, plural

if TYPE_CHECKING:
    from simcore.analysis.finished import Finished

PHASE_WORDS = {
    "fwd": "forward", "ig": "input grad", "wg": "weight grad", "opt": "optimizer", "recompute": "recompute",
}  # fmt: skip
_PIPELINE = "pp"


def pass_words(one: Pass, microbatches: int) -> str:
    """`forward of micro-batch 2 (3rd of 16), part 1 of 2`."""
    part = f", part {one.part + 1} of {one.parts}" if one.parts > 1 else ""
    return f"{one.direction} of {microbatch_words(one.microbatch, microbatches)}{part}"


class SimulatedSpanWords:
    """`SpanWords` of a simulated run, over its lanes."""

    def __init__(self, results: Finished, lanes: RunLanes) -> None:
        self._results, self._lanes = results, lanes
        self._simulation, self._timeline = results.simulation, results.simulation.timeline
        # Of each class, when its passes begin.
        self._pass_starts: dict[int, array[int]] = {}

    # -- in few words ------------------------------------------------------------------

    def said(self, number: int, stream: str | None, index: int | None, ranks: RankSet) -> Said:
        whose = self._whose(ranks)
        if index is None:
            return Said("", whose)
        spans = self._lanes.spans(number, stream)
        start, end, op = spans.start[index], spans.end[index], spans.op[index]
        facts = op_facts(self._simulation, number, op)
        times = f"{clock(start)} .. {clock(end)}"
        if facts is None:
            over = end >= self._simulation.step_time_ns
            why = "the step of these ranks is over" if over else "ASTRA-sim 1.0 changes its state"
            return Said(f"idle, {why}", whose, times, duration(end - start))
        itself = ("", "")
        if facts.end_ns - facts.start_ns != end - start:
            kind = "the transfer itself" if facts.other_stage is not None else "the collective itself"
            takes = duration(facts.end_ns - facts.start_ns)
            itself = f"{kind} takes {takes}", f", from {clock(facts.start_ns)}"
        what = self._what(number, stream, index, facts)
        return Said(what, whose, times, duration(end - start), itself, facts.origin)

    def _whose(self, ranks: RankSet) -> tuple[str, ...]:
        """The ranks of a lane in words, the most of them first."""
        few = f"rank {ranks.first} x{len(ranks)}"
        place = f"rank {ranks.first} = {place_words(self._simulation.layout.position(ranks.first))}"
        if len(ranks) == 1:
            return place, few
        text = ranks.text()
        alike = f"ranks {text if len(text) <= 24 else text[:21] + '...'} alike"
        return f"{alike}, {place}", alike, few

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
        one = self._pass_of(number, stream, index)
        return "" if one is None else f"pass {duration(one.end_ns - one.start_ns)}"

    def _facts(self, number: int, stream: str | None, index: int) -> OpFacts | None:
        return op_facts(self._simulation, number, self._lanes.spans(number, stream).op[index])

    # -- in full -----------------------------------------------------------------------

    def all_of(self, number: int, stream: str | None, index: int, rank: int | None) -> list[tuple[str, str]]:
        spans = self._lanes.spans(number, stream)
        start, end = spans.start[index], spans.end[index]
        facts = self._facts(number, stream, index)
        simulation = self._simulation
        ranks = self._timeline.ranks_of(number)
        rank = ranks.first if rank is None else rank
        equal = f"; {len(ranks)} equal ranks: {ranks.text()}" if len(ranks) > 1 else ""
        found = [
            ("runs", f"{clock(start)} .. {clock(end)}, {duration(end - start)} ({end - start} ns)"),
            ("on", f"{self._lanes.rank_words(rank)}{equal}"),
        ]
        if stream is None:
            found.insert(0, ("account", ACCOUNTS[self._results.accounts[number].account[index]]))
        if facts is None:
            return found
        found += [
            (label, step.words)
            for label, direction in (("[ waited for", -1), ("] holds back", 1))
            for step in self.walk(number, stream, index, rank, direction)[:3]
        ]
        found += [
            ("slack", self._slack_words(number, stream, index)),
            ("pass", self._in_pass(number, stream, index)),
            ("waits", self._for_whom(number, stream, index, rank)),
        ]
        itself = facts.end_ns - facts.start_ns
        if itself != end - start:
            times = f"{clock(facts.start_ns)} .. {clock(facts.end_ns)}, {duration(itself)}"
            found.append((f"{facts.kind} itself", times))
        found.append(("takes", facts.origin))
        if facts.group is not None:
            members = RankSet.of(simulation.layout.group_of(facts.group, rank))
            words = f"{facts.group} group of {plural(len(members), 'rank')}: {members.text()}"
            found.append(("members", words))
        found.append(("volume", self._volume(facts)))
        if facts.microbatch >= 0:
            words = microbatch_words(facts.microbatch, simulation.program.microbatches)
            found.append(("micro-batch", words))
        if facts.row >= 0:
            workload = simulation.workload
            line = f"line {workload.line[facts.row]} of {in_short(workload.path)}"
            found.append(("row", f"{in_short(facts.name, 80)}, {line}"))
        return [(label, words) for label, words in found if words]

    def _volume(self, facts: OpFacts) -> str:
        """Bytes and bandwidths of what is sent, by the time it takes in this run."""
        bandwidths = facts.bandwidths(self._simulation.layout)
        if bandwidths is None:
            return ""
        algbw, busbw = bandwidths
        return f"{byte_size(facts.bytes)}, algbw {algbw:.2f} GB/s, busbw {busbw:.2f} GB/s"

    def _in_pass(self, number: int, stream: str | None, index: int) -> str:
        """The pass of a span, when it is and how long it takes."""
        one = self._pass_of(number, stream, index)
        if one is None:
            return ""
        words = pass_words(one, self._simulation.program.microbatches)
        times = f"{clock(one.start_ns)} .. {clock(one.end_ns)}"
        return f"{words} takes {duration(one.end_ns - one.start_ns)} here: {times}"

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
            self._pass_starts[number] = array("q", (one.start_ns for one in passes))
        found = pass_at(passes, self._pass_starts[number], spans.start[index])
        return None if found is None else passes[found]

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
        ranks = [one for one in members if any(one in timeline.ranks_of(number) for number in late)]
        others = f" and {plural(len(ranks) - 1, 'other')}" if len(ranks) > 1 else ""
        return f"for {lanes.rank_words(ranks[0])}{others}: the last of {len(members)} to come"

    def _slack_words(self, number: int, stream: str | None, index: int) -> str:
        """How much longer a span may take, or that it is critical; "" where there is no slack."""
        op = self._lanes.spans(number, stream).op[index]
        if self._results.slacks is None or op < 0:
            return ""
        if stream is None and not self._is_shown(number, op, index):
            return ""
        slack = self._results.slacks[number][op]
        return f"slack {duration(slack)}, not critical" if slack else "on a critical path"

    def _is_shown(self, number: int, op: int, segment: int) -> bool:
        """Whether a segment of the accounts is the op itself, and not a wait for it."""
        return self._results.accounts[number].edge[segment] >= self._timeline.times.start[number][op]

    # -- what waits for what -----------------------------------------------------------

    def walk(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Step]:
        find = self._effects if direction > 0 else self._causes
        return [self._step(number, stream, one) for one in find(number, stream, index, rank)]

    def _causes(self, number: int, stream: str | None, index: int, rank: int | None) -> list[Dependency]:
        """What a span waited for, what bound it first; nothing for what starts with the step."""
        dependencies = self._results.dependencies
        if stream is None:
            accounts = self._results.accounts[number]
            found = dependencies.segment_causes(number, accounts, index, rank)
            op = accounts.op[index]
            if found and (found[0].number, found[0].op) == (number, op) and self._is_shown(number, op, index):
                # It runs here: what is asked for is what held it back.
                return found[1:]
            return found
        op = self._lanes.spans(number, stream).op[index]
        if op >= 0:
            return dependencies.causes(number, op, rank)
        sender, sent = self._timeline.received(number, received_op(op))
        return dependencies.causes(sender, sent)

    def _effects(self, number: int, stream: str | None, index: int, rank: int | None) -> list[Dependency]:
        dependencies = self._results.dependencies
        if stream is None:
            return dependencies.segment_effects(number, self._results.accounts[number], index, rank)
        op = self._lanes.spans(number, stream).op[index]
        if op >= 0:
            return dependencies.effects(number, op, rank)
        sender, sent = self._timeline.received(number, received_op(op))
        return [one for one in dependencies.effects(sender, sent) if one.number == number]

    def critical(self, time_ns: int, direction: int) -> Step | None:
        path = self._results.critical_path
        index = path.at(time_ns) + direction
        if not 0 <= index < len(path):
            return None
        segment = path.segment(index)
        what = segment.kind if segment.op == IDLE_OP else self._named(segment.number, segment.op)
        words = f"critical path {index + 1} of {len(path)}: {what}, {duration(segment.ns)}; {segment.reason}"
        stream = self._shown_in(segment.number, segment.op, segment.start_ns, segment.end_ns)
        return Step(segment.number, stream, segment.start_ns, segment.rank, words)

    def _step(self, number: int, stream: str | None, one: Dependency) -> Step:
        what = "idle" if one.op == IDLE_OP else self._named(one.number, one.op)
        shown_in = self._shown_in(one.number, one.op, one.start_ns, one.end_ns)
        if stream == COMPUTE_STREAM and shown_in is None:
            # Someone who looks at streams stays with streams.
            shown_in = COMPUTE_STREAM
        stage, own = self._timeline.stage_of(one.number), self._timeline.stage_of(number)
        where = ""
        if one.number != number:
            where = f", rank {one.rank}" + (f" of stage {stage}" if stage != own else "")
        words = f"{what}{where}, {duration(one.end_ns - one.start_ns)}: {one.reason}"
        return Step(one.number, shown_in, one.start_ns, one.rank, words)

    def _named(self, number: int, op: int) -> str:
        """`fwd mlp_row`, `tp all-gather of mlp_row`, `transfer`."""
        ops = self._timeline.stage_program(number).ops
        kind, row = op_kind(self._simulation, number, op, with_group=True), ops.row[op]
        name = in_short(self._simulation.workload.name[row], 24) if row >= 0 else ""
        if kind == "compute":
            return f"{PHASES[ops.phase[op]]} {name}"
        return f"{kind} of {name}" if name else kind

    def _shown_in(self, number: int, op: int, start_ns: int, end_ns: int) -> str | None:
        """The stream of the lane that shows an op; None for the lane of the class, where compute does it or
        stands still for it.
        """
        if op == IDLE_OP:
            return None
        accounts = self._results.accounts[number]
        segment = accounts.at(start_ns)
        if accounts.op[segment] == op and accounts.edge[segment] <= start_ns < end_ns:
            return None
        stream = self._timeline.stage_program(number).ops.stream[op]
        if stream == COMPUTE:
            return None
        return STREAMS[stream] if stream < TO_NEXT else _PIPELINE
