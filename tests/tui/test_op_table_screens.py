"""Every screen works on an op table of each kind: timeline, layers, parameters, details."""

from __future__ import annotations

import pytest

from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from tests.program.test_op_table_step import DP, GPT, PP, RING, TP
from tests.tui.screen_reading import press, run_over, screen_rows
from tests.workload.test_op_table import read
from tui.app import WltuiApp
from tui.session import Session

TABLES = {"dp": DP, "tp": TP, "pp": PP, "one layer": GPT}
WORDS = {
    "dp": ("dp 2", "all-reduce"),
    "tp": ("tp 2", "all-reduce"),
    "pp": ("pp 2", "send-recv"),
    "one layer": ("dp 2", "all-reduce"),
}


async def screens(table: str, *steps: tuple[str, ...]) -> list[str]:
    """The screen after each of these steps, which are some keys each."""
    session = Session(SimulatedRun(simulate(read(table), Parameters(dim=RING))))
    app = WltuiApp(session, first="timeline")
    shown = []
    async with app.run_test(size=(120, 36)) as pilot:
        for keys in steps:
            await press(pilot, *keys)
            await run_over(pilot)
            shown.append("\n".join(row.rstrip() for row in screen_rows(app)))
    return shown


@pytest.mark.parametrize("name", TABLES)
async def test_every_screen_is_drawn_and_the_layers_have_their_communication(name: str) -> None:
    steps = (
        (),
        ("1",),
        ("2", "space", "j", "j", "f"),
        ("3", "space"),
        ("G",),
        ("4",),
        ("5",),
        ("6",),
        ("exclamation_mark",),
    )
    shown = await screens(TABLES[name], *steps)
    for text in shown:
        assert "layer-loop" in text
        assert "w.txt" in text
    group, words = WORDS[name]
    assert group in shown[3]
    assert words in shown[3]
    if name == "pp":
        # The worst exposed communication, and a transfer with its stage.
        assert "sendrecv, pp send-recv" in shown[1]
        assert "gradient from stage 1, micro-batch 0" in shown[2]
        assert "sendrecv" in shown[2]


async def test_more_layers_can_be_asked_for_in_the_form() -> None:
    before, after = await screens(GPT, ("5",), (*"jjjjjjjj", "enter", "3", "enter"))
    assert "layers" in before
    assert before != after
