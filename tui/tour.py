"""The first-start tour: six keys, one after the other in the last row. It is shown once; Esc ends it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tui.frame import Line, spread, width_of
from tui.state.files import state_directory, write_text

# (key as people write it, key as Textual names it, what it does); each is pressed on the screen that the one
# before opened.
STEPS = (
    ("t", "t", "tries the first change: the step time above becomes that of run 2"),
    ("x", "x", "goes back to the run before, and again to this one"),
    ("2", "2", "opens the timeline: who does what when"),
    ("Space", "space", "unfolds the lane at the cursor into its streams, or folds it"),
    ("4", "4", "says why the step takes so long: the critical path, and what would help"),
    ("?", "question_mark", "has the keys of the screen that is open"),
)
# The words of a screen for `t` where it tries the row at the cursor, or what fixes the file, and the tour's.
TRY_FIRST, TRY_THIS, FIXES = "try the first change", "try this change", "try the fix"
OTHERWISE = {
    TRY_THIS: "tries the change at the cursor", "try it": "tries the change at the cursor",
    FIXES: "tries the fix, as the header asks",
}  # fmt: skip
SHORT = ("tries the first change", "back to the run before", "opens the timeline", "folds or unfolds",
          "says why it takes long", "has all keys here")  # fmt: skip
# The screens on which a step is possible, and the key that leads there: the others are on every screen.
_ONLY_ON = {"t": (("summary", "why"), "1"), "space": (("timeline",), "2")}
_LEADS = {"1": "opens the summary", "2": "opens the timeline"}
_MARKER_FILE = "tour-seen"


class Tour:
    """The state of the tour: `step` is which of the keys is next, from 0; past the last one it is over."""

    def __init__(self) -> None:
        self.step = 0

    @property
    def is_over(self) -> bool:
        """Whether all six keys were pressed, or Esc."""
        return self.step >= len(STEPS)

    def press(self, key: str, screen: str = "", runs: int = 2) -> bool:
        """Takes a key, which does its own work as well; returns whether the row changes. screen: the one that
        is open, "" for any; runs: how many are kept.
        """
        if self.is_over:
            return False
        if key == "escape":
            self.step = len(STEPS)
            return True
        step = self._at(runs)
        if key != STEPS[step][1] or not _is_on(key, screen):
            return False
        self.step = step + 1
        return True

    def _at(self, runs: int) -> int:
        """Returns the step that is next: without a second run there is nothing to go back to."""
        return self.step + (STEPS[self.step][1] == "x" and runs < 2)

    def _words(self, screen: str, runs: int) -> tuple[int, str, str, str]:
        """Returns (step, key, words, fewer words) of what is next on a screen: where its key does nothing
        there, the key that leads to where it does.
        """
        step = self._at(runs)
        name, key, words = STEPS[step]
        if _is_on(key, screen):
            return step, name, words, SHORT[step]
        leads = _ONLY_ON[key][1]
        return step, leads, f"{_LEADS[leads]}, where {name} {words}", _LEADS[leads]

    def step_words(self, room: int, screen: str = "", runs: int = 2) -> Line:
        """Returns the next key in `room` cells, behind the message of the last one; empty where it does not
        fit.
        """
        _, key, _, short = self._words(screen, runs)
        words: Line = [(f" {key} ", "key"), (f" {short} ", "dim")]
        return words if width_of(words) <= room else []

    def line(
        self, width: int, hints: tuple[tuple[str, str], ...] = (), screen: str = "", runs: int = 2
    ) -> Line:
        """Returns the last row: the next key, how the tour ends, and the keys of the screen, then help and
        quit. The tour has longer words only where all keys have room next to them, and few where they do not;
        the first key is always there.
        """
        step, key, words, short = self._words(screen, runs)
        for hint, what in hints:
            if hint == key == "t":
                words, short = OTHERWISE.get(what, words), OTHERWISE.get(what, short)
        ends: Line = [(" Esc ", "key"), ("ends the tour ", "dim")]
        fewer: Line = [ends[0], ("ends it ", "dim")]
        always: Line = [(" ? ", "key"), ("keys ", "dim"), (" q ", "key"), ("quit ", "dim")]
        # The key of the tour is there already.
        hints = tuple(hint for hint in hints if hint[0] != key)
        whole = sum(len(hint) + len(what) + 3 for hint, what in hints)
        forms = (
            ("Tour,", words, ends),
            ("Tour,", short, ends),
            ("Tour,", short, fewer),
            ("Tour,", short, [ends[0], ("ends ", "dim")]),
        )
        for title, step_text, end in forms:
            left: Line = [(f" {title} {step + 1} of {len(STEPS)}: ", "accent"), (f" {key} ", "key"),
                          (f" {step_text} ", "bright")]  # fmt: skip
            room = width - width_of(left) - width_of(end) - width_of(always)
            if room > whole:
                break
        if room < 0:
            # The step without its number.
            left = left[1:]
        keys: Line = []
        for hint, what in hints:
            room -= len(hint) + len(what) + 3
            if room <= 0:
                break
            keys += [(f" {hint} ", "key"), (f"{what} ", "dim")]
        return spread(left, [*end, *keys, *always], width)


def _is_on(key: str, screen: str) -> bool:
    """Returns whether the key of a step does something on a screen."""
    return not screen or key not in _ONLY_ON or screen in _ONLY_ON[key][0]


def first_tour(environ: Mapping[str, str] = os.environ) -> Tour | None:
    """Returns the tour, the first time that it is requested; None where it was shown before, or where that
    cannot be recorded.
    """
    path = os.path.join(state_directory(environ), _MARKER_FILE)
    if os.path.lexists(path):
        return None
    try:
        write_text(path, "")
    except OSError:
        return None
    return Tour()
