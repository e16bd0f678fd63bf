"""One of two runs that are laid beside each other, simulated or measured, asked the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from simcore.analysis.beside.passes import TimedPass, measured_passes, simulated_passes
from simcore.analysis.beside.words import ALIKE, COMPUTE, MEASURED, SIMULATED, in_same_words
from simcore.analysis.results import Results
from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.measured.places import places_of
from simcore.records import Struct
from simcore.replay import MeasuredResults


class StepShape(NamedTuple):
    """Degrees and micro-batches of a step, None where a trace does not tell."""

    tp: int | None
    dp: int | None
    pp: int | None
    microbatches: int | None


class Seat(NamedTuple):
    """Some ranks of a side that are one lane. number: their rank class, or place among the run's ranks.

    stage: None where it is not known. place: (stage, dp, tp) of a measured rank whose degrees are known.
    """

    number: int
    stage: int | None
    first_rank: int
    ranks: int
    place: tuple[int, int, int] | None = None


class Side(Struct, frozen=True, dict=True):
    """A run as what it is laid beside sees it. Raises `UsageError` for an order without times."""

    results: Results | MeasuredResults

    def __post_init__(self) -> None:
        if isinstance(self.results, MeasuredResults) and not self.results.measured.timed:
            raise UsageError(
                f"compare {printable(self.path)}: found an order of operations without times, expected a "
                "trace with durations"
            )

    @property
    def path(self) -> str:
        """What was opened, as the user gave it."""
        return self.results.measured.path if isinstance(self.results, MeasuredResults) else self.results.path

    @property
    def stamp(self) -> str | None:
        """Which run of its directory it is, by the names of the files; None where they do not say."""
        return self.results.measured.stamp if isinstance(self.results, MeasuredResults) else None

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """What was assumed of it, ignored, or does not fit."""
        return self.results.diagnostics

    @property
    def kind(self) -> str:
        """`simulated`, `measured`, or `replayed`."""
        if isinstance(self.results, Results):
            return "simulated"
        measured = self.results.scales is None and not self.results.measured.replayed
        return "measured" if measured else "replayed"

    @property
    def step_time_ns(self) -> int:
        return self.results.step_time_ns

    @property
    def together(self) -> bool:
        """Whether its ranks have a common time, so that one can be seen to wait for another."""
        return isinstance(self.results, Results) or self.results.graph.together

    @cached_property
    def shape(self) -> StepShape:
        if isinstance(self.results, Results):
            simulation = self.results.simulation
            layout = simulation.layout
            return StepShape(layout.tp, layout.dp, layout.pp, simulation.program.microbatches)
        run = self.results.measured
        degrees = places_of(run.ranks, run.degrees).degrees
        return StepShape(degrees.tp, degrees.dp, degrees.pp, run.microbatches or None)

    @cached_property
    def seats(self) -> tuple[Seat, ...]:
        """The lanes of the side, by stage and then by rank."""
        found = self._simulated_seats() if isinstance(self.results, Results) else self._measured_seats()
        return tuple(sorted(found, key=lambda one: (-1 if one.stage is None else one.stage, one.first_rank)))

    def _simulated_seats(self) -> list[Seat]:
        assert isinstance(self.results, Results)
        classes = self.results.simulation.timeline.classes
        return [
            Seat(number, one.stage, one.ranks.first, len(one.ranks)) for number, one in enumerate(classes)
        ]

    def _measured_seats(self) -> list[Seat]:
        assert isinstance(self.results, MeasuredResults)
        run = self.results.measured
        found = []
        for number, seat in enumerate(places_of(run.ranks, run.degrees).places):
            rank = run.ranks[number]
            place = None
            if seat is not None and seat.dp is not None and seat.tp is not None:
                place = (seat.stage, seat.dp, seat.tp)
            stage = rank.stage if seat is None else seat.stage
            found.append(Seat(number, stage, rank.number, 1, place))
        return found

    @property
    def places(self) -> list[tuple[tuple[int, int, int], Seat]]:
        """(stage, dp, tp) of each measured rank, with its seat; empty where that of one is not known."""
        known = [(seat.place, seat) for seat in self.seats if seat.place is not None]
        return known if len(known) == len(self.seats) else []

    def seat_at(self, place: tuple[int, int, int]) -> Seat | None:
        """Who sits at (stage, dp, tp) of the layout; None if that rank is missing."""
        if isinstance(self.results, MeasuredResults):
            return next((seat for seat in self.seats if seat.place == place), None)
        stage, dp, tp = place
        simulation = self.results.simulation
        number = simulation.timeline.folding.class_of(simulation.layout.rank(tp, dp, stage))
        return next(seat for seat in self.seats if seat.number == number)

    def total_ns(self, seat: Seat) -> list[int]:
        """ns by ALIKE of one rank of a seat: they sum to the step."""
        accounts = self.results.accounts[seat.number]
        return in_same_words(accounts.total_ns, SIMULATED if isinstance(self.results, Results) else MEASURED)

    def busy_ns(self, seat: Seat) -> int:
        """What one rank of a seat computes, ns."""
        found = self.total_ns(seat)
        return sum(found[account] for account in COMPUTE)

    def in_words(self, seat: Seat) -> dict[str, int]:
        """The accounts of a rank of a seat that are there, ns by name."""
        return {name: ns for name, ns in zip(ALIKE, self.total_ns(seat), strict=True) if ns}

    def passes(self, seat: Seat) -> list[TimedPass]:
        """The passes of a rank of a seat, in time order."""
        if isinstance(self.results, Results):
            return simulated_passes(self.results.simulation.timeline, seat.number)
        return measured_passes(self.results.run.ranks[seat.number])
