"""`--overlap-tp`: collectives of tensor parallelism in pieces beside products, as docs/models.md has it."""

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.model.maker import ModelMaker
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, PHASES, STREAMS, CollectiveCost
from simcore.runs.simulated import SimulatedRun
from simcore.setup import Setup
from simcore.simulation import Simulation, simulate
from simcore.sweeping.bound import Bounds
from simcore.sweeping.space import Candidate
from simcore.sweeping.step_time import StepTimes
from simcore.workload import Cells, Header, Workload
from simcore.workload.model import ModelParameters, SplitCell, StageRows
from tests.model.test_megatron import EXPERTS, SMALL, run


def one_cell(collective: str, size: int, pieces: bool = True) -> Simulation:
    """A row on four ranks: 10 ns, products of 400, 30 ns; its collective takes 3/4 ns a byte."""
    none: list[Any] = [None, None, None]
    nothing = Cells(array("q", [0, 0, 0]), none, none, array("q", [0, 0, 0]), set())
    forward = Cells(
        array("q", [0, 440, 0]), [None, collective, None], [None, "tp", None], array("q", [0, size, 0]), set()
    )
    workload = Workload(
        "by hand", "model", "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "simai",
        Header(tp=4, ep=1, pp=1, ga=1, all_gpus=4, vpp=1), ["embedding_layer", "layer", "final_layer"],
        array("q", [1, 2, 3]), forward, nothing, nothing, array("q", [100] * 3), None,
        stages=(StageRows((), ((0, 1, 2),)),),
        split_cells={("fwd", 1): SplitCell(4, 10, 400)} if pieces else {},
    )  # fmt: skip
    return simulate(workload, Parameters(dim=("switch:4:1:0",), endpoint_delay=0, local_mem_bw=1e12))


def spans(simulation: Simulation, stream: str) -> list[tuple[int, int]]:
    ops, start, end = simulation.timeline.columns(0)
    return sorted((start[op], end[op]) for op, lane in enumerate(ops.stream) if STREAMS[lane] == stream)


def test_a_gather_by_hand() -> None:
    """Three pieces of 100 ns: the first product is of the own share, each other waits for its piece."""
    found = one_cell("ALLGATHER", 400)
    assert spans(found, "tp") == [(10, 110), (110, 210), (210, 310)]
    assert spans(found, "compute") == [(0, 10), (10, 110), (110, 210), (210, 310), (310, 410), (410, 440)]
    slow = one_cell("ALLGATHER", 1200)
    assert spans(slow, "tp") == [(10, 310), (310, 610), (610, 910)]
    assert spans(slow, "compute") == [(0, 10), (10, 110), (310, 410), (610, 710), (910, 1010), (1010, 1040)]
    assert SimulatedRun(slow).accounts[0].exposed_ns()["tp"] == 600
    assert one_cell("ALLGATHER", 1200, pieces=False).step_time_ns == 1340


def test_a_reduce_scatter_by_hand() -> None:
    """What the rank keeps is multiplied last, and what follows waits for the last piece."""
    found = one_cell("REDUCESCATTER", 400)
    assert spans(found, "tp") == [(110, 210), (210, 310), (310, 410)]
    assert spans(found, "compute") == [(0, 10), (10, 110), (110, 210), (210, 310), (310, 410), (410, 440)]
    slow = one_cell("REDUCESCATTER", 1200)
    assert spans(slow, "tp") == [(110, 410), (410, 710), (710, 1010)]
    assert spans(slow, "compute")[-2:] == [(310, 410), (1010, 1040)]
    assert slow.step_time_ns == 1040


