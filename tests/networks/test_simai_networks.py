"""`busbw:FILE` and `simai-auto`: prices beside a second statement of the formulas, refusals, notes.

Planted in a copy of simcore, one at a time, and seen to fail: GPUs of a DP_EP node counted by tp alone; an
expert group over several servers given all NICs; all-to-all in expert groups that fill a server by the
column of their nodes; r*B left in double precision; nodes that have no column given the next one below;
the nvlink table never taken; DP_EP priced by the DP section; transfers between servers priced by NVLink;
servers of 8 whatever `--gpus-per-server` says; small forward collectives left as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.span_words import explain_duration, find_op_facts
from simcore.compat.simai_auto import SimaiAuto, ratio
from simcore.compat.simai_busbw import Busbw
from simcore.compat.simai_network import SimaiNetwork
from simcore.diagnostics import InputError, UsageError, printable
from simcore.layout import Layout
from simcore.networks import NetworkParameters, network_model
from simcore.networks.model import single_switch
from simcore.parameters import Parameters
from simcore.program.ops import TransferCost
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, explain_alone, simulate
from simcore.workload import open_workload
from tests.engine.reference_simulator import class_of_ranks, place
from tests.findings import facts, finding, findings
from tests.networks import simai_formula
from tests.program.test_op_table_step import ns
from tests.says import said
from tests.strategies import COLLECTIVES, Cell, Row, make_workload
from tests.workload.test_op_table import read, row, table

INPUTS = Path(__file__).parent / "simai"
FIXED = f"busbw:{INPUTS / 'busbw_fixed.yaml'}"
SEED_001 = "fixtures/001_moe_128npu_with_mistakes.txt"
KINDS = ("tp", "ep", "dp", "dp_ep")
SIZES = st.sampled_from([0, 1, 2, 4095, 2**20 - 1, 2**20, 2**24, 2**24 + 1, 2**34, 2**34 + 1]) | st.integers(
    0, 2**36
)


def network(parameters: Parameters, tp: int = 1, ep: int = 1, dp: int = 1, pp: int = 1) -> SimaiNetwork:
    layout = Layout(tp, ep, dp, pp)
    asked = parameters.part(NetworkParameters)
    found = network_model(asked.network).open(asked, layout, single_switch(asked, layout))
    assert isinstance(found, SimaiNetwork)
    return found


def auto(**values: Any) -> Parameters:
    return Parameters(**{"network": "simai-auto", "nvlink": 360.0, "nic": 48.5} | values)


def one_row(wg: Cell = Cell(), fwd: Cell = Cell(), **header: Any) -> Any:  # noqa: B008
    degrees = {"tp": 2, "ep": 1, "pp": 1, "ga": 1, "vpp": 1, "all_gpus": 64}
    return make_workload([Row("embedding_layer"), Row("mlp", fwd, Cell(), wg)], **degrees | header)


def told(simulation: Simulation, *codes: str) -> list[str]:
    return [one.text() for one in simulation.diagnostics if one.code in codes]


# -- prices --------------------------------------------------------------------------


@settings(max_examples=400)
@given(
    st.sampled_from(KINDS), st.sampled_from(COLLECTIVES), SIZES,
    st.sampled_from([1, 2, 3, 4, 8, 12, 16, 32]), st.sampled_from([1, 2, 4, 6, 8, 16]),
    st.sampled_from([1, 2, 3, 8, 24]), st.sampled_from([(1, 8), (4, 8), (8, 8), (8, 64), (16, 32)]),
    st.sampled_from([100.0, 360.0, 370.8]),
)  # fmt: skip
def test_an_auto_price_is_that_of_the_formula(
    kind: Any,
    collective: str,
    size: int,
    tp: int,
    ep: int,
    replicas: int,
    server: tuple[int, int],
    nvlink: float,
) -> None:
    (g, nics), dp = server, ep * replicas
    found = network(auto(nvlink=nvlink, nics_per_server=nics, gpus_per_server=g), tp, ep, dp)
    price = found.ns(kind, collective, size)
    assert price == simai_formula.auto_ns(kind, collective, size, tp, ep, dp, g, nics, nvlink, 48.5)


@settings(max_examples=200)
@given(
    st.sampled_from(KINDS), st.sampled_from(COLLECTIVES), SIZES,
    st.sampled_from([1, 2, 8, 16]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 3, 8]),
    st.sampled_from([1, 8, 16]),
)  # fmt: skip
def test_a_busbw_price_is_that_of_the_table(
    kind: Any, collective: str, size: int, tp: int, ep: int, replicas: int, g: int
) -> None:
    dp = ep * replicas
    found = network(Parameters(network=FIXED, gpus_per_server=g), tp, ep, dp)
    assert isinstance(found, Busbw)
    gibps = {
        "TP.allreduce": 300, "TP.allgather": 280, "TP.alltoall": 230, "DP.allreduce": 380,
        "DP.allgather": 380, "EP.allreduce": 45, "EP.allgather": 45, "EP.alltoall": 80,
    }  # fmt: skip
    entry = simai_formula.busbw_entry(kind, collective, tp, g, tp * dp)
    n = simai_formula.members(kind, tp, ep, dp)
    expected = simai_formula.time_ns(size, 1.0, gibps[entry], collective, n) if entry and n > 1 else 0
    assert found.ns(kind, collective, size) == expected


def test_simais_own_example_of_an_all_gather() -> None:
    """50331648 B over tp 2 at 360 GiB/s: r = 0.60/0.81, 87,890 ns; SimAI prints 88 us."""
    assert ratio("nic", "1", 50331648) == pytest.approx(0.60 / 0.81, rel=1e-15)
    assert network(auto(), tp=2).ns("tp", "ALLGATHER", 50331648) == 87_890


def test_a_ratio_grows_between_its_rows_and_ends_at_1() -> None:
    assert ratio("ata", "1", 0) == ratio("ata", "1", 2**34) == ratio("ata", "1", 2**40) == 1
    assert ratio("ata", "1", 1) == ratio("ata", "1", 2**24) == 0.44 / 0.78
    assert ratio("ata", "32", 2**24) == 1  # an empty column
    assert ratio("nic", "128", 3 * 2**24) == (0.021225 + (0.04405 - 0.021225) / 2) / 0.919175


def test_types_stand_for_figures_and_figures_count_over_them() -> None:
    found = network(Parameters(network="simai-auto", gpu_type="A800", nic_type="cx6"), tp=2)
    assert isinstance(found, SimaiAuto)
    assert (found.nvlink, found.nic) == (160, 23.5)
    given_nic = network(Parameters(network="simai-auto", gpu_type="A800", nic_type="cx6", nic=10.0), tp=2)
    assert isinstance(given_nic, SimaiAuto)
    assert (given_nic.nvlink, given_nic.nic) == (160, 10)
    assert network(Parameters(network="simai-auto"), tp=2).words() == (
        "servers of 8 GPUs, NVLink 370.8 GiB/s, 8 NICs of 48.5 GiB/s"
    )


# -- transfers -----------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 4]), st.sampled_from([2, 3, 4]),
    st.sampled_from(["tp-ep-dp-pp", "tp-pp-dp"]), st.integers(1, 9),
)  # fmt: skip
def test_a_transfer_takes_nvlink_in_a_server_and_one_nic_between_servers(
    tp: int, dp: int, pp: int, order: str, g: int
) -> None:
    size = 10_000_000
    workload = one_row(tp=tp, pp=pp, all_gpus=tp * dp * pp, pp_comm=size)
    simulation = simulate(
        workload, auto(rank_order=order, gpus_per_server=g, microbatches=2, schedule="1f1b")
    )
    layout, timeline = simulation.layout, simulation.timeline
    sent = 0
    for rank, number in enumerate(class_of_ranks(simulation)):
        ops, start, end = timeline.columns(number)
        for op, cost_number in enumerate(ops.cost):
            cost = timeline.program.costs[cost_number]
            if isinstance(cost, TransferCost):
                t, d, stage = place(layout, rank)
                other = layout.rank(t, d, stage + cost.step)
                gibps = 360.0 if rank // g == other // g else 48.5
                assert end[op] - start[op] == int(size / 2**30 / gibps * 1e9)
                sent += 1
    assert sent == tp * dp * (pp - 1) * 2 * 2


def test_a_transfer_under_busbw_takes_pp_busbw() -> None:
    workload = one_row(pp=2, pp_comm=2**20)
    simulation = simulate(workload, Parameters(network=FIXED))
    ops, start, end = simulation.timeline.columns(0)
    assert [end[op] - start[op] for op in range(len(ops))] == [int(2**20 / 2**30 / 47.5 * 1e9)]


# -- small forward collectives -------------------------------------------------------


@pytest.mark.parametrize(("size", "counted"), [(0, 0), (1, 4096), (4095, 4096), (4096, 4096), (4097, 4097)])
def test_a_small_forward_collective_counts_as_4096_bytes_under_simais_networks_alone(
    size: int, counted: int
) -> None:
    cell = Cell(0, "ALLREDUCE", "tp", size)
    whole = one_row(fwd=cell, wg=cell)
    lifted = simulate(whole, Parameters(network=FIXED))
    costs = [cost.bytes for cost in lifted.program.costs]  # type: ignore[union-attr]
    assert costs == sorted({counted, size}, reverse=True) if size else costs == []
    from simcore.runs.simulated import SimulatedRun

    row = SimulatedRun(lifted).layers[1].cells
    assert (row["fwd"].bytes, row["wg"].bytes) == (size, size)
    assert row["fwd"].comm_ns == network(Parameters(network=FIXED), tp=2).ns("tp", "ALLREDUCE", counted)
    plain = simulate(whole, Parameters())
    assert {cost.bytes for cost in plain.program.costs} == ({size} if size else set())  # type: ignore[union-attr]
    note = (
        "made.txt: note simai-forward-size 1 forward collective of 1 to 4095 B counts as 4096 B, as in SimAI"
    )
    assert told(lifted, "simai-forward-size") == ([note] if 0 < size < 4096 else [])


def test_the_other_policy_lifts_nothing() -> None:
    from msgspec import structs

    workload = structs.replace(one_row(fwd=Cell(0, "ALLREDUCE", "tp", 4)), policy="HYBRID_TRANSFORMER")
    simulation = simulate(workload, Parameters(network=FIXED))
    assert [cost.bytes for cost in simulation.program.costs] == [4]  # type: ignore[union-attr]


# -- what cannot be ------------------------------------------------------------------


REFUSED = [
    ({"gpu_type": "B200"}, "--gpu-type B200: one of H100, H20, H800, A100, A800 is expected"),
    ({"nic_type": "x\x1b"}, "--nic-type x\\x1b: one of cx7, cx6, bf3 is expected"),
    ({"nvlink": 1e-9}, "--nvlink 1e-09: a number from 1e-6 to 1e9 (GiB/s) is expected"),
    ({"nic": 1e10}, "--nic 10000000000.0: a number from 1e-6 to 1e9 (GiB/s) is expected"),
    (
        {"nics_per_server": 4},
        "--nics-per-server 4: ep groups get floor(4/8) = 0 NICs, and SimAI prints garbage; "
        "8 or more would fit",
    ),
    *[
        (
            {"overlap": (text,)},
            f"--overlap {shown}: KIND=RATIO is expected, KIND one of dp, tp, ep, pp, RATIO from 0 to 1, "
            "for example dp=0.5,tp=0.3",
        )
        for text, shown in (
            ("dp", "dp"),
            ("all=0.5", "all=0.5"),
            ("tp=0.5,dp=1.1", "dp=1.1"),
            ("tp=nan", "tp=nan"),
            ("", ""),
        )
    ],
    (
        {"slow_link": ("0:1=0.5",)},
        "--slow-link 0:1=0.5: network simai-auto has no dimensions, and so no ports; "
        "analytical and shared and links and flows have them",
    ),
]


@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_what_cannot_be_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        simulate(open_workload(SEED_001), Parameters(network="simai-auto", **values))
    assert str(refused.value) == message


@pytest.mark.parametrize("name", [FIXED, "simai-auto"])
def test_a_collective_over_all_ranks_has_no_bandwidth(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        simulate(one_row(Cell(0, "ALLREDUCE", "all", 100)), Parameters(network=name))
    assert facts(str(refused.value)) == f"--network {name.partition(':')[0]}, tp, ep, dp, dp_ep"


def test_a_missing_entry_is_an_error_only_where_the_file_needs_it() -> None:
    missing = Parameters(network=f"busbw:{INPUTS / 'busbw.yaml'}")
    simulate(one_row(Cell(0, "ALLGATHER", "dp", 100)), missing)
    simulate(one_row(Cell(0, "ALLREDUCE", "dp", 0)), missing)
    simulate(one_row(Cell(0, "ALLREDUCE", "dp", 100), all_gpus=2), missing)
    with pytest.raises(InputError) as refused:
        simulate(one_row(Cell(0, "ALLREDUCE", "dp", 100)), missing)
    assert (
        finding(str(refused.value))
        == f"{INPUTS / 'busbw.yaml'}:8:1: error busbw-missing DP.allreduce, dp, 2, 64 ns"
    )
    docs = Parameters(network=f"busbw:{INPUTS / 'busbw_docs.yaml'}")
    simulate(one_row(pp=2, pp_comm=0), docs)
    with pytest.raises(InputError) as refused:
        simulate(one_row(pp=2, pp_comm=8), docs)
    assert finding(str(refused.value)) == f"{INPUTS / 'busbw_docs.yaml'}: error busbw-missing PP.busbw"


# -- what is said --------------------------------------------------------------------


FREE = [
    ({"ep": 4}, "ep", "ALLGATHER", {},
     "it takes no bandwidth for all-gathers and reduce-scatters of ep groups"),
    ({"ep": 4, "tp": 16}, "ep", "ALLTOALL", {},
     "it takes no bandwidth where tp 16 is above the 8 GPUs of a server"),
    ({}, "dp", "ALLGATHER", {"gpus_per_server": 64},
     "inside a single server it takes a bandwidth for all-reduce only"),
    ({"ep": 64}, "dp_ep", "ALLREDUCE", {}, None),
    ({"tp": 8, "ep": 4, "all_gpus": 16}, "dp_ep", "ALLREDUCE", {},
     "it counts max(1, floor(dp 2 / ep 4)) = 1 rank in a group"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "kind", "collective", "values", "reason"), FREE)
def test_what_costs_nothing_in_simai_costs_nothing_and_is_said(
    header: dict[str, Any], kind: str, collective: str, values: dict[str, Any], reason: str | None
) -> None:
    names = {"ALLGATHER": "all-gather", "ALLTOALL": "all-to-all", "ALLREDUCE": "all-reduce"}
    workload = one_row(Cell(0, collective, kind, 10**9), **header)
    simulation = simulate(workload, Parameters(network=FIXED, **values))
    what = f"{names[collective]} of {kind} groups costs nothing, as in SimAI"
    expected = f"made.txt: warning simai-free {what}: {reason}"
    assert told(simulation, "simai-free") == ([expected] if reason else [])
    assert simulation.step_time_ns == 0


def test_a_tensor_group_of_one_is_free_and_simais_garbage_is_said() -> None:
    simulation = simulate(one_row(fwd=Cell(0, "ALLREDUCE", "tp", 10**9), tp=1), auto())
    assert simulation.step_time_ns == 0
    assert findings(told(simulation, "simai-tp-1")) == ["made.txt: note simai-tp-1 tp, 1, tp"]


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ({"nvlink": 300.0, "overlap": ("dp=0.5",)},
         ["--nvlink has no effect under network analytical",
          "--overlap has no effect under network analytical"]),
        ({"network": FIXED, "nic_type": "cx6", "gpus_per_server": 4},
         [f"--nic-type has no effect under network {FIXED}"]),
        ({"network": "simai-auto", "splits": 4, "dim": ("switch:64:1:1",)},
         ["--dim has no effect on prices under network simai-auto",
          "--splits has no effect on prices under network simai-auto"]),
    ],
)  # fmt: skip
def test_a_parameter_without_effect_is_said(values: dict[str, Any], messages: list[str]) -> None:
    simulation = simulate(one_row(), Parameters(**values))
    shown = [one.message for one in simulation.diagnostics if one.code == "parameter-ignored"]
    assert shown == [message.replace(FIXED, printable(FIXED, 60)) for message in messages]


def test_no_word_of_a_cluster_that_no_price_depends_on() -> None:
    workload = one_row(fwd=Cell(0, "ALLREDUCE", "tp", 100), tp=3, all_gpus=24)
    assert told(simulate(workload, Parameters()), "cluster-default", "group-flat") != []
    assert told(simulate(workload, Parameters(network=FIXED)), "cluster-default", "group-flat") == []


def test_where_a_price_comes_from() -> None:
    workload = one_row(
        Cell(0, "ALLGATHER", "dp_ep", 2**30), Cell(0, "ALLTOALL", "ep", 2**26), ep=8, all_gpus=64
    )
    simulation = simulate(workload, auto())
    assert explain_alone(simulation, "ALLTOALL", "ep", 2**26) == (
        "all-to-all, ep group of 8: 67 108 864 B at 84.875 GiB/s (4 x 48.5 / 4 of NICs x 7/4 peers) "
        "x 0.9 (table ata, column 2)\n"
        "67 108 864 B / 2^30 / (84.875 GiB/s x 0.9) x 1e9 x 7/8 = 715 922 ns"
    )
    assert explain_alone(simulation, "ALLGATHER", "dp_ep", 2**30) == (
        "all-gather, dp_ep group of 4: 1 073 741 824 B at 48.5 GiB/s (1 x 48.5 of NICs over 4 nodes)\n"
        "1 073 741 824 B / 2^30 / 48.5 GiB/s x 1e9 x 3/4 = 15 463 917 ns"
    )


def test_the_expert_groups_of_a_model_are_where_its_layout_has_them() -> None:
    """8 neighbours are one server, and a shard of experts has replicas in 8 servers, not dp 16 / ep 8."""
    workload = one_row(
        Cell(0, "ALLGATHER", "dp_ep", 2**30), Cell(0, "ALLTOALL", "ep", 2**26), tp=4, ep=8, all_gpus=64,
        whole_experts=True,
    )  # fmt: skip
    simulation = simulate(workload, auto())
    inside = explain_alone(simulation, "ALLTOALL", "ep", 2**26)
    assert facts(inside).startswith("ep, 8, 67 108 864 B, 360 GiB/s, ")
    said(inside.splitlines(), "all-to-all", "ep group", "360 GiB/s", "NVLink in one")
    across = explain_alone(simulation, "ALLGATHER", "dp_ep", 2**30)
    assert facts(across).startswith("dp_ep, 8, 1 073 741 824 B, 48.5 GiB/s, 1, 48.5, 8, ")
    said(across.splitlines(), "all-gather", "dp_ep group", "48.5 GiB/s", "NICs", "8 nodes")


def test_a_spans_origin_is_that_of_its_network() -> None:
    simulation = simulate(one_row(fwd=Cell(0, "ALLREDUCE", "tp", 2**25)), Parameters(network=FIXED))
    span = find_op_facts(simulation, 0, 0)
    assert span is not None
    assert facts(explain_duration(simulation, span.class_id, span.op)) == (
        "tp, 2, 33 554 432 B, 300 GiB/s, TP.allreduce, "
        "33 554 432 B, 2, 30, 300 GiB/s, 1e9, 2, 1, 2, 104 166 ns"
    )


@pytest.mark.parametrize("name", ["simai-auto", FIXED])
def test_a_sendrecv_is_a_transfer_with_its_own_bandwidth_and_nothing_in_the_estimate(name: str) -> None:
    """What SimAI does not know costs it nothing; the step has the transfer, the table its time alone."""
    cell = ns(0, "SENDRECV 20971520")
    lines = table(row("x", ns(1000), ns(2000), ns(3000)), row("sendrecv", cell, cell, ns(0)))
    results = SimulatedRun(simulate(read(lines), Parameters(network=name, world=16, tp=2, pp=4)))
    alone = results.layers[1].cells["fwd"].comm_ns
    transfers = {
        facts.end_ns - facts.start_ns
        for number in range(len(results.accounts))
        for op in range(len(results.simulation.timeline.stage_program(number).ops))
        if (facts := find_op_facts(results.simulation, number, op)) is not None and facts.kind == "send"
    }
    # The slowest link: stages of a server are nearer to each other under simai-auto.
    assert max(transfers) == alone
    assert results.simai_estimate is not None
    assert results.simai_estimate.exposed_us == 0
