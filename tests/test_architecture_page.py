"""The page on the architecture: its figures are the program's, and what it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from docs.pictures import with_row
from tests.syntax import nodes_by_file

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# Where a path of the page may begin.
FROM = ("", "simcore", "tui", "simcore/report")


def test_the_life_of_a_row_is_what_the_program_makes_of_it() -> None:
    assert with_row(PAGE) == PAGE, "make pictures"


def test_each_file_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`([\w/.]+(?:\.(?:py|md|toml)|/))`", PAGE))
    # Of each kind of run, of each screen.
    named -= {name for name in named if "/" not in name and len(list(ROOT.rglob(name))) > 1}
    assert len(named) > 40
    missing = {name for name in named if not any((ROOT / first / name).exists() for first in FROM)}
    assert missing == set()


def test_no_two_files_import_each_other() -> None:
    # Those for types and those inside of functions count: who reads one of the two has to know both.
    modules = {re.sub(r"(/__init__)?\.py$", "", name).replace("/", "."): name for name in nodes_by_file()}
    left = {module: imported(name, modules) - {module} for module, name in modules.items()}
    assert sum(map(len, left.values())) > 1000
    # What imports nothing that is left is no part of a circle.
    while True:
        over = {module for module, found in left.items() if not found}
        if not over:
            break
        left = {module: found - over for module, found in left.items() if module not in over}
    assert circle_of(left) == []


def imported(file: str, modules: dict[str, str]) -> set[str]:
    """The modules that a file imports, wherever it does; a package for what it hands on."""
    found = set()
    for node in nodes_by_file()[file]:
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{one.name}" for one in node.names]
        for name in names:
            while name and name not in modules:
                name = name.rpartition(".")[0]
            found.add(name)
    mine = file.removesuffix(".py").replace("/", ".")
    # A package and what lies in it are one.
    return {name for name in found - {""} if not mine.startswith(f"{name}.")}


def circle_of(left: dict[str, set[str]]) -> list[str]:
    """One circle among modules each of which imports another of them; none among none."""
    if not left:
        return []
    way = [min(left)]
    while way[-1] not in way[:-1]:
        way.append(min(left[way[-1]]))
    return way[way.index(way[-1]) :]
