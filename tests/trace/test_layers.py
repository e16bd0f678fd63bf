"""The layer table: its columns say of a line the same in JSON, report and on the screen, of every run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simcore.render.report.pages import run_json, run_page
from simcore.trace import layers
from simcore.trace.layers import COLUMNS, Column, LayerUse
from simcore.trace.run import Run
from simcore.units import percent
from tests.measured.test_operations import four
from tests.tui.made_runs import four_stages
from tests.tui.test_execution_screens import run as executed
from tui.layers.columns import format_figure
from tui.layers.table import Table
from tui.layers.view import table_of
from tui.layers.workload_table import WorkloadTable

KINDS = ("simulated", "measured", "executed")


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """A run of each kind."""
    if request.param == "simulated":
        return four_stages().compute_layer_path(lambda: False)
    if request.param == "measured":
        results = four()
        _ = results.operations.critical_ns, results.operations.slack_ns
        return results
    return executed(tmp_path, "links")


def table(of: Run) -> Table:
    """Screen 3, a row of the file each."""
    found = table_of(of)
    found = found.apart(True) if isinstance(found, WorkloadTable) else found
    assert isinstance(found, Table)
    return found


def rows(of: Table) -> list[tuple[LayerUse, dict[str, str]]]:
    """(line, texts) of the screen, each line once."""
    if isinstance(of, WorkloadTable):
        return [(line.group, of.texts(at)) for at, line in enumerate(of.lines) if line.first]
    return [(of.of_line(at), of.texts(at)) for at in range(len(of.lines))]


def said(of: Run) -> dict[tuple[object, ...], dict[str, Any]]:
    """The JSON by what its lines are of; operations stand there in another order than on the screen."""
    lines = run_json(of)["layers"]
    if any("operation" in line for line in lines) and not any("count" in line for line in lines):
        return {(line["operation"], line["name"]): line for line in lines}
    return {(line["index"], line["name"]): line for line in lines}


@pytest.mark.parametrize("run", KINDS, indirect=True)
@pytest.mark.parametrize("name", ["exposed", "critical", "slack", "compute", "time", "waits"])
def test_a_figure_of_the_screen_is_that_of_the_json(run: Run, name: str) -> None:
    found, lines, seen = table(run), said(run), 0
    column = next(column for column in COLUMNS if column.key == name)
    if column not in found.columns.columns:
        return
    for line, texts in rows(found):
        stated = lines.get((line.index, line.name)) or lines.get((line.parent, line.name)) or {}
        if column.json not in stated:
            continue
        ns, seen = stated[column.json], seen + 1
        if column.raw is not None and name != "compute" and ns is not None:
            # Of all ranks together.
            ns /= len(line.runs.ranks)
        text = texts[found.columns.title(column)]
        assert text == ("-" if ns is None else format_figure(ns / 1e6, max(8, len(text)))), line.title
    kinds = {"compute": ("measured", "executed"), "time": ("executed",), "waits": ("executed",)}
    assert bool(seen) == (run.figures.kind in kinds.get(name, KINDS))


@pytest.mark.parametrize("run", KINDS, indirect=True)
def test_a_column_is_added_in_one_place(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As someone would who wants to know which part of the step each line is exposed."""
    added = Column(
        "exposed share",
        "exp. %",
        "share",
        lambda line: line.use.exposed_ns,
        json="exposed_percent",
    )
    monkeypatch.setattr(layers, "COLUMNS", [*COLUMNS, added])
    found, step = table(run), run.step_time_ns
    assert "exp. %" in [column.heading for column in found.columns_for(300)]
    for line, texts in rows(found):
        assert texts["exp. %"] == percent(line.use.exposed_ns, step)
    for line in run_json(run)["layers"]:
        assert line["exposed_percent"] == pytest.approx(100 * line["exposed_ns"] / step)
    assert any(line.endswith("exp. %") for line in run_page(run).splitlines())
    assert found.sorted_by["exp. %"] == ("exposed share", True)
    found.sort("exposed share", True)
    exposed = [line.use.exposed_ns for line, _ in rows(found)]
    assert exposed == sorted(exposed, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("run", KINDS, indirect=True)
def test_lines_are_sorted_by_what_a_column_says_of_them(run: Run) -> None:
    found = table(run)
    for column in found.columns.columns:
        if column.of != "line" or column.largest_first is None:
            continue
        for down in (True, False):
            found.sort(column.key, down)
            values = column.sort_values(line for line, _ in rows(found))
            assert values == sorted(values, reverse=down), column.key


def test_each_key_is_of_one_column() -> None:
    keys = [column.key for column in COLUMNS]
    assert len(keys) == len(set(keys))
    of_lines = [column.json for column in COLUMNS if column.json and column.of == "line"]
    assert len(of_lines) == len(set(of_lines))
