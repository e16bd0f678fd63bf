"""Changes that a user can make to a run: other parameters of the same step, one or two at a time.

A new kind of change is a function here and a line in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from simcore.analysis.blocks import find_surplus_blocks, find_unequal_blocks
from simcore.analysis.file_memory import peak_bytes
from simcore.analysis.model_use import SimulatedModel
from simcore.analysis.shape import SimulatedShape
from simcore.analysis.what_if.links import flow_changes, hottest_tier_changes
from simcore.diagnostics import InputError, UsageError, printable
from simcore.layout import with_gathered_buffer
from simcore.names import STAGE_LAYOUTS
from simcore.networks import Sharing
from simcore.program.schedule_choice import fitting_chunks
from simcore.program.schedules import FULL_GAIN, SCHEDULES
from simcore.records import asdict, replace
from simcore.simulation import Simulation, network_fields_of, other_method, simulate_like
from simcore.trace.changes import Change, ChangeOutcome, Trials
from simcore.trace.figures import find_same_work_ns
from simcore.trace.findings import FOR_OVERLAP, NO_MORE_MEMORY, WhatIf
from simcore.units import change_percent, duration, plural
from simcore.workload.model import ModelParameters, base_name

# Each rank that was made slow is tried, up to so many.
_MOST_RANKS = 4
_USUAL_SCHEDULE = "1f1b"
_DEFAULT_LAYOUT = STAGE_LAYOUTS[0]
_SHARD_TEXT = "grad_gather is a shard as written"
_LAYOUT_CAVEAT = "embedding on stage 0, loss on the last"
_LAYOUT_TEXT = "stage layout: with uniform every stage runs embedding and loss rows too"
# How many of the rows between two micro-batches are named.
_MOST_NAMES = 4
_PAIRS_TEXT = "overlap-fwd-bwd: a forward computes while a backward communicates, and the reverse"
# The meaning of a change that fixes the file, with regard to the other changes.
_AS_IT_IS_TEXT = "what gains is worked out on the file as it is, and anew once it is fixed"


def _schedule_changes(simulation: Simulation) -> Iterator[Change]:
    """Yields the other pipeline schedules, those in chunks with each number of virtual stages that fits."""
    program = simulation.program
    shape: dict[str, Any] = {}
    if program.has_pipeline_schedule and program.schedule not in SCHEDULES:
        # Another schedule does not have the stages and micro-batches of a schedule file by itself.
        shape = {"pp": simulation.layout.pp, "microbatches": program.microbatches}
    # 1f1b first: of schedules with equal steps the best-known one is kept.
    for name in sorted(SCHEDULES, key=lambda name: name != _USUAL_SCHEDULE):
        schedule = SCHEDULES[name]
        if not schedule.is_candidate:
            continue
        for count in fitting_chunks(program.structure, simulation.layout.pp, program.microbatches, name):
            chunks = count or schedule.chunks
            if (name, chunks) != (program.schedule, program.virtual_stages):
                caveat = _too_few_text(name, simulation.layout.pp, program.microbatches)
                yield Change({**shape, "schedule": name, "virtual_stages": count}, caveat=caveat)


def _too_few_text(schedule: str, pp: int, microbatches: int) -> str:
    """Returns for how many micro-batches a schedule is made that has fewer here; "" where it has enough."""
    return SCHEDULES[schedule].too_few(pp, microbatches) if schedule in SCHEDULES else ""


def _overlap_passes(simulation: Simulation) -> Iterator[Change]:
    if simulation.program.rules.pairs and not simulation.parameters.overlap_fwd_bwd:
        yield Change({"overlap_fwd_bwd": True})


def _overlap_reductions(simulation: Simulation) -> Iterator[Change]:
    if not simulation.parameters.overlap_grad_reduce:
        yield Change({"overlap_grad_reduce": True})


def _overlap_gathers(simulation: Simulation) -> Iterator[Change]:
    if not simulation.parameters.overlap_param_gather:
        yield Change({"overlap_param_gather": True}, caveat="gathers a shard" * _states_shard(simulation))


def _states_shard(simulation: Simulation) -> bool:
    """Returns whether the file states a shard in place of what is gathered."""
    return any(one.code == "gather-is-shard" for one in simulation.diagnostics)


def _layout_changes(simulation: Simulation) -> Iterator[Change]:
    """Yields the other stage layouts, where one was given and there are several stages.

    An assumed layout is no choice that could be changed: a note says what the step is without it.
    """
    current_layout = simulation.parameters.stage_layout
    if simulation.layout.pp > 1 and current_layout is not None:
        for name in STAGE_LAYOUTS:
            if name != current_layout:
                yield Change({"stage_layout": name}, caveat="" if name == _DEFAULT_LAYOUT else _LAYOUT_CAVEAT)


def _microbatch_changes(simulation: Simulation) -> Iterator[Change]:
    """Yields twice as many micro-batches in a step: the pipeline fills and drains half as often."""
    count = simulation.program.microbatches
    if simulation.layout.pp > 1 and count:
        yield Change({"microbatches": 2 * count})


def _speed_up_ranks(simulation: Simulation) -> Iterator[Change]:
    """Yields each rank that was made slow as fast as its peers."""
    slow = simulation.setup.overrides.slow_ranks
    later = sorted((-factor, rank) for rank, factor in slow.items() if factor > 1)
    for _, rank in later[:_MOST_RANKS]:
        slow_ranks = tuple(
            f"{other_rank}={1 if other_rank == rank else f'{factor!r}'}"
            for other_rank, factor in slow.items()
        )
        yield Change({"slow_rank": slow_ranks}, f"rank {rank} as fast as its peers")


def _balance_experts(simulation: Simulation) -> Iterator[Change]:
    """Yields what makes the loads of experts more even."""
    if simulation.parameters.expert_imbalance is None:
        return
    from simcore.analysis.model_figures import find_expert_changes

    for fields, dropped in find_expert_changes(simulation):
        yield Change(fields, caveat=f"drops {100 * dropped:.1f} % of tokens" if dropped else "")


def _holds_all_microbatches(simulation: Simulation, needed: int | None) -> bool:
    """Returns whether a change needs as much memory as now because no schedule could hold more: nobody
    expects that of interleaved stages.
    """
    count = simulation.program.microbatches
    as_now = needed is not None and needed == _peak_bytes(simulation)
    return as_now and count > 1 and max(SimulatedShape(simulation, ()).held_microbatches) == count


def _describe_change(
    simulation: Simulation, change: Change, needed: int | None, schedule_ns: int | None
) -> str:
    """Returns what a change does whose name does not say it, in clauses.

    These are: that a stage layout takes rows away, which looks like a gain; what is assumed of an overlap;
    that a schedule in place of layer-loop serves its overlap; and what a less-known schedule does.

    needed: memory of a rank with it, bytes. schedule_ns: as in `_make_row`.
    """
    fields, phrases = change.fields, [change.meaning] if change.meaning else []
    if fields.get("stage_layout", _DEFAULT_LAYOUT) != _DEFAULT_LAYOUT:
        phrases.append(_LAYOUT_TEXT)
    reduces, gathers = fields.get("overlap_grad_reduce"), fields.get("overlap_param_gather")
    if reduces or gathers:
        # The condition of the gain comes first: a small screen has no room for more.
        phrases.append(_overlap_words(simulation))
    if (reduces or gathers) and not simulation.program.has_pipeline_schedule:
        alone_text = ""
        if schedule_ns is not None:
            base, alone_text = simulation.step_time_ns, f"; {fields['schedule']} alone: no gain"
            if duration(schedule_ns) != duration(base):
                share = change_percent(base, schedule_ns)
                alone_text = f"; {fields['schedule']} alone: {duration(schedule_ns)} ({share})"
        phrases.append(f"{fields['schedule']}{FOR_OVERLAP}{alone_text}")
    if fields.get("overlap_fwd_bwd"):
        phrases.append(_PAIRS_TEXT)
    schedule = SCHEDULES.get(fields.get("schedule", ""))
    if schedule is not None and schedule.does:
        phrases.append(schedule.does)
    if fields.get("virtual_stages") and _holds_all_microbatches(simulation, needed):
        program = simulation.program
        count, now = plural(program.microbatches, "micro-batch"), program.schedule
        holds, by = f"the fullest stage holds all {count}", fields.get("schedule", now)
        holds = f"{holds} already" if now == by else f"with {printable(now, 20)}, too, {holds}"
        phrases.append(f"{NO_MORE_MEMORY}{holds}")
    if gathers and _states_shard(simulation):
        phrases.append(_SHARD_TEXT)
    return "; ".join(phrases)


def _overlap_words(simulation: Simulation) -> str:
    """Returns what an overlap assumes, in words.

    A collective that overlaps others, tp and dp, takes as long as alone; where they share ports or links,
    only compute is assumed to.
    """
    shares = isinstance(simulation.network, Sharing)
    if simulation.workload.maker is not None and simulation.workload.format == "model":
        # Rows of a model include the share of compute that NCCL takes.
        network = "" if shares else ", collectives at full speed"
        return f"assumed: sent in pieces, compute without NCCL's SMs{network}"
    return f"assumed: sent in pieces, compute {'' if shares else 'and all collectives '}at full speed"


def _append_whole_gather(simulation: Simulation, row: WhatIf) -> WhatIf:
    """Returns a change that gathers ahead what is written as a shard, with its gain where the whole is
    gathered.

    That takes two runs, so that it is done only for rows that are shown.
    """
    workload = with_gathered_buffer(simulation.workload)
    if not row.meaning.endswith(_SHARD_TEXT) or workload is None or row.parameters is None:
        return row
    # The shard decided dp: it stays the same.
    world = {"world": simulation.layout.world}
    try:
        before, after = (
            simulate_like(simulation, fields, workload=workload).step_time_ns
            for fields in (world, {**_changed_fields(simulation, row), **world})
        )
    except (InputError, UsageError):
        return row
    change = change_percent(before, after)
    words = f"if it were whole, as AICB writes it, {duration(before)} -> {duration(after)} ({change})"
    return replace(row, meaning=f"{row.meaning}: {words}")


def _make_row(
    simulation: Simulation, trials: Trials, change: Change, schedule_ns: int | None = None
) -> WhatIf:
    """Returns a change that was tried as a row with its meaning and parameters.

    schedule_ns: the step with its schedule alone, where the change combines it with another one.
    """
    row, outcome = trials.make_row(change), trials.outcomes[change.flags]
    assert outcome is not None
    does = _describe_change(simulation, change, row.memory_bytes, schedule_ns)
    count, words = change.fields.get("microbatches"), row.name
    if row.same_work_ns is not None:
        # The row's share is of the same work, not of the longer step.
        words += f" (twice the batch, the same work in {duration(row.same_work_ns)})"
    return replace(
        row,
        name=words,
        parameters=replace(simulation.parameters, **{**outcome.network_fields, **change.fields}),
        # A schedule in place of a schedule file states as many micro-batches as the run has: no change.
        microbatches=count if count != simulation.program.microbatches else None,
        meaning="; ".join(filter(None, [outcome.method, does])),
    )


Family = Callable[[Simulation], Iterator[Change]]
# The families of a pipeline's schedule, the schedule itself first; then those of any run.
OF_SCHEDULES: tuple[Family, ...] = (
    _schedule_changes,
    _overlap_passes,
    _overlap_reductions,
    _overlap_gathers,
    _layout_changes,
    _microbatch_changes,
)
# Those of runs under flows.
OF_FLOWS: tuple[Family, ...] = (flow_changes, hottest_tier_changes)
FAMILIES: tuple[Family, ...] = (*OF_SCHEDULES, _speed_up_ranks, _balance_experts, *OF_FLOWS)


def find_changes(simulation: Simulation, trials: Trials) -> list[WhatIf]:
    """Returns the changes of a run that shorten its step by 0.1 % or more, those that gain most first; two at
    a time where the pair gains as much more than either alone.

    Behind them is another stage layout, which takes away rows that a stage runs by default and makes nothing
    faster: no other change is tried with it. Last are more micro-batches.

    Of each family the best change is tried with that of each other family, where both gain; and changes
    without effect unless there is a schedule are tried with the best schedule.
    """
    has_schedule = simulation.program.has_pipeline_schedule
    rows: list[WhatIf] = []
    best: list[Change] = []
    pairs: list[tuple[Change, Change]] = []
    for family in FAMILIES if simulation.can_be_scheduled else (_speed_up_ranks, *OF_FLOWS):
        family_changes = list(family(simulation))
        if family in OF_SCHEDULES[1:] and not has_schedule:
            pairs += [
                (change, other)
                for change in best[:1]
                for other in family_changes
                if family is not _microbatch_changes
            ]
            continue
        possible = trials.keep_possible(family_changes)
        rows += [_make_row(simulation, trials, change) for change in possible if trials.is_worthwhile(change)]
        # More micro-batches are another training, another layout is other work: they are not combined.
        if possible and family not in (_layout_changes, _microbatch_changes):
            best.append(min(possible, key=trials.step_ns))
    pairs += combinations(filter(trials.is_worthwhile, best), 2)
    for first, other in pairs:
        both = first.combine(other)
        trials.outcome_of(both)
        if trials.is_worthwhile(both, first, other):
            rows.append(_make_row(simulation, trials, both, trials.step_ns(first)))

    def sort_key(what_if: WhatIf) -> tuple[int, bool, int]:
        return what_if.microbatches or 0, what_if.meaning == _LAYOUT_TEXT, what_if.gain_ns

    return sorted((_append_whole_gather(simulation, row) for row in rows), key=sort_key)


def find_fixes(simulation: Simulation, trials: Trials) -> tuple[list[WhatIf], list[WhatIf]]:
    """Returns the fixes of a file whose rows make more micro-batches than its header asks for, of other
    lengths: the run that the header asks for; and the one that its count of rows asks for.
    """
    extra = find_surplus_blocks(simulation)
    if extra is None or find_unequal_blocks(simulation) is None:
        return [], []
    # Only the author of the file knows which of the two is meant, so that they are two lists.
    fix = Change(extra.header_fields(simulation.workload), caveat="as the header asks", fixes=True)
    others = []
    lines = extra.format_lines_between(simulation.workload)
    if lines:
        # This makes the step longer: it joins two micro-batches, which overlapped, into one.
        caveat = f"as the row count asks: {plural(extra.layers + extra.surplus_layers[0], 'layer')}"
        others.append(Change({"without_lines": (lines,)}, caveat=caveat, fixes=True))
    rows, other_rows = (
        [_make_row(simulation, trials, change) for change in trials.keep_possible(some)]
        for some in ([fix], others)
    )
    # Whether the gains still hold once the file is fixed is not obvious: the row says it.
    rows = [replace(row, meaning=_AS_IT_IS_TEXT) for row in rows]
    # The other fix stands in the row of its own list and not in a sentence: only the author of the file knows
    # which one is meant.
    names = [
        printable(base_name(simulation.workload.name[row]), 24) for row in extra.rows_between[:_MOST_NAMES]
    ]
    joins = f"without {' and '.join(names)} between them the two micro-batches are one"
    return rows, [replace(row, meaning=joins) for row in other_rows] if rows else []


def _fits_memory(simulation: Simulation) -> bool:
    """Returns whether a model fits into memory; True where it is not known, as for files without a model."""
    if simulation.workload.maker is None:
        return True
    # Imported here and below: files without a model do not need it.
    from simcore.analysis.model_figures import make_model_figures

    figures = make_model_figures(simulation)
    return figures is None or figures.fits


def find_fitting(simulation: Simulation, trials: Trials) -> list[WhatIf]:
    """Returns the changes with which a model that does not fit into memory does, the fastest first."""
    if _fits_memory(simulation):
        return []
    from simcore.analysis.fitting import find_memory_savings

    savings = [
        Change(one.fields, caveat=_fits_text(one.peak_bytes))
        for one in find_memory_savings(simulation)
        if one.fits
    ]
    return [
        _make_row(simulation, trials, change)
        for change in sorted(trials.keep_possible(savings), key=trials.step_ns)
    ]


def order_by_memory(
    simulation: Simulation, fits: list[WhatIf], gains: list[WhatIf], trials: Trials
) -> list[WhatIf]:
    """Returns all changes of a run.

    Of a model that does not fit into memory first come those with which it does, the fastest of them also
    combined with the change that gains most; changes that gain and leave it too large say so.
    """
    if _fits_memory(simulation):
        return gains
    from simcore.analysis.fitting import find_peak_bytes
    from simcore.analysis.model_figures import make_model_figures

    figures = make_model_figures(simulation)
    assert figures is not None
    bytes_by_flags = {
        gain.flags: find_peak_bytes(simulation, gain.parameters.part(ModelParameters))
        for gain in gains
        if gain.parameters is not None
    }
    fitting_gains = [
        gain
        for gain in gains
        if (needed_bytes := bytes_by_flags.get(gain.flags)) is not None and needed_bytes <= figures.limit
    ]
    other = [replace(gain, name=f"{gain.name} (does not fit)") for gain in gains if gain not in fitting_gains]
    # The batch stays the same: more micro-batches are not combined.
    gain = next((gain for gain in gains if not gain.microbatches), None)
    if fits and gain is not None:
        fields = _changed_fields(simulation, fits[0]) | _changed_fields(simulation, gain)
        parameters = replace(simulation.setup.model, **fields)
        both = Change(fields, caveat="; ".join(_list_caveats(simulation, gain, parameters)))
        needed_bytes = find_peak_bytes(simulation, parameters)
        outcome = (
            trials.outcome_of(both) if needed_bytes is not None and needed_bytes <= figures.limit else None
        )
        if outcome is not None and needed_bytes is not None and outcome.ns < fits[0].better10_ns:
            row = _make_row(simulation, trials, both)
            fits = [replace(row, name=f"{row.name} ({_fits_text(needed_bytes)})"), *fits]
    return [*fits, *fitting_gains, *other]


def _list_caveats(simulation: Simulation, gain: WhatIf, model_parameters: ModelParameters) -> list[str]:
    """Returns the caveats of a change that gains, for a run of a model with these parameters: it may have
    other stages and micro-batches than the run that the change was tried on.
    """
    from simcore.analysis.fitting import stages_and_microbatches

    behind = gain.name.removeprefix(gain.flags)
    own_caveats = behind[2:-1].split("; ") if behind.startswith(" (") else []
    shape = stages_and_microbatches(simulation, model_parameters)
    few_text = _too_few_text(model_parameters.schedule or "", *shape) if shape is not None else ""
    return [few_text] * bool(few_text) + [words for words in own_caveats if not words.startswith(FULL_GAIN)]


def _changed_fields(simulation: Simulation, row: WhatIf) -> dict[str, Any]:
    """Returns the fields to which a change gives other values."""
    assert row.parameters is not None
    own = asdict(simulation.parameters)
    return {name: value for name, value in asdict(row.parameters).items() if value != own[name]}


def _fits_text(most: int) -> str:
    return f"fits: {most / 1e9:.1f} GB"


def _peak_bytes(simulation: Simulation) -> int | None:
    return peak_bytes(SimulatedModel(simulation, lambda: None))


def _same_work_ns(simulation: Simulation, other: Simulation) -> int | None:
    work, other_work = SimulatedShape(simulation, ()).work, SimulatedShape(other, ()).work
    if work is None or other_work is None:
        return None
    return find_same_work_ns(other.step_time_ns, work, other_work)


def make_stepper(
    simulation: Simulation, cancelled: Callable[[], bool]
) -> Callable[[Change], ChangeOutcome | None]:
    """Returns a function that runs the simulation with a change.

    It returns None where a model that fits into memory does not with the change, or where it is not known
    what as much work takes. It raises `InputError` or `UsageError` where the change is impossible: there are
    more ops than are simulated, or what it needs is missing.
    """
    fits_memory = _fits_memory(simulation)

    def step(change: Change) -> ChangeOutcome | None:
        other = simulate_like(simulation, change.fields, cancelled)
        if fits_memory and not _fits_memory(other):
            return None
        same_work_ns = None
        count = change.fields.get("microbatches")
        if not change.fixes and count not in (None, simulation.program.microbatches):
            # Half of two unequal micro-batches, for example, is not half of their work.
            same_work_ns = _same_work_ns(simulation, other)
            if same_work_ns is None:
                return None
        return ChangeOutcome(
            other.step_time_ns,
            _peak_bytes(other),
            same_work_ns,
            network_fields=network_fields_of(other),
            method=other_method(simulation, other),
        )

    return step
