"""The screens of a CSV of spans as text: what any other measured run has."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from simcore.measured import MeasuredRun
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import open_input
from tests.tui.conftest import MakeApp
from tests.tui.test_text_frames import SIZES, frame_after
from tests.workload.texts import REPOSITORY
from tui.app import WltuiApp
from tui.session import Session

_NAME = "spans.csv"


@cache
def two_ranks() -> MeasuredRun:
    """A step of two ranks. The path is a name alone: no test may depend on where it lies."""
    run = open_input(str(REPOSITORY / "tests" / "kineto" / "cases" / _NAME))
    assert isinstance(run, MeasuredRun)
    return replace(run, path=_NAME, ranks=tuple(replace(rank, path=_NAME) for rank in run.ranks))


@pytest.mark.parametrize("size", SIZES, ids=["120x36", "80x24"])
@pytest.mark.parametrize(
    ("first", "keys"),
    [
        ("summary", ()),
        ("timeline", ("space", "j", "j", "comma")),
        ("layers", ()),
        ("why", ()),
        ("compare", ("t",)),
    ],
)
async def test_a_csv_of_spans_has_the_screens_of_a_run(
    make_app: MakeApp, snapshot: SnapshotAssertion, first: str, keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    make_app()
    app = WltuiApp(Session(RecordedRun(two_ranks())), first=first)
    assert await frame_after(app, size, keys) == snapshot