def test_one_piece_is_the_ranks_own() -> None:
    """Of tp pieces tp - 1 are sent, and together they take what the whole takes."""
    found = run(SMALL, gpu="h100", world=4, tp=4, sequence_parallel="on", overlap_tp=True)
    ops, start, end = found.timeline.columns(0)
    whole = run(SMALL, gpu="h100", world=4, tp=4, sequence_parallel="on")
    others, other_start, other_end = whole.timeline.columns(0)
    taken: dict[tuple[int, int], list[int]] = {}
    for op, lane in enumerate(ops.stream):
        cost = found.program.costs[ops.cost[op]]
        if lane != COMPUTE and isinstance(cost, CollectiveCost) and cost.split_count > 1:
            assert cost.split_count == 3
            taken.setdefault((ops.row[op], ops.phase[op]), []).append(end[op] - start[op])
    expected = {
        (others.row[op], others.phase[op]): other_end[op] - other_start[op]
        for op, lane in enumerate(others.stream)
        if lane != COMPUTE
    }
    assert taken
    assert all(len(ones) == 3 and sum(ones) == expected[key] for key, ones in taken.items())


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    pick = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    tp, dp, pp = pick(2, 4, 8), pick(1, 2), pick(1, 2)
    return {
        "world": tp * dp * pp, "tp": tp, "pp": pp, "global_batch": dp * pick(2, 4), "gpu": "h100",
        "sequence_parallel": "on", "recompute": pick("none", "selective", "full"),
        "dim": (f"switch:8:{pick(3, 30, 300)}:{pick(0, 2500)}", "switch:8:50:1000"),
        "seq": pick(128, 2048), "comm_scale": pick(1.0, 0.7), "zero": pick("0", "1"),
    }  # fmt: skip


@given(layouts(), st.sampled_from([SMALL, EXPERTS]))
@settings(max_examples=40, deadline=None)
def test_what_stays_exposed_is_between_its_bounds(given: dict[str, Any], model: Any) -> None:
    """Not less than what a product cannot hide, not more than without; compute is the same, to the ns."""
    without, found = (run(model, **given, overlap_tp=on) for on in (False, True))
    assert found.step_time_ns <= without.step_time_ns
    before, after = SimulatedRun(without), SimulatedRun(found)
    for number, stage_class in enumerate(found.timeline.classes):
        ops, start, end = found.timeline.columns(number)
        # By cell that ran in pieces: what its product took, and its collective.
        products: dict[tuple[int, int, int], int] = {}
        taken: dict[tuple[int, int, int], int] = {}
        for op in range(len(ops)):
            cost = found.program.costs[ops.cost[op]]
            if isinstance(cost, CollectiveCost) and cost.whole_bytes:
                key = (ops.row[op], ops.phase[op], ops.microbatch[op])
                phase = "ig" if PHASES[ops.phase[op]] == "ig" else "fwd"
                products[key] = found.workload.split_cells[phase, ops.row[op]].product_ns
                taken[key] = taken.get(key, 0) + end[op] - start[op]
        hidden = sum(min(ns, taken[key]) for key, ns in products.items())
        exposed = [one.accounts[number].exposed_ns()["tp"] for one in (before, after)]
        assert exposed[0] - hidden <= exposed[1] <= exposed[0]
        assert products
        computed = [sum(one.accounts[number].compute_ns().values()) for one in (before, after)]
        assert computed[0] == computed[1]
        assert sum(after.accounts[number].total_ns) == found.step_time_ns
        assert stage_class.stage == without.timeline.classes[number].stage


@given(layouts(), st.sampled_from([SMALL, EXPERTS]))
@settings(max_examples=15, deadline=None)
def test_a_sweep_has_the_same_steps_and_no_bound_above_them(given: dict[str, Any], model: Any) -> None:
    parameters = Parameters(**given, overlap_tp=True)
    maker = ModelMaker(model.name, model)
    step_ns = run(model, **given, overlap_tp=True).step_time_ns
    assert StepTimes().find_step_time(Setup(maker.empty_workload(), parameters)).step_time_ns == step_ns
    training = maker.make_rows(parameters.part(ModelParameters)).training
    assert Bounds(maker.empty_workload()).find_bound_ns(Candidate(0, parameters), training) <= step_ns


@given(layouts())
@settings(max_examples=15, deadline=None)
def test_folding_is_exact_with_pieces(given: dict[str, Any]) -> None:
    folded, every = (run(SMALL, **given, overlap_tp=True, no_fold=apart) for apart in (False, True))
    for rank in range(folded.layout.world):
        ours = folded.timeline.folding.class_of(rank)
        assert folded.timeline.columns(ours)[1:] == every.timeline.columns(rank)[1:]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tp": 1}, "found tp 1; --tp 2 or more with --sequence-parallel on would fit"),
        ({"tp": 2}, "found --sequence-parallel off; --sequence-parallel on would fit"),
        (
            {"tp": 2, "sequence_parallel": "on", "network": "links"},
            "network links has no pieces of collectives; analytical, shared and simai-auto would fit",
        ),
    ],
)
def test_what_does_not_go_together_says_what_would(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(SMALL, gpu="h100", world=4, overlap_tp=True, **given)
    assert words in str(caught.value)
