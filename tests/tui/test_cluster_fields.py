"""The form's fields of the cluster: presets to scrub through, files to type, what is not given."""

from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.records import asdict
from simcore.simulation import Simulation, simulate
from simcore.workload import open_workload
from tests.tui.test_parameter_fields import drafted
from tui.parameters.fields import FROM_USER, FormField, fields_for
from tui.parameters.form_context import FormContext

SEED = str(Path(__file__).parents[2] / "fixtures" / "002_gpt_1024npu.txt")


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return simulate(open_workload(SEED), Parameters(world=128, tp=8, pp=1, microbatches=1))


def plain(near: Simulation, **values: Any) -> FormContext:
    """A draft with these parameters alone."""
    return drafted(near, **asdict(Parameters(**values)))


def field(simulation: Simulation, label: str) -> FormField:
    return next(one for one in fields_for(simulation) if one.label == label)


def test_what_is_not_given_is_shown_as_the_run_has_it(simulation: Simulation) -> None:
    values = {
        "cluster": "none", "system": "none", "splits": "1", "active chunks": "1", "endpoint delay": "10",
        "local mem bw": "3350", "optimization": "localBWAware",
    }  # fmt: skip
    shown = {label: field(simulation, label).text(simulation) for label in values}
    assert shown == values


def test_presets_are_scrubbed_through_and_take_changed_dimensions_away(simulation: Simulation) -> None:
    cluster = field(simulation, "cluster")
    basis = plain(simulation, dim=("ring:8:1:1",))
    names = []
    for _ in range(6):
        basis = drafted(basis, **cluster.scrubbed(basis, 1, False))
        names.append(basis.setup.parameters.cluster)
        assert basis.setup.parameters.dim == ()
    assert names == ["a100-8", "h200-8", "b200-8", "gb200-nvl72", "tpu-v4", "h100-8"]


def test_resetting_the_cluster_gives_its_dimensions_back() -> None:
    dims = ("switch:8:100:5", "switch:16:10:50")
    workload = open_workload(SEED)
    opened = simulate(workload, Parameters(world=128, tp=8, pp=1, microbatches=1, dim=dims))
    cluster = field(opened, "cluster")
    changed = drafted(opened, **cluster.scrubbed(opened, 1, False))
    assert changed.setup.parameters.dim == ()
    assert drafted(changed, **cluster.reset(changed, opened)).setup.parameters == opened.parameters


def test_a_dimension_that_the_cluster_as_opened_has_not_is_shown_and_not_reset(
    simulation: Simulation,
) -> None:
    torus = simulate(simulation.workload, Parameters(world=128, tp=8, pp=1, microbatches=1, cluster="tpu-v4"))
    third = field(torus, "dim 2  latency")
    assert third.text(torus) == "500"
    assert third.text(simulation) == "none"
    with pytest.raises(UsageError, match="dim 2  latency: this cluster has 2 dimensions"):
        third.reset(torus, simulation)


def test_a_file_is_typed_and_none_takes_it_back(simulation: Simulation) -> None:
    for label in ("cluster", "system"):
        one = field(simulation, label)
        given = plain(simulation, **one.parse_text(plain(simulation), "some/file"))
        assert getattr(given.setup.parameters, label) == "some/file"
        assert drafted(given, **one.parse_text(given, "none")).setup.parameters == Parameters()
    with pytest.raises(UsageError, match=r"--system: type the name of a file"):
        field(simulation, "system").scrubbed(plain(simulation), 1, False)


def test_chunks_are_scrubbed_from_one_up(simulation: Simulation) -> None:
    splits = field(simulation, "splits")
    assert splits.scrubbed(plain(simulation), 1, False) == {"splits": 2}
    assert splits.scrubbed(plain(simulation, splits=4), 1, True) == {"splits": 8}
    assert splits.scrubbed(plain(simulation), -1, False) == {"splits": 1}
    with pytest.raises(UsageError, match="--splits 2048: a whole number from 1 to 1024 is expected"):
        splits.scrubbed(plain(simulation, splits=1024), 1, True)


def test_a_window_is_typed_and_scrubbing_goes_on_from_the_first_choice(simulation: Simulation) -> None:
    algorithm = field(simulation, "dim 0  algorithm")
    given = plain(simulation, **algorithm.parse_text(plain(simulation), "direct4"))
    assert given.setup.parameters.algorithm == ("0=direct4",)
    assert algorithm.scrubbed(given, 1, False) == {"algorithm": ("0=ring",)}
    with pytest.raises(UsageError):
        algorithm.parse_text(plain(simulation), "direct0")


def test_what_a_field_gives_marks_no_other_as_given(simulation: Simulation) -> None:
    """One figure of a dimension is a list of all dimensions on the command line.

    Planted: each dimension is given where the list is; found by the bandwidth and by the latency.
    """
    basis = plain(simulation)
    fields = fields_for(basis)
    tried = set()
    for changed in fields:
        try:
            values = changed.scrubbed(basis, 1, False)
        except UsageError:
            continue
        after = drafted(basis, **values)
        given = {one.label for one in fields if one.origin(after) == FROM_USER}
        assert given <= {changed.label}, changed.label
        tried |= given
    assert {
        "dim 0  bandwidth",
        "dim 1  latency",
        "dim 0  algorithm",
        "tp",
        "splits",
        "compute scale",
    } <= tried


def test_a_figure_that_is_typed_in_a_list_of_dimensions_is_given_alone(simulation: Simulation) -> None:
    basis = plain(simulation, cluster="h100-8")
    dims = [one.flag() for one in basis.cluster.dims]
    after = drafted(basis, dim=(dims[0], dims[1].rpartition(":")[0] + ":77"))
    origins = {one.label: one.origin(after) for one in fields_for(after) if one.option == "--dim"}
    assert origins.pop("dim 1  latency") == FROM_USER
    assert {*origins.values()} == {"preset"}
    # Other sizes: then each figure is of another dimension.
    shapes = drafted(basis, dim=("switch:4:450:500", "switch:32:50:1000"))
    assert {one.origin(shapes) for one in fields_for(shapes) if one.option == "--dim"} == {FROM_USER}
    # The preset stays assumed where one of its figures is given.
    cluster = field(simulation, "cluster")
    assert cluster.origin(plain(simulation, dim=after.setup.parameters.dim)) == cluster.origin(
        plain(simulation)
    )


def test_a_file_of_a_cluster_is_the_source_of_what_it_states(simulation: Simulation, tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('dim = ["switch:8:450:500", "switch:16:50:1000"]\nsplits = 4\n')
    of_file = plain(simulation, cluster=str(file))
    origins = {one.label: one.origin(of_file) for one in fields_for(of_file)}
    assert (origins["splits"], origins["dim 0  latency"]) == ("the file", "the file")
    assert (origins["active chunks"], origins["endpoint delay"]) == ("default", "default")
