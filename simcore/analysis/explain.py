"""The origin of the figures of a row, with the values put in, so that a reader can compute them again."""

from __future__ import annotations

import difflib
from fractions import Fraction

from simcore.analysis.layers import LayerCell, LayerLines, find_layer_factor, name_compute_part
from simcore.analysis.simulation_figures import SimulationFigures
from simcore.collectives import cell_name
from simcore.diagnostics import UsageError, printable
from simcore.program.overrides import find_factors
from simcore.simulation import Simulation, explain_alone
from simcore.trace.layers import LayerUse
from simcore.units import duration, format_number, group_digits, plural
from simcore.workload.model import PHASES, Phase, base_name

_NAME_CELLS = 60
_LINES = 6
_CLOSE = 3


def explain_rows(results: SimulationFigures, row_name: str) -> list[str]:
    """Returns lines of text on the rows of a name, equal rows together.

    row_name: NAME or NAME:PHASE, NAME as in the file, or without its number for all such rows. Raises
    `UsageError` that lists close names where there is no such row, or nothing in its phase.
    """
    rows, phases = _find_rows(results, row_name)
    lines: list[str] = []
    for group in LayerLines(results.layers.table, rows, each=False):
        lines += _explain_group(results, group, phases)
    if not any(line.startswith("  ") for line in lines):
        what = f"no {phases[0]} cell of these rows" if len(phases) == 1 else "nothing"
        raise UsageError(f"--explain {printable(row_name, _NAME_CELLS)}: {what} computes or communicates")
    return lines


def _find_rows(results: SimulationFigures, row_name: str) -> tuple[list[int], tuple[Phase, ...]]:
    names = results.simulation.workload.name
    name, colon, phase = row_name.rpartition(":")
    attempts: list[tuple[str, tuple[Phase, ...]]] = [(row_name, PHASES)]
    if colon:
        attempts += [(name, (same_phase,)) for same_phase in PHASES if same_phase == phase]
    for tried_name, phases in attempts:
        rows = [index for index, name in enumerate(names) if name == tried_name]
        rows = rows or [index for index, name in enumerate(names) if base_name(name) == tried_name]
        if rows:
            return rows, phases
    known_names = dict.fromkeys([*map(base_name, names), *names])
    close = difflib.get_close_matches(attempts[-1][0], list(known_names), n=_CLOSE)
    fitting = (
        f", close ones are {', '.join(printable(close_name, 40) for close_name in close)}" if close else ""
    )
    if colon and phase not in PHASES and name in known_names:
        fitting = f", PHASE is one of {', '.join(PHASES)}"
    raise UsageError(f"--explain {printable(row_name, _NAME_CELLS)}: no row has this name{fitting}")


def _explain_group(results: SimulationFigures, group: LayerUse, phases: tuple[Phase, ...]) -> list[str]:
    simulation, rows = results.simulation, group.rows
    workload = simulation.workload
    line_text = ", ".join(str(workload.line[row]) for row in rows[:_LINES]) + (
        ", ..." if len(rows) > _LINES else ""
    )
    name = printable(group.title if len(rows) > 1 else group.name, _NAME_CELLS)
    lines = [f"{name}: {plural(len(rows), 'equal row')}, line{'s' if len(rows) > 1 else ''} {line_text}"]
    for phase in phases:
        lines += _explain_cell(simulation, rows[0], phase, group.cell(phase))
    if len(lines) > 1:
        lines.append(
            f"  in one step of one rank, all of them: compute {duration(group.use.compute_ns)}, "
            f"exposed {duration(group.use.exposed_ns)}"
        )
    return lines


def _explain_cell(simulation: Simulation, row: int, phase: Phase, cell: LayerCell) -> list[str]:
    lines = []
    if cell.stated_ns:
        stated_text = f"the {phase} cell, {group_digits(cell.stated_ns)} ns"
        text = f"  {phase:<4} compute_ns = {group_digits(cell.compute_ns)}: {stated_text}"
        lines.append(text + compute_factors(simulation, row, phase) + packed_words(simulation, row, phase))
        maker = simulation.workload.maker
        if maker is not None:
            ops = maker.explain_ops(simulation.setup.model, row, phase)
            lines += [f"         {line}" for line in ops]
    if cell.collective is None or cell.group is None:
        return lines
    size = simulation.priced_bytes(phase, cell.bytes)
    collective_lines = explain_alone(simulation, cell.collective, cell.group, size).splitlines()
    what = cell_name(cell.collective)
    alone = f"alone on the idle network{collective_factors(simulation, row, cell)}"
    lines.append(f"  {phase:<4} comm_ns = {group_digits(cell.comm_ns)}: one {what} {alone}")
    if size != cell.bytes:
        lines.append(
            f"         the {group_digits(cell.bytes)} B of the file count as {group_digits(size)} B, as "
            "in SimAI"
        )
    lines += [f"         {line}" for line in collective_lines]
    if cell.comm_ns:
        lines.append(
            f"  {phase:<4} algbw = {group_digits(cell.bytes)} B / {group_digits(cell.comm_ns)} ns = "
            f"{cell.algbw:.3f} GB/s"
        )
        lines.append(f"  {phase:<4} busbw = algbw x {_bus_factor(cell)} = {cell.busbw:.3f} GB/s")
    return lines


def compute_factors(simulation: Simulation, row: int, phase: str) -> str:
    """Returns ` x compute scale 0.5 x time scale 0.9`: the factors of the run on a compute cell."""
    scale = simulation.parameters.compute_scale
    name = simulation.workload.name[row]
    factor = find_layer_factor(simulation, name, phase)
    words = f" x compute scale {format_number(scale)}" if scale != 1 else ""
    words += f" x layer scale {format_number(factor)}" if factor != 1 else ""
    return words + _time_scale_words(simulation, row, name_compute_part(simulation.program, row, name, phase))


def packed_words(simulation: Simulation, row: int, phase: Phase) -> str:
    """Returns of which micro-batch a compute cell is, and its time in that of least attention; "" where
    micro-batches do not differ.
    """
    packed = simulation.workload.packed
    ns = packed.compute_ns.get((phase, row)) if packed is not None else None
    return f", with the shortest documents {duration(ns[-1])}" if ns else ""


def collective_factors(simulation: Simulation, row: int, cell: LayerCell) -> str:
    """Returns ` x time scale 0.9`: the factors on the price of a collective besides `--comm-scale`."""
    return _time_scale_words(simulation, row, f"stream {cell.group}")


def _time_scale_words(simulation: Simulation, row: int, part: str) -> str:
    """Returns the factors of `--time-scale` on a part of a row, or on its whole layer, in words."""
    factors = find_factors(
        simulation.setup.overrides.time_scales, part, base_name(simulation.workload.name[row])
    )
    return "".join(f" x time scale {format_number(factor)}" for factor in factors)


def _bus_factor(cell: LayerCell) -> str:
    """Returns the factor of nccl-tests from algbw to busbw: `2 x 7/8` of an all-reduce over 8."""
    if cell.collective == "SENDRECV":
        return "1"
    part = Fraction(cell.members - 1, cell.members)
    twice = "2 x " if cell.collective == "ALLREDUCE" else ""
    return f"{twice}{part.numerator}/{part.denominator}"
