"""Ranks of a measured run that do alike: one lane for the asking, that says so, and their own again."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from simcore.measured import MeasuredRun
from simcore.render.report.pages import run_json
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import open_input
from tests.kineto.corpus import DLRM, needs_corpus
from tests.kineto.test_bad_input import event
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.test_text_frames import SIZES, frame_after
from tui.app import WltuiApp
from tui.session import Session
from tui.timeline import saved
from tui.timeline.arrangement import Arrangement
from tui.timeline.lanes import LaneKey, LaneSource
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.search import Search

# What each rank computes of a step of 1,000 us: at most 2 %, 20 us, lie between those that are alike.
_COMPUTES = (500, 505, 700, 519, 705, 521, 900)
_ALIKE = ((0, 1, 3), (2, 4), (5,), (6,))


def results(computes: tuple[int, ...] = _COMPUTES) -> RecordedRun:
    """A job whose ranks each compute for so many us, and end with an all-reduce at 1,000 us."""
    with TemporaryDirectory() as folder:
        for rank, length in enumerate(computes):
            kernels = [event(ts=0, dur=length, name="gemm"), event(ts=990, name="ncclDevKernel_AllReduce")]
            (Path(folder) / f"rank{rank}.json").write_text(
                json.dumps({
                    "distributedInfo": {"rank": rank, "world_size": len(computes)}, "traceEvents": kernels,
                })
            )  # fmt: skip
        run = open_input(folder)
    assert isinstance(run, MeasuredRun)
    # A name alone: no test may depend on where it lies.
    ranks = tuple(replace(rank, path=f"rank{rank.rank}.json") for rank in run.ranks)
    return RecordedRun(replace(run, path="job", ranks=ranks, diagnostics=()))


@cache
def made() -> RecordedRun:
    """Seven ranks."""
    return results()


def titles(arrangement: Arrangement) -> list[str]:
    """What stands beside the lanes."""
    return [row.lane.title for row in arrangement.rows]


def test_ranks_are_alike_where_no_account_of_any_two_differs_by_more_than_the_tolerance() -> None:
    lanes = made().lanes
    assert sorted({tuple(lanes.similar_tracks(number)) for number in lanes.facts.track_ids}) == sorted(_ALIKE)


@given(st.lists(st.integers(480, 560), min_size=2, max_size=9))
def test_any_two_that_are_alike_are_within_the_tolerance(computes: list[int]) -> None:
    found = results(tuple(computes))
    lanes, most = found.lanes, found.step_time_ns * 2 // 100
    for number in lanes.facts.track_ids:
        alike = lanes.similar_tracks(number)
        assert number in alike
        assert alike == lanes.similar_tracks(alike[0])
        for one in alike:
            accounts = zip(found.accounts[number].total_ns, found.accounts[one].total_ns, strict=True)
            assert all(abs(mine - its) <= most for mine, its in accounts)


def test_a_key_makes_one_lane_of_them_and_lanes_of_their_own_again() -> None:
    arrangement = Arrangement(LaneSource(made()))
    before = titles(arrangement)
    arrangement.focus_row(3)
    arrangement.toggle_ranks()
    assert titles(arrangement) == [
        "ranks 0-1,3 (similar within 2 %)", "rank  2", "rank  4", "rank  5", "rank  6",
    ]  # fmt: skip
    assert arrangement.focus == 0
    arrangement.focus_row(2)
    arrangement.toggle_ranks()
    assert titles(arrangement)[1:] == ["ranks 2,4 (similar within 2 %)", "rank  5", "rank  6"]
    assert arrangement.folded_tracks == {1, 3, 4}
    for place in (1, 0):
        arrangement.focus_row(place)
        arrangement.toggle_ranks()
    assert titles(arrangement) == before
    assert not arrangement.folds_tracks


def test_a_rank_that_is_like_no_other_stays_as_it_is() -> None:
    arrangement = Arrangement(LaneSource(made()))
    before = titles(arrangement)
    arrangement.focus_row(6)
    arrangement.toggle_ranks()
    assert titles(arrangement) == before


def test_what_leads_to_a_rank_gives_it_its_own_lane() -> None:
    arrangement = Arrangement(LaneSource(made()))
    arrangement.toggle_ranks()
    arrangement.show_lane(LaneKey((), 0))
    assert arrangement.folds_tracks
    arrangement.show_lane(LaneKey((), 3))
    assert arrangement.current.title == "rank  3"
    assert not arrangement.folds_tracks


def test_a_search_passes_over_ranks_that_a_lane_stands_for_and_finds_one_by_its_number() -> None:
    arrangement = Arrangement(LaneSource(made()))

    def found(words: str) -> list[str]:
        search = Search(arrangement.source, parse_query(words), (), folded_tracks=arrangement.folded_tracks)
        while not search.advance(1.0):
            pass
        return [one.lane.title for one in search.matched_lanes]

    assert len(found("gemm")) == 7
    arrangement.toggle_ranks()
    assert found("gemm") == [f"rank  {rank}" for rank in (0, 2, 4, 5, 6)]
    assert found("rank 3 gemm") == ["rank  3"]


def test_another_run_in_which_they_are_not_alike_has_their_own_lanes() -> None:
    arrangement = Arrangement(LaneSource(made()))
    arrangement.toggle_ranks()
    arrangement.show(LaneSource(results(tuple(range(100, 800, 100)))))
    assert not arrangement.folds_tracks
    assert len(arrangement.rows) == 7


def test_a_session_has_them_again() -> None:
    model = TimelineModel(made())
    model.arrangement.toggle_ranks()
    state = saved.save(model)
    again = TimelineModel(made())
    saved.restore(again, state)
    assert titles(again.arrangement) == titles(model.arrangement)
    assert saved.save(again) == state


def test_the_json_has_an_entry_a_rank() -> None:
    assert len(run_json(made())["classes"]) == 7


@pytest.mark.parametrize("ascii_only", [False, True], ids=["blocks", "ascii"])
@pytest.mark.parametrize("size", SIZES, ids=["120x36", "80x24"])
async def test_alike_ranks_on_the_screen(
    make_app: MakeApp, snapshot: SnapshotAssertion, size: tuple[int, int], ascii_only: bool
) -> None:
    make_app()
    app = WltuiApp(Session(made()), first="timeline", ascii_only=ascii_only)
    text = await frame_after(app, size, ("g", "I"))
    assert not ascii_only or text.isascii()
    assert ("ranks 0-1,3 (similar within 2 %)" if size[0] > 100 else "0-1,3 ~2%") in text
    assert size[0] < 100 or "of ranks 0-1,3" in text
    assert text == snapshot


async def test_a_rank_like_no_other_says_so(make_app: MakeApp) -> None:
    make_app()
    text = await frame_after(WltuiApp(Session(made()), first="timeline"), (120, 36), ("G", "I"))
    said(text.splitlines(), "no other rank", "2 %")


@needs_corpus
def test_of_a_real_job_two_ranks_are_alike() -> None:
    run = open_input(str(DLRM))
    assert isinstance(run, MeasuredRun)
    lanes = RecordedRun(run).lanes
    assert [
        lanes.similar_tracks(number)
        for number in lanes.facts.track_ids
        if len(lanes.similar_tracks(number)) > 1
    ] == [[2, 6]] * 2
