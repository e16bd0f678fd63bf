"""Two runs beside each other: what matches, what differs, and why.

Planted, one at a time: how often an identity came before left out (`test_zb_h1_against_1f1b_in_one_screen`);
a stretch of common ranks counted one short (`test_ranks_in_common_are_those_of_both_classes`); accounts of A
on both sides (`test_every_comparison_has_a_page_and_its_figures_are_those_of_the_reports`).
"""

from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.comparison import Comparison
from simcore.comparison.matching import find_class_pairs, identify_rows, map_rows, match_ops
from simcore.comparison.op_changes import OpChange
from simcore.comparison.op_words import splits_words
from simcore.comparison.words import side_words
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, PHASES
from simcore.render.report.comparison import comparison_json, comparison_page, slower_words
from simcore.render.report.pages import run_json
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.workload import Workload, open_workload
from tests.analysis.booking import run
from tests.says import said as says
from tests.strategies import Case, Cell, Row, cases, layer

SEED_001 = "fixtures/001_moe_128npu_with_mistakes.txt"
SEED_000 = "fixtures/000_gpt13b_tp4_old_header.txt"
SEED_002 = "fixtures/002_gpt_1024npu.txt"


def compared(a: Simulation, b: Simulation) -> Comparison:
    return Comparison(SimulatedRun(a), SimulatedRun(b))


@cache
def seed_run(**parameters: Any) -> SimulatedRun:
    """A run of seed 002, made once: it is only read."""
    return SimulatedRun(simulate(_seed_workload(), Parameters(**parameters)))


@cache
def _seed_workload() -> Workload:
    return open_workload(SEED_002)


@cache
def seed(**parameters: Any) -> Comparison:
    return Comparison(seed_run(), seed_run(**parameters))


FEW: dict[str, Any] = {"pp": 4, "microbatches": 4}


def of_four(**parameters: Any) -> Comparison:
    """As `seed`, on 4 stages with 4 micro-batches: of slow ranks it has as many classes and fewer ops."""
    return Comparison(seed_run(**FEW), seed_run(**FEW | parameters))


CHANGES: list[dict[str, Any]] = [
    {},
    {"compute_scale": 0.7},
    {"comm_scale": 0.0},
    {"no_fold": True},
    {"slow_rank": ("0=2",)},
    {"rank_order": "tp-pp-dp"},
    {"schedule": "layer-loop"},
    {"schedule": "zb-h1"},
    {"microbatches": 3},
]


# Some accounts grow, others shrink.
AGAINST_EACH_OTHER: list[dict[str, Any]] = [
    {"compute_scale": 0.7, "comm_scale": 2.0},
    {"compute_scale": 1.3, "comm_scale": 0.5},
    {"slow_rank": ("0=2",), "comm_scale": 0.5},
    {"compute_scale": 0.7, "microbatches": 3},
]


def changed(case: Case, change: dict[str, Any]) -> Simulation:
    parameters = case.parameters
    layer_loop = "layer-loop" in (parameters.schedule, change.get("schedule"))
    for field, value in change.items():
        if field in ("schedule", "microbatches") and layer_loop:
            continue
        parameters = parameters.with_value(field, value)
    return simulate(case.workload, parameters)


@settings(max_examples=40)
@given(cases())
def test_a_run_beside_itself_matches_whole_and_nothing_differs(case: Case) -> None:
    simulation = simulate(*case)
    found = compared(simulation, simulation)
    assert (
        found.difference_ns,
        found.ops.changed_parameters,
        found.ops.op_changes,
        found.ops.memory_change,
    ) == (0, {}, [], None)
    assert found.ops.op_matches.is_complete
    assert found.ops.op_matches.ops == simulation.timeline.spans
    assert not found.ops.op_matches.different_kinds
    assert {change.ns for change in (*found.ops.accounts, *found.ops.worst_accounts)} == {0}
    assert {one.total_change_ns for one in found.ops.layers} <= {0}
    assert found.why_text.startswith("nothing changes")


