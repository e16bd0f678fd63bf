"""Which rank of a simulation a rank of a trace is; steps that cannot be compared are refused here."""

from __future__ import annotations

from typing import NamedTuple

from simcore.diagnostics import UsageError, printable
from simcore.layout import Layout
from simcore.measured import MeasuredRun
from simcore.measured.names import Degrees
from simcore.replay.results import MeasuredResults
from simcore.simulation import Simulation
from simcore.units import plural


class MatchedRanks(NamedTuple):
    """ranks: (index in the trace, rank of the simulation) of every rank of the trace. is_assumed: the trace
    does not say how its ranks are laid out, so they are taken to be as those of the workload.
    """

    ranks: list[tuple[int, int]]
    is_assumed: bool


def matching_ranks(simulation: Simulation, results: MeasuredResults) -> MatchedRanks:
    """The ranks of the trace, found by tp, dp and stage.

    Raises `UsageError` where the two steps are not the same work on the same layout.
    """
    run, program = results.measured, simulation.program
    path = printable(run.path, 60)
    if not run.timed:
        raise UsageError(
            f"calibrate: {path} is an order of operations without times, expected a trace with durations"
        )
    if program.queued:
        raise UsageError(
            "calibrate: dialect astra-sim-1 queues its collectives by chunks, which no trace shows; "
            "--dialect simai takes the rows as SimAI does"
        )
    layout = simulation.layout
    # One rank alone says nothing of how many there are, unless its name does.
    degrees = results.ties.matches.places.degrees if len(run.ranks) > 1 else run.degrees
    is_assumed = degrees.tp is None or degrees.dp is None or degrees.pp is None
    if is_assumed:
        degrees = Degrees(layout.world, layout.tp, layout.dp, layout.pp)
    _check_layout(layout, degrees)
    ranks = _ranks(layout, degrees, run, path)
    microbatches = program.microbatches * simulation.parameters.passes
    if microbatches != run.microbatches:
        found = [plural(count, "micro-batch") for count in (run.microbatches, microbatches)]
        hint = f" (--microbatches {run.microbatches})" if program.pipelined and run.microbatches else ""
        raise UsageError(f"calibrate: the trace has {found[0]}, the simulated step {found[1]}{hint}")
    return MatchedRanks(ranks, is_assumed)


def _ranks(layout: Layout, degrees: Degrees, run: MeasuredRun, path: str) -> list[tuple[int, int]]:
    found = []
    for index, rank in enumerate(run.ranks):
        position = degrees.position(rank.number)
        if position is None:
            raise UsageError(
                f"calibrate: {path} has rank {rank.number}, the simulated step {plural(layout.world, 'rank')}"
            )
        if rank.stage not in (None, position[2]):
            raise UsageError(
                f"calibrate: rank {rank.number} of {path} is of stage {rank.stage}; with tp {layout.tp}, "
                f"dp {layout.dp} and pp {layout.pp} it would be of stage {position[2]}"
            )
        found.append((index, layout.rank(*position)))
    return found


def _check_layout(layout: Layout, degrees: Degrees) -> None:
    theirs = {"tp": degrees.tp, "dp": degrees.dp, "pp": degrees.pp}
    ours = {"tp": layout.tp, "dp": layout.dp, "pp": layout.pp}
    if degrees.exp is not None:
        theirs["ep"], ours["ep"] = degrees.exp, layout.ep
    if theirs == ours:
        return
    sides = [" x ".join(f"{name} {degree}" for name, degree in side.items()) for side in (theirs, ours)]
    world = (degrees.tp or 1) * (degrees.dp or 1) * (degrees.pp or 1)
    flags = [f"--{name} {degree}" for name, degree in theirs.items() if name != "dp"]
    raise UsageError(
        f"calibrate: the trace has {sides[0]}, the simulated step {sides[1]} "
        f"(--world {world} {' '.join(flags)})"
    )
