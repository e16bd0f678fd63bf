"""Critical paths and slack of runs that are small enough to follow by hand."""

from __future__ import annotations

from simcore.render.report.pages import run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation
from simcore.trace.graph import BEFORE, BUSY, JOINS, QUEUED, RECEIVED
from simcore.trace.reasons import Facts, reason_words
from simcore.trace.run import sum_path
from tests.analysis.booking import pair_ns, run
from tests.engine.test_policies import made
from tests.strategies import Cell, Row, layer

# Reasons by their facts: tests/trace/test_reasons.py has the words.
BEGINS = reason_words(Facts(None, is_queued=True))


def behind(what: str) -> str:
    return reason_words(Facts(BEFORE, what=what))


def sent(what: str, stage: int) -> str:
    return reason_words(Facts(RECEIVED, payload=what, stage=stage))


def busy(where: str, what: str) -> str:
    return reason_words(Facts(BUSY, where=where, what=what))


def late_to(what: str, rank: int) -> str:
    return reason_words(Facts(RECEIVED, is_late=True, rank=rank, own=what))


def path_of(simulation: Simulation) -> list[tuple[int, int, int, str, str]]:
    """(start, end, rank, stream, reason) of each segment."""
    return [
        (one.start_ns, one.end_ns, one.rank, one.stream, one.reason)
        for one in SimulatedRun(simulation).figures.path_segments()
    ]


def test_an_exposed_all_reduce_is_on_the_path_between_the_computes_around_it() -> None:
    rows = [Row("mlp_1", Cell(100, "ALLREDUCE", "tp", 1000)), layer("mlp_2", 50)]
    over = 100 + pair_ns(1000)
    assert path_of(run(rows, {"tp": 2})) == [
        (0, 100, 0, "compute", BEGINS),
        (100, over, 0, "tp", behind("compute")),
        (over, over + 50, 0, "compute", behind("tp all-reduce")),
    ]


def test_a_straggler_is_on_the_path_and_the_others_have_slack() -> None:
    rows = [Row("mlp", Cell(100, "ALLREDUCE", "dp", 1000))]
    simulation = run(rows, {"dp": 4}, slow_rank=("2=3",))
    results = SimulatedRun(simulation)
    (compute, collective) = path_of(simulation)
    assert compute == (0, 300, 2, "compute", BEGINS)
    assert collective[:4] == (300, results.step_time_ns, 0, "dp")
    assert collective[4] == late_to("dp all-reduce", 2)
    slow, fast = (simulation.timeline.folding.class_of(rank) for rank in (2, 0))
    assert list(results.slacks[slow] or ()) == [0, 0]
    assert list(results.slacks[fast] or ()) == [200, 0]
    (late,) = results.dependencies.causes(fast, 1, rank=3)
    assert (late.track_id, late.span, late.rank) == (slow, 0, 2)
    assert (late.start_ns, late.end_ns) == (0, 300)
    assert results.dependencies.causes(fast, 0) == []


def test_the_rank_that_is_late_is_the_one_of_the_own_group() -> None:
    """Two slow ranks of one class, each in a tp group of its own: rank 5 waits for 4, rank 1 for 0."""
    rows = [Row("mlp", Cell(100, "ALLREDUCE", "tp", 1000))]
    simulation = run(rows, {"tp": 2, "dp": 3}, slow_rank=("0=3", "4=3"))
    results = SimulatedRun(simulation)
    folding = simulation.timeline.folding
    fast = folding.class_of(1)
    assert folding.class_of(5) == fast
    for rank, slow in ((1, 0), (5, 4)):
        (late,) = results.dependencies.causes(fast, 1, rank)
        assert (late.rank, late.reason) == (slow, late_to("tp all-reduce", slow))
    for slow, waits in ((0, 1), (4, 5)):
        effects = results.dependencies.effects(folding.class_of(slow), 0, slow)
        assert [(one.track_id, one.rank, one.reason) for one in effects] == [
            (folding.class_of(slow), slow, behind("compute")),
            (fast, waits, late_to("tp all-reduce", slow)),
        ]


