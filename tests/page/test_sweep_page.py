"""The page of a sweep: its front as a plot and as a table, with the figures of its file of results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simcore.sweeping.html_page import sweep_document
from simcore.sweeping.outcome import Outcome
from simcore.sweeping.pareto_front import ParetoFront, Rule
from simcore.sweeping.results_file import ResultsReader
from tests.command_line.running import wltui_here
from tests.page.opened import tables_of, text_of

_SWEEP = (
    "sweep", "--model", "llama-3-8b", "--world", "16", "--gpu", "h100", "--microbatches", "8",
    "--vary", "tp=1,2,4", "--vary", "pp=1,2", "--vary", "recompute=none,full",
)  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of results, made by the command."""
    path = tmp_path_factory.mktemp("sweep") / "results.jsonl"
    done = wltui_here(*_SWEEP, "-o", str(path))
    assert done.returncode == 0, done.stderr
    return path


def test_the_page_has_the_front_and_every_point_that_fits(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "sweep.html"
    done = wltui_here("export", str(results), "--format", "html", "-o", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    page = out.read_text(encoding="utf-8")
    points = ResultsReader(str(results)).read_new()
    front = ParetoFront(Rule(), points)
    tables, text = tables_of(page), text_of(page)
    assert len(tables["points"][0]) - 1 == len(front.points) > 4
    assert len(tables["front"][0]) - 1 == len(front.front)
    assert page.count('<path class="front"') == len(front.front)
    assert page.count('class="dot"') == len(front.points) - len(front.front)
    best = front.best[0].point
    assert best.tokens_per_s is not None
    assert text["verdict"].index("llama-3-8b") < text["verdict"].index("at best, with tp")
    assert "84.9 GB of a GPU" in text["facts"]
    assert f"{round(best.tokens_per_s):,} tokens/s".replace(",", " ") in text["verdict"]
    assert best.command in text["command"]
    assert f"wltui export {results} --format html -o sweep.html" in text["command"]
    for sentence in Outcome(Rule(), points).sentences():
        assert sentence in text["verdict"]


def test_a_sweep_of_which_nothing_fits_says_why() -> None:
    page = sweep_document(Outcome(Rule()), "empty.jsonl")
    assert "0 points, 0 simulated" in text_of(page)["verdict"]
    assert "<table" not in page


def test_other_formats_refuse_a_sweep(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "sweep.csv"
    done = wltui_here("export", str(results), "--format", "csv", "-o", str(out))
    assert done.returncode == 2
    assert re.search("found results of a sweep: --format html makes a page of them", done.stderr)
    assert not out.exists()
