"""Every command with every option and output, on names that were handed to us: nothing leaves it raw.

Commands, options and formats are taken from the parsers: one that has no line here fails.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pickle
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fuzz_readers import CHROME, CONFIG, KINETO
from simcore.parameters import FLAGS
from simcore.render.export import FORMATS
from tests.hangs.incidents import Fault, dumps_of
from tests.hostile.names import HANDED, HEADER, traces, workload
from tests.hostile.running import UNSAFE, wltui
from tests.snapshots.made import random_run, snapshot
from tui.cli import COMMANDS
from tui.commands import view
from tui.screens import SCREENS

AS_FILE = [name for name in HANDED if "\0" not in name and "/" not in name and len(os.fsencode(name)) < 200]
IN_ROWS = [name for name in HANDED if not set("\0\t\n ") & set(name)]
ROW = "{}\t-1\t5000\tALLREDUCE\t100000\t6000\tNONE\t0\t7000\tALLREDUCE\t50000\t100"
# W: a workload, V: another, K: a profile, C: a Chrome trace, H: dumps of a hung job, D: a memory snapshot,
# M: a model's config, O: an order of actions, S: sizes of operations, R: results of a sweep, A: what the
# ranks of T ran; NEW: a file to write.
PLAIN = [
    "W", "K", "C", "H", "M --world 8", "R", "--model M --world 8",
]  # fmt: skip
LINES = {
    "": ["--version", "W --snapshot 2 --svg --no-cache", "W --against V --snapshot 6 --ascii --no-session",
         "K --snapshot 3 --no-mouse", "R --snapshot 7",
         *(f"W --snapshot {screen.key}" for screen in SCREENS.values()),
         *(f"{one} --snapshot {key}" for one in "KCH" for key in "1234")],
    "report": [*PLAIN[:5], PLAIN[6], "D", *(f"{one} --json" for one in PLAIN[:5]), "W --what-if --all-layers",
               "K --no-cache --what-if", "C --step all"],
    "check": [*(one.split()[0] for one in PLAIN[:5]), *(f"{one.split()[0]} --json" for one in PLAIN[:5]),
              "C --save-map NEW", "C --save-map NEW --force"],
    "compare": ["W V", "W V --json", "W V --all", "K K --no-cache", "C C", "W --with --compute-scale=2",
                "C --step 3 --step2 3"],
    "calibrate": ["M K --world 2", "W K", "W K --json", "A T --no-cache -o NEW", "A T -o NEW --force"],
    "export": [*(f"W --format {form.name} -o NEW" for form in FORMATS),
               *(f"{one} --format {form} -o NEW" for one in "KCHD" for form in ("chrome", "html", "csv")),
               "W --format csv -o -", "W --format chrome --per-rank -o NEW --force",
               "K --no-cache --format html -o -",
               "W --against V --format html -o NEW", "R --format html -o NEW"],
    "sweep": ["W --vary compute-scale=1,2 --jobs 1", "W --vary compute-scale=1,2 --jobs 1 --csv",
              "W --vary compute-scale=1,2 --jobs 1 --json", "W --vary compute-scale=1,2 --jobs 1 -o NEW",
              "W --vary compute-scale=1,2 --jobs 1 -o NEW --resume", "--merge R", "--merge R --csv",
              "--merge R -o NEW --force", "M --world 8 --global-batch 16 --layouts --prune --jobs 1 --top 2",
              "M --world 2 --global-batch 2 --layouts --exhaustive --jobs 1 --emit megatron",
              "W --vary compute-scale=1 --screen"],
    "schedule": ["O", "O --json", "O --svg NEW", "O --svg NEW --force",
                 "O 1f1b --stages 2 --equal-memory"],
    "collective": ["all-reduce --size 1MiB", "all-reduce --size 1KiB..4KiB --json",
                   "all-reduce --size 1MiB --cluster spectrum-x:8 --network flows --every-group --ranks 0-3"],
    "op": ["product --from S", "product --from S --json"],
    "models": ["M", "M --json", "M --save NEW", "M --save NEW --force"],
    "keys": [""],
}  # fmt: skip
# Help, and what needs a terminal: tests of the screen have it.
NO_OUTPUT = {"--help", "--follow"}


def parsers() -> dict[str, argparse.ArgumentParser]:
    """By command its parser; "" for a file alone."""
    return {"": view.build_parser()} | {
        name: import_module(module).build_parser() for name, module in COMMANDS.items()
    }


def own_options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yields its options that are no parameters."""
    parameters = {flag.option for flag in FLAGS}
    for action in parser._actions:
        if action.option_strings and not parameters & {*action.option_strings}:
            yield action


