"""A run that grows while it is on the screen: what a writer appends is shown, the cursor stays.

Planted: the screen goes back to its first lane; the chosen step is not kept; `W` does not stop it. Each of
them failed here.
"""

from __future__ import annotations

import threading
from pathlib import Path

from tests.kineto.test_following import append, lines
from tests.tui.pseudo_terminal import wltui

HEAD = "rank,start_ns,end_ns,name,kind,step\n"


def rank_lines(rank: int, *steps: int) -> str:
    """A span of 100 ns times its step on rank 0, of less on others."""
    rows = [(step * 1000, step * 1100 - 20 * rank, step) for step in steps]
    return HEAD + "".join(f"{rank},{start},{end},work,compute,{step}\n" for start, end, step in rows)


def test_steps_that_are_appended_are_shown_and_a_key_stops_it(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(lines(1, 2, 3))
    with wltui("--follow", str(path)) as terminal:
        terminal.wait_for("step 102.0 ms")
        assert "following" in terminal.lines[0]
        writer = threading.Thread(target=append, args=(path, lines(4, 5) + lines(6)[:30]))
        writer.start()
        terminal.wait_for("following: 2 new steps, 5 now")
        terminal.wait_for("step 103.0 ms")
        append(path, lines(6)[30:])
        terminal.wait_for("1 new step, 6 now")
        terminal.press_each(("W", "not followed: 1 new step"), ("?", "stop and resume"), ("\x1b", "W follow"))
        append(path, lines(7))
        terminal.settle(2.5)
        assert "6 now" in terminal.lines[0]
        terminal.press_each(("W", "following: 1 new step, 7 now"), ("5", "[5 Params"), ("2", "[2 Timeline"))
        path.write_text(lines(20))
        terminal.wait_for("read anew, 1 step")
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def test_files_that_come_are_shown_under_the_cursor_and_at_the_chosen_step(tmp_path: Path) -> None:
    """The last step is shown until another one is chosen."""
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.csv").write_text(rank_lines(rank, 1, 2))
    with wltui("--follow", str(tmp_path)) as terminal:
        terminal.wait_for("step 200 ns")
        terminal.press_each(("j", ">+ rank  1"))
        (tmp_path / "rank2.csv").write_text(rank_lines(2, 1, 2)[:-9])
        terminal.settle(1.5)
        (tmp_path / "rank2.csv").write_text(rank_lines(2, 1, 2))
        terminal.wait_for("1 new rank, 3 now")
        terminal.wait_for("rank  2")
        assert ">+ rank  1" in terminal.text
        for rank in range(3):
            append(tmp_path / f"rank{rank}.csv", rank_lines(rank, 3).removeprefix(HEAD))
        terminal.wait_for("1 new step, 3 now")
        terminal.wait_for("step 300 ns")
        assert ">+ rank  1" in terminal.text
        terminal.press_each(("R", "#1"), ("j", "#1"), ("\r", "step 100 ns"))
        for rank in range(3):
            append(tmp_path / f"rank{rank}.csv", rank_lines(rank, 4).removeprefix(HEAD))
        terminal.wait_for("1 new step, 4 now")
        assert "step 100 ns" in terminal.text
        assert ">+ rank  1" in terminal.text
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def test_a_log_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with wltui("--follow", str(path)) as terminal:
        terminal.wait_for("waiting, Ctrl+C ends")
        path.write_text(lines(1))
        terminal.wait_for("step 101.0 ms")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
