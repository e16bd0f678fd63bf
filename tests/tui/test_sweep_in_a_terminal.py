"""`wltui sweep --screen` in a terminal: points come in, Esc stops, no process and no half line is left."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from simcore.sweeping.results_file import ResultsReader
from tests.tui.pseudo_terminal import PATIENCE, Terminal
from tui.cli import main

_LAYOUTS = [
    sys.executable, "-m", "tui", "sweep", "--model", "llama-3-8b", "--world", "64", "--global-batch", "512",
    "--layouts", "--exhaustive", "--memory-limit", "200GB", "--jobs", "1", "--screen",
]  # fmt: skip
# A step in the line of the cursor.
_POINT = re.compile(r"^>[ *] +[\d.]+ m?s\b", re.MULTILINE)


def _has_points(terminal: Terminal) -> bool:
    return _POINT.search(terminal.text) is not None


def _alive(session: int) -> list[int]:
    """The processes of a session that run."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(name))
    return found


def test_points_come_in_and_esc_stops(tmp_path: Path) -> None:
    path = str(tmp_path / "r.jsonl")
    with Terminal([*_LAYOUTS, "-o", path], columns=80, rows=24) as terminal:
        terminal.wait_for(lambda: _has_points(terminal))
        assert "[7 Sweep]" in terminal.text
        terminal.press("\x1b")
        terminal.wait_for("stopped after")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    reader = ResultsReader(path)
    points = reader.read_new()
    assert reader.unread_bytes == 0
    assert len({point.index for point in points}) == len(points) > 0


@pytest.mark.sampled(2)
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
@pytest.mark.parametrize("how", ["q", signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_process_is_left_and_every_line_is_whole(tmp_path: Path, how: str | signal.Signals) -> None:
    path = str(tmp_path / "r.jsonl")
    with Terminal([*_LAYOUTS, "-o", path]) as terminal:
        terminal.wait_for(lambda: _has_points(terminal))
        session = os.getsid(terminal.process.pid)
        assert len(_alive(session)) >= 2
        if isinstance(how, str):
            terminal.press(how)
        else:
            os.kill(terminal.process.pid, how)
        terminal.process.wait(PATIENCE)
        until = time.monotonic() + PATIENCE
        while _alive(session) and time.monotonic() < until:
            time.sleep(0.01)
        assert _alive(session) == []
    reader = ResultsReader(path)
    assert len(reader.read_new()) > 0
    assert reader.unread_bytes == 0


def test_the_first_points_of_layouts_are_there_before_all_were_looked_at(tmp_path: Path) -> None:
    """Within 2 s on an idle machine; the machine of a test may be busy."""
    words = [*_LAYOUTS[: _LAYOUTS.index("--layouts") + 1], "--jobs", "1", "--screen"]
    words[words.index("64")], words[words.index("512")] = "512", "1024"
    words[words.index("llama-3-8b")] = "llama-3-70b"
    with Terminal(words) as terminal:
        terminal.wait_for(lambda: _has_points(terminal))
        assert "layouts looked at" in terminal.text
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def test_without_colour_and_without_utf_8_the_points_are_told_by_glyphs(tmp_path: Path) -> None:
    words = ["--model", "llama-3-8b", "--world", "16", "--global-batch", "32", "--vary", "tp=1,2,4"]
    env: dict[str, str | None] = {
        "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "NO_COLOR": "1",
        "TERM": "xterm",
    }  # fmt: skip
    with Terminal(
        [sys.executable, "-m", "tui", "sweep", *words, "--memory-limit", "200GB", "--screen"], env=env
    ) as terminal:
        terminal.wait_for("3 points in")
        assert terminal.text.isascii()
        assert "* front" in terminal.text
        assert "@ cursor" in terminal.text
        assert not re.search(rb"\x1b\[[\d;]*(3[1-7]|38;5)m", bytes(terminal.raw))
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def test_a_file_of_results_opens_as_it_was_left(tmp_path: Path) -> None:
    path, state = str(tmp_path / "r.jsonl"), str(tmp_path / "state")
    words = ["--model", "llama-3-8b", "--world", "16", "--global-batch", "32", "--vary", "tp=1,2,4"]
    assert main(["sweep", *words, "--memory-limit", "200GB", "--jobs", "1", "-o", path]) == 0
    env: dict[str, str | None] = {"XDG_STATE_HOME": state}
    os.makedirs(state)
    for is_again in (False, True):
        with Terminal([sys.executable, "-m", "tui", path], env=env) as terminal:
            terminal.wait_for("[7 Sweep]")
            if not is_again:
                terminal.wait_for("fastest first")
                # By memory, and the last point.
                terminal.press("llllo")
                terminal.wait_for("smallest memory first")
                terminal.press("G")
                terminal.wait_for("Point 0")
            else:
                terminal.wait_for("smallest memory first")
                assert "Point 0" in terminal.text
            terminal.press("q")
            assert terminal.wait_for_end() == 0
