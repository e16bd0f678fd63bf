"""Small mistakes that could be in a Python file: each a change of one place of its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.Pow: ast.Mult,
}  # fmt: skip
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Place(NamedTuple):
    """One mutant: which change of which node. lines: those that run when it does, none at import."""

    path: str
    node: int
    change: int
    kind: str
    line: int
    lines: tuple[int, int] | None

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} {self.node}.{self.change}"


def places(root: Path, path: str) -> list[Place]:
    """Every mutant of a file, in order."""
    tree = ast.parse((root / path).read_text(encoding="utf-8"))
    return [
        Place(path, number, change, kind, node.lineno, lines)  # type: ignore[attr-defined]
        for number, (node, lines) in enumerate(_nodes(tree))
        for change, (kind, _) in enumerate(_changes(node))
    ]


def mutated(root: Path, place: Place) -> tuple[ast.Module, str]:
    """The file with that mistake, and the mistake in words."""
    tree = ast.parse((root / place.path).read_text(encoding="utf-8"))
    node = list(_nodes(tree))[place.node][0]
    before = ast.unparse(node)
    _changes(node)[place.change][1]()
    after = ast.unparse(node)
    return ast.fix_missing_locations(tree), f"{before.splitlines()[0]}  ->  {after.splitlines()[0]}"


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[int, int] | None]]:
    """The nodes that something does, each with the lines of its statement; no types, no docstrings."""
    yield from _below(tree, None, False)


def _below(
    node: ast.AST, lines: tuple[int, int] | None, in_function: bool
) -> Iterator[tuple[ast.AST, tuple[int, int] | None]]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment", "bases"):
            continue
        # A default and a decorator run when the function is made.
        inside = in_function or (isinstance(node, ast.FunctionDef) and name == "body")
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _says_only(child):
                continue
            here = lines
            if isinstance(child, ast.stmt):
                body = getattr(child, "body", None)
                last = max(child.lineno, body[0].lineno - 1) if body else child.end_lineno or child.lineno
                here = (child.lineno, last)
            yield child, here if inside else None
            yield from _below(child, here, inside)


def _says_only(node: ast.AST) -> bool:
    """A docstring, an assertion for the type checker, imports."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> list[tuple[str, Callable[[], None]]]:
    """(kind, what makes the mistake in place) of each mistake at this node."""
    found: list[tuple[str, Callable[[], None]]] = []

    def add(kind: str, field: str, value: object) -> None:
        found.append((kind, lambda: setattr(node, field, value)))

    match node:
        case ast.Compare(ops=[one]):
            for other in COMPARISONS[type(one)]:
                add("comparison", "ops", [other()])
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not isinstance(node.left, ast.JoinedStr):
            add("arithmetic", "op", ARITHMETIC[type(op)]())
        case ast.AugAssign(op=op):
            if type(op) in ARITHMETIC:
                add("arithmetic", "op", ARITHMETIC[type(op)]())
            found.append(("statement", lambda: _delete(node)))
        case ast.BoolOp():
            add("boolean", "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not()):
            found.append(("boolean", lambda: _become(node, ast.Call(ast.Name("bool"), [node.operand], []))))
        case ast.UnaryOp(op=ast.USub()):
            add("arithmetic", "op", ast.UAdd())
        case ast.Constant(value=bool() as flag):
            add("constant", "value", not flag)
        case ast.Constant(value=int() | float() as number):
            add("constant", "value", number + 1)
        case ast.Call(func=ast.Name(id=name)) if name in TWINS:
            add("min max any all", "func", ast.Name(TWINS[name]))
        case ast.If() | ast.While() | ast.IfExp() if isinstance(
            node.test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr
        ):
            add("boolean", "test", ast.UnaryOp(ast.Not(), node.test))
        case ast.Expr(value=ast.Call()) | ast.Continue() | ast.Break() | ast.Raise():
            found.append(("statement", lambda: _delete(node)))
        case _:
            pass
    return found


def _delete(node: ast.AST) -> None:
    _become(node, ast.Pass())


def _become(node: ast.AST, other: ast.AST) -> None:
    """`node` is from now on what `other` is; whoever holds it need not be known."""
    place = {name: getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
    node.__class__ = type(other)  # type: ignore[assignment]
    node.__dict__.clear()
    node.__dict__.update(other.__dict__ | place)
