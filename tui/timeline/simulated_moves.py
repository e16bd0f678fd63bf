"""A simulated run's passes, waits and figures, and all that is known of one of its spans."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simcore.analysis import Results
from simcore.analysis.accounts import ACCOUNTS, BUBBLE, FIRST_EXPOSED, WAIT
from simcore.analysis.facts import OpFacts, op_facts
from simcore.analysis.longest_waits import waited_for
from simcore.analysis.microbatch_passes import Pass, pass_at
from simcore.program.ops import COMPUTE
from simcore.ranks import RankSet, place_words
from simcore.units import byte_size, duration, plural
from tui.frame import cells
from tui.timeline.axis import clock
from tui.timeline.lanes import DRAWN_PHASE
from tui.timeline.moves import Figure, Figures, Stretch, microbatch_words
from tui.timeline.query import Query
from tui.timeline.simulated_words import PHASE_WORDS
from tui.timeline.spans import LaneSource, SpanLane
from tui.timeline.walking import Step, causes, critical, effects, slack_words

if TYPE_CHECKING:
    from tui.timeline.critical import PathLanes

_SHORT = {"forward": "fwd", "input grad": "ig", "weight grad": "wg", "optimizer": "opt"}


def _plain_figure(account: str) -> Figure:
    kind, _, of = account.partition(" ")
    if kind == "compute":
        words = PHASE_WORDS[of]
        return Figure(words, _SHORT.get(words, words), DRAWN_PHASE[of], 0)
    if kind == "exposed":
        return Figure(account, f"exp {of}", of, 0)
    return Figure(account, account, "" if account == "idle" else account, 0)


_FIGURES = tuple(_plain_figure(account) for account in ACCOUNTS)


@dataclass
class SimulatedMoves:
    """Over the results of a run."""

    results: Results
    _pass_starts: dict[int, array[int]] = field(default_factory=dict)

    def stage_of(self, number: int) -> int | None:
        return self.results.simulation.timeline.classes[number].stage

    def problem(self, query: Query) -> str:
        layout = self.results.simulation.layout
        if query.rank is not None and query.rank >= layout.world:
            return f"no rank {query.rank}: ranks are 0 to {layout.world - 1}"
        if query.stage is not None and query.stage >= layout.pp:
            return f"no stage {query.stage}: stages are 0 to {layout.pp - 1}"
        count = self.results.simulation.program.microbatches
        if query.microbatch is not None and query.microbatch >= count:
            if not count:
                return "this run has no micro-batches"
            return f"no micro-batch {query.microbatch}: micro-batches are 0 to {count - 1}"
        return ""

    def names(self) -> Collection[str]:
        return set(self.results.simulation.workload.name)

    def rank_words(self, rank: int) -> str:
        return f"rank {rank} = {place_words(self.results.simulation.layout.position(rank))}"

    def passes(self, number: int) -> Sequence[Stretch]:
        return [
            Stretch(one.start_ns, one.end_ns, self._pass_words(one)) for one in self.results.passes(number)
        ]

    def _pass_words(self, one: Pass) -> str:
        words = microbatch_words(one.microbatch, self.results.simulation.program.microbatches)
        part = f", part {one.part + 1} of {one.parts}" if one.parts > 1 else ""
        return f"{one.direction} of {words}{part}"

    def waits(self, number: int) -> Sequence[int]:
        return self.results.waits(number)

    def all_waits(self) -> Sequence[tuple[int, int]]:
        return self.results.all_waits

    def waited_ns(self, number: int, index: int) -> int:
        edge = self.results.accounts[number].edge
        return edge[index + 1] - edge[index]

    @property
    def order(self) -> Sequence[str]:
        return [one.words for one in _FIGURES]

    def figures(self, number: int, first_ns: int, last_ns: int) -> Figures:
        found = self.results.ranges.of_class(number, first_ns, last_ns)
        return _figures(found, last_ns - first_ns, 1)

    def all_figures(self, first_ns: int, last_ns: int) -> Figures:
        world = self.results.simulation.layout.world
        found = self.results.ranges.of_all(first_ns, last_ns)
        return _figures(found, (last_ns - first_ns) * world, world)

    def longest(self, number: int, first_ns: int, last_ns: int) -> tuple[int, Figure | None]:
        found, account = self.results.ranges.longest(number, first_ns, last_ns)
        return found.count, _FIGURES[account]._replace(ns=found.ns) if found.index >= 0 else None

    # -- one span ----------------------------------------------------------------------

    def volume(self, lane: SpanLane, index: int) -> str:
        facts = self._facts(lane, index)
        return "" if facts is None else self._volume(facts)

    def more(self, lane: SpanLane, index: int, wide: bool, rank: int | None) -> str:
        facts = self._facts(lane, index)
        if facts is None:
            return ""
        if facts.kind != "compute":
            # How a collective's time comes about fills the lines below: its pass is among the details.
            words = self._for_whom(lane, index, rank)
            return words if wide else words.partition(" = ")[0]
        if wide:
            return self._in_pass(lane, index)
        one = self._pass_of(lane, index)
        return "" if one is None else f"pass {duration(one.end_ns - one.start_ns)}"

    def walk(self, lane: SpanLane, index: int, rank: int | None, direction: int) -> Sequence[Step]:
        return (effects if direction > 0 else causes)(self.results, lane, index, rank)

    def critical(self, time_ns: int, direction: int) -> Step | None:
        return critical(self.results, time_ns, direction)

    def path(self, source: LaneSource) -> PathLanes:
        from tui.timeline.simulated_path import simulated_path

        return simulated_path(self.results, source)

    def all_of(self, lane: SpanLane, index: int, rank: int | None) -> list[tuple[str, str]]:
        spans = lane.spans
        start, end = spans.start[index], spans.end[index]
        facts = self._facts(lane, index)
        simulation = self.results.simulation
        ranks = simulation.timeline.classes[lane.number].ranks
        rank = ranks.first if rank is None else rank
        equal = f"; {len(ranks)} equal ranks: {ranks.text()}" if len(ranks) > 1 else ""
        found = [
            ("runs", f"{clock(start)} .. {clock(end)}, {duration(end - start)} ({end - start} ns)"),
            ("on", f"{self.rank_words(rank)}{equal}"),
        ]
        if lane.stream is None:
            found.insert(0, ("account", ACCOUNTS[self.results.accounts[lane.number].account[index]]))
        if facts is None:
            return found
        found += [
            (label, step.words)
            for label, direction in (("[ waited for", -1), ("] holds back", 1))
            for step in self.walk(lane, index, rank, direction)[:3]
        ]
        found += [
            ("slack", slack_words(self.results, lane, index)),
            ("pass", self._in_pass(lane, index)),
            ("waits", self._for_whom(lane, index, rank)),
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
            words = f"{cells(facts.name, 80)}, line {workload.line[facts.row]} of {cells(workload.path)}"
            found.append(("row", words))
        return [(label, words) for label, words in found if words]

    def _facts(self, lane: SpanLane, index: int) -> OpFacts | None:
        return op_facts(self.results.simulation, lane.number, lane.spans.op[index])

    def _in_pass(self, lane: SpanLane, index: int) -> str:
        """The pass of a span, when it is and how long it takes."""
        one = self._pass_of(lane, index)
        if one is None:
            return ""
        times = f"{clock(one.start_ns)} .. {clock(one.end_ns)}"
        return f"{self._pass_words(one)} takes {duration(one.end_ns - one.start_ns)} here: {times}"

    def _pass_of(self, lane: SpanLane, index: int) -> Pass | None:
        """The pass that a span of the compute stream is a part of; what runs beside it is of none."""
        number, spans = lane.number, lane.spans
        if lane.stream is None:
            account = self.results.accounts[number].account[index]
            if not (account < FIRST_EXPOSED or FIRST_EXPOSED <= account < WAIT):
                return None
        else:
            ops = self.results.simulation.timeline.stage_program(number).ops
            op = spans.op[index]
            if op < 0 or not (ops.stream[op] == COMPUTE or ops.blocking[op]):
                return None
        passes = self.results.passes(number)
        if number not in self._pass_starts:
            self._pass_starts[number] = array("q", (one.start_ns for one in passes))
        found = pass_at(passes, self._pass_starts[number], spans.start[index])
        return None if found is None else passes[found]

    def _for_whom(self, lane: SpanLane, index: int, rank: int | None) -> str:
        """The rank that a wait or bubble is for."""
        if lane.stream is not None:
            return ""
        timeline, layout = self.results.simulation.timeline, self.results.simulation.layout
        account = self.results.accounts[lane.number].account[index]
        rank = timeline.classes[lane.number].ranks.first if rank is None else rank
        if account == BUBBLE:
            facts = self._facts(lane, index)
            assert facts is not None
            assert facts.other_stage is not None
            return f"for {self.rank_words(layout.neighbour(rank, facts.other_stage))}"
        late = waited_for(timeline, self.results.accounts, lane.number, index)
        if account != WAIT or not late:
            return ""
        kind = self._facts(lane, index)
        assert kind is not None
        assert kind.group is not None
        members = list(layout.group_of(kind.group, rank))
        ranks = [one for one in members if any(one in timeline.classes[number].ranks for number in late)]
        others = f" and {plural(len(ranks) - 1, 'other')}" if len(ranks) > 1 else ""
        return f"for {self.rank_words(ranks[0])}{others}: the last of {len(members)} to come"

    def _volume(self, facts: OpFacts) -> str:
        """Bytes and bandwidths of what is sent, by the time it takes in this run."""
        bandwidths = facts.bandwidths(self.results.simulation.layout)
        if bandwidths is None:
            return ""
        algbw, busbw = bandwidths
        return f"{byte_size(facts.bytes)}, algbw {algbw:.2f} GB/s, busbw {busbw:.2f} GB/s"


def _figures(found: Sequence[int], room_ns: int, ranks: int) -> Figures:
    pairs = zip(_FIGURES, found, strict=True)
    return Figures(tuple(one._replace(ns=ns) for one, ns in pairs if ns), room_ns, ranks)
