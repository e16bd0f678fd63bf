"""`b` on screen 5: stages that compute equally long, or why that cannot be asked."""

from __future__ import annotations

from simcore.parameters import Parameters
from simcore.replay import MeasuredResults
from simcore.replay.slow_ranks import compute_by_stage
from tests.measured.test_replay_by_hand import SLOW_RANK, SLOW_STAGE, run_of
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import press, run_over
from tui.parameters.view import ParametersView


async def test_the_stages_of_a_trace_are_balanced_and_then_are(make_app: MakeApp) -> None:
    app = make_app(MeasuredResults(run_of(SLOW_STAGE, 2, pp=2)), first="parameters")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "b")
        await run_over(pilot)
        now = app.session.current
        assert isinstance(now, MeasuredResults)
        (one,), (other,) = (list(ranks.values()) for ranks in compute_by_stage(now).values())
        assert abs(one - other) <= 2
        await press(pilot, "b")
        assert app.said == "all stages compute equally long already"


async def test_where_it_cannot_be_asked_it_is_said_and_nothing_changes(make_app: MakeApp) -> None:
    for run, why in (
        (None, "balancing is of measured stages; --stage-layout says which rows a stage runs"),
        (
            MeasuredResults(run_of(SLOW_RANK, 2)),
            "one stage alone cannot be balanced: found ranks of a single stage",
        ),
    ):
        app = make_app(run, first="parameters")
        async with app.run_test(size=(120, 36)) as pilot:
            await press(pilot, "b")
            assert app.said == why
            assert app.session.current is app.session.opened
            assert app.session.draft == Parameters()


async def test_e_leads_from_a_change_of_a_trace_to_its_factor(make_app: MakeApp) -> None:
    app = make_app(MeasuredResults(run_of(SLOW_RANK, 2)), first="why")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, "tab", "g", "e")
        view = app.current_view
        assert isinstance(view, ParametersView)
        # The greatest gain is `rank 1 as fast as its peers`.
        assert view.at.label == "rank 1"
