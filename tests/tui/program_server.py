"""Starts wltui many times in one process that has imported it: a fork takes 0.01 s, a start of Python with
all imports 0.3 s. Run as a program it is the server; `start` is the side of the tests.

What is started is `python -m tui WORDS` in a process of its own: its descriptors, its terminal, its
environment and its end are those of a program that was started the long way. What Python settles before the
first import (encodings, the colours that Textual reads) is that of the server's environment.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# What a session imports by and by beside the modules of the program.
_IMPORTED = (
    "runpy", "hashlib", "statistics", "multiprocessing.context", "multiprocessing.queues",
    "concurrent.futures.process", "concurrent.futures.thread", "textual.drivers.linux_driver",
    "textual.layouts.factory", "textual.layouts.horizontal", "textual.layouts.stream", "textual.scrollbar",
)  # fmt: skip


class ForkedProgram:
    """A program that the server has started, with what `subprocess.Popen` has of it."""

    def __init__(self, server: _Server, pid: int) -> None:
        self._server = server
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Returns its exit status if it has ended, -n for signal n."""
        if self.returncode is None:
            self.returncode = self._server.ask({"status of": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end."""
        until = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired("wltui", timeout or 0.0)
            time.sleep(0.002)
        return status

    def send_signal(self, number: int) -> None:
        """Sends it a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)


class _Server:
    """The server, as the tests see it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                cwd=ROOT, env=dict(environment), pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        atexit.register(self.close)

    def ask(self, question: Mapping[str, object], descriptors: Sequence[int] = ()) -> int | None:
        socket.send_fds(self._socket, [json.dumps(question).encode()], descriptors)
        answer: int | None = json.loads(self._socket.recv(1 << 16))
        return answer

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


@functools.cache
def _server(environment: tuple[tuple[str, str], ...]) -> _Server:
    return _Server(dict(environment))


def start(
    words: Sequence[str],
    descriptors: Sequence[int],
    environment: Mapping[str, str],
    more: Mapping[str, str | None],
    planted: str = "",
) -> ForkedProgram:
    """Starts wltui with `words` and `more` variables. descriptors: its three streams, and its controlling
    terminal if it has one. planted: what is executed in its process first.
    """
    server = _server(tuple(environment.items()))
    pid = server.ask({"words": [*words], "environment": {**more}, "planted": planted}, descriptors)
    assert pid is not None
    return ForkedProgram(server, pid)


# -- the server ----------------------------------------------------------------------------


def _serve(connection: socket.socket) -> dict[str, Any]:
    """Answers until nobody asks; returns the question for a program in its own process."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 4)
        if not message:
            os._exit(0)
        question: dict[str, Any] = json.loads(message)
        if "status of" in question:
            pid, status = os.waitpid(question["status of"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                connection.close()
                _become(descriptors, question["environment"])
                return question
            for descriptor in descriptors:
                os.close(descriptor)
        connection.send(json.dumps(answer).encode())


def _become(descriptors: list[int], environment: Mapping[str, str | None]) -> None:
    """Makes this process one that a login has started: a session, a terminal and streams of its own."""
    import fcntl
    import termios

    os.setsid()
    os.environ.update({name: value for name, value in environment.items() if value is not None})
    for terminal in descriptors[3:]:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before = getattr(sys, name)
        stream = open(  # noqa: SIM115 - to the end of the program
            number, "w" if number else "r", encoding=before.encoding, errors=before.errors, closefd=False,
            buffering=1 if os.isatty(number) or number == 2 else -1,
        )  # fmt: skip
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    import gc
    import importlib
    import pkgutil
    import runpy

    # The folder of this file would be the first place where modules are looked for.
    sys.path[0] = str(ROOT)
    for _package in ("simcore", "tui"):
        for _module in pkgutil.walk_packages([str(ROOT / _package)], f"{_package}."):
            if not _module.name.endswith("__main__"):
                importlib.import_module(_module.name)
    for _name in _IMPORTED:
        importlib.import_module(_name)
    gc.collect()
    gc.freeze()
    _question = _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv[1:] = _question["words"]
    exec(_question["planted"])
    runpy.run_module("tui", run_name="__main__", alter_sys=True)
