"""What if one thing were different: what a change does not name is equal in both runs' `Setup`.

Seen to fail on these bugs, planted one at a time: half the bandwidth without the world of the run; another
bandwidth without the memory and the algorithms of the network that comes with a GPU, as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import simcore.simulation
from simcore.analysis.assumption_effects import LAYOUT_ASSUMED, WEIGHED_CODES
from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from simcore.program.overrides import OverrideParameters
from simcore.records import asdict, replace
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate, simulate_setup
from simcore.trace.findings import WhatIf
from simcore.workload import open_workload
from tests.analysis.test_sentences import of_experts, of_model
from tests.engine.test_folding_with_overrides import overridden
from tests.strategies import Case, cases

# By what a change names, what else follows from it: twice the micro-batches are twice the batch.
FOLLOWS = {
    "microbatches": {"global_batch"},
    "microbatch_size": {"microbatches"},
    "schedule": {"virtual_stages"},
    "without_lines": {"microbatches"},
    "pp": {"microbatches", "virtual_stages"},
    "world": {"dim"},
    # Gradients in one piece have no buckets.
    "overlap_grad_reduce": {"bucket_size"},
}
DEGREES = {"world", "tp", "cp", "ep", "pp", "etp", "shard_size"}
CHANGES_ROWS = {"without_lines", "rescale", "with other rows"}


def facts(run: Simulation) -> Iterator[tuple[str, set[str], Any]]:
    """What a setup comes to, as (what, the parameters that state it, value)."""
    setup, program, maker = run.setup, run.program, run.workload.maker
    yield "layout", DEGREES, asdict(setup.layout)
    yield "rules", {"dialect", "network"}, (setup.rules.dialect, setup.rules.network)
    for name, value in asdict(setup.network).items():
        yield f"network: {name}", {name}, value
    for index, dimension in enumerate(setup.cluster.dims):
        for name, value in asdict(dimension).items():
            yield f"{name} of dimension {index}", {"dim", f"dim {index} {name}"}, value
    yield (
        "cluster",
        {"cluster", "algorithm"},
        replace(setup.cluster, dims=(), algorithms=(), by_collective=()),
    )
    yield "algorithms", {"cluster", "algorithm"}, (setup.cluster.algorithms, setup.cluster.by_collective)
    yield "schedule", {"schedule"}, program.schedule
    yield "virtual stages", {"virtual_stages"}, program.virtual_stages
    yield "micro-batches", {"microbatches"}, program.microbatches
    for name, value in asdict(setup.schedule).items():
        if name not in ("schedule", "virtual_stages", "microbatches", "explicit_names"):
            yield name, {name}, value
    for name, value in asdict(setup.parameters.part(OverrideParameters)).items():
        yield name, {name}, value
    if maker is not None:
        for name, value in maker.values(setup.model).items():
            yield name, {name}, value
    else:
        rows = run.workload
        columns = [[*cells.compute_ns, *cells.bytes] for cells in (rows.fwd, rows.ig, rows.wg)]
        yield "rows", CHANGES_ROWS, (rows.name, columns, rows.header.pp_comm)


def assert_one_thing(run: Simulation, other: Simulation, names: set[str]) -> None:
    """What no name states is equal in both runs."""
    moved = names.union(*(FOLLOWS.get(name, set()) for name in names))
    for (what, stated_by, value), (_, _, then) in zip(facts(run), facts(other), strict=True):
        if not stated_by & moved:
            assert then == value, f"{what}, changed by {sorted(names)}"


def find_names(run: Simulation, row: WhatIf) -> set[str]:
    """What the row says that it changes: of a knob by its name, of a change by its flags."""
    words = row.name.split()
    if row.list == "sensitivity" and words[0] == "dimension":
        return {f"dim {words[1]} {'latency_ns' if words[2] == 'latency' else words[2]}"}
    if row.list == "sensitivity":
        return {"time_scale"}
    flags = {word[2:].partition("=")[0].replace("-", "_") for word in row.flags.split() if word[:2] == "--"}
    # A slow rank as fast as its peers is named in words.
    return flags | ({"slow_rank"} if "as fast as its peers" in row.name else set())


def check_rows(run: SimulatedRun) -> int:
    rows = run.what_if()
    for row in rows:
        assert row.parameters is not None
        other = simulate_setup(run.simulation.setup.with_parameters(row.parameters))
        assert_one_thing(run.simulation, other, find_names(run.simulation, row))
    return len(rows)


# By code of an assumption, what its alternative names.
ALTERNATIVES = {
    "cluster-default": {f"dim {index} bandwidth" for index in range(4)},
    "all-gpus-missing": {"world"},
    "pp-comm-missing": {"with other rows"},
    "backward-unsent": {"with other rows"},
    LAYOUT_ASSUMED: {"stage_layout"},
}


def check_alternatives(run: SimulatedRun, patch: pytest.MonkeyPatch) -> set[str]:
    """The codes whose alternative was another simulation."""
    others: list[Simulation] = []
    plain = simcore.simulation._simulate

    def simulate_and_list(*arguments: Any) -> Simulation:
        others.append(plain(*arguments))
        return others[-1]

    codes = set()
    with patch.context() as patched:
        patched.setattr(simcore.simulation, "_simulate", simulate_and_list)
        for code in {one.code for one in run.diagnostics} & {*WEIGHED_CODES, LAYOUT_ASSUMED}:
            others.clear()
            run._find_otherwise_ns(code, lambda: False)
            for other in others:
                codes.add(code)
                assert_one_thing(run.simulation, other, ALTERNATIVES[code])
    return codes


def with_less_stated(case: Case, world: bool, cluster: str | None, transfers: bool) -> Case:
    """A case whose file and flags leave to assumption what they state."""
    header = case.workload.header
    if not world:
        header = replace(header, all_gpus=None)
    if not transfers:
        header = replace(header, pp_comm=None)
    parameters = replace(case.parameters, dim=(), slow_link=(), cluster=cluster)
    return Case(replace(case.workload, header=header), parameters)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    overridden() | cases(),
    st.booleans(),
    st.sampled_from([None, None, "b200-8", "fixtures/inputs/two_by_two.yml"]),
    st.booleans(),
)
def test_what_a_change_does_not_name_is_equal_in_both_runs(
    case: Case, world: bool, cluster: str | None, transfers: bool
) -> None:
    case = with_less_stated(case, world, cluster, transfers)
    try:
        run = SimulatedRun(simulate(*case))
    except (InputError, UsageError):
        # The assumed world lacks a slow rank, or ep does not divide it.
        reject()
    check_rows(run)
    with pytest.MonkeyPatch.context() as patch:
        check_alternatives(run, patch)


MODELS_OF_RUNS: dict[str, dict[str, Any]] = {
    "small": {"world": 4, "tp": 2, "pp": 2},
    "its GPU's network": {"world": 16, "tp": 4, "pp": 2, "gpu": "b200", "sequence_parallel": "on"},
    "its own cluster": {"world": 16, "tp": 4, "pp": 2, "gpu": "b200", "cluster": "a100-8"},
    "a chosen algorithm": {"world": 16, "gpu": "h200", "algorithm": ("all-reduce:1=direct",)},
}


@pytest.mark.parametrize("of", MODELS_OF_RUNS)
def test_a_change_of_a_model_leaves_what_it_does_not_name(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = SimulatedRun(of_model(**MODELS_OF_RUNS[of]))
    assert check_rows(run) > 10
    check_alternatives(run, monkeypatch)


@pytest.mark.slow
def test_a_change_of_uneven_experts_leaves_what_it_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SimulatedRun(of_experts("lognormal:0.5"))
    assert check_rows(run) > 10
    check_alternatives(run, monkeypatch)


@pytest.mark.parametrize("name", ["no_all_gpus", "no_all_gpus_micro"])
def test_half_the_bandwidth_keeps_a_world_that_the_file_does_not_state(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = simulate(open_workload(f"fixtures/inputs/{name}.txt"), Parameters())
    run, layout = SimulatedRun(simulation), simulation.layout
    assert check_rows(run)
    check_alternatives(run, monkeypatch)
    run.weigh_assumptions()
    stated = Parameters(dim=tuple(replace(dim, bandwidth=dim.bandwidth / 2).exact_flag()
                        for dim in simulation.cluster.dims), world=layout.world)  # fmt: skip
    half = simulate(simulation.workload, stated).step_time_ns
    assert run._effects["cluster-default"].ns == half
    if layout.world == 1:
        assert half == run.step_time_ns
