"""Two runs as the compare screen needs them, of any kind: pairs of lanes and what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from simcore.analysis.compare import AccountChange, Alike
from simcore.analysis.run import Run
from simcore.records import NamedTuple
from simcore.units import whole_percent
from tui.timeline.lanes import Kind, LaneSource, SpanLane


class DifferenceRow(NamedTuple):
    """One line of what differs most. measure: of what a_ns and b_ns are. pair: index of where it is.

    at_ns: when it begins in A, None for a sum.
    """

    words: str
    measure: str
    a_ns: int
    b_ns: int
    pair: int
    at_ns: int | None


class Compared(Protocol):
    """Run B against run A. Pairs of lanes are numbered by how much their busy share differs."""

    @property
    def steps(self) -> tuple[int, int]:
        """Both step times, ns."""

    @property
    def runs(self) -> tuple[Run, Run]:
        """A and B."""

    @property
    def sides(self) -> tuple[str, str]:
        """What A and B are, in words."""

    @property
    def pairs(self) -> int:
        """How many pairs of lanes there are."""

    @property
    def alone(self) -> tuple[Sequence[str], Sequence[str]]:
        """The lanes of A and those of B that are in no pair, as `where` has them, in their order."""

    def where(self, pair: int) -> str:
        """`stage 3`, `rank 17`."""

    def lanes(self, pair: int) -> tuple[SpanLane, SpanLane]:
        """The lanes of a pair in A and in B."""

    def streams(self, pair: int) -> Sequence[tuple[SpanLane, SpanLane]]:
        """The lanes of the streams that both lanes of a pair have."""

    def busy_ns(self, pair: int) -> tuple[int, int]:
        """What they compute."""

    def alike(self, pair: int) -> Sequence[Alike]:
        """What both lanes have, by its start in A."""

    def known_alike(self, pair: int) -> Sequence[Alike]:
        """The same if it was found already, else nothing: what drawing may ask for."""

    def told(self, pair: int, side: int, time_ns: int) -> str:
        """What lane A (0) or B (1) of a pair does at a time of its step."""

    def find(self, is_cancelled: Callable[[], bool]) -> object:
        """What takes long, in a worker: `why`, `matched`, `rows`, `unchanged`, `notices`, `known_alike`."""

    @property
    def why(self) -> str:
        """What explains B - A and what causes it, a sentence without its full stop."""

    @property
    def accounts(self) -> Sequence[AccountChange]:
        """The accounts that are there, by the names of the screen."""

    @property
    def accounts_title(self) -> str:
        """Of which ranks."""

    @property
    def legend(self) -> Sequence[Kind]:
        """Each kind of cell that occurs in A or B."""

    @property
    def matched(self) -> str:
        """What of the two was matched."""

    @property
    def rows(self) -> Sequence[DifferenceRow]:
        """What differs most, the largest first."""

    @property
    def unchanged(self) -> Sequence[str]:
        """What is the same in both."""

    @property
    def is_other_model(self) -> bool:
        """Whether one of them is not the model of its file, and not as the other: then less is no gain."""

    @property
    def notices(self) -> Sequence[str]:
        """What it costs, or what has to be known before the figures are believed."""

    @property
    def cost(self) -> str:
        """What B keeps in memory at most, beside A, in few words; "" where it is not known, or alike."""


def paired_streams(
    sources: tuple[LaneSource, LaneSource], lanes: tuple[SpanLane, SpanLane]
) -> list[tuple[SpanLane, SpanLane]]:
    """The streams of two lanes that have the same name in both, in the order of A."""
    of_a, of_b = (source.streams(lane.number) for source, lane in zip(sources, lanes, strict=True))
    by_name = {span_lane.key.stream: span_lane for span_lane in of_b}
    return [
        (span_lane, by_name[span_lane.key.stream]) for span_lane in of_a if span_lane.key.stream in by_name
    ]


def by_difference(busy: Sequence[tuple[int, int]], steps: tuple[int, int]) -> list[int]:
    """The order of pairs: those whose busy share changes by most percent first, equal ones as they are."""

    def changed(number: int) -> int:
        a, b = map(whole_percent, busy[number], steps)
        return -abs(b - a)

    return sorted(range(len(busy)), key=changed)


def joined_legend(legends: Sequence[Sequence[Kind]]) -> list[Kind]:
    """The kinds of both runs, each once, in the first run's words; what is blank comes last."""
    joined: dict[tuple[str, str], Kind] = {}
    for kinds in legends:
        for kind in kinds:
            joined.setdefault((kind.fill, kind.role), kind)
    return sorted(joined.values(), key=lambda kind: kind.fill == "idle")