def is_at_its_start(simulation: Simulation, mover: OpChange) -> bool:
    """Whether such an op begins there on the rank of the mover."""
    stage, dp, tp = mover.position
    number = simulation.timeline.folding.class_of(simulation.layout.rank(tp, dp, stage))
    ops, start, end = simulation.timeline.columns(number)
    names = [*simulation.workload.name, ""]
    return any(
        start[op] == mover.a_start_ns
        and (names[ops.row[op]], PHASES[ops.phase[op]], ops.microbatch[op])
        == (mover.name, mover.phase, mover.microbatch)
        and {"start": start[op], "duration": end[op] - start[op]}.get(mover.measure, mover.a_ns) == mover.a_ns
        for op in range(len(ops))
    )


@settings(max_examples=60)
@given(cases(), st.sampled_from(CHANGES))
def test_the_other_way_round_every_difference_has_the_other_sign(case: Case, change: dict[str, Any]) -> None:
    a, b = simulate(*case), changed(case, change)
    there, back = compared(a, b), compared(b, a)
    assert there.difference_ns == -back.difference_ns
    assert there.ops.op_matches.ops == back.ops.op_matches.ops
    assert there.ops.op_matches.is_complete == back.ops.op_matches.is_complete
    assert [one.ns for one in there.ops.accounts] == [-one.ns for one in back.ops.accounts]
    assert [one.ns for one in there.ops.worst_accounts] == [-one.ns for one in back.ops.worst_accounts]
    assert [(one.name, one.compute.ns, one.exposed.ns) for one in there.ops.layers] == [
        (one.name, -one.compute.ns, -one.exposed.ns) for one in back.ops.layers
    ]
    turned = [
        mover._replace(a_ns=mover.b_ns, b_ns=mover.a_ns, a_start_ns=other.a_start_ns)
        for mover, other in zip(there.ops.op_changes, back.ops.op_changes, strict=True)
    ]
    assert turned == back.ops.op_changes
    for run_a, found in ((a, there), (b, back)):
        assert all(is_at_its_start(run_a, mover) for mover in found.ops.op_changes)
    assert there.unchanged == back.unchanged
    if there.ops.memory_change is not None:
        stage, a_kept, b_kept, a_peak, b_peak = there.ops.memory_change
        assert back.ops.memory_change == (stage, b_kept, a_kept, b_peak, a_peak)


@settings(max_examples=60)
@given(cases(), st.sampled_from(CHANGES))
def test_each_view_of_the_critical_paths_sums_to_the_two_steps(case: Case, change: dict[str, Any]) -> None:
    a, b = simulate(*case), changed(case, change)
    found = compared(a, b)
    for changes in found.ops.paths:
        assert sum(one.a_ns for one in changes) == a.step_time_ns
        assert sum(one.b_ns for one in changes) == b.step_time_ns
        assert len({one.name for one in changes}) == len(changes)
        moved = [abs(one.ns) for one in changes]
        assert moved == sorted(moved, reverse=True)
    back = compared(b, a).ops.paths
    assert [{(one.name, one.ns) for one in changes} for changes in found.ops.paths] == [
        {(one.name, -one.ns) for one in changes} for changes in back
    ]


def test_the_critical_paths_of_1f1b_and_zb_h1_differ_in_weight_gradients() -> None:
    """zb-h1 takes them out of the chain of backwards; all of its compute wg is that of one micro-batch."""
    paths = seed(schedule="zb-h1").ops.paths
    assert (paths.kind[0].name, paths.kind[0].a_ns // 10**6, paths.kind[0].b_ns // 10**6) == (
        "compute wg", 4215, 136,
    )  # fmt: skip
    assert [one.name for one in paths.layer[:2]] == ["mlp_row", "mlp_column"]
    assert {one.name for one in paths.stage} == {str(stage) for stage in range(16)}


def test_where_stages_move_more_than_layers_they_stand_beside_the_kinds() -> None:
    rows = [layer("embedding_layer", 1000, 2000, 3000)]
    a, b = (
        run(rows, {"pp": 2}, schedule="gpipe", microbatches=4, slow_rank=(f"{rank}=2",)) for rank in (0, 1)
    )
    assert "Critical paths" in comparison_page(compared(a, b))
    page = comparison_page(compared(a, b)).split("Critical paths, what changes most\n")[1].split("\n\n")[0]
    lines = [line.split() for line in page.splitlines()]
    assert lines[0] == ["kind,", "us", "A", "B", "B", "-", "A", "stage", "A", "B", "B", "-", "A"]
    assert {" ".join(line[-5:-3]) for line in lines[1:3]} == {"stage 0", "stage 1"}


