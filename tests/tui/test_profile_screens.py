"""The screens of a profiler's run as text: the host beside its device, and a simulation on the same axis."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from simcore.measured import MeasuredRun
from simcore.runs.measured import RecordedRun
from tests.kineto.test_host_lane import events
from tests.kineto.test_layers import run_of
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import run, two_stages
from tests.tui.test_text_frames import SIZES, frame_after
from tui.app import WltuiApp
from tui.session import Session

_NAME = "rank0.json"


def profiled(tmp_path: Path) -> MeasuredRun:
    """A step of two kernels. The path is a name alone: no test may depend on where it lies."""
    found = run_of(tmp_path, events())
    return replace(found, path=_NAME, ranks=tuple(replace(rank, path=_NAME) for rank in found.ranks),
                   diagnostics=())  # fmt: skip


@pytest.mark.parametrize("ascii_only", [False, True], ids=["blocks", "ascii"])
@pytest.mark.parametrize("size", SIZES, ids=["120x36", "80x24"])
async def test_a_rank_unfolds_to_its_host(
    make_app: MakeApp, snapshot: SnapshotAssertion, tmp_path: Path, size: tuple[int, int], ascii_only: bool
) -> None:
    make_app()
    app = WltuiApp(Session(RecordedRun(profiled(tmp_path))), first="timeline", ascii_only=ascii_only)
    # Down to the thread that launched, and to the operation in which it did.
    text = await frame_after(app, size, ("g", "j", "j", "j", "j", "comma"))
    assert not ascii_only or text.isascii()
    assert "aten::linear" in text
    assert text == snapshot


async def test_the_launch_of_a_kernel_is_a_key_away(make_app: MakeApp, tmp_path: Path) -> None:
    make_app()
    app = WltuiApp(Session(RecordedRun(profiled(tmp_path))), first="timeline")
    text = await frame_after(app, (120, 36), ("j", "j", "comma", "left_square_bracket"))
    assert "on host thread" in text


@pytest.mark.parametrize("size", SIZES, ids=["120x36", "80x24"])
async def test_a_simulation_beside_a_profile_is_on_one_axis(
    make_app: MakeApp, snapshot: SnapshotAssertion, tmp_path: Path, size: tuple[int, int]
) -> None:
    make_app()
    session = Session(RecordedRun(profiled(tmp_path)), against=run(two_stages()))
    assert await frame_after(WltuiApp(session, first="compare"), size, ()) == snapshot
