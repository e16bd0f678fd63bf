"""Terminals with 256 colours, 16 colours, none, and without block glyphs. Most start Python: it is their
environment that decides.
"""

from __future__ import annotations

import re

import pytest

from tests.command_line.running import SEED_001
from tests.tui.pseudo_terminal import wltui
from tui.commands.on_screen import _speaks_utf8


def screen_on(*words: str, keys: str = "", shows: str = "", **env: str | None) -> tuple[str, set[bytes]]:
    """The screen of seed 001 in an environment, and the colours and styles sent (SGR, in parts).

    shows: what the screen shows once it has answered the keys; a busy machine may take a while.
    """
    with wltui(SEED_001, *words, env=env) as terminal:
        terminal.wait_for("q quit")
        terminal.settle()
        if keys:
            terminal.press(keys)
            terminal.wait_for(lambda: re.search(shows, terminal.text) is not None)
            terminal.settle()
        sent = set(re.findall(rb"\x1b\[([0-9;]*)m", terminal.raw))
        text = terminal.text
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert terminal.attributes == terminal.attributes_before
        return text, sent


def colours(sent: set[bytes]) -> set[bytes]:
    """The parts of SGR sequences that choose a colour."""
    many = rb"[34]8;(?:5;\d+|2;\d+;\d+;\d+)"
    found = {colour for sequence in sent for colour in re.findall(many, sequence)}
    few = {part for sequence in sent for part in re.sub(many, b"", sequence).split(b";")}
    return found | {part for part in few if re.fullmatch(rb"[349][0-7]|10[0-7]", part)}


def test_a_terminal_with_256_colours_gets_them_and_no_more() -> None:
    text, sent = screen_on(TERM="xterm-256color", COLORTERM=None)
    assert "▄▄▄▄" in text
    assert len(colours(sent)) >= 8
    assert all(colour.startswith((b"38;5;", b"48;5;")) for colour in colours(sent))


def test_a_terminal_with_16_colours_gets_no_others_and_an_empty_no_color_is_none() -> None:
    text, sent = screen_on(TERM="xterm", COLORTERM=None, NO_COLOR="")
    assert "▄▄▄▄" in text
    assert colours(sent)
    assert not any(colour.startswith((b"38", b"48")) for colour in colours(sent))


def test_no_color_sends_no_colour_and_draws_names_with_brackets() -> None:
    # Without a locale Python takes UTF-8, and so do we.
    named = r"\[(attention|mlp)_\w+( \w+)? *\]"
    text, sent = screen_on(keys="wwwwwwwww", shows=named, NO_COLOR="1", LANG=None)
    assert "▁▁▁▁" in text
    assert re.search(named, text)
    assert colours(sent) == set()


@pytest.mark.parametrize(
    "env", [{"PYTHONIOENCODING": "ascii"}, {"LANG": None, "LC_ALL": "C"}], ids=["encoding ascii", "LC_ALL=C"]
)
def test_a_terminal_that_is_not_utf_8_gets_ascii_glyphs(env: dict[str, str | None]) -> None:
    text, _ = screen_on(**env)
    assert "ffff" in text
    assert text.isascii()


def test_which_locale_is_one_of_a_terminal_with_block_glyphs() -> None:
    # C.UTF-8 as LC_CTYPE is what Python itself sets under LANG=C.
    spoken = [
        ({}, True),
        ({"LANG": "C.UTF-8"}, True),
        ({"LANG": "C"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, True),
        ({"LANG": "de_DE.UTF-8", "LC_CTYPE": "POSIX"}, False),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "C", "LC_ALL": "C.UTF-8"}, True),
    ]
    for environ, is_spoken in spoken:
        assert _speaks_utf8("utf-8", environ) is is_spoken, environ
        assert not _speaks_utf8("ascii", environ)


def test_a_utf_8_terminal_gets_ascii_glyphs_when_asked() -> None:
    text, sent = screen_on("--ascii", keys="j w", shows=">- stage  1")
    assert "lane          x  busy|" in text
    assert text.isascii()
    assert colours(sent)
