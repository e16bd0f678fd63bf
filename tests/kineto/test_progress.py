"""The line that says how far the reading is, and Esc, which ends it as Ctrl+C does."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simcore.kineto import progress
from simcore.kineto.progress import LEAST_BYTES, ReadingLine


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, in_front: bool = True) -> Iterator[int]:
    """The far end of a terminal that the program is in. No fixture: pytest puts its own back before each."""
    far, near = pty.openpty()
    with os.fdopen(near, "r", closefd=False) as stdin, os.fdopen(near, "w", closefd=False) as stderr:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", stderr)
        monkeypatch.setattr(progress, "_is_in_front", lambda terminal: in_front)
        yield far
    monkeypatch.undo()
    os.close(near)
    os.close(far)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What was sent to end the reading, in place of ending the tests."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(progress.os, "kill", lambda pid, number: found.append((pid, number)))
    return found


def wait_for(found: list[tuple[int, int]], seconds: float) -> None:
    """Until something was sent, no longer than that."""
    until = time.monotonic() + seconds
    while not found and time.monotonic() < until:
        time.sleep(0.02)


def test_escape_ends_the_reading_and_no_other_key_does(
    monkeypatch: pytest.MonkeyPatch, ended: list[tuple[int, int]]
) -> None:
    with terminal(monkeypatch) as far, ReadingLine([("rank 3", LEAST_BYTES)]) as shown:
        shown.show()
        for key in (b"x", b"\x1b[A", b"\n"):
            os.write(far, key)
            wait_for(ended, 0.3)
            assert not ended, key
        os.write(far, b"\x1b")
        wait_for(ended, 5)
    assert ended == [(0, signal.SIGINT)]


def test_the_line_says_what_is_read_and_is_gone_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as far:
        before = termios.tcgetattr(far)
        with ReadingLine([("rank 2", LEAST_BYTES), ("rank \x1b[31m3", LEAST_BYTES)]) as shown:
            shown.tell(0, 1)
            shown.tell(1, 0.25)
            shown.show()
            assert not termios.tcgetattr(far)[3] & termios.ICANON
            said = os.read(far, 10_000).decode()
        said += os.read(far, 10_000).decode()
        assert "31m3: 10.5 MB of 16.8 MB  Esc stops" in said
        assert "rank 2" not in said
        assert "\x1b" not in said
        assert said.endswith("\r")
        assert termios.tcgetattr(far) == before


def test_a_program_in_the_background_leaves_the_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, in_front=False) as far:
        before = termios.tcgetattr(far)
        with ReadingLine([("rank 3", LEAST_BYTES)]) as shown:
            shown.tell(0, 0.001)
            shown.show()
            assert not shown.looks_for_keys
            assert termios.tcgetattr(far) == before
        said = os.read(far, 10_000).decode()
        assert "reading rank 3: 8.4 kB of 8.4 MB" in said
        assert "Esc" not in said


def test_small_files_and_pipes_have_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch):
        with ReadingLine([("rank 0", LEAST_BYTES - 1)]) as shown:
            shown.show()
            assert not shown.looks_for_keys
        with open(os.devnull, "w") as nowhere:
            monkeypatch.setattr(sys, "stderr", nowhere)
            with ReadingLine([("rank 0", LEAST_BYTES)]) as shown:
                assert not shown.is_shown
                assert not shown.looks_for_keys


_SLOW = """
import os, signal, threading, time
from simcore.kineto import loading, progress
from simcore.kineto.sets import ProfilerFile

def slow(path, part, on_progress):
    time.sleep(5)
    return [], [], ()

class Shown(progress.ReadingLine):
    looks_for_keys = True

loading._read_guarded = slow
shown = Shown([(f"rank {rank}", 1) for rank in range(6)])
files = [ProfilerFile(f"rank{rank}.json", rank, 1) for rank in range(6)]
threading.Timer(0.7, os.kill, (0, signal.SIGINT)).start()
begin = time.monotonic()
try:
    list(loading._read_in_processes(files, loading.ReadOptions(), 2, shown))
except KeyboardInterrupt:
    print("ended", time.monotonic() - begin < 4)
"""


@pytest.mark.slow
def test_what_reads_side_by_side_ends_too_and_begins_no_other_file() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SLOW], capture_output=True, text=True, check=False, start_new_session=True,
        timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("ended True\n", "")


# A screen has taken what is printed: its stderr has no descriptor.
_BEHIND_A_SCREEN = """
import sys, threading
from simcore.kineto import loading
from simcore.kineto.sets import profiler_files

class Captured:
    write = staticmethod(lambda text: len(text))
    flush = staticmethod(lambda: None)
    fileno = staticmethod(lambda: -1)

def read():
    files, _ = profiler_files(sys.argv[1])
    recordings, _ = loading.read_all(files, loading.ReadOptions())
    print(len(recordings))

if __name__ == "__main__":
    loading._workers = lambda files: 2
    sys.stderr = Captured()
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
"""


def test_a_set_is_read_in_processes_behind_a_screen(tmp_path: Path) -> None:
    """Planted: no tracker is started; nothing was read."""
    script = tmp_path / "read.py"
    script.write_text(_BEHIND_A_SCREEN)
    folder = Path(__file__).parent / "cases" / "eager_send"
    here = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, str(script), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, env=here, timeout=60)
    assert done.stdout == "2\n"
