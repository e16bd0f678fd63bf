"""What is sent makes the terminal show the picture: any picture after any other, and few bytes."""

from __future__ import annotations

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.style import Style

from tests.tui.terminal_cells import differences, seen_cells
from tui.terminal.display import CLEAR, PLAIN, CellGrid, grid_changes, parse_sgr, style_change

STYLES = [
    "", "1", "7", "4", "31", "97", "38;5;81", "1;38;5;81", "1;4;38;2;1;2;3", "48;5;52", "7;38;5;81", "1;7;41",
    "2;34", "1;2", "3;9;104", "39;49",
]  # fmt: skip
PLAIN_TEXT = "ab  -▄█▁│é"
# Two cells, none, and one cell that terminals do not agree on.
ODD_TEXT = ["中", "e\u0301", "😀", "→", "x", " "]
NO_WRAP = "\x1b[?7l"


@st.composite
def rows(draw: st.DrawFn, width: int) -> list[tuple[int, str, str]]:
    """Texts of a row: (cell, text, style). Text of doubtful width fills its row exactly."""
    if draw(st.integers(0, 9)):
        return draw(
            st.lists(
                st.tuples(
                    st.integers(-3, width), st.text(PLAIN_TEXT, max_size=width + 3), st.sampled_from(STYLES)
                ),
                max_size=4,
            )
        )
    clusters = draw(st.lists(st.sampled_from(ODD_TEXT), min_size=width, max_size=width))
    found, x = [], 0
    for cluster in clusters:
        if (cells := 2 if cluster in "中😀" else 1) <= width - x:
            found.append((x, cluster, draw(st.sampled_from(STYLES))))
            x += cells
    return [*found, (x, " " * (width - x), "")]


@st.composite
def films(draw: st.DrawFn) -> list[CellGrid]:
    """Pictures of one size that follow one another; many rows stay as they were."""
    width, height = draw(st.integers(1, 24)), draw(st.integers(1, 5))
    pictures = [CellGrid(width, height)]
    for _ in range(draw(st.integers(1, 4))):
        picture = CellGrid(width, height)
        picture.copy_from(pictures[-1])
        for y in range(height):
            if draw(st.booleans()):
                row = draw(rows(width))
                if picture.is_odd(y):
                    picture.write(y, 0, [(" " * width, PLAIN)])
                for x, text, style in row:
                    picture.write(y, x, [(text, parse_sgr(style))])
        pictures.append(picture)
    return pictures[1:]


def terminal(width: int, height: int) -> tuple[pyte.Screen, pyte.Stream]:
    screen = pyte.Screen(width, height)
    stream = pyte.Stream(screen)
    stream.feed(NO_WRAP)
    return screen, stream


def whole(picture: CellGrid) -> pyte.Screen:
    """A picture cell by cell, each with a place and a style of its own."""
    screen, stream = terminal(picture.width, picture.height)
    for y in range(picture.height):
        for x in range(picture.width):
            if char := picture.chars[y][x]:
                style = picture.styles[y][x].parameters
                stream.feed(f"\x1b[{y + 1};{x + 1}H\x1b[0;{style}m{char}")
    return screen


@given(films())
@settings(max_examples=400, deadline=None)
def test_each_difference_makes_the_next_picture(film: list[CellGrid]) -> None:
    shown = CellGrid(film[0].width, film[0].height)
    screen, stream = terminal(shown.width, shown.height)
    stream.feed(f"\x1b[31mrubbish{CLEAR}")
    cursor: tuple[int, int] | None = (0, 0)
    for picture in film:
        stream.feed(grid_changes(shown, picture, cursor))
        assert differences(seen_cells(screen), seen_cells(whole(picture))) == []
        # No style is left over.
        assert screen.cursor.attrs == pyte.Screen(1, 1).cursor.attrs
        shown.copy_from(picture)
        assert grid_changes(shown, picture, cursor) == ""
        stream.feed("\x1b[2;2H")
        cursor = (min(1, shown.width - 1), min(1, shown.height - 1))


