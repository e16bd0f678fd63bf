"""Opens a sweep: the run that its screens begin with, for a file of results or for a sweep to come."""

from __future__ import annotations

import itertools
import os

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.known_models import named_model
from simcore.parameters import RunInput
from simcore.runs import open_run
from simcore.sources.inputs import open_input, open_model, require_workload
from simcore.sweeping.evaluating import Evaluator, candidate_of
from simcore.sweeping.layouts import list_layouts
from simcore.sweeping.outcome import Outcome
from simcore.sweeping.pareto_front import choose_measure
from simcore.sweeping.point import Point
from simcore.sweeping.point_lines import opening_words
from simcore.sweeping.space import Candidate
from simcore.workload import Workload
from tui.session import Run
from tui.sweep.sweep_result import SweepResult

OTHER_STEP = "its line says another step: the input or wltui has changed since"
_UNEQUAL = (
    "the micro-batches of the file are unequal: points with another number of them do other work, and the "
    "time of a micro-batch is a mean of unequal ones"
)
# The most candidates that are checked for one that fits: half a second.
_MAX_CHECKED = 300


def open_fastest(shown_sweep: SweepResult, path: str) -> Run:
    """Returns the fastest point of a file of results, simulated; where none fits, the first that was run or
    could not be. Raises `InputError` where its input is missing, `UsageError` where no point can be run.
    """
    first = shown_sweep.fastest or next((point for point in shown_sweep.points if point.is_run), None)
    if first is None:
        raise UsageError(f"{printable(path)}: no point of it was simulated")
    workload, shown_sweep.opened = _open_input(opening_words(first), path)
    return open_run(RunInput(workload, candidate_of(first).parameters))


def _open_input(opened: tuple[str, ...], path: str) -> tuple[Workload, tuple[str, ...]]:
    """Returns the input of a sweep, as its command names it or, where it is missing there, next to the
    results; and the words that open it there.
    """
    if not opened:
        return open_model(None), opened
    name = opened[-1]
    if not os.path.lexists(name) and named_model(name) is None:
        sibling = os.path.join(os.path.dirname(path), os.path.basename(name))
        if not os.path.lexists(sibling):
            raise InputError(
                Diagnostic("error", "unreadable-file", "the input of the sweep is not there: its points open "
                           "as timelines where it is, or with it beside the results", name)
            )  # fmt: skip
        name = sibling
        opened = (*opened[:-1], name)
    return open_model(name) if len(opened) == 2 else require_workload(open_input(name), "sweep:"), opened


def list_assumptions(outcome: Outcome, path: str, workload: Workload | None = None) -> list[str]:
    """Returns the assumptions of a report of the fastest point, and what its figures do not price. path: of
    the results. workload: the input where it is open. Where the input is missing, it says that they are
    unknown.
    """
    if not outcome.front.best:
        return []
    fastest = outcome.front.best[0].point
    try:
        if workload is None:
            workload, _ = _open_input(opening_words(fastest), path)
        results = open_run(RunInput(workload, candidate_of(fastest).parameters))
    except (InputError, UsageError) as error:
        return [f"not known, for its input does not open: {' '.join(str(error).split())}"]
    is_of_unequal = (
        not results.shape.has_equal_microbatches and choose_measure(outcome.front.points) is not None
    )
    return [_UNEQUAL] * is_of_unequal + [
        diagnostic.message
        for diagnostic in results.diagnostics
        if diagnostic.weight == "assumption" or diagnostic.code == "model-priced"
    ]


def first_run(evaluator: Evaluator) -> Run:
    """Returns the run that the screens begin with while a sweep has no points yet: its first candidate that
    fits, else the first that can be run. Raises as running it does where none can.
    """
    space = evaluator.definition.space
    candidates = list_layouts(evaluator.workload, space) if space.layouts else space.combinations()
    first: Candidate | None = None
    error: Exception = UsageError("no point of the sweep can be run")
    for candidate in itertools.islice(candidates, _MAX_CHECKED):
        check = evaluator.check(candidate)
        if check.why:
            error = UsageError(f"no point of the sweep can be run: {check.why}")
            continue
        if not check.fits:
            first = first or candidate
            continue
        try:
            return open_run(RunInput(evaluator.workload, candidate.parameters))
        except (UsageError, InputError) as failed:
            error = failed
    if first is None:
        raise error
    return open_run(RunInput(evaluator.workload, first.parameters))


def difference_text(point: Point, run: Run) -> str:
    """Returns the message for a point whose run takes another time now than when it was swept; else ""."""
    if point.step_time_ns in (None, run.step_time_ns):
        return ""
    return OTHER_STEP
