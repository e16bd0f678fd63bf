"""Which lanes the words of the lane filter mean."""

from __future__ import annotations

import pytest

from tests.tui.made_runs import seed
from tui.timeline.filtering import find_tracks
from tui.timeline.lanes import LaneSource


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("rank 37", {0}), ("ranks 0-7,64", {0, 1}), ("Ranks 64, 128", {1, 2}), ("stage 2-4", {2, 3, 4}),
        ("stages 2, 3", {2, 3}), ("stage 15", {15}), ("stage 77", set()), ("stages 14-99999999", {14, 15}),
    ],
)  # fmt: skip
def test_ranks_and_stages_are_meant_as_people_write_them(text: str, stages: set[int]) -> None:
    assert find_tracks(LaneSource(seed()), text) == stages
