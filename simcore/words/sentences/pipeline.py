"""What a pipeline costs: empty slots, unequal stages, stages that are done early."""

from __future__ import annotations

from simcore.analysis.alike import alike
from simcore.analysis.blocks import (
    UnequalBlocks,
    line_words,
    surplus_blocks,
    unequal_blocks,
)
from simcore.program.schedules import SCHEDULES
from simcore.trace.changes import Change
from simcore.units import change_percent, duration, listed, plural
from simcore.words.sentences.model import GRADIENT_KINDS, Facts, Sentence, are, stage_words

# The count of slots is said where it gives the time that was lost as closely as this.
_SLOTS_WITHIN = 0.1
# Accounts of what each rank does once in a step.
_OUTSIDE_PASSES = ("compute opt", *(f"exposed {kind}" for kind in GRADIENT_KINDS))
# Blocks that a header does not ask for whose layers are named.
_NAMED = 4
# Ranks that wait this share of the longest wait are named with who waits longest.
_AS_LONG = 0.99


def bubble(facts: Facts) -> Sentence | None:
    """How long stages wait for others, the one that does most and the mean of all ranks; the
    schedule's count of empty slots; and whether stages are alike, which is no cause.
    """
    lost = facts.mean_ns["bubble"] + facts.mean_ns["idle"] if facts.simulation.program.pipelined else 0
    bubbles = [account.bubble_ns for account in facts.accounts]
    worst = max(bubbles)
    if not facts.worth(lost) or not worst:
        return None
    mean = facts.mean_ns["bubble"]
    longest = [number for number, ns in enumerate(bubbles) if ns >= _AS_LONG * worst]
    figure = facts.figure(worst)
    if len({duration(bubbles[number]) for number in longest}) > 1:
        figure = f"up to {figure}"
    if len(longest) == len(bubbles):
        one = facts.simulation.layout.pp == 2
        who, others = ("Both stages", "the other") if one else ("All stages", "the others")
        text = f"{who} wait about as long for {others}, {figure}"
    else:
        # The stage next to them, for whose data they wait, is not to blame: no other is named.
        who = stage_words(facts, longest)
        who = f"{who[0].lower()}{who[1:]}"
        text = f"Ranks wait {facts.figure(mean)} for other stages on average, {who} longest, {figure}"
    why = _slots(facts, lost)
    text += f": {why}" if why else ""
    alike_in = "compute alike" if facts.stages_alike else ""
    if not facts.computes:
        # Placeholders are alike whatever a stage does.
        alike_in = "run the same collectives" if facts.same_collectives else ""
    if alike_in:
        text += ("; all" if why else ". All") + f" stages {alike_in}{_assumed_alike(facts)}"
    return Sentence("bubble", f"{text}.", worst, "bubble", facts.bubble_ns)


_ON_EACH = ", embedding and loss assumed on each"


def _assumed_alike(facts: Facts) -> str:
    """That stages are alike by a stage layout that nobody gave; with the step of the other, once known."""
    # Of so little they would be alike by any layout: see `stages_alike`.
    little = 100 * facts.results.assumed_compute_ns <= max(facts.stage_busy_ns)
    if not facts.results.layout_assumed or (facts.computes and little):
        return ""
    other = facts.results.other_layout_ns
    if other is None:
        return _ON_EACH
    # Its note has the step itself; 80 columns have no room for both.
    change = "as long" if other == facts.step_ns else change_percent(facts.step_ns, other)
    return f"{_ON_EACH} (on first and last alone: {change})"


def _slots(facts: Facts, lost: int) -> str:
    """`with 16 stages and 16 micro-batches 1f1b leaves 15 of 31 slots empty ...` where that holds; of unequal
    micro-batches what it would be of equal ones; else "".
    """
    simulation = facts.simulation
    program, stages = simulation.program, simulation.layout.pp
    if not program.rules.bubble_slots or not program.microbatches:
        return ""
    full = program.microbatches * program.virtual_stages
    # What stands before and behind the passes leaves no slots: of seed 002 with one micro-batch it is 45 % of
    # what ranks work, and without it the slots are the time lost to 0.1 %.
    passes = facts.step_ns - lost - sum(facts.mean_ns[name] for name in _OUTSIDE_PASSES)
    expected = passes * (stages - 1) / full
    chunks = f" of {program.virtual_stages} chunks each" if program.virtual_stages > 1 else ""
    empty = f"{stages - 1} of {full + stages - 1} slots empty on each"
    if abs(lost - expected) <= _SLOTS_WITHIN * expected:
        return (
            f"with {stages} stages{chunks} and {plural(program.microbatches, 'micro-batch')} "
            f"{program.schedule} leaves {empty}, as bubble or, once done, idle"
        )
    needs_chunks = program.schedule in SCHEDULES and SCHEDULES[program.schedule].chunks is None
    if _uneven(facts) is None or (needs_chunks and program.virtual_stages < 2):
        # One chunk is nothing to interleave, and no example of what would be.
        return ""
    return (
        f"the micro-batches are unequal, and with {stages} stages{chunks} and {program.microbatches} equal "
        f"ones {program.schedule} would leave {empty}"
    )


