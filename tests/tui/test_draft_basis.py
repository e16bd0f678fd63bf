"""What a key makes of the form depends on the draft alone, not on whether the run before has ended."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.simulation import Simulation, simulate
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import run, two_stages
from tests.tui.screen_reading import press, run_over, screen_rows
from tests.tui.test_parameter_form import open_field
from tui.frame import text_of
from tui.parameters.fields import fields_for
from tui.parameters.form_context import make_draft_context
from tui.parameters.view import ParametersView
from tui.session import Session

A100 = ("switch:8:330:500", "switch:128:25:1000")


@cache
def small_run() -> Simulation:
    """A run that takes a few ms."""
    return run(two_stages()).simulation


async def test_keys_that_come_at_once_make_what_they_make_one_by_one(make_app: MakeApp) -> None:
    drafts = []
    for slow in (False, True):
        app = make_app()
        async with app.run_test(size=(120, 36)) as pilot:
            view = await open_field(pilot, "cluster")
            view.action_scrub(1, False)
            if slow:
                await run_over(pilot)
            # Between these no run can end.
            view.action_move(1)
            view.action_move(1)
            view.action_scrub(1, False)
            await run_over(pilot)
            drafts.append(app.session.draft)
    assert drafts[0] == drafts[1] == Parameters(cluster="a100-8", dim=A100)


async def test_a_draft_that_cannot_be_run_shows_its_own_cluster(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await open_field(pilot, "schedule")
        await press(pilot, "l")
        await run_over(pilot)
        assert app.session.error.startswith("--schedule interleaved needs")
        await open_field(pilot, "cluster")
        await press(pilot, "l")
        await run_over(pilot)
        rows = "\n".join(screen_rows(app))
        assert "dim 0  bandwidth      300" in rows
        await open_field(pilot, "dim 1  bandwidth")
        await press(pilot, "l")
        assert app.session.draft.dim == ("switch:8:300:500", "switch:128:27.5:1000")


MOVES = st.tuples(
    st.sampled_from(
        ["world", "tp", "pp", "schedule", "microbatches", "virtual stages", "dialect", "cluster", "network",
         "dim 0  bandwidth", "dim 1  latency", "dim 2  bandwidth", "dim 1  algorithm", "local mem bw",
         "splits", "nic", "endpoint delay"]
    ),
    st.sampled_from(["-", "+", "--", "++", "as opened"]),
    st.booleans(),
)  # fmt: skip


def moved(parameters: Parameters, near: Simulation, opened: Simulation, label: str, move: str) -> Parameters:
    """What a key on a field makes of a draft while `near` is the run on the screen."""
    basis = make_draft_context(near.setup.with_parameters(parameters), near)
    field = next((one for one in fields_for(basis) if one.label == label), None)
    if field is None:
        return parameters
    try:
        if move == "as opened":
            return replace(parameters, **field.reset(basis, opened))
        return replace(parameters, **field.scrubbed(basis, 1 if "+" in move else -1, len(move) == 2))
    except UsageError:
        return parameters


@settings(max_examples=150)
@given(st.lists(MOVES, max_size=6))
@example([("pp", "-", False), ("schedule", "+", False)])
@example([("world", "++", False), ("dim 1  latency", "+", False)])
@example([("microbatches", "++", True), ("microbatches", "as opened", False), ("microbatches", "+", False)])
@example([("cluster", "-", False), ("dim 2  bandwidth", "-", False)])
@example([("cluster", "+", False), ("dim 1  latency", "as opened", False)])
def test_any_keys_make_the_same_draft_however_fast_they_come(moves: list[tuple[str, str, bool]]) -> None:
    opened = shown = near = small_run()
    fast = slow = Parameters()
    for label, move, is_over in moves:
        fast = moved(fast, shown, opened, label, move)
        slow = moved(slow, near, opened, label, move)
        assert fast == slow
        assume((slow.world or 0) <= 64 and (slow.microbatches or 0) <= 64)
        try:
            near = simulate(two_stages(), slow)
        except (UsageError, InputError):
            continue
        if is_over:
            shown = near
        # And the form shows the same before the run and after it.
        there = make_draft_context(shown.setup.with_parameters(slow), shown)
        assert [field.label for field in fields_for(there)] == [field.label for field in fields_for(near)]
        for field in fields_for(near):
            assert field.text(there) == field.text(near), field.label


@pytest.mark.parametrize(
    "draft",
    [
        Parameters(dim=("ring:8",), algorithm=("foo", "9=ring"), cluster="no-file", world=2**40),
        Parameters(network="nothing", dialect="nothing", gpu_type="nothing"),
        Parameters(network="simai-auto", nic=1e11),
        Parameters(dim=("ring:3:1:1",), tp=3),
        Parameters(dim=("ring:2:1:1",) * 9),
    ],
)
def test_no_draft_is_too_bad_to_be_drawn(draft: Parameters) -> None:
    session = Session(run(two_stages(), network="simai-auto"))
    view = ParametersView(session, ascii_only=False)
    session.edit(session.opened.setup.with_parameters(draft))
    for width, height in ((120, 33), (80, 21)):
        assert f"{view.form.fields[view.form.cursor].label} " in text_of(view.frame(width, height))
