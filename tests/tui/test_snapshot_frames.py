"""The screens of memory snapshots as text, and MFU beside a trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from simcore.parameters import Parameters
from simcore.runs.measured import run_recording
from simcore.runs.snapshot import SnapshotRun
from simcore.sources.inputs import open_input
from tests.kineto.test_products import model_trace
from tests.snapshots.test_screens import job, run_of_content
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import frames_after
from tests.tui.test_text_frames import frame_after
from tui.app import WltuiApp
from tui.session import Session

SIZES = [(80, 24), (200, 50)]
FRAMES = {
    "summary": (),
    "summary, other device": ("l",),
    "timeline, a segment": ("2", "space", "j"),
    "stacks": ("3", "j"),
    "failures": ("4",),
}


@pytest.fixture(name="run")
def run_of_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SnapshotRun:
    monkeypatch.chdir(tmp_path)
    return run_of_content(Path("snapshot.pickle"), job())


@pytest.mark.parametrize("name", FRAMES)
async def test_screen_of_a_snapshot_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, run: SnapshotRun, name: str
) -> None:
    make_app()
    app = WltuiApp(Session(run), first="summary")
    for size, text in (await frames_after(app, SIZES, FRAMES[name])).items():
        assert text == snapshot(name=size)


@pytest.mark.parametrize("name", ["summary", "timeline, a segment"])
async def test_snapshot_in_ascii_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, run: SnapshotRun, name: str
) -> None:
    make_app()
    app = WltuiApp(Session(run), first="summary", ascii_only=True)
    text = await frame_after(app, (80, 24), FRAMES[name])
    assert text.isascii()
    assert text == snapshot


async def test_mfu_of_a_measured_step_stands_in_the_first_row(
    make_app: MakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_app()
    monkeypatch.chdir(tmp_path)
    path, model = model_trace(Path())
    run = run_recording(open_input(str(path)), Parameters(gpu="h100", model=model))  # type: ignore[arg-type]
    app = WltuiApp(Session(run), first="summary")
    for text in (await frames_after(app, SIZES, ())).values():
        assert "MFU 0.02" in text.split("\n")[0]
