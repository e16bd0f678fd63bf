"""The user's own keys: what the file may say, what is refused and where, and that they work."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from textual.binding import Binding

from simcore.diagnostics import InputError
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.pseudo_terminal import ROOT, SEED, wltui
from tests.tui.screen_reading import press, screen_rows, screen_text
from tests.tui.test_measured_screens import app_on, four_ranks
from tui.app import WltuiApp
from tui.keys import key_name, key_of, keymap_path, list_actions, read_keymap
from tui.keys.actions import rename_hint_keys
from tui.keys.keymap import RENAMED, UserKeys
from tui.screens import all_bindings
from tui.summary.view import SummaryView
from tui.timeline.view import TimelineView
from tui.why.view import WhyView


def read(folder: Path, text: str) -> UserKeys:
    """The keymap of a file with this text."""
    (folder / "keys.toml").write_text(text, encoding="utf-8")
    return read_keymap(str(folder / "keys.toml"), all_bindings(), WltuiApp.BINDINGS)


def refused(folder: Path, text: str) -> str:
    """What is said of a file with this text, without its folder."""
    with pytest.raises(InputError) as caught:
        read(folder, text)
    return str(caught.value).replace(str(folder) + "/", "")


def unread(path: Path) -> str:
    """The message on a file whose text cannot be read."""
    with pytest.raises(InputError) as caught:
        read_keymap(str(path), all_bindings(), WltuiApp.BINDINGS)
    (found,) = caught.value.diagnostics
    # A byte of the file has a place, what is wrong with all of it has none.
    place = (1, 3) if "byte" in found.message else (None, None)
    assert (found.code, found.file, found.line, found.column) == ("keymap", str(path), *place)
    return found.message


def test_every_key_of_every_screen_has_a_name_that_gives_it_back() -> None:
    for bindings in (*all_bindings().values(), WltuiApp.BINDINGS):
        for one in bindings:
            assert isinstance(one, Binding)
            for key in one.key.split(","):
                again = key_of(key_name(key))
                assert again is not None, key
                assert key_name(again) == key_name(key)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("w", "w"), ("W", "W"), (".", "."), ("Ctrl+R", "ctrl+r"), ("ctrl+r", "ctrl+r"), ("Esc", "escape"),
        ("PageDown", "pagedown"), ("escape", "escape"), ("F5", "f5"), ("Shift+Left", "shift+left"),
        ("Space", "space"),
        ("Alt+x", "alt+x"), ("Ctrl+Shift+Left", "ctrl+shift+left"), ("+", "+"),
        ("", None), (" ", None), ("F25", None), ("F0", None), ("Ctrl+1", None), ("Shift+w", None),
        ("ww", None),
        ("Ctrl+Ctrl+r", None), ("\x1b", None), ("Hyper+r", None), ("Ctrl+", None),
    ],
)  # fmt: skip
def test_keys_are_written_as_the_help_writes_them(name: str, key: str | None) -> None:
    assert key_of(name) == key


def test_the_keymap_lies_in_the_users_configuration_directory() -> None:
    assert keymap_path({"XDG_CONFIG_HOME": "/c"}) == "/c/wltui/keys.toml"
    assert keymap_path({}) == str(Path.home() / ".config" / "wltui" / "keys.toml")


def test_no_file_is_no_keymap(tmp_path: Path) -> None:
    assert read_keymap(str(tmp_path / "none.toml"), all_bindings(), WltuiApp.BINDINGS) == {}
    assert read(tmp_path, "# nothing yet\n") == {}


def test_a_key_or_a_list_of_keys_is_taken(tmp_path: Path) -> None:
    text = '[timeline]\nzoom-in = ["i", ",", "F5"]\nprevious-span = ";"\n[app]\nquit = "Ctrl+X"\n'
    assert read(tmp_path, text) == {
        "timeline.zoom-in": "i,comma,f5", "timeline.previous-span": ";", "app.quit": "ctrl+x"
    }  # fmt: skip


def test_two_keys_may_change_places(tmp_path: Path) -> None:
    text = '[timeline]\nzoom-in = "s"\nzoom-out = ["w", "-"]\n'
    assert read(tmp_path, text) == {"timeline.zoom-in": "s", "timeline.zoom-out": "w,-"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zoom-in = 1\n",
         'keys.toml:1:1: error keymap found "zoom-in", expected a table of keys like [timeline]'),
        ('[timeline]\nzoom-inn = "w"\n',
         'keys.toml:2:1: error keymap found "timeline.zoom-inn", expected an action, for example '
         "timeline.zoom-in (wltui keys lists all)"),
        ('[nowhere]\nfast = "w"\n',
         'keys.toml:2:1: error keymap found "nowhere.fast", expected an action, for example '
         "summary.next-panel (wltui keys lists all)"),
        ('[app]\nquit-everywhere = "x"\n',
         'keys.toml:2:1: error keymap found "app.quit-everywhere", expected an action, for example '
         "summary.next-panel (wltui keys lists all)"),
        ("[timeline]\nzoom-in = 5\n",
         'keys.toml:2:1: error keymap found 5, expected a key like "w" or a list of keys'),
        ("[timeline]\nzoom-in = []\n",
         'keys.toml:2:1: error keymap found [], expected a key like "w" or a list of keys'),
        ('[timeline]\n  zoom-in = ["w", "Ctrl+1"]\n',
         'keys.toml:2:3: error keymap found "Ctrl+1", expected a key like "w", "Ctrl+R", "F5" or "PageDown"'),
        ('[timeline]\nzoom-in = "\\u001b[2J"\n',
         'keys.toml:2:1: error keymap found "\\x1b[2J", '
         'expected a key like "w", "Ctrl+R", "F5" or "PageDown"'),
        ('[timeline]\n\nzoom-in = "d"\n',
         'keys.toml:3:1: error keymap key "d" of timeline.zoom-in is already that of timeline.pan-right: '
         "give timeline.pan-right another key too"),
        ('[timeline]\nzoom-in = "q"\n',
         'keys.toml:2:1: error keymap key "q" of timeline.zoom-in is already that of app.quit: '
         "give app.quit another key too"),
        ("[timeline\n",
         "keys.toml:1:10: error keymap this is not TOML: Expected ']' at the end of a table declaration"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text) == said


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_bytes(b"# \xff")
    said([unread(path)], "byte 0xff", "UTF-8")
    said([unread(tmp_path)], "no regular file")
    path.write_bytes(b"#" * (1 << 20) + b"#")
    said([unread(path)], "more than 1 MiB")
    path.unlink()
    path.symlink_to(path)
    assert unread(path).endswith(f": {os.strerror(errno.ELOOP)}")


def test_a_fifo_or_device_in_place_of_the_keymap_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keys.toml")
    for path in (tmp_path / "keys.toml", Path("/dev/zero")):
        said([unread(path)], "no regular file")


def test_hints_show_the_keys_of_the_keymap() -> None:
    keymap = {"timeline.zoom-in": "i", "timeline.cursor-left": "left,b"}
    assert rename_hint_keys("w s", TimelineView.BINDINGS, keymap) == "i s"
    assert rename_hint_keys("hjkl", TimelineView.BINDINGS, keymap) == "Leftjkl"
    assert rename_hint_keys("Space", TimelineView.BINDINGS, keymap) == "Space"


async def test_the_new_key_works_and_the_old_one_does_not(make_app: MakeApp, tmp_path: Path) -> None:
    keymap = read(tmp_path, '[timeline]\nzoom-in = "i"\n[app]\nhelp = "F1"\n')
    app = make_app(keymap=keymap)
    async with app.run_test(size=(120, 36)) as pilot:
        view = app.current_view
        assert isinstance(view, TimelineView)
        whole = view.model.window
        await press(pilot, "w", "plus")
        assert view.model.window == whole
        await press(pilot, "i")
        assert view.model.window.span_ns < whole.span_ns
        assert screen_rows(app)[-1].startswith(" i s zoom ")
        await press(pilot, "f1")
        assert any(row.split()[:4] == ["i", "zoom", "in", "at"] for row in screen_rows(app))


def test_a_keymap_in_the_configuration_directory_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "wltui"
    folder.mkdir()
    (folder / "keys.toml").write_text('[screen]\nlayers = "F3"\n')
    with wltui(SEED, env={"XDG_CONFIG_HOME": str(tmp_path)}) as terminal:
        terminal.wait_for("q quit")
        terminal.press_each(("\x1bOR", "[3 Layers]"))


def test_each_action_has_words_and_an_id_of_its_own() -> None:
    for name, bindings in all_bindings().items():
        found = list_actions([*bindings, *WltuiApp.BINDINGS], {})
        assert all(one.words and "." in one.id for one in found), name
        assert len({one.id for one in found}) == len(found), name


ACTION = "expected an action, for example"
LIKE = 'expected a key like "w" or a list of keys'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('# one\n["\\u202e"]\na="b"\n',
         f'3:1: error keymap found "\\u202e.a", {ACTION} summary.next-panel (wltui keys lists all)'),
        ('"\\u202e" = 1\n', '1:1: error keymap found "\\u202e", expected a table of keys like [timeline]'),
        ('["time\\u006cine"]\n  "zoom\\u002din" = 5\n', f"2:3: error keymap found 5, {LIKE}"),
        ("[timeline]\n'zoom-in' = 5\n", f"2:1: error keymap found 5, {LIKE}"),
        ("[layers]\nzoom-in = 1\n[timeline]\nzoom-in = 5\n",
         f'2:1: error keymap found "layers.zoom-in", {ACTION} summary.next-panel (wltui keys lists all)'),
        ("[timeline]\nzoom-in = 2020-01-01\n", f"2:1: error keymap found 2020-01-01, {LIKE}"),
        ("[timeline]\nzoom-in = [true, 10:00:00]\n", f"2:1: error keymap found [true, 10:00:00], {LIKE}"),
        ("[timeline]\nzoom-in = {a = 'b'}\n", f'2:1: error keymap found {{a = "b"}}, {LIKE}'),
        ('timeline = {zoom-in = 5}\n', f"1:1: error keymap found 5, {LIKE}"),
    ],
)  # fmt: skip
def test_keys_written_with_escapes_have_a_place_and_values_are_said_as_they_are_written(
    tmp_path: Path, text: str, said: str
) -> None:
    assert refused(tmp_path, text) == f"keys.toml:{said}"


OLD = ROOT / "fixtures/saved/keys.toml"


def test_a_keymap_with_the_names_of_an_earlier_version_is_read() -> None:
    """Screens of measured runs had actions of their own; where a file names both, that of now counts."""
    assert read_keymap(str(OLD), all_bindings(), WltuiApp.BINDINGS) == {
        "summary.down": "J,down", "summary.beside": "m", "summary.next-panel": "n",
        "why.grouping": "m", "why.page-down": "space,pagedown",
        "parameters.less": "f7", "parameters.twice": "T", "layers.page-down": "f9",
    }  # fmt: skip


def test_the_name_of_now_counts_wherever_it_stands(tmp_path: Path) -> None:
    both = '[measured-why]\ndown = "n"\n[why]\ndown = "J"\n'
    assert read(tmp_path, both) == {"why.down": "J"}
    assert read(tmp_path, '[measured-why]\ndown = "n"\n') == {"why.down": "n"}


def test_an_old_name_is_refused_for_its_value_alone(tmp_path: Path) -> None:
    assert refused(tmp_path, "[measured-why]\n\ndown = 5\n") == f"keys.toml:3:1: error keymap found 5, {LIKE}"
    words = refused(tmp_path, '[measured-why]\nsideways = "n"\n')
    assert words.startswith('keys.toml:2:1: error keymap found "measured-why.sideways", expected an action')
    # h was free on the screen of old; now it leads left there, and down keeps its own keys.
    keys = read(tmp_path, '[measured-summary]\ndown = "h"\nup = "K"\n')
    assert keys == {"summary.up": "K"}
    said([keys.lost], "not taken", "keys.toml", 'measured-summary.down = "h"', "summary.left")
    assert read(tmp_path, '[measured-summary]\nup = "K"\n').lost == ""


def test_every_old_name_leads_to_an_action_that_there_is() -> None:
    lists = all_bindings().values()
    ids = {one.id for bindings in lists for one in bindings if isinstance(one, Binding) and one.id}
    tables = {id.partition(".")[0] for id in ids}
    for old, new in RENAMED.items():
        assert new in (ids if "." in old else tables)
        assert old not in (ids | tables)


async def test_keys_of_an_old_keymap_work_on_a_measured_run(make_app: MakeApp) -> None:
    keymap = read_keymap(str(OLD), all_bindings(), WltuiApp.BINDINGS)
    app = app_on(make_app, four_ranks(), first="summary", keymap=keymap)
    async with app.run_test(size=(120, 36)) as pilot:
        assert isinstance(app.current_view, SummaryView)
        assert app.current_view.model.side_panel.title in screen_text(app)
        await press(pilot, "m")
        assert "A replay of it, rank ends" in screen_text(app)
        await press(pilot, "n")
        assert "> A replay of it" in screen_text(app)
        await press(pilot, "4", "m")
        assert isinstance(app.current_view, WhyView)
        assert app.current_view.model.grouping == "op"
