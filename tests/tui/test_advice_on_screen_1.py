"""Advice on the first screen: more micro-batches where each gains most, and what a change needs of memory."""

from __future__ import annotations

import re
from functools import cache

import pytest

from simcore.analysis.file_memory import compare_memory
from simcore.analysis.what_if.changes import _AS_IT_IS_TEXT
from simcore.diagnostics import Diagnostic
from simcore.parameters import Parameters
from simcore.ranks import RankSet
from simcore.runs.measured import RecordedRun
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.findings import WhatIf, drop_overlap_variants
from simcore.trace.track import Track
from simcore.units import byte_size, duration
from simcore.workload import open_workload
from simcore.workload.formats.simai_text import read
from tests.measured.test_replay_by_hand import op, run_of
from tests.says import figures
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import drawn_summary, run, seed
from tests.tui.screen_reading import draft_run, press, resize, run_over, screen_rows, screen_text
from tui.app import WltuiApp
from tui.change_words import flags_in
from tui.frame import BLOCKS, text_of
from tui.panels import HELPS_MOST, WHAT_IF, with_most_a_microbatch
from tui.summary.bars import Bars, RankRows
from tui.summary.frame import draw
from tui.summary.model import SummaryModel
from tui.summary.panels import decisive_first, fullest_stage_text, leaves_out_changes
from tui.tour import TRY_FIRST

MISTAKES = "fixtures/001_moe_128npu_with_mistakes.txt"
SIZES = [(80, 24), (120, 40), (200, 50)]


@cache
def mistakes(**parameters: object) -> SimulatedRun:
    """The file that contradicts itself."""
    return run(open_workload(MISTAKES), **parameters)


def knob(ns: int, alike_ns: int | None = None) -> WhatIf:
    return WhatIf(f"--tp {ns}", None, ns, flags=f"--tp {ns}", same_work_ns=alike_ns)


def test_more_micro_batches_have_a_row_where_no_other_change_gains_as_much() -> None:
    knobs = [knob(90), knob(92), knob(95), knob(150, 75), WhatIf("thing", 80, 99)]
    assert with_most_a_microbatch(knobs) == [knobs[index] for index in (0, 3, 1, 2, 4)]
    # It is there, alone or behind the first; another change gains more; there is none.
    less = [knob(70), knob(92), knob(95), knob(150, 75)]
    for other in ([knobs[0], knobs[3], knobs[1]], [knobs[3]], less, [WhatIf("thing", 80, 99)], []):
        assert with_most_a_microbatch(other) == other


