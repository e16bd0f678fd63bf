"""The panel of a calibration as text."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from simcore.calibration import Calibration
from simcore.render.report.calibration import calibration_text, saved_text
from tests.says import figures
from tests.tui.conftest import MakePair, calibrating_of
from tests.tui.screen_reading import frames_after, press, resize, run_over, screen_rows
from tests.tui.test_text_frames import SIZES, frame_after
from tui.frame import BLOCKS, text_of

SIZE = (120, 36)


def hurry(folder: Path) -> None:
    """Rank 3 computes in half the time."""
    path = next((folder / "traces").glob("*rank3*"))
    text = path.read_text().replace("duration=4.00", "duration=2.00")
    path.write_text(text.replace("duration=8.00", "duration=4.00"))


@pytest.mark.parametrize("size", SIZES, ids=["120x36", "80x24"])
@pytest.mark.parametrize("slow", [False, True])
async def test_the_panel_is_drawn_as_before(
    make_pair: MakePair, pair_folder: Path, snapshot: SnapshotAssertion, slow: bool, size: tuple[int, int]
) -> None:
    steps = {"all ranks alike": ["F"]}
    if slow:
        hurry(pair_folder)
        steps = {"a rank is left out": ["F"], "its end": ["pagedown"] * 6, "tried": ["t"]}
    app = make_pair()
    async with app.run_test(size=size) as pilot:
        for name, keys in steps.items():
            await press(pilot, *keys)
            # `t` tries what has been fitted: on a busy machine that may not be there yet.
            await run_over(pilot)
            text = "\n".join(row.rstrip() for row in screen_rows(app))
            assert text == snapshot(name=name)


async def test_in_ascii_it_is_the_same(make_pair: MakePair, snapshot: SnapshotAssertion) -> None:
    text = await frame_after(make_pair(ascii_only=True), (80, 24), ("F",))
    assert text.isascii()
    assert text == snapshot


async def test_why_a_kind_decides_nothing_stands_behind_its_line_or_below_it(
    make_pair: MakePair, pair_folder: Path, snapshot: SnapshotAssertion
) -> None:
    for path in (pair_folder / "traces").glob("*rank[23]*"):
        # The receiver is there after its sender has begun to wait.
        path.write_text(path.read_text().replace("duration=4.00", "duration=0.50", 1))
    for size, text in (await frames_after(make_pair(), SIZES, ("F",))).items():
        assert text == snapshot(name=size)


async def test_its_words_and_figures_are_those_of_the_command(make_pair: MakePair, pair_folder: Path) -> None:
    hurry(pair_folder)
    app = make_pair()
    async with app.run_test(size=(140, 50)) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        shown = [row.removeprefix(" ").rstrip() for row in screen_rows(app)]
        found = calibrating_of(app)._current
        assert isinstance(found, Calibration)
        text = calibration_text(found) + saved_text(found, None)
        # Titles stand in rules; the names of both are in the first.
        said = [line for line in text.split("\n")[3:] if line]
        said = ["S saves these parameters for --params FILE" if "--output" in one else one for one in said]
        titles = [one for one in said if one not in shown]
        assert titles[0] == "Fitted"
        assert [figures(title) for title in titles] == [[], ["4"]]
        for title in titles:
            assert any(row.startswith(f"── {title} ──") for row in shown)


async def test_what_the_trace_leaves_in_doubt_is_in_the_panel(make_pair: MakePair, pair_folder: Path) -> None:
    next((pair_folder / "traces").glob("*rank2*")).unlink()
    text = await frame_after(make_pair(), SIZE, ("F",))
    assert "\n traces: warning ranks-missing rank 2 of 4 is missing: 3 ranks shown\n" in text


async def test_at_every_width_whole_lines_are_shown(make_pair: MakePair, pair_folder: Path) -> None:
    hurry(pair_folder)
    app = make_pair()
    async with app.run_test(size=(200, 24)) as pilot:
        await press(pilot, "F")
        await run_over(pilot)
        for width in (200, 120, 80, 60, 34, 20):
            await resize(pilot, width, 24)
            assert all(len(row) == width for row in screen_rows(app))
            lines = text_of(calibrating_of(app).draw(width, 500, BLOCKS)).split("\n")
            assert not any(line.lstrip().startswith("%") for line in lines)
            if width >= 80:
                assert all(len(line) <= width for line in lines)
