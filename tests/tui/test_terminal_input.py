"""Whatever bytes a terminal sends, the program goes on: nothing is taken for a key that is none."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.geometry import Size
from textual.message import Message

from tests.tui.pseudo_terminal import Terminal, wltui
from tui.terminal.driver import MOST_COLUMNS, MOST_ROWS, bound_message
from tui.terminal.input_text import MOST_PASTED, TerminalInput

TABLE = "fixtures/003_gpt2_large_op_table.txt"


def messages_of(*parts: bytes) -> list[Message]:
    """What the app gets of these bytes, read part by part."""
    parser, received = XTermParser(), TerminalInput()
    found: list[Message] = []
    for part in parts:
        for text in received.texts(part):
            found += parser.feed(text)
    for text in received.rest(True):
        found += parser.feed(text)
    return found


def keys_of(*parts: bytes) -> list[str]:
    return [message.key for message in messages_of(*parts) if isinstance(message, events.Key)]


def split(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    for at in range(len(data) + 1):
        yield data[:at], data[at:]


KEYS = {
    b"\x1b[A": ["up"], b"\x1bOA": ["up"], b"\x1b[6~": ["pagedown"], b"\x1b[1;2A": ["shift+up"],
    b"\x1b[97u": ["a"], b"\x1bOP": ["f1"], b"\x1b[[A": ["f1"], b"\x1b[Z": ["shift+tab"],
    b"\x1b[a": ["shift+up"],
    "é".encode(): ["é"], "→".encode(): ["rightwards_arrow"],
}  # fmt: skip


@pytest.mark.parametrize("data", KEYS, ids=map(repr, KEYS))
def test_a_key_is_the_same_in_two_parts(data: bytes) -> None:
    for first, second in split(data):
        assert keys_of(first, second) == KEYS[data]
    assert keys_of(b"j" + data + b"k") == ["j", *KEYS[data], "k"]


# What is no key: replies that nobody asked for, strings of the terminal, other encodings.
NO_KEYS = [
    b"\xe9", b"\xff\xfe", b"\x9b", b"\xc3", b"\xed\xa0\x80", "\ufffd".encode(),
    "\x9bq".encode()[:2], b"\x1b]11;rgb:0000/0000/0000\x07", b"\x1b]52;c;cXF8cXE=\x1b\\",
    b"\x1bP>|xterm(3)\x1b\\",
    b"\x1b_Gqqq\x1b\\", b"\x1b^q\x1b\\", b"\x1b[?64;1;2;6q", b"\x1b[>41;354;0c", b"\x1b[8;99999;99999t",
    b"\x1b[" + b"1;" * 200 + b"q", b"\x1b[" + b"9" * 5000 + b"q", b"\x1b]0;" + b"q" * 200_000 + b"\x07",
    b"\x1b[99999999999999;5R"[:0] + b"\x1b[?2026;9999q", b"\x1b[<99999999;1;1M", b"\x1b[1114112;1u",
]  # fmt: skip


@pytest.mark.parametrize("data", NO_KEYS, ids=range(len(NO_KEYS)))
def test_what_is_no_key_is_no_key_in_one_part_or_two(data: bytes) -> None:
    parts = (
        list(split(data)) if len(data) < 100 else [(data[:at], data[at:]) for at in (0, 1, 2, 3, 40, 4096)]
    )
    for first, second in parts:
        parser, received = XTermParser(), TerminalInput()
        keys = []
        for part in (b"j", first, second, b"jk"):
            for text in received.texts(part):
                try:
                    keys += [one.key for one in parser.feed(text) if isinstance(one, events.Key)]
                except ValueError:
                    parser = XTermParser()
        assert [key for key in keys if key not in ("j", "k")] == [], (first[-20:], second[:20])
        # A byte that is part of nothing may take one more with it.
        assert keys.count("j") >= 1
        assert keys[-1] == "k"


def test_a_string_that_was_none_loses_no_key_for_longer_than_it_takes_to_press_one() -> None:
    def typed(*parts: bytes) -> list[str]:
        """The keys of parts between which a person's hand moves."""
        received, parser = TerminalInput(), XTermParser()
        found: list[Message] = []
        for part in parts:
            for text in (*received.texts(part), *received.rest(False)):
                found += parser.feed(text)
        return [one.key for one in found if isinstance(one, events.Key)]

    for introducer in b"]P_^X":
        begun = b"\x1b" + bytes([introducer])
        assert typed(begun, b"6", b"\x0c") == ["6", "ctrl+l"]
        # As fast as a robot: what begins with Esc is a sequence again.
        assert keys_of(begun + b"[N6", b"\x1b[A", b"6") == ["up", "6"]
        assert keys_of(begun + b"N6\x1bOAj") == ["up", "j"]
        # A reply on a slow line is none of it.
        assert typed(begun + b"qqq", b"qq", b"q\x1b\\") == []
        assert typed(begun + b"qqq", b"\x07", b"j") == ["j"]
        assert typed(begun + b"qqq\x1b", b"\\", b"j") == ["j"]