@given(st.sampled_from(STYLES), st.sampled_from(STYLES))
def test_a_change_of_style_leaves_nothing_of_the_old_one(old: str, new: str) -> None:
    screen, stream = terminal(3, 1)
    stream.feed(style_change(PLAIN, parse_sgr(old)) + style_change(parse_sgr(old), parse_sgr(new)) + "x")
    other, direct = terminal(3, 1)
    direct.feed(f"\x1b[0;{new}mx")
    assert screen.buffer[0][0] == other.buffer[0][0]


def test_dim_and_bold_end_together_and_what_stays_is_said_again() -> None:
    # pyte does not know dim; ECMA-48 ends both by 22.
    assert style_change(parse_sgr("1;2"), parse_sgr("1")) in ("\x1b[22;1m", "\x1b[0;1m")
    assert style_change(parse_sgr("2;34"), PLAIN) == "\x1b[m"
    assert style_change(PLAIN, parse_sgr("2;34")) == "\x1b[2;34m"


@pytest.mark.parametrize("words", ["bold red", "dim color(12)", "color(200) on #010203", "reverse underline"])
@pytest.mark.parametrize("system", list(ColorSystem))
def test_the_parameters_are_those_of_rich(words: str, system: ColorSystem) -> None:
    sent = Style.parse(words).render("x", color_system=system)
    parameters = sent[2 : sent.index("m")]
    assert set(parse_sgr(parameters).parameters.split(";")) == set(parameters.split(";"))


def test_equal_styles_are_one_object() -> None:
    assert parse_sgr("") is parse_sgr("39;49") is PLAIN
    assert parse_sgr("1;38;5;81") is parse_sgr("38;5;81;1")


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        (["aaaaaaaaaaaa"], ["aaaaaaaaaaab"], "\x1b[1;12Hb"),
        # Three equal cells are written once more: a move would be as long.
        (["abcdefgh"], ["Xbcd3fgh"], "\x1b[1HXbcd3"),
        (["abcdefghijkl"], ["XbcdefghijkY"], "\x1b[1HX\x1b[10CY"),
        (["ab", "cd"], ["aX", "Yd"], "\x1b[1;2HX\r\nY"),
        (["abcdefghij"], ["ab        "], "\x1b[1;3H\x1b[K"),
        (["abcdefghij"], ["abcdefghi "], "\x1b[1;10H "),
        (["a"], ["a"], ""),
    ],
)
def test_the_shortest_of_several_ways_is_taken(before: list[str], after: list[str], sent: str) -> None:
    old, new = CellGrid(len(before[0]), len(before)), CellGrid(len(before[0]), len(before))
    for picture, lines in ((old, before), (new, after)):
        for y, line in enumerate(lines):
            picture.write(y, 0, [(line, PLAIN)])
    assert grid_changes(old, new) == sent


def test_a_style_is_said_once_for_cells_side_by_side_and_blanks_between_them() -> None:
    old, new = CellGrid(20, 1), CellGrid(20, 1)
    new.write(0, 2, [("two words", parse_sgr("1;38;5;81")), (" ", PLAIN), ("more", parse_sgr("1;38;5;74"))])
    assert grid_changes(old, new) == "\x1b[1;3H\x1b[1;38;5;81mtwo words \x1b[38;5;74mmore\x1b[m"


def test_characters_that_act_on_the_terminal_are_not_sent() -> None:
    old, new = CellGrid(10, 1), CellGrid(10, 1)
    new.write(0, 0, [("a\x1b[2Jb\r\n\tc\x9b", PLAIN)])
    assert "".join(new.chars[0]).rstrip() == "a[2Jbc"
    sent = grid_changes(old, new)
    assert not set("\r\n\t\x9b") & set(sent)
    assert "\x1b[2J" not in sent


@pytest.mark.parametrize(("before", "after"), [("ab→d", "ab-d"), ("ab-d", "ab→d"), ("ab→d", "ab→x")])
def test_a_row_of_doubtful_width_is_sent_whole_and_placed_anew_behind_such_a_character(
    before: str, after: str
) -> None:
    old, new = CellGrid(4, 1), CellGrid(4, 1)
    old.write(0, 0, [(before, PLAIN)])
    new.write(0, 0, [(after, PLAIN)])
    sent = f"\x1b[1;1H{after}"
    assert grid_changes(old, new, (1, 0)) == sent.replace("→", "→\x1b[1;4H")
