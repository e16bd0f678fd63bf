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
from simcore.diagnostics import InputError, UsageError, printable
from simcore.layout import with_gathered_buffer
from simcore.names import STAGE_LAYOUTS
from simcore.networks import Sharing
from simcore.program.schedule_choice import fitting_chunks
from simcore.program.schedules import FULL_GAIN, SCHEDULES
from simcore.records import asdict, replace
from simcore.simulation import Simulation, simulate
from simcore.trace.changes import Change, ChangeOutcome, Trials
from simcore.trace.figures import find_same_work_ns
from simcore.trace.findings import FOR_OVERLAP, NO_MORE_MEMORY, WhatIf
from simcore.units import change_percent, duration, plural
from simcore.workload.model import ModelParameters, base_name

# Ranks of a run that somebody made slow: each is asked for, up to so many.
_MOST_RANKS = 4
_USUAL_SCHEDULE = "1f1b"
_DEFAULT_LAYOUT = STAGE_LAYOUTS[0]
_SHARD_TEXT = "grad_gather is a shard as written"
_LAYOUT_CAVEAT = "embedding on stage 0, loss on the last"
_LAYOUT_TEXT = "stage layout: with uniform every stage runs embedding and loss rows too"
# So many rows that part two micro-batches are named.
_MOST_NAMES = 4
_PAIRS_TEXT = "overlap-fwd-bwd: a forward computes while a backward communicates, and the reverse"
# Of a change that fixes the file, for those beside it.
_AS_IT_IS_TEXT = "what gains is worked out on the file as it is, and anew once it is fixed"


def _schedule_changes(simulation: Simulation) -> Iterator[Change]:
    """The other pipeline schedules, those in chunks with each number of virtual stages that fits."""
    program = simulation.program
    shape: dict[str, Any] = {}
    if program.has_pipeline_schedule and program.schedule not in SCHEDULES:
        # The stages and micro-batches of a schedule file are not those of another schedule by themselves.
        shape = {"pp": simulation.layout.pp, "microbatches": program.microbatches}
    # Of schedules that take as long the one that everybody knows.
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
    """For how many micro-batches a schedule is made that has fewer here; "" of one that has enough."""
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
    """Whether the file states a shard in place of what is gathered."""
    return any(one.code == "gather-is-shard" for one in simulation.diagnostics)


def _layout_changes(simulation: Simulation) -> Iterator[Change]:
    """Which rows a stage has, where somebody chose that. Of one stage alone there is nothing to choose; a
    layout that is assumed is none that somebody could change: a note says what the step is without it.
    """
    current_layout = simulation.parameters.stage_layout
    if simulation.layout.pp > 1 and current_layout is not None:
        for name in STAGE_LAYOUTS:
            if name != current_layout:
                yield Change({"stage_layout": name}, caveat="" if name == _DEFAULT_LAYOUT else _LAYOUT_CAVEAT)


def _microbatch_changes(simulation: Simulation) -> Iterator[Change]:
    """Twice as many in a step: the pipeline fills and drains as rarely again."""
    count = simulation.program.microbatches
    if simulation.layout.pp > 1 and count:
        yield Change({"microbatches": 2 * count})


def _speed_up_ranks(simulation: Simulation) -> Iterator[Change]:
    """Each rank that somebody made slow as fast as its peers."""
    slow = simulation.setup.overrides.slow_ranks
    later = sorted((-factor, rank) for rank, factor in slow.items() if factor > 1)
    for _, rank in later[:_MOST_RANKS]:
        slow_ranks = tuple(
            f"{other_rank}={1 if other_rank == rank else f'{factor!r}'}"
            for other_rank, factor in slow.items()
        )
        yield Change({"slow_rank": slow_ranks}, f"rank {rank} as fast as its peers")


def _balance_experts(simulation: Simulation) -> Iterator[Change]:
    """What makes the loads of experts more even."""
    if simulation.parameters.expert_imbalance is None:
        return
    from simcore.analysis.model_figures import find_expert_changes

    for fields, dropped in find_expert_changes(simulation):
        yield Change(fields, caveat=f"drops {100 * dropped:.1f} % of tokens" if dropped else "")


