"""The why screen: sums of the critical path, its legs, and the what-if table."""

from __future__ import annotations

import pytest

from simcore.trace.run import find_longest_of_part, merged_segments_of
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages, lonely, seed
from tests.tui.screen_reading import press, resize, run_over, screen_rows, screen_text, wait_until
from tui.frame import BLOCKS
from tui.panels import NO_TIME, WHAT_IF
from tui.timeline.lanes import ALL, LaneKey
from tui.timeline.model import TimelineModel
from tui.timeline.view import TimelineView
from tui.why.frame import PANELS, SEGMENTS, SUMS, WhyModel, _sum_tables, segment_lines
from tui.why.view import WhyView


def test_every_grouping_sums_to_the_step() -> None:
    model = WhyModel(seed())
    for grouping in seed().figures.path_groupings:
        assert model.grouping == grouping
        assert sum(ns for _, ns in model.sums()) == seed().step_time_ns
        assert [ns for _, ns in model.sums()] == sorted((ns for _, ns in model.sums()), reverse=True)
        model.next_grouping()
    assert model.grouping == seed().figures.path_groupings[0]


def test_the_cursor_stays_among_the_rows() -> None:
    model = WhyModel(seed())
    for panel in PANELS:
        model.panel = panel
        model.move(10**6)
        model.move(-(10**6))
        assert model.row(panel) == 0
    model.panel = SEGMENTS
    model.move(10**6)
    assert model.target() == (0, 14_662_100_800, 14_774_124_906, None)


def test_a_step_of_one_op_has_a_path_of_one_leg() -> None:
    model = WhyModel(lonely())
    assert len(model.merged_segments) == 1
    assert WhyModel(lonely(0)).merged_segments == []
    assert WhyModel(lonely(0)).target() is None


async def test_enter_on_a_leg_shows_it_in_the_timeline(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "4", "shift+tab", *"jj", "enter")
        view = app.current_view
        assert isinstance(view, TimelineView)
        leg = merged_segments_of(seed())[2]
        assert (leg.rank, leg.what) == (64, "forward")
        assert leg.start_ns <= view.model.cursor_ns < leg.end_ns
        assert view.model.current.track_id == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"schedule": "interleaved", "virtual_stages": 2},
        {"schedule": "zb-h1"},
        {"overlap_grad_reduce": True},
    ],
)
def test_every_leg_and_sum_of_one_op_leads_to_the_span_of_this_op(parameters: dict[str, object]) -> None:
    results = seed(**parameters)
    model, timeline, path = WhyModel(results), TimelineModel(results), results.critical_path

    def spans_at_target() -> int | None:
        target = model.target()
        assert target is not None
        timeline.show_stretch(*target)
        assert timeline.current.track_id == target.track_id
        return None if timeline.span is None else timeline.current.spans.op[timeline.span]

    model.panel = SEGMENTS
    for index, leg in enumerate(model.merged_segments):
        if leg.last == leg.first + 1:
            model.set_cursor(SEGMENTS, index)
            assert spans_at_target() == path.span[leg.first]
    model.panel = SUMS
    for index, (part, _) in enumerate(model.sums()):
        model.set_cursor(SUMS, index)
        found = find_longest_of_part(results, "kind", part)
        assert found is not None
        assert spans_at_target() == path.span[path.at(found[1])]


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 98, 106, 118, 198])
def test_a_gap_is_left_between_what_a_leg_is_and_why_it_is_not_earlier(width: int) -> None:
    for model, batch in ((WhyModel(seed(microbatches=128)), "127"), (WhyModel(seed()), "15")):
        model.panel = SEGMENTS
        model.move(10**6)
        head, *lines = [
            "".join(text for text, _ in line).ljust(width) for line in segment_lines(model, width, 200)
        ]
        column = head.index(" not earlier")
        assert {line[column] for line in lines} == {" "}
        of = "of micro-batch" if width > 100 else "mb"
        line = next(line for line in reversed(lines) if f"backward {of} {batch} " in line[: column + 1])
        assert line.rstrip().endswith(" sends the gradient")


