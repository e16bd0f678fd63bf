"""The form's fields of the cluster: presets to scrub through, files to type, what is not given."""

from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.simulation import Simulation, simulate
from simcore.workload import open_workload
from tui.parameters.fields import FormField, fields_for

SEED = str(Path(__file__).parents[2] / "fixtures" / "002_gpt_1024npu.txt")


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return simulate(open_workload(SEED), Parameters(world=128, tp=8, pp=1, microbatches=1))


def field(simulation: Simulation, label: str) -> FormField:
    return next(one for one in fields_for(simulation) if one.label == label)


def test_what_is_not_given_is_shown_as_the_run_has_it(simulation: Simulation) -> None:
    values = {
        "cluster": "none", "system": "none", "splits": "1", "active chunks": "1", "endpoint delay": "10",
        "local mem bw": "3350", "optimization": "localBWAware",
    }  # fmt: skip
    shown = {label: field(simulation, label).text(simulation.parameters, simulation) for label in values}
    assert shown == values


def test_presets_are_scrubbed_through_and_take_changed_dimensions_away(simulation: Simulation) -> None:
    cluster = field(simulation, "cluster")
    parameters = Parameters(dim=("ring:8:1:1",))
    names = []
    for _ in range(6):
        parameters = cluster.scrubbed(parameters, simulation, 1, False)
        names.append(parameters.cluster)
        assert parameters.dim == ()
    assert names == ["a100-8", "h200-8", "b200-8", "gb200-nvl72", "tpu-v4", "h100-8"]


def test_resetting_the_cluster_gives_its_dimensions_back() -> None:
    dims = ("switch:8:100:5", "switch:16:10:50")
    workload = open_workload(SEED)
    opened = simulate(workload, Parameters(world=128, tp=8, pp=1, microbatches=1, dim=dims))
    cluster = field(opened, "cluster")
    changed = cluster.scrubbed(opened.parameters, opened, 1, False)
    assert changed.dim == ()
    assert cluster.reset(changed, opened) == opened.parameters


def test_a_dimension_that_the_cluster_as_opened_has_not_is_shown_and_not_reset(
    simulation: Simulation,
) -> None:
    torus = simulate(simulation.workload, Parameters(world=128, tp=8, pp=1, microbatches=1, cluster="tpu-v4"))
    third = field(torus, "dim 2  latency")
    assert third.text(torus.parameters, torus) == "500"
    assert third.text(simulation.parameters, simulation) == "none"
    with pytest.raises(UsageError, match="dim 2  latency: this cluster has 2 dimensions"):
        third.reset(torus.parameters, simulation)


def test_a_file_is_typed_and_none_takes_it_back(simulation: Simulation) -> None:
    for label in ("cluster", "system"):
        one = field(simulation, label)
        given = one.typed(Parameters(), simulation, "some/file")
        assert getattr(given, label) == "some/file"
        assert one.typed(given, simulation, "none") == Parameters()
    with pytest.raises(UsageError, match=r"--system: type the name of a file"):
        field(simulation, "system").scrubbed(Parameters(), simulation, 1, False)


def test_chunks_are_scrubbed_from_one_up(simulation: Simulation) -> None:
    splits = field(simulation, "splits")
    assert splits.scrubbed(Parameters(), simulation, 1, False).splits == 2
    assert splits.scrubbed(Parameters(splits=4), simulation, 1, True).splits == 8
    assert splits.scrubbed(Parameters(), simulation, -1, False).splits == 1
    with pytest.raises(UsageError, match="--splits 2048: a whole number from 1 to 1024 is expected"):
        splits.scrubbed(Parameters(splits=1024), simulation, 1, True)


def test_a_window_is_typed_and_scrubbing_goes_on_from_the_first_choice(simulation: Simulation) -> None:
    algorithm = field(simulation, "dim 0  algorithm")
    given = algorithm.typed(Parameters(), simulation, "direct4")
    assert given.algorithm == ("0=direct4",)
    assert algorithm.scrubbed(given, simulation, 1, False).algorithm == ("0=ring",)
    with pytest.raises(UsageError):
        algorithm.typed(Parameters(), simulation, "direct0")
