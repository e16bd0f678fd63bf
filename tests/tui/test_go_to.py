"""`/` and `:` go to a time, a share of the step, a step, a rank, a stage or a micro-batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import seed
from tests.tui.screen_reading import press
from tui.timeline.jumps import find_position
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.view import TimelineView

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def position(model: TimelineModel, text: str) -> tuple[int | None, str]:
    return find_position(model, parse_query(text))


@given(st.integers(0, 10**18), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " "]), st.booleans())
def test_a_time_in_any_unit_is_that_time(ns: int, unit: str, gap: str, says_at: bool) -> None:
    figure = f"{ns / UNITS[unit]:.9f}" if UNITS[unit] > 1 else str(ns)
    query = parse_query(f"{'at ' if says_at else ''}{figure}{gap}{unit}")
    assert query.at_ns is not None
    assert abs(query.at_ns - ns) <= max(1, ns >> 50)
    assert not query.words
    assert query.rank is None


@pytest.mark.parametrize("text", ["step", "optimizer step", "at", "120%", "> 7.5 s", "7", "2 sends"])
def test_what_has_no_unit_is_no_time(text: str) -> None:
    assert not parse_query(text).has_position


def test_shares_and_times_are_of_the_step_and_what_is_past_it_is_refused() -> None:
    model = TimelineModel(seed())
    step_ns = model.window.step_ns
    assert position(model, "50%") == position(model, "at 50 %") == (round(step_ns / 2), "")
    assert position(model, "100%") == (step_ns - 1, "")
    assert position(model, "step 1") == (0, "")
    for text in (f"{step_ns} ns", "20 s", "step 2", "step 0"):
        at, problem = position(model, text)
        assert at is None
        assert problem


def test_a_step_begins_where_the_one_before_ends() -> None:
    workload = open_workload("fixtures/000_gpt13b_tp4_old_header.txt")
    run = SimulatedRun(simulate(workload, Parameters(world=8, pp=2, microbatches=2, steps=3)))
    model = TimelineModel(run)
    ends = run.figures.origin.step_end_ns
    assert [position(model, f"step {step}")[0] for step in (1, 2, 3)] == [0, *ends[:2]]
    assert position(model, "step 4")[0] is None


async def test_both_prompts_go_there(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        view = app.current_view
        assert isinstance(view, TimelineView)
        model = view.model
        await press(pilot, "slash", *"7.5s", "enter")
        assert model.cursor_ns == 7_500_000_000
        await press(pilot, "colon", *"50%", "enter")
        assert model.cursor_ns == round(model.window.step_ns / 2)
        await press(pilot, "colon", *"mb 12", "enter")
        assert model.search is not None
        assert model.search.query.microbatch == 12
        # With a rank its lane is the one, with a word the first match from there on.
        await press(pilot, "slash", *"rank 77 at 2 s", "enter")
        assert (model.rank, model.cursor_ns) == (77, 2_000_000_000)
        await press(pilot, "slash", *"forward 3 s", "enter")
        assert 3_000_000_000 <= model.cursor_ns < 3_500_000_000
        await press(pilot, "slash", *"20 s", "enter")
        assert 3_000_000_000 <= model.cursor_ns < 3_500_000_000
        assert "20" in model.notice
        # A filter has no position.
        await press(pilot, "backslash", *"7.5s", "enter")
        assert not model.filter.is_on
