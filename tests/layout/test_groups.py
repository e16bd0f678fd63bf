"""Where each rank is: positions, groups of every kind, pipeline neighbours."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.layout import GROUP_KINDS, RANK_ORDERS, Layout
from simcore.records import replace
from simcore.workload.model import GroupKind
from tests.engine.reference_simulator import all_groups, place
from tests.strategies import degrees


def _with_inner_groups(drawn: tuple[Any, ...]) -> Layout:
    layout = Layout(*drawn[0], rank_order=drawn[1], whole_experts=drawn[2])
    inner, outer = drawn[3]
    return layout if layout.dp % (inner * outer) else replace(layout, cp=inner * outer, cp_inner=inner)


LAYOUTS = st.tuples(
    degrees(most_ranks=96), st.sampled_from(RANK_ORDERS), st.booleans(),
    st.sampled_from(((1, 1), (2, 1), (1, 2), (2, 2), (3, 2))),
).map(_with_inner_groups)  # fmt: skip


@settings(max_examples=60)
@given(LAYOUTS)
def test_groups_of_every_kind_partition_the_world(layout: Layout) -> None:
    for kind in GROUP_KINDS:
        groups = list(layout.groups(kind))
        assert sorted(rank for group in groups for rank in group) == list(range(layout.world))
        assert {len(group) for group in groups} == {layout.group_size(kind)}
        assert all(group == sorted(group) for group in groups)


@settings(max_examples=60)
@given(LAYOUTS)
def test_the_group_of_a_rank_is_the_one_it_is_in(layout: Layout) -> None:
    for kind in (*GROUP_KINDS, "pp"):
        for group in layout.groups(kind):
            assert all(list(layout.group_of(kind, rank)) == group for rank in group)


@settings(max_examples=60)
@given(LAYOUTS)
def test_members_of_a_group_share_what_its_kind_says(layout: Layout) -> None:
    for kind in GROUP_KINDS:
        expected = all_groups(layout, kind)
        for group in layout.groups(kind):
            assert all(expected[rank] == tuple(group) for rank in group)


@settings(max_examples=60)
@given(LAYOUTS)
def test_position_and_rank_are_inverse_and_follow_the_rank_order(layout: Layout) -> None:
    for rank in range(layout.world):
        position = layout.position(rank)
        assert position == place(layout, rank)
        assert layout.rank(*position) == rank


@settings(max_examples=60)
@given(LAYOUTS)
def test_no_group_but_all_leaves_its_stage_and_ep_and_dp_ep_cross_each_other_once(layout: Layout) -> None:
    for kind in ("tp", "ep", "dp", "dp_ep"):
        for group in layout.groups(kind):
            assert len({layout.position(rank)[2] for rank in group}) == 1
    for experts in layout.groups("ep"):
        for shards in layout.groups("dp_ep"):
            assert len(set(experts) & set(shards)) <= 1


@settings(max_examples=40)
@given(LAYOUTS)
def test_pipeline_neighbours_keep_their_place_in_tp_and_dp(layout: Layout) -> None:
    for rank in range(layout.world):
        tp, dp, stage = layout.position(rank)
        assert layout.neighbour(rank, stage) == rank
        for other in range(layout.pp):
            assert layout.position(layout.neighbour(rank, other)) == (tp, dp, other)


def test_tp_is_fastest_and_the_stage_slowest_by_default() -> None:
    layout = Layout(tp=2, ep=1, dp=3, pp=2)
    assert [layout.position(rank) for rank in (0, 1, 2, 5, 6, 11)] == [
        (0, 0, 0),
        (1, 0, 0),
        (0, 1, 0),
        (1, 2, 0),
        (0, 0, 1),
        (1, 2, 1),
    ]


def test_rank_order_tp_pp_dp_puts_the_stages_between_tp_and_dp() -> None:
    layout = Layout(tp=2, ep=1, dp=3, pp=2, rank_order="tp-pp-dp")
    assert [layout.position(rank) for rank in (0, 2, 4, 11)] == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 2, 1)]
    assert list(layout.groups("dp")) == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]


GROUPS: list[tuple[GroupKind, list[list[int]]]] = [
    ("tp", [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ("dp", [[0, 2, 4, 6], [1, 3, 5, 7]]),
    ("ep", [[0, 2], [4, 6], [1, 3], [5, 7]]),
    ("dp_ep", [[0, 4], [2, 6], [1, 5], [3, 7]]),
    ("all", [[0, 1, 2, 3, 4, 5, 6, 7]]),
]


@pytest.mark.parametrize(("kind", "groups"), GROUPS)
def test_ep_groups_are_consecutive_in_dp_at_one_tp(kind: GroupKind, groups: list[list[int]]) -> None:
    assert list(Layout(tp=2, ep=2, dp=4, pp=1).groups(kind)) == groups


def test_expert_groups_of_a_model_are_neighbours_on_tp_and_dp() -> None:
    """Megatron's groups with --expert-tensor-parallel-size 1, also where EP divides DP."""
    layout = Layout(tp=2, ep=4, dp=4, pp=1, whole_experts=True)
    assert list(layout.groups("ep")) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert list(layout.groups("dp_ep")) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert [layout.expert_group_index(rank) for rank in range(8)] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert list(replace(layout, ep=1).groups("dp_ep")) == [[0, 1, 2, 3, 4, 5, 6, 7]]


def test_an_ep_that_divides_only_tp_times_dp_groups_consecutive_ranks_of_a_stage() -> None:
    layout = Layout(tp=4, ep=6, dp=3, pp=2)
    assert list(layout.groups("ep"))[:2] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert next(layout.groups("dp_ep")) == [0, 6]
    assert (layout.group_size("ep"), layout.group_size("dp_ep")) == (6, 2)


def test_with_ep_over_a_whole_stage_each_dp_ep_group_has_one_member() -> None:
    layout = Layout(tp=4, ep=12, dp=3, pp=2)
    assert (layout.group_size("ep"), layout.group_size("dp_ep")) == (12, 1)


def test_consecutive_q_count_inside_a_stage_in_either_rank_order() -> None:
    """q = tp + TP*dp, whatever number the ranks have."""
    assert list(Layout(tp=2, ep=4, dp=2, pp=2).groups("ep")) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    layout = Layout(tp=2, ep=4, dp=2, pp=2, rank_order="tp-pp-dp")
    assert list(layout.groups("ep")) == [[0, 1, 4, 5], [2, 3, 6, 7]]


@settings(max_examples=60)
@given(LAYOUTS)
def test_the_group_of_a_rank_is_that_of_all_groups_that_has_it(layout: Layout) -> None:
    for kind in (*GROUP_KINDS, "pp"):
        for group in layout.groups(kind):  # type: ignore[arg-type]
            for rank in group:
                assert list(layout.group_of(kind, rank)) == group  # type: ignore[arg-type]
