"""The list of lanes: groups, folding, pins, order and filter, and a cursor that stays on its lane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.runs.measured import RecordedRun
from simcore.runs.simulated import SimulatedRun
from simcore.sources.inputs import read_input
from tests.measured.traces import step
from tests.strategies import layer, make_workload
from tests.tui.made_runs import reveal, run, seed, small, two_stages
from tui.timeline.arrangement import Arrangement
from tui.timeline.groups import Group, group_tracks
from tui.timeline.lanes import ALL, OTHERS, LaneSource


@cache
def each_rank(**parameters: object) -> SimulatedRun:
    """The small run with every rank simulated: eight ranks of two stages."""
    return run(two_stages(), dim=("switch:2:4:50", "switch:4:2:300"), no_fold=True, **parameters)


@cache
def measured() -> MeasuredRun:
    """Four ranks of two stages."""
    from io import BytesIO

    text = "".join(step(rank, 1000 + rank, stage=rank // 2) for rank in range(4))
    found = read_input(BytesIO(text.encode()), name="trace.txt")
    assert isinstance(found, MeasuredRun)
    return found


SOURCES: dict[str, Callable[[], LaneSource]] = {
    "folded": lambda: LaneSource(small()),
    "16 stages": lambda: LaneSource(seed()),
    "a slow rank": lambda: LaneSource(seed(slow_rank=("37=1.3",))),
    "each rank": lambda: LaneSource(each_rank()),
    "each rank, all different": lambda: LaneSource(each_rank(jitter=0.1)),
    "measured": lambda: LaneSource(RecordedRun(measured())),
}


def opened(name: str) -> Arrangement:
    """The lanes of a run, every group open."""
    found = Arrangement(SOURCES[name]())
    while any(row.sign == "+" and row.key.path for row in found.rows):
        found.focus_row(next(i for i, row in enumerate(found.rows) if row.sign == "+" and row.key.path))
        found.toggle()
    found.focus_row(0)
    return found


def shown_ranks(found: Arrangement) -> Counter[int]:
    """How many lanes stand for each rank: a lane with its ranks below it stands for none itself."""
    source = found.source
    counted: Counter[int] = Counter()
    apart_in_all = found.save_state().state["_apart"]
    assert isinstance(apart_in_all, dict)
    for row in found.rows:
        key = row.key
        if key.path and row.sign == "+":
            tops = [one.key for one in found.rows if one.pinned and not one.key.path]
            # Of a single rank, or of the others, that lane alone.
            pinned = {key.track_id for key in tops if key.stream is None and key.rank == ALL}
            alone = {key.rank for key in tops if key.stream is None and key.rank >= 0}
            others = {key.track_id for key in tops if key.stream is None and key.rank == OTHERS}
            for one in groups_of(source):
                if one.path != key.path and any(
                    row.pinned and row.key.path == one.path for row in found.rows
                ):
                    pinned |= set(one.track_ids)
            group = next(one for one in groups_of(source) if one.path == key.path)
            for number in group.track_ids:
                if number not in pinned:
                    ranks = source.of.track(number).ranks
                    below = apart_in_all.get(number, ()) if number in others else ranks
                    counted.update(set(below) - alone)
        if key.path or key.stream is not None:
            continue
        if key.rank >= 0:
            counted[key.rank] += 1
            continue
        apart = [one.key.rank for one in found.rows if one.key.rank >= 0 and one.key.stream is None
                 and source.of.lane_track_id(one.key.rank) == key.track_id]  # fmt: skip
        if key.rank == OTHERS:
            counted.update(rank for rank in source.of.track(key.track_id).ranks if rank not in apart)
        elif not apart:
            counted.update(source.of.track(key.track_id).ranks)
    return counted


def groups_of(source: LaneSource) -> list[Group]:
    from tui.timeline.groups import all_groups

    return list(all_groups(group_tracks(source)))


ACTIONS = st.lists(
    st.sampled_from(
        ["toggle", "toggle", "toggle_ranks", "open_level", "close_all", "toggle_pin", "next_order"]
    )
    | st.integers(-30, 30)
    | st.tuples(st.just("reveal"), st.integers(0, 2000)),
    max_size=30,
)


def act(found: Arrangement, action: str | int | tuple[str, int]) -> None:
    if isinstance(action, int):
        found.move(action)
    elif isinstance(action, tuple):
        reveal(found, action[1])
    else:
        getattr(found, action)()


@settings(max_examples=120)
@given(st.sampled_from(list(SOURCES)), ACTIONS)
def test_every_rank_is_on_the_list_once_however_it_is_arranged(
    name: str, actions: list[str | int | tuple[str, int]]
) -> None:
    found = Arrangement(SOURCES[name]())
    world = {rank for number in found.source.track_ids for rank in found.source.of.track(number).ranks}
    for action in actions:
        before = found.rows[found.focus].key
        act(found, action)
        after = found.rows[found.focus].key
        assert shown_ranks(found) == Counter(dict.fromkeys(world, 1)), action
        keys = [row.key for row in found.rows]
        assert len(set(keys)) == len(keys)
        # The first rows are the pinned ones, and the cursor is on the screen.
        pins = [row.pinned for row in found.rows]
        assert pins == sorted(pins, reverse=True)
        assert found.focus in [index for index, _ in found.visible()]
        if action in ("toggle_pin", "next_order", "open_level"):
            assert after == before, action


@settings(max_examples=60)
@given(st.sampled_from(list(SOURCES)), ACTIONS, st.integers(1, 12))
def test_the_cursor_is_on_the_screen_and_pinned_rows_take_at_most_half(
    name: str, actions: list[str | int | tuple[str, int]], height: int
) -> None:
    found = Arrangement(SOURCES[name](), height)
    for action in actions:
        act(found, action)
        visible = [index for index, _ in found.visible()]
        assert found.focus in visible
        assert len(visible) == min(height, len(found.rows))
        assert len(set(visible)) == len(visible)
        assert found.pinned_count <= height // 2


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=6))
def test_hidden_lanes_are_counted_and_come_back_and_the_last_one_stays(name: str, rows: list[int]) -> None:
    found = opened(name)
    before = [row.key for row in found.rows]
    for index in rows:
        found.focus_row(index)
        hidden, key, count = found.hidden_count, found.rows[found.focus].key, len(found.rows)
        if found.hide():
            assert found.hidden_count == hidden + 1
            assert key not in [row.key for row in found.rows]
            assert f"{hidden + 1} hidden (U)" in found.omission_text
        else:
            assert (found.hidden_count, len(found.rows)) == (hidden, count)
    found.show_hidden()
    assert [row.key for row in found.rows] == before
    assert found.omission_text == ""


@pytest.mark.parametrize("gone", ["toggle_ranks", "close_all"])
@pytest.mark.parametrize("kept", ["toggle_pin", "toggle"])
def test_the_others_are_neither_pinned_nor_open_once_they_are_no_lane(gone: str, kept: str) -> None:
    found = Arrangement(SOURCES["16 stages"]())
    reveal(found, 37)
    found.move(1)
    assert found.current.title == "the others"
    getattr(found, kept)()
    getattr(found, gone)()
    assert "the others" not in [row.lane.title for row in found.rows]
    assert not any(row.pinned for row in found.rows)
    # Nor when they are one again.
    found.close_all()
    reveal(found, 5)
    others = [row for row in found.rows if row.key.rank == OTHERS]
    assert [(row.pinned, row.sign, row.lane.count) for row in others] == [(False, "+", "x63")]


def test_the_others_are_not_hidden_once_they_are_no_lane() -> None:
    found = Arrangement(SOURCES["16 stages"]())
    reveal(found, 37)
    found.move(1)
    found.hide()
    found.focus_row(0)
    found.toggle_ranks()
    assert found.omission_text == ""


def test_all_lanes_but_one_can_be_hidden() -> None:
    found = Arrangement(SOURCES["16 stages"]())
    assert [found.hide() for _ in range(16)] == [True] * 15 + [False]
    assert len(found.rows) == 1


def test_hiding_moves_the_cursor_to_the_lane_below_and_from_the_last_one_up() -> None:
    found = Arrangement(SOURCES["16 stages"]())
    found.focus_row(3)
    found.toggle()
    found.hide()
    assert found.current.title == "stage  4"
    found.focus_row(100)
    found.hide()
    assert found.current.title == "stage 14"


# -- groups ------------------------------------------------------------------------------


def tree(source: LaneSource) -> list[object]:
    """Groups as (heading, what is below), lanes as their numbers."""

    def below(one: Group | int) -> object:
        return (one.path[-1], [below(child) for child in one.children]) if isinstance(one, Group) else one

    return [below(one) for one in group_tracks(source)]


def test_one_lane_a_stage_needs_no_group() -> None:
    assert tree(SOURCES["16 stages"]()) == list(range(16))
    assert tree(SOURCES["each rank"]()) == [0, 4]


def test_unequal_ranks_are_grouped_by_stage_then_by_tensor_group() -> None:
    assert tree(SOURCES["each rank, all different"]()) == [
        ("stage  0", [("dp 0", [0, 1]), ("dp 1", [2, 3])]),
        ("stage  1", [("dp 0", [4, 5]), ("dp 1", [6, 7])]),
    ]
    assert tree(SOURCES["measured"]()) == [("stage  0", [0, 1]), ("stage  1", [2, 3])]


def test_classes_across_tensor_groups_are_grouped_by_stage_alone() -> None:
    found = tree(SOURCES["a slow rank"]())
    assert found[0] == ("stage  0", [0, 1, 2, 3])
    assert len(found) == 16


def test_a_single_stage_is_no_heading() -> None:
    results = run(make_workload([layer("a", 1000)], tp=2, pp=1, all_gpus=4), no_fold=True, jitter=0.2)
    assert tree(LaneSource(results)) == [("dp 0", [0, 1]), ("dp 1", [2, 3])]


def test_few_lanes_begin_open_and_many_with_their_groups_closed() -> None:
    few = Arrangement(SOURCES["measured"]())
    assert [(row.depth, row.sign) for row in few.rows] == [(0, "-"), (1, "+"), (1, "+")] * 2
    many = Arrangement(SOURCES["a slow rank"]())
    assert [row.sign for row in many.rows] == ["+"] * 16
    assert [row.lane.count for row in many.rows] == ["64"] * 16
    many.toggle()
    assert [row.lane.count for row in many.rows[:6]] == ["64", "x49", "x7", "x7", "", "64"]


def test_a_group_shows_the_lane_that_is_sorted_first_and_says_whose_it_is() -> None:
    found = Arrangement(SOURCES["a slow rank"]())
    said = ["".join(text for text, _ in line) for line in found.current.detail_lines(None, "", 120, True)]
    assert said[1].startswith(
        "stage 0: 64 ranks in 4 lanes   least compute: rank 0, most: rank 37   drawn as rank 0-"
    )
    assert said[2].startswith("compute 48.4..62.9 % exposed 3.9 % wait 0.0..14.2 % bubble ")
    while found.order.id != "end":
        found.next_order()
    group = groups_of(found.source)[0]
    assert found.rows[0].lane.title == "stage  0"
    assert found.rows[0].lane.track_id == min(
        group.track_ids, key=lambda number: found.source.order_value(found.order, number)
    )
    while found.order.id != "wait":
        found.next_order()
    # Rank 37 waits for nobody; it is its tensor group that waits.
    most = min(found.source.track_ids, key=lambda number: found.source.order_value(found.order, number))
    assert found.source.of.track(found.rows[0].lane.track_id) == found.source.of.track(most)


@pytest.mark.parametrize(("slow", "share"), [("3=2", "37-73%"), ("3=1.1", "mean 57%"), ("", "mean 58%")])
def test_a_group_whose_ranks_lie_far_apart_has_their_range_for_a_mean(slow: str, share: str) -> None:
    """`mean 36%` of ranks of 24 and 49 % hid the slow one; the lane is drawn as the other."""
    results = RecordedRun(measured())
    scales = results.with_parameters(Parameters(slow_rank=(slow,) if slow else ()))
    group = [row.lane for row in Arrangement(LaneSource(scales)).rows if row.key.path][1]
    assert f"{group.count} {group.busy}".strip() == share
    said = "".join(text for text, _ in group.detail_lines(None, "", 120, True)[1])
    busy = f"busy {share}" if "-" in share else share.replace("mean", "mean busy")
    assert said.startswith(f"stage 1: 2 ranks, {busy}, ")


# -- equal ranks, and single ones --------------------------------------------------------


def test_equal_ranks_of_a_run_that_folds_nothing_are_one_lane() -> None:
    source = SOURCES["each rank"]()
    assert [(source.lane(number).title, source.count_ranks(number)) for number in source.track_ids] == [
        ("stage  0", 4), ("stage  1", 4),
    ]  # fmt: skip
    folded = LaneSource(small())
    for number, other in zip(source.track_ids, folded.track_ids, strict=True):
        assert list(source.of.track(number).ranks) == list(folded.of.track(other).ranks)
        assert source.lane(number).spans == folded.lane(other).spans


def test_ranks_that_receive_at_other_times_are_not_equal() -> None:
    workload = make_workload([layer("a", 100, 100, 100)], tp=1, pp=2, all_gpus=4, pp_comm=100)
    # Rank 3 sends its gradients to rank 1 later than rank 2 does to rank 0; both have work until then.
    slow = ("0=100", "1=100", "3=1.5")
    results = run(workload, microbatches=8, no_fold=True, slow_rank=slow, schedule="1f1b")
    times = results.simulation.timeline.times
    assert times.start[0] == times.start[1]
    source = LaneSource(results)
    assert list(source.track_ids) == [0, 1, 2, 3]
    assert source.streams(0)[-1].spans != source.streams(1)[-1].spans


def test_single_ranks_share_the_spans_and_sums_of_their_lane() -> None:
    source = LaneSource(seed())
    single = source.lane(0, 37)
    assert (single.title, single.count, single.rank_count) == ("rank 37", "", 1)
    assert single.spans is source.lane(0).spans
    assert single.content.shares is source.lane(0).content.shares
    assert source.lane(0, 37) is single


def test_ranks_are_shown_one_by_one_and_folded_again() -> None:
    found = Arrangement(SOURCES["16 stages"]())
    found.focus_row(2)
    found.toggle_ranks()
    assert len(found.rows) == 16 + 64
    assert [row.lane.title for row in found.rows[2:5]] == ["stage  2", "rank 128", "rank 129"]
    found.focus_row(10)
    found.toggle_ranks()
    assert len(found.rows) == 16
    assert found.current.title == "stage  2"


@pytest.mark.slow
def test_a_million_ranks_are_listed_a_few_at_a_time() -> None:
    results = run(make_workload([layer("a", 1000)], tp=1, pp=1, all_gpus=2**20))
    found = Arrangement(LaneSource(results))
    found.toggle_ranks()
    assert len(found.rows) == 1 + 256 + 1
    assert (found.rows[-1].lane.title, found.rows[-1].lane.count) == ("the others", "x1.0M")
    found.focus_row(10**6)
    found.toggle_ranks()
    assert len(found.rows) == 1 + 512 + 1
    assert reveal(found, 2**20 - 1)
    assert found.current.title == "rank 1048575"


@pytest.mark.parametrize("name", SOURCES)
def test_any_rank_can_be_revealed_from_any_arrangement(name: str) -> None:
    for rank in (0, 1, 3):
        for change in ("", "hide", "stage  1", "close_all"):
            found = opened(name)
            if change == "hide":
                found.hide()
                found.hide()
            elif change == "close_all":
                found.close_all()
            elif change:
                found.show_only(change)
            assert reveal(found, rank)
            assert found.current.title.split() == ["rank", str(rank)]
            assert found.rows[found.focus].key.stream is None
    assert not reveal(found, 10**6)
    assert not reveal(found, -1)


def test_a_pinned_rank_stays_apart_when_its_lane_is_folded() -> None:
    found = Arrangement(SOURCES["16 stages"]())
    reveal(found, 37)
    found.toggle_pin()
    found.close_all()
    assert [(row.lane.title, row.pinned) for row in found.rows[:3]] == [
        ("rank 37", True), ("stage  0", False), ("the others", False),
    ]  # fmt: skip
    assert found.rows[2].lane.count == "x63"
    found.focus_row(0)
    found.toggle_pin()
    found.close_all()
    assert len(found.rows) == 16


def test_every_class_of_a_run_of_every_rank_has_the_lane_of_its_equals() -> None:
    """Screen 6 and jumps ask for a class by its number, also for one that another one stands for."""
    lanes = LaneSource(each_rank())
    classes = range(len(lanes.of.results.simulation.timeline.classes))
    assert lanes.track_count < len(classes)
    for number in classes:
        ranks = lanes.of.track(number).ranks
        assert number in ranks
        assert lanes.count_ranks(number) == len(ranks)
        assert lanes.of.track(number).headings[0].startswith("stage")
        assert lanes.streams(number)[0].title == "compute"
        assert lanes.lane(number).name == lanes.lane(lanes.of.lane_track_id(number)).name
        assert lanes.heading_lines([("", "")], [number])