def unbalanced(facts: Facts) -> Sentence | None:
    """That one stage computes longer than the others, which wait for it."""
    busy = facts.stage_busy_ns
    excess = facts.unbalanced_ns
    if not facts.worth(excess):
        return None
    most = busy.index(max(busy))
    others = [ns for stage, ns in enumerate(busy) if stage != most]
    mean = duration(round(sum(others) / len(others)))
    text = (
        f"Stage {most} computes {duration(busy[most])}, the others {mean} on average and wait for it: "
        f"balanced, each would compute {duration(busy[most] - excess)}."
    )
    return Sentence("unbalanced-stages", text, excess, "unbalanced stages", excess)


def idle(facts: Facts) -> Sentence | None:
    """Who is done long before the step ends."""
    idle_ns = [account.idle_ns for account in facts.accounts]
    worst = max(idle_ns)
    if not facts.worth(worst, 0.05) or facts.simulation.program.queued:
        return None
    who = stage_words(facts, alike(idle_ns, worst))
    text = f"{who} {are(who, 'are', 'is')} done {facts.figure(worst)} before the step ends."
    return Sentence("idle", text, worst)


_FIX_FIRST = "the file contradicts itself"


def _uneven(facts: Facts) -> UnequalBlocks | None:
    """How unequal the micro-batches are; None where they count as equal, or where other times than those of
    the file decide and the header asks for all of them.
    """
    parameters = facts.simulation.parameters
    scaled = parameters.layer_scale or parameters.time_scale
    if scaled and surplus_blocks(facts.simulation) is None:
        return None
    return unequal_blocks(facts.simulation)


def uneven_microbatches(facts: Facts) -> Sentence | None:
    """That the micro-batches of a pipeline are not alike, where they stand, and what is read in place of a
    mean; of a file whose header does not ask for all of them, which these are, and the step without them by a
    run of its own.
    """
    uneven = _uneven(facts)
    if uneven is None:
        return None
    found = _not_asked_for(facts)
    if found is None:
        cause, text = "the micro-batches of the file are unequal", _as_they_are(facts, uneven)
        return Sentence("uneven-microbatches", text, facts.step_ns, cause, fault=True)
    return Sentence("uneven-microbatches", found[1], found[0], _FIX_FIRST, fault=True)


def _as_they_are(facts: Facts, uneven: UnequalBlocks) -> str:
    most, least, factor = uneven
    workload, structure = facts.simulation.workload, facts.simulation.program.structure
    layers = structure.layers_per_block
    where = [line_words(workload, structure.blocks[number]) for number in (most, least)]
    longer, shorter = (
        f"{number}{f' ({lines})' if lines else ''}"
        for number, lines in zip((most, least), where, strict=True)
    )
    text = f"Micro-batch {longer} computes {factor:.1f} times as long as {shorter}"
    if layers[most] != layers[least]:
        text += f": it has {plural(layers[most], 'layer')}, the other {layers[least]}"
    return text + ". A mean of unequal micro-batches says little; compare steps by the same work."


def _not_asked_for(facts: Facts) -> tuple[int, str] | None:
    """The step without the blocks that the header does not ask for, and they in words."""
    extra = surplus_blocks(facts.simulation)
    if extra is None:
        return None
    workload = facts.simulation.workload
    more = line_words(workload, extra.more)
    asked = extra.as_header_asks(workload)
    ns = facts.step_with(**asked)
    if not more or ns is None:
        return None
    count = extra.microbatches
    layers = " and ".join(map(str, extra.more_layers[:_NAMED]))
    layers += " ..." if len(extra.more_layers) > _NAMED else ""
    of = "layer" if layers == "1" else "layers"
    copied = line_words(workload, extra.copied)
    same = f", {'which repeats' if layers == '1' else 'which repeat'} {copied}" if copied else ""
    if extra.lines_between(workload):
        # In two rows of 80 columns. Of "micro-batches of 8 layers and 1" it was asked of what these are, and
        # with the step of the other reading, which has a sentence of its own, which of the two to take.
        size = plural(extra.more_layers[0], "layer")
        return ns, (
            f"Its header asks for 1 micro-batch of {plural(extra.layers, 'layer')}, its rows make 2: "
            f"the second, {more}, has {size}. Without it: {duration(ns)}."
        )
    sizes = [str(size) for size in dict.fromkeys((extra.layers, *extra.more_layers))]
    each = "one" if count == 1 else f"{count}"
    text = f"Its rows make {count + len(extra.more_layers)} micro-batches, of {listed(sizes)} layers; "
    text += f"its header asks for {each} with {extra.layers} ({Change(asked).flags}: {duration(ns)})"
    blocks = plural(len(extra.more_layers), "more block")
    return ns, f"{text}. {more[0].upper()}{more[1:]} are {blocks}, of {layers} {of}{same}."
