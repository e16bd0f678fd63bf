"""Three screens of seed 002 with their colours, as SVG: layout and palette at a glance."""

from __future__ import annotations

from collections.abc import Callable

from textual.pilot import Pilot

from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import press, run_over

SIZE = (120, 36)
SnapCompare = Callable[..., bool]


def after(*keys: str) -> Callable[[Pilot[None]], object]:
    """What happens before the picture is taken."""

    async def run_before(pilot: Pilot[None]) -> None:
        await press(pilot, *keys)
        await run_over(pilot)

    return run_before


def test_timeline(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    assert snap_compare(make_app(), terminal_size=SIZE, run_before=after("j", "j", "space", *"wwww"))


def test_layers(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    assert snap_compare(make_app(), terminal_size=SIZE, run_before=after("3", "j"))


def test_parameters(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    keys = after("5", *"jjjjjjjjjj", "greater_than_sign")
    assert snap_compare(make_app(), terminal_size=SIZE, run_before=keys)
