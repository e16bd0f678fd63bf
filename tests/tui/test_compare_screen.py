"""The compare screen: pairs of lanes on one axis, what differs, and which run is compared with which."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import pytest

from simcore.comparison import Comparison, SpanPair
from simcore.runs.simulated import SimulatedRun
from simcore.trace.lane_spans import COMPUTING
from simcore.units import signed_duration
from simcore.workload import open_workload
from tests.says import figures
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages, naive_cell, open_seed_as, run, seed, seed_workload
from tests.tui.pseudo_terminal import ROOT, SEED
from tests.tui.screen_reading import press, run_over, screen_rows
from tui.compare.frame import _short_name, difference_marks, draw
from tui.compare.model import A_ALONE, B_ALONE, BOTH, DIFFERENCES, CompareModel
from tui.compare.source import ComparedLanes
from tui.frame import ASCII, BLOCKS, Glyphs, middle_cut, text_of
from tui.timeline.lanes import Lane


@cache
def compared_with(**parameters: object) -> ComparedLanes:
    """1f1b beside another run of seed 002: only read, so what takes a second to find is found once."""
    return ComparedLanes(Comparison(seed(), seed(**parameters)))


def model_of(**parameters: object) -> CompareModel:
    """A screen of its own of `compared_with`."""
    return CompareModel(compared_with(**parameters))


@cache
def few(**parameters: object) -> SimulatedRun:
    """Seed 002 with 2 micro-batches in place of 16."""
    return run(seed_workload(), microbatches=2, **parameters)


def model_of_four(**parameters: object) -> CompareModel:
    """As `model_of`, on 4 stages in place of 16: for what holds of any run."""
    return CompareModel(ComparedLanes(Comparison(four_stages(), four_stages(**parameters))))


def test_the_axis_is_as_long_as_the_longer_step() -> None:
    assert model_of(schedule="zb-h1").window.span_ns == seed().step_time_ns
    assert model_of(compute_scale=2.0).window.span_ns == seed(compute_scale=2.0).step_time_ns


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"), [({}, {"no_fold": True}), ({"no_fold": True}, {"no_fold": True, "tp": 2})]
)
def test_each_pair_has_lanes_where_every_rank_is_simulated(
    one: dict[str, object], other: dict[str, object]
) -> None:
    # Equal ranks are one lane there, and a pair may be of any of them.
    comparison = Comparison(seed(world=128, **one), seed(world=128, **other))
    compared = ComparedLanes(comparison)
    assert compared.pairs > 1
    for pair in range(compared.pairs):
        found = comparison.pairs[compared._order[pair]]
        for track, lane in zip((found.a, found.b), compared.lanes(pair), strict=True):
            assert track.first_rank in lane.rank_set


def test_lanes_without_a_partner_are_named() -> None:
    model = model_of(pp=8)
    assert model.compared.pairs == 8
    assert model.compared.alone == ([f"stage {stage}" for stage in range(8, 16)], [])
    turned = CompareModel(ComparedLanes(Comparison(seed(pp=8), seed())))
    assert turned.compared.alone == model.compared.alone[::-1]
    for one, side in ((model, "A"), (turned, "B")):
        for size in ((80, 24), (120, 36), (200, 50)):
            text = text_of(draw(one, ("", ""), *size, BLOCKS, False, False))
            assert f", 8 lanes of {side} alone: stage 8 to stage 15 " in text
    assert ", 8 lanes of A alone ─" in text_of(draw(model, ("", ""), 60, 24, BLOCKS, False, False))
    assert model_of(schedule="zb-h1").compared.alone == ([], [])
    assert " alone" not in text_of(draw(model_of(schedule="zb-h1"), ("", ""), 80, 24, BLOCKS, False, False))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (80, 50), (120, 24)])
def test_a_small_screen_says_what_a_change_costs_of_memory_below_the_lanes(size: tuple[int, int]) -> None:
    width, height = size
    for changed, words in (
        ({"schedule": "interleaved", "virtual_stages": 8}, "stage 15 keeps 15 mb in memory, in A 1"),
        ({"schedule": "gpipe", "microbatches": 32}, "at most 32 mb in memory, in A 16"),
    ):
        text = text_of(draw(model_of(**changed), ("", ""), width, height, BLOCKS, False, True))
        below = next(row for row in text.split("\n") if "starts aligned" in row)
        assert f"; {words} ─" in below
    # As many on each stage; not known before what takes long is; a large screen has it among the notices.
    same = model_of(compute_scale=2.0)
    assert " in memory" not in text_of(draw(same, ("", ""), width, height, BLOCKS, False, True))
    model = model_of(schedule="gpipe", microbatches=32)
    assert " in memory" not in text_of(draw(model, ("", ""), width, height, BLOCKS, False, False))
    large = text_of(draw(model, ("", ""), 200, 50, BLOCKS, False, True))
    assert large.count(" in memory, in A 16") == 1
    assert "Cost: at most 32 micro-batches in memory, in A 16" in large


def test_a_reason_without_room_is_a_whole_sentence() -> None:
    """Seen to fail: two rows of it and three dots, in the middle of a bracket."""
    workload = open_workload(str(ROOT / "fixtures" / "001_moe_128npu_with_mistakes.txt"))
    other = run(workload, dim=("switch:8:450:500", "switch:16:55.5:1000"))
    model = CompareModel(ComparedLanes(Comparison(run(workload), other)))
    why = model.compared.why
    assert why.endswith(")")
    told = text_of(draw(model, ("", ""), 80, 24, BLOCKS, False, True))
    wide = text_of(draw(model, ("", ""), 200, 50, BLOCKS, False, True))
    assert f"Why: {why}." in " ".join(wide.split())
    assert f"Why: {why}." not in " ".join(told.split())
    assert f"Why: {why.rpartition(' (')[0]}." in " ".join(told.split())
    assert " ..." not in next(row for row in told.split("\n") if "Why: " in row)


@pytest.mark.slow
def test_of_unequal_micro_batches_no_mean_stands_beside_the_steps() -> None:
    """Seed 001 has a block of 8 layers and one of 1; one micro-batch alone has nothing unequal."""
    workload = open_workload(str(ROOT / "fixtures" / "001_moe_128npu_with_mistakes.txt"))
    unequal, other = run(workload), run(workload, schedule="zb-h1")
    text = text_of(draw(CompareModel(ComparedLanes(Comparison(unequal, other))), ("", ""), 120, 36,
                        BLOCKS, False, True))  # fmt: skip
    assert "174.1 ms" in text
    assert "/mb" not in text
    assert "923.4 ms/mb" in text_of(draw(model_of(schedule="zb-h1"), ("", ""), 120, 36, BLOCKS, False, True))


@pytest.mark.slow
def test_what_is_cut_is_a_clause_and_never_a_figure() -> None:
    model = model_of(microbatches=17)
    for width, words in (
        (160, "2 595 840 ops of 1 024 ranks matched, of 2 595 840 in A and 2 756 480 in B"),
        (120, "2 595 840 ops of 1 024 ranks matched"),
        (80, ""),
    ):
        row = drawn(model, (width, 24))[2].rstrip()
        steps = "a micro-batch -27.859 ms (-3.0 %); step +449.8 ms (+3.0 %)"
        assert row == f" B - A  {steps}{'; ' if words else ''}{words}"


def test_one_pair_that_is_below_is_one() -> None:
    model = model_of(pp=4)
    for height, words in ((25, "1 more pair below"), (30, "2 more pairs below")):
        assert any(row.startswith(f"── {words}, starts aligned") for row in drawn(model, (80, height)))


def test_a_slow_rank_pairs_its_whole_stage() -> None:
    assert model_of_four(slow_rank=("37=1.3",)).compared.alone == ([], [])


def test_ends_can_be_laid_on_each_other() -> None:
    model = model_of(schedule="zb-h1")
    other = seed(schedule="zb-h1").step_time_ns
    assert model.side_window(0) == model.side_window(1) == model.window
    model.toggle_ends()
    assert model.side_window(0) == model.window
    assert model.side_window(1).first_ns == model.window.first_ns - (seed().step_time_ns - other)
    assert model.side_window(1).last_ns == other
    model.toggle_ends()
    assert model.side_window(1) == model.window


def test_zoom_and_pan_move_both_runs_and_keep_the_cursor_in_view() -> None:
    model = model_of(schedule="zb-h1")
    for _ in range(8):
        model.zoom(1, 2)
    assert model.window.first_ns <= model.cursor_ns < model.window.last_ns
    for direction in (1, -1, -1):
        model.pan(direction, 1)
        assert model.window.first_ns <= model.cursor_ns < model.window.last_ns
    for _ in range(500):
        model.move_cursor(1)
    assert model.window.first_ns <= model.cursor_ns < model.window.last_ns
    model.show_all()
    assert model.window.span_ns == model.window.step_ns


def test_the_cursor_stays_among_pairs_and_movers() -> None:
    model = model_of(schedule="zb-h1")
    model.is_new = False
    model.resize(90, 15)
    model.move(100)
    assert (model.pair, model.top) == (15, 11)
    model.next_panel()
    assert model.panel == DIFFERENCES
    model.move(100)
    assert model.difference_index == len(model.compared.rows) - 1
    model.move(-100)
    assert model.difference_index == 0
    model.move(1)
    model.go_to_difference()
    # A wait comes first.
    row = model.compared.rows[1]
    assert (model.compared.pair_name(model.pair), row.measure) == ("stage 15", "start")
    assert row.words.startswith("stage 15, final_column wg")
    assert model.cursor_ns == row.a_ns == row.at_ns


def test_what_differs_by_duration_or_wait_is_found_too() -> None:
    model = model_of(schedule="zb-h1")
    waits = [index for index, row in enumerate(model.compared.rows) if row.measure == "wait"]
    model.panel, model.difference_index = DIFFERENCES, waits[0]
    model.go_to_difference()
    row = model.compared.rows[waits[0]]
    assert model.compared.pair_name(model.pair) == "stage 0"
    assert model.cursor_ns == row.at_ns != row.a_ns
    assert model.compared.describe_lane(model.pair, 0, model.cursor_ns).startswith("input grad final_column")


def test_points_and_commas_stop_at_what_moved_by_over_1_percent() -> None:
    model = model_of(schedule="zb-h1")
    step = seed().step_time_ns
    alike = model.compared.span_pairs(0)
    moved = [one for one in alike if abs(one.b_start_ns - one.a_start_ns) * 100 > step]
    assert 0 < len(moved) < len(alike)
    model.cursor_ns = 0
    assert figures(model.go_to_shifted(-1)) == ["1 %"]
    assert model.cursor_ns == 0
    for number, one in enumerate(moved[:5], 1):
        assert figures(model.go_to_shifted(1)) == [str(number), str(len(moved)), "1 %"]
        assert model.cursor_ns == one.a_start_ns
    model.go_to_shifted(-1)
    assert model.cursor_ns == moved[3].a_start_ns
    model.cursor_ns = step - 1
    assert figures(model.go_to_shifted(1)) == ["1 %"]
    assert model.cursor_ns == step - 1


def test_with_the_ends_aligned_other_ops_have_moved() -> None:
    model = model_of(schedule="zb-h1")
    last = model.compared.span_pairs(0)[-1]
    assert model.is_shifted(last)
    model.toggle_ends()
    # Both end the step.
    assert not model.is_shifted(last)
    assert model.is_shifted(model.compared.span_pairs(0)[0])


def test_an_op_that_moved_by_exactly_1_percent_is_no_difference() -> None:
    model = model_of(schedule="zb-h1")
    step = model.compared.steps[0]
    assert not model.is_shifted(SpanPair(0, 1, step // 100))
    assert model.is_shifted(SpanPair(0, 1, step // 100 + 1))


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{"schedule": "zb-h1"}, {"compute_scale": 1.3}, {}])
def test_marks_say_who_computes(parameters: dict[str, object]) -> None:
    model = model_of_four(**parameters)
    model.resize(97, 4)
    model.compared.find(lambda: False)
    for pair in range(model.compared.pairs):
        lanes = model.compared.lanes(pair)
        found = difference_marks(model, pair, lanes)
        assert len(found) == model.columns
        edges = model.window.edges(model.columns)
        sums = [naive_computing(lane, edges) for lane in lanes]
        for column, mark in enumerate(found):
            a, b = (one[column] for one in sums)
            width = edges[column + 1] - edges[column]
            if mark == "A":
                assert a > b
            elif mark == "B":
                assert b > a
            elif mark == "~":
                assert min(a, b) > 0
            elif not parameters:
                assert a == b
            assert max(a, b) <= width
        assert bool(found.strip()) == bool(parameters)


def naive_computing(lane: Lane, edges: Sequence[int]) -> list[int]:
    """ns of compute in each column, span by span."""
    return [
        sum(ns for kind, ns in naive_cell(lane, first, last).items() if kind in COMPUTING)
        for first, last in pairwise(edges)
    ]


def test_the_lanes_of_one_run_alone() -> None:
    model = model_of(schedule="zb-h1")
    shown = [model.visible_sides]
    for _ in range(3):
        model.next_sides()
        shown.append(model.visible_sides)
    assert shown == [BOTH, A_ALONE, B_ALONE, BOTH]


def test_pairs_that_differ_most_come_first() -> None:
    slow = CompareModel(ComparedLanes(Comparison(few(), few(slow_rank=("1000=2",))))).compared
    assert slow.pair_name(0) == "rank 1000"
    busy = [slow.busy_ns(pair) for pair in range(slow.pairs)]
    changes = [abs(round(100 * b / slow.steps[1]) - round(100 * a / slow.steps[0])) for a, b in busy]
    assert changes == sorted(changes, reverse=True)


def drawn(
    model: CompareModel, size: tuple[int, int], names: tuple[str, str] = ("run 1", "run 2"),
    glyphs: Glyphs = BLOCKS, colour: bool = True,
) -> list[str]:  # fmt: skip
    """The rows of the screen, everything found."""
    model.compared.find(lambda: False)
    return text_of(draw(model, names, *size, glyphs, colour, True)).split("\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run 1", "r", "just_as_8", "a name of twenty ..."])
def test_a_name_stands_apart_from_its_step_time_and_both_step_times_in_one_column(name: str) -> None:
    a, b = drawn(model_of(schedule="zb-h1"), (80, 21), (name, "draft"))[:2]
    assert f" A  {name} " in a
    assert a.index(" 14.774 s ") == b.index(" 10.695 s ")


@pytest.mark.sampled(8)
@pytest.mark.slow
@pytest.mark.parametrize("height", [21, 25, 27, 28, 30, 31, 33, 47])
@pytest.mark.parametrize("width", [80, 99, 100, 120])
def test_no_account_is_left_out_without_a_word(width: int, height: int) -> None:
    model = model_of(schedule="zb-h1")
    there = [one.name for one in model.compared.accounts]
    text = "\n".join(drawn(model, (width, height)))
    hidden = [name for name in there if not re.search(rf"^[│ ]* {name} +\d+\.\d", text, re.MULTILINE)]
    assert len(there) == 9
    # Of a box the lines are its own; without one the heading has the count.
    said = (
        f" {len(hidden)} more that change less " in text or f" ({len(hidden)} more change less), Tab" in text
    )
    assert said == bool(hidden)
    if (width, height) == (120, 33):
        # There is room for all of them.
        assert not hidden


def test_what_differs_keeps_its_micro_batch_and_has_its_sign() -> None:
    model = model_of(schedule="zb-h1")
    model.panel = DIFFERENCES
    rows = drawn(model, (120, 33))
    table = [row for row in rows if re.search(r"│[> ]stage +\d+, ", row)]
    assert len(table) >= 4
    for row, one in zip(table, model.compared.rows, strict=False):
        assert re.search(rf"{one.words.rsplit(' ', 1)[-1]} +{one.measure} ", row), row
        assert row.split("│")[-2].rstrip().endswith(signed_duration(one.b_ns - one.a_ns))
    signs = {signed_duration(one.b_ns - one.a_ns)[0] for one in model.compared.rows[: len(table)]}
    assert signs == {"-", "+"}
    assert any(f"What differs most, 1 of {len(model.compared.rows)} " in row for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII], ids=["blocks", "ascii"])
def test_the_legend_has_the_marks_and_every_kind_of_cell(glyphs: Glyphs) -> None:
    model = model_of(schedule="zb-h1")
    rows = drawn(model, (120, 33), glyphs=glyphs)
    fills = glyphs.fills
    words = {"fwd": "forward", "bwd": "backward", "wg": "weight grad", "opt": "optimizer",
             "exposed": "exposed tp dp pp", "bubble": "bubble", "idle": "idle"}  # fmt: skip
    (row,) = [row for row in rows if "A A busy  B B busy  ~ moved" in row]
    for kind, what in words.items():
        assert f" {fills[kind]} {what} " in row + " ", what
    # Where words are dear idle is left out: what is blank needs none.
    rows = drawn(model_of(virtual_stages=2, schedule="interleaved"), (80, 21), glyphs=glyphs)
    (row,) = [row for row in rows if row.startswith(" A B only  ~ moved ")]
    for kind in ("fwd", "bwd", "opt", "exposed", "bubble"):
        assert f" {fills[kind]} {words[kind].split()[0]} " in row + " ", kind


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("stage 0, mlp_row ig, mb 3", 40, "stage 0, mlp_row ig, mb 3"),
        ("stage 0, attention_column ig, mb 15", 26, "stage 0, att...n ig, mb 15"),
        ("abcdef", 5, "a...f"),
        ("abcdef", 3, "..."),
        ("abcdef", 1, "."),
        ("\x1b" * 50 + "end", 10, "\\x1b...end"),
    ],
)
def test_a_long_name_is_cut_in_its_middle(text: str, limit: int, cut: str) -> None:
    assert middle_cut(text, limit) == cut


async def test_what_stands_against_is_a_and_what_was_opened_is_b(make_app: MakeApp) -> None:
    app = make_app(against=renamed_run(schedule="zb-h1"))
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "6")
        await run_over(pilot)
        a, b = (row.split() for row in screen_rows(app)[2:4])
        assert a[:6] == ["A", "against", "10.695", "s", "668.4", "ms/mb"]
        assert b[:7] == ["B", "run", "1", "14.774", "s", "923.4", "ms/mb"]
        assert (a[6], b[7]) == ("other.txt,", "002_gpt_1024npu.txt,")


def renamed_run(**parameters: object) -> SimulatedRun:
    """Seed 002, read once more from another file."""
    workload = open_seed_as(open_workload(str(ROOT / SEED)), "other.txt")
    return run(workload, **parameters)


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (40, "stage 15, embedding fwd, micro-batch 0"),
        (30, "stage 15, embedding fwd, mb 0"),
        (26, "s15, embedding fwd, mb 0"),
        (16, "s15, embeddin..."),
    ],
)
def test_what_differs_gives_way_to_short_words_before_it_is_cut_at_its_end(room: int, shown: str) -> None:
    assert _short_name("stage 15, embedding fwd, micro-batch 0", room) == shown


def test_of_several_ranks_the_op_stays() -> None:
    words = "rank 0 and 127 more, grad_gather wg dp all-gather"
    forms = [_short_name(words, room) for room in (49, 42, 30, 20)]
    op = "grad_gather wg dp all-gather"
    assert forms == [words, f"rank 0 +127, {op}", op, "grad_gather wg dp..."]