async def test_enter_on_a_transfer_puts_the_cursor_on_it(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "4", "shift+tab", "j", "enter")
        leg = merged_segments_of(seed())[1]
        assert (leg.what, leg.microbatch, leg.rank) == ("pp", 0, 0)
        view = app.current_view
        assert isinstance(view, TimelineView)
        assert view.model.current.key == LaneKey((), 0, ALL, "pp")
        assert " activation to stage 1, micro-batch 0 " in screen_text(app)


@pytest.mark.parametrize(("sums", "part", "rank_class"), [(0, "compute wg", None), (2, "stage 3", 3)])
async def test_enter_on_a_sum_shows_its_longest_segment_in_the_timeline(
    make_app: MakeApp, sums: int, part: str, rank_class: int | None
) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "4", *"i" * sums)
        view = app.current_view
        assert isinstance(view, WhyView)
        await press(pilot, *"j" * [what for what, _ in view.model.sums()].index(part), "enter")
        found = find_longest_of_part(seed(), view.model.grouping, part)
        assert found is not None
        number, start, end, _ = found
        timeline = app.current_view
        assert isinstance(timeline, TimelineView)
        assert timeline.model.current.track_id == number == (number if rank_class is None else rank_class)
        assert start <= timeline.model.cursor_ns < end
        await press(pilot, "escape")
        assert app.screen_name == "why", "it comes back"


async def test_the_last_row_of_eighty_columns_names_t_on_the_table(make_app: MakeApp) -> None:
    app = make_app(four_stages())
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "4", "tab")
        await run_over(pilot)
        for keys in ((), ("t",)):
            await press(pilot, *keys)
            await run_over(pilot)
            await press(pilot, "k")
            last = screen_rows(app)[-1]
            assert " t try it " in last
            # A change is nowhere in the timeline.
            assert "Enter" not in last
            assert (" x other run " in last) == bool(keys)


async def test_the_table_comes_in_the_background_and_a_schedule_in_it_can_be_tried(make_app: MakeApp) -> None:
    app = make_app(four_stages())
    tried = four_stages(schedule="zb-h1")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "4", "tab")
        await wait_until(pilot, lambda: "zb-h1" in screen_text(app))
        view = app.current_view
        assert isinstance(view, WhyView)
        row = [one.knob for one in view.model.knobs or ()].index("--schedule zb-h1")
        await press(pilot, *"j" * row, "t")
        await wait_until(pilot, lambda: app.session.current.step_time_ns == tried.step_time_ns)
        assert view.model.results is app.session.current
        # A reason of another row may name it: `memory as now: with zb-h1, too, ...`.
        await run_over(pilot)
        rows = screen_text(app).split("What if")[-1].replace("with zb-h1, too", "")
        # It is the run itself now.
        assert "zb-h1" not in rows


async def test_t_without_a_chosen_change_tries_the_best(make_app: MakeApp) -> None:
    """Planted: the key does nothing outside of the table."""
    app = make_app(four_stages())
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "4")
        await run_over(pilot)
        best = app.session.current.what_if()[0]
        await press(pilot, "t")
        await run_over(pilot)
        assert app.session.run_words() == "run 2 of 2"
        assert app.session.current.step_time_ns == best.better10_ns


