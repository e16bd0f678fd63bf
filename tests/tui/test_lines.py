"""Lines that are cut, and rows around a cursor."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.frame import rows_around, shortened, text_of, width_of


def test_the_row_of_the_cursor_is_always_shown_and_no_room_is_left() -> None:
    # All of them: the ends, where it goes wrong, are rare among random ones.
    for count in range(1, 20):
        for row in range(count):
            for rows in range(1, 12):
                shown = rows_around(row, count, rows)
                assert row in shown
                assert len(shown) == min(count, rows)
                assert shown.start >= 0
                assert shown.stop <= count


@given(st.lists(st.text("ab 1", max_size=12), max_size=5), st.integers(0, 200))
def test_a_line_that_is_cut_says_so(parts: list[str], width: int) -> None:
    line = [(part, "") for part in parts]
    found = shortened(line, width)
    assert width_of(found) == width
    whole = "".join(parts)
    if not whole[width:].strip():
        assert text_of([found]) == whole[:width].ljust(width)
    else:
        assert text_of([found]).endswith("..."[:width])
