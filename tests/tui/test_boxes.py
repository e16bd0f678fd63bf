"""Frames keep their corners and their width, whatever stands in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.made_runs import line_text
from tui.frame import ASCII, BLOCKS, Glyphs
from tui.panels import box

_WORDS = st.text("abc -_", max_size=60)


@given(_WORDS, _WORDS, st.integers(2, 90), st.integers(2, 6), st.booleans(), st.sampled_from([BLOCKS, ASCII]))
def test_a_box_has_its_corners_and_its_width(
    title: str, aside: str, width: int, height: int, focused: bool, glyphs: Glyphs
) -> None:
    lines = [
        line_text(line) for line in box(title, aside, [[("x" * 200, "")]], width, height, glyphs, focused)
    ]
    assert [len(line) for line in lines] == [width] * height
    assert lines[0][0] + lines[0][-1] + lines[-1][0] + lines[-1][-1] == glyphs.corners
    assert {line[0] + line[-1] for line in lines[1:-1]} <= {glyphs.vertical * 2}


@pytest.mark.parametrize(
    ("width", "top"),
    [
        (60, "╭─ > Replayed - measured, rank ends ───────────── o waits ─╮"),
        (37, "╭─ > Replayed - measured, rank ends ╮"),
        (36, "╭─ > Replayed - measured  o waits ─╮"),
        (14, "╭─ > Repl... ╮"),
        (8, "╭─ > . ╮"),
    ],
)
def test_a_title_that_is_too_long_loses_its_last_clause_or_is_cut_with_dots(width: int, top: str) -> None:
    lines = box("Replayed - measured, rank ends", "o waits", [], width, 3, BLOCKS, focused=True)
    assert line_text(lines[0]) == top
