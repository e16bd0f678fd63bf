"""What is said of a span, whatever run it is of: at the cursor, in full, and along what waits for what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from simcore.ranks import RankSet


class Said(NamedTuple):
    """A span in few words. Text of a file in them is printable.

    what: it is; "" between spans. whose: the ranks, the most words first. times: when. length: how long, ""
    where the file has no duration. itself: (words, more words) on the transfer or collective behind a wait.
    more: where the duration comes from, or what the file says.
    """

    what: str
    whose: tuple[str, ...]
    times: str = ""
    length: str = ""
    itself: tuple[str, str] = ("", "")
    more: str = ""


class Step(NamedTuple):
    """A span to go to. number: its track; stream: of the lane that shows it. words: what it is, and why it
    is a cause or an effect.
    """

    number: int
    stream: str | None
    start_ns: int
    rank: int
    words: str


class SpanWords(Protocol):
    """What a run says of its spans: `index` of the lane of a track, or of one of its streams.

    rank: the one of the track's ranks that is spoken of, None for the first.
    """

    def said(self, number: int, stream: str | None, index: int | None, ranks: RankSet) -> Said:
        """The span, or (None) that nothing runs. ranks: those that the lane stands for."""

    def volume(self, number: int, stream: str | None, index: int) -> str:
        """How many bytes a span moves, and how fast; "" for compute."""

    def aside(self, number: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        """What there is to say besides: its pass, for whom it waits. wide: whether there is a line for it."""

    def all_of(
        self, number: int, stream: str | None, index: int, rank: int | None
    ) -> list[tuple[str, str]]:
        """(label, words): all that is known of a span."""

    def walk(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> Sequence[Step]:
        """What a span waited for (-1), or holds back (1); the first one binds."""

    def critical(self, time_ns: int, direction: int) -> Step | None:
        """The segment of the critical path behind (1) or before (-1) that at a time; None past its ends."""


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def microbatch_words(number: int, microbatches: int) -> str:
    """`micro-batch 2 (3rd of 16)`: the number of files and JSON counts from 0, people from 1."""
    return f"micro-batch {number} ({ordinal(number + 1)} of {microbatches})"
