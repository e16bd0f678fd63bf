"""Names are the field's terms: what readers of the code could not say at sight is refused."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache

from tests.syntax import nodes_by_file

# Word of a name -> what the field calls it.
DIALECT = {
    "piece": "segment", "tie": "rendezvous", "leg": "segment", "spot": "interval", "place": "position",
    "stake": "effect", "basis": "context", "reach": "scope", "crossing": "group dimension",
    "carrier": "transport", "told": "text", "said": "text", "alike": "equal", "beside": "overlapping",
    "asked": "parameters",
}  # fmt: skip
# No names by themselves: with a noun behind them (`sent_bytes`) they are.
PARTICIPLES = {
    "applied", "begun", "bound", "called", "chosen", "counted", "covered", "cut", "done", "drawn",
    "fixed", "found", "given", "gone", "held", "joined", "kept", "known", "looked", "made", "marked",
    "matched", "meant", "mended", "moved", "named", "number", "numbered", "numbers", "passed", "placed",
    "priced", "put", "seen", "sent", "shown", "sorted", "stated", "stepped", "taken", "tried", "wanted",
    "written",
}  # fmt: skip
# What is right where it stands: a file, and the names in it.
EXEMPT = {
    "simcore/chakra/wire.py": {"FIXED32", "FIXED64"},  # the wire types of protobuf
    "simcore/recovery/difference.py": {"found"},  # a key of the JSON
    "tui/timeline/saved.py": {"kept", "fixed"},  # keys of session files
}


def defined_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """(line, name) of all that a module defines: classes, functions, parameters, variables, fields."""
    for node in nodes:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


@cache
def refusal(name: str) -> str:
    """Returns why a name is refused, "" for one that is not."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]
    for word in words:
        singular = word.removesuffix("es") if word == "reaches" else word.removesuffix("s")
        for one in (word, singular):
            if one in DIALECT:
                return f"`{name}`: {DIALECT[one]} is the field's word"
    return f"`{name}` names nothing: add the noun" if "_".join(words) in PARTICIPLES else ""


def test_names_are_the_terms_of_the_field() -> None:
    refused = []
    for file, nodes in nodes_by_file().items():
        for line, name in defined_names(nodes):
            reason = refusal(name) if name not in EXEMPT.get(file, ()) else ""
            refused += [f"{file}:{line}: {reason}"] * bool(reason)
    assert not refused, "\n".join(refused)
