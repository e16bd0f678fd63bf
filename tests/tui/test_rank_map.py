"""The map of ranks: the rank that differs most from its peers is on the screen, whatever the room is."""

from __future__ import annotations

from functools import cache
from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.analysis.rank_map import MEASURES
from simcore.runs.simulated import SimulatedRun
from tests.tui.made_runs import Cell, Row, make_workload, run, seed, text_of
from tui.frame import BLOCKS
from tui.frame_view import styles
from tui.summary.frame import draw
from tui.summary.model import MAP, STAGES, SummaryModel
from tui.summary.side_panels import RankMap, _row_text

ROWS_OF_32_RANKS = [
    Row("embedding_layer", Cell(400, "ALLREDUCE", "tp", 2000)),
    Row("mlp", Cell(1500, "ALLGATHER", "tp", 4000), Cell(700), Cell(800, "REDUCESCATTER", "dp", 6000)),
    Row("mlp", Cell(900, "REDUCESCATTER", "tp", 4000), Cell(1100), Cell(600)),
] * 2


@cache
def thirty_two_ranks(**parameters: object) -> SimulatedRun:
    """2 stages, dp 4, tp 4."""
    workload = make_workload(ROWS_OF_32_RANKS, tp=4, pp=2, all_gpus=32, pp_comm=30000)
    return run(workload, dim=("switch:4:4:50", "switch:8:2:300"), **parameters)


def most_extreme_ranks(results: SimulatedRun, measure: str) -> set[int]:
    """The ranks that differ most from the median rank of their stage, rank by rank; none where all are
    equal.
    """
    layout = results.simulation.layout
    class_of = results.simulation.timeline.folding.class_of
    of_stages: dict[int, dict[int, int]] = {}
    for rank in range(layout.world):
        _, _, stage = layout.position(rank)
        of_stages.setdefault(stage, {})[rank] = MEASURES[measure](results.accounts[class_of(rank)])
    deviations = {
        rank: abs(ns - median_low(of_stage.values()))
        for of_stage in of_stages.values()
        for rank, ns in of_stage.items()
    }
    most = max(deviations.values())
    return {rank for rank, ns in deviations.items() if ns == most} if most else set()


_SLOW = st.tuples(st.sampled_from((0, 5, 17, 31)), st.sampled_from(("0.6", "1.05", "1.5")))
_RUNS = st.one_of(
    _SLOW.map(lambda slow: {"slow_rank": ("{}={}".format(*slow),)}),
    st.sampled_from((0, 13, 30)).map(lambda rank: {"slow_link": (f"0:{rank}=0.1",)}),
    st.just({"jitter": 0.2, "no_fold": True}),
)


@given(_RUNS, st.integers(0, 5), st.integers(60, 200), st.integers(20, 60), st.booleans())
def test_the_row_of_the_most_extreme_rank_is_visible_at_any_size(
    parameters: dict[str, object], presses: int, width: int, height: int, focused: bool
) -> None:
    """Planted: rows by their coordinates, as they are made; the window of rows around a cursor without
    focus.
    """
    results = thirty_two_ranks(**parameters)
    model = SummaryModel(results)
    assert isinstance(model.side_panel, RankMap)
    for _ in range(presses):
        model.next_side_panel()
    model.panel = MAP if focused or width < 100 or height < 26 else STAGES
    frame = text_of(draw(model, width, height, BLOCKS, ""))
    extreme = most_extreme_ranks(results, model.side_panel.measure)
    layout, class_of = results.simulation.layout, results.simulation.timeline.folding.class_of
    row_texts = set()
    for rank in extreme:
        stage = layout.position(rank)[2]
        rows = [row for row in results.shape.rank_map if row.classes[stage] == class_of(rank)]
        row_texts |= {_row_text(row) for row in rows}
    assert not extreme or any(f" {text} " in frame for text in row_texts), (row_texts, frame)
    hidden = len(results.shape.rank_map) - sum(
        f" {_row_text(row)} " in frame for row in results.shape.rank_map
    )
    assert (f"{hidden} row" in frame) == (hidden > 0), frame


def test_a_measure_that_is_equal_for_all_ranks_is_passed_over() -> None:
    """Planted: all measures in turn."""
    ranks = RankMap(seed())
    seen = []
    for _ in MEASURES:
        seen.append(ranks.measure)
        ranks.next()
    by_measure = {name: set(map(of_rank, seed().accounts)) for name, of_rank in MEASURES.items()}
    assert seen[: len(set(seen))] == [name for name, values in by_measure.items() if len(values) > 1]
    assert set(seen) < set(MEASURES)
    # A run in which the measure has no range shows another one.
    ranks = RankMap(thirty_two_ranks(slow_rank=("5=1.5",)), "wait")
    ranks.show(seed())
    assert ranks.measure in seen


def test_the_map_opens_at_the_slow_rank_and_names_it() -> None:
    model = SummaryModel(thirty_two_ranks(slow_rank=("21=1.5",)))
    assert isinstance(model.side_panel, RankMap)
    assert model.side_panel.measure == "computing"
    assert model.cursor(MAP) == (0, 1)
    model.panel = MAP
    assert "rank 21, stage 1, dp 1 tp 1: " in text_of(draw(model, 80, 24, BLOCKS, ""))
    target = model.target()
    assert target is not None
    (track,) = [track for track in model.results.tracks if track.track_id == target.track_id]
    assert list(track.ranks) == [21]


def test_the_columns_have_the_stage_of_the_most_extreme_rank() -> None:
    slow = seed(slow_rank=("1000=1.5",))
    for width in (22, 30, 60):
        lines = RankMap(slow).lines(width, 20, (0, 0), BLOCKS, False)
        assert lines[1][1][0] == "█" or "█" in text_of(lines[1:2])


@pytest.mark.parametrize("colours", ["256", "standard", None])
def test_heights_have_colours_beside_them_where_there_are_256(colours: str | None) -> None:
    lines = RankMap(seed()).lines(60, 10, (0, 0), BLOCKS, False)
    roles = {text: role for text, role in lines[1] if text in BLOCKS.heat[1:]}
    assert len(set(roles.values())) == len(roles) > 3
    by_role = styles(colours)
    shown = {by_role[role].color for role in roles.values()}
    assert (len(shown) == len(roles)) == (colours != "standard")
    # The legend has the colours of its heights.
    assert {part for part in lines[-1] if part[0].strip() in roles} <= {
        (f"{text} ", role) for text, role in roles.items()
    }
