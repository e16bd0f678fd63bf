"""The sentences on the cost of a pipeline: empty slots, unequal stages, stages that finish early."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.analysis.blocks import UnequalBlocks, find_surplus_blocks, find_unequal_blocks, format_lines
from simcore.analysis.equal_ranks import find_equal
from simcore.program.schedules import SCHEDULES
from simcore.records import NamedTuple
from simcore.trace.changes import Change
from simcore.units import change_percent, duration, join_names, plural
from simcore.words.sentences.model import GRADIENT_KINDS, RunSums, Weighed, Who, name_stages

# The slots are counted where they give the lost time to within this share.
_SLOTS_WITHIN = 0.1
# Accounts of what each rank does only once in a step.
_OUTSIDE_PASSES = ("compute opt", *(f"exposed {kind}" for kind in GRADIENT_KINDS))
# The most surplus blocks whose layers are named.
_MOST_NAMED = 4
# Ranks that wait at least this share of the longest wait are named with those that wait longest.
_AS_LONG = 0.99


class Slots(NamedTuple):
    """The slots that a schedule leaves empty."""

    schedule: str
    stages: int
    microbatches: int
    chunks: int
    """The passes of a micro-batch on each stage."""
    is_uneven: bool
    """Whether the micro-batches are unequal, and the slots are those of equal ones."""

    @property
    def words(self) -> str:
        """The slots in words: `with 16 stages and 16 micro-batches 1f1b leaves 15 of 31 slots empty ...`."""
        chunks = f" of {self.chunks} chunks each" if self.chunks > 1 else ""
        empty, full = self.stages - 1, self.microbatches * self.chunks
        empty_words = f"{empty} of {full + empty} slots empty on each"
        if self.is_uneven:
            return (
                f"the micro-batches are unequal, and with {self.stages} stages{chunks} and "
                f"{self.microbatches} equal ones {self.schedule} would leave {empty_words}"
            )
        return (
            f"with {self.stages} stages{chunks} and {plural(self.microbatches, 'micro-batch')} "
            f"{self.schedule} leaves {empty_words}, as bubble or, once done, idle"
        )


class Bubble(Weighed, frozen=True):
    """How long stages wait for others; `ns` is the longest wait."""

    rule = "bubble"

    mean_bubble_ns: int
    """The mean of all ranks."""
    least_ns: int
    """The shortest wait of the ranks in `who`."""
    who: Who | None
    """The ranks that wait longest; None: all."""
    stages: int
    """How many stages there are."""
    slots: Slots | None
    """The empty slots; None where they do not explain the time."""
    equal_in: str
    """In what all stages are equal, so that it is no cause: `compute` or `collectives`; "" for neither."""
    is_assumed: bool
    """Whether they are equal by a stage layout that is assumed."""
    other_ns: int | None
    """The step with the other stage layout; None where it is not known."""

    @property
    def text(self) -> str:
        up_to = "up to " if duration(self.least_ns) != duration(self.ns) else ""
        longest = f"{up_to}{self.figure(self.ns)}"
        if self.who is None:
            who, others = ("Both", "the other") if self.stages == 2 else ("All", "the others")
            text = f"{who} stages wait about as long for {others}, {longest}"
        else:
            # The neighbour whose data they wait for is not the cause: no other stage is named.
            mean = self.figure(self.mean_bubble_ns)
            text = f"Ranks wait {mean} for other stages on average, {self.who.inside} longest, {longest}"
        text += "" if self.slots is None else f": {self.slots.words}"
        if self.equal_in:
            how = "compute alike" if self.equal_in == "compute" else "run the same collectives"
            text += f"{'. All' if self.slots is None else '; all'} stages {how}{self._assumed()}"
        return f"{text}."

    def _assumed(self) -> str:
        if not self.is_assumed:
            return ""
        on_each = ", embedding and loss assumed on each"
        if self.other_ns is None:
            return on_each
        # The note on the layout has the step itself; 80 columns have no room for both.
        same = self.other_ns == self.step_ns
        change = "as long" if same else change_percent(self.step_ns, self.other_ns)
        return f"{on_each} (on first and last alone: {change})"


def find_bubble(run: RunSums) -> Iterator[Bubble]:
    """Yields a sentence on a pipeline where bubble and idle of the mean rank are worth saying."""
    lost = run.mean_ns["bubble"] + run.mean_ns["idle"] if run.simulation.program.pipelined else 0
    bubbles = [account.bubble_ns for account in run.accounts]
    worst = max(bubbles)
    if not run.is_worth_saying(lost) or not worst:
        return
    longest = [class_id for class_id, ns in enumerate(bubbles) if ns >= _AS_LONG * worst]
    equal_in = "compute" if run.has_equal_stages else ""
    if not run.computes:
        # Placeholders are equal whatever a stage does.
        equal_in = "collectives" if run.has_same_collectives else ""
    # With so little compute stages are equal by any layout: see `assumed_compute_ns`.
    little = 100 * run.results.assumed_compute_ns <= max(run.stage_busy_ns)
    yield Bubble(
        step_ns=run.step_ns, ns=worst, cause="bubble", lost_ns=run.bubble_ns,
        mean_bubble_ns=run.mean_ns["bubble"],
        least_ns=min(bubbles[class_id] for class_id in longest),
        who=None if len(longest) == len(bubbles) else name_stages(run, longest),
        stages=run.simulation.layout.pp, slots=_slots(run, lost), equal_in=equal_in,
        is_assumed=run.results.is_layout_assumed and not (run.computes and little),
        other_ns=run.results.other_layout_ns,
    )  # fmt: skip


def _slots(run: RunSums, lost: int) -> Slots | None:
    """Returns the empty slots where their count gives the time lost; else None.

    For unequal micro-batches it returns those of equal ones.
    """
    simulation = run.simulation
    program, stages = simulation.program, simulation.layout.pp
    if not program.rules.bubble_slots or not program.microbatches:
        return None
    full = program.microbatches * program.virtual_stages
    # What stands before and behind the passes leaves no slots: of seed 002 with one micro-batch it is 45 % of
    # what ranks work, and without it the slots are the time lost to 0.1 %.
    passes = run.step_ns - lost - sum(run.mean_ns[name] for name in _OUTSIDE_PASSES)
    expected = passes * (stages - 1) / full
    slots = Slots(program.schedule, stages, program.microbatches, program.virtual_stages, is_uneven=False)
    if abs(lost - expected) <= _SLOTS_WITHIN * expected:
        return slots
    needs_chunks = program.schedule in SCHEDULES and SCHEDULES[program.schedule].chunks is None
    if _find_uneven(run) is None or (needs_chunks and program.virtual_stages < 2):
        # One chunk is nothing to interleave, and no example of slots that would be empty.
        return None
    return slots._replace(is_uneven=True)


class UnbalancedStages(Weighed, frozen=True):
    """A stage computes longer than the others, which wait for it; `ns` is how much longer than
    balanced ones.
    """

    rule = "unbalanced-stages"

    stage: int
    busy_ns: int
    others_ns: int

    @property
    def text(self) -> str:
        return (
            f"Stage {self.stage} computes {duration(self.busy_ns)}, the others {duration(self.others_ns)} on "
            f"average and wait for it: balanced, each would compute {duration(self.busy_ns - self.ns)}."
        )


def find_unbalanced(run: RunSums) -> Iterator[UnbalancedStages]:
    """Yields a sentence where the busiest stage computes much more than the mean of all."""
    busy, excess = run.stage_busy_ns, run.unbalanced_ns
    simulation = run.simulation
    if simulation.workload.header.inference and simulation.program.microbatches == 1:
        # Its stages come one after another: none waits for the longest.
        return
    if run.is_worth_saying(excess):
        most = busy.index(max(busy))
        others = [ns for stage, ns in enumerate(busy) if stage != most]
        yield UnbalancedStages(
            step_ns=run.step_ns, ns=excess, cause="unbalanced stages", lost_ns=excess, stage=most,
            busy_ns=busy[most], others_ns=round(sum(others) / len(others)),
        )  # fmt: skip


class Idle(Weighed, frozen=True):
    """The ranks that finish long before the step ends."""

    rule = "idle"

    who: Who

    @property
    def text(self) -> str:
        are = "are" if self.who.is_several else "is"
        return f"{self.who.words} {are} done {self.figure(self.ns)} before the step ends."


def find_idle(run: RunSums) -> Iterator[Idle]:
    """Yields a sentence from a twentieth of the step on, where no queue makes ranks wait."""
    idle_ns = [account.idle_ns for account in run.accounts]
    worst = max(idle_ns)
    # Stages of an inference step are done one after another.
    if run.simulation.workload.header.inference:
        return
    if run.is_worth_saying(worst, 0.05) and not run.simulation.program.queued:
        yield Idle(step_ns=run.step_ns, ns=worst, who=name_stages(run, find_equal(idle_ns, worst)))


class UnequalMicrobatches(Weighed, frozen=True):
    """The micro-batches of a pipeline are unequal: the longest and the shortest."""

    rule = "uneven-microbatches"

    blocks: UnequalBlocks
    """The two micro-batches, and how many times as long the longest computes."""
    layers: tuple[int, int]
    """Their numbers of layers."""
    lines: tuple[str, str]
    """Their lines in the file; "" where these are not known."""

    @property
    def text(self) -> str:
        most, least, factor = self.blocks
        longer, shorter = (
            f"{microbatch}{f' ({lines})' if lines else ''}"
            for microbatch, lines in zip((most, least), self.lines, strict=True)
        )
        text = f"Micro-batch {longer} computes {factor:.1f} times as long as {shorter}"
        if self.layers[0] != self.layers[1]:
            text += f": it has {plural(self.layers[0], 'layer')}, the other {self.layers[1]}"
        return text + ". A mean of unequal micro-batches says little; compare steps by the same work."


class SurplusMicrobatches(Weighed, frozen=True):
    """The rows make more micro-batches than the header declares; `ns` is the step without these."""

    rule = "uneven-microbatches"

    microbatches: int
    """How many micro-batches the header declares."""
    layers: int
    """How many layers each of these has."""
    more_layers: tuple[int, ...]
    """The layers of each surplus micro-batch."""
    more: str
    """The lines of the surplus ones."""
    copied: str
    """The lines that these repeat; "" where they repeat none."""
    flags: str
    """The flags that leave them out."""

    @property
    def text(self) -> str:
        layers = " and ".join(map(str, self.more_layers[:_MOST_NAMED]))
        layers += " ..." if len(self.more_layers) > _MOST_NAMED else ""
        one = layers == "1"
        same = f", which {'repeats' if one else 'repeat'} {self.copied}" if self.copied else ""
        sizes = [str(size) for size in dict.fromkeys((self.layers, *self.more_layers))]
        each = "one" if self.microbatches == 1 else f"{self.microbatches}"
        return (
            f"Its rows make {self.microbatches + len(self.more_layers)} micro-batches, of "
            f"{join_names(sizes)} "
            f"layers; its header asks for {each} with {self.layers} ({self.flags}: {duration(self.ns)}). "
            f"{self.more[0].upper()}{self.more[1:]} are {plural(len(self.more_layers), 'more block')}, of "
            f"{layers} {'layer' if one else 'layers'}{same}."
        )


def _find_uneven(run: RunSums) -> UnequalBlocks | None:
    """Returns how unequal the micro-batches are; None where they count as equal.

    None, too, where scaled times decide and the header declares all micro-batches.
    """
    parameters = run.simulation.parameters
    scaled = parameters.layer_scale or parameters.time_scale
    if scaled and find_surplus_blocks(run.simulation) is None:
        return None
    return find_unequal_blocks(run.simulation)


def find_uneven_microbatches(run: RunSums) -> Iterator[UnequalMicrobatches | SurplusMicrobatches]:
    """Yields a sentence where the micro-batches of a pipeline are unequal.

    Where the header of the file declares fewer, it states the step without the others, by a further run.
    """
    uneven = _find_uneven(run)
    if uneven is None:
        return
    workload, structure = run.simulation.workload, run.simulation.program.structure
    extra = find_surplus_blocks(run.simulation)
    if extra is not None:
        more, header_fields = format_lines(workload, extra.surplus_rows), extra.header_fields(workload)
        ns = run.step_with(**header_fields)
        if more and ns is not None:
            yield SurplusMicrobatches(
                step_ns=run.step_ns,
                ns=ns,
                cause="the file contradicts itself",
                fault=True,
                microbatches=extra.microbatches,
                layers=extra.layers,
                more_layers=extra.surplus_layers,
                more=more,
                copied=format_lines(workload, extra.copied_rows),
                flags=Change(header_fields).flags,
            )
            return
    most, least = uneven.most, uneven.least
    yield UnequalMicrobatches(
        step_ns=run.step_ns,
        ns=run.step_ns,
        cause="the micro-batches of the file are unequal",
        fault=True,
        blocks=uneven,
        layers=(structure.layers_per_block[most], structure.layers_per_block[least]),
        lines=(
            format_lines(workload, structure.blocks[most]),
            format_lines(workload, structure.blocks[least]),
        ),
    )
