"""Whose a wait is, and for which row most: each figure is of the ranks and rows that are named."""

from __future__ import annotations

import pytest

from simcore.model.maker import ModelMaker
from simcore.model.opening import MODELS
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.simulated import Results
from simcore.simulation import Simulation, simulate
from simcore.sources.simulated import ACCOUNTS
from simcore.trace.run import mean_busy_ns, mean_ns
from simcore.units import duration, percent
from simcore.workload import Workload, open_workload
from tests.analysis.booking import run
from tests.strategies import Cell, Row, layer
from tests.workload.texts import shared_folder


def waits(simulation: Simulation, rule: str = "exposed") -> list[str]:
    return [sentence.text for sentence in Results(simulation).sentences if sentence.rule == rule]


def of_model(name: str, **parameters: object) -> Simulation:
    opened = ModelMaker(name, MODELS[name]).opened()
    return simulate(opened, Parameters(global_batch=64, **parameters))  # type: ignore[arg-type]


def test_a_mean_of_unequal_ranks_is_not_said_of_each_rank() -> None:
    """ZeRO's all-gather of experts: ranks of the first stage wait half as long as the others."""
    simulation = of_model("deepseek-v3", gpu="h100", world=256, tp=8, pp=8, ep=8, zero="1")
    (text,) = [text for text in waits(simulation) if "other dp_ep" in text]
    assert (
        "for other dp_ep collectives on the mean rank, all for moe_grad_norm1 (parameter all-gather, " in text
    )
    assert text.endswith("390.1 ms on ranks 32-191).")
    accounts = Results(simulation).accounts
    of_ranks = [account.total_ns[ACCOUNTS.index("exposed dp_ep")] for account in accounts]
    assert min(of_ranks) < 0.6 * max(of_ranks)


def test_equal_ranks_wait_each() -> None:
    rows = [Row("mlp_1", Cell(1000, "ALLREDUCE", "tp", 8000)), layer("mlp_2", 1000)]
    (text,) = waits(run(rows, {"tp": 2}))
    assert text.endswith(" for tp collectives on each rank, all for mlp_1 (forward all-reduce).")


def test_the_phases_of_a_row_count_together() -> None:
    """mixtral: four equal all-to-alls, two of them of one row."""
    simulation = of_model("mixtral-8x7b", gpu="h100", world=64, ep=8, zero="3", comm_scale=4.0)
    (text,) = [text for text in waits(simulation) if "for ep collectives" in text]
    assert "most for moe_experts (forward and input gradient all-to-all, " in text
    results = Results(simulation)
    rows = [number for number, name in enumerate(simulation.workload.name) if name.startswith("moe_experts")]
    assert rows
    whole = results.accounts[0].total_ns[ACCOUNTS.index("exposed ep")]
    # Half of all: what the row's two all-to-alls are of four.
    assert f"all-to-all, {duration(whole // 2)})" in text


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d", "e")])
def test_rows_that_are_waited_for_equally_long_are_named_together(names: tuple[str, ...]) -> None:
    rows = [Row(name, Cell(1000, "ALLREDUCE", "tp", 8000)) for name in names]
    (text,) = waits(run(rows, {"tp": 2}))
    expected = {2: "all for a and b (", 3: "all for a, b and c (", 5: "all for a and 4 others ("}
    assert expected[len(names)] in text
    assert " each)." in text
    longer = waits(run([*rows, Row("z", Cell(1000, "ALLREDUCE", "tp", 80_000))], {"tp": 2}))
    assert "most for z (forward all-reduce, " in longer[0]


def test_free_collectives_are_no_cause() -> None:
    """What is left of them is what a process takes to begin them: they were a cause, and then none."""
    rows = [Row("mlp", Cell(1000, "ALLREDUCE", "tp", 8000))]
    free = Results(run(rows, {"tp": 2}, comm_scale=0.0))
    assert not [one for one in free.sentences if one.rule in ("exposed", "network")]
    assert waits(run(rows, {"tp": 2}))


def test_what_the_end_of_a_step_gathers_is_parameters() -> None:
    """`weight gradient all-gather` is what the cell is, and no gradient is gathered there."""
    rows = [Row("grad_gather", wg=Cell(0, "ALLGATHER", "dp", 80_000)), *[layer("mlp", 1000, 1000, 1000)] * 2]
    simulation = run(rows, {"dp": 2})
    (text,) = waits(simulation)
    assert text.endswith(" for dp collectives on each rank, all for grad_gather (parameter all-gather).")
    # Of a row of a layer it stays what the cell is.
    rows = [Row("mlp", Cell(1000), wg=Cell(1000, "ALLGATHER", "dp", 80_000)), layer("mlp", 1000)]
    (text,) = waits(run(rows, {"dp": 2}))
    assert "(weight gradient all-gather" in text


@pytest.mark.parametrize(
    ("second", "words"),
    [(7900, "most for a (8.020 us) and b (7.920 us)"), (7800, "most for a (forward all-reduce, 8.020 us)")],
)
def test_rows_that_are_waited_for_nearly_as_long_are_named_with_their_figures(
    second: int, words: str
) -> None:
    """From 2 % on less than the longest they are another row; each figure is what the step loses with it."""
    sizes = {"a": 8000, "b": second, "c": 2000}
    rows = [Row(name, Cell(1000, "ALLREDUCE", "tp", size)) for name, size in sizes.items()]
    simulation = run(rows, {"tp": 2})
    (text,) = waits(simulation)
    assert words in text
    without = run([*rows[1:], layer("a", 1000)], {"tp": 2})
    assert simulation.step_time_ns - without.step_time_ns == 8020


