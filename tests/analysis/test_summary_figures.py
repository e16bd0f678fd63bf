"""The figures of the summary: stages, the map of ranks, the worst places; each checked rank by rank.

Planted, one at a time: the largest class of a stage left out of the map, `sum_ns` of a stage without
the counts of its classes, the coordinates of stage and dp exchanged in the map, any bubble taken for the
longest; for the worst link the port with the most bytes, or that of dimension 0 alone. The properties of
this file failed on each; the longest op of any dimension failed the test of what is longest on it.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from simcore.analysis.dimensions import _op_loads, compute_class_use
from simcore.analysis.rank_map import MEASURES
from simcore.parameters import Parameters
from simcore.program.ops import STREAMS
from simcore.render.report.pages import run_json, run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.simulated import (
    ACCOUNTS,
    BUBBLE,
    FIRST_EXPOSED,
    IDLE,
    WAIT,
)
from simcore.trace.findings import Finding
from simcore.trace.run import account_ns, mean_busy_ns, sum_ns
from simcore.trace.worst import same_stages_text
from simcore.workload.opening import open_workload
from tests.engine.test_policies import made
from tests.strategies import Case, Cell, Row, cases, layer, make_workload
from tests.tui.made_runs import four_stages, run, seed, seed_workload


@st.composite
def slowed(draw: st.DrawFn) -> Case:
    """A case with up to two slow ranks, so that stages have several classes."""
    workload, parameters = draw(cases(16))
    world = workload.header.all_gpus or 1
    ranks = draw(st.lists(st.integers(0, world - 1), max_size=2, unique=True))
    return Case(workload, replace(parameters, slow_rank=tuple(f"{rank}=1.5" for rank in ranks)))


@settings(max_examples=60)
@given(slowed())
def test_every_rank_is_in_one_cell_of_the_map_with_its_own_class(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    layout, folding = results.simulation.layout, results.simulation.timeline.folding
    seen: dict[tuple[int, int], tuple[int, ...]] = {}
    for row in results.shape.rank_map:
        pairs = [(dp, tp) for dp in row.dp for tp in row.tp]
        mine = []
        for dp, tp in pairs:
            found = tuple(folding.class_of(layout.rank(tp, dp, stage)) for stage in range(layout.pp))
            if found == row.classes:
                mine.append((dp, tp))
                assert (dp, tp) not in seen
                seen[dp, tp] = found
        assert len(mine) == row.pairs
        assert row.is_grid == (len(mine) == len(pairs))
    assert len(seen) == layout.dp * layout.tp


@settings(max_examples=60)
@given(slowed())
def test_a_stages_accounts_are_those_of_its_ranks_added_up(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    layout, folding = results.simulation.layout, results.simulation.timeline.folding
    sums = [[0] * len(ACCOUNTS) for _ in range(layout.pp)]
    ranks = [0] * layout.pp
    for rank in range(layout.world):
        stage = layout.position(rank)[2]
        ranks[stage] += 1
        for account, ns in enumerate(results.accounts[folding.class_of(rank)].total_ns):
            sums[stage][account] += ns
    step = results.step_time_ns
    for stage in range(layout.pp):
        of_stage = [track for track in results.tracks if track.stage == stage]
        found = sum_ns(results, of_stage)
        assert found == sums[stage]
        assert sum(account_ns(results, of_stage).values()) == sum(found) == step * ranks[stage]
    compute = sum(sum(found[:FIRST_EXPOSED]) for found in sums)
    assert mean_busy_ns(results) == round(compute / layout.world)


def ops_seen(results: SimulatedRun, place: Finding) -> list[int]:
    """The ops that run just where a place is."""
    _, start, end = results.simulation.timeline.columns(place.track_id)
    times = enumerate(zip(start, end, strict=True))
    return [op for op, time in times if time == (place.start_ns, place.end_ns)]


def streams_seen(results: SimulatedRun, place: Finding) -> set[str]:
    """The streams of those ops."""
    ops, _, _ = results.simulation.timeline.columns(place.track_id)
    return {STREAMS[ops.stream[op]] for op in ops_seen(results, place)}


@settings(max_examples=60)
@given(slowed())
def test_no_place_is_worse_than_the_worst(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    by_name = {place.what: place for place in results.figures.worst_findings}
    bubbles = [
        one.edge[index + 1] - one.edge[index]
        for one in results.accounts
        for index, account in enumerate(one.account)
        if account == BUBBLE
    ]
    assert ("bubble" in by_name) == bool(bubbles)
    if bubbles:
        assert by_name["bubble"].ns == max(bubbles)
    if results.step_time_ns:
        assert by_name["end"].ns == max(results.figures.ends)
    if results.class_waits:
        assert by_name["wait"].ns == results.class_waits[0].ns
    by_layer: dict[str, int] = {}
    for group in results.layer_groups:
        by_layer[group.title] = by_layer.get(group.title, 0) + group.use.exposed_ns
    exposed = max(by_layer.values(), default=0)
    assert ("exposed" in by_name) == bool(exposed)
    if exposed:
        assert by_name["exposed"].ns == exposed
        place = by_name["exposed"]
        segments = list(pairwise(results.accounts[place.track_id].edge))
        account = results.accounts[place.track_id].account[segments.index((place.start_ns, place.end_ns))]
        assert FIRST_EXPOSED <= account < WAIT
    uses = [compute_class_use(results.simulation, number) for number in range(len(results.accounts))]
    busy = {
        (number, index): sum(load.busy_ns for (one, _), load in use.items() if one == index)
        for number, use in enumerate(uses)
        for index, _ in use
    }
    assert ("link" in by_name) == (max(busy.values(), default=0) > 0)
    if "link" in by_name:
        place = by_name["link"]
        assert place.ns == max(busy.values())
        ops, _, _ = results.simulation.timeline.columns(place.track_id)
        costs = [results.simulation.program.costs[ops.cost[op]] for op in ops_seen(results, place)]
        rank_class = results.simulation.timeline.classes[place.track_id]
        crossed = (_op_loads(results.simulation, rank_class, cost, results.simulation.network.slowed)[1]
                   for cost in costs)  # fmt: skip
        assert set().union(*crossed) & {
            index for (number, index), ns in busy.items() if (number, ns) == (place.track_id, place.ns)
        }
    for place in results.figures.worst_findings:
        assert 0 <= place.start_ns < place.end_ns <= results.step_time_ns
        assert 0 <= place.track_id < len(results.accounts)


@settings(max_examples=40)
@given(slowed())
def test_every_measure_is_a_part_of_the_step(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    for one in results.accounts:
        found = {name: measure(one) for name, measure in MEASURES.items()}
        assert all(0 <= ns <= results.step_time_ns for ns in found.values())
        assert sum(ns for name, ns in found.items() if name != "end") == results.step_time_ns
        assert found["end"] + one.total_ns[IDLE] == results.step_time_ns


def test_a_slow_rank_makes_four_rows_of_the_map() -> None:
    rows = run(seed_workload(), microbatches=2, slow_rank=("37=1.3",)).shape.rank_map
    assert [(row.dp.text(), row.tp.text(), row.pairs) for row in rows] == [
        ("0-3,5-7", "0-4,6-7", 49), ("0-3,5-7", "5", 7), ("4", "0-4,6-7", 7), ("4", "5", 1)
    ]  # fmt: skip


def test_the_map_of_a_million_ranks_is_one_row() -> None:
    (row,) = seed(world=2**20).shape.rank_map
    assert (row.dp.text(), row.tp.text(), row.pairs, row.is_grid) == ("0-8191", "0-7", 2**16, True)


def test_the_worst_places_of_seed_002() -> None:
    assert [(place.what, place.words) for place in seed(schedule="1f1b").figures.worst_findings] == [
        ("end", "14.774 s, last to end: ranks 0-63"),
        ("bubble", "4.096 s (27.7 %) at a stretch: stage 0, from 3.064 s"),
        ("layer", "2.100 s (14.2 %) with communication: mlp_row"),
        ("exposed", "228.3 ms (1.5 %): grad_param_comm, dp reduce-scatter"),
        ("link", "busy 346.8 ms (2.3 %) on dim 1 (dp, pp; 50 GB/s) of stages 1-14, most with dp"),
    ]
    wait = four_stages(slow_rank=("37=1.3",)).figures.worst_findings[1]
    assert (wait.what, wait.words) == ("wait", "530.5 ms (14.1 %) for rank 37: ranks 32-36,38-39")


@pytest.mark.slow
@pytest.mark.parametrize("network", ["analytical", "shared"])
def test_a_slowed_link_is_the_worst_where_it_decides(network: str) -> None:
    # All ranks of its ring are busy as long as rank 37, at the pace of its port.
    slowed = four_stages(slow_link=("1:37=0.2",), network=network)
    link = slowed.figures.worst_findings[-1]
    words = "busy 1.867 s (36.4 %) on dim 1 (dp, pp; 50 GB/s) of rank 37, almost all with dp, slowed to 0.2"
    assert (link.what, link.words) == ("link", words)
    assert streams_seen(slowed, link) == {"dp"}
    if network == "analytical":
        assert (
            four_stages(slow_link=("0:37=0.9",)).figures.worst_findings[-1].words
            == four_stages().figures.worst_findings[-1].words
        )


@pytest.mark.slow
def test_the_report_names_the_worst_link_though_another_rank_sends_as_much() -> None:
    results = four_stages(slow_link=("1:37=0.2",))
    assert results.dimensions[1].busy_ns == four_stages().dimensions[1].busy_ns
    lines = run_page(results).split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith("What a rank sends"))
    words = "busy 1.867 s (36.4 %) on dim 1 (dp, pp; 50 GB/s) of rank 37, almost all with dp, slowed to 0.2"
    assert lines[at + 4] == f"  worst link  {words}"
    busy_ns = results.figures.worst_findings[-1].ns
    assert run_json(results)["worst_link"] == {
        "dimension": 1, "ranks": "37", "busy_ns": busy_ns, "factor": 0.2
    }  # fmt: skip


def test_what_is_shown_of_the_worst_link_goes_over_its_own_dimension() -> None:
    results = four_stages(slow_link=("0:37=0.1",))
    link = results.figures.worst_findings[-1]
    assert link.words.endswith(" on dim 0 (tp; 450 GB/s) of rank 37, all with tp, slowed to 0.1")
    # The gradients, over dimension 1, take longer.
    assert streams_seen(results, link) == {"tp"}


def test_a_network_without_dimensions_has_no_worst_link() -> None:
    assert "link" not in {place.what for place in seed(network="simai-auto").figures.worst_findings}


def test_what_stages_share_is_of_none_of_them_alone() -> None:
    results = seed(schedule="1f1b")
    assert [same_stages_text(results, numbers) for numbers in (range(16), (3, 5), (4,), ())] == [
        "equal stages 0-15", "equal stages 3,5", "", ""
    ]  # fmt: skip


def test_of_one_rows_exposed_collectives_the_longest_is_shown() -> None:
    # All-reduces of tp that take 30, 90 and 60 ns, of one row each micro-batch alike.
    cells = [Cell(100, "ALLREDUCE", "tp", size) for size in (10, 70, 40)]
    results = run(make_workload([Row("mlp", *cells)], tp=2, ep=1, pp=1, all_gpus=2), dim=("switch:2:1:5",),
                  endpoint_delay=0, local_mem_bw=1e9)  # fmt: skip
    (place,) = [one for one in results.figures.worst_findings if one.what == "exposed"]
    assert place.end_ns - place.start_ns == 2 * (10 + 35)


def test_a_step_of_no_time_has_no_worst_place() -> None:
    assert run(make_workload([layer("mlp")])).figures.worst_findings == []


def test_names_of_a_file_are_made_safe() -> None:
    rows = [Row("\x1b[2J" + "x" * 100, Cell(100, "ALLREDUCE", "tp", 4096), Cell(100), Cell(100))]
    places: list[Finding] = run(make_workload(rows, tp=2, all_gpus=2)).figures.worst_findings
    assert any("\\x1b[2Jxxx" in place.words for place in places)
    assert not any("\x1b" in place.words for place in places)


def test_the_other_stage_layout_is_timed_where_there_is_one() -> None:
    two = make_workload([layer("embedding_layer", 7), *[layer("mlp", 50)] * 2], pp=2, vpp=2, all_gpus=2)
    megatron = run(two, schedule="1f1b", stage_layout="megatron")
    assert run(two, schedule="1f1b").megatron_step_ns == megatron.step_time_ns
    assert megatron.step_time_ns < run(two, schedule="1f1b").step_time_ns
    assert megatron.megatron_step_ns is None
    assert run(two, schedule="layer-loop").megatron_step_ns is None
    assert run(two, schedule="1f1b", jitter=0.5).megatron_step_ns is None
    assert run(two, schedule="1f1b", pp=1).megatron_step_ns is None


def test_a_rank_ends_with_its_last_op_and_not_with_the_state_changes_behind_it() -> None:
    results = SimulatedRun(made(["mlp -1 50 NONE 0 0 NONE 0 0 NONE 0 0"]))
    assert [ACCOUNTS[account] for account in results.accounts[0].account] == ["compute fwd", "idle", "idle"]
    assert results.figures.worst_findings[0] == Finding("end", "50 ns, last to end: all ranks", 0, 0, 50, 50)


def test_the_exposed_collectives_of_a_row_are_those_that_its_policy_runs() -> None:
    """DATA runs the all-reduce of weight gradients alone; the file states two more."""
    results = SimulatedRun(made(["mlp -1 50 ALLGATHER 400 0 ALLTOALL 400 70 ALLREDUCE 4000 0"]))
    assert [one.words for one in results.figures.worst_findings if one.what == "exposed"] == [
        "5.999 us (98.0 %): mlp, all all-reduce"
    ]


def test_who_is_everybody_is_said_to_be_all_ranks() -> None:
    """Seed 000 has one stage of 128 ranks alike; of seed 002 the first stage alone ends last."""
    alike = SimulatedRun(simulate(open_workload("fixtures/000_gpt13b_tp4_old_header.txt"), Parameters()))
    words = {one.what: one.words for one in alike.figures.worst_findings}
    assert words["end"] == "430.4 ms, last to end: all ranks"
    assert words["link"] == "busy 123.4 ms (28.7 %) on dim 1 (dp; 50 GB/s) of all ranks, all with dp"
    staged = SimulatedRun(simulate(open_workload("fixtures/002_gpt_1024npu.txt"), Parameters()))
    assert not any("all ranks" in one.words for one in staged.figures.worst_findings)


def test_a_bubble_from_the_first_thousandth_of_the_step_is_from_the_start() -> None:
    """6 ns of 11.626 s are the start, 3.064 s of 14.774 s are none (above)."""
    results = seed(schedule="zb-h2")
    (place,) = [one for one in results.figures.worst_findings if one.what == "bubble"]
    assert 0 < place.start_ns < results.step_time_ns / 1000
    assert place.words.endswith(": stage 15, from the start")
