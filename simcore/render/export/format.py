"""What an export format is to the registry, what it is asked for, which ranks it holds, and what it gives."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.parameters import Parameters
from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.chakra import ExecutionSet
    from simcore.measured import MeasuredRun
    from simcore.simulation import Simulation
    from simcore.trace.run import Run
    from simcore.workload import Workload


class Request(NamedTuple):
    """What is to be exported.

    run: of it with these parameters, for formats that are made of any run. against: another run, A, that it
    stands beside. ranks: whose timelines, None for what the format takes by itself. every_rank: those of all
    ranks, also of equal ones. per_rank: a file for each rank.
    """

    opened: Workload | MeasuredRun | ExecutionSet
    parameters: Parameters
    ranks: RankSet | None = None
    every_rank: bool = False
    per_rank: bool = False
    run: Run | None = None
    against: Run | None = None


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
    a workload. help: a line on it. of_traces: the file whose `export_measured` makes it of a trace.
    is_folder: whether it is a folder of files, always. of_runs: whether `export_run` of its file makes it of
    any run, or of two beside each other.
    """

    name: str
    help: str
    of_traces: str = ""
    is_folder: bool = False
    of_runs: bool = False

    def requested(self, request: Request) -> Export:
        """The export that is asked for.

        Raises `UsageError` for what this format cannot hold, and what reading and simulating raise.
        """
        from simcore.workload import Workload

        opened = request.opened
        if self.of_runs:
            page: Export = import_module(f"simcore.render.export.{self.name}").export_run(request)
            return page
        if request.against is not None:
            raise UsageError(f"--format {self.name} has no place for a second run: html has")
        # Loaded here: `--help` names all formats, an export has one, and one kind of input.
        if isinstance(opened, Workload):
            request.parameters.refuse_others("workload" if opened.maker is None else "model")
            made: Export = import_module(f"simcore.render.export.{self.name}").export(request)
        elif opened.source == "executed":
            name = printable(opened.path, 60)
            raise UsageError(f"FILE {name}: found execution traces, expected a workload or a measured run")
        elif self.of_traces:
            made = import_module(f"simcore.render.export.{self.of_traces}").export_measured(opened, request)
        else:
            name = printable(opened.path, 60)
            raise UsageError(f"FILE {name}: found a measured run, expected a workload")
        return made


class Chosen(Struct, frozen=True):
    """The ranks of an export. of_class: those of each rank class that has any, ascending.

    stand_ins: whether a rank stands for all that are equal to it, here too where it talks to others.
    """

    of_class: dict[int, list[int]]
    stand_ins: bool

    @property
    def count(self) -> int:
        return sum(map(len, self.of_class.values()))

    def spans(self, simulation: Simulation) -> int:
        """Spans of the chosen ranks: every op has one."""
        program = simulation.timeline.stage_program
        return sum(len(program(number).ops) * len(ranks) for number, ranks in self.of_class.items())


def choose(simulation: Simulation, request: Request, folded: bool) -> Chosen:
    """The ranks that were asked for. folded: without a choice, one of each class, else all of them.

    Raises `UsageError` for a rank that the world does not have.
    """
    classes = simulation.timeline.classes
    if request.ranks is None:
        if folded and not request.every_rank:
            return Chosen(
                {number: [rank_class.ranks.first] for number, rank_class in enumerate(classes)}, True
            )
        return Chosen({number: sorted(rank_class.ranks) for number, rank_class in enumerate(classes)}, False)
    last = max(request.ranks)
    if last >= simulation.layout.world:
        of = simulation.layout.world - 1
        raise UsageError(f"--ranks: found rank {last}, expected ranks from 0 to {of}")
    wanted = set(request.ranks)
    chosen = {
        number: sorted(wanted.intersection(rank_class.ranks)) for number, rank_class in enumerate(classes)
    }
    return Chosen({number: ranks for number, ranks in chosen.items() if ranks}, False)


def left_out(simulation: Simulation, chosen: Chosen) -> list[Diagnostic]:
    """What is said where one rank stands for others."""
    world = simulation.layout.world
    if not chosen.stand_ins or chosen.count == world:
        return []
    message = (
        f"{plural(chosen.count, 'rank')} of {world} written, one of each class of equal ranks: "
        "--ranks all writes every rank"
    )
    return [Diagnostic("note", "equal-ranks", message, simulation.workload.path)]


def of_run(simulation: Simulation) -> tuple[Diagnostic, ...]:
    """The diagnostics of a run less those of its file, which are said where the file is opened."""
    return simulation.diagnostics[len(simulation.workload.diagnostics) :]


def ranks_in_words(ranks: list[int]) -> str:
    """Ranks as reports print them: `0-63`, `0-7+64*16`."""
    return RankSet.of(ranks).text()
