"""All diagnostics of a file before it is simulated.

Import from here: `check_file_of`, `check_schedule`. Imports the reader, the layout and the names of rows, but
not networks or the engine: a check starts fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic, InputError, UsageError
from simcore.layout import resolve_layout
from simcore.program.building import program_findings
from simcore.records import Struct
from simcore.workload import Workload
from simcore.workload.model import DegreeParameters

if TYPE_CHECKING:
    from simcore.program.order_files import ReadOrder
    from simcore.sources.inputs import Opened


class FileCheck(Struct, frozen=True):
    """The result of checking one file."""

    opened: Opened | ReadOrder | None
    """None for a file that cannot be opened."""
    diagnostics: tuple[Diagnostic, ...]
    """In the order of their locations."""
    rows: int | None = None
    """The number of rows of a workload."""

    @property
    def errors(self) -> int:
        """The number of diagnostics that are errors."""
        return sum(diagnostic.severity == "error" for diagnostic in self.diagnostics)


def check_file_of(open_file: Callable[[], Opened]) -> FileCheck:
    """Returns the diagnostics of the file that `open_file` opens, in the order of their locations.

    They are those of its reader, and those of a run without any parameter that are about the file: what its
    header does not state, and where it and the rows disagree. Never raises InputError.
    """
    try:
        workload = open_file()
    except InputError as error:
        return FileCheck(None, error.all_diagnostics)
    diagnostics = list(workload.diagnostics)
    if not isinstance(workload, Workload):
        if workload.source == "executed":
            from simcore.chakra.opening import find_structure

            diagnostics += find_structure(workload).errors
        if workload.source == "hung":
            from simcore.flight.findings import find_hang

            diagnostics += find_hang(workload)
        if workload.source == "snapshot":
            from simcore.snapshots.findings import find_failures

            diagnostics += find_failures(workload)
        diagnostics.sort(key=_location_key)
        return FileCheck(workload, tuple(diagnostics))
    try:
        diagnostics += _run_findings(workload)
    except InputError as error:
        diagnostics += error.all_diagnostics
    except UsageError as error:
        diagnostics.append(
            Diagnostic("error", "cannot-simulate", str(error), workload.path, workload.header.line, 1)
        )
    diagnostics.sort(key=_location_key)
    return FileCheck(workload, tuple(diagnostics), len(workload))


def check_schedule(path: str) -> FileCheck:
    """Returns the diagnostics of a schedule file, in the order of their locations. Never raises
    InputError.
    """
    # Imported here: most files are workloads.
    from simcore.program.order_files import check_order

    try:
        order, diagnostics = check_order(path)
    except InputError as error:
        return FileCheck(None, error.all_diagnostics)
    return FileCheck(order, tuple(sorted(diagnostics, key=_location_key)))


def _run_findings(workload: Workload) -> list[Diagnostic]:
    """Returns the diagnostics that a run without any parameter has of the file."""
    if workload.maker is not None:
        # It has sizes alone: only a run has the layout that decides the rest.
        return []
    if workload.dialect == "astra-sim-1":
        # Imported here: most files are of the other dialect.
        from simcore.cluster import ClusterParameters, choose_cluster
        from simcore.program.building import build_policy_program
        from simcore.program.policies import policy_layout, with_scopes
        from simcore.program.schedule_choice import ScheduleParameters

        first_dimension = choose_cluster(ClusterParameters()).first_dimension
        layout, assumed = policy_layout(workload, DegreeParameters(), None, first_dimension)
        scoped = with_scopes(workload, layout)
        return [*assumed, *build_policy_program(scoped, layout, ScheduleParameters(), False)[1]]
    layout, assumed = resolve_layout(workload, DegreeParameters(), None)
    return [*assumed, *program_findings(workload, layout), *_model_findings(workload)]


def _model_findings(workload: Workload) -> list[Diagnostic]:
    """Returns what model AICB's file was made of; nothing if its gradients are not stated as AICB
    states them.
    """
    # Imported here: a run does not need it.
    from simcore.recovery import recover
    from simcore.recovery.odd import oddities
    from simcore.workload.traffic import is_like_aicb

    if not is_like_aicb(workload):
        return []
    recovered = recover(workload)
    return [*oddities(workload, recovered), Diagnostic("note", "aicb-model", recovered.line(), workload.path)]


def _location_key(diagnostic: Diagnostic) -> tuple[bool, int, int]:
    """Returns a key that sorts in file order, with what has no location at the end."""
    return diagnostic.line is None, diagnostic.line or 0, diagnostic.column or 0
