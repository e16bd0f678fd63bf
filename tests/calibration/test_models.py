"""A model fitted to a trace: one factor for each kind of its compute."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.calibration import calibrate
from simcore.diagnostics import UsageError
from simcore.model.maker import ModelMaker
from simcore.model.sizes import Model
from simcore.parameters import Parameters
from simcore.setup import Setup
from simcore.simulation import simulate
from simcore.sources.inputs import open_input
from simcore.sources.inputs import require_measured_run as measured_of_file
from tests.calibration.closed_loop import measured_of
from tests.command_line.running import ROOT
from tests.says import said
from tui.cli import main

PROFILES = ROOT.parent / "shared" / "corpus" / "kineto"
SMALL = Model("small", 4, 2048, 16, 16, 128, 8192, True, 32000, 2048, tied_embeddings=False)
OPENED = ModelMaker("small", SMALL).empty_workload()
GIVEN = Parameters(
    gpu="a100-80", world=8, tp=2, pp=2, global_batch=8, dim=("switch:8:200:1000",), cluster=None
)
FACTORS = st.floats(0.4, 3.0).map(lambda value: round(value, 3))


def scales(forward: float, backward: float, optimizer: float) -> tuple[str, ...]:
    return (
        f"*:fwd={forward}", f"*:ig={backward}", f"*:wg={backward}", f"grad_param_compute:ig={optimizer}",
    )  # fmt: skip


@pytest.mark.slow
@given(FACTORS, FACTORS, FACTORS, st.sampled_from(("none", "full", "selective")), st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_the_factor_of_each_kind_comes_back(
    forward: float, backward: float, optimizer: float, recompute: str, seed: int
) -> None:
    plain = GIVEN.with_value("recompute", recompute)
    run = measured_of(OPENED, plain.with_value("layer_scale", scales(forward, backward, optimizer)), seed)
    found = calibrate(Setup(OPENED, plain), run)
    assert found.compute.factors == pytest.approx(
        {"forward": forward, "backward": backward, "optimizer": optimizer}, rel=5e-3
    )
    assert found.after.parameters.compute_scale == 1.0
    for kind in found.kinds[:3]:
        assert kind.fitted
        assert kind.after_ns == pytest.approx(kind.measured_ns, rel=2e-3)


def test_what_was_given_is_kept_below_the_factors() -> None:
    run = measured_of(OPENED, GIVEN.with_value("layer_scale", (*scales(2.0, 1.0, 1.0), "mlp_row:fwd=3")), 1)
    found = calibrate(Setup(OPENED, GIVEN.with_value("layer_scale", ("mlp_row:fwd=1.5",))), run)
    assert found.compute.factors["forward"] == pytest.approx(2.0, rel=5e-3)
    (row,) = (text for text in found.after.parameters.layer_scale if text.startswith("mlp_row:fwd="))
    assert float(row.partition("=")[2]) == pytest.approx(3.0, rel=5e-3)


def test_a_factor_of_every_row_gives_way_to_that_of_a_name() -> None:
    def step(*words: str) -> int:
        return simulate(OPENED, GIVEN.with_value("layer_scale", words)).step_time_ns

    cells = {name for name in simulate(OPENED, GIVEN).workload.name if name != "mlp_row"}
    assert step("*:fwd=2", "mlp_row:fwd=1") == step(*(f"{name}:fwd=2" for name in sorted(cells)))
    with pytest.raises(UsageError, match="no row of the file has this name"):
        step("**:fwd=2")


@pytest.mark.parametrize("name", ["dlrm_8", "nccl_data.json.gz"])
def test_a_profiler_trace_fits_a_model(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Starting processes takes longer than reading the files.
    monkeypatch.setattr("simcore.kineto.loading._cores", lambda: 1)
    path = PROFILES / name
    if not path.exists():
        pytest.skip("../shared/corpus/kineto is not here")
    out = tmp_path / "fitted.toml"
    words = ["--model", "llama-3-8b", "--gpu", "h100", "--world", "8"]
    assert main(["calibrate", *words, str(path), "-o", str(out)]) == 0
    text = capsys.readouterr().out
    said([" ".join(text.lower().split())], "the trace", "how many micro-batches")
    found = calibrate(
        Setup(ModelMaker("small", SMALL).empty_workload(), Parameters(gpu="h100", world=8)),
        measured_of_file(open_input(str(path)), "TRACE"),
    )
    assert set(found.compute.factors) == {"forward", "backward", "optimizer"}
    # Half of the ranks' time lies on either side of what was fitted; of one rank it is the rank's.
    if found.ranks == 1:
        for kind in found.kinds[:3]:
            assert kind.after_ns == pytest.approx(kind.measured_ns, rel=2e-3)
    assert main(["report", "llama-3-8b", "--params", str(out)]) == 0