def test_a_bubble_bound_pipeline_goes_down_the_stages_and_back() -> None:
    """One micro-batch: forward on both stages, then backward on both; all else is bubble."""
    simulation = run([layer("embedding_layer", 100, 50, 25)], {"pp": 2, "pp_comm": 10}, microbatches=1)
    there = 100 + 20
    back = there + 175 + 20
    assert path_of(simulation) == [
        (0, 100, 0, "compute", BEGINS),
        (100, there, 0, "pp>next", behind("compute")),
        (there, there + 100, 1, "compute", sent("activation", 0)),
        (there + 100, there + 150, 1, "compute", behind("compute")),
        (there + 150, there + 175, 1, "compute", behind("compute")),
        (there + 175, back, 1, "pp>prev", behind("compute")),
        (back, back + 50, 0, "compute", sent("gradient", 1)),
        (back + 50, back + 75, 0, "compute", behind("compute")),
    ]
    results = SimulatedRun(simulation)
    assert sum_path(results, "stage") == [("stage 0", 195), ("stage 1", 195)]
    # Of a wait of the accounts: what is waited for first, then what holds that back.
    accounts = results.accounts[1]
    assert accounts.op[0] == -2
    causes = results.dependencies.segment_causes(1, accounts, 0)
    assert [(one.track_id, one.span, one.reason) for one in causes] == [
        (0, 1, sent("activation", 0)),
        (0, 0, behind("compute")),
    ]
    effects = results.dependencies.segment_effects(1, accounts, 0)
    assert [(one.track_id, one.span, one.start_ns) for one in effects] == [(1, 0, there)]
    # Of what stage 0 does first, and of the transfer back from stage 1 (its ops 0 to 2 are compute).
    effects = results.dependencies.segment_effects(0, results.accounts[0], 0)
    assert [(one.track_id, one.span, one.start_ns) for one in effects] == [(0, 1, 100)]
    effects = results.dependencies.effects(1, 3, 1)
    assert [(one.track_id, one.rank, one.start_ns) for one in effects] == [(0, 0, back)]


def test_a_late_gradient_all_reduce_ends_the_step_and_backward_has_slack() -> None:
    """The collective of mlp_2 runs beside the backward of mlp_1, which is short: the join waits."""
    rows = [layer("mlp_1", 10, 20, 30), Row("mlp_2", Cell(10), Cell(20), Cell(30, "ALLREDUCE", "dp", 5000))]
    simulation = run(rows, {"dp": 2})
    results = SimulatedRun(simulation)
    over = 70 + pair_ns(5000)
    assert path_of(simulation)[-2:] == [
        (40, 70, 0, "compute", behind("compute")),
        (70, over, 0, "dp", behind("compute")),
    ]
    assert results.step_time_ns == over
    beside = over - 120
    assert list(results.slacks[0] or ()) == [0, 0, 0, 0, 0, beside, beside]
    (waits,) = [i for i, op in enumerate(results.accounts[0].op) if op == 4]
    (first, *_) = results.dependencies.segment_causes(0, results.accounts[0], waits)
    assert (first.span, first.reason) == (4, reason_words(Facts(JOINS, what="dp all-reduce")))


def test_collectives_that_queue_on_their_stream_are_a_chain() -> None:
    rows = [Row(f"mlp_{row}", wg=Cell(10, "ALLREDUCE", "dp", 1000)) for row in (1, 2)]
    first, second = 10 + pair_ns(1000), 10 + 2 * pair_ns(1000)
    assert path_of(run(rows, {"dp": 2})) == [
        (0, 10, 0, "compute", BEGINS),
        (10, first, 0, "dp", behind("compute")),
        (first, second, 0, "dp", busy("the dp stream", "the all-reduce before it")),
    ]


def test_transfers_that_queue_on_their_channel_are_a_chain() -> None:
    rows = [layer("embedding_layer", 5), layer("embedding_layer", 5)]
    simulation = run(rows, {"pp": 2, "pp_comm": 1000}, microbatches=2, schedule="gpipe")
    reasons = [one[4] for one in path_of(simulation) if one[3] == "pp>next"]
    assert reasons == [behind("compute"), busy("the channel to stage 1", "the transfer before it")]


