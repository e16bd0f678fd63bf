"""The terminal that the screen runs in: where it is written to, what it can show, how it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PLAIN_LOCALES = ("C", "POSIX")


class TerminalDriver(LinuxDriver):
    """Textual's driver, writing to standard output: standard error may be a log file."""

    def __init__(self, app: App[Any], **keywords: Any) -> None:
        super().__init__(app, **keywords)
        assert sys.__stdout__ is not None
        self._file = sys.__stdout__

    def _enable_mouse_support(self) -> None:
        """Buttons, the wheel, and motion while a button is held (mode 1002).

        Textual asks for all motion (1003): every cell the pointer crosses would come over the line.
        """
        if not self._mouse:
            return
        for mode in ("1000", "1002", "1006"):
            self.write(f"\x1b[?{mode}h")
        self.flush()

    def _enable_mouse_pixels(self) -> None:
        """Motion by cells is enough; by pixels (1016) it would be reported ten times as often."""

    def _disable_mouse_support(self) -> None:
        if not self._mouse:
            return
        for mode in ("1000", "1002", "1006"):
            self.write(f"\x1b[?{mode}l")
        self.flush()


def speaks_utf8(encoding: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal can be taken to show block glyphs.

    In the C locale Python writes UTF-8 all the same, and sets LC_CTYPE to say so (PEP 538);
    the terminal of somebody who set that locale need not follow.
    """
    if not (encoding or "").lower().replace("-", "").startswith("utf"):
        return False
    if environ.get("LC_ALL"):
        return environ["LC_ALL"] not in _PLAIN_LOCALES
    chosen = environ.get("LC_CTYPE", "")
    if chosen and chosen != "C.UTF-8":
        return chosen not in _PLAIN_LOCALES
    return environ.get("LANG", "") not in _PLAIN_LOCALES


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
