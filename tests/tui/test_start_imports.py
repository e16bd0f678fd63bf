"""What starting costs: words that need no screen import neither Textual nor rich."""

from __future__ import annotations

import subprocess
import sys

from simcore import __version__
from tests.command_line.running import SEED_001, wltui_here
from tests.tui.pseudo_terminal import ROOT, environment

_MODULES = (
    "tui", "tui.cli", "tui.commands.view", "tui.session", "tui.chrome", "tui.timeline.frame",
    "tui.summary.frame", "tui.why.frame", "tui.compare.frame",
    "tui.layers.table", "tui.parameters.fields", "tui.sweep.frame", "tui.sweep.points", "tui.sweep.opening",
    "simcore.simulation",
)  # fmt: skip
_WORDS = (["--version"], ["--help"], ["report", "--help"], ["report", SEED_001])
# What is not there after all of it was there after none; the first that brings it is named.
_CODE = """
import importlib, sys

def check(what):
    brought = [name for name in ("textual", "rich") if name in sys.modules]
    assert not brought, (what, brought)

for module in {modules}:
    importlib.import_module(module)
    check(module)
from tui.cli import main
for words in {words}:
    try:
        main(words)
    except SystemExit as ended:
        assert not ended.code
    check(words)
"""


def test_neither_what_is_no_widget_nor_words_that_need_no_screen_import_a_screen_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CODE.format(modules=_MODULES, words=_WORDS)],
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_printed_wherever_the_word_stands() -> None:
    for words in (["--version"], ["--ascii", "--version"], [SEED_001, "--version"]):
        done = wltui_here(*words)
        assert (done.returncode, done.stdout) == (0, f"wltui {__version__}\n"), words
