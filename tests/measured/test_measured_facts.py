"""What spans, lanes and figures of a measured run say."""

from __future__ import annotations

from simcore.measured.columns import INSTANT
from simcore.measured.facts import neighbours, span_facts
from simcore.measured.lanes import lane_kinds, lane_spans, rank_segments, rank_spans
from simcore.measured.summary import op_figures, rank_times, sub_figures
from simcore.measured.vocabulary import CATEGORIES, buffer_bytes, category_of_op

from .test_trace_lines import LAUNCH
from .traces import Op, Sub, read, step


def test_groups_of_the_trace_have_the_words_of_what_they_are() -> None:
    assert category_of_op("ep_allreduce", "ep") == "embedding"
    assert category_of_op("pep_allreduce", "pep") == "position"
    assert category_of_op("exp_dp_allreduce", "exp_dp") == "expert dp"
    assert category_of_op("exp_all_to_all", "exp") == "expert"
    assert category_of_op("forward_step", "tp") == "forward"
    assert category_of_op("get_batch", None) == "host"
    assert category_of_op("no_such_op", None) == "host"
    assert category_of_op("no_such_op", "fsdp") == "comm"


def test_an_operation_without_a_stated_group_has_the_one_of_its_name() -> None:
    ops = read(Op("ep_allreduce").line() + "\n" + Op("send_forward", "200", "1").line()).ranks[0].ops
    assert ops.group == ["ep", "pp"]


def test_bytes_are_elements_times_the_size_of_one() -> None:
    assert buffer_bytes("[2048, 2, 5120]", "torch.float32") == 2048 * 2 * 5120 * 4
    assert buffer_bytes("[1]", "torch.bool") == 1
    assert buffer_bytes("[]", "torch.int64") is None
    for shape, dtype in (
        ("[2", "torch.bool"),
        ("[a]", "torch.bool"),
        ("[2]", "x"),
        (None, None),
        ("[-1]", "int8"),
    ):
        assert buffer_bytes(shape, dtype) is None


def test_a_ranks_lane_has_its_operations_and_the_gaps_between_them() -> None:
    run = read(step(0) + step(1, 1001))
    spans = rank_spans(run, run.ranks[1])
    kinds = [CATEGORIES[category] for category in spans.category]
    assert kinds == ["outside", "forward", "gap", "pp", "gap", "backward", "gap", "optimizer"]
    assert list(spans.start)[:4] == [0, 1_000_000, 3_000_000, 3_500_000]
    assert neighbours(run.ranks[1], spans.item[0]) == (None, "forward_step")
    assert neighbours(run.ranks[1], spans.item[2]) == ("forward_step", "send_forward")
    last = rank_spans(run, run.ranks[0])
    assert CATEGORIES[last.category[-1]] == "outside"
    assert neighbours(run.ranks[0], last.item[-1]) == ("optimizer_step", None)


def test_sub_operations_stand_in_the_lane_of_their_group() -> None:
    subs = (Sub("100.4", "0.2"), Sub("100.8", "0.2", group="exp"), Sub("100.9", "0.1", group=None))
    run = read(Op(subs=subs).line())
    rank = run.ranks[0]
    assert lane_kinds(run, rank) == ["compute", "tp", "exp", ""]
    assert [list(lane_spans(rank, kind).item) for kind in lane_kinds(run, rank)] == [[0], [1], [2], [3]]
    facts = span_facts(rank, 2)
    assert (facts.parent, facts.category, facts.end_ns - facts.start_ns) == (
        "forward_step",
        "expert",
        200_000,
    )
    assert (span_facts(rank, 0).subs, span_facts(rank, 0).subs_ns) == (3, 500_000)


def test_a_launch_is_seen_on_its_groups_lane_and_not_on_the_ranks() -> None:
    run = read(Op(timestamp="102.0").line() + "\n" + LAUNCH + Op("backward_step", "106.0", "3.0").line())
    rank = run.ranks[0]
    assert list(rank_spans(run, rank).item) == [0, -3, 2]
    dp = lane_spans(rank, "dp")
    assert (list(dp.start), list(dp.end), list(dp.item)) == ([3_000_000], [3_000_001], [1])
    assert span_facts(rank, 1).timing == INSTANT


def test_a_fused_pair_is_one_span_and_counts_once() -> None:
    pair = [Op(name, "10.0", "4.0", group="pp") for name in ("send_forward", "recv_backward")]
    run = read("\n".join(op.line() for op in pair))
    assert list(lane_spans(run.ranks[0], "pp").item) == [1]
    assert rank_times(run)[0].ns["pp"] == run.step_time_ns == 4_000_000


def test_figures_of_equal_operations_name_the_longest() -> None:
    run = read("".join(Op(timestamp=str(10 + rank), duration=str(rank), batch=rank).line(rank) + "\n"
                       for rank in (1, 3, 2)) + Op(timestamp="20", duration=None).line(4))  # fmt: skip
    (one,) = op_figures(run)
    assert (one.count, one.measured, one.total_ns) == (4, 3, 6_000_000)
    assert (one.least_ns, one.most_ns, one.most_rank, one.most_batch) == (1_000_000, 3_000_000, 3, 3)
    assert sub_figures(run) == []


def test_a_ranks_time_is_its_step() -> None:
    run = read(step(0))
    ns = {name: value for name, value in rank_times(run)[0].ns.items() if value}
    assert ns == {
        "forward": 2_000_000, "backward": 4_000_000, "optimizer": 2_000_000, "pp": 500_000, "gap": 1_500_000,
    }  # fmt: skip


def test_an_instant_at_the_end_of_the_step_takes_none_of_it() -> None:
    run = read(Op(timestamp="101.0").line() + "\n" + Op("optimizer_step", "102.0", None).line())
    rank = run.ranks[0]
    assert list(rank_spans(run, rank).end) == [1_000_000, 2_000_000, 2_000_001]
    edge, category = rank_segments(run, rank)
    assert list(edge) == [0, 1_000_000, run.step_time_ns]
    assert [CATEGORIES[one] for one in category] == ["forward", "gap"]
    assert sum(rank_times(run)[0].ns.values()) == run.step_time_ns