def test_equal_critical_paths_are_left_out_of_the_page() -> None:
    simulation = run([layer("a", 5)], {})
    assert "Critical path" not in comparison_page(compared(simulation, simulation))


@settings(max_examples=40)
@given(cases(), st.sampled_from(CHANGES))
def test_matching_is_that_of_every_rank_op_by_op(case: Case, change: dict[str, Any]) -> None:
    """Counted naively: the ops of each place in both, as multisets of row, phase, micro-batch and stream."""
    a, b = simulate(*case), changed(case, change)
    counts = 0
    for rank in range(a.layout.world):
        place = a.layout.position(rank)
        other = b.layout.rank(*place)
        keys = []
        for simulation, one in ((a, rank), (b, other)):
            ops = simulation.timeline.stage_program(simulation.timeline.folding.class_of(one)).ops
            keys.append(Counter(zip(ops.row, ops.phase, ops.microbatch, ops.stream, strict=True)))
        counts += (keys[0] & keys[1]).total()
    assert compared(a, b).ops.op_matches.ops == counts


@settings(max_examples=40)
@given(cases(), st.sampled_from(CHANGES))
def test_ranks_in_common_are_those_of_both_classes(case: Case, change: dict[str, Any]) -> None:
    a, b = simulate(*case), changed(case, change)
    naive: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for rank in range(a.layout.world):
        tp, dp, stage = a.layout.position(rank)
        key = (a.timeline.folding.class_of(rank), b.timeline.folding.class_of(b.layout.rank(tp, dp, stage)))
        naive.setdefault(key, []).append((stage, dp, tp))
    assert {(pair.a, pair.b): (pair.ranks, pair.first) for pair in find_class_pairs(a, b)} == {
        key: (len(places), min(places)) for key, places in naive.items()
    }


@settings(max_examples=40)
@given(cases(), st.sampled_from(CHANGES))
def test_every_comparison_has_a_page_and_its_figures_are_those_of_the_reports(
    case: Case, change: dict[str, Any]
) -> None:
    found = compared(simulate(*case), changed(case, change))
    page = comparison_page(found)
    assert all(line.isprintable() and len(line) <= 120 for line in page.splitlines())
    values = comparison_json(found)
    for side, results in (("a", found.a), ("b", found.b)):
        report = run_json(results)
        assert values[side]["step_time_ns"] == report["step_time_ns"]
        assert values[side]["parameters"] == report["parameters"]
        world = sum(one["count"] for one in report["classes"])
        for kind, name in (("wait_ns", "wait"), ("bubble_ns", "bubble"), ("idle_ns", "idle")):
            mean = sum(one[kind] * one["count"] for one in report["classes"]) / world
            (account,) = [one for one in values["accounts"] if one["account"] == name]
            assert account[f"{side}_ns"] == round(mean)
        for key in ("compute", "exposed"):
            rows = sum(getattr(row.use, f"{key}_ns") for row in results.layers)
            assert sum(one[key][f"{side}_ns"] for one in values["layers"]) == rows


def test_zb_h1_against_1f1b_in_one_screen() -> None:
    found = seed(schedule="zb-h1")
    lines = comparison_page(found).splitlines()
    assert 24 <= len(lines) <= 40
    assert lines[1:5] == [
        "A  14.774 s    step / 16 = 923.4 ms  --schedule 1f1b",
        "B  10.695 s    step / 16 = 668.4 ms  --schedule zb-h1",
        "B - A  -4.079 s (-27.6 %); all 2 595 840 ops of 1 024 ranks matched",
        f"Why: {found.why_text}.",
    ]
    assert says([found.why_text], "drain -4.080 s", "weight gradients fill")
    assert says([lines[-2]], "Unchanged", "duration", "collectives", "transfers", "bytes")
    assert says([lines[-1]], "Cost", "16 micro-batches", "as in A", "stage 15", "16", "A 1")


def test_other_degrees_match_as_far_as_places_agree() -> None:
    found = seed(tp=4, pp=4)
    assert found.ops.op_matches.ranks == 4 * 8 * 4
    assert not found.ops.op_matches.is_complete
    assert "323 712 ops of 128 ranks matched, of 2 595 840 in A and 2 589 696 in B" in comparison_page(found)


