"""The cursor of a table stays in it, whatever has changed since it was drawn."""

from __future__ import annotations

import pytest

from tests.tui.conftest import MakeApp
from tests.tui.test_sweep_screen import press


@pytest.mark.parametrize("key", ["o", "O", "l", "h", "j", "n", "y", "enter"])
async def test_a_key_finds_a_cursor_that_a_smaller_table_left_behind(make_app: MakeApp, key: str) -> None:
    app = make_app()
    async with app.run_test(size=(160, 40)) as pilot:
        await press(pilot, "3")
        view = app.current_view
        # As after a worker has taken columns and lines, before the next picture.
        view.column, view.line = 99, 10**6
        await press(pilot, key)
        assert app.is_running
        await press(pilot, "j")
        assert 0 <= view.line < len(view.table.lines)
        assert 0 <= view.column < len(view.table.columns_for(160))
