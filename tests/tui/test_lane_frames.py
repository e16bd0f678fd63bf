"""Arranged lanes as whole screens: pinned, sorted, hidden, unfolded, in ASCII and without colour."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion

from simcore.runs.simulated import SimulatedRun
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import seed
from tests.tui.screen_reading import frames_after, press, screen_rows
from tests.tui.test_text_frames import SIZES, frame_after, make_app_without_colour
from tui.frame_view import styles
from tui.timeline.view import TimelineView


def slow() -> SimulatedRun:
    """64 classes: one rank of stage 0 is slow."""
    return seed(slow_rank=("37=1.3",))


def weight_gradients_apart() -> SimulatedRun:
    return seed(schedule="zb-h1")


def many_passes() -> SimulatedRun:
    """So many micro-batches that kinds alternate in nearly every cell of a wide screen."""
    return seed(microbatches=48)


FRAMES: dict[str, tuple[Callable[[], SimulatedRun], tuple[str, ...]]] = {
    "single ranks, one pinned": (seed, ("j", "j", "I", "j", "j", "p", "G")),
    "a pinned stream": (seed, ("j", "space", "j", "j", "p", *"wwww")),
    "sorted, two hidden": (seed, ("o", "o", "j", "H", "H", "j")),
    "groups": (slow, ("space", "j", "space")),
    "groups, sorted by waits, only two stages": (slow, ("o", "o", "o", "L", *"0-64", "enter", "z")),
    "weight gradients apart": (weight_gradients_apart, ("space", *"wwwww")),
}


@pytest.mark.parametrize("name", FRAMES)
async def test_arranged_lanes_are_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str
) -> None:
    results, keys = FRAMES[name]
    for size, text in (await frames_after(make_app(results()), SIZES, keys)).items():
        assert text == snapshot(name=size)


@pytest.mark.parametrize("name", ["single ranks, one pinned", "weight gradients apart"])
async def test_arranged_lanes_in_ascii_are_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str
) -> None:
    results, keys = FRAMES[name]
    text = await frame_after(make_app(results(), ascii_only=True), (80, 24), keys)
    assert text.isascii()
    assert text == snapshot


async def test_arranged_lanes_without_colour_are_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    results, keys = FRAMES["weight gradients apart"]
    app = make_app_without_colour(lambda: make_app(results()), monkeypatch)
    assert await frame_after(app, (80, 24), keys) == snapshot


async def test_rows_of_many_passes_are_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion
) -> None:
    assert await frame_after(make_app(many_passes()), (200, 30), ("j",)) == snapshot


async def test_a_frame_of_200_columns_has_few_pieces(make_app: MakeApp) -> None:
    for results, keys in ((seed(), ("j", "I", "z")), (many_passes(), ("z",)), (slow(), ("z",))):
        app = make_app(results)
        async with app.run_test(size=(200, 50)) as pilot:
            await press(pilot, *keys)
            view = app.current_view
            for key in ("w", "w", "w", "d", "s", "G"):
                await press(pilot, key)
                assert sum(len(line) for line in view.frame(200, 47)) < 5000


async def test_lanes_that_do_not_match_are_asked_for_again(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "L", *"stage", "space", *"77", "enter")
        assert screen_rows(app)[-2].startswith(
            " no lane matches: stage 5, stages 2-4, ranks 0-7,64, or words"
        )
        # What was typed is there to be changed.
        assert screen_rows(app)[-1].rstrip().endswith(" stage 77")
        await press(pilot, "escape")
        view = app.current_view
        assert isinstance(view, TimelineView)
        assert len(view.model.lanes) == 16
        await press(pilot, "L", *"stage", "space", "7", "enter")
        assert [lane.title for lane in view.model.lanes] == ["stage  7"]
        assert "only stage 7: 1 of 16 lanes (L)" in "\n".join(screen_rows(app))
        await press(pilot, "L", "backspace", "enter")
        assert len(view.model.lanes) == 16


def test_a_style_of_two_kinds_has_both_colours_and_can_be_reversed() -> None:
    for system in ("truecolor", "256", "standard"):
        known = styles(system)
        assert known["fwd on bwd"].color == known["fwd"].color
        assert known["fwd on bwd"].bgcolor == known["bwd"].color
        turned = "fwd on bwd reversed"
        assert known[turned].reverse
