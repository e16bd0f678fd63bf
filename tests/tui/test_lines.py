"""Lines that are cut, and rows around a cursor."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.frame import cut_distinct, name_cut, rows_around, scrolled, shortened, text_of, width_of


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


def test_names_that_would_be_cut_alike_begin_where_they_differ() -> None:
    names = [f"layer.#.attention.{one}.all_gather" for one in ("query", "value")]
    assert {name_cut(name, 20) for name in names} == {"layer.#.a...l_gather"}
    assert list(cut_distinct([*names, "other"], 20).values()) == [
        "...query.all_gather", "...value.all_gather", "other",
    ]  # fmt: skip
    assert list(cut_distinct(names, 24).values()) == ["layer...query.all_gather", "layer...value.all_gather"]
    assert list(cut_distinct(names, 12).values()) == ["...query....", "...value...."]
    assert cut_distinct(names[:1], 20) == {names[0]: "layer.#.a...l_gather"}


@given(st.lists(st.text("ab.", max_size=30), max_size=6), st.integers(4, 40))
def test_a_name_that_is_cut_apart_fits_and_is_whole_where_there_is_room(names: list[str], limit: int) -> None:
    found = cut_distinct(names, limit)
    assert set(found) == set(names)
    assert all(len(words) <= limit for words in found.values())
    assert all(found[name] == name for name in names if len(name) <= limit)


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
