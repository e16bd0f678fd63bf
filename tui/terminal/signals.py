"""How signals end the program: with the terminal restored, and an exit status that names them."""

from __future__ import annotations

import asyncio
import os
import signal
from types import FrameType
from typing import Any

from textual.app import App

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def end_on_signals(app: App[Any]) -> None:
    """Let SIGTERM, SIGHUP and SIGINT end the app in order, with exit status 128 + signal.

    Without this the process would die with the terminal still in raw mode.
    """

    def end(number: int, frame: FrameType | None) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # Before the app runs or after it: the terminal is as it was.
            raise SystemExit(128 + number) from None
        # Wakes the loop, which sleeps in a system call that resumes after a signal.
        loop.call_soon_threadsafe(app.exit, None, 128 + number)

    for number in _ENDING_SIGNALS:
        signal.signal(number, end)


def wake_on_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Let every signal wake the event loop, whichever thread the kernel gives it to.

    Python runs handlers in the main thread alone, which would sleep on: after a stop SIGCONT often
    goes to another thread.
    """
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    loop.add_reader(read, os.read, read, 4096)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
