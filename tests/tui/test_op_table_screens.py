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


async def screen(table: str, *keys: str) -> str:
    """The screen after some keys."""
    session = Session(SimulatedRun(simulate(read(table), Parameters(dim=RING))))
    app = WltuiApp(session, first="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, *keys)
        await run_over(pilot)
        return "\n".join(row.rstrip() for row in screen_rows(app))


@pytest.mark.parametrize("name", TABLES)
async def test_the_layer_table_shows_the_communication_of_an_op_table(name: str) -> None:
    group, words = WORDS[name]
    shown = await screen(TABLES[name], "3", "space")
    assert group in shown
    assert words in shown


@pytest.mark.parametrize(
    "keys", [(), ("1",), ("space", "j", "j", "f"), ("3", "G"), ("4",), ("5",), ("6",), ("exclamation_mark",)]
)
@pytest.mark.parametrize("name", TABLES)
async def test_every_screen_is_drawn(name: str, keys: tuple[str, ...]) -> None:
    shown = await screen(TABLES[name], *keys)
    assert "layer-loop" in shown
    assert "w.txt" in shown


async def test_the_worst_exposed_communication_may_be_a_sendrecv() -> None:
    assert "sendrecv, pp send-recv" in await screen(PP, "1")


async def test_a_transfer_of_a_sendrecv_is_named_with_its_stage() -> None:
    shown = await screen(PP, "space", "j", "j", "f")
    assert "gradient from stage 1, micro-batch 0" in shown
    assert "sendrecv" in shown


async def test_more_layers_can_be_asked_for_in_the_form() -> None:
    before, after = await screen(GPT, "5"), await screen(GPT, "5", *"jjjjjjjj", "enter", "3", "enter")
    assert "layers" in before
    assert before != after