def test_a_paste_is_text_and_has_an_end() -> None:
    (paste,) = messages_of(b"\x1b[200~q\x1b]0;x\x07\x1b[A\r\x1b[201~")
    assert isinstance(paste, events.Paste)
    assert "q" in paste.text
    assert "\x1b" not in paste.text
    (paste,) = messages_of(b"\x1b[200~", *[b"q" * 60_000] * 10)
    assert isinstance(paste, events.Paste)
    assert len(paste.text) == MOST_PASTED
    assert keys_of(b"\x1b[200~qqq\x1b[201~j\x1b[201~k") == ["j", "k"]


def test_a_paste_that_begins_in_two_parts_has_an_end() -> None:
    """Seen to fail: the end was left out where Esc had come 50 ms before, and no key came any more."""
    parser, received = XTermParser(), TerminalInput()
    found: list[Message] = []
    for part in (b"\x1b", b"[200~qqq\x1b[201~", b"\x0c"):
        for text in (*received.texts(part), *received.rest(False)):
            found += parser.feed(text)
    assert [one.key for one in found if isinstance(one, events.Key)] == ["ctrl+l"]
    # Alt+O and a paste that were read at once: it has its bound.
    found = messages_of(b"\x1bO\x1b[200~" + b"q" * (MOST_PASTED + 1) + b"\x1b[201~\x0c")
    assert [len(one.text) for one in found if isinstance(one, events.Paste)] == [MOST_PASTED]
    assert isinstance(found[-1], events.Key)


def test_random_bytes_are_read_to_their_end_in_time() -> None:
    choose = random.Random(5)
    pieces = [
        *KEYS,
        *(data for data in NO_KEYS if len(data) < 100),
        b"\x1b",
        b"\x1bO",
        b"\x1b[",
        b"\x1b[200~",
        b"[200~",
        b"\x1b[201~",
    ]
    begin = time.process_time()
    for _ in range(600):
        parser, received = XTermParser(), TerminalInput()
        found: list[Message] = []

        def take(texts: Iterator[str], found: list[Message] = found) -> None:
            nonlocal parser
            for text in texts:
                try:
                    for message in parser.feed(text):
                        bound_message(message, None)
                        found.append(message)
                except Exception:
                    parser = XTermParser()

        for _ in range(20):
            data = choose.choice(pieces) if choose.random() < 0.7 else choose.randbytes(choose.randrange(40))
            take(received.texts(data))
            if choose.random() < 0.3:
                take(received.rest(False))
        take(received.rest(True))
        assert not received.is_waiting
        take(received.texts(b"\x0c"))
        assert found
        assert isinstance(found[-1], events.Key)
        assert found[-1].key == "ctrl+l"
    # A byte that nothing follows costs no search of all that came before.
    for data in (b"\x1b", b"\x9b", b"\x1b[1;", b"\x1b]", b"a\x1b"):
        received = TerminalInput()
        for _ in range(20):
            list(received.texts(data * 5000))
    assert time.process_time() - begin < 10


