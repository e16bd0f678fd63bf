"""A program in a pseudo-terminal of 200x50 cells that knows synchronized output, timed from outside."""

from __future__ import annotations

import os
import pty
import select
import signal
import tempfile
import termios
import time
from collections.abc import Sequence
from fcntl import ioctl
from struct import pack
from typing import NamedTuple

import pyte

from benchmarks.measuring import ROOT, environment

ROWS, COLUMNS = 50, 200
QUESTION, ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
PICTURE, PICTURE_END = b"\x1b[?2026h", b"\x1b[?2026l"
# An answer is over when nothing has come for this long.
QUIET_S = 0.2
STATE = tempfile.TemporaryDirectory()


class Answer(NamedTuple):
    """What came for a key: seconds to the last byte, bytes, pictures."""

    seconds: float
    sent: int
    pictures: int


class Terminal:
    """A program in a pseudo-terminal that is read as fast as it comes. state: the folder of what it keeps,
    a new one where none is given.
    """

    def __init__(self, command: Sequence[str], state: str | None = None) -> None:
        self.begun = time.perf_counter()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            # Each begins without a session, and none is kept for who runs this.
            state = state or f"{STATE.name}/{os.getpid()}"
            # Not the tour of the first start: what is measured is everybody's screen.
            os.makedirs(f"{state}/wltui", exist_ok=True)
            open(f"{state}/wltui/tour-seen", "w").close()
            changed = environment() | {"TERM": "xterm-256color", "XDG_STATE_HOME": state}
            for name in ("COLORTERM", "NO_COLOR", "SSH_CONNECTION", "TEXTUAL_FPS"):
                changed.pop(name, None)
            os.chdir(ROOT)
            os.execve(command[0], list(command), changed)
        ioctl(self.master, termios.TIOCSWINSZ, pack("HHHH", ROWS, COLUMNS, 0, 0))
        # Only read while it runs: an emulator is slow and would hold the program back.
        self.chunks: list[tuple[float, bytes]] = []
        self._tail = b""
        self.pictures = 0

    def read(self, first_within: float, until: bytes = b"") -> Answer:
        """All that comes until it is quiet, or until `until` came; nothing unless it begins within so many
        seconds.
        """
        begin = last = time.perf_counter()
        chunks = []
        while select.select([self.master], [], [], QUIET_S if chunks else first_within)[0]:
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:
                break
            last = time.perf_counter()
            chunks.append(data)
            self.chunks.append((last - self.begun, data))
            os.write(self.master, ANSWER * (self._tail + data).count(QUESTION))
            self._tail = data[1 - len(QUESTION) :]
            if until and until in data:
                break
        joined = b"".join(chunks)
        pictures = joined.count(PICTURE)
        self.pictures += pictures
        return Answer(last - begin, len(joined), pictures)

    def read_first(self, within: float) -> None:
        """All that comes until a picture is there and a second is quiet."""
        until = time.perf_counter() + within
        while not self.read(1.0).pictures:
            if time.perf_counter() > until:
                raise SystemExit(f"no picture within {within:.0f} s")
        while self.read(1.0).sent:
            pass

    def first_picture(self, words: Sequence[str], within: float = 60.0) -> float:
        """Seconds from the start until a picture with all these words; what comes behind it is not read."""
        screen = pyte.Screen(COLUMNS, ROWS)
        stream = pyte.ByteStream(screen)
        while time.perf_counter() - self.begun < within:
            chunk_count = len(self.chunks)
            self.read(within, PICTURE_END)
            for seconds, data in self.chunks[chunk_count:]:
                stream.feed(data.replace(QUESTION, b""))
                if all(one in "\n".join(screen.display) for one in words):
                    return seconds
        raise SystemExit(f"no picture with {', '.join(words)} within {within:.0f} s")

    def press(self, key: str, within: float = 5.0) -> Answer:
        """The answer to a key."""
        os.write(self.master, key.encode())
        return self.read(within)

    def first_screen(self, complete: Sequence[str]) -> tuple[float, int]:
        """(seconds from the start until all these words were on the screen, bytes until then)."""
        screen = pyte.Screen(COLUMNS, ROWS)
        stream = pyte.ByteStream(screen)
        sent = 0
        for seconds, data in self.chunks:
            sent += len(data)
            stream.feed(data.replace(QUESTION, b""))
            if all(words in "\n".join(screen.display) for words in complete):
                return seconds, sent
        raise SystemExit("no first screen")

    def end(self, key: str = "q") -> None:
        """Quit, and give up after a while."""
        self.press(key, 1.0)
        until = time.perf_counter() + 5
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.perf_counter() > until:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.01)
        os.close(self.master)

    def kill(self) -> None:
        """End it at once: nobody reads what it would still write."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)
