"""Screen 3 of a profiler's run: kernels, the operations that launched them, layers."""

from __future__ import annotations

import asyncio
from pathlib import Path

from simcore.parameters import Parameters
from simcore.replay.operations import Operations
from simcore.runs.measured import run_recording
from tests.kineto.test_bad_input import event
from tests.kineto.test_layers import run_of, two_blocks
from tui.app import WltuiApp
from tui.layers.op_table import OpTable
from tui.layers.view import LayersView
from tui.session import Session


def names(table: OpTable) -> list[str]:
    """What the lines are of, from the top."""
    return [table.texts(line)["operation"] for line in range(len(table.lines))]


def test_a_table_goes_from_kernels_to_operations_to_layers_and_back(tmp_path: Path) -> None:
    table = OpTable(Operations(run_recording(run_of(tmp_path, two_blocks()), Parameters())), each=False)
    assert names(table) == ["gemm"]
    operations = table.regrouped()
    assert operations is not None
    assert set(names(operations)) == {"aten::linear", "AddmmBackward0", "(no operation around)"}
    assert operations.count_text().startswith("3 launching operations")
    layers = operations.regrouped()
    assert layers is not None
    assert set(names(layers)) == {"Block_0", "Block_1", "Norm_0", "(no layer)"}
    assert layers.count_text().startswith("4 layers")
    again = layers.regrouped()
    assert again is not None
    assert names(again) == ["gemm"]


def test_kernels_of_which_nothing_is_told_have_no_other_table(tmp_path: Path) -> None:
    table = OpTable(Operations(run_recording(run_of(tmp_path, [event()]), Parameters())), each=False)
    assert not table.can_regroup
    assert table.regrouped() is None


def test_the_key_groups_and_a_hint_says_so(tmp_path: Path) -> None:
    run = run_recording(run_of(tmp_path, two_blocks()), Parameters())

    async def driven() -> list[str]:
        app = WltuiApp(Session(run))
        found = []
        async with app.run_test(size=(120, 36)) as pilot:
            await pilot.press("3")
            view = app.screen.query_one(LayersView)
            assert ("i", "group by") in view.hints
            for _ in range(3):
                await pilot.press("i")
                found.append(view.table.count_text())
        return found

    said = asyncio.run(driven())
    assert [words.split(",")[0] for words in said] == ["3 launching operations", "4 layers", "1 operation"]
