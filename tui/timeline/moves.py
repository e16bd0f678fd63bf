"""What one moves by on the timeline besides time: passes of micro-batches, waits, figures of a stretch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tui.timeline.query import Query
from tui.timeline.spans import LaneSource, SpanLane

if TYPE_CHECKING:
    from tui.timeline.critical import PathLanes
    from tui.timeline.walking import Step


class Stretch(NamedTuple):
    """start_ns..end_ns of the step. words: what it is."""

    start_ns: int
    end_ns: int
    words: str


class Figure(NamedTuple):
    """How much of a stretch is what. short: its words on a narrow screen. role: its colour."""

    words: str
    short: str
    role: str
    ns: int


class Figures(NamedTuple):
    """A stretch's figures. room_ns: what 100 % are: the stretch, times the ranks that were added up.

    ranks: how many that are, so that a mean can be said.
    """

    of: tuple[Figure, ...]
    room_ns: int
    ranks: int


class Moves(Protocol):
    """A run as moving on the timeline needs it. number: a group of ranks, as the lanes have it."""

    def stage_of(self, number: int) -> int | None:
        """The pipeline stage of a group of ranks."""

    def problem(self, query: Query) -> str:
        """Which rank, stage or micro-batch of a query this run does not have; "" if it has all."""

    def names(self) -> Collection[str]:
        """The names of rows or operations, each once."""

    def rank_words(self, rank: int) -> str:
        """Where a rank is: `rank 37 = stage 0, dp 4, tp 5`."""

    def passes(self, number: int) -> Sequence[Stretch]:
        """The passes of micro-batches, in the order of time."""

    def waits(self, number: int) -> Sequence[int]:
        """The spans of the folded lane in which it waits, the longest wait first, then the idle ones."""

    def all_waits(self) -> Sequence[tuple[int, int]]:
        """(number, span) of the waits of all lanes, in that order."""

    def waited_ns(self, number: int, index: int) -> int:
        """How long it waits in a span of `waits`: all of it, or a part."""

    @property
    def order(self) -> Sequence[str]:
        """The words of all figures, in the order in which they are told."""

    def figures(self, number: int, first_ns: int, last_ns: int) -> Figures:
        """What a rank of a group does from `first_ns` to `last_ns`."""

    def all_figures(self, first_ns: int, last_ns: int) -> Figures:
        """What all ranks do, added up."""

    def longest(self, number: int, first_ns: int, last_ns: int) -> tuple[int, Figure | None]:
        """(spans of the folded lane in a stretch, the longest of them as it is cut there)."""

    def volume(self, lane: SpanLane, index: int) -> str:
        """How many bytes a span moves, and how fast; "" for compute."""

    def more(self, lane: SpanLane, index: int, wide: bool, rank: int | None) -> str:
        """What there is to say of a span besides what the lane says: its pass, for whom it waits.

        rank: the one of the lane's ranks that is spoken of, None for the first.
        """

    def walk(self, lane: SpanLane, index: int, rank: int | None, direction: int) -> Sequence[Step]:
        """What a span waited for (-1), or holds back (1); the first one binds."""

    def critical(self, time_ns: int, direction: int) -> Step | None:
        """The segment of the critical path behind (1) or before (-1) the one at a time."""

    def path(self, source: LaneSource) -> PathLanes | None:
        """The critical path by the lanes of `source`; None where the ranks have no common time."""

    def all_of(self, lane: SpanLane, index: int, rank: int | None) -> list[tuple[str, str]]:
        """(label, words): all that is known of a span."""


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def microbatch_words(number: int, microbatches: int) -> str:
    """`micro-batch 2 (3rd of 16)`: the number of files and JSON counts from 0, people from 1."""
    return f"micro-batch {number} ({ordinal(number + 1)} of {microbatches})"
