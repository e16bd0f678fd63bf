"""The progress of reading large files, on a terminal's standard error; the key Esc, which ends it.

On a terminal alone: nothing is written to a pipe, and keys are read only while the line that names Esc is
displayed.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from select import select
from types import TracebackType
from typing import Any

from simcore.diagnostics import printable
from simcore.units import byte_size

# Smaller files are read before a line could appear.
LEAST_BYTES = 8 * 2**20
_ESCAPE = b"\x1b"
_LOOKED_S = 0.1
_CELLS = 78


class ReadingLine:
    """A line that is overwritten while files are read; nothing stays of it.

    files: name and bytes of each. Readers report their progress, in forked processes too; a thread that waits
    for keys draws the line meanwhile.
    """

    def __init__(self, files: Sequence[tuple[str, int]]) -> None:
        self._files = files
        self.total = sum(size for _, size in files)
        self.is_shown = self.total >= LEAST_BYTES and sys.stderr is not None and sys.stderr.isatty()
        room = 8 * max(1, len(files))
        # The progress is shared with the processes that a fork makes.
        self._read = memoryview(mmap.mmap(-1, room) if self.is_shown else bytearray(room)).cast("q")
        self._terminal_settings: list[Any] | None = None
        self._over = threading.Event()
        self._drawing = threading.Lock()

    def __enter__(self) -> ReadingLine:
        if self.is_shown and sys.stdin is not None and sys.stdin.isatty():
            # Imported here: Windows has none, and a pipe needs none.
            with suppress(ImportError, OSError):
                self._look_for_keys()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._terminal_settings is not None:
            import termios

            with suppress(OSError, termios.error):
                if _is_in_front(sys.stdin.fileno()):
                    termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._terminal_settings)
        with self._drawing:
            self._write(f"\r{' ' * _CELLS}\r")

    @property
    def looks_for_keys(self) -> bool:
        """Whether a thread waits for Esc."""
        return self._terminal_settings is not None

    def tell(self, file_index: int, share: float) -> None:
        """Notes the share of a file that is read, 1 for a finished one."""
        self._read[file_index] = int(share * self._files[file_index][1])

    def show(self) -> None:
        """Draws what is read now, and how many bytes of all are."""
        if not self.is_shown:
            return
        of_files = zip(self._files, self._read, strict=False)
        now = [name for (name, size), read in of_files if 0 < read < size]
        stops = "  Esc stops" if self.looks_for_keys else ""
        what = printable(" ".join(["reading", ", ".join(now)]).rstrip(), 36)
        line = f"{what}: {byte_size(sum(self._read))} of {byte_size(self.total)}{stops}"
        with self._drawing:
            if not self._over.is_set():
                self._write(f"\r{line[:_CELLS]:<{_CELLS}}")

    def _write(self, text: str) -> None:
        """Writes to the terminal itself: a fork during this thread inherits no lock of a stream."""
        if self.is_shown:
            with suppress(OSError, ValueError):
                os.write(sys.stderr.fileno(), text.encode())

    def _look_for_keys(self) -> None:
        """Makes keys come without Enter, and starts a thread that reads them."""
        import termios

        terminal = sys.stdin.fileno()
        if not _is_in_front(terminal):
            return
        settings = termios.tcgetattr(terminal)
        changed = [*settings]
        changed[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(terminal, termios.TCSADRAIN, changed)
        self._terminal_settings = settings
        threading.Thread(target=self._watch, args=(terminal,), daemon=True).start()

    def _watch(self, terminal: int) -> None:
        while not self._over.is_set():
            try:
                there = select([terminal], [], [], _LOOKED_S)[0]
                # Alone it is the key; with more behind it an arrow or another key that sends several bytes.
                if there and os.read(terminal, 32) == _ESCAPE:
                    # As Ctrl+C does, it ends the reading processes too.
                    os.kill(0, signal.SIGINT)
                    return
                self.show()
            except OSError:
                return


def _is_in_front(terminal: int) -> bool:
    """Returns whether keys come to this process: one in the background is stopped when it changes the
    terminal.
    """
    return os.tcgetpgrp(terminal) == os.getpgrp()
