"""A topology chooses flows by itself, however it is given, unless another network is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import simcore
from simcore.analysis.what_if.changes import make_stepper
from simcore.comparison import Comparison
from simcore.diagnostics import UsageError
from simcore.networks.flows import FlowNetwork
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.setup import Setup
from simcore.simulation import Simulation, network_fields_of, other_method, simulate, simulate_like
from simcore.trace.changes import Change
from tests.executing.test_changes import compute, opened
from tests.strategies import Cell, Row, make_workload
from tests.tui.made_runs import run
from tui.commands.collective import main as price_collective
from tui.commands.report import main as report
from tui.parameters.fields import fields_for
from tui.parameters.form_context import make_draft_context

FABRIC = "dcn:16:npa=8:psn=2"
ROWS = [Row("grads", Cell(9), Cell(9), Cell(2000, "ALLREDUCE", "dp", 1 << 20))]
SIMAI = "19 8 2 1 4 H100\n16 17 18\n" + "\n".join(
    f"{gpu} {18 if far else 16 + gpu // 8} 400Gbps 0.0005ms 0" for gpu in range(16) for far in (0, 1)
)
FILES = {
    "topo": SIMAI.replace(" 4 H100", " 32 H100"),
    "fabric.toml": f'topology = "{FABRIC}"\n',
    "graph.json": json.dumps({
        "graph": {}, "nodes": [{"id": n, "kind": "gpu" if n < 16 else "switch"} for n in range(17)],
        "links": [{"source": n, "target": 16, "gbps": 400, "latency_ns": 500} for n in range(16)],
    }),
}  # fmt: skip


@pytest.fixture
def workload(tmp_path: Path) -> str:
    """A file with a gradient of 100 kB, without a world: of 100 MB each run takes a second."""
    text = Path("fixtures/inputs/no_all_gpus.txt").read_text(encoding="utf-8")
    return written(tmp_path, "workload.txt", text.replace("100000000", "100000"))


def made(**parameters: Any) -> SimulatedRun:
    """A gradient over 16 ranks."""
    return run(make_workload(ROWS, tp=1, ep=1, pp=1, all_gpus=16), **parameters)


def setup_of(**parameters: Any) -> Setup:
    """The same before it runs."""
    return Setup(make_workload(ROWS, tp=1, ep=1, pp=1, all_gpus=16), Parameters(**parameters))


def written(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def warnings_of(simulated: SimulatedRun) -> dict[str, str]:
    return {one.code: one.message for one in simulated.diagnostics if one.severity == "warning"}


def test_a_generated_topology_runs_as_if_flows_were_named() -> None:
    chosen, named = made(cluster=FABRIC), made(cluster=FABRIC, network="flows")
    assert (
        chosen.step_time_ns == named.step_time_ns != made(cluster=FABRIC, network="analytical").step_time_ns
    )
    assert chosen.figures.origin == named.figures.origin
    assert chosen.figures.origin.network == "flows"
    assert chosen.simulation.setup.network_words != named.simulation.setup.network_words
    assert "topology-unused" not in warnings_of(chosen)


@pytest.mark.parametrize("name", FILES)
def test_every_file_of_a_topology_does(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, FILES[name])
    assert made(cluster=path).simulation.flow_report is not None


def test_a_named_network_stays_with_a_warning() -> None:
    for name in ("analytical", "shared"):
        simulated = made(cluster=FABRIC, network=name)
        assert simulated.simulation.flow_report is None
        assert "topology-unused" in warnings_of(simulated)


@pytest.mark.parametrize(
    "parameters", [{}, {"cluster": "h100-8"}, {"cluster": FABRIC, "dim": ("ring:16:9:9",)}]
)
def test_without_a_topology_the_network_is_the_default_and_nothing_is_said(
    parameters: dict[str, Any],
) -> None:
    simulated = made(**parameters)
    assert simulated.figures.origin.network == "analytical"
    assert simulated.figures.origin.parameters["network"] == "analytical"
    assert not {"topology-unused", "paths-balanced"} & {*warnings_of(simulated)}


def test_no_cluster_is_read_to_know_that_there_is_no_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("simcore.setup.choose_cluster")
    assert setup_of().network_name == "analytical"
    assert setup_of(network="links", cluster="no such file").network_name == "links"


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"jitter": 0.1}, "--jitter"),
        ({"comm_scale": 2.0}, "--comm-scale"),
        ({"slow_link": ("0:1=0.5",)}, "--slow-link"),
        ({"algorithm": ("1=halving-doubling",)}, "--algorithm"),
        ({"dialect": "astra-sim-1"}, "astra-sim-1"),
    ],
)
def test_what_flows_refuse_runs_analytically_and_the_warning_has_the_reason(
    parameters: dict[str, Any], reason: str
) -> None:
    simulated = made(cluster=FABRIC, **parameters)
    assert simulated.simulation.setup.network_name == "analytical"
    assert reason in warnings_of(simulated)["topology-unused"]
    with pytest.raises(UsageError):
        made(cluster=FABRIC, network="flows", **parameters)


def test_too_many_flows_are_balanced_and_of_these_equal_ranks_simulated_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("simcore.networks.flows.MOST_FLOWS_AT_FIRST", 10)
    simulated = made(cluster=FABRIC)
    assert simulated.simulation.setup.network.ecmp == "balanced"
    assert simulated.figures.origin.parameters["ecmp"] == "balanced"
    assert len(simulated.simulation.timeline.classes) < 16
    assert "paths-balanced" in warnings_of(simulated)
    assert made(cluster=FABRIC, network="flows", ecmp="balanced").step_time_ns == simulated.step_time_ns
    # A path that is named stays, and so do all ranks.
    for parameters in ({"ecmp": "simai"}, {"network": "flows"}, {"no_fold": True}):
        every = made(cluster=FABRIC, **parameters)
        assert "paths-balanced" not in warnings_of(every)
        assert len(every.simulation.timeline.classes) == 16


def test_more_flows_than_are_simulated_run_analytically(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.networks.flows.MOST_FLOWS", 10)
    simulated = made(cluster=FABRIC, ecmp="simai")
    assert simulated.simulation.flow_report is None
    assert "flows" in warnings_of(simulated)["topology-unused"]
    with pytest.raises(UsageError):
        made(cluster=FABRIC, network="flows")


def test_the_command_line_and_a_file_of_parameters_do(tmp_path: Path, workload: str, capsys: Any) -> None:
    stated = ["--world", "16", "--tp", "1", "--pp", "1", "--json"]
    options = written(tmp_path, "p.toml", f'cluster = "{FABRIC}"\n')
    for words in (["--cluster", FABRIC], ["--params", options]):
        report([workload, *stated, *words])
        found = json.loads(capsys.readouterr().out)
        assert found["cluster"]["network"] == found["parameters"]["network"] == "flows"
    report([workload, *stated, "--params", options, "--network", "analytical"])
    assert json.loads(capsys.readouterr().out)["parameters"]["network"] == "analytical"


def test_python_and_each_point_of_a_sweep_do(workload: str) -> None:
    chosen = simcore.load(workload).run(cluster=FABRIC, world=16, tp=1, pp=1)
    named = chosen.with_(network="flows")
    assert chosen.step_time_ns == named.step_time_ns != chosen.with_(network="analytical").step_time_ns
    assert chosen.with_(network="analytical").with_(network=None).step_time_ns == chosen.step_time_ns
    points = simcore.sweep(workload, cluster=["h100-8", FABRIC], world=16, tp=1, pp=1)
    assert points.to_dict()["step_time_ns"][1] == chosen.step_time_ns


def test_execution_traces_say_what_they_run_on_and_why(tmp_path: Path) -> None:
    ranks = [[compute(1, 1)], [compute(1, 1)]]
    executed = opened(tmp_path, ranks, Parameters(cluster=FABRIC))
    (warning,) = [one for one in executed.diagnostics if one.code == "topology-unused"]
    assert "execution traces" in warning.message
    assert executed.figures.origin.network == "analytical"


def test_a_collective_on_a_topology_does(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["all-to-all", "--size", "1MiB", "--cluster", FABRIC, "--json"]
    price_collective(words)
    chosen = capsys.readouterr()
    assert "flows" in chosen.err
    price_collective([*words, "--network", "flows"])
    assert capsys.readouterr().out == chosen.out
    monkeypatch.setattr("simcore.networks.flows.MOST_FLOWS_AT_FIRST", 10)
    price_collective(words)
    assert "analytical" in capsys.readouterr().err


def test_the_form_names_what_the_cluster_chooses() -> None:
    opened = made().simulation
    on_topology = make_draft_context(opened.setup.with_changes(cluster=FABRIC), opened)
    there = {field.label: field for field in fields_for(on_topology)}
    assert there["network"].text(on_topology) == "flows"
    assert there["network"].origin(on_topology) == "the topology"
    assert "ecmp" in there
    assert there["network"].parse_text(on_topology, "analytical") == {"network": "analytical"}
    assert there["network"].parse_text(on_topology, "flows") == {"network": None}
    without = {field.label: field for field in fields_for(opened)}
    assert "ecmp" not in without
    assert without["network"].origin(opened) == "default"
    assert without["network"].parse_text(opened, "flows") == {"network": "flows"}
    assert without["network"].parse_text(opened, "analytical") == {"network": None}


def test_another_job_needs_no_network_by_name(workload: str) -> None:
    simulated = made(cluster="dcn:32:npa=8:psn=2", other_job=workload)
    assert simulated.two_jobs is not None


def test_what_is_tried_has_the_paths_of_the_run_on_either_side_of_the_threshold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # When each run chose alone, one with half or twice the flows gained or lost by its other paths.
    fabric = "dcn:8:gps=4:npa=4:psn=2"
    small = Row("grads", Cell(9), Cell(9), Cell(2000, "ALLREDUCE", "dp", 1 << 16))
    gradients = make_workload([small, small], tp=1, ep=1, pp=1, all_gpus=8)
    flows = flows_of(simulate(gradients, Parameters(cluster=fabric)))
    monkeypatch.setattr("simcore.setup.MOST_BALANCED_RANKS", 0)
    monkeypatch.setattr("simcore.simulation.MOST_BALANCED_RANKS", 0)
    fewer, more = {"without_lines": ("4",)}, {"passes": 2}
    for most, ecmp, change in ((flows, None, more), (flows - 1, "balanced", fewer)):
        monkeypatch.setattr("simcore.networks.flows.MOST_FLOWS_AT_FIRST", most)
        base = simulate(gradients, Parameters(cluster=fabric))
        parameters = replace(base.parameters, **change)  # type: ignore[arg-type]
        beside, alone = simulate_like(base, change), simulate(gradients, parameters)
        assert base.setup.network.ecmp == beside.setup.network.ecmp == ecmp != alone.setup.network.ecmp
        assert beside.step_time_ns != alone.step_time_ns
        # Where they differ all the same, as in two runs of their own, words beside the difference say so.
        assert not other_method(base, beside)
        assert other_method(base, alone) in explained(base, alone)
        # A row that `t` opens states what it takes to be that run.
        stated = replace(parameters, **network_fields_of(beside))
        assert simulate(gradients, stated).step_time_ns == beside.step_time_ns


def test_what_would_take_too_long_on_the_paths_of_the_run_says_that_it_is_on_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = made(cluster=FABRIC).simulation
    monkeypatch.setattr("simcore.networks.flows.MOST_FLOWS_AT_FIRST", flows_of(base))
    outcomes = [make_stepper(base, lambda: False)(Change({"passes": count})) for count in (2, 3)]
    assert [bool(outcome and outcome.method) for outcome in outcomes] == [False, True]


def flows_of(simulation: Simulation) -> int:
    assert isinstance(simulation.network, FlowNetwork)
    return simulation.network.count_flows(simulation.program, simulation.timeline.folding)


def explained(base: Simulation, other: Simulation) -> str:
    """What compare says of two runs."""
    return Comparison(SimulatedRun(base), SimulatedRun(other)).ops.why_text
