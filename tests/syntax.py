"""The syntax of the program's files, parsed once for all tests that look at it: 900 files take 2 s."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


@cache
def nodes_by_file() -> dict[str, list[ast.AST]]:
    """Returns the nodes of the syntax tree of each file of the two packages, by path from the checkout."""
    paths = [path for room in ("simcore", "tui") for path in sorted((_ROOT / room).rglob("*.py"))]
    return {
        path.relative_to(_ROOT).as_posix(): list(ast.walk(ast.parse(path.read_text("utf-8"))))
        for path in paths
    }
