"""Changes that a user can make to a run: other parameters of the same step, one or two at a time.

A new kind of change is a function here and a line in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from simcore.analysis.blocks import surplus_blocks, unequal_blocks
from simcore.analysis.file_memory import memory_bytes
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
from simcore.trace.changes import Change, Trials, Tried
from simcore.trace.figures import alike_work_ns
from simcore.trace.findings import FOR_OVERLAP, NO_MORE_MEMORY, WhatIf
from simcore.units import change_percent, duration, plural
from simcore.workload.model import AskedModel, base_name

# Ranks of a run that somebody made slow: each is asked for, up to so many.
_MOST_RANKS = 4
_USUAL = "1f1b"
_DEFAULT_LAYOUT = STAGE_LAYOUTS[0]
_SHARD = "grad_gather is a shard as written"
_PLACES = "embedding on stage 0, loss on the last"
_LAYOUT = "stage layout: with uniform every stage runs embedding and loss rows too"
# So many rows that part two micro-batches are named.
_NAMED = 4
_PAIRS = "overlap-fwd-bwd: a forward computes while a backward communicates, and the reverse"
# Of a change that fixes the file, for those beside it.
_AS_IT_IS = "what gains is worked out on the file as it is, and anew once it is fixed"


def _schedules(simulation: Simulation) -> Iterator[Change]:
    """The other pipeline schedules, those in chunks with each number of virtual stages that fits."""
    program = simulation.program
    shape: dict[str, Any] = {}
    if program.has_pipeline_schedule and program.schedule not in SCHEDULES:
        # The stages and micro-batches of a schedule file are not those of another schedule by themselves.
        shape = {"pp": simulation.layout.pp, "microbatches": program.microbatches}
    # Of schedules that take as long the one that everybody knows.
    for name in sorted(SCHEDULES, key=lambda name: name != _USUAL):
        schedule = SCHEDULES[name]
        if not schedule.tried:
            continue
        for count in fitting_chunks(program.structure, simulation.layout.pp, program.microbatches, name):
            chunks = count or schedule.chunks
            if (name, chunks) != (program.schedule, program.virtual_stages):
                caveat = _too_few(name, simulation.layout.pp, program.microbatches)
                yield Change({**shape, "schedule": name, "virtual_stages": count}, caveat=caveat)


def _too_few(schedule: str, pp: int, microbatches: int) -> str:
    """For how many micro-batches a schedule is made that has fewer here; "" of one that has enough."""
    return SCHEDULES[schedule].too_few(pp, microbatches) if schedule in SCHEDULES else ""


def _forwards_beside_backwards(simulation: Simulation) -> Iterator[Change]:
    if simulation.program.rules.pairs and not simulation.parameters.overlap_fwd_bwd:
        yield Change({"overlap_fwd_bwd": True})


def _reductions_beside_compute(simulation: Simulation) -> Iterator[Change]:
    if not simulation.parameters.overlap_grad_reduce:
        yield Change({"overlap_grad_reduce": True})


def _gathers_beside_compute(simulation: Simulation) -> Iterator[Change]:
    if not simulation.parameters.overlap_param_gather:
        yield Change({"overlap_param_gather": True}, caveat="gathers a shard" * _is_shard(simulation))


def _is_shard(simulation: Simulation) -> bool:
    """Whether the file states a shard in place of what is gathered."""
    return any(one.code == "gather-is-shard" for one in simulation.diagnostics)


def _stage_layouts(simulation: Simulation) -> Iterator[Change]:
    """Which rows a stage has, where somebody chose that. Of one stage alone there is nothing to choose; a
    layout that is assumed is none that somebody could change: a note says what the step is without it.
    """
    given = simulation.parameters.stage_layout
    if simulation.layout.pp > 1 and given is not None:
        for name in STAGE_LAYOUTS:
            if name != given:
                yield Change({"stage_layout": name}, caveat="" if name == _DEFAULT_LAYOUT else _PLACES)


def _microbatches(simulation: Simulation) -> Iterator[Change]:
    """Twice as many in a step: the pipeline fills and drains as rarely again."""
    count = simulation.program.microbatches
    if simulation.layout.pp > 1 and count:
        yield Change({"microbatches": 2 * count})


def _mended_ranks(simulation: Simulation) -> Iterator[Change]:
    """Each rank that somebody made slow as fast as its peers."""
    slow = simulation.setup.overrides.slow_ranks
    later = sorted((-factor, rank) for rank, factor in slow.items() if factor > 1)
    for _, rank in later[:_MOST_RANKS]:
        left = tuple(f"{number}={1 if number == rank else f'{factor!r}'}" for number, factor in slow.items())
        yield Change({"slow_rank": left}, f"rank {rank} as fast as its peers")


def _even_experts(simulation: Simulation) -> Iterator[Change]:
    """What makes the loads of experts more even."""
    if simulation.parameters.expert_imbalance is None:
        return
    from simcore.analysis.model_figures import expert_changes

    for fields, dropped in expert_changes(simulation):
        yield Change(fields, caveat=f"drops {100 * dropped:.1f} % of tokens" if dropped else "")


def _holds_all_already(simulation: Simulation, needed: int | None) -> bool:
    """Whether a change needs as much memory as now since no schedule could hold more: nobody expects that of
    interleaved stages.
    """
    count = simulation.program.microbatches
    as_now = needed is not None and needed == _memory_bytes(simulation)
    return as_now and count > 1 and max(SimulatedShape(simulation, ()).held_microbatches) == count


def _meaning(simulation: Simulation, change: Change, needed: int | None, schedule_ns: int | None) -> str:
    """What a change does whose name does not say it, in clauses: a stage layout takes rows away, which looks
    like a gain; what is assumed of an overlap; a schedule in place of layer-loop is there for its overlap;
    what a schedule does that not everybody knows.

    needed: memory of a rank with it, bytes. schedule_ns: as `_row` has it.
    """
    fields, said = change.fields, []
    if fields.get("stage_layout", _DEFAULT_LAYOUT) != _DEFAULT_LAYOUT:
        said.append(_LAYOUT)
    reduces, gathers = fields.get("overlap_grad_reduce"), fields.get("overlap_param_gather")
    if reduces or gathers:
        # What the gain rests on comes first: a small screen has no room for more.
        said.append(_overlap_words(simulation))
    if (reduces or gathers) and not simulation.program.has_pipeline_schedule:
        alone = ""
        if schedule_ns is not None:
            base, alone = simulation.step_time_ns, f"; {fields['schedule']} alone: no gain"
            if duration(schedule_ns) != duration(base):
                share = change_percent(base, schedule_ns)
                alone = f"; {fields['schedule']} alone: {duration(schedule_ns)} ({share})"
        said.append(f"{fields['schedule']}{FOR_OVERLAP}{alone}")
    if fields.get("overlap_fwd_bwd"):
        said.append(_PAIRS)
    schedule = SCHEDULES.get(fields.get("schedule", ""))
    if schedule is not None and schedule.does:
        said.append(schedule.does)
    if fields.get("virtual_stages") and _holds_all_already(simulation, needed):
        program = simulation.program
        count, now = plural(program.microbatches, "micro-batch"), program.schedule
        holds, by = f"the fullest stage holds all {count}", fields.get("schedule", now)
        holds = f"{holds} already" if now == by else f"with {printable(now, 20)}, too, {holds}"
        said.append(f"{NO_MORE_MEMORY}{holds}")
    if gathers and _is_shard(simulation):
        said.append(_SHARD)
    return "; ".join(said)


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


def _with_whole_gather(simulation: Simulation, row: WhatIf) -> WhatIf:
    """A change that gains by gathering ahead what is written as a shard, with what it brings where the
    whole is gathered: by two runs, so of rows that are shown alone.
    """
    workload = with_gathered_buffer(simulation.workload)
    if not row.meaning.endswith(_SHARD) or workload is None or row.parameters is None:
        return row
    # The shard told dp: it stays what it is.
    asked = [replace(parameters, world=simulation.layout.world)
             for parameters in (simulation.parameters, row.parameters)]  # fmt: skip
    try:
        before, after = (simulate(workload, parameters).step_time_ns for parameters in asked)
    except (InputError, UsageError):
        return row
    change = change_percent(before, after)
    words = f"if it were whole, as AICB writes it, {duration(before)} -> {duration(after)} ({change})"
    return replace(row, meaning=f"{row.meaning}: {words}")


def _row(simulation: Simulation, trials: Trials, change: Change, schedule_ns: int | None = None) -> WhatIf:
    """A change that was tried, with all that has to be known of it.

    schedule_ns: the step with its schedule alone, where it has another change beside it.
    """
    row = trials.row(change)
    count, words = change.fields.get("microbatches"), row.name
    if row.alike_ns is not None:
        # What the share beside it is of: of the longer step it is none.
        words += f" (twice the batch, the same work in {duration(row.alike_ns)})"
    return replace(
        row,
        name=words,
        parameters=replace(simulation.parameters, **change.fields),
        # A schedule in place of a file's states as many as the run has.
        microbatches=count if count != simulation.program.microbatches else None,
        meaning=_meaning(simulation, change, row.memory_bytes, schedule_ns),
    )


Family = Callable[[Simulation], Iterator[Change]]
# Those of a pipeline's schedule, the schedule itself first; then those of any run.
OF_SCHEDULES: tuple[Family, ...] = (
    _schedules,
    _forwards_beside_backwards,
    _reductions_beside_compute,
    _gathers_beside_compute,
    _stage_layouts,
    _microbatches,
)
FAMILIES: tuple[Family, ...] = (*OF_SCHEDULES, _mended_ranks, _even_experts)


def changes(simulation: Simulation, trials: Trials) -> list[WhatIf]:
    """The changes of a run that shorten its step by 0.1 % or more, those that gain most first; two at a time
    where the pair gains as much more than either alone. Behind them another stage layout, which takes rows
    away that a stage runs by default and makes nothing faster: no other change is tried with it. Last more
    micro-batches.

    Of each family the best is tried with that of each other one, where both gain; and with the best schedule
    what has no effect without one.
    """
    scheduled = simulation.program.has_pipeline_schedule
    rows: list[WhatIf] = []
    best: list[Change] = []
    pairs: list[tuple[Change, Change]] = []
    for family in FAMILIES if simulation.can_be_scheduled else (_mended_ranks,):
        some = list(family(simulation))
        if family in OF_SCHEDULES[1:] and not scheduled:
            pairs += [(change, other) for change in best[:1] for other in some if family is not _microbatches]
            continue
        known = trials.possible(some)
        rows += [_row(simulation, trials, change) for change in known if trials.gains(change)]
        # Another batch is another training, another layout another work: they stand for themselves.
        if known and family not in (_stage_layouts, _microbatches):
            best.append(min(known, key=trials.ns))
    pairs += combinations(filter(trials.gains, best), 2)
    for first, other in pairs:
        both = first.with_other(other)
        trials.of(both)
        if trials.gains(both, first, other):
            rows.append(_row(simulation, trials, both, trials.ns(first)))

    def place(what_if: WhatIf) -> tuple[int, bool, int]:
        return what_if.microbatches or 0, what_if.meaning == _LAYOUT, what_if.gain_ns

    return sorted((_with_whole_gather(simulation, row) for row in rows), key=place)


def fixed(simulation: Simulation, trials: Trials) -> tuple[list[WhatIf], list[WhatIf]]:
    """What a file is whose rows make more micro-batches than its header asks for, of other lengths: the run
    that the header asks for; and the one that its count of rows does.
    """
    extra = surplus_blocks(simulation)
    if extra is None or unequal_blocks(simulation) is None:
        return [], []
    # Which of the two is meant only the author of the file knows. Beside each other neither was taken.
    fix = Change(extra.as_header_asks(simulation.workload), caveat="as the header asks", fixes=True)
    others = []
    lines = extra.lines_between(simulation.workload)
    if lines:
        # It makes the step longer: not a row less, but a micro-batch in place of two that overlap.
        caveat = f"as the row count asks: {plural(extra.layers + extra.more_layers[0], 'layer')}"
        others.append(Change({"without_lines": (lines,)}, caveat=caveat, fixes=True))
    rows, other_rows = (
        [_row(simulation, trials, change) for change in trials.possible(some)] for some in ([fix], others)
    )
    # A newcomer asked whether what gains still holds once the file is fixed.
    rows = [replace(row, meaning=_AS_IT_IS) for row in rows]
    # The other reading is one beside the first. In a sentence of its own it held up who read it: only the
    # author of the file knows which is meant.
    names = [printable(base_name(simulation.workload.name[row]), 24) for row in extra.between[:_NAMED]]
    joins = f"without {' and '.join(names)} between them the two micro-batches are one"
    return rows, [replace(row, meaning=joins) for row in other_rows] if rows else []


def _has_room(simulation: Simulation) -> bool:
    """Whether a model fits into memory; of what is no model nobody knows, and it does."""
    if simulation.workload.maker is None:
        return True
    # Imported here, as below: files have none.
    from simcore.analysis.model_figures import model_figures

    figures = model_figures(simulation)
    return figures is None or figures.fits


def fitting(simulation: Simulation, trials: Trials) -> list[WhatIf]:
    """The changes with which a model that does not fit into memory does, the fastest first."""
    if _has_room(simulation):
        return []
    from simcore.analysis.fitting import smaller_runs

    some = [Change(one.fields, caveat=_fits(one.most)) for one in smaller_runs(simulation) if one.fits]
    return [_row(simulation, trials, change) for change in sorted(trials.possible(some), key=trials.ns)]


def with_room(
    simulation: Simulation, fits: list[WhatIf], gains: list[WhatIf], trials: Trials
) -> list[WhatIf]:
    """All changes of a run. Of a model that does not fit into memory first those with which it does, the
    fastest of them also with the change that gains most; what gains and leaves it too large says so.
    """
    if _has_room(simulation):
        return gains
    from simcore.analysis.fitting import most_bytes
    from simcore.analysis.model_figures import model_figures

    figures = model_figures(simulation)
    assert figures is not None
    rooms = {
        gain.flags: most_bytes(simulation, gain.parameters.part(AskedModel))
        for gain in gains
        if gain.parameters is not None
    }
    there = [gain for gain in gains if (room := rooms.get(gain.flags)) is not None and room <= figures.limit]
    other = [replace(gain, name=f"{gain.name} (does not fit)") for gain in gains if gain not in there]
    # The batch stays what it is: more micro-batches stand for themselves.
    gain = next((gain for gain in gains if not gain.microbatches), None)
    if fits and gain is not None:
        fields = _changed(simulation, fits[0]) | _changed(simulation, gain)
        asked = replace(simulation.setup.model, **fields)
        both = Change(fields, caveat="; ".join(_caveats(simulation, gain, asked)))
        room = most_bytes(simulation, asked)
        tried = trials.of(both) if room is not None and room <= figures.limit else None
        if tried is not None and room is not None and tried.ns < fits[0].better10_ns:
            row = _row(simulation, trials, both)
            fits = [replace(row, name=f"{row.name} ({_fits(room)})"), *fits]
    return [*fits, *there, *other]


def _caveats(simulation: Simulation, gain: WhatIf, asked: AskedModel) -> list[str]:
    """What has to be known of a change that gains, in a run of a model with these parameters: it may have
    other stages and micro-batches than the run that the change was tried on.
    """
    from simcore.analysis.fitting import stages_and_microbatches

    behind = gain.name.removeprefix(gain.flags)
    own = behind[2:-1].split("; ") if behind.startswith(" (") else []
    shape = stages_and_microbatches(simulation, asked)
    few = _too_few(asked.schedule or "", *shape) if shape is not None else ""
    return [few] * bool(few) + [words for words in own if not words.startswith(FULL_GAIN)]


def _changed(simulation: Simulation, row: WhatIf) -> dict[str, Any]:
    """The fields that a change gives other values."""
    assert row.parameters is not None
    own = asdict(simulation.parameters)
    return {name: value for name, value in asdict(row.parameters).items() if value != own[name]}


def _fits(most: int) -> str:
    return f"fits: {most / 1e9:.1f} GB"


def _memory_bytes(simulation: Simulation) -> int | None:
    return memory_bytes(SimulatedModel(simulation, lambda: None))


def _alike_ns(simulation: Simulation, other: Simulation) -> int | None:
    work, other_work = SimulatedShape(simulation, ()).work, SimulatedShape(other, ()).work
    if work is None or other_work is None:
        return None
    return alike_work_ns(other.step_time_ns, work, other_work)


def stepped(simulation: Simulation, cancelled: Callable[[], bool]) -> Callable[[Change], Tried | None]:
    """What a change makes of the run; None where a model that fits into memory does not with it, or where
    nobody knows what as much work takes. Raises `InputError`, `UsageError` where it cannot be: more ops than
    are simulated, or what it needs is not there.
    """
    has_room = _has_room(simulation)

    def step(change: Change) -> Tried | None:
        other = simulate(simulation.workload, replace(simulation.parameters, **change.fields), cancelled)
        if has_room and not _has_room(other):
            return None
        alike_ns = None
        count = change.fields.get("microbatches")
        if not change.fixes and count not in (None, simulation.program.microbatches):
            # Half a pair of unequal micro-batches, say, is not half of its work.
            alike_ns = _alike_ns(simulation, other)
            if alike_ns is None:
                return None
        return Tried(other.step_time_ns, _memory_bytes(other), alike_ns)

    return step
