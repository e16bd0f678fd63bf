"""Lines that are cut, and rows around a cursor."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.frame import rows_around, scrolled, shortened, text_of, width_of


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


@given(
    top=st.integers(0, 50),
    count=st.integers(1, 40),
    rows=st.integers(1, 20),
    data=st.data(),
)
def test_a_scrolled_list_shows_the_cursor_and_leaves_no_row_over(
    top: int, count: int, rows: int, data: st.DataObject
) -> None:
    cursor, beside = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count - 1))
    first = scrolled(top, count, rows, cursor, beside)
    assert 0 <= first <= max(count - rows, 0)
    assert first <= cursor < first + rows
    if abs(cursor - beside) < rows:
        assert first <= beside < first + rows
    # As little as brings it there: a picture in which all is seen stays.
    assert scrolled(first, count, rows, cursor, beside) == first
