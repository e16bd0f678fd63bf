"""The sentence on packed sequences of which some take more attention than others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simcore.analysis.equal_ranks import LongestWait, find_longest_wait
from simcore.collectives import collectives_of
from simcore.program.ops import ComputeCost
from simcore.ranks import RankSet
from simcore.words.sentences.model import RunSums, Weighed, Who
from simcore.workload.model import GroupKind

# From this share of the step on uneven sequences come before the compute and network that they affect.
_BLAMED = 0.1
_ATTENTION = "attention_core"


class UnevenSequences(Weighed, frozen=True):
    """The dp ranks whose attention takes longest, and the ranks that wait for them, `ns` each."""

    rule = "uneven-sequences"

    replicas: RankSet
    """The dp ranks."""
    of_mean: float
    """Their attention over the mean of all dp ranks."""
    early: RankSet
    """The ranks that wait longest for them."""
    kind: GroupKind
    """The kind of group of the collectives in which they wait."""
    even_ns: int | None
    """The step with attention spread evenly; None where it is not known."""

    @property
    def text(self) -> str:
        several = len(self.replicas) > 1
        who, its, it = ("ranks", "their", "them") if several else ("rank", "its", "it")
        wait, each = ("wait", " each") if len(self.early) > 1 else ("waits", "")
        return (
            f"Attention of dp {who} {self.replicas.words()} takes {self.of_mean:.2f} times the mean, as "
            f"{its} sequences are longer: {Who(self.early).inside} {wait} {self.figure(self.ns)}{each} for "
            f"{it} in {collectives_of(self.kind)}{_even_words(self, self.even_ns)}."
        )


class LongestMicrobatch(Weighed, frozen=True):
    """The micro-batch whose attention takes longest, where no ranks wait long for a whole dp rank; `ns` is
    how much longer than the mean.
    """

    rule = "uneven-sequences"

    microbatch: int
    replica: int
    of_mean: float
    """Its attention over that of the mean micro-batch."""
    even_ns: int | None
    """The step with attention spread evenly; None where it is not known."""

    @property
    def text(self) -> str:
        return (
            f"Micro-batch {self.microbatch} of dp rank {self.replica} has the longest sequences: its "
            f"attention takes {self.of_mean:.2f} times the mean, {self.figure(self.ns)} more"
            f"{_even_words(self, self.even_ns)}."
        )


def _even_words(sentence: Weighed, even_ns: int | None) -> str:
    return "" if even_ns is None else f"; spread evenly, the step would be {sentence.change(even_ns)}"


def find_uneven_sequences(run: RunSums) -> Iterator[UnevenSequences | LongestMicrobatch]:
    """Yields a sentence where attention of packed sequences differs."""
    packings = run.simulation.program.packings
    if not packings:
        return
    waits = run.results.class_waits
    longest = find_longest_wait(run.classes, waits) if waits else None
    uneven = None if longest is None else find_late_replicas(run, longest)
    even_ns = run.results.variants.step_ns_with_even_sequences
    lost_ns = run.mean_ns["wait"] if even_ns is None else max(run.step_ns - even_ns, 0)
    fault = run.is_worth_saying(lost_ns, _BLAMED)
    if longest is not None and uneven is not None:
        yield UnevenSequences(
            step_ns=run.step_ns, ns=longest.ns, cause="uneven sequences", lost_ns=lost_ns, fault=fault,
            replicas=uneven[0], of_mean=uneven[1], early=longest.early, kind=longest.kind, even_ns=even_ns,
        )  # fmt: skip
        return
    by_stage = [_attention_ns(run, stage) for stage in range(run.simulation.layout.pp)]
    ns_of = max(by_stage, key=max)
    each = [
        (ns_of[packing], -replica, -microbatch)
        for replica, of_one in enumerate(packings)
        for microbatch, packing in enumerate(of_one)
    ]
    mean = sum(ns for ns, _, _ in each) / len(each)
    ns, replica, microbatch = max(each)
    if run.is_worth_saying(round(ns - mean)) or run.is_worth_saying(lost_ns):
        yield LongestMicrobatch(
            step_ns=run.step_ns, ns=round(ns - mean), cause="uneven sequences", lost_ns=lost_ns, fault=fault,
            microbatch=-microbatch, replica=-replica, of_mean=ns / mean, even_ns=even_ns,
        )  # fmt: skip


def find_late_replicas(run: RunSums, longest: LongestWait) -> tuple[RankSet, float] | None:
    """Returns the dp ranks of equal sequences for which other dp ranks wait, and their attention over the
    mean; None where a wait has another reason.
    """
    packings, layout = run.simulation.program.packings, run.simulation.layout
    slow = run.simulation.parameters.slow_rank
    if not packings or any(int(text.partition("=")[0]) in longest.late for text in slow):
        return None
    late, early = (
        {layout.position(rank)[1] // layout.cp for rank in ranks} for ranks in (longest.late, longest.early)
    )
    if not run.is_worth_saying(longest.ns) or late & early or len({packings[one] for one in late}) > 1:
        return None
    ns_of = _attention_ns(run, layout.position(longest.late.first)[2])
    sums = [sum(ns_of[packing] for packing in of_one) for of_one in packings]
    of_mean = sums[min(late)] * len(sums) / max(sum(sums), 1)
    return (RankSet.of(late), of_mean) if of_mean > 1 else None


def _attention_ns(run: RunSums, stage: int) -> Sequence[int]:
    """Returns the ns of attention in each of the different micro-batches on a stage, as priced."""
    program, names = run.simulation.program, run.simulation.workload.name
    ops = program.stages[stage].ops
    sums = [0] * (1 + max(map(max, program.packings)))
    for op, row in enumerate(ops.row):
        cost = program.costs[ops.cost[op]]
        if ops.microbatch[op] == 0 and names[row] == _ATTENTION and isinstance(cost, ComputeCost):
            sums = [ns + cost.ns_of(0, packing) for packing, ns in enumerate(sums)]
    return [ns // program.steps for ns in sums]
