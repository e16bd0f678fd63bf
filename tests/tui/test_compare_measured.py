"""Names on the compare screen, a measured run beside a simulated one."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.measured import open_directory
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from tests.analysis.test_beside import beside, made_simulation, made_trace
from tests.measured.made_steps import Layout
from tests.measured.test_partners import LINES
from tests.measured.traces import write_set
from tui.compare.frame import draw
from tui.compare.model import CompareModel
from tui.compare.source import ComparedLanes
from tui.frame import BLOCKS, text_of

_LAYOUT = Layout(2, 1, 2, 1)


@pytest.mark.parametrize("measured_first", [True, False])
def test_lanes_bear_the_measured_rank_and_say_of_which_equal_ranks_the_simulated_lane_is(
    measured_first: bool,
) -> None:
    simulated, measured = made_simulation(_LAYOUT), made_trace(_LAYOUT, 1)
    found = ComparedLanes(beside(measured, simulated) if measured_first else beside(simulated, measured))
    side = 1 if measured_first else 0
    told = {
        found.pair_name(pair): found.describe_lane(pair, side, 0).rpartition(" (")[2] for pair in range(4)
    }
    assert told == {
        "rank 0": "one of ranks 0-1)",
        "rank 1": "one of ranks 0-1)",
        "rank 2": "one of ranks 2-3)",
        "rank 3": "one of ranks 2-3)",
    }
    assert not any("one of" in found.describe_lane(pair, 1 - side, 0) for pair in range(4))


@pytest.mark.parametrize("measured_first", [True, False])
@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
def test_the_stage_of_a_measured_lane_is_called_one_and_the_legend_has_all_that_is_drawn(
    measured_first: bool, size: tuple[int, int]
) -> None:
    simulated, measured = made_simulation(_LAYOUT), made_trace(_LAYOUT, 1)
    found = ComparedLanes(beside(measured, simulated) if measured_first else beside(simulated, measured))
    rows = text_of(draw(CompareModel(found), ("", ""), *size, BLOCKS, True, True)).split("\n")
    # A pair is two lines: the second one has what there is to say of the lane of B.
    second = next(row for row in rows if " B " in row[:20] and "│" in row)
    whose = second.split(" B ")[0].split()
    stage = "stage" if size[0] > 100 else "s"
    assert whose in ([["x2"]] if measured_first else [[stage, "0"], [stage, "1"]])
    (legend,) = [row for row in rows if row.startswith("  A ") and " differs  " in row]
    for kind in found.legend:
        assert kind.fill == "idle" or BLOCKS.fills[kind.fill] in legend, kind


def test_a_rank_that_differs_much_more_has_its_line_which_leads_to_its_lanes() -> None:
    measured = made_trace(_LAYOUT, 1)
    found = ComparedLanes(beside(measured, measured.with_scales(Scales(ranks={3: 0.5}))))
    (line,) = [row for row in found.rows if row.words.endswith(", forward")]
    assert line.words == "rank 3, forward"
    assert found.pair_name(line.pair) == "rank 3"
    assert line.b_ns == pytest.approx(line.a_ns / 2, abs=20)


def test_ranks_and_stages_that_one_side_alone_has_are_named() -> None:
    whole, half = made_simulation(Layout(2, 1, 4, 1)), made_trace(_LAYOUT, 1)
    found = ComparedLanes(beside(whole, half))
    assert not found.comparison.is_by_rank
    assert found.pairs == 2
    assert found.alone == (["stage 2", "stage 3"], [])
    assert ComparedLanes(beside(half, whole)).alone == ([], ["stage 2", "stage 3"])
    assert ComparedLanes(beside(made_simulation(_LAYOUT), half)).alone == ([], [])


def test_two_runs_of_one_directory_have_their_stamps_on_the_screen(tmp_path: Path) -> None:
    stamps = ("20240923205004", "20250320144110")
    for stamp in stamps:
        write_set(tmp_path, LINES, stamp=stamp)
    runs = [RecordedRun(open_directory(str(tmp_path), stamp)) for stamp in stamps]
    for side, stamp in zip(ComparedLanes(beside(*runs)).sides, stamps, strict=True):
        assert side.startswith(f"run {stamp} of {tmp_path.name}, measured")
    replay = runs[0].with_scales(Scales(compute=2.0))
    for side in ComparedLanes(beside(runs[0], replay)).sides:
        # A run and its replay are told by what they are.
        assert side.startswith(f"{tmp_path.name}, ")
