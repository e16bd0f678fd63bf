"""Completions and the manual page: generated from the parsers, in step with them, and working."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from shell.generate import HERE, command_line, files
from simcore.parameter_values.choices import choices
from simcore.parameters import FLAGS
from tests.command_line.running import ROOT, SEED_002, process
from tests.tui.pseudo_terminal import Terminal
from tui.cli import COMMANDS
from tui.commands import view

_SHELL = ROOT / "shell"
SCHEDULES = list(choices("schedule"))
# What zsh's own completion functions are asked, and with which specifications.
_ZSH_STUBS = """
_arguments() { print -rl -- "$@" }
_describe() { print -rl -- "commands: $_commands" }
compdef() { : }
"""


def in_bash(*words: str, folder: Path = ROOT) -> list[str]:
    """What bash offers for the last of these words."""
    return in_bash_each([words], folder)[0]


def in_bash_each(lines: Sequence[Sequence[str]], folder: Path = ROOT) -> list[list[str]]:
    """What bash offers for the last word of each line."""
    script = f"source '{_SHELL}/wltui.bash'\n"
    for words in lines:
        quoted = " ".join(f"'{word}'" for word in words)
        script += f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _shtab_wltui\n"
        script += 'printf "%s\\n" "${COMPREPLY[@]}" =\n'
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return [part.split() for part in done.stdout.split("=\n")[:-1]]


def in_zsh(*words: str) -> list[str]:
    """The specifications with which zsh would complete the last of these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    script = f'{_ZSH_STUBS} words=({quoted}); CURRENT={len(words)}; eval "$(<{_SHELL}/_wltui)"; _shtab_wltui'
    done = process([str(shutil.which("zsh")), "-f", "-c", script])
    assert done.stderr == ""
    return done.stdout.splitlines()


needs_zsh = pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh on this machine")


def options() -> list[tuple[str, str]]:
    """Each command (none: "") with each of its flags."""
    root = command_line()
    below = next(action for action in root._actions if isinstance(action, argparse._SubParsersAction))
    parsers = {"": root, **below.choices}
    return [
        (name, word)
        for name, parser in parsers.items()
        for action in parser._actions
        for word in action.option_strings
    ]


@pytest.mark.parametrize("name", files())
def test_what_is_committed_is_what_the_parsers_say(name: str) -> None:
    committed = (HERE / name).read_text(encoding="utf-8")
    assert committed == files()[name], "the words of a command have changed: run `make shell`"


def test_each_command_builds_its_parser_without_running() -> None:
    assert {name for name, _ in options()} == {"", *COMMANDS}
    assert all((name, "--help") in options() for name in COMMANDS)


def test_bash_completes_a_command() -> None:
    assert in_bash("wltui", "com") == ["compare"]
    assert set(COMMANDS) <= set(in_bash("wltui", ""))


def test_bash_completes_a_flag_of_the_command() -> None:
    assert in_bash("wltui", "report", "--sch") == ["--schedule"]
    assert in_bash("wltui", "report", "x.txt", "--wh") == ["--what-if"]
    assert in_bash("wltui", "--snap") == ["--snapshot"]
    assert in_bash("wltui", "x.txt", "--snap") == ["--snapshot"]
    assert in_bash("wltui", "check", "--sch") == []


def test_bash_completes_the_words_of_a_parameter(tmp_path: Path) -> None:
    for command in ["report"], ["compare", "a.txt"], ["x.txt"], ["--ascii"]:
        line = ("wltui", *command, "--schedule")
        found = in_bash_each([(*line, ""), (*line, "zb")], tmp_path)
        assert found == [SCHEDULES, ["zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-v"]], command


def test_bash_completes_each_parameter_that_is_a_word(tmp_path: Path) -> None:
    flags = [flag for flag in FLAGS if flag.kind == "word"]
    found = in_bash_each([("wltui", "report", flag.option, "") for flag in flags], tmp_path)
    for flag, offered in zip(flags, found, strict=True):
        # `busbw:FILE` is completed up to its file.
        words = [word.replace(":FILE", ":") for word in choices(flag.field)]
        assert sorted(offered) == sorted(words), flag.option


def test_bash_completes_what_single_commands_take() -> None:
    formats = ["simai", "chrome", "schedule", "chakra", "html", "csv"]
    assert in_bash("wltui", "export", "x.txt", "--format", "") == formats
    assert in_bash("wltui", "collective", "all-r") == ["all-reduce"]
    assert in_bash("wltui", "op", "pro") == ["product"]
    assert in_bash("wltui", "op", "product", "--precision", "fp8_") == ["fp8_block"]
    assert in_bash("wltui", "--screen", "time") == ["timeline"]
    assert in_bash("wltui", "report", "--cluster", "gb") == ["gb200-nvl72"]


FILE_IS_MEANT = [
    "", "report", "check", "check a.txt", "compare", "compare a.txt", "calibrate", "calibrate a.txt",
    "export", "--against", "report --params", "report --cluster", "report --system", "report --schedule",
    "schedule", "export a.txt -o", "export a.txt --output", "report --schedule gpipe", "report --json",
]  # fmt: skip


def test_bash_completes_files_where_a_file_is_meant(tmp_path: Path) -> None:
    (tmp_path / "workload.txt").touch()
    (tmp_path / "works").mkdir()
    found = in_bash_each([("wltui", *line.split(), "wor") for line in FILE_IS_MEANT], tmp_path)
    for line, offered in zip(FILE_IS_MEANT, found, strict=True):
        assert sorted(offered) == ["workload.txt", "works"], line


