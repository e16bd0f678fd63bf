"""A real pseudo-terminal with a program in it, and what its screen shows (read by pyte).

Nothing is mocked: the program is a process of its own whose controlling terminal this is.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte

from tests.tui.program_server import ROOT, ForkedProgram, start

SEED = "fixtures/002_gpt_1024npu.txt"
# It is opened in two thirds of the time, for what is the same of every file.
TABLE = "fixtures/003_gpt2_large_op_table.txt"
# Generous: the machine may be busy. A wait ends as soon as what it waits for is there.
PATIENCE = 300.0

# Makes the terminal the controlling one, as a login does: without it no SIGWINCH would come.
# LC_CTYPE is what this Python itself sets under LANG=C; the program must not inherit it.
_LOGIN = (
    "import os, sys; os.close(os.open(sys.argv[1], os.O_RDWR)); "
    "os.environ.pop('LC_CTYPE', None); os.execvp(sys.argv[2], sys.argv[2:])"
)

# wltui reads these while it runs; with others than these, which Python and Textual read first, it is started.
_READ_WHILE_IT_RUNS = {"XDG_STATE_HOME", "SSH_CONNECTION"}

# Questions to the terminal and keyboard protocols that pyte would print as text.
_UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<>=][0-9;]*[a-z]|\x1b\[\?[0-9;]*\$p|\x1b\[\?[0-9;]*u")
_ALTERNATE = re.compile(rb"\x1b\[\?1049([hl])")
_CURSOR = re.compile(rb"\x1b\[\?25([hl])")
# A terminal that knows synchronized output says so when asked, and is told where pictures begin.
_ASKED, _ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
_PICTURE, _END_OF_PICTURE = b"\x1b[?2026h", b"\x1b[?2026l"


def environment(**changes: str | None) -> dict[str, str]:
    """An environment that does not depend on who runs the tests; None takes a variable away."""
    values: dict[str, str | None] = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        **changes,
    }
    return {name: value for name, value in values.items() if value is not None}


class Terminal:
    """A program in a pseudo-terminal of its own, as its session's controlling terminal.

    stdin, stdout, stderr: descriptors instead of the terminal. answers: whether it says that it
    knows synchronized output: then nothing waits for half a picture. controls: whether it is the
    program's controlling terminal.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        columns: int = 120,
        rows: int = 36,
        env: dict[str, str | None] | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        answers: bool = True,
        controls: bool = True,
        cwd: str | Path = ROOT,
        tour: bool = False,
        planted: str = "",
    ) -> None:
        """tour: whether the first-start tour is shown, as to somebody who never started the program.
        planted: what is executed in the process of wltui before it starts.
        """
        self._answers = answers
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = bytearray()
        self._pending = b""
        self.master, self.slave = pty.openpty()
        self._set_size(columns, rows)
        self.attributes_before = termios.tcgetattr(self.slave)
        self.started = time.monotonic()
        # Each program begins anew unless a test says where sessions are.
        self._state = tempfile.TemporaryDirectory(prefix="wltui-state-")
        state = (env or {}).get("XDG_STATE_HOME") or self._state.name
        if not tour and os.path.isdir(state):
            os.makedirs(f"{state}/wltui", exist_ok=True)
            Path(f"{state}/wltui/tour-seen").touch()
        given = {"XDG_STATE_HOME": self._state.name, **(env or {})}
        streams = [self.slave if one is None else one for one in (stdin, stdout, stderr)]
        is_wltui = [*words[:3]] == [sys.executable, "-m", "tui"] and cwd == ROOT
        self.process: subprocess.Popen[bytes] | ForkedProgram
        if is_wltui and given.keys() <= _READ_WHILE_IT_RUNS:
            with_terminal = [*streams, self.slave] if controls else streams
            self.process = start(words[3:], with_terminal, environment(), given, planted)
        else:
            assert not planted
            self.process = subprocess.Popen(
                [sys.executable, "-ISc", _LOGIN, os.ttyname(self.slave), *words] if controls else list(words),
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                cwd=cwd,
                env=environment(**given),
                start_new_session=True,
            )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._state.cleanup()
        for descriptor in (self.master, self.slave):
            if descriptor >= 0:
                os.close(descriptor)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    # -- reading ---------------------------------------------------------------------

    def pump(self, seconds: float, limit: int = 1 << 16) -> int:
        """Read what comes within `seconds`, at once when there is something; how many bytes."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return 0
        try:
            data = os.read(self.master, limit)
        except OSError:
            return 0
        if self._answers:
            # The end of what came before, in case a question was cut in two.
            asked = (self.raw[-len(_ASKED) + 1 :] + data).count(_ASKED)
            os.write(self.master, _ANSWER * asked)
        self.raw += data
        text = self._pending + data
        # A sequence may be cut by the read: keep an unfinished one for the next.
        cut = text.rfind(b"\x1b")
        if cut >= 0 and not re.search(rb"[A-Za-z~]", text[cut + 1 :]):
            text, self._pending = text[:cut], text[cut:]
        else:
            self._pending = b""
        self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", text))
        return len(data)

    def wait_for(self, found: str | Callable[[], bool], patience: float = PATIENCE) -> float:
        """Read until `found` is in a whole picture (or true); seconds since the program's start."""
        until = time.monotonic() + patience
        while self._is_drawing or not (found in self.text if isinstance(found, str) else found()):
            if time.monotonic() > until:
                raise AssertionError(f"{found!r} did not come; the screen:\n{self.text}")
            self.pump(0.05)
        return time.monotonic() - self.started

    def settle(self, seconds: float = 0.15) -> None:
        """Read until nothing has come for `seconds` in which the program had nothing to do: on a machine with
        other work it may have to wait for a processor.
        """
        end = time.monotonic() + PATIENCE
        quiet = time.monotonic() + seconds
        while (now := time.monotonic()) < min(quiet, end):
            if self.pump(min(quiet - now, 0.02)) or self.is_working:
                quiet = time.monotonic() + seconds

    @property
    def is_working(self) -> bool:
        """Whether a thread of the program runs or waits for a processor or a disk (known on Linux alone)."""
        try:
            tasks = [path.read_text() for path in Path(f"/proc/{self.process.pid}/task").glob("*/stat")]
        except OSError:
            return False
        return any(task.rpartition(")")[2].split()[0] in "RD" for task in tasks)

    @property
    def _is_drawing(self) -> bool:
        """Whether a picture has begun and is not there as a whole."""
        return self.raw.rfind(_PICTURE) > self.raw.rfind(_END_OF_PICTURE)

    @property
    def pictures(self) -> int:
        """How many pictures were sent; only a terminal that answers can tell."""
        return bytes(self.raw).count(_PICTURE)

    def bytes_for(self, keys: str, found: str | Callable[[], bool] | None = None) -> int:
        """How many bytes the answer to `keys` has, from a quiet screen to the next."""
        self.settle(0.3)
        before = len(self.raw)
        self.press(keys)
        if found is not None:
            self.wait_for(found)
        self.settle()
        return len(self.raw) - before

    def answer_to(self, keys: str, found: str | Callable[[], bool] | None = None) -> int:
        """As `bytes_for` for keys that must have an answer: waits for its beginning, however long."""
        self.settle(0.3)
        before = len(self.raw)
        self.press(keys)
        self.wait_for(lambda: len(self.raw) > before)
        if found is not None:
            self.wait_for(found)
        self.settle(0.2)
        return len(self.raw) - before

    @property
    def lines(self) -> list[str]:
        """The rows of the screen."""
        return list(self.screen.display)

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    def line_with(self, words: str) -> str:
        """The first row with `words` in it."""
        return next(line for line in self.lines if words in line)

    # -- acting ----------------------------------------------------------------------

    def press(self, keys: str) -> None:
        """Send keys as a terminal does."""
        os.write(self.master, keys.encode())

    def press_each(self, *steps: tuple[str, str]) -> None:
        """Press keys, and wait for words after each."""
        for keys, words in steps:
            self.press(keys)
            self.wait_for(words)

    def resize(self, columns: int, rows: int) -> None:
        """Another size; the kernel tells the program by SIGWINCH."""
        self.screen.resize(rows, columns)
        self._set_size(columns, rows)

    def kill(self, number: signal.Signals) -> None:
        """A signal to the program."""
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """The terminal goes away, as when a window is closed or a connection breaks."""
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = -1

    def wait_for_end(self, patience: float = PATIENCE) -> int:
        """Read until the program ends; its exit status (-n for signal n)."""
        until = time.monotonic() + patience
        while self.process.poll() is None:
            if time.monotonic() > until:
                raise AssertionError(f"still running; the screen:\n{self.text}")
            if self.master >= 0:
                self.pump(0.05)
            else:
                time.sleep(0.02)
        if self.master >= 0:
            self.settle(0.1)
        return self.process.returncode

    # -- the terminal's own state ------------------------------------------------------

    @property
    def in_alternate_screen(self) -> bool:
        found = _ALTERNATE.findall(self.raw)
        return bool(found) and found[-1] == b"h"

    @property
    def entered_alternate_screen(self) -> bool:
        return _ALTERNATE.search(self.raw) is not None

    @property
    def cursor_is_visible(self) -> bool:
        found = _CURSOR.findall(self.raw)
        return not found or found[-1] == b"h"

    @property
    def attributes(self) -> list[object]:
        """The line settings now (termios)."""
        return termios.tcgetattr(self.slave)


def wltui(*words: str, screen: str | None = "timeline", **keywords: object) -> Terminal:
    """`python -m tui WORDS` in a terminal, on the timeline or another screen; None for the first one."""
    first = [] if screen is None else ["--screen", screen]
    return Terminal([sys.executable, "-m", "tui", *words, *first], **keywords)  # type: ignore[arg-type]
