"""`b` on screen 5: stages that compute equally long, or why that cannot be asked."""

from __future__ import annotations

from simcore.parameters import Parameters
from simcore.replay.stragglers import compute_by_stage
from simcore.runs.measured import RecordedRun
from tests.measured.test_replay_by_hand import SLOW_RANK, SLOW_STAGE, run_of
from tests.measured.traces import read
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import press, run_over
from tui.parameters.view import BALANCED, ParametersView


async def test_the_stages_of_a_trace_are_balanced_and_then_are(make_app: MakeApp) -> None:
    app = make_app(RecordedRun(run_of(SLOW_STAGE, 2, pp=2)), first="parameters")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "tilde")
        await run_over(pilot)
        now = app.session.current
        assert isinstance(now, RecordedRun)
        (one,), (other,) = (list(ranks.values()) for ranks in compute_by_stage(now).values())
        assert abs(one - other) <= 2
        await press(pilot, "tilde")
        assert app.status_text == BALANCED


async def test_where_it_cannot_be_asked_it_is_said_and_nothing_changes(make_app: MakeApp) -> None:
    for run, why in (
        (None, "balancing is of measured stages; --stage-layout says which rows a stage runs"),
        (
            RecordedRun(run_of(SLOW_RANK, 2)),
            "one stage alone cannot be balanced: found ranks of a single stage",
        ),
    ):
        app = make_app(run, first="parameters")
        async with app.run_test(size=(120, 36)) as pilot:
            await press(pilot, "tilde")
            assert app.status_text == why
            assert app.session.current is app.session.opened
            assert app.session.draft == Parameters()


async def test_e_leads_from_a_change_of_a_trace_to_its_factor(make_app: MakeApp) -> None:
    app = make_app(RecordedRun(run_of(SLOW_RANK, 2)), first="why")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, "tab", "g", "e")
        view = app.current_view
        assert isinstance(view, ParametersView)
        # The greatest gain is `rank 1 as fast as its peers`.
        assert view.form.current_field.label == "rank 1"


async def test_the_cursor_passes_operations_that_are_called_alike(make_app: MakeApp) -> None:
    """Names that differ behind the 40th character are cut to the same words."""
    alike = "k" * 50
    text = "".join(
        f"rank:0:{alike}{number}(stage_id=0,batch_id=0,mg_state=steady,duration=1.00,description=None,"
        f"group_kind=None,input__shape=None,input__dtype=None,timestamp={1001 + number}.00,"
        "sub_operations=[])\n"
        for number in range(3)
    )
    app = make_app(RecordedRun(read(text)), first="parameters")
    async with app.run_test(size=(120, 36)) as pilot:
        view = app.current_view
        assert isinstance(view, ParametersView)
        seen = []
        for _ in range(len(view.form.fields) - 1):
            await press(pilot, "j")
            seen.append(view.form.cursor)
        assert seen == list(range(1, len(view.form.fields)))


async def test_a_step_of_no_time_is_drawn(make_app: MakeApp) -> None:
    free = Parameters(compute_scale=0.0, comm_scale=0.0, gap_scale=0.0, host_scale=0.0)
    app = make_app(RecordedRun(run_of(SLOW_RANK, 2)).with_parameters(free))
    async with app.run_test(size=(120, 36)):
        assert app.session.current.step_time_ns == 0
