"""Text from a file in a frame: nothing that steers a terminal, and one cell a character."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len
from wcwidth import wcwidth

from tests.strategies import layer, make_workload
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import run
from tests.tui.screen_reading import press, resize, screen_text
from tui.chrome import heading
from tui.frame import ASCII, BLOCKS, cells, fitted, rule, spread, text_of, width_of
from tui.layers.view import LayersView
from tui.notes.view import NotesView
from tui.parameters.view import ParametersView
from tui.session import Session
from tui.timeline.frame import TimelineFrame
from tui.timeline.model import TimelineModel

NASTY = {
    "escape sequence": "\x1b[31;5mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "clear": "\x9b2J\x1bc",
    "newlines": "a\nb\rc\td\x0bx\x85y\u2028z",
    "markup": "[bold red]x[/] [link=http://x]y[/link]",
    "wide": "漢字カナ한국어",
    "emoji": "🚀👩‍👩‍👧🇩🇪",
    "combining": "e\u0301a\u20dd\u0e31\u0941z",
    "right to left": "\u202etxt.exe\u202c\u2067x\u2069",
    "zero width": "a\u200bb\u200dc\ufeffd\u00ade\u115f\u1160",
    "surrogate": "\udcff\udc80",
}


def is_one_cell(char: str) -> bool:
    """Whether terminals and rich agree that a character fills one cell and does nothing else."""
    return (
        wcwidth(char) == 1
        and cell_len(char) == 1
        and unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "Me")
    )


def check_text(text: str) -> None:
    """Every character of a frame fills one cell."""
    bad = {f"U+{ord(char):04X}" for char in text.replace("\n", "") if not is_one_cell(char)}
    assert bad == set()


@pytest.mark.parametrize("name", NASTY.values(), ids=NASTY)
def test_a_name_fills_one_cell_a_character(name: str) -> None:
    check_text(cells(name))


@pytest.mark.slow
def test_no_character_of_unicode_fills_no_cell_or_two() -> None:
    # Each is replaced or stays by itself, so that many are asked for at once.
    every = [chr(code) for code in range(0x20, sys.maxunicode + 1)]
    parts = ["".join(every[first : first + 4096]) for first in range(0, len(every), 4096)]
    shown = [cells(part, 1 << 20) for part in parts]
    assert all(len(cells_of) >= len(part) for cells_of, part in zip(shown, parts, strict=True))
    wrong = sorted(char for char in {*"".join(shown)} if wcwidth(char) != 1)
    assert [f"U+{ord(char):04X}" for char in wrong[:10]] == [], f"{len(wrong)} characters"


@given(st.text(max_size=300), st.integers(4, 200))
def test_no_name_is_longer_than_its_limit(name: str, limit: int) -> None:
    assert len(cells(name, limit)) <= limit


@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII], ids=["blocks", "ascii"])
@pytest.mark.parametrize("name", NASTY.values(), ids=NASTY)
def test_no_screen_shows_a_nasty_name_raw(name: str, glyphs: object) -> None:
    workload = make_workload([layer(name, 1000, 10, 10), layer("b" + name, 3000)], tp=1, pp=1, all_gpus=1)
    workload = replace(workload, path=f"/x/{name.replace('/', '')}.txt")
    session = Session(run(workload))
    frames = [
        heading(session, "timeline", 120),
        heading(session, "timeline", 80),
        TimelineFrame(glyphs, colour=True).draw(TimelineModel(session.current), 120, 33),  # type: ignore[arg-type]
    ]
    views = (LayersView, ParametersView, NotesView)
    frames += [view(session, ascii_only=glyphs is ASCII).frame(120, 33) for view in views]
    for frame in frames:
        check_text(text_of(frame))


async def test_with_ascii_glyphs_every_screen_and_the_rows_around_it_are_ascii(make_app: MakeApp) -> None:
    layers = [layer(name, 1000, 10, 10) for name in ("größe", "naïve_layer", "слой")]
    workload = replace(make_workload(layers, tp=1, pp=1, all_gpus=1), path="/x/größe.txt")
    app = make_app(run(workload), ascii_only=True)
    async with app.run_test(size=(120, 36)) as pilot:
        for size in ((120, 36), (80, 24)):
            await resize(pilot, *size)
            for key in ("2", "3", "4", "5", "exclamation_mark", "question_mark", "escape"):
                await press(pilot, key)
                text = screen_text(app)
                assert text.isascii(), {char for char in text if not char.isascii()}


LINES = st.lists(st.tuples(st.text("abc ", max_size=12), st.sampled_from(["", "dim", "fwd"])), max_size=8)


@given(LINES, st.integers(0, 60))
def test_a_fitted_line_is_cut_or_padded_to_its_width(line: list[tuple[str, str]], width: int) -> None:
    found = fitted(line, width)
    assert width_of(found) == width
    assert text_of([found]) == text_of([line])[:width].ljust(width)
    assert all(text for text, _ in found)
    # Each character keeps its role; what is padded has none.
    roles = [role for text, role in line for _ in text][:width]
    assert [role for text, role in found for _ in text][: len(roles)] == roles


@given(LINES, LINES, st.integers(0, 80))
def test_the_right_part_of_a_spread_line_is_kept_as_long_as_it_fits(
    left: list[tuple[str, str]], right: list[tuple[str, str]], width: int
) -> None:
    found = spread(left, right, width)
    assert width_of(found) == width
    if width_of(right) < width:
        assert text_of([found]).endswith(text_of([right]))


@given(st.text("abc ", max_size=40), st.integers(0, 80))
def test_a_rule_fills_its_width(title: str, width: int) -> None:
    text = text_of([rule(title, width, BLOCKS)])
    assert len(text) == width
    assert text.startswith("──"[:width])