def _holds_all_microbatches(simulation: Simulation, needed: int | None) -> bool:
    """Whether a change needs as much memory as now since no schedule could hold more: nobody expects that of
    interleaved stages.
    """
    count = simulation.program.microbatches
    as_now = needed is not None and needed == _peak_bytes(simulation)
    return as_now and count > 1 and max(SimulatedShape(simulation, ()).held_microbatches) == count


def _describe_change(
    simulation: Simulation, change: Change, needed: int | None, schedule_ns: int | None
) -> str:
    """What a change does whose name does not say it, in clauses: a stage layout takes rows away, which looks
    like a gain; what is assumed of an overlap; a schedule in place of layer-loop is there for its overlap;
    what a schedule does that not everybody knows.

    needed: memory of a rank with it, bytes. schedule_ns: as `_row` has it.
    """
    fields, phrases = change.fields, []
    if fields.get("stage_layout", _DEFAULT_LAYOUT) != _DEFAULT_LAYOUT:
        phrases.append(_LAYOUT_TEXT)
    reduces, gathers = fields.get("overlap_grad_reduce"), fields.get("overlap_param_gather")
    if reduces or gathers:
        # What the gain rests on comes first: a small screen has no room for more.
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
    """What an overlap assumes: a collective that runs beside others, tp beside dp, takes as long as alone,
    too. Where they share ports or links, compute does.
    """
    shares = isinstance(simulation.network, Sharing)
    if simulation.workload.maker is not None and simulation.workload.format == "model":
        # Rows of a model count what NCCL takes of compute.
        network = "" if shares else ", collectives at full speed"
        return f"assumed: sent in pieces, compute without NCCL's SMs{network}"
    return f"assumed: sent in pieces, compute {'' if shares else 'and all collectives '}at full speed"


def _append_whole_gather(simulation: Simulation, row: WhatIf) -> WhatIf:
    """A change that gains by gathering ahead what is written as a shard, with what it brings where the
    whole is gathered: by two runs, so of rows that are shown alone.
    """
    workload = with_gathered_buffer(simulation.workload)
    if not row.meaning.endswith(_SHARD_TEXT) or workload is None or row.parameters is None:
        return row
    # The shard told dp: it stays what it is.
    both_parameters = [replace(parameters, world=simulation.layout.world)
             for parameters in (simulation.parameters, row.parameters)]  # fmt: skip
    try:
        before, after = (simulate(workload, parameters).step_time_ns for parameters in both_parameters)
    except (InputError, UsageError):
        return row
    change = change_percent(before, after)
    words = f"if it were whole, as AICB writes it, {duration(before)} -> {duration(after)} ({change})"
    return replace(row, meaning=f"{row.meaning}: {words}")


def _make_row(
    simulation: Simulation, trials: Trials, change: Change, schedule_ns: int | None = None
) -> WhatIf:
    """A change that was tried, with all that has to be known of it.

    schedule_ns: the step with its schedule alone, where it has another change beside it.
    """
    row = trials.make_row(change)
    count, words = change.fields.get("microbatches"), row.name
    if row.same_work_ns is not None:
        # What the share beside it is of: of the longer step it is none.
        words += f" (twice the batch, the same work in {duration(row.same_work_ns)})"
    return replace(
        row,
        name=words,
        parameters=replace(simulation.parameters, **change.fields),
        # A schedule in place of a file's states as many as the run has.
        microbatches=count if count != simulation.program.microbatches else None,
        meaning=_describe_change(simulation, change, row.memory_bytes, schedule_ns),
    )


Family = Callable[[Simulation], Iterator[Change]]
# Those of a pipeline's schedule, the schedule itself first; then those of any run.
OF_SCHEDULES: tuple[Family, ...] = (
    _schedule_changes,
    _overlap_passes,
    _overlap_reductions,
    _overlap_gathers,
    _layout_changes,
    _microbatch_changes,
)
FAMILIES: tuple[Family, ...] = (*OF_SCHEDULES, _speed_up_ranks, _balance_experts)