def test_recomputed_rows_are_on_the_path_in_their_phase() -> None:
    rows = [layer(f"mlp_{row}", 100, 10, 10) for row in range(3)]
    simulation = run(rows, {"checkpoints": (0,), "checkpoint_initiates": (2,)})
    assert sum_path(SimulatedRun(simulation), "kind") == [
        ("compute fwd", 300),
        ("compute recompute", 200),
        ("compute ig", 30),
        ("compute wg", 30),
    ]


def test_a_step_of_0_ns_has_an_empty_path() -> None:
    results = SimulatedRun(run([layer("mlp")], {}))
    path = results.critical_path
    assert (len(path), list(path.edge), path.at(0), sum_path(results, "kind")) == (0, [0], -1, [])
    assert "\nCritical path: nothing" in run_page(results)


def test_the_page_of_text_shows_the_path_with_names_made_safe() -> None:
    rows = [Row("m\x1b[31mlp", Cell(100, "ALLREDUCE", "tp", 1000)), layer("mlp_2", 50)]
    text = run_page(SimulatedRun(run(rows, {"tp": 2})))
    page = text[text.index("Critical path") : text.index("Diagnostics")]
    assert "\x1b" not in page
    assert "\0" not in page
    assert page.startswith("Critical path: 3 segments on 1 rank, 0 to 1.170 us; % of that\n")
    assert "  by kind   tp 1.020 us (87.2 %); compute fwd 150 ns (12.8 %)\n" in page
    first = f"1.020 us x1 100 ns 0 tp all-reduce m\\x1b[31mlp {behind('compute')}"
    assert first in " ".join(page.split())


def held_up(rows: list[str], policy: str, op: int) -> list[tuple[int, int, str]]:
    """Behind which (class, op) the queues serve `op` of each class, on 2 x 2 ranks of which 0 is slow."""
    simulation = made(
        rows, policy, dim=("ring:2:1:0",) * 2, algorithm=("0=ring", "1=ring"), slow_rank=("0=2",)
    )
    dependencies = SimulatedRun(simulation).dependencies
    found = [dependencies.causes(number, op)[0] for number in range(len(simulation.timeline.classes))]
    return [(one.track_id, one.span, one.reason) for one in found]


def test_a_collective_in_the_queues_waits_for_none_of_another_dimension() -> None:
    """b of the model groups starts last before c, and runs on, but c and d of the data groups go over 1."""
    rows = ["a -1 0 NONE 0 0 NONE 0 0 NONE 0 0", "b -1 0 NONE 0 0 ALLREDUCE 40 0 NONE 0 0"]
    rows += [f"{name} -1 0 NONE 0 0 NONE 0 {ns} ALLREDUCE 40 0" for name, ns in (("c", 0), ("d", 1))]
    # Ops: d's compute and collective, then those of c and b. Data groups are 0 with 2, and 1 with 3; each
    # member's own part of the collective is named.
    words = reason_words(Facts(QUEUED, what="dp all-reduce"))
    assert held_up(rows, "HYBRID_DATA_MODEL", 2) == [(rank, 1, words) for rank in range(4)]


def test_a_collective_in_the_queues_waits_for_the_last_that_began_of_all_its_ranks() -> None:
    """On rank 2 the last is b, from 206 ns on; a begins on rank 0, which is slow, 2 ns later."""
    rows = ["a -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 4096 0 HYBRID_MODEL_DATA"]
    rows += ["b -1 0 NONE 0 0 NONE 0 0 ALLGATHER 1 0 DATA", "c -1 0 NONE 0 0 NONE 0 100 ALLREDUCE 1 0 DATA"]
    words = reason_words(Facts(QUEUED, what="tp all-reduce"))
    assert held_up(rows, "HYBRID_CUSTOMIZED", 1) == [(0, 3, words), (1, 3, words), (0, 3, words)]
