"""What a pipeline costs: empty slots, unequal stages, stages that are done early."""

from __future__ import annotations

from simcore.analysis.alike import alike
from simcore.analysis.sentences.model import Facts, Sentence, are, stage_words
from simcore.units import duration, plural

# The count of slots is said where it gives the time that was lost as closely as this.
_SLOTS_WITHIN = 0.1


def bubble(facts: Facts) -> Sentence | None:
    """How long stages wait for their neighbours, the one that does most and the mean of all ranks; the
    schedule's count of empty slots; and whether stages compute alike, which is no cause.
    """
    lost = facts.mean_ns["bubble"] + facts.mean_ns["idle"] if facts.simulation.program.pipelined else 0
    bubbles = [account.bubble_ns for account in facts.accounts]
    worst = max(bubbles)
    if not facts.worth(lost) or not worst:
        return None
    mean = facts.mean_ns["bubble"]
    if min(bubbles) == worst:
        text = f"Every stage waits {facts.figure(worst)} in all for its neighbours"
    else:
        who = stage_words(facts, alike(bubbles, worst))
        wait, whose = are(who, "wait", "waits"), are(who, "their", "its")
        text = (
            f"{who} {wait} {facts.figure(worst)} in all for {whose} neighbours, the mean rank "
            f"{facts.figure(mean)}"
        )
    why = _slots(facts, lost)
    text += f": {why}" if why else ""
    if facts.stages_alike:
        text += "; all stages compute alike" if why else ". All stages compute alike"
    return Sentence("bubble", f"{text}.", worst, "bubble", facts.bubble_ns)


def _slots(facts: Facts, lost: int) -> str:
    """`with 16 stages and 16 micro-batches 1f1b leaves 15 of 31 slots empty ...` where that holds; of unequal
    micro-batches what it would be of equal ones; else "".
    """
    simulation = facts.simulation
    program, stages = simulation.program, simulation.layout.pp
    if not program.rules.bubble_slots or not program.microbatches:
        return ""
    full = program.microbatches * program.virtual_stages
    work = facts.step_ns - lost
    expected = work * (stages - 1) / full
    chunks = f" of {program.virtual_stages} chunks each" if program.virtual_stages > 1 else ""
    empty = f"{stages - 1} of {full + stages - 1} slots empty on every stage"
    if abs(lost - expected) <= _SLOTS_WITHIN * expected:
        return (
            f"with {stages} stages{chunks} and {plural(program.microbatches, 'micro-batch')} "
            f"{program.schedule} leaves {empty}, as bubble or, once it is done, as idle time"
        )
    if _uneven(facts) is None:
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


# The largest micro-batch computes so many times as long as the smallest, or they count as equal.
_UNEVEN = 1.5


def _uneven(facts: Facts) -> tuple[int, int, float] | None:
    """(the micro-batch that computes longest, the one that computes shortest, how many times as long); None
    where they count as equal.
    """
    simulation = facts.simulation
    program, workload = simulation.program, simulation.workload
    used = program.structure.blocks[: program.microbatches]
    scaled = simulation.parameters.layer_scale or simulation.parameters.time_scale
    if not program.has_pipeline_schedule or workload.stages or len(used) < 2 or scaled:
        return None
    columns = [cells.compute_ns for cells in (workload.fwd, workload.ig, workload.wg)]
    computes = [sum(column[row] for row in block for column in columns) for block in used]
    most, least = (computes.index(edge(computes)) for edge in (max, min))
    if not computes[least] or computes[most] < _UNEVEN * computes[least]:
        return None
    return most, least, computes[most] / computes[least]


def uneven_microbatches(facts: Facts) -> Sentence | None:
    """That the micro-batches of a pipeline are not alike, before a mean of them is read."""
    uneven = _uneven(facts)
    if uneven is None:
        return None
    most, least, factor = uneven
    layers = facts.simulation.program.structure.layers_per_block
    text = f"Micro-batch {most} computes {factor:.1f} times as long as micro-batch {least}"
    if layers[most] != layers[least]:
        text += f": it has {plural(layers[most], 'layer')}, the other {layers[least]}"
    text += ". A mean of them says little."
    return Sentence(
        "uneven-microbatches", text, facts.step_ns, "the micro-batches of the file are unequal", fault=True
    )
