"""One letter, one meaning: a key does the same kind of thing on every screen that has it.

Planted: `s` for sorting the layer table; `x` for A, B or both. Each was found.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.binding import Binding

from simcore.diagnostics import InputError
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.pseudo_terminal import ROOT
from tests.tui.screen_reading import press, screen_rows
from tests.tui.test_keymap import read
from tui.app import WltuiApp
from tui.help import FIRST, group_actions
from tui.keys import list_actions
from tui.keys.keymap import OLD_MAP
from tui.screens import SCREENS, all_bindings, load
from tui.why.view import WhyView

# By letter what its actions are called, and one word for all of them where they go by several names.
MEANINGS = {
    "h": {"left", "cursor-left", "column-left", "less"},
    "j": {"down", "lane-down"},
    "k": {"up", "lane-up"},
    "l": {"right", "cursor-right", "column-right", "more"},
    "g": {"first", "first-lane"},
    "G": {"last", "last-lane"},
    "b": {"longest-wait", "slowest"},
    "f": {"focus", "all"},
    "o": {"order", "sort"},
    "O": {"unsort"},
    "i": {"beside", "group", "grouping", "shown"},
    "I": {"ranks", "unfold"},
    "n": {"next-match"},
    "u": {"back", "undo"},
    "R": {"runs"},
}


def letters() -> dict[str, set[str]]:
    """The names of the actions that each letter has, over all screens and everywhere."""
    found: dict[str, set[str]] = {}
    for bindings in (*all_bindings().values(), WltuiApp.BINDINGS):
        for one in bindings:
            assert isinstance(one, Binding)
            for key in one.key.split(","):
                if len(key) == 1 and key.isalpha() and one.id is not None:
                    found.setdefault(key, set()).add(one.id.partition(".")[2])
    return found


def test_a_letter_has_one_meaning_on_all_screens() -> None:
    for letter, names in letters().items():
        assert len(names) == 1 or names <= MEANINGS.get(letter, set()), (letter, names)


def test_the_page_of_keys_has_every_letter_that_there_is() -> None:
    page = (Path(ROOT) / "docs/keys.md").read_text(encoding="utf-8").partition("## Keys of your own")[0]
    listed = set(re.findall(r"`([A-Za-z])`", page))
    assert set(letters()) <= listed


def test_no_key_of_a_screen_takes_one_of_everywhere_from_it() -> None:
    always = {key for one in list_actions(WltuiApp.BINDINGS, {}) for key in one.keys}
    for name, bindings in all_bindings().items():
        own = {key for one in list_actions(bindings, {}) for key in one.keys}
        assert not own & always, name


def test_digits_open_screens_wherever_one_is() -> None:
    for name, bindings in all_bindings().items():
        for one in list_actions(bindings, {}):
            assert not set(one.keys) & set("12345678"), (name, one.id)


async def test_a_digit_on_the_form_opens_a_screen_and_types_nothing(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5", "j", "6")
        assert app.screen_name == "compare"
        assert app.session.draft == app.session.opened.parameters
        await press(pilot, "5", "equals_sign", "4", "enter")
        assert app.session.draft.tp == 4


def test_the_old_map_is_an_option_of_the_file_and_other_keys_go_over_it(tmp_path: Path) -> None:
    assert dict(read(tmp_path, 'map = "old"\n')) == OLD_MAP
    assert not read(tmp_path, 'map = "new"\n')
    mixed = read(tmp_path, 'map = "old"\n[layers]\nsort = "m"\n')
    assert mixed["layers.sort"] == "m"
    assert mixed["why.grouping"] == "o"
    known = {one.id for bindings in all_bindings().values() for one in bindings if isinstance(one, Binding)}
    assert set(OLD_MAP) <= known
    with pytest.raises(InputError, match='expected map = "new" or map = "old"'):
        read(tmp_path, 'map = "mine"\n')


async def test_keys_of_the_old_map_work_and_stand_in_the_last_row(make_app: MakeApp, tmp_path: Path) -> None:
    app = make_app(keymap=read(tmp_path, 'map = "old"\n'))
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "4", "o")
        assert isinstance(app.current_view, WhyView)
        assert app.current_view.model.grouping == "layer"
        said(screen_rows(app), "by layer")
        assert "o other sums" in screen_rows(app)[-1]


@pytest.mark.parametrize("name", list(SCREENS))
def test_the_help_has_every_action_once_the_eight_first_ones_in_front(name: str) -> None:
    found = list_actions(load(name).BINDINGS, {})
    groups = group_actions(name, found)
    listed = [one for _, members in groups for one in members]
    assert sorted(one.id for one in listed) == sorted(one.id for one in found)
    assert groups[0][0] == FIRST
    assert 5 <= len(groups[0][1]) <= 8


async def test_a_wide_help_has_two_columns(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(160, 60)) as pilot:
        await press(pilot, "2", "question_mark")
        rows = screen_rows(app)
        assert rows[1].startswith("  w  +  =")
        assert any(re.match(r"  \S.*  +(--|──) ", row) for row in rows)
        assert rows[-1].strip() == "" or "Esc closes this" in "".join(rows)