def test_rows_of_two_files_are_matched_by_name_and_order() -> None:
    a = run([layer("mlp", 5), layer("norm", 7), layer("mlp", 9)], {}).workload
    b = run([layer("norm", 7), layer("mlp", 5), layer("new", 1)], {}).workload
    assert identify_rows(a) == [("mlp", 0), ("norm", 0), ("mlp", 1)]
    assert map_rows(a, b) == [1, 0, -4]
    first, second = run([layer("mlp", 5), layer("norm", 7)], {}), run([layer("norm", 3), layer("mlp", 5)], {})
    found = compared(first, second)
    assert found.ops.op_matches.is_complete
    assert found.ops.has_other_file
    assert says([found.why_text], "compute -33.3 %", "compute -4 ns")
    assert comparison_page(found).startswith("A  12 ns       made.txt")


def test_ops_match_where_a_schedule_takes_the_backward_apart() -> None:
    rows = [Row("embedding_layer", Cell(10), Cell(20), Cell(30))] * 3
    a, b = (run(rows, {"pp": 2}, schedule=name) for name in ("1f1b", "zb-h1"))
    ops, other = (one.timeline.stage_program(0).ops for one in (a, b))
    assert len(match_ops(ops, other, range(3)).pairs) == len(ops) == len(other)


@pytest.mark.parametrize("turned", [False, True])
def test_a_collective_that_runs_in_pieces_beside_compute_is_all_of_its_pieces(turned: bool) -> None:
    """On seed 000 a gather of 2.132 ms was said to take 9.070 us, its first piece; and the reduce-scatter,
    whose first piece begins in the backward, to start with a cell of 1 ns behind it.
    """
    workload = open_workload(SEED_000)
    beside = {"schedule": "1f1b", "overlap_grad_reduce": True, "overlap_param_gather": True}
    a, b = simulate(workload, Parameters()), simulate(workload, Parameters(**beside))  # type: ignore[arg-type]
    comparison = compared(*((b, a) if turned else (a, b)))
    movers = comparison.ops.op_changes
    said = {(one.name, one.measure): (one.a_ns, one.b_ns) for one in movers if one.kind.startswith("dp ")}
    ops, start, end = b.timeline.columns(0)
    for name in ("grad_gather", "grad_param_comm"):
        row = workload.name.index(name)
        pieces = [op for op in range(len(ops)) if ops.stream[op] != COMPUTE and ops.row[op] == row]
        assert len(pieces) == 82
        durations, starts = said[name, "duration"], said[name, "start"]
        assert durations[not turned] == sum(end[op] - start[op] for op in pieces)
        assert durations[not turned] > durations[turned] > 0.7 * durations[not turned]
        assert starts[not turned] == min(start[op] for op in pieces) < starts[turned]
    assert not [one for one in movers if one.kind == "compute" and one.measure == "start"]
    # A newcomer held +734.1 us of it against `a collective beside compute slows neither`.
    words = splits_words(comparison.ops)
    assert words.startswith("AB"[not turned])
    assert says([words], "grad_gather", "grad_param_comm", "82 pieces", "latency")
    assert words in " ".join(comparison_page(comparison).split())


def test_of_pieces_nothing_is_said_where_both_have_as_many_or_the_whole_takes_longer() -> None:
    beside = {"schedule": "1f1b", "overlap_grad_reduce": True}
    assert splits_words(seed(schedule="zb-h1").ops) == ""
    workload = open_workload(SEED_000)
    a = simulate(workload, Parameters(**beside))  # type: ignore[arg-type]
    faster = simulate(workload, Parameters(comm_scale=0.5, **beside))  # type: ignore[arg-type]
    assert splits_words(compared(a, faster).ops) == ""
    # In pieces and still shorter: the bandwidth is the reason.
    whole = simulate(workload, Parameters(schedule="1f1b"))
    assert splits_words(compared(whole, faster).ops) == ""


