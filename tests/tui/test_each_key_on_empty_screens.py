"""Each key of each screen on runs that have nothing for it: `--screen` and restored sessions open any."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from textual.binding import Binding

from simcore.runs.measured import RecordedRun
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import lonely
from tests.tui.screen_reading import press
from tests.tui.test_measured_screens import PLAN, made
from tui.screens import SCREENS, load
from tui.session import Run

RUNS: dict[str, Callable[[], Run]] = {
    "a step of 0 ns": lambda: lonely(0),
    "one rank measured": lambda: RecordedRun(made(PLAN)),
}


def keys_of(name: str) -> Iterator[str]:
    """Yields the keys of a screen, but those that end the program."""
    for one in load(name).BINDINGS:
        assert isinstance(one, Binding)
        if "quit" not in one.action:
            yield one.key.split(",")[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("name", SCREENS)
async def test_no_key_ends_the_program(make_app: MakeApp, name: str, kind: str) -> None:
    app = make_app(RUNS[kind](), first=name)
    async with app.run_test(size=(80, 24)) as pilot:
        for key in keys_of(name):
            if len(app.screen_stack) > 1:
                await press(pilot, "escape")
            await app.action_open(name)
            await press(pilot, key)
            assert app.is_running, key
