"""What starting costs: words that need no screen import neither Textual nor rich."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.tui.pseudo_terminal import ROOT, SEED, environment

_REPORT = "print([name for name in ('textual', 'rich') if name in sys.modules])"


def python(code: str) -> str:
    """The last line that `code` prints."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; {_REPORT}"],
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "module",
    ["tui", "tui.cli", "tui.commands.view", "tui.session", "tui.chrome", "tui.timeline.frame",
     "tui.summary.frame", "tui.why.frame", "tui.compare.frame",
     "tui.layers.table", "tui.parameters.fields", "tui.sweep.frame", "tui.sweep.points", "tui.sweep.opening",
     "simcore.simulation"],
)  # fmt: skip
def test_importing_what_is_not_a_widget_imports_no_screen_library(module: str) -> None:
    assert python(f"import {module}") == "[]"


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["report", "--help"], ["report", SEED]])
def test_words_that_need_no_screen_import_no_screen_library(words: list[str]) -> None:
    call = f"""
from tui.cli import main
try:
    main({words!r})
except SystemExit as ended:
    assert not ended.code"""
    code = f"exec({call!r})"
    assert python(code) == "[]"


@pytest.mark.parametrize("words", [["--version"], ["--ascii", "--version"], [SEED, "--version"]])
def test_the_version_is_printed_wherever_the_word_stands(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tui", *words],
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    from simcore import __version__

    assert done.returncode == 0
    assert done.stdout == f"wltui {__version__}\n"
