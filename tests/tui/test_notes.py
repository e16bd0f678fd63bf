"""The notes: a list that is filtered while one types, and the line of the file that each is about."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from simcore.diagnostics import Diagnostic
from simcore.workload import open_workload
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import ROOT, layer, make_workload, plain, run
from tests.tui.pseudo_terminal import wltui
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text
from tui.app import WltuiApp
from tui.frame import BLOCKS, text_of
from tui.notes.listing import CHANGED, UNREADABLE, NoteList, SourceLines, note_lines, stamp_of
from tui.notes.view import NO_LINE, NO_NOTE, NONE_MATCHES, WHAT_MADE_THE_ROWS, NotesView
from tui.parameters.view import ParametersView
from tui.summary.frame import draw
from tui.summary.model import SummaryModel

MISTAKES = "001_moe_128npu_with_mistakes.txt"


def notes(count: int) -> list[Diagnostic]:
    """Some of each kind, the messages of very different lengths."""
    kinds = (("warning", "row-count"), ("note", "comment"), ("error", "bad-cell"))
    return [
        Diagnostic(*kinds[number % 3], f"found {'x ' * (number % 7 * 20)}{number}", "f.txt", number + 1, 3)  # type: ignore[arg-type]
        for number in range(count)
    ]


def app_over(make_app: MakeApp, path: Path) -> WltuiApp:
    """An app on a file as it is now."""
    return make_app(run(open_workload(str(path))), first="notes")


@pytest.fixture
def mistakes(tmp_path: Path) -> Path:
    """A copy of the seed with mistakes, its notes on lines 1 and 2."""
    return Path(shutil.copy(ROOT / "fixtures" / MISTAKES, tmp_path))


# -- what made the rows ------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_what_the_summary_says_of_a_files_rows_is_explained_below_the_notes(
    make_app: MakeApp, mistakes: Path, size: tuple[int, int]
) -> None:
    app = app_over(make_app, mistakes)
    async with app.run_test(size=size) as pilot:
        await run_over(pilot)
        await press(pilot, "G")
        text = " ".join(screen_text(app).split())
        why = "Not AICB's: row 7 (line 10) is attention_column_1, a name that AICB does not write."
        assert "── line 10: not a name AICB writes ──" in text
        assert f"─ {why}" in text
        # What nobody asked for is not refused.
        assert "(--tp, --pp, --ep)" in text
        assert "--rescale" not in text
        # It is no note of the run.
        assert "── 9 notes" in text
        assert "9 notes" in screen_rows(app)[1 if size[0] > 100 else 0]
        await press(pilot, "1")
        await run_over(pilot)
        assert "line 10: not a name AICB writes" in screen_text(app)
        assert "assumed cluster h100-8; half GB/s +17.6 %" in screen_text(app)


async def test_of_rows_that_aicb_makes_it_is_said_that_they_can_be_made_anew(make_app: MakeApp) -> None:
    app = app_over(make_app, ROOT / "fixtures" / "002_gpt_1024npu.txt")
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        await press(pilot, "G")
        text = " ".join(screen_text(app).split())
        assert "── AICB: Llama 405B, 128 layers ──" in text
        assert re.search(r"\b15 configs\b.* --rescale on\b", text)


@pytest.mark.parametrize("name", ["003_gpt2_large_op_table.txt", MISTAKES])
async def test_nothing_is_said_of_rows_that_are_not_like_aicbs_or_without_room(
    make_app: MakeApp, name: str
) -> None:
    app = app_over(make_app, ROOT / "fixtures" / name)
    async with app.run_test(size=(80, 24 if name != MISTAKES else 9)) as pilot:
        await run_over(pilot)
        await pilot.pause()
        assert "AICB" not in screen_text(app)


async def test_what_made_the_rows_waits_below_the_last_note_where_the_notes_need_the_room(
    make_app: MakeApp, mistakes: Path
) -> None:
    app = app_over(make_app, mistakes)
    async with app.run_test(size=(80, 18)) as pilot:
        await run_over(pilot)
        await pilot.pause()
        text = screen_text(app)
        assert "line 10: not a name AICB writes" not in text
        assert re.search(r"assumptions, \d below ─", text)
        assert f"G {WHAT_MADE_THE_ROWS}" in screen_rows(app)[-1]
        await press(pilot, "G")
        text = screen_text(app)
        assert "── line 10: not a name AICB writes ──" in text
        assert re.search(">assumed +memory of stage", text)
        assert f"G {WHAT_MADE_THE_ROWS}" not in screen_rows(app)[-1]


# -- the list --------------------------------------------------------------------------


def test_a_list_without_places_has_no_column_for_them() -> None:
    found = [Diagnostic("note", "cluster-default", "no cluster given"), Diagnostic("warning", "slow", "slow")]
    lines = [plain(NoteList("f.txt", found).lines(place, 80)).strip() for place in range(2)]
    assert lines == ["warning slow  [slow]", f"assumed {found[0].message}  [cluster-default]"]
    found.append(Diagnostic("note", "comment", "ignored", "f.txt", 3, 12))
    lines = [plain(NoteList("f.txt", found).lines(place, 80)).strip() for place in range(3)]
    assert lines[1] == f"assumed {' ' * 19}no cluster given  [cluster-default]"
    assert lines[2] == "note    line 3, column 12  ignored  [comment]"


@given(count=st.integers(1, 40), moves=st.lists(st.integers(-45, 45), max_size=12), rows=st.integers(1, 30))
def test_the_cursor_is_in_view_and_no_row_is_left_over(count: int, moves: list[int], rows: int) -> None:
    found = NoteList("f.txt", notes(count))
    top = focus = 0
    for by in moves:
        focus = max(0, min(focus + by, count - 1))
        top = found.first_in_view(top, focus, rows, 60)
        assert 0 <= top <= focus
        heights = [len(found.lines(place, 60)) for place in range(count)]
        assert top == focus or sum(heights[top : focus + 1]) <= rows
        if top:
            assert sum(heights[top - 1 :]) > rows


@pytest.mark.slow
def test_of_very_many_notes_only_those_in_view_are_made() -> None:
    made = []

    class Counted(NoteList):
        def lines(self, place: int, width: int) -> list[list[tuple[str, str]]]:
            made.append(place)
            return super().lines(place, width)

    found = Counted("f.txt", notes(100_000))
    assert found.first_in_view(0, 99_999, 30, 100) > 99_900
    assert len(made) < 100


def test_the_filter_looks_at_severity_place_code_and_words() -> None:
    found = NoteList("f.txt", notes(30))
    for typed, expected in (
        ("WARNING", 10), ("comment", 10), ("bad-cell found", 10), ("line 30,", 1), ("zzz", 0), ("  ", 30),
    ):  # fmt: skip
        found.filter(typed)
        assert len(found) == expected, typed
    elsewhere = NoteList("other.txt", notes(3), "f.txt")
    assert len(elsewhere) == 3


async def test_filtering_keeps_the_cursor_on_its_note_and_escape_undoes_it(
    make_app: MakeApp, mistakes: Path
) -> None:
    app = app_over(make_app, mistakes)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "j", "k")
        before = screen_rows(app)[:8]
        assert before[3].startswith(">warning line 1, column 73 ")
        await press(pilot, "backslash", *"warning")
        assert "4 of 9 notes: warning" in screen_rows(app)[2]
        assert "4 of 9 notes" in screen_rows(app)[-1]
        assert screen_rows(app)[3].startswith(">warning line 1, column 73 ")
        await press(pilot, *" vpp")
        assert "1 of 9 notes" in screen_rows(app)[-1]
        await press(pilot, "enter")
        assert "Esc no filter" in screen_rows(app)[-1]
        await press(pilot, "escape")
        assert screen_rows(app)[:8] == before
        await press(pilot, "backslash", *"zzz")
        assert NONE_MATCHES in screen_text(app)
        await press(pilot, "enter", "enter", "j")
        assert NONE_MATCHES in screen_text(app)
        await press(pilot, "backslash", "x", "escape", "escape")
        said(screen_rows(app)[2:3], "9 notes", "4 warnings")
        await press(pilot, "escape")
        assert app.screen_name == "timeline"


async def test_warnings_come_first_then_assumptions_then_notes_and_each_is_called_so(
    make_app: MakeApp,
) -> None:
    found = (
        Diagnostic("note", "comment", "a comment"),
        Diagnostic("note", "pp-missing", "no pp"),
        Diagnostic("warning", "row-count", "found 3 rows"),
        Diagnostic("note", "cluster-default", "no cluster given"),
        Diagnostic("warning", "ga-differs", "ga is 1"),
    )
    made = make_workload([layer("one", 1000)], tp=1, ep=1, pp=1, ga=1, vpp=1, all_gpus=8)
    workload = replace(made, diagnostics=found)
    app = make_app(run(workload), first="notes")
    async with app.run_test(size=(120, 36)) as pilot:
        rows = screen_rows(app)
        said(rows[2:3], "7 notes", "2 warnings", "4 assumptions", "1 note")
        # A row without one is the rest of the note before it.
        called = [word for row in rows[3:12] if (word := row[1:9].strip())]
        assert called[:7] == ["warning"] * 2 + ["assumed"] * 4 + ["note"]
        await press(pilot, "1")
        rows = screen_rows(app)
        place = next(index for index, row in enumerate(rows) if "─ Notes" in row)
        assert "found 3 rows" in rows[place + 1]
        await press(pilot, "exclamation_mark", "backslash", *"assumption", "enter")
        assert "4 of 7 notes: assumption" in screen_rows(app)[2]


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
def test_a_small_summary_shows_the_note_that_weighs_most(size: tuple[int, int]) -> None:
    # Before it is known what would help.
    model = SummaryModel(run(open_workload(str(ROOT / "fixtures" / MISTAKES))))
    rows = text_of(draw(model, size[0], size[1] - 3, BLOCKS, "")).split("\n")
    title = re.compile(r"─ Notes, \d of 9 ─")
    place = next(index for index, row in enumerate(rows) if title.search(row))
    # The count of rows, of line 2, told of another fix than the sentence on the header.
    where = "line 1: " if size[0] == 80 else ""
    assert f" warning {where}vpp 8 layers, blocks of 8 and 1  " in f"{rows[place + 1]}  "


async def test_the_default_cluster_is_said_after_one_of_its_figures_was_changed(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5")
        view = app.current_view
        assert isinstance(view, ParametersView)
        view.go_to_field("dim 1  bandwidth", "100")
        await run_over(pilot)
        await press(pilot, "exclamation_mark")
        words = "the dimensions are those of h100-8, the default, but dim 1 bandwidth 100 GB/s (not 50)"
        assert words in " ".join(screen_text(app).split())


async def test_one_note_is_not_notes_and_none_is_said(make_app: MakeApp) -> None:
    results = run(make_workload([layer("a", 1000)], tp=1, pp=1, all_gpus=1))
    workload = results.simulation.workload
    one = replace(workload, diagnostics=(*workload.diagnostics, Diagnostic("note", "comment", "a", "", 1)))
    for count, words in ((0, "0 notes on"), (1, "1 note on")):
        view = NotesView(make_app(run(one)).session, ascii_only=False)
        view.notes = NoteList("f.txt", notes(count))
        text = text_of(view.frame(80, 20))
        assert words in text
        assert (NO_NOTE in text) == (count == 0)


# -- the line --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=["120x36", "80x24"])
async def test_enter_shows_the_line_as_before(
    make_app: MakeApp, mistakes: Path, snapshot: SnapshotAssertion, size: tuple[int, int]
) -> None:
    app = app_over(make_app, mistakes)
    async with app.run_test(size=size) as pilot:
        await run_over(pilot)
        before = screen_text(app)
        await press(pilot, "enter")
        assert "\n".join(row.rstrip() for row in screen_rows(app)) == snapshot
        await press(pilot, "escape", "j", "j", "j", "j", "enter")
        assert NO_LINE in screen_text(app)
        await press(pilot, "escape", "k", "k", "k", "k")
        assert screen_text(app) == before


async def test_a_file_that_is_gone_or_another_one_now_is_said(make_app: MakeApp, mistakes: Path) -> None:
    app = app_over(make_app, mistakes)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "j", "j", "j", "enter")
        assert "changed" not in screen_text(app)
        mistakes.write_text("one line\nanother one\n")
        await press(pilot, "escape", "enter")
        text = screen_text(app)
        assert CHANGED in text
        assert "> 2 │ another one" in text
        mistakes.write_text("one line")
        await press(pilot, "escape", "enter")
        assert re.search(rf"{CHANGED}: .*\bline 2\b", screen_text(app))
        mistakes.unlink()
        await press(pilot, "escape", "enter")
        assert f"{UNREADABLE}: there is no" in screen_text(app)
        os.mkfifo(mistakes)
        await press(pilot, "escape", "enter")
        assert f"{UNREADABLE}: " in screen_text(app)


def shown(path: Path, line: int, column: int | None, width: int) -> list[str]:
    source = SourceLines(str(path), line, stamp_of(str(path)))
    assert not source.problem
    return [text_of([one]) for one in source.draw(column, width, BLOCKS)]


@given(
    text=st.text(
        st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1, max_size=400
    ),
    place=st.floats(0, 1),
    width=st.integers(30, 120),
)
def test_the_mark_is_under_its_character_however_the_line_is_cut(
    tmp_path_factory: pytest.TempPathFactory, text: str, place: float, width: int
) -> None:
    path = tmp_path_factory.mktemp("notes") / "f.txt"
    path.write_text(f"first\n{text}\nlast", encoding="utf-8")
    column = int(place * (len(text) - 1)) + 1
    rows = shown(path, 2, column, width)
    here = next(index for index, row in enumerate(rows) if row.startswith(" > 2 "))
    assert all(len(row) <= width for row in rows)
    at = rows[here + 1].index("^")
    meant = text[column - 1]
    if meant.isascii() and meant.isprintable():
        assert rows[here][at] == meant
    elif meant == "\t":
        assert rows[here][at] == " "
    assert all(char.isprintable() or unicodedata.category(char) == "Zs" for row in rows for char in row)


def test_bytes_that_are_no_text_and_lines_without_a_column(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntw\xffo\x1b[31m\tx\rthree")
    assert shown(path, 2, None, 60) == [
        "   1 │ one", " > 2 │ tw\\xffo\\x1b[31m x", "   3 │ three",
    ]  # fmt: skip
    assert shown(path, 2, 3, 60)[2] == "     │   ^"


def test_a_note_of_many_words_is_shown_whole() -> None:
    one = Diagnostic("note", "comment", "found " + "word " * 100 + "end", "f.txt")
    text = plain(note_lines(one, None, 60, BLOCKS, "dim"))
    assert text.count("word") == 100
    assert "end" in text


def test_in_a_terminal_the_list_is_filtered_and_leads_to_the_line(tmp_path: Path) -> None:
    path = shutil.copy(ROOT / "fixtures" / MISTAKES, tmp_path)
    with wltui(str(path), screen="notes") as terminal:
        terminal.wait_for("9 notes on the file and the run")
        terminal.press_each(("\\", " filter "), ("vpp", "1 of 9 notes"), ("\r", "Esc no filter"))
        terminal.press_each(("\r", "Esc closes this"))
        assert terminal.line_with(" > 1 │").startswith(" > 1 │ HYBRID_TRANSFORMER_FWD_IN_BCKWD")
        mark = terminal.lines.index(terminal.line_with(" > 1 │")) + 1
        at = terminal.lines[mark].index("^")
        assert terminal.lines[mark - 1][at:].startswith("vpp: 8 ")
        terminal.settle(0.3)
        terminal.press("\x1b")
        terminal.wait_for("1 of 9 notes: vpp")
