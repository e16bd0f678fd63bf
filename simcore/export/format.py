"""What an export format is to the registry, what it is asked for, and what it gives."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from simcore.diagnostics import UsageError, printable
from simcore.parameters import Parameters, refuse_others
from simcore.records import Struct

if TYPE_CHECKING:
    from simcore.chakra import TraceSet
    from simcore.diagnostics import Diagnostic
    from simcore.measured import MeasuredRun
    from simcore.ranks import RankSet
    from simcore.workload import Workload


class Request(NamedTuple):
    """What is to be exported.

    ranks: whose timelines, None for what the format takes by itself. every_rank: those of all
    ranks, also of equal ones. per_rank: a file for each rank.
    """

    opened: Workload | MeasuredRun | TraceSet
    parameters: Parameters
    ranks: RankSet | None = None
    every_rank: bool = False
    per_rank: bool = False


class Progress(Struct):
    """How many of `total` spans have been written."""

    total: int
    done: int = 0


class RankFile(NamedTuple):
    """One file of a folder. name: without what says that it is compressed."""

    name: str
    pieces: Iterable[bytes]


class Export(NamedTuple):
    """An export before it is saved. pieces: the bytes of the file, made as they are asked for.

    what: what the file holds, in a few words. diagnostics: what could not be written, and what
    is written otherwise than it was read. progress: goes on while pieces are made. files: in
    place of pieces, where a file for each rank was asked for. as_read: names stand in it as they were
    read, with what a terminal would obey.
    """

    pieces: Iterable[bytes]
    what: str
    diagnostics: tuple[Diagnostic, ...]
    progress: Progress | None = None
    files: Iterable[RankFile] | None = None
    as_read: bool = False


class ExportFormat(NamedTuple):
    """One entry of the registry. name: the word of `--format`, and the file here whose `export` makes it of
    a workload. help: a line on it. of_traces: whether `export_measured` of NAME_measured makes it of a trace.
    is_folder: whether it is a folder of files, always.
    """

    name: str
    help: str
    of_traces: bool = True
    is_folder: bool = False

    def requested(self, request: Request) -> Export:
        """The export that is asked for.

        Raises `UsageError` for what this format cannot hold, and what reading and simulating raise.
        """
        from simcore.workload import Workload

        opened = request.opened
        # Loaded here: `--help` names all formats, an export has one, and one kind of input.
        if isinstance(opened, Workload):
            refuse_others(request.parameters, "workload" if opened.maker is None else "model")
            made: Export = import_module(f"simcore.export.{self.name}").export(request)
        elif opened.format == "chakra":
            found = printable(opened.path, 60)
            raise UsageError(f"FILE {found}: found execution traces, expected a workload or a measured run")
        elif self.of_traces:
            made = import_module(f"simcore.export.{self.name}_measured").export_measured(opened, request)
        else:
            found = printable(opened.path, 60)
            raise UsageError(f"FILE {found}: found a measured run, expected a workload")
        return made

    def export(self, workload: Workload, parameters: Parameters) -> Export:
        """The export of a workload under parameters, all else as the format has it by itself."""
        return self.requested(Request(workload, parameters))
