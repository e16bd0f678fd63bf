"""What the lines at the cursor say: what it is, whose, when, and where its length comes from."""

from __future__ import annotations

import re

import pytest

from simcore.runs.simulated import SimulatedRun
from simcore.sources.simulated import ACCOUNTS
from simcore.units import duration
from tests.says import said
from tests.strategies import layer, make_workload
from tests.tui.made_runs import all_lanes, line_text, lonely, run, seed, small
from tui.frame import BLOCKS, text_of
from tui.timeline.frame import TimelineFrame
from tui.timeline.margins import cursor_lines
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query


def at(
    results: SimulatedRun, lane: int, time_ns: int, *, unfold: bool = False, wide: bool = True
) -> list[str]:
    """The lines at a time of a lane."""
    model = TimelineModel(results)
    if unfold:
        model.toggle_fold()
    model.lane = lane
    model.cursor_ns = time_ns
    found = [line_text(line) for line in cursor_lines(model, 120 if wide else 80, wide)]
    return [*found, "", "", ""]


def first_of(results: SimulatedRun, number: int, account: str) -> int:
    """The middle of the first stretch that is booked on an account."""
    accounts = results.accounts[number]
    index = accounts.account.index(ACCOUNTS.index(account))
    return (accounts.edge[index] + accounts.edge[index + 1]) // 2


def clock(time_ns: int) -> str:
    """A time as seconds with its digits in threes."""
    digits = f"{time_ns:010d}"
    return f"{digits[:-9]}.{digits[-9:-6]} {digits[-6:-3]} {digits[-3:]} s"


def test_compute_is_named_with_its_phase_and_micro_batch() -> None:
    lines = at(small(), 0, first_of(small(), 0, "compute fwd"))
    assert lines[0] == (
        "forward   embedding_layer, micro-batch 0   equal ranks 0-3, rank 0 = stage 0, dp 0, tp 0"
    )
    assert lines[1] == "0.000 000 000 s .. 0.000 000 400 s   400 ns"
    assert lines[2] == (
        "forward of micro-batch 0 (1st of 2) takes 4.770 us here: 0.000 000 000 s .. 0.000 004 770 s"
    )
    said([lines[3]], "400 ns", "fwd", "line 4")


@pytest.mark.parametrize(
    ("account", "words"),
    [
        ("compute ig", r"input grad   mlp_row, micro-batch 0"),
        ("compute wg", r"weight grad   mlp_row, micro-batch 0"),
        ("compute opt", r"optimizer   optimizer1   "),
        ("exposed tp", r"exposed   all-reduce \(tp\) of embedding_layer, forward, micro-batch 0"),
        ("exposed pp", r"exposed   gradient from stage 1, micro-batch 0"),
        ("bubble", r"bubble   waits for the gradient from stage 1, micro-batch 0"),
    ],
)
def test_every_account_has_its_words(account: str, words: str) -> None:
    assert re.match(words, at(small(), 0, first_of(small(), 0, account))[0])


def test_the_second_stage_waits_for_the_activation_of_the_first() -> None:
    line = at(small(), 1, first_of(small(), 1, "bubble"))[0]
    assert line.startswith("bubble   ")
    said([line], "activation", "stage 0", "micro-batch 0")
    line = at(small(), 1, small().simulation.step_time_ns - 1)[0]
    assert line.startswith("idle, the step ")


def test_a_stream_lane_says_what_runs_there() -> None:
    results = small()
    model = TimelineModel(results)
    model.toggle_fold()
    found = {}
    for lane in range(1, 5):
        spans = model.lanes[lane].spans
        found[model.lanes[lane].stream] = at(results, lane, spans.start[0], unfold=True)[0].split("   ")[0]
    assert found == {
        "compute": "forward",
        "tp": "all-reduce (tp) of embedding_layer, forward, micro-batch 0",
        "dp": "reduce-scatter (dp) of attention_column, weight grad, micro-batch 0",
        "pp": "activation to stage 1, micro-batch 0",
    }


def test_nothing_runs_where_a_stream_is_free() -> None:
    lines = at(small(), 3, 0, unfold=True)
    assert lines[0].startswith("nothing runs here   equal ranks")
    assert not any(lines[1:])


def test_a_narrow_screen_says_the_rank_in_short() -> None:
    assert at(small(), 0, 0, wide=False)[0].endswith("   rank 0 x4")


def test_start_end_and_length_agree() -> None:
    for lane_number, lane in enumerate(TimelineModel(small()).lanes):
        for index in range(len(lane.spans.start)):
            start, end = lane.spans.start[index], lane.spans.end[index]
            second = at(small(), lane_number, start)[1]
            assert second.startswith(f"{clock(start)} .. {clock(end)}   {duration(end - start)}")


def test_a_wait_longer_than_what_it_waits_for_is_not_called_a_part_of_it() -> None:
    second = at(small(), 0, first_of(small(), 0, "bubble"))[1]
    waited, transfer = re.findall(r"([0-9.]+) us", second)
    assert float(waited) > float(transfer)
    assert " of " not in second


def test_times_of_more_than_ten_seconds_are_whole() -> None:
    line = at(lonely(12_345_678_901), 0, 0)[1]
    assert line == "0.000 000 000 s .. 12.345 678 901 s   12.346 s"


def test_a_scaled_length_says_its_factor() -> None:
    results = run(make_workload([layer("a", 1000)], tp=1, pp=1, all_gpus=1), compute_scale=2.5)
    said([at(results, 0, 0)[3]], "1.000 us", "fwd", "line 3", "2.5 (compute scale)", "2.500 us")


