"""Which ranks an export holds: those that were asked for, or one for each class of equal ranks."""

from __future__ import annotations

from simcore.diagnostics import Diagnostic, UsageError
from simcore.export.format import Request
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.simulation import Simulation
from simcore.units import plural


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
            return Chosen({number: [one.ranks.first] for number, one in enumerate(classes)}, True)
        return Chosen({number: sorted(one.ranks) for number, one in enumerate(classes)}, False)
    last = max(request.ranks)
    if last >= simulation.layout.world:
        of = simulation.layout.world - 1
        raise UsageError(f"--ranks: found rank {last}, expected ranks from 0 to {of}")
    wanted = set(request.ranks)
    found = {number: sorted(wanted.intersection(one.ranks)) for number, one in enumerate(classes)}
    return Chosen({number: ranks for number, ranks in found.items() if ranks}, False)


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
