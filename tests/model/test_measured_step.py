"""One factor fitted to one measured step."""

import json
from pathlib import Path

import pytest

from simcore.calibration.one_step import fit_step
from simcore.diagnostics import UsageError
from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.parameters import Parameters
from simcore.setup import Setup
from simcore.simulation import simulate
from tui.cli import main

OPENED = ModelMaker("llama-3-8b", MODELS["llama-3-8b"]).empty_workload()
GIVEN = Parameters(world=8, tp=2, pp=2, global_batch=8, gpu="h100")


@pytest.mark.parametrize("factor", [0.31, 0.9, 1.0, 1.07, 5.5])
def test_the_factor_of_a_step_comes_back(factor: float) -> None:
    measured_ns = simulate(OPENED, GIVEN.with_value("compute_scale", factor)).step_time_ns
    fit = fit_step(Setup(OPENED, GIVEN), measured_ns)
    assert fit.scale == pytest.approx(factor, rel=3e-4)
    assert abs(fit.left_ns) <= 2e-4 * measured_ns


def test_a_step_shorter_than_its_communication_is_refused() -> None:
    with pytest.raises(UsageError, match="communication alone takes"):
        fit_step(Setup(OPENED, GIVEN), 1000)


def test_the_command_saves_what_gives_the_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fitted.toml"
    words = ["--gpu", "h100", "--world", "8", "--tp", "2", "--global-batch", "8"]
    command = ["calibrate", "--model", "llama-3-8b", *words, "--measured-step", "1.5s", "-o", str(out)]
    assert main(command) == 0
    assert "compute scale" in capsys.readouterr().out
    assert main(["report", "--model", "llama-3-8b", "--params", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["step_time_ns"] == pytest.approx(1.5e9, rel=2e-4)
