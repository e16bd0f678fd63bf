"""Textual's driver for a terminal that may be slow, stopped, or gone.

It tracks how much of what was written is still in flight, enables mouse reports, and ends on signals.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import termios
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from threading import Thread
from time import monotonic
from types import FrameType
from typing import Any, TextIO

from textual import events
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message
from textual.messages import TerminalSupportsSynchronizedOutput

from tui.terminal.input_text import TerminalInput

_LOOK_AGAIN_S = 0.1
# Ends synchronized output, and restores the default style.
_END_OF_PICTURE = b"\x1b[?2026l\x1b[m"


def _own_descriptor(shared: int) -> int:
    """Returns the same terminal, opened anew so that writing never blocks; the shell's descriptor is
    unchanged.
    """
    try:
        return os.open(os.ttyname(shared), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return shared


class PictureOutput(str):
    """Sequences that draw: they may be dropped when the program ends before they are written."""


class Output:
    """The file that Textual's writer thread writes to: it counts what is still in flight.

    on_written: called in the writer's thread when nothing is in flight. on_gone: called once, when writing
    fails.
    """

    def __init__(self, stream: TextIO, on_written: Callable[[], None], on_gone: Callable[[], None]) -> None:
        self._descriptor = _own_descriptor(stream.fileno())
        self._encoding = stream.encoding
        self._on_written, self._on_gone = on_written, on_gone
        # An entry for each text that was given to the writer: no lock, which a signal handler that writes
        # could find locked by the code that it interrupted.
        self._expected: deque[None] = deque()
        self._buffer: list[str] = []
        self._drops_pictures = False
        self._is_gone = False

    @property
    def expected(self) -> int:
        """How many texts were given to the writer and are not written yet."""
        return len(self._expected)

    def expect(self) -> None:
        """Counts a text that will be written."""
        self._expected.append(None)

    def drop_pictures(self, drop: bool = True) -> None:
        """Drops pictures from now on, or writes everything again."""
        self._drops_pictures = drop

    def write(self, text: str) -> None:
        """Buffers a text until the writer has no more for now, and flushes."""
        self._buffer.append(text)

    def flush(self) -> None:
        """Writes the buffer. With a terminal that is gone everything counts as written."""
        buffered, self._buffer = self._buffer, []
        for is_picture, texts in groupby(buffered, lambda text: isinstance(text, PictureOutput)):
            if not self._is_gone and not (is_picture and self._drops_pictures):
                try:
                    # An error here would end the writer's thread, and the program would wait for it for ever.
                    self._write_all("".join(texts).encode(self._encoding, "replace"), is_picture)
                except OSError:
                    self._is_gone = True
                    self._on_gone()
        for _ in buffered:
            self._expected.popleft()
        if buffered and not self._expected:
            self._on_written()

    def _write_all(self, data: bytes, is_picture: bool) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [], _LOOK_AGAIN_S)
                if is_picture and self._drops_pictures:
                    # A truncated sequence is discarded by the terminal at the next one.
                    left = memoryview(_END_OF_PICTURE)
                    is_picture = False

    def fileno(self) -> int:
        return self._descriptor


_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def end_on_signals(app: App[Any]) -> None:
    """Lets SIGTERM, SIGHUP and SIGINT end the app in order, with exit status 128 + signal.

    Without this the process would die with the terminal still in raw mode.
    """

    def end(signal_number: int, frame: FrameType | None) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # Before the app runs or after it: the terminal is as it was.
            raise SystemExit(128 + signal_number) from None
        # Wakes the loop, which sleeps in a system call that resumes after a signal.
        loop.call_soon_threadsafe(app.exit, None, 128 + signal_number)

    for ending in _ENDING_SIGNALS:
        signal.signal(ending, end)


def wake_on_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Lets every signal wake the event loop, whichever thread the kernel gives it to.

    Python runs handlers only in the main thread, which would keep sleeping: after a stop SIGCONT often goes
    to another thread.
    """
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    loop.add_reader(read, os.read, read, 4096)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)


# No terminal has more cells: a picture of 99,999 x 99,999 would take 10^10 of them.
MOST_COLUMNS, MOST_ROWS = 1000, 500
_INPUT_BYTES = 1 << 16
# Esc is a key when nothing comes for the first; a sequence or a paste that a slow line sends in parts is over
# after the second.
_INPUT_WAIT_MS, _INPUT_PATIENCE_S = 50, 5.0