def test_the_sides_say_what_is_special_about_them() -> None:
    found = of_four(overlap_grad_reduce=True, slow_rank=("3=2", "5=3"))
    assert side_words(found, 0) == "no --overlap-grad-reduce, no --slow-rank"
    assert side_words(found, 1) == "--overlap-grad-reduce, --slow-rank 3=2, --slow-rank 5=3"
    assert side_words(of_four(), 0) == "the same parameters"
    unfolded = of_four(no_fold=True, world=64)
    assert side_words(unfolded, 0).endswith(", equal ranks folded")
    assert side_words(unfolded, 1).endswith(", --no-fold")
    workload = open_workload(SEED_002)
    both = [simulate(workload, Parameters(**FEW, world=64, no_fold=no_fold)) for no_fold in (True, False)]
    assert [side_words(compared(*both), side) for side in (0, 1)] == ["--no-fold", "equal ranks folded"]


def test_slower_than_allowed_is_one_line() -> None:
    assert slower_words(1000, 1030, 3.0) is None
    assert slower_words(1030, 1000, 0.0) is None
    assert slower_words(1000, 1030, 2.5) == (
        "B is 3.0 % slower than A (1.000 us, 1.030 us): more than --fail-if-slower 2.5%"
    )


@pytest.mark.parametrize(("size", "differs"), [(10, set()), (20, {"bytes", "collective"})])
def test_which_kinds_of_op_were_compared_and_what_differs_is_noted(size: int, differs: set[str]) -> None:
    one, other = (
        SimulatedRun(
            run(
                [Row("embedding_layer", Cell(100, "ALLREDUCE", "tp", bytes_))],
                {"tp": 2, "pp": 2, "pp_comm": 40},
                schedule="1f1b",
            )
        )
        for bytes_ in (10, size)
    )
    matched = Comparison(one, other).ops.op_matches
    assert matched.compared_kinds == {"compute", "collective", "transfer"}
    assert matched.different_kinds == differs


def test_movers_are_the_op_of_each_name_that_changes_most_and_three_a_measure() -> None:
    rows = [layer("d_1", 10), layer("d_2", 50), layer("c", 40), layer("b", 30), layer("a", 20)]
    found = compared(run(rows, {}), run(rows, {}, compute_scale=2.0))
    longer = [(one.name, one.a_ns, one.b_ns) for one in found.ops.op_changes if one.measure == "duration"]
    assert longer == [("d_2", 50, 100), ("c", 40, 80), ("b", 30, 60)]


@settings(max_examples=30)
@given(cases(), st.sampled_from(CHANGES))
def test_what_takes_or_waits_longer_stands_by_size_before_what_moved(
    case: Case, change: dict[str, Any]
) -> None:
    """`What differs most` began with a collective that takes 199 us longer, above a wait of 3.504 s."""
    found = compared(simulate(*case), changed(case, change))
    places = [(one.measure == "start", -abs(one.b_ns - one.a_ns)) for one in found.ops.op_changes]
    assert places == sorted(places)
    order = ("duration", "wait", "start")
    for everything in (False, True):
        page = comparison_page(found, everything).partition("Ops that differ most\n")[2].splitlines()
        listed = [word for line in page[1:] for word in line.split("  ") if word.strip() in order]
        assert [word.strip() for word in listed] == sorted(map(str.strip, listed), key="start".__eq__)


def test_microseconds_do_not_stand_beside_seconds_among_what_differs_most() -> None:
    found = seed(schedule="zb-h1")
    # Two more waits differ, by 656.7 and 264.0 us.
    assert [one.measure for one in found.ops.op_changes] == ["wait", "start", "start", "start"]
    assert found.ops.op_changes[0].b_ns - found.ops.op_changes[0].a_ns == -2_025_658_020


def test_twice_the_bandwidth_is_a_shorter_collective_before_all_that_begins_earlier() -> None:
    found = seed(dim=("switch:8:450:500", "switch:128:100:1000"))
    measures = [one.measure for one in found.ops.op_changes]
    assert (measures[0], measures[-3:]) == ("duration", ["start"] * 3)
    assert (measures.count("duration"), measures.count("wait")) == (2, 3)
    first = found.ops.op_changes[0]
    assert (first.name, first.kind) == ("grad_param_comm", "dp reduce-scatter")
    page = comparison_page(found).splitlines()
    line = page[page.index("Ops that differ most") + 2]
    assert line.split()[-7:] == ["duration", "228.3", "ms", "116.3", "ms", "-112.0", "ms"]
