"""Rules of the house that the syntax of its files shows: parameters are resolved where a setup is made, and
values that are kept on an object are kept by one helper.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache

from tests.syntax import nodes_by_file

# Where what parameters say is looked up by name.
_RESOLVED_IN = {"network_model": {"simcore/setup.py"}, "resolve_dialect": {"simcore/setup.py"}}
_KEPT_IN = "simcore/cached_methods.py"
_MOST_PLACES = 20


def annotations(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Those of arguments, returns, attributes and variables."""
    for node in nodes:
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


def places_of(nodes: Iterable[ast.AST], name: str) -> int:
    """How many annotations name a type."""
    return sum(name in names_in(annotation) for annotation in annotations(nodes))


def test_few_places_take_parameters() -> None:
    """Below a setup nothing does: rooms have their own part of them."""
    found = {path: places_of(nodes, "Parameters") for path, nodes in nodes_by_file().items()}
    assert sum(found.values()) <= _MOST_PLACES, {path: count for path, count in found.items() if count}


def test_every_kind_of_annotation_counts() -> None:
    text = """
class A:
    a: "Parameters | None"
    def f(self, b: tuple[Parameters, ...], *c: m.Parameters, d: int = 0) -> Callable[[Parameters], None]:
        e: dict[str, Parameters] = {}
"""
    assert places_of(ast.walk(ast.parse(text)), "Parameters") == 5


@cache
def callers() -> dict[str, set[str]]:
    """The files that call a function, by its name."""
    by_name: dict[str, set[str]] = {}
    for path, nodes in nodes_by_file().items():
        for node in nodes:
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                by_name.setdefault(name, set()).add(path)
    return by_name


def called_in(name: str) -> set[str]:
    """The files that call a function by its name."""
    return callers().get(name, set())


def test_dialect_and_network_are_looked_up_where_a_setup_is_made() -> None:
    assert {name: called_in(name) for name in _RESOLVED_IN} == _RESOLVED_IN


def test_values_are_kept_on_objects_by_one_helper() -> None:
    found = {
        path
        for path, nodes in nodes_by_file().items()
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr == "__dict__"
    }
    assert found == {_KEPT_IN}


# The classes of runs: which kind a run is, sources and words know, and nobody tests it.
_MOST_MEMBERS = 25
_VARIABLES = {"run", "results", "current", "opened", "against", "shown", "a", "b"}


@cache
def run_classes() -> set[str]:
    """The names of the classes of runs: `Run` and what stands below it."""
    below = {"Run"}
    classes = [node for nodes in nodes_by_file().values() for node in nodes if isinstance(node, ast.ClassDef)]
    while more := {
        one.name for one in classes
        if any(isinstance(base, ast.Name) and base.id in below for base in one.bases)
    } - below:  # fmt: skip
        below |= more
    return below


def test_a_run_has_few_members_and_says_to_nobody_where_it_came_from() -> None:
    nodes = nodes_by_file()["simcore/trace/run.py"]
    (run,) = (node for node in nodes if isinstance(node, ast.ClassDef) and node.name == "Run")
    members = {node.name for node in run.body if isinstance(node, ast.FunctionDef)}
    members |= {name.id for node in run.body if isinstance(node, ast.Assign) for name in node.targets
                if isinstance(name, ast.Name)}  # fmt: skip
    assert len({name for name in members if not name.startswith("_")}) <= _MOST_MEMBERS
    named = {
        item.name
        for nodes in nodes_by_file().values()
        for node in nodes
        if isinstance(node, ast.ClassDef) and node.name in run_classes()
        for item in node.body
        if isinstance(item, ast.FunctionDef)
    }
    assert "origin" not in named


def asked_for_its_kind(nodes: Iterable[ast.AST], classes: set[str]) -> Iterator[str]:
    """What in a file tests the class of a run, compares its kind, or takes its attributes by name."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names = {name.id for one in node.args[1:] for name in ast.walk(one) if isinstance(name, ast.Name)}
            if node.func.id in ("isinstance", "issubclass") and names & classes:
                yield ast.unparse(node)
            if node.func.id in ("getattr", "hasattr") and node.args:
                first = node.args[0]
                if isinstance(first, ast.Attribute):
                    first = ast.Name(first.attr)
                if isinstance(first, ast.Name) and first.id in _VARIABLES:
                    yield ast.unparse(node)
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                if (
                    isinstance(side, ast.Attribute)
                    and side.attr == "kind"
                    and "figures" in ast.unparse(side.value)
                ):
                    yield ast.unparse(node)
        if isinstance(node, ast.match_case) and any(
            isinstance(one, ast.MatchClass) and ast.unparse(one.cls) in classes
            for one in ast.walk(node.pattern)
        ):
            yield ast.unparse(node)


def test_nobody_asks_a_run_where_it_came_from() -> None:
    found = {path: [*asked_for_its_kind(nodes, run_classes())] for path, nodes in nodes_by_file().items()}
    assert {path: places for path, places in found.items() if places} == {}


def test_screens_ask_contexts_and_not_what_was_opened() -> None:
    found = {path for path, nodes in nodes_by_file().items() if path.startswith("tui/") for node in nodes
             if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("setup.of")}  # fmt: skip
    assert found == set()


# Python and the commands open, run, compare, sweep and export by the same functions: what these go by, by the
# files of the screen and of the front door that call it all the same.
_BEHIND_THE_DOOR: dict[str, set[str]] = {
    name: set()
    for name in (
        "simulate", "SimulatedRun", "run_recording", "run_execution", "Evaluator", "engine_of",
        "ProcessEngine", "HereEngine", "cluster_engine", "save_folder", "gzip_chunks", "open_profile",
        "open_set", "open_directory",
    )
} | {
    # Rows and their origin, without a run of them; what --explain tells is of simulated runs alone.
    "open_workload": {"tui/commands/models.py"}, "run_simulation": {"tui/commands/report.py"},
}  # fmt: skip
# The door itself, used from both sides.
_DOOR = (
    "open_input", "open_model", "open_run", "build_evaluator", "open_sweep", "find_format", "check_output",
    "write",
)  # fmt: skip


def test_python_and_the_commands_go_through_one_door() -> None:
    found = {
        name: {path for path in called_in(name) if path.startswith(("tui/", "simcore/api/"))}
        for name in _BEHIND_THE_DOOR
    }
    assert found == _BEHIND_THE_DOOR
    for side in ("tui/", "simcore/api/"):
        assert [name for name in _DOOR if not any(path.startswith(side) for path in called_in(name))] == []


def test_each_way_of_asking_is_seen() -> None:
    text = """
isinstance(x, (int, SimulatedRun))
getattr(run, name)
run.figures.kind == "simulated"
"executed" in (a.figures.kind,)
match run:
    case SimulatedRun(): pass
"""
    assert len([*asked_for_its_kind(ast.walk(ast.parse(text)), {"SimulatedRun"})]) == 4
