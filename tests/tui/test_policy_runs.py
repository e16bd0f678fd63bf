"""The screen on a run of ASTRA-sim 1.0's policies, whose collectives overlap on a stream."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from syrupy.assertion import SnapshotAssertion

from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from tests.engine.policy_cases import PolicyCase, policy_cases
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import all_lanes, naive_cell
from tests.tui.screen_reading import press, run_over
from tests.tui.test_parameter_form import open_field
from tests.tui.test_text_frames import frame_after
from tests.workload.texts import read
from tui.timeline.margins import cursor_lines
from tui.timeline.model import TimelineModel

TEXT = """HYBRID_CUSTOMIZED
3
embedding -1 1000 ALLGATHER 65536 1500 REDUCESCATTER 131072 1200 ALLREDUCE 1048576 100 HYBRID_DATA_MODEL
mlp_1 -1 20000 ALLREDUCE 262144 30000 ALLREDUCE 262144 25000 ALLREDUCE 4194304 10 HYBRID_MODEL_DATA
mlp_2 -1 4000 ALLTOALL 32768 6000 ALLTOALL 32768 5000 ALLREDUCE 2097152 0 DATA
"""


def opened(**parameters: object) -> SimulatedRun:
    workload = read(TEXT, "customized.txt")
    dims = {"dim": ("ring:4:400:500", "switch:4:50:2000"), "splits": 4, "passes": 2}
    return SimulatedRun(simulate(workload, Parameters(**(dims | parameters))))  # type: ignore[arg-type]


@settings(max_examples=60)
@given(policy_cases(faults=True))
def test_what_overlaps_on_a_lane_counts_once(case: PolicyCase) -> None:
    results = SimulatedRun(case.simulated())
    assume(results.simulation.step_time_ns)  # in a step of 0 ns nothing runs
    check_lanes(results)


def test_collectives_that_overlap_on_a_lane_count_once() -> None:
    # Three all-reduces over both dimensions: chunks of one are on the first while others are on the second.
    text = "DATA\n3\n" + "".join(f"l{row} -1 9 NONE 0 9 NONE 0 9 ALLREDUCE 900000 1\n" for row in range(3))
    workload = read(text, "data.txt")
    dim = ("ring:4:50:500", "switch:4:50:2000")
    results = SimulatedRun(simulate(workload, Parameters(dim=dim, splits=2)))
    spans = next(lane for lane in all_lanes(results) if lane.stream == "all").spans
    assert any(end > start for end, start in zip(spans.end, spans.start[1:], strict=False))
    check_lanes(results)


def check_lanes(results: SimulatedRun) -> None:
    """Shares of time are those of the spans, and what runs is found."""
    step = results.simulation.step_time_ns
    for lane in all_lanes(results):
        edges = [0, step // 3, step // 2, step]
        for first, last, cell in zip(edges, edges[1:], lane.content.shares.cells(edges), strict=False):
            assert cell == naive_cell(lane, first, last)
            assert sum(cell.values()) <= last - first
        spans = lane.spans
        assert list(spans.start) == sorted(spans.start)
        for index in range(len(spans.start)):
            found = lane.content.find_span(spans.start[index])
            assert found is not None
            assert spans.start[found] <= spans.start[index] < spans.end[found]


SCREENS = {
    "timeline": (),
    "timeline, unfolded": ("j", "space", "j", "j", "j", "w", "w", "w", "f"),
    "layers": ("3",),
    "layers, each row": ("3", "space", "j"),
    "layers, a collective that is left out": ("3", "space", "j", "j", "j"),
    "parameters": ("5",),
    "notes": ("exclamation_mark",),
}


@pytest.mark.parametrize("name", SCREENS)
async def test_every_screen_draws_such_a_run(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str
) -> None:
    assert await frame_after(make_app(opened()), (120, 36), SCREENS[name]) == snapshot


async def test_the_passes_and_the_dialect_can_be_changed_on_the_screen(make_app: MakeApp) -> None:
    app = make_app(opened())
    async with app.run_test(size=(120, 36)) as pilot:
        await open_field(pilot, "passes")
        await press(pilot, "l")
        await run_over(pilot)
        assert app.session.draft.passes == 3
        assert app.session.current.simulation.step_time_ns == opened(passes=3).simulation.step_time_ns
        await open_field(pilot, "dialect")
        await press(pilot, "l")
        await run_over(pilot)
        simai = opened(passes=3, dialect="simai").simulation
        assert app.session.current.simulation.step_time_ns == simai.step_time_ns


def test_a_state_change_is_told_from_the_end_of_the_step() -> None:
    model = TimelineModel(opened(splits=1, passes=1))
    accounts = model.results.accounts[0]
    idle = [index for index, account in enumerate(accounts.op) if account == -1]
    model.cursor_ns = accounts.edge[idle[0]]
    assert cursor_lines(model, 110, True)[0][0][0] == "idle, ASTRA-sim 1.0 changes its state"