# How long the end waits for a terminal that does not take what was sent to it.
_PATIENCE_S = 1.5
# Asks whether the terminal knows synchronized output. Textual asks it once and reads every answer silently;
# behind a picture the answer shows that the terminal has drawn it.
_QUESTION = "\x1b[?2026$p"
_ANSWER_WITHIN_S = 2.0
# Buttons and the wheel; motion while a button is pressed; positions beyond column 223.
_MOUSE_MODES = (1000, 1002, 1006)


class TerminalDriver(LinuxDriver):
    """Textual's driver, writing to standard output: standard error may be a log file.

    It knows whether the terminal has drawn the last picture, ends when the terminal goes away, and comes back
    from any stop with one reader and one writer.
    """

    def __init__(self, app: App[Any], **keywords: Any) -> None:
        super().__init__(app, **keywords)
        assert sys.__stdout__ is not None
        # Called in the event loop when the terminal may be ready for another picture.
        self.when_ready: Callable[[], None] = _nothing
        self._output = Output(sys.__stdout__, self._tell_ready, self._terminal_gone)
        self._file = self._output  # type: ignore[assignment]
        self._answers = False
        self._question_at = 0.0
        # Whether application mode is left temporarily, and whether it was left for good.
        self._suspends = self._has_ended = False
        wake_on_signals(self._loop)
        Thread(target=self._watch, name="terminal-watch", daemon=True).start()

    # -- mouse -----------------------------------------------------------------------

    def _enable_mouse_support(self) -> None:
        """Enables buttons, the wheel, and motion while a button is pressed (mode 1002).

        Textual asks for all motion (1003): every cell that the pointer crosses would be sent over the line.
        """
        self._send_modes("h")

    def _enable_mouse_pixels(self) -> None:
        """Does nothing: motion by cells is enough; by pixels (1016) it would be reported ten times
        as often.
        """

    def _disable_mouse_support(self) -> None:
        self._send_modes("l")

    def _send_modes(self, switch: str) -> None:
        if self._mouse:
            self.write("".join(f"\x1b[?{mode}{switch}" for mode in _MOUSE_MODES))
            self.flush()

    # -- pictures --------------------------------------------------------------------

    @property
    def is_written(self) -> bool:
        """Whether the terminal has taken all that was sent."""
        return not self._output.expected

    @property
    def seconds_to_answer(self) -> float:
        """How long to wait for the answer to the last picture, s; 0 when none is expected."""
        return max(self._question_at + _ANSWER_WITHIN_S - monotonic(), 0.0) if self._question_at else 0.0

    def write_picture(self, sequences: str) -> None:
        """Sends the sequences of a picture."""
        if self._answers:
            # Unless it is answered in time nothing more is asked.
            self._answers = False
            self._question_at = monotonic()
            sequences += _QUESTION
        self.write(PictureOutput(sequences))

    def write(self, data: str) -> None:
        self._output.expect()
        super().write(data)

    def process_message(self, message: Message) -> None:
        if isinstance(message, TerminalSupportsSynchronizedOutput):
            self._answers = True
            self._question_at = 0.0
            self._tell_ready()
        super().process_message(message)

    def _tell_ready(self) -> None:
        self._soon(lambda: self.when_ready())

    def _soon(self, call: Callable[..., object], *words: object) -> None:
        """Calls in the event loop, from another thread; not at all when the loop has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *words)

    def start_application_mode(self) -> None:
        self._has_ended = False
        self._output.drop_pictures(False)
        super().start_application_mode()  # type: ignore[no-untyped-call]
        # Textual's handler reads the size, and another signal may interrupt it there: the older size came
        # last, and stayed.
        signal.signal(signal.SIGWINCH, lambda *_: self._soon(self._send_size))

    def close(self) -> None:
        """Waits until all is written; for a terminal that takes nothing only a limited time."""
        ending = Thread(target=super().close, name="terminal-end", daemon=True)
        ending.start()
        ending.join(_PATIENCE_S)
        if ending.is_alive():
            # Unseen pictures are dropped: what restores the terminal comes behind them.
            self._output.drop_pictures()
            with suppress(OSError, termios.error):
                termios.tcflush(self._output.fileno(), termios.TCOFLUSH)
            ending.join(_PATIENCE_S)

    # -- a terminal that goes away ---------------------------------------------------

    def _watch(self) -> None:
        """Sleeps until the terminal hangs up. Reading would not notice: it returns nothing forever."""
        poll = select.poll()
        poll.register(self.fileno, 0)
        with suppress(OSError):
            if any(event & select.POLLHUP for _, event in poll.poll()):
                self._terminal_gone()

    def run_input_thread(self) -> None:
        """Reads the terminal until the end: whatever it sends, the program goes on.

        Textual's own loop ends the program with the first byte that is no UTF-8.
        """
        parser, received = XTermParser(), TerminalInput()
        poll = select.poll()
        poll.register(self.fileno, select.POLLIN)
        since = monotonic()
        try:
            while not self.exit_event.is_set():
                if poll.poll(_INPUT_WAIT_MS if received.is_waiting else 2 * _INPUT_WAIT_MS):
                    texts = received.texts(os.read(self.fileno, _INPUT_BYTES))
                    since = monotonic()
                else:
                    texts = received.rest(monotonic() - since > _INPUT_PATIENCE_S)
                for text in texts:
                    parser = self._take(parser, text)
                parser = self._take(parser, "")
        except OSError:
            self._terminal_gone()

    def _take(self, parser: XTermParser, text: str) -> XTermParser:
        """Sends what the parser makes of a text to the app, "" for what it waited for long enough. Returns
        the parser, a new one after what it cannot read.
        """
        try:
            for message in parser.feed(text) if text else parser.tick():
                bounded = bound_message(message, self._system_size())
                if bounded is not None:
                    self.process_message(bounded)
        except Exception:
            # Of the parser: any would end the thread, and the program would be deaf.
            return XTermParser()
        return parser

    def _send_size(self) -> None:
        """Sends the app the size that the terminal has now; not where the terminal reports it itself."""
        if not self._in_band_window_resize:
            size = Size(*self._get_terminal_size())
            self._app.post_message(events.Resize(size, size))

    def _system_size(self) -> Size | None:
        """Returns the system's size of the terminal; None where it has none, as on a serial line."""
        try:
            size = Size(*os.get_terminal_size(self.fileno))
        except OSError:
            return None
        return size if size.width and size.height else None

    def _get_terminal_size(self) -> tuple[int, int]:
        columns, rows = super()._get_terminal_size()
        return min(columns, MOST_COLUMNS), min(rows, MOST_ROWS)

    def _terminal_gone(self) -> None:
        self._soon(self._app.exit, None, 128 + signal.SIGHUP)

    # -- stopped and continued -------------------------------------------------------

    # A handler runs between any two steps of the main thread, which may hold the lock of what is to be
    # written: all that it does is done in the event loop. `tmux kill-server` hangs up and continues a process
    # at once, and a process that was ending would deadlock.

    def _sigtstp_application(self, *_: object) -> None:
        self._soon(self._stop)

    def _sigcont_application(self, *_: object) -> None:
        self._soon(self._continue)

    def stop_application_mode(self) -> None:
        self._has_ended = not self._suspends
        super().stop_application_mode()

    def suspend_application_mode(self) -> None:
        self._suspends = True
        try:
            super().suspend_application_mode()
        finally:
            self._suspends = False

    def _stop(self) -> None:
        if not self._has_ended:
            super()._sigtstp_application()

    def _continue(self) -> None:
        if self._has_ended:
            return
        if self._auto_restart and not self._must_signal_resume:
            # Stopped by SIGSTOP, or not at all: the old reader and writer are still there.
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application()


def bound_message(message: Message, system_size: Size | None) -> Message | None:
    """Returns what a terminal reports, of a size that it can have; None for a place beyond.

    system_size: that of the system, which is right where a report is another.
    """
    if isinstance(message, events.Resize):
        width, height = system_size or message.size
        if width < 1 or height < 1:
            return None
        size = Size(min(width, MOST_COLUMNS), min(height, MOST_ROWS))
        return events.Resize(size, size, pixel_size=message.pixel_size)
    if isinstance(message, events.MouseEvent) and not (
        message.screen_x < MOST_COLUMNS and message.screen_y < MOST_ROWS
    ):
        return None
    return message


def _nothing() -> None:
    """Does nothing: the default of `when_ready`."""
