"""What is written to a terminal: all of it, in order, without ever holding up the program."""

from __future__ import annotations

import os
import pty
import select
import tty
from collections.abc import Iterator
from io import TextIOWrapper
from threading import Thread
from time import sleep

import pytest

from tui.terminal.driver import Output, PictureOutput


class Watched:
    """An output on a pseudo-terminal, and what it said."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.stream = TextIOWrapper(os.fdopen(slave, "wb", buffering=0), encoding="utf-8", write_through=True)
        self.written = self.gone = 0
        self.output = Output(self.stream, self._written, self._gone)

    def _written(self) -> None:
        self.written += 1

    def _gone(self) -> None:
        self.gone += 1

    def send(self, *texts: str) -> Thread:
        """Write texts in another thread, as Textual's writer does."""
        for _ in texts:
            self.output.expect()
        thread = Thread(target=lambda: [*map(self.output.write, texts), self.output.flush()], daemon=True)
        thread.start()
        return thread

    def wait_for_a_beginning(self) -> None:
        """Wait until the first of what is sent has come, which nobody reads yet."""
        assert select.select([self.master], [], [], 60)[0]

    def wait_until_full(self) -> None:
        """Wait until the terminal takes no more of what is sent, which nobody reads yet."""
        while select.select([], [self.output.fileno()], [], 0)[1]:
            sleep(0.01)


@pytest.fixture
def terminal() -> Iterator[Watched]:
    found = Watched()
    yield found
    found.stream.close()


def read(master: int, length: int) -> bytes:
    data = b""
    while len(data) < length:
        data += os.read(master, length - len(data))
    return data


def test_a_long_text_is_written_as_it_is_taken_and_then_said_to_be(terminal: Watched) -> None:
    text = "▄█ text " * 20_000
    thread = terminal.send(text, "end")
    terminal.wait_for_a_beginning()
    assert terminal.written == 0
    assert terminal.output.expected == 2
    data = read(terminal.master, len(text.encode()) + 3)
    thread.join(5)
    assert data.decode() == text + "end"
    assert (terminal.written, terminal.output.expected, terminal.gone) == (1, 0, 0)


def test_a_character_that_has_no_bytes_does_not_end_the_writer(terminal: Watched) -> None:
    thread = terminal.send("a\ud800b")
    assert read(terminal.master, 3) == b"a?b"
    thread.join(5)
    assert (terminal.written, terminal.output.expected) == (1, 0)


def test_a_picture_that_nobody_takes_can_be_dropped_and_what_follows_is_written(terminal: Watched) -> None:
    thread = terminal.send(PictureOutput("x" * 1_000_000), PictureOutput("y" * 1_000_000), "restored")
    terminal.wait_until_full()
    terminal.output.drop_pictures()
    begun = b""
    while not begun.endswith(b"restored"):
        begun += os.read(terminal.master, 1 << 16)
    thread.join(5)
    assert terminal.output.expected == 0
    assert len(begun) < 500_000
    assert begun.lstrip(b"x") == b"\x1b[?2026l\x1b[mrestored"


def test_a_terminal_that_is_gone_takes_everything_and_is_told_once(terminal: Watched) -> None:
    os.close(terminal.master)
    terminal.send("one", "two", "three").join(5)
    assert (terminal.gone, terminal.output.expected) == (1, 0)


def test_the_descriptor_that_a_shell_shares_stays_blocking(terminal: Watched) -> None:
    terminal.send("x").join(5)
    assert os.get_blocking(terminal.stream.fileno())