def golden(name: str) -> Workload:
    return open_workload(str(shared_folder("golden/aicb") / name))


def standing_ns(simulation: Simulation) -> int:
    """Bubble and idle time of the mean rank."""
    return sum(mean_ns(Results(simulation))[account] for account in ("bubble", "idle"))


def test_what_transfers_between_stages_cost_is_that_of_a_file_that_sends_none() -> None:
    """7.943 ms of waiting hid that the step is 26.114 shorter without them."""
    workload = golden("012_gpt_22B_tp8_pp8_ep1_w256_plain.txt")
    plain, jittered = (simulate(workload, Parameters(jitter=jitter)) for jitter in (0.0, 0.001))
    without = simulate(replace(workload, header=replace(workload.header, pp_comm=0)), Parameters())
    cost = plain.step_time_ns - without.step_time_ns
    waited = mean_ns(Results(plain))["exposed pp"]
    assert standing_ns(plain) - standing_ns(without) == cost - waited
    step = plain.step_time_ns
    assert waits(plain)[-1] == (
        f"Transfers between stages cost {duration(cost)} ({percent(cost, step)} %): the mean rank waits "
        f"{duration(waited)} ({percent(waited, step)} %) for them, the rest is bubble and idle time."
    )
    # It stands among the causes by what it costs, not by the wait.
    assert [said.lost_ns for said in Results(plain).sentences if "Transfers" in said.text] == [cost]
    # Where no other run tells, the wait is said alone.
    assert waits(jittered)[-1].startswith("The mean rank waits ")
    assert waits(jittered)[-1].endswith(" %) for transfers between stages.")


def test_beside_compute_that_waits_transfers_have_their_cost_too() -> None:
    rows = [layer("mlp", 10_000, 10_000, 10_000)]
    plain, without = (run(rows, {"pp": 4, "ga": 4, "pp_comm": size}) for size in (20_000, 0))
    (text,) = waits(plain)
    cost = plain.step_time_ns - without.step_time_ns
    waited = mean_ns(Results(plain))["exposed pp"]
    assert cost > waited
    assert text.startswith(f"Transfers between stages cost {duration(cost)} (")
    assert f": compute waits {duration(waited)} (" in text
    assert text.endswith(" for them on the mean rank, the rest is bubble and idle time.")
    assert waits(without) == []


def test_where_nothing_computes_it_is_ranks_that_wait() -> None:
    """A placeholder of compute waits for nothing; a micro-benchmark of ASTRA-sim has none at all."""
    name = "yleintel__astra-sim__4microAllToAll.txt"
    micro = simulate(open_workload(str(shared_folder("corpus/astra1") / name)), Parameters())
    step = duration(micro.step_time_ns)
    assert waits(micro) == [
        f"Each rank waits {step} (100.0 %) for collectives of all ranks, all for conv1 (weight gradient "
        "all-to-all)."
    ]
    assert mean_busy_ns(Results(micro)) == 0
    # The same group at the ports.
    assert waits(micro, "busy-port")[0].endswith(", all with collectives of all ranks (917.5 kB).")
    plain = simulate(golden("012_gpt_22B_tp8_pp8_ep1_w256_plain.txt"), Parameters())
    (all_of_it,) = waits(plain, "network")
    assert all_of_it.startswith("The mean rank waits 111.9 ms (59.5 %) for communication: 38.7 % tp, ")
    rows = [Row("mlp_1", Cell(1000, "ALLREDUCE", "tp", 8000)), layer("mlp_2", 1000)]
    assert waits(run(rows, {"tp": 2}))[0].startswith("Compute waits ")


def test_stages_without_compute_are_said_to_run_the_same_collectives_where_they_do() -> None:
    workload = golden("027_llama_405B_tp8_pp16_ep1_w1024_plain.txt")
    for stage_layout, said in (("uniform", True), ("megatron", False)):
        simulation = simulate(workload, Parameters(stage_layout=stage_layout))
        loads = {
            tuple(sorted((kind, load.bytes) for kind, load in use.items() if kind[1] != "pp"))
            for use in Results(simulation).class_uses
        }
        assert (len(loads) == 1) == said
        text = " ".join(waits(simulation, "bubble"))
        assert text
        assert "compute alike" not in text
        assert ("ll stages run the same collectives" in text) == said


@pytest.mark.parametrize(("kind", "peers", "where"), [
    ("all", "its 3 peers wait", "collectives of all ranks"), ("dp", "its 3 dp peers wait", "dp collectives"),
])  # fmt: skip
def test_a_group_of_all_ranks_is_not_called_all(kind: str, peers: str, where: str) -> None:
    rows = [Row("embedding_layer", Cell(1000, "ALLREDUCE", kind, 100))]
    results = Results(run(rows, {"dp": 4}, slow_rank=("1=3",)))
    (text,) = [sentence.text for sentence in results.sentences if sentence.rule == "straggler"]
    assert peers in text
    assert {wait.said for wait in results.figures.waits_for} == {where}