def test_each_command_and_each_output_has_its_lines() -> None:
    made = parsers()
    assert made.keys() == LINES.keys()
    for name, parser in made.items():
        words = {word for line in LINES[name] for word in line.split()}
        switches = [action.option_strings for action in own_options(parser) if action.nargs == 0]
        assert [options for options in switches if not {*options} & (words | NO_OUTPUT)] == [], name
    for form in FORMATS:
        assert any(f"--format {form.name} " in line for line in LINES["export"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of each kind under each name, with the names wherever such a file has one."""
    folder = tmp_path_factory.mktemp("named")
    rows = [ROW.format(row) for row in IN_ROWS]
    texts = {
        "W": "\n".join([HEADER, str(len(rows)), *rows, ""]),
        "V": "\n".join([HEADER, str(len(rows)), *rows, ""]).replace("\t5000\t", "\t6000\t"),
        "O": "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n",
        "S": "m,n,k,gemm_dtype\n4096,4096,4096,bf16\n",
    }
    (folder / "of").mkdir()
    pair = {"A": workload(folder / "of"), "T": traces(folder / "of")}
    for name in AS_FILE:
        for kind, path in pair.items():
            os.makedirs(folder / kind, exist_ok=True)
            os.symlink(path, folder / kind / name)
        texts["K"] = named(KINETO.decode(), "cudaLaunchKernel", "record_param_comms", "dp", '"name": "ac2g"')
        texts["C"] = named(CHROME.decode(), '"dp_allreduce"', '"waiting"', "DP rank", "compute")
        texts["M"] = named(CONFIG.decode(), "Qwen2MoeForCausalLM")
        for kind, text in texts.items():
            os.makedirs(folder / kind, exist_ok=True)
            text = text.replace("NAME", json.dumps(name)[1:-1])
            (folder / kind / name).write_bytes(text.encode("utf-8", "surrogateescape"))
        os.makedirs(folder / "H" / name)
        for rank, dump in dumps_of(Fault(stops={1: 4}), ring=4).items():
            hurt = renamed(dump, name.encode("utf-8", "replace").decode())
            (folder / "H" / name / f"rank_{rank}").write_bytes(pickle.dumps(hurt))
        os.makedirs(folder / "D", exist_ok=True)
        held = renamed(snapshot(random_run(3)), name.encode("utf-8", "replace").decode())
        (folder / "D" / name).write_bytes(pickle.dumps(held))
        os.makedirs(folder / "R", exist_ok=True)
        done = wltui("sweep", str(folder / "W" / name), "--vary", "compute-scale=1,2", "--jobs", "1",
                     "-o", str(folder / "R" / name))  # fmt: skip
        assert done.status == 0, done.err
    return folder


def named(text: str, *places: str) -> str:
    """The text with NAME at the end of each place."""
    for place in places:
        assert place in text, place
        text = text.replace(place, f'{place[:-1]}NAME"' if place.endswith('"') else f"{place}NAME")
    return text


def renamed(value: Any, name: str) -> Any:
    """A dump in which groups, files and functions have the name at their end."""
    if isinstance(value, dict):
        return {key: renamed(item, name) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(renamed(item, name) for item in value)
    hurt = isinstance(value, str) and (value.isupper() or value.endswith((".py", "_pg")))
    return value + name if hurt else value


CASES = [
    (name, line, AS_FILE[(7 * place + again) % len(AS_FILE)])
    for place, (name, line) in enumerate((name, line) for name, lines in LINES.items() for line in lines)
    for again in (0, 11)
]


@pytest.mark.sampled(len(CASES) // 2)
@pytest.mark.parametrize(("command", "line", "name"), CASES)
def test_no_output_of_a_file_of_any_name_has_it_raw(
    folder: Path, tmp_path: Path, command: str, line: str, name: str
) -> None:
    new = tmp_path / "new" / name
    new.parent.mkdir()
    places = {kind: str(folder / kind / name) for kind in "WVKCHDMOSRAT"} | {"NEW": str(new)}
    words = [places.get(word, word) for word in line.split()]
    if "--force" in words or "--resume" in words:
        # What is there is what it goes on with.
        before = [word for word in words if word not in ("--force", "--resume")]
        assert wltui(*[command][: bool(command)], *before).status in (0, 1)
    done = wltui(*[command][: bool(command)], *words)
    # `check` of dumps says what hangs.
    assert done.status == 0 or command == "check", (words, done.err)
    if "--json" in words and done.status == 0:
        json.loads(done.out)
    # A workload that is written back, and execution traces, are inputs of other programs: names are kept.
    written = [
        path
        for path in new.parent.rglob("*")
        if path.is_file() and "simai" not in words and path.suffix != ".et"
    ]
    for path in written:
        assert UNSAFE.findall(path.read_bytes().decode("utf-8")) == [], (words, path)
    tables = [done.out] if "--csv" in words or "csv" in words else []
    tables += [path.read_text(encoding="utf-8") for path in written if "csv" in words]
    for cell in (cell for table in tables for row in csv.reader(table.splitlines()) for cell in row):
        assert not cell.startswith(("=", "+", "@", "\uff1d")), words


OPTIONS = [
    (name, action.option_strings[-1])
    for name, parser in parsers().items()
    for action in parser._actions
    if action.option_strings and action.nargs != 0
]


@pytest.mark.parametrize("command", parsers())
def test_an_argument_of_any_name_is_safe(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(AS_FILE):
        (tmp_path / name).write_text("" if place % 2 else HEADER)
    before = sorted(os.listdir())
    head = [command][: bool(command)]
    lines = (
        [[name] for name in HANDED] + [[f"./{name}"] for name in AS_FILE] + [[f"--{name}"] for name in HANDED]
    )
    # A parameter is checked by one function whatever the command: each with one name, others with three.
    parameters = {flag.option for flag in FLAGS}
    for place, option in enumerate(option for of, option in OPTIONS if of == command):
        for again in range(1 if option in parameters else 3):
            name = HANDED[(5 * place + 11 * again) % len(HANDED)]
            file = str(folder / "W" / AS_FILE[place % len(AS_FILE)])
            lines.append([file, f"{option}={name}"])
    for words in lines:
        done = wltui(*head, *words)
        assert done.status in (0, 1, 2), words
        assert done.status != 1 or done.err or command == "check", words
    assert set(os.listdir()) - set(before) <= {*HANDED}
    assert not os.path.exists("OWNED")
