"""The screen in a terminal, on names and a session file that are made to hurt: every byte that it sends."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from textual.app import App

from simcore.parameters import Parameters
from tests.hostile.names import ALL, NASTY, traces, workload
from tests.tui.pseudo_terminal import Terminal
from tui.prompt import PromptInput
from tui.state.checking import InvalidSession
from tui.state.files import read_identity, session_path
from tui.state.session_content import Stored, StoredRun, format_session, parse_session
from tui.timeline.saved import SavedMark, SavedTimeline

# What the program steers the terminal by: colours, the cursor, erasing, modes, the questions at its start.
SEQUENCES = re.compile(
    rb"\x1b\[[0-9;]*[mHCJK]"  # colours, moves, erasing
    rb"|\x1b\[[?>=<][0-9;]*(?:\$p|[hlu])"  # modes
    rb"|\x1b\]22;[a-z]*(?:\x07|\x1b\\)"  # the mouse pointer's shape
    rb"|\x1b\[c"
    rb"|\x1b\[[0-9]*[ABDG]"
    rb"|\x1b[78=>]"
    rb"|\x1b\[[0-9;]*t"
)
TEXT = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def check_sent(terminal: Terminal) -> None:
    """Nothing but known sequences and text left the program, and no name of a file raw."""
    sent = bytes(terminal.raw)
    for key, name in NASTY.items():
        if "\x1b" in name or "\x9b" in name:
            assert name.encode() not in sent, key
    rest = SEQUENCES.sub(b"", sent).decode("utf-8")
    found = TEXT.search(rest)
    assert found is None, rest[max(found.start() - 20, 0) : found.start() + 20] if found else ""
    assert "owned" not in terminal.screen.title


def session_text(path: str) -> str:
    """A session in which every text is one that hurts."""
    lane = ((ALL[:400],), 0, -1, NASTY["csi"])
    runs = [
        StoredRun(Parameters(compute_scale=1 + place, cluster=name if place % 2 else None), name[:60], 5)
        for place, name in enumerate(NASTY.values())
    ]
    marks = tuple(
        SavedMark(letter, 5, lane, name) for letter, name in zip("abcdefgh", NASTY.values(), strict=False)
    )
    timeline = SavedTimeline(
        1000, 0, 1000, 5, 120, 36, lane, 0, NASTY["osc 52"], (lane,), (lane,), (), (lane,), (), ALL[:4000],
        None, NASTY["csi"], None, None, marks,
    )  # fmt: skip
    return format_session(
        Stored(read_identity(path), NASTY["c1"], "timeline", None, tuple(runs), {"timeline": timeline})
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["workload", "traces"])
@pytest.mark.parametrize("answers", [False, True])
def test_nothing_but_known_sequences_leaves_the_screen(tmp_path: Path, kind: str, answers: bool) -> None:
    state = tmp_path / "state"
    path = workload(tmp_path) if kind == "workload" else traces(tmp_path)
    run = "" if kind == "workload" else "20240923205004"
    kept = Path(session_path(path, run, {"XDG_STATE_HOME": str(state)}))
    kept.parent.mkdir(parents=True)
    kept.write_text(session_text(path))
    kept.chmod(0o600)
    env = {"XDG_STATE_HOME": str(state)}
    with Terminal([sys.executable, "-m", "tui", path], env=env, answers=answers) as terminal:
        terminal.wait_for("[2 Timeline]")
        steps = ["1", "3", "4", "6", "!", "5", "2", "j", "l", "w", "?", "\x1b", ":", "\x1b", "'", "\x1b",
                 "\r", "\x1b", "/x\r", "n", "\\x\r", "m"]  # fmt: skip
        steps += ["R", "j", "n", "\r", "j", "n", "\x1b", "\x1b"] if kind == "workload" else []
        for keys in steps:
            terminal.press(keys)
            terminal.settle(0.05)
        check_sent(terminal)
        # Whatever is open: on a busy machine Esc and the key behind it may have come as one.
        terminal.press("\x03")
        assert terminal.wait_for_end() == 0
        check_sent(terminal)
    files = [one.name for one in kept.parent.glob("*.json*")]
    assert files == [kept.name], "the session was taken for damaged"


@pytest.mark.parametrize("nested", [900, 980, 990, 995, 5000, 200_000])
def test_a_session_of_any_depth_is_set_aside(tmp_path: Path, nested: int) -> None:
    path = workload(tmp_path)
    values = json.loads(session_text(path))
    for key in ("format", "version", "screen", "runs", "parameters"):
        text = json.dumps(values | {key: "HERE"}).replace('"HERE"', "[" * nested + "]" * nested)
        with pytest.raises(InvalidSession):
            parse_session(text)


@pytest.mark.parametrize(
    "number", ["1" + "0" * 400, "1e400", "-1e400", "NaN", "Infinity", "-1", "0.5", "true"]
)
def test_a_session_with_a_number_that_cannot_be_is_set_aside(tmp_path: Path, number: str) -> None:
    text = session_text(workload(tmp_path))
    for key in ("size", "step_ns", "first_ns", "span_ns", "cursor_ns", "columns", "compute_scale"):
        if (key, number) == ("compute_scale", "0.5"):
            continue
        with pytest.raises(InvalidSession):
            parse_session(re.sub(rf'"{key}":[0-9.]+', f'"{key}":{number}', text))


async def test_a_prompt_offers_no_character_that_steers_a_terminal() -> None:
    app: App[None] = App()
    async with app.run_test():
        for name in NASTY.values():
            assert PromptInput(name).value.isprintable()
        assert PromptInput(NASTY["csi"]).value == "[31;5;7mX[2J[?1049l"