def find_changes(simulation: Simulation, trials: Trials) -> list[WhatIf]:
    """The changes of a run that shorten its step by 0.1 % or more, those that gain most first; two at a time
    where the pair gains as much more than either alone. Behind them another stage layout, which takes rows
    away that a stage runs by default and makes nothing faster: no other change is tried with it. Last more
    micro-batches.

    Of each family the best is tried with that of each other one, where both gain; and with the best schedule
    what has no effect without one.
    """
    has_schedule = simulation.program.has_pipeline_schedule
    rows: list[WhatIf] = []
    best: list[Change] = []
    pairs: list[tuple[Change, Change]] = []
    for family in FAMILIES if simulation.can_be_scheduled else (_speed_up_ranks,):
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
        # Another batch is another training, another layout another work: they stand for themselves.
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
    """What a file is whose rows make more micro-batches than its header asks for, of other lengths: the run
    that the header asks for; and the one that its count of rows does.
    """
    extra = find_surplus_blocks(simulation)
    if extra is None or find_unequal_blocks(simulation) is None:
        return [], []
    # Which of the two is meant only the author of the file knows. Beside each other neither was taken.
    fix = Change(extra.header_fields(simulation.workload), caveat="as the header asks", fixes=True)
    others = []
    lines = extra.format_lines_between(simulation.workload)
    if lines:
        # It makes the step longer: not a row less, but a micro-batch in place of two that overlap.
        caveat = f"as the row count asks: {plural(extra.layers + extra.surplus_layers[0], 'layer')}"
        others.append(Change({"without_lines": (lines,)}, caveat=caveat, fixes=True))
    rows, other_rows = (
        [_make_row(simulation, trials, change) for change in trials.keep_possible(some)]
        for some in ([fix], others)
    )
    # A newcomer asked whether what gains still holds once the file is fixed.
    rows = [replace(row, meaning=_AS_IT_IS_TEXT) for row in rows]
    # The other reading is one beside the first. In a sentence of its own it held up who read it: only the
    # author of the file knows which is meant.
    names = [
        printable(base_name(simulation.workload.name[row]), 24) for row in extra.rows_between[:_MOST_NAMES]
    ]
    joins = f"without {' and '.join(names)} between them the two micro-batches are one"
    return rows, [replace(row, meaning=joins) for row in other_rows] if rows else []


def _fits_memory(simulation: Simulation) -> bool:
    """Whether a model fits into memory; of what is no model nobody knows, and it does."""
    if simulation.workload.maker is None:
        return True
    # Imported here, as below: files have none.
    from simcore.analysis.model_figures import make_model_figures

    figures = make_model_figures(simulation)
    return figures is None or figures.fits


def find_fitting(simulation: Simulation, trials: Trials) -> list[WhatIf]:
    """The changes with which a model that does not fit into memory does, the fastest first."""
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
    """All changes of a run. Of a model that does not fit into memory first those with which it does, the
    fastest of them also with the change that gains most; what gains and leaves it too large says so.
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
    # The batch stays what it is: more micro-batches stand for themselves.
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
    """What has to be known of a change that gains, in a run of a model with these parameters: it may have
    other stages and micro-batches than the run that the change was tried on.
    """
    from simcore.analysis.fitting import stages_and_microbatches

    behind = gain.name.removeprefix(gain.flags)
    own_caveats = behind[2:-1].split("; ") if behind.startswith(" (") else []
    shape = stages_and_microbatches(simulation, model_parameters)
    few_text = _too_few_text(model_parameters.schedule or "", *shape) if shape is not None else ""
    return [few_text] * bool(few_text) + [words for words in own_caveats if not words.startswith(FULL_GAIN)]


def _changed_fields(simulation: Simulation, row: WhatIf) -> dict[str, Any]:
    """The fields that a change gives other values."""
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
    """What a change makes of the run; None where a model that fits into memory does not with it, or where
    nobody knows what as much work takes. Raises `InputError`, `UsageError` where it cannot be: more ops than
    are simulated, or what it needs is not there.
    """
    fits_memory = _fits_memory(simulation)

    def step(change: Change) -> ChangeOutcome | None:
        other = simulate(simulation.workload, replace(simulation.parameters, **change.fields), cancelled)
        if fits_memory and not _fits_memory(other):
            return None
        same_work_ns = None
        count = change.fields.get("microbatches")
        if not change.fixes and count not in (None, simulation.program.microbatches):
            # Half a pair of unequal micro-batches, say, is not half of its work.
            same_work_ns = _same_work_ns(simulation, other)
            if same_work_ns is None:
                return None
        return ChangeOutcome(other.step_time_ns, _peak_bytes(other), same_work_ns)

    return step
