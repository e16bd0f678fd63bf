"""A workload made by hand for the eight-rank set of the corpus: what the calibration says of a real run."""

from __future__ import annotations

import pytest

from simcore.calibration import calibrate
from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.setup import Setup
from simcore.sources.inputs import open_input
from tests.strategies import Cell, Row, make_workload
from tests.workload.texts import shared_folder

# One activation of the run: 2 sequences of 2048 tokens, 5120 wide, float32.
BYTES = 2 * 2048 * 5120 * 4


def test_the_eight_rank_set_says_which_ranks_are_slow_and_what_the_link_gives() -> None:
    folder = shared_folder("corpus") / "rank_trace" / "wd8_tp2_pp4"
    measured = open_input(str(folder))
    assert isinstance(measured, MeasuredRun)
    cell = ("ALLREDUCE", "tp", BYTES)
    # A quarter of 40 layers, two all-reduces each way a layer, and the embedding's.
    layers = [
        Row(f"{name}_{layer}", Cell(9_000_000, *cell), Cell(9_000_000, *cell), Cell(9_000_000))
        for layer in range(10)
        for name in ("attention", "mlp")
    ]
    rows = [Row("embedding_layer", Cell(500_000, *cell)), *layers, Row("optimizer1", Cell(48_000_000))]
    workload = make_workload(rows, tp=2, ep=1, pp=4, all_gpus=8, pp_comm=BYTES)
    found = calibrate(Setup(workload, Parameters()), measured)
    # Six of eight ranks are alike.
    assert found.compute.after == pytest.approx(1.13, abs=0.02)
    assert [(one.rank, one.slow_rank) for one in found.off] == [
        (7, pytest.approx(2.8, abs=0.05)), (6, pytest.approx(1.4, abs=0.05))
    ]  # fmt: skip
    inner, outer = found.bandwidths
    # An all-reduce of 83.9 MB between two ranks moves them once each way: 0.66 ms at 128 GB/s.
    assert inner.by == ("tp forward", "pp forward", "pp backward")
    assert inner.after == pytest.approx(128, rel=0.03)
    assert "crosses it" in outer.why
    kinds = {one.name: one for one in found.kinds}
    assert kinds["tp backward"].why == "162 calls beside compute"
    assert kinds["embedding"].why.endswith("in the trace")
    forward = kinds["tp forward"]
    assert forward.measured_ns is not None
    assert forward.after_ns == pytest.approx(forward.measured_ns, rel=0.02)
    assert found.slowed_step_ns == pytest.approx(found.measured_step_ns, rel=0.05)
