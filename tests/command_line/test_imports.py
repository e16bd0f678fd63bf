"""What each command pays for: only the screen imports Textual and Rich. That simcore never does is a contract
of `lint-imports`.
"""

import json
import sys
from pathlib import Path

import pytest

from tests.command_line.running import OLD_HEADER, process

# Heavy, or of the screen; and what msgspec would bring that nothing of ours needs (simcore/records.py).
UNWANTED = (
    "textual", "rich", "numpy", "asyncio", "hypothesis", "pytest", "dataclasses", "inspect", "shutil",
    "typing_extensions",
)  # fmt: skip
RUN = """
import contextlib, io, json, sys
from tui.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main({words})
print(json.dumps([name for name in {unwanted} if name in sys.modules]))
"""
OURS = """
import contextlib, io, json, sys
from tui.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main({words})
print(json.dumps([*sys.modules]))
"""


def loaded(code: str) -> list[str]:
    """What the last line of `code` prints, as JSON."""
    done = process([sys.executable, "-c", code])
    assert done.stderr == ""
    names: list[str] = json.loads(done.stdout)
    return names


def loaded_by(words: list[str]) -> set[str]:
    """The modules of the program that a command loads; it has loaded nothing that is unwanted."""
    names = set(loaded(OURS.format(words=words)))
    assert names & {*UNWANTED} == set()
    return {name for name in names if name.partition(".")[0] in ("simcore", "tui")}


# What the words of `--help` need: the parameters, and the names in the registries.
NAMES = {
    "simcore",
    "simcore.parameter_values",
    "simcore.parameter_values.choices",
    "simcore.diagnostics",
    "simcore.names",
    "simcore.networks",
    "simcore.networks.model",
    "simcore.parameters",
    "simcore.program",
    "simcore.program.schedules",
    "simcore.records",
    "simcore.units",
    "tui",
    "tui.cli",
    "tui.commands",
    "tui.commands.arguments",
    "tui.commands.opened",
    "tui.commands.parser",
    "tui.printing",
}
HELP = {
    "": {"tui.commands.on_screen", "tui.commands.view", "tui.screens"},
    "report": {"tui.commands.report"},
    "check": {"tui.commands.check"},
    "compare": {"simcore.runs", "tui.commands.compare", "tui.commands.opened"},
    "export": {
        "simcore.render", "simcore.render.export", "simcore.render.export.format",
        "simcore.render.export.saving", "simcore.ranks", "simcore.runs", "tui.commands.arguments",
        "tui.commands.export",
    },
    "keys": {"tui.commands.keys"},
}  # fmt: skip


@pytest.mark.parametrize("command", HELP)
def test_help_imports_the_names_of_things_and_not_the_things(command: str) -> None:
    words = [command, "--help"] if command else ["--help"]
    assert loaded_by(words) - NAMES <= HELP[command]


def test_the_version_imports_a_number() -> None:
    allowed = {"simcore", "simcore.diagnostics", "simcore.records", "tui", "tui.cli", "tui.printing"}
    assert loaded_by(["--version"]) == allowed


# The rooms that a workload goes through, with what stands beside them.
FILES = {
    "simcore", "simcore.diagnostics", "simcore.layout", "simcore.names", "simcore.parameters",
    "simcore.program", "simcore.records", "simcore.sources", "simcore.units", "simcore.workload", "tui",
    "tui.cli", "tui.commands", "tui.printing",
}  # fmt: skip
ROOMS = FILES | {
    "simcore.parameter_values",
    "simcore.cluster",
    "simcore.collectives",
    "simcore.compat",
    "simcore.engine",
    "simcore.folding",
    "simcore.networks",
    "simcore.cached_methods",
    "simcore.ranks",
    "simcore.runs",
    "simcore.setup",
    "simcore.simulation",
}
SHOWING = ROOMS | {
    "simcore.analysis", "simcore.kernel_names", "simcore.render", "simcore.trace", "simcore.words"
}  # fmt: skip
EXPORTING = ROOMS | {"simcore.analysis", "simcore.kernel_names", "simcore.render", "simcore.trace"}
COMMANDS = [
    # It names the model behind the rows.
    (
        ["check", OLD_HEADER],
        FILES | {"simcore.model", "simcore.ranks", "simcore.recovery", "simcore.shell_words"},
    ),
    ([OLD_HEADER], SHOWING | {"tui.screens"}),
    (["report", OLD_HEADER], SHOWING),
    (["report", OLD_HEADER, "--json"], SHOWING),
    (
        ["compare", OLD_HEADER, "--with", "--schedule gpipe"],
        SHOWING | {"simcore.comparison", "simcore.shell_words"},
    ),
    (["export", OLD_HEADER, "--format", "simai", "-o", "OUT"], ROOMS | {"simcore.render"}),
    (["export", OLD_HEADER, "--format", "csv", "-o", "OUT"], EXPORTING),
    (["export", OLD_HEADER, "--format", "chrome", "-o", "OUT"], EXPORTING),
]


@pytest.mark.parametrize(
    ("words", "rooms"), COMMANDS, ids=lambda value: " ".join(value[:5:2]) if isinstance(value, list) else ""
)
def test_a_command_imports_the_rooms_it_goes_through_and_no_other(
    tmp_path: Path, words: list[str], rooms: set[str]
) -> None:
    out = str(tmp_path / "out")
    found = loaded_by([out if word == "OUT" else word for word in words])
    assert {".".join(name.split(".")[:2]) for name in found} <= rooms
    if words[0] == "export":
        # It goes without the graph.
        assert "simcore.render.export" in found
        assert "simcore.trace.graph" not in found


def test_the_version_needs_nothing_of_simcore_but_its_number() -> None:
    modules = ("simcore.simulation", "simcore.parameters", "simcore.workload", "argparse")
    assert loaded(RUN.format(words=["--version"], unwanted=modules)) == []


def test_the_command_line_itself_imports_nothing() -> None:
    code = """
import json, os, sys
before = set(sys.modules)
import tui.cli
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    assert loaded(code) == ["tui", "tui.cli"]
