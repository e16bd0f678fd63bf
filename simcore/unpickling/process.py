"""The processes that unpickle dumps: see `worker.py`."""

from __future__ import annotations

import marshal
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from simcore.unpickling.worker import OF_FILE

_WORKER = Path(__file__).with_name("worker.py")
# A process takes 20 ms to start, a dump of 2,000 entries 10 ms.
_DUMPS_A_PROCESS, _MOST_PROCESSES = 16, 8


class _Process:
    """A process that reads dumps; another one takes its place when it ends."""

    def __init__(self, tables: Path) -> None:
        self._tables = tables
        self._process: subprocess.Popen[bytes] | None = None

    def send(self, dump: bytes | str) -> None:
        """Begins to read a dump: its bytes, or the file at a path."""
        process = self._process
        if process is None:
            # -I and -S: neither the environment nor packages have a say in what it imports.
            process = self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_WORKER), str(self._tables)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        assert process.stdin is not None
        # A process that has ended is noticed when it does not answer.
        with suppress(OSError):
            data = dump if isinstance(dump, bytes) else os.fsencode(os.path.abspath(dump))
            request = len(data) if isinstance(dump, bytes) else len(data) | OF_FILE
            process.stdin.write(request.to_bytes(8, "little"))
            process.stdin.write(data)
            process.stdin.flush()

    def receive(self) -> dict[str, Any] | str:
        """Returns the table of the dump, or why there is none."""
        assert self._process is not None
        assert self._process.stdout is not None
        head = self._process.stdout.read(8)
        size = int.from_bytes(head, "little")
        reply = self._process.stdout.read(size) if len(head) == 8 else b""
        if len(head) < 8 or len(reply) < size:
            status = self.close()
            killed_for_time = status == -getattr(signal, "SIGXCPU", 0)
            why = "takes too long" if killed_for_time else "ends the process that does so, as damaged ones do"
            return f"to read it {why}"
        table: dict[str, Any] | str = marshal.loads(reply)
        return table

    def close(self) -> int:
        """Ends the process; returns its status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        return process.wait()


def read_tables(tables: Path, dumps: Iterable[bytes | str], count: int) -> Iterator[dict[str, Any] | str]:
    """Yields the table of each of `count` dumps, or why there is none, in their order.

    tables: the file that makes them, as `worker.py` has it. dumps: the bytes of each, or the path of its
    file. The dumps are asked for when there is a process for them: no more of them are in memory.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = max(min(count // _DUMPS_A_PROCESS, cores, _MOST_PROCESSES), 1)
    processes = [_Process(tables) for _ in range(most)]
    try:
        left = iter(dumps)
        while True:
            busy = []
            for process in processes:
                data = next(left, None)
                if data is None:
                    break
                process.send(data)
                busy.append(process)
            if not busy:
                return
            for process in busy:
                yield process.receive()
    finally:
        for process in processes:
            process.close()
