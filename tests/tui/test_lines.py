"""Lines that are cut, and rows around a cursor."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from tui.frame import (
    ASCII,
    BLOCKS,
    Glyphs,
    common_words,
    cut_distinct,
    name_cut,
    rows_around,
    scrolled,
    share_bar,
    shortened,
    text_of,
    title_cut,
    width_of,
)


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


_WORDS = st.sampled_from(["gemm", "nn", "nt", "256x64", "align4", "align1", "kernel", "float", "bn", "x"])
_NAMES = st.lists(
    st.lists(_WORDS, min_size=1, max_size=8).map("_".join), min_size=2, max_size=12, unique=True
)


# Words that have no room, parts of them, and a name as short as another one is cut.
@example([f"kernel_{n}" for n in "abcdefghijklmn"], 5)
@example(["x" * 20 + "_a", "x" * 20 + "_b", "x..._a", "x" * 21 + "_a"], 6)
@example(["align4_nn_256x64_float", "align4_nt_256x64_float", "align4_nn_256x64_x"], 4)
@given(_NAMES, st.integers(4, 60))
def test_different_names_never_become_equal(names: list[str], limit: int) -> None:
    found = cut_distinct(names, limit)
    assert len(set(found.values())) == len(names)
    assert all(len(text) <= limit for text in found.values())


@given(
    st.sampled_from(["cutlass_80_tensorop_s1688gemm", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n"]),
    st.sampled_from(["", "_kernel", "_align4_kernel__5x_cublas"]),
    st.lists(st.text("0123456789x", min_size=1, max_size=9), min_size=2, max_size=9, unique=True),
    st.integers(4, 60),
)
def test_the_word_in_which_names_differ_is_never_the_one_that_is_cut(
    beginning: str, ending: str, words: list[str], limit: int
) -> None:
    names = {f"{beginning}_{word}{ending}": word for word in words}
    found = cut_distinct(names, limit)
    for name, word in names.items():
        # Dots on both sides of it, or at its one side.
        if len(word) + (6 if ending else 3) <= limit:
            assert re.search(rf"(^|[_.]){word}($|[_.])", found[name]), (found[name], word)


def test_each_word_that_tells_a_name_from_some_other_is_whole() -> None:
    ends = ("nn_align4", "nt_align4", "nn_align1")
    found = cut_distinct([f"cutlass_80_tensorop_s1688gemm_256x64_{end}" for end in ends], 30)
    first, second, third = found.values()
    assert (first[-9:], second[-9:], third[-6:]) == ("nn_align4", "nt_align4", "align1")


def test_instances_of_a_template_differ_in_the_argument_that_tells_them_apart() -> None:
    names = [f"void cudnn::bn_bw_kernel<float, {size}, true>(float, int)" for size in (128, 32, 512)]
    assert list(cut_distinct(names, 40).values()) == [
        "bn_bw_kernel 128",
        "bn_bw_kernel 32",
        "bn_bw_kernel 512",
    ]
    assert len(set(cut_distinct(names, 9).values())) == 3


@example(["a_", "a_b"])
@given(st.lists(st.text("ab_.", max_size=12), max_size=6))
def test_what_all_begin_with_ends_with_a_word_and_leaves_something_of_each(texts: list[str]) -> None:
    prefix = common_words(texts)
    assert all(text.startswith(prefix) and (not prefix or text != prefix) for text in texts)
    assert not prefix or prefix[-1] in "_."
    if len(texts) > 1 and not prefix:
        # Nothing longer would do.
        words = {re.match(r"[ab]*[_.]", text) for text in texts}
        first = {match and match[0] for match in words}
        assert len(first) > 1 or None in first or any(text in first for text in texts)


_TITLE = st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=9).flatmap(
    lambda words: st.lists(st.sampled_from([" ", ", ", "; "]), min_size=len(words), max_size=len(words)).map(
        lambda gaps: "".join(map("".join, zip(words, gaps, strict=True))).rstrip(" ,;")
    )
)


@given(_TITLE, st.integers(6, 60))
def test_a_title_is_cut_between_words(title: str, limit: int) -> None:
    text = title_cut(title, limit)
    assert len(text) <= limit
    front = text.removesuffix("...")
    if len(title) > limit and len(front) >= limit // 2 and " " in title[: len(front) + 1]:
        assert title.startswith(front)
        # A single word of half the room or more may be cut.
        assert re.match(r"[ ,;]", title[len(front) :]) or " " not in title[limit // 2 : len(front)]
    elif len(title) <= limit:
        assert text == title


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 40), st.sampled_from([BLOCKS, ASCII]))
def test_a_bar_fills_its_cells_for_the_whole_and_shows_any_part(
    part: int, more: int, width: int, glyphs: Glyphs
) -> None:
    bar = share_bar(part, part + more, width, glyphs)
    assert len(bar) <= width
    assert bool(bar) == (part > 0 and width > 0)
    assert (bar == glyphs.bar[-1] * width) or more > 0 or not part


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
