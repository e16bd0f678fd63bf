"""What each layer computes of the mean rank, as sentences and places have it."""

from hypothesis import given, settings

from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.words.sentences.model import RunSums
from tests.analysis.booking import run
from tests.strategies import Case, cases, layer, make_workload


@settings(max_examples=40)
@given(cases())
def test_compute_by_layer_is_all_compute_of_the_mean_rank(case: Case) -> None:
    facts = RunSums(SimulatedRun(simulate(*case)))
    layers = facts.layer_compute_ns
    # Rounded for each layer; ranks that differ by less than a 500th count as alike.
    slack = len(layers) + facts.mean_busy_ns // 400
    assert abs(sum(layers.values()) - facts.mean_busy_ns) <= slack


def test_a_slow_rank_does_not_lend_its_share_to_the_mean_rank() -> None:
    """Rank 0 computes three times as long as the others: of all compute the layer has what all have."""
    workload = make_workload([layer("only_layer", 6000)], tp=1, pp=1, all_gpus=2)
    facts = RunSums(SimulatedRun(simulate(workload, Parameters(slow_rank=("0=3",)))))
    assert facts.layer_compute_ns == {"only_layer": 12_000}
    assert facts.results.layer_groups.compute_ns == [18_000]


def test_the_layer_that_computes_most_is_all_rows_of_its_name_not_the_equal_ones() -> None:
    """`mlp` has rows of two sizes: 70 of 100; each size alone is less than `att`."""
    rows = [layer("mlp_0", 15_000), layer("mlp_1", 20_000), layer("att_0", 30_000)]
    results = SimulatedRun(run(rows, {"tp": 1, "pp": 1}))
    said = next(one for one in results.sentences if one.rule == "compute-bound")
    assert "most in mlp (53.8 %)" in said.text
    worst = next(place for place in results.figures.worst_findings if place.what == "layer")
    assert worst.words == "35.000 us (53.8 %): mlp"
    # Without them the step is that much shorter.
    zero = tuple(f"mlp:{phase}=0" for phase in ("fwd", "ig", "wg"))
    assert run(rows, {"tp": 1, "pp": 1}, layer_scale=zero).step_time_ns == results.step_time_ns - 35_000
