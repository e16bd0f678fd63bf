"""The first picture of a long run does not wait for its sentences, worst findings and changes, and these move
nothing of it when they come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import zip_longest

import pytest

import tui.summary.model
from simcore.diagnostics import sort_by_weight
from simcore.runs.simulated import SimulatedRun
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages, make_workload, run, seed
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text, wait_until
from tests.tui.test_rank_map import ROWS_OF_32_RANKS
from tui.frame import BLOCKS, text_of
from tui.panels import COMING
from tui.summary.frame import draw
from tui.summary.model import SummaryModel, is_long
from tui.summary.view import SummaryView

_SIMULATING = "simulating"


def slow_rank() -> SimulatedRun:
    """A run of which nothing is computed yet."""
    return run(make_workload(ROWS_OF_32_RANKS, tp=4, pp=2, all_gpus=32, pp_comm=30000), slow_rank=("21=1.5",))


@pytest.fixture
def _every_run_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui.summary.model, "_FEW_SPANS", 0)
    monkeypatch.setattr(tui.summary.model, "_FEW_SHARED_SPANS", 0)


def moved_cells(before: list[str], after: list[str]) -> Iterator[tuple[int, int]]:
    """(row, column) of what stands elsewhere afterwards; titles and what said that something comes may
    change.
    """
    for y, (row, row_after) in enumerate(zip_longest(before, after, fillvalue="")):
        may_change = "──" in row or COMING in row or _SIMULATING in row
        for x, (cell, cell_after) in enumerate(zip_longest(row, row_after, fillvalue="")):
            if cell.strip() and cell != cell_after and (not may_change or cell in "╭╮╰╯│"):
                yield y, x


def test_the_seed_comes_in_one_picture_and_with_a_slow_rank_in_two() -> None:
    assert not is_long(seed())
    assert is_long(seed(slow_rank=("77=1.5",)))
    # Few micro-batches are few spans.
    assert not is_long(four_stages(slow_rank=("3=1.3",)))


def above_advice(picture: list[str]) -> list[str]:
    """What stands over the changes: below them are the notes, which come in the order of their effects once
    these are known.
    """
    (title,) = [row for row, text in enumerate(picture) if "─ What would help most" in text]
    return picture[: title + 1]


@pytest.mark.usefixtures("_every_run_is_long")
@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_what_comes_later_moves_nothing(width: int) -> None:
    """Planted: the rows of the worst findings by their number; those of the advice by that of the changes;
    the lines of the words by the sentences; no blank lines below the changes on a small screen; the lines of
    the notes in full.
    """
    results = slow_rank()
    notes = sort_by_weight(results.diagnostics)
    knobs = results.what_if()
    for height in range(16, 62, 3):
        pictures = []
        for is_described, known_knobs in ((False, None), (True, None), (True, knobs)):
            model = SummaryModel(results, is_described=is_described)
            model.set_what_if(known_knobs)
            # The effects on the notes come with the changes.
            model.notes = notes if known_knobs is None else model.notes
            pictures.append(text_of(draw(model, width, height, BLOCKS, _SIMULATING)).split("\n"))
        first, *later = pictures
        assert COMING in "\n".join(first)
        for picture in later:
            assert COMING not in "\n".join(picture)
            moved = list(moved_cells(above_advice(first), above_advice(picture)))
            assert not moved, (width, height, first, picture)
            titles = [
                [row for row, text in enumerate(one) if "─ Notes (" in text] for one in (first, picture)
            ]
            assert titles[0] == titles[1]


@pytest.mark.usefixtures("_every_run_is_long")
@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_the_first_picture_has_the_step_and_the_words_come_before_the_changes(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    """Planted: the search for changes begun before the sentences are there."""
    may_describe, may_search = threading.Event(), threading.Event()
    path, search = SimulatedRun.compute_critical_path, SimulatedRun.what_if

    def held_path(results: SimulatedRun) -> Callable[..., object]:
        def compute(cancelled: Callable[[], bool]) -> object:
            assert threading.current_thread() is not threading.main_thread()
            assert may_describe.wait(20)
            return path.__get__(results, SimulatedRun)(cancelled)

        return compute

    def held_search(results: SimulatedRun, *arguments: object) -> object:
        assert may_search.wait(20)
        return search(results, *arguments)

    monkeypatch.setattr(SimulatedRun, "compute_critical_path", property(held_path))
    monkeypatch.setattr(SimulatedRun, "what_if", held_search)
    results = slow_rank()
    app = make_app(results, first=None)
    async with app.run_test(size=size) as pilot:
        await wait_until(pilot, lambda: COMING in screen_text(app))
        first = screen_rows(app)
        assert "Straggler" not in screen_text(app)
        # Nothing that a key asks for computes it meanwhile.
        await press(pilot, "tab", "tab", "j", "space")
        assert screen_rows(app)[-1].strip() == COMING
        await press(pilot, "shift+tab", "shift+tab")
        assert screen_rows(app)[:-1] == first[:-1]
        may_describe.set()
        await wait_until(pilot, lambda: COMING not in screen_text(app))
        assert "Straggler. Ranks 5,21 " in screen_text(app)
        assert _SIMULATING in screen_text(app)
        view = app.current_view
        assert isinstance(view, SummaryView)
        assert view.model.knobs is None
        may_search.set()
        await run_over(pilot)
        assert view.model.knobs
        assert not list(moved_cells(above_advice(first)[2:], above_advice(screen_rows(app))[2:]))
        # A run whose description is there comes with it.
        view.show(results)
        assert view.model.is_described
