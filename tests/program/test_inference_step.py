"""An inference step of a file (`mode: 1`): one forward pass, its layers on the stages of the run.

By hand: 8 rows of 1 ms are 8 ms on one stage; on four stages three transfers of 4,500,000 B lie between them:
10 us each at 450 GB/s, and 1 us for the two hops of a switch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.program.ops import FWD
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.workload import open_workload

FOLDER = "fixtures/inputs"


def run_of(name: str, **parameters: Any) -> Simulation:
    return simulate(open_workload(f"{FOLDER}/{name}.txt"), Parameters(**parameters))


@pytest.mark.parametrize(("name", "ns"), [("infer_pp1", 8_000_000), ("infer_pp4", 8_033_000)])
def test_all_rows_run_once_forward_and_nothing_backward(name: str, ns: int) -> None:
    simulation = run_of(name)
    assert simulation.step_time_ns == ns
    rows = [row for stage in simulation.program.stages for row in stage.ops.row if row >= 0]
    assert rows == list(range(8))
    assert {phase for stage in simulation.program.stages for phase in stage.ops.phase} == {FWD}
    names = simulation.trace.categories
    for account in SimulatedRun(simulation).accounts:
        assert account.bubble_ns == 0
        assert {names.all[one] for one in account.account} <= {"compute fwd", "exposed pp", "idle"}
    assert all(stage.peak_chunks == 1 for stage in simulation.program.stages)


@given(st.integers(1, 4), st.integers(1, 5))
def test_micro_batches_follow_each_other_through_the_stages(stages: int, microbatches: int) -> None:
    """The last one begins once the longest stage has had all before it, and goes through all stages."""
    simulation = run_of("infer_pp1", pp=stages, world=stages, microbatches=microbatches)
    layers = [4 // stages + (stage < 4 % stages) for stage in range(stages)]

    assert simulation.step_time_ns >= 2_000_000 * (sum(layers) + (microbatches - 1) * max(layers))
    sent = sum(sum(message >= 0 for message in stage.ops.message) for stage in simulation.program.stages)
    assert sent == (stages - 1) * microbatches


def test_a_schedule_with_backward_and_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(UsageError, match="forward-only"):
        run_of("infer_pp1", schedule="1f1b")
    with pytest.raises(UsageError, match="--pp 4"):
        run_of("infer_pp1", pp=8, world=8)


def stages_of(folder: Path, names: list[str], stages: int) -> list[list[int]]:
    """The rows that each stage runs of a file with rows of these names."""
    header = (
        f"model_parallel_NPU_group: 1 ep: 1 pp: {stages} all_gpus: {stages} mode: 1 vpp: 1 ga: 1 pp_comm: 8"
    )
    rows = "".join(f"{name} -1 100 NONE 0 7 ALLREDUCE 9 7 ALLREDUCE 9 100\n" for name in names)
    path = folder / "w.txt"
    path.write_text(f"HYBRID_TRANSFORMER_FWD_IN_BCKWD {header}\n{len(names)}\n{rows}")
    simulation = simulate(open_workload(str(path)), Parameters())
    return [sorted({row for row in stage.ops.row if row >= 0}) for stage in simulation.program.stages]


def test_a_stage_begins_with_a_layer_and_the_first_ones_have_one_more(tmp_path: Path) -> None:
    """Layers differ in their rows: one of a dense layer, then layers of experts."""
    names = ["attention_layer", "dense_mlp", *["gdn", "moe_route", "moe_expert", "shared_experts"] * 4]
    assert stages_of(tmp_path, names, 3) == [list(range(6)), list(range(6, 14)), list(range(14, 18))]


def test_norms_before_attention_belong_to_its_layer(tmp_path: Path) -> None:
    names = ["input_norm", "attention_layer", "post_norm", "dense_mlp"] * 2
    assert stages_of(tmp_path, [*names, "final_norm"], 2) == [list(range(4)), list(range(4, 9))]


def test_a_training_file_has_no_mode_or_another_one(tmp_path: Path) -> None:
    text = Path(f"{FOLDER}/infer_pp4.txt").read_text("utf-8")
    path = tmp_path / "w.txt"
    path.write_text(text.replace("mode: 1", "mode: 0"))
    assert not open_workload(str(path)).header.inference


def test_a_stage_is_idle_until_its_input_comes_and_after_it_has_sent_it_on() -> None:
    run = SimulatedRun(run_of("infer_pp4"))

    def words(track: int, index: int) -> str:
        return run.lanes.words.summarize(track, None, index, run.tracks[track].ranks).description

    assert "is over" in words(0, len(run.lanes.spans(0, None).start) - 1)
    before = words(3, 0)
    assert before.startswith("idle")
    assert "input" in before
