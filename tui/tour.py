"""The first-start tour: six keys, one after the other in the last row. It is shown once; Esc ends it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tui.frame import Line, spread, width_of
from tui.state.files import state_directory, write_text

# (key as people write it, key as Textual names it, what it does); each is pressed where the one before led.
STEPS = (
    ("t", "t", "tries the best change: the step time above becomes that of run 2"),
    ("x", "x", "goes back to the run before, and again to this one"),
    ("2", "2", "opens the timeline: who does what when"),
    ("Space", "space", "unfolds the lane at the cursor into its streams"),
    ("4", "4", "says why the step takes so long: the critical path, and what would help"),
    ("?", "question_mark", "has the keys of the screen that is open"),
)
_SHORT = ("tries the best change", "back to the run before", "opens the timeline", "unfolds a lane",
          "says why it takes long", "has all keys of a screen")  # fmt: skip
# Cells for keys of the screen that are worth more than long words.
_HINTS = 40
_SEEN = "tour-seen"


class Tour:
    """step: which of the keys is next, from 0; past the last one it is over."""

    def __init__(self) -> None:
        self.step = 0

    @property
    def is_over(self) -> bool:
        """Whether all six keys were pressed, or Esc."""
        return self.step >= len(STEPS)

    def press(self, key: str) -> bool:
        """Take a key, which does its own work as well; whether the row says something else now."""
        if self.is_over:
            return False
        if key == "escape":
            self.step = len(STEPS)
            return True
        if key != STEPS[self.step][1]:
            return False
        self.step += 1
        return True

    def step_words(self, room: int) -> Line:
        """The next key in `room` cells, behind what the last one had to say; nothing in too few."""
        words: Line = [(f" {STEPS[self.step][0]} ", "key"), (f" {_SHORT[self.step]} ", "dim")]
        return words if width_of(words) <= room else []

    def line(self, width: int, hints: tuple[tuple[str, str], ...] = ()) -> Line:
        """The last row: the next key, how the tour ends, and as many keys of the screen as have room, then
        help and quit.
        """
        key, _, words = STEPS[self.step]
        ends: Line = [(" Esc ", "key"), ("ends the tour ", "dim")]
        always: Line = [(" ? ", "key"), ("keys ", "dim"), (" q ", "key"), ("quit ", "dim")]
        short = _SHORT[self.step]
        forms = ((words, ends, _HINTS), (short, ends, 0), (short, [ends[0], ("ends it ", "dim")], 0))
        for said, end, least in forms:
            left: Line = [(f" First steps, {self.step + 1} of {len(STEPS)}: ", "accent"), (f" {key} ", "key"),
                          (f" {said} ", "bright")]  # fmt: skip
            room = width - width_of(left) - width_of(end) - width_of(always)
            if room > least:
                break
        keys: Line = []
        for hint, what in hints:
            room -= len(hint) + len(what) + 3
            if room <= 0:
                break
            keys += [(f" {hint} ", "key"), (f"{what} ", "dim")]
        return spread(left, [*end, *keys, *always], width)


def first_tour(environ: Mapping[str, str] = os.environ) -> Tour | None:
    """The tour, the first time that anybody asks for it; None where it was shown before, or where nothing
    can be kept of that.
    """
    path = os.path.join(state_directory(environ), _SEEN)
    if os.path.lexists(path):
        return None
    try:
        write_text(path, "")
    except OSError:
        return None
    return Tour()
