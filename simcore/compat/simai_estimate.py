"""SimAI's own estimate of a step: its closed form over the rows of the file, without a schedule.

SimAI-analytical adds up all cells, takes fixed ratios of communication as exposed, and a bubble
as if each layer of a stage were a virtual stage. Its lines are next to those of the step time, with the
reasons of the differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from simcore.analysis.simulation_figures import SimulationFigures
from simcore.compat.simai_network import (
    SimaiNetwork,
    accumulations,
    estimate_kind,
    estimated_rows,
    layers_per_stage,
    priced_bytes,
    single,
)
from simcore.diagnostics import InputError, UsageError
from simcore.simulation import Simulation
from simcore.trace.contexts import EstimateLine, SimaiEstimate
from simcore.trace.figures import StreamUse
from simcore.units import (
    duration,
    format_number,
    join_with_figures,
    largest_keys,
    plural,
    share_word,
    signed_duration,
)
from simcore.workload import Workload
from simcore.workload.model import PHASES

# The bubble counts every row but these, by their exact name.
_NOT_IN_BUBBLE = "embedding_layer"


def simai_estimate(simulation: Simulation) -> SimaiEstimate | None:
    """Returns the estimate for a run's file and bandwidths; scales, overrides and the schedule play no part.

    It covers the first rows, as many as line 2 states; without `vpp` or `ga` in the header it uses what the
    rows imply. None unless the network is one of SimAI's, and where it lacks a bandwidth.
    """
    if not isinstance(simulation.network, SimaiNetwork):
        return None
    try:
        return _estimate(simulation, simulation.network)
    except (InputError, UsageError):
        return None


def _estimate(simulation: Simulation, network: SimaiNetwork) -> SimaiEstimate:
    workload, structure = simulation.workload, simulation.program.structure
    exposed = dict.fromkeys(("dp", "dp_ep", "tp", "ep"), 0)
    compute = in_bubble = 0
    again = _recomputed(workload)
    for row in range(estimated_rows(workload)):
        cells_ns = sum(workload.cells(phase).compute_ns[row] for phase in PHASES)
        cells_ns += again.get(row, 0) * workload.fwd.compute_ns[row]
        forward = "ep" if workload.fwd.group[row] == "ep" else "tp"
        blocking_ns = 0
        for phase in PHASES:
            cells = workload.cells(phase)
            collective, group, size = cells.collective[row], cells.group[row], cells.bytes[row]
            # SimAI prices a SENDRECV at nothing, as each type that it does not know.
            if collective is None or group is None or group == "pp":
                continue
            kind = estimate_kind(phase, group)
            ns = network.ns(kind, collective, priced_bytes(workload, phase, size))
            if phase != "wg":
                blocking_ns += ns
            bucket = kind if phase == "wg" else forward
            hidden = network.overlap["dp" if phase == "wg" else forward]
            exposed[bucket] += math.floor(single(single(ns) * single(1 - hidden)))
        compute += cells_ns
        if workload.name[row] != _NOT_IN_BUBBLE:
            in_bubble += cells_ns + blocking_ns
    virtual, accumulated = layers_per_stage(workload, structure), accumulations(workload, structure)
    return SimaiEstimate(
        dp_us=exposed["dp"] / 1000,
        dp_ep_us=exposed["dp_ep"] / 1000,
        tp_us=exposed["tp"] / 1000,
        ep_us=exposed["ep"] / 1000,
        pp_us=_transfers_us(network, virtual * accumulated * (workload.header.pp_comm or 0)),
        bubble_us=(simulation.layout.pp - 1) / (accumulated * virtual) * in_bubble / 1000,
        compute_us=compute / 1000,
    )


def _transfers_us(network: SimaiNetwork, size: int) -> int | None:
    """Returns the exposed us of `size` bytes each way."""
    if network.pp_gibps is None:
        return None
    whole = math.floor(2 * size / 2**30 / network.pp_gibps * 1e9 / 1000)
    return math.floor(whole * (1 - network.overlap["pp"]))


def _recomputed(workload: Workload) -> dict[int, int]:
    """Returns how often the forward of each row runs again, from the nearest checkpoint up to an
    initiator.
    """
    times: dict[int, int] = {}
    header = workload.header
    for initiator in header.checkpoint_initiates:
        first = max(
            (checkpoint for checkpoint in header.checkpoints if checkpoint < initiator), default=initiator
        )
        for row in range(first, initiator):
            times[row] = times.get(row, 0) + 1
    return times


_KINDS = ("dp", "dp_ep", "tp", "ep")


def compare_estimate(results: SimulationFigures) -> tuple[int, list[EstimateLine]]:
    """Returns (rank class, lines): SimAI's estimate next to the class that is idle least, the first of them.

    No lines where there is no estimate.
    """
    estimate = None if results.simulation.has_dimensions else simai_estimate(results.simulation)
    if estimate is None:
        return 0, []
    class_id = min(
        range(len(results.accounts)), key=lambda class_number: results.accounts[class_number].idle_ns
    )
    accounts = results.accounts[class_id]
    exposed = accounts.exposed_ns()
    streams = results.figures.streams[class_id].streams
    lines = [_compute(results, estimate, accounts.busy_ns)]
    lines += [
        _collectives(results, kind, getattr(estimate, f"{kind}_us"), exposed[kind], streams)
        for kind in _KINDS
    ]
    lines.append(_transfers(results, estimate, exposed["pp"], streams))
    lines.append(_bubble(results, estimate, accounts.bubble_ns + accounts.idle_ns))
    if accounts.wait_ns:
        text = "in SimAI no rank waits for another one of its groups"
        lines.append(EstimateLine("wait", None, accounts.wait_ns, text))
    ours = sum(exposed[kind] for kind in _KINDS)
    text = "the lines of collectives, added up"
    lines.append(EstimateLine("exposed", estimate.exposed_us, ours, text))
    lines.append(_total(results, estimate, lines))
    return class_id, lines


def _ns(us: float) -> int:
    return round(us * 1000)


def _compute(results: SimulationFigures, estimate: SimaiEstimate, ours: int) -> EstimateLine:
    difference = ours - _ns(estimate.compute_us)
    if not difference:
        text = "both add up the same cells"
    else:
        reasons = _explain_work(results)
        text = f"{signed_duration(difference)} here: {'; '.join(reasons) or 'other rows run'}"
    return EstimateLine("compute", estimate.compute_us, ours, text)


def _explain_work(results: SimulationFigures, kind: str | None = None) -> list[str]:
    """Returns why a rank of this run does other work than SimAI adds up, where the run gives a reason.

    kind: that of the collectives in question (None: compute); only rows that have one are a reason.
    """
    simulation = results.simulation
    workload, program, parameters = simulation.workload, simulation.program, simulation.parameters
    structure = program.structure
    reasons = []
    estimated_count = estimated_rows(workload)

    def takes_part(rows: Iterable[int]) -> bool:
        return any(kind is None or kind in _kinds_of(workload, row) for row in rows)

    if takes_part(range(estimated_count, len(workload))):
        left = plural(len(workload) - estimated_count, "row")
        reasons.append(f"SimAI leaves out the {left} behind the {estimated_count} of line 2")
    if program.pipelined:
        in_blocks = takes_part(row for block in structure.blocks for row in block)
        if in_blocks and program.microbatches != len(structure.blocks):
            blocks = plural(len(structure.blocks), "block")
            reasons.append(f"{plural(program.microbatches, 'micro-batch')} run, the file has {blocks}")
        if takes_part(structure.loss) and program.microbatches > 1:
            reasons.append(f"loss rows run for each of {program.microbatches} micro-batches, there once")
        if parameters.stage_layout == "megatron" and (in_blocks or takes_part(structure.loss)):
            reasons.append("stage layout megatron leaves rows to the first and last stage")
    if parameters.passes > 1:
        reasons.append(f"{parameters.passes} passes run")
    if kind is not None:
        if parameters.comm_scale != 1 or parameters.time_scale or parameters.jitter:
            reasons.append("scales and jitter are not in SimAI's figure")
    elif parameters.compute_scale != 1 or any(
        (parameters.layer_scale, parameters.time_scale, parameters.slow_rank, parameters.jitter)
    ):
        reasons.append("scales, slow ranks and jitter are not in SimAI's figure")
    return reasons


def _kinds_of(workload: Workload, row: int) -> set[str | None]:
    """Returns the kinds of collectives that a row has."""
    columns = [workload.cells(phase) for phase in PHASES]
    return {cells.group[row] for cells in columns if cells.collective[row] and cells.bytes[row]}


def _rounding(results: SimulationFigures, kind: str, simai_ns: int) -> float:
    """Returns how far SimAI's sum for a kind may be from ours by rounding alone, ns.

    Each of its collectives is truncated to whole ns, and before that has the 24 bits of single precision.
    """
    workload = results.simulation.workload
    return sum(kind in _kinds_of(workload, row) for row in range(len(workload))) * len(PHASES) + (
        simai_ns / 2**24
    )


def _collectives(
    results: SimulationFigures, kind: str, simai_us: float, ours: int, streams: Sequence[StreamUse]
) -> EstimateLine:
    busy, overlapped, _ = _sums(streams, kind)
    simai_ns = _ns(simai_us)
    if not busy and not simai_ns:
        return EstimateLine(kind, simai_us, ours, f"no {kind} collective takes time in either")
    hidden = _hidden(results, kind)
    counting_text = "every one as exposed and in sequence" if not hidden else (
        f"them in sequence and {format_number(100 * hidden)} % of each as hidden"
    )  # fmt: skip
    text = f"SimAI counts {counting_text}; "
    if not busy:
        text += f"here no {kind} collective runs"
    elif overlapped:
        text += f"here {duration(overlapped)} of {duration(busy)} runs beside compute"
    elif busy == ours:
        text += f"here too all {duration(busy)} holds compute back"
    else:
        text += f"here {duration(ours)} of {duration(busy)} holds compute back"
    if busy and not hidden and busy != simai_ns:
        rounded = abs(busy - simai_ns) <= _rounding(results, kind, simai_ns)
        reasons = ["rounding"] if rounded else _explain_work(results, kind)
        text += f", {signed_duration(busy - simai_ns)} of them" + (
            f" ({'; '.join(reasons)})" if reasons else ""
        )
    return EstimateLine(kind, simai_us, ours, text)


def _hidden(results: SimulationFigures, kind: str) -> float:
    network = results.simulation.network
    assert isinstance(network, SimaiNetwork)
    return network.overlap["dp" if kind == "dp_ep" else kind]


def _sums(streams: Sequence[StreamUse], kind: str) -> tuple[int, int, int]:
    """Returns (busy, overlapping compute, exposed) of the streams of a kind, ns."""
    stream_uses = [stream for stream in streams if stream.kind == kind]
    return (
        sum(stream_use.busy_ns for stream_use in stream_uses),
        sum(stream_use.overlapped_ns or 0 for stream_use in stream_uses),
        sum(stream_use.exposed_ns for stream_use in stream_uses),
    )


def _transfers(
    results: SimulationFigures, estimate: SimaiEstimate, ours: int, streams: Sequence[StreamUse]
) -> EstimateLine:
    busy = _sums(streams, "pp")[0]
    if not busy:
        text = "no transfer between stages takes time here"
    else:
        text = f"here transfers run {duration(busy)}, and compute waits for {duration(ours)} of it"
    if estimate.pp_us is None:
        text = f"SimAI has no bandwidth for transfers; {text}"
    elif busy or estimate.pp_us:
        hidden = format_number(100 * _hidden(results, "pp"))
        text = f"SimAI takes {hidden} % of all transfers as hidden; {text}"
    return EstimateLine("pp", estimate.pp_us, ours, text)


def _bubble(results: SimulationFigures, estimate: SimaiEstimate, ours: int) -> EstimateLine:
    simulation = results.simulation
    workload, program, stages = simulation.workload, simulation.program, simulation.layout.pp
    if stages == 1:
        return EstimateLine("bubble", estimate.bubble_us, ours, "no pipeline in either")
    virtual = layers_per_stage(workload, program.structure)
    batches = accumulations(workload, program.structure)
    text = (
        f"SimAI takes (pp - 1) / (ga x vpp) = {stages - 1}/{batches * virtual} of its rows' time, "
        "whatever the schedule"
    )
    if not program.pipelined:
        text += f"; {program.schedule} has no pipeline"
    elif program.virtual_stages == virtual:
        text += f"; {program.schedule} has as many virtual stages"
    else:
        like = round(_ns(estimate.bubble_us) * virtual / program.virtual_stages)
        text += (
            f"; {program.schedule} has {plural(program.virtual_stages, 'virtual stage')} a stage, "
            f"with which it would be {duration(like)}"
        )
    return EstimateLine("bubble", estimate.bubble_us, ours, text)


def _total(results: SimulationFigures, estimate: SimaiEstimate, lines: list[EstimateLine]) -> EstimateLine:
    step, total = results.step_time_ns, _ns(estimate.total_us)
    differences = {
        line.line: line.ours_ns - _ns(line.simai_us or 0) for line in lines if line.line != "exposed"
    }
    largest_lines = largest_keys({line: abs(ns) for line, ns in differences.items()})
    if not largest_lines:
        text = "no line differs"
    else:
        words = join_with_figures(
            largest_lines, [signed_duration(differences[line]) for line in largest_lines]
        )
        whole, part = step - total, sum(differences[line] for line in largest_lines)
        # A line that differs by more than the total is compensated by others.
        is_part = whole * part > 0 and abs(whole) < 2 * abs(part) <= 2 * abs(whole)
        of_it = f", {share_word(abs(part), abs(whole))} of it by" if is_part else "; the largest difference:"
        text = f"{signed_duration(whole)} here{of_it} {words}"
    return EstimateLine("total", estimate.total_us, step, text)