async def test_the_last_row_names_the_keys_of_the_panel_that_is_seen(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        expected = {
            SUMS: " Tab panel  jk row  Enter go there  i other sums  2 timeline ",
            WHAT_IF: " Tab panel  jk row  t try it  2 timeline  o longest first ",
            SEGMENTS: " Tab panel  jk row  Enter go there  2 timeline  o longest first ",
        }
        await press(pilot, "4")
        await run_over(pilot)
        for panel in PANELS:
            view = app.current_view
            assert isinstance(view, WhyView)
            assert view.model.panel == panel
            assert screen_rows(app)[-1].partition(" ? keys ")[0].rstrip() == expected[panel].rstrip()
            await press(pilot, "tab")
        # Beside each other the sums are seen from every panel.
        await resize(pilot, 120, 36)
        await press(pilot, "tab")
        assert screen_rows(app)[-1].startswith(" Tab panel  jk row  t try it  i other sums  2 timeline ")
        await resize(pilot, 80, 24)
        assert screen_rows(app)[-1].startswith(expected[WHAT_IF])


async def test_i_shows_the_sums_first_where_they_are_not_on_the_screen(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "4", "tab", "i")
        said(screen_rows(app)[2:3], "by kind")
        await press(pilot, "i")
        said(screen_rows(app)[2:3], "by layer")
        await press(pilot, "i")
        # As long as each other: by their numbers.
        stages = [row.split()[1] for row in screen_rows(app)[4:18] if " stage " in row or row[1:6] == "stage"]
        assert stages == ["15", *map(str, range(3, 15)), "2"][: len(stages)]


async def test_a_list_that_is_longer_than_its_panel_says_how_long(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "4")
        await run_over(pilot)
        assert "╭─ Segments of the path, 1-16 of 123, " in screen_text(app)
        assert "─╮╭─ What if, 1-8 of 37 ─" in screen_text(app)
        await resize(pilot, 80, 24)
        for keys, title in (
            ((), "── Critical path by kind ─"),
            (("tab",), "── What if, 1-15 of 37 ─"),
            (("G",), "── What if, 20-37 of 37 ─"),
            (("tab",), "── Segments of the path, 1-18 of 123, "),
        ):
            await press(pilot, *keys)
            assert title in screen_text(app)


def test_rows_that_the_sums_leave_free_have_other_sums_and_say_how_many_are_there() -> None:
    model = WhyModel(seed())
    chosen, layers = model.sums(), model.sums("layer")

    def panel(rows: int) -> list[str]:
        return ["".join(text for text, _ in line) for line in _sum_tables(model, 60, rows, BLOCKS)]

    assert len(panel(len(chosen) + 1)) == len(chosen) + 1
    # A blank row, a heading and three layers.
    few = panel(len(chosen) + 6)
    assert few[len(chosen) + 1] == ""
    assert few[len(chosen) + 2].split()[:4] == ["layer,", "3", "of", str(len(layers))]
    assert [line.split()[0] for line in few[len(chosen) + 3 :]] == [name for name, _ in layers[:3]]
    assert not any(line.startswith(">") for line in few[len(chosen) + 1 :])
    # All figures stand below each other.
    assert len({line.index("time") for line in few if "time" in line}) == 1
    every = panel(100)
    assert [line.split()[0] for line in every if "time" in line] == list(model.results.figures.path_groupings)
    assert len(every) <= 100


async def test_a_step_of_no_time_says_so(make_app: MakeApp) -> None:
    app = make_app(lonely(0))
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "4")
        await run_over(pilot)
        assert NO_TIME in screen_text(app)
        await press(pilot, "enter", "tab", "enter", "t", "tab", "enter", "i")
        assert app.screen_name == "why"


async def test_o_lists_the_legs_the_longest_first_and_back(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(160, 45)) as pilot:
        await press(pilot, "4", "tab", "tab", "G", "o")
        view = app.current_view
        assert isinstance(view, WhyView)
        # The longest one is what was asked for.
        assert view.model.row(SEGMENTS) == 0
        lengths = [leg.ns for leg in view.model.ordered_segments]
        assert lengths == sorted(lengths, reverse=True)
        assert {leg.first for leg in view.model.ordered_segments} == {
            leg.first for leg in view.model.merged_segments
        }
        assert "Segments of the path, longest first" in screen_text(app)
        chosen = view.model.ordered_segments[0]
        await press(pilot, "o")
        # The cursor stays on its leg.
        assert view.model.ordered_segments[view.model.row(SEGMENTS)] == chosen
        assert view.model.ordered_segments == view.model.merged_segments
        await press(pilot, "enter")
        timeline = app.current_view
        assert isinstance(timeline, TimelineView)
        assert chosen.start_ns <= timeline.model.cursor_ns < chosen.end_ns
