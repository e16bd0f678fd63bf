"""What every kind of run answers of its path, its worst places and what-if, asked in the same way."""

from __future__ import annotations

from itertools import pairwise

import pytest

from simcore.diagnostics import Cancelled
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.trace.run import (
    Run,
    account_ns,
    find_interval,
    find_longest_of_part,
    merged_segments_of,
    path_parts,
    sum_path,
)
from tests.measured.made_steps import Layout, run_apart
from tests.measured.test_replay_by_hand import SLOW_RANK, SLOW_STAGE, run_of
from tests.tui.made_runs import lonely, run, seed, small, two_stages
from tui.summary.model import STAGES, SummaryModel
from tui.timeline.model import TimelineModel
from tui.why.frame import SEGMENTS, SUMS, WhyModel

MEASURED = RecordedRun(run_of(SLOW_STAGE, 2, pp=2))
RUNS: dict[str, Run] = {
    "simulated": small(),
    "with a slow rank": run(two_stages(), slow_rank=("3=1.5",)),
    "without folding": run(two_stages(), no_fold=True),
    "measured": MEASURED,
    "data parallel": RecordedRun(run_of(SLOW_RANK, 2)),
    "replayed": MEASURED.with_scales(Scales(compute=2.0)),
    "apart": RecordedRun(run_apart(SLOW_STAGE, Layout(1, 1, 2, 1))),
}


@pytest.fixture(params=list(RUNS))
def one(request: pytest.FixtureRequest) -> Run:
    return RUNS[request.param]


def test_the_legs_cover_the_step_and_each_is_on_a_track(one: Run) -> None:
    legs = merged_segments_of(one)
    assert (legs[0].start_ns, legs[-1].end_ns) == (0, one.step_time_ns)
    tracks = {track.track_id: track for track in one.tracks}
    for before, after in pairwise(legs):
        assert (before.end_ns, before.last) == (after.start_ns, after.first)
    for leg in legs:
        track = tracks[leg.track_id]
        assert leg.rank in track.ranks
        assert leg.stage == track.stage
        assert find_interval(one, leg)[:3] == (leg.track_id, leg.start_ns, leg.end_ns)


def test_every_grouping_sums_to_the_step_the_longest_part_first(one: Run) -> None:
    for by in one.figures.path_groupings:
        sums = sum_path(one, by)
        assert sum(ns for _, ns in sums) == one.step_time_ns
        assert [ns for _, ns in sums] == sorted((ns for _, ns in sums), reverse=True)
        for part, ns in sums:
            longest = find_longest_of_part(one, by, part)
            assert longest is not None
            assert longest.end_ns - longest.start_ns == max(
                length for name, length in path_parts(one, by) if name == part
            )
            assert 0 < longest.end_ns - longest.start_ns <= ns
    assert find_longest_of_part(one, "kind", "no-such-kind") is None


def test_the_accounts_of_all_tracks_are_a_step_a_rank(one: Run) -> None:
    ranks = sum(len(track.ranks) for track in one.tracks)
    assert sum(account_ns(one, one.tracks).values()) == one.step_time_ns * ranks
    for track in one.tracks:
        assert sum(account_ns(one, [track]).values()) == one.step_time_ns * len(track.ranks)


def test_a_row_of_what_if_says_the_run_it_stands_for(one: Run) -> None:
    told: list[tuple[int, int]] = []
    found = one.what_if(lambda done, total: told.append((done, total)))
    assert found is one.what_if(), "computed once"
    # What another test has asked for is not computed again.
    assert not told or (told[0][0] == 0 and told[-1][0] == told[-1][1])
    assert [row.list for row in found] == sorted(row.list for row in found)
    for name in ("change", "sensitivity"):
        # Another batch comes last: its step is of more work; before it what only undoes a default.
        steps = [
            row.better10_ns
            for row in found
            if row.list == name and row.microbatches is None and "--stage-layout" not in row.knob
        ]
        assert steps == sorted(steps)
    for row in found:
        if row.parameters is not None:
            assert one.with_parameters(row.parameters).step_time_ns == row.better10_ns
    assert any(row.parameters is not None for row in found)


def test_what_if_starts_from_the_step_or_from_its_replay(one: Run) -> None:
    assert (one.figures.what_if_base_ns == one.step_time_ns) is (one is not RUNS["apart"])
    takes_away = [row for row in one.what_if() if not row.moves and row.free_ns is not None]
    assert max(row.best_ns for row in takes_away) <= one.figures.what_if_base_ns


def test_what_if_of_a_measured_run_is_given_up_when_it_is_cancelled() -> None:
    with pytest.raises(Cancelled):
        RecordedRun(run_of(SLOW_STAGE, 2, pp=2)).what_if(cancelled=lambda: True)


def test_every_place_that_a_panel_leads_to_is_a_lane_of_the_timeline(one: Run) -> None:
    """Worst places, rows of the bars, legs and sums: Enter goes to each of them."""
    summary, why, timeline = SummaryModel(one), WhyModel(one), TimelineModel(one)
    summary.knobs = why.knobs = ()
    spots = []
    for model in (summary, why):
        for panel in model.panels:
            model.panel = panel
            rows, columns = model.panel_size(panel)
            for row in range(rows):
                for column in range(columns):
                    model.set_cursor(panel, row, column)
                    spots.append(model.target())
    found = [spot for spot in spots if spot is not None]
    assert len(found) >= len(one.figures.worst_findings) + len(merged_segments_of(one)) + len(
        summary.bars.rows
    )
    for spot in found:
        assert 0 <= spot.start_ns < spot.end_ns <= one.step_time_ns
        timeline.show_stretch(*spot)
        assert timeline.current.track_id == timeline.source.lane(spot.track_id).track_id


def test_another_run_keeps_the_row_of_the_bars_and_the_rows_that_fit() -> None:
    model = SummaryModel(seed(microbatches=2))
    model.fit(4)
    model.panel = STAGES
    model.move(2)
    model.show(seed(microbatches=2, slow_rank=("37=1.3",)))
    model.fit(4)
    assert model.row(STAGES) == 2
    model.fit(16)
    assert model.row(STAGES) == 8


def test_a_why_screen_shows_what_the_run_has() -> None:
    model = WhyModel(lonely())
    model.grouping = "layer"
    model.show(MEASURED)
    assert model.grouping in MEASURED.figures.path_groupings
    assert sum(ns for _, ns in model.sums()) == MEASURED.step_time_ns
    assert (model.panel_size(SUMS)[0], model.panel_size(SEGMENTS)[0]) == (
        len(model.sums()),
        len(merged_segments_of(MEASURED)),
    )
