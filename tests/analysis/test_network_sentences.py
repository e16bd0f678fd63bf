"""Whose a wait is, and for which row most: each figure is of the ranks and rows that are named."""

from __future__ import annotations

import pytest

from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.parameters import Parameters
from simcore.ranks import RankSet
from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.sources.simulated import ACCOUNTS
from simcore.trace.run import mean_busy_ns, mean_ns
from simcore.units import byte_size, duration, percent
from simcore.words.sentences.faults import find_straggler
from simcore.words.sentences.model import RunSums, Who
from simcore.words.sentences.network import (
    Exposed,
    MostWaited,
    RowWait,
    find_busy_port,
    find_exposed,
    find_network,
)
from simcore.words.sentences.pipeline import find_bubble
from simcore.workload import Workload, open_workload
from tests.analysis.booking import run
from tests.strategies import Cell, Row, layer
from tests.workload.texts import shared_folder


def waits(simulation: Simulation) -> list[Exposed]:
    """What is said of each kind of communication that is waited for."""
    return list(find_exposed(RunSums(SimulatedRun(simulation))))


def most_of(sentence: Exposed) -> MostWaited:
    assert sentence.most is not None
    return sentence.most


def of_model(name: str, **parameters: object) -> Simulation:
    opened = ModelMaker(name, MODELS[name]).empty_workload()
    return simulate(opened, Parameters(global_batch=64, **parameters))  # type: ignore[arg-type]


def test_a_mean_of_unequal_ranks_is_not_said_of_each_rank() -> None:
    """ZeRO's all-gather of experts: ranks of the first stage wait half as long as the others."""
    simulation = of_model("deepseek-v3", gpu="h100", world=256, tp=8, pp=8, ep=8, zero="1")
    (found,) = [one for one in waits(simulation) if one.kind == "dp_ep"]
    assert found.has_late
    assert found.least_ns < found.ns < found.most_ns
    most = most_of(found)
    assert most.how == "all"
    ((name, wait),) = most.rows.items()
    assert (name, wait.phases, wait.collectives) == ("moe_grad_norm1", ["parameter"], ["all-gather"])
    assert (duration(wait.ns), most.who) == ("390.1 ms", Who(RankSet.of(range(32, 192))))
    accounts = SimulatedRun(simulation).accounts
    of_ranks = [account.total_ns[ACCOUNTS.index("exposed dp_ep")] for account in accounts]
    assert min(of_ranks) < 0.6 * max(of_ranks)


def test_equal_ranks_wait_each() -> None:
    rows = [Row("mlp_1", Cell(1000, "ALLREDUCE", "tp", 8000)), layer("mlp_2", 1000)]
    (found,) = waits(run(rows, {"tp": 2}))
    assert (found.kind, found.has_late, found.least_ns, found.most_ns) == ("tp", False, found.ns, found.ns)
    assert most_of(found) == MostWaited(
        {"mlp_1": RowWait(found.ns, ["forward"], ["all-reduce"])}, "all", None, ""
    )


