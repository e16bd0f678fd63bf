"""The step of an op table, computed by hand for each kind of communication.

The network is a ring of two: an all-reduce of 1000 B takes 1050 ns (two messages of 500 B at
1 GB/s, 10 ns a hop, three endpoint delays of 10 ns), a transfer of 1000 B 1010 ns.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.workload import Workload, open_workload
from tests.findings import facts, finding
from tests.says import said
from tests.stream_spans import stream_spans
from tests.workload.test_op_table import read, row, table
from tests.workload.texts import FIXTURES

RING = ("ring:2:1:10",)
ALL_REDUCE, TRANSFER = 1050, 1010


def ns(compute: int, cell: str = "None 0") -> str:
    """A cell triple with a compute time in ns."""
    return f"{compute}e-6 {cell}"


def run(workload: Workload, **parameters: Any) -> Simulation:
    return simulate(workload, Parameters(**({"dim": RING} | parameters)))


def spans(simulation: Simulation, stream: str, number: int = 0) -> list[tuple[str, str, int, int]]:
    """(row, phase, start, end) of each span of a stream."""
    names = simulation.workload.name
    return [
        (names[span.row], span.phase, span.start, span.end)
        for span in stream_spans(simulation.timeline, number, stream)
    ]


DP = table(
    row("x_grad", ns(0), ns(0, "ALLREDUCE_ASYNC 250"), ns(0)),
    row("x", ns(100), ns(200), ns(30)),
    row("y_grad", ns(0), ns(0, "ALLREDUCE_ASYNC 250"), ns(0)),
    row("y", ns(50), ns(400), ns(0)),
)
TP = table(
    row("a", ns(100), ns(200), ns(0)),
    row("reduce_from_tensor_model_parallel_region", ns(0, "ALLREDUCE 250"), ns(0, "ALLREDUCE 250"), ns(0)),
    row("b", ns(50), ns(60), ns(7)),
)
PP = table(
    row("a", ns(100), ns(200), ns(0)),
    row("sendrecv", ns(0, "SENDRECV 250"), ns(0, "SENDRECV 250"), ns(0)),
    row("b", ns(50), ns(60), ns(0)),
)


def test_an_asynchronous_all_reduce_of_an_op_table_runs_after_the_compute_before_it_one_at_a_time() -> None:
    simulation = run(read(DP))
    assert (simulation.layout.tp, simulation.layout.dp, simulation.layout.pp) == (1, 2, 1)
    assert spans(simulation, "compute") == [
        ("x", "fwd", 0, 100),
        ("y", "fwd", 100, 150),
        ("y", "ig", 150, 550),
        ("x", "ig", 550, 750),
        ("x", "wg", 750, 780),
    ]
    assert spans(simulation, "dp") == [
        ("y_grad", "ig", 550, 550 + ALL_REDUCE),
        ("x_grad", "ig", 550 + ALL_REDUCE, 550 + 2 * ALL_REDUCE),  # the stream does one at a time
    ]
    assert simulation.step_time_ns == 550 + 2 * ALL_REDUCE
    (accounts,) = SimulatedRun(simulation).accounts
    assert (accounts.busy_ns, accounts.exposed_ns()["dp"]) == (780, 550 + 2 * ALL_REDUCE - 780)


def test_a_tensor_parallel_all_reduce_blocks_forward_and_backward() -> None:
    simulation = run(read(TP))
    assert (simulation.layout.tp, simulation.layout.dp, simulation.layout.pp) == (2, 1, 1)
    name = "reduce_from_tensor_model_parallel_region"
    after = 150 + ALL_REDUCE
    assert spans(simulation, "tp") == [
        (name, "fwd", 100, 100 + ALL_REDUCE),
        (name, "ig", after + 67, after + 67 + ALL_REDUCE),
    ]
    assert simulation.step_time_ns == 100 + 50 + 60 + 7 + 200 + 2 * ALL_REDUCE


def test_a_sendrecv_goes_to_the_next_stage_forward_and_to_the_one_before_backward_and_compute_waits() -> None:
    simulation = run(read(PP))
    assert (simulation.layout.tp, simulation.layout.dp, simulation.layout.pp) == (1, 1, 2)
    backward = 150 + TRANSFER + 60
    assert spans(simulation, "pp>next", 0) == [("sendrecv", "fwd", 100, 100 + TRANSFER)]
    assert spans(simulation, "pp>prev", 1) == [("sendrecv", "ig", backward, backward + TRANSFER)]
    assert spans(simulation, "pp>prev", 0) == spans(simulation, "pp>next", 1) == []
    assert simulation.step_time_ns == 100 + 50 + 60 + 200 + 2 * TRANSFER
    results = SimulatedRun(simulation)
    for accounts in results.accounts:  # who sends waits for it, and so does who receives
        assert (accounts.busy_ns, accounts.exposed_ns()["pp"], accounts.bubble_ns) == (410, 2 * TRANSFER, 0)
    sendrecv = results.layers[1]
    assert (sendrecv.cells["fwd"].collective, sendrecv.cells["fwd"].group) == ("SENDRECV", "pp")
    assert (sendrecv.cells["fwd"].comm_ns, sendrecv.cells["fwd"].members) == (TRANSFER, 2)
    assert (sendrecv.cells["fwd"].algbw, sendrecv.cells["fwd"].busbw) == (1000 / TRANSFER, 1000 / TRANSFER)


def test_a_stage_in_the_middle_of_a_sendrecv_sends_and_receives_at_once() -> None:
    simulation = run(read(PP), dim=("ring:4:1:10",), pp=3, world=3)
    assert len(simulation.timeline.classes) == 3
    assert spans(simulation, "pp>next", 1) == [("sendrecv", "fwd", 100, 100 + TRANSFER)]
    assert [len(spans(simulation, "pp>next", stage)) for stage in range(3)] == [1, 1, 0]
    assert simulation.step_time_ns == 410 + 2 * TRANSFER


def test_collectives_of_different_kinds_in_one_table_run_side_by_side() -> None:
    gradient = row("x_grad", ns(0), ns(0, "ALLREDUCE_ASYNC 250"), ns(0))
    text = TP.replace(row("b", ns(50), ns(60), ns(7)), gradient + "\n" + row("b", ns(50), ns(60), ns(7)))
    simulation = run(read(text), dim=("ring:4:1:10",), tp=2)
    assert (simulation.layout.tp, simulation.layout.dp) == (2, 2)
    (dp,), (_, tp) = spans(simulation, "dp"), spans(simulation, "tp")
    assert (dp[0], dp[2], tp[2]) == ("x_grad", 100 + ALL_REDUCE + 117, 100 + ALL_REDUCE + 117)


GPT = table(
    row("wte", ns(10), ns(20), ns(0)),
    row("transformer_h_0_ln_1_grad", ns(0), ns(0, "ALLREDUCE_ASYNC 250"), ns(0)),
    row("transformer_h_0_ln_1", ns(100), ns(3000), ns(5)),
    row("add_15", ns(7), ns(9), ns(0)),
    row("lm_head", ns(1000), ns(2000), ns(300)),
)

GPT_TP = table(
    row("transformer_h_0_ln_1", ns(100), ns(3000), ns(5)),
    row("reduce_from_tensor_model_parallel_region", ns(0, "ALLREDUCE 250"), ns(0, "ALLREDUCE 250"), ns(0)),
    row("add_15", ns(7), ns(9), ns(0)),
)


def test_the_layer_of_an_op_table_repeats_in_place_and_its_collectives_with_it() -> None:
    once, thrice = run(read(GPT), layers=1), run(read(GPT), layers=3)
    forward = ["transformer_h_0_ln_1", "add_15"]
    assert [name for name, phase, *_ in spans(thrice, "compute") if phase == "fwd"] == [
        "wte", *forward * 3, "lm_head"
    ]  # fmt: skip
    assert [name for name, phase, *_ in spans(thrice, "compute") if phase == "ig"] == [
        "lm_head", *["add_15", "transformer_h_0_ln_1"] * 3, "wte"
    ]  # fmt: skip
    assert len(spans(thrice, "dp")) == 3
    layer = 100 + 3000 + 5 + 7 + 9
    assert thrice.step_time_ns - once.step_time_ns == 2 * layer
    # The last all-reduce is issued 25 ns (wte and the accumulation) before compute ends.
    assert once.step_time_ns == 10 + 1000 + 2300 + layer + ALL_REDUCE
    (line,) = [line for line in SimulatedRun(thrice).layers if line.name == "add_15"]
    assert (line.index, line.use.compute_ns) == (3, 3 * 16)
    assert thrice.program.structure.layers_per_block == (3,)


def test_in_the_next_pass_a_row_of_an_op_table_waits_for_its_own_all_reduce_of_the_pass_before() -> None:
    simulation = run(read(DP), passes=2)
    # Pass 1 ends at 780; x_grad, before x, is reduced until 2650, y_grad until 1600.
    assert [(name, start) for name, phase, start, _ in spans(simulation, "compute") if phase == "fwd"] == [
        ("x", 0), ("y", 100), ("x", 550 + 2 * ALL_REDUCE), ("y", 650 + 2 * ALL_REDUCE)
    ]  # fmt: skip
    results = SimulatedRun(simulation)
    assert results.pass_end_ns == [780, 550 + 2 * ALL_REDUCE + 780]
    assert simulation.step_time_ns == 2 * (550 + 2 * ALL_REDUCE)
    assert results.accounts[0].exposed_ns()["dp"] == simulation.step_time_ns - 2 * 780
    assert not [one for one in simulation.diagnostics if one.code == "parameter-ignored"]


def test_each_place_of_a_repeated_layer_waits_for_its_own_all_reduce() -> None:
    simulation = run(read(GPT), layers=3, passes=2)
    starts = [start for name, phase, start, _ in spans(simulation, "compute")
              if name == "transformer_h_0_ln_1" and phase == "fwd"]  # fmt: skip
    reduced = [end for *_, end in spans(simulation, "dp")[:3]]
    # Backward reduces the last place first: the first place waits for the third all-reduce.
    assert starts[3] == reduced[2]
    assert starts[4:] == [starts[3] + 107, starts[3] + 214]
    assert len(spans(simulation, "dp")) == 6


def test_a_pass_ends_when_the_last_gradient_has_come() -> None:
    """Row 0 is the SENDRECV: the last that a stage does in a pass is to receive."""
    text = table(
        row("sendrecv", ns(0, "SENDRECV 250"), ns(0, "SENDRECV 250"), ns(0)),
        row("a", ns(100), ns(200), ns(0)),
    )
    once, twice = (run(read(text), passes=passes) for passes in (1, 2))
    assert once.step_time_ns == 300 + 2 * TRANSFER
    assert SimulatedRun(once).pass_end_ns == [300 + 2 * TRANSFER]
    assert SimulatedRun(twice).pass_end_ns == [300 + 2 * TRANSFER, 2 * (300 + 2 * TRANSFER)]
    assert twice.step_time_ns == 2 * once.step_time_ns


@given(passes=st.integers(1, 4), case=st.sampled_from(((DP, None), (PP, None), (GPT_TP, 1), (GPT_TP, 3))))
def test_a_pass_that_overlaps_no_other_takes_as_long_as_each(
    passes: int, case: tuple[str, int | None]
) -> None:
    text, layers = case
    once = run(read(text), layers=layers)
    more = run(read(text), layers=layers, passes=passes)
    assert more.step_time_ns == passes * once.step_time_ns
    assert more.timeline.spans == passes * once.timeline.spans
    (first,) = SimulatedRun(once).pass_end_ns
    assert SimulatedRun(more).pass_end_ns == [first + number * once.step_time_ns for number in range(passes)]
    assert run(read(text), layers=layers, passes=passes, no_fold=True).step_time_ns == more.step_time_ns


def test_the_number_of_layers_is_assumed_and_known_counts_are_named() -> None:
    (found,) = [one for one in run(read(GPT)).diagnostics if one.code == "layers-assumed"]
    assert found.text() == (
        "w.txt:3: warning layers-assumed one GPT layer is listed (lines 3 to 5) and run once: --layers N "
        "repeats it (known: gpt2 12, gpt2_medium 24, gpt2_large 36, gpt2_xl 48, gpt3_xl 24, gpt3_2.7b 32, "
        "gpt3_6.7b 32, gpt3_13b 40)"
    )
    assert not [one for one in run(read(GPT), layers=1).diagnostics if one.code == "layers-assumed"]


@pytest.mark.parametrize(
    ("first", "last", "family"),
    [
        ("bert_encoder_layer_0_attention_self_query", "bert_encoder_layer_0_output_layer_norm", "BERT"),
        ("model_decoder_layers_0_self_attn_layer_norm", "view_11", "OPT"),
        ("transformer_h_0_ln_1", "add_15", "GPT"),
    ],
)
def test_the_layer_is_found_by_the_names_of_each_family(first: str, last: str, family: str) -> None:
    workload = read(table(row("x"), row(first), row("y"), row(last), row("z")))
    simulation = run(workload)
    assert simulation.program.structure.blocks == ((1, 2, 3),)
    (found,) = [one for one in simulation.diagnostics if one.code == "layers-assumed"]
    assert found.message.startswith(f"one {family} layer is listed (lines 3 to 5) and run once")


def test_without_known_names_every_row_runs_once() -> None:
    (found,) = [one for one in run(read(DP)).diagnostics if one.code == "layer-not-found"]
    assert finding(found.text()) == "w.txt: warning layer-not-found"
    with pytest.raises(UsageError) as refused:
        run(read(DP), layers=2)
    assert facts(str(refused.value)) == (
        "--layers 2, transformer_h_0_ln_1, add_15, bert_encoder_layer_0_attention_self_query, "
        "bert_encoder_layer_0_output_layer_norm, BERT, model_decoder_layers_0_self_attn_layer_norm, view_11"
    )


def test_in_a_pipeline_the_known_counts_are_those_of_all_stages() -> None:
    pp = GPT + row("sendrecv", ns(0, "SENDRECV 250"), ns(0, "SENDRECV 250"), ns(0))
    text = pp.replace(row("transformer_h_0_ln_1_grad", ns(0), ns(0, "ALLREDUCE_ASYNC 250"), ns(0)) + "\n", "")
    (found,) = [one for one in run(read(text)).diagnostics if one.code == "layers-assumed"]
    assert found.message.endswith("gpt3_13b 40; a stage of pp 2 holds 1/2 of them)")


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "interleaved", "zb-h1", "\x1b"])
def test_an_op_table_runs_as_layer_loop_alone(schedule: str) -> None:
    with pytest.raises(UsageError) as refused:
        run(read(PP), schedule=schedule)
    shown = schedule.replace("\x1b", "\\x1b")
    said([str(refused.value)], f"--schedule {shown}", "op table", "layer-loop")
    assert run(read(PP), schedule="layer-loop").timeline == run(read(PP)).timeline


def test_more_layers_than_can_be_simulated_are_refused() -> None:
    with pytest.raises(UsageError) as refused:
        run(read(GPT), layers=2**40)
    assert facts(str(refused.value)) == "1099511627776, 1, 19791209299980, 40000000"


def test_more_passes_of_a_table_than_can_be_simulated_are_refused() -> None:
    with pytest.raises(UsageError) as refused:
        run(read(GPT), layers=2, passes=2**30)
    assert facts(str(refused.value)) == "2, 1, 1073741824, 51539607552, 40000000"


WORLDS = [
    (DP, {"dim": ()}, (1, 8, 1), "world 8 assumed (default 8 or more), so tp 1, dp 8, pp 1"),
    (TP, {"dim": ()}, (8, 1, 1), "world 8 assumed (default 8 or more), so tp 8, dp 1, pp 1"),
    (PP, {"dim": ()}, (1, 1, 8), "world 8 assumed (default 8 or more), so tp 1, dp 1, pp 8"),
    (TP, {"dim": (), "tp": 16}, (16, 1, 1), "world 16 assumed (default 8 or more), so tp 16, dp 1, pp 1"),
    (TP, {"dim": (), "tp": 4}, (4, 2, 1), "world 8 assumed (default 8 or more), so tp 4, dp 2, pp 1"),
    (DP, {"dim": (), "tp": 3}, (3, 3, 1), "world 9 assumed (default 8 or more), so tp 3, dp 3, pp 1"),
    (DP, {}, (1, 2, 1), "world 2 assumed (the cluster has 2 NPUs), so tp 1, dp 2, pp 1"),
    (PP, {"dim": ("ring:7:1:1",), "tp": 2}, (2, 1, 3),
     "world 6 assumed (the cluster has 7 NPUs), so tp 2, dp 1, pp 3"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "parameters", "degrees", "words"), WORLDS)
def test_the_ranks_of_an_op_table_are_assumed_and_said(
    text: str, parameters: dict[str, Any], degrees: tuple[int, int, int], words: str
) -> None:
    simulation = run(read(text), **parameters)
    assert (simulation.layout.tp, simulation.layout.dp, simulation.layout.pp) == degrees
    (found,) = [one for one in simulation.diagnostics if one.code == "ranks-assumed"]
    assert finding(found.text()) == f"w.txt: warning ranks-assumed {facts(words)}"


def test_ranks_that_are_given_are_not_assumed() -> None:
    simulation = run(read(DP), dim=(), world=4)
    assert simulation.layout.dp == 4
    assert "ranks-assumed" not in {one.code for one in simulation.diagnostics}


def test_what_an_op_table_does_not_use_is_said() -> None:
    simulation = run(read(DP), microbatches=4, ep=2, dialect="astra-sim-1")
    messages = [one.message for one in simulation.diagnostics if one.code == "parameter-ignored"]
    assert [facts(one) for one in messages] == ["--ep", "--microbatches", "--dialect"]
    assert [one.endswith("op table") for one in messages] == [True, False, True]


def test_layers_have_no_effect_on_another_file() -> None:
    workload = open_workload(str(FIXTURES / "001_moe_128npu_with_mistakes.txt"))
    found = simulate(workload, Parameters(layers=3)).diagnostics
    assert [facts(one.message) for one in found if one.code == "parameter-ignored"] == ["--layers"]


@pytest.mark.parametrize("text", [DP, TP, PP])
def test_folded_and_unfolded_runs_of_an_op_table_are_equal(text: str) -> None:
    parameters = {"dim": ("ring:2:1:10", "switch:4:7:3"), "slow_rank": ("3=1.5",), "slow_link": ("0:2=0.5",)}
    folded, every = run(read(text), **parameters), run(read(text), **parameters, no_fold=True)
    assert folded.step_time_ns == every.step_time_ns
    assert folded.timeline.spans == every.timeline.spans


def test_a_sendrecv_alone_takes_what_the_network_of_the_run_prices_it_at() -> None:
    """Two GPUs of a server: 1000 B / 2^30 / 360 GiB/s x 1e9, floored."""
    simulation = run(read(PP), network="simai-auto", nvlink=360.0, nic=48.5, comm_scale=3.0)
    (cell, *_) = [row.cells["fwd"] for row in SimulatedRun(simulation).layers if row.name == "sendrecv"]
    assert cell.comm_ns == 3 * 2
    assert spans(simulation, "pp>next", 0) == [("sendrecv", "fwd", 100, 100 + 3 * 2)]


@pytest.mark.parametrize("phase", ["fwd", "bwd"])
def test_a_sendrecv_in_one_direction_alone_runs(phase: str) -> None:
    cell = {phase: ns(0, "SENDRECV 250")}
    text = PP.replace(
        row("sendrecv", ns(0, "SENDRECV 250"), ns(0, "SENDRECV 250"), ns(0)),
        row("sendrecv", **({"fwd": ns(0), "bwd": ns(0), "wg": ns(0)} | cell)),
    )
    results = SimulatedRun(run(read(text)))
    assert results.simulation.step_time_ns == 410 + TRANSFER
    assert [accounts.exposed_ns()["pp"] for accounts in results.accounts] == [TRANSFER] * 2


# addmm, a SENDRECV of 250 kB each way, addmm; in ns.
_EXCHANGE = table(
    row("addmm", ns(1000), ns(2000), ns(3000)),
    row("sendrecv", ns(0, "SENDRECV 250000"), ns(0, "SENDRECV 250000"), ns(0)),
    row("addmm_1", ns(1000), ns(2000), ns(3000)),
)
_SWITCHES = ("switch:2:450:500", "switch:2:50:1000")


def test_a_sendrecv_row_is_exposed_by_what_compute_waited_for_to_send_and_to_receive() -> None:
    """By hand: the slow link is that of ranks 1 and 2; each of the two sends there takes 23 us."""
    results = SimulatedRun(run(read(_EXCHANGE), pp=4, world=4, dim=_SWITCHES))
    assert results.step_time_ns == 58_000
    by_name = {one.name: one for one in results.layers}
    assert by_name["sendrecv"].use.exposed_ns == 46_000
    assert {accounts.exposed_ns()["pp"] for accounts in results.accounts} == {6444, 46_000}
    assert sum(one.use.exposed_ns for one in results.layers) == 46_000
    (place,) = (one for one in results.figures.worst_findings if one.what == "exposed")
    assert place.words == "46.000 us (79.3 %): sendrecv, pp send-recv"
    words = "all for sendrecv (forward and input gradient send-recv, 46.000 us on ranks 1-2)"
    assert words in results.sentences[0].text


@settings(max_examples=40)
@given(st.lists(st.tuples(*[st.integers(0, 3000)] * 4), min_size=1, max_size=4), st.sampled_from([2, 4]))
def test_rows_of_an_op_table_have_all_that_a_rank_waits_for(
    rows: list[tuple[int, int, int, int]], pp: int
) -> None:
    """On each rank what is exposed is of some row: no transfer is left out, sent or received."""
    lines = []
    for number, (fwd, ig, wg, size) in enumerate(rows):
        lines.append(row(f"x{number}", ns(fwd), ns(ig), ns(wg)))
        cell = ns(0, f"SENDRECV {size}")
        lines.append(row(f"sendrecv{number}", cell, cell, ns(0)))
    results = SimulatedRun(run(read(table(*lines)), pp=pp, world=pp, dim=_SWITCHES))
    most = max(results.accounts, key=lambda one: one.busy_ns + one.all_exposed_ns)
    assert (
        sum(one.use.compute_ns + one.use.exposed_ns for one in results.layers)
        >= most.busy_ns + most.all_exposed_ns
    )
