"""Rules of the house that the syntax of its files shows: parameters are resolved where a setup is made, and
values that are kept on an object are kept by one helper.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where what parameters say is looked up by name.
_RESOLVED_IN = {"network_model": {"simcore/setup.py"}, "chosen_dialect": {"simcore/setup.py"}}
_KEPT_IN = "simcore/once.py"
_MOST_PLACES = 20


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax of each file of the two packages, by its path."""
    paths = [path for room in ("simcore", "tui") for path in sorted((ROOT / room).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


def annotations(tree: ast.AST) -> Iterator[ast.expr]:
    """Those of arguments, returns, attributes and variables."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            yield node.annotation
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            yield node.returns


def names_in(annotation: ast.AST) -> Iterator[str]:
    """The names in an annotation, also of one in quotes."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # Words of a `Literal` need be no names.
            with suppress(SyntaxError):
                yield from names_in(ast.parse(node.value, mode="eval"))


def places_of(tree: ast.AST, name: str) -> int:
    """How many annotations name a type."""
    return sum(name in names_in(annotation) for annotation in annotations(tree))


def test_few_places_take_parameters() -> None:
    """Below a setup nothing does: rooms have their own part of them."""
    found = {path: places_of(tree, "Parameters") for path, tree in trees().items()}
    assert sum(found.values()) <= _MOST_PLACES, {path: count for path, count in found.items() if count}


def test_every_kind_of_annotation_counts() -> None:
    text = """
class A:
    a: "Parameters | None"
    def f(self, b: tuple[Parameters, ...], *c: m.Parameters, d: int = 0) -> Callable[[Parameters], None]:
        e: dict[str, Parameters] = {}
"""
    assert places_of(ast.parse(text), "Parameters") == 5


def called_in(name: str) -> set[str]:
    """The files that call a function by its name."""
    return {
        path
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")) == name
    }


def test_dialect_and_network_are_looked_up_where_a_setup_is_made() -> None:
    assert {name: called_in(name) for name in _RESOLVED_IN} == _RESOLVED_IN


def test_values_are_kept_on_objects_by_one_helper() -> None:
    found = {
        path
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "__dict__"
    }
    assert found == {_KEPT_IN}
