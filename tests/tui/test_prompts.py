"""The row in which something is typed: what is typed is seen, whatever is asked and said beside it."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from textual._styles_cache import StylesCache

from tests.tui.conftest import MakeApp
from tests.tui.made_runs import small
from tests.tui.screen_reading import burst, press, screen_rows, wait_until

# Keys up to a prompt; what is typed; the rows that are seen then.
_PROMPTS: dict[str, tuple[tuple[str, ...], str, list[str]]] = {
    "lanes": (
        ("L",), "stage 5",
        ["stage 5, stages 2-4, ranks 0-7,64, or words of a name; nothing: all", "only the lanes of stage 5"],
    ),
    "export": (
        ("E",), "run.csv",
        [".html to hand on, .json.gz for Perfetto, .csv, .svg of this screen", "export to run.csv"],
    ),
    "written over": (
        ("E", *"there.csv", "enter"), "yes",
        ["there.csv is there already", "write over it? yes or no yes"],
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.csv").write_text("")


async def test_what_is_typed_is_seen_on_80_columns(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(80, 24)) as pilot:
        for keys, text, expected in _PROMPTS.values():
            await press(pilot, keys[0])
            await burst(pilot, *keys[1:])
            await burst(pilot, *("space" if char == " " else char for char in text))
            assert [row.strip() for row in screen_rows(app)[-2:]] == expected
            await press(pilot, "escape")


async def test_what_is_typed_is_seen_on_60_columns(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(60, 24)) as pilot:
        for keys in (("L", *"zzz", "enter"), ("E",), ("E", *"there.csv", "enter"), ("slash",)):
            await press(pilot, keys[0])
            await burst(pilot, *keys[1:])
            await burst(pilot, *"typed.here")
            assert "typed.here" in screen_rows(app)[-1], keys
            await press(pilot, "escape")


async def test_an_answer_that_is_too_long_is_cut_with_dots(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(60, 24)) as pilot:
        await press(pilot, "5", *"jjj", "enter", *"2.5")
        assert screen_rows(app)[-1].rstrip() == " pp [stages] 2.5          a whole number from 1 to 2^40 ..."


async def test_a_closed_prompt_keeps_nothing_in_memory(make_app: MakeApp) -> None:
    def count_caches() -> int:
        gc.collect()
        return sum(isinstance(one, StylesCache) for one in gc.get_objects())

    app = make_app(small())
    async with app.run_test(size=(80, 24)) as pilot:
        # What is removed goes a moment later; Textual's own cache had five of each prompt.
        for _ in range(6):
            await press(pilot, "slash", "x", "escape")
        first = count_caches()
        for _ in range(6):
            await press(pilot, "slash", "x", "escape")
        await wait_until(pilot, lambda: count_caches() <= first + 2)
