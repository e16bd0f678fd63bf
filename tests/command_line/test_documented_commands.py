"""Each command that README and docs/ show can be typed as it stands; the pictures are the program's."""

from __future__ import annotations

import re
import shlex
import shutil
from importlib import import_module
from pathlib import Path

import pytest
import textual.constants

import tui.cli
from docs.pictures import PICTURES, words_of
from tests.command_line.running import ROOT, SEED_001, SEED_002, wltui_here
from tests.measured.made_steps import Layout, write_steps

PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
# What stands for the user's own files; a line with other capitals, brackets or bars says how, not what.
_SYNOPSIS = re.compile(r"[\[|]|\b(?!FILE\b|DIR\b)[A-Z]{3,}\b")
NETWORK = """topology: [ Ring, Switch ]
npus_count: [ 8, 128 ]
bandwidth: [ 400.0, 50.0 ]
latency: [ 500.0, 2000.0 ]
"""
SYSTEM = """{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
 "preferred-dataset-splits": 1}"""


def commands(page: str) -> list[str]:
    """The lines of a page's code that begin with `wltui`, without the words behind them."""
    found = []
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("    wltui "):
            words = re.split(r"\s{2,}", line.strip())[0].split(" #")[0].strip()
            if not _SYNOPSIS.search(words):
                found.append(words)
    return found


COMMANDS = list(dict.fromkeys(command for page in PAGES for command in commands(page)))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages name."""
    folder = tmp_path_factory.mktemp("user")
    for name in ("workload.txt", "old.txt", "new.txt", "FILE"):
        shutil.copy(ROOT / SEED_002, folder / name)
    shutil.copy(ROOT / SEED_001, folder / "small.txt")
    for name in ("traces", "DIR"):
        (folder / name).mkdir()
        write_steps(folder / name, Layout(tp=2, dp=1, pp=4, microbatches=1))
    for name in ("spans.csv", "old.csv", "new.csv"):
        shutil.copy(ROOT / "tests" / "kineto" / "cases" / "spans.csv", folder / name)
    for name in ("train.log", "before.log", "after.log"):
        shutil.copy(ROOT / "tests" / "kineto" / "cases" / "megatron.log", folder / name)
    shutil.copy(ROOT / "tests" / "networks" / "nccl_tests" / "all_reduce_8.txt", folder / "all_reduce.txt")
    (folder / "mine.csv").write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", encoding="utf-8")
    (folder / "ops.csv").write_text("gemm_dtype,m,n,k\nnvfp4,8192,8192,8192\n", encoding="utf-8")
    (folder / "mine.toml").write_text("compute_scale = 0.9\n", encoding="utf-8")
    (folder / "network.yml").write_text(NETWORK, encoding="utf-8")
    (folder / "system.json").write_text(SYSTEM, encoding="utf-8")
    # What a command above writes, whether or not that one is drawn.
    words = shlex.split("--model llama-3-8b --world 16 --global-batch 32 --vary tp=2,4 --jobs 1")
    for name in ("results.jsonl", "layouts.jsonl"):
        assert wltui_here("sweep", *words, "-o", str(folder / name)).returncode == 0
    return folder


def test_the_pages_show_commands() -> None:
    assert len(COMMANDS) > 40


@pytest.mark.sampled(12)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_command_runs(command: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = []
    for word in shlex.split(command)[1:]:
        # As a shell does, which leaves a word alone that names no file.
        words += sorted(path.name for path in place.glob(word)) or [word] if "*" in word else [word]
    if "-o" in words:
        # Another page has written it.
        (place / words[words.index("-o") + 1]).unlink(missing_ok=True)
    elif "fitted.toml" in words:
        (place / "fitted.toml").write_text("compute_scale = 0.9\n", encoding="utf-8")
    if {"html", "chrome", "--snapshot", "--what-if", "--jitter"} & {*words} and "--ranks" not in words:
        # These take as long as there are spans, and of this file it is the same program.
        words = ["small.txt" if word in ("workload.txt", "FILE") else word for word in words]
    monkeypatch.chdir(place)
    done = wltui_here(*words, HOME=str(place))
    assert done.returncode == 0, done.stderr
    # Notes and warnings of an export are its stderr.
    assert not re.search(r"Traceback|\berror\b", done.stderr), done.stderr
    # A file without a fault has no line.
    assert done.stdout or "-o" in words or words[0] == "check"


# They show what a search of a second or more has found.
SEARCHING = ("summary", "why", "compare")


@pytest.mark.parametrize("name", [name for name in PICTURES if name not in SEARCHING])
def test_a_picture_is_what_the_program_draws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    committed = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    # Textual reads it from the environment when it is loaded, before `--snapshot` can set it.
    monkeypatch.setattr(textual.constants, "COLOR_SYSTEM", "256")
    assert wltui_here(*words_of(name)).stdout == committed, "make pictures"


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SEARCHING)
def test_a_picture_of_what_is_searched_for_is_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    test_a_picture_is_what_the_program_draws(name, monkeypatch)


def test_each_picture_that_a_page_names_is_made() -> None:
    named = {
        name
        for page in PAGES
        for name in re.findall(
            r"\]\((?:docs/)?pictures/(\w+)\.svg\)", (ROOT / page).read_text(encoding="utf-8")
        )
    }
    assert named == set(PICTURES)


def test_every_flag_stands_on_a_page() -> None:
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    # `-h` says itself what it is, in all help.
    words = {*re.findall(r"[\w-]+", text), "-h"}
    for module in (*tui.cli.COMMANDS.values(), "tui.commands.view"):
        parser = import_module(module).build_parser()
        options = {option for action in parser._actions for option in action.option_strings}
        assert options - words == set(), module
