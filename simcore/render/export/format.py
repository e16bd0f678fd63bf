"""The export formats: an entry of the registry, a request for an export, and the export."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.parameters import Parameters, RunInput
from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct

if TYPE_CHECKING:
    from simcore.sources.inputs import Opened
    from simcore.trace.run import Run


class Request(Struct, frozen=True, dict=True):
    """A request for an export."""

    opened: Opened
    """What was opened."""
    parameters: Parameters
    """The parameters of the run."""
    ranks: RankSet | None = None
    """The ranks whose timelines are written; None: the default of the format."""
    every_rank: bool = False
    """Whether all ranks are written, also equal ones."""
    per_rank: bool = False
    """Whether each rank has a file of its own."""
    run: Run | None = None
    """The run with these parameters, where it exists already."""
    against: Run | None = None
    """Another run, A, to which the run is compared."""

    @cached_property
    def results(self) -> Run:
        """The run, made at first use: formats that write what was opened do without. Raises what making it
        does.
        """
        # Imported here: help needs no run.
        from simcore.runs import open_run

        return self.run or open_run(RunInput(self.opened, self.parameters))


class Progress(Struct):
    """How many of `total` spans have been written."""

    total: int
    written_count: int = 0


class RankFile(NamedTuple):
    """One file of a folder. name: without the ending of compressed files."""

    name: str
    chunks: Iterable[bytes]


class Export(NamedTuple):
    """An export before it is saved."""

    chunks: Iterable[bytes]
    """The bytes of the file, made as they are taken."""
    what: str
    """The content of the file, in a few words."""
    diagnostics: tuple[Diagnostic, ...]
    """What could not be written, or was written otherwise than it was read."""
    progress: Progress | None = None
    """The progress, which advances while chunks are made."""
    files: Iterable[RankFile] | None = None
    """The files, in place of chunks, where each rank has one."""
    as_read: bool = False
    """Whether names are written as they were read, with control characters."""


class ExportFormat(NamedTuple):
    """One entry of the registry."""

    name: str
    """The word of `--format`, and the file here whose `export` makes it."""
    help: str
    """A line on it."""
    takes: tuple[str, ...]
    """The kinds of input that it can be made of, by their `noun`."""
    is_folder: bool = False
    """Whether it is always a folder of files."""
    has_two: bool = False
    """Whether it can have a second run."""

    def build_export(self, request: Request) -> Export:
        """Returns the requested export; `write` writes it.

        Raises `UsageError` for what this format cannot contain, and what making the run raises.
        """
        opened = request.opened
        if request.against is not None and not self.has_two:
            raise UsageError(f"--format {self.name} has no place for a second run: html has")
        if opened.noun not in self.takes:
            expected = " or ".join(self.takes)
            name = printable(opened.path, 60)
            raise UsageError(f"FILE {name}: found {opened.noun}, expected {expected}")
        # Imported here: `--help` names all formats, an export needs one.
        built: Export = import_module(f"simcore.render.export.{self.name}").export(request)
        return built


def select_indices(
    request: Request, path: str, noun: str, ids: Sequence[int], of: tuple[str, str]
) -> list[int]:
    """Returns the indices of the requested ids, by default of all.

    noun: what the files are. ids: those there are. of: what stands before an id, and what each is of. Raises
    `UsageError` for an id that is not there, and for `--per-rank`.
    """
    name = printable(path, 60)
    if request.per_rank:
        raise UsageError(f"--per-rank: {name} is {noun}, which goes into one file")
    index_of = {one: index for index, one in enumerate(ids)}
    for one in request.ranks or ():
        if one not in index_of:
            raise UsageError(f"--ranks: found {of[0]}{one}, of which {name} has no {of[1]}")
    return [index_of[one] for one in (ids if request.ranks is None else request.ranks)]