def test_names_are_shown_safely() -> None:
    workload = make_workload([layer("\x1b]0;x\x07漢\u202e[b]", 1000)], tp=1, pp=1, all_gpus=1)
    line = at(run(workload), 0, 0)[0]
    assert r"\x1b]0;x\x07?\u202e[b]" in line


def test_a_step_of_nothing_still_says_whose_it_is() -> None:
    said(at(lonely(0), 0, 0)[:1], "idle, the step", "rank 0")


def test_where_a_length_comes_from_is_not_cut_on_120_columns() -> None:
    cut = set()
    for lane in all_lanes(seed()):
        if lane.track_id not in (0, 5) or lane.stream in (None, "compute"):
            continue
        model = TimelineModel(seed())
        model.lane = lane.track_id
        model.toggle_fold()
        model.lane = [one.key for one in model.lanes].index(lane.key)
        for start in lane.spans.start[:20]:
            model.cursor_ns = start
            told = [line_text(line) for line in cursor_lines(model, 120, wide=True)]
            cut |= {text for text in told if len(text) > 118}
    assert cut == set()


@pytest.mark.parametrize(("width", "height"), [(120, 33), (80, 21), (80, 14)])
def test_the_line_is_on_the_screen_with_the_time_of_the_cursor(width: int, height: int) -> None:
    text = text_of(TimelineFrame(BLOCKS, colour=True).draw(TimelineModel(seed()), width, height))
    # A column stands for 150 ms or more: what is below a tenth of a second is in the details.
    assert "At the cursor, 7.4 s " in text
    # On 80 columns passes are narrower than two.
    assert ("s ── many spans under 2 columns wide: zoom in ─" in text) == (width == 80)
    assert re.search("input grad   attention_row, micro-batch 0   (equal )?rank", text)
    assert "7.385 826 183 s .. 7.388 691 043 s   2.865 ms" in text


@pytest.mark.parametrize("factor", [1, 3, 10, 100, 1000, 10**6])
def test_places_have_the_digits_that_the_zoom_shows(factor: int) -> None:
    model, frame = TimelineModel(seed()), TimelineFrame(BLOCKS, colour=True)
    frame.draw(model, 120, 33)
    model.zoom(1, factor)
    text = text_of(frame.draw(model, 120, 33))
    found = re.search(r"At the cursor, ([\d. ]+) s ", text)
    assert found is not None
    digits = len(found[1].replace(" ", "").partition(".")[2])
    column_ns = model.window.span_ns / model.columns
    # The last digit is no wider than a column, and one less would be.
    assert 10 ** (9 - digits) <= max(column_ns, 1) < 10 ** (10 - digits)
    assert abs(float(found[1].replace(" ", "")) * 1e9 - model.cursor_ns) <= column_ns / 2 + 1
    # A group of three never ends with a blank.
    assert re.fullmatch(r"\d+(\.\d{1,3}|\.\d{3} \d{1,3}|\.\d{3} \d{3} \d{1,3})?", found[1])
    assert f" view {model.clock(model.window.first_ns)} .. {model.clock(model.window.last_ns)}, " in text


def test_a_title_says_that_spans_are_narrow_as_long_as_they_are() -> None:
    model, frame = TimelineModel(seed()), TimelineFrame(BLOCKS, colour=True)
    narrow = "many spans under 2 columns wide: zoom in"
    assert narrow in text_of(frame.draw(model, 80, 21))
    model.zoom(1, 10)
    assert narrow not in text_of(frame.draw(model, 80, 21))


def low_rows(time_ns: int, width: int = 100, lane: int = 0, filtered: str = "") -> list[str]:
    """The rows below the lanes of a screen that is wide and low, on seed 002."""
    model = TimelineModel(seed())
    model.lane = lane
    model.filter.set(parse_query(filtered))
    model.cursor_ns = time_ns
    text = text_of(TimelineFrame(BLOCKS, colour=True).draw(model, width, 23))
    return text[text.rindex("\n── ") + 1 :].split("\n")


def test_a_low_screen_says_in_two_lines_what_is_waited_for_and_how_long() -> None:
    title, first, second, _ = low_rows(first_of(seed(), 0, "bubble"))
    assert title.startswith("── At the cursor, ")
    assert first.startswith("  bubble   ")
    said([first], "gradient", "stage 1", "micro-batch 0", "equal ranks 0-63")
    said([second], "4.096 s", "transfer itself", "337.5 us", "for rank 64")
    _, first, second, _ = low_rows(300_000_000)
    assert first.rstrip().endswith("equal ranks 0-63, rank 0 = stage 0, dp 0, tp 0")
    assert re.search(r" ms   pass [0-9.]+ ms$", second.rstrip())


def test_a_low_screen_says_the_filter() -> None:
    assert "── filter bubble: 16 of 2537 spans here ──" in low_rows(0, filtered="bubble")[0]


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("width", range(40, 130, 7))
def test_a_low_screen_ends_in_dots_where_it_cuts(width: int) -> None:
    for account in ("bubble", "exposed tp", "compute fwd"):
        time_ns = first_of(seed(), 0, account)
        wider = [row.rstrip("─ ") for row in low_rows(time_ns, width + 1, filtered="bubble")]
        for row in low_rows(time_ns, width, filtered="bubble")[:3]:
            assert len(row) == width
            words = row.rstrip("─ ")
            assert len(words) < width or words.endswith("...") or words in wider, row
