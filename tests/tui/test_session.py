"""The session: one draft, and the way back and forward through its changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.parameters import Parameters
from tests.tui.made_runs import lonely, run
from tui import session as sessions
from tui.session import Session


def new_session() -> Session:
    """A session on a tiny run."""
    return Session(lonely())


def test_it_begins_with_the_run_as_opened() -> None:
    session = new_session()
    assert session.current is session.opened
    assert session.draft == session.opened.simulation.parameters
    assert (session.error, session.running) == ("", False)


def test_there_is_nothing_to_undo_or_redo_at_first() -> None:
    session = new_session()
    assert not session.undo()
    assert not session.redo()
    assert session.draft == Parameters()


def test_undo_takes_back_one_change_and_redo_makes_it_again() -> None:
    session = new_session()
    session.edit(session.opened.setup.with_parameters(Parameters(tp=2)))
    session.edit(session.opened.setup.with_parameters(Parameters(tp=4)))
    assert session.undo()
    assert session.draft == Parameters(tp=2)
    assert session.redo()
    assert session.draft == Parameters(tp=4)
    assert not session.redo()


def test_a_new_change_forgets_what_was_taken_back() -> None:
    session = new_session()
    session.edit(session.opened.setup.with_parameters(Parameters(tp=2)))
    session.undo()
    session.edit(session.opened.setup.with_parameters(Parameters(pp=2)))
    assert not session.redo()
    assert session.undo()
    assert session.draft == Parameters()


@given(st.lists(st.sampled_from([2, 3, 4, "undo", "redo"]), max_size=30))
def test_any_edits_and_undos_behave_as_a_list_with_a_place_in_it(actions: list[int | str]) -> None:
    session = new_session()
    drafts, place = [Parameters()], 0
    for action in actions:
        if action == "undo":
            assert session.undo() == (place > 0)
            place = max(place - 1, 0)
        elif action == "redo":
            assert session.redo() == (place < len(drafts) - 1)
            place = min(place + 1, len(drafts) - 1)
        else:
            session.edit(session.opened.setup.with_parameters(Parameters(tp=int(action))))
            drafts = [*drafts[: place + 1], Parameters(tp=int(action))]
            place += 1
        assert session.draft == drafts[place]
    assert session.opened is lonely()


def test_large_kept_runs_that_are_on_no_screen_give_way_the_oldest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = new_session()
    ops = session.opened.simulation.timeline.ops_simulated
    monkeypatch.setattr(sessions, "MOST_KEPT_OPS", 2 * ops)
    for scale in range(2, 7):
        session.show(run(session.opened.setup.source, compute_scale=float(scale)))
        session.keep()
    # Runs 6 and 5 are on the screen and a key away, 4 and 3 have room, the one as opened always stays.
    assert [one.results is not None for one in session.history] == [True, False, True, True, True, True]
    assert session.history[1].step_ns is not None
    assert session.runs == [one.results for one in session.history if one.results is not None]
    again = run(session.opened.setup.source, compute_scale=2.0)
    session.show(again)
    assert session.history[1].results is again
    assert [one.results is not None for one in session.history] == [True, True, False, True, True, True]
