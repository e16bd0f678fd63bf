"""Each step of the table lasts as long as the step that is opened alone, on whatever clocks its ranks are.

Planted, one at a time: the shift of a step is that of the first; a step lasts as long as on its longest rank.
Both failed here.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.diagnostics import InputError
from simcore.parameters import OpeningOptions, Parameters, RunInput
from simcore.runs import open_run
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import open_input
from tests.kineto.corpus import CORPUS, SHARED

CASES = Path(__file__).parent / "cases"
OTHERS = ("kineto", "megatronapp", "straggler", "nsys", "rank_trace")
SEVERAL = tuple(SHARED / "corpus" / name for name in OTHERS)


def opened(path: Path, step: str | None = None) -> RecordedRun:
    run = open_run(RunInput(open_input(str(path), OpeningOptions(step=step)), Parameters()))
    assert isinstance(run, RecordedRun)
    return run


def every_case() -> list[Path]:
    """All files and folders of measured runs that are there."""
    folders = (CASES, CASES.parent / "chrome_traces", *(folder for folder in SEVERAL if folder.is_dir()))
    return [path for folder in folders for path in sorted(folder.iterdir()) if path.name != "refused"]


def agrees(path: Path, most: int = 3) -> int:
    """Asserts that steps of the table are as long as alone, at most so many; returns how many there are."""
    try:
        run = opened(path)
    except (InputError, AssertionError):
        return 0
    table = run.step_table
    if table is None:
        return 0
    rows = sorted(
        {0, table.median_row, table.slowest_row, *range(len(table))}, key=lambda row: (row > 0, row)
    )
    for row in rows[:most]:
        one = opened(path, str(table.steps[row]))
        assert one.step_time_ns == table.ns[row]
        assert [rank.last_ns - rank.first_ns for rank in one.measured.ranks] == [
            lengths[row] for lengths in table.lengths if lengths[row] >= 0
        ]
        for index, accounts in enumerate(one.accounts):
            # What compute hides is not in the account.
            assert accounts.wait_ns <= max(table.waits[index][row], 0) or not one.measured.concurrent
    return len(table)


@pytest.mark.parametrize("path", every_case(), ids=lambda path: path.name)
def test_a_step_of_the_table_is_as_long_as_alone(path: Path) -> None:
    agrees(path)


def test_several_cases_have_steps() -> None:
    assert agrees(CASES / "host_ahead_3_steps.json") == 3
    if CORPUS.is_dir():
        assert agrees(CORPUS / "gloo_4") == 3


def write_job(
    folder: Path, chance: random.Random, ranks: int, steps: int, stated: dict[str, Any]
) -> list[int]:
    """A Chrome trace a rank, its clock off by a time that grows from step to step; collectives of all ranks
    end at once. Returns how long each step takes.
    """
    offset = [chance.randrange(-50_000, 50_000) for _ in range(ranks)]
    drift = [chance.randrange(-3_000, 3_000) for _ in range(ranks)]
    events: list[list[dict[str, Any]]] = [[] for _ in range(ranks)]
    now, lengths = 1_000_000, []
    for step in range(steps):
        begins = [now + chance.randrange(300) for _ in range(ranks)]
        reached = begins
        for _ in range(chance.randrange(1, 4)):
            arrived = [at + chance.randrange(1, 900) for at in reached]
            over = max(arrived) + chance.randrange(1, 200)
            for rank in range(ranks):
                shift = offset[rank] + step * drift[rank]
                for name, begin, end in (
                    ("forward", reached[rank], arrived[rank]),
                    ("dp_allreduce", arrived[rank], over),
                ):
                    args = {"step": step} | (stated if name == "dp_allreduce" else {})
                    events[rank].append({"ph": "X", "name": name, "pid": rank, "tid": 0, "ts": begin + shift,
                                         "dur": end - begin, "args": args})  # fmt: skip
            reached = [over] * ranks
        lengths.append(1000 * (over - min(begins)))
        now = over + 5_000
    for rank, own in enumerate(events):
        named = {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
        (folder / f"trace_rank{rank}.json").write_text(json.dumps([named, *own]))
    return lengths


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 5), st.booleans())
def test_clocks_that_drift_are_aligned_in_each_step(
    tmp_path_factory: pytest.TempPathFactory, seed: int, ranks: int, steps: int, are_stated: bool
) -> None:
    folder = tmp_path_factory.mktemp("job")
    stated = {"ranks": [*range(ranks)]} if are_stated else {}
    lengths = write_job(folder, random.Random(seed), ranks, steps, stated)
    table = opened(folder).step_table
    assert table is not None
    assert [*table.ns] == lengths
    assert agrees(folder, 2) == steps
