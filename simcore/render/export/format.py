"""What an export format is to the registry, what it is asked for, and what it gives."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.parameters import Parameters, RunInput
from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct

if TYPE_CHECKING:
    from simcore.chakra import ExecutionSet
    from simcore.measured import MeasuredRun
    from simcore.trace.run import Run
    from simcore.workload import Workload


class Request(Struct, frozen=True, dict=True):
    """What is to be exported.

    run: of it with these parameters, where it is there already. against: another run, A, that it stands
    beside. ranks: whose timelines, None for what the format takes by itself. every_rank: those of all
    ranks, also of equal ones. per_rank: a file for each rank.
    """

    opened: Workload | MeasuredRun | ExecutionSet
    parameters: Parameters
    ranks: RankSet | None = None
    every_rank: bool = False
    per_rank: bool = False
    run: Run | None = None
    against: Run | None = None

    @cached_property
    def results(self) -> Run:
        """The run: formats that write what was opened do without. Raises what making it does."""
        # Imported here: whoever asks for help makes none.
        from simcore.runs import open_run

        return self.run or open_run(RunInput(self.opened, self.parameters))


class Progress(Struct):
    """How many of `total` spans have been written."""

    total: int
    written_count: int = 0


class RankFile(NamedTuple):
    """One file of a folder. name: without what says that it is compressed."""

    name: str
    chunks: Iterable[bytes]


class Export(NamedTuple):
    """An export before it is saved. pieces: the bytes of the file, made as they are asked for.

    what: what the file holds, in a few words. diagnostics: what could not be written, and what
    is written otherwise than it was read. progress: goes on while pieces are made. files: in
    place of pieces, where a file for each rank was asked for. as_read: names stand in it as they were
    read, with what a terminal would obey.
    """

    chunks: Iterable[bytes]
    what: str
    diagnostics: tuple[Diagnostic, ...]
    progress: Progress | None = None
    files: Iterable[RankFile] | None = None
    as_read: bool = False


class ExportFormat(NamedTuple):
    """One entry of the registry. name: the word of `--format`, and the file here whose `export` makes it.
    help: a line on it. takes: what it can be made of, as that calls itself (`noun`). is_folder: whether it is
    a folder of files, always. has_two: whether it has a place for a second run.
    """

    name: str
    help: str
    takes: tuple[str, ...]
    is_folder: bool = False
    has_two: bool = False

    def build_export(self, request: Request) -> Export:
        """The export that is asked for; `write` writes it.

        Raises `UsageError` for what this format cannot hold, and what making the run raises.
        """
        opened = request.opened
        if request.against is not None and not self.has_two:
            raise UsageError(f"--format {self.name} has no place for a second run: html has")
        if opened.noun not in self.takes:
            expected = " or ".join(self.takes)
            name = printable(opened.path, 60)
            raise UsageError(f"FILE {name}: found {opened.noun}, expected {expected}")
        # Loaded here: `--help` names all formats, an export has one.
        built: Export = import_module(f"simcore.render.export.{self.name}").export(request)
        return built
