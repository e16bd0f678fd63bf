"""The range: a stretch of the step that is marked out, and the marks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tui.timeline.spans import LaneKey

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(slots=True)
class Selection:
    """A range. anchor_ns: where the one that follows the cursor began. fixed: one that does not."""

    anchor_ns: int | None = None
    fixed: tuple[int, int] | None = None

    def start(self, time_ns: int) -> None:
        """A range from here; the cursor is its other end."""
        self.anchor_ns, self.fixed = time_ns, None

    def fix(self, first_ns: int, last_ns: int) -> None:
        """A range that stays."""
        self.anchor_ns, self.fixed = None, (first_ns, last_ns)

    def clear(self) -> bool:
        """No range; False if there was none."""
        was = self.is_there
        self.anchor_ns, self.fixed = None, None
        return was

    @property
    def is_there(self) -> bool:
        return self.anchor_ns is not None or self.fixed is not None

    @property
    def follows(self) -> bool:
        """Whether the cursor is one of its ends."""
        return self.anchor_ns is not None

    def stretch(self, cursor_ns: int) -> tuple[int, int] | None:
        """(first, last) ns of the range, None without one."""
        if self.anchor_ns is not None:
            return min(self.anchor_ns, cursor_ns), max(self.anchor_ns, cursor_ns)
        return self.fixed

    def scale(self, old_ns: int, new_ns: int) -> None:
        """A step of another length: the range is kept as a share of it."""
        if self.anchor_ns is not None:
            self.anchor_ns = self.anchor_ns * new_ns // old_ns
        if self.fixed is not None:
            self.fixed = self.fixed[0] * new_ns // old_ns, self.fixed[1] * new_ns // old_ns


class Mark(NamedTuple):
    """A place to come back to: a time of a lane. title: the lane's."""

    letter: str
    time_ns: int
    lane: LaneKey
    title: str


@dataclass(slots=True)
class Marks:
    """Marks by letter, in the order in which they were set."""

    all: list[Mark] = field(default_factory=list)

    def set(self, time_ns: int, lane: LaneKey, title: str) -> Mark | None:
        """A mark with the first letter that is free; None when none is."""
        taken = {mark.letter for mark in self.all}
        letter = next((one for one in LETTERS if one not in taken), None)
        if letter is None:
            return None
        mark = Mark(letter, time_ns, lane, title)
        self.all.append(mark)
        return mark

    def remove(self, letter: str) -> None:
        """One mark less."""
        self.all = [mark for mark in self.all if mark.letter != letter]

    def of(self, letter: str) -> Mark | None:
        """The mark with a letter."""
        return next((mark for mark in self.all if mark.letter == letter), None)

    @property
    def last(self) -> Mark | None:
        """The mark that was set last: distances are from there."""
        return self.all[-1] if self.all else None

    def scale(self, old_ns: int, new_ns: int) -> None:
        """A step of another length: marks are kept as shares of it."""
        self.all = [mark._replace(time_ns=mark.time_ns * new_ns // old_ns) for mark in self.all]
