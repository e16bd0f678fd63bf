"""What wltui 0.1 has saved is read by this version: a session of a workload, one of a trace, parameters."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from simcore.parameter_values.parameters_file import read_parameters
from simcore.parameters import Parameters, RunInput
from simcore.runs import open_run
from simcore.sources import inputs
from tests.tui.conftest import MakeApp
from tests.tui.pseudo_terminal import ROOT
from tests.tui.screen_reading import press, run_over, screen_text
from tui.app import WltuiApp
from tui.session import Session
from tui.state.files import session_path
from tui.state.keeper import SessionFile, open_keeper

SAVED = ROOT / "fixtures/saved"


def left(name: str, saved: str, monkeypatch: pytest.MonkeyPatch, state: Path) -> tuple[Session, SessionFile]:
    """A fixture opened, with the session file that the version before has left of it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    path = str(ROOT / "fixtures" / name)
    place = Path(session_path(path))
    place.parent.mkdir(parents=True)
    shutil.copy(SAVED / saved, place)
    session = Session(open_run(RunInput(inputs.open_input(path), Parameters())))
    keeper = open_keeper(path, "", session, False)
    assert keeper is not None
    return session, keeper


async def test_the_session_of_a_workload(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_app()
    name = "000_gpt13b_tp4_old_header.txt"
    session, keeper = left(name, "session_of_a_workload.json", monkeypatch, tmp_path)
    assert keeper.notice == "restored: run 2 of 2; x shows run 1, as opened; --no-session starts fresh"
    assert [(run.name, run.parameters) for run in session.history] == [
        ("", Parameters()), ("big", Parameters(tp=8)),
    ]  # fmt: skip
    app = WltuiApp(session, first=keeper.screen, keeper=keeper)
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        assert session.current.parameters == Parameters(tp=8)
        assert session.current.step_time_ns == 556_140_562
        # What the row says of x holds.
        await press(pilot, "x")
        assert session.current is session.opened
        await press(pilot, "x")
        assert session.current.step_time_ns == 556_140_562
        # The streams were unfolded.
        assert "grad_param_comm" in screen_text(app)
        assert "compute" in screen_text(app)


async def test_the_session_of_a_trace(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_app()
    name = "004_megatron_rank7_trace.txt"
    session, keeper = left(name, "session_of_a_trace.json", monkeypatch, tmp_path)
    assert keeper.notice == "restored: draft after run 1; x shows run 1, as opened; --no-session starts fresh"
    app = WltuiApp(session, first=keeper.screen, keeper=keeper)
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        assert session.current.parameters == Parameters(
            compute_scale=1.2, comm_scale=0.9, gap_scale=0.5, host_scale=1.1,
            layer_scale=("backward_step=0.9",), kind_scale=("embedding=0.25",),
            slow_rank=("7=0.75",), stage_scale=("3=1.5",),
        )  # fmt: skip
        assert session.current.figures.kind == "replayed"
        assert session.error == ""


def test_a_file_of_parameters() -> None:
    assert Parameters(**read_parameters(str(SAVED / "parameters.toml"))) == Parameters(
        tp=8, schedule="gpipe", compute_scale=0.9, layer_scale=("mlp:fwd=0.5",), slow_rank=("3=1.5",)
    )