def test_the_phases_of_a_row_count_together() -> None:
    """mixtral: four equal all-to-alls, two of them of one row."""
    simulation = of_model("mixtral-8x7b", gpu="h100", world=64, ep=8, zero="3", comm_scale=4.0)
    (found,) = [one for one in waits(simulation) if (one.kind, one.has_late) == ("ep", False)]
    wait = most_of(found).rows["moe_experts"]
    assert (most_of(found).how, list(most_of(found).rows)) == ("most", ["moe_experts"])
    assert (wait.phases, wait.collectives) == (["forward", "input gradient"], ["all-to-all"])
    results = SimulatedRun(simulation)
    rows = [number for number, name in enumerate(simulation.workload.name) if name.startswith("moe_experts")]
    assert rows
    whole = results.accounts[0].total_ns[ACCOUNTS.index("exposed ep")]
    # Half of all: what the row's two all-to-alls are of four.
    assert duration(wait.ns) == duration(whole // 2)


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d", "e")])
def test_rows_that_are_waited_for_equally_long_are_named_together(names: tuple[str, ...]) -> None:
    rows = [Row(name, Cell(1000, "ALLREDUCE", "tp", 8000)) for name in names]
    most = most_of(*waits(run(rows, {"tp": 2})))
    assert (most.how, tuple(most.rows)) == ("all", names)
    assert len({wait.ns for wait in most.rows.values()}) == 1
    longer = waits(run([*rows, Row("z", Cell(1000, "ALLREDUCE", "tp", 80_000))], {"tp": 2}))
    assert (most_of(longer[0]).how, list(most_of(longer[0]).rows)) == ("most", ["z"])
    assert most_of(longer[0]).rows["z"].phases == ["forward"]


def test_free_collectives_are_no_cause() -> None:
    """What is left of them is what a process takes to begin them: they were a cause, and then none."""
    rows = [Row("mlp", Cell(1000, "ALLREDUCE", "tp", 8000))]
    free = SimulatedRun(run(rows, {"tp": 2}, comm_scale=0.0))
    assert not [one for one in free.sentences if one.rule in ("exposed", "network")]
    assert waits(run(rows, {"tp": 2}))


def test_what_the_end_of_a_step_gathers_is_parameters() -> None:
    """`weight gradient all-gather` is what the cell is, and no gradient is gathered there."""
    rows = [Row("grad_gather", wg=Cell(0, "ALLGATHER", "dp", 80_000)), *[layer("mlp", 1000, 1000, 1000)] * 2]
    simulation = run(rows, {"dp": 2})
    (found,) = waits(simulation)
    assert (found.kind, found.least_ns, found.most_ns) == ("dp", found.ns, found.ns)
    assert most_of(found).rows == {"grad_gather": RowWait(found.ns, ["parameter"], ["all-gather"])}
    # Of a row of a layer it stays what the cell is.
    rows = [Row("mlp", Cell(1000), wg=Cell(1000, "ALLGATHER", "dp", 80_000)), layer("mlp", 1000)]
    (wait,) = most_of(*waits(run(rows, {"dp": 2}))).rows.values()
    assert (wait.phases, wait.collectives) == (["weight gradient"], ["all-gather"])


@pytest.mark.parametrize(("second", "named"), [(7900, {"a": 8020, "b": 7920}), (7800, {"a": 8020})])
def test_rows_that_are_waited_for_nearly_as_long_are_named_with_their_figures(
    second: int, named: dict[str, int]
) -> None:
    """From 2 % on less than the longest they are another row; each figure is what the step loses with it."""
    sizes = {"a": 8000, "b": second, "c": 2000}
    rows = [Row(name, Cell(1000, "ALLREDUCE", "tp", size)) for name, size in sizes.items()]
    simulation = run(rows, {"tp": 2})
    most = most_of(*waits(simulation))
    assert (most.how, {name: wait.ns for name, wait in most.rows.items()}) == ("most", named)
    without = run([*rows[1:], layer("a", 1000)], {"tp": 2})
    assert simulation.step_time_ns - without.step_time_ns == 8020


def golden(name: str) -> Workload:
    return open_workload(str(shared_folder("golden/aicb") / name))


def standing_ns(simulation: Simulation) -> int:
    """Bubble and idle time of the mean rank."""
    return sum(mean_ns(SimulatedRun(simulation))[account] for account in ("bubble", "idle"))


def test_what_transfers_between_stages_cost_is_that_of_a_file_that_sends_none() -> None:
    """7.943 ms of waiting hid that the step is 26.114 shorter without them."""
    workload = golden("012_gpt_22B_tp8_pp8_ep1_w256_plain.txt")
    plain, jittered = (simulate(workload, Parameters(jitter=jitter)) for jitter in (0.0, 0.001))
    without = simulate(replace(workload, header=replace(workload.header, pp_comm=0)), Parameters())
    cost = plain.step_time_ns - without.step_time_ns
    waited = mean_ns(SimulatedRun(plain))["exposed pp"]
    assert standing_ns(plain) - standing_ns(without) == cost - waited
    found = waits(plain)[-1]
    assert (found.kind, found.cost_ns, found.is_standing) == ("pp", cost, True)
    assert (found.exposed_ns, found.computes, found.most) == (waited, False, None)
    assert found.least_ns < found.most_ns
    # It stands among the causes by what it costs, not by the wait.
    said = [one for one in SimulatedRun(plain).sentences if isinstance(one, Exposed)]
    assert [one.lost_ns for one in said if one.kind == "pp"] == [cost]
    # Where no other run tells, the wait is said alone.
    alone = waits(jittered)[-1]
    assert (alone.kind, alone.cost_ns, alone.computes, alone.most) == ("pp", None, False, None)


def test_beside_compute_that_waits_transfers_have_their_cost_too() -> None:
    rows = [layer("mlp", 10_000, 10_000, 10_000)]
    plain, without = (run(rows, {"pp": 4, "ga": 4, "pp_comm": size}) for size in (20_000, 0))
    (found,) = waits(plain)
    cost = plain.step_time_ns - without.step_time_ns
    waited = mean_ns(SimulatedRun(plain))["exposed pp"]
    assert cost > waited
    assert (found.kind, found.cost_ns, found.is_standing) == ("pp", cost, True)
    assert (found.exposed_ns, found.computes, found.most) == (waited, True, None)
    assert found.least_ns < found.most_ns
    assert waits(without) == []


def test_where_nothing_computes_it_is_ranks_that_wait() -> None:
    """A placeholder of compute waits for nothing; a micro-benchmark of ASTRA-sim has none at all."""
    name = "yleintel__astra-sim__4microAllToAll.txt"
    micro = simulate(open_workload(str(shared_folder("corpus/astra1") / name)), Parameters())
    step, (found,) = micro.step_time_ns, waits(micro)
    assert (found.kind, found.computes) == ("all", False)
    assert (found.ns, found.least_ns, found.most_ns) == (step, step, step)
    assert most_of(found).rows == {"conv1": RowWait(step, ["weight gradient"], ["all-to-all"])}
    assert most_of(found).how == "all"
    assert mean_busy_ns(SimulatedRun(micro)) == 0
    # The same group at the ports.
    (port,) = find_busy_port(RunSums(SimulatedRun(micro)))
    assert [(load.kind, byte_size(load.bytes)) for load in port.kinds] == [("all", "917.5 kB")]
    assert port.kinds[0].busy_ns == port.ns
    plain = simulate(golden("012_gpt_22B_tp8_pp8_ep1_w256_plain.txt"), Parameters())
    (all_of_it,) = find_network(RunSums(SimulatedRun(plain)))
    assert (all_of_it.computes, all_of_it.figure(all_of_it.exposed_ns)) == (False, "111.9 ms (59.5 %)")
    most = max(all_of_it.parts, key=lambda part: all_of_it.parts[part])
    assert (most, percent(all_of_it.parts[most], plain.step_time_ns)) == ("tp", "38.7")
    rows = [Row("mlp_1", Cell(1000, "ALLREDUCE", "tp", 8000)), layer("mlp_2", 1000)]
    assert waits(run(rows, {"tp": 2}))[0].computes


def test_stages_without_compute_are_said_to_run_the_same_collectives_where_they_do() -> None:
    workload = golden("027_llama_405B_tp8_pp16_ep1_w1024_plain.txt")
    for stage_layout, is_alike in (("uniform", True), ("megatron", False)):
        simulation = simulate(workload, Parameters(stage_layout=stage_layout))
        loads = {
            tuple(sorted((kind, load.bytes) for kind, load in use.items() if kind[1] != "pp"))
            for use in SimulatedRun(simulation).class_uses
        }
        assert (len(loads) == 1) == is_alike
        (found,) = find_bubble(RunSums(SimulatedRun(simulation)))
        assert found.equal_in == ("collectives" if is_alike else "")


@pytest.mark.parametrize(("kind", "peers", "where"), [
    ("all", "its 3 peers", "collectives of all ranks"), ("dp", "its 3 dp peers", "dp collectives"),
])  # fmt: skip
def test_a_group_of_all_ranks_is_not_called_all(kind: str, peers: str, where: str) -> None:
    rows = [Row("embedding_layer", Cell(1000, "ALLREDUCE", kind, 100))]
    results = SimulatedRun(run(rows, {"dp": 4}, slow_rank=("1=3",)))
    (found,) = find_straggler(RunSums(results))
    assert (found.peers.kind, found.peers.words) == (kind, peers)
    assert {wait.summary for wait in results.figures.waits_for} == {where}
