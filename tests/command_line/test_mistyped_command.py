"""A first word that is neither a command nor a file: what it may have been meant for."""

from __future__ import annotations

import shlex
from importlib import import_module
from pathlib import Path

import pytest

from tests.command_line.running import ROOT, SEED_002, TABLE, wltui_here
from tests.findings import finding
from tui.cli import COMMANDS, main
from tui.commands.view import build_parser

_COMMANDS = "report, check, compare, calibrate, export, sweep, schedule, collective, op, models, keys"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reprot", SEED_002], f"found 'reprot', expected a file or one of the commands {_COMMANDS}; "
                               "did you mean report?"),
        (["comprae", "a", "b"], f"found 'comprae', expected a file or one of the commands {_COMMANDS}; "
                                "did you mean compare?"),
        (["Check"], f"found 'Check', expected a file or one of the commands {_COMMANDS}; "
                    "did you mean check?"),
        (["xyzzy", "--tp", "4"], f"found 'xyzzy', expected a file or one of the commands {_COMMANDS}"),
    ],
)  # fmt: skip
def test_a_mistyped_command_is_said_with_what_it_may_have_been(words: list[str], message: str) -> None:
    done = wltui_here(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {message}\n")


@pytest.mark.parametrize("path", ["reprot.txt", "traces/reprot"])
def test_what_looks_like_a_file_is_one_that_is_not_there(path: str) -> None:
    done = wltui_here(path)
    assert finding(done.stderr) == f"{path}: error no-such-file"


def test_a_file_that_is_called_like_a_command_nearly_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reprot").symlink_to(ROOT / TABLE)
    monkeypatch.chdir(tmp_path)
    assert main(["reprot"]) == 0
    assert "Step time" in capsys.readouterr().out


def test_the_message_lists_the_commands() -> None:
    assert ", ".join(COMMANDS) == _COMMANDS


def test_every_command_line_of_the_help_is_one_that_can_be_typed() -> None:
    """`wltui schedule 1f1b --pp 4` stood there, and schedule has no --pp."""
    root = build_parser()
    lines = [line for line, _ in (*root.examples, *root.commands)]
    assert {line.split()[1] for line, _ in root.commands} == set(COMMANDS)
    for line in lines:
        words = shlex.split(line)[1:]
        module = COMMANDS.get(words[0])
        parser = root if module is None else import_module(module).build_parser()
        parser.parse_args(words if module is None else words[1:])
    text = root.format_help()
    assert all(line in text for line in lines)
