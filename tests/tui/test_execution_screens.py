"""The screens of execution traces as text: by ASTRA-sim's rules, and on links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from simcore.chakra import find_set, open_set
from simcore.executing.execution_result import Execution
from simcore.executing.sibling_files import with_sibling_files
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.executed import ExecutedRun, run_execution
from simcore.trace.run import path_parts
from tests.executing.encoding import COLL, COMP, RECV, SEND, write_set
from tests.executing.test_untaken import folder_of
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import frames_after, press, run_over, screen_rows, screen_text
from tests.tui.test_text_frames import SIZES, frame_after
from tui.app import WltuiApp
from tui.frame import BLOCKS, text_of
from tui.layers.trace_table import TraceTable
from tui.notes.view import NOT_TAKEN
from tui.session import Session
from tui.summary.model import SummaryModel
from tui.summary.side_panels import LateRanks
from tui.why.frame import WhyModel, draw

ASKED = {
    "astra": Parameters(dialect="astra-sim-2", dim=("switch:4:50:500",)),
    "links": Parameters(network="links", dim=("switch:4:50:500",), splits=2),
}
FRAMES = {
    "summary": ("1",),
    "timeline, unfolded": ("j", "space", "j"),
    "nodes": ("3",),
    "why": ("4",),
    "parameters": ("5", "j", "j", "j"),
}


def node(number: int, name: str, kind: int, parents: list[int], **attributes: Any) -> dict[str, Any]:
    micros = attributes.pop("micros", 0)
    own = {"id": number, "name": name, "type": kind, "data": parents}
    return {**own, "micros": micros, "attributes": attributes}


def ranks() -> list[list[dict[str, Any]]]:
    """Two stages of two ranks: a micro-batch forward and back, gradients summed over each stage."""
    found = []
    for rank in range(4):
        stage, other = divmod(rank, 2)
        ends = {"comm_tag": other, "comm_size": 200_000}
        there = {"comm_src": other, "comm_dst": other + 2, **ends}
        back = {"comm_src": other + 2, "comm_dst": other, **ends}
        reduce = {"comm_type": 0, "comm_size": 400_000, "pg_name": str(stage + 1)}
        if stage == 0:
            nodes = [
                node(1, "mb0.layer.0.mlp.y@0_COMP", COMP, [], micros=20 + other),
                node(2, "mb0.layer.0.mlp.y@0_SEND", SEND, [1], **there),
                node(3, "mb0.layer.1.mlp.dx@0_RECV", RECV, [1], **back),
                node(4, "mb0.layer.0.mlp.dw@0_COMP", COMP, [3], micros=30),
            ]
        else:
            nodes = [
                node(1, "mb0.layer.0.mlp.y@0_RECV", RECV, [], **there),
                node(2, "mb0.layer.1.mlp.y@0_COMP", COMP, [1], micros=25),
                node(3, "mb0.layer.1.mlp.dx@0_COMP", COMP, [2], micros=15),
                node(4, "mb0.layer.1.mlp.dx@0_SEND", SEND, [3], **back),
            ]
        found.append([*nodes, node(5, "grad.sum", COLL, [4 if stage == 0 else 3], **reduce)])
    return found


def run(folder: Path, asked: str) -> ExecutedRun:
    """The path is a name alone: no test may depend on where it lies."""
    found = find_set(write_set(folder, ranks()))
    assert found is not None
    groups = folder / "groups.json"
    groups.write_text('{"1": [0, 1], "2": [2, 3]}')
    opened = run_execution(
        Execution(replace(open_set(found), path="wl"), replace(ASKED[asked], comm_groups=str(groups)))
    )
    setup = opened.setup.with_changes(comm_groups="groups.json")
    return ExecutedRun(replace(opened.executed, setup=setup))


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("asked", ASKED)
async def test_the_screen_of_execution_traces_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, tmp_path: Path, asked: str, name: str
) -> None:
    make_app()
    app = WltuiApp(Session(run(tmp_path, asked)), first="timeline")
    for size, text in (await frames_after(app, SIZES, FRAMES[name])).items():
        assert text == snapshot(name=size)


async def test_execution_traces_in_ascii_are_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, tmp_path: Path
) -> None:
    make_app()
    app = WltuiApp(Session(run(tmp_path, "links")), first="timeline", ascii_only=True)
    text = await frame_after(app, (120, 36), FRAMES["timeline, unfolded"])
    assert text.isascii()
    assert text == snapshot


async def test_enter_on_the_note_of_files_beside_a_set_runs_it_with_them(
    make_app: MakeApp, tmp_path: Path
) -> None:
    make_app()
    found = find_set(str(folder_of(tmp_path / "a run")))
    assert found is not None
    opened = run_execution(Execution(open_set(found), Parameters()))
    app = WltuiApp(Session(opened), first="notes")
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot)
        # What run is meant comes before what it took for granted.
        assert screen_rows(app)[3].startswith(">assumed ")
        said(screen_rows(app), "assumed", "not taken")
        assert "Enter run with" in screen_rows(app)[-1]
        await press(pilot, "enter", "escape", "enter")
        said(screen_rows(app), NOT_TAKEN)
        said(screen_rows(app), "t runs it", "Esc closes")
        await press(pilot, "t")
        await run_over(pilot)
        assert app.session.current.parameters == with_sibling_files(opened.setup).parameters
        assert app.session.current.parameters.dialect == "astra-sim-2"
        assert len(app.session.history) == 2
        await press(pilot, "1", "exclamation_mark")
        assert "not taken" not in screen_text(app)


def test_i_on_screen_1_orders_the_ranks_by_the_next_column(tmp_path: Path) -> None:
    results = run(tmp_path, "links")
    model = SummaryModel(results)
    figures = {
        "waiting": lambda one: one.wait_ns + one.bubble_ns,
        "exposed": lambda one: one.all_exposed_ns,
        "computing": lambda one: one.busy_ns,
    }
    for word, of in figures.items():
        panel = model.side_panel
        assert isinstance(panel, LateRanks)
        assert panel.title == f"Ranks by {word}"
        ranks = [rank for *_, rank in panel.rows]
        accounts = {track.first_rank: results.accounts[track.track_id] for track in results.tracks}
        assert ranks == sorted(ranks, key=lambda rank: (-of(accounts[rank]), rank))
        assert sorted(ranks) == sorted(accounts)
        model.next_side_panel()
    assert model.side_panel.title == "Ranks by waiting"


async def test_screen_3_of_several_ranks_does_not_say_that_there_is_one(
    make_app: MakeApp, tmp_path: Path
) -> None:
    make_app()
    app = WltuiApp(Session(run(tmp_path, "links")), first="layers")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "space")
        assert screen_rows(app)[-1].strip() == TraceTable.cannot_split
    assert "single" not in TraceTable.cannot_split


def test_the_legs_say_how_many_segments_of_the_report_they_join(tmp_path: Path) -> None:
    model = WhyModel(run(tmp_path, "astra"))
    segments = sum(1 for _ in path_parts(model.results, "kind"))
    text = text_of(draw(model, 120, 36, BLOCKS, ""))
    assert segments >= len(model.merged_segments)
    assert (f", {segments} segments joined" in text) == (segments > len(model.merged_segments))