def test_sizes_and_places_are_those_of_a_terminal() -> None:
    huge = events.Resize(Size(99_999, 99_999), Size(99_999, 99_999))
    bounded = bound_message(huge, None)
    assert isinstance(bounded, events.Resize)
    assert bounded.size == (MOST_COLUMNS, MOST_ROWS)
    by_system = bound_message(huge, Size(80, 24))
    assert isinstance(by_system, events.Resize)
    assert by_system.size == (80, 24)
    assert bound_message(events.Resize(Size(0, 0), Size(0, 0)), None) is None
    clicks = [
        one for one in messages_of(b"\x1b[<0;99999;99999M\x1b[<0;5;5M") if isinstance(one, events.MouseDown)
    ]
    assert [bound_message(one, None) is None for one in clicks] == [True, False]


ATTACKS = [
    b"\xe9", b"\xe9\xe8\xff\xc3", b"\x1b[1114112u", b"\x1b[;;u", b"\x1b[<0;99999;99999M",
    b"\x1b[48;99999;99999;0;0t", b"\x1b[48;0;0;0;0t", b"\x1b[<0;5;5M\x1b[<64;1;1M",
    b"\x1b]11;" + b"q" * 200_000 + b"\x07", b"\x1b[200~" + b"q\r" * 30_000 + b"\x1b[201~",
    b"\x1b[" + b"9" * 3000 + b"q", b"\x1bPq" + bytes(range(0x20, 0x7F)) * 50 + b"\x1b\\",
]  # fmt: skip


@pytest.mark.slow
def test_no_bytes_end_the_program_in_a_real_terminal() -> None:
    with wltui(TABLE, columns=80, rows=24) as terminal:
        terminal.wait_for(lambda: terminal.in_alternate_screen, 30)
        terminal.settle()
        for attack in ATTACKS:
            for at in range(0, len(attack), 2048):
                send(terminal, attack[at : at + 2048])
            terminal.settle()
            assert terminal.process.poll() is None, attack[:30]
        before = terminal.text
        terminal.press("1")
        terminal.wait_for(lambda: terminal.text != before, 30)
        terminal.press("q")
        assert terminal.wait_for_end(30) == 0
        assert b"Traceback" not in bytes(terminal.raw)


@pytest.mark.slow
def test_no_size_of_the_system_ends_the_program() -> None:
    with wltui(TABLE, columns=80, rows=24) as terminal:
        terminal.wait_for(lambda: terminal.in_alternate_screen, 30)
        terminal.settle()
        # 16 bits of each, which the emulator need not draw.
        for size in ((65_535, 65_535), (0, 0), (1, 65_535), (65_535, 1), (1, 1), (80, 24)):
            terminal._set_size(*size)
            os.write(terminal.master, b"j\x1b[48;99999;99999;0;0t")
            terminal.settle()
            assert terminal.process.poll() is None, size
        terminal.press("q")
        assert terminal.wait_for_end(30) == 0
        assert b"Traceback" not in bytes(terminal.raw)


def send(terminal: Terminal, data: bytes) -> None:
    """Bytes as a terminal sends them, while its screen is read."""
    os.write(terminal.master, data)
    terminal.pump(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["99999999", "-5", "²", "9" * 400])
def test_a_width_that_no_terminal_has_is_none(columns: str) -> None:
    with wltui(TABLE, columns=80, rows=24, env={"COLUMNS": columns, "LINES": columns}) as terminal:
        terminal.wait_for(lambda: terminal.in_alternate_screen, 30)
        terminal.settle()
        terminal.press("q")
        assert terminal.wait_for_end(30) == 0
        assert b"Traceback" not in bytes(terminal.raw)