async def test_the_largest_gain_of_a_micro_batch_is_on_the_first_screen(make_app: MakeApp) -> None:
    # Of a file that does not tell how many micro-batches it has, once it is fixed.
    fixed = ("83-93",)
    app = make_app(mistakes(without_lines=fixed), first=None)
    again = mistakes(without_lines=fixed, microbatches=2).step_time_ns
    half, whole = duration(round(again / 2)), duration(again)
    share = 100 * (again / 2 / app.session.current.step_time_ns - 1)
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await resize(pilot, *size)
            await run_over(pilot)
            text = screen_text(app)
            assert re.search(rf"batch\b.* \((microbatches 2|2 mb)(, {whole})?\): same work in", text)
            assert re.search(rf"same work in +([\d.]+ GB +)?{half} +{share:.1f}%", text)
            assert "/mb" not in text
            # Screen 6 cut it to `-27.1%...` at 80 columns.
            await press(pilot, "6")
            await run_over(pilot)
            assert re.search(rf"same work in +([\d.]+ GB +)?{half} +{share:.1f}%", screen_text(app))
            await press(pilot, "1")
            # The first is that of `t`, and says for how many micro-batches it is made.
            first = next(row for row in screen_rows(app) if re.search("zb-h1, (overlap|grad-overlap)", row))
            assert "here 1)" in first or "(full gain: 4+ mb" in first
    # On seed 002 another schedule gains more: a small screen has the best of these.
    app = make_app(first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        assert "microbatches" not in screen_text(app)


def test_flags_of_runs_beside_each_other_are_shortened_alike() -> None:
    """At 80x24 `no --overlap-grad-...` stood above `--overlap-g...`."""
    sides = ("--schedule 1f1b, no --overlap-grad-reduce", "--schedule interleaved, --overlap-grad-reduce")
    assert flags_in(sides, 60) == list(sides)
    named = ["1f1b, no --overlap-grad-reduce", "interleaved, --overlap-grad-reduce"]
    assert flags_in(sides, 40) == named
    assert flags_in(sides, 30) == ["1f1b, no grad-overlap", "interleaved, grad-overlap"]
    # The screen cuts what is longer still.
    assert flags_in(sides, 5) == ["1f1b, no grad-overlap", "interleaved, grad-overlap"]


async def test_each_change_has_what_it_needs_of_memory(make_app: MakeApp) -> None:
    app = make_app(first=None)
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await resize(pilot, *size)
            await run_over(pilot)
            first = next(row for row in screen_rows(app) if "interleaved, virtual" in row)
            assert " 60.5 GB " in first
            assert f"t {TRY_FIRST}" in screen_rows(app)[-1]
            await press(pilot, "4", *(["tab", *["down"] * 8] if size == SIZES[0] else []))
            await run_over(pilot)
            marked = next(row for row in screen_rows(app) if ">v-half" in row)
            assert "-15.1%" in marked
            assert " 44.5 GB " in marked
            await press(pilot, "1")
    # Of a trace nobody knows.
    app = make_app(run(open_workload("fixtures/003_gpt2_large_op_table.txt")))
    async with app.run_test(size=SIZES[0]) as pilot:
        await press(pilot, "1")
        for size in SIZES:
            await resize(pilot, *size)
            await run_over(pilot)
            assert " GB " not in screen_text(app)


def test_memory_without_activations_says_so() -> None:
    assert fullest_stage_text(seed(), 80) == "memory about 60.5 GB on stage 0"
    row = "{}\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\t{}\t40000\t100"
    names = [("grad_norm", "REDUCESCATTER"), ("embedding_layer", "NONE"), ("attention_row", "NONE")]
    header = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 1 ga: 1 all_gpus: 8"
    text = "\n".join([header, "3", *(row.format(*name) for name in names)])
    results = SimulatedRun(simulate(read("file.txt", text.encode()), Parameters()))
    assert fullest_stage_text(results, 80) == "memory at least 0.0 GB, activations not known"


def test_few_stages_have_a_row_each_on_a_small_screen() -> None:
    """Two of the four shared one beside a row that stayed blank."""
    results = mistakes()
    rows = drawn_summary(results, 80, 21).split("\n")
    head = next(number for number, row in enumerate(rows) if row.startswith(" stage ranks"))
    assert [row[5:13].split() for row in rows[head + 1 : head + 5]] == [
        ["0", "0-31"], ["1", "32-63"], ["2", "64-95"], ["3", "96-127"],
    ]  # fmt: skip


def test_ranks_that_share_a_row_are_of_whole_stages() -> None:
    """Ranks 0-2, 3-5 and 6-7 of four stages of two had a row each, none of them a stage."""
    tracks = [Track(rank, rank // 2, RankSet.of([rank])) for rank in range(8)]
    of_room = {
        room: [(row.label, row.aside) for row in RankRows().rows(tracks, room)] for room in (2, 3, 4, 8)
    }
    assert of_room[2] == of_room[3] == [("0-3", "0-1"), ("4-7", "2-3")]
    assert of_room[4] == [("0-1", "0"), ("2-3", "1"), ("4-5", "2"), ("6-7", "3")]
    assert len(of_room[8]) == 8


def eight_ranks(slow_ms: int) -> RecordedRun:
    """Four stages of two ranks that compute 10 ms each, rank 7 slow_ms."""
    ms_of = [*[10] * 7, slow_ms]
    text = "".join(op(rank, "forward_step", 0, ms, stage=rank // 2) for rank, ms in enumerate(ms_of))
    return RecordedRun(run_of(text, 8, tp=2, pp=4))


def test_a_rank_that_is_not_like_its_stage_has_a_row_of_its_own() -> None:
    """`6-7  24-49` stood for the slow rank and its peer. Planted: stages split whatever their ranks do."""
    bars = Bars(eight_ranks(40), RankRows(), 4)
    assert [row.label for row in bars.rows] == ["0-1", "2-3", "4-5", "6-7"]
    assert bars.least_rows == 5
    bars.fit(5)
    assert [row.label for row in bars.rows] == ["0-1", "2-3", "4-5", "6", "7"]
    assert not any(bars.ranges)
    alike = Bars(eight_ranks(10), RankRows(), 5)
    assert [row.label for row in alike.rows] == ["0-1", "2-3", "4-5", "6-7"]
    assert alike.least_rows == 4
    rows = [text_of([line]) for line in draw(SummaryModel(eight_ranks(40)), 80, 22, BLOCKS, "")]
    assert any(row.startswith("     7     3 ") for row in rows)


def test_of_changes_that_differ_in_their_overlap_alone_the_best_is_kept() -> None:
    """Planted: kept by schedule alone, so that 4 virtual stages went with 8; sensitivities among them."""
    rows = [
        WhatIf("a", None, 80, flags="a", parameters=Parameters(schedule="zb-h1", overlap_grad_reduce=True)),
        WhatIf("b", None, 81, flags="b", parameters=Parameters(schedule="zb-h1", overlap_param_gather=True)),
        WhatIf("c", None, 82, flags="c", parameters=Parameters(schedule="zb-h1")),
        WhatIf("d", None, 83, flags="d", parameters=Parameters(schedule="interleaved", virtual_stages=4)),
        WhatIf("e", None, 84, flags="e", parameters=Parameters(schedule="interleaved", virtual_stages=2)),
        WhatIf("f", None, 85, flags="f", parameters=Parameters(overlap_grad_reduce=True)),
        WhatIf("g", None, 86, flags="g"),
        WhatIf("h", 50, 87, parameters=Parameters(schedule="zb-h1")),
    ]
    assert [row.name for row in drop_overlap_variants(rows)] == list("adefgh")
    assert drop_overlap_variants([]) == []


async def test_rows_of_the_first_screen_are_different_changes_and_the_title_says_where_all_are(
    make_app: MakeApp,
) -> None:
    """Three rows were one change with other overlap, and at 120 columns no word led to the other 26."""
    app = make_app(first=None)
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await resize(pilot, *size)
            await run_over(pilot)
            text = screen_text(app)
            assert sum("virtual-stages 8" in row or "virtual 8" in row for row in screen_rows(app)) == 1
            assert "interleaved, virtual-stages 4" in text
            assert " 4 all changes " in screen_rows(app)[-1]
            await press(pilot, "4", *(["tab"] if size == SIZES[0] else []))
            assert re.search(
                "interleaved, virtual(-stages)? 8, (overlap-param-gather|param-overlap) ", screen_text(app)
            )
            await press(pilot, "1")
        best = app.session.current.what_if()[0]
        # What `t` tries is what stands first, as long as the row says.
        await press(pilot, "t")
        await draft_run(pilot)
        assert app.session.current.parameters == best.parameters
        assert app.session.current.step_time_ns == best.better10_ns == 8_702_227_542


def test_what_brings_0_0_percent_is_left_to_screen_4_unless_nothing_brings_more() -> None:
    model = SummaryModel(seed())
    base = model.results.figures.what_if_base_ns
    little = base - base // 2500
    rows = [
        WhatIf("seen", None, base - base // 1000),
        WhatIf("not seen", 0, little),
        WhatIf("change", None, little, flags="--tp 2"),
        WhatIf("unknown", base, base, unknown="no partner"),
        WhatIf("anomaly", base, base, anomaly=True),
    ]
    model.set_what_if(rows)
    assert [knob.name for knob in model.knobs or ()] == ["seen", "change", "unknown", "anomaly"]
    assert model.left_out_count == 1
    model.set_what_if(rows[1:2])
    assert [knob.name for knob in model.knobs or ()] == ["not seen"]
    assert model.left_out_count == 0


def test_the_key_to_all_changes_is_named_where_rows_are_cut_or_left_out() -> None:
    model = SummaryModel(seed())
    rows = [WhatIf(f"change {n}", None, 90 + n, flags="--tp 2") for n in range(3)]
    model.set_what_if(rows)
    assert not leaves_out_changes(model, 100, 5)
    assert leaves_out_changes(model, 100, 2)
    alike = [
        WhatIf("a", None, 80, flags="a", parameters=Parameters(tp=2), memory_bytes=60_511_092_736),
        WhatIf("b", None, 81, flags="b", parameters=Parameters(tp=2, overlap_grad_reduce=True)),
    ]
    model.set_what_if(alike)
    assert (model.left_out_count, model.panel_size(WHAT_IF)) == (1, (1, 1))
    assert leaves_out_changes(model, 100, 5)


# -- what a change that was tried costs --------------------------------------------------


async def test_what_a_change_needs_more_of_memory_stands_beside_its_memory(make_app: MakeApp) -> None:
    """zb-h2 on 4 stages keeps 7 of 8 micro-batches, 1f1b keeps 4."""
    results = mistakes(microbatches=8)
    app = make_app(results, first=None)
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await resize(pilot, *size)
            await run_over(pilot)
            assert " held" not in screen_text(app)
            assert "holds" not in screen_text(app)
        await press(pilot, "t")
        await run_over(pilot)
        tried = app.session.current.parameters
        assert tried.schedule == "zb-h2"
        again = results.with_parameters(tried)
        more = max(stage.total for stage in again.model.file_memory) - max(
            stage.total for stage in results.model.file_memory
        )
        held = [max(stage.peak_microbatches for stage in one.simulation.program.stages)
                for one in (results, again)]  # fmt: skip
        assert held == [4, 7]
        forms = (
            f"+{byte_size(more)}: now holds 7 micro-batches, 4 before",
            f"+{byte_size(more)}: 7 micro-batches now held, 4 before",
            f"+{byte_size(more)}: 7 mb held, 4 before",
        )
        for size in SIZES:
            await resize(pilot, *size)
            assert any(words in screen_text(app) for words in forms)


def shown_changes(app: WltuiApp) -> list[str]:
    """The rows below the title of the advice, without the mark of the cursor."""
    rows = screen_rows(app)
    first = next(number for number, row in enumerate(rows) if "hat helps most" in row)
    return [row.replace(">", " ").strip() for row in rows[first + 1 : first + 4]]


async def test_the_changes_in_sight_are_the_same_with_the_focus(make_app: MakeApp) -> None:
    app = make_app(mistakes(), first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        before = shown_changes(app)
        assert before[2].startswith(_AS_IT_IS_TEXT.rpartition(" ")[0])
        await press(pilot, "tab", "tab")
        fix = ">fix: without-lines 83-93 (as the header asks)"
        assert any(row.startswith(fix) for row in screen_rows(app))
        assert shown_changes(app) == before
    app = make_app(mistakes(), first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        for size in ((80, 24), (100, 30), (120, 36), (200, 50)):
            await resize(pilot, *size)
            await run_over(pilot)
            # What the gains below a fix stand on, and what they assume.
            text = " ".join(screen_text(app).split())
            assert " ".join(_AS_IT_IS_TEXT.split()[:8]) in text
            assert "assumed: sent in pieces, compute and" in text


def test_memory_stays_where_another_stage_holds_more() -> None:
    """In 80x24 the one has the title of the places, the other that of the advice."""
    results = mistakes()
    model = SummaryModel(results.with_parameters(Parameters(schedule="zb-h1")))
    model.opened_run = results
    model.set_what_if(model.results.what_if())
    text = text_of(draw(model, 80, 22, BLOCKS, ""))
    forms = ("as before; stage 3 holds 2 micro-batches", "stage 3 now holds 2 micro-batches, 1 before")
    # Over what could be tried next it was read as what that costs.
    sentences = text.split("── ")[0].casefold()
    assert any(words in sentences for words in forms)
    model.opened_run = model.results
    assert " now held" not in text_of(draw(model, 80, 22, BLOCKS, ""))


def test_a_change_that_needs_no_more_memory_says_nothing_of_it() -> None:
    results = mistakes(microbatches=8)
    more = results.with_parameters(Parameters(microbatches=8, schedule="gpipe"))
    assert compare_memory(results, results) == []
    assert compare_memory(more, results) == []
    assert compare_memory(results, more)[0].endswith(": now holds 8 micro-batches, 4 before")
    # As many on the fullest stage, 4; the last one kept 1.
    other = results.with_parameters(Parameters(microbatches=8, schedule="zb-h1"))
    assert (results.shape.held_microbatches, other.shape.held_microbatches) == ((4, 3, 2, 1), (4, 4, 4, 4))
    assert compare_memory(results, other) == [
        "memory as before; stage 3 now holds 4 micro-batches, 1 before",
        "memory as before; stage 3 holds 4 micro-batches", "memory as before; stage 3 holds more",
        "memory as before",
    ]  # fmt: skip
    assert compare_memory(other, results) == []
    model = SummaryModel(more)
    assert model.more_memory() == []
    model.opened_run = results
    assert model.more_memory() == compare_memory(results, more)


def test_where_nobody_knows_the_activations_the_micro_batches_held_are_said() -> None:
    row = "{}\t-1\t1000\tNONE\t0\t1000\tNONE\t0\t1000\t{}\t40000\t100"
    names = [("grad_norm", "REDUCESCATTER"), *[("embedding_layer", "NONE"), ("attention_row", "NONE")] * 4]
    header = "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ep: 1 pp: 2 vpp: 1 ga: 4 all_gpus: 8"
    workload = read("file.txt", "\n".join([header, "9", *(row.format(*name) for name in names)]).encode())
    results = SimulatedRun(simulate(workload, Parameters()))
    assert {stage.activations for stage in results.model.file_memory} == {None}
    more = results.with_parameters(Parameters(schedule="gpipe"))
    assert compare_memory(results, more) == [
        "now holds 4 micro-batches, 2 before",
        "4 micro-batches now held, 2 before",
        "4 mb held, 2 before",
    ]
    assert compare_memory(more, results) == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 24), (120, 40), (200, 50)])
def test_a_stage_that_holds_more_is_said_where_the_fullest_does_not(width: int, height: int) -> None:
    """Seen to fail at 80x24, where what the next change would need took the place."""
    results, changed = seed(), seed(schedule="interleaved", virtual_stages=8, overlap_grad_reduce=True)
    held = [one.simulation.program.stages[15].peak_microbatches for one in (results, changed)]
    assert held == [1, 15]
    model = SummaryModel(changed)
    assert "as before; stage 15" not in text_of(draw(model, width, height, BLOCKS, ""))
    model.opened_run = results
    model.set_what_if(changed.what_if())
    text = text_of(draw(model, width, height, BLOCKS, ""))
    # "Stage 15 now holds 15 micro-batches, 1 before" alone was taken for what the change costs.
    more = r"; stage 15 (now )?holds (more|15 micro-batches)" if width in (100, 200) else ""
    assert re.search(rf"(memory|on stage 0,) as before{more}", text)


async def test_of_two_fixes_it_is_said_that_the_file_does_not_tell_which(make_app: MakeApp) -> None:
    """A newcomer tried both to find which of them is right. Planted: the words for one fix alone."""
    app = make_app(mistakes(), first=None)
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await resize(pilot, *size)
            await run_over(pilot)
            for screen in "41":
                await press(pilot, screen)
                assert "ask its author" in screen_text(app)
                # A newcomer asked why a row with a longer step would help most.
                assert ("Fix the file" in screen_text(app)) == (screen == "1")
                assert HELPS_MOST not in screen_text(app)
        # With one of them made there is none to choose.
        await press(pilot, "t")
        await run_over(pilot)
        for size in SIZES:
            await resize(pilot, *size)
            assert "author" not in screen_text(app)
            assert HELPS_MOST in screen_text(app)


def test_an_assumption_that_decides_the_step_comes_behind_the_first_note() -> None:
    most = Diagnostic("note", "cluster-default", "...", effect=0.387)
    less = Diagnostic("note", "all-gpus-missing", "...", effect=0.01)
    assert most.weight == less.weight == "assumption"
    warnings = [Diagnostic("warning", "slow", "slow"), Diagnostic("warning", "slower", "slower")]
    assert decisive_first([*warnings, most, less]) == ([warnings[0], most, warnings[1], less], 2)
    # It is the first; too little hangs on it; there is none.
    for notes in ([most, less], [*warnings, less], warnings, []):
        assert decisive_first(notes) == (notes, 1)


async def test_the_assumption_that_decides_the_step_has_a_row_on_a_small_screen(make_app: MakeApp) -> None:
    """Of seed 002 the schedule decides 39.6 % of the step: four newcomers found it behind `!` alone."""
    app = make_app(seed(), first=None)
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        text = screen_text(app)
        assert " assumed schedule 1f1b; interleaved -39.6 %" in text
        assert "── Notes, 2 of 8 ─" in text
        assert "─ AICB: Llama 405B, 128 layers ──" in text


def test_rows_that_joined_stages_leave_blank_are_for_advice_and_notes() -> None:
    """16 stages in 13 rows are 8, and five blank ones, beside three changes and four notes of eight."""
    text = drawn_summary(seed(), 120, 33)
    rows = [row for row in text.split("\n") if row.startswith("│")]
    assert sum(row.startswith("│" + " " * 64) for row in rows) <= 1
    assert "bubble: ▄ 19.5 to █ 47.3 % of step" in text
    assert "assumed memory about 60.5 GB on stage 0" in text
    text = re.sub(r"\s*│.*?│?\n│\s*", " ", text)
    memory = seed().what_if()[0].meaning.rpartition("; ")[2]
    assert figures(memory) == ["16"]
    assert memory in text
