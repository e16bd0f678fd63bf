"""The table beside the accounts of a replay: figures are whole at any width."""

from __future__ import annotations

import re
from functools import cache

import pytest

from simcore.parameters import Parameters
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun, run_recording
from simcore.units import change_percent, duration, signed_duration
from tests.measured.test_replay_by_hand import SLOW_RANK, SLOW_STAGE, op, run_of
from tests.measured.test_replay_of_real_runs import opened
from tests.tui.made_runs import line_text
from tui.frame import ASCII, BLOCKS, Glyphs
from tui.summary.frame import _title_with_count, draw
from tui.summary.model import MAP, SummaryModel
from tui.summary.side_panels import Waits

_FIGURE = re.compile(r"[+-]?\d+(?:\.\d+)? (?:s|ms|us|ns)\b")
_WIDTHS = (80, 100, 110, 116, 120, 130, 200)


@cache
def slowed(trace: str) -> RecordedRun:
    """A replay with changes of many lengths."""
    if trace == "one rank":
        return RecordedRun(run_of(SLOW_RANK, 2), Scales(ranks={1: 0.37}))
    if trace == "two stages":
        return RecordedRun(run_of(SLOW_STAGE, 2, pp=2), Scales(compute=12.3456, gaps=3))
    if trace == "long names":
        name = "an_operation_that_somebody_gave_a_name_without_an_end"
        text = op(0, name, 0, 9.87) + op(0, "forward_step", 10, 20) + op(1, "backward_step", 0, 23)
        return RecordedRun(run_of(text, 2), Scales(compute=0.513, host=0.1234))
    run = opened("wd8_tp2_pp4", "20240923205004")
    return run_recording(run, Parameters(slow_rank=("7=0.486",)))


_TRACES = ("one rank", "two stages", "long names", "eight ranks")


@pytest.mark.parametrize("trace", _TRACES)
def test_every_width_shows_whole_figures_and_an_operation_with_its_amount(trace: str) -> None:
    model = Waits(slowed(trace))
    known = {duration(one.replayed_ns) for one in model.differences}
    known |= {signed_duration(one.replayed_ns - one.measured_ns) for one in model.differences}
    known |= {signed_duration(ns) for one in model.differences for _, ns in one.ops}
    for width in range(38, 200):
        head, *rows = (line_text(line) for line in model.lines(width, 20, (0, 0), BLOCKS, True))
        assert max(map(len, [head, *rows])) <= width
        assert head.split()[0] == "rank"
        for one, row in zip(model.differences, rows, strict=True):
            assert set(_FIGURE.findall(row)) <= known
            assert int(row[1:].split()[0]) == one.rank
            name, ns = one.ops[0]
            # What is known again of a name: its two ends.
            assert re.search(rf" {name[:4]}\S*{name[-4:]} {re.escape(signed_duration(ns))}(,|$)", row)


def test_with_more_room_there_is_more_of_it() -> None:
    model = Waits(slowed("two stages"))
    texts = {
        width: [line_text(line) for line in model.lines(width, 9, (0, 0), BLOCKS, True)]
        for width in (38, 50, 90)
    }
    assert texts == {
        38: [
            "rank   differs most by",
            ">  0  +1.021 s recv_backward +678.7 ms",
            "   1 +794.2 ms backward_step +340.4 ms",
        ],
        50: [
            "rank     ends difference  most by",
            ">  0  1.117 s   +1.021 s  recv_backward +678.7 ms",
            "   1 869.2 ms  +794.2 ms  backward_step +340.4 ms",
        ],
        90: [
            "rank     ends difference  most by",
            ">  0  1.117 s   +1.021 s  recv_backward +678.7 ms, backward_step +226.9 ms",
            "   1 869.2 ms  +794.2 ms  backward_step +340.4 ms, forward_step +340.4 ms",
        ],
    }


@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII], ids=["blocks", "ascii"])
@pytest.mark.parametrize("width", _WIDTHS)
@pytest.mark.parametrize("trace", _TRACES)
def test_the_summary_of_a_replay_cuts_no_figure_and_no_frame(trace: str, width: int, glyphs: Glyphs) -> None:
    model = SummaryModel(slowed(trace))
    for panel in (model.panel, MAP):
        model.panel = panel
        lines = [line_text(line) for line in draw(model, width, 34, glyphs, "")]
        assert max(map(len, lines)) <= width
        if width < 100:
            continue
        # All panels are side by side: each line begins and ends with a frame.
        assert {len(line) for line in lines} == {width}
        assert {line[0] + line[-1] for line in lines} <= {
            glyphs.corners[:2], glyphs.corners[2:], glyphs.vertical * 2, glyphs.vertical + glyphs.corners[1],
            glyphs.vertical + glyphs.corners[3],
        }  # fmt: skip
        measured, replayed = model.results.recording.measured_step_ns, model.results.step_time_ns
        (said,) = [line for line in lines[:7] if "replayed " in line]
        assert f" {change_percent(measured, replayed)} " in said
        if "measured" in said:
            assert (
                f"  measured {duration(measured)}, replayed {signed_duration(replayed - measured)} = " in said
            )


def test_a_table_that_is_cut_says_how_much_of_it_is_there() -> None:
    table = Waits(RecordedRun(run_of(SLOW_RANK, 2)))
    count, _ = table.size
    assert count
    assert _title_with_count(table.title, table, count + 1) == table.title
    cut = f"{table.title.partition(',')[0]}, {count - 1} of {count}"
    assert _title_with_count(table.title, table, count) == (cut if count > 1 else table.title)
