"""Everything that can be said of a file before it is simulated.

Import from here: `check_file_of`. Imports the reader, the layout and the names of rows, and
nothing of networks or the engine: a check starts fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simcore.diagnostics import Diagnostic, InputError, UsageError
from simcore.layout import resolve_layout
from simcore.parameters import Parameters
from simcore.program.building import program_findings
from simcore.workload import Workload


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in one file. workload: None for one that cannot be opened."""

    workload: Workload | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> int:
        """How many of the diagnostics are errors."""
        return sum(found.severity == "error" for found in self.diagnostics)


def check_file_of(open_file: Callable[[], Workload]) -> Checked:
    """The diagnostics of the file that `open_file` opens, in the order of their places.

    Those of its reader, and those of a run of it without any parameter that are about the file:
    what its header does not say, and where it and the rows disagree. Never raises InputError.
    """
    try:
        workload = open_file()
    except InputError as error:
        return Checked(None, error.found)
    found = list(workload.diagnostics)
    try:
        layout, assumed = resolve_layout(workload, Parameters(), None)
        found += [*assumed, *program_findings(workload, layout)]
    except InputError as error:
        found += error.found
    except UsageError as error:
        found.append(
            Diagnostic("error", "cannot-simulate", str(error), workload.path, workload.header.line, 1)
        )
    found.sort(key=_place)
    return Checked(workload, tuple(found))


def _place(found: Diagnostic) -> tuple[bool, int, int]:
    """In file order, what has no place at the end."""
    return found.line is None, found.line or 0, found.column or 0
