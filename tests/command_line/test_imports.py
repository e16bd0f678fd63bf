"""What each command pays for: only the screen imports Textual and Rich, and simcore never does."""

import json
import sys

import pytest

from tests.command_line.running import SEED_002, process

# Heavy, or of the screen.
UNWANTED = ("textual", "rich", "numpy", "asyncio", "hypothesis", "pytest")
RUN = """
import contextlib, io, json, sys
from tui.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main({words})
print(json.dumps([name for name in {unwanted} if name in sys.modules]))
"""


def loaded(code: str) -> list[str]:
    """What the last line of `code` prints, as JSON."""
    done = process([sys.executable, "-c", code])
    assert done.stderr == ""
    names: list[str] = json.loads(done.stdout)
    return names


@pytest.mark.parametrize(
    "words",
    [
        ["report", SEED_002],
        ["report", SEED_002, "--json"],
        ["report", "--help"],
        ["--help"],
        ["--version"],
        [SEED_002],
    ],
)
def test_commands_without_a_screen_import_neither_textual_nor_rich(words: list[str]) -> None:
    assert loaded(RUN.format(words=words, unwanted=UNWANTED)) == []


@pytest.mark.parametrize(
    "words",
    [
        ["report", SEED_002],
        ["report", SEED_002, "--json"],
        ["export", "--help"],
    ],
)
def test_a_workload_does_not_pay_for_the_room_of_the_traces(words: list[str]) -> None:
    assert loaded(RUN.format(words=words, unwanted=("simcore.measured", "datetime"))) == []


def test_simcore_imports_nothing_of_the_screen() -> None:
    code = """
import importlib, json, pkgutil, sys
import simcore
for found in pkgutil.walk_packages(simcore.__path__, "simcore."):
    importlib.import_module(found.name)
print(json.dumps([name for name in ("tui", "textual", "rich") if name in sys.modules]))
"""
    assert loaded(code) == []


def test_the_version_needs_nothing_of_simcore_but_its_number() -> None:
    modules = ("simcore.simulation", "simcore.parameters", "simcore.workload", "argparse")
    assert loaded(RUN.format(words=["--version"], unwanted=modules)) == []
