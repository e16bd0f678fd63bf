"""What an export format is to the registry, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from simcore.diagnostics import Diagnostic
from simcore.parameters import Parameters
from simcore.workload import Workload


class Export(NamedTuple):
    """An export before it is saved. pieces: the bytes of the file, made as they are asked for.

    what: what the file holds, in a few words. diagnostics: what could not be written, and what
    is written otherwise than it was read.
    """

    pieces: Iterable[bytes]
    what: str
    diagnostics: tuple[Diagnostic, ...]


class ExportFormat(NamedTuple):
    """One entry of the registry. name: the word of `--format`; help: a line on it.

    export: makes the export of a workload under parameters; it raises `UsageError` for one that
    this format cannot hold.
    """

    name: str
    help: str
    export: Callable[[Workload, Parameters], Export]