def test_bash_completes_no_file_where_none_is_meant(tmp_path: Path) -> None:
    (tmp_path / "report.txt").touch()
    lines = (["report", "--dialect"], ["report", "a.txt"], ["a.txt"], ["keys"])
    assert in_bash_each([("wltui", *line, "rep") for line in lines], tmp_path) == [[], [], [], []]


def test_bash_completes_in_a_terminal() -> None:
    with Terminal(
        ["bash", "--norc", "--noprofile", "-i"], env={"PS1": "ready ", "INPUTRC": "/dev/null"}
    ) as bash:
        bash.wait_for("ready")
        bash.press("source shell/wltui.bash\r")
        bash.press("wltui com\t")
        bash.wait_for("wltui compare ")
        bash.press(f"{SEED_002[:-8]}\t--stage-layo\tmeg\t")
        bash.wait_for(f"wltui compare {SEED_002} --stage-layout megatron ")


@needs_zsh
def test_zsh_takes_the_file() -> None:
    done = process([str(shutil.which("zsh")), "-f", "-n", str(_SHELL / "_wltui")])
    assert (done.returncode, done.stderr) == (0, "")


@needs_zsh
def test_zsh_has_the_flags_of_the_command() -> None:
    report, none, behind_a_file = in_zsh("wltui", "report", ""), in_zsh("wltui", ""), in_zsh("wltui", "a", "")
    assert any(line.startswith("--what-if[") for line in report)
    assert not any(line.startswith("--snapshot[") for line in report)
    assert none[0].startswith("commands: calibrate:")
    assert behind_a_file == none[1:]
    assert any(line.startswith("--snapshot[") for line in behind_a_file)


@needs_zsh
def test_zsh_has_the_words_and_the_files() -> None:
    lines = in_zsh("wltui", "report", "")
    schedule = next(line for line in lines if line.startswith("--schedule["))
    assert schedule.endswith(":NAME|FILE:_wltui_schedule_or_file")
    assert next(line for line in lines if line.startswith("--params[")).endswith(":FILE:_files")
    assert lines[-1].endswith(":_files")


SECTIONS = [
    "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "FILES", "ENVIRONMENT", "EXIT STATUS",
    "EXAMPLES",
]  # fmt: skip


@pytest.fixture(scope="module")
def rendered() -> str:
    """The manual page as `man` shows it, as plain text."""
    if shutil.which("groff") is None:
        pytest.skip("no groff on this machine")
    words = ["groff", "-man", "-Tascii", "-ww", "-rLL=100n", "-P-cbou", str(_SHELL / "wltui.1")]
    done = process(words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_manual_page_has_its_sections(rendered: str) -> None:
    found = [line for line in rendered.splitlines() if re.fullmatch(r"[A-Z]+( [A-Z]+)*", line)]
    assert [line for line in found if line in SECTIONS] == SECTIONS
    groups = dict.fromkeys(f"{flag.group.upper()} PARAMETERS" for flag in FLAGS)
    assert [line for line in found if line not in SECTIONS] == list(groups)


def section(page: str, title: str) -> str:
    """The lines of one section."""
    found = re.search(rf"^{title}\n((?:[ \n].*\n?|\n)*)", page, re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_manual_page_has_every_command_and_flag(rendered: str) -> None:
    commands = section(rendered, "COMMANDS")
    for name in COMMANDS:
        assert f"\n   wltui {name}\n" in f"\n{commands}"
    for _, word in options():
        assert word in ("-h", "--help") or f" {word}" in rendered


def test_the_manual_page_names_files_variables_and_statuses(rendered: str) -> None:
    kept = section(rendered, "FILES")
    assert "$XDG_CONFIG_HOME/wltui/keys.toml" in kept
    assert "$XDG_STATE_HOME/wltui/" in kept
    variables = section(rendered, "ENVIRONMENT")
    for name in ("NO_COLOR", "TERM", "LC_ALL", "SSH_CONNECTION", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        assert re.search(rf"^ +{name}\b|, {name}\b", variables, re.MULTILINE)
    assert re.findall(r"^ {7}(\d+)\b", section(rendered, "EXIT STATUS"), re.MULTILINE) == [
        "0",
        "1",
        "2",
        "130",
    ]


def test_the_examples_of_the_manual_page_are_words_that_wltui_takes(rendered: str) -> None:
    lines = re.findall(r"^ {7}(wltui .*)$", section(rendered, "EXAMPLES"), re.MULTILINE)
    assert len(lines) >= 5
    for line in lines:
        words = shlex.split(line)[1:]
        module = import_module(COMMANDS[words[0]]) if words[0] in COMMANDS else view
        module.build_parser().parse_args(words[1:] if words[0] in COMMANDS else words)


def test_the_wheel_puts_each_file_where_its_reader_looks() -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    with open(ROOT / "pyproject.toml", "rb") as opened:
        targets = tomllib.load(opened)["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"]["shared-data"] == {
        "shell/wltui.1": "share/man/man1/wltui.1",
        "shell/wltui.bash": "share/bash-completion/completions/wltui",
        "shell/_wltui": "share/zsh/site-functions/_wltui",
    }
    assert "shell" in targets["sdist"]["include"]
